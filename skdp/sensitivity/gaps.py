"""Gaps where public records have none are tried on these, before a budget pays for a failure."""

from __future__ import annotations

from contextlib import suppress
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.checks import shorten
from skdp.core.dataset import Dataset, as_array, belongs_to, n_records, take_records
from skdp.core.dtypes import MisfitError, is_float
from skdp.core.oracle import Oracle
from skdp.core.room import quiet, spare
from skdp.core.schema import Form, Schema
from skdp.core.target import Target
from skdp.core.types import Container
from skdp.sensitivity.drawing import draw

Gaps = dict[tuple[int, type, bool], object]
"""A missing entry of each kind, such as None or a NaN, by its column and whether that is empty."""


def check_gaps(target: Target, dataset: Dataset, schema: Schema, oracle: Oracle | None) -> None:
    """Refuse gaps in columns where the target fails on one, as public records show.

    Of the dataset is learned which columns have gaps. Without an oracle the public records are made
    up. Where the target fails on them without gaps too, nothing is known of these.
    """
    gaps = _gaps(dataset.X)
    if not gaps:
        return
    failure: str | None = None
    with quiet(), suppress(MisfitError):  # not each form can be made up
        public = _public(dataset.n_records, schema, oracle)
        known = _gaps(public.X)
        gaps = {gap: entry for gap, entry in gaps.items() if gap not in known}
        failure = _failure(target, _with_gaps(public, gaps)) if gaps else None
        if failure is not None and _failure(target, _with_gaps(public, {})) is not None:
            failure = None
        if failure is not None:
            fatal = {
                gap: entry
                for gap, entry in gaps.items()
                if _failure(target, _with_gaps(public, {gap: entry})) is not None
            }
            gaps = fatal or gaps
    if failure is not None:
        names = getattr(dataset.X, "columns", None)
        columns = dict.fromkeys(place if names is None else names[place] for place, *_ in gaps)
        raise ValueError(
            f"X has missing entries in the columns {shorten(list(columns))}, and on public records "
            f"with some there the target {failure}. Fill them, by a step of the estimator "
            "or beforehand, and let the oracle yield some."
        )


def _public(n_samples: int, schema: Schema, oracle: Oracle | None) -> Dataset:
    """Draw records from the oracle, or make some up."""
    if oracle is None:
        return Dataset(*(part.made_up(n_samples) for part in schema.parts))
    return draw(oracle, n_samples, np.random.default_rng(0), schema=schema)


def _failure(target: Target, dataset: Dataset) -> str | None:
    """Say how a target fails; None where it returns numbers."""
    try:
        finite = np.isfinite(spare(target)(*dataset.parts, seed=0)).all()
    except (Exception, SystemExit) as error:
        return f"raises {type(error).__name__}"
    return None if finite else "returns a value that is not finite"


def _gaps(X: Container) -> Gaps:
    """Find what is missing; in a sparse container nothing is looked for."""
    with np.errstate(all="ignore"):
        full = isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and np.isfinite(X.sum())
    if full or sparse.issparse(X):
        return {}
    gaps: Gaps = {}
    for place, column in enumerate(_columns(X)):
        rows = np.flatnonzero(_is_missing(column))
        is_empty = len(rows) == len(column)
        for entry in take_records(column, rows if column.dtype == object else rows[:1]):
            gaps.setdefault((place, type(entry), is_empty), entry)
    return gaps


def _columns(X: Container) -> list[Container]:
    if not belongs_to(X, "pandas", "polars"):
        return list(as_array(X).reshape(n_records(X), -1).T)
    if len(X.shape) == 1:
        return [X]
    if belongs_to(X, "polars"):
        return X.get_columns()
    return [X.iloc[:, place] for place in range(X.shape[1])]  # names may repeat


def _is_missing(column: Container) -> NDArray[np.bool_]:
    if belongs_to(column, "pandas"):
        return column.isna().to_numpy()
    if belongs_to(column, "polars"):
        gaps = column.is_null()
        if is_float(column.dtype):
            gaps |= column.is_nan().fill_null(True)
        return gaps.to_numpy()
    if column.dtype.kind == "O":
        return np.array(list(map(_is_no_value, column)), dtype=bool)
    return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=bool)


def _is_no_value(entry: object) -> bool:
    is_nan = isinstance(entry, Real) and entry != entry
    return entry is None or is_nan or type(entry).__name__ in ("NAType", "NaTType")


def _with_gaps(dataset: Dataset, gaps: Gaps) -> Dataset:
    """Copy a dataset, and take entries out of it: columns, or each of another record."""
    copied = dataset.take(np.arange(dataset.n_records))
    form, X = Form.of(copied.X), copied.X
    is_table = belongs_to(X, "pandas", "polars")
    table = None if is_table else as_array(X).reshape(copied.n_records, -1)
    for i, ((place, _, is_empty), entry) in enumerate(gaps.items()):
        rows = slice(None) if is_empty else slice(i % copied.n_records, i % copied.n_records + 1)
        if table is None:
            X = _with_entries(X, place, rows, entry)
        else:
            table[rows, place] = entry
    return copied._replace(X=X if table is None else form.convert(table.reshape(-1, *form.shape)))


def _with_entries(X: Container, place: int, rows: slice, entry: object) -> Container:
    """Put an entry into rows of a frame or series of its own."""
    column = _columns(X)[place]
    if belongs_to(column, "pandas"):
        column = column.copy()
        column.iloc[rows] = entry
        put = getattr(X, "isetitem", None)
    else:
        entries = column.to_list()
        entries[rows] = [entry] * len(entries[rows])
        column = type(column)(column.name, entries, dtype=column.dtype)
        put = getattr(X, "replace_column", None)
    if put is None:
        return column
    put(place, column)
    return X
