"""The joint statement over pair and noise: levels, coverage, and what is refused."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from skdp import (
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    SensitivitySampler,
    UniformOracle,
)
from skdp.codes import Geometry
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.l2_laplace import L2LaplaceMechanism
from skdp.risk import GaussianLoss, LaplaceLoss, PureLoss, joint_risk, privacy_loss_distribution


class Bounded(Mechanism):
    """Known by its epsilon only."""

    geometry = Geometry(1)

    def __init__(self, epsilon=1.0):
        self.epsilon = epsilon

    def release(self, value, sensitivity, rng):
        return value

    def guarantee(self, gamma=0.0):
        return LaplaceMechanism(self.epsilon).guarantee(gamma)


class Unknown(Bounded):
    """Nothing is known of where its delta falls."""

    def guarantee(self, gamma=0.0):
        return GaussianMechanism(self.epsilon, 1e-5).guarantee(gamma)


def estimate_of(norms, k, geometry=Bounded.geometry):
    norms = np.asarray(norms, dtype=float)
    value = np.sort(norms)[k - 1]
    return SimpleNamespace(norms=norms, value=value, geometry=geometry)


LAPLACE = LaplaceMechanism(epsilon=1.0)
NORMS = [0.5, math.inf, 0.25, 2.0, 1.0, 0.125, 1.5, math.inf, 0.75]  # the 7th of 9 is 2.0
ESTIMATE = estimate_of(NORMS, k=7)


def test_law_of_each_mechanism():
    assert privacy_loss_distribution(LAPLACE) == LaplaceLoss(1.0)
    assert privacy_loss_distribution(LAPLACE, distance=3) == LaplaceLoss(3.0)
    for mechanism in (ExponentialMechanism(2.0), L2LaplaceMechanism(2.0)):
        assert privacy_loss_distribution(mechanism, 2.0, distance=3.0) == PureLoss(3.0)
    assert privacy_loss_distribution(Bounded(), distance=0.1) == PureLoss(1.0)
    # Unit noise of the analytic calibration, from the table of Balle and Wang's formula.
    gauss = privacy_loss_distribution(GaussianMechanism(1.0, 1e-5))
    assert gauss.mu == pytest.approx(1 / 3.730632, rel=1e-6)
    assert 0 < 1e-5 - gauss.delta(1.0) < 1e-11
    half = privacy_loss_distribution(GaussianMechanism(1.0, 1e-5), distance=0.5)
    assert half.mu == pytest.approx(gauss.mu / 2)
    # The sensitivity is what the noise is calibrated to: the worst pair has the law of the claim.
    for sensitivity in (0.003, ESTIMATE, KnownSensitivity(0.003, "l1", 100)):
        law = privacy_loss_distribution(LAPLACE, sensitivity)
        assert law == joint_risk(LAPLACE, sensitivity).law(0.7) == LaplaceLoss(1.0)
    half = ESTIMATE.value / 2
    assert privacy_loss_distribution(LAPLACE, ESTIMATE, distance=half) == LaplaceLoss(0.5)


def test_levels():
    risk = joint_risk(LAPLACE, ESTIMATE, epsilon=[0.25, 1.0])
    assert_allclose(risk.pair_probability, np.arange(1, 10) / 10)
    ratio = np.sort(NORMS) / 2.0
    assert_allclose(risk.ratio, ratio, rtol=2e-3)
    assert risk.ratio[6] == 1.0
    assert (risk.ratio[:6] > ratio[:6]).all()  # rounding is charged below 1
    assert_allclose(risk.ratio[6:], ratio[6:])
    for row, distance in enumerate(risk.ratio[:7]):
        expected = LaplaceLoss(distance).cdf([0.25, 1.0])
        assert_allclose(risk.noise_probability[row], expected)
    assert (np.diff(risk.noise_probability, axis=0) <= 0).all()
    assert (risk.noise_probability[7:] == 0).all()  # infinite norms: nothing is claimed
    assert joint_risk(LAPLACE, ESTIMATE).epsilon.tolist() == [0.25, 0.5, 0.75, 1.0]


def test_reading_a_level():
    norms = np.arange(1.0, 100.0)
    risk = joint_risk(LAPLACE, estimate_of(norms, k=90), epsilon=0.5)
    assert risk.law(0.9) == LaplaceLoss(1.0)
    assert risk.law(0.95).epsilon0 == pytest.approx(95 / 90)
    assert risk.law(0.895) == risk.law(0.9)
    assert risk.epsilon_at(0.9, 1.0) == 1.0
    assert risk.epsilon_at(0.9, 0.4) == pytest.approx(LaplaceLoss(1.0).quantile(0.4))
    assert risk.epsilon_at(0.9, 0.01) == 0.0
    rows = [tuple(row.values()) for row in risk.table([0.44, 0.45, 0.9])]
    # At .45 the norm is half the value; with its rounding the loss may be a little above 1/2.
    assert 0.5 < risk.ratio[44] < 0.5001
    expected = [(0.44, 0.5, 1.0), (0.45, 0.5, 0.5), (0.9, 0.5, LaplaceLoss(1.0).cdf(0.5))]
    assert_allclose(rows, expected, atol=1e-4)


@pytest.mark.parametrize("kind", ["laplace", "gauss"])
@pytest.mark.parametrize("k", [3, 15, 19])
def test_probability_of_pair_and_noise_together(kind, k):
    """Six seeded runs of 20,000 at 5 standard errors: false positives below 1e-5 in total.

    Each run samples 19 pairs, calibrates the noise to the 15th, and compares the loss of a fresh
    pair with the level that is claimed for one level and one probability of the noise.
    """
    q, m, runs = 0.45, 19, 20_000
    rng = np.random.default_rng(k)
    norms = np.sort(rng.exponential(size=(runs, m)) ** 2, axis=1)
    fresh = rng.exponential(size=runs) ** 2
    if kind == "laplace":
        mechanism, law = LAPLACE, LaplaceLoss
        distance = fresh / norms[:, 14]
        noise = rng.laplace(size=runs)
        loss = np.abs(noise - distance) - np.abs(noise)
    else:
        mechanism, law = GaussianMechanism(1.0, 1e-3), GaussianLoss
        distance = fresh / norms[:, 14] * privacy_loss_distribution(mechanism).mu
        loss = rng.normal(size=runs) * distance + distance**2 / 2
    scale = 1.0 if kind == "laplace" else privacy_loss_distribution(mechanism).mu
    claimed = np.array(
        [max(0.0, law(scale * r).quantile(q)) for r in norms[:, k - 1] / norms[:, 14]]
    )
    first = joint_risk(mechanism, estimate_of(norms[0], 15, mechanism.geometry))
    assert first.epsilon_at(k / 20, q) == pytest.approx(claimed[0], abs=1e-3)
    promise = k / 20 * q
    error = 5 * math.sqrt(promise * (1 - promise) / runs)
    assert (loss <= claimed).mean() >= promise - error
    if k == 19:
        # The pair alone, with the worst case of the noise.
        covered = (distance <= scale * norms[:, k - 1] / norms[:, 14]).mean()
        assert abs(covered - k / 20) < 5 * math.sqrt(0.05 * 0.95 / runs)
        assert (distance <= scale * norms[:, 9] / norms[:, 14]).mean() < k / 20 - 0.2


def test_simultaneous_levels():
    """2,000 seeded samples of 50 pairs: the band fails in at most 5 % plus 5 standard errors.

    Levels that are meant one at a time are all right together far less often.
    """
    rng = np.random.default_rng(2)
    uniform = np.sort(rng.random((2000, 50)), axis=1)  # norms whose probability is their value
    risk = joint_risk(LAPLACE, estimate_of(uniform[0], 40), confidence=0.95)
    one_at_a_time = joint_risk(LAPLACE, estimate_of(uniform[0], 40))
    joint, single = risk.pair_probability, one_at_a_time.pair_probability
    assert_allclose(joint, np.maximum(np.arange(1, 51) / 50 - math.sqrt(math.log(20) / 100), 0))
    assert risk.ratio.shape == (50,)
    failed = (uniform < joint).any(axis=1).mean()
    assert failed <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / 2000)
    assert (uniform < single).any(axis=1).mean() > 0.5
    assert risk.confidence == 0.95
    assert risk.law(0.5).epsilon0 > one_at_a_time.law(0.5).epsilon0


def test_sensitivity_known_on_paper():
    for known in (0.01, KnownSensitivity(0.01, "l1", n_samples=100)):
        risk = joint_risk(LAPLACE, known)
        assert risk.pair_probability.tolist() == risk.ratio.tolist() == [1.0]
        assert risk.law(1.0) == LaplaceLoss(1.0)
    sometimes = KnownSensitivity(0.01, "l1", 100, gamma=0.1, preconditions="exponential records")
    assert joint_risk(LAPLACE, sometimes).pair_probability.tolist() == [0.9]
    # A bound in the larger norm will do for the Gaussian mechanism.
    gauss = GaussianMechanism(1.0, 1e-5)
    assert joint_risk(gauss, KnownSensitivity(0.01, "l1", 100)).law(1.0).mu < 1


def test_mechanism_of_which_only_epsilon_is_known():
    risk = joint_risk(Bounded(), ESTIMATE, epsilon=[0.5, 1.0])
    expected = np.tile(PureLoss(1.0).cdf([0.5, 1.0]), (7, 1))
    assert_allclose(risk.noise_probability[:7], expected)
    assert (risk.noise_probability[7:] == 0).all()
    above = joint_risk(Bounded(), estimate_of([1.0, 2.0, 3.0], k=2), epsilon=1.0)
    assert above.noise_probability.tolist() == [[1.0], [1.0], [0.0]]
    with pytest.raises(ValueError, match="at most the sensitivity for Bounded"):
        above.law(0.75)
    scores = joint_risk(
        ExponentialMechanism(1.0), estimate_of([1.0, 2.0, 3.0], 2, ExponentialMechanism.geometry)
    )
    assert scores.law(0.75) == PureLoss(1.5)


def test_fitted_estimator():
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    oracle = UniformOracle([(0, 1), (0, 1)], y_bounds=(0, 1))
    model = PrivateEstimator(
        Ridge(),
        mechanism=LAPLACE,
        sensitivity=SensitivitySampler(oracle, gamma=0.1, random_state=0),
        random_state=0,
    ).fit(X, X.sum(axis=1) / 2)
    risk = joint_risk(model, epsilon=[0.5, 1.0])
    expected = joint_risk(LAPLACE, model.sensitivity_, epsilon=[0.5, 1.0])
    assert_allclose(risk.noise_probability, expected.noise_probability)
    gamma = model.guarantee_.gamma
    assert risk.law(1 - gamma) == LaplaceLoss(model.guarantee_.epsilon)
    model.mechanism_ = LaplaceMechanism(2.0)  # one that learned something on the way
    assert joint_risk(model).law(0.9) == LaplaceLoss(2.0)


@pytest.mark.loop(
    ("call", "message"),
    [
        (lambda: privacy_loss_distribution(LAPLACE, 0.0), r"'sensitivity' .*\(0, inf\)"),
        (lambda: privacy_loss_distribution(Bounded(), distance=1.5), "for Bounded"),
        (lambda: privacy_loss_distribution(LaplaceMechanism(math.inf)), "must be finite"),
        (lambda: privacy_loss_distribution(0.5), "Got an object of type float"),
        (lambda: privacy_loss_distribution(Unknown()), "'noise_law'"),
        (lambda: joint_risk(LAPLACE), "'sensitivity' .* must be given"),
        (lambda: joint_risk(LAPLACE, estimate_of([1.0, 2.0], 1, Geometry(2))), "'l1'. Got 'l2'"),
        (lambda: joint_risk(LAPLACE, estimate_of([0.0, 1.0], 1)), r"'sensitivity' .*\(0, inf\)"),
        (lambda: joint_risk(LAPLACE, KnownSensitivity(0.1, "l2", 9)), "'l1'. Got 'l2'"),
        (lambda: joint_risk(LAPLACE, -1.0), "'sensitivity' parameter of joint_risk"),
        (lambda: joint_risk(LAPLACE, 1.0, epsilon=[-0.1]), "numbers of at least 0"),
        (lambda: joint_risk(LAPLACE, 1.0, epsilon=[[1]]), "in one dimension"),
        (lambda: joint_risk(LAPLACE, ESTIMATE, confidence=0.4), r"\[0.5, 1\)"),
        (lambda: joint_risk(LAPLACE, ESTIMATE).law(0.0), r"must be in \(0, 1\]"),
        (lambda: joint_risk(LAPLACE, ESTIMATE).law(0.75), "at most 0.7, which .* Got 0.75"),
        (lambda: joint_risk(LAPLACE, ESTIMATE).table([0.1, 0.9]), "Sample more pairs"),
    ],
)
def test_errors(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
