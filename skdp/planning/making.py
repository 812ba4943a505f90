"""Make a plan of a target and a sensitivity: learn a code, sample pairs, fix the promise."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.accounting.accountant import PrivacyAccountant
from skdp.codes.bounded import with_bounded_code
from skdp.codes.encoder import with_learned_code
from skdp.codes.pilots import without_rounding
from skdp.core.checks import shown, warn
from skdp.core.code import PublicCode
from skdp.core.dataset import Dataset
from skdp.core.guarantee import PrivacyGuarantee, weaknesses
from skdp.core.identity import content_of, key_of
from skdp.core.metric import OutputMetric
from skdp.core.oracle import Oracle
from skdp.core.plain import check_gaps, gaps_in
from skdp.core.room import spare
from skdp.core.schema import DatasetForm
from skdp.core.streams import OUTPUT_DATASET
from skdp.core.target import Target, replaces
from skdp.core.types import Matrix, Scoring
from skdp.estimators.public_fit import synthetic_dataset
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import OperatingSystemBytes
from skdp.plan import ReleasePlan, check_chooses
from skdp.planning.worth import advise, warn_of_worth
from skdp.results.names import check_names
from skdp.results.shares import NO_SHARES, Shares
from skdp.sensitivity.base import Sensitivity, refuse_zero
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.encoded import check_pilots_within, encoded
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.made_up import try_on_made_up
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.sensitivity.store import STORE, key_in_store
from skdp.tables.release import ClassTables

PilotPairs = tuple[Matrix, Matrix]  # the first values of pilot pairs, and the differences

MOST_KEPT = 2**22
"""Most numbers of all pilots that are kept for the advice; with more there is no advice."""

N_METRIC_RECORDS = 500
"""Number of the oracle's records from which the metric of the output is learned."""
MOST_RECORDS = 1000  # most records of a pilot dataset where the value is a mean over them


def check_mechanism(mechanism: object, owner: str) -> None:
    """Refuse what is no mechanism."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            f"The 'mechanism' parameter of {owner} must be a Mechanism, such as "
            f"LaplaceMechanism(epsilon=1.0). Got {shown(mechanism)}."
        )


def deviation_of(mechanism: Any, n_values: int, sensitivity: float) -> float:
    """Return the standard deviation of n numbers, given their sensitivity in L2."""
    if mechanism.most_values is not None and n_values > mechanism.most_values:
        return math.inf
    norm = math.sqrt(n_values) ** (mechanism.geometry.order == 1)
    return mechanism.unit_deviation(n_values) * norm * sensitivity


def least_promise(mechanism: Mechanism, sensitivity: object) -> PrivacyGuarantee:
    """Return what a release promises, whatever its sensitivity will be."""
    level: Any
    match sensitivity:
        case SensitivitySampler():
            level = sensitivity.order_statistic()
        case Sensitivity():
            level = sensitivity
        case _:  # a number, or a bound that is derived later
            return mechanism.guarantee()
    return replace(mechanism.guarantee(level.gamma), confidence=level.confidence)


def least_spend(mechanism: Mechanism, sensitivity: object, unit: str = "record") -> dict[str, Any]:
    """Return what a release spends at least."""
    promise = replace(least_promise(mechanism, sensitivity), unit=unit)  # checks the parameters
    law = None if isinstance(sensitivity, ClassTables) else mechanism.noise_law
    return {"guarantee": promise, "law": law}


@dataclass(frozen=True)
class Draft:
    """All of a plan that is settled before pairs are drawn; fields as of a ReleasePlan."""

    target: Target
    schema: DatasetForm
    example: Dataset
    mechanism: Mechanism
    sensitivity: Any
    is_of_one_target: bool = False
    classes: list[NDArray] | None = None
    prepare: Callable[[Dataset], Dataset] | None = None
    scoring: Scoring = None
    made_up: Oracle | None = None
    names: list[str] | None = None
    shares: Shares = NO_SHARES
    unit: str = "record"
    accountant: PrivacyAccountant | None = None
    expect: Mapping[str, float] | None = None
    public: Any = None  # the public fit and its records
    predictions: Callable[[], Target] | None = None
    """Makes the target of predictions, which may be advised."""

    @property
    def n_samples(self) -> int:
        """Number of records, or of persons: an example has a row of each."""
        return self.example.n_records


def make_plan(draft: Draft) -> ReleasePlan:
    """Make a plan: learn a code, sample the sensitivity where it is not known, and rehearse."""
    start, oracle = perf_counter(), draft.sensitivity.draws_from
    draft = replace(draft, mechanism=clone(draft.mechanism))
    gaps = check_draft(draft)
    source, mechanism, pilots = learn_code(draft)
    known, mechanism = source.settle(draft.target, draft.n_samples, draft.schema, mechanism)
    known = rehearse(draft, mechanism, known)
    plan = ReleasePlan(
        draft.target,
        draft.schema,
        draft.n_samples,
        mechanism,
        known,
        oracle=oracle,
        made_up=draft.made_up,
        scoring=draft.scoring,
        classes=draft.classes,
        prepare=draft.prepare,
        seconds=0.0 if oracle is None else perf_counter() - start,
        settled=(draft.target, known, content_of(draft.target)),
        names=draft.names,
        shares=draft.shares,
        unit=draft.unit,
        gaps=gaps,
        accountant=draft.accountant,
        expect=draft.expect,
    )
    if draft.predictions is not None and pilots is not None:
        advice = advise(plan, draft.predictions, pilots)
        plan = replace(plan, advice=advice) if advice else plan
    warn_of_worth(plan)
    return plan


def check_draft(draft: Draft) -> frozenset[int] | None:
    """Refuse what does not go together, warn of a weak promise, and return where gaps may be."""
    mechanism, sensitivity, gaps = draft.mechanism, draft.sensitivity, None
    check_chooses(mechanism, draft.target)
    if draft.target.adds_noise and not draft.is_of_one_target:
        raise ValueError(
            "A target that adds its noise itself must come with ClassTables. Got "
            f"{draft.target.description}: return the exact value, to which the mechanism adds it."
        )
    oracle = sensitivity.draws_from
    has_records = oracle is not None and not isinstance(sensitivity, SensitivityEstimate)
    if mechanism.code == "learned" and not (has_records or sensitivity.geometry.code):
        raise ValueError(
            f"The 'code' parameter of {type(mechanism).__name__} must not be 'learned' where there "
            "are no public records to learn it from. Pass a SensitivitySampler, or a bound with a "
            "'prior'."
        )
    if oracle is not None and not isinstance(sensitivity, KnownSensitivity):
        gaps = frozenset(gaps_in(sensitivity.public_dataset(draft.n_samples, draft.schema).X))
        check_gaps(draft.example.X, gaps)
    draft.shares.check_fits(draft)
    promise = replace(least_promise(mechanism, sensitivity), unit=draft.unit)
    for weakness in weaknesses(draft.shares.whole(promise), draft.n_samples):
        warn(f"The promise is weak: {weakness}.")
    return gaps


def rehearse(draft: Draft, mechanism: Mechanism, known: Any) -> Any:
    """Release a public value before private data are read; return the final sensitivity."""
    target, shape, within = draft.target, known.shape, draft.target.within
    code = mechanism.geometry.code
    is_known = isinstance(draft.sensitivity, KnownSensitivity) and not draft.sensitivity.key
    if is_known and not target.fits_estimator:
        # what fits may fail on made-up records, and a bound with a key was made for its target
        tried, found = try_on_made_up(target, draft.schema, draft.sensitivity)
        shape, within = tried if shape is None else shape, found if within is None else within
    if shape is None and (code or mechanism.most_values):  # too many numbers may be refused
        with suppress(Exception):  # the private records may suit the target better
            made_up = synthetic_dataset(draft.example, draft.classes)
            shape = np.shape(spare(target)(*made_up.parts, seed=0))
    check_names(draft.names, shape)
    if draft.is_of_one_target:
        known = replace(known, key=key_of(target))
    if within is None:
        within = np.zeros((1 if code is None else code.size,) if shape is None else shape)
    released, _ = mechanism.release_with_errors(within, known.value, OperatingSystemBytes())
    if np.isnan(released).any():
        raise ValueError(
            "The value of made-up records, or the middle of the ranges, is too large for a "
            f"sensitivity of {known.value:g}: at most "
            f"{mechanism._largest(np.size(within), known.value):.2g} can be released. Subtract a "
            "public constant that is near it from the records, and add it to what is released."
        )
    return known


def learn_code(draft: Draft) -> tuple[Sensitivity, Mechanism, PilotPairs | None]:
    """Learn a code from pilot pairs, and bound the change of encoded numbers where one is known."""
    mechanism = draft.mechanism
    source = draft.sensitivity.in_norm(mechanism.geometry.order)
    facts: Any = draft.target, draft.n_samples, draft.schema
    match source:
        case SensitivitySampler() if mechanism.learns_code:
            return source, *_learn_sampled(mechanism, source, *facts)
        case KnownSensitivity() if mechanism.learns_code and source.prior is not None:
            return *_learn_within(mechanism, source, *facts), None
    return source, mechanism, None


def _n_drawn(target: Target, n_samples: int) -> int:
    """Return how many records pilots have: a mean, whose change goes with 1 / n, needs fewer."""
    return min(n_samples, MOST_RECORDS) if target.is_mean else n_samples


def _learn_sampled(
    mechanism: Mechanism,
    source: SensitivitySampler,
    target: Target,
    n_samples: int,
    schema: DatasetForm,
) -> tuple[Mechanism, PilotPairs | None]:
    """Learn the code from pilot pairs, before a pair is measured."""
    drawn = _n_drawn(target, n_samples)
    values, differences = pilots = source.pilots(target, drawn, schema)
    statistic = source.order_statistic(few=mechanism.learns_code)

    def learn() -> PublicCode | None:
        metric = _output_metric(target, source, schema)
        shaken = partial(source.shaken_pilots, target, drawn, schema, values.shape[1])
        seen = without_rounding(values, differences, metric, shaken)
        level, noise = statistic.k / (statistic.n_pairs + 1), drawn / n_samples
        options: Any = {"n_samples": drawn, "level": level, "noise": noise}
        learned = with_learned_code(mechanism, *seen, metric, **options)
        return cast("PublicCode | None", learned.geometry.code)

    facts: Any = target, source.draws_from, n_samples, source.draw_seed(), schema
    is_kept = values.size <= MOST_KEPT
    key = key_in_store(*facts, mechanism, statistic, pilots) if is_kept else ""
    mechanism = mechanism.with_code(STORE.made(key, learn))
    return mechanism, pilots if is_kept and drawn == n_samples else None


def _learn_within(
    mechanism: Mechanism,
    known: KnownSensitivity,
    target: Target,
    n_samples: int,
    schema: DatasetForm,
) -> tuple[KnownSensitivity, Mechanism]:
    """Learn a code from the prior of a bound, and bound the change of the encoded numbers."""
    if known.geometry.code is not None:  # learned for an earlier release
        return known, mechanism
    refuse_zero(known.for_geometry(mechanism.geometry, n_samples))
    bounded = known.bounded(target)
    drawn = _n_drawn(bounded, n_samples)
    prior = copy.copy(known.prior).set_params(clip=None)  # the bound is of records as they are
    values, differences = prior.pilots(bounded, drawn, schema)
    metric = _output_metric(target, known, schema)
    check_pilots_within(known, values, differences * (drawn / n_samples))
    mechanism = with_bounded_code(
        mechanism, known.value, values, differences, metric, n_samples=drawn
    )
    if mechanism.geometry.code is None:
        return known, mechanism
    shape: Any = known.shape
    if shape is None:
        public = known.public_dataset(n_samples, schema, attempt=OUTPUT_DATASET)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # only the shape of the value is used
            shape = np.shape(bounded(*public.parts, seed=0))
    return encoded(known, mechanism.geometry, shape), mechanism


def _output_metric(
    target: Target, source: SensitivitySampler | KnownSensitivity, schema: DatasetForm
) -> OutputMetric | None:
    """Return how the output depends on the value, learned from records of the oracle."""
    if not replaces(target, "output_metric"):
        return None
    public = source.public_dataset(N_METRIC_RECORDS, schema, attempt=OUTPUT_DATASET)
    return target.output_metric(*public._replace(groups=None).parts)
