"""Evaluate a target on pairs of neighboring datasets: by two calls, or by two records.

A pair of two calls draws n_samples + 1 records. Where the target is a sum over the records, and the
oracle draws independent ones, two records make a pair. These come in blocks of a fixed number of
pairs, each with a spawn key of its own. Either way a pair depends on the seed and on its own number
only, and not on chunks, workers or the number of pairs.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skdp.core.dataset import Dataset, neighboring_pair
from skdp.core.geometry import Geometry
from skdp.core.oracle import Oracle
from skdp.core.persons import Persons
from skdp.core.room import raise_noted
from skdp.core.schema import DatasetForm
from skdp.core.streams import BLOCK, SpawnKey, streams
from skdp.core.target import LabeledValueError, Target, values_of
from skdp.core.types import Matrix
from skdp.oracles.drawing import draw, perturbed
from skdp.sensitivity.likeness import AlikeTarget
from skdp.sensitivity.store import STORE, Evaluation, key_in_store
from skdp.sensitivity.strata import LAYOUTS, neighbors

ROUNDING = 2.0**-46  # share of a value that a dozen operations or a sum of a thousand may lose
BLOCK_SIZE = 1024  # pairs of two records in a block
MAX_BATCH = 2**20  # numbers evaluated at a time (8 MB): wide rows come in smaller batches
N_TYPICAL, N_GROUPS = 1000, 5  # records that give a typical value, and their groups

# Pilot pairs are kept whole, so their number is limited, and so are their differences (256 MB) and
# values (as many).
MAX_PILOT_PAIRS = 1000
MAX_PILOT_VALUES = 2**25
N_SHAKEN = 5  # pairs, each of which takes four evaluations; the majority decides

Rows = Callable[..., NDArray[np.float64]]
Pilots: TypeAlias = list[NDArray[np.float64] | None]

NOT_FINITE = "the value is not finite"
SHAPE_CHANGED = "the shape of the value changed"


@dataclass(frozen=True)
class PairSource:
    """Everything that determines the values of a pair, except its number."""

    target: Target
    oracle: Oracle
    n_samples: int
    seed: int
    schema: DatasetForm
    kind: SpawnKey = ()  # the rest of the key of its stream
    strata: str | None = None  # with these, it is the number of the pairs of all strata

    @property
    def facts(self) -> tuple[Any, ...]:
        """The fields, from which the store makes its key."""
        return tuple(vars(self).values())

    def __call__(self, pairs: Iterable[int]) -> list[Evaluation]:
        """Evaluate pairs."""
        return [self.evaluate(pair) for pair in pairs]

    def evaluate(self, pair: int, shake: bool = False) -> Evaluation:
        """Evaluate the target on the datasets of a pair; `shake` perturbs the records."""
        rng, target_seed = streams(self.seed, (pair, *self.kind))
        datasets = self.datasets(rng, shake)
        try:
            values = values_of(self.target, datasets, target_seed)
        except LabeledValueError:
            raise  # it would do so on every pair
        except Exception as error:
            return Evaluation(failure=_one_line(error))
        finally:
            raise_noted()
        if len({value.shape for value in values}) > 1:
            return Evaluation(failure=SHAPE_CHANGED)
        return Evaluation(values)

    def datasets(self, rng: Generator, shake: bool = False) -> Iterable[Dataset | Persons]:
        """Draw the datasets of a pair, or of one of each stratum, which are copies."""
        n = self.n_samples + 1
        drawing = partial(draw, self.oracle, n, rng, schema=self.schema, copied=False)
        if self.strata is not None:
            return neighbors(self.strata, self.oracle, drawing, rng)
        records, position = drawing(), int(rng.integers(self.n_samples))
        records = perturbed(records, rng) if shake else records
        if records.groups is None:
            return neighboring_pair(records, position)
        persons, places = Persons.of(records), np.arange(self.n_samples)
        return persons.take(places), persons.take(np.where(places == position, n - 1, places))


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 200 else f"{text[:197]}..."


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcomes of consecutive pairs, in columns; the norm of a failed pair is infinite."""

    norms: NDArray[np.float64]
    shapes: list[tuple[int, ...] | None]
    failures: list[str | None]
    are_rounding: NDArray[np.bool_]

    @classmethod
    def of_values(
        cls,
        geometry: Geometry,
        values: NDArray,
        others: NDArray,
        norms: NDArray[np.float64],
        n_beside: int = 0,
    ) -> Outcomes:
        """Judge the norms of some differences; those that are not finite become failures."""
        finite = np.isfinite(norms)
        failures = [None if each else NOT_FINITE for each in finite.tolist()]
        shapes: list[tuple[int, ...] | None] = [values.shape[1:]] * len(norms)
        changes = norms
        if n_beside:  # these change with any record, and must not hide that nothing else does
            others = np.append(others[:, :-n_beside], values[:, -n_beside:], axis=1)
            changes = geometry.distances(values, others)
        rounding = are_rounding(geometry, values, others, changes)
        return cls(np.where(finite, norms, math.inf), shapes, failures, rounding)

    @classmethod
    def failed(cls, cause: str, n: int, shape: tuple[int, ...] | None = None) -> Outcomes:
        """Return the outcomes of n pairs that failed alike."""
        return cls(np.full(n, math.inf), [shape] * n, [cause] * n, np.zeros(n, dtype=bool))

    @classmethod
    def join(cls, chunks: Iterable[Outcomes]) -> Outcomes:
        """Concatenate chunks, at least one."""
        columns = zip(*[vars(chunk).values() for chunk in chunks], strict=True)
        norms, shapes, failures, rounding = columns
        joined = list(chain.from_iterable(shapes)), list(chain.from_iterable(failures))
        return cls(np.concatenate(norms), *joined, np.concatenate(rounding))

    def with_one_shape(self) -> tuple[tuple[int, ...] | None, NDArray[np.float64], dict[str, int]]:
        """Return the first shape, the norms, and the causes of failures: other shapes fail too."""
        norms, failures = self.norms.copy(), list(self.failures)
        shape = next((shape for shape in self.shapes if shape is not None), None)
        for pair, other in enumerate(self.shapes):
            if other != shape and not failures[pair]:
                norms[pair], failures[pair] = math.inf, SHAPE_CHANGED
        return shape, norms, dict(Counter(failure for failure in failures if failure))


def measure(
    geometry: Geometry,
    evaluations: Iterable[Evaluation],
    strata: str | None = None,
    n_beside: int = 0,
) -> Outcomes:
    """Measure how far the two values of each pair are apart: ``inf`` where there are none."""
    pairs = [each.pair(*both) for each in evaluations for both in LAYOUTS[strata].pairs]
    runs = groupby(pairs, lambda pair: (pair.failure, *(value.shape for value in pair.values)))
    return Outcomes.join(
        [each for _, run in runs for each in _measure(geometry, list(run), n_beside)]
    )


def _measure(geometry: Geometry, pairs: list[Evaluation], n_beside: int) -> Iterator[Outcomes]:
    """Measure pairs that fail alike, or have values of one shape."""
    if pairs[0].failure is not None:
        yield Outcomes.failed(pairs[0].failure, len(pairs))
        return
    value, _ = pairs[0].values
    code = geometry.code
    if code is not None and code.n_pilot_pairs and code.size != value.size:  # one that was learned
        yield Outcomes.failed(SHAPE_CHANGED, len(pairs), value.shape)
        return
    n_rows = max(1, MAX_BATCH // max(1, value.size))
    for first in range(0, len(pairs), n_rows):
        both = [pair.values for pair in pairs[first : first + n_rows]]
        norms = np.array([geometry.distance(*each) for each in both], dtype=np.float64)
        values, others = map(np.array, zip(*both, strict=True))
        yield Outcomes.of_values(geometry, values, others, norms, n_beside)


def within_rounding(values: NDArray, others: NDArray) -> NDArray[np.bool_]:
    """Return for each number whether rounding explains the difference; no norm is reduced."""
    differences = np.abs(values - others)
    return (differences <= _most_rounding(values, others)) & np.isfinite(differences)


def _most_rounding(values: NDArray, others: NDArray) -> NDArray[np.float64]:
    return ROUNDING * np.maximum(np.abs(values), np.abs(others))


def are_rounding(
    geometry: Geometry, values: NDArray, others: NDArray, norms: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return whether rounding explains the difference of each pair, as far as a code shows it."""
    explained = within_rounding(values, others)
    found = np.logical_and.reduce(explained.reshape(len(values), -1), axis=1)
    if geometry.code is None:
        return found
    # a code may leave out all numbers that change, so the norm may be rounding that it lets through
    rounding = np.where(explained, _most_rounding(values, others), 0.0)
    return np.logical_or(found, norms <= 2 * geometry.code.reach(rounding))


class RecordPairs:
    """Measure pairs of two records, given the `rows` of any: what each one adds to the value."""

    def __init__(self, source: PairSource, rows: Rows, geometry: Geometry, records: Dataset):
        self.source, self.rows, self.geometry = source, rows, geometry
        records = self._as_counted(records, lambda: records)
        self.shared = _typical_value(rows, records)  # what all others add, the same for all pairs
        self.n_rows = min(BLOCK_SIZE, max(1, MAX_BATCH // max(1, self.shared.size)))

    def _as_counted(self, records: Dataset, drawn: Callable[[], Dataset]) -> Dataset:
        target = self.source.target
        return target.alike(records, drawn) if isinstance(target, AlikeTarget) else records

    def __call__(self, pairs: range) -> Iterator[Outcomes]:
        """Measure consecutive pairs, as many at a time as fit into memory."""
        source, geometry = self.source, self.geometry
        for block in range(pairs.start // BLOCK_SIZE, -(-pairs.stop // BLOCK_SIZE)):
            rng, _ = streams(source.seed, (block, BLOCK))
            drawn = partial(draw, source.oracle, rng=rng, schema=source.schema, copied=False)
            records = self._as_counted(drawn(2 * BLOCK_SIZE), partial(drawn, BLOCK_SIZE))
            for row in range(0, BLOCK_SIZE, self.n_rows):
                first = block * BLOCK_SIZE + row
                inside = slice(max(pairs.start - first, 0), max(pairs.stop - first, 0))
                places = np.arange(row, min(row + self.n_rows, BLOCK_SIZE))
                if len(places[inside]):  # always the same together: rows may round by batch
                    taken = records.take(np.concatenate([places, BLOCK_SIZE + places]))
                    both = np.split(self.shared + self.rows(*taken.parts), 2)
                    values, others = (each[inside] for each in both)
                    norms = geometry.distances(values, others)
                    yield Outcomes.of_values(geometry, values, others, norms)


def _typical_value(rows: Rows, records: Dataset) -> NDArray[np.float64]:
    """Estimate the value from a few records by a median of means, which no outlier moves."""
    n_samples = records.n_records - 1
    groups = np.array_split(np.arange(min(n_samples, N_TYPICAL)), min(n_samples, N_GROUPS))
    means = [rows(*records.take(group).parts).mean(axis=0) for group in groups]
    value = n_samples * np.median(means, axis=0)
    return np.where(np.isfinite(value), value, 0.0)


def pilot_rows(pairs: Iterable[Evaluation]) -> Pilots:
    """Return value and difference of each pilot pair, raveled; None where it has no numbers."""
    pilots: Pilots = []
    for pair in pairs:
        pilots.append(None)
        if pair.failure is None:
            value, other = pair.values
            # a code would take the rounding of a constant for a scale
            difference = np.where(within_rounding(value, other), 0.0, value - other)
            rows = np.array([value.ravel(), difference.ravel()])
            pilots[-1] = rows if np.isfinite(rows).all() else None
    return pilots


def gather_pilots(
    chunks: Iterable[Pilots], n_pairs: int, most: int = MAX_PILOT_VALUES
) -> tuple[Matrix, Matrix]:
    """Return values and differences of pilot pairs, as many as fit into memory."""
    kept, n_kept = np.empty((2, 0, 0)), 0
    for pair, rows in enumerate(chain.from_iterable(chunks), start=1):
        if rows is not None and rows.size:
            size = rows.shape[1]
            if not n_kept:
                n_pairs = min(n_pairs, max(pair, most // size))
                kept = np.empty((2, n_pairs - pair + 1, size))  # once: it may fill the memory
            if size == kept.shape[2]:
                kept[:, n_kept] = rows
                n_kept += 1
        if pair >= n_pairs:
            break
    values, differences = kept[:, :n_kept]
    return values, differences


def gather_shaken(source: PairSource, size: int) -> tuple[Matrix, Matrix]:
    """Return a few pilot values of `size` numbers, and those of perturbed records."""
    keys, kept = [key_in_store(*source.facts, *kind) for kind in ((), ("shaken",))], []
    for pair in range(N_SHAKEN):
        both = [
            STORE.recall(key, pair, partial(source.evaluate, pair, shake))
            for key, shake in zip(keys, (False, True), strict=True)
        ]
        if all(each.failure is None and each.values[0].size == size for each in both):
            kept.append([each.values[0] for each in both])
    plain, shaken = np.reshape(kept, (-1, 2, size)).swapaxes(0, 1)
    return plain, shaken
