"""Everything that can be reached from an object, and what it shows of itself."""

from __future__ import annotations

import functools
import html
import inspect
import io
import types
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.classes import slots_of
from skdp.core.dataset import belongs_to


def walk(thing: Any, beyond: bool = True) -> Iterator[tuple[str, Any]]:
    """Yield whatever can be reached from an object, once each, with the way to it.

    Code of installed packages and what modules hold are left out; `beyond` tells whether a view of
    a larger array leads to all of it.
    """
    seen: dict[int, Any] = {}
    waiting: list[tuple[str, Any]] = [("", thing)]
    while waiting:
        where, part = waiting.pop()
        if id(part) in seen or part is None or isinstance(part, types.ModuleType):
            continue
        seen[id(part)] = part  # kept alive, or another object might get its id
        yield where or type(part).__name__, part
        steps = _inside(part) if beyond or not isinstance(part, np.ndarray) else _entries(part)
        inner = [(f"{where}{step}".lstrip("."), each) for step, each in steps]
        waiting.extend(reversed(inner))


def _inside(part: Any) -> Iterator[tuple[str, Any]]:
    """What an object refers to, with the step to it."""
    if isinstance(part, str | bytes | bytearray | int | float | complex | range):
        return
    if isinstance(part, np.ndarray):
        yield from _entries(part)
        if part.base is not None:
            yield ".base", part.base
        return
    if sparse.issparse(part) or belongs_to(part, "pandas", "polars"):
        return
    if isinstance(part, dict):
        yield from ((f"[{key!r:.40}]", each) for key, each in list(part.items()))
        yield from ((".keys()", key) for key in list(part))
    elif isinstance(part, list | tuple | set | frozenset):
        yield from ((f"[{i}]", each) for i, each in enumerate(part))
    elif isinstance(part, functools.partial):
        yield from ((".func", part.func), (".args", part.args), (".keywords", part.keywords))
    elif inspect.ismethod(part):
        yield from ((".__self__", part.__self__), (".__func__", part.__func__))
    elif inspect.isfunction(part):
        yield from (
            (f".{name}", getattr(part, name)) for name in ("__defaults__", "__kwdefaults__")
        )
        names = part.__code__.co_freevars
        for name, cell in zip(names, part.__closure__ or (), strict=True):
            with suppress(ValueError):  # empty
                yield f".<{name}>", cell.cell_contents
    elif inspect.isgenerator(part) and part.gi_frame is not None:
        yield ".gi_frame.f_locals", dict(part.gi_frame.f_locals)
    elif hasattr(part, "get_arrays"):  # of a tree of neighbors
        yield ".get_arrays()", part.get_arrays()
    elif isinstance(part, type):
        if part.__module__.split(".")[0] not in {"builtins", "sklearn", "numpy", "scipy", "skdp"}:
            yield from ((f".{name}", each) for name, each in list(vars(part).items()))
        return
    else:
        yield ".__class__", type(part)
        for name in (name for kind in type(part).__mro__ for name in slots_of(kind)):
            with suppress(AttributeError):  # a slot that was never filled
                yield f".{name}", getattr(part, name)
    if not isinstance(part, type):
        yield from (
            (f".{name}", each) for name, each in list(getattr(part, "__dict__", {}).items())
        )
    if getattr(type(part), "__module__", "").startswith("sklearn.") and not hasattr(
        part, "__dict__"
    ):
        with suppress(Exception):  # a compiled class, which keeps its numbers to its pickle
            yield ".__reduce__()", part.__reduce__()[1:]


def _entries(array: NDArray) -> Iterator[tuple[str, Any]]:
    """The objects in an array of objects."""
    if array.dtype.kind == "O":
        yield from ((f"[{i}]", each) for i, each in enumerate(array.ravel().tolist()))


def shown_of(thing: Any) -> Iterator[tuple[str, str]]:
    """What an object says of itself."""
    shows: dict[str, Callable[[Any], str]] = {
        "repr": repr,
        "str": str,
        "html": lambda each: html.unescape(each._repr_html_()),
    }
    for name, show in shows.items():
        # what cannot be shown cannot leak by that
        with suppress(Exception), redirect_stdout(io.StringIO()):
            yield name, show(thing)


def arrays_of(part: Any) -> list[NDArray]:
    """The arrays that a container is made of; none for another object."""
    if isinstance(part, np.ndarray):
        return [part]
    if isinstance(part, np.generic):
        return [np.asarray(part)]
    if sparse.issparse(part):
        return [part.tocoo().data]
    if belongs_to(part, "pandas", "polars") and hasattr(part, "to_numpy"):
        with suppress(Exception):  # a frame that is no array shows none
            whole = np.asarray(part.to_numpy())
            columns = whole.T if whole.dtype.kind == "O" and whole.ndim == 2 else [whole]
            return [np.asarray(column.tolist()) for column in columns]
    if isinstance(part, list | tuple) and part and all(isinstance(each, float) for each in part):
        return [np.array(part)]
    return []
