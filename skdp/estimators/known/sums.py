"""Statistics of counts and moments; the proofs are in the user guide, "Sensitivities on paper"."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.catalog.repairs import TINY, on_simplex, positive, raised_divisors
from skdp.estimators.known.statistics import Front, OfClasses, Products, Statistic
from skdp.estimators.known.two_classes import MomentsOfResponse, TwoClassMoments
from skdp.estimators.moments import class_codes, with_constant


class Counts(OfClasses):
    """Class counts and sums of each column and class, for a MultinomialNB."""

    is_scaled = True
    name = "class_sums"
    content = "count and column sums of each class, over the number of records"

    def _bound(self, estimator: Estimator) -> None:
        """Two records of a class differ by less than two of other classes: nothing is negative."""
        super()._bound(estimator)
        if (self.front.low < 0).any():
            raise ValueError(
                f"{type(estimator).__name__} counts amounts, which are not negative. Put "
                "ClipBox(0, high) before it, or before the ClipNorm that stands there."
            )
        self.constant = self.front.radius / 2
        size = math.hypot(self.front.radius, self.constant)
        self._measure(self.n_features + 1, size, self.front.absolute + self.constant)

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        released.feature_count_ = n_samples * mean[:, :-1]
        released.class_count_ = n_samples * mean[:, -1] / self.constant


class ClassMoment(OfClasses):
    """The moment of a MomentClassifier."""

    is_scaled = True
    name = "moment_"
    content = "mean product of the code of the class and the features"

    def _bound(self, estimator: Estimator) -> None:
        """Two codes are sqrt 2 apart, and the constant cancels within a class."""
        radius, absolute, self.constant = self.front.radius, self.front.absolute, estimator.constant
        super()._bound(estimator)
        table = self._table()
        if len(table) == table.shape[1]:
            self.name = "class_moments"
            self.content = "column sums of each class, over the number of records"
        length = float(np.linalg.norm(table, axis=1).max())
        longest = float(np.abs(table).sum(axis=1).max())
        self._measure(
            self.n_features + (self.constant > 0),
            math.hypot(radius, self.constant),
            longest * (absolute + self.constant),
            (2 * longest * absolute, 2 * radius * length),
        )

    def _table(self) -> Matrix:
        """Return codes with products [same] - q, q in [0, 1/k]."""
        n_classes = len(self.classes)
        return super()._table() if n_classes > 3 else class_codes(n_classes)

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Turn the rows into codes."""
        codes = class_codes(len(self.classes))
        put_moment(released, codes.T @ mean if len(mean) == len(codes) else mean, self.front)


def class_moment(
    estimator: Estimator, front: Front, y_range: tuple[float, float] | None
) -> Statistic:
    """Return the statistic of a MomentClassifier, with the mean of x if nothing is public."""
    alone = estimator.second_moment is None and estimator.refit_on is None
    is_pair = alone and len(estimator.classes_) == 2 and estimator.constant > 0
    return (TwoClassMoments if is_pair else ClassMoment)(estimator, front, y_range)


def put_moment(released: Estimator, moment: Matrix, front: Front) -> None:
    """Set the moment and, unless one is given, a second moment of the size of the clips."""
    released.moment_ = moment
    if released.second_moment is None:
        released.second_moment_ = np.diag(np.append(front.squares, 1.0))


class ResponseMoment(Products):
    """The moment of a MomentRegressor."""

    name = "moment_"
    content = "mean product of the response and the features"

    def _bound(self, estimator: Estimator) -> None:
        """The response is within [-1, 1], so the product is within the ball of (x, c)."""
        if estimator.y_range is None:
            raise ValueError(
                "No sensitivity of MomentRegressor is known on paper without bounds on the "
                "response. Declare a public range with its 'y_range' parameter. Got None."
            )
        self.model, self.constant = clone(estimator), estimator.constant
        size = math.hypot(self.front.radius, self.constant)
        absolute = self.front.absolute + self.constant
        self._measure(self.n_features + (self.constant > 0), size, absolute, (0.0, 2 * size))

    def codes(self, y: NDArray | None, n_samples: int) -> Matrix:
        return self.model._codes(y)

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        put_moment(released, mean, self.front)


def moment_of_response(
    estimator: Estimator, front: Front, y_range: tuple[float, float] | None
) -> Statistic:
    """Return the statistic of a MomentRegressor, with the mean of x if nothing is public."""
    is_alone = estimator.second_moment is None and estimator.y_range is not None
    is_alone = is_alone and estimator.constant > 0
    return (MomentsOfResponse if is_alone else ResponseMoment)(estimator, front, y_range)


class ScaledMoments(Products):
    """Base of statistics with x and its square, whose weight adds nothing to the L2 change."""

    def _scale(self, weight_in_box: float) -> None:
        """Set scale, weight, largest sizes, and the largest change while the code stays."""
        front, d = self.front, self.n_features
        box = np.linalg.norm(np.maximum(np.abs(front.low), np.abs(front.high)))
        if front.radius < box:
            self.middle, self.half, self.limit = np.zeros(d), np.ones(d), front.radius
            self.weight = 1 / (2 * front.radius)
            self.unvaried = front.radius**2 / d
            self.square = front.radius**2 + (self.weight * front.radius**2) ** 2
            self.absolute = front.absolute + self.weight * front.radius**2
            self.within = 2 * self.absolute, 2 * front.radius
            return
        half = (front.high - front.low) / 2
        self.middle, self.half, self.limit = front.low + half, np.where(half > 0, half, 1.0), 1.0
        self.weight, self.unvaried = weight_in_box, 1 / 3
        self.square = d * (1 + self.weight**2)
        self.absolute = d * (1 + self.weight)
        # t + weight t (2 - t) has its maximum at t = 1 + 1 / (2 weight), where that is at most 2
        steepest = 1 + 1 / (2 * self.weight)
        self.within = d * self.weight * steepest**2, 2 * math.sqrt(d)

    def features(self, X: Container) -> Matrix:
        dense = X.toarray() if sparse.issparse(X) else np.asarray(X)
        scaled = np.clip((dense - self.middle) / self.half, -self.limit, self.limit)
        return np.hstack([scaled, self.weight * scaled**2])

    def _mean_and_variance(
        self, moments: Matrix, errors: Matrix, usual: Matrix | None
    ) -> tuple[Matrix, Matrix]:
        """Undo the scale; a variance that noise hides becomes the usual or a typical one."""
        mean, variance = self._scaled(moments)
        unvaried = np.full_like(variance, self.unvaried)
        expected = unvaried if usual is None else self._scaled(usual)[1]
        error, error_of_second = np.hsplit(errors, 2)
        spread = np.hypot(error_of_second / self.weight, 2 * mean * error)
        variance = positive(raised_divisors(variance, expected, spread), unvaried)
        return self.middle + self.half * mean, self.half**2 * variance

    def _scaled(self, moments: Matrix) -> tuple[Matrix, Matrix]:
        """Return mean and variance of scaled x."""
        first, second = np.hsplit(moments, 2)
        mean = np.clip(first, -self.limit, self.limit)
        return mean, np.minimum(second / self.weight - mean**2, self.limit**2)


class ScalerMoments(ScaledMoments):
    """The first two moments of each column, for a StandardScaler."""

    name = "moments"
    content = "mean and mean square of each scaled column"

    def _bound(self, estimator: Estimator) -> None:
        """There is one code, so only the features can change."""
        self._scale(weight_in_box=1.5)
        self._measure(2 * self.n_features, math.sqrt(self.square), 0.0, self.within, across=0.0)

    def codes(self, y: NDArray | None, n_samples: int) -> Matrix:
        return np.ones((n_samples, 1))

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        errors = np.broadcast_to(self.errors, mean.shape)
        usual = None if self.usual is None else self.usual[0]
        means, variances = self._mean_and_variance(mean[0], errors[0], usual)
        if released.mean_ is not None:
            released.mean_ = means
        if released.with_std:
            released.var_ = variances


class GaussianMoments(ScaledMoments, OfClasses):
    """Class shares and the first two moments of each column and class, for a GaussianNB."""

    name = "class_moments"
    content = "share, mean and mean square of each class, scaled"

    def _bound(self, estimator: Estimator) -> None:
        """Choose the largest constant that adds nothing to the change within a class."""
        super()._bound(estimator)
        self._scale(weight_in_box=math.sqrt(0.75))
        self.constant = math.sqrt(self.within[1] ** 2 / 2 - self.square)
        size = math.sqrt(self.square + self.constant**2)
        self._measure(2 * self.n_features + 1, size, self.absolute + self.constant, self.within)

    def features(self, X: Container) -> Matrix:
        return np.asarray(with_constant(super().features(X), self.constant))

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Divide by the shares of the classes; every variance grows as `var_smoothing` says."""
        shares, moments = self._by_class(mean)
        errors = np.broadcast_to(self.errors, mean.shape)[:, :-1] / shares[:, None]
        usual = None if self.usual is None else self._by_class(self.usual)[1]
        released.theta_, variances = self._mean_and_variance(moments, errors, usual)
        released.var_ = variances + released.var_smoothing * variances.max()
        if released.priors is None:
            released.class_prior_ = shares

    def _by_class(self, mean: Matrix) -> tuple[Matrix, Matrix]:
        """Return the shares of the classes, and the moments of each."""
        shares = np.maximum(on_simplex(mean[:, -1] / self.constant), TINY)
        return shares, mean[:, :-1] / shares[:, None]
