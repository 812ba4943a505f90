"""What a plan says about the worth of a release, before anything is paid for."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, make_regression
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    ClipBox,
    ClipNorm,
    GaussianMechanism,
    LaplaceMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivateEstimator,
    PublicDataOracle,
    RandomTaskOracle,
    UtilityWarning,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.planning.checks import check_parameters
from skdp.planning.making import make_plan
from skdp.planning.preparation import prepare
from skdp.sensitivity.store import STORE
from tests import helpers
from tests.helpers import sampler

X, y = load_breast_cancer(return_X_y=True)
PUBLIC, SCALER = X[:284], FrozenEstimator(StandardScaler().fit(X[:284]))
SCALER_OF_TWO = FrozenEstimator(StandardScaler().fit([[3, 3], [5, 9]]))
CLASSIFIER = make_pipeline(SCALER, ClipNorm(5.0), LogisticRegression(fit_intercept=False))
MOMENTS = make_pipeline(SCALER, ClipNorm(5.0), MomentClassifier())
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
    return [str(each.message) for each in caught if each.category is UtilityWarning]


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
        with pytest.raises(UtilityWarning):
            model.fit(X[284:], y[284:])
    assert budget.total().epsilon == 0
    assert not hasattr(model, "estimator_")


CLIPPED = make_pipeline(ClipNorm(2.0), MomentRegressor(y_range=(0, 50)))


def plain(estimator, epsilon, **options):
    mechanism = GaussianMechanism(epsilon, 1e-5)
    return PrivateEstimator(estimator, mechanism=mechanism, sensitivity="known", **options)


@pytest.mark.parametrize(
    ("model", "like", "gains"),
    [
        (plain(CLASSIFIER, 0.01, classes=[0, 1]), (X[:2], y[:2]), False),
        (plain(MOMENTS, 10.0, classes=[0, 1]), (X[:2], y[:2]), True),
        (plain(CLIPPED, 0.1), (X[:2, :5], y[:2]), False),
        (plain(CLIPPED, 10.0), (X[:2, :5], y[:2]), True),
    ],
)
def test_a_known_sensitivity_without_a_prior_has_a_score_on_made_up_records(model, like, gains):
    """A release is held against a guess: one that is noise is not sold in silence."""
    said = warnings_of(model.plan, 285, like=like)
    assert gains == (not said)
    assert all("than a guess: " in each and "(on made-up records)" in each for each in said)


def test_records_are_made_up_in_the_range_of_the_first_step_only_where_labels_are_declared():
    box = make_pipeline(ClipBox(3, [5, 9]), SCALER_OF_TWO, ClipNorm(), MomentClassifier())
    plan = plain(box, 10.0, classes=["a", "b"]).plan(100, like=(np.ones((2, 2)), ["a", "b"]))
    records, labels = plan.made_up(100, np.random.default_rng(0))
    assert (np.abs(records - [4, 6]) <= [1, 3]).all()
    assert np.ptp(records, axis=0) == pytest.approx([2, 6], rel=0.2)
    assert set(labels) == {"a", "b"}
    assert "a guess 0." in str(plan)
    assert plan.public_estimator is None
    assert helpers.private(Ridge(), sensitivity=0.1).plan(9, like=(X[:2], y[:2])).made_up is None


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # a few steps do here
def test_advice_names_predictions_where_these_score_more_at_no_further_fit(monkeypatch):
    """Only students are: to 400 anchors, while datasets have 100 records."""
    fit, sizes = MLPRegressor.fit, []

    def counted(self, X, y, **options):
        sizes.append(len(X))
        return fit(self, X, y, **options)

    monkeypatch.setattr(MLPRegressor, "fit", counted)
    monkeypatch.setattr("skdp.core.room.check_unpatched", int)
    STORE.clear()
    features, response = make_regression(300, 3, noise=1.0, random_state=1)
    known = sampler(features, response / response.std(), n_pairs=9)
    options = {"solver": "lbfgs", "max_iter": 200, "alpha": 0.1, "random_state": 0}
    network = MLPRegressor(hidden_layer_sizes=(16,), **options)
    mechanism = LaplaceMechanism(epsilon=0.1)
    model = helpers.private(network, sensitivity=known, mechanism=mechanism)
    plan = model.plan(100)
    assert plan.advice.startswith('release="predictions" may score')
    students = [size for size in sizes if size != 100]
    assert students == [400] * (len(plan.expected_score.private) + 1)
    n_fits = len(sizes) - len(students)
    sizes.clear()
    STORE.clear()
    way, example = check_parameters(model), known.public_dataset(100)
    draft = prepare(way, example, is_private=False)
    assert make_plan(replace(draft, predictions=None)).advice == ""
    assert sizes == [100] * n_fits
    assert prepare(way, example).predictions is None  # a fit has no time for it
    assert f"advice          {plan.advice}" in str(plan)
    told = float(plan.advice.split()[-1])
    assert told > plan.expected_score.private.mean() + 0.05
    better = model.set_params(release="predictions").plan(100).expected_score.private.mean()
    assert told == pytest.approx(better, abs=0.1)


@pytest.mark.parametrize(
    ("estimator", "epsilon"), [(SVM, 1.0), (make_pipeline(SCALER, LogisticRegression(C=0.01)), 0.3)]
)
def test_no_advice_where_predictions_score_no_more_or_fail(estimator, epsilon):
    def fails_for_anchors(n_samples, rng):
        assert n_samples < 1600
        return TASKS(n_samples, rng)

    for oracle in (TASKS, fails_for_anchors):
        known = sampler(oracle, n_pairs=9)
        mechanism = LaplaceMechanism(epsilon)
        plan = helpers.private(estimator, sensitivity=known, mechanism=mechanism).plan(285)
        assert plan.advice == ""
        assert "advice" not in str(plan)


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
    assert private(SVM, TASKS).plan(100, scoring="accuracy").expected_score.scoring == "accuracy"
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
