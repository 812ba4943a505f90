"""PrivateEstimator in every place where scikit-learn takes an estimator: it works, or says why."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import LaplaceMechanism, PublicDataOracle
from skdp.oracles.adapters import describe_oracle
from tests import helpers

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
LABELS = (X[:, 0] + 0.3 * RNG.normal(size=120) > 0).astype(int)
RESPONSE = X @ [1.0, -1.0, 0.5, 0.0] + 0.1 * RNG.normal(size=120)
WEIGHTS = RNG.uniform(0.5, 1.5, size=120)
# The same records once more: only mechanics are tested.
X_PUBLIC, LABELS_PUBLIC, RESPONSE_PUBLIC = X.copy(), LABELS.copy(), RESPONSE.copy()
NAMES = list("abcd")
labeled = PublicDataOracle(X_PUBLIC, LABELS_PUBLIC)


def weighted(n_samples, rng):
    """Public records with weights of their own."""
    rows = rng.integers(len(X_PUBLIC), size=n_samples)
    return X_PUBLIC[rows], LABELS_PUBLIC[rows], rng.uniform(0.5, 1.5, size=n_samples)


def private(estimator, oracle=labeled, *, epsilon=np.inf, **options):
    mechanism = LaplaceMechanism(epsilon, code=None)
    return helpers.private(
        estimator, oracle, **{"mechanism": mechanism, "random_state": None} | options
    )


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize(
    "estimator",
    [make_pipeline(StandardScaler(), PCA(2)), KMeans(2, n_init=1, random_state=0)],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("oracle", [labeled, weighted], ids=describe_oracle)
def test_y_is_dropped_where_it_has_no_use(estimator, oracle):
    alone = private(estimator, oracle).fit(X)
    beside = private(estimator, oracle).fit(X, LABELS)
    assert alone.sensitivity_ == beside.sensitivity_
    assert vars(alone.estimator_).keys() == vars(beside.estimator_).keys()


class Foreign(TransformerMixin, BaseEstimator):
    """A transformer of somebody else, of which nobody knows what it does with y."""

    def fit(self, X, y=None):
        self.shift_ = np.mean(X, axis=0) if y is None else np.mean(X[y == 1], axis=0)
        return self

    def transform(self, X):
        return X - self.shift_


def test_y_is_kept_where_it_may_have_a_use():
    model = private(Foreign(), release=["shift_"]).fit(X, LABELS)
    np.testing.assert_array_equal(model.estimator_.shift_, X[LABELS == 1].mean(axis=0))
    with pytest.raises(ValueError, match=r"returned X and y\. It must return X"):
        private(Foreign(), release=["shift_"]).fit(X)


def test_in_column_transformer_and_union():
    left = private(StandardScaler(), PublicDataOracle(X_PUBLIC[:, :2], LABELS_PUBLIC))
    table = ColumnTransformer([("left", left, [0, 1])], remainder="passthrough")
    expected = np.c_[StandardScaler().fit_transform(X[:, :2]), X[:, 2:]]
    np.testing.assert_allclose(table.fit_transform(X, LABELS), expected)
    union = FeatureUnion([("scaled", private(StandardScaler())), ("pca", private(PCA(1)))])
    frame = pd.DataFrame(X, columns=NAMES)
    out = union.set_output(transform="pandas").fit(frame, LABELS).transform(frame)
    assert list(out.columns) == ["scaled__a", "scaled__b", "scaled__c", "scaled__d", "pca__pca0"]


LINE, SQUARED = private(LogisticRegression()), PublicDataOracle(X_PUBLIC, np.arcsinh(RESPONSE))
BOTH = np.c_[LABELS, 1 - LABELS]
HALF = np.where(np.arange(120) < 60, LABELS, -1)
RIDGE = private(Ridge(), PublicDataOracle(X_PUBLIC, RESPONSE_PUBLIC))
OF_WEIGHTS = private(LogisticRegression(), weighted, classes=[0, 1])
SINH = {"func": np.arcsinh, "inverse_func": np.sinh}
COMPOSITIONS = [
    (make_pipeline(private(StandardScaler()), private(PCA(4)), LogisticRegression()), LABELS),
    (make_pipeline(FunctionTransformer(), LINE), LABELS),
    (CalibratedClassifierCV(LINE, cv=2), LABELS),
    (VotingClassifier([("a", LINE), ("b", LogisticRegression())]), LABELS),
    (StackingClassifier([("a", LINE)], cv=2), LABELS),
    (OneVsRestClassifier(LINE), LABELS),
    (AdaBoostClassifier(OF_WEIGHTS, n_estimators=2), LABELS),
    (BaggingClassifier(OF_WEIGHTS, n_estimators=2), LABELS),
    (SelfTrainingClassifier(LINE), HALF),
    (MultiOutputClassifier(LINE), BOTH),
    (MultiOutputRegressor(RIDGE), np.c_[RESPONSE, RESPONSE]),
    (TransformedTargetRegressor(private(Ridge(), SQUARED), **SINH), RESPONSE),
    (SelectFromModel(LINE), LABELS),
    (GridSearchCV(LINE, {"estimator__C": [0.1, 1.0]}, cv=2), LABELS),
]


@pytest.mark.parametrize(
    ("model", "y"), COMPOSITIONS, ids=lambda each: type(each).__name__ * hasattr(each, "fit")
)
def test_composition_of_private_estimators(model, y):
    again = pickle.loads(pickle.dumps(model.fit(X, y)))
    if hasattr(model, "predict"):
        assert again.score(X, LABELS if y is HALF else y) > 0.8
    else:
        assert again.transform(X).shape[1] < 4
    assert again.get_params().keys() == model.get_params().keys()
    assert "PrivateEstimator" in again._repr_html_()


@pytest.mark.parametrize("ensemble", [BaggingClassifier, AdaBoostClassifier])
def test_ensembles_do_not_seed_the_noise(ensemble):
    """They seed what they are made of, whether or not they are asked to, and keep the seeds."""
    X, y = labeled(60, np.random.default_rng(0))
    model = private(LogisticRegression(), weighted)
    member = ensemble(model, n_estimators=2, random_state=0).fit(X, y).estimators_[0]
    if ensemble is BaggingClassifier:  # a pipeline takes no weights, so it gets fewer records
        search = GridSearchCV(
            clone(model).set_params(sensitivity__oracle=labeled), {"classes": [[0, 1]]}
        )
        step = ensemble(make_pipeline(search), n_estimators=1, random_state=0).fit(X, y)
        member = step.estimators_[0][-1].best_estimator_
    assert member.random_state is None
    assert "seeded" not in str(member.guarantee_)
    assert model.set_params(random_state=3).random_state is None
    seeded = private(LogisticRegression(), random_state=0).set_params(random_state=3)
    assert (seeded.random_state, clone(seeded).random_state) == (3, 3)


@pytest.mark.parametrize("kind", [AdaBoostClassifier, BaggingClassifier])
def test_weights_are_refused_where_the_oracle_has_none(kind):
    """Both hand weights to whoever takes them, and here a record is to have one."""
    with pytest.raises(ValueError, match="must return X, y and sample_weight"):
        kind(private(LogisticRegression()), n_estimators=2).fit(X, LABELS)


def test_eliminated_columns_are_refused():
    model = RFE(private(LogisticRegression()))
    with pytest.raises(ValueError, match="X has 4 columns, and that of the data has 3 columns"):
        model.fit(X, LABELS)
    known = private(LogisticRegression(), classes=[0, 1]).set_params(sensitivity=1e-3)
    model = RFE(known).fit(X, LABELS)
    assert model.support_.sum() == 2


def test_score_takes_weights_where_the_estimator_does():
    model = private(make_pipeline(StandardScaler(), LogisticRegression())).fit(X, LABELS)
    expected = np.average(model.predict(X) == LABELS, weights=WEIGHTS)
    assert model.score(X, LABELS, sample_weight=WEIGHTS) == pytest.approx(expected)
    mixture = private(GaussianMixture(2, random_state=0)).fit(X)
    with pytest.raises(TypeError, match="sample_weight"):
        mixture.score(X, sample_weight=WEIGHTS)


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_to_whoever_requests_them():
    model = private(make_pipeline(StandardScaler(), LogisticRegression()), weighted, classes=[0, 1])
    model.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    params = {"params": {"sample_weight": WEIGHTS}, "error_score": "raise"}
    scores = cross_validate(model, X, LABELS, cv=2, return_estimator=True, **params)
    for fitted in scores["estimator"]:
        assert "weighted" in fitted.sensitivity_.target
    search = GridSearchCV(model, {"estimator__logisticregression__C": [1.0]}, cv=2)
    search.fit(X, LABELS, sample_weight=WEIGHTS)
    exact = LogisticRegression().fit(StandardScaler().fit_transform(X), LABELS, WEIGHTS)
    released = search.best_estimator_.estimator_[-1]
    np.testing.assert_allclose(released.coef_, exact.coef_, atol=1e-3)
    assert search.score(X, LABELS, sample_weight=WEIGHTS) > 0.8
