"""Mechanisms that add noise to numbers, or lie about an answer, with their epsilon."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def _check_positive(owner: object, **values: float) -> None:
    for name, value in values.items():
        if not 0 < value < math.inf:
            raise ValueError(
                f"The {name!r} parameter of {type(owner).__name__} must be positive and finite. "
                f"Got {value!r}."
            )


def on_lattice(outputs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round the outputs to multiples of 2**-30: the digits of a sum of doubles tell its terms."""
    return np.round(outputs * 2.0**30) / 2.0**30


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

    def __post_init__(self) -> None:
        _check_positive(self, scale=self.scale)

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs."""
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

    def __post_init__(self) -> None:
        _check_positive(self, sigma=self.sigma)

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs."""
        values, shape = _rows(x, n)
        return on_lattice(values + rng.normal(scale=self.sigma, size=shape))

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

    def __post_init__(self) -> None:
        _check_positive(self, scale=self.scale)

    def __call__(self, x: ArrayLike, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs."""
        values, shape = _rows(x, n)
        return on_lattice(values + rng.exponential(scale=self.scale, size=shape))

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
        The interval; its ends may be infinite.
    """

    scale: float
    low: float
    high: float

    def __post_init__(self) -> None:
        _check_positive(self, scale=self.scale)
        if not self.low < self.high:
            raise ValueError(
                "The 'low' parameter of TruncatedLaplace must be below 'high'. "
                f"Got {self.low!r} and {self.high!r}."
            )

    def _ends(self, x: float) -> tuple[float, float]:
        """Return the interval as seen from a dataset, in units of the noise."""
        if not (self.low <= x <= self.high and math.isfinite(x)):
            raise ValueError("TruncatedLaplace is known for datasets inside its interval only.")
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

    def __post_init__(self) -> None:
        _check_positive(self, rate=self.rate)

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

    def __post_init__(self) -> None:
        if not 0 < self.p < 1 or self.n_answers < 2:
            raise ValueError(
                "The 'p' parameter of RandomizedResponse must be between 0 and 1, and 'n_answers' "
                f"at least 2. Got {self.p!r} and {self.n_answers!r}."
            )

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

    def __post_init__(self) -> None:
        _check_positive(self, scale=self.scale)

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

    def __post_init__(self) -> None:
        _check_positive(self, scale=self.scale)

    def __call__(self, x: float, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """Return n independent outputs."""
        u = rng.random(n) - 0.5
        return x - self.scale * np.sign(u) * np.log1p(-2 * np.abs(u))

    def epsilon(self, x: float, x_prime: float) -> float:
        """Return inf for different datasets: some digits are possible on one of them alone."""
        return math.inf if x != x_prime else 0.0
