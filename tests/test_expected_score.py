"""What a plan says about the worth of a release, before anything is paid for."""

import math
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, make_regression
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
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
from skdp.oracles.graded_task import GradedTaskOracle
from skdp.planning.checks import check_parameters
from skdp.planning.making import make_plan
from skdp.planning.preparation import prepare
from skdp.results.expected import ExpectedScore, ScoreAt
from skdp.sensitivity.store import STORE
from tests import helpers
from tests.helpers import sampler

pytestmark = pytest.mark.worth

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
    score = private(SVM, TASKS).plan(285).expected_score
    assert score.public is None
    assert score.private.mean() < score.exact.mean()
    assert score.scoring == "accuracy"
    assert not warnings_of(private(SVM, TASKS, 10.0).plan, 285)
    plan = private(SVM, TABLE).plan(285)
    assert f"public records alone {plan.expected_score.public.mean():.2f}" in str(plan)
    with pytest.raises(ValueError, match="state 'expect'"):
        plan.expected_score.at(majority=0.6)
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
    assert all("than a guess: it beats a guess of " in each for each in said)


def test_records_are_made_up_in_the_range_of_the_first_step_only_where_labels_are_declared():
    box = make_pipeline(ClipBox(3, [5, 9]), SCALER_OF_TWO, ClipNorm(), MomentClassifier())
    plan = plain(box, 10.0, classes=["a", "b"]).plan(100, like=(np.ones((2, 2)), ["a", "b"]))
    records, labels = plan.made_up(100, np.random.default_rng(0))
    assert (np.abs(records - [4, 6]) <= [1, 3]).all()
    assert np.ptp(records, axis=0) == pytest.approx([2, 6], rel=0.2)
    assert set(labels) == {"a", "b"}
    assert "of the release, on made-up records" in str(plan)
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
    said = r'release="predictions" may score (\S+) where this scores (\S+), on average'
    told, own = map(float, re.fullmatch(said, plan.advice).groups())
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
    assert f"advice {plan.advice}" in " ".join(str(plan).split())
    assert told > float(plan.expected_score) + 0.05
    assert own == pytest.approx(float(plan.expected_score), abs=0.006)
    better = float(model.set_params(release="predictions").plan(100).expected_score)
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
    """Of datasets of one task, with noise of their own; within five standard errors."""
    oracle = TASKS
    if isinstance(estimator, Ridge):
        oracle = RandomTaskOracle(PUBLIC / PUBLIC.std(axis=0), y_scale=1.0)
    plan = private(estimator, oracle, epsilon).plan(285)
    table, rng, off = plan.expected_score.table, np.random.default_rng(1), []
    for task, row in zip(plan.simulate_tasks().tasks, table, strict=True):
        scores = []
        for seed in range(2):
            records, responses = task(785, rng)
            released = plan.execute(records[:285], responses[:285], random_state=seed).value
            scores.append(released.score(records[285:], responses[285:]))
        off.append(row["private"] - np.mean(scores))
    assert abs(np.mean(off)) < 5 * np.std(off) / np.sqrt(len(off))


@pytest.mark.parametrize("difficulty", [0.95, 0.65])
@pytest.mark.parametrize("share", [0.5, 0.1])
def test_tasks_have_the_difficulty_and_the_shares_that_were_asked_for(difficulty, share):
    """The area under the curve of the best rule, which 20,000 labels show to .01."""
    values = np.random.default_rng(0).normal(size=(20_000, 1))  # so that the rule is the feature
    task = GradedTaskOracle(
        PublicDataOracle(values), difficulty, np.array(["a", "b"]), (1 - share, share)
    )
    records, labels = task(20_000, np.random.default_rng(1))
    area = roc_auc_score(labels == "a", records[:, 0])
    assert max(area, 1 - area) == pytest.approx(difficulty, abs=0.02)
    assert min(np.mean(labels == each) for each in "ab") == pytest.approx(share, abs=0.02)


def test_tasks_of_more_classes_and_of_real_responses_are_as_hard_as_asked_for():
    rng = np.random.default_rng(0)
    values = PublicDataOracle(rng.normal(size=(5000, 2)), rng.normal(3.0, 2.0, 5000))
    _, labels = GradedTaskOracle(values, 0.5, np.arange(3), (0.6, 0.3, 0.1))(20_000, rng)
    assert sorted(np.bincount(labels) / 20_000) == pytest.approx([0.1, 0.3, 0.6], abs=0.02)
    records, response = GradedTaskOracle(values, 0.5)(20_000, rng)
    assert Ridge().fit(records, response).score(records, response) == pytest.approx(0.5, abs=0.03)
    assert response.mean() == pytest.approx(3.0, abs=0.1)
    assert response.std() == pytest.approx(2.0, abs=0.1)


TABLE_OF_TASKS = ExpectedScore(
    # a release keeps half of what the best model adds to a guess
    *np.array([(m + (e - m) / 2, e, m) for m in (0.5, 0.7, 0.9) for e in (m, (1 + m) / 2, 1.0)]).T,
    scoring="accuracy",
    rows=(0.5, 0.9),
)


def test_a_table_is_read_between_its_tasks():
    assert TABLE_OF_TASKS.at(majority=0.6, exact=0.8).score == pytest.approx(0.7, abs=0.01)
    assert TABLE_OF_TASKS.at(majority=0.6).score == pytest.approx(0.7, abs=0.01)
    assert TABLE_OF_TASKS.at(majority=0.6, exact=0.55).score <= 0.55  # no noise makes it better
    assert 0.62 <= TABLE_OF_TASKS.break_even(majority=0.6) < 0.7
    assert TABLE_OF_TASKS.table["exact"].max() == 1.0
    worse = replace(TABLE_OF_TASKS, private=TABLE_OF_TASKS.majority - 0.1)
    assert worse.break_even(majority=0.6) == np.inf
    assert "nowhere" in str(worse)
    assert max(TABLE_OF_TASKS, worse) is TABLE_OF_TASKS
    assert float(worse) == pytest.approx(0.6)


def test_a_worth_is_that_at_the_stated_point():
    assert TABLE_OF_TASKS.is_worth
    point = {"majority": 0.9, "exact": 0.905}
    assert not TABLE_OF_TASKS.expecting(point).is_worth
    assert TABLE_OF_TASKS.expecting({"majority": 0.9}).is_worth
    assert float(TABLE_OF_TASKS.expecting(point)) == TABLE_OF_TASKS.at(**point).score
    lost = replace(TABLE_OF_TASKS, private=np.full(9, 0.6), rows=(0.5, 0.8, 0.9))
    assert not lost.is_worth  # for two of three


def test_a_single_release_deviates_by_its_own_noise():
    lost_nothing = replace(TABLE_OF_TASKS, private=TABLE_OF_TASKS.exact, deviations=0.1)
    assert lost_nothing.at(majority=0.7, exact=0.85) == pytest.approx((0.85, 0.0, 0.1))


@pytest.mark.loop(
    ("error", "said"), [(0.0004, "0.01"), (0.041, "0.05"), (0.07, "0.07"), (12.2, "12"), (0.0, "0")]
)
def test_an_error_has_no_more_decimals_than_the_score_and_is_rounded_up(error, said):
    assert str(ScoreAt(0.9, 0.0, error)) == f"0.90 +- {said}"


def test_a_majority_alone_is_read_on_modest_tasks():
    """A model gains .2 and .04 there, nothing where all are alike, and much on the easiest ones."""
    gains = np.array([0.4, 0.25, 0.15, 0.3, 0.06, 0.02])
    majority = np.repeat([0.5, 0.8], 3)
    tasks = ExpectedScore(
        *(majority + gains, majority + gains, majority, "accuracy"),
        rows=(0.5, 0.8),
        ease=np.tile([0.95, 0.85, 0.75], 2),
        deviations=0.12,
    )
    assert tasks.at(majority=0.5) == pytest.approx((0.7, 0.05, 0.13))
    assert tasks.at(majority=0.8) == pytest.approx((0.84, 0.02, math.hypot(0.02, 0.12)))
    assert 0.04 < tasks.at(majority=0.7).score - 0.7 < 0.04 + 0.16 / 3  # below a straight line
    assert 0 < tasks.at(majority=0.9).score - 0.9 < 0.02
    assert tasks.at(majority=1.0).score == pytest.approx(1.0)
    assert tasks.expecting({"majority": 0.8}).is_worth
    assert not tasks.expecting({"majority": 0.95}).is_worth
    assert "and the task is of modest difficulty" in tasks.expecting({"majority": 0.8}).line


@pytest.mark.slow
def test_a_stated_task_is_printed_and_warned_of():
    model = private(SVM, TASKS).set_params(expect={"majority": 0.6, "exact": 0.9})
    plan = model.plan(285)
    said = " ".join(str(plan).split())
    assert "if the majority is 0.60 and the best model has 0.90; beats a guess from 0.6" in said
    assert float(plan.expected_score) == plan.expected_score.at(majority=0.6, exact=0.9).score
    expected = plan.expected_score  # of four releases of each task
    np.testing.assert_allclose(expected.deviations, 2 * expected.errors)
    assert plan.sensitivity.value == private(SVM, TASKS).plan(285).sensitivity.value
    noisy = private(SVM, TASKS, 0.05).set_params(expect={"majority": 0.8})
    (said,) = warnings_of(noisy.plan, 285)
    assert "if the majority is 0.80 and the task is of modest difficulty" in said
    labelled = private(SVM, TABLE).set_params(expect={"majority": 0.6}).plan(285)
    assert labelled.expected_score.records == "made-up tasks"


@pytest.mark.parametrize(
    ("estimator", "expect"),
    [
        (SVM, {"exact": 0.9}),
        (SVM, {"majority": 0.9, "exact": 0.8}),
        (SVM, {"majority": "most"}),
        (SVM, 0.9),
        (Ridge(), {"majority": 0.5, "exact": 0.9}),
        (Ridge(), {"exact": 1.5}),
        (KMeans(2), {"exact": 0.5}),
    ],
)
def test_what_is_no_task_is_refused(estimator, expect):
    with pytest.raises(ValueError, match="'expect' parameter of PrivateEstimator"):
        private(estimator, TASKS).set_params(expect=expect).plan(285)


def test_what_is_scored_may_be_chosen_and_is_reproducible():
    plans = [private(SVM, TASKS).plan(100, scoring="roc_auc") for _ in range(2)]
    first, second = (plan.expected_score for plan in plans)
    np.testing.assert_array_equal(first.private, second.private)
    assert first.scoring == "roc auc"
    assert private(SVM, TASKS).plan(100, scoring="accuracy").expected_score.scoring == "accuracy"
    assert len(first.private) == len(first.exact) == 12
    assert "a guess 0.50" in str(first)  # and no table, whose columns are accuracies


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
