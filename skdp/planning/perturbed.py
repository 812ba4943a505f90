"""The release of a minimizer of a sum with random terms, in the place of one with noise."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from skdp.core.dataset import Dataset
from skdp.core.types import ByteSource, Container, Matrix
from skdp.estimators.known.minimum import Coefficients
from skdp.estimators.known_target import KnownTarget
from skdp.estimators.moments import with_constant
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.l2_laplace import L2LaplaceMechanism
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.mechanisms.objective import MOST_WEIGHTS, perturbation_of


class PerturbedTarget(KnownTarget):
    """Coefficients, private by objective perturbation: `skdp.mechanisms.objective`."""

    adds_noise = True
    statistic: Coefficients

    def __init__(self, *given: Any, mechanism: Any):
        super().__init__(*given)
        statistic, delta = self.statistic, getattr(mechanism, "delta", 0.0)
        n_weights = statistic.shape[1]
        self.perturbation = perturbation_of(
            float(mechanism.epsilon), float(delta), statistic.radius, n_weights
        )
        last = LaplaceMechanism(min(self.perturbation.last, 1.0), code=None)
        last._scale(n_weights, 1.0)  # refuses an epsilon that is too small, before it is paid
        floor = self.perturbation.floor(self.n_samples, 0.0)
        self.penalty = max(1 / statistic.C, self.perturbation.least_penalty, floor)
        self.errors = np.full(n_weights, np.nan)  # nobody knows them
        self.key_parts = (*self.key_parts, self.perturbation)
        self.released += f", by objective perturbation with C={1 / self.penalty:.3g}"

    def warning(self, n_samples: int) -> str:
        if self.penalty <= 1 / self.statistic.C:
            return ""
        return (
            f"The 'C' parameter of LogisticRegression counts as {1 / self.penalty:.3g}, the "
            "largest for this epsilon, number and length of the records. Got "
            f"{self.statistic.C:g}."
        )

    def bound(self, order: float) -> float:
        """Return how far one record moves the gradient of what is minimized."""
        length = 2 * self.statistic.radius
        return length * np.sqrt(self.statistic.shape[1]) if order == 1 else length

    def __call__(self, *parts: Container, seed: int, noise: ByteSource | None = None) -> Matrix:
        """Return the minimizer with the random terms; without a source of them the exact one."""
        if noise is None:
            return super().__call__(*parts, seed=seed)
        seen, statistic = Dataset(*self.as_seen(*parts)), self.statistic
        rows = with_constant(seen.X, statistic.constant)
        rows = rows.toarray() if sparse.issparse(rows) else rows
        center = np.zeros(rows.shape[1])
        labels = statistic.is_second(seen.y)
        return self.perturbation.release(rows, labels, center, self.penalty, noise)


def is_perturbed(target: Any, mechanism: Mechanism) -> bool:
    """Return whether objective perturbation takes the place of noise of a mechanism."""
    kinds = LaplaceMechanism, L2LaplaceMechanism, GaussianMechanism
    learns = getattr(getattr(target, "statistic", None), "is_perturbed", False)
    if not (learns and type(mechanism) in kinds and np.isfinite(mechanism.epsilon)):
        return False
    return target.statistic.shape[1] <= MOST_WEIGHTS
