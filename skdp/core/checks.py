"""Checks of parameters that every part of the library shares."""

from __future__ import annotations

from numbers import Integral


def check_count(
    name: str, value: object, owner: str, *, at_least: int = 1, at_most: int | None = None
) -> int:
    """Return an integer of the range; refuse fractions, NaN and booleans, however whole."""
    rule = f"of at least {at_least}" if at_most is None else f"from {at_least} to {_short(at_most)}"
    message = f"The {name!r} parameter of {owner} must be an integer {rule}. Got {value!r}"
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{message} of type {type(value).__name__}.")
    count = int(value)
    if count < at_least or (at_most is not None and count > at_most):
        raise ValueError(f"{message}.")
    return count


def _short(number: int) -> str:
    """Write a large power of two as one."""
    power = number.bit_length() - 1
    return f"2**{power}" if power > 30 and number == 2**power else str(number)
