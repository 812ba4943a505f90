"""Exact sums of numbers as they were typed, rounded toward privacy at the end."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from functools import lru_cache

Exact = Fraction | float  # a float is infinite

# Fifteen digits survive in any float: a third of .1, times three, is .1 again.
_UP, _DOWN = (Context(prec=15, rounding=how) for how in (ROUND_CEILING, ROUND_FLOOR))


@lru_cache(1024)
def finite(number: float) -> Fraction:
    """Return the decimal that was typed for a float: the shortest one that stands for it."""
    return Fraction(repr(float(number)))


def exact(number: float) -> Exact:
    """Return the decimal that was typed for a float, which may be infinite."""
    return finite(number) if math.isfinite(number) else float(number)


def above(number: Exact) -> float:
    """Return the smallest float whose decimal is not below a number."""
    found = _nearest(number)
    return found if exact(found) >= number else math.nextafter(found, math.inf)


def below(number: Exact) -> float:
    """Return the largest float whose decimal is not above a number."""
    found = _nearest(number)
    return found if exact(found) <= number else math.nextafter(found, -math.inf)


def short_above(number: Fraction) -> float:
    """Return a number rounded up to fifteen digits."""
    return float(_UP.divide(*number.as_integer_ratio()))


def short_below(number: Fraction) -> float:
    """Return a number rounded down to fifteen digits."""
    return float(_DOWN.divide(*number.as_integer_ratio()))


def _nearest(number: Exact) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf
