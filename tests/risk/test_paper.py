"""The published numbers, and where they are wrong."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.special import gammaln, kve, ndtr

import skdp.risk
from skdp.exceptions import ReproductionWarning
from skdp.risk import (
    CompensationModel,
    LaplaceLoss,
    advanced_composition,
    basic_composition,
    sampled_confidence,
)
from skdp.risk import paper as module
from skdp.risk.paper import (
    paper_composition,
    paper_confidence,
    paper_epsilon,
    paper_joint_confidence,
    paper_sampled_confidence,
    paper_t_cdf,
    paper_t_pdf,
)

# each call warns that the published number does not hold, which has a test of its own
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.ReproductionWarning")


def bessel_density(t, k, factor):
    """The density of Lemma 20 with a power of two to choose."""
    log = factor * math.log(2) + (k - 0.5) * np.log(t) - t - gammaln(k)
    return np.exp(log) * kve(k - 0.5, t) / math.sqrt(2 * math.pi)


@pytest.mark.parametrize("k", [1, 2, 3, 10])
def test_law_of_t_against_simulation(k):
    """Four seeded runs at the 1e-7 level of the DKW inequality; k + 1 outputs are refused."""
    n = 100_000
    draws = np.abs(np.subtract(*np.random.default_rng(k).gamma(k, size=(2, n))))
    empirical = np.arange(1, n + 1) / n
    limit = math.sqrt(math.log(2e7) / (2 * n)) + 1 / n
    assert np.abs(empirical - paper_t_cdf(np.sort(draws), k)).max() < limit
    assert np.abs(empirical - paper_t_cdf(np.sort(draws), k + 1)).max() > limit


@pytest.mark.parametrize("k", [1, 2, 3, 10, 300, 10_000])
def test_density_is_normalized(k):
    high = 20 * math.sqrt(k) + 60
    total = quad(lambda t: paper_t_pdf(t, k), 0, high, epsabs=1e-12, epsrel=1e-12, limit=400)[0]
    assert abs(total - 1) < 1e-10
    assert abs(paper_t_cdf(high, k) - 1) < 1e-12


@pytest.mark.loop("k", [1, 2, 3, 10, 40])
def test_density_against_the_bessel_function(k):
    t = np.array([0.01, 0.3, 1.0, 4.0, 15.0])
    assert_allclose(paper_t_pdf(t, k), bessel_density(t, k, 2 - k), rtol=1e-10)
    # The printed power of two, 1 - k, would leave half of the mass out.
    half = quad(lambda x: bessel_density(x, k, 1 - k), 1e-12, 20 * math.sqrt(k) + 60, limit=400)[0]
    assert half == pytest.approx(0.5, abs=1e-6)


@pytest.mark.loop("k", [1, 2, 17, 1000, 10_000])
def test_law_of_t_from_very_small_to_very_large(k):
    x = np.geomspace(1e-8, 1e4, 121)
    cdf = paper_t_cdf(x, k)
    assert (np.diff(cdf) >= 0).all()
    assert cdf[-1] == pytest.approx(1.0, abs=1e-12)
    # Near zero the law is its density times x: 2 integral f^2, f the Gamma density.
    log_density = gammaln(2 * k - 1) - 2 * gammaln(k) - (2 * k - 2) * math.log(2)
    assert_allclose(cdf[0], 1e-8 * math.exp(log_density), rtol=1e-7)
    assert paper_t_cdf(-1.0, k) == paper_t_pdf(-1.0, k) == 0
    if k >= 1000:  # the difference of the Gamma variables is nearly normal
        level = np.array([0.3, 1.0, 2.5])
        normal = 2 * ndtr(level) - 1
        assert_allclose(paper_t_cdf(level * math.sqrt(2 * k), k), normal, atol=1 / k)


def test_published_confidences():
    found = [paper_confidence(0.5, 1.0, k) for k in (1, 2, 3)]
    assert [round(number, 4) for number in found] == [0.6225, 0.5396, 0.5193]
    found = [paper_confidence(epsilon, 1.0) for epsilon in (0.1, 0.25, 0.75, 0.9)]
    assert [round(number, 4) for number in found] == [0.1505, 0.3499, 0.8347, 0.9388]
    found = [paper_epsilon(0.5, epsilon0) for epsilon0 in (0.5, 1.0, 2.0, 3.0)]
    assert [round(number, 4) for number in found] == [0.2191, 0.3799, 0.5662, 0.6446]
    assert_allclose(paper_confidence(0.3, 0.7), math.expm1(-0.3) / math.expm1(-0.7))


@given(
    confidence=st.floats(1e-6, 1 - 1e-6),
    epsilon0=st.floats(1e-3, 30.0),
    n_outputs=st.sampled_from([1, 2, 5, 100]),
)
def test_inverse(confidence, epsilon0, n_outputs):
    epsilon = paper_epsilon(confidence, epsilon0, n_outputs)
    assert 0 < epsilon <= epsilon0
    assert paper_confidence(epsilon, epsilon0, n_outputs) == pytest.approx(confidence, rel=1e-6)


@given(epsilon0=st.floats(1e-3, 20.0), share=st.floats(0.001, 0.999))
def test_published_confidence_is_none(epsilon0, share):
    loss, epsilon = LaplaceLoss(epsilon0), share * epsilon0
    claimed = paper_confidence(epsilon, epsilon0)
    # Corollary 23 as probabilistic differential privacy.
    assert loss.two_sided(epsilon) < claimed
    # As (epsilon, delta)-differential privacy it holds up to ln 3 and no further: close to
    # epsilon = 0 delta is 1 - exp(-epsilon0/2), and just below epsilon0 the slopes decide.
    if epsilon0 <= math.log(3):
        assert loss.delta(epsilon) <= 1 - claimed + 1e-12


@pytest.mark.parametrize("epsilon0", [1.11, 1.5, 4.0])
def test_published_delta_fails_above_ln_3(epsilon0):
    epsilon = epsilon0 * (1 - 1e-3)
    assert LaplaceLoss(epsilon0).delta(epsilon) > 1 - paper_confidence(epsilon, epsilon0)


TABLE = {
    0.1: [(10, 1.623, 1.591), (50, 3.919, 3.759), (100, 5.850, 5.530), (300, 11.466, 10.504)],
    0.5: [(10, 10.831, 9.381), (50, 33.183, 25.935), (100, 56.429, 41.932), (300, 138.865, 95.374)],
    1.0: [
        (10, 32.357, 24.213),
        (50, 119.845, 79.126),
        (100, 219.813, 138.376),
        (300, 598.597, 354.284),
    ],
}


@pytest.mark.parametrize(("epsilon0", "crossing"), [(0.1, 27), (0.5, 57), (1.0, 2494)])
def test_published_composition(epsilon0, crossing):
    model = CompensationModel(5500, 100, law="paper")
    epsilon = model.optimal_epsilon(epsilon0)
    confidence = paper_confidence(epsilon, epsilon0)

    def published(n):
        return paper_composition(epsilon, epsilon0, confidence, n, 1e-5)

    for n, advanced, theorem in TABLE[epsilon0]:
        assert round(advanced_composition(epsilon0, n, 1e-5), 3) == advanced
        assert round(published(n), 3) == theorem
    assert published(crossing - 1) > basic_composition(epsilon0, crossing - 1)
    assert published(crossing) < basic_composition(epsilon0, crossing)


def test_theorem_9_without_a_stronger_level_is_advanced_composition():
    expected = advanced_composition(0.7, 20, 1e-6)
    assert paper_composition(0.3, 0.7, 0.0, 20, 1e-6) == pytest.approx(expected)
    assert paper_composition(0.7, 0.7, 1.0, 20, 1e-6) == pytest.approx(expected)


def test_theorem_11_as_printed_fails_for_a_known_case():
    # The 90th of 100 uniform norms covers a fresh one with probability 90/101 exactly.
    truth = 90 / 101
    assert paper_sampled_confidence(0.9, rho=0.3, n_pairs=100) > truth
    assert sampled_confidence(0.9, rho=0.3, n_pairs=100) < truth
    assert sampled_confidence(0.9, rho=0.15, n_pairs=100) < truth


def test_theorem_13():
    found = paper_joint_confidence(0.5, 1.0, 0.9, 0.01, 18445, n_outputs=2, eta=1.2)
    ratio = paper_t_cdf(0.5, 2) / paper_t_cdf(1.2, 2)
    assert found == pytest.approx(ratio * 0.9 * 0.95, rel=1e-4)
    # Even with all of the sensitivity known, more than one half is never true.
    assert paper_joint_confidence(0.9, 1.0, 1.0, 0.01, 10**6) > 0.5 > LaplaceLoss(1.0).cdf(0.9)


def test_the_warning_comes_once_and_gives_the_reason():
    module._warn.cache_clear()
    with pytest.warns(ReproductionWarning, match="functions of the same outcome") as caught:
        paper_confidence(0.5, 1.0)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paper_confidence(0.5, 1.0)
        paper_epsilon(0.5, 1.0)
        CompensationModel(1, 1, law="paper").optimal_epsilon(1.0)
        paper_t_cdf(1.0)


@pytest.mark.loop(
    "call",
    [
        lambda: paper_confidence(0.5, 1.0),
        lambda: paper_epsilon(0.5, 1.0),
        lambda: paper_sampled_confidence(0.9, 0.1, 100),
        lambda: paper_joint_confidence(0.5, 1.0, 0.9, 0.1, 100),
        lambda: paper_composition(0.5, 1.0, 0.2, 10, 1e-5),
        lambda: CompensationModel(1, 1, law="paper").confidence(0.5, 1.0),
    ],
)
def test_every_published_number_warns(call):
    module._warn.cache_clear()
    with pytest.warns(ReproductionWarning):
        call()


@pytest.mark.loop(
    ("call", "message"),
    [
        (lambda: paper_confidence(1.1, 1.0), r"'epsilon' .* must be at most epsilon0=1, .*Got 1.1"),
        (lambda: paper_confidence(0.0, 1.0), r"'epsilon' .* must be in \(0, inf\)"),
        (lambda: paper_confidence(0.5, math.inf), r"'epsilon0' .* must be in \(0, inf\)"),
        (lambda: paper_epsilon(0.0, 1.0), r"'confidence' .* must be in \(0, 1\)"),
        (lambda: paper_epsilon(1.0, 1.0), r"'confidence' .* must be in \(0, 1\)"),
        (lambda: paper_epsilon(0.5, -1.0), r"'epsilon0' .* must be in"),
        (lambda: paper_t_cdf(1.0, 0), "'n_outputs' .* from 1 to"),
        (lambda: paper_sampled_confidence(0.0, 0.1, 10), r"'confidence' .* must be in \(0, 1\]"),
        (lambda: paper_sampled_confidence(0.9, 0.0, 10), r"'rho' .* must be in \(0, 1\)"),
        (lambda: paper_joint_confidence(2, 1, 0.9, 0.1, 10), "must be at most epsilon0=1"),
        (lambda: paper_joint_confidence(1, 2, 1.1, 0.1, 10), "'confidence' .* must be in"),
        (lambda: paper_joint_confidence(1, 2, 0.9, 0.1, 10, eta=0.9), "'eta' .* must be in"),
        (lambda: paper_composition(2, 1, 0.5, 10, 1e-5), "must be at most epsilon0=1"),
        (lambda: paper_composition(0.5, 1, 1.5, 10, 1e-5), r"'confidence' .* must be in \[0, 1\]"),
        (lambda: paper_composition(0.5, 1, 0.5, 10, 0.0), r"'delta' .* must be in \(0, 1\)"),
        (lambda: paper_composition(0.5, 1, 0.5, 0, 0.1), "'n' .* at least 1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_published_numbers_are_apart_from_those_that_hold():
    assert not any(name.startswith("paper_") for name in vars(skdp.risk))
    assert all(name.startswith("paper_") for name in module.__all__)
