"""Estimators made of estimators, which are released member by member, and what stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.core.classes import isinstance_by_name, named
from skdp.estimators.catalog.entry import Entry, Members

PIPELINE = "sklearn.pipeline.Pipeline"
FROZEN = "sklearn.frozen.FrozenEstimator"
CHAIN = "sklearn.multioutput.ClassifierChain"


def is_pipeline(estimator: Any) -> bool:
    """Return whether an estimator is a pipeline."""
    return isinstance_by_name(estimator, PIPELINE)


def is_frozen(estimator: Any) -> bool:
    """Return whether an estimator stays as it was fitted."""
    return isinstance_by_name(estimator, FROZEN)


def is_classifier_chain(estimator: Any) -> bool:
    """Return whether the class labels of an estimator come in the order of a chain."""
    return isinstance_by_name(estimator, CHAIN)


# Members of a fitted composition, by name.


def _listed(fitted: Any) -> Members:
    return [(f"estimators_[{i}]", member) for i, member in enumerate(fitted.estimators_)]


def _named(fitted: Any) -> Members:
    return fitted.named_estimators_.items()


def _stacked(fitted: Any) -> Members:
    return [*_named(fitted), ("final_estimator", fitted.final_estimator_)]


def _calibrated(fitted: Any) -> Members:
    for i, pair in enumerate(fitted.calibrated_classifiers_):
        name = f"calibrated_classifiers_[{i}]"
        yield f"{name}.estimator", pair.estimator
        for j, calibrator in enumerate(pair.calibrators):
            yield f"{name}.calibrators[{j}]", calibrator


def _of_columns(fitted: Any) -> Members:
    return [(name, member) for name, member, _ in fitted.transformers_]


def _united(fitted: Any) -> Members:
    return fitted.transformer_list


def _in_line(fitted: Any) -> Members:
    return fitted.steps


def _single(fitted: Any) -> Members:
    return [("estimator", fitted.estimator_)]


def _around_response(fitted: Any) -> Members:
    return [("transformer", fitted.transformer_), ("regressor", fitted.regressor_)]


# What else must be the same in all fits.


def _columns(fitted: Any) -> list:
    return [list(np.atleast_1d(columns)) for _, _, columns in fitted.transformers_]


def _features(fitted: Any) -> Any:
    return fitted.estimators_features_


def _order(fitted: Any) -> Any:
    return fitted.order_


def _code_book(fitted: Any) -> Any:
    return fitted.code_book_


# Unfitted members through which the records pass, and which of them are to transform.


def _steps_of_line(pipeline: Any) -> list:
    return [step for _, step in pipeline.steps]


def _steps_of_union(union: Any) -> list:
    return [member for _, member in union.transformer_list]


def _steps_of_columns(transformer: Any) -> list:
    return [*(member for _, member, _ in transformer.transformers), transformer.remainder]


def _all_transform(owner: Any, name: str, owner_transforms: bool) -> bool:
    return True


def _all_but_the_last_transform(pipeline: Any, name: str, owner_transforms: bool) -> bool:
    return owner_transforms or name != pipeline.steps[-1][0]


def _transforms_response(owner: Any, name: str, owner_transforms: bool) -> bool:
    return name == "transformer"


_bagging = Entry(members=_listed, structure=_features, seeded_structure=True, bags=True)
_chain = Entry(members=_listed, structure=_order, seeded_structure=True, folds=False)
_list = Entry(members=_listed)
_stacking = Entry(members=_stacked, passes_weights=True)
_voting = Entry(members=_named, passes_weights=True)

ENTRIES: dict[str, Entry] = {
    PIPELINE: Entry(members=_in_line, steps=_steps_of_line, transforms=_all_but_the_last_transform),
    "sklearn.pipeline.FeatureUnion": Entry(
        members=_united, steps=_steps_of_union, transforms=_all_transform
    ),
    "sklearn.compose.ColumnTransformer": Entry(
        members=_of_columns,
        structure=_columns,
        steps=_steps_of_columns,
        takes_if=any,
        transforms=_all_transform,
    ),
    "sklearn.compose.TransformedTargetRegressor": Entry(
        members=_around_response, transforms=_transforms_response
    ),
    "sklearn.calibration.CalibratedClassifierCV": Entry(members=_calibrated),
    "sklearn.model_selection.FixedThresholdClassifier": Entry(members=_single),
    **dict.fromkeys(named("sklearn.ensemble", "BaggingClassifier BaggingRegressor"), _bagging),
    **dict.fromkeys(named("sklearn.ensemble", "StackingClassifier StackingRegressor"), _stacking),
    **dict.fromkeys(named("sklearn.ensemble", "VotingClassifier VotingRegressor"), _voting),
    **dict.fromkeys(named("sklearn.multiclass", "OneVsOneClassifier OneVsRestClassifier"), _list),
    "sklearn.multiclass.OutputCodeClassifier": Entry(
        members=_listed, structure=_code_book, seeded_structure=True
    ),
    **dict.fromkeys(
        named("sklearn.multioutput", "MultiOutputClassifier MultiOutputRegressor"), _list
    ),
    **dict.fromkeys((CHAIN, "sklearn.multioutput.RegressorChain"), _chain),
    FROZEN: Entry(uses_response=False, learns_nothing=True),
    **dict.fromkeys(
        named("sklearn.feature_extraction", "FeatureHasher")
        + named("sklearn.feature_extraction.text", "HashingVectorizer"),
        Entry(learns_nothing=True),
    ),
}
