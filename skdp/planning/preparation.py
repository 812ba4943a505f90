"""The public parts of a fit: the form of the data, the public fit and the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sklearn.base import is_classifier

from skdp.core.dataset import Dataset
from skdp.core.schema import Schema
from skdp.core.target import Target
from skdp.core.types import Scoring
from skdp.estimators.inputs import takes
from skdp.estimators.precautions import warn_of_unknown_categories
from skdp.estimators.public_fit import (
    fit_seeded,
    fit_to_synthetic,
    synthetic_dataset,
)
from skdp.estimators.validation import check_labels
from skdp.functions.known_density import warn_of_kernel
from skdp.plan import ReleasePlan
from skdp.planning.checks import data_check, settle_form
from skdp.planning.labels import draw_every_class, labels_for, labels_in, labels_of_fit
from skdp.planning.making import make_plan
from skdp.planning.releases import Public
from skdp.planning.ways import Given, Parameters, way_of
from skdp.sensitivity.base import Sensitivity
from skdp.sensitivity.bounds import KnownSensitivity


@dataclass(frozen=True)
class Preparation:
    """The public parts of a fit; `plan` may take long, to sample the sensitivity."""

    target: Target
    sensitivity: Sensitivity
    example: Dataset
    public: Dataset
    plan: Callable[[], ReleasePlan]


def prepare(
    given: Parameters, example: Dataset, scoring: Scoring = None, is_private: bool = True
) -> Preparation:
    """Settle what is public about a fit, from the form of the data, their labels and gaps."""
    way = way_of(given)
    sensitivity = way.admit(way.start(example.n_records), example)
    allow_nan = takes(given.estimator, "allow_nan")
    sensitivity, schema, example = settle_form(sensitivity, example, allow_nan)
    public = _make_public_fit(way, way.source(sensitivity), schema, example)
    target, sensitivity, mechanism = way.bind(sensitivity, public)
    is_known = isinstance(sensitivity, KnownSensitivity)
    if public.classes is not None:
        needed = is_private and not is_known and target.needs_labels
        check_labels(example.y, public.classes, needed)
    warn_of_kernel(target, public.fit, example.n_records)
    warn_of_unknown_categories(public.fit, schema.parts[0])
    plan = partial(
        make_plan,
        target,
        schema,
        example,
        mechanism=mechanism,
        sensitivity=sensitivity,
        derived=way.is_of_one_target,
        classes=public.classes,
        prepare=data_check(given),
        scoring=scoring,
        accountant=given.accountant,
    )
    return Preparation(target, sensitivity, example, public.dataset, plan)


def _make_public_fit(way: Given, source: Sensitivity, schema: Schema, dataset: Dataset) -> Public:
    """Make the public fit, its records and labels."""
    given, oracle, n_samples = way.given, source.draws_from, dataset.n_records
    estimator, declared = way.kind.configure(given.estimator), None
    if is_classifier(estimator):
        declared = labels_for(given, oracle, dataset.y)
    if oracle is None:
        fit, public = fit_to_synthetic, synthetic_dataset(dataset, declared)
    else:
        fit = fit_seeded
        public = draw_every_class(estimator, source, schema, n_samples, declared)
    if way.rule is not None:
        way.rule.check_classes(labels_in(public.y))
    fitted = fit(estimator, public)
    classes = labels_of_fit(fitted, public.y) if is_classifier(fitted) else None
    return Public(fitted, public, classes, source, schema, n_samples)
