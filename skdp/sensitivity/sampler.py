"""The sensitivity sampler: how much the target changes on neighboring datasets of an oracle."""

from __future__ import annotations

import math
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from skdp._data import Dataset, Schema, neighboring_pair
from skdp._target import Target, as_target
from skdp.sensitivity.calibration import OrderStatistic, order_statistic
from skdp.sensitivity.drawing import as_oracle, describe_oracle, draw
from skdp.sensitivity.estimate import SensitivityEstimate

# Pairs a task evaluates: long enough that handing out a task costs little beside it.
CHUNK_SIZE = 50

# Spawn keys. Pair i uses (i,), which no longer key collides with.
PUBLIC_DATASET = (0, 1)


class _PairOutcome(NamedTuple):
    """What is kept of one pair."""

    norm: float
    shape: tuple[int, ...] | None
    failure: str | None


@dataclass(frozen=True)
class SamplingPlan:
    """What a sampler would run, and what it would promise.

    Parameters
    ----------
    order_statistic : OrderStatistic
        How many pairs, which order statistic, and the promise.
    n_samples : int
        Number of records of each dataset of a pair.
    oracle : str
        Description of the source of records.

    Attributes
    ----------
    n_evaluations : int
        How often the target would be evaluated: twice a pair.

    Examples
    --------
    >>> from skdp import SensitivitySampler, UniformOracle
    >>> plan = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.05).plan(n_samples=100)
    >>> plan.n_evaluations
    398
    """

    order_statistic: OrderStatistic
    n_samples: int
    oracle: str

    @property
    def n_evaluations(self) -> int:
        """How often the target would be evaluated: twice a pair."""
        return 2 * self.order_statistic.n_pairs

    def __str__(self) -> str:
        return (
            f"{self.order_statistic.n_pairs} pairs of datasets of {self.n_samples} records from "
            f"{self.oracle}, {self.n_evaluations} evaluations of the target. {self.order_statistic}"
        )


class SensitivitySampler(BaseEstimator):
    """Sample how much a target changes when one record changes.

    Each pair draws ``n_samples + 1`` records from the oracle. The first dataset holds all but the
    last of them, the second has the last one in place of the one before it. The target is
    evaluated on both, and the norm of the difference is one sampled sensitivity. The estimate is
    an order statistic of these norms, chosen so that a further pair exceeds it with probability at
    most gamma (algorithm 1 of [1]_, with three rules for the order statistic).

    A pair on which the target cannot be evaluated counts as an infinite sensitivity.

    Parameters
    ----------
    oracle : callable, frozen scipy.stats distribution or fitted estimator with `sample`
        Source of plausible, non-sensitive records: ``oracle(n_samples, rng)`` returns X or (X, y).
        It must not be derived from the private data.
    gamma : float in (0, 1) or None, default=0.05
        Probability that a pair drawn from the oracle is not covered. None takes the smallest that
        `n_pairs` attains.
    n_pairs : int or None, default=None
        Number of pairs. None takes as many as `gamma` needs.
    calibration : {"exact", "dkw", "conditional"}, default="exact"
        Which statement gamma is part of; see :func:`skdp.order_statistic`.
    confidence : float in (0, 1) or None, default=None
        Confidence of the "conditional" calibration.
    n_jobs : int or None, default=None
        Number of parallel workers, as in scikit-learn. The norms do not depend on it.
    verbose : int, default=0
        If positive, show a progress bar where tqdm is installed, and a line at the end where not.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Seed of the sampling, which is public. None draws a fresh one. It is recorded in the
        estimate either way.

    See Also
    --------
    skdp.PrivateEstimator : Fits an estimator and adds noise calibrated to the estimate.

    References
    ----------
    .. [1] Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
       ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import SensitivitySampler, UniformOracle
    >>> from skdp.mechanisms.base import l1_norm
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.1, random_state=0)
    >>> estimate = sampler.sample(np.mean, n_samples=100, norm=l1_norm)
    >>> 0.005 < estimate.value < 0.01
    True
    """

    def __init__(
        self,
        oracle: Any,
        *,
        gamma: float | None = 0.05,
        n_pairs: int | None = None,
        calibration: str = "exact",
        confidence: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: Any = None,
    ):
        self.oracle = oracle
        self.gamma = gamma
        self.n_pairs = n_pairs
        self.calibration = calibration
        self.confidence = confidence
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def plan(self, n_samples: int) -> SamplingPlan:
        """Say what would be run, and what it would promise, without running it.

        Parameters
        ----------
        n_samples : int
            Number of records of the private dataset.

        Returns
        -------
        SamplingPlan
            The order statistic, the oracle and the number of evaluations.

        Raises
        ------
        ValueError
            If no order statistic gives the promise asked for; the message names what is attainable.
        TypeError
            If the oracle is none.
        """
        if n_samples < 1:
            raise ValueError(
                "The 'n_samples' parameter of SensitivitySampler.plan must be at least 1. "
                f"Got {n_samples!r}."
            )
        statistic = order_statistic(
            self.gamma,
            self.n_pairs,
            calibration=self.calibration,
            confidence=self.confidence,
            owner=type(self).__name__,
        )
        return SamplingPlan(statistic, n_samples, describe_oracle(as_oracle(self.oracle)))

    def sample(
        self,
        target: Callable,
        n_samples: int,
        norm: Callable[[NDArray], float],
        schema: Schema | None = None,
    ) -> SensitivityEstimate:
        """Sample the sensitivity of a target.

        Parameters
        ----------
        target : Target or callable
            What is to be released: ``target(X)`` or ``target(X, y)``.
        n_samples : int
            Number of records of the private dataset.
        norm : callable
            ``norm(difference)`` of the mechanism that will add the noise.
        schema : Schema or None, default=None
            The columns of the private dataset, which the oracle's must match.

        Returns
        -------
        SensitivityEstimate
            The estimate with all sampled norms. Its value is ``inf`` when too many pairs failed.

        Raises
        ------
        ValueError
            As :meth:`plan`, or if the oracle returns something else than the records asked for.
        """
        plan = self.plan(n_samples)
        target = as_target(target)
        oracle = as_oracle(self.oracle)
        seed = self._entropy()
        rng, _ = _streams(seed, (0,))
        draw(oracle, n_samples + 1, rng, reference=schema, full=True)  # refuses before the fits
        measure = delayed(_measure_chunk)
        tasks = (
            measure(target, oracle, n_samples, norm, seed, chunk)
            for chunk in _chunks(plan.order_statistic.n_pairs, CHUNK_SIZE)
        )
        chunks = Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks)
        outcomes = list(_with_progress(chunks, plan, self.verbose))
        shape, norms, failures = _summarize(outcomes)
        return SensitivityEstimate(
            norms=norms,
            order_statistic=plan.order_statistic,
            n_samples=n_samples,
            norm_name=_norm_name(norm),
            target=target.description,
            shape=shape,
            oracle=plan.oracle,
            seed=seed,
            failures=failures,
        )

    def with_fixed_seed(self) -> SensitivitySampler:
        """Return the same sampler with its seed drawn.

        Returns
        -------
        SensitivitySampler
            All that it draws, now or later, follows from its `random_state`, an integer.
        """
        parameters = self.get_params(deep=False) | {"random_state": self._entropy()}
        return type(self)(**parameters)

    def public_dataset(
        self, n_samples: int, schema: Schema | None = None, attempt: int = 0
    ) -> Dataset:
        """Draw one dataset from the oracle, apart from all pairs.

        Parameters
        ----------
        n_samples : int
            Number of records.
        schema : Schema or None, default=None
            The columns of the private dataset, which the oracle's must match.
        attempt : int, default=0
            Another number gives another dataset.

        Returns
        -------
        tuple
            ``(X,)`` or ``(X, y)``.

        Raises
        ------
        ValueError
            If the oracle returns something else than the records asked for.
        """
        rng, _ = _streams(self._entropy(), (*PUBLIC_DATASET, attempt))
        return draw(as_oracle(self.oracle), n_samples, rng, reference=schema, full=True)

    def _entropy(self) -> int:
        if isinstance(self.random_state, Integral):
            if self.random_state < 0:
                raise ValueError(
                    "The 'random_state' parameter of SensitivitySampler must not be negative. "
                    f"Got {self.random_state}."
                )
            return int(self.random_state)
        if self.random_state is None:
            return int(np.random.SeedSequence().entropy)  # type: ignore[arg-type]
        if hasattr(self.random_state, "bytes"):
            return int.from_bytes(self.random_state.bytes(16), "little")
        raise ValueError(
            "The 'random_state' parameter of SensitivitySampler must be None, an integer, a "
            f"numpy Generator or a RandomState. Got {self.random_state!r}."
        )


def _streams(seed: int, key: tuple[int, ...]) -> tuple[np.random.Generator, int]:
    """Return the generator of the records, and a seed for the target."""
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
    return rng, int(rng.integers(2**31))


def _measure_chunk(
    target: Target,
    oracle: Any,
    n_samples: int,
    norm: Callable[[NDArray], float],
    seed: int,
    pairs: range,
) -> list[_PairOutcome]:
    """Measure consecutive pairs: silent, and on one thread, since the workers share the cores."""
    with threadpool_limits(limits=1), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [_measure_pair(target, oracle, n_samples, norm, seed, pair) for pair in pairs]


def _measure_pair(
    target: Target,
    oracle: Any,
    n_samples: int,
    norm: Callable[[NDArray], float],
    seed: int,
    pair: int,
) -> _PairOutcome:
    rng, target_seed = _streams(seed, (pair,))
    dataset, neighbor = neighboring_pair(draw(oracle, n_samples + 1, rng))
    try:
        value = target(*dataset, seed=target_seed)
        other = target(*neighbor, seed=target_seed)
    except Exception as error:  # whatever it is, the target has no value here
        return _PairOutcome(math.inf, None, _one_line(error))
    if value.shape != other.shape:
        return _PairOutcome(math.inf, None, "the shape of the value changed")
    size = float(norm(value - other))
    if not math.isfinite(size):
        return _PairOutcome(math.inf, value.shape, "the value is not finite")
    return _PairOutcome(size, value.shape, None)


def _summarize(
    outcomes: Sequence[_PairOutcome],
) -> tuple[tuple[int, ...] | None, NDArray[np.float64], dict[str, int]]:
    """Take the first pair's shape for the target's, and count a pair of another as failed."""
    shape = next((outcome.shape for outcome in outcomes if outcome.shape is not None), None)
    outcomes = [
        outcome
        if outcome.failure or outcome.shape == shape
        else _PairOutcome(math.inf, None, "the shape of the value changed")
        for outcome in outcomes
    ]
    failures = Counter(outcome.failure for outcome in outcomes if outcome.failure)
    return shape, np.array([outcome.norm for outcome in outcomes]), dict(failures)


def _chunks(n_pairs: int, size: int) -> Iterable[range]:
    return (range(start, min(start + size, n_pairs)) for start in range(0, n_pairs, size))


def _with_progress(
    chunks: Iterable[list[_PairOutcome]], plan: SamplingPlan, verbose: int
) -> Iterable[_PairOutcome]:
    """Flatten the chunks, showing how far they are."""
    if not verbose:
        yield from chain.from_iterable(chunks)
        return
    try:
        from tqdm.auto import tqdm
    except ImportError:
        yield from chain.from_iterable(chunks)
        print(f"SensitivitySampler: {plan}", file=sys.stderr)
        return
    with tqdm(total=plan.order_statistic.n_pairs, desc="SensitivitySampler", unit="pair") as bar:
        for chunk in chunks:
            yield from chunk
            bar.update(len(chunk))


def _norm_name(norm: Callable) -> str:
    """Name the norm: by its mechanism when it is a method of one, else by the function."""
    mechanism = getattr(norm, "__self__", None)
    name = getattr(norm, "__name__", type(norm).__name__)
    return getattr(mechanism, "norm_name", name.removesuffix("_norm"))


def _one_line(error: Exception) -> str:
    text = " ".join(f"{type(error).__name__}: {error}".split())
    return text if len(text) <= 200 else f"{text[:197]}..."
