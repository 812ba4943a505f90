"""Containers in plain forms, by their class and declared types alone.

No entry decides about a type, since a single gap would change what is printed, saved and refused.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.checks import shorten
from skdp.core.dataset import Elsewhere, as_series, belongs_to, n_records, narrowed, summed_rows
from skdp.core.dtypes import (
    DType,
    categories_of,
    holds_numbers,
    is_gap,
    kind_of,
    objects,
    remedy_of,
)
from skdp.core.types import Container

MISSING_LABELS = "Input y contains labels that are missing, or of several types."
NO_LEAVES = (
    "values{} of a type whose unit, scale or parts other records may have decided. Convert them, "
    "in the oracle's records and the private ones: "
)
FILLED = {  # by the library of X
    "numpy": "numpy.where(numpy.isnan(X), numpy.nanmedian(X_public, axis=0), X)",
    "pandas": "X.fillna(X_public.mode().iloc[0])",
    "polars": "X.fill_null(0)",
}


def plain(container: Container, part: str, takes_lists: bool = False) -> Container:
    """Return records in C order, sparse ones by rows, and frames without row labels."""
    container = list(container) if isinstance(container, tuple) else as_series(container)
    n_records(container)  # refuses other classes
    if isinstance(container, Elsewhere):
        return container
    if isinstance(container, list):
        if takes_lists:
            return container
        raise TypeError(
            f"The private {part} must be an array, a sparse matrix, a frame or a series, which "
            f"declare a type. Got a list: write numpy.asarray({part}, dtype=float)."
        )
    made: Container = container
    if sparse.issparse(container):
        if len(container.shape) != 2:  # the duplicates of all records would be sorted together
            raise TypeError(f"The private {part} must have rows: write {part}.reshape((-1, 1)).")
        made = summed_rows(container)
    elif belongs_to(container, "pandas"):  # attributes, which each block would see, stay behind
        pandas = sys.modules["pandas"]
        made = pandas.DataFrame(container) if is_table(container) else pandas.Series(container)
        made = made.reset_index(drop=True)
        if is_table(made):
            made.columns = made.columns.set_names([None] * made.columns.nlevels)
    elif belongs_to(container, "polars"):  # the code of a category depends on other records
        texts = {sys.modules["polars"].Categorical: sys.modules["polars"].String}
        made = container if is_table(container) else container.to_frame()
        made = made.cast(texts) if is_table(container) else made.cast(texts).to_series()
    elif type(container) in (np.ndarray, np.memmap):
        dtype = container.dtype.str if container.dtype.metadata else None  # which would stay
        made = narrowed(np.ascontiguousarray(container, dtype))
    else:
        raise TypeError(
            f"The private {part} must be a plain array. Got {type(container).__name__}. Pass a "
            "plain array of its values, or a frame."
        )
    lines = ", ".join(sorted({*map(remedy_of, dtypes_of(made))} - {""}))
    refuse_types(part, made, lambda dtype: remedy_of(dtype) != "", NO_LEAVES + lines)
    return made


def refuse_types(
    part: str, values: Container, are_refused: Callable[[DType], bool], said: str
) -> None:
    """Refuse columns by their types alone."""
    refused = list(map(are_refused, dtypes_of(values)))
    if any(refused):
        named = zip(getattr(values, "columns", ()), refused, strict=False)
        names = [name for name, is_refused in named if is_refused]
        where = f" in the columns {shorten(names)}" if names else ""
        raise ValueError(f"{part} holds {said.format(where)}.")


def columns_of(container: Container) -> list[Container]:
    """List the columns of a frame, whose names may repeat; a series is one."""
    if len(container.shape) == 1:
        return [container]
    if belongs_to(container, "polars"):
        return container.get_columns()
    return [container.iloc[:, place] for place in range(container.shape[1])]


def dtypes_of(container: Container) -> list[DType]:
    """List the declared types of a container, one for each column of a frame."""
    return [*container.dtypes] if is_table(container) else [container.dtype]


def is_table(container: Container) -> bool:
    """Return whether a container is a frame, each column of which has a name and a type."""
    return belongs_to(container, "pandas", "polars") and len(container.shape) == 2


def as_doubles(container: Container) -> NDArray[np.float64]:
    """Return the entries as doubles; NaN for those that are missing or no number."""
    if is_table(container):
        return np.column_stack([_doubles(column) for column in columns_of(container)])
    return _doubles(container.toarray() if sparse.issparse(container) else container)


def _doubles(values: Container) -> NDArray[np.float64]:
    if hasattr(values, "dtype") and holds_numbers(values.dtype):
        if belongs_to(values, "polars"):
            return values.cast(sys.modules["polars"].Float64, strict=False).to_numpy()
        if belongs_to(values, "pandas"):
            return values.to_numpy(dtype=np.float64, na_value=np.nan)
        with np.errstate(over="ignore"):  # long doubles beyond doubles are infinite
            return values.astype(np.float64)
    values = as_objects(values)  # one by one: all at once, a word elsewhere decides what dates are
    return np.array([_double(entry) for entry in values.flat]).reshape(values.shape)


def _double(entry: object) -> float:
    with suppress(Exception):  # of a class that a user wrote
        return float(entry)  # type: ignore[arg-type] # what it is, is tried
    return np.nan


def as_objects(values: Container) -> NDArray[np.object_]:
    """Return the entries of a container as objects."""
    if is_table(values):
        return np.column_stack([objects(column) for column in columns_of(values)])
    if belongs_to(values, "pandas", "polars"):
        return objects(values)
    return np.asarray(values.toarray() if sparse.issparse(values) else values, dtype=object)


def with_doubles(X: Container, which: Callable[[DType], bool] = holds_numbers) -> Container:
    """Return records whose columns of some types, by default of numbers, are doubles."""

    def stays(dtype: DType) -> bool:
        is_single = isinstance(dtype, np.dtype) and dtype.kind == "f"  # of the same values
        return is_single or not which(dtype)

    if not is_table(X):
        return X if stays(X.dtype) else X.astype(np.float64) if sparse.issparse(X) else _doubles(X)
    if belongs_to(X, "polars"):
        kept = (each if stays(each.dtype) else _doubles(each) for each in columns_of(X))
        return type(X)(dict(zip(X.columns, kept, strict=True)))
    made = X.copy(deep=False)
    for place, column in enumerate(columns_of(X)):
        if not stays(column.dtype):
            made.isetitem(place, _doubles(column))
    return made


def as_labels(y: Container) -> NDArray:
    """Return labels in an array of the type that they declare; words in an array of strings."""
    if is_table(y):
        return np.column_stack([as_labels(column) for column in columns_of(y)])
    if sparse.issparse(y):
        return y.toarray()
    if belongs_to(y, "pandas", "polars"):
        return _labels_of_series(y)
    try:
        return _as_words(np.asarray(y))
    except ValueError:
        raise ValueError(
            "y must hold one response for each record, or as many for each. Got rows of different "
            "lengths. Make indicators of them with MultiLabelBinarizer."
        ) from None


def _labels_of_series(y: Container) -> NDArray:
    if hasattr(y, "cat") and categories_of(y.dtype) and belongs_to(y, "pandas"):
        codes = y.cat.codes.to_numpy()
        if (codes < 0).any():
            raise ValueError(MISSING_LABELS)
        return as_labels(y.cat.categories.to_series())[codes]
    if not holds_numbers(y.dtype):
        return _as_words(objects(y))
    if isinstance(y.dtype, np.dtype):
        return y.to_numpy()
    if kind_of(y.dtype) == "f":
        return _doubles(y)
    if _has_gap(y):
        raise ValueError(MISSING_LABELS)
    kind = np.bool_ if "bool" in str(y.dtype).lower() else np.int64
    return y.to_numpy().astype(kind) if belongs_to(y, "polars") else y.to_numpy(dtype=kind)


def _as_words(y: NDArray) -> NDArray:
    """Return an array of strings where all labels are strings."""
    if y.dtype.kind != "O" or not all(isinstance(label, str) for label in y.flat):
        return y
    words = y.astype(np.str_)
    return words if np.array_equal(words, y) else y  # an array drops the zeros at the end of a text


def labels_among(y: Container, classes: list[NDArray]) -> NDArray:
    """Replace labels that are not public by the first one: no record decides about a refusal."""
    are_numbers = all(labels.dtype.kind in "biuf" for labels in classes)
    for dtype in [] if isinstance(y, list) else dtypes_of(y):
        dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
        if holds_numbers(dtype) != are_numbers:
            got, kind = ("numbers", "int") if are_numbers else ("words", "str")
            raise ValueError(
                "The 'classes' parameter of PrivateEstimator must declare labels of the type of y. "
                f"Got {got}, and y of another. Convert y, as by y.astype({kind}), or these."
            )
    entries = as_objects(y)
    columns = entries.reshape(len(entries), -1).T
    made = [_among(*each) for each in zip(columns, for_outputs(classes, len(columns)), strict=True)]
    return made[0] if entries.ndim == 1 else np.column_stack(made)


def for_outputs(classes: list[NDArray], n_outputs: int) -> list[NDArray]:
    """Return the labels of each output, from one array for all or from one for each."""
    if len(classes) not in (1, n_outputs):
        raise ValueError(
            "The 'classes' parameter of PrivateEstimator must hold labels, or a list of "
            f"labels for each of the {n_outputs} outputs. Got {len(classes)} lists."
        )
    return classes * n_outputs if len(classes) == 1 else classes


def _among(column: NDArray, labels: NDArray) -> NDArray:
    places = {label: place for place, label in enumerate(labels.tolist())}

    def place_of(entry: object) -> int:
        try:
            return places.get(entry, 0)
        except Exception:  # it has no hash, so it is no label
            return 0

    return labels[np.fromiter(map(place_of, column), dtype=np.intp, count=len(column))]


def as_array(container: Container) -> NDArray:
    """Return a container as an array; of a frame or series of the type that it declares."""
    if type(container) is np.ndarray:
        return container
    if belongs_to(container, "pandas", "polars"):
        dtypes = dtypes_of(container)
        if not all(map(holds_numbers, dtypes)):
            return as_objects(container)
        if all(isinstance(dtype, np.dtype) for dtype in dtypes):
            return container.to_numpy(dtype=np.result_type(*dtypes))
        return as_doubles(container)
    if sparse.issparse(container):
        return container.toarray()
    try:
        return np.asarray(container)
    except ValueError:  # records of different lengths, such as lists of words
        return np.asarray(container, dtype=object)


def numeric_parts(container: Container) -> Iterator[tuple[str | None, NDArray]]:
    """Yield the numeric columns of a frame with their places, or an array of floats."""
    if not belongs_to(container, "pandas", "polars"):
        values = container.tocsr().data if sparse.issparse(container) else as_array(container)
        if values.dtype.kind == "f":
            yield None, values
        return
    for column in columns_of(container):
        if holds_numbers(column.dtype):
            place = f"column {column.name!r}" if is_table(container) else None
            yield place, _doubles(column)


def find_non_finite(container: Container, allow_nan: bool = False) -> str | None:
    """Say where a number is not finite: ``"column 'age'"``, ``"column 3"`` or ``"a value"``."""
    for place, values in numeric_parts(container):
        with np.errstate(over="ignore", invalid="ignore"):  # then entry by entry
            if np.isfinite(values.sum()):
                continue
        good = np.isfinite(values) | (np.isnan(values) & allow_nan)
        if not good.all():
            if place is None and values.ndim == 2:
                column = np.flatnonzero(~good.all(axis=0))[0]
                return f"column {column}"
            return place or "a value"
    return None


def gaps_in(X: Container) -> set[int]:
    """Return the places of the columns of X in which an entry is missing."""
    if sparse.issparse(X):
        return set(X.indices[np.isnan(X.data)].tolist()) if X.dtype.kind == "f" else set()
    is_array = isinstance(X, np.ndarray)
    columns = X.reshape(len(X), -1).T if is_array else columns_of(X)
    return {place for place, column in enumerate(columns) if _has_gap(column)}


def check_gaps(X: Container, public: frozenset[int] | None) -> None:
    """Refuse gaps in columns where the oracle's records have none; None allows any."""
    others = [] if public is None else sorted(gaps_in(X) - public)
    if others:
        names = getattr(X, "columns", None)
        columns = [place if names is None else names[place] for place in others]
        raise ValueError(
            f"X has missing entries in the columns {shorten(columns)}, and the oracle's records "
            "have none there. Let the oracle yield some, or fill these by what is public: X = "
            f"{FILLED.get(type(X).__module__.partition('.')[0], FILLED['numpy'])}."
        )


def _has_gap(column: Container) -> bool:
    if holds_numbers(column.dtype):
        return bool(np.isnan(_doubles(column)).any())
    return any(map(is_gap, as_objects(column)))
