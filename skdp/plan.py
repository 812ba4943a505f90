"""ReleasePlan: everything public about a release; its method `execute` releases."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import as_pickled, check_accountant, find_payer
from skdp.core.checks import check_count
from skdp.core.dataset import Dataset, as_dataset
from skdp.core.exact import above, below, finite, short_above, short_below
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.identity import REMEDY, content_of, key_of, obstacle_of
from skdp.core.oracle import Oracle
from skdp.core.room import undisturbed
from skdp.core.schema import DatasetForm
from skdp.core.target import Target, replaces
from skdp.core.types import Container, Estimator, Matrix, Scoring, Values
from skdp.execution import by_name, check_private, pay_and_run
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.oracles.graded_task import graded_tasks
from skdp.result import Release
from skdp.results.expected import MADE_UP, ORACLE, TASKS, ExpectedScore
from skdp.results.names import as_names
from skdp.results.shares import NO_SHARES, Shares
from skdp.results.simulation import (
    EVALUATIONS_OF_A_DATASET,
    LEAST_DATASETS,
    MOST_DATASETS,
    Simulation,
)
from skdp.results.summary import plan_text
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.likeness import ColumnRange, name_ranges
from skdp.sensitivity.store import STORE, key_in_store
from skdp.sensitivity.strata import LAYOUTS

FAR = 2.0**30  # a value hardly exceeds so many sensitivities


@dataclass(frozen=True, eq=False)
class ReleasePlan:
    """Everything that is settled about a release before private data is looked at.

    A plan is made by :func:`plan_release` or :meth:`PrivateEstimator.plan`, and is public. It can
    be printed, pickled and executed later, on another machine and more than once. Each execution
    is a release of its own. A pickled plan can be executed if its target has a key or comes from
    installed packages.

    Parameters
    ----------
    target : Target
        The function to evaluate.
    schema : DatasetForm
        The form of the data: containers, columns and dtypes.
    n_samples : int
        Number of records of the data, or of persons.
    mechanism : Mechanism
        The noise to add, with its code fixed.
    sensitivity : SensitivityEstimate or KnownSensitivity
        The sensitivity that the noise is calibrated to.
    oracle : Oracle or None, default=None
        The oracle that was sampled, or the prior of a bound. None where nothing was drawn.
    made_up : Oracle or None, default=None
        Source of made-up records that are scored where there is no oracle.
    scoring : str, callable or None, default=None
        The score of `expected_score`, as in scikit-learn. None takes the method `score` of what is
        released.
    classes : list of ndarray, or None, default=None
        The public class labels, output by output.
    prepare : callable or None, default=None
        ``prepare(dataset)`` brings data into the form that they have in `fit`.
    seconds : float, default=0.0
        How long sampling took.
    n_alternatives : int of at least 1, default=1
        Number of plans among which the outcome of a release chose this one. Its gamma counts once
        for each of them.
    settled : tuple of Target, sensitivity and str, or None, default=None
        The target and sensitivity that belong together, and the content of the target. For any
        other two, the key of the sensitivity must be that of the target.
    names : list of str or None, default=None
        Names of the numbers, one by one or along the last axis, for the summary.
    gaps : frozenset of int or None, default=None
        The columns of X in which entries may be missing, as in the oracle's records. None allows
        gaps everywhere.
    accountant : PrivacyAccountant or None, default=None
        The budget that pays for an execution that names none. A pickle takes that of an open block
        of :meth:`PrivacyAccountant.as_default` along.
    expect : dict of str to float, or None, default=None
        Where the expected score is read, as for :class:`PrivateEstimator`.
    shares : Shares, default=NO_SHARES
        The epsilons of counts beside the release, as for :class:`PrivateEstimator`.
    unit : {"record", "person"}, default="record"
        What the promise is about: a record, or a person with all records.
    advice : str, default=""
        The setting that may score more than the expected score by over .05; empty for none.

    Attributes
    ----------
    guarantee : PrivacyGuarantee
        The promise of a release with noise from the operating system.
    n_evaluations : int
        Number of evaluations on public records, two for each pair, also where a closed form saves
        them. A trial on made-up records does not count.
    standard_errors : ndarray, dict of str to ndarray, or None
        Standard deviation of the error of each number, before any repair: by attribute of an
        estimator, else in the shape of the value. With a public code they are those of the decoded
        numbers, for private data that are like the oracle's, up to the `shift`. None if the
        mechanism cannot tell.
    expected_score : ExpectedScore or None
        The score of such a release on tasks of several difficulties, beside exact models and a
        guess; where public records have labels, on these, beside the model of public records alone.
        None where the released value has no score, or nothing can be drawn.
    public_estimator : estimator object or None
        The model of the public records alone: the mean of public fits. None without public records.
    ranges : list of ColumnRange
        Column, low and high of each column that is clipped to the range of the oracle's records.
        ``pandas.DataFrame(plan.ranges)`` is a table. Empty where nothing is.
    share_learned : float in [0, 1]
        The share of the prior variance of the output that the release removes. 1 without a code.

    See Also
    --------
    plan_release : Makes the plan of a function.
    PrivateEstimator : Its method `plan` makes that of an estimator.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, SensitivitySampler, UniformOracle, plan_release
    >>> plan = plan_release(
    ...     np.mean,
    ...     n_samples=100,
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(UniformOracle([(0, 1)]), random_state=0),
    ... )
    >>> print(plan)
    Plan: numpy.mean, 100 private records
      guarantee       random differential privacy, epsilon=1, gamma=0.05
      cost            398 evaluations on public records..., then one on the private
                      records
      noise           Laplace
      oracle's ranges 0: ... to ...
      std. errors     value 0.011
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> plan.execute(X).guarantee == plan.guarantee
    True
    """

    target: Target
    schema: DatasetForm
    n_samples: int
    mechanism: Mechanism
    sensitivity: SensitivityEstimate | KnownSensitivity
    oracle: Oracle | None = field(default=None, repr=False)
    made_up: Oracle | None = field(default=None, repr=False)
    scoring: Scoring = field(default=None, repr=False)
    classes: list[NDArray] | None = None
    prepare: Callable[[Dataset], Dataset] | None = field(default=None, repr=False)
    seconds: float = 0.0
    n_alternatives: int = 1
    settled: tuple[Target, SensitivityEstimate | KnownSensitivity | None, str] | None = field(
        default=None, repr=False
    )
    names: list[str] | None = None
    gaps: frozenset[int] | None = field(default=None, repr=False)
    accountant: PrivacyAccountant | None = field(default=None, repr=False, compare=False)
    expect: Mapping[str, float] | None = None
    shares: Shares = NO_SHARES
    unit: str = "record"
    advice: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        """Refuse parts that do not belong together, as after `dataclasses.replace`."""
        self.sensitivity.check_fits(self.n_samples, self.schema, self.mechanism.geometry)
        self.sensitivity.check_draws(self.oracle)
        check_chooses(self.mechanism, self.target)
        check_count("n_alternatives", self.n_alternatives, "ReleasePlan")
        of_persons = self.schema.parts.groups is not None
        if self.sensitivity.gamma and of_persons != (self.unit == "person"):
            raise ValueError(
                "The 'unit' of a plan must be that of the oracle where one was sampled. Got "
                f"{self.unit!r}. Make a plan for the other unit."
            )
        object.__setattr__(self, "names", as_names(self.names, self.mechanism))
        target, sensitivity, content = self.settled or (self.target, None, content_of(self.target))
        if target is not self.target and content != key_of(self.target):
            raise ValueError(
                f"The plan was made for another target: {target.description}. Got "
                f"{self.target.description}, whose sensitivity was not settled. Make a plan of it."
            )
        if target is not self.target or sensitivity is not self.sensitivity:
            self.sensitivity.check_made_for(self.target)
        object.__setattr__(self, "settled", (self.target, self.sensitivity, content))

    def __getstate__(self) -> dict[str, object]:
        """Take the budget of a block along, and forget a target that nobody can recognize."""
        state: Any = super().__getstate__()
        state = state | {"accountant": as_pickled(self.accountant)}
        key = key_of(self.target)
        if obstacle_of(key):
            state = state | {"settled": (self.target, self.sensitivity, key)}
        return state

    @undisturbed
    def execute(
        self,
        X: Container,
        y: Container = None,
        sample_weight: Container = None,
        groups: Container = None,
        *,
        accountant: PrivacyAccountant | None = None,
        random_state: int | None = None,
    ) -> Release:
        """Release: evaluate the target once on private data, and add the noise.

        Parameters
        ----------
        X : array-like or data frame of n_samples records
            The private records, in the form of the plan.
        y : array-like of n_samples responses or None, default=None
            The private responses, if the target takes them.
        sample_weight : array-like of n_samples weights or None, default=None
            The private weights of the records, if the target takes them.
        groups : array-like of n_records ids, str or None, default=None
            The ids of the persons whom the records belong to, or the name of a column of X that has
            them, for a plan of persons. There are n_samples of them.
        accountant : PrivacyAccountant or None, default=None
            The budget that pays, before the target sees the records. None takes that of the
            estimator that was planned, or `skdp.accounting.default_accountant`.
        random_state : int or None, default=None
            Seed of the noise, as for :class:`PrivateEstimator`.

        Returns
        -------
        Release
            The private value, the guarantee and the sensitivity.

        Raises
        ------
        ValueError
            If the data are of another form or number than those of the plan, or hold a label that
            is not public, or if the target was edited since the plan was made.
        BudgetExceededError, LedgerError, PrivateEvaluationError
            As :meth:`PrivateEstimator.fit`.
        """
        check_accountant(accountant, "ReleasePlan.execute")
        byte_source(random_state)  # refuses what is no seed
        self._check_settled()
        dataset = as_dataset((X, y, sample_weight), "The private dataset")
        dataset = check_private(self, dataset._replace(groups=groups))
        pays = find_payer(self.accountant if accountant is None else accountant)
        return pay_and_run(self, dataset, pays, random_state)

    def _check_settled(self) -> None:
        """Refuse a target or a mechanism that was edited since the plan was made."""
        self.sensitivity.check_fits(self.n_samples, self.schema, self.mechanism.geometry)
        assert self.settled is not None
        settled = self.settled[2]
        if obstacle_of(settled):
            raise ValueError(
                f"The plan was pickled, and its target, {self.target.description}, may have "
                f"changed since: {obstacle_of(settled)}. {REMEDY}"
            )
        if settled != content_of(self.target):
            raise ValueError(
                f"The target of the plan, {self.target.description}, has other values than when "
                "the plan was made, or another version of what it uses. Make the plan anew; if the "
                "target only keeps something between calls, give it a key, as in "
                "FunctionTarget(target, key=...)."
            )

    @property
    def limit(self) -> str:
        """The size beyond which numbers are not released, where values may well reach it."""
        known, size = self.sensitivity, math.prod(self.sensitivity.shape or ())
        if self.mechanism.geometry.code is not None:  # its numbers are near 0
            return ""
        largest = self.mechanism._largest(size, known.value)
        is_far = largest > FAR * known.value
        return "" if is_far else f"numbers beyond {largest:.2g} are not released"

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """The promise of a release."""
        known = self.sensitivity
        gamma, confidence = of_all(known.gamma, known.confidence, self.n_alternatives)
        promise = self.mechanism.guarantee(gamma)
        assumed = [known.assumed, promise.assumed, self.limit]
        if self.classes is not None and known.oracle is None:
            assumed.append("labels that were not declared count as the first")
        return replace(
            self.shares.whole(promise),
            confidence=confidence,
            n_samples=self.n_samples,
            unit=self.unit,
            oracle=known.oracle,
            strata=known.strata,
            least_share=known.least_share,
            clipped=known.clipped,
            assumed="; ".join(filter(None, assumed)) or None,
        )

    @property
    def standard_errors(self) -> NDArray[np.float64] | Values | None:
        """Standard deviations of the errors, in the units of the released numbers."""
        shape = self.sensitivity.shape
        if shape is None or self.target.adds_noise:
            return by_name(self.target, self.target.errors)
        errors = self.mechanism.standard_errors(shape, self.sensitivity.value)
        return by_name(self.target, errors)

    @property
    def ranges(self) -> list[ColumnRange]:
        """The ranges of the oracle's records, to which private ones are clipped, by column."""
        known = self.sensitivity
        if not isinstance(known, SensitivityEstimate):
            return []
        return [*name_ranges(known.ranges, self.schema)]

    @property
    def share_learned(self) -> float:
        """Share of the prior variance that a release removes."""
        return self.mechanism.share_learned(self.sensitivity.value)

    @property
    def n_evaluations(self) -> int:
        """Number of evaluations on public records."""
        n_pairs, code = self.sensitivity.n_measured, self.sensitivity.geometry.code
        drawn = n_pairs or self.oracle is not None
        layout = LAYOUTS[self.sensitivity.strata]
        n_pairs *= len(layout.datasets) + layout.flips or 2  # evaluations give a pair of each
        return n_pairs + 2 * (0 if code is None else code.n_pilot_pairs) if drawn else 0

    @property
    def expected_score(self) -> ExpectedScore | None:
        """The score of such a release on public datasets."""
        found = self._simulated[0]
        return None if found is None else found.expecting(self.expect)

    @cached_property
    def public_estimator(self) -> Estimator | None:
        """The model of the public records alone."""
        value = None if self.oracle is None else self._simulated[1]
        return None if value is None else self.target.restore(value)

    @cached_property
    def _simulated(self) -> tuple[ExpectedScore | None, Matrix | None]:
        """The score and the public value."""
        if self.target.expected_score is not None:
            return self.target.expected_score, None
        found: tuple[ExpectedScore | None, Matrix | None] = None, None
        tasks, records = self.simulate_tasks(), self.simulate()
        is_labeled = self.oracle is not None and not getattr(self.oracle, "responses", "")
        for simulation in filter(None, (tasks, records)):
            source = records if is_labeled else simulation

            def simulated(simulation: Any = simulation, source: Any = source) -> Any:
                scores = simulation.scores(self.mechanism, self.scoring)
                return scores, source.public_value(self.mechanism)

            facts: Any = self.target, simulation.oracle, self.n_samples, simulation.seed
            others = simulation.n_datasets, simulation.tasks, self.mechanism, self.scoring
            key = key_in_store(*facts, self.schema, self.sensitivity.value, *others)
            found = STORE.made(key, simulated)
            if found[0] is not None:
                break
        return found

    def score_with(
        self, mechanism: Mechanism, simulation: Simulation | None
    ) -> ExpectedScore | None:
        """Return the expected score with another mechanism, on datasets of a simulation."""
        if simulation is not None:
            found = simulation.scores(mechanism, self.scoring)
        else:
            change = getattr(self.target, "with_mechanism", None)  # of class tables
            found = None if change is None else change(mechanism).expected_score
        return None if found is None else found.expecting(self.expect)

    def simulate_tasks(
        self, n_datasets: int | None = None, seed: int | None = None
    ) -> Simulation | None:
        """Return made-up tasks to release and to score, None where public records have labels."""
        simulation = self.simulate(n_datasets, seed)
        form, responses = self.schema.parts.y, getattr(self.oracle or self.made_up, "responses", "")
        if simulation is None or not (responses or self.expect) or form is None or form.shape:
            return None
        labels, target = None, self.target
        fit = target.estimator if target.public_fit is None else target.public_fit
        is_real = fit is not None and is_regressor(fit)
        if not is_real:
            labels = self.classes[0] if self.classes else simulation.oracle.classes_
        if labels is None and not (is_real or responses == "numbers"):
            return None
        tasks = graded_tasks(simulation.oracle, labels)
        records = TASKS if simulation.records == ORACLE else simulation.records
        n_datasets = len(tasks) if n_datasets is None else n_datasets
        return replace(simulation, n_datasets=n_datasets, tasks=tasks, records=records)

    def simulate(
        self,
        n_datasets: int | None = None,
        seed: int | None = None,
        test_oracle: Oracle | None = None,
    ) -> Simulation | None:
        """Return public datasets to release and to score, None where nothing can be scored.

        By default there are a few, which cost little beside the evaluations.
        """
        oracle = self.oracle or self.made_up
        if oracle is None or self.mechanism.chooses or not replaces(self.target, "restore"):
            return None
        few = min(MOST_DATASETS, self.n_evaluations // EVALUATIONS_OF_A_DATASET)
        return Simulation(
            *(self.target, self.sensitivity, self.n_samples, oracle, self.schema),
            n_datasets=max(LEAST_DATASETS, few) if n_datasets is None else n_datasets,
            seed=self.sensitivity.sampled_with or 0 if seed is None else seed,
            test_oracle=test_oracle,
            records=MADE_UP if self.oracle is None else ORACLE,
        )

    def __str__(self) -> str:
        return plan_text(self)


def of_all(gamma: float, confidence: float | None, n: int) -> tuple[float, float | None]:
    """Return the gamma and confidence with which n alike estimates all hold."""
    if n == 1:
        return gamma, confidence
    if confidence is not None:
        confidence = short_below(1 - n * (1 - finite(confidence)))
    return short_above(n * finite(gamma)), confidence


def of_each(
    gamma: float | None, confidence: float | None, n: int
) -> tuple[float | None, float | None]:
    """Return the gamma and confidence that each of n estimates needs, for these together."""
    if gamma is not None:
        gamma = below(finite(short_below(finite(gamma))) / n)
    if confidence is not None:
        confidence = above(1 - (1 - finite(confidence)) / n)
    return gamma, confidence


def check_chooses(mechanism: Mechanism, target: Target) -> None:
    """Refuse a mechanism that chooses a response where numbers are to be released."""
    if mechanism.chooses and replaces(target, "restore") and not target.chooses:
        raise ValueError(
            f"{type(mechanism).__name__} chooses one of several responses, and here numbers are "
            f"to be released: {target.description}. Use a mechanism that adds noise, such as "
            "LaplaceMechanism."
        )
