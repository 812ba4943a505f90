"""What is public about a fit: checked parameters, the form of the data, target and public fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone, is_classifier

from skdp.core.checks import warn
from skdp.core.dataset import Dataset
from skdp.core.oracle import Oracle
from skdp.core.plain import for_outputs
from skdp.core.schema import Schema
from skdp.core.target import Target, is_auto
from skdp.core.types import Container, Estimator, Scoring
from skdp.estimators.catalog.compositions import is_frozen, is_pipeline
from skdp.estimators.clip import ClipBox
from skdp.estimators.configuration import without_side_effects
from skdp.estimators.inputs import takes
from skdp.estimators.known import KnownTarget, check_known
from skdp.estimators.members import classes_of_outputs, last_step
from skdp.estimators.parameters import ParameterTarget
from skdp.estimators.precautions import (
    warn_of_unknown_categories,
)
from skdp.estimators.predictions import (
    PredictionTarget,
    alone,
    anchors_of,
    predictions_of,
)
from skdp.estimators.public_fit import (
    fit_seeded,
    fit_to_synthetic,
    in_container_of,
    synthetic_dataset,
)
from skdp.estimators.trees import LeafTarget, is_tree
from skdp.estimators.validation import check_labels
from skdp.exceptions import PrivacyLeakWarning
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.fitted_function import FittedFunctionTarget
from skdp.functions.known_density import KnownDensityTarget, check_known_density, warn_of_kernel
from skdp.mechanisms.base import Mechanism
from skdp.plan import ReleasePlan
from skdp.planning.blocks import Blocks
from skdp.planning.labels import (
    are_numbered,
    columns_of,
    draw_every_class,
    labels_in,
    public_classes,
)
from skdp.planning.making import least_deviation, make_plan, without_code
from skdp.planning.parameters import (
    Parameters,
    aggregate_of,
    is_derived,
    response_is_used,
    rule_of,
    settled_release,
)
from skdp.planning.records import data_check, settle_form
from skdp.sensitivity.adapters import with_numbered_labels
from skdp.sensitivity.bounds import KnownSensitivity, as_prior, as_sensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.random_task import RandomTaskOracle
from skdp.sensitivity.sampler import SensitivitySampler

N_MADE_UP = 500
"""Number of different records that are made up."""


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
    if isinstance(sensitivity, SensitivitySampler) and are_numbered(given, example.y, oracle):
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
        mechanism = without_code(mechanism)
        deviation = partial(least_deviation, mechanism)
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
        derived=derived or aggregate is not None or rule_of(given) is not None,
        classes=classes,
        prepare=data_check(given),
        scoring=scoring,
        accountant=given.accountant,
        made_up=_made_up(given.estimator, example, classes) if has_no_records else None,
    )
    return Preparation(target, sensitivity, example, public, plan)


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
    """Return the bound of a target in the norm of a mechanism, and for a choice in both."""
    l1, l2 = map(target.bound, (1, 2))
    in_l1 = mechanism.geometry.order == 1
    return KnownSensitivity(
        l1 if in_l1 else l2,
        "l1" if in_l1 else "l2",
        target.n_samples,
        l2_value=min(l1, l2) if len(mechanism.alternatives) > 1 else None,
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
        declared = labels_in(dataset.y)
        warn(
            "The class labels are read from the private y, which makes them public. Declare them "
            "with the 'classes' parameter of PrivateEstimator.",
            PrivacyLeakWarning,
        )
    if declared is not None:
        for_outputs(declared, len(columns_of(dataset.y)))
    if oracle is None:
        fit, public = fit_to_synthetic, synthetic_dataset(dataset, declared)
    else:
        n_samples = dataset.n_records
        fit, public = (
            fit_seeded,
            draw_every_class(estimator, sensitivity, schema, n_samples, declared),
        )
    rule = rule_of(given)
    if rule is not None:
        rule.check_classes(labels_in(public.y))
    public_fit = fit(estimator, public)
    if not is_classifier(public_fit):
        return public_fit, public, None
    has_labels = hasattr(last_step(public_fit), "classes_")  # a class of the user may keep none
    n_outputs = len(columns_of(public.y))
    classes = classes_of_outputs(public_fit, n_outputs) if has_labels else labels_in(public.y)
    return public_fit, public, classes
