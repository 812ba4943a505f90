"""The kinds of what is released, and the ways to a promise: two tables of small classes.

A new kind is a class and a row of `KINDS`, for a value of the parameter `release`. A new way is a
class and a row of `WAYS`, for a value of the parameter `sensitivity`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, Protocol

import numpy as np
from sklearn.base import is_classifier

from skdp.accounting.accountant import PrivacyAccountant
from skdp.aggregate.blocks import N_RULES, Blocks, Rules
from skdp.aggregate.code import axes_of
from skdp.aggregate.target import SampleAndAggregate, bind_blocks, check_blocks
from skdp.codes.encoder import MOST_COMPONENTS
from skdp.core.checks import shown
from skdp.core.code import PublicCode
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.oracle import Oracle
from skdp.core.target import Target, is_auto, replaces
from skdp.core.types import Container, Estimator, Seed
from skdp.estimators.configuration import alone, without_side_effects
from skdp.estimators.inputs import uses_response
from skdp.estimators.known_target import KnownTarget, check_known
from skdp.estimators.members import last_step
from skdp.estimators.parameters import ParameterTarget
from skdp.estimators.precautions import check_members, has_parameters
from skdp.estimators.predictions import (
    Predictions,
    PredictionTarget,
    anchors_of,
    check_predictions,
    predictions_of,
)
from skdp.estimators.public_fit import Public
from skdp.estimators.scores import RecordScores, kind_of
from skdp.estimators.trees import LeafTarget, is_tree
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.fitted_function import FittedFunctionTarget
from skdp.functions.known_density import KnownDensityTarget, check_known_density
from skdp.mechanisms.base import Mechanism
from skdp.oracles.adapters import as_oracle
from skdp.planning.making import Draft, deviation_of
from skdp.planning.perturbed import PerturbedTarget, is_perturbed
from skdp.planning.tables import check_declared, check_schema, draft_tables, made_up
from skdp.results.shares import NO_SHARES
from skdp.sensitivity.base import Sensitivity
from skdp.sensitivity.bounds import KnownSensitivity, as_prior, as_sensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.preconditions import EstimatorRule
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.tables.engines import engine_table
from skdp.tables.release import ClassTables

MOST_ROWS = 4000  # from which a student learns, times the number of classes
MOST_NUMBERS = 2**23  # of the probabilities of random rules


class Kind:
    """Fitted attributes: those of the catalog, or a list of names."""

    configure: Callable[[Estimator], Estimator] = staticmethod(without_side_effects)
    student: Estimator = None
    takes_weights = True  # of the records of persons
    declared: tuple[object, ...] = ()
    """What it holds that must be public."""

    def __init__(self, release: Any):
        self.release = release

    def reads_response(self, estimator: Estimator) -> bool:
        """Return whether y has a use."""
        return uses_response(estimator)

    def check(self, estimator: Estimator) -> None:
        """Refuse, before any fit, a release that the estimator does not have."""
        match self.release:
            case str("auto"):
                try:
                    check_members(estimator)
                except ValueError as error:
                    if kind_of(estimator) is not None:
                        error.add_note("With a SensitivitySampler its predictions are released.")
                    raise
            case str(name):
                raise ValueError(
                    "The 'release' parameter of PrivateEstimator must be 'auto', 'predictions' or "
                    f"a list of names of fitted attributes. Got {shown(name)}. A single name is a "
                    f"list too: [{shown(name)}]."
                )
            case Sequence() as names if not all(isinstance(name, str) for name in names):
                raise TypeError(
                    "The 'release' parameter of PrivateEstimator must list names of fitted "
                    f"attributes. Got {shown(names)}."
                )

    def check_known(self, estimator: Estimator, example: Dataset) -> None:
        """Refuse what has no sensitivity on paper."""
        check_known(estimator, self.release, example)

    def target(self, estimator: Estimator, public: Public) -> Target:
        """Make the target of one estimator."""
        if is_auto(self.release) and is_tree(last_step(estimator)):
            return name_weights(LeafTarget(estimator, public.fit), public)
        return name_weights(ParameterTarget(estimator, self.release, public.fit), public)

    def coded(self, target: Any, public: Public, code: Any) -> Target:
        """Return the target for a code that is learned from pilots, or for what has a size."""
        return target

    def known_target(
        self, estimator: Estimator, public: Public, mechanism: Mechanism | None
    ) -> Any:
        """Make the target whose sensitivity is known on paper, and that suits a mechanism."""
        return KnownTarget(estimator, public.fit, public.n_samples, mechanism)


class Taught(Kind):
    """Predictions at public points, from which a student learns."""

    configure = staticmethod(alone)

    def __init__(self, release: PredictionTarget):
        super().__init__(release)
        self.student, self.declared = release.student, (release.anchors,)

    def check(self, estimator: Estimator) -> None:
        check_predictions(self.release, estimator)

    def target(self, estimator: Estimator, public: Public) -> Target:
        anchors = anchors_of(self.release, estimator, public.source, public.schema)
        given = public.fit, public.dataset, anchors, public.n_samples
        return name_weights(predictions_of(self.release, estimator, *given), public)

    def coded(self, target: Predictions, public: Public, code: Any) -> Target:
        """Add the axes of random rules, where the oracle has such and they suit the records."""
        reader, n, width = target.reader, n_records(target.anchors), target.reader.n_columns
        has_rules = bool(getattr(public.source.draws_from, "responses", ""))
        is_plain = not has_rules or getattr(code, "size", None) == target.size
        if is_plain or isinstance(reader, RecordScores):
            return target
        k, given = max(2, width), (target.estimator, public.source, public.schema)
        rows = anchors_of(self.release, *given, least=min(10 * n, MOST_ROWS) // k)
        n_rules = min(max(200, N_RULES // k), MOST_NUMBERS // (n_records(rows) * k))
        if n_rules < 2 * MOST_COMPONENTS:
            return target
        with suppress(ValueError, TypeError):  # records that no rule can tell apart
            rules, rng = Rules.of(reader, rows, public), np.random.default_rng(0)
            axes = axes_of(rules.truths(n_rules, rng), width)[0][width:]
            axes = axes[: n * width // 3] * math.sqrt(axes.shape[1])
            parts = target.estimator, self.release.student, reader
            anchors = take_records(rows, np.arange(n))
            target = Predictions(*parts, anchors, target.n_samples, rows, axes)
            return name_weights(target, public)
        return target


class OnLattice(Kind):
    """The function that an estimator learns, on a lattice."""

    def __init__(self, release: BernsteinTransformer):
        super().__init__(release)
        self.declared = (release.feature_range,)

    def check(self, estimator: Estimator) -> None:
        """Refuse nothing: the target checks the lattice."""

    def check_known(self, estimator: Estimator, example: Dataset) -> None:
        check_known_density(estimator, example)

    def target(self, estimator: Estimator, public: Public) -> Target:
        return name_weights(FittedFunctionTarget(estimator, self.release, public.fit), public)

    def known_target(
        self, estimator: Estimator, public: Public, mechanism: Mechanism | None
    ) -> Any:
        n_samples, X = public.n_samples, public.dataset.X
        return KnownDensityTarget(estimator, self.release, public.fit, n_samples, X)


class Own(Kind):
    """What a target of the user makes of the records."""

    takes_weights = False

    def reads_response(self, estimator: Estimator) -> bool:
        return True

    def check(self, estimator: Estimator) -> None:
        if not replaces(self.release, "restore"):
            raise TypeError(
                "The 'release' parameter of PrivateEstimator takes a target that has a method "
                "restore(value) of its own, which makes the released estimator. "
                f"Got {type(self.release).__name__}."
            )

    def target(self, estimator: Estimator, public: Public) -> Target:
        return self.release


KINDS = {PredictionTarget: Taught, BernsteinTransformer: OnLattice, Target: Own, Iterable: Kind}


def kind_of_release(release: object) -> Kind:
    """Return the kind of a value of the parameter `release`."""
    for each, kind in KINDS.items():
        if isinstance(release, each):
            return kind(release)
    raise TypeError(
        "The 'release' parameter of PrivateEstimator must be 'auto', 'predictions', a list of "
        "names of fitted attributes, a PredictionTarget, a BernsteinTransformer "
        "or a target, which inherits from skdp.Target and has a method 'restore'. Got "
        f"{type(release).__name__}. To release the value of a function, use skdp.release."
    )


def name_weights(target: Target, public: Public) -> Target:
    """Add to the description and the key of a target that its records have weights."""
    for quality in public.dataset.qualities:
        target.description += f", {quality}"
        target.key_parts += (quality,)
    return target


class Parameters(Protocol):
    """The parameters of a PrivateEstimator."""

    estimator: Estimator
    mechanism: Mechanism
    sensitivity: Any
    release: Any
    classes: Any
    prior: Any
    accountant: PrivacyAccountant | None
    expect: Any
    shares: Any
    unit: str | None
    records_per_person: float
    random_state: int | None


class Way:
    """A sensitivity that the caller gives; other ways derive it from the estimator."""

    is_plain = False  # whether the promise is of all records
    is_derived = False  # whether the bound is derived from the estimator
    is_of_one_target = False  # whether the sensitivity is of this target alone
    draws = False  # whether records are drawn at which predictions can be read
    takes_weights = True
    unit = "record"  # what the promise is about
    shares = NO_SHARES  # of counts beside the release
    rule: EstimatorRule | None = None  # for the only estimator that a bound is of

    def __init__(self, given: Parameters):
        self.given = given

    @property
    def oracle(self) -> Oracle | None:
        """The oracle of the sensitivity itself; a prior is another one."""
        known = self.given.sensitivity
        return known.draws_from if isinstance(known, Sensitivity) else None

    @property
    def student(self) -> Estimator:
        """The estimator that is taught in the place of the wrapped one, if there is one."""
        return self.kind.student

    @cached_property
    def kind(self) -> Kind:
        """What is released: predictions where "auto" finds no parameters, and an oracle draws."""
        release, estimator = self.given.release, self.given.estimator
        match release:
            case str("predictions"):
                release = PredictionTarget()
            case str("auto") if self.draws and kind_of(estimator) and not has_parameters(estimator):
                release = PredictionTarget()
        return kind_of_release(release)

    def check(self) -> None:
        """Refuse a prior and a release that do not go with the sensitivity."""
        prior, release = self.given.prior, self.kind.release
        if prior is not None:
            as_oracle(prior)
        if not isinstance(release, PredictionTarget):
            return
        if self.is_of_one_target:
            raise ValueError(
                "The 'release' parameter of PrivateEstimator must not be predictions with a "
                "sensitivity that was proved for parameters. Sample it, by a SensitivitySampler."
            )
        if prior is None and (release.anchors is None or not is_classifier(self.given.estimator)):
            raise ValueError(
                "The 'prior' parameter of PrivateEstimator must be an oracle to release "
                "predictions with a sensitivity that is not sampled now: it draws the public "
                "records at which they are read. A classifier may have a table, "
                "PredictionTarget(anchors=...), instead."
            )

    @property
    def check_data(self) -> Callable[[Dataset], Dataset] | None:
        """Return the check of the form of the data, where it is not that of the estimator."""
        return None

    @property
    def like(self) -> Container:
        """Return made-up records, where the way knows their form."""
        return None

    def draft(self, example: Dataset) -> Draft | None:
        """Settle the plan, where it takes no public fit."""
        return None

    def located(self, like: Container, n_samples: int) -> Container:
        """Return an example of records, or of where they lie."""
        return like

    def start(self, n_samples: int) -> Sensitivity:
        """Return the sensitivity with its prior."""
        given = self.given
        return self._with_prior(as_sensitivity(given.sensitivity, given.mechanism, n_samples))

    def admit(self, sensitivity: Sensitivity, example: Dataset) -> Sensitivity:
        """Refuse an estimator that has no such sensitivity; no entry is read."""
        estimator, used = self.given.estimator, self.kind.reads_response(self.given.estimator)
        return sensitivity.for_estimator(estimator, self.kind.release, example, used)

    def source(self, sensitivity: Sensitivity) -> Sensitivity:
        """Return what draws the records of the public fit."""
        return sensitivity

    def bind(self, sensitivity: Any, public: Public) -> tuple[Target, Sensitivity, Mechanism]:
        """Make the target of one estimator, its sensitivity, and the mechanism."""
        target, code = self.kind.target(self.given.estimator, public), self.code(sensitivity)
        target = target if code is None else self.kind.coded(target, public, code)
        return target, sensitivity, self.given.mechanism

    def code(self, sensitivity: Any) -> SensitivityEstimate | PublicCode | str | None:
        """Return what was measured, whether its code was worth its while or not, or a code."""
        mechanism = self.given.mechanism
        if isinstance(sensitivity, SensitivityEstimate):
            return sensitivity
        is_sampled = self.draws and math.isfinite(mechanism.guarantee().epsilon)
        return mechanism.code if is_sampled else None

    @property
    def seed(self) -> Seed:
        """Seed of the prior: a seed of the noise seeds the pilots."""
        if self.given.random_state is None:
            return None
        words = np.random.SeedSequence(self.given.random_state, spawn_key=(1,)).generate_state(4)
        return int.from_bytes(words.tobytes())

    def _with_prior(self, sensitivity: Any) -> Any:
        if self.given.prior is None:
            return sensitivity
        return sensitivity.with_prior(as_prior(self.given.prior, self.seed))


class Sampled(Way):
    """A sensitivity that is sampled now."""

    draws = True

    def check(self) -> None:
        if self.given.prior is not None:
            raise ValueError(
                "The 'prior' parameter of PrivateEstimator is for a sensitivity known on "
                "paper, 'known', a KnownSensitivity or a number, or for an estimate. Got "
                "a SensitivitySampler, which has an oracle of its own."
            )


class Estimated(Way):
    """A sensitivity that was sampled earlier."""

    def __init__(self, given: Parameters):
        super().__init__(given)
        self.draws = given.prior is not None

    @property
    def seed(self) -> Seed:
        return self.given.sensitivity.seed


class Bounded(Way):
    """A bound on paper that the caller gives."""

    is_plain = True

    def __init__(self, given: Parameters):
        super().__init__(given)
        self.rule = given.sensitivity.estimator
        self.is_of_one_target = self.rule is not None


class Asserted(Way):
    """A number that the caller asserts."""

    is_plain = True


class Proved(Way):
    """A bound that follows from the target; a subclass makes the target."""

    is_plain = is_of_one_target = True

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism for the target."""
        return self.given.mechanism

    def start(self, n_samples: int) -> Sensitivity:
        return self._with_prior(KnownSensitivity(1.0, "l2", n_samples))  # draws the prior

    def admit(self, sensitivity: Sensitivity, example: Dataset) -> Sensitivity:
        return sensitivity

    def make_target(self, public: Public) -> Any:
        """Make a target that has a `bound`, and says of what it is."""
        raise NotImplementedError

    def bind(self, sensitivity: Any, public: Public) -> tuple[Target, Sensitivity, Mechanism]:
        target, order = self.make_target(public), 1 if self.mechanism.geometry.order == 1 else 2
        if self.unit == "person" and isinstance(target, KnownTarget | Blocks):
            target.weigh_persons(self.given.records_per_person)
        known = KnownSensitivity(
            target.bound(order),
            f"l{order}",
            target.n_samples,
            preconditions=target.preconditions,
            missing=target.missing,
            source="user guide, 'Sensitivities on paper'",
            shape=target.shape,
            prior=sensitivity.prior,
        )
        return target, known, self.mechanism


class Derived(Proved):
    """A bound that is derived from the estimator and the clips before it."""

    is_derived = True

    def admit(self, sensitivity: Sensitivity, example: Dataset) -> Sensitivity:
        self.kind.check_known(self.given.estimator, example)
        return sensitivity

    def source(self, sensitivity: Any) -> Sensitivity:
        return sensitivity.with_prior(None)  # the public fit is made without a prior

    def make_target(self, public: Public) -> Any:
        given = self.given
        suited_to = given.mechanism if given.prior is None else None  # a prior brings its own code
        target = self.kind.known_target(given.estimator, public, suited_to)
        if given.prior is None and is_perturbed(target, given.mechanism):
            parts = given.estimator, public.fit, public.n_samples
            target = PerturbedTarget(*parts, mechanism=given.mechanism)
        return target


class Aggregated(Proved):
    """A bound that holds for any estimator, since one record changes one block."""

    takes_weights = False

    def __init__(self, given: Parameters):
        super().__init__(given)
        chosen = given.sensitivity
        self.aggregate = SampleAndAggregate() if isinstance(chosen, str) else chosen

    @property
    def student(self) -> Estimator:
        return self.aggregate.student

    @cached_property
    def kind(self) -> Kind:
        match self.given.release:
            case str("auto" | "predictions"):
                return kind_of_release(PredictionTarget())
        raise ValueError(
            "The 'release' parameter of PrivateEstimator must be 'auto' or 'predictions' with "
            f"sensitivity='aggregate', which averages scores. Got {shown(self.given.release)}."
        )

    def check(self) -> None:
        if self.given.prior is None:
            raise ValueError(
                "The 'prior' parameter of PrivateEstimator must be an oracle with "
                "sensitivity='aggregate'. Got None. Its records are where the models of the blocks "
                "are read, such as RandomTaskOracle(X_public, classes=...)."
            )
        as_oracle(self.given.prior)

    def start(self, n_samples: int) -> Sensitivity:
        check_blocks(self.aggregate, n_samples)
        return super().start(n_samples)

    @property
    def mechanism(self) -> Mechanism:
        return self.given.mechanism.with_code(None)

    def make_target(self, public: Public) -> Any:
        deviation = partial(deviation_of, self.mechanism)
        return bind_blocks(self.aggregate, self.given.estimator, public, deviation)

    @property
    def seed(self) -> Seed:
        return self.aggregate.random_state


class Declared(Kind):
    """An estimator that learns from a released law."""

    def reads_response(self, estimator: Estimator) -> bool:
        return True

    def check(self, estimator: Estimator) -> None:
        """Refuse nothing: any estimator learns from draws."""


class Tables(Proved):
    """Class tables, for any estimator: ranges and values of a schema bound what a record adds."""

    takes_weights = False

    @cached_property
    def kind(self) -> Kind:
        return Declared(self.given.release)

    def check(self) -> None:
        given, schema = self.given, self.given.sensitivity.schema
        for name, default in (("release", "auto"), ("prior", None), ("classes", None)):
            value = getattr(given, name)
            if not (value is None or (isinstance(value, str) and value == default)):
                raise ValueError(
                    f"The {name!r} parameter of PrivateEstimator must be {default!r} with "
                    f"ClassTables, whose Schema says what is public. Got {shown(value)}."
                )
        check_schema(schema, given.estimator)

    @property
    def check_data(self) -> Callable[[Dataset], Dataset]:
        chosen = self.given.sensitivity
        return partial(check_declared, chosen.schema, chosen.n_samples)

    def located(self, like: Container, n_samples: int) -> Container:
        X, y, *_ = (*like, None) if isinstance(like, tuple) else (like, None)
        table = engine_table(X, y, self.given.sensitivity.schema, n_samples)
        return like if table is None else table

    @property
    def like(self) -> Container:
        return made_up(self.given.sensitivity.schema).parts

    def draft(self, example: Dataset) -> Draft:
        given = self.given
        chosen = given.sensitivity
        seed = self.seed if chosen.random_state is None else chosen.random_state
        drafted = draft_tables(chosen, given.mechanism, example, given.estimator, seed)
        n = None if self.unit == "person" else example.n_records  # the plan counts persons
        check = partial(check_declared, chosen.schema, n)
        others = {"accountant": given.accountant, "expect": given.expect, "unit": self.unit}
        return replace(drafted, prepare=check, shares=self.shares, **others)


WAYS: dict[Any, type[Way]] = {
    "known": Derived,
    "aggregate": Aggregated,
    SampleAndAggregate: Aggregated,
    ClassTables: Tables,
    SensitivitySampler: Sampled,
    SensitivityEstimate: Estimated,
    KnownSensitivity: Bounded,
    Real: Asserted,
}


def way_of(given: Parameters) -> Way:
    """Return the way to the promise of a PrivateEstimator."""
    chosen = given.sensitivity
    if isinstance(chosen, str) and chosen in WAYS:
        return WAYS[chosen](given)
    for each, way in WAYS.items():
        if isinstance(each, type) and isinstance(chosen, each):
            return way(given)
    as_sensitivity(chosen, given.mechanism, n_samples=1)  # refuses what is none
    return Way(given)
