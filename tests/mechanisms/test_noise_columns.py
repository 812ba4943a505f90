"""The columns that say the covariance of the noise, against releases and against what decodes."""

import numpy as np
import pytest

from skdp import ExponentialMechanism, GaussianMechanism, L2LaplaceMechanism, LaplaceMechanism
from skdp.codes import PublicCode
from skdp.mechanisms.additive import MOST_COLUMNS
from skdp.mechanisms.noise import byte_source

N_RELEASES = 800
CODE = PublicCode(
    encoder=[[1.0, 1.0, 0.0], [0.0, 0.5, 0.5]],
    mean=[1.0, 2.0, 3.0],
    covariance=[[3.0, 0.2], [1.0, 0.5], [0.0, 1.0]],
    deviations=[2.0, 1.0, 1.5],
    removable=[[2.0, 0.1], [0.1, 1.0]],
)


MECHANISMS = [
    type(mechanism)(**mechanism.get_params() | {"code": code})
    for code in (None, CODE)
    for mechanism in (
        LaplaceMechanism(epsilon=1.0),
        L2LaplaceMechanism(epsilon=1.0),
        GaussianMechanism(epsilon=1.0, delta=1e-5),
    )
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: type(mechanism).__name__)
def test_they_sum_to_the_covariance_of_releases(mechanism):
    """Of 800 each; the noise is small beside the prior, so that it hardly widens it."""
    value, sensitivity, source = np.array([1.0, 2.0, 3.0]), 0.1, byte_source(0)
    released = [mechanism.release(value, sensitivity, source) for _ in range(N_RELEASES)]
    columns = mechanism.noise_columns((3,), sensitivity)
    covariance = columns @ columns.T
    np.testing.assert_allclose(
        np.cov(released, rowvar=False), covariance, atol=0.3 * covariance.max()
    )


def test_of_many_values_they_are_few_and_right_on_average():
    columns = LaplaceMechanism(epsilon=1.0, code=None).noise_columns((50, 40), 0.5)
    assert columns.shape == (2000, MOST_COLUMNS)
    np.testing.assert_allclose(np.sum(columns**2, axis=1), 0.5, rtol=1e-3)
    smooth = np.kron(np.eye(20), np.ones((1, 100))) / 10  # unit rows of 100 values each
    assert np.sum((smooth @ columns) ** 2) == pytest.approx(20 * 0.5, rel=0.2)
    again = LaplaceMechanism(epsilon=1.0, code=None).noise_columns((50, 40), 0.5)
    np.testing.assert_array_equal(columns, again)


def test_where_there_is_no_noise_or_none_is_known_there_are_none():
    assert LaplaceMechanism(epsilon=np.inf, code=None).noise_columns((3,), 1.0) is None
    assert LaplaceMechanism(epsilon=1.0, code=None).noise_columns((0,), 1.0) is None
    assert ExponentialMechanism(epsilon=1.0).noise_columns((), 1.0) is None

    class Own(LaplaceMechanism):
        def release(self, value, sensitivity, rng=None):
            return super().release(value, sensitivity, rng)

    assert Own(epsilon=1.0, code=None).noise_columns((3,), 1.0) is None
