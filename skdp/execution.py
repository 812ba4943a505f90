"""The crossing of the private line: check private data, pay, evaluate once, and make a Release.

Each function takes a ReleasePlan, whose module imports this one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.tally import BudgetTotal
from skdp.core.checks import warn
from skdp.core.dataset import Dataset
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.persons import Persons, arrange, draw_one, first_of_each, with_persons
from skdp.core.plain import check_gaps
from skdp.core.room import evaluate_privately, spare
from skdp.core.schema import DatasetForm, declared, describe_columns, describe_key
from skdp.core.target import Target, over_persons
from skdp.core.types import ByteSource, Matrix, Values
from skdp.estimators.validation import check_labels
from skdp.exceptions import PrivateEvaluationError, UtilityWarning
from skdp.mechanisms.noise import byte_source
from skdp.oracles.trial import check_is_public
from skdp.result import Release
from skdp.results.intervals import Simulator
from skdp.results.names import (
    axis_labels,
    describe_conflict,
    distance_from_prior,
    flat_names,
    flat_numbers,
    repaired,
)
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.likeness import AlikeTarget


class Payment(NamedTuple):
    """What has been paid for: a promise, and the noise, the seed and what was drawn for it."""

    guarantee: PrivacyGuarantee
    budget: BudgetTotal
    noise: ByteSource
    seed: int
    stand_ins: Dataset | Persons | None


def check_private(plan: Any, given: Dataset) -> Dataset:
    """Return private data in the form of the plan, or refuse them."""
    check_is_public(plan.oracle, given._replace(groups=None))
    if (given.groups is None) != (plan.unit == "record"):
        raise ValueError(
            f"The 'groups' must {'be' if given.groups is None else 'not be'} given to execute "
            f"a plan whose unit is the {plan.unit}. Make a plan for the other unit, or change "
            "the call."
        )
    if given.groups is None:
        return _in_form(plan, given, plan.n_samples)
    rows = with_persons(given)
    _in_form(plan, first_of_each(rows), plan.n_samples)  # no message counts the records
    return records_of(plan, rows)


def records_of(plan: Any, persons: Dataset) -> Dataset:
    """Return all records of numbered persons in the form that a record of each has."""
    return _in_form(plan, persons._replace(groups=None))._replace(groups=persons.groups)


def _in_form(plan: Any, dataset: Dataset, n_samples: int | None = None) -> Dataset:
    if plan.prepare is not None:
        dataset = plan.prepare(dataset)
    lengths = list(dataset.lengths.values())
    if n_samples is not None and set(lengths) != {n_samples}:
        raise ValueError(
            f"The private dataset must have {n_samples} {plan.unit}s in each of its parts, as "
            f"the plan has. Got parts of {lengths}. Make a plan for this number."
        )
    dataset, schema = declared(dataset), plan.schema.of_rows
    given, is_sampled = DatasetForm.of(dataset), isinstance(plan.sensitivity, SensitivityEstimate)
    if is_sampled:  # else a record that cannot be converted would be refused
        given = given.agree(schema)
    if given != schema:
        raise ValueError(
            "The private dataset is of another form than the plan: "
            f"{describe_key(given.key)}. The plan is for {describe_key(schema.key)}."
            f"{describe_columns(given.key, schema.key)} Bring it into the form of the "
            "plan, or make a plan for data of this form, with 'like'."
        )
    if plan.classes is not None:
        is_whole = plan.unit == "record" or n_samples is None  # not one record of each
        needed = is_sampled and plan.target.needs_labels and is_whole
        check_labels(dataset.y, plan.classes, needed)
    dataset = schema.convert(dataset, "The private dataset")
    check_gaps(dataset.X, plan.gaps)
    return dataset


def by_name(target: Target, numbers: Matrix | None) -> NDArray[np.float64] | Values | None:
    """Return numbers by the names of attributes, where the target has such."""
    return None if numbers is None else target.by_name(numbers)[0]


def draw_seed(noise: ByteSource) -> int:
    """Draw a seed in [0, 2^31) for private fits."""
    return int.from_bytes(noise.bytes(4), "little") >> 1


def stand_ins_of(plan: Any, seed: int) -> Dataset | Persons | None:
    """Draw records in the places of those far outside, None where no record is far."""
    target = plan.sensitivity.bounded(plan.target, plan.oracle, plan.schema)
    if not isinstance(target, AlikeTarget):
        return None
    return target.with_stand_ins(plan.n_samples, seed).stand_ins


def pay_and_run(
    plan: Any, dataset: Dataset, accountant: PrivacyAccountant, random_state: int | None = None
) -> Release:
    """Pay and release, from records in the form of the plan."""
    noise, shares = byte_source(random_state), plan.shares
    alone, label = not accountant.is_kept, plan.target.description
    guarantee = replace(plan.guarantee, seeded=random_state is not None, alone=alone)
    str(plan)  # whatever may fail comes before the payment
    seed = draw_seed(noise)
    stand_ins = stand_ins_of(plan, seed)
    law = None if plan.target.adds_noise else plan.mechanism.noise_law
    own = replace(guarantee, epsilon=plan.mechanism.guarantee().epsilon)
    spends = shares.spends({"guarantee": own, "law": law, "label": label})
    accountant.rehearse(*spends)
    if shares.check:
        accountant.spend(**spends.pop(0))
        target: Any = plan.sensitivity.bounded(plan.target, plan.oracle, plan.schema)
        shares.check_alike(target, dataset, noise)
    for spend in spends:
        accountant.spend(**spend)
    return run_paid(plan, dataset, Payment(guarantee, accountant.total(), noise, seed, stand_ins))


def run_paid(plan: Any, dataset: Dataset, paid: Payment) -> Release:
    """Release what has been paid for, from records in the form of the plan."""
    described = str(plan)
    mechanism = spare(plan.mechanism)
    target: Any = plan.sensitivity.bounded(spare(plan.target), plan.oracle, plan.schema)
    if isinstance(target, AlikeTarget):
        target.stand_ins = paid.stand_ins

    evaluate: Callable[..., Matrix] = target
    if dataset.groups is not None:
        persons = arrange(dataset, paid.noise)
        if target.sums_persons:
            dataset = persons.rows
            evaluate = partial(over_persons, target, counts=persons.counts)
        else:
            dataset = draw_one(persons, paid.noise)
    if target.adds_noise:
        evaluate = partial(evaluate, noise=paid.noise)

    def add_noise(value: Matrix) -> tuple[Any, Matrix | None]:
        if target.adds_noise:
            return value, target.errors
        return mechanism.release_with_errors(value, plan.sensitivity.value, paid.noise)

    value, errors = evaluate_privately(  # the one private evaluation
        evaluate, dataset, seed=paid.seed, shape=plan.sensitivity.shape, add_noise=add_noise
    )
    if np.isnan(value).any():
        raise PrivateEvaluationError(
            "What was released is beyond the range of the noise, which is "
            f"{plan.mechanism._largest(np.size(value), plan.sensitivity.value):.2g}, and says "
            "nothing else; the budget has paid. Subtract a public constant that is near the "
            "value first, or correct the sensitivity."
        )
    try:
        released = _package(plan, value, errors, paid, described)
        if plan.shares.score:
            scored = plan.shares.score_of(released.value, dataset, paid.noise)
            released = replace(released, private_score=scored)
        return released
    except Exception as error:  # raised by a target of the user
        written = np.asarray(value).tolist()  # every digit
        error.add_note(f"The budget has paid, and what was released is {written!r}.")
        raise


def _package(
    plan: Any, value: Any, errors: Matrix | None, paid: Payment, described: str
) -> Release:
    """Make the Release of a released value."""
    guarantee, known = paid.guarantee, plan.sensitivity
    target = plan.target.with_noise(plan.mechanism, known.value, errors)
    restored = target.restore(value)
    numbers = None if plan.mechanism.chooses else by_name(plan.target, value)
    labels = axis_labels(plan.names, target, None if numbers is None else value, restored)
    code, shape, priors = plan.mechanism.geometry.code, known.shape, None
    oracle, most, conflict = target.oracle(value, guarantee), 0.0, ""
    remark = target.remark(restored if oracle is None else oracle)
    if code is not None and shape is not None:
        deviations = code.deviations.reshape(shape)
        planned = plan.mechanism.standard_errors(shape, known.value)
        if errors is not None and planned is not None:  # a prior that is contradicted is wider
            wider = np.divide(errors, planned, out=np.ones(shape), where=planned > 0)
            deviations = deviations * np.maximum(wider, 1)
        priors = by_name(plan.target, deviations)
    if code is not None and errors is not None and numbers is not None:
        far = flat_numbers(target.by_name(distance_from_prior(code, value, errors))[0])
        most = float(far.max(initial=0))
        names = flat_names(numbers, labels)
        conflict = describe_conflict(most, names[far.argmax()] if most else "", guarantee.gamma)
    if conflict and guarantee.gamma:
        warn(conflict)
    if remark:
        warn(remark, UtilityWarning)
    schema = None if plan.oracle is None else plan.schema  # else it has categories of the data
    mechanism = copy.copy(plan.mechanism)  # that of the plan may be edited
    simulator = Simulator(target, mechanism, known, plan.n_samples, schema, plan.oracle)
    return Release(
        restored,
        guarantee,
        known,
        paid.budget,
        standard_errors=by_name(plan.target, errors),
        numbers=numbers,
        prior_errors=priors,
        plan=described,
        labels=labels,
        simulator=None if mechanism.chooses or target.adds_noise else simulator,
        prior_conflict=most,
        warning=" ".join(filter(None, (conflict, remark))),
        repaired=None if target.adds_noise else repaired(restored, numbers),
        oracle=oracle,
    )
