"""Whether an object holds what must not leave the house: records, exact numbers, row by row."""

from __future__ import annotations

import pickle
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.audit.reach import arrays_of, shown_of, walk
from skdp.core.dataset import as_dataset, belongs_to
from skdp.core.types import Container

# Fewer records than these could be as many as something else by chance.
_LEAST_RECORDS = 8
# Digits of a number in a text that single it out among millions.
_LEAST_DIGITS = 8
_NUMBER = re.compile(r"[-+]?\d+\.\d+(?:[eE][-+]?\d+)?")
_WHOLE = 2.0**53


@dataclass(frozen=True, order=True)
class Leak:
    """Something private in an object.

    Parameters
    ----------
    where : str
        The way to it, such as ``"steps[1][1].support_vectors_"``, or how it shows:
        ``"pickle"``, ``"repr"``, ``"html"``, or the path of a file.
    kind : {"records", "parameters", "one per record"}
        Numbers of the records, numbers that were to get noise, or as many entries as there are
        records.
    n_found : int
        How many different numbers, or entries.

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

    Looks at everything that can be reached from the object through attributes, slots, items,
    closures, defaults and the states of compiled classes, at its pickle, and at what it shows of
    itself. That nothing is found proves nothing: numbers that were changed in the last bit are not
    recognized. What is found is there.

    Parameters
    ----------
    thing : object or pathlib.Path
        Such as a fitted estimator, a plan or a release; or a file or folder, whose bytes are
        searched.
    X : array-like of shape (n_samples, n_features)
        The records. Numbers with a fractional part tell; whole ones, which anything may hold, do
        only as a whole row of at least three.
    y : array-like of shape (n_samples,) or None, default=None
        The responses, if they must not be found.
    parameters : object or None, default=None
        What was to get noise, such as the same estimator fitted without noise, or an array. Its
        numbers with a fractional part must not be found.
    public : object or None, default=None
        Records or fitted objects that are public: what they hold is no leak.

    Returns
    -------
    list of Leak
        In the order of the object; empty if nothing was found.

    See Also
    --------
    skdp.audit.audit_estimator : Attacks a release by what it does, not by what it holds.

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
    search = _Search.of(X, y, parameters, public)
    if isinstance(thing, Path):
        return sorted(
            leak
            for path in ([thing] if thing.is_file() else sorted(thing.rglob("*")))
            if path.is_file()
            for leak in search.in_bytes(path.read_bytes(), str(path))
        )
    found: dict[tuple[str, str], Leak] = {}
    for where, part in walk(thing):
        for leak in search.in_part(part, where):
            found.setdefault((leak.where, leak.kind), leak)
    for where, shown in shown_of(thing):
        for leak in search.in_text(shown, where):
            found.setdefault((leak.where, leak.kind), leak)
    with suppress(Exception):  # what cannot be pickled cannot leak by that
        for leak in search.in_bytes(pickle.dumps(thing), "pickle"):
            found.setdefault((leak.where, leak.kind), leak)
    return list(found.values())


@dataclass(frozen=True)
class _Search:
    """What is looked for: sorted numbers by kind, and rows of whole numbers."""

    numbers: dict[str, NDArray[np.float64]]
    rows: list[bytes]
    n_records: int

    @classmethod
    def of(cls, X: Container, y: Container, parameters: Any, public: Any) -> _Search:
        dataset = as_dataset((X, y), "The dataset")
        given = parameters.get_params() if hasattr(parameters, "get_params") else {}
        # options such as a tolerance are public
        options = [value for value in given.values() if isinstance(value, float)]
        known = np.unique(np.concatenate([_numbers_in(public), _numbers_in(options)]))
        records = np.setdiff1d(_telling(_numbers_in(dataset.parts)), known)
        exact = np.setdiff1d(np.setdiff1d(_telling(_numbers_in(parameters)), known), records)
        dense = _tables(X)
        rows: list[bytes] = []
        if dense and not len(records) and dense[0].shape[1] > 2:
            tables = [table for _, part in walk(public, beyond=False) for table in _tables(part)]
            for kind in ("<i8", "<f8"):
                given = [table.astype(kind).tobytes() for table in tables]
                own = [row.tobytes() for row in np.unique(dense[0], axis=0).astype(kind)]
                rows += [row for row in own if not any(row in data for data in given)]
        return cls({"records": records, "parameters": exact}, rows, dataset.n_records)

    def in_part(self, part: Any, where: str) -> Iterator[Leak]:
        """Search one array, text, bytes or number, and count the entries of a container."""
        if isinstance(part, bytes | bytearray):
            yield from self.in_bytes(bytes(part), where)
        elif isinstance(part, str):
            yield from self.in_text(part, where)
        elif isinstance(part, float | complex):
            yield from self._in_numbers(np.array([part.real, part.imag]), where)
        for array in arrays_of(part):
            if array.dtype.kind == "O":
                continue  # its entries come one by one
            if array.dtype.kind in "fc":
                parts = (
                    array.view(f"f{array.dtype.alignment}") if array.dtype.kind == "c" else array
                )
                yield from self._in_numbers(np.asarray(parts, dtype=np.float64).ravel(), where)
            elif self.rows or array.dtype.names:
                yield from self.in_bytes(np.ascontiguousarray(array).tobytes(), where)
        if self.n_records >= _LEAST_RECORDS and _length(part) == self.n_records:
            yield Leak(where, "one per record", self.n_records)

    def _in_numbers(self, numbers: NDArray[np.float64], where: str) -> Iterator[Leak]:
        for kind, private in self.numbers.items():
            n_found = int(np.isin(private, numbers).sum())
            single = private.astype(np.float32).astype(np.float64)
            if not n_found and len(numbers) > 1:  # as trees keep them
                n_found = _runs(single, numbers)
            if n_found:
                yield Leak(where, kind, n_found)

    def in_bytes(self, data: bytes, where: str) -> Iterator[Leak]:
        """Search bytes for numbers of either order at any place."""
        for kind, private in self.numbers.items():
            n_found = 0
            for order in "<>":
                patterns = np.sort(private.astype(f"{order}f8").view("u8"))
                for offset in range(8) if len(patterns) else ():
                    words = np.frombuffer(data[offset : len(data) - (len(data) - offset) % 8], "u8")
                    places = np.searchsorted(patterns, words).clip(max=len(patterns) - 1)
                    n_found += len(np.unique(words[patterns[places] == words]))
            if n_found:
                yield Leak(where, kind, n_found)
        n_rows = sum(row in data for row in self.rows)
        if n_rows:
            yield Leak(where, "records", n_rows)

    def in_text(self, text: str, where: str) -> Iterator[Leak]:
        """Search a text for numbers that are written with enough digits."""
        written = [each for each in _NUMBER.findall(text) if _digits(each) >= _LEAST_DIGITS]
        for kind, private in self.numbers.items():
            n_found = sum(_is_among(each, private) for each in set(written))
            if n_found:
                yield Leak(where, kind, n_found)


def _tables(part: Any) -> list[NDArray]:
    """The numeric matrices that a container is made of."""
    return [each for each in arrays_of(part) if each.ndim == 2 and each.dtype.kind in "iuf"]


def _length(part: Any) -> int:
    if (
        isinstance(part, np.ndarray)
        or sparse.issparse(part)
        or belongs_to(part, "pandas", "polars")
    ):
        return part.shape[0] if getattr(part, "ndim", 0) or getattr(part, "shape", ()) else 0
    return len(part) if isinstance(part, list | tuple | dict | set | frozenset) else 0


def _numbers_in(thing: Any) -> NDArray[np.float64]:
    """All floats that can be reached from an object, which may be a part of a larger one."""
    found = [np.empty(0)]
    for _, part in walk(thing, beyond=False):
        if isinstance(part, float):
            found.append(np.array([part]))
        reals = (array for array in arrays_of(part) if array.dtype.kind in "fiu")
        found += [array.astype(np.float64).ravel() for array in reals]
    return np.concatenate(found)


def _telling(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The different finite numbers with a fractional part of some length."""
    finite = np.unique(numbers[np.isfinite(numbers)])
    short = np.ldexp(finite, 10)
    return finite[(np.abs(finite) < _WHOLE) & (short != np.floor(short))]


def _runs(private: NDArray[np.float64], numbers: NDArray[np.float64]) -> int:
    """Count private numbers of single precision, if two of them stand side by side."""
    among = np.isin(numbers, private)
    return int(among.sum()) if (among[1:] & among[:-1]).any() else 0


def _digits(written: str) -> int:
    return len(re.sub(r"[eE].*|[^0-9]", "", written).lstrip("0"))


def _is_among(written: str, numbers: NDArray[np.float64]) -> bool:
    """Return whether one of some sorted numbers is what is written, to its last digit."""
    value = float(written)
    within = abs(value) * 10.0 ** (1 - min(_digits(written), 16))
    place = np.searchsorted(numbers, value - within)
    return bool(place < len(numbers) and numbers[place] <= value + within)
