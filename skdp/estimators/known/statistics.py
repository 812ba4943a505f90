"""Means over bounded records, with bounds on how far one record can move them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.geometry import ROUND_UP
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.clip import ClipBox, ClipNorm, ranges_of
from skdp.estimators.moments import mean_product, with_constant

LEAST, MOST = 1e-70, 1e70  # radii whose fourth powers neither over- nor underflow


@dataclass(frozen=True)
class Front:
    """A set of records: columns in ranges, in a ball around 0; unknown bounds are infinite."""

    low: Matrix
    high: Matrix
    radius: float = np.inf

    @property
    def absolute(self) -> float:
        """The largest sum of absolute values of a record."""
        widest = np.maximum(np.abs(self.low), np.abs(self.high)).sum()
        return ROUND_UP * min(float(widest), np.sqrt(len(self.low)) * self.radius)

    @property
    def squares(self) -> Matrix:
        """The mean square of each column, guessed as that of a uniform column, or of the ball."""
        of_ball = np.full(len(self.low), self.radius**2 / len(self.low))
        of_box = (self.low**2 + self.low * self.high + self.high**2) / 3
        return np.minimum(of_ball, of_box)

    def after(self, step: ClipBox | ClipNorm) -> Front:
        """Return the set of the records behind a clip."""
        if isinstance(step, ClipNorm):  # a clip of the norm moves each value toward 0
            radius = float(step.radius)
            low, high = np.clip(self.low, -radius, 0.0), np.clip(self.high, 0.0, radius)
            return Front(low, high, min(self.radius, radius))
        low, high = ranges_of(step, len(self.low))
        farthest = ROUND_UP * math.hypot(*np.maximum(np.abs(low), np.abs(high)).tolist())
        shortens = bool((low <= 0).all() and (high >= 0).all())
        radius = min(self.radius, farthest) if shortens else farthest
        return Front(np.clip(self.low, low, high), np.clip(self.high, low, high), radius)


class Statistic(ABC):
    """A mean over clipped records: `l1`, `l2` bound a change of the sum, `largest` each term."""

    shape: tuple[int, int]
    l1: float
    l2: float
    largest: float
    name: str  # name of the mean
    content: str  # what the mean is of, in words
    is_mean = True  # whether it is a mean over the records, and not only bounded like one
    is_scaled = False  # whether `put` makes the same model of a mean times a number near 1

    errors: Matrix | float = 0.0  # standard errors of the released mean
    usual: Matrix | None = None  # the mean that a prior expects; None without a prior

    def __init__(
        self, estimator: Estimator, front: Front, y_range: tuple[float, float] | None = None
    ):
        self.front = front
        self.y_range = y_range
        self.n_features = len(front.low)
        if math.isinf(front.radius):
            raise ValueError(
                f"No sensitivity of {type(estimator).__name__} is known on paper without bounds on "
                "the records. Put ClipNorm(radius) or ClipBox(low, high), with public parameters "
                f"of a size between {LEAST} and {MOST}, right before it in a pipeline."
            )
        if not LEAST <= front.radius <= ROUND_UP * MOST:
            raise ValueError(
                f"Records must have lengths up to a number in [{LEAST}, {MOST}], or else bounds "
                f"over- or underflow. The clips allow {front.radius}. Scale the records first."
            )
        self._bound(estimator)

    @abstractmethod
    def _bound(self, estimator: Estimator) -> None:
        """Set the bounds, or refuse a configuration without a bound."""

    def suit(self, mechanism: Any) -> None:  # noqa: B027 - a default, which few replace
        """Add what the bound in the norm of the mechanism has room for; by default nothing."""

    @abstractmethod
    def __call__(self, X: Container, y: NDArray | None, weights: NDArray | None = None) -> Matrix:
        """Return the mean over clipped records, each times its weight."""

    @abstractmethod
    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Set the attributes of a copy of the public fit from the mean."""

    def bound(self, order: float, n_samples: int, n_more: int = 0) -> float:
        """Bound how far one record can move the mean, in the norm of this order.

        So far can a person, whose records have weights of the sum 1: convex combinations of terms
        are no farther apart than two terms. With a sum below 1, where `is_scaled`, they are no
        farther apart than two terms, or than one and 0, and there no term is larger than the
        largest change. Sums over `n_more` more terms add to the rounding.
        """
        moved, spread = (self.l1, math.sqrt(math.prod(self.shape))) if order == 1 else (self.l2, 1)
        # two sums, each off by at most n + 8 units in the last place of the sum of its sizes
        rounding = (n_samples + n_more + 8) * 2.0**-52 * self.largest * spread
        return ROUND_UP * (moved / n_samples + rounding)


class Products(Statistic):
    """A mean of code times features, whose code follows from the response."""

    constant: float = 0.0
    n_codes: int = 1

    @abstractmethod
    def codes(self, y: NDArray | None, n_samples: int) -> Matrix:
        """Return the code of each record."""

    def features(self, X: Container) -> Container:
        """Return the features of each clipped record: x and, unless it is 0, a constant."""
        return with_constant(X, self.constant)

    def __call__(self, X: Container, y: NDArray | None, weights: NDArray | None = None) -> Matrix:
        codes = self.codes(y, X.shape[0])
        codes = codes if weights is None else codes * weights[:, None]
        return mean_product(codes, self.features(X))

    def _measure(
        self,
        n_features: int,
        size: float,
        absolute: float,
        within: tuple[float, float] = (0.0, 0.0),  # change in L1 and L2 while the code stays
        across: float = math.sqrt(2),
    ) -> None:
        """Set the bounds, of products of these sizes in L2 and L1; the codes are `across` apart."""
        self.shape, self.largest = (self.n_codes, n_features), size
        self.l2 = max(across * size, within[1])
        self.l1 = min(math.sqrt(math.prod(self.shape)) * self.l2, max(2 * absolute, within[0]))


class OfClasses(Products):
    """A statistic whose classes have codes, by default the rows of the identity."""

    def _bound(self, estimator: Estimator) -> None:
        self.classes = estimator.classes_
        self.n_codes = self._table().shape[1]

    def codes(self, y: NDArray | None, n_samples: int) -> Matrix:
        return self._table()[np.searchsorted(self.classes, np.asarray(y, dtype=self.classes.dtype))]

    def _table(self) -> Matrix:
        return np.eye(len(self.classes))
