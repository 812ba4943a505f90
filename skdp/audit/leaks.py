"""Search of an object for what must not leave the house: records, exact numbers, row by row."""

from __future__ import annotations

import gc
import html
import io
import pickle
import re
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from skdp.core.dataset import as_dataset, belongs_to
from skdp.core.types import Container

_LEAST_RECORDS = 8  # fewer could be as many as something else by chance
_LEAST_DIGITS = 8  # so many in a text single a number out among millions


@dataclass(frozen=True, order=True)
class Leak:
    """Something private in an object.

    Parameters
    ----------
    where : str
        The way to it, such as ``"steps[1][1].support_vectors_"``; or ``"pickle"``, ``"repr"``,
        ``"html"``, or the path of a file.
    kind : {"records", "parameters", "one per record"}
        Numbers of the records, numbers that must get noise, or as many entries as records.
    n_found : int
        Number of different numbers, or of entries.

    Examples
    --------
    >>> from skdp.audit import Leak
    >>> Leak("steps[1][1].support_vectors_", "records", 24).kind
    'records'
    """

    where: str
    kind: str
    n_found: int


def find_leaks(
    thing: Any,
    X: Container,
    y: Container = None,
    *,
    parameters: Any = None,
    public: Any = None,
) -> list[Leak]:
    """Search an object for the records that it was made from.

    The search follows all references of the object, and reads its pickle and its text. To find
    nothing proves nothing: a number that was changed in its last bit is another number.

    Parameters
    ----------
    thing : object or pathlib.Path
        A fitted estimator, a plan, a release; or a file or folder, whose bytes are searched.
    X : array-like of shape (n_samples, n_features)
        The records. Numbers with a fractional part are searched for one by one, whole numbers only
        as rows of at least three.
    y : array-like of shape (n_samples,) or None, default=None
        The responses, if they must not be found.
    parameters : object or None, default=None
        An array, or the same estimator fitted without noise, whose numbers with a fractional part
        must not be found.
    public : object or None, default=None
        Public records or fitted objects, whose numbers are no leak.

    Returns
    -------
    list of Leak
        In the order of the object; empty if nothing was found.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import KMeans
    >>> from skdp.audit import find_leaks
    >>> X = np.random.default_rng(0).normal(size=(50, 2))
    >>> model = KMeans(n_clusters=3, random_state=0).fit(X)
    >>> find_leaks(model, X)
    [Leak(where='labels_', kind='one per record', n_found=50)]
    """
    search = _Search(X, y, parameters, public)
    if isinstance(thing, Path):
        files = [thing] if thing.is_file() else sorted(filter(Path.is_file, thing.rglob("*")))
        parts: Iterator[tuple[str, Any]] = ((str(path), path.read_bytes()) for path in files)
    else:
        parts = chain(_walk(thing), _shown(thing))
    found: dict[tuple[str, str], Leak] = {}
    for where, part in parts:
        for kind, n_found in search(part):
            if n_found:
                found.setdefault((where, kind), Leak(where, kind, n_found))
    return list(found.values())


class _Search:
    """Numbers to be found, by kind, their first digits, and rows of whole numbers as bytes."""

    def __init__(self, X: Container, y: Container, parameters: Any, public: Any) -> None:
        dataset = as_dataset((X, y), "The dataset")
        options = parameters.get_params() if hasattr(parameters, "get_params") else {}
        arrays = _arrays(public)
        known = _telling([*arrays, [value for value in options.values() if type(value) is float]])
        records = np.setdiff1d(_telling(_arrays(dataset.parts)), known)
        exact = np.setdiff1d(_telling(_arrays(parameters)), [*known, *records])
        self.numbers = {"records": records, "parameters": exact}
        self.digits = {k: _digits(" ".join(map(repr, v.tolist()))) for k, v in self.numbers.items()}
        self.n_records = dataset.n_records
        rows = set() if len(records) else _rows(_arrays(dataset.X))
        with np.errstate(invalid="ignore"):
            shown = b" ".join(each.astype(k).tobytes() for each in arrays for k in ("<f8", "<i8"))
        self.rows = {row for row in rows if row not in shown}

    def __call__(self, part: Any) -> Iterator[tuple[str, int]]:
        """Search one array, number, text or bytes, and count the entries of a container."""
        if isinstance(part, str):
            written = _digits(part)
            yield from ((kind, len(written & digits)) for kind, digits in self.digits.items())
        elif isinstance(part, bytes | bytearray | float | np.ndarray | np.generic):
            numbers = _numbers_in(part)
            yield from ((kind, _count(each, numbers)) for kind, each in self.numbers.items())
            data = bytes(part) if isinstance(part, bytes | bytearray) else numbers.tobytes()
            yield "records", sum(row in data for row in self.rows)
        if self.n_records >= _LEAST_RECORDS and _length(part) == self.n_records:
            yield "one per record", self.n_records


def _numbers_in(part: Any) -> NDArray[np.float64]:
    """Return the numbers of an array, or doubles of either byte order at any place of bytes."""
    if isinstance(part, bytes | bytearray):
        ends = [len(part) - (len(part) - i) % 8 for i in range(8)]
        words = [np.frombuffer(part[i:end], "<f8") for i, end in enumerate(ends)]
        return np.concatenate([*words, *(each.byteswap() for each in words)])
    array = np.atleast_1d(part)
    while isinstance(array.base, np.ndarray):  # a view leads to all of an array
        array = array.base
    if array.dtype.kind == "V":
        return _numbers_in(array.tobytes())
    return array.astype(np.float64).ravel() if array.dtype.kind in "fiu" else np.empty(0)


def _walk(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield all that an object refers to, once each, with the way to it.

    Modules, their names, code, and classes of libraries are left out.
    """
    seen: dict[int, Any] = {}  # keeps parts alive, or another one might get the same id
    waiting = [("", thing)]
    while waiting:
        where, part = waiting.pop()
        if id(part) in seen or part is None or _is_of_code(part):
            continue
        seen[id(part)] = part
        yield where or type(part).__name__, part
        waiting += [(f"{where}{step}".lstrip("."), each) for step, each in _inside(part)][::-1]


def _is_of_code(part: Any) -> bool:
    """Return whether something is of a program: a module, code, or a class of a library."""
    if isinstance(part, dict):
        return "__builtins__" in part or "__build_class__" in part
    if isinstance(part, type):
        root = part.__module__.partition(".")[0]
        file = getattr(sys.modules.get(root), "__file__", None)
        return root in {"skdp", *sys.stdlib_module_names} or "site-packages" in str(file)
    return isinstance(part, types.ModuleType | types.CodeType)


def _inside(part: Any) -> Iterator[tuple[str, Any]]:
    """Yield the references of one object with the step to each, by name where they have one."""
    attributes = getattr(part, "__dict__", {})
    if isinstance(part, dict):
        yield from [(f"[{key!r:.40}]", each) for key, each in part.items()]
    elif isinstance(part, list | tuple):
        yield from ((f"[{i}]", each) for i, each in enumerate(part))
    elif isinstance(part, np.ndarray) and part.dtype.kind == "O":
        yield from ((f"[{i}]", each) for i, each in enumerate(part.ravel().tolist()))
    yield from [(f".{name}", each) for name, each in attributes.items()]
    with suppress(Exception):  # what has none of these shows no more
        if type(part).__module__.startswith("sklearn.") and not isinstance(part, BaseEstimator):
            yield ".__reduce__()", part.__reduce__()[1:]  # a compiled class
        if belongs_to(part, "pandas", "polars"):
            yield ".to_numpy()", np.asarray(part.to_numpy())
    for each in gc.get_referents(part):
        if each is not attributes:
            yield f".<{type(each).__name__}>", each


def _shown(thing: Any) -> Iterator[tuple[str, Any]]:
    """Yield the texts of an object, and its pickle."""
    shows: dict[str, Callable[[Any], Any]] = {
        "repr": repr,
        "str": str,
        "html": lambda each: html.unescape(each._repr_html_()),
        "pickle": pickle.dumps,
    }
    for name, show in shows.items():
        with suppress(Exception), redirect_stdout(io.StringIO()):  # one that fails leaks nothing
            yield name, show(thing)


def _length(part: Any) -> int:
    """Return the number of entries of a container; tuples are parts of the interpreter, too."""
    if isinstance(part, list | dict | set | frozenset):
        return len(part)
    is_table = isinstance(part, np.ndarray) or sparse.issparse(part)
    return part.shape[0] if is_table and part.shape else 0


def _arrays(thing: Any) -> list[NDArray[np.float64]]:
    """Return all numbers that can be reached from an object, as doubles, in arrays."""
    numeric = (
        part for _, part in _walk(thing) if isinstance(part, float | np.ndarray | np.generic)
    )
    arrays = map(np.asarray, numeric)
    return [each.astype(np.float64) for each in arrays if each.dtype.kind in "fiu"]


def _rows(arrays: list[NDArray[np.float64]]) -> set[bytes]:
    """Return the rows of at least three numbers as bytes, of doubles and of integers."""
    rows = [row for array in arrays if array.ndim == 2 for row in array if len(row) > 2]
    with np.errstate(invalid="ignore"):
        return {row.astype(kind).tobytes() for row in rows for kind in ("<f8", "<i8")}


def _telling(arrays: Sequence[ArrayLike]) -> NDArray[np.float64]:
    """Return the different finite numbers with a fractional part of more than ten bits."""
    numbers = np.concatenate([np.empty(0), *map(np.ravel, arrays)])
    finite = np.unique(numbers[np.isfinite(numbers)])
    short = np.ldexp(finite, 10)
    return finite[(np.abs(finite) < 2.0**53) & (short != np.floor(short))]


def _count(private: NDArray[np.float64], numbers: NDArray[np.float64]) -> int:
    """Count the private numbers among others, or those in single precision if two are adjacent."""
    n_found = int(np.isin(private, numbers).sum())
    among = np.isin(numbers, private.astype(np.float32).astype(np.float64))
    return n_found or (int(among.sum()) if (among[1:] & among[:-1]).any() else 0)


def _digits(text: str) -> set[str]:
    """Return the first digits of all numbers in a text that have so many."""
    digits = (each.replace(".", "").lstrip("0") for each in re.findall(r"\d+\.\d+", text))
    return {each[:_LEAST_DIGITS] for each in digits if len(each) >= _LEAST_DIGITS}
