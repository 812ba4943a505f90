"""The exponential mechanism against its law and its promise."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.noise import Lattice, byte_source

SCORES = np.array([0.0, 3.0, 3.0, -2.5, 1.25])


def law_of(scores, epsilon, sensitivity):
    weights = np.exp(0.5 * epsilon * (scores - np.max(scores)) / sensitivity)
    return weights / weights.sum()


def test_pangram():
    """Letter counts of a pangram at sensitivity 5, epsilon 1: P(o) = .05001, P(e) = .04525."""
    text = "the quick brown fox jumps over the lazy dog"
    counts = [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
    law = ExponentialMechanism(epsilon=1.0).probabilities(counts, 5.0)
    assert round(law[ord("o") - ord("a")], 5) == 0.05001
    assert round(law[ord("e") - ord("a")], 5) == 0.04525
    assert law.sum() == pytest.approx(1.0)


@pytest.mark.slow
@pytest.mark.parametrize("scores", [SCORES, np.full(4, 0.1)])
def test_choices_against_the_exact_law(scores):
    """Chi-square; false-positive rate 1e-6.

    Caught are epsilon without its 1/2 and without epsilon, of unequal scores; and .2 instead of .25
    of equal ones.
    """
    mechanism, source, n_draws = ExponentialMechanism(epsilon=1.0), byte_source(0), 5000
    draws = [mechanism.release(scores, 0.8, source) for _ in range(n_draws)]
    counts = np.bincount(draws, minlength=len(scores))
    assert stats.chisquare(counts, n_draws * law_of(scores, 1.0, 0.8)).pvalue > 1e-6
    if scores is SCORES:
        wrong = [law_of(scores, 2.0, 0.8), np.full(5, 0.2)]
    else:
        wrong = [np.array([0.2, 0.2, 0.3, 0.3])]
    for law in wrong:
        assert stats.chisquare(counts, n_draws * law).pvalue < 1e-6


@pytest.mark.loop("epsilon", [0.01, 0.7, 5.0, 1000.0])
def test_reported_law_is_the_exact_one(epsilon):
    law = ExponentialMechanism(epsilon).probabilities(SCORES, 1.5)
    np.testing.assert_allclose(law, law_of(SCORES, epsilon, 1.5), rtol=0.05, atol=1e-6)


@given(
    rows=st.lists(st.tuples(st.floats(-20, 20), st.floats(-1, 1)), min_size=1, max_size=6),
    epsilon=st.floats(0.01, 20),
)
def test_probability_ratio_on_neighboring_scores(rows, epsilon):
    """The log ratio of the laws is at most epsilon, up to the precision of the printed law."""
    here, change = np.array(rows).T
    mechanism = ExponentialMechanism(epsilon)
    first = mechanism.probabilities(here, 1.0)
    second = mechanism.probabilities(here + change, 1.0)
    kept = (first > 1e-200) & (second > 1e-200)
    assert np.abs(np.log(first[kept] / second[kept])).max() <= epsilon + 1e-9


@pytest.mark.parametrize("epsilon", [1.0, 1e4, math.inf])
def test_huge_scores(epsilon):
    mechanism = ExponentialMechanism(epsilon)
    law = mechanism.probabilities([-1e4, 1e4, 0.0], 1.0)
    np.testing.assert_allclose(law, [0, 1, 0], atol=1e-300)
    assert mechanism.release([-1e4, 1e4, 0.0], 1.0) == 1
    assert mechanism.release([-1e4, -1e4 + 100, -1e6], 1e-2) == 1
    many = np.zeros(10_000)
    many[1234] = 100.0
    chosen = mechanism.set_params(epsilon=2.0).release(many, 1.0)
    assert (type(chosen), chosen) == (int, 1234)


@pytest.mark.parametrize("far", [0.0, 1e12, -1e12, 1.7e18, -1e300])
def test_scores_far_from_zero_are_told_apart(far):
    """Only differences count: a constant in all scores, as large as doubles go, changes nothing."""
    scores = np.nextafter(np.full(4, far), np.inf) if far else np.zeros(4)
    scores[2] = scores[0] + max(2000.0, 3 * np.spacing(abs(far)))
    mechanism = ExponentialMechanism(1.0)
    assert mechanism.release(scores, 1.0) == 2
    near = mechanism.probabilities(scores - scores[0], 1.0)
    np.testing.assert_array_equal(mechanism.probabilities(scores, 1.0), near)


@given(
    scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=5),
    exponent=st.integers(-1100, 1020),
)
def test_gaps_against_exact_fractions(scores, exponent):
    steps = [round(Fraction(score) / Fraction(2) ** exponent) for score in scores]
    largest = int(np.finfo(float).max)
    clipped = [max(-largest, min(largest, step)) for step in steps]
    expected = [min(max(clipped) - step, 2**61) for step in clipped]
    assert Lattice(exponent).to_gaps(scores).tolist() == expected


def test_infinite_epsilon_takes_the_first_best():
    mechanism = ExponentialMechanism(math.inf)
    scores = [1.0, 1e300, 1e300, -1e300]
    assert mechanism.release(scores, 1.0) == 1
    np.testing.assert_array_equal(mechanism.probabilities(scores, 1.0), [0, 1, 0, 0])


@pytest.mark.loop("scores", [[[7.25, 1.0]], []])
def test_scores_are_a_vector(scores):
    for use in (ExponentialMechanism(1.0).release, ExponentialMechanism(1.0).probabilities):
        with pytest.raises(ValueError, match="Got an array of shape"):
            use(scores, 1.0)
