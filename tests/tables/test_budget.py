"""Shares of a budget: their sum is at most the whole, and nearly."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from skdp.mechanisms.gaussian import gaussian_sigma
from skdp.mechanisms.objective import profile
from skdp.tables.budget import KAPPA, split, total_delta


@pytest.mark.loop("second", [0.0, 0.1, 0.2])
@pytest.mark.loop("epsilon", [1e-3, 0.1, 0.3, 1 / 3, 1.0, 7.7])
def test_pure_epsilons_add_up(epsilon, second):
    noise, objective = split(epsilon, 0.0, second, 14, 200, 15)
    parts = [noise.epsilon]
    if second:
        parts += [objective(2.0).epsilon, objective(2.0).last]
    total = sum(map(Fraction, parts))
    assert total <= Fraction(epsilon)
    assert float(total) == pytest.approx(epsilon, rel=1e-12)
    assert noise.mu is None
    assert noise.epsilon == pytest.approx((1 - second) * epsilon)


@pytest.mark.loop(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (3.0, 1e-9), (0.5, 1e-100)])
@pytest.mark.loop("second", [0.0, 0.1, 0.2])
def test_gaussian_shares_meet_delta_and_hardly_lose(epsilon, delta, second):
    """Without the second stage mu is the largest; with it, it is .94 of it at least."""
    noise, objective = split(epsilon, delta, second, 14, 200, 15)
    mu = noise.mu / (1 - second) ** 0.5
    left = epsilon - (objective(1.0).last if second else 0.0)
    assert total_delta(left, delta, mu, second, 200, 15) <= delta
    assert total_delta(left, delta, mu * 1.001, second, 200, 15) > delta
    assert (0.94 if second else 0.9999) < mu * gaussian_sigma(epsilon, delta) <= 1
    if second:
        assert objective(1.0).mu == pytest.approx(mu * second**0.5)


@pytest.mark.loop(("epsilon", "mu"), [(0.1, 0.03), (1.0, 0.25), (3.0, 0.7)])
def test_composition_against_another_integration(epsilon, mu):
    """It is rounded up, by the bins and by what the lattices cost."""
    second = 0.2
    first, last, kappa = mu * 0.8**0.5, mu * 0.2**0.5, KAPPA * second * epsilon

    def integrand(x):
        return norm.pdf(x) * float(profile(epsilon - first**2 / 2 - first * x, last, kappa))

    jumps = [(epsilon - e - first**2 / 2) / first for e in (np.log1p(kappa / 4), 2.25 * kappa)]
    expected = quad(integrand, -12, 12, points=jumps, limit=500, epsabs=1e-14)[0]
    found = total_delta(epsilon, 1e-6, mu, second, 100, 8)
    assert expected * (1 - 1e-6) <= found <= 1.05 * expected


def test_an_infinite_epsilon_adds_no_noise():
    for delta in (0.0, 1e-6):
        assert split(np.inf, delta, 0.0, 3, 9, 2)[0].deviation == 0
