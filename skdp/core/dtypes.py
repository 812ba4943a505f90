"""The types of columns: what each may hold, what it is called, and casts that change no entry."""

from __future__ import annotations

import hashlib
import re
import sys
from contextlib import suppress
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import shorten
from skdp.core.dataset import belongs_to
from skdp.core.types import Container

DType: TypeAlias = Any  # of numpy, pandas or polars: the libraries share no class


class MisfitError(ValueError):
    """Records cannot be brought into a form. The message holds names and dtypes, and no value."""


def kind_of(dtype: DType) -> str:
    """Return the letter of numpy for what a type of numpy, pandas or polars holds."""
    if not hasattr(dtype, "is_numeric"):
        return getattr(dtype, "kind", "O")
    if str(dtype) == "Boolean":
        return "b"
    if dtype.is_temporal():
        return "M"
    return "i" if dtype.is_integer() else "f" if dtype.is_numeric() else "O"


def holds_numbers(dtype: DType) -> bool:
    """Return whether a column of a type holds real numbers, or truth values."""
    return kind_of(dtype) in "fiub"


def is_of_dates(dtype: DType) -> bool:
    """Return whether a type is of dates or durations, or of categories that are some."""
    return kind_of(getattr(getattr(dtype, "categories", None), "dtype", dtype)) in "Mm"


LEAVES = re.compile(
    r"(bool(ean)?|u?int\d+|float(\d+)?|halffloat|double|object|category|enum|str|(large_)?string"
    r"|(large_)?binary)(\[pyarrow\])?"
)


REMEDIES = {  # by words in the name of a type
    "date|time|duration|period": "dates to days since a fixed date",
    "decimal": "decimals by astype(float) or cast(polars.Float64)",
    "dictionary": "dictionaries by astype(str)",
    "sparse": "sparse columns by sparse.to_dense()",
    "": "to columns of numbers, texts or declared categories",
}


def remedy_of(dtype: DType) -> str:
    """Say how to convert a type whose unit, scale or part may be read off entries; else empty."""
    name = "dates" if is_of_dates(dtype) else str(dtype).lower()
    is_leaf = LEAVES.fullmatch(name.partition("(")[0]) is not None
    if isinstance(dtype, np.dtype):
        is_leaf = dtype.kind in "biufcOUST" and not dtype.metadata
    return "" if is_leaf else next(REMEDIES[each] for each in REMEDIES if re.search(each, name))


def is_object(dtype: DType) -> bool:
    """Return whether entries may be anything."""
    return str(dtype) in ("object", "Object")


def made_up_entries(dtype: DType) -> list:
    """Return a few possible entries of a column."""
    if kind_of(dtype) in "fiubc":
        return [0, 1]
    return categories_of(dtype) or ([None] if is_of_dates(dtype) else ["a", "b"])


def categories_of(dtype: DType) -> list | None:
    """List the categories that a type declares; None where it has none, or takes any."""
    categories: Container = getattr(dtype, "categories", None)
    return list(categories) if hasattr(categories, "__len__") else None


def series_of(kind: type, name: object, values: Container, dtype: DType) -> Container:
    """Make a series of a type, or raise MisfitError where an entry would change."""
    polars, place = hasattr(dtype, "is_numeric"), "" if name is None else f", column {name!r},"
    if not belongs_to(values, "polars" if polars else "pandas"):
        values = np.asarray(values)
    if is_object(values.dtype) and kind_of(dtype) == "f":
        values = cast(np.asarray(values, dtype=object), np.dtype(float), place)
    series = kind(name, values) if polars else kind(values).reset_index(drop=True).rename(name)
    if series.dtype == dtype:  # also if the same categories stand in another order
        has_order = polars or not categories_of(dtype)
        return series if has_order else series.cat.set_categories(dtype.categories)
    made: Container = None
    if _may_hold(dtype, series.dtype):
        with suppress(Exception):  # each library has errors of its own
            made = series.cast(dtype) if polars else _only_declared(series, dtype).astype(dtype)
    if made is None or not _is_unchanged(objects(series), objects(made), kind_of(dtype) == "f"):
        raise MisfitError(_misfit(series.dtype, dtype, place))
    return made


def _only_declared(series: Container, dtype: DType) -> Container:
    """Remove entries that are no declared category, since pandas warns of their cast."""
    declared = categories_of(dtype)
    return series if declared is None else series.where(series.isin(declared))


def objects(series: Container) -> NDArray:
    """Return the values of a series, with None for what is missing."""
    entries = (None if is_gap(entry) else entry for entry in series.to_list())
    return np.fromiter(entries, dtype=object, count=len(series))


def is_gap(entry: object) -> bool:
    """Return whether an entry of an array of objects stands for a missing one."""
    is_nan = False
    with suppress(Exception):  # of a class that a user wrote
        is_nan = isinstance(entry, Real) and bool(entry != entry)
    return entry is None or is_nan or type(entry).__name__ in ("NAType", "NaTType")


def cast(values: NDArray, dtype: np.dtype, place: str = "") -> NDArray:
    """Cast an array, or raise MisfitError where an entry would change."""
    if values.dtype == dtype or (values.dtype.kind == dtype.kind and dtype.kind in "US"):
        return values
    if values.dtype.kind == "O" and dtype.kind == "f":
        gaps = np.array(list(map(is_gap, values.flat)), dtype=bool).reshape(values.shape)
        values = np.where(gaps, np.nan, values)
    made: NDArray | None = None
    if "O" in (values.dtype.kind, dtype.kind) or _may_hold(dtype, values.dtype):
        # a cast that fails, or changes an entry, is refused below, by an error without the entry
        with suppress(Exception), np.errstate(all="ignore"):
            made = values.astype(dtype)
    if made is None or not _is_unchanged(values, made, dtype.kind == "f"):
        raise MisfitError(_misfit(values.dtype, dtype, place))
    return made


def _is_unchanged(values: NDArray, cast: NDArray, to_float: bool) -> bool:
    """Return whether entries are the same after a cast; to a float they may be rounded."""
    if to_float:
        values, cast = values.astype(np.float64), cast.astype(np.float64)
        same = (np.isfinite(values) == np.isfinite(cast)) & (np.isnan(values) == np.isnan(cast))
    else:
        same = (values == cast) | ((values != values) & (cast != cast))
    return bool(np.all(same))


def _may_hold(dtype: DType, given: DType) -> bool:
    """Return whether a cast keeps numbers numbers, complex ones complex, and words words."""
    complex_ones = [kind_of(each) == "c" for each in (dtype, given)]
    return holds_numbers(dtype) == holds_numbers(given) and complex_ones[0] == complex_ones[1]


def common(ours: DType, theirs: DType | str) -> DType:
    """Return the dtype in which a column and a drawn one, or one of this name, can be alike."""
    if isinstance(theirs, str):
        theirs = np.dtype(float) if theirs.lower() == "float64" else ours
    declared = any(categories_of(dtype) is not None for dtype in (ours, theirs))
    if declared and not (holds_numbers(ours) or holds_numbers(theirs)):
        return theirs
    if is_object(ours) and holds_numbers(theirs):
        return theirs if kind_of(theirs) == "f" else double(theirs)
    return double(ours) if kind_of(ours) in "iub" and kind_of(theirs) == "f" else ours


def double(dtype: DType) -> DType:
    """Return the double of the same library."""
    return sys.modules["polars"].Float64() if hasattr(dtype, "is_numeric") else np.dtype(float)


def name_dtype(dtype: DType) -> str:
    """Name a dtype, with a digest of its categories, which may be private."""
    categories = categories_of(dtype)
    if categories is None:
        return str(dtype)
    content = repr((categories, getattr(dtype, "ordered", None)))
    return f"category {hashlib.sha256(content.encode()).hexdigest()[:12]}"


def without_digest(name: str) -> str:
    """Remove the digest, from which private categories could be guessed, for a message."""
    return "category" if name.startswith("category ") else {"<U0": "string"}.get(name, name)


def _misfit(given: DType, wanted: DType, place: str) -> str:
    public = categories_of(wanted)
    if public is not None and not holds_numbers(given):
        return (
            f"{place} holds a category that is not among the public ones, "
            f"{shorten(public)} (add it to the oracle, or to 'like', if it is public; "
            "else replace it by one of these)"
        )
    names = (without_digest(name_dtype(dtype)) for dtype in (given, wanted))
    told = f"{place} holds {{}}, and that of the data {{}}".format(*names)
    if is_object(given) and kind_of(wanted) == "f":
        return f"{place} holds objects that are no numbers"
    if holds_numbers(given) != holds_numbers(wanted):
        return told
    return f"{told}, which cannot hold its values"
