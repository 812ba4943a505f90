"""Released predictions: what is read, what a student learns of it, and for which estimators."""

import pickle

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SelectKBest
from sklearn.neighbors import (
    KernelDensity,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LocalOutlierFactor,
)
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import skdp
from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler
from skdp.audit import find_leaks
from skdp.estimators.predictions import ClassScores, kind_of, likeliest

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:sklearn"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn"),
]

# Breast cancer, four columns that are standardized on public records; a bent response besides.
_X, _Y = load_breast_cancer(return_X_y=True)
_ORDER = np.random.default_rng(0).permutation(len(_X))
_X = StandardScaler().fit(_X[_ORDER[:142]][:, [0, 1, 4, 7]]).transform(_X[_ORDER][:, [0, 1, 4, 7]])
_R = _X @ [1.0, -2.0, 0.5, 1.0] + 0.3 * np.sin(3 * _X[:, 0])
PUBLIC, X, TEST = (part.copy() for part in [*np.split(_X, [142, 222])[:2], _X[427:]])
Y, RESPONSE = _Y[_ORDER][142:222].copy(), _R[142:222].copy()
LABELED = skdp.RandomTaskOracle(PUBLIC, classes=[0, 1])
MEASURED = skdp.RandomTaskOracle(PUBLIC, y_scale=2.0, noise=0.2)
UNLABELED = skdp.PublicDataOracle(PUBLIC)


def private(estimator, oracle=None, *, epsilon=1.0, code="auto", n_pairs=5, **options):
    """A cheap private estimator: few pairs, of an oracle that suits it."""
    if oracle is None:
        measured = MEASURED if is_regressor(estimator) else UNLABELED
        oracle = LABELED if is_classifier(estimator) else measured
    sampler = SensitivitySampler(oracle, gamma=0.4, n_pairs=n_pairs, random_state=0)
    options = {"release": "predictions", "sensitivity": sampler, "random_state": 0} | options
    return PrivateEstimator(estimator, mechanism=LaplaceMechanism(epsilon, code=code), **options)


def records(estimator):
    if is_classifier(estimator):
        return X, Y
    return (X, RESPONSE) if is_regressor(estimator) else (X,)


def agreement(estimator, model, data, test=TEST):
    """The share of equal labels on records held out, or the correlation of numbers."""
    exact = clone(estimator).fit(*data)
    if is_classifier(estimator):
        return np.mean(exact.predict(test) == model.predict(test))
    kind = kind_of(estimator)
    method = {"regressor": "predict", "density": "score_samples"}.get(kind, "decision_function")
    outputs = (np.ravel(getattr(each, method)(test)) for each in (exact, model))
    return np.corrcoef(*outputs)[0, 1]


class Memory(ClassifierMixin, BaseEstimator):
    """A class of a user's own, without fitted attributes that are known, weights or scores."""

    def fit(self, X, y):
        self._rows, self._labels = np.asarray(X), np.asarray(y)
        return self

    def predict(self, X):
        gaps = np.linalg.norm(np.asarray(X)[:, None] - self._rows, axis=2)
        return self._labels[gaps.argmin(axis=1)]


FAST = [
    SVC(),
    KNeighborsClassifier(15),
    Memory(),
    make_pipeline(StandardScaler(), SelectKBest(k=2), SVC()),
    KNeighborsRegressor(),
    SVR(),
    OneClassSVM(),
    LocalOutlierFactor(novelty=True),
    KernelDensity(),
]


@pytest.mark.parametrize("estimator", FAST, ids=lambda e: type(e).__name__)
def test_a_student_of_exact_scores_is_like_the_estimator(estimator):
    data = records(estimator)
    model = private(estimator, epsilon=1e6, code=None, release="auto").fit(*data)
    assert type(model.estimator_) is type(estimator)
    assert "predictions of" in model.plan_.target.description
    assert agreement(estimator, model, data) > (0.8 if len(data) == 1 else 0.9)
    if is_classifier(estimator) and hasattr(model.estimator_, "classes_"):
        np.testing.assert_array_equal(model.classes_, [0, 1])


@pytest.mark.parametrize("estimator", FAST[:6], ids=lambda e: type(e).__name__)
def test_a_student_holds_no_secret(estimator):
    data = X, Y if is_classifier(estimator) else RESPONSE
    model = private(estimator, code=None).fit(*data)
    named = np.random.default_rng(1).normal(size=len(X)) if is_classifier(estimator) else RESPONSE
    target = model.plan_.target
    exact = np.unique(target(*data, seed=0))[1:-1]  # without bounds to which all are clipped
    oracle, rng = model.plan_.oracle, np.random.default_rng(0)
    # shares of neighbors are the same in any fit
    likewise = [target(*oracle(len(X), rng), seed=0) for _ in range(5)]
    public = [PUBLIC, target.anchors, likewise]
    assert find_leaks(model.estimator_, X, named, parameters=exact, public=public) == []
    assert find_leaks(pickle.dumps(model), X, named, parameters=exact, public=public) == []
    if not isinstance(estimator, Pipeline):  # which keeps scaled records
        assert find_leaks(clone(estimator).fit(*data), X, named, public=public)


class Scored(Memory):
    """A fit with given labels, and numbers in a given method."""

    def __init__(self, labels=(0, 1, 2), **methods):
        self.classes_ = np.array(labels)
        for name, values in methods.items():
            setattr(self, name, lambda X, values=values: np.array(values))


@pytest.mark.parametrize(
    ("n_classes", "fitted", "scores"),
    [
        (2, Scored([0, 1], predict_proba=[[0.25, 0.75]]), [[0.5]]),
        (2, Scored([0, 1], decision_function=[2.0]), [[np.tanh(2.0)]]),
        (2, Scored([0, 1], predict=[[1]]), [[1]]),
        (2, Scored([0], predict_proba=[[1.0]]), [[-1]]),
        (2, Scored([1], decision_function=[[0.3]], predict=[1]), [[1]]),
        (3, Scored([0, 2], predict_proba=[[0.25, 0.75]]), [[-0.5, -1, 0.5]]),
        (3, Scored([1, 2], decision_function=[2.0]), [[-1, -np.tanh(2.0), np.tanh(2.0)]]),
        (3, Scored(decision_function=[[2.0, 0.0, -2.0]]), [[np.tanh(2.0), 0, -np.tanh(2.0)]]),
        (4, Scored(range(4), decision_function=[[1.0] * 6], predict=[2]), [[-1, -1, 1, -1]]),
        (3, Scored(predict_proba=[[2.0, -1.0, 0.0]]), [[1, -1, -1]]),
    ],
)
def test_scores_of_a_classifier(n_classes, fitted, scores):
    """Probabilities, else margins, else votes; a class that a fit lacks is impossible."""
    read = ClassScores(np.arange(n_classes)).read(fitted, np.zeros((1, 2)))
    np.testing.assert_allclose(read, scores)


def test_labels_keep_some_of_each_class():
    shares = np.full((40, 3), [0.9, 0.06, 0.04]) + 0.001 * np.arange(40)[:, None] * [-1, 1, 0]
    places = likeliest(shares)
    assert np.bincount(places).tolist() == [30, 5, 5]
    assert set(places[-5:]) == {1}
    assert np.bincount(likeliest(shares[:4])).tolist() == [2, 1, 1]
