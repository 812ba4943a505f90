"""Parameters come from grids, and grids hold numpy's numbers: they mean what floats mean."""

from fractions import Fraction

import numpy as np
import pytest

from skdp import (
    ExponentialMechanism,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
)

EPSILONS = [
    *(kind(3) for kind in (np.uint8, np.int8, np.int64, np.uint64)),
    *(kind(0.3) for kind in (np.float16, np.float32, np.float64, np.longdouble)),
    Fraction(1, 3),
]


@pytest.mark.loop("make", [LaplaceMechanism, L2LaplaceMechanism, ExponentialMechanism])
@pytest.mark.loop("epsilon", EPSILONS)
def test_an_epsilon_of_any_type_gives_the_noise_of_a_float(make, epsilon):
    value = np.array([0.2, 0.7, -3.0])
    released, expected = (
        make(each).release(value, 0.37, np.random.default_rng(0))
        for each in (epsilon, float(epsilon))
    )
    np.testing.assert_array_equal(released, expected)


@pytest.mark.loop("epsilon", EPSILONS)
@pytest.mark.loop("kind", [float, np.float32])
def test_gaussian_noise_is_not_calibrated_in_low_precision(epsilon, kind):
    delta = kind(1e-5)
    released, expected = (
        GaussianMechanism(*each).release(np.zeros(100), 0.37, np.random.default_rng(0))
        for each in ((epsilon, delta), (float(epsilon), float(delta)))
    )
    np.testing.assert_array_equal(released, expected)
