"""Released predictions: what is read, what a student learns of it, and for which estimators."""

import pickle
import random
import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KernelDensity,
    KNeighborsClassifier,
    KNeighborsRegressor,
    LocalOutlierFactor,
)
from sklearn.neural_network import BernoulliRBM
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import all_estimators

import skdp
from skdp import LaplaceMechanism, PredictionTarget, PrivateEstimator, SensitivitySampler
from skdp.accounting import PrivacyAccountant
from skdp.audit import find_leaks
from skdp.core.schema import Form
from skdp.estimators.predictions import different_records
from skdp.estimators.scores import ClassScores, kind_of, likeliest

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of what is about to go
    pytest.mark.filterwarnings("ignore::UserWarning:sklearn"),  # of tiny data
    pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn"),  # of constant columns
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
FEW = PredictionTarget(n_anchors=100)


def private(estimator, oracle=None, *, epsilon=1.0, code="auto", n_pairs=5, **options):
    """A cheap private estimator: few pairs, of an oracle that suits it."""
    if oracle is None:
        measured = MEASURED if is_regressor(estimator) else UNLABELED
        oracle = LABELED if is_classifier(estimator) else measured
    sampler = SensitivitySampler(oracle, gamma=0.4, n_pairs=n_pairs, random_state=0)
    options = {"release": FEW, "sensitivity": sampler, "random_state": 0} | options
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
        (3, Scored(decision_function=np.log([[2.0, 1.0, 1.0]])), [[0, -0.5, -0.5]]),
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


# predictors that are released neither by parameters nor by predictions
REFUSED = dict.fromkeys(
    ("AffinityPropagation", "Birch", "BisectingKMeans", "MeanShift"), "Use KMeans"
)
REFUSED["ClassifierChain"] = "several outputs"
LOGISTIC, RIDGE = LogisticRegression(), Ridge()
GRID = {"C": [0.1, 1]}
INSIDE = {  # what a predictor needs to be made, and to be fitted quickly
    "OneVsOneClassifier OneVsRestClassifier FixedThresholdClassifier RFE RFECV "
    "SelfTrainingClassifier MultiOutputClassifier ClassifierChain": {"estimator": LOGISTIC},
    "OutputCodeClassifier": {"estimator": LOGISTIC, "code_size": 1, "random_state": 16},
    "TunedThresholdClassifierCV": {"estimator": LOGISTIC, "cv": 2, "thresholds": 9},
    "MultiOutputRegressor RegressorChain": {"estimator": RIDGE},
    "GridSearchCV HalvingGridSearchCV": {"estimator": LOGISTIC, "param_grid": GRID, "cv": 2},
    "HalvingRandomSearchCV": {
        **{"estimator": LOGISTIC, "param_distributions": GRID, "cv": 2, "min_resources": 40}
    },
    "RandomizedSearchCV": {"estimator": LOGISTIC, "param_distributions": GRID, "n_iter": 2},
    "StackingClassifier VotingClassifier": {"estimators": [("a", LOGISTIC)]},
    "StackingRegressor VotingRegressor": {"estimators": [("a", RIDGE)]},
    "Pipeline": {"steps": [("a", StandardScaler()), ("b", LOGISTIC)]},
    "CCA PLSCanonical": {"n_components": 1},
    "Lasso ElasticNet LassoLars MultiTaskLasso": {"alpha": 0.1},
    "GammaRegressor PoissonRegressor QuantileRegressor": {"alpha": 0.01},
    "RadiusNeighborsClassifier": {"radius": 5.0, "outlier_label": "most_frequent"},
    "RadiusNeighborsRegressor": {"radius": 5.0},
    "LocalOutlierFactor": {"novelty": True},
    "IsotonicRegression": {"out_of_bounds": "clip"},
    # a single tree of pure leaves is another one for another record
    "DecisionTreeClassifier ExtraTreeClassifier": {"min_samples_leaf": 9},
    "DecisionTreeRegressor ExtraTreeRegressor": {"min_samples_leaf": 5},
    "MLPClassifier MLPRegressor": {"solver": "lbfgs", "hidden_layer_sizes": 5},
    "TheilSenRegressor": {"max_subpopulation": 100},
}
INSIDE = {name: given for names, given in INSIDE.items() for name in names.split()}
CONSTANT = {"DummyClassifier", "DummyRegressor"}  # which have no correlation with anything
BY_CHANCE = {  # which another seed, or another order of the records, makes another model
    *("ExtraTreeClassifier", "ExtraTreeRegressor"),
    *("PassiveAggressiveClassifier", "Perceptron", "SGDClassifier"),
}
TWO = {"CCA", "PLSCanonical", "MultiOutputRegressor", "RegressorChain"}
TWO |= {f"MultiTask{name}" for name in ("Lasso", "LassoCV", "ElasticNet", "ElasticNetCV")}
POSITIVE = {"ComplementNB", "MultinomialNB", "CategoricalNB"}
LABELS_OF_TWO = {"MultiOutputClassifier", "ClassifierChain"}


def predictors():
    # imported for its effect
    from sklearn.experimental import enable_halving_search_cv  # noqa: F401

    return {name: kind for name, kind in all_estimators() if hasattr(kind, "predict")}


def oracle_and_records(name, estimator):
    """Public and private records that suit a predictor, and records held out."""
    columns = slice(0, 1) if name == "IsotonicRegression" else slice(None)
    public, private_records, test = (part[:, columns] for part in (PUBLIC, X, TEST))
    if name in POSITIVE:
        public, private_records, test = (
            np.clip(np.rint(2 * part + 4), 0, 8) for part in (public, private_records, test)
        )
    if is_classifier(estimator):
        if name in LABELS_OF_TWO:
            two = (public[:, :2] + public[:, 1:3] > 0).astype(int)
            return skdp.PublicDataOracle(public, two), (private_records, np.stack([Y, Y], 1)), test
        # a search of halves and NuSVC fit no data with a rare class
        return (
            skdp.RandomTaskOracle(public, classes=[0, 1], least_share=0.3),
            (private_records, Y),
            test,
        )
    if not is_regressor(estimator):
        return skdp.PublicDataOracle(public), (private_records,), test
    responses = [
        part @ np.ones(part.shape[1]) + np.sin(part[:, 0]) for part in (public, private_records)
    ]
    if name in ("GammaRegressor", "PoissonRegressor"):
        responses = [np.exp(each / 3) for each in responses]
    if name in TWO:
        responses = [np.stack([each, -(each**2)], 1) for each in responses]
    return skdp.PublicDataOracle(public, responses[0]), (private_records, responses[1]), test


@pytest.mark.slow
@pytest.mark.parametrize("name", predictors())
def test_every_predictor_is_released_or_says_why_not(name):
    kind = predictors()[name]
    estimator = kind(**INSIDE.get(name, {}))
    if "n_estimators" in estimator.get_params():
        estimator.set_params(n_estimators=10)
    if name in BY_CHANCE and "random_state" in estimator.get_params():
        estimator.set_params(random_state=0)
    if name in REFUSED:
        labeled = name == "ClassifierChain"
        oracle, data, _ = (
            oracle_and_records(name, estimator) if labeled else (UNLABELED, (X,), None)
        )
        with pytest.raises(ValueError, match=REFUSED[name]):
            private(estimator, oracle, release="auto").fit(*data)
        return
    oracle, data, test = oracle_and_records(name, estimator)
    is_taught = kind_of(estimator) in ("classifier", "regressor") and name not in LABELS_OF_TWO
    release = "predictions" if is_taught else "auto"  # parameters have tests of their own
    model = private(estimator, oracle, epsilon=1e6, code=None, release=release).fit(*data)
    assert len(model.predict(test)) == len(test)
    if is_taught:
        assert type(model.estimator_) is type(estimator)
        least = 0.6 if name in BY_CHANCE else 0.9
        assert name in CONSTANT or agreement(estimator, model, data, test) > least


OTHERS = [
    (
        "lightgbm",
        "LGBMRegressor",
        {"n_estimators": 30, "min_child_samples": 5, "verbosity": -1, "n_jobs": 1},
    ),
    ("xgboost", "XGBClassifier", {"n_estimators": 10, "n_jobs": 1}),
    ("catboost", "CatBoostClassifier", {"iterations": 10, "verbose": 0, "thread_count": 1}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name", "parameters"), OTHERS)
def test_estimators_of_other_packages(module, name, parameters, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    package = pytest.importorskip(module, reason="not in each environment")
    estimator = getattr(package, name)(**parameters)
    data = records(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of their own, such as of names of columns
        model = private(estimator, epsilon=1e6, code=None, release="auto").fit(*data)
        assert type(model.estimator_) is type(estimator)
        assert not list(tmp_path.iterdir())
        assert agreement(estimator, model, data) > 0.9


class Stranger(LogisticRegression):
    """A class that the catalog does not know."""


@pytest.mark.parametrize(
    ("estimator", "described"),
    [
        (LOGISTIC, "coef_, intercept_ of"),
        (make_pipeline(StandardScaler(), LOGISTIC), "standardscaler__mean_"),
        (DecisionTreeClassifier(), "leaf values of"),
        (DecisionTreeRegressor(), "predictions of"),
        (DecisionTreeClassifier(class_weight="balanced"), "predictions of"),
        (Stranger(), "predictions of"),
    ],
)
def test_auto_takes_parameters_or_leaves_before_predictions(estimator, described):
    oracle, data, _ = oracle_and_records("", estimator)
    plan = private(estimator, oracle, release="auto", code=None).plan(len(X), like=data)
    assert plan.target.description.startswith(described)


@pytest.mark.parametrize(
    ("estimator", "options", "error", "word"),
    [
        (KNeighborsClassifier(), {"sensitivity": 0.1, "classes": [0, 1]}, ValueError, "anchors="),
        (SVR(), {"sensitivity": 0.1, "prior": MEASURED, "release": "auto"}, ValueError, "linear"),
        (SVR(), {"sensitivity": 0.1, "release": PredictionTarget(anchors=X)}, ValueError, "prior"),
        (LOGISTIC, {"sensitivity": "known", "classes": [0, 1]}, ValueError, "proved for param"),
        (StandardScaler(), {}, ValueError, "no transform"),
        (make_pipeline(StandardScaler(), BernoulliRBM()), {}, ValueError, "no transform"),
        (KMeans(), {}, ValueError, "no clusters"),
        (MultiOutputClassifier(SVC()), {}, ValueError, "several outputs"),
        (SVC(), {"release": PredictionTarget(n_anchors=0)}, ValueError, "n_anchors"),
        (SVC(), {"release": PredictionTarget(student=SVR())}, TypeError, "like the estimator"),
        (SVC(), {"release": PredictionTarget(student=SVC)}, TypeError, "unfitted"),
        (SVC(), {"release": PredictionTarget(anchors=PUBLIC[:, :2])}, ValueError, "form of the"),
        (SVC(), {"release": "prediction"}, ValueError, "'predictions'"),
    ],
)
def test_what_has_no_predictions_is_refused_before_it_is_paid_for(estimator, options, error, word):
    name = type(estimator).__name__
    name = name if name in LABELS_OF_TWO else ""
    oracle, data, _ = oracle_and_records(name, estimator)
    accountant = PrivacyAccountant(":memory:", epsilon=1.0, delta=0.0)
    model = private(estimator, oracle, accountant=accountant, **options)
    with pytest.raises(error, match=word):
        model.fit(*data)
    assert accountant.total().epsilon == 0


def test_anchors_and_student_do_not_depend_on_private_records():
    """Nor does a class that private labels lack change anything before the budget has paid."""
    model = private(KNeighborsClassifier(), code=None)
    plans = [model.plan(len(X), like=like) for like in ((X, Y), (-X, np.zeros_like(Y)))]
    anchors = [plan.target.anchors for plan in plans]
    np.testing.assert_array_equal(*anchors)
    assert plans[0].sensitivity.value == plans[1].sensitivity.value
    released = plans[1].execute(X, np.zeros_like(Y), random_state=0).value
    np.testing.assert_array_equal(released.classes_, [0, 1])
    drawn = model.sensitivity.public_dataset(4 * len(anchors[0]))  # of another stream
    assert not np.array_equal(drawn.X[:50], anchors[0][:50])


def test_the_student_follows_from_released_numbers_alone():
    plan = private(SVC(), code=None).plan(len(X))
    value = np.linspace(-1.2, 1.2, 100)
    copied = pickle.loads(pickle.dumps(plan))
    first, again = (each.target.restore(value) for each in (plan, copied))
    assert first.get_params() == SVC().get_params()
    np.testing.assert_array_equal(first.decision_function(TEST), again.decision_function(TEST))
    high = plan.target.anchors[value > 0.5]
    assert first.predict(high).mean() > plan.target.restore(-value).predict(high).mean()


class Drawn(Memory):
    """It draws as many numbers from the global generators as it sees labels of one."""

    def fit(self, X, y):
        draws = range(1 + np.sum(y))
        self.chance_ = [random.random() + np.random.random() for _ in draws]  # noqa: NPY002  # the global one
        return super().fit(X, y)

    def predict(self, X):
        return (super().predict(X) + round(self.chance_[-1])) % 2


def test_what_a_private_fit_draws_does_not_show_in_the_student():
    target = private(Drawn(), code=None).plan(len(X)).target
    values, students, after = [], [], []
    for _ in range(2):
        random.seed(len(after))
        values.append(target(X, Y, seed=1))
        students.append(target.restore(values[-1]).chance_)
        after.append(random.random())
    np.testing.assert_array_equal(*values)
    assert students[0] == students[1]
    random.seed(0)
    assert after[0] == random.random() != after[1]


def test_a_student_of_another_class_learns_the_same_scores():
    release = PredictionTarget(student=LOGISTIC, n_anchors=100)
    model = private(KNeighborsClassifier(15), release=release, epsilon=1e6, code=None).fit(X, Y)
    assert type(model.estimator_) is LogisticRegression
    assert "taught to LogisticRegression" in model.plan_.target.description
    assert len(model.standard_errors_) == 100
    assert agreement(KNeighborsClassifier(15), model, (X, Y)) > 0.9


def test_a_table_of_anchors_serves_a_bound():
    """A vote moves by at most 2 at each anchor: such a bound is the caller's own."""
    anchors = PUBLIC.copy()
    release = PredictionTarget(anchors=anchors)
    options = {"sensitivity": 2.0 * len(anchors), "classes": [0, 1], "release": release}
    model = private(Memory(), epsilon=1e9, **options).fit(X, Y)
    np.testing.assert_array_equal(model.plan_.target.anchors, anchors)
    assert model.guarantee_.gamma == 0
    assert np.mean(model.predict(anchors) == Memory().fit(X, Y).predict(anchors)) > 0.95


def test_private_records_as_anchors_warn():
    model = private(SVC(), release=PredictionTarget(anchors=X))
    with pytest.warns(skdp.PrivacyLeakWarning, match="part of the private records"):
        model.fit(X, Y)


def test_an_estimate_serves_the_same_anchors_and_student_only():
    model = private(SVC(), code=None).fit(X, Y)
    options = {"prior": LABELED, "sensitivity": model.sensitivity_, "code": None}
    again = private(SVC(), **options).fit(X, Y)
    np.testing.assert_array_equal(again.plan_.target.anchors, model.plan_.target.anchors)
    for release in (
        PredictionTarget(n_anchors=50),
        PredictionTarget(student=LOGISTIC, n_anchors=100),
    ):
        with pytest.raises(ValueError, match="another target"):
            private(SVC(), release=release, **options).fit(X, Y)


def test_outputs_of_a_regressor_are_columns():
    oracle, data, test = oracle_and_records("MultiOutputRegressor", SVR())
    options = {"epsilon": 1e6, "code": None, "release": "predictions"}
    model = private(KNeighborsRegressor(), oracle, **options).fit(*data)
    assert model.standard_errors_.shape == (400, 2)
    exact = KNeighborsRegressor().fit(*data).predict(test)
    both = np.corrcoef(model.predict(test).T, exact.T)
    assert both[[0, 1], [2, 3]].min() > 0.9


def test_three_classes():
    oracle = skdp.RandomTaskOracle(PUBLIC, classes=["a", "b", "c"], least_share=0.2)
    y = np.array(["a", "b", "c"])[np.digitize(RESPONSE, [-1, 1])]
    for estimator in (GaussianNB(), KNeighborsClassifier(15)):
        options = {"epsilon": 1e6, "code": None, "release": "predictions"}
        model = private(estimator, oracle, **options).fit(X, y)
        assert model.classes_.tolist() == ["a", "b", "c"]
        assert agreement(estimator, model, (X, y)) > 0.8  # by the seed .84 to .90


def test_weights_of_records_reach_the_estimator():
    def oracle(n_samples, rng):
        return *LABELED(n_samples, rng), rng.uniform(size=n_samples)

    weights = np.where(Y == 1, 1.0, 1e-3)
    model = private(SVC(), oracle, classes=[0, 1], code=None).fit(X, Y, weights)
    exact = model.plan_.target(X, Y, weights, seed=0)
    assert "weighted" in model.plan_.target.description
    assert exact.mean() > model.plan_.target(X, Y, np.ones(len(X)), seed=0).mean()


def test_a_search_is_inside_the_target():
    """The student searches again, on anchors: what the private search chose is not kept."""
    search = GridSearchCV(GaussianNB(), {"var_smoothing": [1e-9, 0.1]}, cv=2, n_jobs=2)
    model = private(search, code=None).fit(X, Y)
    assert model.best_params_ in model.estimator_.cv_results_["params"]
    assert model.estimator_.n_jobs == 1
    assert "var_smoothing" in model.plan_.target.description


def test_few_records_are_copied_and_moved():
    reason = "needs the 'dataframe' extra"
    pandas, polars = (pytest.importorskip(n, reason=reason) for n in ("pandas", "polars"))
    X = np.array([[0.0, 1, 5], [2.5, 3, 5], [2.5, 3, 5], [np.nan, 2, 5]])
    moved = different_records(X, 100, least=100)
    np.testing.assert_array_equal(moved[:3], X[[0, 1, 3]])
    assert len(np.unique(moved[:, 0])) > 30
    assert (np.nanmin(moved[:, 0]), np.nanmax(moved[:, 0])) == (0, 2.5)
    assert set(moved[:, 1]) == {1, 2, 3}
    assert set(moved[:, 2]) == {5}
    np.testing.assert_array_equal(different_records(X, 2, least=2), X[:2])
    assert len(different_records(X, 3, least=2)) == 3
    texts = np.array(["a", "b", "a"], dtype=object)
    assert different_records(texts, 5, least=5).tolist() == ["a", "b"]
    for library in (pandas, polars):
        frame = library.DataFrame({"a": X[:, 1], "b": ["x", "y", "y", "z"], "c": [1, 2, 2, 3]})
        found = Form.of(frame).convert(different_records(frame, 20, least=20))
        assert list(found.dtypes) == list(frame.dtypes)
        assert len(found) == 20
        assert list(found["b"][:4]) == ["x", "y", "z", "x"]
        assert set(found["c"]) == {1, 2, 3}


def test_texts_are_read_by_a_pipeline():
    """The vocabulary of the student is that of the public anchors."""

    def texts(labels, rng):
        words = np.where(labels[:, None] == 1, "good", "bad")
        noise = rng.choice(["plot", "actor", "scene"], size=(len(labels), 3))
        return np.array([" ".join(row) for row in np.hstack([words, noise])], dtype=object)

    def oracle(n_samples, rng):
        labels = np.append([0, 0, 1, 1], rng.integers(2, size=n_samples - 4))
        labels = rng.permutation(labels)
        return texts(labels, rng), labels

    X_text = texts(Y, np.random.default_rng(0))
    X_text[0] += " patient4711"
    reads = make_pipeline(CountVectorizer(), LOGISTIC)
    model = private(reads, oracle, epsilon=1e6, code=None, classes=[0, 1], release="auto")
    model.fit(X_text, Y)
    assert "patient4711" not in model.estimator_[0].vocabulary_
    assert model.score(X_text, Y) > 0.9


def areas(plan, n_releases=5):
    released = [plan.execute(X, Y, random_state=i).value for i in range(n_releases)]
    return np.mean([roc_auc_score(_Y[_ORDER][427:], m.predict_proba(TEST)[:, 1]) for m in released])


def test_a_code_reads_along_axes_with_the_mean_beside():
    """Decoded scores have the released mean, and rank as the exact model does."""
    neighbors = KNeighborsClassifier(15)
    model = private(neighbors, epsilon=2.0, n_pairs=9)
    plan = model.plan(len(X), like=(X, Y))
    code, target = plan.mechanism.geometry.code, plan.target
    assert plan.sensitivity.strata == "labels"
    assert plan.n_evaluations == 5 * 9 + 2 * 9
    assert target.axes.shape[1] == len(PUBLIC)  # all that the oracle has
    value = target(X, Y, seed=0)
    assert value.shape == (101,)
    assert value[-1] == pytest.approx(2 * Y.mean() - 1)
    moved = Y.copy()
    moved[0] = 1 - moved[0]
    assert abs(target(X, moved, seed=0)[-1] - value[-1]) == pytest.approx(2 / len(X))
    # the mean is read by one number alone, and moves the scores at all points alike
    assert (code.encoder[-1, :-1] == 0).all()
    np.testing.assert_allclose(code.covariance[:-1, -1], code.covariance[-1, -1])
    decoded = target.with_noise(plan.mechanism, 1.0, None)
    told = []
    for mean in (-0.2, 0.2):
        scores = decoded._at_rows(0.3 * value[:-1, None], np.array([mean]))
        assert scores.mean() == pytest.approx(mean, abs=1e-6)
        told.append(scores[:, 0])
    np.testing.assert_array_equal(np.argsort(told[0]), np.argsort(told[1]))
    assert areas(plan) > 0.9


def test_a_code_and_an_estimate_serve_again():
    model = private(KNeighborsClassifier(15), n_pairs=9)
    plan = model.plan(len(X), like=(X, Y))
    again = clone(model).set_params(mechanism=plan.mechanism).plan(len(X), like=(X, Y))
    assert again.sensitivity == plan.sensitivity
    estimated = clone(model).set_params(sensitivity=plan.sensitivity, prior=LABELED)
    estimated = estimated.set_params(mechanism=LaplaceMechanism(2.0)).plan(len(X), like=(X, Y))
    assert estimated.mechanism.geometry.code == plan.mechanism.geometry.code
    assert estimated.target.axes is not None
    plain = private(KNeighborsClassifier(15), code=None).plan(len(X), like=(X, Y))
    assert plain.sensitivity.shape == (100,)


def test_an_estimate_without_a_code_serves_again():
    """With a large epsilon all numbers are released, also the mean beside the scores."""
    model = private(KNeighborsClassifier(15), epsilon=50.0, n_pairs=9)
    plan = model.plan(len(X), like=(X, Y))
    assert plan.mechanism.geometry.code is None
    assert plan.sensitivity.shape == (101,)
    again = clone(model).set_params(sensitivity=plan.sensitivity, prior=LABELED)
    again = again.plan(len(X), like=(X, Y))
    released = [each.execute(X, Y, random_state=0).numbers for each in (plan, again)]
    np.testing.assert_array_equal(*released)


def test_a_mean_beside_does_not_stand_for_scores_that_hardly_change():
    """Few records are next to an anchor: noise of the mean's size would show their labels."""
    distinct = np.random.default_rng(0).normal(size=(10_000, X.shape[1]))
    oracle = skdp.RandomTaskOracle(distinct, classes=[0, 1], least_share=0.2)
    for size in (9, 29):  # of a code there is none, or one
        model = private(KNeighborsClassifier(1), oracle, n_pairs=size)
        model.set_params(release=PredictionTarget(n_anchors=20))
        with pytest.raises(ValueError, match="sensitivity"):
            model.plan(2000, like=(X, Y))


def test_the_mean_is_read_where_few_pilots_change_a_score():
    public = np.random.default_rng(0).normal(size=(150, 2))
    oracle = skdp.RandomTaskOracle(public, classes=[0, 1, 2], least_share=0.1)
    model = private(KNeighborsClassifier(1), oracle, release=PredictionTarget(n_anchors=30))
    model.set_params(sensitivity__gamma=0.1, sensitivity__n_pairs=9)
    code = model.plan(40).mechanism.geometry.code
    assert (np.diag(code.encoder[-3:, -3:]) > 0).all()


@pytest.mark.parametrize(
    "mechanism", [skdp.L2LaplaceMechanism(1.0), skdp.GaussianMechanism(1.0, delta=1e-5)]
)
def test_classes_and_responses_have_axes_too(mechanism):
    three = skdp.RandomTaskOracle(PUBLIC, classes=[0, 1, 2], least_share=0.2)
    y = np.arange(len(X)) % 3
    for estimator, oracle, labels in (
        (KNeighborsClassifier(15), three, y),
        (KNeighborsRegressor(15), MEASURED, RESPONSE),
    ):
        model = private(estimator, oracle, n_pairs=9).set_params(mechanism=mechanism)
        model.fit(X, labels)
        code = model.plan_.mechanism.geometry.code
        width = 3 if is_classifier(estimator) else 1
        assert width < code.n_released <= (mechanism.most_values or 100)
        assert np.isfinite(model.standard_errors_).all()
        assert len(model.predict(TEST)) == len(TEST)
