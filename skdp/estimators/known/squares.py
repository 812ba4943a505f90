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
from skdp.estimators.known.statistics import Statistic
from skdp.estimators.moments import mean_product, with_constant

ROUNDING = 1e-13
"""Smallest variance, as a share of the mean square; a smaller one counts as constant."""


class LeastSquares(Statistic):
    """The mean of v v^T, for a LinearRegression or a Ridge; v is x, a constant and the response."""

    name = "second_moments"
    content = "mean products of the features and the response"

    def _bound(self, estimator: Estimator) -> None:
        """Two matrices of rank one are farthest apart where they are orthogonal."""
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
        radius, has_constant = self.front.radius, bool(estimator.fit_intercept)
        # the constant and the response have the weight of half the radius
        self.weight, self.constant = radius / 2, radius / 2 * has_constant
        width = self.n_features + has_constant + 1
        self.scales = triangle(np.where(np.eye(width), 1.0, math.sqrt(2)))
        self.shape = (1, width * (width + 1) // 2)
        self.largest = radius**2 + self.constant**2 + self.weight**2
        self.l2 = math.sqrt(2) * self.largest
        # of a matrix v v^T all entries sum to |v|_1^2, of which those off the diagonal shrink
        widest = self.front.absolute + self.constant + self.weight
        longest = (widest**2 + (math.sqrt(2) - 1) * self.largest) / math.sqrt(2)
        self.l1 = min(math.sqrt(self.shape[1]) * self.l2, 2 * longest)

    def __call__(self, X: Container, y: NDArray | None, weights: NDArray | None = None) -> Matrix:
        rows = self.rows(X, y)
        weighed = rows if weights is None else rows * weights[:, None]
        return (self.scales * triangle(mean_product(weighed, rows)))[None]

    def rows(self, X: Container, y: NDArray | None) -> Matrix:
        """Return v for each record, with the response scaled to [-1, 1] and clipped."""
        middle, half = self._scale_of_response()
        response = np.clip((np.asarray(y, dtype=np.float64) - middle) / half, -1, 1)
        rows = with_constant(X.toarray() if sparse.issparse(X) else np.asarray(X), self.constant)
        return np.hstack([rows, self.weight * response[:, None]])

    def _scale_of_response(self) -> tuple[float, float]:
        low, high = self.y_range or (-1.0, 1.0)
        if not self.constant:  # a model without an intercept depends on where 0 is
            return 0.0, max(abs(low), abs(high))
        return low + (high - low) / 2, (high - low) / 2

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Solve the normal equations of repaired moments; equal columns share their slope."""
        center, second = self._unscaled(mean)
        covariance = second - np.outer(center, center)
        is_constant = np.abs(np.diag(covariance)) <= ROUNDING * np.diag(second)
        covariance[is_constant] = covariance[:, is_constant] = 0.0
        typical = np.diag(np.append(self.front.squares, 1 / 3))
        covariance = nearest_covariance(covariance, typical, singular=True)
        penalty = getattr(released, "alpha", 0.0) / n_samples
        features = self._raised(covariance, center, typical) + penalty * np.eye(self.n_features)
        slopes, *_ = np.linalg.lstsq(features, covariance[:-1, -1], rcond=None)
        middle, half = self._scale_of_response()
        released.coef_ = half * slopes
        if released.fit_intercept:
            released.intercept_ = float(middle + half * (center[-1] - slopes @ center[:-1]))

    def _raised(self, covariance: Matrix, center: NDArray, expected: Matrix) -> Matrix:
        """Return the covariance of x, with variances that noise hides raised to expected ones."""
        if self.usual is not None:
            usual_center, usual = self._unscaled(self.usual)
            expected = usual - np.outer(usual_center, usual_center)
        of_center, of_second = self._unscaled(np.broadcast_to(self.errors, self.shape))
        of_product = np.outer(center, of_center)
        of_all = np.sqrt(of_second**2 + of_product**2 + of_product.T**2)
        return raised_eigenvalues(*(each[:-1, :-1] for each in (covariance, expected, of_all)))

    def _unscaled(self, mean: Matrix) -> tuple[NDArray, Matrix]:
        """Return first moments, 0 without a constant, and second ones, without the scales."""
        matrix = from_triangle(mean[0] / self.scales)
        matrix[-1] /= self.weight
        matrix[:, -1] /= self.weight
        if not self.constant:
            return np.zeros(len(matrix)), matrix
        place = self.n_features
        center = np.delete(matrix[place], place) / self.constant
        return center, np.delete(np.delete(matrix, place, 0), place, 1)
