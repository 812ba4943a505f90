"""The joint statement over pair and noise: levels, coverage, and what is refused."""

import math
from dataclasses import replace

import numpy as np
import pytest

from skdp import KnownSensitivity, LaplaceMechanism, SensitivitySampler
from skdp.codes import Geometry
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.l2_laplace import L2LaplaceMechanism
from skdp.risk import GaussianLoss, LaplaceLoss, PureLoss, joint_risk, privacy_loss_distribution
from skdp.sensitivity import OrderStatistic


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


SAMPLER = SensitivitySampler(lambda n, rng: rng.random((n, 1)), gamma=0.5, n_pairs=3)
SAMPLED = SAMPLER.set_params(random_state=0).sample(np.mean, 10, "l1")


def estimate_of(norms, k, geometry=Bounded.geometry):
    m = len(norms)
    order_statistic = OrderStatistic(m, k, round(1 - k / (m + 1), 12) + 1e-9, "exact")
    norms = np.asarray(norms, dtype=float)
    return replace(SAMPLED, norms=norms, order_statistic=order_statistic, geometry=geometry)


LAPLACE = LaplaceMechanism(epsilon=1.0)
NORMS = [0.5, math.inf, 0.25, 2.0, 1.0, 0.125, 1.5, math.inf, 0.75]  # the 7th of 9 is 2.0
ESTIMATE = estimate_of(NORMS, k=7)


def test_law_of_each_mechanism():
    assert privacy_loss_distribution(LAPLACE) == LaplaceLoss(1.0)
    assert privacy_loss_distribution(LAPLACE, distance=3) == LaplaceLoss(3.0)
    for mechanism in (ExponentialMechanism(2.0), L2LaplaceMechanism(2.0)):
        assert privacy_loss_distribution(mechanism, distance=1.5) == PureLoss(3.0)
    assert privacy_loss_distribution(Bounded(), distance=0.1) == PureLoss(1.0)
    # Unit noise of the analytic calibration, from the table of Balle and Wang's formula.
    gauss = privacy_loss_distribution(GaussianMechanism(1.0, 1e-5))
    assert gauss.mu == pytest.approx(1 / 3.730632, rel=1e-6)
    assert 0 < 1e-5 - gauss.delta(1.0) < 1e-11
    half = privacy_loss_distribution(GaussianMechanism(1.0, 1e-5), distance=0.5)
    assert half.mu == pytest.approx(gauss.mu / 2)


def test_a_level_is_the_law_at_the_ratio_of_the_norms():
    ratios = np.sort(NORMS)[:7] / 2.0
    for rank, ratio in enumerate(ratios, 1):
        for p in (rank / 10, rank / 10 - 0.05):
            law = joint_risk(LAPLACE, ESTIMATE, p)
            assert law.epsilon0 == pytest.approx(ratio, rel=1e-3)
            assert law.epsilon0 > ratio or ratio == 1  # rounding is charged below 1
    assert joint_risk(LAPLACE, ESTIMATE, 0.7) == LaplaceLoss(1.0)
    norms = np.arange(1.0, 100.0)
    assert joint_risk(LAPLACE, estimate_of(norms, 90), 0.95).epsilon0 == pytest.approx(95 / 90)
    scores = estimate_of([1.0, 2.0, 3.0], 2, ExponentialMechanism.geometry)
    assert joint_risk(ExponentialMechanism(1.0), scores, 0.75) == PureLoss(1.5)
    small = estimate_of([1.0, 2.0, 3.0], 2)
    assert joint_risk(Bounded(), small, 0.25) == joint_risk(Bounded(), small, 0.5) == PureLoss(1.0)


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
    first = joint_risk(mechanism, estimate_of(norms[0], 15, mechanism.geometry), k / 20)
    assert max(0.0, first.quantile(q)) == pytest.approx(claimed[0], abs=1e-3)
    promise = k / 20 * q
    error = 5 * math.sqrt(promise * (1 - promise) / runs)
    assert (loss <= claimed).mean() >= promise - error
    if k == 19:
        # The pair alone, with the worst case of the noise.
        covered = (distance <= scale * norms[:, k - 1] / norms[:, 14]).mean()
        assert abs(covered - k / 20) < 5 * math.sqrt(0.05 * 0.95 / runs)
        assert (distance <= scale * norms[:, 9] / norms[:, 14]).mean() < k / 20 - 0.2


@pytest.mark.loop(
    ("call", "message"),
    [
        (lambda: privacy_loss_distribution(LAPLACE, 0.0), r"'distance' .*\(0, inf\)"),
        (lambda: privacy_loss_distribution(Bounded(), distance=1.5), "for Bounded"),
        (lambda: privacy_loss_distribution(LaplaceMechanism(math.inf)), "must be finite"),
        (lambda: privacy_loss_distribution(0.5), "must be a Mechanism"),
        (lambda: privacy_loss_distribution(Unknown()), "'noise_law'"),
        (lambda: joint_risk(0.5, ESTIMATE, 0.5), "must be a Mechanism"),
        (lambda: joint_risk(LAPLACE, 1.0, 0.5), "must be a SensitivityEstimate"),
        (lambda: joint_risk(LAPLACE, KnownSensitivity(0.1, "l1", 9), 0.5), "known on paper"),
        (lambda: joint_risk(LAPLACE, estimate_of([1.0, 2.0], 1, Geometry(2)), 0.5), "Got 'l2'"),
        (lambda: joint_risk(LAPLACE, estimate_of([0.0, 1.0], 1), 0.5), r"'sensitivity' .*\(0, inf"),
        (lambda: joint_risk(LAPLACE, ESTIMATE, 0.0), r"must be in \(0, 1\)"),
        (lambda: joint_risk(LAPLACE, ESTIMATE, 0.75), "at most 0.7, which .* Got 0.75"),
        (lambda: joint_risk(Bounded(), estimate_of([1.0, 2.0, 3.0], 2), 0.75), "for Bounded"),
    ],
)
def test_errors(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
