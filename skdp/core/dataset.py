"""Datasets, and the containers that they consist of.

A container is a numpy array, a scipy sparse matrix or array, a pandas or polars frame or series, or
a list. This module imports nothing of skdp, and neither pandas nor polars: whoever holds one of
their objects has imported them already.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from skdp.core.types import Container, Sample


class Dataset(NamedTuple):
    """Records, with their responses if they have any, and with weights beside these."""

    X: Container
    y: Container = None
    sample_weight: Container = None

    @property
    def parts(self) -> tuple[Container, ...]:
        """The containers that are there: what a target or a fit is called with."""
        if self.y is None:
            return (self.X,)
        return self[:2] if self.sample_weight is None else self[:]

    @property
    def n_records(self) -> int:
        """The number of records in X."""
        return n_records(self.X)

    def map(self, function: Callable[[Container], Container]) -> Dataset:
        """Apply a function to each container that is there."""
        return Dataset(*map(function, self.parts))

    def take(self, indices: NDArray[np.integer]) -> Dataset:
        """Return the records at `indices`; see :func:`take_records`."""
        return Dataset(*[take_records(part, indices) for part in self.parts])


def as_dataset(sample: Sample, source: str = "A dataset") -> Dataset:
    """Return X, (X, y) or (X, y, sample_weight) as a dataset; the error begins with `source`."""
    given = sample if isinstance(sample, tuple) else (sample,)
    if len(given) not in (1, 2, 3) or given[0] is None:
        got = f"a tuple of {len(given)}" if isinstance(sample, tuple) else "None"
        raise TypeError(
            f"{source} must be X or a tuple (X, y) or (X, y, sample_weight). Got {got}."
        )
    dataset = Dataset(*given)
    if dataset.y is None and dataset.sample_weight is not None:
        raise TypeError(f"{source} must have y where it has sample_weight. Got y=None.")
    return dataset


def belongs_to(container: Container, *libraries: str) -> bool:
    """Return whether a container is a frame or series of one of these libraries."""
    modules = [sys.modules[library] for library in libraries if library in sys.modules]
    return any(isinstance(container, (each.DataFrame, each.Series)) for each in modules)


def n_records(container: Container) -> int:
    """Count the records of a container."""
    shape = getattr(container, "shape", None)
    if isinstance(shape, tuple) and shape:
        return shape[0]
    if isinstance(container, list):
        return len(container)
    raise TypeError(
        "Records must come as a numpy array, a sparse matrix, a pandas or polars frame or series, "
        f"or a list. Got {type(container).__name__}."
    )


def take_records(container: Container, indices: NDArray[np.integer]) -> Container:
    """Return the records at `indices`, in that order, in a new container.

    The result is of the same class, an index may repeat, and no memory is shared with `container`.
    Sparse input comes back without duplicates, with indices of the same type; frames of pandas keep
    the index labels of their rows.
    """
    if isinstance(container, np.ndarray):
        return container.take(indices, axis=0)
    if sparse.issparse(container):
        return _take_sparse(container, indices)
    if belongs_to(container, "pandas"):
        return container.take(indices)
    if belongs_to(container, "polars"):
        return container[indices]
    n_records(container)  # refuses what holds no records
    taken = [container[index] for index in indices]
    return [row.copy() if isinstance(row, list) else row for row in taken]


def join_records(container: Container, others: Container) -> Container:
    """Return records with others of the same form after them, in a new container."""
    for library in ("pandas", "polars"):
        if belongs_to(container, library):
            return sys.modules[library].concat([container, others])
    if sparse.issparse(container):
        joined = sparse.vstack([container, others], format=container.format)
        return with_index_dtype(joined, index_dtype(container))
    if isinstance(container, list):
        return [*container, *others]
    return np.concatenate([container, others])


def _take_sparse(container: Container, indices: NDArray[np.integer]) -> Container:
    taken = container.tocsr()[indices]
    if type(taken) is not type(container):
        taken = type(container)(taken)
    return with_index_dtype(taken, index_dtype(container))


def index_dtype(container: Container) -> np.dtype | None:
    """Return the type of the indices of a sparse container; None where it keeps none."""
    indices = getattr(container, "indices", getattr(container, "row", None))
    return None if indices is None else indices.dtype


def with_index_dtype(container: Container, dtype: np.dtype | None) -> Container:
    """Give the indices of a sparse container a type: some solvers take one width only."""
    for index in ("indices", "indptr", "row", "col"):
        if dtype is not None and hasattr(container, index):
            setattr(container, index, getattr(container, index).astype(dtype, copy=False))
    return container


def column_names(X: Container) -> list[str] | None:
    """Return the names of the columns of a frame; None unless all are strings."""
    names = getattr(X, "columns", None)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return list(names)


def validate_rows(transformer: BaseEstimator, X: Container, **options: Any) -> Container:
    """Validate rows to be transformed; names are compared where both sides have some."""
    names = column_names(X)
    if (names is None) == hasattr(transformer, "feature_names_in_"):
        transformer = copy.copy(transformer)  # scikit-learn would warn, of arrays and of frames
        if names is None:
            del transformer.feature_names_in_
        else:
            transformer.feature_names_in_ = np.asarray(names, dtype=object)
    return validate_data(transformer, X, reset=False, **options)


def n_columns(X: Container) -> int | None:
    """Count the columns of a container; None where a record is a single value or a table."""
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = (len(X), *np.shape(X[0])) if len(X) else (0,)
    return shape[1] if len(shape) == 2 else None


def neighboring_pair(dataset: Dataset, position: int = -1) -> tuple[Dataset, Dataset]:
    """Split n+1 records into two datasets of n that differ in one record.

    Whatever the position, the first dataset holds records 1 to n, and the second has record n+1 in
    the place of record n: for a function of which the order means nothing, all positions are one.
    The record at `position` is replaced: record n stands there, and the record of that place comes
    last; -1 is the last place. The neighbor has the same memory layout. `dataset` is not modified,
    and shares no memory with the results: a target may write into them.
    """
    if dataset.n_records < 2:
        raise ValueError("A pair of neighboring datasets is made from at least 2 records.")
    first, second = zip(*[_replace(part, position) for part in dataset.parts], strict=True)
    return Dataset(*first), Dataset(*second)


def _replace(container: Container, position: int) -> tuple[Container, Container]:
    n = n_records(container) - 1
    if isinstance(container, np.ndarray):
        base = container[:-1].copy()
        if position not in (-1, n - 1):
            base[[position, -1]] = base[[-1, position]]
        neighbor = base.copy()
        neighbor[position] = container[-1]
        return base, neighbor
    indices = np.arange(n)
    indices[[position, -1]] = indices[[-1, position]]
    base = take_records(container, indices)
    indices[position] = n
    neighbor = take_records(container, indices)
    if belongs_to(container, "pandas"):  # the labels of rows are no part of a record
        return base.reset_index(drop=True), neighbor.reset_index(drop=True)
    return base, neighbor


def find_non_finite(container: Container, allow_nan: bool = False) -> str | None:
    """Say where a container holds a number that is not finite.

    It reads ``"column 'age'"``, ``"column 3"`` or ``"a value"``, never the value itself; None when
    all numbers are finite. Columns, arrays and lists that are not numeric are passed over.
    """
    for place, values in numeric_parts(container):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                continue
        good = np.isfinite(values) | (np.isnan(values) & allow_nan)
        if not good.all():
            if place is None and values.ndim == 2:
                column = np.flatnonzero(~good.all(axis=0))[0]
                return f"column {column}"
            return place or "a value"
    return None


def numeric_parts(container: Container) -> Iterator[tuple[str | None, NDArray]]:
    """Yield the numeric arrays of a container, each with the name of its column if it has one."""
    if belongs_to(container, "pandas"):
        columns = container.items() if container.ndim == 2 else [(None, container)]
        for name, column in columns:
            if column.dtype.kind in "iufb":  # not floats alone: the nullable ones may be missing
                place = None if name is None else f"column {name!r}"
                yield place, column.to_numpy(dtype=float, na_value=np.nan)
    elif belongs_to(container, "polars"):
        is_frame = len(container.shape) == 2
        for column in container.get_columns() if is_frame else [container]:
            if column.dtype.is_numeric() or str(column.dtype) == "Boolean":
                yield f"column {column.name!r}" if is_frame else None, np.asarray(column, float)
    else:
        values = as_array(container)
        if values.dtype.kind == "f":
            yield None, values


def as_array(container: Container) -> NDArray:
    """Return the numbers of a container; those of a sparse one are its stored entries."""
    if sparse.issparse(container):
        return container.tocsr().data
    try:
        return np.asarray(container)
    except ValueError:  # records of different lengths, such as lists of words
        return np.asarray(container, dtype=object)
