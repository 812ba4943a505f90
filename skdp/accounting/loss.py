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
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import check_count, check_levels, check_real, shown


class PrivacyLossDistribution(ABC):
    """Law of the privacy loss L on the worst pair that a mechanism covers.

    L is positive where the outcome speaks for the dataset it came from. The two datasets of a
    pair may be exchanged without changing any number here.

    Examples
    --------
    >>> from skdp import LaplaceMechanism
    >>> from skdp.risk import PrivacyLossDistribution, privacy_loss_distribution
    >>> loss = privacy_loss_distribution(LaplaceMechanism(epsilon=1.0))
    >>> isinstance(loss, PrivacyLossDistribution), round(float(loss.cdf(0.5)), 3)
    (True, 0.389)
    """

    def cdf(self, loss: ArrayLike) -> Any:
        """Probability that the loss is at most a level.

        Parameters
        ----------
        loss : array-like of float
            Levels, of either sign.

        Returns
        -------
        float or ndarray of float in [0, 1]
            ``P(L <= loss)``, of the shape of `loss`; nan where that is.
        """
        return _evaluated(self._cdf, check_levels("loss", loss, "cdf"), 0.0, 1.0)

    def two_sided(self, epsilon: ArrayLike) -> Any:
        """Probability that the loss is at most a level in absolute value.

        Parameters
        ----------
        epsilon : array-like of float
            Levels; below 0 the probability is 0.

        Returns
        -------
        float or ndarray of float in [0, 1]
            ``P(abs(L) <= epsilon)``, of the shape of `epsilon`; nan where that is.
        """
        return _evaluated(self._two_sided, check_levels("epsilon", epsilon, "two_sided"), 0.0, 1.0)

    def delta(self, epsilon: ArrayLike) -> Any:
        """Smallest delta of (epsilon, delta)-differential privacy.

        Parameters
        ----------
        epsilon : array-like of float
            Levels, of either sign.

        Returns
        -------
        float or ndarray of float in [0, 1]
            The mean of ``max(0, 1 - exp(epsilon - L))``, of the shape of `epsilon`; nan where
            that is.
        """
        return _evaluated(self._delta, check_levels("epsilon", epsilon, "delta"), 1.0, 0.0)

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
        level = self._epsilon(check_real("delta", delta, "epsilon", 0.0, 1.0, closed="l"))
        return min(self.bound, math.nextafter(level, math.inf)) if level > 0 else 0.0

    def sample(
        self, size: int, rng: np.random.Generator | int | None = None
    ) -> NDArray[np.float64]:
        """Draw losses.

        Parameters
        ----------
        size : int of at least 0
            How many.
        rng : None, int or numpy.random.Generator, default=None
            Passed to `numpy.random.default_rng`.

        Returns
        -------
        ndarray of float64 of shape (size,)
            Independent losses.
        """
        size = check_count("size", size, "sample", at_least=0)
        return self._sample(np.random.default_rng(rng), size)

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
        owner = "quantile"
        return self._quantile(check_real("probability", probability, owner, 0.0, 1.0, closed="r"))

    @property
    def bound(self) -> float:
        """Level that the loss never exceeds; inf if there is none."""
        return self._bound()

    def self_compose(self, n: int, *, step: float | None = None) -> PrivacyLossDistribution:
        """Law of the total loss of `n` independent releases.

        Parameters
        ----------
        n : int of at least 1
            How many releases, of the same private data.
        step : float in (0, inf) or None, default=None
            Distance of the grid; None takes .001, less if the loss is small or n is large, and
            more where n is above some 10,000, so that the sum fits on the grid.

        Returns
        -------
        PrivacyLossDistribution
            Its `delta` and `epsilon` are never below the truth.

        Raises
        ------
        ValueError
            If the grid would be too large for the range of the loss.
        """
        n = check_count("n", n, "self_compose")
        _check_step(step)
        return self if n == 1 else self._self_compose(n, step)

    def compose(
        self, other: PrivacyLossDistribution, *, step: float | None = None
    ) -> PrivacyLossDistribution:
        """Law of the total loss of two independent releases.

        Parameters
        ----------
        other : PrivacyLossDistribution
            The loss of the other release.
        step : float in (0, inf) or None, default=None
            Distance of the grid; None takes the finer of the two defaults, or more where the range
            of the losses needs it.

        Returns
        -------
        PrivacyLossDistribution
            Its `delta` and `epsilon` are never below the truth.

        Raises
        ------
        TypeError
            If `other` is no law of a loss.
        ValueError
            If the grid would be too large for the range of the losses.

        See Also
        --------
        self_compose : The same for equal releases.
        """
        _check_step(step)
        if not isinstance(other, PrivacyLossDistribution):
            raise TypeError(
                "The 'other' parameter of compose must be the law of a privacy loss. Got "
                f"{shown(other)}. For equal releases use self_compose(n)."
            )
        return self._compose(other, step)

    @abstractmethod
    def _cdf(self, loss: NDArray[np.float64]) -> NDArray[np.float64]: ...

    @abstractmethod
    def _two_sided(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]: ...

    @abstractmethod
    def _delta(self, epsilon: NDArray[np.float64]) -> NDArray[np.float64]: ...

    @abstractmethod
    def _epsilon(self, delta: float) -> float: ...

    @abstractmethod
    def _quantile(self, probability: float) -> float: ...

    @abstractmethod
    def _sample(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]: ...

    @abstractmethod
    def _support(self) -> tuple[float, float]:
        """Return an interval that holds the loss, all but a mass of 1e-16 at either end."""

    def _bound(self) -> float:
        return self._support()[1]

    def _self_compose(self, n: int, step: float | None) -> PrivacyLossDistribution:
        from skdp.accounting.composition import self_convolved  # which builds on this module

        return self_convolved(self, n, step)

    def _compose(
        self, other: PrivacyLossDistribution, step: float | None
    ) -> PrivacyLossDistribution:
        from skdp.accounting.composition import convolved

        return convolved(self, other, step)


def _check_step(step: float | None) -> None:
    if step is not None:
        check_real("step", step, "compose", 0.0, math.inf)


def _evaluated(
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    levels: NDArray[np.float64],
    lowest: float,
    highest: float,
) -> Any:
    """Evaluate a probability at the finite levels; its limits are known, and nan stays nan."""
    limits = np.where(levels > 0, highest, np.where(levels < 0, lowest, math.nan))
    with np.errstate(over="ignore"):  # beyond the largest double the limits are as good
        found = function(np.where(np.isfinite(levels), levels, 0.0))
    return np.where(np.isfinite(levels), np.clip(found, 0.0, 1.0) + 0.0, limits)[()]
