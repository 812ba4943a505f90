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
from skdp.estimators.known.statistics import Statistic
from skdp.estimators.moments import with_constant

MAX_STEPS = 1000
MOST_CURVED = 1e12
"""Condition number with which Newton's equations still have a solution in doubles."""
WIDTH = 1e-4  # width, in units of the margin, over which the corner of the hinge is rounded


class Loss(ABC):
    """A convex function of the margin that falls, with a continuous slope."""

    at_zero: ClassVar[float]  # the loss of a margin of 0
    curvature: ClassVar[float] = 1.0  # the largest second derivative, or more
    widths: ClassVar[tuple[float, ...]] = (0.0,)
    """Widths of the rounded corner, minimized one after the other; the last one is the loss."""

    @abstractmethod
    def slopes(self, margins: NDArray, width: float) -> tuple[NDArray, NDArray]:
        """Return how steeply the loss falls at each margin, and its second derivative."""

    def farthest(self, load: float) -> float:
        """Return how far from 0 a margin of a minimizer can be; the load is C n R^2."""
        # at the minimum the value is at most that at 0, and the gradient is 0
        return min(math.sqrt(2 * load * self.at_zero), load)


class Logistic(Loss):
    """The loss log(1 + exp(-m))."""

    at_zero = math.log(2)

    def slopes(self, margins: NDArray, width: float) -> tuple[NDArray, NDArray]:
        doubts = expit(-margins)
        return doubts, doubts * (1 - doubts)


class Hinge(Loss):
    """The loss max(1 - m, 0), with a parabola in the place of its corner."""

    at_zero = 1.0
    curvature = 1 / WIDTH
    widths = (1e4, 1e3, 100.0, 10.0, 1.0, 0.1, 0.01, 0.001, WIDTH)  # flat first: few steps

    def slopes(self, margins: NDArray, width: float) -> tuple[NDArray, NDArray]:
        below = 1 - margins
        return np.clip(below / width, 0, 1), ((below > 0) & (below < width)) / width


class Coefficients(Statistic):
    """Minimizer of norm(w)^2 / 2 + C sum of losses of the margins y w.(x, s), for two classes."""

    name = "coefficients"
    content = "those of a fit to clipped records"
    is_mean = False  # with fewer records the penalty would weigh more
    loss: Loss
    is_perturbed: ClassVar[bool] = False  # whether noise may be added to what is minimized

    supposed: ClassVar[str]  # the configurations that have a bound

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

    def bound(self, order: float, n_samples: int, n_more: int = 0) -> float:
        """Return how far one record can move the computed coefficients."""
        most = MOST_CURVED / self.loss.curvature
        if not n_samples * self.C * self.radius**2 <= most:
            raise ValueError(
                f"The 'C' parameter of {type(self.owner).__name__} must be at most "
                f"{most / n_samples / self.radius**2:.3g} for {n_samples} records of this "
                f"length, so that the solver converges whatever they are. Got {self.C}."
            )
        left = self._tolerance(n_samples) + self._rounding(n_samples)
        total = 2 * (self.C * self.radius * self._steepest(n_samples) + left)
        return ROUND_UP * total * (math.sqrt(self.shape[1]) if order == 1 else 1.0)

    def _farthest(self, n_samples: int) -> float:
        return self.loss.farthest(self.C * n_samples * self.radius**2)

    def _steepest(self, n_samples: int) -> float:
        """Return the slope at the farthest margin, which no slope exceeds."""
        farthest = np.array([-self._farthest(n_samples)])
        return float(self.loss.slopes(farthest, self.loss.widths[-1])[0][0])

    def _rounding(self, n_samples: int) -> float:
        """Bound the rounding error of a computed gradient, in its terms and in their sum."""
        steepest = self._steepest(n_samples)
        of_margins = self.loss.curvature * (1 + self._farthest(n_samples)) * (self.shape[1] + 8)
        terms = 4 * steepest + of_margins + steepest * n_samples / 4
        return self.C * self.radius * (n_samples + 8) * 2.0**-50 * terms

    def _tolerance(self, n_samples: int) -> float:
        """Return the length of the computed gradient with which the solver stops."""
        return 1e-9 * self.C * self.radius + self._rounding(n_samples)

    def __call__(self, X: Container, y: NDArray | None, weights: NDArray | None = None) -> Matrix:
        """Minimize; the distance to the minimizer is at most the length of the gradient."""
        rows = with_constant(X, self.constant)
        signs = np.where(self.is_second(y), 1.0, -1.0)
        found, left = np.zeros(rows.shape[1]), math.inf
        for width in self.loss.widths:
            found, left = self._descend(rows, signs, found, width)
        if left > self._tolerance(len(signs)):
            raise FloatingPointError("the solver did not reach its tolerance")
        return found[None]

    def is_second(self, y: NDArray | None) -> NDArray[np.bool_]:
        """Tell which labels are the second class."""
        return np.asarray(y, dtype=self.classes.dtype) == self.classes[1]

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

    is_perturbed = True
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

    supposed = "loss='hinge', penalty='l2', multi_class='ovr' and class_weight=None"

    def _loss_of(self, estimator: Estimator) -> Loss | None:
        given = estimator.loss, estimator.penalty, estimator.multi_class
        return Hinge() if given == ("hinge", "l2", "ovr") else None
