"""Records with other last bits. To a rounding these are all, and nothing to what is none."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.dataset import Dataset, belongs_to
from skdp.core.types import Container

_MOST_ULPS = 64  # what a dozen operations and the sum of a thousand numbers may lose
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
    """Move floats toward zero by a few of their last bits; none leaves a range around it."""
    if values.dtype.kind != "f":
        return values
    ulps = rng.integers(_MOST_ULPS + 1, size=values.shape).astype(values.dtype)
    exact = (values == np.rint(values)) & (np.abs(values) < _EXACT)
    return np.where(exact, values, values * (1 - ulps * np.finfo(values.dtype).eps))
