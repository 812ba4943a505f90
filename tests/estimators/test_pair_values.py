"""Both values of a pair at once: the same bits as two calls, with less checking."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from skdp.core.dataset import Dataset, neighboring_pair
from skdp.core.target import pair_values
from skdp.estimators.parameters import ParameterTarget

X, y = make_classification(n_samples=41, n_features=4, random_state=0)


@pytest.mark.parametrize(
    "estimator",
    [
        LinearSVC(),
        LogisticRegression(),
        SGDClassifier(),  # depends on the seed
        make_pipeline(StandardScaler(), SGDClassifier()),
    ],
    ids=str,
)
def test_pair_equals_two_calls(estimator):
    target = ParameterTarget(estimator, "auto", estimator.fit(X, y))
    records = Dataset(X, y)
    dataset, neighbor = neighboring_pair(records)
    value, other = pair_values(target, records, seed=3)
    np.testing.assert_array_equal(value, target(*dataset.parts, seed=3))
    np.testing.assert_array_equal(other, target(*neighbor.parts, seed=3))
    assert not np.array_equal(value, other)


def test_infinity_made_inside_a_pipeline_still_fails():
    estimator = make_pipeline(FunctionTransformer(np.log), LinearSVC())
    positive = np.abs(X) + 1.0
    target = ParameterTarget(estimator, "auto", estimator.fit(positive, y))
    positive[0, 0] = 0.0
    with np.errstate(divide="ignore"), pytest.raises(ValueError, match="infinity"):
        pair_values(target, Dataset(positive, y), seed=0)


@pytest.mark.parametrize("estimator", [LinearSVC(), SGDClassifier(warm_start=True)], ids=str)
def test_every_fit_is_cold(estimator):
    """Also with `warm_start`."""
    target = ParameterTarget(estimator, "auto", clone(estimator).fit(X, y))
    first = target(X, y, seed=3)
    pair_values(target, Dataset(X[::-1], 1 - y), seed=4)
    np.testing.assert_array_equal(target(X, y, seed=3), first)
    assert vars(target.estimator).keys() == vars(clone(estimator)).keys()


def test_parameters_that_a_fit_might_change_are_cloned(monkeypatch):
    fit, weights = LinearSVC.fit, {0: 1.0, 1: 2.0}
    target = ParameterTarget(LinearSVC(class_weight=weights), "auto", LinearSVC().fit(X, y))

    def fit_that_doubles(self, X, y):
        self.class_weight[1] *= 2
        return fit(self, X, y)

    monkeypatch.setattr(LinearSVC, "fit", fit_that_doubles)
    np.testing.assert_array_equal(target(X, y, seed=3), target(X, y, seed=3))
    assert weights == {0: 1.0, 1: 2.0}


class Diary(BaseEstimator):
    """Keeps more than its parameters from fit to fit."""

    def __init__(self):
        self.fits = []

    def fit(self, X, y=None):
        self.fits.append(len(X))
        self.seen_ = np.array([float(len(self.fits))])
        return self


def test_estimators_of_other_libraries_are_cloned():
    target = ParameterTarget(Diary(), ["seen_"], Diary().fit(X))
    assert [target(X, seed=0).tolist() for _ in range(2)] == [[1.0], [1.0]]
