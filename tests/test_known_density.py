"""A kernel density on a lattice has a bound on paper, which no record exceeds."""

import math
from contextlib import nullcontext
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import Ridge
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from skdp import (
    BernsteinTransformer,
    ClipBox,
    ClipNorm,
    GaussianMechanism,
    LaplaceMechanism,
    PrivateEstimator,
)
from skdp.functions import ReleasedDensity
from skdp.functions.known_density import KnownDensityTarget

UNIT = np.array([[0.0, 0.0], [1.0, 1.0], [0.2, 0.7]])


def private(estimator, degree=10, epsilon=np.inf, **others):
    release = BernsteinTransformer(degree, feature_range=(0, 1))
    settings = {"mechanism": LaplaceMechanism(epsilon), "sensitivity": "known", "release": release}
    return PrivateEstimator(estimator, **settings | others)


def test_without_noise_it_is_the_density():
    X = np.random.default_rng(0).uniform(-0.2, 1.2, size=(70, 2))
    estimator = KernelDensity(bandwidth=0.3)
    plan = private(estimator, 4).plan(70, like=X)
    expected = np.exp(estimator.fit(X).score_samples(plan.target.transformer.lattice_))
    np.testing.assert_allclose(plan.target(X, seed=0), expected, rtol=1e-9, atol=1e-12)


# narrow on purpose
@pytest.mark.filterwarnings("ignore:The bandwidth of KernelDensity.* is far below")
@pytest.mark.parametrize(
    ("unit", "degree", "bandwidth", "word"),
    [
        (1, 20, 0.05, None),
        (100, 20, 0.05, r"integral of 0\.00.*units"),  # of the box
        (1 / 90, 30, 0.5, r"integral of 0\.4.*units"),  # hours for days: half of each kernel
        (0.0, 10, 0.01, "narrower"),  # kernels between the points
    ],
)
def test_who_gives_the_box_in_another_unit_is_told_so(unit, degree, bandwidth, word, tmp_path):
    """Nothing else tells a density of noise from that of the records."""
    X = unit * np.random.default_rng(0).beta(3, 5, size=(2000, 1)) + 0.5 * (unit == 0)
    model = private(KernelDensity(bandwidth=bandwidth), degree, 10.0, random_state=0)
    with pytest.warns(UserWarning, match=word) if word else nullcontext():
        model.fit(X)
    model.save(tmp_path / "density")
    for text in (str(model.summary()), (tmp_path / "density" / "README.md").read_text()):
        assert ("bandwidth have the units" in text) == (word is not None)


# what is warned of first is another thing
# narrow on purpose
@pytest.mark.filterwarnings("ignore:The bandwidth of KernelDensity.* is far below")
def test_a_density_that_is_nowhere_positive_is_said_to_be_uniform():
    X = np.full((50, 1), 100.0)
    model = private(KernelDensity(bandwidth=0.05), 2)
    with pytest.warns(UserWarning, match=r"integral of 0 on its box, and is uniform now"):
        model.fit(X)
    assert not model.summary().values.any()
    assert "nowhere above 0" in model.summary().remark


def test_it_is_released_with_a_plain_promise_whatever_the_records_are():
    rng = np.random.default_rng(0)
    X = rng.beta(3, 5, size=(2000, 1))
    X[:5] = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300])[:, None]
    for mechanism in (LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-6)):
        model = private(KernelDensity(bandwidth=0.1), mechanism=mechanism, random_state=0).fit(X)
        assert model.guarantee_.gamma == 0
        assert "known on paper" in str(model.guarantee_)
        assert isinstance(model.estimator_, ReleasedDensity)
        density = np.exp(model.score_samples([[0.05], [0.4], [0.95]]))
        assert density[1] > 2 * density[[0, 2]].max()


def target_of(bandwidth, n_samples=1, degree=8, box=(0, 1), n_features=1):
    """The target of a density without the rest of a plan."""
    estimator = KernelDensity(bandwidth=bandwidth)
    fitted = estimator.fit(np.full((1, n_features), float(box[0])))
    bernstein = BernsteinTransformer(degree, feature_range=box)
    return KnownDensityTarget(estimator, bernstein, fitted, n_samples=n_samples)


def test_records_far_off_the_box_are_as_nothing():
    target = target_of(0.1, n_samples=2, degree=3)
    for far in (np.inf, -np.inf, 1e300, -1e160):
        value = target(np.array([[far], [0.4]]), seed=0)
        np.testing.assert_allclose(value, target(np.array([[9.0], [0.4]]), seed=0), atol=1e-12)


@pytest.mark.parametrize("n_features", [1, 2])
def test_no_record_exceeds_the_bound(n_features):
    """It is attained where the box is wide and two records are far apart."""
    rng = np.random.default_rng(0)
    special = [[each] * n_features for each in (1e9, 0.25, 0.75)]
    for bandwidth in (0.03, 0.2, 3.0):
        target = target_of(bandwidth, n_features=n_features)
        edges = rng.integers(0, 9, size=(6, n_features)) / 8
        X = np.vstack([edges, rng.uniform(-0.3, 1.3, size=(12, n_features)), special])
        values = np.array([target(x[None], seed=0) for x in X])
        for order in (1, 2):
            reached = max(np.linalg.norm(a - b, ord=order) for a, b in combinations(values, 2))
            assert reached <= target.bound(order)
            assert bandwidth > 0.03 or reached >= 0.95 * target.bound(order)


def test_points_that_rounding_brings_together_are_counted():
    low, high = 1e9, 1e9 + 1e-6
    target = target_of(2.5e-9, degree=40, box=(low, high))
    nearer, farther = (target(np.array([[x]]), seed=0) for x in (low + 2e-7, low - 1.0))
    for order in (1, 2):
        assert np.linalg.norm(nearer - farther, ord=order) <= target.bound(order)


# its bound is that of one point: a kernel that reaches no other
# narrow on purpose
@pytest.mark.filterwarnings("ignore:The bandwidth of KernelDensity.* is far below")
def test_the_bound_falls_with_the_number_of_records():
    estimator = KernelDensity(bandwidth=0.03)
    values = [
        private(estimator).plan(n, like=np.zeros((3, 1))).sensitivity.value for n in (10, 1000)
    ]
    assert values[0] == pytest.approx(100 * values[1])
    assert values[1] == pytest.approx(2 / (0.03 * math.sqrt(2 * math.pi)) / 1000, rel=0.01)


@pytest.mark.loop(
    ("estimator", "word"),
    [
        (Ridge(), "KernelDensity"),
        (make_pipeline(FrozenEstimator(PCA(1).fit(UNIT)), KernelDensity()), "column by column"),
        (make_pipeline(StandardScaler(), KernelDensity()), "private"),
        (KernelDensity(bandwidth="scott"), "number"),
        (KernelDensity(bandwidth=3.4e160), "resolve"),
        (KernelDensity(rtol=0.1), "tolerance"),
        (KernelDensity(metric="manhattan"), "Euclidean"),
        (KernelDensity(kernel="tophat"), "gaussian"),
    ],
)
def test_what_has_no_bound_is_refused(estimator, word):
    X = np.zeros((20, 2))
    with pytest.raises(ValueError, match=word):
        private(estimator).plan(20, like=(X, X[:, 0]))


def test_frozen_scalers_may_stand_in_front():
    """The lattice is in the units of the data, and the bound that of the scaled one."""
    box = np.array([[0.0, 10.0], [2.0, 3.0]])
    X = np.random.default_rng(0).uniform(*box.T, size=(50, 2))
    scale = FrozenEstimator(MinMaxScaler().fit(box.T))
    bernstein = BernsteinTransformer(6, feature_range=box)
    density = KernelDensity(bandwidth=0.1)
    piped = make_pipeline(scale, density)
    target = private(piped, release=bernstein).plan(50, like=X).target
    expected = np.exp(piped.fit(X).score_samples(target.transformer.lattice_)) / 10  # the area
    np.testing.assert_allclose(target(X, seed=0), expected, rtol=1e-9, atol=1e-12)
    unit = BernsteinTransformer(6, feature_range=(0, 1))
    scaled = KnownDensityTarget(density, unit, density.fit(UNIT), n_samples=50)
    assert target.bound(1) == pytest.approx(scaled.bound(1) / 10)
    X[:3] = np.array([np.nan, np.inf, -1e300])[:, None]
    names = ["age", "size"]
    named = FrozenEstimator(MinMaxScaler().fit(pd.DataFrame(box.T, columns=names)))
    model = private(make_pipeline(named, KernelDensity(bandwidth=0.1)), release=bernstein)
    table = pd.DataFrame(X, columns=names)
    assert np.isfinite(model.fit(table).score_samples(table[3:])).all()


@pytest.mark.parametrize("n_samples", [200, 20_000])
def test_a_bandwidth_far_below_the_spacing_is_pointed_out(n_samples):
    """Where few records are near a point, and the density is rough; a third is the limit."""
    for bandwidth, is_far in ((1e-4, True), (0.033, True), (0.034, False)):
        model = private(KernelDensity(bandwidth=bandwidth))
        with pytest.warns(UserWarning, match="far below") if is_far else nullcontext([]) as record:
            model.plan(n_samples, like=np.array([[0.5]]))
        assert [each.filename for each in record] == [__file__] * is_far


def test_a_record_that_a_step_takes_does_not_move_those_that_it_refuses():
    """Where a step refused all, they were zeros of another precision than beside one it takes."""
    public = np.linspace(1, 1 + 1e-12, 50)[:, None]
    steps = [FrozenEstimator(each.fit(public)) for each in (StandardScaler(), MinMaxScaler())]
    estimator = make_pipeline(*steps, KernelDensity(bandwidth=0.5)).fit(public)
    refused = np.full((20, 1), np.inf, dtype=np.float32)
    neighbor = np.vstack([refused[1:], np.ones((1, 1), dtype=np.float32)])
    bernstein = BernsteinTransformer(2, feature_range=(1, 1 + 1e-12))
    target = KnownDensityTarget(estimator, bernstein, estimator, n_samples=20, X=refused)
    moved = np.abs(target(refused, seed=0) - target(neighbor, seed=0)).sum()
    assert moved <= target.bound(1)


CLIPS = [ClipBox(0, 1), FrozenEstimator(MinMaxScaler().fit([[0.0], [1.0]])), ClipBox(0, 1)]


@pytest.mark.loop("steps", [[], [ClipBox(0, 1)], [ClipNorm(1.0)], CLIPS])
@pytest.mark.loop("container", [np.asarray, lambda X: pd.DataFrame(X).set_axis(["a"], axis=1)])
def test_incomplete_records_are_left_out(steps, container):
    """A clip makes them 0 elsewhere, and here they would be a peak that nobody is in."""
    complete = np.random.default_rng(0).beta(3, 5, size=(40, 1))
    X = np.insert(complete, [0, 7, 40, 40], np.nan, axis=0)
    model = private(make_pipeline(*steps, KernelDensity(bandwidth=0.1)))
    some, all_of_them = (
        model.plan(len(each), like=container(each)).target(container(each), seed=0)
        for each in (X, complete)
    )
    np.testing.assert_allclose(44 * some, 40 * all_of_them, rtol=1e-12, atol=1e-12)
    target = model.plan(40, like=container(complete)).target
    for before in (0.5, 0.0, np.inf):  # a record that comes to lack a number
        complete[0] = before
        exact = target(container(complete), seed=0)
        complete[0] = np.nan
        moved = target(container(complete), seed=0) - exact
        for order in (1, 2):
            assert np.linalg.norm(moved, order) <= target.bound(order)


def test_a_gap_in_any_column_or_in_a_sparse_record_is_one():
    complete = np.random.default_rng(0).uniform(size=(40, 2))
    X = np.vstack([complete, [[np.nan, 0.0], [0.5, np.nan], [np.nan, np.nan]]])
    shift = FrozenEstimator(PCA(1).fit([[1.0], [2.0], [4.0]]))
    thin = sparse.csr_array([[0.5], [np.nan], [0.0], [0.25]])
    for model, some, whole in (
        (KernelDensity(bandwidth=0.2), X, complete),
        (make_pipeline(ClipBox(0, 1), shift, KernelDensity()), thin, thin[[0, 2, 3]]),
    ):
        n, n_whole = some.shape[0], whole.shape[0]
        target = private(model, 4).plan(n, like=some).target
        expected = n_whole * target(whole, seed=0)
        np.testing.assert_allclose(n * target(some, seed=0), expected, rtol=1e-12)


def test_gaps_that_a_public_step_fills_are_none():
    imputer = SimpleImputer(strategy="constant", fill_value=0.5)
    X, filled = np.array([[0.1], [np.nan], [0.9]]), np.array([[0.1], [0.5], [0.9]])
    for steps in ([], [ClipBox(0, 1)]):
        model = private(make_pipeline(imputer, *steps, KernelDensity(bandwidth=0.1)))
        target = model.plan(3, like=X).target
        np.testing.assert_array_equal(target(X, seed=0), target(filled, seed=0))
    said = " ".join(str(model.plan(3, like=X)).split())
    assert "missing numbers that no step fills" in said
