"""Composition of privacy losses by convolution on a grid, erring toward privacy.

Losses of independent releases add up, so their laws are convolved. A law is put on a grid by
joining the points of its curve delta(epsilon) with straight lines in exp(epsilon) [1]_: the curve
is convex there, so the joined one lies above it, and it is the curve of a discrete loss. A loss
with a curve above another one composes to a curve above.

References
----------
.. [1] Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the Dots: Tighter Discrete
   Approximations of Privacy Loss Distributions", PoPETs 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.optimize import minimize_scalar
from scipy.signal import lfilter
from scipy.special import logsumexp

from skdp.risk._checks import check_count, check_real
from skdp.risk.loss import PrivacyLossDistribution

_TAIL = 1e-16  # mass of the sum that the window of the convolution may cut off
_MAX_POINTS = 2**26


def default_step(law: PrivacyLossDistribution) -> float:
    """Return a grid distance that is fine for a law: its own, or .001, or 1/200 of its reach."""
    if isinstance(law, GridLoss):
        return law.step
    low, high = law.support()
    return min(1e-3, (high - low) / 400)


@dataclass(frozen=True, eq=False)
class GridLoss(PrivacyLossDistribution):
    """A discrete privacy loss: mass `probabilities[i]` at ``(first + i) * step``, some at infinity.

    Made by `self_compose` and `compose`. `delta` and `epsilon` are never below the truth. `cdf`,
    `two_sided` and `quantile` are those of the discrete law, in which each of the losses that
    were added has moved by at most one step.

    Parameters
    ----------
    step : float
        Distance of the grid.
    first : int
        The lowest loss is ``first * step``.
    probabilities : ndarray of float of shape (n_points,)
        The masses.
    infinity : float in [0, 1]
        Mass at an infinite loss: tails that were cut off, and an allowance for rounding.
    limit : float, default=inf
        Level that the exact loss never exceeds.

    Examples
    --------
    >>> from skdp.risk import LaplaceLoss
    >>> print(f"{LaplaceLoss(0.1).compose(100).epsilon(1e-5):.3f}")
    4.220
    """

    step: float
    first: int
    probabilities: NDArray[np.float64]
    infinity: float
    limit: float = math.inf
    _tail: Any = field(init=False, repr=False)
    _other: Any = field(init=False, repr=False)
    _below: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        mass = self.probabilities
        # tail[i] = sum_{j >= i} p_j and other[i] = sum_{j >= i} p_j exp(l_i - l_j), so that
        # delta(epsilon) = tail[i] + infinity - exp(epsilon - l_i) other[i] just below l_i.
        tail = np.cumsum(mass[::-1])[::-1]
        other = lfilter([1.0], [1.0, -math.exp(-self.step)], mass[::-1])[::-1]
        object.__setattr__(self, "_tail", np.append(tail, 0.0) + self.infinity)
        object.__setattr__(self, "_other", np.append(other, 0.0))
        object.__setattr__(self, "_below", np.concatenate([[0.0], np.cumsum(mass)]))

    @classmethod
    def from_law(cls, law: PrivacyLossDistribution, step: float) -> GridLoss:
        """Put a law on a grid, from above.

        Parameters
        ----------
        law : PrivacyLossDistribution
            Any law; one that is on this grid is returned as it is.
        step : float in (0, inf)
            Distance of the grid.

        Returns
        -------
        GridLoss
            Its `delta` agrees with that of the law on the grid and is above it between.
        """
        step = check_real("step", "compose", step, 0.0, math.inf)
        if isinstance(law, cls) and law.step == step:
            return law
        low, high = law.support()
        first, last = math.floor(low / step), math.ceil(high / step)
        _check_size(last - first + 1, step)
        curve = law.delta(step * np.arange(first, last + 1))
        # Negative slope of the curve in exp(epsilon), times exp(epsilon); convex, so falling.
        slope = np.append(np.maximum(curve[:-1] - curve[1:], 0.0) / math.expm1(step), 0.0)
        mass = np.concatenate([[1 - curve[0]], math.exp(step) * slope[:-1]]) - slope
        return cls(step, first, np.maximum(mass, 0.0), float(curve[-1]), law.bound)

    @property
    def losses(self) -> NDArray[np.float64]:
        """The points of the grid, ndarray of float of shape (n_points,)."""
        return self.step * np.arange(self.first, self.first + self.probabilities.size, dtype=float)

    @property
    def bound(self) -> float:
        return self.limit

    def cdf(self, loss: ArrayLike) -> Any:
        # A level meant to be on the grid may be off by rounding.
        return self._mass(np.floor(np.asarray(loss, dtype=float) / self.step + 1e-9) + 1)

    def two_sided(self, epsilon: ArrayLike) -> Any:
        epsilon = np.asarray(epsilon, dtype=float)
        below = self._mass(np.ceil(-epsilon / self.step - 1e-9))
        return np.where(epsilon < 0, 0.0, self.cdf(epsilon) - below)[()]

    def _mass(self, place: Any) -> Any:
        """Return the mass below a point of the grid, given in steps from zero."""
        index = np.clip(place - self.first, 0, self.probabilities.size).astype(int)
        return np.minimum(self._below[index], 1.0)[()]

    def delta(self, epsilon: ArrayLike) -> Any:
        epsilon = np.asarray(epsilon, dtype=float)
        index = np.ceil(epsilon / self.step) - self.first
        index = np.clip(index, 0, self.probabilities.size).astype(int)
        above = np.minimum(epsilon - self.step * (self.first + index), 0.0)
        curve = self._tail[index] - np.exp(above) * self._other[index]
        return np.where(epsilon >= self.limit, 0.0, np.clip(curve, 0.0, 1.0))[()]

    def epsilon(self, delta: float) -> float:
        delta = check_real("delta", "epsilon", delta, 0.0, 1.0, closed="l")
        reached = np.flatnonzero(self._tail - self._other <= delta)
        if not reached.size:
            return self.limit
        index = int(reached[0])
        level = self.step * (self.first + index)
        if index > 0:
            level += min(0.0, math.log((self._tail[index] - delta) / self._other[index]))
        return min(self.limit, max(0.0, level))

    def quantile(self, probability: float) -> float:
        probability = check_real("probability", "quantile", probability, 0.0, 1.0, closed="r")
        index = int(np.searchsorted(self._below[1:], probability))
        if index == self.probabilities.size:
            return self.limit
        return min(self.limit, self.step * (self.first + index))

    def sample(self, size: int, rng: Any = None) -> NDArray[np.float64]:
        place = np.searchsorted(self._below[1:], np.random.default_rng(rng).random(size), "right")
        return np.append(self.losses, self.limit)[place]

    def support(self) -> tuple[float, float]:
        return self.step * self.first, self.step * (self.first + self.probabilities.size - 1)

    def self_compose(self, n: int, *, step: float | None = None) -> PrivacyLossDistribution:
        n = check_count("n", "self_compose", n)
        if step is not None and step != self.step:
            return self.from_law(self, step).self_compose(n)
        size = n * (self.probabilities.size - 1) + 1
        low, high, cut = n * self.first, n * self.first + size - 1, 0.0
        if n > 1 and size > 4096:
            low = max(low, math.floor(self._chernoff(n, -1.0) / self.step))
            reach = math.ceil(self._chernoff(n, 1.0) / self.step)
            if reach < high:
                high, cut = reach, _TAIL
        _check_size(high - low + 1, self.step)
        # The window is read from a circular convolution. Mass above it is lost and charged as
        # `cut`; mass below it comes back at the top, which errs toward privacy.
        length = next_fast_len(max(high - low + 1, self.probabilities.size), real=True)
        spectrum = rfft(self.probabilities, length)
        total = np.roll(irfft(spectrum**n, length), n * self.first - low)
        return self._sum(total, low, n, cut, n * self.limit, 1 - (1 - self.infinity) ** n)

    def add(self, other: GridLoss) -> GridLoss:
        """Law of the sum of two losses on the same grid.

        Parameters
        ----------
        other : GridLoss
            With the same `step`.

        Returns
        -------
        GridLoss
            The composed loss.
        """
        size = self.probabilities.size + other.probabilities.size - 1
        _check_size(size, self.step)
        length = next_fast_len(size, real=True)
        product = rfft(self.probabilities, length) * rfft(other.probabilities, length)
        infinity = self.infinity + other.infinity - self.infinity * other.infinity
        limit = self.limit + other.limit
        total = irfft(product, length)[:size]
        return self._sum(total, self.first + other.first, 2, 0.0, limit, infinity)

    def _sum(
        self,
        total: NDArray[np.float64],
        first: int,
        n: int,
        cut: float,
        limit: float,
        infinity: float,
    ) -> GridLoss:
        total = np.maximum(total, 0.0)
        # Rounding of the transforms, to first order: the error of the sum in the Euclidean norm
        # is n log2(N) machine epsilons of the norm of the result; sqrt(N) turns it into a mass.
        norm = float(np.sqrt(total @ total))
        error = 2 * np.finfo(float).eps * n * math.log2(total.size + 1) * norm
        allowance = error * math.sqrt(total.size)
        return GridLoss(self.step, first, total, min(1.0, infinity + cut + allowance), limit)

    def _chernoff(self, n: int, side: float) -> float:
        """Return a level beyond which, on one side, the sum of n losses has a mass below _TAIL."""
        losses, with_zero = self.losses, self.probabilities
        top = np.abs(losses).max()

        def level(log_tilt: float) -> float:
            tilt = math.exp(log_tilt)
            moment = logsumexp(side * tilt * losses, b=with_zero)
            return (n * moment - math.log(_TAIL)) / tilt

        spread = math.log(top * math.sqrt(n))
        best = minimize_scalar(level, bounds=(-spread - 5, -spread + 12), method="bounded")
        return side * float(best.fun)


def _check_size(n_points: int, step: float) -> None:
    if n_points > _MAX_POINTS:
        raise ValueError(
            f"The 'step' parameter of compose must be at least {step * n_points / _MAX_POINTS:.2g} "
            f"for a loss of this range, to keep the grid below {_MAX_POINTS} points. Got {step:g}."
        )
