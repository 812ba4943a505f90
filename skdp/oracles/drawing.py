"""Draw records from an oracle and check them, or perturb their last bits."""

from __future__ import annotations

import copy
from functools import partial

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.dataset import Dataset, as_dataset, belongs_to
from skdp.core.oracle import Oracle
from skdp.core.persons import arrange, count_persons, with_persons
from skdp.core.plain import find_non_finite
from skdp.core.schema import DatasetForm
from skdp.core.types import Container

_LAST = 0.2  # share of the digits that are perturbed
_EXACT = 2.0**31  # smaller integers, such as codes and counts, stay as they are


def draw(
    oracle: Oracle,
    n_samples: int,
    rng: Generator,
    *,
    schema: DatasetForm | None = None,
    full: bool = False,
    allow_nan: bool = False,
    in_order: bool = False,  # of persons: as the oracle yields them
    copied: bool = True,  # else nobody may write into arrays, which may be the oracle's own
) -> Dataset:
    """Ask an oracle for records, check them (`full`: each value), and bring them into a schema."""
    name = f"The oracle {oracle.description}"
    try:
        sample = oracle(n_samples, rng)
    except Exception as error:
        error.add_note(f"Raised by t{name[1:]} when asked for n_samples={n_samples}.")
        raise
    dataset = as_dataset(sample, f"What t{name[1:]} returns", most=4)
    lengths = dataset.lengths
    if dataset.groups is not None:  # whose order means nothing then, whatever that of the rows
        dataset = with_persons(dataset)
        dataset = dataset if in_order else arrange(dataset, rng).dataset
        lengths = {"persons": count_persons(dataset)}
    for what, length in lengths.items():
        if length != n_samples:
            raise ValueError(
                f"{name} returned {length} {what}. It must return n_samples={n_samples}."
            )
    dataset = dataset.map(lambda part: _owned(part, copied))
    if schema is not None:
        dataset, allow_nan = schema.convert(dataset, name), schema.allow_nan
    if full:
        _check_values(dataset, name, allow_nan)
    return dataset


def _owned(container: Container, copied: bool) -> Container:
    """Copy records, since a target may write into them; sparse ones by rows, like private ones."""
    if isinstance(container, np.ndarray):
        return container.copy() if copied else container
    if sparse.issparse(container):
        return container.tocsr(copy=True)
    return copy.deepcopy(container)


def _check_values(dataset: Dataset, name: str, allow_nan: bool) -> None:
    """Refuse missing and infinite numbers; the message may say where, since oracles are public."""
    for part, container in dataset.named.items():
        may_lack = allow_nan and part == "X"
        place = find_non_finite(container, may_lack)
        if place is not None:
            raise ValueError(
                f"{name} returned {part} with a number that is missing or infinite, in {place}. "
                "Leave such records out, or impute them, also by a first step of the pipeline."
            )


def perturbed(records: Dataset, rng: Generator) -> Dataset:
    """Perturb the last bits of the records, to detect values that are only rounding."""
    return records.map(partial(_perturb, rng=rng))


def _perturb(X: Container, rng: Generator) -> Container:
    if sparse.issparse(X):
        moved = X.copy()
        moved.data = _perturb_floats(X.data, rng)
        return moved
    if belongs_to(X, "pandas", "polars"):
        if len(X.shape) == 1 or len(set(X.columns)) < len(X.columns):
            return X
        columns = {name: (X[name], np.asarray(X[name])) for name in X.columns}
        return type(X)(
            {
                name: _perturb_floats(values, rng) if values.dtype.kind == "f" else column
                for name, (column, values) in columns.items()
            }
        )
    return _perturb_floats(X, rng) if isinstance(X, np.ndarray) else X


def _perturb_floats(values: NDArray, rng: Generator) -> NDArray:
    """Change floats in the last fifth of their digits, toward zero, which keeps their ranges."""
    if values.dtype.kind != "f":
        return values
    most = np.finfo(values.dtype).eps ** (1 - _LAST)
    exact = (values == np.rint(values)) & (np.abs(values) < _EXACT)
    lower = values * (1 - rng.uniform(0, most, size=values.shape)).astype(values.dtype)
    return np.where(exact, values, lower)
