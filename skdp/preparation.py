"""What is public about a fit: checked parameters, the form of the data, target and public fit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier
from sklearn.utils import get_tags

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import check_accountant
from skdp.aggregate import Blocks, SampleAndAggregate
from skdp.core.checks import shorten, shown, warn
from skdp.core.dataset import Dataset, n_records
from skdp.core.oracle import Oracle
from skdp.core.plain import for_outputs
from skdp.core.room import quiet
from skdp.core.schema import Schema
from skdp.core.target import Target, is_auto, replaces
from skdp.core.types import Container, Estimator, Scoring
from skdp.estimators.catalog.compositions import is_frozen, is_pipeline
from skdp.estimators.clip import ClipBox
from skdp.estimators.configuration import check_configuration, members_in, without_side_effects
from skdp.estimators.delegation import DelegatedMethods
from skdp.estimators.inputs import takes, takes_weights, uses_response
from skdp.estimators.known import KnownTarget, check_known, public_parameters
from skdp.estimators.members import classes_of_outputs, last_step
from skdp.estimators.parameters import ParameterTarget
from skdp.estimators.precautions import (
    check_members,
    has_parameters,
    warn_if_fitted,
    warn_if_unsaved,
    warn_of_unknown_categories,
)
from skdp.estimators.predictions import (
    PredictionTarget,
    alone,
    anchors_of,
    check_predictions,
    kind_of,
    predictions_of,
)
from skdp.estimators.public_fit import (
    fit_seeded,
    fit_to_synthetic,
    in_container_of,
    synthetic_dataset,
)
from skdp.estimators.trees import LeafTarget, is_tree
from skdp.estimators.validation import check_labels, check_private_dataset, check_response
from skdp.exceptions import PrivacyLeakWarning
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.fitted_function import FittedFunctionTarget
from skdp.functions.known_density import KnownDensityTarget, check_known_density, warn_of_kernel
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.plan import ReleasePlan
from skdp.planning import check_mechanism, deviation_of, make_plan, settle_form
from skdp.sensitivity.adapters import as_oracle, with_numbered_labels
from skdp.sensitivity.bounds import KnownSensitivity, as_prior, as_sensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.preconditions import EstimatorRule
from skdp.sensitivity.random_task import RandomTaskOracle
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.sensitivity.trial import check_is_public, shares_memory

N_MADE_UP = 500
"""Number of different records that are made up."""

MAX_ATTEMPTS = 100
"""Public records are drawn anew at most this often until they hold every class."""


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


@dataclass(frozen=True)
class Preparation:
    """The public parts of a fit; `plan` may take long, to sample the sensitivity."""

    target: Target
    sensitivity: Any
    example: Dataset
    public: Dataset
    plan: Callable[[], ReleasePlan]


def prepare(
    given: Parameters, example: Dataset, scoring: Scoring = None, is_private: bool = True
) -> Preparation:
    """Settle what is public about a fit, from the form of the data, their labels and gaps."""
    n_samples, derived, release = example.n_records, is_derived(given), settled_release(given)
    mechanism, aggregate = given.mechanism, aggregate_of(given)
    if aggregate is not None:
        aggregate.check(n_samples)
    sensitivity: Any = given_sensitivity(given, n_samples)
    if derived and isinstance(release, BernsteinTransformer):
        check_known_density(given.estimator, example)
    elif derived:
        check_known(given.estimator, release, example)
    elif aggregate is None:
        sensitivity = sensitivity.for_estimator(
            given.estimator, release, example, response_is_used(given)
        )
    oracle = sensitivity.draws_from
    if isinstance(sensitivity, SensitivitySampler) and _are_numbered(given, example.y, oracle):
        sensitivity = clone(sensitivity).set_params(oracle=with_numbered_labels(oracle))
    allow_nan = takes(given.estimator, "allow_nan")
    sensitivity, schema, example = settle_form(sensitivity, example, allow_nan)
    if derived:
        sensitivity = replace(sensitivity, prior=None)  # the public fit is made without a prior
    public_fit, public, classes = _make_public_fit(given, release, sensitivity, schema, example)
    if derived:
        target, known = _derive(given, public_fit, n_samples, public.X)
        sensitivity = _with_prior(given, known)
    elif aggregate is not None:
        mechanism = mechanism.with_code(None)
        deviation = partial(deviation_of, mechanism)
        target = aggregate.bind(
            given.estimator, public_fit, sensitivity, schema, n_samples, deviation
        )
        known = known_sensitivity(target, mechanism)
        sensitivity = replace(known, prior=sensitivity.prior)
    elif isinstance(release, PredictionTarget):
        anchors = anchors_of(release, given.estimator, sensitivity, schema)
        target = predictions_of(release, given.estimator, public_fit, public, anchors)
    else:
        weighted = example.sample_weight is not None
        target = make_target(given.estimator, release, public_fit, weighted)
    if classes is not None:
        is_sampled = is_private and not isinstance(sensitivity, KnownSensitivity)
        needed = is_sampled and target.needs_labels[example.y.ndim - 1]
        check_labels(example.y, classes, needed)
    warn_of_kernel(target, public_fit, n_samples)
    warn_of_unknown_categories(public_fit, schema.parts[0])
    has_no_records = oracle is None and isinstance(sensitivity, KnownSensitivity)
    plan = partial(
        make_plan,
        target,
        schema,
        example,
        mechanism=mechanism,
        sensitivity=sensitivity,
        derived=derived or aggregate is not None or _rule_of(given) is not None,
        classes=classes,
        prepare=data_check(given),
        scoring=scoring,
        accountant=given.accountant,
        made_up=_made_up(given.estimator, example, classes) if has_no_records else None,
    )
    return Preparation(target, sensitivity, example, public, plan)


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
    if is_derived(given) or _rule_of(given) is not None:
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


def check_fit(
    given: Parameters, X: Container, y: Container = None, sample_weight: Container = None
) -> Dataset:
    """Check the parameters and the form of the data."""
    check_parameters(given)
    warn_of_parameters(given, given.estimator)
    if sample_weight is not None:
        name = type(given.estimator).__name__
        if aggregate_of(given) is not None:
            raise TypeError("PrivateEstimator takes no sample_weight with sensitivity='aggregate'.")
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
    """Return the check of a dataset; where the promise is plain, it looks at the form alone."""
    plain = KnownSensitivity | Real | SampleAndAggregate
    is_plain = isinstance(given.sensitivity, plain | str)
    classes = public_classes(given) if is_plain and is_classifier(given.estimator) else None
    return partial(
        check_data,
        clone(given.estimator),
        response_is_used(given),
        is_plain=is_plain,
        classes=classes,
    )


def public_classes(given: Parameters, oracle: Oracle | None = None) -> list[NDArray] | None:
    """Return the declared labels, of all outputs or one by one; None if there are none."""
    classes: Any = given.classes
    if classes is not None:
        nested = all(isinstance(labels, list | tuple | np.ndarray) for labels in classes)
        return [np.unique(labels) for labels in (classes if nested else [classes])]
    source = oracle or getattr(given.sensitivity, "draws_from", None)
    if source is None and given.prior is not None:
        source = as_oracle(given.prior)
    if source is not None and source.classes_ is not None:
        return [source.classes_]
    if is_derived(given) or source is not oracle:  # a prior, which says nothing of all records
        raise ValueError(
            "The 'classes' parameter of PrivateEstimator must declare the labels with a "
            "sensitivity that is known: what is promised of all records may not depend on theirs. "
            "Got None."
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
    """Refuse oracles that hold private records, and warn of parameters and `others` that do."""
    check_is_public(getattr(given.sensitivity, "draws_from", None), dataset)
    if given.prior is not None:
        check_is_public(as_oracle(given.prior), dataset)
    anchors = getattr(given.release, "anchors", None)
    holders = given.release, given.sensitivity
    students = filter(None, (getattr(each, "student", None) for each in holders))
    taught = (each for student in students for each in public_parameters(student, None))
    declared = *public_parameters(given.estimator, given.release), anchors, *taught, *others
    if any(shares_memory(each, dataset) for each in declared):
        warn(
            "A parameter of the 'estimator' or of the 'release' of PrivateEstimator is a part "
            "of the private records, which makes it public: nothing is promised of it. "
            "Declare it, or take it from public records.",
            PrivacyLeakWarning,
        )


def make_target(
    estimator: Estimator, release: Any, public_fit: Estimator, weighted: bool = False
) -> Target:
    """Make the target of one estimator; "auto" takes the leaves of a tree, else attributes."""
    if is_auto(release) and is_tree(last_step(estimator)):
        release = LeafTarget()
    if isinstance(release, LeafTarget):
        target: Target = release.bind(estimator, public_fit)
    elif isinstance(release, BernsteinTransformer):
        target = FittedFunctionTarget(estimator, release, public_fit)
    elif isinstance(release, Target):
        return release
    else:
        target = ParameterTarget(estimator, release, public_fit)
    if weighted:
        target.description += ", weighted"
        target.key_parts += ("weighted",)
    return target


def given_sensitivity(given: Parameters, n_samples: int) -> Any:
    """Return the sensitivity with its prior; "known" is a placeholder that draws the prior."""
    if is_derived(given) or aggregate_of(given) is not None:
        return _with_prior(given, KnownSensitivity(1.0, "l2", n_samples))
    return _with_prior(given, as_sensitivity(given.sensitivity, given.mechanism, n_samples))


def _with_prior(given: Parameters, sensitivity: Any) -> Any:
    """Give a bound or estimate the prior; a seed of the noise seeds the pilots."""
    if given.prior is None:
        return sensitivity
    if isinstance(sensitivity, SensitivityEstimate):
        sampler = SensitivitySampler(given.prior, random_state=sensitivity.seed)
        return replace(sensitivity, prior=sampler)
    aggregate, seed = aggregate_of(given), None
    if aggregate is not None:
        seed = aggregate.random_state
    elif given.random_state is not None:
        words = np.random.SeedSequence(given.random_state, spawn_key=(1,)).generate_state(4)
        seed = int.from_bytes(words.tobytes())
    return replace(sensitivity, prior=as_prior(given.prior, seed))


def _rule_of(given: Parameters) -> EstimatorRule | None:
    """Return the rule that says which estimators a bound is for, if it has one."""
    return getattr(given.sensitivity, "estimator", None)


def _made_up(
    estimator: Estimator, example: Dataset, classes: list[NDArray] | None
) -> Oracle | None:
    """Return an oracle of made-up records in the range of the first step, with random rules."""
    if classes is None or len(classes) != 1 or np.ndim(example.y) != 1 or issparse(example.X):
        return None
    first = estimator.steps[0][1] if is_pipeline(estimator) else estimator
    first = first.estimator if is_frozen(first) else first
    values = np.random.default_rng(0).random((N_MADE_UP, example.X.shape[1]))
    if isinstance(first, ClipBox):
        low, high = (np.asarray(end, dtype=np.float64) for end in (first.low, first.high))
        values = low + values * (high - low)
    else:
        scale, mean = getattr(first, "scale_", None), getattr(first, "mean_", None)
        values = math.sqrt(12) * (values - 0.5)  # with variance 1
        values = values if scale is None or mean is None else mean + scale * values
    try:
        return RandomTaskOracle(in_container_of(example.X, values), classes=classes[0])
    except ValueError:  # it has no column that varies, or a single class
        return None


def _derive(
    given: Parameters, public_fit: Estimator, n_samples: int, X: Container
) -> tuple[Target, KnownSensitivity]:
    target: KnownTarget | KnownDensityTarget
    if isinstance(given.release, BernsteinTransformer):
        target = KnownDensityTarget(given.estimator, given.release, public_fit, n_samples, X)
    else:
        target = KnownTarget(given.estimator, public_fit, n_samples)
    return target, known_sensitivity(target, given.mechanism)


def known_sensitivity(
    target: KnownTarget | KnownDensityTarget | Blocks, mechanism: Mechanism
) -> KnownSensitivity:
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
    )


def _make_public_fit(
    given: Parameters, release: Any, sensitivity: Any, schema: Schema, dataset: Dataset
) -> tuple[Estimator, Dataset, list[NDArray] | None]:
    """Make the public fit, its records and labels."""
    is_read = isinstance(release, PredictionTarget) or aggregate_of(given) is not None
    configure = alone if is_read else without_side_effects
    estimator, oracle = configure(given.estimator), sensitivity.draws_from
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
    has_labels = hasattr(last_step(public_fit), "classes_")  # a class of the user may keep none
    n_outputs = len(_columns(public.y))
    classes = classes_of_outputs(public_fit, n_outputs) if has_labels else _labels(public.y)
    return public_fit, public, classes


def _are_numbered(given: Parameters, y: Container, oracle: Oracle) -> bool:
    """Return whether an ensemble has numbered the labels."""
    labels = oracle.classes_
    if given.classes is not None or labels is None or not is_classifier(given.estimator):
        return False
    if y.ndim != 1 or y.dtype.kind not in "iu" or np.isin(y, labels).all():
        return False
    return bool(np.isin(y, np.arange(len(labels))).all())


def _columns(y: Container) -> NDArray:
    """Return the outputs, one by one."""
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
