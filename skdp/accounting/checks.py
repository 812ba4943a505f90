"""Input checks shared by the modules of `skdp.accounting` and `skdp.risk`."""

from __future__ import annotations

import math
import numbers

import numpy as np
from numpy.typing import NDArray

MOST = 2**53
"""Largest count: a double holds all integers up to it."""


def check_real(
    name: str, owner: str, value: object, low: float, high: float, closed: str = ""
) -> float:
    """Return a number inside an interval, or say which interval it missed.

    `closed` holds "l" and "r" for the ends that belong to the interval.
    """
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(
            f"The {name!r} parameter of {owner} must be a real number. Got {value!r} of type "
            f"{type(value).__name__}."
        )
    try:
        number = float(value)
    except OverflowError:  # an integer that no double comes near
        number = -math.inf if value < 0 else math.inf
    ends = (number == low and "l" in closed) or (number == high and "r" in closed)
    if not (low < number < high or ends):
        left, right = "[" if "l" in closed else "(", "]" if "r" in closed else ")"
        raise ValueError(
            f"The {name!r} parameter of {owner} must be in {left}{low:g}, {high:g}{right}. "
            f"Got {value!r}."
        )
    return number


def check_levels(
    name: str, owner: str, values: object, low: float = -math.inf
) -> NDArray[np.float64]:
    """Return numbers of at least `low`, or what is missing, in an array of any shape."""
    try:
        levels = np.asarray(values)
    except ValueError:  # rows of different lengths
        levels = np.asarray(None)
    if levels.dtype.kind not in "fiu":
        raise TypeError(
            f"The {name!r} parameter of {owner} must hold real numbers. Got {values!r} of type "
            f"{type(values).__name__}."
        )
    if np.any(levels < low):
        raise ValueError(
            f"The {name!r} parameter of {owner} must hold numbers of at least {low:g}. "
            f"Got {values!r}."
        )
    return levels.astype(np.float64)


def check_count(name: str, owner: str, value: object, low: int = 1) -> int:
    """Return an integer of at least `low`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(
            f"The {name!r} parameter of {owner} must be an integer. Got {value!r} of type "
            f"{type(value).__name__}."
        )
    count = int(value)
    if not low <= count <= MOST:
        side = f"least {low}" if count < low else "most 2**53"
        raise ValueError(f"The {name!r} parameter of {owner} must be at {side}. Got {value!r}.")
    return count


def check_stronger(
    owner: str, epsilon: object, epsilon0: object, most: float = math.inf
) -> tuple[float, float]:
    """Return a level and the level of the mechanism, of which the first is not the larger."""
    epsilon0 = check_real("epsilon0", owner, epsilon0, 0.0, most)
    epsilon = check_real("epsilon", owner, epsilon, 0.0, math.inf)
    if epsilon > epsilon0:
        raise ValueError(
            f"The 'epsilon' parameter of {owner} must be at most epsilon0={epsilon0:g}, the level "
            f"of the mechanism, above which the loss never goes. Got {epsilon:g}."
        )
    return epsilon, epsilon0
