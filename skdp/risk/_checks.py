"""Input checks shared by the modules of `skdp.risk`."""

from __future__ import annotations

import numbers
from typing import Any


def check_real(
    name: str, owner: str, value: Any, low: float, high: float, closed: str = ""
) -> float:
    """Return a number inside an interval, or say which interval it missed.

    `closed` holds "l" and "r" for the ends that belong to the interval.
    """
    if not isinstance(value, numbers.Real) or isinstance(value, bool):
        raise TypeError(
            f"The {name!r} parameter of {owner} must be a real number. Got {value!r} of type "
            f"{type(value).__name__}."
        )
    number = float(value)
    ends = (number == low and "l" in closed) or (number == high and "r" in closed)
    if not (low < number < high or ends):
        left, right = "[" if "l" in closed else "(", "]" if "r" in closed else ")"
        raise ValueError(
            f"The {name!r} parameter of {owner} must be in {left}{low:g}, {high:g}{right}. "
            f"Got {value!r}."
        )
    return number


def check_count(name: str, owner: str, value: Any) -> int:
    """Return an integer of at least 1."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise TypeError(
            f"The {name!r} parameter of {owner} must be an integer. Got {value!r} of type "
            f"{type(value).__name__}."
        )
    if value < 1:
        raise ValueError(f"The {name!r} parameter of {owner} must be at least 1. Got {value!r}.")
    return int(value)


def check_stronger(owner: str, epsilon: Any, epsilon0: Any) -> tuple[float, float]:
    """Return a level and the level of the mechanism, of which the first is not the larger."""
    epsilon0 = check_real("epsilon0", owner, epsilon0, 0.0, float("inf"))
    epsilon = check_real("epsilon", owner, epsilon, 0.0, float("inf"))
    if epsilon > epsilon0:
        raise ValueError(
            f"The 'epsilon' parameter of {owner} must be at most epsilon0={epsilon0:g}, the level "
            f"of the mechanism, above which the loss never goes. Got {epsilon:g}."
        )
    return epsilon, epsilon0
