"""Compositions, released member by member, trees, released by leaves, and what learns nothing."""

from __future__ import annotations

from operator import attrgetter

import numpy as np

from skdp.core.classes import isinstance_by_name
from skdp.core.types import Estimator
from skdp.estimators.catalog.entry import Entry, Members
from skdp.estimators.catalog.refused import LEAVES, PREDICT

PIPELINE = "sklearn.pipeline.Pipeline"
UNION = "sklearn.pipeline.FeatureUnion"
COLUMNS = "sklearn.compose.ColumnTransformer"
FROZEN = "sklearn.frozen.FrozenEstimator"
TRANSFORMED_TARGET = "sklearn.compose.TransformedTargetRegressor"


def is_placeholder(estimator: Estimator) -> bool:
    """Return whether None or a word, such as "passthrough", stands in the place of an estimator."""
    return estimator is None or isinstance(estimator, str)


def is_pipeline(estimator: Estimator) -> bool:
    """Return whether an estimator is a pipeline."""
    return isinstance_by_name(estimator, PIPELINE)


def is_frozen(estimator: Estimator) -> bool:
    """Return whether an estimator stays as it was fitted."""
    return isinstance_by_name(estimator, FROZEN)


def _listed(fitted: Estimator) -> Members:
    return [(f"estimators_[{i}]", member) for i, member in enumerate(fitted.estimators_)]


def _fitted_to_columns(fitted: Estimator) -> Members:
    """List the transformers that give columns: one of an empty selection is left unfitted."""
    given = {name for name, where in fitted.output_indices_.items() if where.stop > where.start}
    return [(name, member) for name, member, _ in fitted.transformers_ if name in given]


def _refuse_leaves(tree: Estimator) -> str | None:
    """Return why the leaves of a tree do not follow from counts, None if they do."""
    if tree.class_weight is None and tree.monotonic_cst is None:
        return None
    return f"its leaves hold no counts with class_weight or monotonic_cst. {PREDICT}"


_tree = Entry(tree=True, refuse=_refuse_leaves, known=LEAVES, by_record=True)

ENTRIES: dict[str, Entry] = {
    PIPELINE: Entry(
        members=attrgetter("steps"),
        steps=lambda pipeline: [step for _, step in pipeline.steps],
        transforms=lambda pipeline, name, transforms: transforms or name != pipeline.steps[-1][0],
        by_record=True,
    ),
    UNION: Entry(
        members=attrgetter("transformer_list"),
        steps=lambda union: [member for _, member in union.transformer_list],
        transforms=lambda owner, name, transforms: True,
        by_record=True,
    ),
    COLUMNS: Entry(
        members=_fitted_to_columns,
        structure=lambda fitted: [np.atleast_1d(where) for _, _, where in fitted.transformers_],
        steps=lambda owner: [*(step for _, step, _ in owner.transformers), owner.remainder],
        takes_if=any,
        transforms=lambda owner, name, transforms: True,
        by_record=True,
    ),
    TRANSFORMED_TARGET: Entry(
        members=lambda fitted: [
            ("transformer", fitted.transformer_),
            ("regressor", fitted.regressor_),
        ],
        transforms=lambda owner, name, transforms: name == "transformer",
    ),
    "sklearn.model_selection.FixedThresholdClassifier": Entry(
        members=lambda fitted: [("estimator", fitted.estimator_)]
    ),
    "sklearn.ensemble VotingClassifier VotingRegressor": Entry(
        members=lambda fitted: fitted.named_estimators_.items(), passes_weights=True
    ),
    "sklearn.multiclass OneVsOneClassifier OneVsRestClassifier": Entry(members=_listed),
    "sklearn.multioutput MultiOutputClassifier MultiOutputRegressor": Entry(members=_listed),
    FROZEN: Entry(uses_response=False, learns_nothing=True, by_record=True),
    "sklearn.feature_extraction.FeatureHasher": Entry(learns_nothing=True),
    "sklearn.feature_extraction.text.HashingVectorizer": Entry(learns_nothing=True),
    "sklearn.tree DecisionTreeClassifier ExtraTreeClassifier": _tree,
    "sklearn.ensemble ExtraTreesClassifier RandomForestClassifier": _tree,
}
