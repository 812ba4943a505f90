"""The cost model against the published numbers, and against brute force where those fail."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import brentq

from skdp.risk import CompensationModel, LaplaceLoss

# the published formulas are what is asked for


def published(epsilon, epsilon0):
    """Theorem 10 of the paper for one output, which is not the law of the loss."""
    return np.expm1(-epsilon) / np.expm1(-epsilon0)


LAWS = ["exact", "one-sided", published]


def model(law="exact", **kwargs):
    return CompensationModel(5500, 100, law=law, **kwargs)


@pytest.mark.parametrize(
    ("epsilon0", "epsilon", "confidence", "cost"),
    [
        (0.5, 0.274115, 0.609337, 37805.86),
        (0.6, 0.309317, 0.589669, 55417.49),
        (0.7, 0.341165, 0.574195, 72968.57),
    ],
)
def test_health_center_as_published(epsilon0, epsilon, confidence, cost):
    paper = model(published)
    found = paper.optimal_epsilon(epsilon0)
    assert round(found, 6) == epsilon
    assert round(paper.confidence(found, epsilon0), 6) == confidence
    assert round(paper.cost_at_risk(found, epsilon0), 2) == cost
    # Equation 10.
    left = 1 / found - math.log(1 - (1 - math.exp(found)) / found**2)
    assert left == pytest.approx(1 / epsilon0, abs=1e-6)
    assert round(paper.cost(0.5), 2) == 74434.41


@pytest.mark.parametrize(
    ("law", "saving"), [(published, 36629), ("exact", 6455), ("one-sided", 30955)]
)
def test_saving_by_each_law(law, saving):
    costs = model(law)
    best = costs.optimal_epsilon(0.5)
    assert round(costs.cost(0.5) - costs.cost_at_risk(best, 0.5)) == saving


def test_confidence_by_each_law():
    assert model("exact").confidence(0.5, 1.0) == LaplaceLoss(1.0).two_sided(0.5)
    assert model("one-sided").confidence(0.5, 1.0) == LaplaceLoss(1.0).cdf(0.5)
    assert model(published).confidence(0.5, 1.0) == published(0.5, 1.0)
    assert model().cost_at_risk(1.0, 1.0) == pytest.approx(model().cost(1.0))


def test_cost():
    costs = CompensationModel(10, 3, c=2.0, minimum=1.0)
    assert_allclose(costs.cost([0.0, 1.0, math.inf]), [3, 3 * (1 + 10 * math.exp(-2)), 33])


@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=10)
@given(epsilon0=st.floats(0.02, 60.0), c=st.floats(0.05, 20.0))
def test_optimum_against_brute_force(law, epsilon0, c):
    costs = model(law, c=c)
    best = costs.optimal_epsilon(epsilon0)
    assert 0 < best <= epsilon0
    least = costs.cost_at_risk(best, epsilon0)
    grid = epsilon0 * np.concatenate([np.linspace(1e-3, 1, 100), np.geomspace(1e-5, 1, 50)])
    others = [costs.cost_at_risk(level, epsilon0) for level in grid]
    assert least <= min(others) * (1 + 1e-9)


def second_difference(epsilon0, epsilon):
    costs, step = model(published), 1e-3 * epsilon
    levels = [costs.cost_at_risk(epsilon + shift, epsilon0) for shift in (-step, 0, step)]
    return (levels[0] - 2 * levels[1] + levels[2]) / step**2


def test_cost_is_not_convex_above_a_level():
    # Lemma 14 claims convexity everywhere; the curvature at the upper end changes its sign.
    grid = np.linspace(0.05, 0.999, 60)

    def least(epsilon0):
        return min(second_difference(epsilon0, share * epsilon0) for share in grid)

    assert least(1.05) > 0
    assert least(1.2) < 0
    edge = brentq(lambda e: second_difference(e, e * 0.9999 / 1.001), 0.8, 2.0)
    assert edge == pytest.approx(1.1046, abs=5e-3)


@pytest.mark.parametrize("law", LAWS)
def test_least_cost_grows_with_epsilon0(law):
    costs = model(law)
    least = [costs.cost_at_risk(costs.optimal_epsilon(e), e) for e in np.geomspace(0.05, 50, 40)]
    assert (np.diff(least) > -1e-6).all()


@pytest.mark.parametrize("law", LAWS)
def test_range_of_affordable_levels(law):
    costs = model(law)
    budget = costs.cost(0.5)
    lowest, highest = costs.epsilon_range(budget, max_error=2.0)
    assert lowest == 0.5
    assert highest > 0.5  # the stronger level pays for more than epsilon = 0.5
    at_risk = costs.cost_at_risk(costs.optimal_epsilon(highest), highest)
    assert 0 <= budget - at_risk < 1e-3
    assert costs.epsilon_range(600_000, 2.0, sensitivity=3.0) == (1.5, math.inf)


@pytest.mark.parametrize("budget", [100.0, 2e5, 3.3e5])
def test_range_far_from_plain_privacy(budget):
    costs = model(published)
    highest = costs.epsilon_range(budget, 1e3)[1]
    at_risk = costs.cost_at_risk(costs.optimal_epsilon(highest), highest)
    assert 0 <= budget - at_risk < 1e-6 * budget
    assert costs.epsilon_range(3.5e5, 1e3)[1] == math.inf  # no noise at all costs less


def test_upper_bound_of_equation_11():
    costs = model(published)
    confidence, epsilon0 = 0.609338, 0.5
    budget = 37805.86
    found = costs.affordable_epsilon(budget, epsilon0, confidence)
    assert found == pytest.approx(0.274115, abs=1e-5)
    share = (budget - (1 - confidence) * costs.cost(epsilon0)) / (confidence * 550_000)
    assert found == pytest.approx(-1 / math.log(share))
    # The printed lower bound, 1/T <= epsilon, fails for the illustration: T = 2.
    assert found < 1 / 2 <= epsilon0
    assert costs.affordable_epsilon(1e6, epsilon0, confidence) == math.inf
    at_least = CompensationModel(10, 3, c=2.0, minimum=1.0)
    assert at_least.affordable_epsilon(at_least.cost(0.8), 5.0, 1.0) == pytest.approx(0.8)


@pytest.mark.loop(
    ("call", "message"),
    [
        (lambda: CompensationModel(0, 100), r"'budget' .* must be in \(0, inf\)"),
        (lambda: CompensationModel(1, 0), "'stakeholders' .* at least 1"),
        (lambda: CompensationModel(1, 1, c=0), r"'c' .* must be in \(0, inf\)"),
        (lambda: CompensationModel(1, 1, minimum=-1), r"'minimum' .* must be in \[0, inf\)"),
        (
            lambda: model("true"),
            r"must be one of \['exact', 'one-sided'\], or a function .* Got 'true'",
        ),
        (lambda: model().confidence(1.0, 0.5), "'epsilon' .* must be at most epsilon0=0.5"),
        (lambda: model().cost_at_risk(1.0, 0.5), "'epsilon' .* must be at most epsilon0=0.5"),
        (lambda: model().optimal_epsilon(0.0), r"'epsilon0' .* must be in \(0, inf\)"),
        (lambda: model().affordable_epsilon(1e4, 0.5, 0.0), r"'confidence' .* must be in \(0, 1\]"),
        (lambda: model().affordable_epsilon(1e4, 0.5, 1.5), r"'confidence' .* must be in \(0, 1\]"),
        (
            lambda: model().affordable_epsilon(100, 0.5, 0.5),
            "must be above 37217.20, the cost with confidence=0.5 even at epsilon = 0. Got 100",
        ),
        (lambda: model().epsilon_range(0, 2), "'budget' parameter of epsilon_range"),
        (lambda: model().epsilon_range(1e4, 0), "'max_error' parameter of epsilon_range"),
        (lambda: model().epsilon_range(1e4, 1, sensitivity=0), "'sensitivity' parameter of"),
        (
            lambda: model().epsilon_range(50_000, 2),
            r"at epsilon0=0.5, .* Got 50000. Raise it to at least 67978.96, or max_error to at",
        ),
        (
            lambda: model(minimum=50).epsilon_range(1000, 2),
            r"Got 1000. Raise it to at least 72978.96\.$",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_nearest_budget_and_error_are_enough():
    costs = model()
    assert costs.epsilon_range(67978.96, 2.0)[0] == 0.5
    with pytest.raises(ValueError, match="max_error to at least") as raised:
        costs.epsilon_range(50_000, 2.0)
    nearest = float(str(raised.value).rstrip(".").split()[-1])
    assert costs.epsilon_range(50_000, nearest)[0] == pytest.approx(1 / nearest)
