"""How the sensitivity of an estimator is found: given, derived from it, or by fits to blocks."""

from __future__ import annotations

from functools import cached_property, partial
from numbers import Real
from typing import Any, Protocol

import numpy as np
from sklearn.base import is_classifier

from skdp.accounting.accountant import PrivacyAccountant
from skdp.core.checks import shown
from skdp.core.dataset import Dataset
from skdp.core.target import Target
from skdp.core.types import Estimator, Seed
from skdp.estimators.precautions import has_parameters
from skdp.estimators.predictions import PredictionTarget
from skdp.estimators.scores import kind_of
from skdp.mechanisms.base import Mechanism
from skdp.planning.aggregate import SampleAndAggregate, bind_blocks, check_blocks
from skdp.planning.making import deviation_of
from skdp.planning.releases import Attributes, Public, kind_of_release
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.base import Sensitivity
from skdp.sensitivity.bounds import KnownSensitivity, as_prior, as_sensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.preconditions import EstimatorRule
from skdp.sensitivity.sampler import SensitivitySampler


class Parameters(Protocol):
    """The parameters of a PrivateEstimator."""

    estimator: Estimator
    mechanism: Mechanism
    sensitivity: Any
    release: Any
    classes: Any
    prior: Any
    accountant: PrivacyAccountant | None
    random_state: int | None


class Given:
    """A sensitivity that the caller gives: a sampler, an estimate, a bound or a number."""

    is_derived = False
    takes_weights = True

    def __init__(self, given: Parameters):
        self.given = given
        self.is_sampled = isinstance(given.sensitivity, SensitivitySampler)
        self.is_plain = isinstance(
            given.sensitivity, KnownSensitivity | SampleAndAggregate | Real | str
        )
        self.rule: EstimatorRule | None = getattr(given.sensitivity, "estimator", None)

    @property
    def is_of_one_target(self) -> bool:
        """Whether the bound is for this target alone."""
        return self.rule is not None

    @cached_property
    def kind(self) -> Attributes:
        """What is released: predictions where "auto" finds no parameters, and an oracle draws."""
        release, estimator = self.given.release, self.given.estimator
        is_estimate = isinstance(self.given.sensitivity, SensitivityEstimate)
        # a bound, unlike an estimate, does not say what it is of
        draws = self.is_sampled or (is_estimate and self.given.prior is not None)
        match release:
            case str("predictions"):
                release = PredictionTarget()
            case str("auto") if draws and kind_of(estimator) and not has_parameters(estimator):
                release = PredictionTarget()
        return kind_of_release(release)

    def check(self) -> None:
        """Refuse a prior and a release that do not go with the sensitivity."""
        prior, release = self.given.prior, self.kind.release
        if prior is not None:
            if self.is_sampled:
                raise ValueError(
                    "The 'prior' parameter of PrivateEstimator is for a sensitivity known on "
                    "paper, 'known', a KnownSensitivity or a number, or for an estimate. Got "
                    "a SensitivitySampler, which has an oracle of its own."
                )
            as_oracle(prior)
        if not isinstance(release, PredictionTarget) or self.is_sampled:
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
        target = self.kind.target(self.given.estimator, public)
        return target, sensitivity, self.given.mechanism

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
        seed = getattr(sensitivity, "seed", self.seed)
        return sensitivity.with_prior(as_prior(self.given.prior, seed))


class Bounded(Given):
    """A bound that follows from its target."""

    is_of_one_target = True

    def start(self, n_samples: int) -> Sensitivity:
        return self._with_prior(KnownSensitivity(1.0, "l2", n_samples))  # draws the prior

    def _bounded(
        self, target: Any, mechanism: Mechanism, prior: object
    ) -> tuple[Target, Sensitivity, Mechanism]:
        """Return a target with its bound in the norm of a mechanism."""
        order = 1 if mechanism.geometry.order == 1 else 2
        known = KnownSensitivity(
            target.bound(order),
            f"l{order}",
            target.n_samples,
            preconditions=target.preconditions,
            missing=target.missing,
            source="user guide, 'Sensitivities on paper'",
            shape=target.shape,
            prior=prior,
        )
        return target, known, mechanism


class Derived(Bounded):
    """A bound that is derived from the estimator and the clips before it."""

    is_derived = True

    def admit(self, sensitivity: Sensitivity, example: Dataset) -> Sensitivity:
        self.kind.check_known(self.given.estimator, example)
        return sensitivity

    def source(self, sensitivity: Any) -> Sensitivity:
        return sensitivity.with_prior(None)  # the public fit is made without a prior

    def bind(self, sensitivity: Any, public: Public) -> tuple[Target, Sensitivity, Mechanism]:
        target = self.kind.known_target(self.given.estimator, public)
        return self._bounded(target, self.given.mechanism, sensitivity.prior)


class Aggregated(Bounded):
    """A bound that holds for any estimator, since one record changes one block."""

    takes_weights = False

    @cached_property
    def aggregate(self) -> SampleAndAggregate:
        """How the blocks are made."""
        given = self.given.sensitivity
        return SampleAndAggregate() if given == "aggregate" else given

    @cached_property
    def kind(self) -> Attributes:
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

    def admit(self, sensitivity: Sensitivity, example: Dataset) -> Sensitivity:
        return sensitivity

    def bind(self, sensitivity: Any, public: Public) -> tuple[Target, Sensitivity, Mechanism]:
        mechanism = self.given.mechanism.with_code(None)
        deviation = partial(deviation_of, mechanism)
        target = bind_blocks(self.aggregate, self.given.estimator, public, deviation)
        return self._bounded(target, mechanism, sensitivity.prior)

    @property
    def seed(self) -> Seed:
        return self.aggregate.random_state


def way_of(given: Parameters) -> Given:
    """Return how the sensitivity of a PrivateEstimator is found."""
    match given.sensitivity:
        case str("known"):
            return Derived(given)
        case str("aggregate") | SampleAndAggregate():
            return Aggregated(given)
    return Given(given)
