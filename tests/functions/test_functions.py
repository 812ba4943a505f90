"""Functions on a lattice: what is evaluated, what is made of released values, what is refused."""

import copy

import numpy as np
import pandas as pd
import pytest
from scipy import sparse, stats
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_moons
from sklearn.ensemble import RandomForestRegressor
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.utils.validation import check_is_fitted

from skdp import (
    BernsteinTransformer,
    ExponentialMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    Target,
    UniformOracle,
    release,
)
from skdp.core.identity import key_of
from skdp.functions import BernsteinTarget, ReleasedClassifier, ReleasedDensity, ReleasedRegressor
from skdp.functions.fitted_function import FittedFunctionTarget
from skdp.functions.lattice import lattice_metric

MOONS, MOON_LABELS = make_moons(80, noise=0.2, random_state=0)
MOON_BOX = [(-3, 4), (-3, 3)]
IRIS, SPECIES = load_iris(return_X_y=True)
IRIS, IRIS_BOX = IRIS[:, 2:], [(0, 8), (0, 3)]
UNIT = np.random.default_rng(0).beta(2, 4, size=(60, 1))
KDE = KernelDensity(bandwidth=0.1)
IDENTITY = LaplaceMechanism(epsilon=1.0, code=None)  # needs no pilot pairs
NOISELESS = LaplaceMechanism(epsilon=np.inf, code=None)


def fitted(degree, order=1, box=(0, 1), n_features=1, **options):
    transformer = BernsteinTransformer(degree, order, feature_range=box, **options)
    return transformer.fit(np.zeros((1, n_features)))


def private(estimator, dataset, box, *, mechanism=NOISELESS, release=None, **options):
    """Fit privately; the oracle resamples the same records, since only mechanics are tested."""
    sampler = SensitivitySampler(
        PublicDataOracle(*copy.deepcopy(dataset)), gamma=0.2, n_pairs=9, random_state=0
    )
    release = BernsteinTransformer(6, 2, feature_range=box) if release is None else release
    options = {"sensitivity": sampler, "random_state": 0} | options
    model = PrivateEstimator(estimator, mechanism=mechanism, release=release, **options)
    return model.fit(*dataset)


def approximate(function, degree, order, box, points):
    """Evaluate the iterated Bernstein polynomial of a function, without the library's arithmetic.

    From the definition: the coefficients of order h are sum_{j < h} (I - M)^j v.
    """
    steps = np.arange(degree + 1) / degree
    unit = np.stack(np.meshgrid(*[steps] * len(box), indexing="ij"), -1).reshape(-1, len(box))
    low, high = np.transpose(box)

    def basis(u):
        q = np.rint(unit * degree).astype(int)
        return np.prod(stats.binom.pmf(q, degree, u[:, None, :]), axis=2)

    values = function(low + unit * (high - low))
    rest = np.eye(len(unit)) - basis(unit)
    coefficients = sum(np.linalg.matrix_power(rest, j) @ values for j in range(order))
    return basis((points - low) / (high - low)) @ coefficients


POINTS = np.random.default_rng(1).uniform(0.5, 2.5, size=(20, 2))


@pytest.mark.parametrize(
    ("estimator", "dataset", "box", "method", "kind"),
    [
        (SVC(), (MOONS, MOON_LABELS), MOON_BOX, "decision_function", ReleasedClassifier),
        (SVC(), (IRIS, SPECIES), IRIS_BOX, "decision_function", ReleasedClassifier),
        (SVR(), (MOONS, MOONS[:, 0]), MOON_BOX, "predict", ReleasedRegressor),
        (
            make_pipeline(StandardScaler(), SVC()),
            *((MOONS, MOON_LABELS), MOON_BOX, "decision_function", ReleasedClassifier),
        ),
    ],
    ids=["two classes", "three classes", "regression", "pipeline"],
)
def test_infinite_epsilon_gives_the_bernstein_approximation(estimator, dataset, box, method, kind):
    model = private(estimator, dataset, box)
    assert type(model.estimator_) is kind
    exact = getattr(clone(estimator).fit(*dataset), method)
    expected = approximate(exact, 6, 2, box, POINTS)
    np.testing.assert_allclose(getattr(model, method)(POINTS), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("order", [1, 3])
def test_infinite_epsilon_gives_the_approximate_density(order):
    """Order 1 keeps values above zero where they are; order 3 does not, and is repaired."""
    points, bernstein = np.linspace(0, 1, 30)[:, None], fitted(10, order)
    exact = np.exp(clone(KDE).fit(UNIT).score_samples(bernstein.lattice_))
    coefficients = bernstein.coefficients(exact)
    expected = bernstein.evaluate(coefficients, points) / exact.mean()
    if order == 3:
        assert expected.min() < 0
        expected = ReleasedDensity.from_coefficients(bernstein, coefficients).evaluate(points)
    released = private(KDE, (UNIT,), None, release=clone(bernstein))
    np.testing.assert_allclose(np.exp(released.score_samples(points)), expected, rtol=1e-9)


def test_fixed_seed_does_not_hide_the_last_record():
    """One tree that never draws the last position does not see that record, so it is moved about.

    With probability .63 a record is drawn; in 20 seeds it always or never is with chance 1e-4.
    """
    y = MOONS[:, 0]
    other = np.append(y[:-1], 100.0)
    for random_state in range(20):
        forest = RandomForestRegressor(1, random_state=random_state)
        if np.array_equal(*(clone(forest).fit(MOONS, z).predict(MOONS[:-1]) for z in (y, other))):
            break
    target = FittedFunctionTarget(
        forest, BernsteinTransformer(20, 1, feature_range=MOON_BOX), clone(forest).fit(MOONS, y)
    )
    values = [[target(MOONS, z, seed=seed) for z in (y, other)] for seed in range(20)]
    assert 0 < sum(np.any(first != second) for first, second in values) < 20
    np.testing.assert_array_equal(target(MOONS, y, seed=3), values[3][0])


@pytest.mark.parametrize("kind", [pd.DataFrame, sparse.csr_array])
def test_lattice_comes_in_the_container_of_the_data(kind):
    X = kind(MOONS) if kind is sparse.csr_array else kind(MOONS, columns=["east", "north"])
    estimator = SVC()
    model = private(estimator, (X, MOON_LABELS), MOON_BOX)
    expected = private(estimator, (MOONS, MOON_LABELS), MOON_BOX).decision_function(POINTS)
    points = POINTS if kind is sparse.csr_array else kind(POINTS, columns=["east", "north"])
    np.testing.assert_allclose(model.decision_function(points), expected, atol=1e-9)
    if kind is pd.DataFrame:
        assert model.feature_names_in_.tolist() == ["east", "north"]
        with pytest.raises(ValueError, match="feature names"):
            model.predict(points.rename(columns={"east": "west"}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("estimator", "dataset", "is_of_kind"),
    [
        (SVC(), (MOONS, MOON_LABELS), is_classifier),
        (SVR(), (MOONS, MOONS[:, 0]), is_regressor),
        (KernelDensity(), (MOONS,), None),
    ],
)
def test_released_estimators_are_estimators(estimator, dataset, is_of_kind):
    model = private(estimator, dataset, MOON_BOX)
    released = model.estimator_
    kinds = [each(released) for each in (is_classifier, is_regressor)]
    assert sum(kinds) == (is_of_kind is not None)
    assert is_of_kind is None or is_of_kind(released)
    check_is_fitted(released)
    assert clone(released) is released
    assert released.fit(MOONS, MOON_LABELS) is released
    assert (model.n_features_in_, hasattr(model, "feature_names_in_")) == (2, False)
    assert np.isfinite(model.score(*dataset))


def test_released_density_serves_as_an_oracle():
    model = private(KDE, (UNIT,), (0, 1), mechanism=IDENTITY)
    sampler = SensitivitySampler(model.estimator_, gamma=0.2, random_state=0)
    assert 0 < sampler.sample(np.mean, n_samples=50, geometry="l1").value < 1 / 50


def test_order_is_post_processing_and_the_degree_is_not():
    first = private(KDE, (UNIT,), None, release=BernsteinTransformer(6, 1, feature_range=(0, 1)))
    estimate = first.sensitivity_
    again = {"sensitivity": estimate}
    private(KDE, (UNIT,), None, release=BernsteinTransformer(6, 3, feature_range=(0, 1)), **again)
    for other in (
        BernsteinTransformer(7, feature_range=(0, 1)),
        BernsteinTransformer(6, feature_range=(0, 1.5)),
    ):
        with pytest.raises(ValueError, match="made for another target"):
            private(KDE, (UNIT,), None, release=other, **again)


@pytest.mark.parametrize("n_features", [1, 2])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_metric_is_the_mean_square_of_the_function(n_features, n_outputs):
    """v'Mv against quadrature that is exact for the degree, in a box of any size."""
    transformer = fitted(5, 3, [(2.0, 7.0)] * n_features, n_features)
    values = np.random.default_rng(0).normal(size=(6**n_features, n_outputs))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    mesh = np.stack(np.meshgrid(*[4.5 + 2.5 * nodes] * n_features), -1).reshape(-1, n_features)
    weight = weights / 2 if n_features == 1 else np.outer(weights, weights).ravel() / 4
    function = transformer.evaluate(transformer.coefficients(values), mesh)
    metric = lattice_metric(transformer, values.size).matrix
    v = values.ravel()
    assert v @ metric @ v == pytest.approx(weight @ np.sum(function**2, axis=1))
    # an order that values will choose is not known yet: it is that of a moderate one
    unknown = fitted(5, "auto", [(2.0, 7.0)] * n_features, n_features)
    np.testing.assert_array_equal(lattice_metric(unknown, values.size).matrix, metric)


def test_a_target_of_other_class_labels_has_another_key():
    """Weights of classes, of which each label has its own, move the function."""
    lattice = BernsteinTransformer(4, feature_range=MOON_BOX)
    keys = [
        key_of(FittedFunctionTarget(SVC(), lattice, SVC().fit(MOONS, labels)))
        for labels in (np.arange(len(MOONS)) % 2, np.arange(len(MOONS)) % 2 + 5)
    ]
    assert keys[0] != keys[1]


def share_below(X, points):
    return np.mean(X[:, 0] < points, axis=1)


def test_black_box_function():
    bernstein = BernsteinTransformer(12, 2, feature_range=(0, 1))
    target = BernsteinTarget(share_below, bernstein)
    released = release(target, UNIT, mechanism=NOISELESS, sensitivity=13 / 60).value
    points = np.linspace(0, 1, 9)[:, None]
    expected = approximate(lambda p: share_below(UNIT, p), 12, 2, [(0, 1)], points)
    np.testing.assert_allclose(released.predict(points), expected, atol=1e-12)


def weighted(X, y, points, random_state):
    rng = np.random.default_rng(random_state)
    return np.outer(points.sum(axis=1), [y.mean(), rng.uniform()])


def test_black_box_function_with_responses_seed_and_several_outputs():
    target = BernsteinTarget(weighted, BernsteinTransformer(2, 1, feature_range=[(0, 1), (0, 4)]))
    value = target(UNIT, np.ones(60), seed=3)
    assert value.shape == (9, 2)
    np.testing.assert_array_equal(value, target(UNIT, np.ones(60), seed=3))
    function = target.restore(value)
    np.testing.assert_allclose(function.predict([[0.5, 2.0]])[0], value[4])


@pytest.mark.loop(
    "function",
    [
        lambda points: 1.0,
        lambda points: points[:-1, 0],
        lambda points: np.zeros((len(points), 0)),
        lambda points: np.zeros((len(points), 2, 2)),
    ],
)
def test_wrong_shape_is_refused_before_private_data_is_seen(function):
    seen = []

    def witness(X, points):
        seen.append(X is UNIT)
        return function(points)

    sampler = SensitivitySampler(UniformOracle([(0, 1)]))
    with pytest.raises(ValueError, match=r"must return shape \(5,\) or \(5, n_outputs\)"):
        release(BernsteinTarget(witness, fitted(4)), UNIT, mechanism=IDENTITY, sensitivity=sampler)
    assert seen
    assert not any(seen)


def test_lattice_is_safe_from_the_function():
    largest = []

    def spoil(X, points):
        largest.append(points.max())
        points[:] = 7.0
        return X.mean() + np.zeros(len(points))

    target = BernsteinTarget(spoil, fitted(4))
    target(UNIT, seed=0)
    target(UNIT, seed=0)
    np.testing.assert_array_equal(target.transformer.lattice_, fitted(4).lattice_)
    assert set(largest) == {1.0}


@pytest.mark.loop(
    ("estimator", "dataset", "message"),
    [
        (KMeans(2), (MOONS,), "KMeans has no function"),
        (OneClassSVM(), (MOONS,), "Use release='predictions'"),
        (KNeighborsClassifier(), (MOONS, MOON_LABELS), "Use release='predictions'"),
        (
            SVC(decision_function_shape="ovo"),
            (np.repeat(MOONS, 2, axis=0), np.arange(160) % 4),
            "decision_function_shape='ovr'",
        ),
    ],
)
def test_what_cannot_be_released_is_refused(estimator, dataset, message):
    public_fit = clone(estimator).fit(*dataset)
    with pytest.raises(ValueError, match=message):
        FittedFunctionTarget(
            estimator, BernsteinTransformer(4, 1, feature_range=MOON_BOX), public_fit
        )


def test_what_is_no_function_on_a_lattice_is_refused():
    lattice = BernsteinTransformer(4, 1, feature_range=IRIS_BOX)
    target = FittedFunctionTarget(SVC(), lattice, SVC().fit(IRIS, SPECIES))
    with pytest.raises(ValueError, match="a class is missing"):
        target(IRIS[:100], SPECIES[:100], seed=0)
    with pytest.raises(TypeError, match="lattice of a BernsteinTransformer"):
        BernsteinTarget(share_below, StandardScaler())
    with pytest.raises(TypeError, match="must be a function"):
        BernsteinTarget("share_below", lattice)
    with pytest.raises(TypeError, match="has a method restore"):
        private(KDE, (UNIT,), None, release=Summary())
    with pytest.raises(ValueError, match="chooses one of several responses"):
        private(KDE, (UNIT,), (0, 1), mechanism=ExponentialMechanism(1.0))


class Summary(Target):
    description = "the mean"

    def __call__(self, *dataset, seed):
        return np.array(dataset[0].mean())


def test_number_of_variables_of_a_black_box_comes_from_the_box():
    for box, n_features in [((0, 1), 1), ([(0, 1)], 1), ([(0, 1), (2, 3), (4, 5)], 3)]:
        target = BernsteinTarget(share_below, BernsteinTransformer(2, feature_range=box))
        assert target.transformer.n_features_in_ == n_features
    assert BernsteinTarget(share_below, fitted(2, n_features=2)).transformer.n_features_in_ == 2


def test_a_box_that_most_records_of_the_oracle_miss_is_refused():
    """Of a density of values between 15 and 45 the unit interval holds the tail."""
    values = np.random.default_rng(0).uniform(15, 45, size=(50, 1))
    sampler = SensitivitySampler(PublicDataOracle(values.copy()), random_state=0)
    box = BernsteinTransformer(degree=4, feature_range=(0, 1), clip=True)
    model = PrivateEstimator(KDE, mechanism=NOISELESS, sensitivity=sampler, release=box)
    with pytest.raises(ValueError, match=r"Got \[\[0\.0, 1\.0\]\], which 100% of the oracle's"):
        model.fit(values)
    assert not hasattr(model, "estimator_")
    target, points = FittedFunctionTarget(KDE, box, clone(KDE).fit(values)), np.arange(4.0)[:, None]
    for container in (np.asarray, pd.DataFrame, sparse.csr_array):
        target.check_oracle(container(points))
        with pytest.raises(ValueError, match="which 75% of the oracle's records miss"):
            target.check_oracle(container(points + 0.5))
