"""Releases in a public code: what is released, recorded, used again, said and refused."""

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import RidgeClassifier

from skdp import (
    FunctionTarget,
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivityEstimate,
    SensitivitySampler,
    UniformOracle,
    load,
    plan_release,
    release,
)
from skdp.audit import audit_estimator, find_large_sensitivity
from skdp.bounds import mean_bound
from skdp.codes import Geometry, PublicCode
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.noise import byte_source
from tests.helpers import diagonal_code

X, y = make_classification(
    n_samples=300, n_features=6, n_informative=3, class_sep=2.0, random_state=0
)
X_public, y_public, X, y = X[:150], y[:150], X[150:], y[150:]
SAMPLER = SensitivitySampler(
    PublicDataOracle(X_public, y_public), gamma=0.1, n_pairs=29, random_state=0
)
AS_THEY_ARE = clone(SAMPLER).set_params(clip=None)
MECHANISMS = [LaplaceMechanism(0.5, code="learned"), GaussianMechanism(0.5, 1e-5, code="learned")]
SCALES = np.geomspace(1, 1e6, 6)

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=["Laplace", "Gaussian"])


def scaled_means(X, y):
    """Means on scales that differ a million times."""
    return X.mean(axis=0) * SCALES


scaled_means.__skdp_key__ = "scaled-means-v1"


def private(mechanism, **options):
    options = {"mechanism": mechanism, "sensitivity": SAMPLER, "classes": [0, 1]} | options
    return PrivateEstimator(RidgeClassifier(), **options)


def released(mechanism, function=scaled_means, data=(X, y), **options):
    options = {"sensitivity": SAMPLER, "random_state": 0} | options
    return release(function, *data, mechanism=mechanism, **options)


def planned(mechanism, function=scaled_means, **options):
    options = {"n_samples": len(X), "like": (X, y), "sensitivity": SAMPLER} | options
    return plan_release(function, mechanism=mechanism, **options)


def with_epsilon(mechanism, epsilon):
    return type(mechanism)(**mechanism.get_params() | {"epsilon": epsilon})


@pytest.fixture(scope="module", params=MECHANISMS, ids=["Laplace", "Gaussian"])
def fitted(request):
    return private(request.param, random_state=0).fit(X, y)


def test_the_code_is_named_and_fewer_numbers_get_noise(fitted):
    code = fitted.mechanism_.geometry.code
    assert 0 < code.n_released <= code.size - (fitted.mechanism.order == 1)
    assert code.size == 7
    assert fitted.sensitivity_.norms.shape == (3, code.n_pilot_pairs) == (3, 29)
    assert fitted.guarantee_.code.startswith(f"{code.n_released} of 7 directions")
    assert fitted.mechanism.code == "learned"  # fitting changes no parameter
    assert np.all(fitted.estimator_.coef_ != RidgeClassifier().fit(X, y).coef_)


def test_an_estimate_brings_its_code_to_later_releases(fitted):
    estimate = fitted.sensitivity_
    for stored in (
        SensitivityEstimate.from_dict(json.loads(json.dumps(estimate.to_dict()))),
        pickle.loads(pickle.dumps(estimate)),
    ):
        assert stored == estimate
        given = {"sensitivity": stored, "prior": fitted.plan_.oracle, "random_state": 0}
        again = private(fitted.mechanism, **given).fit(X, y)
        assert again.guarantee_ == fitted.guarantee_
        np.testing.assert_array_equal(again.estimator_.coef_, fitted.estimator_.coef_)
        errors = (each.standard_errors_["coef_"] for each in (again, fitted))
        np.testing.assert_array_equal(*errors)


def test_a_code_serves_another_epsilon_and_the_decoder_knows_the_noise(fitted):
    """The directions stay; with less noise more is learned along them."""
    shares = []
    for epsilon in (0.1, 0.5, 10.0):
        mechanism = with_epsilon(fitted.mechanism, epsilon)
        plan = private(mechanism, sensitivity=fitted.sensitivity_).plan(len(X), like=(X, y))
        assert plan.mechanism.geometry == fitted.mechanism_.geometry
        shares.append(plan.share_learned)
        errors = plan.standard_errors["coef_"]
        assert np.all(errors <= plan.mechanism.geometry.code.deviations[:6])
        known = replace(plan.sensitivity, ranges=())
        alone = replace(plan, sensitivity=known, oracle=None)
        assert f" {plan.share_learned:.0%} of what" in str(alone)
    assert 0 < shares[0] < shares[1] < shares[2] - 0.1 <= 0.9
    plain = planned(LaplaceMechanism(1.0, code=None))
    assert plain.share_learned == 1
    assert "100%" not in str(plain)


@pytest.mark.slow
@every_mechanism
def test_infinite_epsilon_releases_the_exact_value(mechanism):
    exact, sensitivities = RidgeClassifier().fit(X, y).coef_, [AS_THEY_ARE]
    if mechanism.order == 1:
        sensitivities.append(private(mechanism, sensitivity=AS_THEY_ARE).fit(X, y).sensitivity_)
    for sensitivity in sensitivities:
        model = private(with_epsilon(mechanism, np.inf), sensitivity=sensitivity).fit(X, y)
        np.testing.assert_array_equal(model.estimator_.coef_, exact)
        np.testing.assert_array_equal(model.standard_errors_["coef_"], np.zeros(6))
        assert model.plan_.share_learned == 1


@every_mechanism
def test_the_decoder_gets_the_law_of_the_noise_that_was_added(mechanism, monkeypatch):
    """Of 300 noisy codes, mean square within 5 standard errors."""
    plan = planned(mechanism)
    code, value = plan.mechanism.geometry.code, 3 * plan.sensitivity.value
    seen, laws = [], set()

    decode, errors = PublicCode.decode, PublicCode.standard_errors

    def watched_decode(self, noisy, variance, kurtosis):
        seen.append((noisy, variance))
        laws.add((variance, kurtosis))
        return decode(self, noisy, variance, kurtosis)

    def watched_errors(self, variance, noisy, kurtosis):
        laws.add((variance, kurtosis))
        return errors(self, variance, noisy, kurtosis)

    monkeypatch.setattr(PublicCode, "decode", watched_decode)
    monkeypatch.setattr(PublicCode, "standard_errors", watched_errors)
    mechanism = plan.mechanism
    source = byte_source(0)
    for _ in range(300):
        mechanism.release_with_errors(code.mean, value, source)
    noisy, variances = zip(*seen, strict=True)
    assert laws == {(variances[0], mechanism._kurtosis(code.n_released))}
    squares = np.square(noisy).ravel() / variances[0]
    assert np.mean(squares) == pytest.approx(1, abs=5 * np.std(squares) / np.sqrt(squares.size))


@every_mechanism
def test_every_number_has_its_own_scale_and_the_prior_is_kept_to(mechanism):
    """With next to no epsilon the public mean is released, not noise."""
    spread = X_public.std(axis=0) * SCALES / np.sqrt(len(X))
    with pytest.warns(UserWarning, match=r" 0\.0% of what"):
        weak = released(with_epsilon(mechanism, 1e-4), random_state=None)
    assert np.all(np.abs(weak.value - scaled_means(X_public, y_public)) < 3 * spread)
    strong = released(with_epsilon(mechanism, 100.0))
    assert np.all(np.abs(strong.value - scaled_means(X, y)) < spread)


def test_a_release_that_contradicts_the_prior_says_so_and_has_larger_errors(tmp_path):
    """It names the number that is farthest off, here the last."""
    other = X + np.array([1, 1, 1, 1, 1, 100])
    with pytest.warns(UserWarning, match=r"contradicts the oracle: value\[5\] is ") as said:
        far = release(
            scaled_means, other, y, mechanism=MECHANISMS[0], sensitivity=AS_THEY_ARE, random_state=0
        )
    assert said[0].filename == __file__
    near = released(MECHANISMS[0], sensitivity=AS_THEY_ARE)
    assert np.all(far.standard_errors >= near.standard_errors)
    assert np.median(far.standard_errors / near.standard_errors) > 2
    assert far.prior_conflict > 100 > 3 > near.prior_conflict
    for name, each in (("far", far), ("near", near)):
        each.save(tmp_path / name)
        card = (tmp_path / name / "README.md").read_text()
        for text in (card, str(load(tmp_path / name).summary())):
            assert ("contradicts the oracle" in text) == (name == "far")


def test_with_a_bound_on_paper_a_prior_that_is_far_off_is_no_reason_to_warn():
    """The noise does not depend on it."""
    prior = SensitivitySampler(UniformOracle([(0.4, 0.6)]), n_pairs=199, random_state=0)
    bound = replace(mean_bound(200, ranges=(0, 1)), prior=prior)
    records = np.random.default_rng(0).uniform(0, 0.1, size=200)
    far = released(LaplaceMechanism(3.0), np.mean, (records,), sensitivity=bound)
    assert far.prior_conflict > 5
    assert "does not affect the guarantee" in str(far.summary())
    assert "noise may be too small" not in str(far.summary())


def test_noise_is_no_contradiction():
    """A code for little noise reads all numbers; at a hundredth of its epsilon most is noise."""
    means = FunctionTarget(lambda X, y: X.mean(axis=0), key="means-v1")
    plan = planned(LaplaceMechanism(5.0, code="learned"), means)
    assert plan.mechanism.geometry.code.n_released == 6
    options = {"sensitivity": plan.sensitivity}
    for seed in range(40):
        noisy = released(LaplaceMechanism(0.05), means, random_state=seed, **options)
        assert noisy.prior_conflict < 3


def test_rounding_is_no_contradiction():
    """Of a number that differs by rounding only between public fits, such as a sum of shares."""

    def shares(X, y):
        return [X.mean(), (np.abs(X) / np.abs(X).sum()).sum()]

    plan = planned(LaplaceMechanism(5.0, code="learned"), shares)
    code = plan.mechanism.geometry.code
    assert 0 < code.deviations[1] < 1e-14
    assert plan.execute(X, y, random_state=0).prior_conflict < 5


def test_a_released_statistic_is_drawn_towards_no_prior_unasked():
    """So "auto" is no code with a sampler, and with an estimate its own."""
    auto, none, learned = (
        released(LaplaceMechanism(0.5, code=code)) for code in ("auto", None, "learned")
    )
    np.testing.assert_array_equal(auto.value, none.value)
    assert auto.guarantee == none.guarantee != learned.guarantee
    assert auto.sensitivity.geometry == Geometry(1) != learned.sensitivity.geometry
    code = learned.sensitivity.geometry.code
    for again in ("auto", "learned", code):
        given = released(LaplaceMechanism(0.5, code=again), sensitivity=learned.sensitivity)
        np.testing.assert_array_equal(given.value, learned.value)
    assert released(LaplaceMechanism(0.5, code=code)).sensitivity == learned.sensitivity


def test_a_code_that_cannot_be_learned_is_refused():
    plain = planned(LaplaceMechanism(1.0, code=None)).sensitivity
    for sensitivity in (1.0, mean_bound(len(X), 6, ranges=(-9, 9)), plain):
        with pytest.raises(ValueError, match="must not be 'learned'"):
            planned(MECHANISMS[0], sensitivity=sensitivity)


def test_a_sensitivity_in_one_code_serves_that_code_only():
    laplace, gaussian, plain = (
        released(mechanism).sensitivity
        for mechanism in (*MECHANISMS, LaplaceMechanism(1.0, code=None))
    )
    other = replace(laplace.geometry.code, mean=laplace.geometry.code.mean + 1e-9)
    for code, estimate in [(None, laplace), (other, laplace), (other, plain), ("auto", gaussian)]:
        with pytest.raises(ValueError, match="made for another norm"):
            released(LaplaceMechanism(1.0, code=code), sensitivity=estimate)
    for estimate in (laplace, plain):  # the L1 norm bounds the L2 norm, in a code too
        given = released(GaussianMechanism(1.0, 1e-5), sensitivity=estimate)
        assert given.sensitivity == estimate


def test_a_bound_known_on_paper_may_be_one_of_a_code():
    """If T has columns of an L1 norm of 1 at most, the bound of the value is one of its code."""
    code = PublicCode(
        encoder=np.full((1, 6), 1.0),
        mean=np.zeros(6),
        covariance=np.full((6, 1), 1.0),
        deviations=np.ones(6),
        removable=[[1.0]],
    )
    options = {"sensitivity": KnownSensitivity(0.5, Geometry(1, code), len(X))}
    given = released(LaplaceMechanism(1.0), lambda X, y: X.mean(axis=0), **options)
    assert given.guarantee.code.startswith("1 of 6 directions")
    assert np.ptp(given.value) == 0
    with pytest.raises(ValueError, match="nor those of another code"):
        released(LaplaceMechanism(1.0, code=None), **options)


@pytest.mark.slow
def test_audits_look_at_the_coordinates_of_the_code():
    """Of three pairs with room for gamma = .1 none is found above the promise, but half the noise
    is; and a search in the code finds a pair beyond the sensitivity.
    """
    model = private(LaplaceMechanism(2.0)).fit(X, y)
    geometry, value = model.mechanism_.geometry, model.sensitivity_.value
    options = {"stacked": True, "n_search": 2000, "n_final": 5000, "alpha": 1e-6, "rng": 0}
    assert not audit_estimator(model, X, y, pairs=3, **options).violated
    search = {"n_iter": 60, "random_state": 0, "geometry": geometry}
    found = find_large_sensitivity(model.plan_.target, SAMPLER.oracle, len(X), **search)
    assert found.norm > value


class Louder(LaplaceMechanism):
    """A mechanism from elsewhere that releases in its own way, and may know of no coordinates."""

    def release(self, value, sensitivity, rng=None):
        plain = LaplaceMechanism(self.epsilon, code=None)
        return plain.release(value, 1000 * sensitivity, rng)


def test_the_release_of_a_subclass_is_made_with_a_sensitivity_of_the_values():
    identity, loud = LaplaceMechanism(0.5, code=None), Louder(0.5, code="learned")
    assert planned(loud).sensitivity.geometry == planned(identity).sensitivity.geometry
    coded = planned(MECHANISMS[0]).sensitivity
    with pytest.raises(ValueError, match="made for another norm"):
        planned(Louder(0.5), sensitivity=coded)
    assert np.all(released(Louder(0.5)).value != released(identity).value)


@every_mechanism
def test_a_value_beyond_the_range_of_the_code_is_not_released(mechanism):
    code = diagonal_code([1e300, 1e300], [1e-300, 1e-300])
    noisy = mechanism.with_code(code)
    assert np.isnan(noisy.release([1e10, -1e10], 1.0)).all()


def test_a_pair_whose_value_has_another_size_than_the_code_counts_as_failed():
    def sometimes_short(X):
        means = X.mean(axis=0)
        return means if X.max() < 3.9 else means[:2]

    sampler = SensitivitySampler(multivariate_normal([0] * 3), clip=None, random_state=0)
    options = {"n_samples": 100, "like": None, "sensitivity": sampler}
    plan = planned(MECHANISMS[0], sometimes_short, **options)
    assert plan.mechanism.geometry.code.size == 3
    assert plan.sensitivity.failures == {"the shape of the value changed": 1}
