"""Wherever a closed form has a value, it is that of two fits: random, small and awkward records."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KernelDensity, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skdp import (
    BernsteinTransformer,
    FittedFunctionTarget,
    LaplaceMechanism,
    LeafTarget,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    UniformOracle,
)
from skdp.core.dataset import Dataset, as_dataset
from skdp.core.geometry import Geometry
from skdp.estimators.parameters import ParameterTarget
from skdp.sensitivity.blocks import MomentMeasure
from skdp.sensitivity.pairs import PairSource

CLASSIFIERS = [
    BernoulliNB(binarize=1.5),
    BernoulliNB(alpha=0.2, fit_prior=False),
    ComplementNB(),
    GaussianNB(),
    LinearDiscriminantAnalysis(),
    MultinomialNB(alpha=0.5),
    NearestCentroid(),
    RidgeClassifier(),
]
REGRESSORS = [LinearRegression(), Ridge(), Ridge(alpha=20.0, fit_intercept=False)]
OTHERS = [StandardScaler(), EmpiricalCovariance(), PCA(), PCA(n_components=1), PCA(whiten=True)]


def table(seed, n_samples, n_features, n_values, unit=1.0):
    """Counts with many ties, the first column constant at times, and one record of a class."""
    rng = np.random.default_rng(seed)
    X = rng.integers(n_values, size=(n_samples, n_features)).astype(float) * unit
    if n_values < 4:
        X[:, 0] = 2.0
    else:
        X += rng.random(X.shape)
    labels = rng.integers(2, size=n_samples) + 1
    labels[rng.integers(n_samples)] = 0
    return X, labels, X @ np.ones(n_features) + rng.normal(size=n_samples)


def parameter_target(estimator, records):
    """Make the target; None where there is no public fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # records as awkward as a search finds them
        try:
            return ParameterTarget(estimator, "auto", clone(estimator).fit(*records))
        except (ValueError, IndexError):
            return None


def refits(target, records):
    """Return both values; None where a fit fails."""
    try:
        return target.pair_values(as_dataset(records), seed=0)
    except (ValueError, IndexError):
        return None


def check_values(target, trial, records):
    """Compare on other records than those of the trial; return whether there was a value."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # as above
        moments = target.closed_form(*trial)
        if moments is None:
            return False
        values, expected = moments.pair(as_dataset(records)), refits(target, records)
    if not (np.isfinite(values[0]).all() and np.isfinite(values[1]).all()):
        return False  # refitted
    assert expected is not None
    for value, fitted in zip(values, expected, strict=True):
        np.testing.assert_allclose(value, fitted, rtol=0, atol=1e-8 * np.abs(fitted).max() + 1e-14)
    difference = expected[0] - expected[1]
    error = np.abs(values[0] - values[1] - difference).max()
    assert error <= 1e-8 * np.abs(difference).max() + 1e-12 * np.abs(expected[0]).max() + 1e-14
    return True


@pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS + OTHERS, ids=str)
@settings(max_examples=8)
@given(
    seed=st.integers(0, 10**6),
    n_samples=st.integers(8, 40),
    n_features=st.integers(1, 4),
    n_values=st.sampled_from([2, 3, 10]),
)
def test_value_of_fitted_parameters(estimator, seed, n_samples, n_features, n_values):
    def records(offset):
        X, labels, response = table(seed + offset, n_samples, n_features, n_values)
        if estimator in OTHERS:
            return (X,)
        return (X, response if estimator in REGRESSORS else labels)

    target = parameter_target(estimator, records(0))
    if target is not None:
        check_values(target, records(1), records(2))


@pytest.mark.parametrize("estimator", CLASSIFIERS + REGRESSORS + OTHERS, ids=str)
def test_closed_forms_have_values(estimator):
    """So that the test above does not pass for want of any."""
    X, labels, response = table(0, 41, 2, 10)
    y = response if estimator in REGRESSORS else labels
    records = (X,) if estimator in OTHERS else (X, y)
    target = parameter_target(estimator, records)
    assert check_values(target, records, tuple(part[::-1] for part in records))


@pytest.mark.loop("names", ["auto", ["feature_count_"], ["feature_log_prob_"]])
@pytest.mark.loop("estimator", [BernoulliNB(), ComplementNB(), MultinomialNB()])
def test_there_is_no_value_without_a_class(estimator, names):
    """Refits fail there, which counts as infinite; a smoothed logarithm would be finite."""
    X, labels, _ = table(0, 41, 2, 10)
    target = ParameterTarget(estimator, names, clone(estimator).fit(X, labels))
    moments = target.closed_form(X, labels)
    value, other = moments.pair(Dataset(X, np.where(labels == 0, 1, labels)))
    assert np.isnan(value).any()
    assert np.isnan(other).any()


# Sums over the leaves of public trees


def leaf_target(kind, seed=0):
    X, labels, response = table(seed, 80, 3, 10)
    if kind is DecisionTreeClassifier:
        tree, y, leaves = kind(max_leaf_nodes=6, random_state=0), labels, LeafTarget()
    else:
        tree, y, leaves = kind(max_leaf_nodes=6, random_state=0), response, LeafTarget((0.0, 20.0))
    return leaves.bind(tree, clone(tree).fit(X, y)), X, y


@pytest.mark.parametrize("kind", [DecisionTreeClassifier, DecisionTreeRegressor])
@pytest.mark.parametrize("weighted", [False, True])
def test_leaf_sums(kind, weighted):
    target, X, y = leaf_target(kind)
    records = (X, y, np.linspace(0, 3, len(y))) if weighted else (X, y)
    moments = target.closed_form(*records)
    found = moments.pair(Dataset(*records))
    for value, expected in zip(found, refits(target, records), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-13, atol=1e-13)
    rows = moments.features(*records)
    np.testing.assert_allclose(rows.sum(axis=0), target(*records, seed=0), rtol=1e-13, atol=1e-13)


def test_a_count_of_a_leaf_changes_by_one_exactly():
    """Two records in different leaves or classes change two counts, else none."""
    target, X, y = leaf_target(DecisionTreeClassifier)
    sampler = SensitivitySampler(PublicDataOracle(X, y), gamma=None, n_pairs=1000, random_state=0)
    assert set(sampler.sample(target, 79, "l1").norms) == {0.0, 2.0}


def test_trees_in_pipelines_are_evaluated_on_whole_datasets():
    """A step before the tree might center the records that it is given."""
    X, y, _ = table(0, 60, 3, 10)
    model = make_pipeline(StandardScaler(), DecisionTreeClassifier(max_depth=2))
    assert LeafTarget().bind(model, clone(model).fit(X, y)).closed_form(X, y) is None


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
    X = np.random.default_rng(seed).normal(size=(n_samples + 1, n_variables))
    X = np.round(X, 1) + 0.03 if tied else X
    target = density_target(kde, n_variables, degree=2)
    assert check_values(target, (X,), (X[::-1],))
    moments = target.closed_form(X)
    total = moments.features(X[:-1]).sum(axis=0) / n_samples
    np.testing.assert_allclose(total, target(X[:-1], seed=0), rtol=1e-9, atol=1e-13)


@pytest.mark.loop(
    "kde",
    [
        KernelDensity(rtol=1e-3),
        KernelDensity(atol=1e-3),
        KernelDensity(metric="haversine", algorithm="ball_tree"),
        KernelDensity(metric="canberra", algorithm="ball_tree"),
        KernelDensity(metric="minkowski", metric_params={"p": 3}),
    ],
)
def test_densities_that_are_approximate_or_not_translated_are_refitted(kde):
    X = np.random.default_rng(0).uniform(0.1, 0.9, size=(30, 2))
    assert density_target(kde, 2).closed_form(X) is None


def test_weighted_densities_and_those_without_value_are_refitted():
    X = np.linspace(0, 1, 20)[:, None]
    assert density_target(KernelDensity()).closed_form(X, None, np.ones(20)) is None
    assert density_target(KernelDensity()).closed_form(np.full((20, 1), np.nan)) is None


def test_kernels_are_tried(monkeypatch):
    """A tree that is off by a millionth is noticed."""
    X = np.linspace(0, 1, 20)[:, None]
    target = density_target(KernelDensity(bandwidth=0.3))
    assert target.closed_form(X) is not None
    score = KernelDensity.score_samples
    monkeypatch.setattr(
        KernelDensity, "score_samples", lambda self, X: score(self, X) + 1e-6 * (len(X) == 6)
    )
    assert target.closed_form(X) is None


@pytest.mark.parametrize("n_rows", [1024, 7])
def test_two_records_make_a_pair_of_densities(n_rows, monkeypatch):
    """Against the formula, in slices of a block too."""
    monkeypatch.setattr("skdp.sensitivity.blocks.MAX_BATCH", 6 * n_rows)
    target = density_target(KernelDensity(bandwidth=0.3))
    oracle = UniformOracle([(-1, 2)])
    sampler = SensitivitySampler(oracle, gamma=None, n_pairs=1500, random_state=1)
    estimate = sampler.sample(target, 50, "l1")
    records = []
    for block in range(2):
        stream = np.random.default_rng(np.random.SeedSequence(1, spawn_key=(block, 3)))
        stream.integers(2**31)
        records.append(oracle(2048, stream).reshape(2, 1024, 1))
    first, second = np.concatenate(records, axis=1)
    lattice = np.linspace(-1, 2, 6)
    kernels = (
        np.exp(-0.5 * ((lattice - each) / 0.3) ** 2) / (0.3 * np.sqrt(2 * np.pi) * 50)
        for each in (first, second)
    )
    expected = np.abs(next(kernels) - next(kernels)).sum(axis=1)[:1500]
    np.testing.assert_allclose(estimate.norms, expected, rtol=1e-9, atol=1e-14)


def test_private_density_makes_no_refit_for_a_pair(monkeypatch):
    X = np.random.default_rng(0).uniform(size=(200, 1))
    fits = []
    fit = KernelDensity.fit
    monkeypatch.setattr(
        KernelDensity, "fit", lambda self, X, y=None: fits.append(len(X)) or fit(self, X, y)
    )
    model = PrivateEstimator(
        KernelDensity(bandwidth=0.2),
        mechanism=LaplaceMechanism(1.0, basis="identity"),
        sensitivity=SensitivitySampler(PublicDataOracle(X[:100]), n_pairs=2000, random_state=0),
        release=BernsteinTransformer(feature_range=(0, 1)),
    )
    model.fit(X[100:])
    assert len(fits) < 10


def test_leaves_and_densities_are_measured_by_record():
    target, X, y = leaf_target(DecisionTreeClassifier)
    for of, records in ((target, (X, y)), (density_target(KernelDensity()), (X[:, :1],))):
        source = PairSource(of, PublicDataOracle(*records), len(X) - 1, 0, of.closed_form(*records))
        assert MomentMeasure(source, Geometry(1), Dataset(*records)).by_record
