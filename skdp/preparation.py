"""What is public about a fit: its target, the public fit, the form of the data and the labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier

from skdp.checks import Parameters, data_check, is_derived, public_classes, response_is_used
from skdp.core.checks import shorten, warn
from skdp.core.dataset import Dataset, n_records
from skdp.core.oracle import Oracle
from skdp.core.plain import for_outputs
from skdp.core.schema import Schema
from skdp.core.target import Target
from skdp.core.types import Container, Estimator
from skdp.estimators.configuration import without_side_effects
from skdp.estimators.inputs import takes
from skdp.estimators.known import KnownTarget, check_known
from skdp.estimators.members import classes_of_outputs
from skdp.estimators.public_fit import fit_seeded, fit_to_synthetic, synthetic_dataset
from skdp.estimators.validation import check_labels, check_response
from skdp.exceptions import PrivacyLeakWarning
from skdp.functions.bernstein import BernsteinTransformer
from skdp.known_density import KnownDensityTarget, check_known_density, warn_of_kernel
from skdp.mechanisms.base import Mechanism
from skdp.plan import ReleasePlan
from skdp.planning import make_plan, settle_form
from skdp.sensitivity.adapters import with_numbered_labels
from skdp.sensitivity.bounds import KnownSensitivity, as_prior, as_sensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.preconditions import EstimatorRule
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.targets import make_target, warn_of_unknown_categories

# How often public records are drawn anew until they hold every class.
MAX_ATTEMPTS = 100


@dataclass(frozen=True)
class Preparation:
    """All that is public about a fit but its sensitivity, which may take long to sample."""

    target: Target
    schema: Schema
    example: Dataset
    mechanism: Mechanism
    sensitivity: Any
    classes: list[NDArray] | None
    check: Callable[..., Dataset]
    public: Dataset
    derived: bool

    def plan(self) -> ReleasePlan:
        """Sample the sensitivity if need be, and make the plan."""
        return make_plan(
            self.target,
            self.schema,
            self.example,
            mechanism=self.mechanism,
            sensitivity=self.sensitivity,
            derived=self.derived,
            classes=self.classes,
            prepare=self.check,
        )


def prepare(given: Parameters, example: Dataset) -> Preparation:
    """Settle what is public, from the form of the data; of entries are seen labels, and gaps."""
    n_samples, derived = example.n_records, is_derived(given)
    sensitivity: Any = given_sensitivity(given, n_samples)
    if derived:
        if _is_on_lattice(given):
            check_known_density(given.estimator, example)
        else:
            check_known(given.estimator, given.release, example)
    else:
        sensitivity = sensitivity.for_estimator(
            given.estimator, given.release, example, response_is_used(given)
        )
    oracle = sensitivity.draws_from
    if isinstance(sensitivity, SensitivitySampler) and _are_numbered(given, example.y, oracle):
        sensitivity = clone(sensitivity).set_params(oracle=with_numbered_labels(oracle))
    allow_nan = takes(given.estimator, "allow_nan")
    sensitivity, schema, example = settle_form(sensitivity, example, allow_nan)
    if derived:
        sensitivity = replace(sensitivity, prior=None)  # it has a say in the form only
    public_fit, public, classes = _make_public_fit(given, sensitivity, schema, example)
    if derived:
        target, known = _derive(given, public_fit, n_samples, public.X)
        sensitivity = _with_prior(given, known)
    else:
        weighted = example.sample_weight is not None
        target = make_target(given.estimator, given.release, public_fit, weighted)
    warn_of_kernel(target, public_fit, n_samples)
    warn_of_unknown_categories(public_fit, schema.parts[0])
    return Preparation(
        *(target, schema, example, given.mechanism, sensitivity, classes),
        *(data_check(given), public, derived or _rule_of(given) is not None),
    )


def given_sensitivity(given: Parameters, n_samples: int) -> Any:
    """The sensitivity as given, with its prior; of one to be derived what draws the prior."""
    if is_derived(given):
        return _with_prior(given, KnownSensitivity(1.0, "l2", n_samples))
    return _with_prior(given, as_sensitivity(given.sensitivity, given.mechanism, n_samples))


def _with_prior(given: Parameters, sensitivity: Any) -> Any:
    """Give a bound or estimate the prior, if there is one; pilots are seeded where the noise is."""
    if given.prior is None:
        return sensitivity
    if isinstance(sensitivity, SensitivityEstimate):
        sampler = SensitivitySampler(given.prior, random_state=sensitivity.seed)
        return replace(sensitivity, prior=sampler)
    seed = None
    if given.random_state is not None:
        words = np.random.SeedSequence(given.random_state, spawn_key=(1,)).generate_state(4)
        seed = int.from_bytes(words.tobytes())
    return replace(sensitivity, prior=as_prior(given.prior, seed))


def _rule_of(given: Parameters) -> EstimatorRule | None:
    """Return which estimators a bound on paper is for, if it says so."""
    return getattr(given.sensitivity, "estimator", None)


def _is_on_lattice(given: Parameters) -> bool:
    return isinstance(given.release, BernsteinTransformer)


def _derive(
    given: Parameters, public_fit: Estimator, n_samples: int, X: Container
) -> tuple[Target, KnownSensitivity]:
    target: KnownTarget | KnownDensityTarget
    if _is_on_lattice(given):
        target = KnownDensityTarget(given.estimator, given.release, public_fit, n_samples, X)
    else:
        target = KnownTarget(given.estimator, public_fit, n_samples)
    return target, known_sensitivity(target, given.mechanism)


def known_sensitivity(
    target: KnownTarget | KnownDensityTarget, mechanism: Mechanism
) -> KnownSensitivity:
    """Return the bound of a target in the norm of a mechanism, and for a choice in both."""
    first, l2 = map(target.bound, (1, 2))
    in_l1 = mechanism.geometry.order == 1
    if isinstance(target, KnownDensityTarget):
        declared, missing, filled = "the box", "records with missing numbers left out", ""
    else:
        declared, missing = "labels, bounds", "missing numbers counted as 0"
        filled = " after the steps"
    if target.steps.steps:
        missing += f"{filled}, unless one fills them"
    return KnownSensitivity(
        first if in_l1 else l2,
        "l1" if in_l1 else "l2",
        target.n_samples,
        l2_value=min(first, l2) if len(mechanism.alternatives) > 1 else None,
        preconditions=f"that {declared} and frozen steps are public",
        missing=missing,
        source="user guide, 'Sensitivities on paper'",
        shape=target.shape,
    )


def _make_public_fit(
    given: Parameters, sensitivity: Any, schema: Schema, dataset: Dataset
) -> tuple[Estimator, Dataset, list[NDArray] | None]:
    """Make the public fit, its records and labels; refuse private labels that it does not know."""
    estimator, oracle = without_side_effects(given.estimator), sensitivity.draws_from
    declared = public_classes(given, oracle) if is_classifier(estimator) else None
    if declared is None and oracle is None and is_classifier(estimator):
        declared = _labels(dataset.y)
        warn(
            "The class labels are read from the private y, which makes them public. Declare them "
            "with the 'classes' parameter of PrivateEstimator.",
            PrivacyLeakWarning,
        )
    if declared is not None:
        for_outputs(declared, len(_columns(dataset.y)))
    if oracle is None:
        fit, public = fit_to_synthetic, synthetic_dataset(dataset, declared)
    else:
        n_samples = dataset.n_records
        fit, public = (
            fit_seeded,
            _draw_every_class(estimator, sensitivity, schema, n_samples, declared),
        )
    rule = _rule_of(given)
    if rule is not None:
        rule.check_classes(_labels(public.y))
    public_fit = fit(estimator, public)
    if not is_classifier(public_fit):
        return public_fit, public, None
    classes = classes_of_outputs(public_fit, len(_columns(public.y)))
    check_labels(dataset.y, classes)
    return public_fit, public, classes


def _are_numbered(given: Parameters, y: Container, oracle: Oracle) -> bool:
    """Return whether labels are the numbers that an ensemble gives to the public ones."""
    labels = oracle.classes_
    if given.classes is not None or labels is None or not is_classifier(given.estimator):
        return False
    if y.ndim != 1 or y.dtype.kind not in "iu" or np.isin(y, labels).all():
        return False
    return bool(np.isin(y, np.arange(len(labels))).all())


def _columns(y: Container) -> NDArray:
    """The outputs, one by one."""
    return np.asarray(y).reshape(n_records(y), -1).T


def _labels(y: Container) -> list[NDArray]:
    return [np.unique(column) for column in _columns(y)]


def _draw_every_class(
    estimator: Estimator,
    sensitivity: Any,
    schema: Schema,
    n_samples: int,
    classes: list[NDArray] | None,
) -> Dataset:
    """Draw the oracle's records anew until they hold every class."""
    oracle = sensitivity.draws_from.description
    for attempt in range(MAX_ATTEMPTS):
        public = sensitivity.public_dataset(n_samples, schema, attempt)
        if is_classifier(estimator):
            _check_labels_of(oracle, public.y, classes)
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
    drawn = _labels(y)
    if classes is None or all(len(known) == 1 for known in classes):
        alike = [labels for labels in drawn if len(labels) == 1]
        if alike:
            raise ValueError(
                f"The oracle {oracle} must yield several classes. In a dataset of {n_records(y)} "
                f"records all labels are {alike[0].tolist()[0]!r}."
            )
    if classes is None:
        return
    for labels, known in zip(drawn, classes * len(drawn), strict=False):
        unknown = labels[~np.isin(labels, known)]
        if len(unknown):
            raise ValueError(
                f"The oracle {oracle} yields the label {unknown.tolist()[0]!r}, which is not among "
                f"the declared {shorten(known.tolist())}. Declare all labels in 'classes', "
                "of the type that the oracle yields and the data have."
            )


def _holds_classes(y: Container, classes: list[NDArray]) -> bool:
    columns = _columns(y)
    expected = classes * len(columns) if len(classes) == 1 else classes
    return all(
        np.isin(labels, column).all() for labels, column in zip(expected, columns, strict=True)
    )
