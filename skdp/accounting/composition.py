"""The privacy loss and its composition.

The privacy loss L of a release is the logarithm of how much more likely its outcome is under a
dataset than under its neighbor. Losses of independent releases add up, so their laws are convolved,
on a grid. A law is put on the grid by joining the points of its curve delta(epsilon) with straight
lines in exp(epsilon) [1]_: the curve is convex there, so the joined one lies above it, and it is
the curve of a discrete loss. A loss with a curve above another one composes to a curve above.

References
----------
.. [1] Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the Dots: Tighter Discrete
   Approximations of Privacy Loss Distributions", PoPETs 2022.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import minimize_scalar
from scipy.signal import lfilter
from scipy.special import logsumexp

from skdp.core.checks import check_count, check_kind, check_levels, check_real

Floats = NDArray[np.float64]
_TAIL = 1e-16  # mass of the sum that the window of the convolution may cut off
_MAX_POINTS, _USUAL_POINTS = 2**26, 2**22  # the latter take a second or two
_COARSE_POINTS = 400  # enough to see how wide a sum spreads


class PrivacyLossDistribution(ABC):
    """Law of the privacy loss L on the worst pair that a mechanism covers.

    L is positive where the outcome speaks for the dataset it came from. Exchanging the two datasets
    of a pair changes no number here.

    Examples
    --------
    >>> from skdp import LaplaceMechanism
    >>> from skdp.risk import privacy_loss_distribution
    >>> loss = privacy_loss_distribution(LaplaceMechanism(epsilon=1.0))
    >>> loss.bound, round(float(loss.cdf(0.5)), 3)
    (1.0, 0.389)
    """

    def cdf(self, loss: ArrayLike) -> Any:
        """Return the probability that the loss is at most a level, of either sign; nan for nan."""
        return _evaluate(self._cdf, check_levels("loss", loss, "cdf"), 0.0, 1.0)

    def delta(self, epsilon: ArrayLike) -> Any:
        """Return the smallest delta at a level of epsilon, of either sign; nan for nan."""
        return _evaluate(self._delta, check_levels("epsilon", epsilon, "delta"), 1.0, 0.0)

    def epsilon(self, delta: float) -> float:
        """Return the smallest epsilon for a delta in [0, 1), rounded up; inf if there is none."""
        level = self._epsilon(check_real("delta", delta, "epsilon", 0.0, 1.0, closed="l"))
        return min(self.bound, math.nextafter(level, math.inf)) if level > 0 else 0.0

    def quantile(self, probability: float) -> float:
        """Return the smallest level whose `cdf` is at least a probability; inf if there is none."""
        probability = check_real("probability", probability, "quantile", 0.0, 1.0, closed="r")
        return self._quantile(probability)

    @property
    def bound(self) -> float:
        """Level that the loss never exceeds; inf if there is none."""
        return self._support()[1]

    def self_compose(self, n: int) -> PrivacyLossDistribution:
        """Return the law of the total loss of `n` independent releases, never below the truth."""
        n = check_count("n", n, "self_compose")
        return self if n == 1 else GridLoss.from_law(self, _default_step(self, n))._power(n)

    def compose(self, other: PrivacyLossDistribution) -> PrivacyLossDistribution:
        """Return the law of the total loss of two independent releases, never below the truth."""
        check_kind("other", other, "compose", PrivacyLossDistribution, "a privacy loss")
        reach = sum(high - low for low, high in (self._support(), other._support()))
        step = max(min(_default_step(self), _default_step(other)), reach / _USUAL_POINTS)
        return GridLoss.from_law(self, step)._plus(GridLoss.from_law(other, step))

    @abstractmethod
    def _cdf(self, loss: Floats) -> Floats: ...

    @abstractmethod
    def _delta(self, epsilon: Floats) -> Floats: ...

    @abstractmethod
    def _epsilon(self, delta: float) -> float: ...

    @abstractmethod
    def _quantile(self, probability: float) -> float: ...

    @abstractmethod
    def _support(self) -> tuple[float, float]:
        """Return an interval that holds the loss, all but a mass of 1e-16 at either end."""


@dataclass(frozen=True, eq=False)
class GridLoss(PrivacyLossDistribution):
    """A discrete privacy loss: mass `probabilities[i]` at ``(first + i) * step``, some at infinity.

    `delta` and `epsilon` are never below the truth; in `cdf` and `quantile` each loss that was
    added has moved by a step at most. Infinite are tails that were cut off, and an allowance for
    rounding. The exact loss never exceeds the limit.
    """

    step: float
    first: int
    probabilities: Floats
    infinity: float
    limit: float = math.inf

    @cached_property
    def _sums(self) -> tuple[Floats, Floats]:
        # tail[i] = sum_{j >= i} p_j and other[i] = sum_{j >= i} p_j exp(l_i - l_j), so that
        # delta(epsilon) = tail[i] + infinity - exp(epsilon - l_i) other[i] just below l_i.
        falling = self.probabilities[::-1]
        tail = np.cumsum(falling)[::-1]
        other = lfilter([1.0], [1.0, -math.exp(-self.step)], falling)[::-1]
        return np.append(tail, 0.0) + self.infinity, np.append(other, 0.0)

    @cached_property
    def _below(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.probabilities)])

    @classmethod
    def from_law(cls, law: PrivacyLossDistribution, step: float) -> GridLoss:
        """Put a law on a grid whose curve meets that of the law there and is above it between."""
        if isinstance(law, cls) and law.step == step:
            return law
        low, high = law._support()
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first > _MAX_POINTS:
            raise ValueError(
                f"A privacy loss of up to {high:.3g} is too large to be put on a grid of steps of "
                f"{step:.2g}. Compose releases of a smaller epsilon, or add up their epsilons."
            )
        curve = law.delta(step * np.arange(first, last + 1))
        # Negative slopes of the curve in exp(epsilon), times its upper end; convex, so falling.
        slope = np.maximum(curve[:-1] - curve[1:], 0.0) / -math.expm1(-step)
        mass = np.append(1 - curve[0], slope) - math.exp(-step) * np.append(slope, 0.0)
        return cls(step, first, np.maximum(mass, 0.0), float(curve[-1]), law.bound)

    @cached_property
    def _losses(self) -> Floats:
        return self.step * np.arange(self.first, self.first + self.probabilities.size, dtype=float)

    @property
    def bound(self) -> float:
        return self.limit

    def _cdf(self, loss: Floats) -> Floats:
        # A level meant to be on the grid may be off by rounding.
        index = np.floor(loss / self.step + 1e-9) + 1 - self.first
        index = np.clip(index, 0, self.probabilities.size).astype(int)
        return np.minimum(self._below[index], 1.0)

    def _delta(self, epsilon: Floats) -> Floats:
        index = np.ceil(epsilon / self.step) - self.first
        index = np.clip(index, 0, self.probabilities.size).astype(int)
        above = np.minimum(epsilon - self.step * (self.first + index), 0.0)
        tail, other = self._sums
        curve = tail[index] - np.exp(above) * other[index]
        return np.where(epsilon >= self.limit, 0.0, np.clip(curve, 0.0, 1.0))

    def _epsilon(self, delta: float) -> float:
        tail, other = self._sums
        reached = np.flatnonzero(tail - other <= delta)
        if not reached.size:
            return self.limit
        index = int(reached[0])
        level = self.step * (self.first + index)
        if index > 0:
            level += min(0.0, math.log((tail[index] - delta) / other[index]))
        return min(self.limit, level)

    def _quantile(self, probability: float) -> float:
        index = int(np.searchsorted(self._below[1:], probability))
        level = self.step * (self.first + index) if index < self.probabilities.size else math.inf
        return min(self.limit, level)

    def _support(self) -> tuple[float, float]:
        return self.step * self.first, self.step * (self.first + self.probabilities.size - 1)

    def _power(self, n: int) -> GridLoss:
        """Return the law of the sum of n of these losses."""
        low, high, cut = self._window(n)
        # The window is read from a circular convolution. Mass outside is misplaced: charge it.
        length = next_fast_len(max(high - low + 1, self.probabilities.size), real=True)
        # Rounding errors of a transform are equally large everywhere. Of the plain and of the
        # exponentially tilted one, which is exact far up, each is right where it is smaller.
        mean = np.average(self._losses, weights=self.probabilities)
        variance = np.average((self._losses - mean) ** 2, weights=self.probabilities)
        spread = max(self.step, math.sqrt(n * variance))
        total = np.minimum(
            self._transform(n, 0.0, low, length), self._transform(n, 3 / spread, low, length)
        )
        infinity = cut - math.expm1(n * math.log1p(-self.infinity))
        return GridLoss(self.step, low, total, min(1.0, infinity), n * self.limit)

    def _window(self, n: int) -> tuple[int, int, float]:
        """Return the first and the last point of the sum of n losses, and the mass beyond them."""
        low, size = n * self.first, n * (self.probabilities.size - 1) + 1
        if size <= 4096:
            return low, low + size - 1, 0.0
        bottom, top = (self._chernoff(n, side) / self.step for side in (-1.0, 1.0))
        return max(low, math.floor(bottom)), min(low + size - 1, math.ceil(top)), 2 * _TAIL

    def _transform(self, n: int, tilt: float, low: int, length: int) -> Floats:
        """Return the n-fold convolution from the point `low` on, rounded up."""
        moment = float(logsumexp(tilt * self._losses, b=self.probabilities))
        tilted = self.probabilities * np.exp(tilt * self._losses - moment)
        total = np.roll(irfft(rfft(tilted, length) ** n, length), n * self.first - low)
        levels = self.step * (low + np.arange(length, dtype=float))
        return _rounded_up(total, n) * np.exp(np.minimum(n * moment - tilt * levels, 600.0))

    def _plus(self, other: GridLoss) -> GridLoss:
        """Return the law of the sum of two losses on the same grid."""
        size = self.probabilities.size + other.probabilities.size - 1
        length = next_fast_len(size, real=True)
        product = rfft(self.probabilities, length) * rfft(other.probabilities, length)
        total = _rounded_up(irfft(product, length)[:size], 2)
        infinity = self.infinity + other.infinity - self.infinity * other.infinity
        first, limit = self.first + other.first, self.limit + other.limit
        return GridLoss(self.step, first, total, infinity, limit)

    def _chernoff(self, n: int, side: float) -> float:
        """Return a level beyond which, on one side, the sum of n losses has a mass below _TAIL."""

        def level(log_tilt: float) -> float:
            tilt = math.exp(log_tilt)
            moment = logsumexp(side * tilt * self._losses, b=self.probabilities)
            return (n * moment - math.log(_TAIL)) / tilt

        spread = math.log(np.abs(self._losses).max() * math.sqrt(n))
        best = minimize_scalar(level, bounds=(-spread - 5, -spread + 12), method="bounded")
        return side * float(best.fun)


def _default_step(law: PrivacyLossDistribution, n: int = 1) -> float:
    """Return a grid distance that is fine for n losses of a law, and that n of them fit on."""
    low, high = law._support()
    coarse = (high - low) / _COARSE_POINTS
    # The sum spreads like sqrt(n), and the grid with it: what it then exceeds the truth by grows
    # with n step^2, in proportion to the sum.
    first, last, _ = GridLoss.from_law(law, coarse)._window(n)
    least = coarse * (last - first + 1) / _USUAL_POINTS if n > 1 else 0.0
    if isinstance(law, GridLoss):
        return law.step * max(1, math.ceil(least / law.step))  # its points stay on the grid
    # The excess over the truth grows with sqrt(n) step^2, and is least with atoms on the grid.
    step = max(min(1e-3, coarse) * min(1.0, 100 / n) ** 0.25, least)
    if not math.isfinite(law.bound):
        return step
    parts = law.bound / step
    return law.bound / max(1, math.floor(parts) if step == least else math.ceil(parts))


def _evaluate(of: Callable[[Floats], Floats], levels: Floats, low: float, high: float) -> Any:
    """Evaluate a probability at the finite levels; its limits are known, and nan stays nan."""
    limits = np.where(levels > 0, high, np.where(levels < 0, low, math.nan))
    with np.errstate(over="ignore"):  # beyond the largest double the limits are as good
        found = of(np.where(np.isfinite(levels), levels, 0.0))
    return np.where(np.isfinite(levels), np.clip(found, 0.0, 1.0) + 0.0, limits)[()]


def _rounded_up(total: Floats, n: int) -> Floats:
    """Add the rounding error of the transforms to the masses of a sum of n losses.

    To first order its Euclidean norm is n log2(N) machine epsilons of that of the result. It has
    no preferred place, so each of the N points gets its share.
    """
    error = 2 * np.finfo(float).eps * n * math.log2(total.size + 1) * math.sqrt(total @ total)
    return np.maximum(total, 0.0) + error / math.sqrt(total.size)
