"""Students of scores without noise agree with the estimator, whatever its parts are told."""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import (
    RFE,
    SelectFromModel,
    SelectKBest,
    SelectPercentile,
    f_regression,
)
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier, SGDRegressor
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import (
    KNeighborsClassifier,
    RadiusNeighborsClassifier,
    RadiusNeighborsRegressor,
)
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skdp import LaplaceMechanism, PrivateEstimator, RandomTaskOracle, SampleAndAggregate
from skdp.estimators.scores import ClassScores, ResponseScores, drawn_labels

pytestmark = pytest.mark.usefixtures("one_thread")

# Two columns of ten tell the label, and the response.
_RNG = np.random.default_rng(0)
_X = _RNG.normal(size=(3500, 10))
_R = 3 * (_X[:, 3] - _X[:, 7]) + _RNG.logistic(size=3500)
PUBLIC, PRIVATE, TEST = slice(0, 500), slice(500, 1500), slice(1500, None)
LOGISTIC, RIDGE, TREE = LogisticRegression(), Ridge(), DecisionTreeClassifier(max_depth=4)
SELECTION, GRID = SelectKBest(k=2), {"logisticregression__C": [0.01, 1.0]}
SELECTED = make_pipeline(SELECTION, LOGISTIC)

STEPS = [
    SELECTION,
    SelectPercentile(percentile=20),
    SelectFromModel(LOGISTIC, max_features=2),
    RFE(LOGISTIC, n_features_to_select=2, step=4),
    LinearDiscriminantAnalysis(),
    make_union(SELECTION, LinearDiscriminantAnalysis()),
    make_column_transformer((SELECTION, slice(0, 5)), (SELECTION, slice(5, 10))),
]
COMPOSITES = [
    *(make_pipeline(step, LOGISTIC) for step in STEPS),
    make_pipeline(StandardScaler(), make_pipeline(SELECTION, LinearSVC())),
    make_pipeline(SELECTION, TREE),
    make_pipeline(SELECTION, SGDClassifier(loss="log_loss", random_state=0)),
    make_pipeline(SELECTION, KNeighborsClassifier(25)),
    make_pipeline(SELECTION, LinearDiscriminantAnalysis()),
    RFE(LOGISTIC, n_features_to_select=2, step=4),
    CalibratedClassifierCV(SELECTED),
    CalibratedClassifierCV(SELECTED, method="isotonic", ensemble=False),
    CalibratedClassifierCV(LinearSVC()),
    make_pipeline(SELECTION, CalibratedClassifierCV(GaussianNB())),
    AdaBoostClassifier(TREE, n_estimators=3, random_state=0),
    BaggingClassifier(SELECTED, n_estimators=3, random_state=0),
    VotingClassifier([("a", SELECTED), ("b", GaussianNB())], voting="soft"),
    StackingClassifier([("a", SELECTED), ("b", GaussianNB())], cv=2),
    OneVsRestClassifier(SELECTED),
    OneVsOneClassifier(SELECTED),
    GridSearchCV(SELECTED, GRID, cv=2),
    RandomizedSearchCV(SELECTED, GRID, n_iter=1, cv=2, random_state=0),
    FixedThresholdClassifier(SELECTED),
    TunedThresholdClassifierCV(SELECTED, cv=2, thresholds=9),
    make_pipeline(SelectKBest(f_regression, k=2), RIDGE),
    make_pipeline(RFE(RIDGE, n_features_to_select=2, step=4), SVR()),
    BaggingRegressor(RIDGE, n_estimators=3, random_state=0),
    VotingRegressor([("a", RIDGE), ("b", SVR())]),
    StackingRegressor([("a", RIDGE), ("b", SVR())], cv=2),
]


def task(estimator):
    """Responses that suit an estimator, and an oracle of such."""
    if is_classifier(estimator):
        return (_R > 0).astype(int), RandomTaskOracle(_X[PUBLIC], classes=[0, 1])
    return _R, RandomTaskOracle(_X[PUBLIC], y_scale=4.0)


def exact_and_student(estimator, **parameters):
    """A fit, and the student of its scores without noise."""
    y, oracle = task(estimator)
    options = {"sensitivity": 1e4, "release": "predictions", "random_state": 0}  # and anchors
    options |= {"prior": oracle} | parameters
    mechanism = LaplaceMechanism(1e6, code=None)
    model = PrivateEstimator(estimator, mechanism=mechanism, **options)
    target = model.plan(1000, like=(_X[PRIVATE], y[PRIVATE])).target
    student = target.restore(target(_X[PRIVATE], y[PRIVATE], seed=0))
    return clone(estimator).fit(_X[PRIVATE], y[PRIVATE]), student


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(each, marks=[pytest.mark.slow] * (place > 2), id=f"{place}")
        for place, each in enumerate(COMPOSITES)
    ],
)
def test_a_student_of_exact_scores_agrees_with_a_composite(estimator):
    """Some of its parts take no weights; scores may differ by three standard errors, .022.

    The student's is a mean over three draws of the anchors, which are seeded: one alone scatters.
    """
    y, _ = task(estimator)
    models = [exact_and_student(estimator, random_state=seed) for seed in range(3)]
    scores = np.array([[each.score(_X[TEST], y[TEST]) for each in pair] for pair in models])
    assert abs(np.diff(scores.mean(axis=0))[0]) < 0.022


def test_a_penalty_counts_as_in_a_fit_to_all_private_records():
    """Beside fits to weights of each class, and to a penalty for as many records as anchors."""
    anchors, n_samples = _X[:400], 4000
    scores = np.tanh(_R[:400, None] / 4)
    logistic = LogisticRegression(C=0.001)
    found = ClassScores(np.array([0, 1])).teach(logistic, anchors, scores, n_samples)
    weights = n_samples / 400 * np.concatenate([1 - scores, 1 + scores])[:, 0] / 2
    expected = clone(logistic).fit(np.tile(anchors, (2, 1)), np.repeat([0, 1], 400), weights)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=0.02)
    reader = ResponseScores.of(_R)
    ridge = reader.teach(Ridge(alpha=4000.0), anchors, reader.scores_of(_R[:400]), n_samples)
    expected = Ridge(alpha=400.0).fit(anchors, np.clip(_R[:400], reader.low, reader.high))
    np.testing.assert_allclose(ridge.coef_, expected.coef_, atol=1e-6)
    stepper = SGDRegressor(random_state=0)  # weights would lengthen its steps
    found = reader.teach(stepper, anchors, reader.scores_of(_R[:400]), n_samples)
    expected = clone(stepper).fit(anchors, np.clip(_R[:400], reader.low, reader.high))
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-6)


def test_students_of_blocks_agree_and_are_penalized_once():
    blocks = SampleAndAggregate(10, random_state=0)
    exact, student = exact_and_student(SELECTED, sensitivity=blocks, release="auto")
    np.testing.assert_array_equal(student[0].get_support(), exact[0].get_support())
    light, strong = (
        exact_and_student(LogisticRegression(C=C), sensitivity=blocks, release="auto")[1]
        for C in (1.0, 1e-4)
    )
    assert np.linalg.norm(strong.coef_) < 0.5 * np.linalg.norm(light.coef_)


def test_drawn_labels_have_the_shares_with_weights_and_about_without():
    shares = np.random.default_rng(0).dirichlet([1.0, 0.3, 0.3], size=400)
    places, weights = drawn_labels(shares)
    assert places.shape == weights.shape == (400, 5)
    np.testing.assert_allclose(weights.mean(axis=1), 1)
    alone = np.eye(3)[places].mean(axis=1)
    assert np.abs(alone - shares).max() < 0.4  # two copies
    np.testing.assert_allclose(alone.mean(axis=0), shares.mean(axis=0), atol=0.02)
    weighted = (np.eye(3)[places] * weights[:, :, None]).mean(axis=1)
    often = (shares > 0.2).all(axis=1) | (shares > 0.99).any(axis=1)
    np.testing.assert_allclose(weighted[often], shares[often], atol=0.01 * 3)
    assert drawn_labels(np.full((3000, 7), 1 / 7))[0].shape == (3000, 7)


@pytest.mark.parametrize("kind", [RadiusNeighborsClassifier, RadiusNeighborsRegressor])
@pytest.mark.filterwarnings("ignore:One or more samples have no neighbors")
@pytest.mark.parametrize("by_blocks", [False, True])
def test_an_estimator_without_predictions_at_anchors_is_refused(kind, by_blocks):
    blocks = {"sensitivity": SampleAndAggregate(10), "release": "auto"} if by_blocks else {}
    with pytest.raises(ValueError, match=r"predicts nothing for some .*'radius'"):
        exact_and_student(kind(0.5), **blocks)
