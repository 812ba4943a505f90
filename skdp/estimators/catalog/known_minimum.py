"""A minimizer that one record cannot move far; the proof is in the user guide."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.extmath import safe_sparse_dot

from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.moments import with_constant
from skdp.estimators.statistics import ROUND_UP, Statistic

MAX_STEPS = 200
MOST_CURVED = 1e12
"""Condition number with which Newton's equations still have a solution in doubles."""


class LogisticCoefficients(Statistic):
    """The coefficients of a LogisticRegression for two classes, whose intercept is penalized.

    It is no mean, but the minimizer of a strongly convex function, found to a certified distance.
    """

    name = "coefficients"

    def _bound(self, estimator: Estimator) -> None:
        """Refuse a configuration whose minimizer is not bounded."""
        self.classes, self.C = estimator.classes_, float(estimator.C)
        liblinear = estimator.solver == "liblinear"
        free = estimator.fit_intercept and not liblinear
        plain = getattr(estimator, "penalty", "l2") in ("l2", "deprecated")
        plain = plain and estimator.l1_ratio in (None, 0) and estimator.class_weight is None
        if free or not plain or len(self.classes) != 2 or math.isinf(self.C):
            raise ValueError(
                "A sensitivity of LogisticRegression is known on paper for two classes, the L2 "
                "penalty, class_weight=None and a penalized intercept, which solver='liblinear' "
                "has, or none with fit_intercept=False. No bound holds for a free intercept. Got "
                f"{len(self.classes)} classes and {estimator!r}."
            )
        self.constant = float(estimator.intercept_scaling) if estimator.fit_intercept else 0.0
        self.radius = math.hypot(self.front.radius, self.constant)
        self.shape = (1, self.n_features + (self.constant != 0))

    def bound(self, order: float, n_samples: int) -> float:
        """Return how far one record can move the computed coefficients."""
        if not n_samples * self.C * self.radius**2 <= MOST_CURVED:
            raise ValueError(
                "The 'C' parameter of LogisticRegression must be at most "
                f"{MOST_CURVED / n_samples / self.radius**2:.3g} for {n_samples} records of this "
                f"length, so that the solver converges whatever they are. Got {self.C}."
            )
        slope = float(expit(self.radius * self._longest(n_samples)))
        left = self._tolerance(n_samples) + self._rounding(n_samples)
        moved = 2 * self.C * self.radius * slope + 2 * left
        return ROUND_UP * moved * (math.sqrt(self.shape[1]) if order == 1 else 1.0)

    def _longest(self, n_samples: int) -> float:
        """Return how long a minimizer can be: its value is at most that of 0, its gradient 0."""
        by_value = math.sqrt(2 * self.C * n_samples * math.log(2))
        return min(by_value, self.C * n_samples * self.radius)

    def _rounding(self, n_samples: int) -> float:
        """Return by how much a computed gradient may be too short: of its terms, and as a sum."""
        margins = self.radius * self._longest(n_samples) * (self.shape[1] + 8)
        return self.C * self.radius * (n_samples + 8) * 2.0**-50 * (4 + margins + n_samples / 4)

    def _tolerance(self, n_samples: int) -> float:
        """Return the length of the computed gradient with which the solver stops."""
        return 1e-9 * self.C * self.radius + self._rounding(n_samples)

    def __call__(self, X: Container, y: NDArray | None) -> Matrix:
        """Minimize by Newton's method.

        The function is strongly convex with modulus 1, so the minimizer is no farther away than the
        gradient is long.
        """
        rows = with_constant(X, self.constant)
        signs = np.where(np.asarray(y, dtype=self.classes.dtype) == self.classes[1], 1.0, -1.0)
        weights = np.zeros(rows.shape[1])
        value = self._value(rows, signs, weights)
        for _ in range(MAX_STEPS):
            doubts = expit(-signs * (rows @ weights))
            gradient = weights - self.C * (rows.T @ (signs * doubts))
            if np.linalg.norm(gradient) <= self._tolerance(len(signs)):
                return weights[None]
            curvature = self.C * (doubts * (1 - doubts))[:, None]
            scaled = rows.multiply(curvature) if hasattr(rows, "multiply") else rows * curvature
            hessian = np.asarray(safe_sparse_dot(rows.T, scaled, dense_output=True))
            step = np.linalg.solve(hessian + np.eye(len(weights)), gradient)
            size = 1.0
            while (tried := self._value(rows, signs, weights - size * step)) > value * (1 + 1e-12):
                size /= 2
            weights, value = weights - size * step, tried
        raise FloatingPointError("the solver did not reach its tolerance")

    def _value(self, rows: Container, signs: NDArray, weights: NDArray) -> float:
        losses = np.logaddexp(0, -signs * (rows @ weights))
        return float(weights @ weights / 2 + self.C * losses.sum())

    def put(self, released: Estimator, mean: Matrix, n_samples: int) -> None:
        """Set the coefficients; that of the constant gives the intercept."""
        released.coef_ = mean[:, : self.n_features].copy()
        if self.constant:
            released.intercept_ = self.constant * mean[:, -1]
