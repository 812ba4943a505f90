"""Whether the order of the records matters to a fit, and a random order."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from skdp.core.classes import isinstance_by_name, named
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.estimators.configuration import configured

_BAGS = named("sklearn.ensemble", "BaggingClassifier BaggingRegressor")
# Without a `cv` these have no folds; of others None means five.
_NO_FOLDS = [
    *named("sklearn.multioutput", "ClassifierChain RegressorChain"),
    *named("sklearn.linear_model", "RidgeCV RidgeClassifierCV"),
]


def order_matters(estimator: Any) -> bool:
    """Return whether a fit treats records differently by their position.

    It does where positions are drawn with a seed that is the same in all fits, or records are
    visited in the order in which they stand.
    """
    return any(_visits_in_fixed_order(member) for _, member in configured(estimator))


def _visits_in_fixed_order(estimator: Any) -> bool:
    if isinstance_by_name(estimator, *_BAGS):
        return True
    parameters = estimator.get_params(deep=False)
    if "cv" in parameters and not (
        parameters["cv"] is None and isinstance_by_name(estimator, *_NO_FOLDS)
    ):
        return True  # folds are cut by position
    if isinstance(parameters.get("random_state"), Integral):
        return True  # the same positions are drawn in every fit
    in_batches = "batch_size" in parameters and "shuffle" not in parameters
    return in_batches or parameters.get("shuffle") is False


def reorder(dataset: Dataset, seed: int) -> Dataset:
    """Bring the records into a random order.

    Without it, a fit that treats records differently by their position would be measured at the
    position of the record that is replaced, and at no other.
    """
    order = np.random.default_rng(seed).permutation(n_records(dataset[0]))
    return tuple(take_records(container, order) for container in dataset)
