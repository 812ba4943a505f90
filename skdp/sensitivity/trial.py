"""Check an oracle before it is used: that it draws, and from its generator.

A private table in an oracle, or an oracle that does not draw at random, makes every guarantee void,
and no sample would show it.
"""

from __future__ import annotations

import functools
import inspect
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.classes import isinstance_by_name, named, slots_of
from skdp.core.dataset import Dataset, as_array, belongs_to
from skdp.core.dtypes import objects
from skdp.core.installed import release_of
from skdp.core.oracle import Oracle
from skdp.core.source import contents, global_names
from skdp.core.types import Container
from skdp.sensitivity.adapters import OracleAdapter

# A legitimate oracle of few possible datasets may repeat one, but not so many times in a row.
MAX_EQUAL = 30

_TREES = named("sklearn.neighbors", "KDTree BallTree")

MAX_WORK = 10**6
"""Steps after which two arrays are taken to share memory: strides can make a riddle of it."""

RELATIVE_ERROR = 1e-6
"""By which numbers of two equal draws may differ: some simulators round by the thread."""


def try_oracle(oracle: Oracle, draw: Callable[[int], Dataset]) -> Dataset:
    """Draw a dataset, and refuse an oracle whose records do not follow from its generator.

    ``draw(attempt)`` asks it for records, with a generator that depends on `attempt` only. What is
    returned is the draw of attempt 0.
    """
    first = draw(0)
    kept = first.take(np.arange(first.n_records))
    if not _are_equal(kept, draw(0)):
        raise ValueError(
            f"The oracle {oracle.description} returned other records for the same rng. It "
            "must take all its randomness from the generator 'rng' that it is called with."
        )
    if all(_are_equal(kept, draw(attempt)) for attempt in range(1, MAX_EQUAL)):
        raise ValueError(
            f"The oracle {oracle.description} returned the same records for {MAX_EQUAL} "
            "generators. It must draw records at random, with the generator 'rng' that it is "
            "called with: the norms of pairs that are all alike promise nothing."
        )
    return kept


def check_is_public(oracle: Oracle | None, dataset: Dataset) -> None:
    """Refuse an oracle that holds the private records themselves; None holds nothing.

    Only identity and shared memory are looked at, so that the answer tells nothing of a value. A
    copy is not recognized.
    """
    if oracle is not None and any(shares_memory(held, dataset) for held in _held(oracle)):
        raise ValueError(
            f"The oracle {oracle.description} holds the private records. What is sampled from them "
            "is not private, and nothing would be promised. An oracle must be made of public "
            "records, or of knowledge. A subset, a sample or a copy of the private records is as "
            "wrong, and is not noticed."
        )


def shares_memory(thing: object, dataset: Dataset) -> bool:
    """Return whether something is a part of a dataset, or a view of one."""
    private = [array for part in dataset.parts for array in _arrays(part)]
    same = any(thing is part for part in dataset.parts)
    return same or any(_overlap(array, other) for array in _arrays(thing) for other in private)


def _held(thing: Any, depth: int = 3) -> Iterator[object]:
    """Yield what an oracle refers to: attributes, also of its class, variables, defaults."""
    while isinstance(thing, OracleAdapter):
        thing = thing.source
    if isinstance(thing, np.ndarray | str | bytes) or sparse.issparse(thing) or depth < 0:
        yield thing
        return
    yield thing
    if belongs_to(thing, "pandas", "polars"):
        return
    parts: list[Any] = []
    if isinstance(thing, functools.partial):
        parts = [thing.func, *thing.args, *thing.keywords.values()]
    elif isinstance(thing, list | tuple | deque) and len(thing) < MAX_EQUAL:
        parts = list(thing)
    elif isinstance(thing, dict):
        parts = list(thing.values())
    elif inspect.ismethod(thing):
        parts = [thing.__self__, thing.__func__]
    elif inspect.isfunction(thing):
        parts = [part for cell in thing.__closure__ or () for part in contents(cell)]
        parts += [thing.__globals__.get(name) for name in global_names(thing.__code__)]
        parts += [*(thing.__defaults__ or ()), *(thing.__kwdefaults__ or {}).values()]
        parts += vars(thing).values()
    elif isinstance(thing, property):
        parts = [thing.fget]
    elif isinstance(thing, staticmethod | classmethod):
        parts = [thing.__func__]
    elif isinstance(thing, type):
        parts = _members(thing)
    elif not inspect.ismodule(thing):
        parts = _members(type(thing))
        for kind in type(thing).__mro__:
            parts += [getattr(thing, name, None) for name in slots_of(kind)]
        parts += getattr(thing, "__dict__", {}).values()
        if isinstance_by_name(thing, *_TREES):  # of a density
            parts += thing.get_arrays()
    for part in parts:
        yield from _held(part, depth - 1)


def _members(kind: type) -> list[Any]:
    """List what stands in a class and its bases, those of installed packages left out."""
    own = (base for base in kind.__mro__ if release_of(base.__module__) is None)
    return [member for base in own for member in vars(base).values()]


def _arrays(container: Container) -> list[NDArray]:
    """Return the arrays in which a container keeps its values, where it shows them."""
    if isinstance(container, np.ndarray):
        return [container]
    if sparse.issparse(container):
        data = getattr(container, "data", None)  # a dictionary of keys has none
        return [data] if isinstance(data, np.ndarray) else []
    if not belongs_to(container, "pandas", "polars"):
        return []
    columns = (
        [container]
        if len(container.shape) == 1
        else [container[name] for name in container.columns]
    )
    found = []
    for column in columns:
        with suppress(Exception):  # a column that is no array shows none
            options = {} if belongs_to(column, "pandas") else {"allow_copy": False}
            found.append(np.asarray(column.to_numpy(**options)))
    return found


def _overlap(array: NDArray, other: NDArray) -> bool:
    if not array.size or not other.size or not np.may_share_memory(array, other):
        return False
    try:
        # numpy takes any int here, and its annotation two of them
        return np.shares_memory(array, other, max_work=MAX_WORK)  # type: ignore[arg-type]
    except np.exceptions.TooHardError:
        return True


def _are_equal(dataset: Dataset, other: Dataset) -> bool:
    parts, others = dataset.parts, other.parts
    return len(parts) == len(others) and all(map(_are_alike, parts, others))


def _are_alike(container: Container, other: Container) -> bool:
    if type(container) is not type(other):
        return False
    if sparse.issparse(container):
        return container.shape == other.shape and abs(container - other).sum() == 0
    arrays = []
    for each in (container, other):
        is_frame = belongs_to(each, "pandas", "polars") and len(each.shape) == 2
        parts = [each[name] for name in each.columns] if is_frame else [each]
        arrays.append(list(map(_entries, parts)))
    return len(arrays[0]) == len(arrays[1]) and all(map(_match, *arrays))


def _entries(container: Container) -> NDArray:
    """Return the entries, with None for those that no comparison may be made with."""
    entries = as_array(container)
    is_series = entries.dtype.kind == "O" and belongs_to(container, "pandas")
    return objects(container) if is_series else entries


def _match(array: NDArray, other: NDArray) -> bool:
    if array.shape != other.shape:
        return False
    if array.dtype.kind in "fc" and other.dtype.kind in "fc":
        return np.allclose(array, other, rtol=RELATIVE_ERROR, atol=0, equal_nan=True)
    return bool(np.all((array == other) | ((array != array) & (other != other))))
