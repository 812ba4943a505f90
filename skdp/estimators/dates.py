"""Dates and durations that scikit-learn would read as numbers, a missing one as the least of all.

Which columns it reads so cannot be told from the estimator: a step may drop them, encode them, or
hand what it makes of them to the next. It is seen where they are read, in a public fit.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import joblib
import numpy as np
from sklearn.utils import validation

from skdp.core.checks import shorten
from skdp.core.dataset import column_names
from skdp.core.dtypes import holds_numbers
from skdp.core.types import Container

NO_DATES = "Make numbers of them before, such as days since a fixed date"

_lock = threading.Lock()
_watching: set[int] = set()
"""The threads whose public fit is watched."""
_CAST, _CHECK = "_asarray_with_order", "check_array"
_originals: dict[str, Any] = {}


def are_dates(values: Any) -> bool:
    """Return whether an array or a column holds dates or durations, or has them as categories."""
    dtype = values.dtype
    categories = getattr(dtype, "categories", None)
    if getattr(getattr(categories, "dtype", dtype), "kind", "") in ("M", "m"):  # numpy and pandas
        return True
    if hasattr(dtype, "is_temporal"):  # polars
        return bool(dtype.is_temporal())
    if dtype.kind != "O":
        return False
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
def refusing_dates_as_numbers(X: Container) -> Iterator[None]:
    """Refuse them where scikit-learn makes numbers of them; `X` are the records of the fit."""
    here = threading.get_ident()
    dtypes = [X[name].dtype for name in column_names(X) or []] or [getattr(X, "dtype", None)]
    if all(dtype is not None and holds_numbers(dtype) for dtype in dtypes) or here in _watching:
        yield
        return
    with _lock:
        if not _watching:
            for name, watched in ((_CAST, _cast), (_CHECK, _check)):
                _originals[name] = getattr(validation, name)
                setattr(validation, name, watched)
        _watching.add(here)
    try:
        with joblib.parallel_config(backend="sequential"):  # or they were read elsewhere
            yield
    except TypeError as error:
        names = dates_in(X)  # as objects, beside columns of another kind
        if names and "float() argument must be" in str(error):
            raise _as_numbers(names) from error
        raise
    finally:
        with _lock:
            _watching.discard(here)
            if not _watching:
                for name, original in _originals.items():
                    setattr(validation, name, original)


def _cast(array: Any, dtype: Any = None, **options: Any) -> Any:
    if threading.get_ident() in _watching and dtype is not None and np.dtype(dtype).kind in "biuf":
        _refuse(array)
    return _originals[_CAST](array, dtype=dtype, **options)


def _check(array: Any, *args: Any, dtype: Any = "numeric", **options: Any) -> Any:
    checked = _originals[_CHECK](array, *args, dtype=dtype, **options)
    if threading.get_ident() in _watching and isinstance(dtype, str) and dtype == "numeric":
        _refuse(checked)
    return checked


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
