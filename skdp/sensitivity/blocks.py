"""Pairs by the chunk: many at once, where a target has moments instead of refits.

Whole datasets are drawn pair by pair, just as for refits, so the norms are those of refits. Only
for a linear target two records make a pair, if the oracle draws independent records. These come
in blocks of a fixed number of pairs, block b with spawn key ``(b, BLOCK)``: a pair still depends
on the seed and on its own number only, and not on chunks, workers or the number of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from skdp._data import Dataset
from skdp.sensitivity.drawing import draw
from skdp.sensitivity.pairs import (
    Outcomes,
    PairSource,
    distances,
    measure_pair,
    measure_pairs,
    streams,
)

BLOCK = 3
"""In the spawn key of a block; pair i has (i,), pilot pair i has (i, 2)."""

BLOCK_SIZE = 1024
"""Pairs in a block."""

BLOCKS_OF_CHUNK = 4
"""Blocks that a task evaluates."""

BATCH = 32
"""Pairs that are added up at a time: few, since the memory grows with them."""

BATCHES_OF_CHUNK = 8
"""Batches that a task evaluates."""

CHUNK_SIZE = 50
"""Pairs that a task evaluates, where each takes whole datasets: long enough that handing out a
task costs little beside it."""

Norm = Callable[[NDArray], float]


def pair_measure(
    pairs: PairSource, norm: Norm, records: Dataset
) -> tuple[Callable[[range], Outcomes], int]:
    """Choose how pairs are measured: by refits, or by moments where the target has them.

    Parameters
    ----------
    pairs : PairSource
        Target, oracle, number of records and seed.
    norm : callable
        As for :func:`skdp.sensitivity.pairs.measure_pair`.
    records : tuple of containers of n_samples + 1 records each
        Any dataset of the oracle.

    Returns
    -------
    measure : callable
        ``measure(pairs)`` measures a range of pairs.
    chunk_size : int
        How many pairs make a task.
    """
    if pairs.moments is None:
        return partial(measure_pairs, pairs, norm), CHUNK_SIZE
    measure = MomentMeasure(pairs, norm, records)
    return measure, BLOCKS_OF_CHUNK * BLOCK_SIZE if measure.by_record else BATCHES_OF_CHUNK * BATCH


class MomentMeasure:
    """Measures pairs where moments replace refits.

    Parameters
    ----------
    pairs : PairSource
        Target with moments, oracle, number of records and seed.
    norm : callable
        As for :func:`skdp.sensitivity.pairs.measure_pair`.
    records : tuple of containers of n_samples + 1 records each
        Any dataset of the oracle.

    Attributes
    ----------
    by_record : bool
        Whether two records make a pair.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import AdditiveTarget, UniformOracle
    >>> from skdp.mechanisms.base import l1_norm
    >>> from skdp.sensitivity.blocks import MomentMeasure
    >>> from skdp.sensitivity.pairs import PairSource
    >>> target, X = AdditiveTarget(lambda X: X), np.ones((11, 1))
    >>> source = PairSource(target, UniformOracle([(0, 1)]), 10, 0, target.closed_form(X))
    >>> measure = MomentMeasure(source, l1_norm, (X,))
    >>> measure.by_record, measure(range(1)).norms < 1 / 10
    (True, array([ True]))
    """

    def __init__(self, pairs: PairSource, norm: Norm, records: Dataset):
        moments = pairs.moments
        self.pairs = pairs
        self.moments = moments
        self.norm = norm
        self.by_record = moments.linear and bool(
            getattr(pairs.oracle, "independent_records", False)
        )
        self._origin = np.nan_to_num(moments.pair(records)[0]) if self.by_record else 0.0
        self._table = None
        if not self.by_record and hasattr(pairs.oracle, "draw_indices"):
            self._table = moments.features(*pairs.oracle.table)

    def __call__(self, pairs: range) -> Outcomes:
        """Measure consecutive pairs.

        Parameters
        ----------
        pairs : range
            Their numbers.

        Returns
        -------
        Outcomes
            In their order.
        """
        if self.by_record:
            return Outcomes.join(self._measure_by_record(pairs))
        batches = (pairs[start : start + BATCH] for start in range(0, len(pairs), BATCH))
        return Outcomes.join(map(self._measure_batch, batches))

    def _measure_batch(self, pairs: range) -> Outcomes:
        if self._table is None or self.moments.products:
            sums, last = zip(*map(self._draw_sum, pairs), strict=True)
        else:
            sums, last = self._draw_sums_of_table(pairs)
        values = self.moments.pairs(np.array(sums), np.array(last), self.pairs.n_samples)
        outcomes = self._outcomes(*values)
        for place, failure in enumerate(outcomes.failures):
            if failure:  # no value here: the refit has one, or says why there is none
                refitted = measure_pair(self.pairs, self.norm, pairs[place])
                outcomes.norms[place], outcomes.shapes[place] = refitted.norm, refitted.shape
                outcomes.failures[place] = refitted.failure
        return outcomes

    def _draw_sum(self, pair: int) -> tuple[NDArray, NDArray]:
        """Return the sum over the common records of a pair, and the features of the two others."""
        rng, _ = streams(self.pairs.seed, (pair,))
        n_records = self.pairs.n_samples + 1
        if self._table is None:
            features = self.moments.features(*draw(self.pairs.oracle, n_records, rng))
        else:
            features = self._table.take(self.pairs.oracle.draw_indices(n_records, rng), axis=0)
        return self.moments.sum(features[None, :-2])[0], features[-2:]

    def _draw_sums_of_table(self, pairs: range) -> tuple[NDArray, NDArray]:
        """Do the same for many pairs, by how often each has each record of the table."""
        assert self._table is not None
        counts = np.zeros((BATCH, len(self._table)))  # always as many rows, for the same rounding
        last = np.empty((len(pairs), 2), dtype=np.intp)
        for row, pair in enumerate(pairs):
            rng, _ = streams(self.pairs.seed, (pair,))
            indices = self.pairs.oracle.draw_indices(self.pairs.n_samples + 1, rng)
            counts[row] = np.bincount(indices[:-2], minlength=len(self._table))
            last[row] = indices[-2:]
        return (counts @ self._table)[: len(pairs)], self._table[last]

    def _measure_by_record(self, pairs: range) -> Iterator[Outcomes]:
        n_samples = self.pairs.n_samples
        for block in range(pairs.start // BLOCK_SIZE, -(-pairs.stop // BLOCK_SIZE)):
            start = block * BLOCK_SIZE
            inside = slice(max(pairs.start - start, 0), pairs.stop - start)
            rng, _ = streams(self.pairs.seed, (block, BLOCK))
            records = draw(self.pairs.oracle, 2 * BLOCK_SIZE, rng)
            features = self.moments.features(*records).reshape(2, BLOCK_SIZE, -1)[:, inside]
            values, others = (self.moments.values(each / n_samples, n_samples) for each in features)
            # somewhere near the origin, so that rounding is that of real values
            yield self._outcomes(values + self._origin, others + self._origin)

    def _outcomes(self, values: NDArray, others: NDArray) -> Outcomes:
        return Outcomes.of_norms(distances(self.norm, values, others), values.shape[1:])
