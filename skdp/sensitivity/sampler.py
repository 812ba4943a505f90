"""The sensitivity sampler: how much the target changes on neighboring datasets of an oracle."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.parallel import Parallel, delayed

from skdp._data import Dataset, Schema
from skdp._target import Target, as_target
from skdp.sensitivity.calibration import OrderStatistic, order_statistic
from skdp.sensitivity.drawing import as_oracle, describe_oracle, draw
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.pairs import (
    PairOutcome,
    PairSource,
    measure_pair,
    pilot_difference,
    run_chunk,
    streams,
    summarize,
)

# Pairs a task evaluates: long enough that handing out a task costs little beside it.
CHUNK_SIZE = 50

# Spawn key. Pair i uses (i,), which no longer key collides with, and pilot pair i uses (i, 2).
PUBLIC_DATASET = (0, 1)

# Pilot pairs are kept whole: at most so many, and at most so many numbers (256 MB) in all of them.
MAX_PILOT_PAIRS = 1000
MAX_PILOT_VALUES = 2**25


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
    n_pilot_pairs : int, default=0
        Number of further pairs, from which the mechanism would learn its basis. For a target of
        very many values it is less.

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
    n_pilot_pairs: int = 0

    @property
    def n_evaluations(self) -> int:
        """How often the target would be evaluated: twice a pair."""
        return 2 * (self.order_statistic.n_pairs + self.n_pilot_pairs)

    def __str__(self) -> str:
        pilots = f"{self.n_pilot_pairs} pilot pairs and " if self.n_pilot_pairs else ""
        return (
            f"{pilots}{self.order_statistic.n_pairs} pairs of datasets of {self.n_samples} records "
            f"from {self.oracle}, {self.n_evaluations} evaluations of the target. "
            f"{self.order_statistic}"
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

    def plan(self, n_samples: int, mechanism: Any = None) -> SamplingPlan:
        """Say what would be run, and what it would promise, without running it.

        Parameters
        ----------
        n_samples : int
            Number of records of the private dataset.
        mechanism : Mechanism or None, default=None
            The mechanism that will add the noise; one that learns its basis needs pilot pairs.

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
        learns = getattr(mechanism, "learns_basis", False)
        return SamplingPlan(
            order_statistic=statistic,
            n_samples=n_samples,
            oracle=describe_oracle(as_oracle(self.oracle)),
            n_pilot_pairs=min(statistic.n_pairs, MAX_PILOT_PAIRS) if learns else 0,
        )

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
            ``norm(difference)`` of the mechanism that will add the noise. The estimate records its
            name, and the basis of the mechanism.
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
        pairs, seed = self._prepare(target, n_samples, schema)
        chunks = self._run(partial(measure_pair, pairs, norm), plan.order_statistic.n_pairs)
        outcomes = list(_with_progress(chunks, plan, self.verbose))
        shape, norms, failures = summarize(outcomes)
        mechanism = getattr(norm, "__self__", None)
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
            basis=getattr(mechanism, "public_basis", None),
        )

    def pilot_differences(
        self, target: Callable, n_samples: int, schema: Schema | None = None
    ) -> NDArray[np.float64]:
        """Evaluate pilot pairs, from which a mechanism may learn its basis.

        They are drawn like the pairs of `sample` and are none of them, so whatever is learnt from
        them leaves the promise as it is. There are as many as calibrating pairs, but at most 1000,
        and at most 2^25 numbers in all.

        Parameters
        ----------
        target : Target or callable
            What is to be released.
        n_samples : int
            Number of records of the private dataset.
        schema : Schema or None, default=None
            The columns of the private dataset, which the oracle's must match.

        Returns
        -------
        ndarray of shape (n_evaluated, d)
            The difference of the two values of each pair, raveled. Pairs on which the target
            could not be evaluated are left out. Empty if d is 1: all bases are then alike.

        Raises
        ------
        ValueError
            As `sample`.
        """
        n_pairs = min(self.plan(n_samples).order_statistic.n_pairs, MAX_PILOT_PAIRS)
        pairs, _ = self._prepare(as_target(target), n_samples, schema)
        evaluate = partial(pilot_difference, pairs)
        # One pair alone tells how many numbers each of the others will hold.
        probes = (run_chunk(evaluate, range(pair, pair + 1))[0] for pair in range(n_pairs))
        tried, first = next(
            ((pair, probe) for pair, probe in enumerate(probes) if probe is not None), (0, None)
        )
        if first is None or first.size < 2:
            return np.empty((0, 0 if first is None else first.size))
        n_pairs = min(n_pairs, max(1, MAX_PILOT_VALUES // first.size))
        rest = chain.from_iterable(self._run(evaluate, n_pairs, start=tried + 1))
        kept = [each for each in rest if each is not None and each.shape == first.shape]
        return np.array([first, *kept])

    def _prepare(
        self, target: Target, n_samples: int, schema: Schema | None
    ) -> tuple[PairSource, int]:
        """Settle the seed, and refuse an unfit oracle before the first fit."""
        oracle = as_oracle(self.oracle)
        seed = self._entropy()
        rng, _ = streams(seed, (0,))
        draw(oracle, n_samples + 1, rng, reference=schema, full=True)
        return PairSource(target, oracle, n_samples, seed), seed

    def _run(self, evaluate: Callable[[int], Any], n_pairs: int, start: int = 0) -> Iterable[list]:
        """Evaluate pairs in parallel, chunk by chunk, in their order."""
        tasks = (
            delayed(run_chunk)(evaluate, chunk) for chunk in _chunks(start, n_pairs, CHUNK_SIZE)
        )
        return Parallel(n_jobs=self.n_jobs, return_as="generator")(tasks)

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
        rng, _ = streams(self._entropy(), (*PUBLIC_DATASET, attempt))
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


def _chunks(start: int, stop: int, size: int) -> Iterable[range]:
    return (range(first, min(first + size, stop)) for first in range(start, stop, size))


def _with_progress(
    chunks: Iterable[list[PairOutcome]], plan: SamplingPlan, verbose: int
) -> Iterable[PairOutcome]:
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
