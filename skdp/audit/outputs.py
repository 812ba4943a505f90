"""Outputs of a mechanism, of any type, as numbers to order and keys to recognize them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import Container

MIN_ATOM_COUNT = 5  # a value seen so often is an atom; those of a density do not repeat
MIN_CONTINUOUS = 50  # so many other numbers are taken for a sample of a density
# Among more numbers than these, as of a density in low precision, an atom stands out so many times.
MANY_VALUES, STAND_OUT = 1000, 10

_NAN_KEY = np.array([np.nan]).view(np.uint64)[0]
_LARGEST = 1e100  # its square is still a number
_EXACT = 2**53  # below it each integer is a double


@dataclass(frozen=True, eq=False)
class Outputs:
    """Outputs of several runs: matrices with a row for each run and a column for each entry.

    Each entry follows from the single output, though numpy converts a whole sample together. So the
    two zeros are two, all nan are one, and integers beyond 2**53 stay apart.
    """

    raw: NDArray  # to be shown
    values: NDArray[np.float64]  # the nearest doubles, nan where an entry is no number
    keys: NDArray[np.uint64]  # equal for equal entries: the bits of a double, or a digest of text
    written: NDArray[np.float64]  # the numbers whose digits are looked at

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: slice | NDArray | tuple) -> Outputs:
        return Outputs(self.raw[index], self.values[index], self.keys[index], self.written[index])

    @property
    def n_columns(self) -> int:
        """Number of entries of one output."""
        return self.values.shape[1]

    @cached_property
    def rows(self) -> NDArray[np.uint64]:
        """One key for each run; a collision would only make a rule weaker."""
        mixed = (self.keys ^ (self.keys >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
        if self.n_columns == 1:
            return mixed[:, 0]
        odd = np.random.default_rng(0).integers(2**63, size=self.n_columns, dtype=np.uint64)
        return ((mixed ^ (mixed >> np.uint64(29))) * (2 * odd + np.uint64(1))).sum(axis=1)

    @property
    def features(self) -> NDArray[np.float64]:
        """Numbers to learn from: large ones cut, text by its key, nan left."""
        is_text = np.isnan(self.values) & (self.keys != _NAN_KEY)
        return np.where(is_text, self.keys / 2.0**64, np.clip(self.values, -_LARGEST, _LARGEST))

    def column(self, j: int) -> Outputs:
        """Return one column."""
        values = self.values[:, [j]]
        return Outputs(self.raw[:, [j]], values, self.keys[:, [j]], values)

    @staticmethod
    def joined(x: Outputs, y: Outputs) -> Outputs:
        """Put two samples into one."""
        raws = [x.raw, y.raw]
        if len({raw.dtype.kind == "U" for raw in raws}) == 2:
            raws = [raw.astype(str) for raw in raws]
        values = np.concatenate([x.values, y.values])
        return Outputs(np.concatenate(raws), values, np.concatenate([x.keys, y.keys]), values)


def as_outputs(returned: Container | Outputs) -> Outputs:
    """Read the outputs of a mechanism: numbers, and the text of all else."""
    if isinstance(returned, Outputs):
        return returned
    try:
        array = np.atleast_1d(np.asarray(returned))
    except ValueError:  # rows of different lengths
        array = np.array([[str(row)] for row in returned])
    array = array.reshape(len(array), -1) if array.size else np.zeros((len(array), 1))
    if array.dtype.kind == "b":
        array = array.astype(np.int64)
    if array.dtype.kind in "iuf":
        with np.errstate(over="ignore"):  # long doubles beyond doubles are infinite
            raw, values = array, array.astype(np.float64)
        known = (array.dtype.kind == "f") | (np.abs(values) < _EXACT)
    else:
        raw = np.array([str(entry) for entry in array.ravel().tolist()]).reshape(array.shape)
        values, known = np.empty(array.shape), np.full(array.shape, False)
    digests = np.zeros(array.shape, dtype=np.uint64)
    read = [_read(str(entry)) for entry in array[~known].tolist()]
    values[~known], digests[~known] = [value for value, _ in read], [digest for _, digest in read]
    if not digests.any() and array.dtype.kind not in "iuf":
        raw = values
    bits = np.where(np.isnan(values), _NAN_KEY, np.ascontiguousarray(values).view(np.uint64))
    return Outputs(raw, values, np.where(digests, digests, bits), values)


@lru_cache(maxsize=2**16)
def _read(text: str) -> tuple[float, int]:
    """Return the nearest double of one entry, and a digest of what is no double, else 0."""
    # numpy makes text of all numbers of a sample that holds some text: they are numbers nonetheless
    try:
        value = float({"True": "1", "False": "0"}.get(text, text))
    except ValueError:
        value = np.nan
    else:
        if not text.lstrip("-").isdigit() or int(text) == value:
            return value, 0
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return value, int.from_bytes(digest, "little")


def index_among(known: NDArray, keys: NDArray) -> NDArray[np.intp]:
    """Return the index of each key among known ones, which are sorted; -1 for none of them."""
    if not len(known):
        return np.full(keys.shape, -1)
    place = np.searchsorted(known, keys).clip(max=len(known) - 1)
    return np.where(known[place] == keys, place, -1)


class AtomTable:
    """The values that repeat in a sample, of any type, and their index in new samples."""

    def __init__(self, sample: Outputs) -> None:
        unique, first, counts = np.unique(sample.rows, return_index=True, return_counts=True)
        repeated = counts >= MIN_ATOM_COUNT
        if sample.n_columns == 1 and len(unique) > MANY_VALUES:
            finite = np.isfinite(sample.values[first, 0])
            repeated &= ~finite | (counts >= STAND_OUT * len(sample) / len(unique))
        self._keys = unique[repeated]
        atoms = sample[first[repeated]]
        columns = zip(atoms.raw.T[::-1], atoms.values.T[::-1], strict=True)
        order = np.lexsort([part for column in columns for part in column])
        self.atoms, self._rank = atoms.raw[order], np.argsort(order)
        self.share = float(counts[repeated].sum() / max(len(sample), 1))

    def __len__(self) -> int:
        return len(self._keys)

    def index(self, sample: Outputs) -> NDArray[np.intp]:
        """Return the index of the atom in each row, -1 where there is none."""
        return np.append(self._rank, -1)[index_among(self._keys, sample.rows)]
