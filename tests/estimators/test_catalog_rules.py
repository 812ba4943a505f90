"""The rules of the catalog: what it refuses, what third parties may add, what it tells."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.cluster import DBSCAN, BisectingKMeans, KMeans
from sklearn.compose import make_column_transformer
from sklearn.covariance import EmpiricalCovariance
from sklearn.cross_decomposition import PLSSVD
from sklearn.decomposition import NMF, PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (imported for its effect)
from sklearn.feature_selection import SelectKBest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import IterativeImputer, MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, Ridge
from sklearn.manifold import TSNE
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler
from sklearn.random_projection import SparseRandomProjection
from sklearn.svm import SVC

from skdp import LaplaceMechanism, PrivateEstimator, register, supported_estimators
from skdp.estimators.catalog import CATALOG, is_stateless, lookup
from skdp.estimators.parameters import ParameterTarget

# fits to few records
# a few steps are enough here
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
y = X @ [1.0, -1.0, 2.0]
labels = (y > 0).astype(int)


class Spy(BaseEstimator):
    """A step that notices when it is fitted."""

    fitted = 0

    def fit(self, X, y=None):
        Spy.fitted += 1
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X


@pytest.fixture
def registered():
    """Forget what a test has registered."""
    before = dict(CATALOG.added)
    yield
    CATALOG.added.clear()
    CATALOG.added.update(before)


def private(estimator, **options):
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": 0.1, "random_state": 0} | options
    return PrivateEstimator(estimator, **options)


@pytest.mark.loop(
    ("estimator", "words"),
    [
        (TSNE(), "TSNE .* places the training records themselves. Use PCA"),
        (DBSCAN(), "one label for each training record.* Use KMeans"),
        (LocalOutlierFactor(novelty=True), "training records themselves.*predictions"),
        (KNeighborsClassifier(), "training records themselves.*predictions"),
        (SVC(), "unless kernel='linear'.*Use release='predictions'"),
        (NMF(2), "Use PCA .*FrozenEstimator"),
        (PowerTransformer(), "a StandardScaler behind it"),
        (Nystroem(), "landmarks are training records. .*FrozenEstimator"),
        (GaussianProcessRegressor(), "training records themselves"),
        (BisectingKMeans(2), "Use KMeans"),
        (PLSSVD(1), "transform in private attributes. Use PCA"),
        (SelectKBest(), "which columns it selects.*FrozenEstimator"),
        (SimpleImputer(add_indicator=True), "which columns have missing values"),
        (IterativeImputer(), "Use SimpleImputer"),
        (MissingIndicator(), "learns which columns have missing values. Use features='all'"),
        (OneHotEncoder(max_categories=2), "min_frequency and max_categories depend on the data"),
        (RBFSampler(), "Set random_state to an integer"),
        (RBFSampler(gamma="scale", random_state=0), "gamma='scale' depends on the data"),
        (SparseRandomProjection(2), "Set random_state to an integer"),
    ],
)
def test_refused_before_any_fit(estimator, words):
    """Alone, and as a step: nothing is fitted, neither to private nor to public records."""
    for wrapped in (estimator, make_pipeline(Spy(), estimator)):
        Spy.fitted = 0
        with pytest.raises(ValueError, match=f"PrivateEstimator cannot release .*{words}"):
            private(wrapped, classes=None).fit(X, labels)
        assert Spy.fitted == 0


STEP = LinearDiscriminantAnalysis()


@pytest.mark.loop(
    "line",
    [
        make_pipeline(STEP, Ridge()),
        make_pipeline(make_pipeline(StandardScaler(), STEP), Ridge()),
        make_pipeline(make_union(STEP, StandardScaler()), Ridge()),
        make_pipeline(make_column_transformer((STEP, [0, 1])), Ridge()),
    ],
)
def test_step_that_only_predicts_is_refused_where_it_is_to_transform(line):
    """Else the budget would be spent on an estimator whose first output fails."""
    with pytest.raises(ValueError, match="as a step that transforms"):
        private(line).fit(X, labels)


@pytest.mark.parametrize(
    ("estimator", "method", "names"),
    [
        (PCA(2), "score_samples", ["mean_", "components_", "explained_variance_"]),
        (LinearDiscriminantAnalysis(), "transform", ["xbar_", "scalings_"]),
    ],
)
def test_methods_that_need_more_than_is_released_are_not_there(estimator, method, names):
    """Before the fit and after it, also as the last step; they come with named attributes."""
    labeled = isinstance(estimator, LinearDiscriminantAnalysis)
    target, classes = (labels, [0, 1]) if labeled else (y, None)
    for wrapped in (estimator, make_pipeline(StandardScaler(), estimator)):
        model = private(wrapped, classes=classes)
        for candidate in (model, clone(model).fit(X, target)):
            assert not hasattr(candidate, method)
    names += ["noise_variance_"] * isinstance(estimator, PCA)
    model = private(estimator, classes=classes, release=names).fit(X, target)
    assert np.isfinite(getattr(model, method)(X)).all()


def test_deviations_that_need_more_than_is_released_are_refused():
    model = private(BayesianRidge()).fit(X, y)
    with pytest.raises(AttributeError, match="return_std=True"):
        model.predict(X, return_std=True)


class Unknown(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.slope_ = X.T @ y
        self.knots_ = [np.zeros(2), np.zeros((1, 3))]
        self.ragged_ = [[[1.0], [2.0, 3.0]]]
        self.names_ = ["a"]
        self.level_ = 1.5
        self.n_seen_ = len(X)
        return self

    def predict(self, X):
        return X @ self.slope_ + self.level_


class Halved(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X / 2


def test_a_step_that_learns_nothing_can_be_registered(registered):
    model = private(make_pipeline(Halved(), Ridge()))
    with pytest.raises(ValueError, match=r"skdp.register\(Halved, \[\]\)"):
        model.fit(X, y)
    register(Halved, [])
    assert is_stateless(Halved())
    assert list(model.fit(X, y).standard_errors_) == ["ridge__coef_", "ridge__intercept_"]


def test_registered_class_is_released_repaired_and_aligned(registered):
    class Choosy(Unknown):
        def __init__(self, flat=False):
            self.flat = flat

    def finish(released, public_fit):
        released.level_ = max(released.level_, 0.0)
        released.derived_ = 2 * released.level_

    def align(values, public_fit):
        sign = 1.0 if values["slope_"] @ public_fit.slope_ >= 0 else -1.0
        return values | {"slope_": sign * values["slope_"]}

    def attributes(model):
        return ("level_",) if model.flat else ("slope_", "level_")

    register(Choosy, attributes, finish=finish, align=align)
    assert lookup(Choosy(flat=True)).names(Choosy(flat=True)) == ("level_",)
    target = ParameterTarget(Choosy(), "auto", Choosy().fit(X, y))
    np.testing.assert_array_equal(target(X, -y, seed=0), target(X, y, seed=0))
    restored = target.restore(np.array([1.0, 2.0, 3.0, -4.0]))
    assert (restored.level_, restored.derived_) == (0.0, 0.0)
    np.testing.assert_array_equal(restored.slope_, [1.0, 2.0, 3.0])
    assert "Choosy" in {line.name for line in supported_estimators()}


@pytest.mark.parametrize(
    ("kind", "attributes", "error", "words"),
    [
        (Unknown(), ["slope_"], TypeError, "must be a class of estimators"),
        (PCA, ["components_"], ValueError, "must be a class of your own. Got PCA"),
        (TSNE, ["embedding_"], ValueError, "must be a class of your own. Got TSNE"),
    ],
)
def test_wrong_registrations_are_refused(kind, attributes, error, words):
    with pytest.raises(error, match=words):
        register(kind, attributes)
    assert Unknown not in CATALOG


def test_random_weights_that_differ_are_noticed():
    """Named attributes of a later step do not excuse an open seed of an earlier one."""
    pipeline = make_pipeline(RBFSampler(n_components=4), Ridge())
    target = ParameterTarget(pipeline, ["ridge__coef_"], pipeline.fit(X, y))
    with pytest.raises(ValueError, match="public random_weights_ differ"):
        target(X, y, seed=1)


def test_categories_that_differ_are_noticed():
    public, other = np.arange(40)[:, None] % 4, np.arange(40)[:, None] % 4 + 1
    pipeline = make_pipeline(OneHotEncoder(), Ridge())
    target = ParameterTarget(pipeline, "auto", clone(pipeline).fit(public, y))
    with pytest.raises(ValueError, match="unknown categories"):
        target(other, y, seed=0)
    with pytest.raises(ValueError, match="public categories_ differ"):
        target.flatten(clone(pipeline).fit(other, y))


def test_what_is_not_released_is_gone():
    """No stale attribute of the public fit stays, where it would pass for one of the private."""
    target = ParameterTarget(PCA(2), "auto", PCA(2).fit(X))
    restored = target.restore(target(X, seed=0))
    assert not hasattr(restored, "singular_values_")
    assert not hasattr(restored, "noise_variance_")
    np.testing.assert_array_equal(np.isnan(restored.explained_variance_), True)
    named = ["mean_", "components_", "explained_variance_"]
    target = ParameterTarget(PCA(2), named, PCA(2).fit(X))
    restored = target.restore(target(X, seed=0))
    assert not hasattr(restored, "singular_values_")
    np.testing.assert_allclose(restored.explained_variance_, PCA(2).fit(X).explained_variance_)
    classifier = LogisticRegression()
    assert not hasattr(_restored(classifier, labels), "n_iter_")
    assert not hasattr(_restored(MultinomialNB(), labels, np.abs(X)), "n_iter_")


def _restored(estimator, y, X=X):
    target = ParameterTarget(estimator, "auto", estimator.fit(X, y))
    return target.restore(target(X, y, seed=0))


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (LinearRegression(), 4),
        (KMeans(2, random_state=0), 2 * 3),
        (PCA(2), 3 * 3),
        (EmpiricalCovariance(), 3 * 6 / 2),
        (GaussianMixture(2, random_state=0), 2 + 2 * 3 + 2 * 6),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_of_the_table_are_those_released(estimator, expected):
    target = ParameterTarget(estimator, "auto", estimator.fit(X, y))
    arguments = (X, y) if isinstance(estimator, RegressorMixin) else (X,)
    assert len(target(*arguments, seed=0)) == expected


def test_a_released_scaler_goes_on_with_further_records():
    """It has seen as many records as the private fit, whose number is public."""
    scaler = StandardScaler()
    target = ParameterTarget(scaler, "auto", clone(scaler).fit(-X))
    released = target.restore(target(X, seed=0)).partial_fit(X + 5)
    np.testing.assert_allclose(released.mean_, scaler.fit(np.concatenate([X, X + 5])).mean_)
    np.testing.assert_allclose(released.var_, scaler.var_)


def test_centers_that_noise_hides_are_public():
    """A coordinate whose noise is larger than public centers are apart is the public one."""
    kmeans = KMeans(2, n_init=1, random_state=0)
    target = ParameterTarget(kmeans, "auto", clone(kmeans).fit(X))
    value, public = target(2 * X, seed=0), target.public_fit.cluster_centers_
    errors = np.tile([0.0, 1e6, 0.0], 2)
    restored = target.with_noise(None, 1.0, errors).restore(value).cluster_centers_
    exact = target.restore(value).cluster_centers_
    np.testing.assert_array_equal(restored[:, 1], public[:, 1])
    np.testing.assert_array_equal(restored[:, [0, 2]], exact[:, [0, 2]])
    assert (exact != public).all()
