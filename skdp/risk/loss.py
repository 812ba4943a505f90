"""The exact law of the privacy loss of one release.

Release M(D) and ask how much more likely the outcome was under D than under D': the logarithm of
that ratio is the privacy loss L, a random number because the outcome is one. Everything that can
be promised about a release can be read from its law. `LaplaceLoss` and `GaussianLoss` are the laws
of the two additive mechanisms on the worst pair they cover; `PureLoss` is what can be said of any
other mechanism whose delta is zero.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.risk._checks import check_count


class PrivacyLossDistribution(ABC):
    """Law of the privacy loss L on the worst pair that a mechanism covers.

    L is positive where the outcome speaks for the dataset it came from. The two datasets of a
    pair may be exchanged without changing any number here.
    """

    @abstractmethod
    def cdf(self, loss: ArrayLike) -> Any:
        """Probability that the loss is at most a level.

        Parameters
        ----------
        loss : array-like of float
            Levels, of either sign.

        Returns
        -------
        float or ndarray of float in [0, 1]
            ``P(L <= loss)``, of the shape of `loss`.
        """

    @abstractmethod
    def two_sided(self, epsilon: ArrayLike) -> Any:
        """Probability that the loss is at most a level in absolute value.

        Parameters
        ----------
        epsilon : array-like of float
            Levels; below 0 the probability is 0.

        Returns
        -------
        float or ndarray of float in [0, 1]
            ``P(abs(L) <= epsilon)``, of the shape of `epsilon`.
        """

    @abstractmethod
    def delta(self, epsilon: ArrayLike) -> Any:
        """Smallest delta of (epsilon, delta)-differential privacy.

        Parameters
        ----------
        epsilon : array-like of float
            Levels, of either sign.

        Returns
        -------
        float or ndarray of float in [0, 1]
            The mean of ``max(0, 1 - exp(epsilon - L))``, of the shape of `epsilon`.
        """

    @abstractmethod
    def epsilon(self, delta: float) -> float:
        """Smallest epsilon of (epsilon, delta)-differential privacy.

        Parameters
        ----------
        delta : float in [0, 1)
            Mass on which the bound may fail.

        Returns
        -------
        float of at least 0
            Never below the exact value; inf if no finite level does.
        """

    @abstractmethod
    def sample(self, size: int, rng: Any = None) -> NDArray[np.float64]:
        """Draw losses.

        Parameters
        ----------
        size : int
            How many.
        rng : None, int or numpy.random.Generator, default=None
            Passed to `numpy.random.default_rng`.

        Returns
        -------
        ndarray of float64 of shape (size,)
            Independent losses.
        """

    @abstractmethod
    def quantile(self, probability: float) -> float:
        """Smallest level that the loss does not exceed with a given probability.

        Parameters
        ----------
        probability : float in (0, 1]
            The probability.

        Returns
        -------
        float
            The smallest l with ``cdf(l) >= probability``; inf if there is none.
        """

    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Interval outside which the loss has no mass, or none to speak of.

        Returns
        -------
        lowest, highest : float
            Above `highest` lies a mass of at most ``delta(highest)`` after exchanging the pair.
        """

    @property
    def bound(self) -> float:
        """Level that the loss never exceeds; inf if there is none."""
        return math.inf

    def self_compose(self, n: int, *, step: float | None = None) -> PrivacyLossDistribution:
        """Law of the total loss of `n` independent releases.

        Parameters
        ----------
        n : int of at least 1
            How many releases, of the same private data.
        step : float in (0, inf) or None, default=None
            Distance of the grid; None takes .001, or less if the loss is small.

        Returns
        -------
        PrivacyLossDistribution
            Its `delta` and `epsilon` are never below the truth.
        """
        from skdp.risk.composition import GridLoss, default_step

        n = check_count("n", "self_compose", n)
        if n == 1:
            return self
        grid = GridLoss.from_law(self, default_step(self) if step is None else step)
        return grid.self_compose(n)

    def compose(
        self, other: PrivacyLossDistribution | int, *, step: float | None = None
    ) -> PrivacyLossDistribution:
        """Law of the total loss of two independent releases, or of several equal ones.

        Parameters
        ----------
        other : PrivacyLossDistribution or int
            The loss of the other release; an integer n is short for ``self_compose(n)``.
        step : float in (0, inf) or None, default=None
            Distance of the grid; None takes the finer of the two defaults.

        Returns
        -------
        PrivacyLossDistribution
            Its `delta` and `epsilon` are never below the truth.
        """
        from skdp.risk.composition import GridLoss, default_step

        if not isinstance(other, PrivacyLossDistribution):
            return self.self_compose(other, step=step)
        step = min(default_step(self), default_step(other)) if step is None else step
        return GridLoss.from_law(self, step).add(GridLoss.from_law(other, step))
