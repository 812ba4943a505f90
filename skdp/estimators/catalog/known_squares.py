"""Statistics of second moments; the proofs are in the user guide, "Sensitivities on paper"."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.checks import shown
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.catalog.repairs import (
    from_triangle,
    nearest_covariance,
    raised_eigenvalues,
    triangle,
)
from skdp.estimators.moments import mean_product, with_constant
from skdp.estimators.statistics import Statistic

ROUNDING = 1e-13
"""Smallest variance, as a share of the mean square; a smaller one counts as constant."""


class SecondMoments(Statistic):
    """The mean of v v^T, each product once; v is x with a constant and the response, if any."""

    name = "second_moments"

    def _measure(self, has_constant: bool, weight_of_response: float = 0.0) -> None:
        """Two matrices of rank one are farthest apart where they are orthogonal."""
        radius = self.front.radius
        self.constant, self.weight = radius / 2 * has_constant, radius * weight_of_response
        width = self.n_features + (self.constant > 0) + (self.weight > 0)
        self.scales = triangle(np.where(np.eye(width), 1.0, math.sqrt(2)))
        self.shape = (1, width * (width + 1) // 2)
        self.largest = radius**2 + self.constant**2 + self.weight**2
        self.l2 = math.sqrt(2) * self.largest
        # of a matrix v v^T all entries sum to |v|_1^2, of which those off the diagonal shrink
        widest = self.front.absolute + self.constant + self.weight
        longest = (widest**2 + (math.sqrt(2) - 1) * self.largest) / math.sqrt(2)
        self.l1 = min(math.sqrt(self.shape[1]) * self.l2, 2 * longest)

    def __call__(self, X: Container, y: NDArray | None) -> Matrix:
        rows = self.rows(X, y)
        return (self.scales * triangle(mean_product(rows, rows)))[None]

    def rows(self, X: Container, y: NDArray | None) -> Matrix:
        """Return v for each record."""
        rows = with_constant(X.toarray() if sparse.issparse(X) else np.asarray(X), self.constant)
        return np.hstack([rows, self.weight * self._response(y)[:, None]]) if self.weight else rows

    def _response(self, y: NDArray | None) -> NDArray[np.float64]:
        """Return the response, scaled to [-1, 1] and clipped."""
        middle, half = self._scale_of_response()
        return np.clip((np.asarray(y, dtype=np.float64) - middle) / half, -1, 1)

    def _scale_of_response(self) -> tuple[float, float]:
        low, high = self.y_range or (-1.0, 1.0)
        if not self.constant:  # a model without an intercept depends on where 0 is
            return 0.0, max(abs(low), abs(high))
        return low + (high - low) / 2, (high - low) / 2

    def _moments(self, mean: Matrix) -> tuple[NDArray, Matrix]:
        """Return the repaired mean and covariance of x and of the response, if any."""
        center, second = self._unscaled(mean)
        covariance = second - np.outer(center, center)
        is_constant = np.abs(np.diag(covariance)) <= ROUNDING * np.diag(second)
        covariance[is_constant] = covariance[:, is_constant] = 0.0
        return center, nearest_covariance(covariance, self._typical, singular=True)

    @property
    def _typical(self) -> Matrix:
        """Return a public guess at the covariance."""
        return np.diag(np.append(self.front.squares, [1 / 3] * (self.weight > 0)))

    def _raised(self, covariance: Matrix, center: NDArray) -> Matrix:
        """Return the covariance of x, with variances that noise hides raised to expected ones."""
        expected = self._typical
        if self.usual is not None:
            usual_center, usual = self._unscaled(self.usual)
            expected = usual - np.outer(usual_center, usual_center)
        errors = np.broadcast_to(self.errors, (1, len(self.scales)))
        of_center, of_second = self._unscaled(errors)
        of_product = np.outer(center, of_center)
        of_all = np.sqrt(of_second**2 + of_product**2 + of_product.T**2)
        parts = [
            each[: self.n_features, : self.n_features] for each in (covariance, expected, of_all)
        ]
        return raised_eigenvalues(*parts)

    def _unscaled(self, mean: Matrix) -> tuple[NDArray, Matrix]:
        """Return first moments, 0 without a constant, and second ones, without the scales."""
        matrix = from_triangle(mean[0] / self.scales)
        lengths = np.ones(len(matrix))
        if self.weight:
            lengths[-1] = self.weight
        matrix /= np.outer(lengths, lengths)
        if not self.constant:
            return np.zeros(len(matrix)), matrix
        place = self.n_features
        center = np.delete(matrix[place], place) / self.constant
        return center, np.delete(np.delete(matrix, place, 0), place, 1)


class LeastSquares(SecondMoments):
    """The second moments that determine a LinearRegression or a Ridge."""

    def _bound(self, estimator: Estimator) -> None:
        """The response has the weight of half the radius."""
        if self.y_range is None:
            raise ValueError(
                f"No sensitivity of {type(estimator).__name__} is known on paper without bounds on "
                "the response. Wrap it as TransformedTargetRegressor(regressor, "
                "transformer=ClipBox(low, high)), with a public range."
            )
        alpha = getattr(estimator, "alpha", 0.0)
        if estimator.positive or np.ndim(alpha):
            raise ValueError(
                f"A sensitivity of {type(estimator).__name__} is known on paper for positive=False "
                f"and one alpha. Got positive={shown(estimator.positive)}, alpha={shown(alpha)}."
            )
        self._measure(estimator.fit_intercept, 0.5)

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Solve the normal equations; equal columns share their slope."""
        center, covariance = self._moments(mean)
        penalty = getattr(released, "alpha", 0.0) / n_samples
        features = self._raised(covariance, center) + penalty * np.eye(self.n_features)
        slopes, *_ = np.linalg.lstsq(features, covariance[:-1, -1], rcond=None)
        middle, half = self._scale_of_response()
        released.coef_ = half * slopes
        if released.fit_intercept:
            released.intercept_ = float(middle + half * (center[-1] - slopes @ center[:-1]))


class PrincipalComponents(SecondMoments):
    """Mean and covariance, for a PCA."""

    def _bound(self, estimator: Estimator) -> None:
        """The number of components must not depend on the records."""
        number = estimator.n_components
        if isinstance(number, str | float):
            raise ValueError(
                "A sensitivity of PCA is known on paper for a number of components that does not "
                f"depend on the records. Got n_components={shown(number)}."
            )
        self._measure(has_constant=True)

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        released.mean_, covariance = self._moments(mean)
        variances, vectors = np.linalg.eigh(covariance)
        number = len(released.components_)
        released.components_ = vectors.T[::-1][:number]
        variances = np.maximum(variances[::-1][:number], 0)  # which rounding may bring below 0
        released.explained_variance_ = variances * n_samples / max(n_samples - 1, 1)
