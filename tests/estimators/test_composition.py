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
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LassoCV, LogisticRegression, Ridge, RidgeCV, SGDRegressor
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, TimeSeriesSplit
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler
from skdp.core.dataset import Dataset
from skdp.estimators.configuration import check_configuration, without_side_effects
from skdp.estimators.inputs import order_matters, reorder
from skdp.estimators.members import fitted_parts, split_name
from skdp.estimators.parameters import ParameterTarget
from skdp.planning.kinds import kind_of_release
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


# of each kind of members: named, numbered, and in pairs
FOR_LEAKS = {"Pipeline", "VotingClassifier", "OneVsOneClassifier"}


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


def test_a_member_that_learned_nothing_is_pointed_out():
    X, Y = labels(0)
    Y[:, 1] = 0
    with pytest.warns(UserWarning, match="not 1 is present"):
        fitted = OneVsRestClassifier(logistic).fit(X, Y)
    with pytest.raises(ValueError, match=r"saw only one class.*more varied labels"):
        ParameterTarget(OneVsRestClassifier(logistic), "auto", fitted)


def check(estimator):
    """Check an estimator before any fit, as its parameters are checked."""
    check_configuration(estimator)
    kind_of_release("auto").check(estimator)


@pytest.mark.loop(
    ("estimator", "message"),
    [
        (VotingClassifier([("forest", RandomForestClassifier())]), "RandomForestClassifier inside"),
        (BaggingClassifier(), "predictions"),
        (make_pipeline(StackingRegressor(LINES), Ridge()), "predictions"),
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
        check(estimator)


@pytest.mark.parametrize("cv", [KFold(2), KFold(2, shuffle=True, random_state=0), 2, None])
def test_splitters_that_repeat_are_taken(cv):
    check(LassoCV(cv=cv))


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


def test_categories_are_those_of_the_public_fit():
    """Members that see different ones are refused."""
    encoder = make_pipeline(OneHotEncoder(handle_unknown="ignore"), Ridge())
    public, own = np.array([["a"], ["b"], ["c"]] * 4), np.array([["a"], ["z"], ["b"]] * 4)
    y = np.arange(12.0)
    target = ParameterTarget(encoder, "auto", clone(encoder).fit(public, y))
    assert target.names == ("ridge__coef_", "ridge__intercept_")
    assert target(own, y, seed=0).shape == (4,)
    pairs = OneVsOneClassifier(make_pipeline(OneHotEncoder(handle_unknown="ignore"), logistic))
    codes = np.arange(12) % 3
    with pytest.raises(ValueError, match="must list the categories"):
        ParameterTarget(pairs, "auto", clone(pairs).fit(codes[:, None], codes))


def test_what_is_saved_of_aligned_members_describes_no_records():
    line = make_pipeline(KMeans(2, n_init=1, random_state=0), LogisticRegression())
    rest = OneVsRestClassifier(line)
    public_fit = clone(rest).fit(*two_classes(0))
    assert b"labels_" in pickle.dumps(public_fit)
    assert b"labels_" not in pickle.dumps(ParameterTarget(rest, "auto", public_fit))


@pytest.mark.parametrize(
    "line",
    [
        make_pipeline(KMeans(3, random_state=0, n_init=1), Ridge()),
        make_pipeline(make_union(IncrementalPCA(2), StandardScaler()), Ridge()),
        MultiOutputRegressor(make_pipeline(KMeans(2, random_state=0, n_init=1), Ridge())),
    ],
    ids=lambda line: type(line).__name__,
)
def test_later_steps_are_fitted_to_aligned_components(line):
    """Ridge does not care for signs and order, so the prediction is that of the plain pipeline."""
    public, own, new = response(0), response(1), response(2)[0]
    if isinstance(line, MultiOutputRegressor):
        public, own = ((X, np.column_stack([y, y**2])) for X, y in (public, own))
    target = ParameterTarget(line, "auto", without_side_effects(line).fit(*public))
    restored = target.restore(target(*own, seed=0))
    expected = clone(line).fit(*reorder(Dataset(*own), seed=0).parts).predict(new)
    np.testing.assert_allclose(restored.predict(new), expected, rtol=1e-6, atol=1e-6)
