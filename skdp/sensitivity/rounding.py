"""Records with other last bits. To a rounding these are all, and nothing to what is none."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.dataset import Dataset, belongs_to
from skdp.core.types import Container

_LAST = 0.2  # of the digits: what a thousand operations may lose
_EXACT = 2.0**31  # integers below it, codes and counts, are exact, and so are their sums


def shaken(records: Dataset, rng: Generator) -> Dataset:
    """Return records that differ in their last bits, in the same order: many fits heed it."""
    return records.map(partial(_moved, rng=rng))


def _moved(X: Container, rng: Generator) -> Container:
    if sparse.issparse(X):
        moved = X.copy()
        moved.data = _lessened(X.data, rng)
        return moved
    if belongs_to(X, "pandas", "polars"):
        if len(X.shape) == 1 or len(set(X.columns)) < len(X.columns):
            return X
        columns = {name: X[name] for name in X.columns}
        for name, column in columns.items():
            values = np.asarray(column)
            if values.dtype.kind == "f":
                columns[name] = _lessened(values, rng)
        return type(X)(columns)
    return _lessened(X, rng) if isinstance(X, np.ndarray) else X


def _lessened(values: NDArray, rng: Generator) -> NDArray:
    """Change floats in the last fifth of their digits, toward zero: no range around it is left."""
    if values.dtype.kind != "f":
        return values
    most = np.finfo(values.dtype).eps ** (1 - _LAST)
    exact = (values == np.rint(values)) & (np.abs(values) < _EXACT)
    lessened = values * (1 - rng.uniform(0, most, size=values.shape)).astype(values.dtype)
    return np.where(exact, values, lessened)
