"""Where the public class labels come from: declared, drawn from the oracle, or read from y."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from skdp.core.checks import shorten, warn
from skdp.core.dataset import Dataset, n_records
from skdp.core.oracle import Oracle
from skdp.core.plain import for_outputs
from skdp.core.schema import DatasetForm
from skdp.core.types import Container, Estimator
from skdp.estimators.members import last_step
from skdp.estimators.validation import check_response
from skdp.exceptions import PrivacyLeakWarning
from skdp.oracles.adapters import as_oracle
from skdp.oracles.shipped import ShippedOracle
from skdp.planning.ways import Way
from skdp.sensitivity.base import Sensitivity

MAX_ATTEMPTS = 100  # public records are drawn anew at most this often until they hold every class


def oracle_of(way: Way) -> Oracle | None:
    """Return the oracle of the sensitivity, or of the prior."""
    prior = way.given.prior
    return as_oracle(prior) if way.oracle is None and prior is not None else way.oracle


def check_responses(estimator: Estimator, oracle: Oracle | None) -> None:
    """Refuse an oracle that was told to draw labels for a regressor, or numbers for a classifier.

    A public table was not told: whole numbers may be labels, or counts.
    """
    if not isinstance(oracle, ShippedOracle):
        return
    is_wrong = {"labels": is_regressor, "numbers": is_classifier}.get(oracle.responses)
    if is_wrong is not None and is_wrong(estimator):
        wanted = "'y_mean' and 'y_scale', or 'y_bounds'" if is_regressor(estimator) else "'classes'"
        raise ValueError(
            f"The oracle {oracle.description} draws {oracle.responses} as responses, which do not "
            f"suit {type(estimator).__name__}. Declare them by {wanted} instead."
        )


def public_classes(way: Way, oracle: Oracle | None = None) -> list[NDArray] | None:
    """Return the declared labels, of all outputs or one by one; None if there are none."""
    given = way.given
    if given.classes is not None:
        nested = all(isinstance(labels, list | tuple | np.ndarray) for labels in given.classes)
        return [np.unique(labels) for labels in (given.classes if nested else [given.classes])]
    source = oracle or oracle_of(way)
    if source is not None and source.classes_ is not None:
        return [source.classes_]
    if way.is_derived or source is not oracle:  # a prior says nothing of all records
        raise ValueError(
            "The 'classes' parameter of PrivateEstimator must declare the labels with a "
            "sensitivity that is known: what is promised of all records may not depend on theirs. "
            "Got None."
        )
    return None


def labels_for(way: Way, oracle: Oracle | None, y: Container) -> list[NDArray] | None:
    """Return the declared labels; where nothing is public, those of y, under a warning."""
    declared = public_classes(way, oracle)
    if declared is None and oracle is None and way.unit == "person":
        raise ValueError(
            "The 'classes' parameter of PrivateEstimator must declare the labels with groups. Got "
            "None. Pass classes=[...], from public knowledge."
        )
    if declared is None and oracle is None:
        declared = labels_in(y)
        warn(
            "The class labels are read from the private y, which makes them public. Declare them "
            "with the 'classes' parameter of PrivateEstimator.",
            PrivacyLeakWarning,
        )
    if declared is not None:
        for_outputs(declared, len(outputs_of(y)))
    return declared


def labels_of_fit(fitted: Estimator, y: Container) -> list[NDArray]:
    """Return the labels that a fitted classifier has, or those of y if it keeps none."""
    classes, n_outputs = getattr(last_step(fitted), "classes_", None), len(outputs_of(y))
    if classes is None or isinstance(classes, list):
        return classes or labels_in(y)
    return [classes] if n_outputs == 1 else [np.array([0, 1])] * n_outputs


def draw_every_class(
    estimator: Estimator,
    source: Sensitivity,
    schema: DatasetForm,
    n_samples: int,
    classes: list[NDArray] | None,
) -> Dataset:
    """Draw the oracle's records anew until they hold every class."""
    assert source.draws_from is not None
    for attempt in range(MAX_ATTEMPTS):
        public = source.public_dataset(n_samples, schema, attempt)
        if is_classifier(estimator):
            _check_labels_of(source.draws_from.description, public.y, classes)
        if classes is None or _holds_classes(public.y, classes):
            return public
    shown = [labels.tolist() for labels in classes or []]
    raise ValueError(
        f"The oracle must yield every class of {shown[0] if len(shown) == 1 else shown}. "
        f"{MAX_ATTEMPTS} datasets of {n_samples} records each lacked one. "
        "Use an oracle in which each class is common, or declare only its labels in 'classes'."
    )


def _check_labels_of(oracle: str, y: Container, classes: list[NDArray] | None) -> None:
    """Refuse public labels that are all alike, or that were not declared."""
    check_response(np.asarray(y), labels=True)
    drawn = labels_in(y)
    if classes is None or all(len(known) == 1 for known in classes):
        alike = [labels for labels in drawn if len(labels) == 1]
        if alike:
            raise ValueError(
                f"The oracle {oracle} must yield several classes. In a dataset of {n_records(y)} "
                f"records all labels are {alike[0].tolist()[0]!r}."
            )
    for labels, known in zip(drawn, (classes or []) * len(drawn), strict=False):
        unknown = labels[~np.isin(labels, known)]
        if len(unknown):
            raise ValueError(
                f"The oracle {oracle} yields the label {unknown.tolist()[0]!r}, which is not among "
                f"the declared {shorten(known.tolist())}. Declare all labels in 'classes', "
                "of the type that the oracle yields and the data have."
            )


def _holds_classes(y: Container, classes: list[NDArray]) -> bool:
    columns = outputs_of(y)
    outputs = zip(for_outputs(classes, len(columns)), columns, strict=True)
    return all(np.isin(labels, column).all() for labels, column in outputs)


def outputs_of(y: Container) -> NDArray:
    """Return the outputs, one by one."""
    return np.asarray(y).reshape(n_records(y), -1).T


def labels_in(y: Container) -> list[NDArray]:
    """Return the labels that occur in each column of y."""
    return [np.unique(column) for column in outputs_of(y)]
