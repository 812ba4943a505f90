"""Pairs of two records: the norms of two calls, for functions that are sums over the records."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skdp import BernsteinTransformer, PublicDataOracle, SensitivitySampler, Target, UniformOracle
from skdp.core.dataset import as_dataset, neighboring_pair
from skdp.core.target import FunctionTarget, values_of
from skdp.estimators.parameters import ParameterTarget
from skdp.estimators.trees import LeafTarget
from skdp.functions import AdditiveTarget
from skdp.functions.fitted_function import FittedFunctionTarget

N = 60


class RefitsOnly(Target):
    """The same target without its closed form."""

    def __init__(self, target):
        self.description = target.description
        self.target = target

    def __call__(self, *dataset, seed):
        return self.target(*dataset, seed=seed)


def norms(target, oracle, n_pairs=8, n_samples=N, geometry="l1", **options):
    sampler = SensitivitySampler(oracle, gamma=None, n_pairs=n_pairs, random_state=1, **options)
    return sampler.sample(target, n_samples, geometry)


def assert_rows_are_those_of_calls(target, *records):
    """The rows of n records add up to a call, and give the difference of a pair, to 1e-8."""
    rows = target.closed_form(*records)
    value, other = values_of(target, neighboring_pair(as_dataset(records)), seed=0)
    each = rows(*records)
    np.testing.assert_allclose(each[:-1].sum(axis=0), value, rtol=1e-8, atol=1e-12)
    difference = value - other
    np.testing.assert_allclose(
        each[-2] - each[-1], difference, rtol=0, atol=1e-8 * np.abs(difference).max() + 1e-14
    )


def phi(X):
    """Powers of a column: a row of two per record."""
    return np.column_stack([X[:, 0], X[:, 0] ** 2])


def dataset_level(n_samples, rng):
    """Records around a center of their own: not independent."""
    return rng.normal(size=(1, 1)) + rng.normal(size=(n_samples, 1))


@pytest.mark.parametrize("n_rows", [1024, 7])
def test_two_records_make_a_pair_of_an_additive_target(n_rows, monkeypatch):
    """Against the formula, from the documented streams, in slices of a block too."""
    monkeypatch.setattr("skdp.sensitivity.pairs.MAX_BATCH", 2 * n_rows)
    oracle = UniformOracle([(0, 1)])
    estimate = norms(AdditiveTarget(phi), oracle, n_pairs=1500, n_samples=10, clip=None)
    blocks = []
    for block in range(2):
        stream = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(block, 3)))
        stream.integers(2**31)
        first, second = np.split(phi(oracle(2048, stream)), 2)
        blocks.append(np.abs(first - second).sum(axis=1) / 10)
    np.testing.assert_allclose(estimate.norms, np.concatenate(blocks)[:1500], rtol=1e-9)
    assert estimate.shape == (2,)


def test_additive_norms_have_the_distribution_of_refits():
    """Two-sample Kolmogorov-Smirnov at level 1e-3; power above .99 against a factor of 1.2."""
    oracle = stats.norm()
    fast = norms(AdditiveTarget(phi), oracle, n_pairs=2000, n_samples=5).norms
    slow = norms(RefitsOnly(AdditiveTarget(phi)), oracle, n_pairs=2000, n_samples=5).norms
    assert stats.ks_2samp(fast, slow).pvalue > 1e-3
    assert stats.ks_2samp(1.2 * fast, slow).pvalue < 1e-3


def test_dataset_level_oracle_is_asked_for_whole_datasets():
    sizes = []

    def oracle(n_samples, rng):
        sizes.append(n_samples)
        return dataset_level(n_samples, rng)

    closed = norms(AdditiveTarget(phi), oracle, n_pairs=20)
    assert set(sizes) == {N + 1}
    expected = norms(RefitsOnly(AdditiveTarget(phi)), dataset_level, n_pairs=20)
    np.testing.assert_allclose(closed.norms, expected.norms, rtol=1e-8)

    oracle.independent_records = True  # a wrong claim: the centers of the two records differ
    sizes.clear()
    wrong = norms(AdditiveTarget(phi), oracle, n_pairs=20)
    assert set(sizes) == {N + 1, 2048}
    assert not np.allclose(wrong.norms, expected.norms)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_additive_pairs_depend_on_seed_and_number_only(n_jobs, monkeypatch):
    oracle = UniformOracle([(0, 1)])
    few = norms(AdditiveTarget(phi), oracle, n_pairs=30, n_jobs=n_jobs).norms
    many = norms(AdditiveTarget(phi), oracle, n_pairs=9000, n_jobs=n_jobs).norms
    monkeypatch.setattr("skdp.sensitivity.execution.CHUNK_SECONDS", 0.0)
    np.testing.assert_array_equal(few, many[:30])
    again = norms(AdditiveTarget(phi), oracle, n_pairs=9000).norms
    np.testing.assert_array_equal(many, again)


def test_an_additive_target_is_the_mean_of_its_rows():
    X = np.array([[1.0], [3.0]])
    np.testing.assert_array_equal(AdditiveTarget(phi)(X), [2.0, 5.0])
    target = AdditiveTarget(lambda X, y: X[:, 0] * y)
    np.testing.assert_array_equal(target(X, np.array([2.0, 4.0]), seed=5), 7.0)
    records = np.random.default_rng(0).normal(size=(N + 1, 2))
    assert_rows_are_those_of_calls(AdditiveTarget(phi), records)
    assert_rows_are_those_of_calls(AdditiveTarget(lambda X: X[:, 0]), records)
    with pytest.raises(ValueError, match=r"one row for each record, shape \(2, ...\)"):
        AdditiveTarget(np.mean)(np.ones((2, 1)))
    with pytest.raises(TypeError, match="must be a function"):
        AdditiveTarget(3)


def test_rows_that_are_not_finite_fail_alone():
    def broken(X):
        return np.where(X[:, 0] < 0.1, np.nan, X[:, 0])

    estimate = norms(AdditiveTarget(broken), UniformOracle([(0, 1)]), n_pairs=500)
    failed = np.isinf(estimate.norms).mean()
    assert 0.1 < failed < 0.3  # 1 - .9^2 = .19
    assert list(estimate.failures) == ["the value is not finite"]


@pytest.mark.parametrize(
    "phi",
    [
        lambda X: X - X.mean(axis=0),
        lambda X: np.cumsum(X, axis=0) / len(X),
        lambda X: X * (np.arange(len(X)) < 10)[:, None],
        lambda X: X * len(X),
    ],
    ids=["centered", "cumulative", "first", "scaled"],
)
def test_rows_that_depend_on_other_records_are_refused(phi):
    """By their moments a cumulative sum was measured 200 times too small."""
    for oracle in (UniformOracle([(0, 1)] * 2), PublicDataOracle(np.arange(80.0).reshape(40, 2))):
        sampler = SensitivitySampler(oracle, n_pairs=39, random_state=0)
        with pytest.raises(ValueError, match=r"'phi' .* must treat each record by itself"):
            sampler.sample(AdditiveTarget(phi), 50, "l1")


@pytest.mark.parametrize("value", [1e10, 1e17])
def test_an_outlier_in_the_first_draw_swallows_no_difference(value):
    """The value that all pairs share is typical, though one record is not."""

    class Oracle:
        independent_records = True

        def __init__(self, outlier):
            self.outlier, self.is_first = outlier, True

        def __call__(self, n_samples, rng):
            X = rng.normal(3.0, 1.0, size=(n_samples, 1))
            if n_samples == N + 1:
                X[7] = self.outlier
            return X

    found, expected = (norms(AdditiveTarget(lambda X: X), Oracle(each)) for each in (value, 3.0))
    np.testing.assert_allclose(found.norms, expected.norms, rtol=1e-8)


# Sums over the leaves of public trees


def leaf_target(model):
    rng = np.random.default_rng(0)
    X, y = rng.integers(10, size=(80, 3)) + rng.random((80, 3)), rng.integers(3, size=80)
    return LeafTarget(model, clone(model).fit(X, y)), X, y


@pytest.mark.parametrize("weighted", [False, True])
def test_leaf_sums(weighted):
    target, X, y = leaf_target(DecisionTreeClassifier(max_leaf_nodes=6, random_state=0))
    records = (X, y, np.linspace(0, 3, len(y))) if weighted else (X, y)
    assert_rows_are_those_of_calls(target, *records)


# Kernel densities on a lattice


def density_target(kde, n_variables=1, degree=5):
    box = BernsteinTransformer(degree=degree, feature_range=(-1.0, 2.0))
    return FittedFunctionTarget(kde, box, public_fit=clone(kde).fit(np.zeros((2, n_variables))))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev"])
@pytest.mark.parametrize(
    "kernel", ["gaussian", "tophat", "epanechnikov", "exponential", "linear", "cosine"]
)
@settings(max_examples=3)
@given(
    seed=st.integers(0, 10**6),
    n_samples=st.integers(2, 60),
    n_variables=st.integers(1, 3),
    bandwidth=st.sampled_from([0.3, 2.0, "scott", "silverman"]),
    tied=st.booleans(),
)
def test_kernel_sums(kernel, metric, seed, n_samples, n_variables, bandwidth, tied):
    kde = KernelDensity(kernel=kernel, metric=metric, bandwidth=bandwidth, leaf_size=5)
    X = np.random.default_rng(seed).uniform(-1, 1.9, size=(n_samples + 1, n_variables))
    X = np.round(X, 1) + 0.03 if tied else X
    target = density_target(kde, n_variables, degree=2)
    assert_rows_are_those_of_calls(target, X)


def in_a_pipeline():
    """A step before a tree might center the records that it is given."""
    return leaf_target(make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2)))


def of_parameters():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    return ParameterTarget(GaussianNB(), "auto", GaussianNB().fit(X, y)), X, y


def of_density(*others, **parameters):
    X = np.random.default_rng(0).uniform(0.1, 0.9, size=(30, 2))
    return density_target(KernelDensity(**parameters), 2), X, *others


@pytest.mark.loop(
    ("target", "records"),
    [
        (each[0], each[1:])
        for each in (
            (FunctionTarget(np.mean), np.ones((9, 2))),
            of_parameters(),
            in_a_pipeline(),
            of_density(None, np.ones(30)),  # weighted
            of_density(rtol=1e-3),
            of_density(atol=1e-3),
            of_density(metric="haversine", algorithm="ball_tree"),
            of_density(metric="canberra", algorithm="ball_tree"),
            of_density(metric="minkowski", metric_params={"p": 3}),
        )
    ],
)
def test_other_targets_are_evaluated_by_two_calls(target, records):
    assert target.closed_form(*records) is None
