"""The ways to a promise: a class and a row of `WAYS` for a value of `sensitivity`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, Protocol

import numpy as np
from sklearn.base import is_classifier

from skdp.accounting.accountant import PrivacyAccountant
from skdp.aggregate.blocks import Blocks
from skdp.aggregate.target import SampleAndAggregate, bind_blocks, check_blocks
from skdp.core.checks import shown
from skdp.core.code import PublicCode
from skdp.core.dataset import Dataset
from skdp.core.oracle import Oracle
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Seed
from skdp.estimators.known_target import KnownTarget
from skdp.estimators.precautions import has_parameters
from skdp.estimators.predictions import PredictionTarget
from skdp.estimators.public_fit import Public
from skdp.estimators.scores import kind_of
from skdp.mechanisms.base import Mechanism
from skdp.oracles.adapters import as_oracle
from skdp.planning.kinds import Declared, Kind, kind_of_release
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
