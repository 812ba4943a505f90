"""Checks of the parameters and of the form of the records, private ones and examples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import chain
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from skdp.accounting.payer import check_accountant
from skdp.core.checks import shown, warn
from skdp.core.dataset import Dataset, as_dataset
from skdp.core.persons import first_of_each
from skdp.core.room import quiet
from skdp.core.schema import DatasetForm, declared
from skdp.core.types import Container, Estimator
from skdp.estimators.components import PublicComponents
from skdp.estimators.configuration import check_configuration, members_in
from skdp.estimators.delegation import DelegatedMethods
from skdp.estimators.inputs import takes, takes_weights
from skdp.estimators.known_target import public_parameters
from skdp.estimators.members import last_step
from skdp.estimators.precautions import warn_if_fitted
from skdp.estimators.validation import check_private_dataset
from skdp.exceptions import PrivacyLeakWarning
from skdp.mechanisms.noise import byte_source
from skdp.oracles.adapters import as_oracle
from skdp.oracles.trial import check_is_public, shares_memory
from skdp.planning.labels import check_responses, oracle_of, public_classes
from skdp.planning.making import check_mechanism
from skdp.planning.ways import Parameters, Way, way_of
from skdp.results.expected import check_expect
from skdp.results.shares import NO_SHARES, split
from skdp.sensitivity.base import Sensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler


def check_fit(way: Way, dataset: Dataset) -> Dataset:
    """Check the form of the data for an estimator whose parameters were checked."""
    estimator = way.given.estimator
    warn_if_fitted(estimator)
    if dataset.sample_weight is not None:
        name = type(estimator).__name__
        if not (way.takes_weights and takes_weights(estimator)):
            raise TypeError(
                f"PrivateEstimator takes no sample_weight with {name}, nor with "
                "sensitivity='aggregate' or ClassTables. Leave it None."
            )
        if dataset.y is None:
            raise TypeError(
                "PrivateEstimator takes sample_weight beside y, also where the estimator ignores "
                f"y, as {name} may. Pass y=numpy.zeros(len(X)), and let the oracle yield X, y and "
                "sample_weight."
            )
    return data_check(way)(dataset)


def data_check(way: Way) -> Callable[[Dataset], Dataset]:
    """Return the check of a dataset; where the promise is plain, it looks at the form alone."""
    if way.check_data is not None:
        return way.check_data
    estimator = clone(way.given.estimator)
    reads_response = way.kind.reads_response(way.given.estimator)
    classes = public_classes(way) if way.is_plain and is_classifier(estimator) else None
    return partial(check_data, estimator, reads_response, way.is_plain, classes)


def check_data(
    estimator: Estimator,
    reads_response: bool,
    is_plain: bool,
    classes: list[NDArray] | None,
    dataset: Dataset,
) -> Dataset:
    """Check the form of the data, and leave out a y that has no use."""
    if is_plain:
        dataset.refuse_weights()
    tags = get_tags(estimator)
    for kind in ("allow_nan", "categorical", "string", "dict"):
        setattr(tags.input_tags, kind, takes(estimator, kind))
    needs_y = get_tags(last_step(estimator)).target_tags.required  # a pipeline does not say so
    if dataset.y is None and needs_y:
        raise ValueError(
            "This PrivateEstimator requires y to be passed, but the target y is None: "
            f"{type(last_step(estimator)).__name__} needs responses. A plan takes those of 'like' "
            "or of the oracle, such as PublicDataOracle(X, y) or RandomTaskOracle(X, classes=...)."
        )
    if not reads_response and dataset.sample_weight is None:  # which stand beside y
        dataset = dataset._replace(y=None)
    with quiet():  # a conversion may warn of an entry
        return check_private_dataset(dataset, tags, is_plain, classes)


def check_holds_no_record(way: Way, dataset: Dataset, *others: object) -> None:
    """Refuse oracles and public records that hold private ones, and warn of other parameters."""
    given = way.given
    check_is_public(way.oracle, dataset)
    if given.prior is not None:
        check_is_public(as_oracle(given.prior), dataset)
    estimators = given.estimator, *([] if way.student is None else [way.student])
    members = (each.get_params().values() for each in estimators)
    public = [each.X_public for each in chain(*members) if isinstance(each, PublicComponents)]
    if shares_memory(public, dataset):
        raise ValueError(
            "The 'X_public' parameter of PublicComponents must hold public records. Got a part of "
            "the private ones, which voids the promise. Take it from another table."
        )
    declared = chain(way.kind.declared, others, *map(public_parameters, estimators))
    if shares_memory([*declared], dataset):
        warn(
            "A parameter of the 'estimator' or of the 'release' of PrivateEstimator is a part "
            "of the private records, which makes it public: nothing is promised of it. "
            "Declare it, or take it from public records.",
            PrivacyLeakWarning,
        )


def example_dataset(
    n_samples: int, like: Container, sensitivity: Sensitivity, owner: str, allow_nan: bool
) -> Dataset:
    """Return records of which the form and the number are those of the data."""
    if like is None:
        if sensitivity.draws_from is None:
            raise ValueError(
                f"The 'like' parameter of {owner} must be given where there is no oracle to take "
                "the form of the data from. Got None. Pass a few made-up records with the columns "
                "and dtypes of the data, as like=(X, y)."
            )
        return first_of_each(sensitivity.public_dataset(n_samples, allow_nan=allow_nan))
    dataset = as_dataset(like, f"The 'like' parameter of {owner}")
    lengths = list(dataset.lengths.values())
    if set(lengths) == {n_samples}:
        return dataset
    if 0 in lengths or len(set(lengths)) > 1:
        raise ValueError(
            f"The 'like' parameter of {owner} must hold at least one record, and as many in each "
            f"of its parts. Got parts of {lengths}. Pass a few made-up records, of the columns and "
            "dtypes of the private ones."
        )
    return dataset.take(np.resize(np.arange(dataset.n_records), n_samples))


def settle_form(
    sensitivity: Sensitivity, example: Dataset, allow_nan: bool, unit: str = "record"
) -> tuple[Sensitivity, DatasetForm, Dataset]:
    """Settle one form for data and draws, and return the example in it."""
    example = declared(example)
    form = DatasetForm.of(example, allow_nan)
    if unit == "person" and isinstance(sensitivity, SensitivitySampler | SensitivityEstimate):
        form = form.of_persons
    sensitivity, schema = sensitivity.agree(form, example)
    return sensitivity, schema, schema.of_rows.convert(example, "The private dataset")


def check_parameters(given: Parameters) -> Way:
    """Refuse parameters that serve no fit, whatever the data; return the way to the promise."""
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
    check_expect(given.expect, estimator)
    byte_source(given.random_state)  # refuses what is no seed before any work is done
    if given.classes is not None and not is_classifier(estimator):
        raise ValueError(
            "The 'classes' parameter of PrivateEstimator is for classifiers. "
            f"Got {type(estimator).__name__}: leave it None."
        )
    labels = given.classes
    is_list = isinstance(labels, Iterable | None) and not isinstance(labels, str | Mapping)
    if not is_list or len(getattr(labels, "shape", (1,))) != 1:
        raise TypeError(
            "The 'classes' parameter of PrivateEstimator must list the labels, such as "
            f"[0, 1]. Got {shown(labels)}."
        )
    mechanism, shares = split(given)
    if shares != NO_SHARES:
        given = SimpleNamespace(**vars(given) | {"mechanism": mechanism})
    way = way_of(given)
    way.shares, kind = shares, way.kind
    check_configuration(estimator)
    kind.check(estimator)
    way.check()
    check_responses(estimator, oracle_of(way))
    return way
