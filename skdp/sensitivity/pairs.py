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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from skdp.core.dataset import Dataset
from skdp.core.schema import Schema
from skdp.core.streams import streams
from skdp.core.target import Target
from skdp.sensitivity.drawing import draw

# Pair i is drawn under the spawn key (i,), pilot pair i under (i, PILOT).
PILOT = 2

ROUNDING = 2.0**-46
"""Of a value: what a dozen operations and the sum of a thousand numbers may lose."""

NOT_FINITE = "the value is not finite"

_raised: list[BaseException] = []
"""By handlers of an interrupt, during the present chunk."""


class PairOutcome(NamedTuple):
    """What is kept of one pair.

    Parameters
    ----------
    norm : float in [0, inf]
        The sampled sensitivity.
    shape : tuple of int or None
        Shape of the target's value; None when there is none.
    failure : str or None
        Why the sensitivity is infinite; None when it is not.
    is_rounding : bool, default=False
        Whether the rounding of the two values explains that they differ.

    Examples
    --------
    >>> from skdp.sensitivity.pairs import PairOutcome
    >>> PairOutcome(norm=0.5, shape=(), failure=None).norm
    0.5
    """

    norm: float
    shape: tuple[int, ...] | None
    failure: str | None
    is_rounding: bool = False


class Outcomes(NamedTuple):
    """The outcomes of a chunk, in columns: an object per pair would cost more than the pair.

    Parameters
    ----------
    norms : ndarray of shape (n_pairs,)
        The sampled sensitivities.
    shapes : list of tuple or None
        Shape of the target's value on each pair.
    failures : list of str or None
        Why a sensitivity is infinite.
    are_rounding : ndarray of bool of shape (n_pairs,)
        Whether the rounding of the values explains a sensitivity.

    Examples
    --------
    >>> from skdp.sensitivity.pairs import Outcomes, PairOutcome
    >>> Outcomes.of([PairOutcome(0.5, (2,), None)]).norms
    array([0.5])
    """

    norms: NDArray[np.float64]
    shapes: list[tuple[int, ...] | None]
    failures: list[str | None]
    are_rounding: NDArray[np.bool_]

    @classmethod
    def of(cls, outcomes: list[PairOutcome]) -> Outcomes:
        """Collect single outcomes.

        Parameters
        ----------
        outcomes : list of PairOutcome
            At least one.

        Returns
        -------
        Outcomes
            In their order.
        """
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
        """Collect norms of values of one shape.

        Parameters
        ----------
        norms : ndarray of shape (n_pairs,)
            Those that are not finite become failures.
        shape : tuple of int
            Shape of the values.
        are_rounding : ndarray of bool of shape (n_pairs,)
            Whether the rounding of the values explains a norm.

        Returns
        -------
        Outcomes
            In their order.
        """
        failures: list[str | None] = [None] * len(norms)
        for pair in np.flatnonzero(~np.isfinite(norms)).tolist():
            failures[pair] = NOT_FINITE
        norms = np.where(np.isfinite(norms), norms, math.inf)
        return cls(norms, [shape] * len(norms), failures, are_rounding)

    @classmethod
    def join(cls, chunks: Iterable[Outcomes]) -> Outcomes:
        """Put chunks behind each other.

        Parameters
        ----------
        chunks : iterable of Outcomes
            At least one.

        Returns
        -------
        Outcomes
            In their order.
        """
        norms, shapes, failures, rounding = zip(*chunks, strict=True)
        joined = list(chain.from_iterable(shapes)), list(chain.from_iterable(failures))
        return cls(np.concatenate(norms), *joined, np.concatenate(rounding))


class NoValueError(Exception):
    """The target failed on a pair; the message is the cause."""


@dataclass(frozen=True)
class PairSource:
    """Where the values of a pair come from: everything but the number of the pair.

    Parameters
    ----------
    target : Target
        What is evaluated.
    oracle : Oracle
        As returned by `as_oracle`.
    n_samples : int
        Number of records of each dataset.
    seed : int
        Entropy of the sampling.
    moments : Moments or None, default=None
        How the values follow from moments of the records, where no refit is needed.
    schema : Schema or None, default=None
        The form in which the target gets its records; None leaves them as drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.core.target import FunctionTarget
    >>> from skdp.sensitivity.adapters import as_oracle
    >>> from skdp.sensitivity.pairs import PairSource, measure_pair
    >>> oracle = as_oracle(lambda n, rng: np.arange(n))
    >>> source = PairSource(FunctionTarget(np.ptp), oracle, 9, seed=0)
    >>> measure_pair(source, abs, pair=0)
    PairOutcome(norm=1.0, shape=(), failure=None, is_rounding=False)
    """

    target: Target
    oracle: Any
    n_samples: int
    seed: int
    moments: Any = None
    schema: Schema | None = None

    def draw(self, n_records: int, rng: np.random.Generator) -> Dataset:
        """Draw records in the form in which the target gets them.

        Parameters
        ----------
        n_records : int
            How many.
        rng : numpy.random.Generator
            Where the oracle takes its randomness.

        Returns
        -------
        Dataset
            As from :func:`skdp.sensitivity.drawing.draw`.
        """
        return draw(self.oracle, n_records, rng, schema=self.schema)

    def values(self, *key: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate the target on both datasets of a pair, with the same seed.

        Parameters
        ----------
        *key : int
            Spawn key of the pair.

        Returns
        -------
        tuple of two ndarrays
            The two values, not yet compared.

        Raises
        ------
        NoValueError
            If the target fails, whatever the error.
        """
        rng, target_seed = streams(self.seed, key)
        records = self.draw(self.n_samples + 1, rng)
        position = int(rng.integers(self.n_samples))
        try:
            value, other = self._evaluate(records, position, target_seed)
        except Exception as error:
            raise NoValueError(_one_line(error)) from error
        finally:
            if _raised:  # whatever the target has made of it
                raise _raised[0]
        if value.shape != other.shape:
            raise NoValueError("the shape of the value changed")
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

    def handle(number: int, frame: Any) -> None:
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


def evaluate_each(evaluate: Callable[[int], Any], pairs: range) -> list:
    """Evaluate pairs one by one.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(pair)``.
    pairs : range
        The numbers of the pairs.

    Returns
    -------
    list
        The results, in their order.
    """
    return [evaluate(pair) for pair in pairs]


def run_chunk(evaluate: Callable[[range], Any], pairs: range) -> Any:
    """Evaluate consecutive pairs: silent, and on one thread, since the workers share the cores.

    Parameters
    ----------
    evaluate : callable
        ``evaluate(pairs)``.
    pairs : range
        The numbers of the pairs.

    Returns
    -------
    object
        What `evaluate` returns.
    """
    single_thread = _thread_pools(len(sys.modules)).limit(limits=1)
    with (
        single_thread,
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        _noted_interrupts(),
    ):
        warnings.simplefilter("ignore")
        return evaluate(pairs)


@functools.lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Find the thread pools, again only when modules were loaded since: it takes milliseconds."""
    return ThreadpoolController()


def measure_pair(source: PairSource, norm: Callable[[NDArray], float], pair: int) -> PairOutcome:
    """Measure the difference of the two values of a pair.

    Parameters
    ----------
    source : PairSource
        Where the values come from.
    norm : callable
        A function, or the `norm` of a mechanism: then its `distance` is used.
    pair : int
        Number of the pair.

    Returns
    -------
    PairOutcome
        With the norm ``inf`` where there is none.
    """
    try:
        value, other = source.values(pair)
    except NoValueError as failure:
        return PairOutcome(math.inf, None, str(failure))
    size = distance(norm, value, other)
    if not math.isfinite(size):
        return PairOutcome(math.inf, value.shape, NOT_FINITE)
    return PairOutcome(size, value.shape, None, bool(within_rounding(value, other).all()))


def within_rounding(values: NDArray, others: NDArray) -> NDArray[np.bool_]:
    """Compare two values number by number, of one pair or of many.

    Parameters
    ----------
    values, others : ndarray
        Of the same shape.

    Returns
    -------
    ndarray of bool of that shape
        Whether rounding explains the difference. That says nothing of its size: no norm may be
        taken for smaller because of it.
    """
    differences = np.abs(values - others)
    explained = ROUNDING * np.maximum(np.abs(values), np.abs(others))
    return (differences <= explained) & np.isfinite(differences)


def distance(norm: Callable[[NDArray], float], value: NDArray, other: NDArray) -> float:
    """Measure how far two values are apart.

    Parameters
    ----------
    norm : callable
        A function, or the `norm` of a mechanism: then its `distance` is used.
    value, other : ndarray
        Of the same shape.

    Returns
    -------
    float
        The norm of the difference.
    """
    measure = getattr(getattr(norm, "__self__", None), "distance", None)
    return float(norm(value - other) if measure is None else measure(value, other))


def distances(
    norm: Callable[[NDArray], float], values: NDArray, others: NDArray
) -> NDArray[np.float64]:
    """Measure many distances at once, where the mechanism knows how.

    Parameters
    ----------
    norm : callable
        As for `distance`.
    values, others : ndarray of shape (n_pairs, ...)
        The values of each pair.

    Returns
    -------
    ndarray of shape (n_pairs,)
        Equal to those of `distance` up to rounding.
    """
    measure = getattr(getattr(norm, "__self__", None), "distances", None)
    if measure is not None:
        return measure(values, others)
    return np.array([distance(norm, *pair) for pair in zip(values, others, strict=True)])


def measure_pairs(source: PairSource, norm: Callable[[NDArray], float], pairs: range) -> Outcomes:
    """Measure consecutive pairs one by one.

    Parameters
    ----------
    source : PairSource
        Where the values come from.
    norm : callable
        As for `measure_pair`.
    pairs : range
        The numbers of the pairs.

    Returns
    -------
    Outcomes
        In their order.
    """
    return Outcomes.of([measure_pair(source, norm, pair) for pair in pairs])


def pilot_difference(source: PairSource, pair: int) -> NDArray[np.float64] | None:
    """Return the whole difference of the two values of a pilot pair.

    Parameters
    ----------
    source : PairSource
        Where the values come from.
    pair : int
        Number of the pilot pair.

    Returns
    -------
    ndarray of shape (d,) or None
        The difference, raveled; None where there is none, or it is not finite. It is zero where
        rounding explains it: a basis would take the rounding of a constant for a scale.
    """
    try:
        value, other = source.values(pair, PILOT)
    except NoValueError:
        return None
    difference = np.where(within_rounding(value, other), 0.0, value - other).ravel()
    return difference if np.isfinite(difference).all() else None


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 200 else f"{text[:197]}..."
