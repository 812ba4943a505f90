"""The public parts of a fit: the form of the data, the public fit and the target."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor

from skdp.core.checks import check_rules, shorten, warn
from skdp.core.dataset import Dataset, take_records
from skdp.core.dtypes import holds_numbers, name_dtype, series_of
from skdp.core.plain import columns_of, is_table
from skdp.core.room import quiet
from skdp.core.schema import DatasetForm, Form
from skdp.core.target import Target
from skdp.core.types import Container, Scoring
from skdp.estimators.inputs import takes, takes_weights
from skdp.estimators.known_target import entries_for
from skdp.estimators.precautions import warn_of_unknown_categories
from skdp.estimators.predictions import N_ANCHORS, PredictionTarget
from skdp.estimators.public_fit import Public, fit_seeded, fit_to_synthetic, synthetic_dataset
from skdp.estimators.validation import check_labels
from skdp.planning.checks import data_check, settle_form
from skdp.planning.components import with_components
from skdp.planning.kinds import Kind, kind_of_release
from skdp.planning.labels import draw_every_class, labels_for, labels_in, labels_of_fit
from skdp.planning.making import Draft
from skdp.planning.persons import as_target_sees, of_persons
from skdp.planning.ways import Way
from skdp.planning.worth import made_up_oracle
from skdp.sensitivity.base import Sensitivity
from skdp.sensitivity.bounds import KnownSensitivity

LEAST_ANCHORS = 50
"""Advice reads fewer anchors where each has several numbers: else to learn a code takes minutes."""


def prepare(way: Way, example: Dataset, scoring: Scoring = None, is_private: bool = True) -> Draft:
    """Settle the form, the public fit and the target, from the form, labels and gaps of data."""
    if (drafted := way.draft(example)) is not None:
        rule = "be None with ClassTables, which foresee the accuracy or R2 of their own law"
        check_rules("PrivateEstimator.plan", scoring=(scoring, scoring is None, rule))
        return drafted
    allow_nan = takes(way.given.estimator, "allow_nan")
    sensitivity = way.admit(way.start(example.n_records), example)
    sensitivity, schema, example = settle_form(sensitivity, example, allow_nan, way.unit)
    source = way.source(sensitivity)
    records = _public_records(way, source, schema, example)
    way = with_components(way, records)
    given, public = way.given, _make_public_fit(way, source, schema, records, example.n_records)
    target, sensitivity, mechanism = way.bind(sensitivity, public)
    if schema.parts.groups is not None:
        target = of_persons(target, weighs=public.dataset.sample_weight is not None)
    is_known, made_up, predictions = isinstance(sensitivity, KnownSensitivity), None, None
    if public.classes is not None:
        needed = is_private and not is_known and target.needs_labels and way.unit == "record"
        check_labels(example.y, public.classes, needed)
    if said := target.warning(example.n_records):
        warn(said)
    warn_of_unknown_categories(public.fit, schema.parts.X)
    if is_known and sensitivity.draws_from is None:
        made_up = made_up_oracle(given.estimator, example, schema, public.classes, target.y_range)
    if not is_private:  # a plan has the time
        predictions = _predictions(way, public)
    return Draft(
        target,
        schema,
        example,
        mechanism,
        sensitivity,
        is_of_one_target=way.is_of_one_target,
        classes=public.classes,
        prepare=data_check(way),
        scoring=scoring,
        made_up=made_up,
        accountant=given.accountant,
        expect=given.expect,
        shares=way.shares,
        unit=way.unit,
        public=public,
        predictions=predictions,
    )


def rehearse_methods(draft: Draft, X: Container) -> None:
    """Refuse declared types of X that an estimator can be fitted to, and not predict on."""
    public = draft.public
    if public is None or not (is_table(X) and is_table(public.dataset.X)):
        return
    form, columns = Form.of(X), columns_of(take_records(public.dataset.X, np.arange(1)))
    for place, (name, dtype) in enumerate(zip(form.names, form.dtypes, strict=True)):
        if holds_numbers(dtype):
            columns[place] = series_of(type(columns[place]), name, [0], dtype)
    records = form.kind(dict(zip(form.names, columns, strict=True)))
    methods = "predict", "transform", "score_samples"
    for method in filter(partial(hasattr, public.fit), methods):
        try:
            with quiet(), suppress(ValueError):  # a number may be out of a range
                getattr(public.fit, method)(records)
        except Exception as error:  # polars has errors of its own
            raise TypeError(
                f"The columns of X must have types on which the estimator can {method}. Got "
                f"{shorten(sorted(set(map(name_dtype, form.dtypes))))}: {error}. Convert X, as "
                "by X.astype(float) or X.cast(polars.Float64)."
            ) from None


def _predictions(way: Way, public: Public) -> Callable[[], Target] | None:
    """Return what makes the target of predictions where parameters are released, else None."""
    if type(way.kind) is not Kind or not (is_classifier(public.fit) or is_regressor(public.fit)):
        return None
    n_columns = len(public.classes[0]) if public.classes else np.size(public.dataset.y[:1])
    n_anchors = N_ANCHORS if n_columns <= 2 else max(LEAST_ANCHORS, N_ANCHORS // n_columns)
    release = kind_of_release(PredictionTarget(n_anchors=n_anchors))
    make: Any = partial(release.target, way.given.estimator, public)
    return lambda: release.coded(make(), public, "learned")


def _public_records(
    way: Way, source: Sensitivity, schema: DatasetForm, dataset: Dataset
) -> Dataset:
    """Draw the records of the public fit, or make them up."""
    oracle, estimator = source.draws_from, way.given.estimator
    classes = labels_for(way, oracle, dataset.y) if is_classifier(estimator) else None
    if oracle is None:
        entries = entries_for(estimator, dataset.X) if way.is_derived else None
        records = synthetic_dataset(dataset, classes, entries)
    else:
        records = draw_every_class(estimator, source, schema, dataset.n_records, classes)
    if schema.parts.groups is not None:
        has_weights = way.kind.takes_weights and takes_weights(estimator)
        records = as_target_sees(records, has_weights and records.y is not None)
    if way.rule is not None:
        way.rule.check_classes(labels_in(records.y))
    return records


def _make_public_fit(
    way: Way, source: Sensitivity, schema: DatasetForm, records: Dataset, n_samples: int
) -> Public:
    """Make the public fit, with its records and labels."""
    estimator = way.kind.configure(way.given.estimator)
    fit = fit_to_synthetic if source.draws_from is None else fit_seeded
    fitted = fit(estimator, records)
    classes = labels_of_fit(fitted, records.y) if is_classifier(fitted) else None
    return Public(fitted, records, classes, source, schema, n_samples)
