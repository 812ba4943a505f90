"""Moments of two classes, or of a response, with nothing public; proofs are in the user guide."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from sklearn.base import clone

from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.catalog.repairs import (
    from_triangle,
    positive,
    raised_divisors,
    raised_eigenvalues,
    triangle,
)
from skdp.estimators.known.statistics import Statistic
from skdp.estimators.moments import class_codes, mean_product, with_constant

COMMON = math.sqrt(1 / 8)
"""What the mean of x is multiplied by; the codes of the classes are -sqrt(1/2) and sqrt(1/2)."""
CODE = math.sqrt(1 / 2)
SPREAD = 4.0
"""Largest guess of the variance along the slopes, of the mean one: measured are 1 to 8."""
MOST_COLUMNS = 64  # of which products are released
LEAST_VARIANCE = 0.1  # of the mean square of x, whatever its mean
LEAST_SIGNAL = 1e-3  # with less the majority is predicted anyway


class TwoClassMoments(Statistic):
    """Means of code times (x, c), of x, and of x x^T or, where the bound would grow, of x^T x."""

    name = "class_moments"
    content = "mean of x, of its squares, and of the code of the class times x and a constant"
    has_products = False
    unit = 1.0  # of the codes, which the moment of the estimator has

    def _bound(self, estimator: Estimator) -> None:
        """Choose the largest constant that adds nothing; a proof says why squares add nothing."""
        radius, d = self.front.radius, self.n_features
        self.model = clone(estimator)
        self.classes: NDArray = getattr(estimator, "classes_", np.empty(0))
        self.constant = max(estimator.constant, radius / 2)
        self.scales = triangle(np.where(np.eye(d), 1.0, math.sqrt(2)))
        self._measure()

    def suit(self, mechanism: Any) -> None:
        """Release x x^T by a bound on the L2 norm, to which it adds nothing, if so many fit."""
        d = self.n_features
        most = mechanism.most_values or math.inf
        fits = d <= MOST_COLUMNS and 2 * d + 1 + self.scales.size <= most
        self.has_products = mechanism.geometry.order == 2 and fits
        self._measure()

    def _measure(self) -> None:
        radius, absolute, d = self.front.radius, self.front.absolute, self.n_features
        self.weight = (math.sqrt(3) / 4 if self.has_products else 3 / 8) / radius
        self.shape = (1, 2 * d + 1 + (self.scales.size if self.has_products else 1))
        self.largest = math.hypot(radius, self.constant)
        self.l2 = max(math.sqrt(2) * self.largest, math.sqrt(5 / 2) * radius)
        self.l1 = math.sqrt(math.prod(self.shape)) * self.l2
        if not self.has_products:
            across = math.sqrt(5 / 8) * absolute + CODE * self.constant
            self.l1 = min(self.l1, 2 * max(across, (CODE + COMMON) * absolute))

    def bound(self, order: float, n_samples: int, n_more: int = 0) -> float:
        """Bound a change of the mean; the sum of the squares has a term more for each column."""
        return super().bound(order, n_samples, n_more + self.n_features)

    def codes(self, y: NDArray | None) -> Matrix:
        """Return the code of each record, within [-CODE, CODE]."""
        return class_codes(2)[np.searchsorted(self.classes, np.asarray(y, self.classes.dtype))]

    def __call__(self, X: Container, y: NDArray | None, weights: NDArray | None = None) -> Matrix:
        codes = self.codes(y)
        weights = np.ones((len(codes), 1)) if weights is None else weights[:, None]
        if self.has_products:
            rows = X.toarray() if sparse.issparse(X) else np.asarray(X)
            squares = self.scales * triangle(mean_product(weights * rows, rows))
        else:
            squares = mean_product(weights, X.multiply(X) if sparse.issparse(X) else X * X).sum()
        of_codes = mean_product(weights * codes, with_constant(X, self.constant))
        parts = of_codes, COMMON * mean_product(weights, X), self.weight * squares
        return np.concatenate([*map(np.ravel, parts)])[None]

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Take covariances in the place of moments, without what is expected to be noise."""
        moment, share, center, squares = self._parts(mean)
        noise = self.errors if self.usual is None else 0.0  # what a prior decodes is shrunk
        errors = self._parts(np.broadcast_to(noise, mean.shape))
        of_moment, of_share, of_center, of_squares = (each**2 for each in errors)
        share = share.clip(-CODE, CODE)
        kept = _signal(center, of_center)
        center = kept * center
        noise = of_moment + (kept * share) ** 2 * of_center + center**2 * of_share
        change = moment - share * center
        signal = max(_signal(change, noise), LEAST_SIGNAL)
        most_learned = signal * (1 - released.shrinkage)
        covariance = self._covariance(squares, of_squares, center, most_learned)
        # no part of the variance of the code is more than all of it
        explained = signal * change @ linalg.pinvh(covariance) @ change
        explained /= max(CODE**2 - share.item() ** 2, LEAST_SIGNAL)
        mean_of_all = np.append(center, 1.0)
        released.moment_ = self.unit * np.append(moment, released.constant * share)[None]
        released.shrinkage_ = 0.0
        released.second_moment_ = np.outer(mean_of_all, mean_of_all)
        released.second_moment_[:-1, :-1] += covariance * max(explained, 1.0) / signal

    def _parts(self, mean: Matrix) -> tuple[NDArray, NDArray, NDArray, NDArray]:
        """Return the means of code times x, of the code, of x, and of its squares."""
        d = self.n_features
        moment, share, center, squares = np.split(mean[0], [d, d + 1, 2 * d + 1])
        squares = squares / self.weight
        if self.has_products:
            squares = squares / self.scales
        return moment, share / self.constant, center / COMMON, squares

    def _covariance(
        self, squares: NDArray, noise: NDArray, center: NDArray, most_learned: float
    ) -> Matrix:
        """Return the covariance of x, of the guessed shape where noise hides the true one."""
        typical = np.diag(self.front.squares)
        squares, noise = (from_triangle(each) for each in (squares, noise))
        squares = squares - (np.outer(center, center) if self.has_products else center @ center)
        of_all = np.trace(typical)
        expected = max(of_all - center @ center, LEAST_VARIANCE * of_all)
        error = math.sqrt(np.trace(noise))
        typical *= positive(raised_divisors(np.trace(squares), expected, error), expected) / of_all
        if not self.has_products:
            return min(SPREAD, np.cbrt(self.n_features)) * typical
        learned = most_learned * _signal(squares - typical, noise)
        shrunk = typical + learned * (squares - typical)
        return raised_eigenvalues(shrunk, typical, learned * np.sqrt(noise))


class MomentsOfResponse(TwoClassMoments):
    """The same of a MomentRegressor, whose responses move them most where they are of size 1."""

    name = "moments"
    content = "mean of x, of its squares, and of the response times x and a constant"
    unit = 1 / CODE

    def codes(self, y: NDArray | None) -> Matrix:
        return CODE * self.model._codes(y)


def _signal(numbers: Matrix, noise: Matrix) -> float:
    """Return which share of the squares of numbers is no noise, as James and Stein estimate it."""
    size = np.sum(numbers**2)
    return max(0.0, 1 - float(np.sum(noise) / size)) if size > 0 else 0.0
