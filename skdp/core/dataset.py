"""Datasets, and the containers that they consist of.

A container is a numpy array, a scipy sparse matrix or array, a pandas or polars frame or series, or
a list. This module imports nothing of skdp, and neither pandas nor polars: whoever holds one of
their objects has imported them already.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from skdp.core.types import Container, Sample


class Dataset(NamedTuple):
    """Records, with their responses if they have any, weights beside these, and whose they are."""

    X: Container = None
    y: Container = None
    sample_weight: Container = None
    groups: Container = None

    @property
    def named(self) -> dict[str, Any]:
        """The parts that are there, by name."""
        named = zip(self._fields, self, strict=True)
        return {name: part for name, part in named if part is not None}

    @property
    def parts(self) -> tuple[Any, ...]:
        """The parts that are there, in order: what a target is called with."""
        return tuple(part for part in self if part is not None)

    @property
    def n_records(self) -> int:
        """The number of records in X."""
        return n_records(self.X)

    @property
    def lengths(self) -> dict[str, int]:
        """The number of records of each part, by what a part holds."""
        return {getattr(HOLDS, name): n_records(part) for name, part in self.named.items()}

    @property
    def qualities(self) -> tuple[str, ...]:
        """What is said of records that have more than X and y."""
        return () if self.sample_weight is None else ("weighted",)

    def map(self, function: Callable[..., Any], *others: Dataset) -> Dataset:
        """Apply a function to each part that is there, and to the same part of the others."""
        parts = zip(self, *others, strict=True)
        return Dataset(*[None if each[0] is None else function(*each) for each in parts])

    def join(self, others: Dataset) -> Dataset:
        """Return these records and others after them."""
        return self.map(join_records, others)

    def only(self, parts: Dataset) -> Dataset:
        """Leave out the parts that another record of parts lacks."""
        return parts.map(lambda _, part: part, self)

    def take(self, indices: NDArray[np.integer]) -> Dataset:
        """Return the records at `indices`; see :func:`take_records`."""
        return self.map(lambda part: take_records(part, indices))

    def refuse_weights(self) -> None:
        """Refuse records for which no bound on paper is known."""
        if self.sample_weight is not None:
            raise ValueError(
                "A known sensitivity is for records without weights. Got sample_weight. Pass a "
                "SensitivitySampler, with an oracle that yields (X, y, sample_weight)."
            )


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """Records that stay where they lie, in files or a database: a subclass counts them there."""

    shape: tuple[int, int]
    columns: list[str]
    dtypes: list[str]

    def __deepcopy__(self, memo: object) -> Self:
        """Return itself: there is nothing that a target could write into."""
        return self


NAMES = Dataset(*Dataset._fields)
HOLDS = Dataset("records", "responses", "weights", "ids")
"""What each part holds, in words."""


def as_dataset(sample: Sample, source: str = "A dataset", most: int = 3) -> Dataset:
    """Return X, (X, y) or (X, y, sample_weight) as a dataset; the error begins with `source`.

    An oracle may yield a fourth part, which says whose each record is.
    """
    given = sample if isinstance(sample, tuple) else (sample,)
    most = 4 if isinstance(sample, Dataset) else most
    if not 0 < len(given) <= most or given[0] is None:
        got = "None" if sample is None else f"a tuple of {len(given)}"
        raise TypeError(
            f"{source} must be X or a tuple (X, y) or (X, y, sample_weight). Got {got}."
        )
    dataset = Dataset(*map(as_series, given))
    if dataset.y is None and dataset.sample_weight is not None:
        raise TypeError(f"{source} must have y where it has sample_weight. Got y=None.")
    return dataset


def belongs_to(container: Container, *libraries: str) -> bool:
    """Return whether a container is a frame or series of one of these libraries."""
    modules = [sys.modules[library] for library in libraries if library in sys.modules]
    return any(isinstance(container, (each.DataFrame, each.Series)) for each in modules)


def as_series(container: Container) -> Container:
    """Put an index, or the array of a series, into a series of the type that it declares."""
    pandas: Any = sys.modules.get("pandas")
    kinds = () if pandas is None else (pandas.Index, pandas.api.extensions.ExtensionArray)
    if not isinstance(container, kinds) or isinstance(container, pandas.MultiIndex):
        return container
    return pandas.Series(container, dtype=container.dtype)


def n_records(container: Container) -> int:
    """Count the records of a container, or refuse its class: numpy may read a type off entries."""
    if isinstance(container, list):
        return len(container)
    is_array = isinstance(container, np.ndarray | Elsewhere) or sparse.issparse(container)
    if (is_array or belongs_to(container, "pandas", "polars")) and container.shape:
        return container.shape[0]
    kind = type(container)
    name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}".removeprefix("builtins.")
    known = "to_native", "toPandas", "df", "collect", "compute", "to_pandas"
    lines = [f"X.{each}()" for each in known if hasattr(kind, each)]
    raise TypeError(
        "Records must come as a numpy array, a sparse matrix, a pandas or polars frame or series, "
        "or a list; only ClassTables, CountTarget and MeanTarget take a table of an engine. "
        f"Got {name}: convert it, as by {[*lines, 'numpy.asarray(X, dtype=float)'][0]}."
    )


def take_records(container: Container, indices: NDArray[np.integer]) -> Container:
    """Return the records at `indices`, which may repeat, in a new container of the same class."""
    if isinstance(container, np.ndarray):
        return narrowed(container.take(indices, axis=0))
    if sparse.issparse(container):
        taken = container.tocsr()[indices]
        taken = taken if type(taken) is type(container) else type(container)(taken)
        return with_index_dtype(taken, index_dtype(container))
    if belongs_to(container, "pandas"):
        return container.take(indices).reset_index(drop=True)
    if belongs_to(container, "polars"):
        return container[indices]
    n_records(container)  # refuses what holds no records
    taken = [container[index] for index in indices]
    return [row.copy() if isinstance(row, list) else row for row in taken]


def summed_rows(container: Container) -> Container:
    """Return new sparse rows without duplicates and zeros, each sorted and summed by itself.

    Left to itself, scipy sorts all rows where one is unsorted, and so sums others in another order.
    """
    if container.format not in ("csr", "csc"):
        container = container.tocoo(copy=True)
        container.has_canonical_format = True  # else scipy sums here
    rows = container.tocsr(copy=True)
    rows.eliminate_zeros()  # of which another record in a block of a bsr may have made some
    rows.has_sorted_indices = rows.has_canonical_format = False
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def narrowed(array: NDArray) -> NDArray:
    """Make words as wide as the longest one of these, where others may have been longer."""
    kind = array.dtype.kind
    return array.astype(object).astype(kind) if kind in "US" else array


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
    """Validate rows to be transformed, and compare names where both sides have names."""
    names = column_names(X)
    if (names is None) == hasattr(transformer, "feature_names_in_"):
        transformer = copy.copy(transformer)  # scikit-learn would warn, of arrays and of frames
        if names is None:
            del transformer.feature_names_in_
        else:
            transformer.feature_names_in_ = np.asarray(names, dtype=object)
    return validate_data(transformer, X, reset=False, **options)


def n_columns(X: Container) -> int | None:
    """Count the columns of a container; None where a record is not one row of values."""
    shape = getattr(X, "shape", None)
    if shape is None:
        shape = (len(X), *np.shape(X[0])) if len(X) else (0,)
    return shape[1] if len(shape) == 2 else None


def neighboring_pair(dataset: Dataset, position: int = -1) -> tuple[Dataset, Dataset]:
    """Split n+1 records into two datasets of n that differ in one record.

    Both hold records 1 to n-1. The first has record n at `position`, after a swap with the record
    there, and the second has record n+1 in its place; -1 is the last place. The results have the
    same memory layout, but for the width of words, and share no memory with `dataset`, since a
    target may write into them.
    """
    if dataset.n_records < 2:
        raise ValueError("A pair of neighboring datasets is made from at least 2 records.")
    pairs = dataset.map(lambda part: _replace(part, position))
    return pairs.map(lambda pair: pair[0]), pairs.map(lambda pair: pair[1])


def _replace(container: Container, position: int) -> tuple[Container, Container]:
    n = n_records(container) - 1
    if isinstance(container, np.ndarray):  # as below, and much faster for short rows
        base = container[:-1].copy()
        base[[position, -1]] = base[[-1, position]]
        neighbor = base.copy()
        neighbor[position] = container[-1]
        return narrowed(base), narrowed(neighbor)
    indices = np.arange(n)
    indices[[position, -1]] = indices[[-1, position]]
    base = take_records(container, indices)
    indices[position] = n
    return base, take_records(container, indices)
