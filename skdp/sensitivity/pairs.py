"""Evaluating a target on pairs of neighboring datasets, one by one or by the chunk."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from skdp._target import Target, pair_values
from skdp.sensitivity.drawing import draw

# Pair i is drawn under the spawn key (i,), pilot pair i under (i, PILOT).
PILOT = 2


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

    Examples
    --------
    >>> from skdp.sensitivity.pairs import PairOutcome
    >>> PairOutcome(norm=0.5, shape=(), failure=None).norm
    0.5
    """

    norm: float
    shape: tuple[int, ...] | None
    failure: str | None


class NoValueError(Exception):
    """The target failed on a pair; the message is the cause."""


@dataclass(frozen=True)
class PairSource:
    """Where the values of a pair come from: everything but the number of the pair.

    Parameters
    ----------
    target : Target
        What is evaluated.
    oracle : callable
        As returned by `as_oracle`.
    n_samples : int
        Number of records of each dataset.
    seed : int
        Entropy of the sampling.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp._target import FunctionTarget
    >>> from skdp.sensitivity.pairs import PairSource, measure_pair
    >>> source = PairSource(FunctionTarget(np.ptp), lambda n, rng: np.arange(n), 9, seed=0)
    >>> measure_pair(source, abs, pair=0)
    PairOutcome(norm=1.0, shape=(), failure=None)
    """

    target: Target
    oracle: Any
    n_samples: int
    seed: int

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
        records = draw(self.oracle, self.n_samples + 1, rng)
        try:
            value, other = pair_values(self.target, records, target_seed)
        except Exception as error:
            raise NoValueError(_one_line(error)) from error
        if value.shape != other.shape:
            raise NoValueError("the shape of the value changed")
        return value, other


def streams(seed: int, key: tuple[int, ...]) -> tuple[np.random.Generator, int]:
    """Return the generator of the records, and a seed for the target.

    Parameters
    ----------
    seed : int
        Entropy of the sampling.
    key : tuple of int
        What it is for.

    Returns
    -------
    rng : numpy.random.Generator
        Independent of those under other keys.
    target_seed : int
        In [0, 2^31).
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    return rng, int(rng.integers(2**31))


def run_chunk(evaluate: Callable[[int], Any], pairs: range) -> list:
    """Evaluate consecutive pairs: silent, and on one thread, since the workers share the cores.

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
    with threadpool_limits(limits=1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [evaluate(pair) for pair in pairs]


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
    distance = getattr(getattr(norm, "__self__", None), "distance", None)
    size = float(norm(value - other) if distance is None else distance(value, other))
    if not math.isfinite(size):
        return PairOutcome(math.inf, value.shape, "the value is not finite")
    return PairOutcome(size, value.shape, None)


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
        The difference, raveled; None where there is none, or it is not finite.
    """
    try:
        value, other = source.values(pair, PILOT)
    except NoValueError:
        return None
    difference = (value - other).ravel()
    return difference if np.isfinite(difference).all() else None


def summarize(
    outcomes: Sequence[PairOutcome],
) -> tuple[tuple[int, ...] | None, NDArray[np.float64], dict[str, int]]:
    """Take the first pair's shape for the target's, and count a pair of another as failed.

    Parameters
    ----------
    outcomes : sequence of PairOutcome
        In the order of the pairs.

    Returns
    -------
    shape : tuple of int or None
        Shape of the target's value; None when no pair has one.
    norms : ndarray of shape (n_pairs,)
        The sampled sensitivities.
    failures : dict of str to int
        How many pairs failed, by cause.
    """
    shape = next((outcome.shape for outcome in outcomes if outcome.shape is not None), None)
    outcomes = [
        outcome
        if outcome.failure or outcome.shape == shape
        else PairOutcome(math.inf, None, "the shape of the value changed")
        for outcome in outcomes
    ]
    failures = Counter(outcome.failure for outcome in outcomes if outcome.failure)
    return shape, np.array([outcome.norm for outcome in outcomes]), dict(failures)


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 200 else f"{text[:197]}..."
