"""Hyper-parameters are chosen by a random number of private runs, and paid for."""

import math
import random
import re
import sys
import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse, stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import (
    LinearDiscriminantAnalysis,
    QuadraticDiscriminantAnalysis,
)
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    BudgetExceededError,
    ClipBox,
    KnownSensitivity,
    LaplaceMechanism,
    PredictionTarget,
    PrivacyGuarantee,
    PrivacyLeakWarning,
    PrivateEvaluationError,
    PrivateSearchCV,
    PublicDataOracle,
    UniformOracle,
    load,
    public_search,
)
from skdp.accounting import PrivacyAccountant
from skdp.audit import audit_epsilon
from skdp.core.exact import exact
from skdp.plan import of_all, of_each
from skdp.search import private
from skdp.search.candidates import SumOfScores, accuracy, closeness
from tests import helpers

RNG = np.random.default_rng(0)
X = RNG.uniform(size=(40, 2))
Y = X @ [1.0, -0.5] + RNG.normal(scale=0.2, size=40)
ORACLE = UniformOracle([(0, 1)] * 2, y_bounds=(-1, 2))
ALPHAS = {"estimator__alpha": [100.0, 1.0, 0.01]}
FEWER = {"estimator__alpha": [100.0, 1.0]}
HALF = KnownSensitivity(0.5, "l1", n_samples=20)


def sampler(**options):
    return helpers.sampler(ORACLE, **{"n_pairs": None} | options)


def ridge(epsilon=1.0, sensitivity=HALF, **options):
    noise = {"mechanism": LaplaceMechanism(epsilon, code=None), "random_state": None}
    return helpers.private(Ridge(), sensitivity=sensitivity, **noise | options)


def search(estimator=None, grid=ALPHAS, **options):
    return PrivateSearchCV(
        estimator or ridge(), grid, **{"n_runs": 4, "y_range": (-1, 2)} | options
    )


# The selection, and its price


def law(outcomes, n_runs):
    """The law of (score, model) of the best of K runs, from that of one run, as in the notes."""
    p, found = 1 / n_runs, {}
    for (score, model), q in outcomes.items():
        u = sum(each for (other, _), each in outcomes.items() if other > score)
        v = u + sum(each for (other, _), each in outcomes.items() if other == score)
        found[score, model] = p * q / ((p + (1 - p) * u) * (p + (1 - p) * v))
    return found


@pytest.mark.parametrize("n_runs", [1, 2, 5])
def test_the_best_run_has_the_law_of_the_proof(n_runs):
    """Each frequency is within limits that fail once in 10^9; some scores are equal."""
    rng, n = np.random.default_rng(n_runs), 2000
    outcomes = {(0.0, "a"): 0.3, (1.0, "a"): 0.2, (1.0, "b"): 0.1, (2.0, "b"): 0.4}
    names, weights = list(outcomes), list(outcomes.values())
    calls = []

    def run(index):
        calls.append(index)
        return names[rng.choice(4, p=weights)]

    found = [private.best_of_random_runs(run, 3, n_runs, rng) for _ in range(n)]
    expected = law(outcomes, n_runs)
    assert_allclose(sum(expected.values()), 1)
    for name, probability in expected.items():
        low, high = stats.binom(n, probability).ppf([1e-9, 1 - 1e-9])
        assert low <= found.count(name) <= high
    runs = stats.nbinom(n, 1 / n_runs) if n_runs > 1 else stats.binom(1, 0)
    assert runs.ppf(1e-9) <= len(calls) - n <= runs.isf(1e-9)
    for index in range(3):
        low, high = stats.binom(len(calls), 1 / 3).ppf([1e-9, 1 - 1e-9])
        assert low <= calls.count(index) <= high


def test_three_epsilons_are_enough_and_no_less():
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(500):
        one = rng.dirichlet(np.full(4, 0.3)) + 1e-9
        both = np.array([one, one * np.exp([0.5, -0.5, 0.5, -0.5] * rng.choice([-1, 1], 4))])
        laws = [
            {(score, ""): q for score, q in enumerate(each)}
            for each in both / both.sum(axis=1, keepdims=True)
        ]
        ratios = [
            max(abs(math.log(one[k] / other[k])) for k in one)
            for one, other in (laws, [law(each, 50) for each in laws])
        ]
        if ratios[0] > 0.1:
            worst = max(worst, ratios[1] / ratios[0])
    assert 2 < worst <= 3


def test_an_attack_finds_no_more_than_the_price():
    """One run tells the record by a coin, and scores the side that shows it as the better one."""
    epsilon = 1.0

    def searches(record, n, rng):
        def run(index):
            true = rng.random() < 1 / (1 + math.exp(-epsilon))
            shown = record if true else 1 - record
            return (float(shown), shown)

        return np.array([private.best_of_random_runs(run, 2, 5, rng)[1] for _ in range(n)])

    sizes = {"n_search": 500, "n_final": 4000, "alpha": 1e-4, "rng": 0}
    found = audit_epsilon(searches, [(0, 1)], claimed_epsilon=3 * epsilon, **sizes)
    assert not found.violated
    assert found.lower_bound > 1.3 * epsilon  # more than a run


@pytest.mark.parametrize(
    ("fits", "n_runs", "expected"),
    [
        ([{}], 5, (0.3, 0.0, 0.0)),
        ([{"epsilon": 0.7}, {"epsilon": 0.2}], 5, (2.1, 0.0, 0.0)),
        ([{"delta": 1e-6}, {}], 30, (0.3, 3e-5, 0.0)),
        ([{"gamma": 0.05}] * 4, 1, (0.3, 0.0, 0.2)),
    ],
)
def test_the_price_is_rounded_up(fits, n_runs, expected):
    paid = private.price([PrivacyGuarantee(**{"epsilon": 0.1} | each) for each in fits], n_runs)
    assert (paid.epsilon, paid.delta, paid.gamma) == expected
    third = private.price([PrivacyGuarantee(1 / 3)], n_runs)
    assert exact(third.epsilon) >= 3 * exact(1 / 3)
    sure = private.price([PrivacyGuarantee(1.0, gamma=0.05, confidence=0.98)] * 3, n_runs)
    assert 0 <= 0.94 - sure.confidence < 1e-12


@pytest.mark.parametrize("n", [1, 2, 3, 7, 10, 4095])
@pytest.mark.parametrize("level", [0.03, 0.1, 1 / 3, 1e-9, 0.95])
def test_shares_of_gamma_and_confidence_are_added_up_again(n, level):
    gamma, confidence = of_all(*of_each(level, level, n), n)
    assert float(f"{level:.14g}") * (1 - 1e-14) <= gamma <= level
    assert level - 1e-15 < confidence <= level + n * 2**-52
    for level in (0.03, 0.1, 0.2, 0.15, 0.0125):
        assert of_all(*of_each(level, None, n), n) == (level, None)


# Scores


class Says(RegressorMixin, BaseEstimator):
    """Predicts the first column, which it cannot read where it is 9."""

    def predict(self, X):
        if (np.asarray(X) == 9).any():
            raise ValueError("nine")
        return np.asarray(X)[:, 0]


def total(scoring, X, y=None):
    dataset = (X,) if y is None else (X, y)
    return float(SumOfScores(Says(), scoring)(*dataset, seed=0))


def test_one_record_changes_the_sum_of_the_scores_by_one_at_most():
    records, y = np.arange(4.0)[:, None], np.arange(4)
    assert total(accuracy, records, y) == 4
    for other in (9, np.nan, np.inf, -7):
        changed = records.copy()
        changed[2] = other
        assert total(accuracy, changed, y) == 3
    for score in (1e300, -1e300, np.nan, np.inf, "no", [1, 2], None):
        found = total(lambda model, X, y, score=score: score if y[0] == 2 else 0.5, records, y)
        assert 1.5 <= found <= 2.5
    assert total(lambda model, X, y: sys.exit() if y[0] == 2 else 0.5, records, y) == 1.5
    seen = []
    total(lambda model, X: seen.append(len(X)), records)
    assert seen == [1] * 4


class Remembers(Says):
    """Predicts by all that it has seen, and by generators of its own and of the process."""

    def __init__(self):
        self.rng, self.seen = np.random.RandomState(0), []

    def predict(self, X):
        self.seen.append(float(X[0, 0]))
        if X[0, 0] > 0:  # as where a value is missing
            self.rng.rand(), random.random(), np.random.rand()  # noqa: NPY002
        drawn = self.rng.rand() + random.random() + np.random.rand()  # noqa: NPY002
        return np.array([(sum(self.seen) + drawn) % 1])


class CountedScore:
    n_calls = 0

    def __call__(self, model, X, y):
        self.n_calls += 1
        return (model.predict(X)[0] + self.n_calls) / 9


@pytest.mark.parametrize("scoring", [CountedScore(), partial(closeness, low=0, high=1)])
def test_a_record_changes_no_score_of_another(scoring):
    """A model that imputes by draws moved the sum of 500 scores by 10."""
    records, y = np.r_[np.zeros((20, 1)), np.ones((20, 1))], np.zeros(40)
    model = Remembers()

    def score(*places):
        return float(SumOfScores(model, scoring)(records[[*places]], y[[*places]], seed=3))

    each = [score(place) for place in (0, 39)]
    assert each[0] != each[1]
    assert_allclose(score(*range(40)), 20 * sum(each))
    assert model.seen == []


def rounded(X):
    return np.floor(np.abs(X) * 9)


AT_ONCE = [
    (make_pipeline(StandardScaler(), LogisticRegression()), lambda X: X),
    (make_pipeline(ClipBox(-1, 1), LinearDiscriminantAnalysis()), lambda X: X),
    (make_pipeline(FrozenEstimator(PCA(2).fit(X)), GaussianNB()), lambda X: X),
    (QuadraticDiscriminantAnalysis(), lambda X: X),
    (MultinomialNB(), rounded),
    (MultinomialNB(), lambda X: sparse.csr_array(rounded(X))),
    (RandomForestClassifier(9, max_depth=3, random_state=0), lambda X: X),
    (LinearSVC(), lambda X: pd.DataFrame(X, columns=["a", "b"]).astype({"b": "float32"})),
]


@pytest.mark.parametrize(("model", "brought"), AT_ONCE)
def test_records_are_scored_at_once_as_one_by_one(model, brought, monkeypatch):
    rng = np.random.default_rng(0)
    records = rng.normal(size=(80, 2))
    y = (records.sum(axis=1) + rng.normal(size=80) > 0).astype(int)
    model = clone(model).fit(brought(records), y)
    lacking = records.copy()
    lacking[::9, 0] = np.nan  # which some of the models refuse, and count as 0
    calls, predict = [], type(model).predict
    monkeypatch.setattr(type(model), "predict", lambda *args: calls.append(1) or predict(*args))
    for given in (brought(records), brought(lacking)):
        alone = SumOfScores(model, lambda *args: accuracy(*args))(given, y, seed=0)
        assert 30 < alone < 80
        assert len(calls) == 80
        calls.clear()
        assert SumOfScores(model, accuracy)(given, y, seed=0) == alone
        assert len(calls) < 80
        calls.clear()


def test_what_has_no_score_of_its_own_needs_one():
    with pytest.raises(ValueError, match="'scoring'"):
        private.as_scoring(None, (0, 1), KernelDensity())


def test_a_regressor_is_scored_by_its_error_in_the_range():
    scoring = private.as_scoring(None, (0, 10), Ridge())
    assert total(scoring, np.array([[1.0], [99.0]]), np.array([3.0, 10.0])) == 0.8 + 1
    assert total(scoring, np.array([[1.0]]), np.array([np.nan])) == 0


# The search


def test_without_noise_it_finds_the_best_candidate_of_the_half():
    model = search(ridge(math.inf), n_runs=60).fit(X, Y)
    fitted, scored = private.halves(private.Dataset(X, Y))
    exact = [Ridge(alpha).fit(*fitted.parts) for alpha in ALPHAS["estimator__alpha"]]
    errors = [np.abs(each.predict(scored.X) - scored.y).mean() for each in exact]
    assert model.best_index_ == np.argmin(errors)
    assert_allclose(model.best_estimator_.coef_, exact[model.best_index_].coef_)
    assert_allclose(model.best_score_, 1 - min(errors) / 3)
    assert model.guarantee_.epsilon == math.inf


@pytest.mark.parametrize("n", [2, 3, 40, 5000])
def test_the_halves_depend_on_the_number_of_records_alone(n):
    records = np.arange(n)[:, None]
    fitted, scored = (part.X for part in private.halves(private.Dataset(records)))
    assert len(scored) == min(n // 2, 2000)
    assert_allclose(np.sort(np.concatenate([fitted, scored]), axis=0), records)
    other = private.halves(private.Dataset(-records))
    assert_allclose(other[0].X, -fitted)


def test_it_looks_like_a_grid_search():
    model = clone(search()).set_params(estimator__mechanism__epsilon=2.0)
    assert not hasattr(model, "best_estimator_")
    model.fit(X, Y)
    assert model.cv_results_ == {"params": [{"estimator__alpha": a} for a in (100.0, 1.0, 0.01)]}
    assert model.cv_results_["params"][model.best_index_] == model.best_params_
    assert model.best_estimator_.alpha == model.best_params_["estimator__alpha"]
    assert clone(model).get_params(deep=False)["param_grid"] == ALPHAS
    assert_allclose(model.predict(X), model.best_estimator_.predict(X))
    assert model.score(X, Y) == model.best_estimator_.score(X, Y)
    assert not hasattr(model, "predict_proba")
    first, second, third = (
        search(ridge(random_state=seed)).fit(X, Y).best_estimator_.coef_ for seed in (0, 0, 1)
    )
    assert_allclose(first, second)
    assert not np.allclose(first, third)


def test_what_it_hands_on_promises_the_search(tmp_path):
    with pytest.raises(NotFittedError):
        search().save(tmp_path)
    model = search(ridge(0.5)).fit(X, Y)
    model.save(tmp_path)
    loaded = load(tmp_path)
    assert loaded.guarantee == model.guarantee_
    assert (loaded.guarantee.epsilon, loaded.guarantee.n_samples) == (1.5, 40)
    for each in (loaded, model):
        assert each.predict_interval(X, 0.5, n_draws=9).shape == (40, 2)
    card = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert str(model.guarantee_) in card
    assert re.sub(r"\s", "", str(model.best_params_)) in re.sub(r"\s", "", card)
    assert str(model.summary()).startswith(str(model.guarantee_))
    assert model.guarantee_.short.partition(", ")[2] in model._repr_html_()
    assert not hasattr(model, "predict_stability")


@pytest.mark.slow
def test_a_classifier_and_other_estimators_in_its_place():
    X, y = make_classification(n_samples=120, n_features=4, random_state=0)
    words = np.array(["no", "yes"])[y]
    given = helpers.sampler(X[:60], words[:60], gamma=0.4, n_pairs=9)
    model = search(
        helpers.private(RidgeClassifier(), sensitivity=given),
        {"estimator": [RidgeClassifier(9.0), GaussianNB()], "mechanism__epsilon": [0.5, 2.0]},
    ).fit(X[60:], words[60:])
    assert list(model.classes_) == ["no", "yes"]
    assert type(model.best_estimator_) is type(model.best_params_["estimator"])
    assert hasattr(model, "predict_proba") == (model.best_index_ > 1)
    assert model.guarantee_.epsilon == 6.0  # of the costliest candidate
    with pytest.raises(ValueError, match="label that is not public"):
        model.fit(X[60:], np.array(["no", "maybe"])[y[60:]])


SEEN = []


def noted_score(model, X, y):
    SEEN.append(float(model.predict(X)[0]))
    return SEEN[-1]


def test_no_score_and_no_other_run_is_kept(leak_search):
    SEEN.clear()
    model = search(scoring=noted_score, n_runs=9).fit(X, Y)
    assert leak_search(model, [*X.ravel(), *Y]) == []
    losers = set(SEEN[1:]) - set(model.predict(X))  # the first is public
    assert losers
    assert leak_search(model, sorted(losers)) == []
    model.forgotten_ = Y[3]
    assert {leak.where for leak in leak_search(model, Y)} == {"forgotten_", "pickle"}
    scorer = Locked()
    assert search(scoring=scorer).fit(X, Y).scoring is scorer
    assert scorer.seen == []


class Locked:
    """A scorer that remembers, and cannot be copied deeply."""

    def __init__(self):
        self.seen, self.lock = [], threading.Lock()

    def __call__(self, model, X, y):
        self.seen.append(float(model.predict(X)[0]))
        return self.seen[-1]


def test_all_runs_share_the_seed_of_the_fit():
    """The gamma is that of a pair and a seed, so that other seeds would be other pairs."""
    SEEN.clear()
    model = ridge(release=["coef_", "intercept_"], random_state=0)
    search(model, {"estimator": [Draws()]}, n_runs=30).fit(X, Y)
    assert len(SEEN) > 9
    assert len({*SEEN[-5:]}) == 1


class Draws(Ridge):
    """Notes the seed of each fit."""

    __skdp_key__ = "draws"

    def __init__(self, alpha=1.0, random_state=None):
        super().__init__(alpha)
        self.random_state = random_state

    def fit(self, X, y):
        SEEN.append(self.random_state)
        return super().fit(X, y)


@pytest.mark.parametrize("where", ["wrapped", "candidate"])
def test_a_fitted_estimator_is_pointed_out_and_not_handed_on(where):
    fitted = Ridge().fit(X, Y)
    if where == "wrapped":
        model = search(helpers.private(fitted, sensitivity=HALF))
    else:
        model = search(ridge(math.inf), grid={"estimator": [fitted, Ridge(2.0)]})
    with pytest.warns(PrivacyLeakWarning, match="holds a fitted Ridge"):
        model.fit(X, Y)
    if where == "candidate":
        assert not any(hasattr(each["estimator"], "coef_") for each in model.cv_results_["params"])
        assert not hasattr(model.best_params_["estimator"], "coef_")


@pytest.mark.filterwarnings("error")  # so that nothing is fitted
def test_a_candidate_of_private_records_is_pointed_out():
    with pytest.raises(PrivacyLeakWarning, match="part of the private records"):
        search(grid={"estimator__alpha": [1.0, X[0]]}).fit(X, Y)


# The budget


@pytest.mark.slow
def test_a_search_is_one_release_and_counts_the_gamma_of_all_candidates():
    ledger = PrivacyAccountant(":memory:", epsilon=6.0, gamma=0.41)
    model = search(ridge(sensitivity=sampler(), accountant=ledger), FEWER).fit(X, Y)
    (row,) = ledger.rows()
    assert (row["epsilon"], row["gamma"]) == (3.0, 0.2)
    assert row["label"].startswith("search, coef_")
    assert model.budget_ == ledger.total()
    promise = model.guarantee_
    assert (promise.epsilon, promise.delta, promise.gamma) == (3.0, 0.0, 0.2)
    assert "of the 20 records of a fit" in promise.oracle
    model.fit(X, Y)
    assert_allclose(ledger.total().gamma, 0.4)


def test_every_candidate_counts_in_gamma():
    fixed = ridge(sensitivity=sampler())
    alone = search(fixed, {"estimator__alpha": [1.0]}).fit(X, Y)
    assert alone.sensitivity_.gamma == alone.guarantee_.gamma == 0.2
    three = search(fixed).fit(X, Y)
    assert three.sensitivity_.gamma == 0.06666666666666665
    assert len(three.sensitivity_.norms) >= 3 * len(alone.sensitivity_.norms)
    assert 0 <= 0.2 - three.guarantee_.gamma < 1e-15
    assert three.plan_.guarantee.gamma == 0.2
    sure = {"calibration": "conditional", "confidence": 0.9}
    three = search(ridge(sensitivity=sampler(**sure))).fit(X, Y)
    assert_allclose(three.sensitivity_.confidence, 1 - 0.1 / 3)
    assert_allclose(three.guarantee_.confidence, 0.9)
    assert_allclose(three.guarantee_.gamma, 0.2)


def test_nothing_is_looked_at_that_cannot_be_paid_for():
    ledger = PrivacyAccountant(":memory:", epsilon=2.9)
    SEEN.clear()
    with pytest.raises(BudgetExceededError):
        search(ridge(accountant=ledger), scoring=noted_score).fit(X, Y)
    assert (SEEN, ledger.rows()) == ([], [])
    fitted = search(ridge(0.9, accountant=ledger)).fit(X, Y)
    assert ledger.total().epsilon == 2.7
    with pytest.raises(BudgetExceededError):  # the plan of the model pays where the search did
        fitted.plan_.execute(*private.halves(private.Dataset(X, Y))[0].parts)


class FailsOnLarge(Ridge):
    """Fits the public records, with responses of at most 1.5, and not what is private."""

    __skdp_key__ = "fails-on-large"

    def fit(self, X, y):
        if np.max(y) > 2:
            raise ValueError(f"the largest is {np.max(y)}")
        return super().fit(X, y)


def test_a_fit_that_fails_ends_the_search_that_was_paid_for():
    ledger = PrivacyAccountant(":memory:", epsilon=3.0)
    model = ridge(accountant=ledger, release=["coef_", "intercept_"])
    with pytest.raises(PrivateEvaluationError, match="ValueError") as caught:
        search(model, {"estimator": [FailsOnLarge()]}).fit(X, 9 * Y)
    assert "largest" not in str(caught.value)
    assert caught.value.__context__ is None
    assert ledger.total().epsilon == 3.0


COMPOSED = make_pipeline(StandardScaler(), ridge())
SHUFFLED = KFold(2, shuffle=True)


def of(*estimators):
    return {"param_grid": {"estimator": [Ridge(), *estimators]}}


@pytest.mark.loop(
    ("change", "error", "word"),
    [
        ({"estimator": Ridge()}, TypeError, "PrivateEstimator"),
        ({"param_grid": {"sensitivity": [1.0]}}, ValueError, "not name the sensitivity"),
        ({"param_grid": {"random_state": [1, 2]}}, ValueError, "not name the random_state"),
        ({"param_grid": {"mechanism__epsilon": [-1.0]}}, ValueError, "'epsilon'"),
        ({"param_grid": []}, ValueError, "at least one"),
        ({"n_runs": 0}, ValueError, "'n_runs'"),
        ({"n_runs": 1.5}, TypeError, "'n_runs'"),
        ({"scoring": "roc_auc"}, ValueError, "area under a curve"),
        ({"scoring": lambda *_: [1.0, 2.0]}, ValueError, "size"),
        ({"scoring": lambda *_: 1 / 0}, ZeroDivisionError, "division"),
        ({"y_range": None}, ValueError, "'y_range'"),
        ({"y_range": (1, 1)}, ValueError, "'y_range'"),
        ({"y_range": (0, np.inf)}, ValueError, "'y_range'"),
        (of(FrozenEstimator(Ridge())), ValueError, "FrozenEstimator"),
        (of(ridge()), TypeError, "another"),
        (of(COMPOSED), TypeError, "another"),
        (of(GridSearchCV(Ridge(), {}, cv=SHUFFLED)), ValueError, "alike"),
        ({"estimator__random_state": 1.5}, TypeError, "random_state"),
        ({"estimator__accountant": "ledger.db"}, TypeError, "'accountant'"),
        ({"estimator__sensitivity": 0.5}, ValueError, "n_samples=20"),
        ({"estimator__sensitivity": KnownSensitivity(0.5, "l1", 40)}, ValueError, "40"),
        ({"estimator__sensitivity": sampler(gamma=-1)}, ValueError, "Got -1"),
        ({"estimator__sensitivity": helpers.sampler(X)}, ValueError, "private"),
        ({"estimator__prior": PublicDataOracle(X, Y)}, ValueError, "private|'prior'"),
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
    with pytest.raises(ValueError, match="Got 1"):
        search().fit(X[:1], Y[:1])


# In public


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


@pytest.mark.parametrize("name", ["classes", "prior"])
def test_candidates_share_labels_and_prior(name):
    """Else one of them would refuse a record that the others take."""
    with pytest.raises(ValueError, match=f"must not name the {name}"):
        PrivateSearchCV(noisy(1.0), {name: [None]}).fit(X, Y)


class Chatty(RidgeClassifier):
    """It says when it is fitted, as a student is in each run."""

    def fit(self, X, y, sample_weight=None):
        print("fitted")
        return super().fit(X, y, sample_weight)


def test_nobody_counts_the_runs_by_what_they_print(monkeypatch, capsys):
    said, runs = [], private.best_of_random_runs

    def listened(run, *others):
        def loud(index):
            capsys.readouterr()
            found = run(index)
            said.append(capsys.readouterr().out)
            return found

        return runs(loud, *others)

    monkeypatch.setattr(private, "best_of_random_runs", listened)
    table, labels = make_classification(300, 4, random_state=0)
    known = helpers.sampler(PublicDataOracle(table[:150], labels[:150]), gamma=0.3, n_pairs=None)
    options = {"mechanism": LaplaceMechanism(1.0, code=None), "random_state": None}
    taught = PredictionTarget(n_anchors=20)
    model = helpers.private(Chatty(), sensitivity=known, release=taught, **options)
    PrivateSearchCV(model, ALPHAS, n_runs=4).fit(table[150:], labels[150:])
    assert said
    assert not any(said)
