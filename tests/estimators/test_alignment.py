"""Canonical forms: signs and orders come from the public fit, so they do not count as change."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.decomposition import NMF, PCA, FastICA
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler, Target, UniformOracle
from skdp.estimators.parameters import ParameterTarget

# fits to few records
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

CENTERS = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])
AXES = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]) / np.sqrt(2)
TOPICS = np.array([[9.0, 9.0, 0.3, 0.3], [0.3, 0.3, 9.0, 9.0]])


def blobs(n_samples, rng):
    return CENTERS[rng.integers(3, size=n_samples)] + rng.normal(size=(n_samples, 2))


def spiked(n_samples, rng):
    """Two entries of a component are equal: which of them fixes its sign is open."""
    scores = rng.normal(size=(n_samples, 2)) * [6.0, 3.0]
    return scores @ AXES + rng.normal(scale=0.2, size=(n_samples, 4))


def documents(n_samples, rng):
    return rng.gamma(TOPICS[rng.integers(2, size=n_samples)])


def sources(n_samples, rng):
    signs = rng.choice([-1.0, 1.0], size=(n_samples, 2))
    return signs * [2.0, 1.0] + rng.normal(scale=0.1, size=(n_samples, 2))


class Unaligned(Target):
    """The attributes of a fit as they are."""

    description = "unaligned"

    def __init__(self, estimator, names):
        self.estimator, self.names = estimator, names

    def __call__(self, X, *, seed):
        fitted = clone(self.estimator).set_params(random_state=seed).fit(X)
        return np.concatenate([np.ravel(getattr(fitted, name)) for name in self.names])


@pytest.mark.parametrize(
    ("estimator", "oracle", "n_samples"),
    [
        (KMeans(3, n_init=1), blobs, 60),
        pytest.param(GaussianMixture(3), blobs, 60, marks=pytest.mark.slow),
        (PCA(2), spiked, 200),
        pytest.param(NMF(2, max_iter=500), documents, 100, marks=pytest.mark.slow),
        (FastICA(w_init=np.eye(2)), sources, 200),  # a random start may end on a saddle
    ],
    ids=lambda value: type(value).__name__,
)
def test_alignment_makes_the_sampled_sensitivity_ten_times_smaller(estimator, oracle, n_samples):
    """The largest of 39 changes. With any of several seeds it is 12 to 3000 times smaller."""
    public_fit = clone(estimator).set_params(random_state=0)
    public_fit.fit(oracle(n_samples, np.random.default_rng(5)))
    target = ParameterTarget(estimator, "auto", public_fit)
    sampler = SensitivitySampler(oracle, gamma=1 / 40, n_pairs=39, random_state=0)
    aligned = sampler.sample(target, n_samples, "l1")
    free = sampler.sample(Unaligned(estimator, target.names), n_samples, "l1")
    assert not aligned.failures
    assert 0 < 10 * aligned.value < free.value


@given(st.permutations(range(3)))
def test_clusters_are_matched_whatever_their_order(order):
    public_fit = KMeans(3, n_init=1, random_state=0).fit(blobs(60, np.random.default_rng(0)))
    target = ParameterTarget(KMeans(3), "auto", public_fit)
    shuffled = copy.deepcopy(public_fit)
    shuffled.cluster_centers_ = public_fit.cluster_centers_[list(order)] + 0.01
    np.testing.assert_allclose(target.flatten(shuffled), public_fit.cluster_centers_.ravel() + 0.01)


@given(st.permutations(range(2)), st.tuples(*[st.sampled_from([-1.0, 1.0])] * 2))
def test_components_are_matched_with_their_signs_and_variances(order, signs):
    public_fit = PCA(2, whiten=True).fit(spiked(100, np.random.default_rng(0)))
    target = ParameterTarget(PCA(2, whiten=True), "auto", public_fit)
    shuffled = copy.deepcopy(public_fit)
    shuffled.components_ = (public_fit.components_ * np.array(signs)[:, None])[list(order)]
    shuffled.explained_variance_ = public_fit.explained_variance_[list(order)]
    np.testing.assert_allclose(target.flatten(shuffled), target.flatten(public_fit))


def test_order_of_broken_sticks_is_part_of_the_model():
    X = blobs(60, np.random.default_rng(0))
    for prior, moved in [("dirichlet_process", False), ("dirichlet_distribution", True)]:
        model = BayesianGaussianMixture(
            n_components=3, weight_concentration_prior_type=prior, random_state=0
        )
        target = ParameterTarget(model, "auto", clone(model).fit(X))
        shuffled = copy.deepcopy(target.public_fit)
        for name in ("means_", "covariances_", "mean_precision_"):
            setattr(shuffled, name, getattr(target.public_fit, name)[::-1])
        same = np.allclose(target.flatten(shuffled), target.flatten(target.public_fit))
        assert same == moved


def test_factors_of_a_penalized_nmf_keep_their_length():
    X = documents(50, np.random.default_rng(0))
    for penalty, free in [(0.0, True), (0.1, False)]:
        model = NMF(2, alpha_W=penalty, init="nndsvd", max_iter=500)
        target = ParameterTarget(model, "auto", clone(model).fit(X))
        longer = copy.deepcopy(target.public_fit)
        longer.components_ = 2 * target.public_fit.components_
        same = np.allclose(target.flatten(longer), target.flatten(target.public_fit))
        assert same == free


def estimate_and_model(estimator, seed=0):
    sampler = SensitivitySampler(
        UniformOracle([(0, 1)] * 3), gamma=0.25, n_pairs=3, random_state=seed
    )
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sampler, "random_state": 0}
    X = np.random.default_rng(1).uniform(size=(40, 3))
    return PrivateEstimator(estimator, **options).fit(X), X


@pytest.mark.parametrize("estimator", [PCA(2), make_pipeline(StandardScaler(), PCA(2))])
def test_estimate_of_an_aligned_target_is_not_used_with_another_public_fit(estimator):
    """With an estimate the public fit is of synthetic records: another reference and norm."""
    model, X = estimate_and_model(estimator)
    assert ", aligned to public fit " in model.sensitivity_.target
    again = clone(model).set_params(sensitivity=model.sensitivity_)
    with pytest.raises(ValueError, match=r"made for another target: .* aligned to public fit"):
        again.fit(X)


def test_estimate_of_a_target_without_signs_is_used_again():
    model, X = estimate_and_model(StandardScaler())
    assert "aligned" not in model.sensitivity_.target
    clone(model).set_params(sensitivity=model.sensitivity_).fit(X)


def test_sampling_repeats_when_the_estimator_is_random():
    """The reference is part of the target, so it follows from the sampler's seed too."""
    first, _ = estimate_and_model(KMeans(3, n_init=1))
    second, _ = estimate_and_model(KMeans(3, n_init=1))
    other, _ = estimate_and_model(KMeans(3, n_init=1), seed=1)
    assert first.sensitivity_ == second.sensitivity_
    assert first.sensitivity_.target != other.sensitivity_.target
    assert first.estimator_.random_state is None


def test_registered_names_and_others_are_aligned_together():
    """Attributes named beside those of the catalog do not undo the alignment."""
    X = spiked(100, np.random.default_rng(0))
    public_fit = PCA(2).fit(X)
    target = ParameterTarget(PCA(2), ["components_", "mean_", "explained_variance_"], public_fit)
    shuffled = copy.deepcopy(public_fit)
    shuffled.components_ = -public_fit.components_[::-1]
    shuffled.explained_variance_ = public_fit.explained_variance_[::-1]
    np.testing.assert_allclose(target.flatten(shuffled), target.flatten(public_fit))
