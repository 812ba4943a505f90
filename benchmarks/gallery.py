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

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import integrate


def on_lattice(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round the outputs to multiples of 2**-30: the digits of a sum of doubles tell its terms."""
    return np.round(outputs * 2.0**30) / 2.0**30


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise on every coordinate."""

    scale: float
    slope: float = 0.0
    clip: tuple[float, float] | None = None

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        values = np.asarray(x, dtype=float)
        scale = self.scale + self.slope * values
        outputs = on_lattice(values + rng.laplace(scale=scale, size=(n, *values.shape)))
        return outputs if self.clip is None else np.clip(outputs, *self.clip)

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return the L1 distance over the scale; inf when the scales differ.

        Clamping does not change it for datasets inside the clamp: the atoms at the ends collect
        outputs on one side of both datasets, which all have the full ratio.
        """
        a, b = np.asarray(x, dtype=float), np.asarray(x_prime, dtype=float)
        if self.slope and np.any(a != b):
            return math.inf
        return float(np.sum(np.abs(a - b)) / self.scale)


class PrefixSums(LaplaceNoise):
    """Running sums of noisy values: as revealing as the noisy values, harder to see."""

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.cumsum(super().__call__(x, n, rng), axis=1)


class MaxOfNoisy(LaplaceNoise):
    """Mistake: the largest noisy value itself, not its index: it costs one share per value.

    Its epsilon is that of all noisy values, where all of them change in one direction: an output
    below all values has the full ratio.
    """

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.max(super().__call__(x, n, rng), axis=1)


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise: no epsilon holds for it without a delta. Nor for noise on one side only."""

    sigma: float
    law: str = "normal"  # or "exponential"

    def __call__(self, x: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return on_lattice(x + getattr(rng, self.law)(scale=self.sigma, size=n))

    def epsilon(self, x: float, x_prime: float) -> float:
        return math.inf if x != x_prime else 0.0


@dataclass(frozen=True)
class GeometricNoise:
    """Two-sided geometric noise on an integer, the Laplace noise of counts."""

    rate: float
    clip: tuple[int, int] | None = None

    def __call__(self, x: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return n independent outputs: the difference of two geometric numbers is the noise."""
        draws = rng.geometric(-math.expm1(-self.rate), size=(2, n))
        outputs = x + draws[0] - draws[1]
        return outputs if self.clip is None else np.clip(outputs, *self.clip)

    def epsilon(self, x: int, x_prime: int) -> float:
        """Return rate times distance; the clamp, around both values, keeps it exact."""
        return self.rate * abs(x - x_prime)


@dataclass(frozen=True)
class RandomizedResponse:
    """The truth with probability p, else one of the other answers, evenly."""

    p: float
    n_answers: int = 2

    def __call__(self, x: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        shift = rng.integers(1, self.n_answers, size=n)
        return np.where(rng.random(n) < self.p, x, (x + shift) % self.n_answers)

    def epsilon(self, x: int, x_prime: int) -> float:
        """Return the log ratio of truth and lie."""
        if x == x_prime:
            return 0.0
        return abs(math.log(self.p * (self.n_answers - 1) / (1 - self.p)))


class _OfLaw:
    """A mechanism whose law is known, of few outputs."""

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return the largest absolute log ratio; where both probabilities are 0 there is none."""
        p, q = (np.asarray(self.probabilities(each)) for each in (x, x_prime))
        either = (p > 0) | (q > 0)
        with np.errstate(divide="ignore"):
            return float(np.max(np.abs(np.log(p[either]) - np.log(q[either]))))


@dataclass(frozen=True)
class ExponentialChoice(_OfLaw):
    """Choose an index with probability proportional to ``exp(factor * score)``."""

    factor: float

    def probabilities(self, x: ArrayLike) -> NDArray[np.float64]:
        scores = self.factor * np.asarray(x, dtype=float)
        weights = np.exp(scores - scores.max())
        return weights / weights.sum()

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        steps = np.cumsum(self.probabilities(x))[:-1]
        return np.searchsorted(steps, rng.random(n), side="right")


@dataclass(frozen=True)
class SparseVector(_OfLaw):
    """Which queries exceed a noisy threshold, until `cutoff` of them did.

    Honest for sensitivity 1 with ``threshold_scale = 2/epsilon`` and
    ``query_scale = 4 cutoff/epsilon``. The published mistakes scale the query noise without the
    cutoff, leave it out, or do not stop.
    """

    threshold_scale: float
    query_scale: float
    threshold: float = 1.0
    cutoff: int | None = 1

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int8]:
        """Return n independent rows: 1 above, 0 below, -1 not answered."""
        values = np.asarray(x, dtype=float)
        limit = self.threshold + rng.laplace(scale=self.threshold_scale, size=(n, 1))
        noisy = np.broadcast_to(values, (n, len(values)))
        if self.query_scale:
            noisy = noisy + rng.laplace(scale=self.query_scale, size=noisy.shape)
        return self._stop((noisy >= limit).astype(np.int8))

    def _stop(self, answers: NDArray[np.int8]) -> NDArray[np.int8]:
        """Erase the answers after the last one that may be given."""
        if self.cutoff is None:
            return answers
        before = np.cumsum(answers, axis=1) - answers
        return np.where(before >= self.cutoff, np.int8(-1), answers)

    def probabilities(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the law of the output, an integral over the noise on the threshold."""
        values = np.asarray(x, dtype=float)
        every = np.array(list(itertools.product([0, 1], repeat=len(values))), dtype=np.int8)
        rows = np.unique(self._stop(every), axis=0)

        def law_given(limit: float) -> NDArray[np.float64]:
            above = (values >= limit).astype(float)
            if self.query_scale:
                tail = np.exp(-np.abs(limit - values) / self.query_scale) / 2
                above = np.where(values > limit, 1 - tail, tail)
            shares = np.where(rows == 1, above, np.where(rows == 0, 1 - above, 1.0))
            density = math.exp(-abs(limit - self.threshold) / self.threshold_scale)
            return shares.prod(axis=1) * density / (2 * self.threshold_scale)

        # Beyond 60 scales nothing is left in double precision.
        kinks = np.unique([*values, self.threshold])
        ends = kinks[0] - 60 * self.threshold_scale, kinks[-1] + 60 * self.threshold_scale
        return integrate.quad_vec(law_given, *ends, points=kinks, epsabs=1e-10)[0]


@dataclass(frozen=True)
class Case:
    """A mechanism, a pair of datasets, and the epsilon that is claimed."""

    name: str
    mechanism: Callable
    pair: tuple[Any, Any]
    claimed_epsilon: float = 1.0

    @cached_property
    def true_epsilon(self) -> float:
        return self.mechanism.epsilon(*self.pair)


ONES, ZEROS = (1,) * 5, (0,) * 5
TWO_OR_THREE = ((1, 1, 0, 0, 0), (0, 0, 1, 1, 1))
ONE_RECORD = ((1, 0, 0, 0, 0), (0, 0, 0, 0, 0))


def honest_cases() -> list[Case]:
    """Return eight mechanisms whose claim, 1, is true."""
    truth = math.e / (1 + math.e)
    return [
        Case("Laplace", LaplaceNoise(1.0), (0.0, 1.0)),
        Case("randomized response", RandomizedResponse(truth), (0, 1)),
        Case("10-ary response", RandomizedResponse(math.e / (9 + math.e), 10), (0, 1)),
        Case("geometric clipped", GeometricNoise(1.0, clip=(0, 5)), (2, 1)),
        Case("Laplace clamped", LaplaceNoise(1.0, clip=(0.0, 1.0)), (0.0, 1.0)),
        Case("exponential", ExponentialChoice(0.5), ((1, 0, 0, 0, 0), (0, 1, 1, 1, 1))),
        Case("sparse vector", SparseVector(2.0, 4.0), TWO_OR_THREE),
        Case("histogram", LaplaceNoise(1.0), ONE_RECORD),
    ]


def broken_cases() -> list[Case]:
    """Return thirteen mechanisms whose claim is false."""
    return [
        Case("Laplace, half the noise", LaplaceNoise(0.5), (0.0, 1.0)),
        Case("Laplace, a tenth short", LaplaceNoise(1 / 1.1), (0.0, 1.0)),
        Case("Laplace, scale from data", LaplaceNoise(1.0, slope=1.0), (0.0, 1.0)),
        Case("Gaussian as pure", GaussianNoise(1.0), (0.0, 1.0)),
        Case("one-sided noise", GaussianNoise(1.0, "exponential"), (0.0, 1.0)),
        Case("max value", MaxOfNoisy(2.0), (ZEROS, ONES)),
        Case("coin-flip response", RandomizedResponse(0.75), (0, 1)),
        Case("exponential, no half", ExponentialChoice(1.0), ((1, 0, 0, 0, 0), (0, 1, 1, 1, 1))),
        Case("sparse vector, unscaled", SparseVector(4.0, 4 / 3), (ONES, (2, 2, 0, 0, 0))),
        Case("sparse vector, no query noise", SparseVector(2.0, 0.0, cutoff=None), TWO_OR_THREE),
        Case("sparse vector, no cutoff", SparseVector(2.0, 2.0, cutoff=None), TWO_OR_THREE),
        Case("histogram, scale inverted", LaplaceNoise(0.5), ONE_RECORD, claimed_epsilon=0.5),
        Case("prefix sums", PrefixSums(5.0), (ZEROS, ONES), claimed_epsilon=0.2),
    ]
