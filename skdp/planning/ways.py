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
from skdp.core.target import Target, is_auto
from skdp.core.types import Estimator, Seed
from skdp.estimators.precautions import has_parameters
from skdp.estimators.predictions import PredictionTarget
from skdp.estimators.scores import kind_of
from skdp.mechanisms.base import Mechanism
from skdp.planning.aggregate import SampleAndAggregate, bind_blocks, check_blocks
from skdp.planning.making import deviation_of
from skdp.planning.releases import Attributes, Public, kind_of_release
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.bounds import KnownSensitivity, as_prior, as_sensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.preconditions import EstimatorRule
from skdp.sensitivity.sampler import SensitivitySampler

Bound = tuple[Target, Any, Mechanism]
"""A target, its sensitivity, and the mechanism."""


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
        if isinstance(release, str) and release == "predictions":
            release = PredictionTarget()
        elif is_auto(release) and draws and kind_of(estimator) is not None:
            release = release if has_parameters(estimator) else PredictionTarget()
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

    def start(self, n_samples: int) -> Any:
        """Return the sensitivity with its prior."""
        given = self.given
        return self._with_prior(as_sensitivity(given.sensitivity, given.mechanism, n_samples))

    def admit(self, sensitivity: Any, example: Dataset) -> Any:
        """Refuse an estimator that has no such sensitivity; no entry is read."""
        estimator, kind = self.given.estimator, self.kind
        used = kind.reads_response(estimator)
        return sensitivity.for_estimator(estimator, kind.release, example, used)

    def source(self, sensitivity: Any) -> Any:
        """Return what draws the records of the public fit."""
        return sensitivity

    def bind(self, sensitivity: Any, public: Public) -> Bound:
        """Make the target of one estimator."""
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


class Derived(Given):
    """A bound that is derived from the estimator and the clips before it."""

    is_of_one_target = True

    def start(self, n_samples: int) -> Any:
        return self._with_prior(KnownSensitivity(1.0, "l2", n_samples))  # draws the prior

    def admit(self, sensitivity: Any, example: Dataset) -> Any:
        self.kind.check_known(self.given.estimator, example)
        return sensitivity

    def source(self, sensitivity: Any) -> Any:
        return sensitivity.with_prior(None)  # the public fit is made without a prior

    def bind(self, sensitivity: Any, public: Public) -> Bound:
        target, mechanism = (
            self.kind.known_target(self.given.estimator, public),
            self.given.mechanism,
        )
        return target, known_sensitivity(target, mechanism, sensitivity.prior), mechanism


class Aggregated(Given):
    """A bound that holds for any estimator, since one record changes one block."""

    is_of_one_target = True
    takes_weights = False

    @cached_property
    def aggregate(self) -> SampleAndAggregate:
        """How the blocks are made."""
        given = self.given.sensitivity
        return SampleAndAggregate() if isinstance(given, str) else given

    @cached_property
    def kind(self) -> Attributes:
        release = self.given.release
        if isinstance(release, str) and release in ("auto", "predictions"):
            return kind_of_release(PredictionTarget())
        raise ValueError(
            "The 'release' parameter of PrivateEstimator must be 'auto' or 'predictions' with "
            f"sensitivity='aggregate', which averages scores. Got {shown(release)}."
        )

    def check(self) -> None:
        if self.given.prior is None:
            raise ValueError(
                "The 'prior' parameter of PrivateEstimator must be an oracle with "
                "sensitivity='aggregate'. Got None. Its records are where the models of the blocks "
                "are read, such as RandomTaskOracle(X_public, classes=...)."
            )
        as_oracle(self.given.prior)

    def start(self, n_samples: int) -> Any:
        check_blocks(self.aggregate, n_samples)
        return self._with_prior(KnownSensitivity(1.0, "l2", n_samples))

    def admit(self, sensitivity: Any, example: Dataset) -> Any:
        return sensitivity

    def bind(self, sensitivity: Any, public: Public) -> Bound:
        mechanism = self.given.mechanism.with_code(None)
        deviation = partial(deviation_of, mechanism)
        estimator, n_samples = self.given.estimator, public.n_samples
        target = bind_blocks(
            *(self.aggregate, estimator, public.fit, sensitivity, public.schema),
            *(n_samples, deviation),
        )
        return target, known_sensitivity(target, mechanism, sensitivity.prior), mechanism

    @property
    def seed(self) -> Seed:
        return self.aggregate.random_state


def way_of(given: Parameters) -> Given:
    """Return how the sensitivity of a PrivateEstimator is found."""
    sensitivity = given.sensitivity
    if is_derived(given):
        return Derived(given)
    is_word = isinstance(sensitivity, str) and sensitivity == "aggregate"
    return (Aggregated if is_word or isinstance(sensitivity, SampleAndAggregate) else Given)(given)


def is_derived(given: Parameters) -> bool:
    """Return whether the sensitivity is to be derived from the estimator."""
    return isinstance(given.sensitivity, str) and given.sensitivity == "known"


def known_sensitivity(target: Any, mechanism: Mechanism, prior: Any) -> KnownSensitivity:
    """Return the bound of a target in the norm of a mechanism."""
    order = 1 if mechanism.geometry.order == 1 else 2
    return KnownSensitivity(
        target.bound(order),
        f"l{order}",
        target.n_samples,
        preconditions=target.preconditions,
        missing=target.missing,
        source="user guide, 'Sensitivities on paper'",
        shape=target.shape,
        prior=prior,
    )
