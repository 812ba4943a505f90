"""Sums over the records of a pair, for targets that are functions of moments.

The records of a pair are those that refits would see. An oracle that resamples a public table only
says which of its records they are; then how often each occurs, times the statistics of the table,
is the sum, and many pairs are one product of matrices.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.streams import pair_key, streams, streams_of_pairs
from skdp.sensitivity.pairs import PairSource
from skdp.sensitivity.public_data import PublicDataOracle

MAX_TABLE = 2**22
"""Numbers of a table of statistics, and of counts (32 MB each); beyond it records are drawn."""

MAX_LARGER = 20
"""Of a table with more times the records of a dataset, most would be counted in vain."""

N_ROWS = 64
"""Pairs that are counted at a time: few, so that the counts stay in the cache."""

Sums = tuple[NDArray[np.float64], NDArray[np.float64]]


def sums_of_pairs(pairs: PairSource) -> DrawnSums | TableSums:
    """Choose how the sums are computed."""
    oracle, moments = pairs.oracle, pairs.moments
    if type(oracle) is not PublicDataOracle:  # a subclass may do more with its rows
        return DrawnSums(pairs)
    first = _table(pairs, np.arange(1))
    width = moments.features(*first).shape[1]
    n_statistics = width * (width + 1) // 2 if moments.products else width
    n_listed = n_records(oracle.table[0])
    too_large = (
        n_listed > MAX_LARGER * pairs.n_samples or n_listed * max(n_statistics, N_ROWS) > MAX_TABLE
    )
    return DrawnSums(pairs) if too_large else TableSums(pairs)


def _table(pairs: PairSource, rows: NDArray[np.intp] | None = None) -> Dataset:
    """Return the public table, or some rows of it, as the target gets its records."""
    table = pairs.oracle.table
    if rows is not None:
        table = tuple(take_records(container, rows) for container in table)
    owner = f"The oracle {pairs.oracle.description}"
    return table if pairs.schema is None else pairs.schema.convert(table, owner)


class DrawnSums:
    """Sums over records as an oracle draws them, pair by pair."""

    def __init__(self, pairs: PairSource):
        self._pairs = pairs

    def __call__(self, pairs: range) -> Sums:
        """Return the sums over the common records, and the features of the two others.

        Both are for :meth:`Moments.pairs`.
        """
        common, last = zip(*map(self._sum, pairs), strict=True)
        return np.array(common), np.array(last)

    def _sum(self, pair: int) -> Sums:
        source = self._pairs
        rng, _ = streams(source.seed, pair_key(pair))
        return source.moments.split(source.draw(source.n_samples + 1, rng))


class TableSums:
    """Sums over records of a public table, by how often each of them is drawn."""

    def __init__(self, pairs: PairSource):
        self._pairs = pairs
        self._features = pairs.moments.features(*_table(pairs))
        self._statistics = self._features
        self._unpack: Any = ...
        if pairs.moments.products:  # symmetric: half of the products tell all
            width = self._features.shape[1]
            rows, columns = np.triu_indices(width)
            self._statistics = self._features[:, rows] * self._features[:, columns]
            self._unpack = np.empty((width, width), dtype=np.intp)
            self._unpack[rows, columns] = self._unpack[columns, rows] = np.arange(len(rows))

    def __call__(self, pairs: range) -> Sums:
        """Do as :class:`DrawnSums`, up to rounding."""
        n_drawn, n_listed = self._pairs.n_samples + 1, len(self._features)
        generators = streams_of_pairs(self._pairs.seed, pairs)
        indices_at = self._pairs.oracle.indices_at
        common = np.empty((len(pairs), self._statistics.shape[1]))
        last = np.empty((len(pairs), 2), dtype=np.intp)
        uniform = np.empty((N_ROWS, n_drawn))
        indices = np.empty((N_ROWS, n_drawn), dtype=np.intp)
        counts = np.empty((N_ROWS, n_listed))
        first_of_row = np.arange(0, counts.size, n_listed)[:, None]
        for start in range(0, len(pairs), N_ROWS):
            rows = slice(start, min(start + N_ROWS, len(pairs)))
            n_rows = rows.stop - start
            for row, rng in enumerate(islice(generators, n_rows)):
                rng.random(out=uniform[row])
            places = indices[:n_rows]
            indices_at(uniform[:n_rows], places)
            last[rows] = places[:, -2:]
            places += first_of_row[:n_rows]
            counts.fill(0.0)
            np.add.at(counts.reshape(-1), places.reshape(-1), 1.0)
            np.subtract.at(counts.reshape(-1), places[:, -2:].reshape(-1), 1.0)
            # always as many rows, since their number may decide how a sum is rounded
            common[rows] = (counts @ self._statistics)[:n_rows]
        return common[:, self._unpack], self._features[last]
