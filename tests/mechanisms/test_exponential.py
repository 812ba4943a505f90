"""The exponential mechanism and permute-and-flip against their laws and their promise."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.base import clone

from skdp import SensitivitySampler, UniformOracle, plan_release
from skdp.core.geometry import Geometry
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.noise import byte_source

METHODS = ["exponential", "permute-and-flip"]
SCORES = np.array([0.0, 3.0, 3.0, -2.5, 1.25])


def exponential_law(scores, epsilon, sensitivity, factor=0.5, measure=1.0):
    weights = measure * np.exp(factor * epsilon * (scores - np.max(scores)) / sensitivity)
    return weights / weights.sum()


def permute_and_flip_law(weights):
    """Go through all orders: the definition, for few responses."""
    law = np.zeros(len(weights))
    for order in itertools.permutations(range(len(weights))):
        reached = 1.0
        for r in order:
            law[r] += reached * weights[r]
            reached *= 1 - weights[r]
    return law / math.factorial(len(weights))


N_DRAWS = 1500


def draw_counts(mechanism, scores, sensitivity, n_draws=N_DRAWS, seed=0):
    source = byte_source(seed)
    draws = [mechanism.release(scores, sensitivity, source) for _ in range(n_draws)]
    return np.bincount(draws, minlength=len(scores))


def test_pangram():
    """Letter counts of a pangram at sensitivity 5, epsilon 1: P(o) = .05001, P(e) = .04525."""
    text = "the quick brown fox jumps over the lazy dog"
    counts = [float(text.count(letter)) for letter in "abcdefghijklmnopqrstuvwxyz"]
    law = ExponentialMechanism(epsilon=1.0).probabilities(counts, 5.0)
    assert round(law[ord("o") - ord("a")], 5) == 0.05001
    assert round(law[ord("e") - ord("a")], 5) == 0.04525
    assert law.sum() == pytest.approx(1.0)


@pytest.mark.slow
def test_exponential_against_exact_law():
    """Chi-square; false-positive rate 1e-6. Without the 1/2 the noncentrality is above 90, a
    power above .9999; epsilon left out altogether is caught too."""
    counts = draw_counts(ExponentialMechanism(epsilon=1.0), SCORES, 1.5)
    assert stats.chisquare(counts, N_DRAWS * exponential_law(SCORES, 1.0, 1.5)).pvalue > 1e-6
    for wrong in (0.0, 1.0):
        law = exponential_law(SCORES, 1.0, 1.5, factor=wrong)
        assert stats.chisquare(counts, N_DRAWS * law).pvalue < 1e-6


@pytest.mark.slow
def test_permute_and_flip_against_exact_law():
    """Chi-square; false-positive rate 1e-6. The law of the exponential mechanism is caught."""
    mechanism = ExponentialMechanism(epsilon=1.0, method="permute-and-flip")
    counts = draw_counts(mechanism, SCORES, 0.8, n_draws=2500)
    law = permute_and_flip_law(np.exp((SCORES - 3.0) / 1.6))
    assert stats.chisquare(counts, 2500 * law).pvalue > 1e-6
    assert stats.chisquare(counts, 2500 * exponential_law(SCORES, 1.0, 0.8)).pvalue < 1e-6


@pytest.mark.slow
def test_monotone_and_base_measure_against_exact_law():
    """Chi-square; false-positive rate 1e-6. A measure that is ignored is caught."""
    measure = np.array([5.0, 1.0, 2.0, 1.0, 0.5])
    mechanism = ExponentialMechanism(epsilon=0.5, monotone=True, base_measure=measure)
    counts = draw_counts(mechanism, SCORES, 2.0)
    law = exponential_law(SCORES, 0.5, 2.0, factor=1.0, measure=measure)
    assert stats.chisquare(counts, N_DRAWS * law).pvalue > 1e-6
    plain = exponential_law(SCORES, 0.5, 2.0, factor=1.0)
    assert stats.chisquare(counts, N_DRAWS * plain).pvalue < 1e-6


@pytest.mark.loop("epsilon", [0.01, 0.7, 5.0, 1000.0])
@pytest.mark.loop("monotone", [False, True])
def test_reported_law_is_the_exact_one(epsilon, monotone):
    factor = 1.0 if monotone else 0.5
    measure = np.array([1e-30, 1.0, 2.0, 7.0, 1e5])
    mechanism = ExponentialMechanism(epsilon, monotone=monotone, base_measure=measure)
    law = exponential_law(SCORES, epsilon, 1.5, factor, measure)
    np.testing.assert_allclose(mechanism.probabilities(SCORES, 1.5), law, rtol=0.05, atol=1e-6)
    mechanism.set_params(base_measure=None, method="permute-and-flip")
    law = permute_and_flip_law(np.exp(factor * epsilon * (SCORES - 3.0) / 1.5))
    np.testing.assert_allclose(mechanism.probabilities(SCORES, 1.5), law, rtol=0.05, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 8, 300, 20_000])
def test_permute_and_flip_law_adds_up_to_one(n):
    rng = np.random.default_rng(n)
    mechanism = ExponentialMechanism(2.0, method="permute-and-flip")
    for scores in (np.zeros(n), -rng.exponential(3.0, n), np.full(n, math.log(1e-9))):
        scores[-1] = 0.0
        assert mechanism.probabilities(scores, 1.0).sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(mechanism.probabilities(np.zeros(n), 1.0), 1 / n)


@given(
    rows=st.lists(st.tuples(st.floats(-20, 20), st.floats(-1, 1)), min_size=1, max_size=6),
    epsilon=st.floats(0.01, 20),
    method=st.sampled_from(METHODS),
    measure=st.none() | st.just(0.25),
)
def test_probability_ratio_on_neighboring_scores(rows, epsilon, method, measure):
    """The log ratio of the laws is at most epsilon, up to the precision of the printed law."""
    here, change = np.array(rows).T
    if measure is not None:
        measure = measure ** np.arange(len(rows))
    mechanism = ExponentialMechanism(epsilon, method=method, base_measure=measure)
    first = mechanism.probabilities(here, 1.0)
    second = mechanism.probabilities(here + change, 1.0)
    kept = (first > 1e-200) & (second > 1e-200)
    assert np.abs(np.log(first[kept] / second[kept])).max() <= epsilon + 1e-9
    up = mechanism.set_params(monotone=True).probabilities(here + np.abs(change), 1.0)
    down = mechanism.probabilities(here, 1.0)
    kept = (up > 1e-200) & (down > 1e-200)
    assert np.abs(np.log(up[kept] / down[kept])).max() <= epsilon + 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_monotone_is_wrong_for_scores_that_move_both_ways(method):
    """The check above catches the missing factor 2: it is reached by opposite moves."""
    mechanism = ExponentialMechanism(1.0, method=method, monotone=True)
    here = mechanism.probabilities([-9.5, 0.5], 1.0)
    there = mechanism.probabilities([-8.5, -0.5], 1.0)
    assert abs(math.log(here[0] / there[0])) > 1.9


@given(
    scores=st.lists(st.floats(-5, 5), min_size=2, max_size=6),
    epsilon=st.floats(0.05, 8),
)
def test_permute_and_flip_is_never_worse(scores, epsilon):
    exponential, flip = (
        ExponentialMechanism(epsilon, method=method).probabilities(scores, 1.0) @ scores
        for method in METHODS
    )
    assert flip >= exponential - 1e-6


@pytest.mark.parametrize("method", METHODS)
def test_equal_scores_are_equally_likely(method):
    """Chi-square; false-positive rate 1e-6; one response at .2 instead of .25 is caught."""
    mechanism = ExponentialMechanism(epsilon=3.0, method=method)
    np.testing.assert_allclose(mechanism.probabilities(np.full(4, 0.1), 1.0), 0.25)
    counts = draw_counts(mechanism, np.full(4, 0.1), 1.0)
    assert stats.chisquare(counts).pvalue > 1e-6
    assert stats.chisquare(counts, N_DRAWS * np.array([0.2, 0.2, 0.3, 0.3])).pvalue < 1e-6


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("epsilon", [1.0, 1e4])
def test_huge_scores(method, epsilon):
    mechanism = ExponentialMechanism(epsilon, method=method)
    law = mechanism.probabilities([-1e4, 1e4, 0.0], 1.0)
    np.testing.assert_allclose(law, [0, 1, 0], atol=1e-300)
    assert mechanism.release([-1e4, 1e4, 0.0], 1.0) == 1
    assert mechanism.release([-1e4, -1e4 + 100, -1e6], 1e-2) == 1


def test_epsilon_changes_the_law():
    weak, strong = (
        ExponentialMechanism(epsilon).probabilities(SCORES, 1.0) for epsilon in (0.1, 2.0)
    )
    assert strong[1] > weak[1] + 0.1


@pytest.mark.parametrize("method", METHODS)
def test_the_result_is_always_an_index(method):
    mechanism = ExponentialMechanism(epsilon=1e-3, method=method)
    chosen = [mechanism.release([5.0, 1.0], 1.0) for _ in range(50)]
    assert all(type(index) is int for index in chosen)
    assert set(chosen) == {0, 1}  # a side is missing with chance 2^-49
    assert mechanism.release([-3.0], 1.0) == 0


def test_thousands_of_responses():
    scores = np.zeros(10_000)
    scores[1234] = 100.0
    for method in METHODS:
        assert ExponentialMechanism(2.0, method=method).release(scores, 1.0) == 1234


def test_permutation_with_equal_keys_is_drawn_again(monkeypatch):
    """Sorting equal keys would favor the lower index."""
    keys = [np.array([7, 7]), np.array([9, 4])]
    monkeypatch.setattr("skdp.mechanisms.exponential.below", lambda *args: keys.pop(0))
    mechanism = ExponentialMechanism(epsilon=1.0, method="permute-and-flip")
    assert mechanism.release([1.0, 1.0], 1.0) == 1
    assert keys == []


@pytest.mark.parametrize("method", METHODS)
def test_infinite_epsilon_takes_the_first_best(method):
    mechanism = ExponentialMechanism(math.inf, method=method)
    scores = [1.0, 1e300, 1e300, -1e300]
    assert mechanism.release(scores, 1.0) == 1
    np.testing.assert_array_equal(mechanism.probabilities(scores, 1.0), [0, 1, 0, 0])


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_choices(method):
    mechanism = ExponentialMechanism(0.5, method=method)
    first, again, other = (
        draw_counts(mechanism, SCORES, 1.0, n_draws=100, seed=seed) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epsilon": 0}, "'epsilon' parameter of ExponentialMechanism must be a number above 0"),
        ({"epsilon": math.nan}, "'epsilon' parameter of ExponentialMechanism must be"),
        ({"epsilon": "1"}, "'epsilon' parameter of ExponentialMechanism must be"),
        ({"method": "gumbel"}, "'method' parameter of ExponentialMechanism must be 'exponential'"),
    ],
)
def test_parameters_outside_their_range_are_refused_in_use(parameters, message):
    mechanism = ExponentialMechanism(1.0).set_params(**parameters)
    for use in (lambda: mechanism.release([1.0], 1.0), mechanism.guarantee):
        with pytest.raises(ValueError, match=message):
            use()


@pytest.mark.loop("measure", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, math.inf], [math.nan, 1]])
def test_other_base_measures_are_refused(measure):
    mechanism = ExponentialMechanism(1.0, base_measure=measure)
    with pytest.raises(ValueError, match="one positive finite weight for each of the 2 responses"):
        mechanism.release([1.0, 2.0], 1.0)


@pytest.mark.loop(
    ("scores", "sensitivity", "message"),
    [
        ([7.25, math.nan], 1.0, "must be finite"),
        ([7.25, -math.inf], 1.0, "must be finite"),
        ([[7.25, 1.0]], 1.0, r"Got an array of shape \(1, 2\)"),
        ([], 1.0, r"Got an array of shape \(0,\)"),
        ([7.25], 0.0, "never changes the target"),
        ([7.25], math.inf, "sampling failed"),
    ],
)
@pytest.mark.loop("epsilon", [1.0, math.inf])
def test_refusals_do_not_show_the_scores(epsilon, scores, sensitivity, message):
    mechanism = ExponentialMechanism(epsilon)
    for use in (mechanism.release, mechanism.probabilities):
        with pytest.raises(ValueError, match=message) as caught:
            use(scores, sensitivity)
        assert "7.25" not in str(caught.value)


def test_guarantee_and_parameters():
    mechanism = clone(ExponentialMechanism(0.5, monotone=True, base_measure=np.ones(2)))
    guarantee = mechanism.guarantee(gamma=0.1)
    assert (guarantee.epsilon, guarantee.delta, guarantee.gamma) == (0.5, 0.0, 0.1)
    assert set(mechanism.get_params()) == {"epsilon", "monotone", "base_measure", "method"}
    assert mechanism.geometry == Geometry(math.inf)


@pytest.mark.parametrize("sensitivity", [SensitivitySampler(UniformOracle([(0, 1)])), 0.1])
def test_monotone_scores_are_said_to_be_assumed(sensitivity):
    options = {"n_samples": 9, "like": np.zeros((9, 1)), "sensitivity": sensitivity}

    def promised(monotone):
        mechanism = ExponentialMechanism(1.0, monotone=monotone)
        return str(plan_release(np.ravel, mechanism=mechanism, **options).guarantee)

    assert "monotone scores asserted by the caller" in promised(True)
    assert ("sensitivity 0.1 asserted" in promised(True)) == (sensitivity == 0.1)
    assert "monotone" not in promised(False)
