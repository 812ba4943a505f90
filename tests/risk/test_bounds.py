"""Bounds on composition and on sampled sensitivities, against random and known cases."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp.risk import (
    GridLoss,
    LaplaceLoss,
    advanced_composition,
    composition_at_risk,
)


def random_pairs(n_pairs, n_outcomes, rng):
    """Random pairs of laws on a few outcomes, from nearly equal to very different."""
    base = rng.dirichlet(np.full(n_outcomes, 0.5), size=n_pairs) + 1e-9
    tilt = rng.normal(size=(n_pairs, n_outcomes)) * rng.uniform(0.01, 3.0, size=(n_pairs, 1))
    sparse = rng.random((n_pairs, n_outcomes)) < rng.random((n_pairs, 1))
    sparse[:, 0] = True  # never the same law twice
    other = base * np.exp(tilt * sparse)
    return base / base.sum(axis=1, keepdims=True), other / other.sum(axis=1, keepdims=True)


def test_mean_loss_of_a_hundred_thousand_random_pairs():
    """With a true confidence no mean exceeds either bound; the mixture of tanh does not hold.

    The composition theorems bound the mean of one loss and leave the rest to Azuma's inequality,
    so the mean is what can go wrong. ``l tanh(l / 2)`` bounds the mean of a loss of level l, and
    mixing it like the published one looks as right as that and is wrong.
    """
    rng = np.random.default_rng(0)
    violations, tightest = 0, 0.0
    for n_outcomes in (2, 3, 4, 8, 16):
        p, q = random_pairs(20_000, n_outcomes, rng)
        loss = np.log(p / q)
        mean = (p * loss).sum(axis=1)
        epsilon0 = np.abs(loss).max(axis=1)
        epsilon = epsilon0 * rng.uniform(0.01, 0.99, size=epsilon0.size)
        confidence = (p * (np.abs(loss) <= epsilon[:, None])).sum(axis=1)

        def mixed(bound, *, epsilon=epsilon, epsilon0=epsilon0, confidence=confidence):
            return confidence * bound(epsilon) + (1 - confidence) * bound(epsilon0)

        published = mixed(lambda level: level * np.expm1(level))
        tighter = mixed(lambda level: np.expm1(level) - level)
        tanh = mixed(lambda level: level * np.tanh(level / 2))
        rounding = 1e-12 * (1 + epsilon0)
        assert (tighter <= published + rounding).all()
        assert (mean <= tighter + rounding).all()
        violations += (mean > tanh + 1e-6).sum()
        tightest = max(tightest, (mean / tighter).max())
        # The functions use these means.
        for i in range(3):
            args = epsilon[i], epsilon0[i], min(confidence[i], 1 - 1e-12), 7, 1e-4
            spread = epsilon0[i] * math.sqrt(14 * math.log(1e4))
            assert composition_at_risk(*args) - spread == pytest.approx(7 * tighter[i], rel=1e-9)
    assert violations > 100
    assert tightest > 0.5  # the bound is not far from attained, so a smaller one would be found


@given(epsilon0=st.floats(0.05, 1.5), share=st.floats(0.05, 1.0), n=st.integers(1, 60))
def test_composition_at_risk_is_above_the_exact_law(epsilon0, share, n):
    loss, epsilon = LaplaceLoss(epsilon0), share * epsilon0
    confidence = min(loss.two_sided(epsilon), 1 - 1e-12)
    bound = composition_at_risk(epsilon, epsilon0, confidence, n, 1e-5)
    assert bound >= GridLoss.from_law(loss, epsilon0 / 50).self_compose(n).epsilon(1e-5) - 1e-9
    assert bound <= advanced_composition(epsilon0, n, 1e-5)
