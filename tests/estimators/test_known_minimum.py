"""Linear support vector machines whose sensitivity is known: the minimizer, how far it moves."""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skdp import ClipNorm, LaplaceMechanism, PrivateEstimator
from skdp.estimators.known_target import KnownTarget
from skdp.exceptions import PrivateEvaluationError


def private(estimator, radius=1.0, classes=(0, 1), mechanism=None):
    return PrivateEstimator(
        make_pipeline(ClipNorm(radius), estimator),
        mechanism=mechanism or LaplaceMechanism(np.inf),
        sensitivity="known",
        classes=list(classes),
    )


def test_without_noise_it_is_the_machine():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = rng.normal(loc=np.outer(y, [1.5, -1.0, 0.5]))
    for options in ({"C": 1e-3}, {"C": 0.1, "intercept_scaling": 2.0}, {"fit_intercept": False}):
        estimator = LinearSVC(loss="hinge", tol=1e-9, max_iter=200_000, dual=True, **options)
        exact = clone(estimator).fit(X, y)
        for container in (np.asarray, sparse.csr_array):
            released = private(estimator, 50.0).fit(container(X), y).estimator_[-1]
            near = 2e-3 * np.abs(exact.coef_).max()  # the corner is rounded
            np.testing.assert_allclose(released.coef_, exact.coef_, atol=near)
            np.testing.assert_allclose(released.intercept_ - exact.intercept_, 0, atol=near)
            assert (released.predict(X) == exact.predict(X)).mean() > 0.98


def datasets(rng, n_samples, n_features):
    """Two neighbors, with records on axes, corners and repeated ones."""
    axes = np.eye(n_features)[rng.integers(n_features, size=n_samples + 1)]
    corners = rng.choice([-1.0, 1.0], size=axes.shape)
    X = np.choose(rng.integers(3), [axes * corners, corners, rng.normal(size=axes.shape)])
    X *= rng.choice([1.0, 1e9, 0.3], size=(len(X), 1))
    y = rng.integers(2, size=len(X))
    if rng.random() < 0.3:
        X[:], y[:-1] = X[0] * rng.choice([-1, 1], size=(len(X), 1)), 1
    return (X[:-1], y[:-1]), (np.vstack([X[1:-1], X[-1:]]), np.append(y[1:-1], y[-1]))


LOGISTIC = LogisticRegression(fit_intercept=False)
MODELS = [LinearSVC(loss="hinge"), LOGISTIC, LogisticRegression(solver="liblinear")]


@pytest.mark.loop("model", MODELS)
@pytest.mark.loop(("C", "least"), [(1e-4, 0.95), (0.1, 0.2), (3.0, 0.01)])
def test_no_pair_moves_a_minimizer_farther_than_its_bound(model, C, least):
    """The bound is attained where the penalty is strong."""
    rng, reached = np.random.default_rng(0), 0.0
    for n_samples in (1, 4):
        estimator = make_pipeline(ClipNorm(), clone(model).set_params(C=C))
        fitted = estimator.fit(np.eye(2)[[0, 1]], [0, 1])
        target = KnownTarget(estimator, fitted, n_samples)
        bounds = [target.statistic.bound(order, n_samples) for order in (1, 2)]
        for _ in range(10):
            first, second = (target(*each, seed=0) for each in datasets(rng, n_samples, 2))
            assert np.abs(first - second).sum() <= bounds[0]
            reached = max(reached, math.dist(first, second) / bounds[1])
    assert least <= reached <= 1


def test_a_minimizer_that_was_not_found_is_not_released(monkeypatch):
    X, y = np.eye(6)[:, :2], np.arange(6) % 2
    model = private(LinearSVC(C=1.0, loss="hinge"))
    model.fit(X, y)
    monkeypatch.setattr("skdp.estimators.known.minimum.MAX_STEPS", 1)
    with pytest.raises(PrivateEvaluationError, match="FloatingPointError"):
        model.fit(X, y)


@pytest.mark.parametrize(
    ("estimator", "classes", "message"),
    [
        (LinearSVC(loss="hinge", class_weight="balanced"), [0, 1], "class_weight=None"),
        (LinearSVC(penalty="l1"), [0, 1], "penalty='l2'"),
        (LinearSVC(multi_class="crammer_singer"), [0, 1], "multi_class='ovr'"),
        (LinearSVC(loss="hinge"), [0, 1, 2], "two classes"),
        (LinearSVC(), [0, 1], "loss='hinge'"),
        (LinearSVC(C=1e7, loss="hinge"), [0, 1], "so that the solver converges"),
    ],
)
def test_machines_without_a_bound_are_refused(estimator, classes, message):
    X, y = np.eye(60)[:, :3], np.arange(60) % len(classes)
    with pytest.raises(ValueError, match=message):
        private(estimator, 2.0, classes).plan(60, like=(X, y))


def test_an_absent_class_is_no_error():
    X = np.random.default_rng(0).normal(size=(50, 3))
    model = private(LinearSVC(C=0.01, loss="hinge"), mechanism=LaplaceMechanism(1.0))
    assert model.fit(X, np.zeros(50, dtype=int)).predict(X).shape == (50,)
