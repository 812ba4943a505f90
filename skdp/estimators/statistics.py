"""Means over bounded records, of which it is known on paper how far one record can move them.

A statistic is the mean over the records of code times features, a matrix. The code is made of the
response and the features of the record, and both are bounded whatever the record is, since it was
clipped. What is made of the mean is post-processing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from skdp.core.geometry import ROUND_UP
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.clip import ClipBox, ClipNorm
from skdp.estimators.moments import mean_product

LEAST, MOST = 1e-70, 1e70
"""Radii of which no fourth power over- or underflows."""


@dataclass(frozen=True)
class Front:
    """Where records lie: each column in a range, and a record in a ball of a radius around 0.

    Ends and radius are infinite where nothing is known.
    """

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    radius: float = np.inf

    @property
    def absolute(self) -> float:
        """The largest sum of absolute values."""
        widest = np.maximum(np.abs(self.low), np.abs(self.high)).sum()
        return ROUND_UP * min(float(widest), np.sqrt(len(self.low)) * self.radius)

    @property
    def squares(self) -> NDArray[np.float64]:
        """A public guess at the mean square of each column: of a uniform one, or of the ball."""
        of_ball = np.full(len(self.low), self.radius**2 / len(self.low))
        of_box = (self.low**2 + self.low * self.high + self.high**2) / 3
        return np.minimum(of_ball, of_box)

    def after(self, step: ClipBox | ClipNorm) -> Front:
        """Return what is known behind a clip."""
        if isinstance(step, ClipNorm):  # which moves each value toward 0
            radius = float(step.radius)
            low, high = np.clip(self.low, -radius, 0.0), np.clip(self.high, 0.0, radius)
            return Front(low, high, min(self.radius, radius))
        low, high = step.ranges(len(self.low))
        farthest = ROUND_UP * math.hypot(*np.maximum(np.abs(low), np.abs(high)).tolist())
        shortens = bool((low <= 0).all() and (high >= 0).all())
        radius = min(self.radius, farthest) if shortens else farthest
        return Front(np.clip(self.low, low, high), np.clip(self.high, low, high), radius)


class Statistic(ABC):
    """What is released where the sensitivity is known on paper: a mean over the records.

    A subclass sets the `shape` of the mean, `l1` and `l2`, by how much one record can move the sum
    over the records, and `largest`, the largest norm of what a record adds to it. The estimator is
    fitted to public records; `front` and `y_range` say where records and responses lie.
    """

    shape: tuple[int, int]
    l1: float
    l2: float
    largest: float
    name: str
    """What the mean is called."""
    needs_clip: ClassVar[bool] = True
    """Whether records must be clipped."""

    errors: Matrix | float = 0.0
    """Standard errors of the mean that is put."""
    usual: Matrix | None = None
    """The mean that a prior expects, None where there is none."""

    def __init__(
        self, estimator: Estimator, front: Front, y_range: tuple[float, float] | None = None
    ):
        self.front = front
        self.y_range = y_range
        self.n_features = len(front.low)
        if self.needs_clip and math.isinf(front.radius):
            raise ValueError(
                f"No sensitivity of {type(estimator).__name__} is known on paper without bounds on "
                "the records. Put ClipNorm(radius) or ClipBox(low, high), with public parameters "
                f"of a size between {LEAST} and {MOST}, right before it in a pipeline."
            )
        if self.needs_clip and not LEAST <= front.radius <= ROUND_UP * MOST:
            raise ValueError(
                f"Records must have lengths up to a number in [{LEAST}, {MOST}], or else bounds "
                f"over- or underflow. The clips allow {front.radius}. Scale the records first."
            )
        self._bound(estimator)

    @abstractmethod
    def _bound(self, estimator: Estimator) -> None:
        """Set the bounds, or say which configuration has none."""

    @abstractmethod
    def __call__(self, X: Container, y: NDArray | None) -> Matrix:
        """Return the mean over clipped records."""

    @abstractmethod
    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Make a fitted estimator of the mean, in the place of a public fit."""

    def bound(self, order: float, n_samples: int) -> float:
        """Return how far one record can move the mean, in the norm of this order.

        Each of the two sums is off by the rounding of its terms: at most n + 8 units in the last
        place of the sum of their sizes, in whatever order they are added.
        """
        moved, spread = (self.l1, math.sqrt(math.prod(self.shape))) if order == 1 else (self.l2, 1)
        rounding = (n_samples + 8) * 2.0**-52 * self.largest * spread
        return ROUND_UP * (moved / n_samples + rounding)


class Products(Statistic):
    """The mean of code times features: the code is made of the response."""

    @abstractmethod
    def codes(self, y: NDArray | None, n_samples: int) -> Matrix:
        """Return the code of each record."""

    @abstractmethod
    def features(self, X: Container) -> Container:
        """Return the features of each clipped record."""

    def __call__(self, X: Container, y: NDArray | None) -> Matrix:
        """Return the mean over clipped records."""
        return mean_product(self.codes(y, X.shape[0]), self.features(X))


class OfClasses(Products):
    """A statistic in which each class has a code, its row of the identity unless overridden."""

    def _bound(self, estimator: Estimator) -> None:
        self.classes = estimator.classes_

    def codes(self, y: NDArray | None, n_samples: int) -> Matrix:
        """Return the code of each label."""
        return self._table()[np.searchsorted(self.classes, np.asarray(y, dtype=self.classes.dtype))]

    def _table(self) -> Matrix:
        return np.eye(len(self.classes))
