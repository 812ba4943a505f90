"""Pairs by the chunk: many at once, where a target has moments instead of refits.

Whole datasets are drawn pair by pair, just as for refits, so the norms are those of refits. Only
for a linear target two records make a pair, if the oracle draws independent records. These come
in blocks of a fixed number of pairs, each with a spawn key of its own: a pair still depends
on the seed and on its own number only, and not on chunks, workers or the number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset
from skdp.core.geometry import Geometry
from skdp.core.oracle import has_independent_records
from skdp.core.streams import block_key, streams
from skdp.sensitivity.pairs import (
    Outcomes,
    PairSource,
    are_rounding,
    measure_pair,
    measure_pairs,
)
from skdp.sensitivity.sums import DrawnSums, sums_of_pairs

BLOCK_SIZE = 1024
"""Pairs in a block."""

BATCH = 256
"""Pairs that are evaluated at a time, where each takes whole datasets."""

MAX_BATCH = 2**20
"""Numbers that are evaluated at a time (8 MB): wide sums come in smaller batches."""

BLOCKS_OF_CHUNK, BATCHES_OF_CHUNK = 4, 8
"""How many of them a task evaluates."""

CHUNK_SIZE = 50
"""Pairs that a task evaluates, where each takes whole datasets: long enough that handing out a
task costs little beside it."""

MAX_ORIGIN = 2.0**26
"""In units of a difference, which beside a larger number loses more than 1e-8 of itself."""

TYPICAL = 64
"""Differences whose median is typical."""


def pair_measure(
    pairs: PairSource, geometry: Geometry, records: Dataset
) -> tuple[Callable[[range], Outcomes], int]:
    """Choose how pairs are measured: by refits, or by moments where the target has them.

    Return ``measure(pairs)``, which measures a range of pairs, and how many pairs make a task.
    `records` are n_samples + 1 of any dataset of the oracle.
    """
    if pairs.moments is None:
        return partial(measure_pairs, pairs, geometry), CHUNK_SIZE
    measure = MomentMeasure(pairs, geometry, records)
    n_together = BLOCKS_OF_CHUNK if measure.by_record else BATCHES_OF_CHUNK
    return measure, n_together * measure.at_once


class MomentMeasure:
    """Measures pairs where moments replace refits.

    `records` are n_samples + 1 of any dataset of the oracle.
    """

    def __init__(self, pairs: PairSource, geometry: Geometry, records: Dataset):
        self.pairs = pairs
        self.moments = moments = pairs.moments
        self.geometry = geometry
        self._refits = replace(pairs, moments=None)
        self.by_record = moments.linear and has_independent_records(pairs.oracle)
        common, _ = moments.split(records)
        fitting = max(1, MAX_BATCH // common.size)
        if self.by_record:
            self._origin = self._value_of(common[None])  # so that rounding is that of real values
            self.at_once, self._n_rows = BLOCK_SIZE, min(BLOCK_SIZE, fitting)
        else:
            self.at_once = min(BATCH, fitting)
            self._sums = sums_of_pairs(pairs)

    def __call__(self, pairs: range) -> Outcomes:
        """Measure consecutive pairs."""
        if self.by_record:
            return Outcomes.join(self._measure_by_record(pairs))
        starts = range(0, len(pairs), self.at_once)
        return Outcomes.join(self._measure_batch(pairs[s : s + self.at_once]) for s in starts)

    def _measure_batch(self, pairs: range) -> Outcomes:
        value, other, doubt = self.moments.pairs(*self._sums(pairs), self.pairs.n_samples)
        outcomes = self._outcomes(value, other)
        doubts = self.geometry.reach(doubt)
        # no value here, or an inaccurate one: the refit has one, or says why there is none
        for place in np.flatnonzero(~(doubts <= outcomes.norms)).tolist():
            refitted = measure_pair(self._refits, self.geometry, pairs[place])
            outcomes.norms[place], outcomes.shapes[place] = refitted.norm, refitted.shape
            outcomes.failures[place] = refitted.failure
            outcomes.are_rounding[place] = refitted.is_rounding
        return outcomes

    def _measure_by_record(self, pairs: range) -> Iterator[Outcomes]:
        for block in range(pairs.start // BLOCK_SIZE, -(-pairs.stop // BLOCK_SIZE)):
            rng, _ = streams(self.pairs.seed, block_key(block))
            records = self.pairs.draw(2 * BLOCK_SIZE, rng)
            for row in range(0, BLOCK_SIZE, self._n_rows):
                first = block * BLOCK_SIZE + row
                inside = slice(max(pairs.start - first, 0), max(pairs.stop - first, 0))
                rows = np.arange(row, min(row + self._n_rows, BLOCK_SIZE))
                if len(rows[inside]):
                    yield self._measure_rows(records, block, rows, inside)

    def _measure_rows(self, records: Dataset, block: int, rows: NDArray, inside: slice) -> Outcomes:
        """Measure some pairs of a block: always the same together, as phi may round by batch."""
        places = np.concatenate([rows, BLOCK_SIZE + rows])
        features = self.moments.features(*records.take(places).parts).reshape(2, len(rows), -1)
        values, others = (self.moments.values(each, self.pairs.n_samples) for each in features)
        origin = self._origin
        if self._is_swallowed((values - others)[:TYPICAL]):
            numbers = (block * BLOCK_SIZE + rows[inside]).tolist()
            origin = np.array([self._value_at(number) for number in numbers])
        return self._outcomes(values[inside] + origin, others[inside] + origin)

    def _is_swallowed(self, differences: NDArray[np.float64]) -> bool:
        """Return whether typical differences lose digits beside an origin that is an outlier's."""
        sizes = self.geometry.distances(differences, np.zeros_like(differences))
        sizes = sizes[sizes > 0]
        doubt = np.abs(self._origin)[None] / MAX_ORIGIN
        limit = np.median(sizes) if len(sizes) else np.inf
        return bool(self.geometry.reach(doubt)[0] > limit)

    def _value_at(self, pair: int) -> NDArray[np.float64]:
        """Return the value on records that both datasets of a pair may hold."""
        common, _ = DrawnSums(self.pairs)(range(pair, pair + 1))
        return self._value_of(common)

    def _value_of(self, common: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.nan_to_num(self.moments.values(common, self.pairs.n_samples)[0])

    def _outcomes(self, values: NDArray, others: NDArray) -> Outcomes:
        norms = self.geometry.distances(values, others)
        rounding = are_rounding(self.geometry, values, others, norms)
        return Outcomes.of_norms(norms, values.shape[1:], rounding)
