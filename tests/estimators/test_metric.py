"""The output metric: finite differences against closed forms."""

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp.estimators.parameters import ParameterTarget

X, y = make_classification(
    n_samples=120, n_features=5, n_informative=4, n_redundant=0, n_classes=3, random_state=0
)


def make_target(estimator, y=y, release="auto"):
    return ParameterTarget(estimator, release, clone(estimator).fit(X, y))


def second_moments(X):
    with_one = np.column_stack([X, np.ones(len(X))])
    return with_one.T @ with_one / len(X)


def test_each_class_has_a_block_of_its_own():
    metric = make_target(LogisticRegression()).output_metric(X, y)
    moments = second_moments(X)
    expected = np.zeros((18, 18))
    expected[:15, :15] = np.kron(np.eye(3), moments[:5, :5])
    expected[:15, 15:] = np.kron(np.eye(3), moments[:5, 5:])
    expected[15:, :15] = expected[:15, 15:].T
    expected[15:, 15:] = np.eye(3)
    np.testing.assert_allclose(metric, expected, atol=1e-6)


def test_public_steps_before_the_model_are_applied():
    scaler = FrozenEstimator(StandardScaler().fit(X))
    metric = make_target(make_pipeline(scaler, LinearSVC())).output_metric(X)
    np.testing.assert_allclose(np.diag(metric), 1, atol=1e-6)


def test_transformed_records_count_as_output():
    """z = (x - mean) / sqrt(var): the squared slope in the mean is 1 / var."""
    target = make_target(StandardScaler())
    metric = target.output_metric(X).matrix
    np.testing.assert_allclose(np.diag(metric)[:5], 1 / target.public_fit.var_, rtol=1e-4)


def test_directions_that_bend_are_believed_by_half():
    """A released scaler before a model: null directions of J'J matter for large changes."""
    target = make_target(make_pipeline(StandardScaler(), LinearSVC()))
    metric = target.output_metric(X).matrix
    scale = np.sqrt(np.diag(metric))
    correlations = metric / np.outer(scale, scale)
    off_diagonal = correlations - np.eye(len(scale))
    assert 0.4 < np.abs(off_diagonal).max() < 0.5 + 1e-9
    assert np.linalg.eigvalsh(correlations)[0] > 0.5 - 1e-9
    fixed = FrozenEstimator(StandardScaler().fit(X))
    straight = make_target(make_pipeline(fixed, LinearSVC())).output_metric(X)
    assert np.linalg.matrix_rank(straight) == 18


def test_zero_parameters_are_moved_too():
    target = make_target(Ridge(), y.astype(float))
    target.public_fit.coef_[2] = 0.0
    np.testing.assert_allclose(target.output_metric(X), second_moments(X), atol=1e-6)
    target.public_fit.coef_[:] = 0.0
    target.public_fit.intercept_ = np.float64(0.0)
    np.testing.assert_allclose(target.output_metric(X), second_moments(X), atol=1e-6)
