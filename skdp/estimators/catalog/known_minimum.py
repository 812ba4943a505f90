"""Minimizers that one record cannot move far; the proofs are in the user guide."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.extmath import safe_sparse_dot

from skdp.core.checks import shown
from skdp.core.geometry import ROUND_UP
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.moments import with_constant
from skdp.estimators.statistics import Statistic

MAX_STEPS = 1000
MOST_CURVED = 1e12
"""Condition number with which Newton's equations still have a solution in doubles."""
WIDTH = 1e-4
"""Width, in units of the margin, over which the corner of the hinge is rounded."""


class Loss(ABC):
    """A convex function of the margin that falls, with a continuous slope."""

    curvature: ClassVar[float] = 1.0
    """The largest second derivative, or more."""
    widths: ClassVar[tuple[float, ...]] = (0.0,)
    """Widths of the rounded corner, minimized one after the other; the last one is the loss."""

    @abstractmethod
    def slopes(self, margins: NDArray, width: float) -> tuple[NDArray, NDArray]:
        """Return how steeply the loss falls at each margin, and its second derivative."""

    @abstractmethod
    def farthest(self, load: float) -> float:
        """Return how far from 0 a margin of a minimizer can be; the load is C n R^2."""

    @abstractmethod
    def moved(self, share: float, farthest: float) -> float:
        """Return how far one record can move the minimizer, in units of C R; the share is C R^2."""


class Logistic(Loss):
    """The loss log(1 + exp(-m))."""

    def slopes(self, margins: NDArray, width: float) -> tuple[NDArray, NDArray]:
        doubts = expit(-margins)
        return doubts, doubts * (1 - doubts)

    def farthest(self, load: float) -> float:
        """At the minimum the value is at most that at 0, and the gradient is 0."""
        return min(math.sqrt(2 * load * math.log(2)), load)

    def moved(self, share: float, farthest: float) -> float:
        """No slope is above that at the farthest margin."""
        return 2 * float(expit(farthest))


class SquaredHinge(Loss):
    """The loss max(1 - m, 0)^2."""

    curvature = 2.0

    def slopes(self, margins: NDArray, width: float) -> tuple[NDArray, NDArray]:
        below = np.maximum(1 - margins, 0)
        return 2 * below, 2.0 * (below > 0)

    def farthest(self, load: float) -> float:
        """With q = 2 load it is q / (1 + q) up to q = 1, and sqrt(q) / 2 beyond."""
        return 2 * load / (1 + 2 * load) if load <= 0.5 else math.sqrt(load / 2)

    def moved(self, share: float, farthest: float) -> float:
        """A record lowers its own slope, to 2 / (1 + x) with x = 2 share up to 1."""
        each = 2 / (1 + 2 * share) if share <= 0.5 else 1 / math.sqrt(2 * share)
        return 2 * (1 + farthest) * each


class Hinge(Loss):
    """The loss max(1 - m, 0), with a parabola in the place of its corner."""

    curvature = 1 / WIDTH
    widths = (1e4, 1e3, 100.0, 10.0, 1.0, 0.1, 0.01, 0.001, WIDTH)  # flat first: few steps

    def slopes(self, margins: NDArray, width: float) -> tuple[NDArray, NDArray]:
        below = 1 - margins
        return np.clip(below / width, 0, 1), ((below > 0) & (below < width)) / width

    def farthest(self, load: float) -> float:
        """At the minimum the value is at most that at 0, and the gradient is 0."""
        return min(math.sqrt(2 * load), load)

    def moved(self, share: float, farthest: float) -> float:
        """No slope is above 1."""
        return 2.0


class Coefficients(Statistic):
    """Minimizer of norm(w)^2 / 2 + C sum of losses of the margins y w.(x, s), for two classes."""

    name = "coefficients"
    loss: Loss

    supposed: ClassVar[str]
    """The configurations that have a bound."""

    @abstractmethod
    def _loss_of(self, estimator: Estimator) -> Loss | None:
        """Return the loss, None where something else is minimized."""

    def _bound(self, estimator: Estimator) -> None:
        """Refuse a configuration whose minimizer is not bounded."""
        self.classes, self.C, self.owner = estimator.classes_, float(estimator.C), estimator
        loss = self._loss_of(estimator) if estimator.class_weight is None else None
        if loss is None or len(self.classes) != 2 or math.isinf(self.C):
            raise ValueError(
                f"A sensitivity of {type(estimator).__name__} is known on paper for two classes, "
                f"{self.supposed}. Got {len(self.classes)} classes and {shown(estimator)}."
            )
        self.loss = loss
        self.constant = float(estimator.intercept_scaling) if estimator.fit_intercept else 0.0
        self.radius = math.hypot(self.front.radius, self.constant)
        self.shape = (1, self.n_features + (self.constant != 0))

    def bound(self, order: float, n_samples: int) -> float:
        """Return how far one record can move the computed coefficients."""
        most = MOST_CURVED / self.loss.curvature
        if not n_samples * self.C * self.radius**2 <= most:
            raise ValueError(
                f"The 'C' parameter of {type(self.owner).__name__} must be at most "
                f"{most / n_samples / self.radius**2:.3g} for {n_samples} records of this "
                f"length, so that the solver converges whatever they are. Got {self.C}."
            )
        moved = self.loss.moved(self.C * self.radius**2, self._farthest(n_samples))
        left = self._tolerance(n_samples) + self._rounding(n_samples)
        total = self.C * self.radius * moved + 2 * left
        return ROUND_UP * total * (math.sqrt(self.shape[1]) if order == 1 else 1.0)

    def _farthest(self, n_samples: int) -> float:
        return self.loss.farthest(self.C * n_samples * self.radius**2)

    def _rounding(self, n_samples: int) -> float:
        """Bound the rounding error of a computed gradient, in its terms and in their sum."""
        farthest = self._farthest(n_samples)
        steepest = float(self.loss.slopes(np.array([-farthest]), self.loss.widths[-1])[0][0])
        of_margins = self.loss.curvature * (1 + farthest) * (self.shape[1] + 8)
        terms = 4 * steepest + of_margins + steepest * n_samples / 4
        return self.C * self.radius * (n_samples + 8) * 2.0**-50 * terms

    def _tolerance(self, n_samples: int) -> float:
        """Return the length of the computed gradient with which the solver stops."""
        return 1e-9 * self.C * self.radius + self._rounding(n_samples)

    def __call__(self, X: Container, y: NDArray | None) -> Matrix:
        """Minimize; the distance to the minimizer is at most the length of the gradient."""
        rows = with_constant(X, self.constant)
        signs = np.where(np.asarray(y, dtype=self.classes.dtype) == self.classes[1], 1.0, -1.0)
        weights, left = np.zeros(rows.shape[1]), math.inf
        for width in self.loss.widths:
            weights, left = self._descend(rows, signs, weights, width)
        if left > self._tolerance(len(signs)):
            raise FloatingPointError("the solver did not reach its tolerance")
        return weights[None]

    def _descend(
        self, rows: Container, signs: NDArray, weights: NDArray, width: float
    ) -> tuple[NDArray, float]:
        """Take Newton steps; return where they end, and how long the gradient is there."""
        left = math.inf
        for _ in range(MAX_STEPS):
            margins = signs * (rows @ weights)
            slopes, curvatures = self.loss.slopes(margins, width)
            gradient = weights - self.C * (rows.T @ (signs * slopes))
            left = float(np.linalg.norm(gradient))
            if left <= self._tolerance(len(signs)):
                break
            curvature = self.C * curvatures[:, None]
            scaled = rows.multiply(curvature) if hasattr(rows, "multiply") else rows * curvature
            hessian = np.asarray(safe_sparse_dot(rows.T, scaled, dense_output=True))
            step = np.linalg.solve(hessian + np.eye(len(weights)), gradient)
            weights = (
                weights - self._size(weights, step, margins, signs * (rows @ step), width) * step
            )
        return weights, left

    def _size(
        self, weights: NDArray, step: NDArray, margins: NDArray, change: NDArray, width: float
    ) -> float:
        """Find the size of a step at which the function stops falling."""

        def falls(size: float) -> float:
            slopes, _ = self.loss.slopes(margins - size * change, width)
            return float(step @ (weights - size * step) - self.C * (slopes @ change))

        enough, low, high = 0.1 * abs(falls(0.0)), 0.0, 1.0
        while falls(high) > enough and high < 2.0**20:
            low, high = high, 2 * high
        size = high
        for _ in range(60):
            now = falls(size)
            if abs(now) <= enough:
                break
            low, high = (size, high) if now > 0 else (low, size)
            size = (low + high) / 2
        return size

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        released.coef_ = mean[:, : self.n_features].copy()
        if self.constant:
            released.intercept_ = self.constant * mean[:, -1]


class LogisticCoefficients(Coefficients):
    """The coefficients of a LogisticRegression."""

    supposed = (
        "the L2 penalty, class_weight=None and a penalized intercept, which solver='liblinear' "
        "has, or none with fit_intercept=False. No bound holds for a free intercept"
    )

    def _loss_of(self, estimator: Estimator) -> Loss | None:
        free = estimator.fit_intercept and estimator.solver != "liblinear"
        penalty = getattr(estimator, "penalty", "l2") in ("l2", "deprecated")
        return Logistic() if penalty and estimator.l1_ratio in (None, 0) and not free else None


class SupportVectorCoefficients(Coefficients):
    """The coefficients of a LinearSVC, which penalizes its intercept."""

    supposed = "penalty='l2', multi_class='ovr' and class_weight=None"

    def _loss_of(self, estimator: Estimator) -> Loss | None:
        plain = estimator.penalty == "l2" and estimator.multi_class == "ovr"
        losses = {"hinge": Hinge(), "squared_hinge": SquaredHinge()}
        return losses.get(estimator.loss) if plain else None
