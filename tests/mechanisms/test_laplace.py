"""The Laplace mechanism: the promise in exact fractions, and what is released."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from skdp import ExponentialMechanism
from skdp.core.geometry import Geometry
from skdp.mechanisms import noise
from skdp.mechanisms.discrete import MAX_SCALE
from skdp.mechanisms.laplace import LaplaceMechanism, laplace_scale
from skdp.mechanisms.noise import byte_source

sizes = st.integers(1, 20) | st.integers(1, 10**6)
epsilons = st.floats(-6, 6).map(lambda power: 10.0**power)
sensitivities = st.floats(-300, 300).map(lambda power: 10.0**power)


@given(sensitivity=sensitivities, d=sizes, epsilon=epsilons)
@example(sensitivity=1e-300, d=10**6, epsilon=1e6)
@example(sensitivity=1e300, d=10**6, epsilon=1e-6)
@example(sensitivity=1e300, d=1, epsilon=1e6)
@example(sensitivity=5e-324, d=3, epsilon=1.0)
def test_released_epsilon_by_exact_fractions(sensitivity, d, epsilon):
    """Never above the epsilon asked for, and at most .1 % more noise than Delta / epsilon."""
    lattice, scale = laplace_scale(sensitivity, d, epsilon)
    step = Fraction(2) ** lattice.exponent
    worst = Fraction(sensitivity) / step + d  # largest L1 norm after rounding
    assert worst / scale < Fraction(epsilon)
    assert 1 <= scale <= MAX_SCALE
    needed = Fraction(sensitivity) / Fraction(epsilon) / step
    assert Fraction(999, 1000) * scale <= needed


@given(
    rows=st.lists(st.tuples(st.floats(-9, 9), st.floats(-1, 1)), min_size=1, max_size=8),
    epsilon=epsilons,
    outputs=st.randoms(use_true_random=False),
)
def test_probability_ratio_on_neighboring_values(rows, epsilon, outputs):
    """log P(z | f) / P(z | f') as an exact fraction, for outputs near, between and far away."""
    value, shift = np.array(rows).T
    other = value + shift
    sensitivity = LaplaceMechanism(epsilon).geometry.distance(value, other)
    if sensitivity == 0:
        return
    lattice, scale = laplace_scale(sensitivity, len(rows), epsilon)
    here = lattice.to_integers(value).tolist()
    there = lattice.to_integers(other).tolist()
    for _ in range(5):
        z = [outputs.choice([a, b, a - 10**6, b + scale]) for a, b in zip(here, there, strict=True)]
        far = sum(abs(x - k) for x, k in zip(z, there, strict=True))
        near = sum(abs(x - k) for x, k in zip(z, here, strict=True))
        assert abs(Fraction(far - near, scale)) <= Fraction(epsilon)


def test_too_small_an_epsilon_is_refused():
    n_values = 10**6
    least = 4 * n_values / MAX_SCALE
    lattice, scale = laplace_scale(1.0, n_values, least)
    assert scale <= MAX_SCALE
    assert scale * 2.0**lattice.exponent < 1.7 / least
    with pytest.raises(ValueError, match=r"'epsilon' parameter of LaplaceMechanism is too small"):
        laplace_scale(1.0, n_values, least / 10)


def test_an_absurdly_large_epsilon_still_gets_its_lattice():
    _, scale = laplace_scale(1.0, 3, 1e300)
    assert scale == 1


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
def test_noise_against_the_continuous_law(epsilon):
    """The step is tiny, so the noise must look like Lap(Delta / epsilon).

    Kolmogorov-Smirnov, false-positive rate 1e-6 each; the rounding, at most .02 % of the scale,
    is far below the critical distance of .0085. Half or twice the noise differ by .12 at least.
    """
    value = np.linspace(-3, 3, 100_000)
    sensitivity = 2.0
    released = LaplaceMechanism(epsilon).release(value, sensitivity, byte_source(5))
    scale = sensitivity / epsilon
    law = stats.laplace(scale=scale).cdf
    assert stats.kstest(released - value, law).pvalue > 1e-6
    for wrong in (0.5, 2.0):
        assert stats.kstest((released - value) * wrong, law).pvalue < 1e-6


@pytest.mark.loop("shape", [(), (4,), (2, 3), (2, 1, 3), (0,)])
def test_shape_and_type_are_kept(shape):
    released = LaplaceMechanism(1.0).release(np.ones(shape, dtype=np.float32), 0.5, byte_source(0))
    assert released.shape == shape
    assert released.dtype == np.float64


def test_every_value_lies_on_the_same_lattice_whatever_was_released():
    """The trailing bits would otherwise tell 0.1 from 0.3 apart."""
    mechanism = LaplaceMechanism(epsilon=0.7)
    step = 2.0 ** laplace_scale(0.37, 200, 0.7)[0].exponent
    seen = []
    for center in (0.1, 0.3, -math.pi, 1e5 / 3):
        released = mechanism.release(np.full(200, center), 0.37, byte_source(1))
        assert np.all(np.mod(released, step) == 0)
        seen.append(np.mod(released / step, 16))
    # All sixteen endings occur for each value, so none marks it (chance of a miss 2e-4, seeded).
    assert all(np.unique(endings).size == 16 for endings in seen)
    # Noise of doubles has endings that are not on the lattice: the check above would catch it.
    textbook = 0.1 + np.random.default_rng(0).laplace(scale=0.37 / 0.7, size=200)
    assert not np.any(np.mod(textbook, step) == 0)


def test_every_coordinate_changes_and_two_releases_differ():
    value = np.linspace(-1, 1, 50)
    mechanism = LaplaceMechanism(epsilon=1.0)
    # On a lattice two of fifty values are the same now and then, so these two are seeded.
    first, second = (mechanism.release(value, 1.0, byte_source(seed)) for seed in range(2))
    assert np.all(first != value)
    assert np.all(first != second)


def test_infinite_epsilon_returns_an_equal_copy():
    value = np.array([[0.1, 1e300], [-0.3, 0.0]])
    released = LaplaceMechanism(epsilon=math.inf).release(value, 1.0)
    np.testing.assert_array_equal(released, value)
    assert not np.shares_memory(released, value)


def test_same_seed_same_release():
    mechanism = LaplaceMechanism(epsilon=1.0)
    first, again, other = (
        mechanism.release([1.0, 2.0], 1.0, byte_source(seed)) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


def test_noise_is_secret_by_default(monkeypatch):
    asked = []
    genuine = os.urandom
    monkeypatch.setattr(noise.os, "urandom", lambda n: asked.append(n) or genuine(n))
    LaplaceMechanism(epsilon=1.0).release(1.0, 1.0)
    assert asked


@pytest.mark.loop("epsilon", [0, -1.0, math.nan, "1", None, True])
def test_epsilon_outside_its_range_is_refused_in_use(epsilon):
    mechanism = LaplaceMechanism(epsilon)  # storing it is fine: scikit-learn's convention
    with pytest.raises(ValueError, match="'epsilon' parameter of LaplaceMechanism must be"):
        mechanism.release([1.0], 1.0)
    with pytest.raises(ValueError, match="'epsilon' parameter of LaplaceMechanism must be"):
        mechanism.guarantee()


@pytest.mark.loop("epsilon", [1.0, math.inf])
@pytest.mark.loop(
    ("value", "sensitivity", "message"),
    [
        ([1.0], 0.0, "never changes the target"),
        ([1.0], math.inf, "sampling failed"),
        ([7.25, math.nan], 1.0, "must be finite"),
        ([7.25, -math.inf], 1.0, "must be finite"),
    ],
)
def test_refusals_do_not_show_the_value(epsilon, value, sensitivity, message):
    with pytest.raises(ValueError, match=message) as caught:
        LaplaceMechanism(epsilon).release(value, sensitivity)
    assert "7.25" not in str(caught.value)


def test_guarantee():
    guarantee = LaplaceMechanism(epsilon=0.5).guarantee(gamma=0.05)
    assert (guarantee.epsilon, guarantee.delta, guarantee.gamma) == (0.5, 0.0, 0.05)
    assert math.isinf(LaplaceMechanism(epsilon=math.inf).guarantee().epsilon)


def test_parameters_follow_scikit_learn():
    mechanism = LaplaceMechanism(epsilon=1.0)
    copy = clone(mechanism).set_params(epsilon=2.0)
    assert mechanism.get_params() == {
        "epsilon": 1.0,
        "code": "auto",
        "shift": 0.2,
        "norm": "l1",
    }
    assert copy.epsilon == 2.0
    assert mechanism.geometry == Geometry(1)


def test_what_no_decoder_fills_in_is_learned_from_the_data():
    for mechanism in (LaplaceMechanism(1.0), LaplaceMechanism(math.inf), ExponentialMechanism(1.0)):
        assert mechanism.share_learned(1.0) == 1.0
