"""The Bernstein mechanism as published: sup norm times the number of values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from skdp import BernsteinMechanism, KnownSensitivity, LaplaceMechanism, release
from skdp.mechanisms.base import l1_norm

VALUES = np.linspace(-1, 1, 4000)


@given(arrays(np.float64, array_shapes(max_dims=2), elements=st.floats(-1e6, 1e6)))
def test_norm_is_never_below_the_l1_norm(difference):
    norm = BernsteinMechanism(1.0).norm(difference)
    assert norm >= l1_norm(difference) * (1 - 1e-15)
    assert norm == difference.size * np.max(np.abs(difference))


def test_noise_has_the_published_scale():
    """Sup norm .01, N values, epsilon .5: scale .01 N / .5.

    The mean of 4,000 Laplace magnitudes has a relative standard error of 1.6 %; five of them.
    """
    mechanism = BernsteinMechanism(0.5)
    sensitivity = mechanism.norm(np.full(VALUES.size, 0.01))
    noise = mechanism.release(VALUES, sensitivity) - VALUES
    assert np.abs(noise).mean() == pytest.approx(0.01 * VALUES.size / 0.5, rel=5 / np.sqrt(4000))


def test_norms_are_told_apart():
    known = KnownSensitivity(0.1, BernsteinMechanism.norm_name, 10)
    X = np.random.default_rng(0).uniform(size=(10, 1))
    released = release(np.ravel, X, mechanism=BernsteinMechanism(1.0), sensitivity=known)
    assert released.guarantee.epsilon == 1.0
    with pytest.raises(ValueError, match="norm"):
        release(np.ravel, X, mechanism=LaplaceMechanism(1.0), sensitivity=known)


def test_promise_is_that_of_the_laplace_mechanism():
    assert BernsteinMechanism(2.0).guarantee(0.1) == LaplaceMechanism(2.0).guarantee(0.1)
    np.testing.assert_array_equal(BernsteinMechanism(np.inf).release(VALUES, 1.0), VALUES)
    with pytest.raises(ValueError, match="'epsilon'"):
        BernsteinMechanism(0.0).guarantee()
