"""The Bernstein mechanism as published: sup norm times the number of values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from skdp import (
    BernsteinMechanism,
    KnownSensitivity,
    LaplaceMechanism,
    SensitivitySampler,
    UniformOracle,
    release,
)

VALUES = np.linspace(-1, 1, 4000)


@given(arrays(np.float64, array_shapes(max_dims=2), elements=st.floats(-1e6, 1e6)))
def test_l1_norm_is_covered(difference):
    norm = BernsteinMechanism(1.0).geometry.distance(difference, 0 * difference)
    assert norm == np.max(np.abs(difference))
    assert math.nextafter(norm * difference.size, math.inf) >= math.fsum(np.abs(difference).ravel())


@pytest.mark.parametrize(("epsilon", "scale"), [(0.5, 80.0), (2.0, 20.0)])
def test_noise_has_the_published_scale(epsilon, scale):
    """N = 4,000 values and a sup norm of .01: the scale is .01 N / epsilon.

    The mean of 4,000 Laplace magnitudes has a relative standard error of 1.6 %; five of them.
    """
    noise = BernsteinMechanism(epsilon).release(VALUES, 0.01, np.random.default_rng(0)) - VALUES
    assert np.abs(noise).mean() == pytest.approx(scale, rel=5 / np.sqrt(4000))


def test_norms_are_told_apart():
    X = np.random.default_rng(0).uniform(size=(10, 1))
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, random_state=0)
    sup = release(np.ravel, X, mechanism=BernsteinMechanism(1.0), sensitivity=sampler)
    assert sup.sensitivity.geometry.key == "sup"
    assert (sup.guarantee.epsilon, sup.guarantee.gamma) == (1.0, 0.2)
    with pytest.raises(ValueError, match="another norm"):
        release(np.ravel, X, mechanism=LaplaceMechanism(1.0), sensitivity=sup.sensitivity)
    known = KnownSensitivity(0.1, "sup", 10)
    release(np.ravel, X, mechanism=BernsteinMechanism(1.0), sensitivity=known)


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, np.inf, np.nan])
def test_sensitivity_outside_its_range_is_refused(sensitivity):
    with pytest.raises(ValueError, match="must be positive and finite"):
        BernsteinMechanism(1.0).release(VALUES, sensitivity)


def test_promise_is_that_of_the_laplace_mechanism():
    assert BernsteinMechanism(2.0).guarantee(0.1) == LaplaceMechanism(
        2.0, basis="identity"
    ).guarantee(0.1)
    np.testing.assert_array_equal(BernsteinMechanism(np.inf).release(VALUES, 1.0), VALUES)
    with pytest.raises(ValueError, match="'epsilon'"):
        BernsteinMechanism(0.0).guarantee()
