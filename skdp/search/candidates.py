"""The candidates of a search, and the score of a released model, record by record."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from skdp.core.checks import floats, shown
from skdp.core.dataset import Dataset
from skdp.core.room import spare
from skdp.core.target import Target
from skdp.core.types import Container, Estimator
from skdp.estimator import PrivateEstimator
from skdp.estimators.configuration import seeded
from skdp.estimators.known_target import one_by_one, treats_alone

# With labels or priors of its own a candidate might refuse records that another one takes.
SHARED = {"sensitivity", "accountant", "random_state", "classes", "prior"}


def list_candidates(estimator: object, param_grid: object, owner: str) -> list[dict[str, object]]:
    """List the candidates of a grid; none names what all share."""
    from sklearn.model_selection import ParameterGrid

    if not isinstance(estimator, PrivateEstimator):
        raise TypeError(
            f"The 'estimator' parameter of {owner} must be a PrivateEstimator. "
            f"Got {shown(estimator)}."
        )
    candidates = list(ParameterGrid(param_grid))
    if not candidates:
        raise ValueError("The 'param_grid' parameter must hold at least one candidate. Got none.")
    for name in SHARED & {name.split("__")[0] for params in candidates for name in params}:
        raise ValueError(
            f"The 'param_grid' parameter of {owner} must not name the {name}, which all "
            "candidates share."
        )
    return candidates


class SumOfScores(Target):
    """The sum of the scores of all records, each in [0, 1]: one record changes it by at most 1."""

    def __init__(self, model: Estimator, scoring: Callable):
        self.model, self.scoring = model, scoring

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        records, model = Dataset(*dataset), self.model
        scoring = self.scoring.func if type(self.scoring) is partial else self.scoring
        if scoring in (accuracy, closeness) and holds_numbers(records.X) and treats_alone(model):
            predicted, refused = one_by_one(spare(model).predict, records.X)
            records = Dataset(predicted, *records.parts[1:]).take(np.flatnonzero(~refused))
            model = SimpleNamespace(predict=lambda given: given)
        each = (records.take(np.array([i])) for i in range(records.n_records))
        with seeded(seed):
            return np.array(math.fsum(self._score(model, record, seed) for record in each))

    def score(self, record: Dataset) -> float:
        """Return the score of one record as it comes, or raise what the scoring raises."""
        return float(np.asarray(self.scoring(self.model, *record.parts), np.float64).item())

    def _score(self, model: Estimator, record: Dataset, seed: int) -> float:
        """Score a record by copies, which know of no other one, and draw from the same seed."""
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002  # the global one
        try:
            found = SumOfScores(spare(model), spare(self.scoring)).score(record)
        except KeyboardInterrupt:
            raise
        except BaseException:  # a refusal would tell that the record is there: its score is 0
            return 0.0
        return min(max(found, 0.0), 1.0) if found == found else 0.0


def holds_numbers(X: Container) -> bool:
    """Return whether no entry of records decides how others are read."""
    dtypes = getattr(X, "dtypes", [getattr(X, "dtype", None)])
    return all(isinstance(each, np.dtype) and each.kind in "biuf" for each in dtypes)


def accuracy(model: Estimator, X: Container, y: Container) -> bool:
    """Return whether the labels of a record are predicted."""
    return np.array_equal(np.ravel(model.predict(X)), np.ravel(y))


def closeness(model: Estimator, X: Container, y: Container, low: float, high: float) -> float:
    """Return 1 less the mean absolute error of a record, in lengths of the range of y."""
    predicted, true = (np.clip(np.ravel(each), low, high) for each in (model.predict(X), y))
    return 1 - float(np.mean(np.abs(predicted - true))) / (high - low)


def as_scoring(scoring: object, y_range: object, estimator: Estimator) -> Callable:
    """Return the score of a record: as given, or the default of a classifier or a regressor."""
    if callable(scoring):
        return scoring
    if scoring is None and is_classifier(estimator):
        return accuracy
    if scoring is not None or not is_regressor(estimator):
        raise ValueError(
            "The 'scoring' parameter of PrivateSearchCV must score one record: None for a "
            "classifier or a regressor, or a function scoring(estimator, X, y) from 0 to 1. The "
            f"area under a curve compares records, and is none. Got {shown(scoring)}."
        )
    ends = floats(y_range)
    if ends is None or ends.shape != (2,) or not np.isfinite(ends).all() or not ends[0] < ends[1]:
        raise ValueError(
            "The 'y_range' parameter of PrivateSearchCV must be a public range of y, (low, high), "
            f"where a regressor is scored without a 'scoring'. Got {shown(y_range)}."
        )
    return partial(closeness, low=float(ends[0]), high=float(ends[1]))
