"""The gallery: the exact epsilon against frozen numbers, and the samplers against their laws."""

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks.gallery import (
    ExponentialChoice,
    ExponentialNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    NoisyArgmax,
    RandomizedResponse,
    SparseVector,
    TextbookLaplace,
    TruncatedLaplace,
    broken_cases,
    honest_cases,
)

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


# Goodness of fit of the samplers: 1e-5 for each of about twenty tests, so 2e-4 in all. With 2e4
# draws an error of a tenth in a scale is found with probability above .999.
LEVEL, N = 1e-5, 20_000
LAPLACE = stats.laplace(0.5)
SHARE = LAPLACE.cdf(2) - LAPLACE.cdf(0)


@pytest.mark.parametrize(
    ("mechanism", "x", "cdf"),
    [
        (LaplaceNoise(2.0), 1.0, stats.laplace(1.0, 2.0).cdf),
        (LaplaceNoise(1.0, slope=1.0), 1.0, stats.laplace(1.0, 2.0).cdf),
        (GaussianNoise(2.0), 1.0, stats.norm(1.0, 2.0).cdf),
        (ExponentialNoise(2.0), 1.0, stats.expon(1.0, 2.0).cdf),
        (TextbookLaplace(2.0), 1.0, stats.laplace(1.0, 2.0).cdf),
        (TruncatedLaplace(1.0, 0.0, 2.0), 0.5, lambda t: (LAPLACE.cdf(t) - LAPLACE.cdf(0)) / SHARE),
    ],
)
def test_continuous_noise_has_its_law(mechanism, x, cdf):
    outputs = mechanism(x, N, np.random.default_rng(1))
    assert stats.kstest(outputs, cdf).pvalue > LEVEL
    assert stats.kstest(1.1 * (outputs - x) + x, cdf).pvalue < LEVEL


@pytest.mark.parametrize(
    ("mechanism", "x"),
    [
        (ExponentialChoice(0.5), (1, 0, 0, 3, 0)),
        (NoisyArgmax(2.0), (0, 2, 2, 2.5, 2)),
        (SparseVector(2.0, 4.0), (1, 1, 0, 0, 0)),
        (SparseVector(2.0, 2.0, cutoff=None), (1, 1, 0)),
        (SparseVector(2.0, 0.0, cutoff=None), (1, 2, 0)),
        (SparseVector(1.0, 2.0, threshold=0.3, cutoff=2), (1, 1, 0, 0)),
    ],
)
def test_selections_have_the_law_that_quadrature_gives(mechanism, x):
    probabilities = mechanism.probabilities(x)
    assert probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    expected = N * probabilities[probabilities > 1e-12]
    rows = mechanism(x, N, np.random.default_rng(1))
    codes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    observed = np.bincount(codes, minlength=len(expected))
    assert stats.chisquare(observed, expected).pvalue > LEVEL
    assert stats.chisquare(observed, np.full(len(expected), N / len(expected))).pvalue < LEVEL


def test_geometric_noise_and_responses_by_their_formulas():
    rng = np.random.default_rng(1)
    noise = GeometricNoise(1.0)(3, N, rng) - 3
    k = np.arange(-4, 5)
    p = math.tanh(0.5) * np.exp(-np.abs(k))
    observed = [(noise == j).sum() for j in k]
    other = 1 - p.sum()
    assert stats.chisquare([*observed, N - sum(observed)], N * np.append(p, other)).pvalue > LEVEL
    assert GeometricNoise(1.0, clip=(0, 2))(1, 100, rng).max() == 2
    answers = np.bincount(RandomizedResponse(0.4, 4)(2, N, rng), minlength=4)
    assert stats.chisquare(answers, N * np.array([0.2, 0.2, 0.4, 0.2])).pvalue > LEVEL
