"""Release any Python function: check the data; make the plan; execute it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import check_accountant, find_payer
from skdp.aggregate.target import FunctionBlocks, SampleAndAggregate
from skdp.core.checks import check_count, shown
from skdp.core.dataset import Dataset, as_dataset
from skdp.core.persons import first_of_each, with_persons
from skdp.core.room import undisturbed
from skdp.core.target import Target, ValueFormError, as_function_target, as_target
from skdp.core.types import Container
from skdp.execution import pay_and_run, records_of
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.oracles.trial import check_is_public
from skdp.plan import ReleasePlan
from skdp.planning.checks import example_dataset, settle_form
from skdp.planning.making import Draft, check_mechanism, least_spend, make_plan
from skdp.planning.persons import of_persons, unit_of, without_ids
from skdp.result import Release
from skdp.results.names import as_names
from skdp.sensitivity.base import Sensitivity
from skdp.sensitivity.bounds import as_sensitivity
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.tables.statistics import ColumnsTarget


class ChoiceTarget(Target):
    """The scores of a list of public responses, one of which is released."""

    chooses = True

    def __init__(self, function: Target | Callable, responses: Iterable[object]):
        self._scores = as_target(function)
        self.allow_nan = self._scores.allow_nan
        self.responses = list(responses)
        if not self.responses:
            raise ValueError("The 'responses' must hold at least one response. Got none.")
        self.key_parts = self._scores, len(self.responses)
        self.description = f"{self._scores.description} over {len(self.responses)} responses"

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Score the responses."""
        scores = np.asarray(self._scores(*dataset, seed=seed), dtype=np.float64)
        if scores.shape != (len(self.responses),):
            raise ValueFormError(
                f"the target must return a vector of {len(self.responses)} scores, one for each "
                f"response, and returned shape {scores.shape}"
            )
        return scores

    def restore(self, chosen: int) -> object:
        """Return the response that was chosen."""
        return self.responses[chosen]


@undisturbed
def release(
    target: Target | Callable,
    X: Container,
    y: Container = None,
    *,
    mechanism: Mechanism,
    sensitivity: Sensitivity | SampleAndAggregate | float | str,
    responses: Iterable[object] | None = None,
    names: Iterable[object] | None = None,
    ranges: ArrayLike | None = None,
    sample_weight: Container = None,
    groups: Container = None,
    accountant: PrivacyAccountant | None = None,
    random_state: int | None = None,
) -> Release:
    """Release the value of a function on private data.

    The function is evaluated on private data once, after everything public is settled. An error
    before that has looked at no private record, and an error of the evaluation says nothing of the
    data.

    Parameters
    ----------
    target : callable
        ``target(X)`` or ``target(X, y)`` returns a number or an array of fixed shape, without
        labels. It gets an integer as `random_state`, if it has such a parameter. A function on a
        box comes in a :class:`BernsteinTarget`.
    X : array-like or data frame of n_samples records
        The private records. A CountTarget and a MeanTarget also take a table of an engine, such as
        a relation of DuckDB.
    y : array-like of n_samples responses or None, default=None
        The private responses, if the target takes them.
    mechanism : Mechanism
        The noise, such as ``LaplaceMechanism(epsilon=1.0)``. With a sampler ``code="auto"`` is
        None here: the released value is drawn towards no prior, unless ``code="learned"`` asks for
        one.
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity, float or "aggregate"
        How much the target can change: sampled now, sampled earlier for the same target and
        number of records, or proved on paper, where the records are clipped to the ranges of the
        proof. A number is a bound in the norm of the mechanism, asserted by the caller for records
        of any value, and for missing ones. "aggregate" or a :class:`SampleAndAggregate` releases
        the mean of the values on blocks of the records, each clipped to `ranges`.
    responses : iterable of object or None, default=None
        The objects from which an ExponentialMechanism chooses. The target returns one score for
        each, and the value is one of them. None releases the position of the choice.
    names : sequence of str or None, default=None
        Public names of the numbers in the summary and on the card, such as columns or bins: along
        the last axis of an array, or one by one.
    ranges : pair of float, array-like of shape (n_values, 2), or None, default=None
        With "aggregate", lowest and highest value of a number, or of each number in an array. A
        block that cannot be pickled, or on which the target fails or returns what is not finite or
        of another shape, counts as the middle.
    sample_weight : array-like of n_samples weights or None, default=None
        The private weights of the records, if the target takes them after `y`.
    groups : array-like of n_samples ids, str or None, default=None
        The ids of the persons whom the records belong to, or the name of a column of X that has
        them and is taken out. The promise is about persons. The target sees one record of each
        person, drawn at random; all records where the sensitivity is sampled, by an oracle of
        persons; with "aggregate" all records of the persons of a block. Rows without an id are left
        out.
    accountant : PrivacyAccountant or None, default=None
        The budget that pays, before the target sees the records. None takes
        `skdp.accounting.default_accountant`.
    random_state : int or None, default=None
        Source of the noise, as for :class:`PrivateEstimator`.

    Returns
    -------
    Release
        The private value, the guarantee and the sensitivity.

    Raises
    ------
    ValueError
        If the parts of the dataset differ in length, the sensitivity is zero, infinite or for
        another target, mechanism or number of records, made-up records show that it is no bound, or
        the responses or names do not fit.
    TypeError
        If a parameter is of a wrong type, or the target returns no number and no array of numbers.
    RuntimeError, BudgetExceededError, LedgerError, PrivateEvaluationError
        As :meth:`PrivateEstimator.fit`, which warns of the same weak promises too.

    See Also
    --------
    PrivateEstimator : The same for an estimator.
    skdp.functions.BernsteinTarget : A function on a box, to be released as a whole.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, SensitivitySampler, UniformOracle, release
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(
    ...     np.mean,
    ...     X,
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(UniformOracle([(0, 1)]), random_state=0),
    ... )
    >>> bool(abs(released.value - X.mean()) < 0.5)
    True
    >>> released.guarantee.gamma
    0.05

    A choice, of a kind that one record moves by at most one count:

    >>> from skdp import ExponentialMechanism
    >>> def counts(X):
    ...     return [np.sum(X < 0.2), np.sum(X >= 0.2)]
    >>> chosen = release(
    ...     counts,
    ...     X,
    ...     mechanism=ExponentialMechanism(epsilon=1.0),
    ...     sensitivity=1,
    ...     responses=["low", "high"],
    ... )
    >>> chosen.value
    'high'
    """
    given = as_dataset((X, y, sample_weight), "The private dataset")
    unit = unit_of(groups)
    rows = given if groups is None else with_persons(given._replace(groups=groups))
    dataset = first_of_each(rows)
    if isinstance(target, ColumnsTarget):
        dataset = target.read(dataset, sensitivity)
    lengths = list(dataset.lengths.values())
    if len(set(lengths)) > 1:
        raise ValueError(
            "The private dataset must have as many responses and weights as records. "
            f"Got parts of {lengths}."
        )
    if 0 in lengths:
        raise ValueError("X has no records: at least 1 is required. Got parts of 0.")
    byte_source(random_state)  # refuses what is no seed before any work is done
    check_accountant(accountant, "release")
    check_mechanism(mechanism, "release")
    if isinstance(sensitivity, Sensitivity):
        check_is_public(sensitivity.draws_from, given)
    pays = find_payer(accountant)
    pays.rehearse(least_spend(mechanism, sensitivity, unit))  # before pairs are sampled
    parameters = target, mechanism, sensitivity, responses, names, ranges
    plan, dataset = plan_for(dataset, lengths[0], *parameters, unit)
    private = dataset if groups is None else records_of(plan, rows)
    return pay_and_run(plan, private, pays, random_state)


@undisturbed
def plan_release(
    target: Target | Callable,
    *,
    n_samples: int,
    like: Container = None,
    mechanism: Mechanism,
    sensitivity: Sensitivity | SampleAndAggregate | float | str,
    responses: Iterable[object] | None = None,
    names: Iterable[object] | None = None,
    ranges: ArrayLike | None = None,
    groups: bool | str | None = None,
) -> ReleasePlan:
    """Settle all that is public about a release, without private data.

    Parameters
    ----------
    target : callable
        As for :func:`release`.
    n_samples : int
        Number of private records, or of persons.
    like : X, (X, y), (X, y, sample_weight) or None, default=None
        Any records in the form of the private ones, such as a few made-up ones. Only containers,
        columns and dtypes are used. None takes the form of the oracle's records.
    mechanism : Mechanism
        The noise.
    sensitivity : SensitivitySampler, SensitivityEstimate, KnownSensitivity, float or "aggregate"
        How much the target can change. A sampler samples now. With a bound the function is tried
        on made-up records, on which it must return numbers that the bound holds for.
    responses : iterable of object or None, default=None
        As for :func:`release`.
    names : sequence of str or None, default=None
        As for :func:`release`.
    ranges : pair of float, array-like of shape (n_values, 2), or None, default=None
        As for :func:`release`.
    groups : bool, str or None, default=None
        True, or the name of the column of ids, for a plan of persons.

    Returns
    -------
    ReleasePlan
        The plan.

    Raises
    ------
    ValueError
        As :func:`release`, or if `like` is None and there is no oracle to take the form from.

    See Also
    --------
    release : The same, and executes it.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, plan_release
    >>> plan = plan_release(
    ...     np.mean,
    ...     n_samples=3,
    ...     like=np.zeros(1),
    ...     mechanism=LaplaceMechanism(1.0),
    ...     sensitivity=1 / 3,
    ... )
    >>> plan.guarantee.short
    'differential privacy, epsilon=1'
    """
    check_mechanism(mechanism, "release")
    check_count("n_samples", n_samples, "plan_release")
    unit = unit_of(groups)
    like = without_ids(like, groups, "plan_release")
    if isinstance(target, ColumnsTarget) and like is not None:
        like = target.read(like, sensitivity)
    given = target, mechanism, sensitivity, responses, names, ranges
    return plan_for(like, n_samples, *given, unit)[0]


def plan_for(
    like: Container,
    n_samples: int,
    target: Target | Callable,
    mechanism: Mechanism,
    sensitivity: Sensitivity | SampleAndAggregate | float | str,
    responses: Iterable[object] | None,
    names: Iterable[object] | None,
    ranges: ArrayLike | None,
    unit: str,
) -> tuple[ReleasePlan, Dataset]:
    """Make the plan, and return the example records in its form."""
    aggregate = SampleAndAggregate() if sensitivity == "aggregate" else sensitivity
    is_derived = isinstance(aggregate, SampleAndAggregate)
    if is_derived != (ranges is not None):
        raise ValueError(
            "The 'ranges' parameter of release must be given with sensitivity='aggregate', and "
            f"with no other. Got {shown(ranges)}."
        )
    if isinstance(aggregate, SampleAndAggregate) and ranges is not None:
        function = as_function_target(target)
        target = FunctionBlocks(aggregate, function, ranges, n_samples)
        target.sums_persons = unit == "person"
        sensitivity = target.known
    target, prepare = as_target(target), None
    if isinstance(target, ColumnsTarget):
        target, sensitivity = target.proved(sensitivity)
        prepare = partial(target.read, known=sensitivity)
    if responses is not None:
        if not mechanism.chooses:
            raise ValueError(
                "The 'responses' parameter of release is for a mechanism that chooses, such as "
                f"ExponentialMechanism. Got {type(mechanism).__name__}."
            )
        target = ChoiceTarget(target, responses)
    mechanism.guarantee()  # refuses its own parameters before any work is done
    known = as_sensitivity(sensitivity, mechanism, n_samples)
    if isinstance(known, SensitivitySampler) and mechanism.code == "auto":
        mechanism = mechanism.with_code(None)  # a statistic is not drawn towards a prior unasked
    example = example_dataset(n_samples, like, known, "plan_release", target.allow_nan)
    known, schema, example = settle_form(known, example, target.allow_nan, unit)
    target = target if schema.parts.groups is None else of_persons(target)
    listed = as_names(names, mechanism)
    facts = target, schema, example, mechanism, known, is_derived
    draft = Draft(*facts, prepare=prepare, names=listed, unit=unit)
    return make_plan(draft), example
