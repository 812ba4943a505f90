"""Outputs of a mechanism, of any type, as numbers to order and keys to recognize them."""

from __future__ import annotations

import hashlib
import math
import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

MIN_ATOM_COUNT = 5
"""A value seen this often is an atom; outputs from a density do not repeat in double precision."""

MANY_VALUES, STAND_OUT = 1000, 10
"""Among more numbers than these, as of a density in low precision, an atom that stands out is so
many times as frequent as a number on average."""

_NAN_KEY = np.array([np.nan]).view(np.uint64)[0]
_LARGEST = 1e100  # its square is still a number
_EXACT = 2**53


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs of several runs, one row each.

    Numbers and keys are functions of the single output: an audit must not see the other outputs
    in them, as numpy converts a whole sample together.

    Parameters
    ----------
    raw : ndarray of shape (n,) or (n, d)
        Numbers or text, to show.
    values : ndarray of float of shape (n,) or (n, d)
        The nearest doubles; nan where the output is no number.
    keys : ndarray of uint64 of shape (n, d)
        Equal for equal entries: the bits of a double, else a digest of the text. So the two zeros
        are two, all nan are one, and integers beyond 2**53 stay apart.
    written : ndarray of float of shape (n,) or (n, d)
        Numbers whose digits are looked at: the values, or what they were computed from.
    """

    raw: NDArray
    values: NDArray[np.float64]
    keys: NDArray[np.uint64]
    written: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: slice | NDArray) -> Outputs:
        return Outputs(self.raw[index], self.values[index], self.keys[index], self.written[index])

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of runs, and of columns where there are several."""
        return self.values.shape

    @cached_property
    def rows(self) -> NDArray[np.uint64]:
        """One key for each run; a collision would only make a rule weaker."""
        mixed = (self.keys ^ (self.keys >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
        if mixed.shape[1] == 1:
            return mixed[:, 0]
        odd = np.random.default_rng(0).integers(2**63, size=mixed.shape[1], dtype=np.uint64)
        return ((mixed ^ (mixed >> np.uint64(29))) * (2 * odd + np.uint64(1))).sum(axis=1)

    @property
    def features(self) -> NDArray[np.float64]:
        """Numbers to learn from, as a matrix: large ones cut, text by its key, nan left."""
        values = np.clip(self.values.reshape(self.keys.shape), -_LARGEST, _LARGEST)
        is_text = np.isnan(values) & (self.keys != _NAN_KEY)
        return np.where(is_text, self.keys / 2.0**64, values)

    def column(self, j: int) -> Outputs:
        """Return one column."""
        if self.values.ndim == 1:
            return self
        values = self.values[:, j]
        return Outputs(self.raw[:, j], values, self.keys[:, [j]], values)

    @staticmethod
    def joined(x: Outputs, y: Outputs) -> Outputs:
        """Put two samples into one."""
        raws = [x.raw, y.raw]
        if len({raw.dtype.kind == "U" for raw in raws}) == 2:
            raws = [raw.astype(str) for raw in raws]
        values = np.concatenate([x.values, y.values])
        return Outputs(np.concatenate(raws), values, np.concatenate([x.keys, y.keys]), values)


def _as_rows(returned: Any) -> NDArray:
    """Turn what a mechanism returns into an array with one row for each run."""
    try:
        return np.atleast_1d(np.asarray(returned))
    except ValueError:  # rows of different lengths
        return np.array([str(row) for row in returned])


def as_outputs(returned: object) -> Outputs:
    """Read the outputs of a mechanism; complex numbers and records become several columns."""
    if isinstance(returned, Outputs):
        return returned
    array = _flat(_as_rows(returned))
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    values, keys = _read_numbers(array) if array.dtype.kind in "iuf" else _read_entries(array)
    if array.dtype.kind not in "iuf":
        text = np.isnan(values) & (keys != _NAN_KEY) | (keys != _bits(values))
        array = array.astype(str) if text.any() else values
    if array.shape[1] == 1:
        array, values = array[:, 0], values[:, 0]
    return Outputs(array, values, keys, values)


def _flat(array: NDArray) -> NDArray:
    """Return a matrix with one row for each run, of fields, parts and days as numbers."""
    n = len(array)
    if array.dtype.names:
        return np.hstack([_flat(array[name]) for name in array.dtype.names]) if n else array
    if array.dtype.kind == "c":
        array = np.stack([array.real, array.imag], axis=-1)
    elif array.dtype.kind in "mM":
        array = np.where(np.isnat(array), np.nan, array.astype(np.int64).astype(object))
    elif array.dtype.kind == "V":
        array = np.array([entry.tobytes().hex() for entry in array.ravel()]).reshape(array.shape)
    return array.reshape(n, math.prod(array.shape[1:]))


def _bits(values: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the bits of doubles, those of one nan for all of them."""
    bits = np.ascontiguousarray(values).view(np.uint64)
    return np.where(np.isnan(values), _NAN_KEY, bits)


def _read_numbers(array: NDArray) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    with np.errstate(over="ignore"):
        values = array.astype(np.float64)
    keys = _bits(values)
    if array.dtype.kind == "f":
        inexact = (array != values) & ~np.isnan(values) if array.dtype.itemsize > 8 else None
    else:
        inexact = np.abs(values) >= _EXACT
    if inexact is not None and inexact.any():
        keys[inexact] = [_read(entry)[1] for entry in array[inexact].tolist()]
    return values, keys


def _read_entries(array: NDArray) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    known: dict[object, tuple[float, int]] = {}
    values, keys = np.empty(array.shape), np.empty(array.shape, dtype=np.uint64)
    for place, entry in enumerate(array.ravel().tolist()):
        if isinstance(entry, str):
            if entry not in known:
                known[entry] = _read(entry)
            values.flat[place], keys.flat[place] = known[entry]
        else:
            values.flat[place], keys.flat[place] = _read(entry)
    return values, keys


def _read(entry: object) -> tuple[float, int]:
    """Return the nearest double and the key of one entry.

    Text that reads as a number is that number: numpy makes text of the numbers of a sample which
    holds some text, and that depends on the other runs.
    """
    number = _number(entry.item() if isinstance(entry, np.generic | np.ndarray) else entry)
    if number is None:
        return np.nan, _digest(str(entry))
    try:
        value = float(number)
    except OverflowError:
        value = np.inf if number > 0 else -np.inf
    if value == number or value != value:
        return value, int(_bits(np.array([value]))[0])
    return value, _digest(str(number))


def _number(entry: object) -> Any:
    if isinstance(entry, numbers.Real):
        return entry
    if isinstance(entry, bytes):
        entry = entry.decode("latin-1")
    text = str(entry)
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


class AtomTable:
    """The values that repeat in a sample, of any type, and their index in new samples.

    `atoms` are these values, sorted, and `share` is the part of the sample that they make up. With
    `stand_out`, numbers that repeat only because of a low precision are no atoms.
    """

    def __init__(self, sample: Outputs, stand_out: bool = False) -> None:
        unique, first, counts = np.unique(sample.rows, return_index=True, return_counts=True)
        repeated = counts >= MIN_ATOM_COUNT
        if stand_out and len(unique) > MANY_VALUES:
            finite = np.isfinite(sample.values[first]).reshape(len(first), -1).all(axis=1)
            repeated &= ~finite | (counts >= STAND_OUT * len(sample) / len(unique))
        self._keys = unique[repeated]
        atoms = sample[first[repeated]]
        columns = [atoms.column(j) for j in range(atoms.keys.shape[1])]
        order = np.lexsort([part for c in columns[::-1] for part in (c.raw, c.values)])
        self.atoms, self._rank = atoms.raw[order], np.argsort(order)
        self.share = float(counts[repeated].sum() / max(len(sample), 1))

    def __len__(self) -> int:
        return len(self._keys)

    def index(self, sample: Outputs) -> NDArray[np.intp]:
        """Return the index of the atom in each row, -1 where there is none."""
        if not len(self):
            return np.full(len(sample), -1)
        place = np.searchsorted(self._keys, sample.rows).clip(max=len(self) - 1)
        return np.where(self._keys[place] == sample.rows, self._rank[place], -1)
