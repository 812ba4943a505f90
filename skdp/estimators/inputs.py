"""The use that an estimator makes of gaps, weights, responses, and the order of records."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
from sklearn import config_context
from sklearn.utils import get_tags
from sklearn.utils.validation import has_fit_parameter

from skdp.core.classes import isinstance_by_name, public_name
from skdp.core.dataset import Dataset
from skdp.core.dtypes import is_gap
from skdp.core.types import Estimator
from skdp.estimators.catalog import CATALOG, entry_of, is_stateless, traits_of
from skdp.estimators.catalog.compositions import is_frozen, is_pipeline, is_placeholder
from skdp.estimators.members import configured_members, last_step


def takes(estimator: Estimator, kind: str) -> bool:
    """Return whether some column may be as the tag says: "allow_nan", "categorical", "string"."""
    if is_placeholder(estimator):
        return True
    if is_frozen(estimator):
        return takes(estimator.estimator, kind)
    if is_pipeline(estimator):  # X passes the steps up to one that gives numbers without gaps
        for _, step in estimator.steps:
            if not takes(step, kind):
                return False
            if not (is_placeholder(step) or (kind == "allow_nan" and _passes_gaps(step))):
                break
        return True
    traits = traits_of(estimator)
    if traits.steps is not None:
        return traits.takes_if(takes(step, kind) for step in traits.steps(estimator))
    if getattr(get_tags(estimator).input_tags, kind):
        return True
    if isinstance_by_name(estimator, "sklearn.preprocessing.FunctionTransformer"):
        return not estimator.validate  # its function may take anything
    unseen = () if getattr(estimator, "passthrough", False) else ("final_estimator",)
    walked = configured_members(estimator)
    members = [member for path, member, _ in walked if len(path) == 1 and path[0] not in unseen]
    return bool(members) and all(takes(member, kind) for member in members)


def _passes_gaps(estimator: Estimator) -> bool:
    """Return whether gaps may remain after it; of separate columns, in all of them."""
    if is_placeholder(estimator):
        return True
    if is_frozen(estimator):
        return _passes_gaps(estimator.estimator)
    traits = traits_of(estimator)
    if traits.steps is None:
        filled = getattr(estimator, "encoded_missing_value", math.nan)
        return traits.passes_gaps and is_gap(filled)
    goes_to_each = traits.takes_if is all and not is_pipeline(estimator)  # as in a union
    steps = (step for step in traits.steps(estimator) if step != "drop")
    return (any if goes_to_each else all)(map(_passes_gaps, steps))


def takes_weights(estimator: Estimator) -> bool:
    """Return whether an estimator, or the last step of a pipeline, is fitted with weights."""
    estimator = last_step(estimator)
    if not hasattr(estimator, "fit"):
        return False
    return has_fit_parameter(estimator, "sample_weight") or traits_of(estimator).passes_weights


def fit_on(estimator: Estimator, dataset: Dataset) -> Estimator:
    """Fit an estimator on a dataset, with its weights if it has any."""
    X, y, weights = dataset.X, dataset.y, dataset.sample_weight
    if weights is None:
        return estimator.fit(X) if y is None else estimator.fit(X, y)
    with config_context(enable_metadata_routing=False):  # the weights are routed here, by name
        return estimator.fit(X, y, **{_weights_name(estimator): weights})


def _weights_name(estimator: Estimator) -> str:
    if is_pipeline(estimator):
        step, last = estimator.steps[-1]
        return f"{step}__{_weights_name(last)}"
    return "sample_weight"


def uses_response(estimator: Estimator) -> bool:
    """Return whether an estimator may learn from y; a class of the user may."""
    if is_placeholder(estimator):
        return False
    kind, entry = type(estimator), entry_of(estimator)
    if public_name(kind) == "" or not (kind in CATALOG or is_stateless(estimator)):
        return True
    if entry.steps is not None:
        return any(map(uses_response, entry.steps(estimator)))
    if entry.uses_response is not None:
        return entry.uses_response
    tags = get_tags(estimator)
    return (
        tags.target_tags.required
        or tags.estimator_type in ("classifier", "regressor")
        or any(hasattr(value, "fit") for value in estimator.get_params(deep=False).values())
    )


def order_matters(estimator: Estimator) -> bool:
    """Return whether a fit treats records differently by their position."""
    return any(_visits_in_fixed_order(member) for _, member, _ in configured_members(estimator))


def _visits_in_fixed_order(estimator: Estimator) -> bool:
    parameters = estimator.get_params(deep=False)
    if "cv" in parameters:
        return True  # folds are cut by position
    if isinstance(parameters.get("random_state"), Integral):
        return True  # the same positions are drawn in every fit
    in_batches = "batch_size" in parameters and "shuffle" not in parameters
    return in_batches or not parameters.get("shuffle", True)


def reorder(dataset: Dataset, seed: int) -> Dataset:
    """Bring the records into a random order, so that a pair differs at any position."""
    return dataset.take(np.random.default_rng(seed).permutation(dataset.n_records))
