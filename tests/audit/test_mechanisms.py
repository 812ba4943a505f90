"""The gallery: the exact epsilon against closed forms and counting, and the samplers against it."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from benchmarks.gallery import (
    ExponentialChoice,
    ExponentialNoise,
    GaussianNoise,
    GeometricNoise,
    LaplaceNoise,
    MaxOfNoisy,
    NoisyArgmax,
    PrefixSums,
    RandomizedResponse,
    SparseVector,
    SparseVectorValue,
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


def test_all_cases_are_there():
    assert CASES.keys() == TRUTH.keys()
    assert len(honest_cases()) == 10
    assert len(broken_cases()) == 17


@pytest.mark.loop("name", NAMES)
def test_true_epsilon_against_frozen_numbers(name):
    # Computed once by simple sums on a fine grid, to the digits shown.
    assert CASES[name].true_epsilon == pytest.approx(TRUTH[name], abs=6e-5)


@pytest.mark.parametrize("name", NAMES)
def test_epsilon_of_equal_datasets_is_zero_and_symmetric(name):
    case = CASES[name]
    x, x_prime = case.pair
    assert case.mechanism.epsilon(x, x) == pytest.approx(0.0, abs=1e-9)
    assert case.mechanism.epsilon(x_prime, x) == pytest.approx(case.true_epsilon, rel=1e-9)


@pytest.mark.loop("name", TRUTH)
def test_outputs_come_one_per_run(name):
    case = CASES[name]
    outputs = case.mechanism(case.pair[0], 7, np.random.default_rng(0))
    assert len(outputs) == 7
    again = case.mechanism(case.pair[0], 7, np.random.default_rng(0))
    assert np.array_equal(outputs, again)


# Goodness of fit of the samplers: 1e-5 for each of about twenty tests, so 2e-4 in all. With 2e4
# draws an error of a tenth in a scale is found with probability above .999.
LEVEL, N = 1e-5, 20_000


@pytest.mark.parametrize(
    ("mechanism", "x", "law"),
    [
        (LaplaceNoise(2.0), 1.0, stats.laplace(1.0, 2.0)),
        (LaplaceNoise(1.0, slope=1.0), 1.0, stats.laplace(1.0, 2.0)),
        (GaussianNoise(2.0), 1.0, stats.norm(1.0, 2.0)),
        (ExponentialNoise(2.0), 1.0, stats.expon(1.0, 2.0)),
        (TextbookLaplace(2.0), 1.0, stats.laplace(1.0, 2.0)),
    ],
)
def test_continuous_noise_has_its_law(mechanism, x, law):
    outputs = mechanism(x, N, np.random.default_rng(1))
    assert stats.kstest(outputs, law.cdf).pvalue > LEVEL
    assert stats.kstest(1.1 * (outputs - x) + x, law.cdf).pvalue < LEVEL


def test_truncated_laplace_has_its_law():
    mechanism = TruncatedLaplace(1.0, 0.0, 2.0)
    law = stats.laplace(0.5)
    outputs = mechanism(0.5, N, np.random.default_rng(1))

    def cdf(t):
        return (law.cdf(t) - law.cdf(0)) / (law.cdf(2) - law.cdf(0))

    assert stats.kstest(outputs, cdf).pvalue > LEVEL
    assert stats.kstest(np.clip(law.rvs(N, random_state=1), 0, 2), cdf).pvalue < LEVEL


def codes(rows):
    """Number the distinct rows."""
    return np.unique(np.asarray(rows), axis=0, return_inverse=True)[1].ravel()


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
    possible = probabilities[probabilities > 1e-12]
    outputs = codes(mechanism(x, N, np.random.default_rng(1)))
    observed = np.bincount(outputs, minlength=len(possible))
    expected = np.array([N * p for p in possible])
    assert stats.chisquare(observed, expected).pvalue > LEVEL
    assert stats.chisquare(observed, np.full(len(possible), N / len(possible))).pvalue < LEVEL


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


@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_density_of_the_maximum_against_its_distribution(noise):
    mechanism, x = MaxOfNoisy(noise, 2.0), (0.0, 1.0, 1.5)
    law = stats.laplace if noise == "laplace" else stats.expon
    t = np.linspace(2.0, 12.0, 2001)
    cdf = np.prod([law(v, 2.0).cdf(t) for v in x], axis=0)
    density = np.gradient(cdf, t)
    assert np.exp(mechanism.log_density(t, x))[1:-1] == pytest.approx(density[1:-1], abs=1e-5)
    outputs = mechanism(x, N, np.random.default_rng(1))
    assert (outputs < 3).mean() == pytest.approx(np.prod([law(v, 2.0).cdf(3) for v in x]), abs=0.02)


def test_maximum_of_five_reaches_five_shares_below_zero_and_one_far_above():
    # Example 1 of the local approach, whose text has the two ends of the line exchanged.
    mechanism, zeros, ones = MaxOfNoisy("laplace", 2.0), (0,) * 5, (1,) * 5
    loss = np.abs(
        mechanism.log_density([-30.0, 0.0, 60.0], zeros)
        - mechanism.log_density([-30.0, 0.0, 60.0], ones)
    )
    assert loss == pytest.approx([2.5, 2.5, 0.5], abs=1e-6)


@pytest.mark.slow
def test_density_of_the_released_value_integrates_to_its_index():
    mechanism, x = SparseVectorValue(2.0, 2.0), (0.0, 1.0, 0.0)
    silent = SparseVector(2.0, 2.0).probabilities(x)[0]
    t = np.linspace(-25, 40, 350)
    mass = [
        integrate.trapezoid([math.exp(mechanism.log_density(i, v, x)) for v in t], t)
        for i in range(3)
    ]
    assert sum(mass) + silent == pytest.approx(1.0, abs=1e-3)
    index = mechanism(x, N, np.random.default_rng(1))[:, 0]
    observed = [(index == i).sum() for i in (-1, 0, 1, 2)]
    expected = np.array([silent, *mass])
    assert stats.chisquare(observed, N * expected / expected.sum()).pvalue > LEVEL


def test_prefix_sums_are_sums_of_noisy_values():
    rows = PrefixSums(5.0)((1, 2, 3), 5, np.random.default_rng(0))
    noisy = LaplaceNoise(5.0)((1, 2, 3), 5, np.random.default_rng(0))
    assert np.allclose(np.diff(rows, axis=1, prepend=0), noisy)


@pytest.mark.parametrize("ends", [(0.0, math.inf), (-math.inf, 1.0), (-math.inf, math.inf), (0, 3)])
def test_epsilon_of_redrawn_noise_is_the_largest_ratio_of_densities(ends):
    """Also where an end is infinite: there the ratio of the densities has a limit."""
    mechanism, points = TruncatedLaplace(0.5, *ends), np.linspace(-30, 30, 60_001)
    points = points[(ends[0] <= points) & (points <= ends[1])]
    laws = [stats.laplace(x, 0.5) for x in (0.0, 1.0)]
    densities = [law.logpdf(points) - np.log(law.cdf(ends[1]) - law.cdf(ends[0])) for law in laws]
    expected = np.abs(densities[0] - densities[1]).max()
    assert mechanism.epsilon(0.0, 1.0) == pytest.approx(expected, rel=1e-12)
    assert mechanism.epsilon(1.0, 0.0) == pytest.approx(expected, rel=1e-12)
    assert mechanism.epsilon(0.5, 0.5) == 0
    outputs = mechanism(1.0, 100, np.random.default_rng(0))
    assert np.isfinite(outputs).all()
