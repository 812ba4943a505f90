"""Checks of parameters that every part of the library shares."""

from __future__ import annotations

import math
import sys
import textwrap
import warnings
from collections.abc import Iterable, Sized
from contextlib import suppress
from numbers import Integral, Number, Real
from types import UnionType
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

MOST = 2**53  # largest count: a double holds all integers up to it
LONGEST = 80  # most characters of a string that is shown; a longer one may be a record


def warn(
    message: str, category: type[Warning] = UserWarning, once: set[tuple[str, int]] | None = None
) -> None:
    """Warn at the first line outside of skdp; a line in `once` was warned before."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("skdp."):
        frame, level = frame.f_back, level + 1
    line = frame.f_code.co_filename, frame.f_lineno
    seen = set() if once is None else once
    if line not in seen:
        warnings.warn(message, category, stacklevel=level)
        seen.add(line)


def is_real(value: object) -> TypeGuard[float]:
    """Return whether something is a number, and no boolean."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether something is an integer, and no boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def shown(value: object) -> str:
    """Show a value in a message; of a container its type and shape only, as it may be private."""
    match value:
        case None | Number() | np.generic() | type():
            return repr(value)
        case str() if len(value) <= LONGEST:
            return repr(value)
        case BaseEstimator():
            params = value.get_params().values()
            if all(isinstance(each, str | Number | BaseEstimator | None) for each in params):
                return " ".join(repr(value).split())
    name = type(value).__name__
    article = "an" if name[0] in "aeioAEIO" else "a"
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{article} {name} of shape {tuple(shape)}"
    length = f" of length {len(value)}" if isinstance(value, Sized) else ""
    return f"{article} {name}{length}"


def shorten(values: Iterable[object]) -> str:
    """Show the first values of a list."""
    values = list(values)
    first = ", ".join(repr(value) for value in values[:5])
    return f"[{first}, ...]" if len(values) > 5 else f"[{first}]"


def floats(values: object) -> NDArray[np.float64] | None:
    """Return numbers in an array; None where some are no numbers, since an error would show one."""
    with suppress(TypeError, ValueError, OverflowError):  # of numpy: they would show an entry
        return np.asarray(values, dtype=np.float64)
    return None


def check_count(
    name: str, value: object, owner: str, *, at_least: int = 1, at_most: int | None = None
) -> int:
    """Return an integer of the range; refuse fractions, NaN and booleans, however whole."""
    rule = f"of at least {at_least}" if at_most is None else f"from {at_least} to {_short(at_most)}"
    message = f"The {name!r} parameter of {owner} must be an integer {rule}. Got {shown(value)}."
    if not is_whole(value):
        raise TypeError(message)
    count = int(value)
    if count > MOST and at_most is None:
        return check_count(name, value, owner, at_least=at_least, at_most=MOST)
    if count < at_least or (at_most is not None and count > at_most):
        raise ValueError(message)
    return count


def _short(number: int) -> str:
    """Write a large power of two as one."""
    power = number.bit_length() - 1
    return f"2**{power}" if power > 30 and number == 2**power else str(number)


def check_real(
    name: str, value: object, owner: str, low: float, high: float = math.inf, closed: str = ""
) -> float:
    """Return a number in an interval; `closed` holds "l" and "r" for the ends that belong to it."""
    left, right = "[" if "l" in closed else "(", "]" if "r" in closed else ")"
    interval = f"in {left}{low:g}, {high:g}{right}. Got {shown(value)}"
    if not is_real(value):
        raise TypeError(f"The {name!r} parameter of {owner} must be a real number {interval}.")
    try:
        number = float(value)
    except OverflowError:  # an integer that no double comes near
        number = -math.inf if value < 0 else math.inf
    ends = (number == low and "l" in closed) or (number == high and "r" in closed)
    if not (low < number < high or ends):
        raise ValueError(f"The {name!r} parameter of {owner} must be {interval}.")
    return number


def check_rules(owner: str, **rules: tuple[object, object, str]) -> None:
    """Refuse the first parameter whose rule does not hold, given as (value, holds, rule)."""
    for name, (value, holds, rule) in rules.items():
        if not holds:
            raise ValueError(f"The {name!r} parameter of {owner} must {rule}. Got {shown(value)}.")


def check_kind(name: str, value: object, owner: str, kind: type | UnionType, rule: str) -> None:
    """Refuse a parameter of another class than the one that the rule names."""
    if not isinstance(value, kind):
        raise TypeError(f"The {name!r} parameter of {owner} must be {rule}. Got {shown(value)}.")


def check_levels(name: str, values: object, owner: str) -> NDArray[np.float64]:
    """Return numbers, which may be NaN, in an array of any shape."""
    levels = floats(values)
    if levels is None or np.asarray(values).dtype.kind not in "fiu":
        raise TypeError(
            f"The {name!r} parameter of {owner} must hold real numbers. Got {shown(values)}."
        )
    return levels


def check_ranges(name: str, ranges: object, owner: str) -> NDArray[np.float64]:
    """Return pairs (low, high), finite and in order, in an array."""
    pairs = floats(ranges)
    if pairs is None or pairs.shape[1:] != (2,) or not len(pairs):
        got = shown(ranges)
    elif not (fits := np.isfinite(pairs).all(axis=1) & (pairs[:, 0] <= pairs[:, 1])).all():
        got = str(tuple(pairs[np.argmin(fits)].tolist()))  # a range is public
    else:
        return pairs
    raise ValueError(
        f"The {name!r} parameter of {owner} must give finite (low, high) with low at most high, a "
        f"pair for each column. Got {got}."
    )


def wrapped(said: str, first: str = "") -> str:
    """Wrap a text at 80 columns, each line as far indented as the text of the first."""
    after = " " * len(first)
    return textwrap.fill(said, 80, initial_indent=first, subsequent_indent=after)
