"""PrivateEstimator in every place where scikit-learn takes an estimator: it works, or says why."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import AgglomerativeClustering, KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.covariance import EllipticEnvelope
from sklearn.decomposition import PCA, IncrementalPCA
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.linear_model import BayesianRidge, LogisticRegression, Ridge
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import (
    GridSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.svm import OneClassSVM

from skdp import (
    BernsteinTransformer,
    GaussianOracle,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
)
from skdp.audit import audit_estimator
from skdp.sensitivity.adapters import describe_oracle

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
    sampler = SensitivitySampler(oracle, gamma=0.5, n_pairs=3, random_state=0)
    options = {"mechanism": LaplaceMechanism(epsilon, code=None)} | options
    return PrivateEstimator(estimator, sensitivity=sampler, **options)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


# Without a use for y


@pytest.mark.parametrize(
    "estimator",
    [
        StandardScaler(),
        PCA(2),
        make_pipeline(StandardScaler(), PCA(2)),
        KMeans(2, n_init=1, random_state=0),
        GaussianMixture(2, random_state=0),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("oracle", [labeled, weighted], ids=describe_oracle)
def test_y_is_dropped_where_it_has_no_use(estimator, oracle):
    alone = private(estimator, oracle).fit(X)
    beside = private(estimator, oracle).fit(X, LABELS)
    assert alone.sensitivity_ == beside.sensitivity_
    assert vars(alone.estimator_).keys() == vars(beside.estimator_).keys()


def test_norms_are_those_of_an_oracle_without_responses():
    norms = [
        private(StandardScaler(), oracle).fit(X, y).sensitivity_.norms
        for oracle, y in [(PublicDataOracle(X_PUBLIC), None), (labeled, LABELS)]
    ]
    np.testing.assert_array_equal(*norms)


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


@pytest.mark.slow
def test_audit_of_an_estimator_that_was_fitted_beside_y():
    model = private(StandardScaler(), epsilon=1.0, random_state=0).fit(X, LABELS)
    options = {"pairs": 1, "n_search": 200, "n_final": 200, "rng": 0}
    audits = [audit_estimator(model, X, y, **options) for y in (None, LABELS)]
    assert audits[0].norms == audits[1].norms
    record = (np.full(4, 9.0), 1)
    assert np.isfinite(audit_estimator(model, X, LABELS, record=record, **options).norms[0])


# In compositions


def test_first_middle_and_last_in_a_pipeline():
    pipeline = make_pipeline(private(StandardScaler()), private(PCA(4)), LogisticRegression())
    pipeline.fit(X, LABELS)
    exact = make_pipeline(StandardScaler(), PCA(4), LogisticRegression()).fit(X, LABELS)
    np.testing.assert_allclose(pipeline.predict_proba(X), exact.predict_proba(X), atol=1e-6)
    last = make_pipeline(FunctionTransformer(), private(LogisticRegression()))
    assert last.fit(X, LABELS).score(X, LABELS) > 0.8
    assert last[-1].guarantee_.n_samples == 120


def test_in_column_transformer_and_union():
    table = ColumnTransformer(
        [
            (
                "left",
                private(StandardScaler(), PublicDataOracle(X_PUBLIC[:, :2], LABELS_PUBLIC)),
                [0, 1],
            )
        ],
        remainder="passthrough",
    )
    left = StandardScaler().fit_transform(X[:, :2])
    np.testing.assert_allclose(table.fit_transform(X, LABELS), np.c_[left, X[:, 2:]])
    union = FeatureUnion([("scaled", private(StandardScaler())), ("pca", private(PCA(1)))])
    assert union.fit(X, LABELS).transform(X).shape == (120, 5)


@pytest.mark.parametrize(
    "model",
    [
        CalibratedClassifierCV(private(LogisticRegression()), cv=2),
        VotingClassifier([("a", private(LogisticRegression())), ("b", LogisticRegression())]),
        StackingClassifier([("a", private(LogisticRegression()))], cv=2),
        OneVsRestClassifier(private(LogisticRegression())),
        AdaBoostClassifier(private(LogisticRegression(), weighted, classes=[0, 1]), n_estimators=2),
        BaggingClassifier(private(LogisticRegression(), weighted, classes=[0, 1]), n_estimators=2),
        SelectFromModel(private(LogisticRegression())),
        GridSearchCV(private(LogisticRegression()), {"estimator__C": [0.1, 1.0]}, cv=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_composition_of_private_classifiers(model):
    model.fit(X, LABELS)
    if hasattr(model, "predict"):
        assert model.score(X, LABELS) > 0.8
    else:
        assert model.transform(X).shape[1] < 4
    assert pickle.loads(pickle.dumps(model)).get_params().keys() == model.get_params().keys()


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


def test_self_training():
    some = np.where(np.arange(120) < 60, LABELS, -1)
    model = SelfTrainingClassifier(private(LogisticRegression())).fit(X, some)
    assert model.score(X, LABELS) > 0.8


def test_several_outputs():
    both = np.c_[LABELS, 1 - LABELS]
    assert MultiOutputClassifier(private(LogisticRegression())).fit(X, both).score(X, both) > 0.8
    oracle = PublicDataOracle(X_PUBLIC, RESPONSE_PUBLIC)
    both = np.c_[RESPONSE, RESPONSE]
    assert MultiOutputRegressor(private(Ridge(), oracle)).fit(X, both).score(X, both) > 0.9


def test_with_a_transformed_target():
    oracle = PublicDataOracle(X_PUBLIC, np.arcsinh(RESPONSE))
    model = TransformedTargetRegressor(
        private(Ridge(), oracle), func=np.arcsinh, inverse_func=np.sinh
    )
    assert model.fit(X, RESPONSE).score(X, RESPONSE) > 0.8


@pytest.mark.parametrize("kind", [AdaBoostClassifier, BaggingClassifier])
def test_weights_are_refused_where_the_oracle_has_none(kind):
    """Both hand weights to whoever takes them, and here a record is to have one."""
    message = re.escape("returned X and y. It must return X, y and sample_weight")
    with pytest.raises(ValueError, match=message):
        kind(private(LogisticRegression()), n_estimators=2).fit(X, LABELS)


def test_eliminated_columns_are_refused():
    model = RFE(private(LogisticRegression()))
    with pytest.raises(ValueError, match="X has 4 columns, and that of the data has 3 columns"):
        model.fit(X, LABELS)
    known = private(LogisticRegression(), classes=[0, 1]).set_params(sensitivity=1e-3)
    model = RFE(known).fit(X, LABELS)
    assert model.support_.sum() == 2


def test_model_selection():
    model = private(LogisticRegression())
    assert np.all(cross_val_score(model, X, LABELS, cv=2) > 0.8)
    assert np.mean(cross_val_predict(model, X, LABELS, cv=2) == LABELS) > 0.8
    sizes, _, scores = learning_curve(model, X, LABELS, cv=2, train_sizes=[0.5, 1.0])
    assert scores.shape == (2, 2)
    assert list(sizes) == [30, 60]


def test_permutation_importance_with_weights():
    model = private(LogisticRegression()).fit(X, LABELS)
    found = permutation_importance(
        model, X, LABELS, n_repeats=2, random_state=0, sample_weight=WEIGHTS
    )
    expected = permutation_importance(
        LogisticRegression().fit(X, LABELS),
        X,
        LABELS,
        n_repeats=2,
        random_state=0,
        sample_weight=WEIGHTS,
    )
    np.testing.assert_allclose(found.importances, expected.importances)


# Weights, and who asks for them


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


@pytest.mark.usefixtures("routing")
def test_weights_are_routed_to_a_step_in_the_middle():
    oracle = weighted
    scaler = private(StandardScaler(), oracle).set_fit_request(sample_weight=True)
    ridge = Ridge().set_fit_request(sample_weight=False)
    pipeline = Pipeline([("scaler", scaler), ("ridge", ridge)])
    pipeline.fit(X, LABELS, sample_weight=WEIGHTS)
    expected = np.average(X, axis=0, weights=WEIGHTS)
    np.testing.assert_allclose(pipeline["scaler"].estimator_.mean_, expected)


@pytest.mark.usefixtures("routing")
def test_weights_that_nobody_requested_are_refused():
    model = private(LogisticRegression(), weighted, classes=[0, 1])
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        GridSearchCV(model, {"estimator__C": [1.0]}).fit(X, LABELS, sample_weight=WEIGHTS)


# Methods that exist where the estimator has them


@pytest.mark.parametrize(
    "estimator",
    [
        KMeans(2, n_init=1, random_state=0),
        GaussianMixture(2, random_state=0),
        EllipticEnvelope(random_state=0),
        make_pipeline(StandardScaler(), KMeans(2, n_init=1, random_state=0)),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_fit_predict(estimator):
    model = private(estimator)
    labels = model.fit_predict(X, LABELS)
    np.testing.assert_array_equal(labels, model.predict(X))
    assert len(set(labels)) == 2


def test_fit_predict_of_a_released_function():
    box = BernsteinTransformer(degree=2, feature_range=(-5, 5), clip=True)
    model = private(OneClassSVM(), release=box)
    np.testing.assert_array_equal(model.fit_predict(X), model.predict(X))


def test_no_fit_predict_without_predict():
    assert not hasattr(private(AgglomerativeClustering()), "fit_predict")
    assert not hasattr(private(LogisticRegression()), "fit_predict")


def test_standard_deviations_where_they_can_be_had():
    oracle = PublicDataOracle(X_PUBLIC, RESPONSE_PUBLIC)
    dummy = private(DummyRegressor(), oracle).fit(X, RESPONSE)
    mean, deviation = dummy.predict(X, return_std=True)
    np.testing.assert_allclose(mean, RESPONSE.mean())
    np.testing.assert_array_equal(deviation, 0.0)
    names = ["coef_", "intercept_", "alpha_", "sigma_", "X_offset_", "X_scale_"]
    exact = BayesianRidge().fit(X, RESPONSE)
    names = [name for name in names if isinstance(getattr(exact, name), float | np.ndarray)]
    named = private(BayesianRidge(), oracle, release=names).fit(X, RESPONSE)
    np.testing.assert_allclose(
        named.predict(X, return_std=True), exact.predict(X, return_std=True), atol=1e-6
    )


def test_standard_deviations_are_refused_where_they_cannot_be_had():
    oracle = PublicDataOracle(X_PUBLIC, RESPONSE_PUBLIC)
    model = private(BayesianRidge(), oracle).fit(X, RESPONSE)
    with pytest.raises(AttributeError, match=r"predict\(return_std=True\) needs more than release"):
        model.predict(X, return_std=True)
    with pytest.raises(TypeError, match="return_std"):
        private(Ridge(), oracle).fit(X, RESPONSE).predict(X, return_std=True)


@pytest.mark.parametrize(
    ("estimator", "names"),
    [
        (LogisticRegression(), ["coef_", "intercept_", "classes_", "n_features_in_"]),
        (ExtraTreesClassifier(2, max_depth=2, random_state=0), ["feature_importances_"]),
        (PCA(2), ["components_"]),
    ],
)
def test_fitted_attributes_are_those_of_the_released_estimator(estimator, names):
    model = private(estimator, epsilon=1.0)
    assert not any(hasattr(model, name) for name in names)
    model.fit(X, LABELS)
    for name in names:
        np.testing.assert_array_equal(getattr(model, name), getattr(model.estimator_, name))
    with pytest.raises(AttributeError, match="'attic_'"):
        _ = model.attic_


# Names, containers, copies


def test_pandas_output_in_a_pipeline():
    frame = pd.DataFrame(X, columns=NAMES)
    oracle = PublicDataOracle(frame.copy(), LABELS_PUBLIC)
    pipeline = make_pipeline(
        private(StandardScaler(), oracle), private(KMeans(2, random_state=0), oracle)
    ).set_output(transform="pandas")
    out = pipeline.fit(frame, LABELS).transform(frame)
    assert list(out.columns) == ["kmeans0", "kmeans1"]
    scaled = pipeline[0].transform(frame)
    assert list(scaled.columns) == NAMES


def test_copies_and_the_page_of_a_composition():
    model = make_pipeline(private(StandardScaler()), private(LogisticRegression()))
    again = pickle.loads(pickle.dumps(clone(model).fit(X, LABELS)))
    assert again.score(X, LABELS) > 0.8
    assert "PrivateEstimator" in again._repr_html_()


@pytest.mark.parametrize("kind", [PCA, IncrementalPCA])
def test_covariance_of_released_components(kind):
    """It needs the variances, and that of what is left out: whitening has released all."""
    whole = private(kind(4, whiten=True)).fit(X).estimator_
    exact = kind(4, whiten=True).fit(X)
    np.testing.assert_allclose(whole.get_covariance(), exact.get_covariance(), atol=1e-6)
    np.testing.assert_allclose(whole.get_precision(), exact.get_precision(), atol=1e-6)
    for less in (kind(2, whiten=True), kind(4)):
        model = private(less).fit(X)
        assert not hasattr(model, "get_covariance")
        with pytest.raises(AttributeError, match="noise_variance_"):
            model.estimator_.get_covariance()


def test_gaussian_oracle_of_a_regression_serves_a_scaler():
    oracle = GaussianOracle(np.zeros(4), np.eye(4), classes=[0, 1])
    assert private(StandardScaler(), oracle).fit(X).guarantee_.oracle == oracle.description
