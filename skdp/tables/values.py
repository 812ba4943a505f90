"""Entries of records in a canonical form, each by itself, whatever container holds them.

An array has one type for all entries, so one odd entry could change how all others read. Here an
entry is read alone: it reads the same in a list, an array and a frame.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import shorten
from skdp.core.dataset import Elsewhere, belongs_to, n_records
from skdp.core.dtypes import DType, holds_numbers, is_object, is_of_dates, kind_of
from skdp.core.plain import as_doubles, is_table, plain
from skdp.core.types import Container

Canonical = float | str | None


def canonical(value: Any) -> Canonical:
    """Return a float for what reads as a finite number, a str for other text, and else None.

    So 1, 1.0, True, "1" and b"1" are one value. None, NaN, NA, infinity, dates, lists and objects
    of other classes are another. It never raises, and calls no method of a class that a user wrote,
    which might raise anything.
    """
    try:
        if issubclass(type(value), np.number | np.bool_):
            value = np.generic.item(value)
        if issubclass(type(value), bytes):
            value = bytes.decode(value, errors="replace")
        if type(value) is complex and not value.imag:
            value = value.real
        for base in (str, float, int):
            if issubclass(type(value), base):
                value = getattr(base, f"__{base.__name__}__")(value)  # of no class of a user
        kinds = str, float, int, Decimal, Fraction, np.longdouble
        if not any(type(value) is kind for kind in kinds):  # compared by no method of a user
            return None
        number = float(value)
    except (ValueError, OverflowError):  # words are no numbers, and long ones no doubles
        return value if type(value) is str else None
    return number if math.isfinite(number) else None


def entries(column: Container) -> list:
    """List the entries of a column as Python objects."""
    if belongs_to(column, "pandas", "polars"):
        return column.to_list()
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def numbers(column: Container) -> NDArray[np.float64]:
    """Return the entries of a column as doubles; NaN for those that are no finite number."""
    if hasattr(column, "dtype") and holds_numbers(column.dtype):
        values = as_doubles(column)  # the same, but faster
        return np.where(np.isfinite(values), values, np.nan)
    read = map(canonical, entries(column))
    return np.array([each if isinstance(each, float) else np.nan for each in read], np.float64)


def places(column: Container, declared: Mapping[Canonical, int]) -> NDArray[np.intp]:
    """Return the place of each entry among declared values; 0 for an undeclared one."""
    words: dict[str, int] = {}

    def place(entry: object) -> int:
        if type(entry) is not str:
            return declared.get(canonical(entry), 0)
        if entry not in words:
            words[entry] = declared.get(canonical(entry), 0)
        return words[entry]

    return np.array([place(entry) for entry in entries(column)], dtype=np.intp)


def can_hold(dtype: DType, is_number: bool, has_numbers: bool) -> bool:
    """Return whether a type can hold what a Number or a Category declares, numbers or not."""
    if is_number and not (is_object(dtype) or isinstance(dtype, np.dtype)):
        return kind_of(dtype) in "fiubc"
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    if kind_of(dtype) in "fiubc":
        return has_numbers
    nested = hasattr(dtype, "is_nested") and dtype.is_nested()
    return not (is_of_dates(dtype) or nested or kind_of(dtype) == "V")


def columns_of_records(X: Container, names: Sequence[object]) -> tuple[list[Container], int]:
    """Return the columns of a frame by name, those of an array or of a list by place; and n."""
    if isinstance(X, list):
        return [[_entry(row, *at) for row in X] for at in enumerate(names)], len(X)
    n_records(X)  # refuses other classes
    if hasattr(X, "tocsr") or len(X.shape) != 2:
        raise TypeError(
            "Records for a Schema must be a frame, an array of two dimensions or a list of "
            f"records. Got {type(X).__name__}."
        )
    X = plain(X, "X")
    if is_table(X):
        given = list(X.columns)
        wrong = [name for name in names if given.count(name) != 1]
        if wrong:
            raise ValueError(
                "Records for a Schema must have each declared column once. "
                f"Missing or repeated are {shorten(wrong)}."
            )
        return [X[name] for name in names], len(X)
    if X.shape[1] != len(names):
        raise ValueError(
            f"An array of records must have the {len(names)} declared columns, in the order of "
            f"the Schema. Got {X.shape[1]} columns."
        )
    return list(X.T), len(X)


def _entry(record: object, place: int, name: object) -> object:
    """Return an entry of a record by name or place; a record that lacks it has a gap there."""
    try:
        return record[name if isinstance(record, Mapping) else place]  # type: ignore[index]
    except Exception:  # whatever a record is, it counts
        return None


def library_of(X: Container) -> str:
    """Return "pandas", "polars", "array" or "list": what drawn records are to look like."""
    if isinstance(X, Elsewhere):
        return installed_library()
    found = [library for library in ("pandas", "polars") if belongs_to(X, library)]
    return found[0] if found else "list" if isinstance(X, list) else "array"


def installed_library() -> str:
    """Return the library of frames that is installed, pandas before polars; else "array"."""
    found = [name for name in ("pandas", "polars") if importlib.util.find_spec(name)]
    return found[0] if found else "array"


def together(columns: Mapping[object, NDArray], library: str) -> Container:
    """Return drawn columns in a container of this kind."""
    if library == "array":
        return np.column_stack(list(columns.values()))
    lists = {name: column.tolist() for name, column in columns.items()}
    if library == "list":
        return [list(row) for row in zip(*lists.values(), strict=True)]
    return importlib.import_module(library).DataFrame(lists)
