"""Dates and durations that scikit-learn would read as numbers, a missing one as the least of all.

Which columns it reads so cannot be told from the estimator: a step may drop them, encode them, or
hand what it makes of them to the next. It is seen where they are read, in a public fit.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

import joblib
import numpy as np
from sklearn.utils import validation

from skdp.core.checks import shorten
from skdp.core.dataset import column_names
from skdp.core.dtypes import holds_numbers
from skdp.core.types import Container, Estimator
from skdp.estimators.members import configured_members

NO_DATES = "Make numbers of them before, such as days since a fixed date"

NUMBERS = ("b", "i", "u", "f")
"""Kinds of the types of numpy that are numbers."""

REFUSED_BY_NUMPY = (
    r"float\(\) argument.*(Timestamp|NaT|date|delta)"  # objects
    r"|(DateTime|TimeDelta)64DType'> could not be promoted"  # beside columns of numbers
)

_lock = threading.Lock()
_watching: set[int] = set()
"""The threads whose public fit is watched."""
_originals: dict[tuple[Any, str], Any] = {}


def is_of_dates(dtype: Any) -> bool:
    """Return whether a type is of dates or durations, or of categories that are some."""
    if hasattr(dtype, "is_temporal"):  # polars
        return bool(dtype.is_temporal())
    categories = getattr(dtype, "categories", None)
    return getattr(getattr(categories, "dtype", dtype), "kind", "") in ("M", "m")


def are_dates(values: Any) -> bool:
    """Return whether an array or a column holds dates or durations, by its type or as objects."""
    if getattr(values.dtype, "kind", "") != "O" or is_of_dates(values.dtype):
        return is_of_dates(values.dtype)
    kinds = np.datetime64 | np.timedelta64  # others are no numbers for numpy either
    return any(isinstance(each, kinds) for each in np.asarray(values).ravel())


def dates_in(X: Container) -> list[str]:
    """Name the columns of dates and durations; nothing else than a frame has any."""
    columns: Iterable[Any] = ()
    if hasattr(X, "get_columns"):  # polars
        columns = ((each.name, each) for each in X.get_columns())
    elif hasattr(X, "columns"):
        columns = X.items()
    return [name for name, column in columns if are_dates(column)]


@contextmanager
def refusing_dates_as_numbers(estimator: Estimator, X: Container) -> Iterator[None]:
    """Refuse them where scikit-learn makes numbers of them, in a fit of the estimator to X."""
    here = threading.get_ident()
    if here in _watching:
        yield
        return
    dtypes = [X[name].dtype for name in column_names(X) or []] or [getattr(X, "dtype", None)]
    numbers = all(dtype is not None and holds_numbers(dtype) for dtype in dtypes)
    # elsewhere they would be read without being seen; numbers become dates by a function only
    config = nullcontext() if numbers else joblib.parallel_config(backend="sequential")
    try:
        with _lock:
            _watching.add(here)
            _watch(validation, "_asarray_with_order", _cast)
            _watch(validation, "check_array", _check)
            for stacks in _stacking(estimator):
                _watch(stacks, "_hstack", _stacked)
        with config:
            yield
    except TypeError as error:
        names = dates_in(X)
        if names and re.search(REFUSED_BY_NUMPY, str(error)):
            raise _as_numbers(names) from error
        raise
    finally:
        with _lock:
            _watching.discard(here)
            if not _watching:
                for (owner, name), original in _originals.items():
                    setattr(owner, name, original)
                _originals.clear()


def _stacking(estimator: Estimator) -> set[type]:
    """Return the classes of members that put what their own members make side by side."""
    members = (type(part) for _, part, _ in configured_members(estimator))
    return {each for kind in members for each in kind.__mro__ if "_hstack" in vars(each)}


def _watch(owner: Any, name: str, watched: Callable[..., Any]) -> None:
    """Put a function between, in all threads; in those that do not watch it changes nothing."""
    if (owner, name) not in _originals:
        original = _originals[owner, name] = getattr(owner, name)

        @functools.wraps(original)
        def between(*args: Any, **options: Any) -> Any:
            if threading.get_ident() not in _watching:
                return original(*args, **options)
            return watched(original, *args, **options)

        setattr(owner, name, between)


def _cast(original: Callable, array: Any, dtype: Any = None, **options: Any) -> Any:
    if dtype is not None and np.dtype(dtype).kind in NUMBERS:
        _refuse(array)
    return _unless_numbers(original(array, dtype=dtype, **options), array)


def _check(original: Callable, *args: Any, dtype: Any = "numeric", **options: Any) -> Any:
    checked = original(*args, dtype=dtype, **options)
    if isinstance(dtype, str) and dtype == "numeric":
        _refuse(checked)
    return checked


def _stacked(original: Callable, transformer: Any, Xs: Any, **options: Any) -> Any:
    """Refuse to put dates beside objects in an array: those in nanoseconds become whole numbers."""
    parts = list(Xs)
    stacked = _unless_numbers(original(transformer, parts, **options), *parts)
    if getattr(getattr(stacked, "dtype", None), "kind", "") == "O":
        for part in parts:
            if np.asarray(part).dtype.str.endswith("[ns]"):
                _refuse(part)
    return stacked


def _unless_numbers(made: Any, *given: Any) -> Any:
    """Refuse an array of numbers that was made of dates, as polars makes one of a mixed frame."""
    if getattr(getattr(made, "dtype", None), "kind", "") in NUMBERS:
        for each in given:
            _refuse(each)
    return made


def _refuse(values: Any) -> None:
    names = dates_in(values)
    if not names:
        with suppress(ValueError):  # of rows of several lengths, which scikit-learn refuses
            values = values if hasattr(values, "dtype") else np.asarray(values)
    if names or (hasattr(values, "dtype") and are_dates(values)):
        raise _as_numbers(names)


def _as_numbers(names: list[str]) -> TypeError:
    where = f", in the columns {shorten(names)}" if names else ""
    return TypeError(
        f"Dates or durations would be read as numbers{where}, and a missing one as the least of "
        f"all. {NO_DATES}, in the records of the oracle and in the private ones."
    )
