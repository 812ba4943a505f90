"""A gallery of mechanisms whose epsilon is known: honest ones, and ones with a mistake.

A mechanism is called as ``mechanism(x, n, rng)`` for n outputs on the dataset x. Its method
``epsilon(x, x_prime)`` is the exact privacy loss of a pair: the supremum over all outputs and both
directions. It is infinite where outputs tell the two datasets apart without doubt.

The mistakes are those found in published mechanisms and in careless code: noise of the wrong
scale, noise whose scale depends on the data, noise on one side only, a maximum released in place
of its index, and the variants of the sparse vector technique that were refuted by Lyu, Su and Li,
"Understanding the Sparse Vector Technique for Differential Privacy", VLDB 2017.
"""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import integrate


def on_lattice(outputs):
    """Round the outputs to multiples of 2**-30: the digits of a sum of doubles tell its terms."""
    return np.round(outputs * 2.0**30) / 2.0**30


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise on every coordinate."""

    scale: float
    slope: float = 0.0
    clip: tuple | None = None

    def __call__(self, x, n, rng):
        values = np.asarray(x, dtype=float)
        scale = self.scale + self.slope * values
        outputs = on_lattice(values + rng.laplace(scale=scale, size=(n, *values.shape)))
        return outputs if self.clip is None else np.clip(outputs, *self.clip)

    def epsilon(self, x, x_prime):
        """Return the L1 distance over the scale; inf when the scales differ.

        Clamping does not change it for datasets inside the clamp: the atoms at the ends collect
        outputs on one side of both datasets, which all have the full ratio.
        """
        distance = np.abs(np.subtract(x, x_prime)).sum()
        return math.inf if self.slope and distance else distance / self.scale


class PrefixSums(LaplaceNoise):
    """Running sums of noisy values: as revealing as the noisy values, harder to see."""

    def __call__(self, x, n, rng):
        return np.cumsum(super().__call__(x, n, rng), axis=1)


class MaxOfNoisy(LaplaceNoise):
    """Mistake: the largest noisy value itself, not its index: it costs one share per value.

    Its epsilon is that of all noisy values, where all of them change in one direction: an output
    below all values has the full ratio.
    """

    def __call__(self, x, n, rng):
        return np.max(super().__call__(x, n, rng), axis=1)


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise: no epsilon holds for it without a delta. Nor for noise on one side only."""

    sigma: float
    law: str = "normal"  # or "exponential"

    def __call__(self, x, n, rng):
        return on_lattice(x + getattr(rng, self.law)(scale=self.sigma, size=n))

    def epsilon(self, x, x_prime):
        return math.inf if x != x_prime else 0.0


@dataclass(frozen=True)
class GeometricNoise:
    """Two-sided geometric noise on an integer, the Laplace noise of counts."""

    rate: float
    clip: tuple | None = None

    def __call__(self, x, n, rng):
        """Return n independent outputs: the difference of two geometric numbers is the noise."""
        draws = rng.geometric(-math.expm1(-self.rate), size=(2, n))
        outputs = x + draws[0] - draws[1]
        return outputs if self.clip is None else np.clip(outputs, *self.clip)

    def epsilon(self, x, x_prime):
        """Return rate times distance; the clamp, around both values, keeps it exact."""
        return self.rate * abs(x - x_prime)


@dataclass(frozen=True)
class RandomizedResponse:
    """The truth with probability p, else one of the other answers, evenly."""

    p: float
    n_answers: int = 2

    def __call__(self, x, n, rng):
        shift = rng.integers(1, self.n_answers, size=n)
        return np.where(rng.random(n) < self.p, x, (x + shift) % self.n_answers)

    def epsilon(self, x, x_prime):
        """Return the log ratio of truth and lie."""
        if x == x_prime:
            return 0.0
        return abs(math.log(self.p * (self.n_answers - 1) / (1 - self.p)))


class _OfLaw:
    """A mechanism whose law is known, of few outputs."""

    def epsilon(self, x, x_prime):
        """Return the largest absolute log ratio; where both probabilities are 0 there is none."""
        p, q = (np.asarray(self.probabilities(each)) for each in (x, x_prime))
        either = (p > 0) | (q > 0)
        with np.errstate(divide="ignore"):  # one of them may be 0
            return np.max(np.abs(np.log(p[either]) - np.log(q[either])))


@dataclass(frozen=True)
class ExponentialChoice(_OfLaw):
    """Choose an index with probability proportional to ``exp(factor * score)``."""

    factor: float

    def probabilities(self, x):
        weights = np.exp(self.factor * np.asarray(x, dtype=float))
        return weights / weights.sum()

    def __call__(self, x, n, rng):
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

    def __call__(self, x, n, rng):
        """Return n independent rows: 1 above, 0 below, -1 not answered."""
        values = np.asarray(x, dtype=float)
        limit = self.threshold + rng.laplace(scale=self.threshold_scale, size=(n, 1))
        noisy = np.broadcast_to(values, (n, len(values)))
        if self.query_scale:
            noisy = noisy + rng.laplace(scale=self.query_scale, size=noisy.shape)
        return self._stop((noisy >= limit).astype(np.int8))

    def _stop(self, answers):
        """Erase the answers after the last one that may be given."""
        if self.cutoff is None:
            return answers
        before = np.cumsum(answers, axis=1) - answers
        return np.where(before >= self.cutoff, np.int8(-1), answers)

    def probabilities(self, x):
        """Return the law of the output, an integral over the noise on the threshold."""
        values = np.asarray(x, dtype=float)
        every = np.array(list(itertools.product([0, 1], repeat=len(values))), dtype=np.int8)
        rows = np.unique(self._stop(every), axis=0)

        def law_given(limit):
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

    mechanism: Callable
    pair: tuple
    claimed_epsilon: float = 1.0

    @property
    def true_epsilon(self):
        return self.mechanism.epsilon(*self.pair)


FIRST_OR_OTHERS = ((1, 0, 0, 0, 0), (0, 1, 1, 1, 1))
ONES, ZEROS = (1,) * 5, (0,) * 5
TWO_OR_THREE = ((1, 1, 0, 0, 0), (0, 0, 1, 1, 1))
ONE_RECORD = ((1, 0, 0, 0, 0), ZEROS)

# The claim of each is true.
HONEST = {
    "Laplace": Case(LaplaceNoise(1.0), (0.0, 1.0)),
    "randomized response": Case(RandomizedResponse(math.e / (1 + math.e)), (0, 1)),
    "10-ary response": Case(RandomizedResponse(math.e / (9 + math.e), 10), (0, 1)),
    "geometric clipped": Case(GeometricNoise(1.0, clip=(0, 5)), (2, 1)),
    "Laplace clamped": Case(LaplaceNoise(1.0, clip=(0.0, 1.0)), (0.0, 1.0)),
    "exponential": Case(ExponentialChoice(0.5), FIRST_OR_OTHERS),
    "sparse vector": Case(SparseVector(2.0, 4.0), TWO_OR_THREE),
    "histogram": Case(LaplaceNoise(1.0), ONE_RECORD),
}
# The claim of each is false.
BROKEN = {
    "Laplace, half the noise": Case(LaplaceNoise(0.5), (0.0, 1.0)),
    "Laplace, a tenth short": Case(LaplaceNoise(1 / 1.1), (0.0, 1.0)),
    "Laplace, scale from data": Case(LaplaceNoise(1.0, slope=1.0), (0.0, 1.0)),
    "Gaussian as pure": Case(GaussianNoise(1.0), (0.0, 1.0)),
    "one-sided noise": Case(GaussianNoise(1.0, "exponential"), (0.0, 1.0)),
    "max value": Case(MaxOfNoisy(2.0), (ZEROS, ONES)),
    "coin-flip response": Case(RandomizedResponse(0.75), (0, 1)),
    "exponential, no half": Case(ExponentialChoice(1.0), FIRST_OR_OTHERS),
    "sparse vector, unscaled": Case(SparseVector(4.0, 4 / 3), (ONES, (2, 2, 0, 0, 0))),
    "sparse vector, no query noise": Case(SparseVector(2.0, 0.0, cutoff=None), TWO_OR_THREE),
    "sparse vector, no cutoff": Case(SparseVector(2.0, 2.0, cutoff=None), TWO_OR_THREE),
    "histogram, scale inverted": Case(LaplaceNoise(0.5), ONE_RECORD, claimed_epsilon=0.5),
    "prefix sums": Case(PrefixSums(5.0), (ZEROS, ONES), claimed_epsilon=0.2),
}
