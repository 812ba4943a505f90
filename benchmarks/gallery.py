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
from scipy import optimize, special, stats


def on_lattice(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round the outputs to multiples of 2**-30: the digits of a sum of doubles tell its terms."""
    return np.round(outputs * 2.0**30) / 2.0**30


def _rows(x: ArrayLike, n: int) -> tuple[NDArray[np.float64], tuple[int, ...]]:
    """Return the dataset as floats, and the shape of n noisy copies of it."""
    values = np.asarray(x, dtype=np.float64)
    return values, (n, *values.shape)


@dataclass(frozen=True)
class LaplaceNoise:
    """Laplace noise on every coordinate."""

    scale: float
    slope: float = 0.0
    clip: tuple[float, float] | None = None

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        values, shape = _rows(x, n)
        noise = rng.laplace(scale=self.scale + self.slope * values, size=shape)
        outputs = on_lattice(values + noise)
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


@dataclass(frozen=True)
class GaussianNoise:
    """Normal noise: no epsilon holds for it without a delta."""

    sigma: float

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        values, shape = _rows(x, n)
        return on_lattice(values + rng.normal(scale=self.sigma, size=shape))

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return inf for different datasets."""
        return math.inf if np.any(np.asarray(x) != np.asarray(x_prime)) else 0.0


@dataclass(frozen=True)
class ExponentialNoise(GaussianNoise):
    """Mistake: noise on one side only, so that small outputs are possible on one dataset alone."""

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        values, shape = _rows(x, n)
        return on_lattice(values + rng.exponential(scale=self.sigma, size=shape))


@dataclass(frozen=True)
class TruncatedLaplace:
    """Mistake: Laplace noise redrawn until the output lies in an interval.

    Redrawing divides by a constant that depends on the data; clamping would not.
    """

    scale: float
    low: float
    high: float

    def _ends(self, x: float) -> tuple[float, float]:
        """Return the interval as seen from a dataset, in units of the noise."""
        return (self.low - x) / self.scale, (self.high - x) / self.scale

    def __call__(self, x: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs, by inversion of the truncated law."""
        below, above = self._ends(x)
        first, last = math.exp(below) / 2, 1 - math.exp(-above) / 2
        u = first + (last - first) * rng.random(n)
        upper = u > 0.5
        z = np.where(upper, -1.0, 1.0) * np.log(2 * np.where(upper, 1 - u, u))
        return np.clip(on_lattice(x + self.scale * z), self.low, self.high)

    def epsilon(self, x: float, x_prime: float) -> float:
        """Return the larger of the two losses at the ends of the interval.

        The log ratio is monotone in the output, so its extremes are at the ends. There it is the
        distance of the datasets, or what it tends to.
        """
        logs = [
            math.log(-math.expm1(below) - math.expm1(-above))
            for below, above in (self._ends(x), self._ends(x_prime))
        ]
        distance = (x - x_prime) / self.scale
        return max(abs(logs[1] - logs[0] + distance), abs(logs[1] - logs[0] - distance))


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


@dataclass(frozen=True)
class PrefixSums:
    """Running sums of noisy values: as revealing as the noisy values, harder to see."""

    scale: float

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        return np.cumsum(LaplaceNoise(self.scale)(x, n, rng), axis=1)

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        return LaplaceNoise(self.scale).epsilon(x, x_prime)


@dataclass(frozen=True)
class TextbookLaplace:
    """Mistake: Laplace noise by inversion in double precision, added in double precision.

    On real numbers it is honest; the digits of the sum are not. A sum is rounded at the size of
    the larger term, so an output near 0 has a full mantissa when x is 0 and a short one when x is
    not (Mironov, "On significance of the least significant bits for differential privacy",
    CCS 2012).
    """

    scale: float

    def __call__(self, x: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        u = rng.random(n) - 0.5
        return x - self.scale * np.sign(u) * np.log1p(-2 * np.abs(u))

    def epsilon(self, x: float, x_prime: float) -> float:
        """Return inf for different datasets: some digits are possible on one of them alone."""
        return np.inf if x != x_prime else 0.0


def _largest_log_ratio(p: ArrayLike, q: ArrayLike) -> float:
    """Return the largest absolute log ratio; where both are 0 there is none."""
    p, q = np.asarray(p, dtype=float), np.asarray(q, dtype=float)
    either = (p > 0) | (q > 0)
    with np.errstate(divide="ignore"):
        return float(np.max(np.abs(np.log(p[either]) - np.log(q[either]))))


_LEGENDRE = np.polynomial.legendre.leggauss(20)


def _quadrature(kinks: ArrayLike, scales: ArrayLike) -> tuple[NDArray, NDArray]:
    """Return nodes and weights for integrals over the line of exponentials with given kinks."""
    inner, small, large = np.unique(kinks), np.min(scales), np.max(scales)
    # Beyond 60 scales nothing is left in double precision.
    ends = np.concatenate([[inner[0] - 60 * large], inner, [inner[-1] + 60 * large]])
    panels = np.unique(
        np.concatenate(
            [np.linspace(a, b, math.ceil((b - a) / small) + 1) for a, b in itertools.pairwise(ends)]
        )
    )
    node, weight = _LEGENDRE
    half, middle = np.diff(panels) / 2, (panels[1:] + panels[:-1]) / 2
    return (middle[:, None] + half[:, None] * node).ravel(), (half[:, None] * weight).ravel()


def _log_density(value: ArrayLike, center: float, scale: float) -> NDArray:
    """Return the logarithm of a Laplace density, in a tenth of scipy's time for few values."""
    return -np.abs(np.asarray(value) - center) / scale - math.log(2 * scale)


def _log_below(value: ArrayLike, center: ArrayLike, scale: float) -> NDArray:
    """Return the logarithm of the probability of Laplace noise below a value."""
    t = (np.asarray(value) - center) / scale
    tail = np.exp(-np.abs(t)) / 2
    return np.where(t < 0, np.minimum(t, 0) - math.log(2), np.log1p(-tail))


class _OfLaw:
    """A mechanism whose law is known, of few outputs."""

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        return _largest_log_ratio(self.probabilities(x), self.probabilities(x_prime))


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
class NoisyArgmax(_OfLaw):
    """Index of the largest of several values with Laplace noise."""

    scale: float

    def probabilities(self, x: ArrayLike) -> NDArray[np.float64]:
        values = np.asarray(x, dtype=float)
        t, weights = _quadrature(values, self.scale)
        below = stats.laplace.cdf(t[:, None], values, self.scale)
        here = stats.laplace.pdf(t[:, None], values, self.scale)
        others = np.stack([np.delete(below, i, axis=1).prod(axis=1) for i in range(len(values))])
        return (others * here.T) @ weights

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        values = np.asarray(x, dtype=float)
        return np.argmax(values + rng.laplace(scale=self.scale, size=(n, len(values))), axis=1)


@dataclass(frozen=True)
class MaxOfNoisy:
    """The largest of several noisy values itself, not its index: it costs one share per value."""

    noise: str
    scale: float

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        values = np.asarray(x, dtype=float)
        draw = rng.laplace if self.noise == "laplace" else rng.exponential
        return np.max(on_lattice(values + draw(scale=self.scale, size=(n, len(values)))), axis=1)

    def log_density(self, t: ArrayLike, x: ArrayLike) -> NDArray[np.float64]:
        """Return the log density of the output: log of ``sum_i f_i/F_i * prod_i F_i``."""
        law = stats.laplace if self.noise == "laplace" else stats.expon
        z = (np.asarray(t, dtype=float)[:, None] - np.asarray(x, dtype=float)) / self.scale
        log_cdf = law.logcdf(z)
        with np.errstate(invalid="ignore"):
            hazard = np.where(np.isneginf(log_cdf), 0.0, np.exp(law.logpdf(z) - log_cdf))
        with np.errstate(divide="ignore"):
            return np.log(hazard.sum(axis=1) / self.scale) + log_cdf.sum(axis=1)

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return the largest loss: inf for one-sided noise on different maxima.

        With Laplace noise the loss is constant below all values, where it is the difference of
        the sums over the scale; between the values it is maximized numerically; far above it
        tends to the log ratio of ``sum_i exp(x_i / scale)``.
        """
        a, b = np.asarray(x, dtype=float), np.asarray(x_prime, dtype=float)
        if self.noise == "exponential" and a.max() != b.max():
            return math.inf
        low, high = min(a.min(), b.min()), max(a.max(), b.max())
        t = np.linspace(low - self.scale, high + 40 * self.scale, 20_001)
        with np.errstate(invalid="ignore"):
            loss = np.abs(self.log_density(t, a) - self.log_density(t, b))
        return float(np.nanmax(loss))


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
        """Return the law of the output, by quadrature over the noise on the threshold."""
        values = np.asarray(x, dtype=float)
        every = np.array(list(itertools.product([0, 1], repeat=len(values))), dtype=np.int8)
        rows = np.unique(self._stop(every), axis=0)
        scales = [v for v in (self.threshold_scale, self.query_scale) if v > 0]
        z, weights = _quadrature(np.append(values, self.threshold), scales)
        if self.query_scale:
            above = stats.laplace.sf(z[:, None], values, self.query_scale)
            below = stats.laplace.cdf(z[:, None], values, self.query_scale)
        else:
            above = (values >= z[:, None]).astype(float)
            below = 1 - above
        weights = weights * stats.laplace.pdf(z, self.threshold, self.threshold_scale)
        answers = (np.where(r == 1, above, np.where(r == 0, below, 1.0)) for r in rows)
        return np.array([a.prod(axis=1) @ weights for a in answers])


@dataclass(frozen=True)
class SparseVectorValue:
    """Mistake: the first query above the threshold is released with its noisy value."""

    threshold_scale: float
    query_scale: float
    threshold: float = 1.0

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent rows: index of the query (-1 for none above) and value (or 0)."""
        values = np.asarray(x, dtype=float)
        limit = self.threshold + rng.laplace(scale=self.threshold_scale, size=(n, 1))
        noisy = on_lattice(values + rng.laplace(scale=self.query_scale, size=(n, len(values))))
        above = noisy >= limit
        found, first = above.any(axis=1), above.argmax(axis=1)
        value = np.take_along_axis(noisy, first[:, None], axis=1)[:, 0]
        return np.where(found, [first, value], [[-1.0], [0.0]]).T

    def log_density(self, index: int, value: float, x: ArrayLike) -> float:
        """Return the log joint density of index and value.

        It is the density of the value times the integral, over noisy thresholds below it, of the
        probability that all earlier queries fell short.
        """
        values = np.asarray(x, dtype=float)
        z, weights = _quadrature(
            [*values[:index], self.threshold, value], [self.threshold_scale, self.query_scale]
        )
        z, weights = z[z < value], weights[z < value]
        log_short = _log_density(z, self.threshold, self.threshold_scale)
        log_short += _log_below(z[:, None], values[:index], self.query_scale).sum(axis=1)
        return float(
            special.logsumexp(log_short, b=weights)
            + _log_density(value, values[index], self.query_scale)
        )

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return the largest loss over queries and values, or over runs without one above.

        Below all values and the threshold everything is exponential and the loss constant: one
        point there, and a search above it.
        """
        a, b = np.asarray(x, dtype=float), np.asarray(x_prime, dtype=float)
        low = min(a.min(), b.min(), self.threshold) - self.query_scale
        high = max(a.max(), b.max(), self.threshold) + 20 * self.query_scale

        def loss(value: float, index: int) -> float:
            return abs(self.log_density(index, value, a) - self.log_density(index, value, b))

        largest = 0.0
        for index in range(len(a)):
            grid = np.linspace(low, high, 60)
            values = [loss(t, index) for t in grid]
            k = int(np.clip(np.argmax(values), 1, len(grid) - 2))
            best = optimize.minimize_scalar(
                lambda t, i=index: -loss(t, i), bounds=(grid[k - 1], grid[k + 1]), method="bounded"
            )
            largest = max(largest, max(values), -float(best.fun))
        none = SparseVector(self.threshold_scale, self.query_scale, self.threshold)
        silent = [none.probabilities(v)[0] for v in (a, b)]
        return max(largest, _largest_log_ratio(*[[p] for p in silent]))


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
ONE_RECORD = ((1, 0, 0, 0, 0), (0, 0, 0, 0, 0))


def honest_cases() -> list[Case]:
    """Return ten mechanisms whose claim, 1, is true."""
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
    """Return seventeen mechanisms whose claim is false."""
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
