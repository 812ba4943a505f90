"""The Gaussian mechanism: calibration against three other routes, and what is released."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from skdp.mechanisms.discrete import MAX_SCALE
from skdp.mechanisms.gaussian import gaussian_delta, gaussian_scale, gaussian_sigma, lattice_delta

GRID = list(itertools.product([0.01, 0.1, 0.5, 1, 3, 10, 30, 100], [1e-10, 1e-5, 0.01, 0.3, 0.9]))


@pytest.mark.parametrize(("epsilon", "sigma"), [(0.3, 2.0), (1.0, 0.7), (4.0, 0.8), (-0.5, 3.0)])
def test_curve_against_integration(epsilon, sigma):
    """delta = integral of the positive part of p(x) - e^epsilon p(x - 1), by quadrature."""
    edge = 0.5 - epsilon * sigma**2  # where the two densities balance
    here, there = stats.norm(0, sigma), stats.norm(1, sigma)
    delta = integrate.quad(
        lambda x: here.pdf(x) - math.exp(epsilon) * there.pdf(x),
        edge - 20 * sigma,
        edge,
        epsabs=1e-14,
        points=[max(edge - 19 * sigma, min(edge - 1e-3, 0.0))],
    )[0]
    assert gaussian_delta(epsilon, sigma) == pytest.approx(delta, rel=1e-7, abs=1e-14)


def test_curve_where_the_exponential_is_huge():
    """exp(epsilon) overflows, delta does not; below the smallest sigma delta tends to 1."""
    assert gaussian_delta(2000.0, 0.02) == pytest.approx(stats.norm.cdf(25 - 40), rel=0.7)
    assert 0 < gaussian_delta(2000.0, 0.02) < stats.norm.cdf(25 - 40)
    assert gaussian_delta(1.0, 1e-9) == pytest.approx(1.0)
    # An epsilon below 0 so far that even the second density's whole mass counts.
    assert gaussian_delta(-5.0, 1.0) == pytest.approx(1 - math.exp(-5), rel=1e-4)


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_calibration_against_dp_accounting(epsilon, delta):
    """The whole mechanism, rounding and discreteness charged: never less noise than the
    continuous law needs by an independent implementation, and at most .1 % more."""
    for n_values in (1, 30, 10**6):
        lattice, sigma = gaussian_scale(1.0, n_values, epsilon, delta)
        noise = sigma * 2.0**lattice.exponent
        peer = GaussianPrivacyLoss(noise, sensitivity=1.0)
        assert peer.get_delta_for_epsilon(epsilon) <= delta
        peer = GaussianPrivacyLoss(noise / 1.001, sensitivity=1.0)
        assert peer.get_delta_for_epsilon(epsilon) > delta


@given(
    epsilon=st.floats(-6, 6).map(lambda power: 10.0**power),
    delta=st.floats(-300, 0, exclude_max=True).map(lambda power: min(10.0**power, 1 - 2**-53)),
    sensitivity=st.floats(-300, 300).map(lambda power: 10.0**power),
    n_values=st.integers(1, 10**6),
)
def test_the_lattice_never_takes_less_noise(epsilon, delta, sensitivity, n_values):
    lattice, sigma = gaussian_scale(sensitivity, n_values, epsilon, delta)
    steps = lattice.integer_sensitivity(sensitivity, math.isqrt(n_values - 1) + 1)
    assert 1 <= sigma <= MAX_SCALE
    assert lattice_delta(epsilon, sigma, steps, n_values) <= delta
    needed = gaussian_sigma(epsilon, delta) * (sensitivity / 2.0 ** (lattice.exponent // 2))
    assert sigma * 2.0 ** (lattice.exponent - lattice.exponent // 2) >= needed * (1 - 1e-8)


def exact_lattice_delta(epsilon, sigma, shift):
    """Sum the hockey stick of the discrete Gaussian over all integer outputs."""
    reach = int(12 * sigma) + 2 * max(map(abs, shift))
    grid = np.meshgrid(*[np.arange(-reach, reach + 1)] * len(shift), indexing="ij")
    here = sum(axis**2 for axis in grid) / (2 * sigma**2)
    there = sum((axis - w) ** 2 for axis, w in zip(grid, shift, strict=True)) / (2 * sigma**2)
    excess = np.exp(-here) - np.exp(epsilon - there)
    return np.maximum(excess, 0).sum() / np.exp(-here).sum()


@pytest.mark.loop("epsilon", [0.05, 0.5, 1.0, 3.0])
@pytest.mark.loop("shift", [(1,), (2,), (7,), (1, 1), (3, 4), (5, 0), (1, -2)])
@pytest.mark.loop("sigma", [1, 3, 9])
def test_discrete_curve_is_bounded(epsilon, shift, sigma):
    """The proof in `lattice_delta`, checked by summation on lattices that are far too coarse."""
    bound = lattice_delta(epsilon, sigma, math.hypot(*shift), len(shift))
    assert exact_lattice_delta(epsilon, sigma, shift) <= bound


def test_the_charge_for_discreteness_is_needed():
    """Read off the continuous curve, the discrete noise would promise too much."""
    worst = max(
        exact_lattice_delta(epsilon, 1, (1,)) / gaussian_delta(epsilon, 1.0)
        for epsilon in (0.05, 0.5, 1.0, 1.4)
    )
    assert worst > 1.01


def test_extreme_but_finite_epsilon():
    lattice, sigma = gaussian_scale(1.0, 3, 1e300, 1e-5)
    assert sigma == 1
    assert 2.0**lattice.exponent < 1e-9


def test_noise_beyond_64_bits_is_refused():
    with pytest.raises(ValueError, match="too small for 1000000 released values"):
        gaussian_scale(1.0, 10**6, 1e-18, 1e-20)
    # Just representable: the lattice gets coarser instead, and still covers the noise needed.
    lattice, sigma = gaussian_scale(1.0, 10**6, 1e-10, 1e-11)
    assert sigma <= MAX_SCALE
    ratio = sigma * 2.0**lattice.exponent / gaussian_sigma(1e-10, 1e-11)
    assert 1 <= ratio < 2
