"""Evaluating a target on pairs of neighboring datasets, one by one or by the chunk."""

from __future__ import annotations

import functools
import math
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from types import FrameType
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from threadpoolctl import ThreadpoolController

from skdp.core.dataset import Dataset
from skdp.core.geometry import Geometry
from skdp.core.schema import Schema
from skdp.core.streams import pair_key, pilot_key, streams
from skdp.core.target import LabeledValueError, Target
from skdp.sensitivity.drawing import draw
from skdp.sensitivity.time_limit import OverdueError, within

T = TypeVar("T")

ROUNDING = 2.0**-46
"""Of a value: what a dozen operations and the sum of a thousand numbers may lose."""

NOT_FINITE = "the value is not finite"
SHAPE_CHANGED = "the shape of the value changed"

_raised: list[BaseException] = []
"""By handlers of an interrupt, during the present chunk."""


class PairOutcome(NamedTuple):
    """What is kept of one pair: its norm is infinite where there is a failure."""

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
    """Where the values of a pair come from: everything but the number of the pair.

    `moments` are there where no refit is needed; a `schema` of None leaves the records as drawn;
    `timeout` is in seconds.
    """

    target: Target
    oracle: Any
    n_samples: int
    seed: int
    moments: Any = None
    schema: Schema | None = None
    timeout: float | None = None

    def draw(self, n_records: int, rng: np.random.Generator) -> Dataset:
        """Draw records in the form in which the target gets them."""
        return draw(self.oracle, n_records, rng, schema=self.schema)

    def values(self, *key: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate the target on both datasets of a pair, or raise NoValueError if that fails."""
        try:
            return within(self.timeout, self._values, *key)
        except OverdueError as error:
            raise NoValueError(f"took longer than timeout={self.timeout:g} s") from error

    def _values(self, *key: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rng, target_seed = streams(self.seed, key)
        records = self.draw(self.n_samples + 1, rng)
        position = int(rng.integers(self.n_samples))
        try:
            value, other = self._evaluate(records, position, target_seed)
        except LabeledValueError:
            raise  # it would do so on every pair
        except Exception as error:
            raise NoValueError(_one_line(error)) from error
        finally:
            if _raised:  # whatever the target has made of it
                raise _raised[0]
        if value.shape != other.shape:
            raise NoValueError(SHAPE_CHANGED)
        return value, other

    def _evaluate(self, records: Dataset, position: int, seed: int) -> tuple[NDArray, NDArray]:
        """Evaluate without refits, where that gives a value: there, the order means nothing."""
        if self.moments is not None:
            value, other = self.moments.pair(records)
            if np.isfinite(value).all() and np.isfinite(other).all():
                return value, other
        return self.target.pair_values(records, seed, position)


@contextmanager
def _noted_interrupts() -> Iterator[None]:
    """Note interrupts: some fits catch them, and go on with half a fit."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except BaseException as error:
            _raised.append(error)
            raise

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        _raised.clear()


def evaluate_each(evaluate: Callable[[int], T], pairs: range) -> list[T]:
    """Evaluate pairs one by one."""
    return [evaluate(pair) for pair in pairs]


def run_chunk(evaluate: Callable[[range], T], pairs: range) -> T:
    """Evaluate consecutive pairs: silent, and on one thread, since the workers share the cores."""
    single_thread = _thread_pools(len(sys.modules)).limit(limits=1)
    with (
        single_thread,
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        config_context(),
        _noted_interrupts(),
    ):
        warnings.simplefilter("ignore")  # of each of many fits; the public fit shows them once
        return evaluate(pairs)


@functools.lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Find the thread pools, again only when modules were loaded since: it takes milliseconds."""
    return ThreadpoolController()


def measure_pair(source: PairSource, geometry: Geometry, pair: int) -> PairOutcome:
    """Measure how far the two values of a pair are apart: ``inf`` where there are none."""
    try:
        value, other = source.values(*pair_key(pair))
    except NoValueError as failure:
        return PairOutcome(math.inf, None, str(failure))
    basis = geometry.basis
    if basis.n_pilot_pairs and basis.size not in (None, value.size):  # one that was learned
        return PairOutcome(math.inf, value.shape, SHAPE_CHANGED)
    size = float(geometry.distance(value, other))
    if not math.isfinite(size):
        return PairOutcome(math.inf, value.shape, NOT_FINITE)
    rounding = are_rounding(geometry, value[None], other[None], np.array([size]))
    return PairOutcome(size, value.shape, None, bool(rounding[0]))


def within_rounding(values: NDArray, others: NDArray) -> NDArray[np.bool_]:
    """Return whether rounding explains the difference of two values, number by number.

    That says nothing of its size: no norm may be taken for smaller because of it.
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
    if not geometry.basis.has_prior:
        return found
    # a code may leave out all that does change: rounding, and as much again that it lets through
    return np.logical_or(found, norms <= 2 * geometry.reach(np.where(explained, most, 0.0)))


def measure_pairs(source: PairSource, geometry: Geometry, pairs: range) -> Outcomes:
    """Measure consecutive pairs one by one."""
    return Outcomes.of([measure_pair(source, geometry, pair) for pair in pairs])


def pilot_pair(source: PairSource, pair: int) -> NDArray[np.float64] | None:
    """Return the first value of a pilot pair, raveled, and the whole difference, in two rows.

    None where there is none, or one is not finite. A difference is zero where rounding explains it:
    a basis would take the rounding of a constant for a scale.
    """
    try:
        value, other = source.values(*pilot_key(pair))
    except NoValueError:
        return None
    difference = np.where(within_rounding(value, other), 0.0, value - other)
    rows = np.array([value.ravel(), difference.ravel()])
    return rows if np.isfinite(rows).all() else None


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 200 else f"{text[:197]}..."
