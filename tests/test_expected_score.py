"""What a plan says about the worth of a release, before anything is paid for."""

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, make_regression
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    LaplaceMechanism,
    PublicDataOracle,
    RandomTaskOracle,
    release,
)
from skdp.accounting import PrivacyAccountant
from tests import helpers
from tests.helpers import sampler

X, y = load_breast_cancer(return_X_y=True)
PUBLIC, SCALER = X[:284], FrozenEstimator(StandardScaler().fit(X[:284]))
SVM = make_pipeline(SCALER, LinearSVC(C=0.01))
TASKS = RandomTaskOracle(PUBLIC, classes=[0, 1])
TABLE = PublicDataOracle(PUBLIC, y[:284])


def private(estimator, oracle, epsilon=1.0):
    known = sampler(oracle, n_pairs=None)
    options = {"mechanism": LaplaceMechanism(epsilon), "random_state": None}
    return helpers.private(estimator, sensitivity=known, **options)


def warnings_of(call, *args, **kwargs):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args, **kwargs)
    return [str(each.message) for each in caught if "may be worth" in str(each.message)]


def test_public_features_need_private_labels_and_a_public_table_does_not():
    plan = private(SVM, TASKS).plan(285)
    score = plan.expected_score
    assert score.public.mean() < 0.7 < score.private.mean() < score.exact.mean()
    assert score.scoring == "accuracy"
    assert f"public records alone {score.public.mean():.2f}" in str(plan)
    assert not warnings_of(private(SVM, TASKS).plan, 285)
    (said,) = warnings_of(private(SVM, TABLE).fit, X[284:], y[284:])
    assert "public records alone" in said
    assert "exact model is not clearly better" in said


def test_the_warning_comes_before_the_payment():
    budget = PrivacyAccountant(":memory:", epsilon=1.0)
    model = private(SVM, TABLE).set_params(accountant=budget)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="may be worth"):
            model.fit(X[284:], y[284:])
    assert budget.total().epsilon == 0
    assert not hasattr(model, "estimator_")


@pytest.mark.slow
def test_a_network_that_is_noise_is_told():
    features, response = make_regression(1000, 8, noise=1.0, random_state=0)
    network = MLPRegressor(hidden_layer_sizes=(16,), solver="lbfgs", max_iter=50, random_state=0)
    oracle = PublicDataOracle(features[:500], response[:500] / response.std())
    assert warnings_of(private(network, oracle).plan, 500)


@pytest.mark.parametrize("epsilon", [0.3, 3.0])
@pytest.mark.parametrize("estimator", [SVM, make_pipeline(SCALER, GaussianNB()), Ridge(1.0)])
@pytest.mark.slow
def test_the_expected_score_is_that_of_releases(estimator, epsilon):
    """Of twenty datasets; both means are within four standard errors of each other."""
    oracle = TASKS
    if isinstance(estimator, Ridge):
        oracle = RandomTaskOracle(PUBLIC / PUBLIC.std(axis=0), y_scale=1.0)
    plan = private(estimator, oracle, epsilon).plan(285)
    rng, scores = np.random.default_rng(1), []
    for seed in range(20):
        records, responses = oracle(485, rng)
        released = plan.execute(records[:285], responses[:285], random_state=seed).value
        scores.append(released.score(records[285:], responses[285:]))
    score = plan.expected_score
    error = np.hypot(score.standard_error, np.std(scores) / np.sqrt(len(scores)))
    assert abs(score.private.mean() - np.mean(scores)) < 5 * error


def test_what_is_scored_may_be_chosen_and_is_reproducible():
    plans = [private(SVM, TASKS).plan(100, scoring="roc_auc") for _ in range(2)]
    first, second = (plan.expected_score for plan in plans)
    np.testing.assert_array_equal(first.private, second.private)
    assert first.scoring == "roc auc"
    assert len(first.private) == len(first.exact) == 3


def test_the_model_of_public_records_alone_is_kept():
    model = private(SVM, TABLE).fit(X[284:], y[284:])
    code = model.mechanism_.geometry.code
    np.testing.assert_allclose(model.public_estimator_[-1].coef_.ravel(), code.mean[:-1])
    assert model.public_estimator_.score(X[284:], y[284:]) > 0.9


def test_what_has_no_score_has_none():
    columns = PublicDataOracle(PUBLIC[:, :3])
    assert private(StandardScaler(), columns).plan(100).expected_score is None
    assert private(KMeans(2, random_state=0), columns).plan(100).expected_score is not None
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sampler(TABLE, n_pairs=None)}
    released = release(lambda X, y: X.mean(axis=0), X[284:], y[284:], **options)
    assert "expected score" not in released.plan
