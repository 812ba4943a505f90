"""Hyper-parameters are chosen by the exponential mechanism, and paid for."""

import math
import threading

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, LeaveOneOut, TimeSeriesSplit
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    BudgetExceededError,
    ExponentialMechanism,
    LaplaceMechanism,
    PrivacyLeakWarning,
    PrivateEvaluationError,
    PrivateSearchCV,
    PublicDataOracle,
    UniformOracle,
    load,
    public_search,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import svm_bound
from skdp.plan import of_all, of_each
from tests import helpers

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(40, 2))
Y = X @ [1.0, -0.5] + RNG.normal(scale=0.2, size=40)
ORACLE = UniformOracle([(0, 1)] * 2, y_bounds=(-1, 2))
ALPHAS = {"estimator__alpha": [100.0, 1.0, 0.01]}
FEWER = {"estimator__alpha": [100.0, 1.0]}
ONE = {"estimator__alpha": [1.0]}


def sampler(**options):
    return helpers.sampler(ORACLE, **{"n_pairs": None} | options)


def ridge(epsilon=1.0, sensitivity=0.5, **options):
    noise = {"mechanism": LaplaceMechanism(epsilon, code=None), "random_state": None}
    return helpers.private(Ridge(), sensitivity=sensitivity, **noise | options)


def search(estimator=None, grid=ALPHAS, epsilon=0.5, **options):
    options = {"sensitivity": 0.5, "cv": 2} | options
    mechanism = ExponentialMechanism(epsilon)
    return PrivateSearchCV(estimator or ridge(), grid, mechanism=mechanism, **options)


@pytest.mark.slow
def test_without_privacy_it_is_a_grid_search():
    # Leaving one out is the only cross-validation that knows no order of the records.
    how = {"cv": LeaveOneOut(), "scoring": "neg_mean_squared_error"}
    grid = {"alpha": [1e-4, 1e-2, 0.1, 1.0, 1e3]}
    expected = GridSearchCV(Ridge(), grid, **how).fit(X[:12], Y[:12])
    assert 0 < expected.best_index_ < 4
    named = {f"estimator__{name}": values for name, values in grid.items()}
    found = search(ridge(math.inf), named, math.inf, **how).fit(X[:12], Y[:12])
    assert found.best_index_ == expected.best_index_
    assert found.best_params_ == {"estimator__alpha": expected.best_params_["alpha"]}
    assert_allclose(found.best_estimator_.coef_, expected.best_estimator_.coef_)
    assert found.guarantee_.epsilon == math.inf


def test_it_looks_like_a_grid_search():
    model = clone(search(ridge(), random_state=0))
    assert not hasattr(model, "best_estimator_")
    model.fit(X, Y)
    assert model.cv_results_ == {"params": [{"estimator__alpha": a} for a in (100.0, 1.0, 0.01)]}
    assert model.cv_results_["params"][model.best_index_] == model.best_params_
    assert model.best_estimator_.alpha == model.best_params_["estimator__alpha"]
    assert clone(model).get_params(deep=False)["param_grid"] == ALPHAS
    assert_allclose(model.predict(X), model.best_estimator_.predict(X))
    assert model.score(X, Y) == model.best_estimator_.score(X, Y)
    assert not hasattr(model, "predict_proba")
    grid = {"estimator__alpha": stats.loguniform(1e-3, 1e3)}
    first, second = (search(grid=grid, n_iter=4, random_state=0).fit(X, Y) for _ in range(2))
    assert first.cv_results_ == second.cv_results_
    assert len(first.cv_results_["params"]) == 4
    assert first.guarantee_.seeded


def test_what_it_hands_on_promises_choice_and_fit(tmp_path):
    with pytest.raises(NotFittedError):
        search().save(tmp_path)
    model = search().fit(X, Y)
    model.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.guarantee == model.guarantee_
    assert loaded.guarantee.epsilon == 1.5
    for each in (loaded, model):
        assert each.predict_interval(X, 0.5, n_draws=9).shape == (40, 2)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    for text in (str(model.guarantee_), f"Chosen: {model.best_params_}"):
        assert text in card
    assert str(model.summary()).startswith(str(model.guarantee_))
    assert model.guarantee_.short.partition(", ")[2] in model._repr_html_()
    assert not hasattr(model, "predict_stability")


@pytest.mark.slow
def test_a_classifier_and_other_estimators_in_its_place():
    X, y = make_classification(n_samples=120, n_features=4, random_state=0)
    words = np.array(["no", "yes"])[y]
    given = helpers.sampler(X[:60], words[:60], gamma=0.4)
    model = search(
        helpers.private(RidgeClassifier(), sensitivity=given),
        {"estimator": [RidgeClassifier(9.0), GaussianNB()]},
        sensitivity=given,
        scoring="balanced_accuracy",
    ).fit(X[60:], words[60:])
    assert list(model.classes_) == ["no", "yes"]
    assert type(model.best_estimator_) is type(model.best_params_["estimator"])
    assert hasattr(model, "predict_proba") == (model.best_index_ == 1)
    with pytest.raises(ValueError, match="label that is not public"):
        model.fit(X[60:], np.array(["no", "maybe"])[y[60:]])


@pytest.mark.filterwarnings("error")  # so that nothing is fitted
def test_a_candidate_of_private_records_is_pointed_out():
    with pytest.raises(PrivacyLeakWarning, match="part of the private records"):
        search(grid={"estimator__alpha": [1.0, X[0]]}).fit(X, Y)


SHUFFLED = KFold(2, shuffle=True)
SEEN = []


def noted_score(model, X, y):
    SEEN.append(model.score(X, y))
    return SEEN[-1]


def test_no_score_is_kept(leak_search):
    SEEN.clear()
    model = search(scoring=noted_score).fit(X, Y)
    public, folds = SEEN[:6], SEEN[6:]
    assert len(folds) == 6  # a fold is scored once
    assert not set(public) & set(folds)
    secrets = [*X.ravel(), *Y, *folds, *np.reshape(folds, (3, 2)).mean(axis=1)]
    SEEN.clear()
    assert leak_search(model, secrets) == []
    model.forgotten_ = folds[3]
    assert {leak.where for leak in leak_search(model, secrets)} == {"forgotten_", "pickle"}
    scorer = Locked()
    assert search(scoring=scorer).fit(X, Y).scoring is scorer
    assert scorer.seen == []


class Locked:
    """A scorer that remembers, and cannot be copied deeply."""

    def __init__(self):
        self.seen, self.lock = [], threading.Lock()

    def __call__(self, model, X, y):
        self.seen.append(model.score(X, y))
        return self.seen[-1]


@pytest.mark.parametrize("where", ["wrapped", "candidate"])
def test_a_fitted_estimator_is_pointed_out_and_not_handed_on(where):
    fitted = Ridge().fit(X, Y)
    if where == "wrapped":
        model = search(helpers.private(fitted, sensitivity=0.5))
    else:
        model = search(grid={"estimator": [fitted, Ridge(2.0)]}, epsilon=math.inf)
    with pytest.warns(PrivacyLeakWarning, match="holds a fitted Ridge"):
        model.fit(X, Y)
    if where == "candidate":
        assert not any(hasattr(each["estimator"], "coef_") for each in model.cv_results_["params"])
        assert not hasattr(model.best_params_["estimator"], "coef_")


@pytest.mark.slow
def test_fresh_pairs_are_covered():
    """Another seed fails once in 10^9; a quarter of the sensitivity is seen."""
    known = search(grid=FEWER, sensitivity=sampler(n_pairs=49)).fit(X, Y).choice_.sensitivity
    limit = stats.betabinom(60, 50 - known.order_statistic.k, known.order_statistic.k).isf(1e-9)
    fresh = search(grid=FEWER, sensitivity=sampler(n_pairs=60, random_state=1)).fit(X, Y)
    fresh = fresh.choice_.sensitivity.norms
    assert known.geometry.key == "sup"
    assert (fresh > known.value).sum() <= limit
    assert (fresh > known.value / 4).sum() > limit


@pytest.mark.slow
def test_both_releases_are_paid_for_and_each_counts_its_gamma():
    ledger = PrivacyAccountant(":memory:", epsilon=4.0, gamma=0.81)
    options = {"sensitivity": sampler(random_state=1, n_pairs=9), "accountant": ledger}
    model = search(ridge(sensitivity=sampler()), FEWER, **options).fit(X, Y)
    choice, fit = ledger.rows()
    assert (choice["epsilon"], fit["epsilon"]) == (0.5, 1.0)
    assert choice["label"].startswith("scores of 2 candidates")
    assert model.budget_ == ledger.total()
    promise = model.guarantee_
    assert (promise.epsilon, promise.delta, promise.gamma) == (1.5, 0.0, ledger.total().gamma)
    assert (model.choice_.guarantee.epsilon, model.plan_.guarantee.epsilon) == (0.5, 1.0)
    model.fit(X, Y)
    assert_allclose(ledger.total().gamma, 0.8)


def test_every_candidate_counts_in_gamma():
    fixed = ridge(sensitivity=sampler())
    alone = search(fixed, ONE).fit(X, Y)
    assert alone.sensitivity_.gamma == alone.plan_.guarantee.gamma == 0.2
    three = search(fixed).fit(X, Y)
    assert three.sensitivity_.gamma == 0.06666666666666665
    assert len(three.sensitivity_.norms) >= 3 * len(alone.sensitivity_.norms)
    assert three.guarantee_.gamma == 0.2  # the sensitivity of the scores is known
    sure = {"calibration": "conditional", "confidence": 0.9}
    three = search(ridge(sensitivity=sampler(**sure))).fit(X, Y)
    assert_allclose(three.sensitivity_.confidence, 1 - 0.1 / 3)
    assert_allclose(three.guarantee_.confidence, 0.9)
    assert_allclose(three.guarantee_.gamma, 0.2)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 4095])
@pytest.mark.parametrize("level", [0.03, 0.1, 1 / 3, 1e-9, 0.95])
def test_shares_of_gamma_and_confidence_are_added_up_again(n, level):
    gamma, confidence = of_all(*of_each(level, level, n), n)
    assert float(f"{level:.14g}") * (1 - 1e-14) <= gamma <= level
    assert level - 1e-15 < confidence <= level + n * 2**-52
    for level in (0.03, 0.1, 0.2, 0.15, 0.0125):
        assert of_all(*of_each(level, None, n), n) == (level, None)


def test_nothing_is_looked_at_that_cannot_be_finished():
    ledger = PrivacyAccountant(":memory:", epsilon=1.4)
    SEEN.clear()
    with pytest.raises(BudgetExceededError):
        search(ridge(accountant=ledger), scoring=noted_score).fit(X, Y)
    assert (SEEN, ledger.rows()) == ([], [])
    fitted = search(ridge(0.9, accountant=ledger), scoring=noted_score).fit(X, Y)
    assert ledger.total().epsilon == 1.4
    with pytest.raises(BudgetExceededError):  # the plan of the model pays where the search did
        fitted.plan_.execute(X, Y)


def nan_score(model, X, y):
    return np.nan if model.alpha == 1.0 else 0.0


def score_of_small_responses(model, X, y):
    """Score what the rehearsal has, with responses of at most 1.5, and not what is private."""
    return np.nan if y.max() > 1.6 else 0.0


@pytest.mark.slow
def test_a_candidate_without_a_score_fails():
    with pytest.raises(ValueError, match="not finite"):
        search(scoring=nan_score, sensitivity=sampler(n_pairs=9)).fit(X, Y)
    with pytest.raises(PrivateEvaluationError, match="not finite"):
        search(scoring=score_of_small_responses).fit(X, 2 * Y)


COMPOSED, HINGE = make_pipeline(StandardScaler(), ridge()), LinearSVC(loss="hinge")


def of(*estimators):
    return {"param_grid": {"estimator": [Ridge(), *estimators]}}


@pytest.mark.loop(
    ("change", "error", "word"),
    [
        ({"estimator": Ridge()}, TypeError, "PrivateEstimator"),
        ({"param_grid": {"mechanism__epsilon": [1.0]}}, ValueError, "no score depends"),
        ({"param_grid": []}, ValueError, "at least one"),
        ({"n_iter": 0}, ValueError, "'n_iter'"),
        ({"mechanism": LaplaceMechanism(1.0)}, TypeError, "choose"),
        ({"scoring": ["r2", "max_error"]}, TypeError, "one score"),
        ({"cv": TimeSeriesSplit()}, ValueError, "position"),
        ({"cv": KFold(2, shuffle=True)}, ValueError, "alike"),
        ({"cv": KFold(2).split(X)}, ValueError, "position"),
        ({"scoring": "nonsense"}, ValueError, "scoring"),
        ({"scoring": nan_score}, ValueError, "nan for candidate 1"),
        ({"scoring": lambda *_: {"r2": 1.0}}, ValueError, "number"),
        ({"scoring": lambda *_: 1 / 0}, ZeroDivisionError, "division"),
        ({"cv": 41}, ValueError, "n_splits=41"),
        ({"param_grid": {"estimator__alpha": [1.0, -1.0]}}, ValueError, "-1.0"),
        (of(FrozenEstimator(Ridge())), ValueError, "FrozenEstimator"),
        (of(ridge()), TypeError, "another"),
        (of(COMPOSED), TypeError, "another"),
        (of(GridSearchCV(Ridge(), {}, cv=SHUFFLED)), ValueError, "alike"),
        ({"sensitivity": svm_bound(HINGE, 40, 2, solver_error=0.1)}, ValueError, "scores"),
        ({"random_state": 1.5}, TypeError, "random_state"),
        ({"accountant": "ledger.db"}, TypeError, "'accountant'"),
        ({"estimator__sensitivity": sampler(gamma=-1)}, ValueError, "Got -1"),
        ({"sensitivity": helpers.sampler(X)}, ValueError, "private"),
        (
            {"estimator__sensitivity": 1.0, "estimator__prior": PublicDataOracle(X, Y)},
            ValueError,
            "private",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused_before_it_is_paid_for(change, error, word):
    ledger = PrivacyAccountant(":memory:", epsilon=9.0)
    for estimator in (ridge(), ridge(sensitivity=sampler())):
        with pytest.raises(error, match=word), ledger.as_default():
            search(estimator).set_params(**change).fit(X, Y)
        assert ledger.rows() == []
    with pytest.raises(TypeError, match="takes no sample_weight"):
        search().fit(X, Y, np.ones(40))


def noisy(epsilon):
    """A model that is released with its noise: decoded, little would be left of it."""
    return ridge(epsilon, sensitivity=sampler())


@pytest.mark.slow
def test_a_public_search_knows_of_the_noise_and_costs_nothing():
    ledger = PrivacyAccountant(":memory:", epsilon=1.0)
    grid = {"estimator__alpha": [1e-3, 1e3]}
    with ledger.as_default():
        few, results = public_search(noisy(0.01), grid, 40, n_datasets=6, random_state=0)
        again, same = public_search(noisy(0.01), grid, 40, n_datasets=6, random_state=0)
        many, _ = public_search(noisy(math.inf), grid, 40, n_datasets=6, random_state=0)
    assert ledger.rows() == []
    assert few.estimator.alpha == again.estimator.alpha == 1e3  # the least noise
    assert_allclose(results["mean_test_score"], same["mean_test_score"])
    _, alone = public_search(noisy(0.01), grid, 40, n_datasets=1, random_state=0)
    assert list(alone["std_test_score"]) == [0, 0] != list(results["std_test_score"])
    assert results["params"] == [{"estimator__alpha": 1e-3}, {"estimator__alpha": 1e3}]
    assert many.sensitivity.random_state == 0  # that of the fit stays
    assert not hasattr(few, "estimator_")


def test_a_public_search_scores_on_the_records_that_it_is_given():
    model = helpers.private(Ridge(), X, Y, mechanism=LaplaceMechanism(math.inf))
    options = {"n_datasets": 3, "scoring": "neg_mean_squared_error", "random_state": 0}
    other = PublicDataOracle(X, np.full(40, 5.0))
    near, far = (
        public_search(model, FEWER, 40, test_oracle=each, **options)[1]["mean_test_score"]
        for each in (None, other)
    )
    assert (near > far + 10).all()


@pytest.mark.parametrize(
    ("estimator", "grid", "error", "match"),
    [
        (Ridge(), ALPHAS, TypeError, "must be a PrivateEstimator whose"),
        (ridge(), ALPHAS, TypeError, "a SensitivitySampler"),
        (noisy(1.0), {"sensitivity__gamma": [0.1]}, ValueError, "must not name the sensitivity"),
        (noisy(1.0), [], ValueError, "at least one candidate"),
    ],
)
def test_what_cannot_be_searched_in_public_is_refused(estimator, grid, error, match):
    with pytest.raises(error, match=match):
        public_search(estimator, grid, 40)
    for n_datasets in (0, 1.5, "a"):
        with pytest.raises((TypeError, ValueError), match="'n_datasets'"):
            public_search(noisy(1.0), ALPHAS, 40, n_datasets=n_datasets)
