"""Estimators made of estimators: the four checks, and what must be the same in all fits."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import IncrementalPCA
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    RandomForestClassifier,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV, LogisticRegression, Ridge, RidgeCV, SGDRegressor
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, TimeSeriesSplit
from sklearn.multiclass import OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler
from skdp.core.dataset import Dataset
from skdp.estimators.configuration import without_side_effects
from skdp.estimators.inputs import order_matters, reorder
from skdp.estimators.members import classes_of_outputs, fitted_parts, split_name
from skdp.estimators.parameters import ParameterTarget
from skdp.planning.checks import check_release
from tests.estimator_cases import COMPOSED, LINES

pytestmark = pytest.mark.usefixtures("one_thread")

N_RECORDS = 60


def records(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_RECORDS, 3))
    return X, rng.normal(size=(N_RECORDS, 2))


def classes(seed, n_classes=3):
    X, noise = records(seed)
    return X, np.digitize(X[:, 0] + 0.5 * noise[:, 0], np.linspace(-1, 1, n_classes + 1)[1:-1])


def two_classes(seed):
    return classes(seed, 2)


def labels(seed):
    X, noise = records(seed)
    return X, (X[:, :2] + 0.5 * noise > 0).astype(int)


def response(seed):
    X, noise = records(seed)
    return X, 3 + X @ [1.0, -2.0, 0.5] + 0.1 * noise[:, 0]


logistic = LogisticRegression(C=0.1)


def private(estimator, public):
    oracle = PublicDataOracle(*public)
    sampler = SensitivitySampler(oracle, gamma=0.5, n_pairs=1, random_state=0)
    mechanism = LaplaceMechanism(1.0, code=None)
    return PrivateEstimator(estimator, mechanism=mechanism, sensitivity=sampler, random_state=0)


@pytest.mark.parametrize("generate", [classes, two_classes])
def test_isotonic_calibration_is_released_on_public_points(generate):
    """Its steps are at scores of records, so that between the points it is interpolated."""
    estimator = CalibratedClassifierCV(logistic, cv=2, method="isotonic")
    public, own = generate(1), generate(2)
    target = ParameterTarget(estimator, "auto", clone(estimator).fit(*public))
    vector = target(*own, seed=0)
    restored = target.restore(vector)
    fitted = clone(estimator).fit(*reorder(Dataset(*own), seed=0).parts)
    for released, exact, public_fit in zip(
        *(model.calibrated_classifiers_ for model in (restored, fitted, target.public_fit)),
        strict=True,
    ):
        for one, other, public_one in zip(
            *(pair.calibrators for pair in (released, exact, public_fit)), strict=True
        ):
            points = np.linspace(public_one.X_min_, public_one.X_max_, 21)
            np.testing.assert_allclose(one.predict(points), other.predict(points), atol=1e-9)
    for seed in range(5):
        noise = 2 * np.random.default_rng(seed).laplace(size=vector.shape)
        table = target.restore(vector + noise).predict_proba(own[0])
        assert table.min() >= 0
        np.testing.assert_allclose(table.sum(axis=1), 1)


# of each kind of members: named, numbered, and in pairs
FOR_LEAKS = {"Pipeline", "StackingRegressor", "CalibratedClassifierCV", "BaggingClassifier"}


@pytest.mark.parametrize("case", [case for case in COMPOSED if case.name in FOR_LEAKS])
def test_every_released_number_is_noised_and_no_secret_is_kept(case, leak_search):
    target, own = case.target()
    model = private(case.make(), case.datasets()[0]).fit(*own)
    exact = target(*own, seed=0)
    assert not np.isclose(target.flatten(model.estimator_), exact, rtol=1e-9, atol=0).any()
    floats = [part.ravel() for part in own if part.dtype.kind == "f"]
    secrets = np.concatenate([exact, *floats])
    assert leak_search(model, secrets) == []
    assert leak_search((case.make().fit(*own), own), secrets)


def test_names_are_readable():
    target, _ = next(case for case in COMPOSED if case.name == "CalibratedClassifierCV").target()
    names = ["estimator__coef_", "calibrators[0]__a_"]
    assert {f"calibrated_classifiers_[0].{name}" for name in names} <= set(target.names)


def test_a_step_named_like_another_with_an_underscore():
    union = FeatureUnion([("a", StandardScaler()), ("a_", StandardScaler())]).fit(records(0)[0])
    assert split_name(union, "a___mean_") == (("a_",), "mean_")
    assert split_name(union, "a__mean_") == (("a",), "mean_")


def test_frozen_and_stateless_members_release_nothing():
    X, y = response(0)
    frozen = FrozenEstimator(Ridge().fit(X, y))
    union = make_union(FunctionTransformer(), StandardScaler())
    model = make_pipeline(union, VotingRegressor([("frozen", frozen), ("ridge", Ridge())]))
    paths = [path for path, _, _ in fitted_parts(model.fit(X, y))]
    assert paths == [("featureunion", "standardscaler"), ("votingregressor", "ridge")]


def test_a_transformer_of_no_columns_releases_nothing():
    columns = make_column_transformer((StandardScaler(), [0, 1]), (OneHotEncoder(), []))
    model = private(make_pipeline(columns, Ridge()), response(1)).fit(*response(2))
    released = {name.rpartition("__")[0] for name in model.standard_errors_}
    assert released == {"columntransformer__standardscaler", "ridge"}
    assert np.isfinite(model.predict(response(3)[0])).all()


# the column is empty on purpose
@pytest.mark.filterwarnings("ignore:Skipping features without any observed values")
def test_a_column_without_values_is_pointed_out():
    X, y = response(0)
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"simpleimputer__statistics_ is not finite"):
        private(make_pipeline(SimpleImputer(), Ridge()), (X, y)).plan(40)


def test_out_of_bag_scores_of_the_public_fit_are_dropped():
    X, y = response(0)
    bag = BaggingRegressor(Ridge(), 20, oob_score=True, random_state=0)
    target = ParameterTarget(bag, "auto", bag.fit(X, y))
    released = target.restore(target(X, y, seed=0))
    assert hasattr(bag, "oob_score_")
    assert not {"oob_score_", "oob_prediction_"} & vars(released).keys()


def test_open_structural_seeds_are_closed():
    estimator = VotingClassifier([("bag", BaggingClassifier(logistic, max_features=2))])
    settled = without_side_effects(estimator)
    assert settled.get_params()["bag__random_state"] == 0
    assert estimator.get_params()["bag__random_state"] is None
    fixed = BaggingClassifier(logistic, random_state=5)
    assert without_side_effects(fixed).random_state == 5


def test_a_member_that_learned_nothing_is_pointed_out():
    X, y = classes(0)
    code = OutputCodeClassifier(LogisticRegression(), code_size=2, random_state=2)
    fitted = code.fit(X, y)
    assert (fitted.code_book_.std(axis=0) == 0).any()
    with pytest.raises(ValueError, match=r"saw only one class.*another random_state"):
        ParameterTarget(code, "auto", fitted)


@pytest.mark.loop(
    ("estimator", "message"),
    [
        (VotingClassifier([("forest", RandomForestClassifier())]), "RandomForestClassifier inside"),
        (BaggingClassifier(), "DecisionTree inside BaggingClassifier"),
        (make_pipeline(BaggingRegressor(), Ridge()), "DecisionTree inside Pipeline"),
        (
            StackingRegressor(LINES, cv=KFold(2, shuffle=True)),
            r"'cv' parameter of StackingRegressor must split alike.*random_state an integer",
        ),
        (StackingRegressor(LINES, cv=ShuffleSplit(2)), "must split alike"),
        (StackingRegressor(LINES, cv=TimeSeriesSplit(2)), "must not go by the position"),
        (LassoCV(cv=PredefinedSplit([0, 1] * 30)), "must not go by the position"),
        (LassoCV(cv=[([0, 1], [2, 3])]), "must be a number of folds"),
        (StackingRegressor(LINES, cv="prefit"), "no member is prefit"),
    ],
)
def test_what_cannot_be_compared_is_refused(estimator, message):
    with pytest.raises(ValueError, match=message):
        check_release(estimator, "auto")


def test_splitters_that_repeat_are_taken():
    for cv in (KFold(2), KFold(2, shuffle=True, random_state=0), 2, None):
        check_release(StackingRegressor(LINES, cv=cv), "auto")


@pytest.mark.loop(
    ("estimator", "expected"),
    [
        (LassoCV(), True),
        (StackingRegressor(LINES), True),
        (make_pipeline(StandardScaler(), CalibratedClassifierCV(logistic)), True),
        (ClassifierChain(logistic, cv=3), True),
        (RidgeCV(cv=3), True),
        (BaggingRegressor(Ridge(), random_state=0), True),
        (Ridge(), False),
        (KMeans(3), False),
        (KMeans(3, random_state=0), True),
        (GaussianMixture(3, random_state=0), True),
        (IncrementalPCA(2), True),
        (SGDRegressor(), False),
        (SGDRegressor(shuffle=False), True),
        (SGDRegressor(shuffle=np.False_), True),
    ],
)
def test_no_position_is_measured_alone(estimator, expected):
    """Folds are cut by position, where a replaced record shifts those of its class behind it.

    A fixed seed draws the same positions in every fit, such as those of the first centers.
    """
    assert order_matters(estimator) == expected


MANY = labels(0)
CHOSEN = ColumnTransformer([("a", StandardScaler(), lambda X: [int(X[0, 0] > 0)])])
POSITIVE = np.abs(MANY[0])


@pytest.mark.filterwarnings("ignore:Label:UserWarning")  # one of the outputs is rare
@pytest.mark.loop(
    ("estimator", "public", "own", "word"),
    [
        (OneVsRestClassifier(logistic), classes(0), two_classes(0), "a class is missing"),
        (
            StackingClassifier([("a", logistic)], cv=2),
            classes(0),
            (classes(0)[0], np.array([0, 1, 5])[classes(0)[1]]),
            "a class is missing",
        ),
        (
            OneVsRestClassifier(logistic),
            MANY,
            (MANY[0], np.column_stack([MANY[1][:, 0], np.ones(N_RECORDS, int)])),
            "member",
        ),
        (CHOSEN, (POSITIVE,), (-POSITIVE,), "columns, features or order"),
    ],
)
def test_other_members_are_refused(estimator, public, own, word):
    """A fit whose members, labels, columns or order differ from the public fit's has no value."""
    target = ParameterTarget(estimator, "auto", clone(estimator).fit(*public))
    with pytest.raises(ValueError, match=word):
        target(*own, seed=0)


def test_labels_of_a_chain_come_by_output():
    X, Y = MANY[0], MANY[1] + [0, 5]
    chain = ClassifierChain(logistic, order=[1, 0])
    for fitted in (clone(chain).fit(X, Y), make_pipeline(clone(chain)).fit(X, Y)):
        assert [each.tolist() for each in classes_of_outputs(fitted)] == [[0, 1], [5, 6]]
    model = private(chain, (X.copy(), Y)).fit(X, Y.copy())
    assert set(np.unique(model.predict(X)[:, 1])) <= {5, 6}


def test_categories_are_those_of_the_public_fit():
    """Members that see different ones are refused."""
    encoder = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    public, own = np.array([["a"], ["b"], ["c"]] * 4), np.array([["a"], ["z"], ["b"]] * 4)
    y = np.arange(12.0)
    target = ParameterTarget(encoder, "auto", clone(encoder).fit(public, y))
    assert target.names == ("ridge__coef_", "ridge__intercept_")
    assert target(own, y, seed=0).shape == (4,)
    bag = BaggingRegressor(encoder, 5, max_samples=3)
    with pytest.raises(ValueError, match="must list the categories"):
        ParameterTarget(bag, "auto", clone(bag).fit(y[:, None], y))


def test_what_is_saved_of_aligned_members_describes_no_records():
    line = make_pipeline(KMeans(2, n_init=1, random_state=0), LogisticRegression())
    bag = BaggingClassifier(line, n_estimators=2, random_state=0)
    public_fit = bag.fit(*two_classes(0))
    assert b"labels_" in pickle.dumps(public_fit)
    assert b"labels_" not in pickle.dumps(ParameterTarget(bag, "auto", public_fit))
