"""Mechanisms that select: noisy maximum, exponential choice, sparse vector, with their epsilon."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats

from .noise import on_lattice


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


@dataclass(frozen=True)
class ExponentialChoice:
    """Choose an index with probability proportional to ``exp(factor * score)``.

    Parameters
    ----------
    factor : float
        ``epsilon / 2`` per unit of sensitivity is honest, ``epsilon`` is the usual mistake.
    """

    factor: float

    def probabilities(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the law of the output."""
        scores = self.factor * np.asarray(x, dtype=float)
        weights = np.exp(scores - scores.max())
        return weights / weights.sum()

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return n independent outputs."""
        steps = np.cumsum(self.probabilities(x))[:-1]
        return np.searchsorted(steps, rng.random(n), side="right")

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return the largest log ratio of the probabilities."""
        return _largest_log_ratio(self.probabilities(x), self.probabilities(x_prime))


@dataclass(frozen=True)
class NoisyArgmax:
    """Index of the largest of several values with Laplace noise.

    Parameters
    ----------
    scale : float
        Scale of the noise: ``2 / epsilon`` per unit of sensitivity is honest.
    """

    scale: float

    def probabilities(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the law of the output, by quadrature."""
        values = np.asarray(x, dtype=float)

        t, weights = _quadrature(values, self.scale)
        below = stats.laplace.cdf(t[:, None], values, self.scale)
        here = stats.laplace.pdf(t[:, None], values, self.scale)
        others = np.stack([np.delete(below, i, axis=1).prod(axis=1) for i in range(len(values))])
        return (others * here.T) @ weights

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return n independent outputs."""
        values = np.asarray(x, dtype=float)
        return np.argmax(values + rng.laplace(scale=self.scale, size=(n, len(values))), axis=1)

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return the largest log ratio of the probabilities."""
        return _largest_log_ratio(self.probabilities(x), self.probabilities(x_prime))


@dataclass(frozen=True)
class MaxOfNoisy:
    """The largest of several noisy values itself, not its index: it costs one share per value.

    Parameters
    ----------
    noise : {"laplace", "exponential"}
        Law of the noise.
    scale : float
        Its scale.
    """

    noise: str
    scale: float

    def __post_init__(self) -> None:
        if self.noise not in ("laplace", "exponential"):
            raise ValueError(
                "The 'noise' parameter of MaxOfNoisy must be 'laplace' or 'exponential'. "
                f"Got {self.noise!r}."
            )

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs."""
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
class SparseVector:
    """Which queries exceed a noisy threshold, until `cutoff` of them did.

    Honest for sensitivity 1 with ``threshold_scale = 2/epsilon`` and
    ``query_scale = 4 cutoff/epsilon``. The published mistakes scale the query noise without the
    cutoff, leave it out, or do not stop.

    Parameters
    ----------
    threshold_scale : float
        Scale of the noise on the threshold, drawn once.
    query_scale : float
        Scale of the noise on each query; 0 for none.
    threshold : float, default=1.0
        The threshold.
    cutoff : int or None, default=1
        Stop after so many queries above; None for never.
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

    def epsilon(self, x: ArrayLike, x_prime: ArrayLike) -> float:
        """Return the largest log ratio of the probabilities."""
        return _largest_log_ratio(self.probabilities(x), self.probabilities(x_prime))


@dataclass(frozen=True)
class SparseVectorValue:
    """Mistake: the first query above the threshold is released with its noisy value.

    Parameters
    ----------
    threshold_scale, query_scale : float
        Scales of the noise on the threshold and on each query.
    threshold : float, default=1.0
        The threshold.
    """

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
