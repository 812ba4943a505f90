"""Evaluate a target on pairs of neighboring datasets: by two calls, or by two records.

A pair of two calls draws n_samples + 1 records. Where the target is a sum over the records, and the
oracle draws independent ones, two records make a pair. These come in blocks of a fixed number of
pairs, each with a spawn key of its own. Either way a pair depends on the seed and on its own number
only, and not on chunks, workers or the number of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset
from skdp.core.geometry import Geometry
from skdp.core.interrupts import raise_noted
from skdp.core.schema import Schema
from skdp.core.streams import block_key, pair_key, streams
from skdp.core.target import LabeledValueError, Target
from skdp.sensitivity.drawing import draw, shaken

ROUNDING = 2.0**-46
"""Share of a value that a dozen operations and the sum of a thousand numbers may lose."""

BLOCK_SIZE = 1024
"""Pairs of two records in a block."""

MAX_BATCH = 2**20
"""Numbers that are evaluated at a time (8 MB): wide rows come in smaller batches."""

N_TYPICAL, N_GROUPS = 1000, 5
"""Records that give a typical value, and the groups into which they are split."""

Rows = Callable[..., NDArray[np.float64]]

NOT_FINITE = "the value is not finite"
SHAPE_CHANGED = "the shape of the value changed"


class PairOutcome(NamedTuple):
    """The outcome of one pair; its norm is infinite where there is a failure."""

    norm: float
    shape: tuple[int, ...] | None
    failure: str | None
    is_rounding: bool = False


class Outcomes(NamedTuple):
    """The outcomes of a chunk, in columns: an object per pair would cost more than the pair."""

    norms: NDArray[np.float64]
    shapes: list[tuple[int, ...] | None]
    failures: list[str | None]
    are_rounding: NDArray[np.bool_]

    @classmethod
    def of(cls, outcomes: list[PairOutcome]) -> Outcomes:
        """Collect single outcomes, at least one."""
        norms, shapes, failures, rounding = zip(*outcomes, strict=True)
        sizes = np.array(norms, dtype=np.float64)
        return cls(sizes, list(shapes), list(failures), np.array(rounding, dtype=bool))

    @classmethod
    def of_norms(
        cls,
        norms: NDArray[np.float64],
        shape: tuple[int, ...],
        are_rounding: NDArray[np.bool_],
    ) -> Outcomes:
        """Collect norms of values of one shape; those that are not finite become failures."""
        failures: list[str | None] = [None] * len(norms)
        for pair in np.flatnonzero(~np.isfinite(norms)).tolist():
            failures[pair] = NOT_FINITE
        norms = np.where(np.isfinite(norms), norms, math.inf)
        return cls(norms, [shape] * len(norms), failures, are_rounding)

    @classmethod
    def join(cls, chunks: Iterable[Outcomes]) -> Outcomes:
        """Put chunks behind each other, at least one."""
        norms, shapes, failures, rounding = zip(*chunks, strict=True)
        joined = list(chain.from_iterable(shapes)), list(chain.from_iterable(failures))
        return cls(np.concatenate(norms), *joined, np.concatenate(rounding))


class NoValueError(Exception):
    """The target failed on a pair; the message is the cause."""


@dataclass(frozen=True)
class PairSource:
    """Everything that determines the values of a pair, except the number of the pair.

    A `schema` of None leaves the records as drawn.
    """

    target: Target
    oracle: Any
    n_samples: int
    seed: int
    schema: Schema | None = None

    def draw(self, n_records: int, rng: np.random.Generator) -> Dataset:
        """Draw records in the form in which the target gets them."""
        return draw(self.oracle, n_records, rng, schema=self.schema)

    def values(
        self, *key: int, shake: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate the target on both datasets of a pair, or raise NoValueError if that fails.

        `shake` perturbs the records, which shows the rounding of a value.
        """
        rng, target_seed = streams(self.seed, key)
        records = self.draw(self.n_samples + 1, rng)
        position = int(rng.integers(self.n_samples))
        if shake:
            records = shaken(records, rng)
        try:
            value, other = self.target.pair_values(records, target_seed, position)
        except LabeledValueError:
            raise  # it would do so on every pair
        except Exception as error:
            raise NoValueError(_one_line(error)) from error
        finally:
            raise_noted()
        if value.shape != other.shape:
            raise NoValueError(SHAPE_CHANGED)
        return value, other


def measure_pair(source: PairSource, geometry: Geometry, pair: int) -> PairOutcome:
    """Measure how far the two values of a pair are apart: ``inf`` where there are none."""
    try:
        value, other = source.values(*pair_key(pair))
    except NoValueError as failure:
        return PairOutcome(math.inf, None, str(failure))
    code = geometry.code
    if code is not None and code.n_pilot_pairs and code.size != value.size:  # one that was learned
        return PairOutcome(math.inf, value.shape, SHAPE_CHANGED)
    size = float(geometry.distance(value, other))
    if not math.isfinite(size):
        return PairOutcome(math.inf, value.shape, NOT_FINITE)
    rounding = are_rounding(geometry, value[None], other[None], np.array([size]))
    return PairOutcome(size, value.shape, None, bool(rounding[0]))


def within_rounding(values: NDArray, others: NDArray) -> NDArray[np.bool_]:
    """Return for each number of two values whether rounding explains the difference.

    No norm may be reduced because of it.
    """
    return _explained(values, others, _most_rounding(values, others))


def _explained(values: NDArray, others: NDArray, most: NDArray) -> NDArray[np.bool_]:
    differences = np.abs(values - others)
    return (differences <= most) & np.isfinite(differences)


def _most_rounding(values: NDArray, others: NDArray) -> NDArray[np.float64]:
    return ROUNDING * np.maximum(np.abs(values), np.abs(others))


def are_rounding(
    geometry: Geometry, values: NDArray, others: NDArray, norms: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return whether rounding explains what pairs differ by, as far as a code shows it."""
    most = _most_rounding(values, others)
    explained = _explained(values, others, most)
    found = np.logical_and.reduce(explained.reshape(len(values), -1), axis=1)
    if type(geometry) is not Geometry or geometry.code is None:
        return found
    # a code may leave out all numbers that change, so the norm may be rounding that it lets through
    return np.logical_or(found, norms <= 2 * geometry.code.reach(np.where(explained, most, 0.0)))


def measure_pairs(source: PairSource, geometry: Geometry, pairs: range) -> Outcomes:
    """Measure consecutive pairs one by one."""
    return Outcomes.of([measure_pair(source, geometry, pair) for pair in pairs])


class RecordPairs:
    """Measure pairs of two records, given what each record adds to the value.

    `records` are n_samples + 1 of any dataset of the oracle. What the records that both datasets
    share add to the value is taken from them, the same for all pairs.
    """

    at_once = BLOCK_SIZE

    def __init__(self, source: PairSource, rows: Rows, geometry: Geometry, records: Dataset):
        self.source, self.rows, self.geometry = source, rows, geometry
        self.shared = _typical_value(rows, records)
        self.n_rows = min(BLOCK_SIZE, max(1, MAX_BATCH // max(1, self.shared.size)))

    def __call__(self, pairs: range) -> Outcomes:
        """Measure consecutive pairs."""
        return Outcomes.join(self._measure(pairs))

    def _measure(self, pairs: range) -> Iterator[Outcomes]:
        for block in range(pairs.start // BLOCK_SIZE, -(-pairs.stop // BLOCK_SIZE)):
            rng, _ = streams(self.source.seed, block_key(block))
            records = self.source.draw(2 * BLOCK_SIZE, rng)
            for row in range(0, BLOCK_SIZE, self.n_rows):
                first = block * BLOCK_SIZE + row
                inside = slice(max(pairs.start - first, 0), max(pairs.stop - first, 0))
                places = np.arange(row, min(row + self.n_rows, BLOCK_SIZE))
                if len(places[inside]):  # always the same together: rows may round by batch
                    taken = records.take(np.concatenate([places, BLOCK_SIZE + places]))
                    values, others = np.split(self.shared + self.rows(*taken.parts), 2)
                    yield self._outcomes(values[inside], others[inside])

    def _outcomes(self, values: NDArray, others: NDArray) -> Outcomes:
        norms = self.geometry.distances(values, others)
        rounding = are_rounding(self.geometry, values, others, norms)
        return Outcomes.of_norms(norms, values.shape[1:], rounding)


def _typical_value(rows: Rows, records: Dataset) -> NDArray[np.float64]:
    """Estimate the value from a few records by a median of means, which no outlier moves."""
    n_samples = records.n_records - 1
    groups = np.array_split(np.arange(min(n_samples, N_TYPICAL)), min(n_samples, N_GROUPS))
    means = [rows(*records.take(group).parts).mean(axis=0) for group in groups]
    value = n_samples * np.median(means, axis=0)
    return np.where(np.isfinite(value), value, 0.0)


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 200 else f"{text[:197]}..."
