"""Check that an oracle draws at random, from its generator, and not from the private records.

Without that every guarantee is void, and no sample would show it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.checks import warn
from skdp.core.dataset import Dataset, belongs_to
from skdp.core.oracle import Oracle
from skdp.core.plain import as_array, columns_of
from skdp.core.streams import FIRST_TRIAL, public_key, streams
from skdp.core.types import Container, Estimator
from skdp.exceptions import PrivacyLeakWarning
from skdp.oracles.adapters import OracleAdapter
from skdp.oracles.drawing import draw
from skdp.oracles.persons import PersonsOracle

MAX_EQUAL = 30  # equal draws in a row; a legitimate oracle repeats a dataset less often
MAX_WORK = 10**6  # steps of numpy after which two arrays count as sharing memory
RELATIVE_ERROR = 1e-6  # of two draws from one generator: some simulators round anew each time


def try_oracle(oracle: Oracle, n_samples: int, seed: int) -> Dataset:
    """Return some records, and refuse an oracle whose records ignore its generator."""

    def attempt(number: int) -> Dataset:
        rng, _ = streams(seed, public_key(FIRST_TRIAL + number))
        return draw(oracle, n_samples + 1, rng, in_order=True)

    kept = attempt(0)
    if not _are_equal(kept, attempt(0), RELATIVE_ERROR):
        raise ValueError(
            f"The oracle {oracle.description} returned other records for the same rng. It "
            "must take all its randomness from the generator 'rng' that it is called with."
        )
    if all(_are_equal(kept, attempt(number)) for number in range(1, MAX_EQUAL)):
        raise ValueError(
            f"The oracle {oracle.description} returned the same records for {MAX_EQUAL} "
            "generators. It must draw records at random, with the generator 'rng' that it is "
            "called with."
        )
    return kept


def check_is_public(oracle: Oracle | None, dataset: Dataset) -> None:
    """Refuse an oracle that holds the private records in memory; warn of one that reads them."""
    if oracle is None:
        return
    source: Estimator = oracle
    while isinstance(source, OracleAdapter | PersonsOracle):
        source = source.source
    for name, held in _held(source):
        parts = [held, *held[:MAX_EQUAL]] if isinstance(held, list | tuple) else [held]
        if shares_memory(parts, dataset):
            raise ValueError(
                f"The oracle {oracle.description} holds the private records, in {name}, which "
                "voids the promise. Make it of public records, or of knowledge."
            )
    for name, read in _read(source):
        if any(read is part for part in dataset.parts):
            warn(
                f"The oracle {oracle.description} reads the variable {name!r}, which holds the "
                "private records: the promise is void if it draws from them. Let it read public "
                "records alone, and write out numbers such as that of the columns.",
                PrivacyLeakWarning,
            )


def shares_memory(things: Sequence[object], dataset: Dataset) -> bool:
    """Return whether one of some things is a part of a dataset, or a view of one."""
    if any(thing is part for thing in things for part in dataset.parts):
        return True
    arrays = [array for thing in things for array in _arrays(thing)]
    others = [array for part in dataset.parts for array in _arrays(part)] if arrays else []
    return any(_overlap(array, other) for array in arrays for other in others)


def _held(oracle: Estimator) -> Iterator[tuple[str, object]]:
    """Yield the attributes, defaults and bound arguments of an oracle, with names for them."""
    for name in dir(oracle):
        if not name.startswith("__"):
            with suppress(Exception):  # a property may raise anything
                yield f"the attribute {name.lstrip('_')!r}", getattr(oracle, name)
    with suppress(TypeError, ValueError):  # one that only has `sample`, or is written in C
        for name, parameter in inspect.signature(oracle).parameters.items():
            yield f"the argument {name!r}", parameter.default


def _read(oracle: Estimator) -> Iterator[tuple[str, object]]:
    """Yield the variables that the code of an oracle reads."""
    with suppress(TypeError):  # one that is written in C
        function = oracle if inspect.isfunction(oracle) else type(oracle).__call__
        found = inspect.getclosurevars(function)
        yield from {**found.nonlocals, **found.globals}.items()


def _arrays(container: Container) -> list[NDArray]:
    """Return the arrays in which a container keeps its values, where it shows them."""
    if isinstance(container, np.ndarray):
        return [container]
    if sparse.issparse(container):
        return [container.data] if hasattr(container, "data") else []  # a dok has none
    if hasattr(container, "get_arrays"):  # a tree of a density
        return list(container.get_arrays())
    if not belongs_to(container, "pandas", "polars"):
        return []
    found = []
    for column in columns_of(container):
        with suppress(Exception):  # a column that is no array shows none
            options = {} if belongs_to(column, "pandas") else {"allow_copy": False}
            found.append(np.asarray(column.to_numpy(**options)))
    return found


def _overlap(array: NDArray, other: NDArray) -> bool:
    try:
        # numpy takes any int here, and its annotation two of them
        return np.shares_memory(array, other, max_work=MAX_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _are_equal(dataset: Dataset, other: Dataset, tolerance: float = 0.0) -> bool:
    """Return whether records are the same; of numbers `tolerance` is a relative difference."""
    return all(
        type(a) is type(b) and _match(_entries(a), _entries(b), tolerance)
        for a, b in zip(dataset, other, strict=True)
    )


def _entries(container: Container) -> NDArray:
    """Return the entries, None for those that are missing; of a sparse container its arrays."""
    if sparse.issparse(container):
        rows = container.tocsr()
        return np.concatenate([rows.indptr, rows.indices, rows.data])
    return as_array(container)


def _match(array: NDArray, other: NDArray, tolerance: float) -> bool:
    if array.shape != other.shape:
        return False
    if array.dtype.kind in "fc" and other.dtype.kind in "fc":
        return np.allclose(array, other, rtol=tolerance, atol=0, equal_nan=True)
    return bool(np.all((array == other) | ((array != array) & (other != other))))
