"""Numbers as people read them: digits, shares, and how far from public records they are."""

from __future__ import annotations

import math

import numpy as np

from skdp.core.code import PublicCode
from skdp.core.types import Matrix


def two_digits(number: float) -> str:
    """Write a number with two digits, below 10,000 without an exponent."""
    return f"{number:.0f}" if 10 <= number < 1e4 else f"{number:.2g}"


def percent(share: float) -> str:
    """Write a share with two decimals or three digits, whichever is finer, rounded up."""
    if not 0 < share < 1:
        return f"{100 * share:g}%"
    unit = min(0.01, 10.0 ** (math.floor(math.log10(100 * share)) - 2))
    return f"{math.ceil(100 * share / unit * (1 - 1e-12)) * unit:.4g}%"


def short_score(score: float) -> str:
    """Write a score with two decimals, a large one with three digits."""
    return f"{score:.2f}" if abs(score) < 100 else f"{score:.3g}"


CONFLICT = 5.0  # warn of a number that is more standard deviations from its prior mean


def distance_from_prior(code: PublicCode, value: Matrix, errors: Matrix) -> Matrix:
    """Return the distance of each number from its prior mean, over prior and error together."""
    away, least = np.abs(np.ravel(value) - code.mean), 1e-8 * np.abs(code.mean)  # of rounding
    scale, known = np.hypot(code.deviations, np.ravel(errors)), code.deviations > least
    distance = np.divide(away, scale, out=np.zeros_like(away), where=known)
    return distance.reshape(np.shape(value))


def describe_conflict(distance: float, name: str, gamma: float) -> str:
    """Describe a conflict with the prior; empty where there is none."""
    if distance <= CONFLICT:
        return ""
    seen = (
        f"{name} is {two_digits(distance)} standard deviations from what public records would "
        "say, the farthest of all numbers. What was not read off the private records is the "
        "oracle's"
    )
    if not gamma:
        return f"The prior is far from the records: {seen}. It does not affect the guarantee."
    return (
        f"What was released contradicts the oracle: {seen}, and the noise may be too small, since "
        "gamma is about records like the oracle's. Check that all columns have the same units, or "
        "use an oracle that is like the private records."
    )
