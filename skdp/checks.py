"""Checks of the parameters and the data that a PrivateEstimator is given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import check_accountant
from skdp.core.checks import shown, warn
from skdp.core.dataset import Dataset
from skdp.core.oracle import Oracle
from skdp.core.room import quiet
from skdp.core.target import Target
from skdp.core.types import Container, Estimator
from skdp.delegation import DelegatedMethods
from skdp.estimators.configuration import members_in
from skdp.estimators.inputs import takes, takes_weights, uses_response
from skdp.estimators.known import public_parameters
from skdp.estimators.members import last_step
from skdp.estimators.validation import check_private_dataset
from skdp.exceptions import PrivacyLeakWarning
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.trial import check_is_public, shares_memory
from skdp.targets import check_release, warn_if_fitted, warn_if_unsaved


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


def check_parameters(given: Parameters) -> None:
    """Refuse what no fit could use, whatever the data."""
    estimator = given.estimator
    is_estimator = hasattr(estimator, "fit") and hasattr(estimator, "get_params")
    if not is_estimator or isinstance(estimator, type):
        raise TypeError(
            "The 'estimator' parameter of PrivateEstimator must be a scikit-learn estimator, "
            f"such as Ridge(). Got {shown(estimator)}."
        )
    if not isinstance(given.mechanism, Mechanism):
        raise TypeError(
            "The 'mechanism' parameter of PrivateEstimator must be a Mechanism, such as "
            f"LaplaceMechanism(epsilon=1.0). Got {shown(given.mechanism)}."
        )
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
    check_release(estimator, given.release)
    if given.prior is not None:
        without_oracle = KnownSensitivity | Real | SensitivityEstimate
        if not (is_derived(given) or isinstance(given.sensitivity, without_oracle)):
            raise ValueError(
                "The 'prior' parameter of PrivateEstimator is for a sensitivity known on "
                "paper, 'known', a KnownSensitivity or a number, or for an estimate. Got "
                f"{type(given.sensitivity).__name__}, which has an oracle of its own."
            )
        as_oracle(given.prior)


def _lists_labels(classes: object) -> bool:
    """Return whether something is a list of labels, and not a text or a table."""
    if isinstance(classes, str | Mapping) or not isinstance(classes, Iterable | None):
        return False
    return len(getattr(classes, "shape", (1,))) == 1


def check_fit(
    given: Parameters, X: Container, y: Container = None, sample_weight: Container = None
) -> Dataset:
    """Check the parameters and the form of the data."""
    check_parameters(given)
    warn_if_fitted(given.estimator)
    warn_if_unsaved(given.release, given.estimator)
    if sample_weight is not None:
        name = type(given.estimator).__name__
        if not takes_weights(given.estimator):
            raise TypeError(f"PrivateEstimator takes no sample_weight with {name}. Leave it None.")
        if y is None:
            raise TypeError(
                "PrivateEstimator takes sample_weight beside y, also where the estimator ignores "
                f"y, as {name} may. Pass y=numpy.zeros(len(X)), and let the oracle yield X, y and "
                "sample_weight."
            )
    return data_check(given)(X, y, sample_weight)


def data_check(given: Parameters) -> Callable[..., Dataset]:
    """Return the check of a dataset: of its form alone where the promise is plain."""
    is_plain = is_derived(given) or isinstance(given.sensitivity, KnownSensitivity | Real)
    classes = public_classes(given) if is_plain and is_classifier(given.estimator) else None
    return partial(
        check_data,
        clone(given.estimator),
        response_is_used(given),
        is_plain=is_plain,
        classes=classes,
    )


def public_classes(given: Parameters, oracle: Oracle | None = None) -> list[NDArray] | None:
    """Return the labels that were declared, of all outputs or output by output; None if none were.

    Under a plain promise they must be: what is promised of all records may not depend on theirs.
    """
    classes: Any = given.classes
    if classes is not None:
        nested = all(isinstance(labels, list | tuple | np.ndarray) for labels in classes)
        return [np.unique(labels) for labels in (classes if nested else [classes])]
    oracle = oracle or getattr(given.sensitivity, "draws_from", None)  # raw ones are adapted
    if oracle is None and given.prior is not None:
        oracle = as_oracle(given.prior)
    if oracle is not None and oracle.classes_ is not None:
        return [oracle.classes_]
    if oracle is None or isinstance(given.sensitivity, str | KnownSensitivity | Real):
        raise ValueError(
            "The 'classes' parameter of PrivateEstimator must declare the labels where no oracle "
            "is asked for them, since no promise may depend on the private ones. Got None."
        )
    return None


def response_is_used(given: Parameters) -> bool:
    """Return whether the estimator, or a target of the user, reads y."""
    return isinstance(given.release, Target) or uses_response(given.estimator)


def check_data(
    estimator: Estimator,
    uses_response: bool,
    X: Container,
    y: Container = None,
    sample_weight: Container = None,
    *,
    is_plain: bool = False,
    classes: list[NDArray] | None = None,
) -> Dataset:
    """Check the form of the data, and leave out a y that has no use."""
    tags = get_tags(estimator)
    for kind in ("allow_nan", "categorical", "string", "dict"):
        setattr(tags.input_tags, kind, takes(estimator, kind))
    needs_y = get_tags(last_step(estimator)).target_tags.required  # a pipeline does not say so
    if y is None and needs_y:
        raise ValueError(
            "This PrivateEstimator requires y to be passed, but the target y is None: "
            f"{type(last_step(estimator)).__name__} needs responses. A plan takes those of 'like' "
            "or of the oracle, such as PublicDataOracle(X, y) or RandomTaskOracle(X, classes=...)."
        )
    if sample_weight is None and not uses_response:
        y = None
    with quiet():  # a conversion may warn of an entry
        return check_private_dataset(X, y, sample_weight, tags, is_plain, classes)


def check_holds_no_record(given: Parameters, dataset: Dataset, *others: object) -> None:
    """Refuse oracles that hold private records, and warn of parameters that do.

    The others are values that a search may set as parameters.
    """
    check_is_public(getattr(given.sensitivity, "draws_from", None), dataset)
    if given.prior is not None:
        check_is_public(as_oracle(given.prior), dataset)
    declared = *public_parameters(given.estimator, given.release), *others
    if any(shares_memory(each, dataset) for each in declared):
        warn(
            "A parameter of the 'estimator' or of the 'release' of PrivateEstimator is a part "
            "of the private records, which makes it public: nothing is promised of it. "
            "Declare it, or take it from public records.",
            PrivacyLeakWarning,
        )
