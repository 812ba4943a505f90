"""The rules of the catalog: what it refuses, what third parties may add, what it tells."""

import ast
import functools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.cluster import DBSCAN, BisectingKMeans, KMeans
from sklearn.compose import make_column_transformer
from sklearn.covariance import EmpiricalCovariance
from sklearn.cross_decomposition import PLSSVD, PLSRegression
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (imported for its effect)
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.impute import IterativeImputer, MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.manifold import TSNE
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, LocalOutlierFactor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, PowerTransformer, StandardScaler, TargetEncoder
from sklearn.random_projection import SparseRandomProjection
from sklearn.svm import SVC, LinearSVC
from sklearn.utils import all_estimators

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    estimators,
    register,
    supported_estimators,
)
from skdp.estimators.catalog import CATALOG, is_stateless, lookup
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.repairs import (
    from_triangle,
    nearest_covariance,
    on_simplex,
    orthonormal,
    positive,
    triangle,
)
from skdp.estimators.catalog.table import (
    as_markdown,
    refused_as_markdown,
    refused_classes,
    released_classes,
)
from skdp.estimators.packing import is_float, same
from skdp.estimators.parameters import ParameterTarget
from skdp.preparation import check_release

# fits to few records
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

# Without what examples in the documentation register.
OWN = {
    kind: entry
    for kind, entry in released_classes().items()
    if kind.__module__.startswith("sklearn.")
}
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
        (TSNE(), "TSNE .* gives no function of new ones. Use PCA"),
        (DBSCAN(), "one label for each training record.* Use KMeans"),
        (LocalOutlierFactor(novelty=True), "training records themselves.*BernsteinTransformer"),
        (KNeighborsClassifier(), "training records themselves.*BernsteinTransformer"),
        (SVC(), "unless its kernel is 'linear'. Use LinearSVC"),
        (GaussianProcessRegressor(), "training records themselves"),
        (BisectingKMeans(2), "tree of splits .* private attribute. Use KMeans"),
        (PLSSVD(1), "transform in private attributes. Use PLSRegression"),
        (Nystroem("precomputed"), "a precomputed kernel has one column for each record"),
        (SelectKBest(), "which columns it selects.*FrozenEstimator"),
        (SimpleImputer(add_indicator=True), "which columns have missing values"),
        (IterativeImputer(), "the order of the columns depends on the data"),
        (MissingIndicator(), "learns which columns have missing values. Use features='all'"),
        (IterativeImputer(estimator=KNeighborsClassifier()), "imputes with KNeighborsClassifier"),
        (IterativeImputer(estimator=PLSRegression(1)), "imputes with PLSRegression"),
        (IterativeImputer(imputation_order="roman", sample_posterior=True), "sample_posterior"),
        (IterativeImputer(imputation_order="roman", n_nearest_features=2), "n_nearest_features"),
        (IterativeImputer(imputation_order="roman", add_indicator=True), "add_indicator"),
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


@pytest.mark.parametrize(
    "wrap",
    [
        lambda step: make_pipeline(step, Ridge()),
        lambda step: make_pipeline(make_pipeline(StandardScaler(), step), Ridge()),
        lambda step: make_pipeline(make_union(step, StandardScaler()), Ridge()),
        lambda step: make_pipeline(make_column_transformer((step, [0, 1])), Ridge()),
    ],
)
def test_step_that_only_predicts_is_refused_where_it_is_to_transform(wrap):
    """Else the budget would be spent on an estimator whose first output fails."""
    with pytest.raises(ValueError, match=r"as a step that transforms.*Make it the last step"):
        private(wrap(PLSRegression(1))).fit(X, y)
    model = private(make_pipeline(StandardScaler(), PLSRegression(1)))
    assert np.isfinite(model.fit(X, y).predict(X)).all()


@pytest.mark.parametrize(
    ("estimator", "missing", "names"),
    [
        (PCA(2), {"score_samples", "score"}, ["mean_", "components_", "explained_variance_"]),
        (LinearDiscriminantAnalysis(), {"transform", "fit_transform"}, ["xbar_", "scalings_"]),
        (PLSRegression(1), {"transform", "inverse_transform"}, None),
    ],
)
def test_methods_that_need_more_than_is_released_are_not_there(estimator, missing, names):
    """Before the fit and after it, also as the last step; they come with named attributes."""
    target = labels if isinstance(estimator, LinearDiscriminantAnalysis) else y
    classes = [0, 1] if target is labels else None
    for wrapped in (estimator, make_pipeline(StandardScaler(), estimator)):
        model = private(wrapped, classes=classes)
        for candidate in (model, clone(model).fit(X, target)):
            for method in missing:
                assert not hasattr(candidate, method)
                with pytest.raises(AttributeError) as caught:
                    getattr(candidate, method)
                assert "needs more than release='auto'" in str(caught.value.__cause__)
    if names is not None:
        names += ["noise_variance_"] * isinstance(estimator, PCA)
        model = private(estimator, classes=classes, release=names).fit(X, target)
        assert all(hasattr(model, method) for method in missing)
        output = model.score_samples(X) if isinstance(estimator, PCA) else model.transform(X)
        assert np.isfinite(output).all()


def test_attributes_named_by_the_user_are_not_refused():
    model = private(PowerTransformer(), release=["lambdas_"]).fit(X)
    assert model.estimator_.lambdas_.shape == (3,)


def test_a_gaussian_process_is_not_taken_for_stateless():
    """It can predict without a fit, and scikit-learn's tag says so, but a fit teaches it."""
    assert not is_stateless(GaussianProcessRegressor())


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


def test_unknown_estimator_is_told_the_line_to_write():
    with pytest.raises(ValueError, match=r"does not know .*Unknown") as caught:
        private(make_pipeline(PCA(2), Unknown())).fit(X, y)
    text = str(caught.value)
    assert "slope_ of shape (2,), knots_ of shape [(2,), (1, 3)], level_ of shape ()" in text
    assert "release=['unknown__slope_', 'unknown__knots_', 'unknown__level_']" in text
    assert "skdp.register(Unknown, ['slope_', 'knots_', 'level_'])" in text
    assert "ragged_" not in text
    assert "n_seen_" not in text


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


def test_the_line_to_write_works():
    names = ["unknown__slope_", "unknown__level_"]
    model = private(make_pipeline(Unknown()), release=names).fit(X, y)
    assert np.isfinite(model.predict(X)).all()


def test_registered_class_is_released_repaired_and_aligned(registered):
    def finish(released, public_fit):
        released.level_ = max(released.level_, 0.0)
        released.derived_ = 2 * released.level_

    def align(values, public_fit):
        sign = 1.0 if values["slope_"] @ public_fit.slope_ >= 0 else -1.0
        return values | {"slope_": sign * values["slope_"]}

    register(Unknown, ["slope_", "level_"], finish=finish, align=align)
    target = ParameterTarget(Unknown(), "auto", Unknown().fit(X, y))
    np.testing.assert_array_equal(target(X, -y, seed=0), target(X, y, seed=0))
    restored = target.restore(np.array([1.0, 2.0, 3.0, -4.0]))
    assert (restored.level_, restored.derived_) == (0.0, 0.0)
    np.testing.assert_array_equal(restored.slope_, [1.0, 2.0, 3.0])
    assert "Unknown" in {line.name for line in supported_estimators()}
    sampler = SensitivitySampler(
        PublicDataOracle(X.copy(), y.copy()), gamma=0.25, n_pairs=3, random_state=0
    )
    assert private(Unknown(), sensitivity=sampler).fit(X, y).predict(X).shape == (40,)


def test_attributes_may_depend_on_the_configuration(registered):
    class Choosy(Unknown):
        def __init__(self, flat):
            self.flat = flat

    register(Choosy, lambda model: ("level_",) if model.flat else ("slope_", "level_"))
    assert lookup(Choosy(flat=True)).names(Choosy(flat=True)) == ("level_",)
    public_fit = Choosy(flat=False).fit(X, y)
    assert ParameterTarget(Choosy(flat=False), "auto", public_fit).names == ("slope_", "level_")
    assert ("Choosy", "", ()) in [line[:3] for line in supported_estimators()]


def test_one_attribute_may_be_a_string(registered):
    register(Unknown, "slope_")
    assert lookup(Unknown()).names(Unknown()) == ("slope_",)


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
    encoder = TargetEncoder()
    target = ParameterTarget(encoder, "auto", clone(encoder).fit(public, y))
    with pytest.raises(ValueError, match="categories"):
        target.flatten(clone(encoder).fit(other, y))


def test_rounds_of_imputation_that_differ_are_noticed():
    imputer = IterativeImputer(imputation_order="roman", max_iter=2, tol=0.0)
    complete, gaps = X.copy(), X.copy()
    complete[0, 0] = gaps[0, 0] = gaps[1, 1] = np.nan
    target = ParameterTarget(imputer, "auto", imputer.set_params(skip_complete=True).fit(complete))
    with pytest.raises(ValueError, match="rounds of imputation differ"):
        target(gaps, seed=0)


def test_derived_attribute_named_by_the_user_is_what_he_gets():
    public_fit = EmpiricalCovariance().fit(X)
    target = ParameterTarget(EmpiricalCovariance(), ["precision_"], public_fit)
    vector = target(X[:20], seed=0) + 1
    np.testing.assert_array_equal(target.restore(vector).precision_.ravel(), vector)
    np.testing.assert_allclose(target.restore(vector).covariance_, public_fit.covariance_)


def test_symmetric_matrices_are_released_once():
    mixture = GaussianMixture(2, random_state=0)
    target = ParameterTarget(mixture, "auto", mixture.fit(X))
    assert target(X, seed=0).shape == (2 + 2 * 3 + 2 * 6,)
    covariance = EmpiricalCovariance()
    target = ParameterTarget(covariance, "auto", covariance.fit(X))
    assert target(X, seed=0).shape == (3 + 6,)


def test_what_is_not_released_is_gone():
    """No stale attribute of the public fit stays, where it would pass for one of the private."""
    target = ParameterTarget(PCA(2), "auto", PCA(2).fit(X))
    restored = target.restore(target(X, seed=0))
    assert not hasattr(restored, "singular_values_")
    assert not hasattr(restored, "noise_variance_")
    np.testing.assert_array_equal(np.isnan(restored.explained_variance_), True)
    classifier = LogisticRegression()
    assert not hasattr(_restored(classifier, labels), "n_iter_")
    assert not hasattr(_restored(MultinomialNB(), labels, np.abs(X)), "n_iter_")


def _restored(estimator, y, X=X):
    target = ParameterTarget(estimator, "auto", estimator.fit(X, y))
    return target.restore(target(X, y, seed=0))


@pytest.mark.parametrize("release", ["auto", ["coef_"]])
def test_what_is_frozen_as_a_whole_has_no_release(release):
    with pytest.raises(ValueError, match=r"nothing to release.* stays as it was fitted"):
        check_release(FrozenEstimator(LinearSVC()), release)


def test_pipeline_of_nothing_to_learn_but_public_structure_is_refused():
    with pytest.raises(ValueError, match="nothing to release"):
        private(RBFSampler(random_state=0)).fit(X)


def test_simplex_projection_is_the_nearest_point():
    """Against a solver that knows nothing of the formula."""
    for seed in range(5):
        values = np.random.default_rng(seed).normal(scale=0.5, size=4)
        solved = optimize.minimize(
            lambda point, values=values: np.sum((point - values) ** 2),
            np.full(4, 0.25),
            bounds=[(0, 1)] * 4,
            constraints={"type": "eq", "fun": lambda point: point.sum() - 1},
            tol=1e-12,
        )
        np.testing.assert_allclose(on_simplex(values), solved.x, atol=1e-5)
    inside = np.array([0.25, 0.75])
    assert on_simplex(inside) is inside


def test_repairs_leave_good_values_alone_and_mend_bad_ones():
    good = np.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_array_equal(nearest_covariance(good, np.eye(2)), good)
    bad = np.array([[1.0, 0.0], [0.0, -3.0]])
    np.testing.assert_allclose(nearest_covariance(bad, np.diag([4.0, 2.0])), np.diag([1.0, 2.0]))
    np.testing.assert_allclose(nearest_covariance(bad, np.zeros((2, 2))), np.eye(2))
    np.testing.assert_array_equal(positive([1.0, -1.0, 0.0], 5.0), [1.0, 5.0, 5.0])
    rows = orthonormal(RNG.normal(size=(2, 4)))
    np.testing.assert_allclose(rows @ rows.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(orthonormal(rows), rows)
    np.testing.assert_array_equal(from_triangle(triangle(good)), good)


@pytest.mark.loop(
    ("value", "expected"),
    [
        (1.5, True),
        (np.float32(1.0), True),
        ([np.ones(2), np.ones((2, 2))], True),
        (np.array([np.ones(1), np.ones(2)], dtype=object), True),
        ([], False),
        (1, False),
        (None, False),
        (["a"], False),
        ([[1.0], [1.0, 2.0]], True),
        ([[[1.0], [1.0, 2.0]]], False),
    ],
)
def test_floats_are_recognized(value, expected):
    assert is_float(value) == expected


def test_equality_looks_inside_lists_and_takes_missing_for_equal():
    assert same([np.array(["a", np.nan], dtype=object)], [np.array(["a", np.nan], dtype=object)])
    assert not same([np.arange(2)], [np.arange(3)])
    assert not same(np.arange(2), np.arange(3))
    assert not same(["a"], ["b"])


def test_table_says_what_is_released():
    names = {kind.__name__ for kind in OWN}
    lines = {line.name: line for line in supported_estimators() if line.name in names}
    assert len(lines) == len(names) >= 90
    assert list(lines) == sorted(lines, key=str.lower)
    assert lines["KMeans"] == ("KMeans", "clusterer", ("cluster_centers_",), "k d")
    assert lines["GaussianMixture"].kind == "density"
    assert lines["PCA"].kind == "transformer"
    assert lines["OneHotEncoder"].released == ()
    assert all(line.numbers for line in lines.values())
    assert "| KMeans | clusterer | `cluster_centers_` | k d |" in as_markdown()
    assert "| OneHotEncoder | transformer | nothing | 0 |" in as_markdown()
    assert len(refused_as_markdown().splitlines()) == len(refused_classes()) + 2


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (LinearRegression(), 4),
        (KMeans(2, random_state=0), 2 * 3),
        (PCA(2), 3 * 3),
        (EmpiricalCovariance(), 3 * 6 / 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_numbers_of_the_table_are_those_released(estimator, expected):
    target = ParameterTarget(estimator, "auto", estimator.fit(X, y))
    arguments = (X, y) if isinstance(estimator, RegressorMixin) else (X,)
    assert len(target(*arguments, seed=0)) == expected


def test_entries_can_be_sent_to_workers():
    """A worker process has a catalog of its own, without what was registered here."""
    import pickle

    for entry in OWN.values():
        assert pickle.loads(pickle.dumps(entry)) == entry


# Classes that others derive from, or are made of.
DERIVED_FROM = {"LinearDiscriminantAnalysis": 2, "PowerTransformer": 2, "StandardScaler": 2}
DERIVED_FROM |= {"NuSVC": 2, "NuSVR": 2, "SVC": 2, "SVR": 2}


@functools.cache
def estimator_names():
    return {name for name, _ in all_estimators()}


def named_in(source):
    """The estimators that a module names in strings of names, prose apart, and imports."""
    known = estimator_names()
    for node in ast.walk(ast.parse(source)):
        words = []
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value.split()
            if len(words) > 1 and words[0].startswith("sklearn."):
                del words[0]  # the module of the others
            words = [word.rpartition(".")[2] for word in words]
        elif isinstance(node, ast.ImportFrom):
            words = [alias.name for alias in node.names if alias.name in known]
        if words and known.issuperset(words):
            yield from words


def test_every_class_is_named_in_one_place():
    """A new class is one entry in one file; a second place would be forgotten."""
    places = Counter()
    for path in Path(estimators.__file__).parent.rglob("*.py"):
        places.update(named_in(path.read_text()))
    assert {name: count for name, count in places.items() if count > 1} == DERIVED_FROM


def test_a_second_place_is_found():
    lines = ('A = "sklearn.svm.SVC"', "{'sklearn.svm SVC SVR': 1}", "case = {'SVC': 1}")
    assert Counter(name for line in lines for name in named_in(line)) == {"SVC": 3, "SVR": 1}
    assert list(named_in("from sklearn.svm import SVC")) == ["SVC"]
    assert list(named_in('"Use SVC"')) == []


def test_an_entry_without_alignment_does_not_depend_on_the_public_fit():
    assert not Entry(lambda estimator: ()).depends_on_public_fit
    assert CATALOG[PCA].depends_on_public_fit
