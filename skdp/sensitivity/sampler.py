"""The sensitivity sampler: how much the target changes on neighboring datasets of an oracle."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TypeVar

import numpy as np
from sklearn.base import BaseEstimator, is_classifier

from skdp.core.checks import check_count, check_rules, warn
from skdp.core.dataset import Dataset, n_records
from skdp.core.exact import finite
from skdp.core.geometry import Geometry, MechanismType, as_geometry
from skdp.core.identity import key_of
from skdp.core.oracle import Oracle, has_independent_records
from skdp.core.room import undisturbed
from skdp.core.schema import DatasetForm
from skdp.core.streams import PILOT, public_key, public_seed, streams
from skdp.core.target import Target, as_target
from skdp.core.types import Estimator, Matrix, Seed
from skdp.oracles.adapters import as_oracle, without_response
from skdp.oracles.drawing import draw
from skdp.oracles.random_task import RandomTaskOracle
from skdp.oracles.trial import try_oracle
from skdp.sensitivity.base import Sensitivity, in_code_of
from skdp.sensitivity.calibration import OrderStatistic, order_statistic
from skdp.sensitivity.estimate import SensitivityEstimate, key_of_oracle
from skdp.sensitivity.execution import Job, run, run_chunk
from skdp.sensitivity.likeness import AlikeTarget, draw_ranges
from skdp.sensitivity.pairs import (
    BLOCK_SIZE,
    MAX_PILOT_PAIRS,
    Outcomes,
    PairSource,
    RecordPairs,
    Rows,
    gather_pilots,
    gather_shaken,
    measure,
    pilot_rows,
)
from skdp.sensitivity.store import STORE, Evaluation, key_in_store
from skdp.sensitivity.strata import LAYOUTS

T = TypeVar("T")

UNEVEN = (
    "With strata=None gamma is that of all pairs together: a class with a share below gamma / 2 "
    "may be left out wholly, and larger ones mostly. Take strata='classes' to cover each class."
)


class SensitivitySampler(Sensitivity, BaseEstimator):
    """Sample how much a target changes when one record changes.

    Each pair draws ``n_samples + 1`` records from the oracle. The first dataset holds all but the
    last record; in the second one the last record replaces another, at a position that is drawn
    uniformly. The target is evaluated on both, and the norm of the difference is one sampled
    sensitivity, or ``inf`` where an evaluation fails. The estimate is an order statistic of these
    norms, chosen so that a further pair exceeds it with probability at most gamma (algorithm 1 of
    [1]_).

    Parameters
    ----------
    oracle : callable, frozen scipy.stats distribution or fitted estimator with `sample`
        Source of plausible, non-sensitive records: ``oracle(n_samples, rng)`` returns X or (X, y).
        It must not be derived from the private data.
    gamma : float in (0, 1) or None, default=0.05
        Probability that a pair drawn from the oracle is not covered. None takes the smallest that
        `n_pairs` attains.
    n_pairs : int or None, default=None
        Number of pairs, in each stratum. None takes more than `gamma` needs: for the exact
        calibration ``ceil(10 / gamma) - 1``, with a public code of pairs of fits
        ``ceil(3 / gamma) - 1``, or ``ceil(2 / gamma) - 1`` in each stratum.
    calibration : {"exact", "dkw", "conditional"}, default="exact"
        Which statement gamma is part of; see :func:`skdp.sensitivity.order_statistic`.
    confidence : float in (0, 1) or None, default=None
        Confidence of the "conditional" calibration.
    strata : {"auto", "classes", "labels", "thirds"} or None, default="auto"
        What makes a stratum of pairs. Each has an order statistic of its own, and the largest is
        the estimate, so gamma holds in each. Four evaluations give a pair of each of three strata.

        - "classes": whether none, one or both of the two records are of the class that is rarest in
          the draw. With one pool of pairs gamma can be spent on one class entirely.
        - "labels": as "classes", and a fourth stratum of pairs that differ in a label alone, by a
          fifth evaluation.
        - "thirds": of which third of the responses one of the two records is.
        - "auto": "labels" for predictions of a classifier, "classes" for its parameters and for a
          function on a shipped oracle that was given the classes; else None.
        - None: one pool, whose records differ as they were drawn.
    clip : "ranges" or None, default="ranges"
        What becomes of records unlike the oracle's.

        - "ranges": numbers of X, weights and responses of a regression are clipped to the smallest
          and the largest of 20 draws apart from the pairs. A record far outside, by one number or
          by many, counts as a record of the oracle. This holds for pairs and for private records.
        - None: all records count as they are.
    n_jobs : int or None, default=None
        Number of parallel workers, as in scikit-learn. The norms do not depend on it. A job that
        takes less time than starting workers runs without them.
    verbose : int or None, default=None
        What is said of the progress. None says in terminals and notebooks how long a run of more
        than ten seconds takes, and a few times how far it is. A positive number says so everywhere
        and of each run. 0 says nothing.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Seed of the sampling, which is public and which the estimate records. With an integer, pairs
        of the same target, oracle, form and `n_samples` that were evaluated before in the process,
        up to 64 MB of them, are not evaluated again, as in folds of equal size or after an
        interrupt. Functions and classes that are not from an installed package need a key for it,
        in an attribute ``__skdp_key__``. A generator gives each fit another seed, but clones share
        its state and draw the same pairs.

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
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.1, random_state=0)
    >>> estimate = sampler.sample(np.mean, n_samples=100, geometry="l1")
    >>> 0.005 < estimate.value < 0.01
    True
    """

    _n_reused = 0  # evaluations of pairs, since the last estimate

    def __init__(
        self,
        oracle: object,
        *,
        gamma: float | None = 0.05,
        n_pairs: int | None = None,
        calibration: str = "exact",
        confidence: float | None = None,
        strata: str | None = "auto",
        clip: str | None = "ranges",
        n_jobs: int | None = None,
        verbose: int | None = None,
        random_state: Seed = None,
    ):
        self.oracle = oracle
        self.gamma = gamma
        self.n_pairs = n_pairs
        self.calibration = calibration
        self.confidence = confidence
        self.strata = strata
        self.clip = clip
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def order_statistic(self, few: bool = False, n_strata: int = 1) -> OrderStatistic:
        """Choose the order statistic, or refuse the parameters; `few` is for pairs of two fits."""
        rule = "be 'auto', 'classes', 'labels', 'thirds' or None"
        known = self.strata in ["auto", *LAYOUTS]
        clips = self.clip in ["ranges", None]
        check_rules(
            "SensitivitySampler",
            strata=(self.strata, known, rule),
            clip=(self.clip, clips, "be 'ranges' or None"),
        )
        usual = order_statistic(
            self.gamma,
            self.n_pairs,
            calibration=self.calibration,
            confidence=self.confidence,
            n_strata=n_strata,
            owner=type(self).__name__,
        )
        if not few or self.n_pairs is not None or self.calibration != "exact":
            return usual
        times = 3 if n_strata == 1 else 2  # as many as the exact calibration needs
        n_pairs = math.ceil(times / finite(usual.gamma)) - 1
        return order_statistic(usual.gamma, n_pairs, n_strata=n_strata)

    @undisturbed
    def sample(
        self,
        target: Callable,
        n_samples: int,
        geometry: Geometry | str,
        schema: DatasetForm | None = None,
    ) -> SensitivityEstimate:
        """Sample the sensitivity of a target.

        Parameters
        ----------
        target : Target or callable
            What is to be released: ``target(X)`` or ``target(X, y)``.
        n_samples : int
            Number of records of the private dataset.
        geometry : Geometry or {"l1", "l2", "sup"}
            The ``mechanism.geometry`` of the mechanism that will add the noise, or a norm of the
            values.
        schema : DatasetForm or None, default=None
            The form of the private dataset, into which the oracle's records are brought. None takes
            the form of the oracle's records; the estimate serves data of that form only.

        Returns
        -------
        SensitivityEstimate
            The estimate with all sampled norms. Its value is ``inf`` when too many pairs failed.

        Raises
        ------
        ValueError
            If no order statistic gives the promise asked for, or the oracle returns something else
            than the records asked for.
        """
        geometry = as_geometry(geometry, "SensitivitySampler.sample")
        target = as_target(target)
        key = key_of(target)  # before it runs: a function may keep what it finds
        oracle_key = key_of_oracle(self.draws_from)
        source, records, rows = self._prepare(target, n_samples, schema)
        strata, n_strata = source.strata, len(LAYOUTS[source.strata].pairs)
        statistic = self.order_statistic(geometry.code is not None and rows is None, n_strata)
        if rows is None:
            finish = partial(measure, geometry, strata=strata, n_beside=target.n_beside)
            chunks = self._run(source, finish, statistic.n_pairs)
        else:  # they take too little time to be kept
            job = Job(RecordPairs(source, rows, geometry, records), Outcomes.join, key="")
            chunks = run(
                job,
                [],
                statistic.n_pairs,
                n_jobs=self.n_jobs,
                verbose=self.verbose,
                at_once=BLOCK_SIZE,
            )
        with closing(chunks):
            outcomes = Outcomes.join(chunks)
        shape, norms, failures = outcomes.with_one_shape()
        n_reused, self._n_reused = self._n_reused, 0
        return SensitivityEstimate(
            norms=norms.reshape(-1, n_strata).T if strata else norms,
            order_statistic=statistic,
            n_samples=source.n_samples,
            geometry=geometry,
            target=target.description,
            shape=shape,
            oracle=source.oracle.description,
            seed=source.seed,
            failures=failures,
            n_rounding=int(outcomes.are_rounding.reshape(-1, n_strata).sum(axis=0).min()),
            form=source.schema.key,
            key=key,
            prior=self._with(random_state=source.seed),
            n_reused=n_reused,
            strata=strata,
            least_share=source.oracle.smallest_share(source.n_samples + 1)
            if strata in ("classes", "labels") and type(source.oracle) is RandomTaskOracle
            else None,
            ranges=source.target.ranges if isinstance(source.target, AlikeTarget) else (),
            # an oracle that keeps something between its draws has no identity
            oracle_key=oracle_key if oracle_key == key_of_oracle(source.oracle) else "",
        )

    def pilots(
        self, target: Callable, n_samples: int, schema: DatasetForm | None = None
    ) -> tuple[Matrix, Matrix]:
        """Evaluate pilot pairs, from which a public code may be learned.

        They are drawn like the pairs of `sample`, without strata, and are not among them, so the
        promise does not depend on what is learned. There are at most 1000, and at most 2^25
        differences in all. Returned are the first value of each pair, raveled, and its difference
        from the second. Pairs that fail are left out.
        """
        source, _, rows = self._prepare(as_target(target), n_samples, schema, PILOT)
        n_later = self.order_statistic(few=rows is None).n_pairs
        n_pairs = min(n_later, MAX_PILOT_PAIRS)
        later = n_later if rows is None else 0
        with closing(self._run(source, pilot_rows, n_pairs, later=later)) as chunks:
            return gather_pilots(chunks, n_pairs)

    def shaken_pilots(
        self, target: Target, n_samples: int, schema: DatasetForm, size: int
    ) -> tuple[Matrix, Matrix]:
        """Evaluate a few pilots, and the same with records that differ in their last bits."""
        source, _, _ = self._prepare(target, n_samples, schema, PILOT)
        return run_chunk(partial(gather_shaken, source), size)

    def _prepare(
        self,
        target: Target,
        n_samples: int,
        schema: DatasetForm | None,
        *kind: int,
    ) -> tuple[PairSource, Dataset, Rows | None]:
        """Check the oracle before the first fit; return a source, records, and a closed form."""
        n_samples = check_count("n_samples", n_samples, "SensitivitySampler")
        self.order_statistic()  # refuses wrong parameters
        oracle, seed = self.draws_from, self.draw_seed()
        if schema is None:
            schema = DatasetForm.of(try_oracle(oracle, n_samples, seed), target.allow_nan)
        rng, _ = streams(seed, (0,))
        records = draw(oracle, n_samples + 1, rng, schema=schema, full=True)
        unit = records._replace(groups=None).parts
        target.check_oracle(*unit)
        is_of_records = records.groups is None
        if not (is_of_records or target.sums_persons):
            raise ValueError(
                "The 'oracle' parameter of SensitivitySampler must yield records, but for a plan "
                f"with groups. Got persons, of {oracle.description}. Make such a plan."
            )
        by_record = is_of_records and has_independent_records(oracle)
        rows = target.closed_form(*unit) if by_record else None
        fitted = target.estimator if target.public_fit is None else target.public_fit
        fits_classes = fitted is not None and is_classifier(fitted)
        declared = fits_classes or getattr(oracle, "responses", "") == "labels"
        of_classes = target.class_strata
        if self.clip is not None:
            ranges = draw_ranges(oracle, n_samples, seed, schema, has_labels=declared)
            target = AlikeTarget(target, ranges, oracle, schema)
        source = PairSource(target, oracle, n_samples, seed, schema, kind)
        if not kind:
            declared &= records.y is not None and np.size(records.y) == n_records(records.X)
            strata = self.strata
            if strata == "auto":
                strata = of_classes if declared and (fits_classes or rows is None) else None
            elif strata is None and declared:
                warn(UNEVEN)
            if strata is not None:
                source, rows = replace(source, strata=strata), None
                source.datasets(rng)  # refuses an oracle without such pairs before the first fit
        return source, records, rows

    def _run(
        self,
        source: PairSource,
        finish: Callable[[list[Evaluation]], T],
        n_pairs: int,
        later: int = 0,
    ) -> Generator[T, None, None]:
        """Evaluate pairs chunk by chunk, but those that are in the store."""
        key = key_in_store(*source.facts)
        known = STORE.first(key, n_pairs)  # void if a package was patched or reloaded since
        if known and run_chunk(source, range(1))[0].bits != known[0].bits:
            STORE.forget(key)
            known = []
        self._n_reused += sum(len(each.values) or 2 for each in known)
        return run(
            Job(source, finish, key),
            known,
            n_pairs,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
            later=later,
        )

    @property
    def draws_from(self) -> Oracle:
        """The oracle, ready to be drawn from."""
        return as_oracle(self.oracle)

    def for_estimator(
        self, estimator: Estimator, release: object, dataset: Dataset, uses_response: bool
    ) -> SensitivitySampler:
        if uses_response or dataset.y is not None:
            return self
        return self._with(oracle=without_response(self.draws_from))

    def agree(
        self, schema: DatasetForm, example: Dataset
    ) -> tuple[SensitivitySampler, DatasetForm]:
        sampler, oracle = self._with(random_state=self.draw_seed()), self.draws_from
        drawn = try_oracle(oracle, example.n_records, sampler.draw_seed())
        schema = schema.agree(DatasetForm.of(drawn))
        schema.convert(drawn, f"The oracle {oracle.description}")
        return sampler, schema

    def settle(
        self, target: Target, n_samples: int, schema: DatasetForm, mechanism: MechanismType
    ) -> tuple[SensitivityEstimate, MechanismType]:
        estimate = self.sample(target, n_samples, mechanism.geometry, schema)
        estimate.check_usable()
        return estimate, in_code_of(estimate.geometry, mechanism)

    def public_dataset(
        self,
        n_samples: int,
        schema: DatasetForm | None = None,
        attempt: int = 0,
        *,
        allow_nan: bool = False,
    ) -> Dataset:
        n_samples = check_count("n_samples", n_samples, "SensitivitySampler")
        rng, _ = streams(self.draw_seed(), public_key(attempt))
        return draw(self.draws_from, n_samples, rng, schema=schema, full=True, allow_nan=allow_nan)

    def _with(self, **parameters: object) -> SensitivitySampler:
        return type(self)(**self.get_params(deep=False) | parameters)

    def draw_seed(self) -> int:
        """Return the public seed; a sampler without an integer draws one."""
        return public_seed(self.random_state, "random_state", "SensitivitySampler")
