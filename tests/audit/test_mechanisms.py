"""The gallery: the exact epsilon against frozen numbers; its samplers are audited elsewhere."""

import math

import numpy as np
import pytest

from benchmarks.gallery import broken_cases, honest_cases

TRUTH = {
    "Laplace": 1.0,
    "randomized response": 1.0,
    "10-ary response": 1.0,
    "geometric": 1.0,
    "geometric clipped": 1.0,
    "Laplace clamped": 1.0,
    "exponential": 0.7960,
    "noisy max": 0.9804,
    "sparse vector": 0.5588,
    "histogram": 1.0,
    "Laplace, half the noise": 2.0,
    "Laplace, a tenth short": 1.1,
    "Laplace, scale from data": math.inf,
    "Gaussian as pure": math.inf,
    "one-sided noise": math.inf,
    "Laplace redrawn": 1.3799,
    "max value": 2.5,
    "max value, one-sided": math.inf,
    "coin-flip response": 1.0986,
    "exponential, no half": 1.5694,
    "noisy max, half the noise": 1.9794,
    "sparse vector, value": 2.5,
    "sparse vector, unscaled": 1.5613,
    "sparse vector, no query noise": math.inf,
    "sparse vector, no cutoff": 1.9003,
    "histogram, scale inverted": 2.0,
    "prefix sums": 1.0,
}
SLOW = {"sparse vector, value"}  # a second
NAMES = [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in TRUTH]
CASES = {case.name: case for case in honest_cases() + broken_cases()}


@pytest.mark.parametrize("name", NAMES)
def test_true_epsilon_against_frozen_numbers(name):
    """Computed once by simple sums on a fine grid; of equal datasets 0, and symmetric."""
    assert CASES.keys() == TRUTH.keys()
    case = CASES[name]
    epsilon, (x, x_prime) = case.mechanism.epsilon, case.pair
    assert case.true_epsilon == pytest.approx(TRUTH[name], abs=6e-5)
    assert epsilon(x, x) == pytest.approx(0.0, abs=1e-9)
    assert epsilon(x_prime, x) == pytest.approx(case.true_epsilon, rel=1e-9)
    first, again = (case.mechanism(x, 7, np.random.default_rng(0)) for _ in range(2))
    assert len(first) == 7
    assert np.array_equal(first, again)
