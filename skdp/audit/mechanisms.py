"""A gallery of mechanisms whose epsilon is known: honest ones, and ones with a mistake.

Every mechanism is a frozen value, called as ``mechanism(x, n, rng)`` for n outputs on the dataset
x, with a method ``epsilon(x, x_prime)``: the exact privacy loss of that pair, the supremum over
all outputs and both directions. :func:`honest_cases` and :func:`broken_cases` pair them with
datasets and with the epsilon that is claimed for them. `epsilon` may be infinite: then some
output, or a sequence of them, tells the two datasets apart without doubt.

The mistakes are those found in published mechanisms and in careless code: noise of the wrong
scale, noise whose scale depends on the data, noise on one side only, a maximum released in place
of its index, and the variants of the sparse vector technique that were refuted by Lyu, Su and Li,
"Understanding the Sparse Vector Technique for Differential Privacy", VLDB 2017.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.audit._selection import (
    ExponentialChoice,
    MaxOfNoisy,
    NoisyArgmax,
    SparseVector,
    SparseVectorValue,
)

__all__ = [
    "Case",
    "ExponentialChoice",
    "ExponentialNoise",
    "GaussianNoise",
    "GeometricNoise",
    "LaplaceNoise",
    "MaxOfNoisy",
    "NoisyArgmax",
    "PrefixSums",
    "RandomizedResponse",
    "SparseVector",
    "SparseVectorValue",
    "TextbookLaplace",
    "TruncatedLaplace",
    "broken_cases",
    "honest_cases",
    "representation",
]


class KnownMechanism(Protocol):
    """A mechanism together with its exact privacy loss."""

    def __call__(self, x: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return n independent outputs on the dataset x."""
        ...

    def epsilon(self, x: Any, x_prime: Any) -> float:
        """Return the exact epsilon of the pair."""
        ...


def _rows(x: ArrayLike, n: int) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """Return the dataset as floats, and the shape of n noisy copies of it."""
    values = np.asarray(x, dtype=np.float64)
    return values, (n, *values.shape)


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise on every coordinate.

    Parameters
    ----------
    scale : float
        Scale of the noise.
    slope : float, default=0.0
        Mistake if not 0: the scale is ``scale + slope * x``, so it reveals x in the tails.
    clip : tuple of two floats or None, default=None
        Clamp the output to an interval, which is post-processing and makes atoms at both ends.
    """

    scale: float
    slope: float = 0.0
    clip: tuple[float, float] | None = None

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs."""
        values, shape = _rows(x, n)
        outputs = values + rng.laplace(scale=self.scale + self.slope * values, size=shape)
        return outputs if self.clip is None else np.clip(outputs, *self.clip)

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return the L1 distance over the scale; inf when the scales differ.

        Clamping does not change it for datasets inside the clamp: the atoms at the ends collect
        outputs on one side of both datasets, which all have the full ratio.
        """
        a, b = np.asarray(x, dtype=float), np.asarray(x_prime, dtype=float)
        if self.slope and np.any(a != b):
            return math.inf
        if self.clip is not None and (
            min(np.min(a), np.min(b)) < self.clip[0] or max(np.max(a), np.max(b)) > self.clip[1]
        ):
            raise ValueError("The exact epsilon is known for datasets inside the clamp only.")
        return float(np.sum(np.abs(a - b)) / self.scale)


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise: no epsilon holds for it without a delta.

    Parameters
    ----------
    sigma : float
        Standard deviation.
    """

    sigma: float

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs."""
        values, shape = _rows(x, n)
        return values + rng.normal(scale=self.sigma, size=shape)

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return inf for different datasets: the log ratio is linear in the output."""
        return math.inf if np.any(np.asarray(x) != np.asarray(x_prime)) else 0.0


@dataclass(frozen=True)
class ExponentialNoise:
    """Mistake: noise on one side only, so that small outputs are possible on one dataset alone.

    Parameters
    ----------
    scale : float
        Mean of the noise.
    """

    scale: float

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs."""
        values, shape = _rows(x, n)
        return values + rng.exponential(scale=self.scale, size=shape)

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return inf for different datasets: the supports differ."""
        return math.inf if np.any(np.asarray(x) != np.asarray(x_prime)) else 0.0


@dataclass(frozen=True)
class TruncatedLaplace:
    """Mistake: Laplace noise redrawn until the output lies in an interval.

    Redrawing divides by a constant that depends on the data; clamping would not.

    Parameters
    ----------
    scale : float
        Scale of the noise.
    low, high : float
        The interval.
    """

    scale: float
    low: float
    high: float

    def _cdf(self, t: ArrayLike, x: float) -> NDArray[np.float64]:
        z = (np.asarray(t, dtype=float) - x) / self.scale
        half = 0.5 * np.exp(-np.abs(z))
        return np.where(z < 0, half, 1 - half)

    def __call__(self, x: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs, by inversion of the truncated law."""
        ends = self._cdf([self.low, self.high], x)
        u = ends[0] + (ends[1] - ends[0]) * rng.random(n)
        upper = u > 0.5
        z = np.where(upper, -1.0, 1.0) * np.log(2 * np.where(upper, 1 - u, u))
        return np.clip(x + self.scale * z, self.low, self.high)

    def epsilon(self, x: float, x_prime: float) -> float:
        """Return the larger of the two losses at the ends of the interval.

        The log ratio is monotone in the output, so its extremes are at the ends.
        """
        mass = [float(np.diff(self._cdf([self.low, self.high], v))[0]) for v in (x, x_prime)]
        ends = np.array([self.low, self.high])
        ratio = (np.abs(ends - x_prime) - np.abs(ends - x)) / self.scale
        return float(np.max(np.abs(ratio + math.log(mass[1] / mass[0]))))


@dataclass(frozen=True)
class GeometricNoise:
    """Two-sided geometric noise on an integer, the Laplace noise of counts.

    Parameters
    ----------
    rate : float
        P(k) is proportional to ``exp(-rate |k|)``.
    clip : tuple of two ints or None, default=None
        Clamp the output.
    """

    rate: float
    clip: tuple[int, int] | None = None

    def __call__(self, x: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return n independent outputs: the difference of two geometric numbers is the noise."""
        draws = rng.geometric(-math.expm1(-self.rate), size=(2, n))
        outputs = x + draws[0] - draws[1]
        return outputs if self.clip is None else np.clip(outputs, *self.clip)

    def epsilon(self, x: int, x_prime: int) -> float:
        """Return rate times distance; the clamp, beyond both values or at one, keeps it exact."""
        if self.clip is not None and not all(
            self.clip[0] <= v <= self.clip[1] for v in (x, x_prime)
        ):
            raise ValueError("The exact epsilon is known for datasets inside the clamp only.")
        return self.rate * abs(x - x_prime)


@dataclass(frozen=True)
class RandomizedResponse:
    """The truth with probability p, else one of the other answers, evenly.

    Parameters
    ----------
    p : float in (0, 1)
        Probability of the truth.
    n_answers : int, default=2
        Answers are 0 to ``n_answers - 1``.
    """

    p: float
    n_answers: int = 2

    def __call__(self, x: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return n independent outputs."""
        shift = rng.integers(1, self.n_answers, size=n)
        return np.where(rng.random(n) < self.p, x, (x + shift) % self.n_answers)

    def epsilon(self, x: int, x_prime: int) -> float:
        """Return the log ratio of truth and lie."""
        if x == x_prime:
            return 0.0
        return abs(math.log(self.p * (self.n_answers - 1) / (1 - self.p)))


@dataclass(frozen=True)
class PrefixSums:
    """Running sums of noisy values: as revealing as the noisy values, harder to see.

    Parameters
    ----------
    scale : float
        Scale of the Laplace noise on each value.
    """

    scale: float

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs of as many columns as x has values."""
        return np.cumsum(LaplaceNoise(self.scale)(x, n, rng), axis=1)

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return the epsilon of the noisy values: summing can be undone."""
        return LaplaceNoise(self.scale).epsilon(x, x_prime)


@dataclass(frozen=True)
class TextbookLaplace:
    """Mistake: Laplace noise by inversion in double precision, added in double precision.

    On real numbers it is honest; the digits of the sum are not. A sum is rounded at the size of
    the larger term, so an output near 0 has a full mantissa when x is 0 and a short one when x is
    not (Mironov, "On significance of the least significant bits for differential privacy",
    CCS 2012).

    Parameters
    ----------
    scale : float
        Scale of the noise.
    """

    scale: float

    def __call__(self, x: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs."""
        u = rng.random(n) - 0.5
        return x - self.scale * np.sign(u) * np.log1p(-2 * np.abs(u))


def representation(outputs: ArrayLike) -> NDArray[np.int64]:
    """Return a code of the size and of the trailing zero bits of each number.

    Auditing ``representation(mechanism(...))`` in place of the mechanism looks at the digits and
    ignores the value: an attack on floating-point noise. Any function of an output is as private
    as the output, so a mechanism that fails it is broken.

    Parameters
    ----------
    outputs : array-like of float of shape (n,)
        Outputs of a mechanism.

    Returns
    -------
    ndarray of int of shape (n,)
        64 times the binary exponent, plus the number of trailing zeros of the 53-bit significand;
        0 is coded as itself.

    Examples
    --------
    >>> from skdp.audit.mechanisms import representation
    >>> representation([0.0, 1.0, 0.75, 0.1])
    array([  0, 116,  51,-191])
    """
    significand, exponent = np.frexp(np.asarray(outputs, dtype=np.float64))
    whole = np.abs(np.ldexp(significand, 53)).astype(np.int64)
    lowest = np.maximum(whole & -whole, 1)
    trailing = np.frexp(lowest.astype(np.float64))[1] - 1
    return np.where(whole == 0, 0, 64 * exponent.astype(np.int64) + trailing)


@dataclass(frozen=True)
class Case:
    """A mechanism, a pair, and the epsilon that is claimed.

    Parameters
    ----------
    name : str
        What it is.
    mechanism : callable
        From this module.
    pair : tuple of two datasets
        On which it is audited.
    claimed_epsilon : float, default=1.0
        The claim; true for honest mechanisms.
    """

    name: str
    mechanism: KnownMechanism
    pair: tuple[Any, Any]
    claimed_epsilon: float = 1.0

    @property
    def true_epsilon(self) -> float:
        """Exact epsilon of the pair."""
        return self.mechanism.epsilon(*self.pair)


ONES, ZEROS = (1,) * 5, (0,) * 5
ONE_RECORD = ((1, 0, 0, 0, 0), (0, 0, 0, 0, 0))


def honest_cases() -> list[Case]:
    """Return ten mechanisms whose claim, 1, is true.

    Returns
    -------
    list of Case
        All types of output: continuous, discrete, mixed, vectors.

    Examples
    --------
    >>> from skdp.audit.mechanisms import honest_cases
    >>> all(case.true_epsilon <= case.claimed_epsilon + 1e-12 for case in honest_cases())
    True
    """
    truth = math.e / (1 + math.e)
    return [
        Case("Laplace", LaplaceNoise(1.0), (0.0, 1.0)),
        Case("randomized response", RandomizedResponse(truth), (0, 1)),
        Case("10-ary response", RandomizedResponse(math.e / (9 + math.e), 10), (0, 1)),
        Case("geometric", GeometricNoise(1.0), (0, 1)),
        Case("geometric clipped", GeometricNoise(1.0, clip=(0, 5)), (2, 1)),
        Case("Laplace clamped", LaplaceNoise(1.0, clip=(0.0, 1.0)), (0.0, 1.0)),
        Case("exponential", ExponentialChoice(0.5), ((1, 0, 0, 0, 0), (0, 1, 1, 1, 1))),
        Case("noisy max", NoisyArgmax(2.0), (ONES, (0, 2, 2, 2, 2))),
        Case("sparse vector", SparseVector(2.0, 4.0), ((1, 1, 0, 0, 0), (0, 0, 1, 1, 1))),
        Case("histogram", LaplaceNoise(1.0), ONE_RECORD),
    ]


def broken_cases() -> list[Case]:
    """Return seventeen mechanisms whose claim is false.

    Returns
    -------
    list of Case
        Each with a mistake; the true epsilon of the pair exceeds the claim.

    Examples
    --------
    >>> from skdp.audit.mechanisms import broken_cases
    >>> all(case.true_epsilon > case.claimed_epsilon for case in broken_cases())
    True
    """
    return [
        Case("Laplace, half the noise", LaplaceNoise(0.5), (0.0, 1.0)),
        Case("Laplace, a tenth short", LaplaceNoise(1 / 1.1), (0.0, 1.0)),
        Case("Laplace, scale from data", LaplaceNoise(1.0, slope=1.0), (0.0, 1.0)),
        Case("Gaussian as pure", GaussianNoise(1.0), (0.0, 1.0)),
        Case("one-sided noise", ExponentialNoise(1.0), (0.0, 1.0)),
        Case("Laplace redrawn", TruncatedLaplace(1.0, 0.0, 2.0), (0.0, 1.0)),
        Case("max value", MaxOfNoisy("laplace", 2.0), (ZEROS, ONES)),
        Case("max value, one-sided", MaxOfNoisy("exponential", 2.0), (ZEROS, ONES)),
        Case("coin-flip response", RandomizedResponse(0.75), (0, 1)),
        Case("exponential, no half", ExponentialChoice(1.0), ((1, 0, 0, 0, 0), (0, 1, 1, 1, 1))),
        Case("noisy max, half the noise", NoisyArgmax(1.0), (ONES, (0, 2, 2, 2, 2))),
        Case("sparse vector, value", SparseVectorValue(2.0, 2.0), (ZEROS, ONES)),
        Case("sparse vector, unscaled", SparseVector(4.0, 4 / 3), (ONES, (2, 2, 0, 0, 0))),
        Case(
            "sparse vector, no query noise",
            SparseVector(2.0, 0.0, cutoff=None),
            ((1, 1, 0, 0, 0), (0, 0, 1, 1, 1)),
        ),
        Case(
            "sparse vector, no cutoff",
            SparseVector(2.0, 2.0, cutoff=None),
            ((1, 1, 0, 0, 0), (0, 0, 1, 1, 1)),
        ),
        Case("histogram, scale inverted", LaplaceNoise(0.5), ONE_RECORD, claimed_epsilon=0.5),
        Case("prefix sums", PrefixSums(5.0), (ZEROS, ONES), claimed_epsilon=0.2),
    ]
