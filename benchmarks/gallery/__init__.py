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
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .noise import (
    ExponentialNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    PrefixSums,
    RandomizedResponse,
    TextbookLaplace,
    TruncatedLaplace,
)
from .selection import (
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
]


class KnownMechanism(Protocol):
    """A mechanism together with its exact privacy loss."""

    def __call__(self, x: Any, n: int, rng: np.random.Generator) -> NDArray[Any]:
        """Return n independent outputs on the dataset x."""
        ...

    def epsilon(self, x: Any, x_prime: Any) -> float:
        """Return the exact epsilon of the pair."""
        ...


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

    @cached_property
    def true_epsilon(self) -> float:
        """Exact epsilon of the pair."""
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
