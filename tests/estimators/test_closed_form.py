"""Closed forms against the refits they replace, and what they must leave to refits."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler

from skdp import (
    AdditiveTarget,
    GaussianOracle,
    PublicDataOracle,
    RandomTaskOracle,
    SensitivitySampler,
    Target,
    UniformOracle,
)
from skdp.core.dataset import Dataset
from skdp.core.target import FunctionTarget
from skdp.estimators.parameters import ParameterTarget

N, D = 60, 4
rng = np.random.default_rng(0)
SCALES = np.array([1.0, 20.0, 0.05, 3.0])
FEATURES = rng.normal(size=(300, D)) @ rng.normal(size=(D, D)) * SCALES + [100.0, 0.0, 3.0, -7.0]
RESPONSE = FEATURES @ [0.1, 1.0, -2.0, 0.3] + rng.normal(size=300)
TWO = np.array(["no", "yes"])[(np.median(RESPONSE) < RESPONSE).astype(int)]
THREE = np.digitize(RESPONSE, np.quantile(RESPONSE, [0.3, 0.6]))
COUNTS = rng.poisson(3.0, size=(300, D)).astype(float)

REGRESSION = ["coef_", "intercept_"]
CASES = [
    (GaussianNB(), FEATURES, TWO, ["theta_", "var_", "class_prior_"]),
    (GaussianNB(var_smoothing=0.1), FEATURES, THREE, ["theta_", "var_", "class_count_"]),
    (BernoulliNB(binarize=2.0), COUNTS, TWO, ["feature_log_prob_", "class_log_prior_"]),
    (BernoulliNB(alpha=0.3, fit_prior=False), COUNTS, THREE, ["feature_count_", "class_count_"]),
    (MultinomialNB(), COUNTS, THREE, ["feature_log_prob_", "class_log_prior_"]),
    (MultinomialNB(fit_prior=False), COUNTS, TWO, ["feature_count_", "class_log_prior_"]),
    (ComplementNB(alpha=2.0), COUNTS, THREE, ["feature_log_prob_"]),
    (NearestCentroid(), FEATURES, THREE, ["centroids_"]),
    (NearestCentroid(), FEATURES, TWO, "auto"),
    (GaussianNB(), FEATURES, TWO, "auto"),
    (PCA(n_components=3), FEATURES / SCALES, None, "auto"),
    (EmpiricalCovariance(), FEATURES, None, "auto"),
    (StandardScaler(), FEATURES, None, ["mean_", "var_", "scale_"]),
    (EmpiricalCovariance(), FEATURES, None, ["location_", "covariance_"]),
    (PCA(), FEATURES / SCALES, None, ["mean_", "components_", "explained_variance_"]),
    (PCA(n_components=2), FEATURES / SCALES, None, ["components_", "singular_values_"]),
    (LinearRegression(), FEATURES, RESPONSE, REGRESSION),
    (LinearRegression(fit_intercept=False), FEATURES, RESPONSE, ["coef_"]),
    (Ridge(alpha=5.0), FEATURES, RESPONSE, REGRESSION),
    (Ridge(fit_intercept=False), FEATURES, RESPONSE, REGRESSION),
    (RidgeClassifier(), FEATURES, TWO, REGRESSION),
    (RidgeClassifier(alpha=0.1), FEATURES, THREE, REGRESSION),
    (LinearDiscriminantAnalysis(), FEATURES, TWO, REGRESSION),
    (LinearDiscriminantAnalysis(), FEATURES, THREE, REGRESSION),
]


def parameter_target(estimator, X, y, names):
    return ParameterTarget(estimator, names, clone(estimator).fit(X, y))


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


@pytest.mark.parametrize(("estimator", "X", "y", "names"), CASES, ids=lambda case: str(case)[:40])
def test_norms_are_those_of_refits(estimator, X, y, names):
    target = parameter_target(estimator, X, y, names)
    oracle = PublicDataOracle(X, y)
    records = (X[: N + 1],) if y is None else (X[: N + 1], y[: N + 1])
    assert target.closed_form(*records) is not None
    closed, refitted = norms(target, oracle), norms(RefitsOnly(target), oracle)
    np.testing.assert_allclose(closed.norms, refitted.norms, rtol=1e-8)
    assert closed.failures == refitted.failures
    assert closed.shape == refitted.shape


def test_dataset_level_oracles_have_closed_forms_too():
    oracle = RandomTaskOracle(FEATURES, classes=["a", "b"])
    target = parameter_target(RidgeClassifier(), *oracle(100, rng), REGRESSION)
    expected = norms(RefitsOnly(target), oracle).norms
    np.testing.assert_allclose(norms(target, oracle).norms, expected, rtol=1e-8)


@pytest.mark.parametrize("geometry", ["l1", "l2", "sup"])
def test_no_refit_is_made_where_the_closed_form_holds(geometry, monkeypatch):
    target = parameter_target(GaussianNB(), FEATURES, TWO, ["theta_"])
    oracle = PublicDataOracle(FEATURES, TWO)
    expected = norms(RefitsOnly(target), oracle, geometry=geometry).norms
    fits = []
    fit = GaussianNB.fit
    monkeypatch.setattr(GaussianNB, "fit", lambda self, X, y: fits.append(1) or fit(self, X, y))
    np.testing.assert_allclose(norms(target, oracle, geometry=geometry).norms, expected, rtol=1e-8)
    assert len(fits) == 2  # the trial on the first pair


def test_pairs_without_a_class_fail_as_refits_do():
    y = TWO.copy()
    y[:] = "no"
    y[:9] = "yes"
    target = parameter_target(GaussianNB(), FEATURES, y, ["theta_"])
    oracle = PublicDataOracle(FEATURES, y)
    closed, refitted = norms(target, oracle, 40), norms(RefitsOnly(target), oracle, 40)
    assert 0 < sum(refitted.failures.values()) < 40
    assert closed.failures == refitted.failures
    np.testing.assert_allclose(closed.norms, refitted.norms, rtol=1e-8)


def test_nearly_singular_equations_are_refitted():
    X = FEATURES.copy()
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    target = parameter_target(Ridge(alpha=1e-10), X, RESPONSE, REGRESSION)
    assert target.closed_form(X[:61], RESPONSE[:61]) is None
    oracle = PublicDataOracle(X, RESPONSE)
    np.testing.assert_array_equal(
        norms(target, oracle).norms, norms(RefitsOnly(target), oracle).norms
    )


@pytest.mark.loop(
    ("estimator", "X", "y", "names"),
    [
        (GaussianNB(priors=[0.5, 0.5]), FEATURES, TWO, ["theta_"]),
        (Ridge(positive=True), FEATURES, RESPONSE, REGRESSION),
        (
            Ridge(alpha=np.array([1.0, 2.0])),
            FEATURES,
            np.column_stack([RESPONSE, RESPONSE]),
            ["coef_"],
        ),
        (MultinomialNB(alpha=np.ones(D)), COUNTS, TWO, ["feature_log_prob_"]),
        (LinearRegression(), FEATURES, np.column_stack([RESPONSE, RESPONSE]), ["coef_"]),
        (LinearDiscriminantAnalysis(solver="eigen", shrinkage=0.1), FEATURES, TWO, ["coef_"]),
        (Ridge(), FEATURES.astype(np.float32), RESPONSE, REGRESSION),
        (PCA(svd_solver="randomized", n_components=2), FEATURES, None, ["components_"]),
        (StandardScaler(with_std=False), FEATURES, None, ["mean_"]),
        (LinearDiscriminantAnalysis(), FEATURES, THREE, ["scalings_"]),
        (LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1), FEATURES, TWO, ["coef_"]),
        (LinearDiscriminantAnalysis(priors=[0.2, 0.8]), FEATURES, TWO, ["coef_"]),
        (NearestCentroid(metric="manhattan"), FEATURES, TWO, ["centroids_"]),
        (NearestCentroid(shrink_threshold=0.1), FEATURES, TWO, ["centroids_"]),
        (BernoulliNB(class_prior=[0.5, 0.5]), COUNTS, TWO, ["feature_log_prob_"]),
        (ComplementNB(norm=True), COUNTS, TWO, ["feature_log_prob_"]),
        (EmpiricalCovariance(assume_centered=True), FEATURES, None, ["covariance_"]),
        (RidgeClassifier(class_weight="balanced"), FEATURES, TWO, REGRESSION),
    ],
)
def test_other_parameters_attributes_and_records_are_refitted(estimator, X, y, names):
    target = parameter_target(estimator, X, y, names)
    records = (X[:61],) if y is None else (X[:61], y[:61])
    assert target.closed_form(*records) is None


@pytest.mark.parametrize(
    ("estimator", "y"),
    [(GaussianNB(), TWO), (Ridge(), RESPONSE), (StandardScaler(), RESPONSE)],
    ids=str,
)
def test_weighted_records_are_refitted(estimator, y):
    target = parameter_target(estimator, FEATURES, y, "auto")
    weights = np.linspace(1, 2, N + 1)
    assert target.closed_form(FEATURES[: N + 1], y[: N + 1]) is not None
    assert target.closed_form(FEATURES[: N + 1], y[: N + 1], weights) is None


def test_trial_catches_a_wrong_closed_form(monkeypatch):
    """Audit of the trial: refits that differ by a millionth are noticed."""
    target = parameter_target(Ridge(alpha=1.0), FEATURES, RESPONSE, REGRESSION)
    records = (FEATURES[:61], RESPONSE[:61])
    assert target.closed_form(*records) is not None
    value, other = target.pair_values(Dataset(*records), seed=0)
    wrong = (other + (1 + 1e-6) * (value - other), other)
    monkeypatch.setattr(target, "pair_values", lambda records, seed: wrong)
    assert target.closed_form(*records) is None


def test_failing_first_pair_leaves_the_refits():
    target = parameter_target(GaussianNB(), FEATURES, TWO, ["theta_"])
    assert target.closed_form(FEATURES[:61], np.repeat("no", 61)) is None


# Additive targets


def phi(X):
    """Powers of a column: a row of two per record."""
    return np.column_stack([X[:, 0], X[:, 0] ** 2])


def dataset_level(n_samples, rng):
    """Records around a center of their own: not independent."""
    return rng.normal(size=(1, 1)) + rng.normal(size=(n_samples, 1))


def test_two_records_make_a_pair_of_an_additive_target():
    """Against the formula, from the documented streams."""
    oracle = UniformOracle([(0, 1)])
    estimate = norms(AdditiveTarget(phi), oracle, n_pairs=1500, n_samples=10)
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
    from scipy.stats import ks_2samp

    oracle = GaussianOracle([0.0], [[1.0]])
    fast = norms(AdditiveTarget(phi), oracle, n_pairs=2000, n_samples=5).norms
    slow = norms(RefitsOnly(AdditiveTarget(phi)), oracle, n_pairs=2000, n_samples=5).norms
    assert ks_2samp(fast, slow).pvalue > 1e-3
    assert ks_2samp(1.2 * fast, slow).pvalue < 1e-3


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
    monkeypatch.setattr("skdp.sensitivity.blocks.BLOCKS_OF_CHUNK", 1)
    np.testing.assert_array_equal(few, many[:30])
    again = norms(AdditiveTarget(phi), oracle, n_pairs=9000).norms
    np.testing.assert_array_equal(many, again)


def test_rows_that_are_not_finite_fail_alone():
    def broken(X):
        return np.where(X[:, 0] < 0.1, np.nan, X[:, 0])

    estimate = norms(AdditiveTarget(broken), UniformOracle([(0, 1)]), n_pairs=500)
    failed = np.isinf(estimate.norms).mean()
    assert 0.1 < failed < 0.3  # 1 - .9^2 = .19
    assert list(estimate.failures) == ["the value is not finite"]


def test_additive_target_is_the_mean_of_its_rows():
    X = np.array([[1.0], [3.0]])
    np.testing.assert_array_equal(AdditiveTarget(phi)(X), [2.0, 5.0])
    target = AdditiveTarget(lambda X, y: X[:, 0] * y)
    np.testing.assert_array_equal(target(X, np.array([2.0, 4.0]), seed=5), 7.0)


def test_phi_must_return_one_row_per_record():
    with pytest.raises(ValueError, match=r"one row for each record, shape \(2, ...\)"):
        AdditiveTarget(np.mean)(np.ones((2, 1)))
    with pytest.raises(TypeError, match="must be a function"):
        AdditiveTarget(3)


def test_functions_have_no_closed_form():
    assert FunctionTarget(np.mean).closed_form(FEATURES) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        norms(np.mean, UniformOracle([(0, 1)]), n_pairs=3)


def test_principal_components_whose_number_depends_on_the_data_are_refitted():
    """A pair on which it changes has no value; a closed form of fixed size would give one."""
    for n_components in (0.9, "mle"):
        pca = PCA(n_components=n_components)
        target = parameter_target(pca, FEATURES, None, ["components_"])
        assert target.closed_form(FEATURES[: N + 1]) is None


def test_principal_components_that_may_be_randomized_are_refitted():
    X = np.random.default_rng(3).normal(size=(601, 70)) * np.geomspace(1, 10, 70)
    for solver, exact in (("auto", False), ("full", True)):
        pca = PCA(n_components=3, svd_solver=solver)
        assert (parameter_target(pca, X, None, "auto").closed_form(X) is not None) == exact


def test_unsupervised_estimators_leave_the_response_out():
    for estimator in (PCA(n_components=2), StandardScaler(), EmpiricalCovariance()):
        X = FEATURES / SCALES
        target = parameter_target(estimator, X, None, "auto")
        assert target.closed_form(X[: N + 1], RESPONSE[: N + 1]) is not None
        closed = norms(target, PublicDataOracle(X, RESPONSE), 5)
        expected = norms(RefitsOnly(target), PublicDataOracle(X), 5)
        np.testing.assert_allclose(closed.norms, expected.norms, rtol=1e-8)


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


def test_rows_may_be_rounded_otherwise_in_another_batch():
    weights = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    sampler = SensitivitySampler(UniformOracle([(0, 1)] * 2), n_pairs=39, random_state=0)
    phi = AdditiveTarget(lambda X: X.astype(np.float32) @ weights)
    assert sampler.sample(phi, 50, "l1").value > 0
