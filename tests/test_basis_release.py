"""Releases in a learned basis: what is recorded, used again, and refused."""

import json

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivityEstimate,
    SensitivitySampler,
    release,
)
from skdp.mechanisms.gaussian import GaussianMechanism

X, y = make_classification(
    n_samples=300, n_features=6, n_informative=3, class_sep=2.0, random_state=0
)
X_public, y_public, X, y = X[:150], y[:150], X[150:], y[150:]
SAMPLER = SensitivitySampler(PublicDataOracle(X_public, y_public), gamma=0.1, random_state=0)
MECHANISMS = [
    LaplaceMechanism(2.0, decode=False),
    pytest.param(GaussianMechanism(2.0, 1e-5, decode=False), marks=pytest.mark.slow),
]


def scaled_means(X, y):
    """Means on scales that differ a million times."""
    return X.mean(axis=0) * np.geomspace(1, 1e6, 6)


scaled_means.__skdp_key__ = "scaled-means-v1"


def private(mechanism, **options):
    options = {"mechanism": mechanism, "sensitivity": SAMPLER, "classes": [0, 1]} | options
    return PrivateEstimator(RidgeClassifier(), **options)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_estimate_brings_its_basis_to_later_releases(mechanism):
    model = private(mechanism, random_state=0).fit(X, y)
    first = model.estimator_.coef_
    estimate = model.sensitivity_
    assert model.guarantee_.basis == "predictive basis learned from 99 pilot pairs"
    assert estimate.geometry.basis.n_pilot_pairs == len(estimate.norms) == 99
    assert model.mechanism.basis == "auto"  # fitting changes no parameter
    stored = SensitivityEstimate.from_dict(json.loads(json.dumps(estimate.to_dict())))
    model.set_params(sensitivity=stored).fit(X, y)
    assert model.guarantee_.basis == "predictive basis learned from 99 pilot pairs"
    np.testing.assert_array_equal(model.estimator_.coef_, first)
    model.set_params(mechanism__epsilon=1e6).fit(X, y)
    exact = RidgeClassifier().fit(X, y)
    np.testing.assert_allclose(model.estimator_.coef_, exact.coef_, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("basis", ["diagonal", "predictive", "auto"])
def test_every_scale_gets_noise_of_its_own(basis):
    """In one L1 norm the noise on the smallest mean would be as large as on the largest."""
    exact = scaled_means(X, y)
    errors = {}
    for kind in (basis, "identity"):
        mechanism = LaplaceMechanism(2.0, basis=kind, decode=False)
        released = release(
            scaled_means, X, y, mechanism=mechanism, sensitivity=SAMPLER, random_state=0
        )
        assert np.all(released.value != exact)
        errors[kind] = np.abs(released.value - exact)
    assert errors[basis][0] < errors["identity"][0] / 100


def test_estimates_of_one_basis_are_refused_in_another():
    diagonal, identity, gaussian = (
        release(scaled_means, X, y, mechanism=mechanism, sensitivity=SAMPLER).sensitivity
        for mechanism in (
            LaplaceMechanism(1.0, basis="diagonal"),
            LaplaceMechanism(1.0, basis="identity"),
            GaussianMechanism(1.0, 1e-5, basis="diagonal"),
        )
    )
    assert identity.geometry.basis.digest == ""
    for estimate, basis, message in [
        (diagonal, "identity", "another norm: l1 in basis"),
        (diagonal, np.diag([1.0, 2, 3, 4, 5, 6]), "another norm: l1 in basis"),
        (identity, np.diag([1.0, 2, 3, 4, 5, 6]), "another norm: l1"),
        (gaussian, "auto", "another norm: l2 in basis"),
        (diagonal, "predictive", "which is learned from pilot pairs"),
        (identity, "predictive", "which is learned from pilot pairs"),
    ]:
        mechanism = LaplaceMechanism(1.0, basis=basis)
        with pytest.raises(ValueError, match=message):
            release(scaled_means, X, y, mechanism=mechanism, sensitivity=estimate)


def test_an_estimate_in_the_l1_norm_serves_the_smaller_l2_norm():
    identity = LaplaceMechanism(1.0, basis="identity")
    wide = release(scaled_means, X, y, mechanism=identity, sensitivity=SAMPLER).sensitivity
    gaussian = GaussianMechanism(1.0, 1e-5)
    options = {"mechanism": gaussian, "random_state": 0}
    used = release(scaled_means, X, y, sensitivity=wide, **options)
    number = release(scaled_means, X, y, sensitivity=wide.value, **options)
    np.testing.assert_array_equal(used.value, number.value)
    assert used.guarantee.gamma == 0.1


def test_a_bound_known_on_paper_has_no_pilot_pairs():
    known = KnownSensitivity(0.5, "l1", len(X))
    for sensitivity in (0.5, known):
        released = release(
            scaled_means, X, y, mechanism=LaplaceMechanism(1.0), sensitivity=sensitivity
        )
        assert released.guarantee.basis is None
        for basis in ("diagonal", "predictive"):
            mechanism = LaplaceMechanism(1.0, basis=basis)
            with pytest.raises(ValueError, match="a bound known on paper needs basis='identity'"):
                release(scaled_means, X, y, mechanism=mechanism, sensitivity=sensitivity)


def test_a_number_holds_in_the_coordinates_of_a_given_matrix():
    T = np.diag(1 / np.geomspace(1, 1e6, 6))
    mechanism = LaplaceMechanism(1.0, basis=T)
    released = release(scaled_means, X, y, mechanism=mechanism, sensitivity=0.5, random_state=0)
    assert released.guarantee.basis == "given basis"
    errors = np.abs(released.value - scaled_means(X, y))
    assert errors[0] < 10 < errors[5]
    proved = KnownSensitivity(0.5, mechanism.geometry, len(X))
    for basis in (T, "auto"):
        mechanism = LaplaceMechanism(1.0, basis=basis)
        again = release(scaled_means, X, y, mechanism=mechanism, sensitivity=proved, random_state=0)
        np.testing.assert_array_equal(again.value, released.value)
    identity = LaplaceMechanism(1.0, basis="identity")
    with pytest.raises(ValueError, match="nor those in another basis"):
        release(scaled_means, X, y, mechanism=identity, sensitivity=proved)
    mechanism = LaplaceMechanism(1.0, basis=T)
    with pytest.raises(ValueError, match="in the norm 'l1' bounds neither"):
        release(
            scaled_means, X, y, mechanism=mechanism, sensitivity=KnownSensitivity(0.5, "l1", len(X))
        )


@pytest.mark.slow
def test_pipeline_on_raw_columns():
    """Where one L1 norm over means, variances and weights is useless, a basis is not.

    Means of three seeded releases: the identity is right on about half of the records.
    """
    units = np.geomspace(1e-3, 1e3, 6)
    scores = {}
    for basis in ("identity", "diagonal", "auto"):
        plan = PrivateEstimator(
            make_pipeline(StandardScaler(), RidgeClassifier(10.0)),
            mechanism=LaplaceMechanism(30.0, basis=basis, decode=False),
            sensitivity=SensitivitySampler(
                PublicDataOracle(X_public * units, y_public),
                gamma=0.1,
                n_pairs=19,
                random_state=0,
            ),
            classes=[0, 1],
        ).plan(len(X), like=(X * units, y))
        releases = [plan.execute(X * units, y, random_state=seed).value for seed in range(3)]
        scores[basis] = np.mean([model.score(X * units, y) for model in releases])
    assert scores["identity"] < 0.65
    assert min(scores["diagonal"], scores["auto"]) > 0.8
