"""Checked parameters of a PrivateEstimator, before any data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any, Protocol

from sklearn.base import is_classifier

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import check_accountant
from skdp.core.checks import shown
from skdp.core.target import Target, is_auto, replaces
from skdp.core.types import Estimator
from skdp.estimators.configuration import check_configuration, members_in
from skdp.estimators.delegation import DelegatedMethods
from skdp.estimators.inputs import uses_response
from skdp.estimators.precautions import (
    check_members,
    has_parameters,
    warn_if_fitted,
    warn_if_unsaved,
)
from skdp.estimators.predictions import (
    PredictionTarget,
    check_predictions,
    kind_of,
)
from skdp.estimators.trees import LeafTarget
from skdp.functions.bernstein import BernsteinTransformer
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.planning.aggregate import SampleAndAggregate
from skdp.planning.making import (
    check_mechanism,
)
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.bounds import KnownSensitivity
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


def is_derived(given: Parameters) -> bool:
    """Return whether the sensitivity is to be derived from the estimator."""
    return isinstance(given.sensitivity, str) and given.sensitivity == "known"


def aggregate_of(given: Parameters) -> SampleAndAggregate | None:
    """Return how the fits to blocks are aggregated, where that is asked for."""
    if isinstance(given.sensitivity, str) and given.sensitivity == "aggregate":
        return SampleAndAggregate()
    return given.sensitivity if isinstance(given.sensitivity, SampleAndAggregate) else None


def rule_of(given: Parameters) -> EstimatorRule | None:
    """Return the rule that says which estimators a bound is for, if it has one."""
    return getattr(given.sensitivity, "estimator", None)


def check_parameters(given: Parameters) -> None:
    """Refuse parameters that serve no fit, whatever the data."""
    estimator = given.estimator
    is_estimator = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    if not is_estimator or isinstance(estimator, type):
        raise TypeError(
            "The 'estimator' parameter of PrivateEstimator must be a scikit-learn estimator, "
            f"such as Ridge(). Got {shown(estimator)}."
        )
    check_mechanism(given.mechanism, "PrivateEstimator")
    if any(isinstance(each, DelegatedMethods) for each in members_in(estimator)):
        raise TypeError(
            "The 'estimator' parameter of PrivateEstimator must not hold another one that is "
            "private, which would release and spend in each fit of a pair. Got "
            f"{shown(estimator)}. Wrap the whole pipeline once."
        )
    check_accountant(given.accountant, "PrivateEstimator")
    byte_source(given.random_state)  # refuses what is no seed before any work is done
    if given.classes is not None and not is_classifier(estimator):
        raise ValueError(
            "The 'classes' parameter of PrivateEstimator is for classifiers. "
            f"Got {type(estimator).__name__}: leave it None."
        )
    if not _lists_labels(given.classes):
        raise TypeError(
            "The 'classes' parameter of PrivateEstimator must list the labels, such as "
            f"[0, 1]. Got {shown(given.classes)}."
        )
    check_release(estimator, settled_release(given))
    _check_anchors(given)
    if given.prior is not None:
        without_oracle = KnownSensitivity | Real | SensitivityEstimate
        is_plain = is_derived(given) or aggregate_of(given) is not None
        if not (is_plain or isinstance(given.sensitivity, without_oracle)):
            raise ValueError(
                "The 'prior' parameter of PrivateEstimator is for a sensitivity known on "
                "paper, 'known', a KnownSensitivity or a number, or for an estimate. Got "
                f"{type(given.sensitivity).__name__}, which has an oracle of its own."
            )
        as_oracle(given.prior)


def _lists_labels(classes: object) -> bool:
    """Return whether something lists labels."""
    if isinstance(classes, str | Mapping) or not isinstance(classes, Iterable | None):
        return False
    return len(getattr(classes, "shape", (1,))) == 1


def check_release(estimator: Estimator, release: object) -> None:
    """Refuse, before any fit, a release that the estimator does not have."""
    check_configuration(estimator)
    if isinstance(release, Target) and not replaces(release, "restore"):
        raise TypeError(
            "The 'release' parameter of PrivateEstimator takes a target that has a method "
            "restore(value) of its own, which makes the released estimator. "
            f"Got {type(release).__name__}."
        )
    if isinstance(release, str) and release != "auto":
        raise ValueError(
            "The 'release' parameter of PrivateEstimator must be 'auto', 'predictions' or a list "
            f"of names of fitted attributes. Got {shown(release)}. A single name is a list too: "
            f"[{shown(release)}]."
        )
    kinds = Iterable | LeafTarget | PredictionTarget | BernsteinTransformer | Target
    if not isinstance(release, kinds):
        raise TypeError(
            "The 'release' parameter of PrivateEstimator must be 'auto', 'predictions', a list of "
            "names of fitted attributes, a LeafTarget, a PredictionTarget, a BernsteinTransformer "
            "or a target, which inherits from skdp.Target and has a method 'restore'. Got "
            f"{type(release).__name__}. "
            "To release the value of a function, use skdp.release."
        )
    if isinstance(release, Sequence) and not all(isinstance(name, str) for name in release):
        raise TypeError(
            "The 'release' parameter of PrivateEstimator must list names of fitted attributes. "
            f"Got {shown(release)}."
        )
    if isinstance(release, LeafTarget):
        release.check(estimator)
    elif isinstance(release, PredictionTarget):
        check_predictions(release, estimator)
    elif isinstance(release, str):
        try:
            check_members(estimator)
        except ValueError as error:
            if kind_of(estimator) is not None:
                error.add_note("With a SensitivitySampler its predictions are released.")
            raise


def settled_release(given: Parameters) -> Any:
    """Return what is released: predictions where "auto" finds no parameters and samples."""
    release, sensitivity = given.release, given.sensitivity
    if aggregate_of(given) is not None and is_auto(release):
        return PredictionTarget()
    if isinstance(release, str) and release == "predictions":
        return PredictionTarget()
    is_estimate = isinstance(sensitivity, SensitivityEstimate) and given.prior is not None
    # a bound, unlike an estimate, does not say what it is of
    if not is_auto(release) or not (is_estimate or isinstance(sensitivity, SensitivitySampler)):
        return release
    if kind_of(given.estimator) is None or has_parameters(given.estimator):
        return release
    return PredictionTarget()


def _check_anchors(given: Parameters) -> None:
    """Refuse to release predictions where no oracle says what they may be."""
    release = settled_release(given)
    if aggregate_of(given) is not None:
        if given.release not in ("auto", "predictions"):
            raise ValueError(
                "The 'release' parameter of PrivateEstimator must be 'auto' or 'predictions' with "
                f"sensitivity='aggregate', which averages scores. Got {shown(given.release)}."
            )
        if given.prior is None:
            raise ValueError(
                "The 'prior' parameter of PrivateEstimator must be an oracle with "
                "sensitivity='aggregate'. Got None. Its records are where the models of the blocks "
                "are read, such as RandomTaskOracle(X_public, classes=...)."
            )
        return
    if not isinstance(release, PredictionTarget):
        return
    if is_derived(given) or rule_of(given) is not None:
        raise ValueError(
            "The 'release' parameter of PrivateEstimator must not be predictions with a "
            "sensitivity that was proved for parameters. Sample it, by a SensitivitySampler."
        )
    if isinstance(given.sensitivity, SensitivitySampler) or given.prior is not None:
        return
    if release.anchors is None or not is_classifier(given.estimator):
        raise ValueError(
            "The 'prior' parameter of PrivateEstimator must be an oracle to release predictions "
            "with a sensitivity that is not sampled now: it draws the public records at which "
            "they are read. A classifier may have a table, PredictionTarget(anchors=...), instead."
        )


def warn_of_parameters(given: Parameters, *estimators: Estimator, held: object = ()) -> None:
    """Warn of estimators that are fitted, and of those that could not be saved."""
    warn_if_fitted(given.estimator, held)
    if not isinstance(given.release, BernsteinTransformer | Target):  # what these make is released
        warn_if_unsaved(*estimators)


def response_is_used(given: Parameters) -> bool:
    """Return whether the estimator, or a target of the user, reads y."""
    return isinstance(given.release, Target) or uses_response(given.estimator)
