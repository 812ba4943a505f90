"""How numbers are written for people."""

from __future__ import annotations

import math


def two_digits(number: float) -> str:
    """Write a number with two digits, below 10,000 without an exponent."""
    return f"{number:.0f}" if 10 <= number < 1e4 else f"{number:.2g}"


def percent(share: float) -> str:
    """Write a share with three digits, rounded up."""
    if not 0 < share < 1:
        return f"{100 * share:g}%"
    unit = 10.0 ** (math.floor(math.log10(100 * share)) - 2)
    return f"{math.ceil(100 * share / unit * (1 - 1e-12)) * unit:.3g}%"


def short_score(score: float) -> str:
    """Write a score with two decimals, a large one with three digits."""
    return f"{score:.2f}" if abs(score) < 100 else f"{score:.3g}"
