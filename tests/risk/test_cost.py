"""The cost model against the published numbers, and against brute force where those fail."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from skdp.risk import CompensationModel, LaplaceLoss


def published(epsilon, epsilon0):
    """Theorem 10 of the paper for one output, which is not the law of the loss."""
    return np.expm1(-epsilon) / np.expm1(-epsilon0)


def one_sided(epsilon, epsilon0):
    return LaplaceLoss(epsilon0).cdf(epsilon)


LAWS = [{}, {"law": one_sided}, {"law": published}]


def model(**kwargs):
    return CompensationModel(5500, 100, **kwargs)


@pytest.mark.parametrize(
    ("epsilon0", "epsilon", "confidence", "cost"),
    [
        (0.5, 0.274115, 0.609337, 37805.86),
        (0.6, 0.309317, 0.589669, 55417.49),
        (0.7, 0.341165, 0.574195, 72968.57),
    ],
)
def test_health_center_as_published(epsilon0, epsilon, confidence, cost):
    paper = model(law=published)
    found = paper.optimal_epsilon(epsilon0)
    assert round(found, 6) == epsilon
    assert round(paper.law(found, epsilon0), 6) == confidence
    assert round(paper.cost_at_risk(found, epsilon0), 2) == cost
    # Equation 10.
    left = 1 / found - math.log(1 - (1 - math.exp(found)) / found**2)
    assert left == pytest.approx(1 / epsilon0, abs=1e-6)
    assert round(paper.cost(0.5), 2) == 74434.41


@pytest.mark.parametrize(("law", "saving"), list(zip(LAWS, [6455, 30955, 36629], strict=True)))
def test_saving_by_each_law(law, saving):
    costs = model(**law)
    best = costs.optimal_epsilon(0.5)
    assert round(costs.cost(0.5) - costs.cost_at_risk(best, 0.5)) == saving


@pytest.mark.parametrize("law", LAWS)
@settings(max_examples=10)
@given(epsilon0=st.floats(0.02, 60.0), c=st.floats(0.05, 20.0))
def test_optimum_against_brute_force(law, epsilon0, c):
    costs = model(**law, c=c)
    best = costs.optimal_epsilon(epsilon0)
    assert 0 < best <= epsilon0
    least = costs.cost_at_risk(best, epsilon0)
    grid = epsilon0 * np.concatenate([np.linspace(1e-3, 1, 100), np.geomspace(1e-5, 1, 50)])
    others = [costs.cost_at_risk(level, epsilon0) for level in grid]
    assert least <= min(others) * (1 + 1e-9)


@pytest.mark.parametrize("law", LAWS)
def test_range_of_affordable_levels(law):
    costs = model(**law)
    budget = costs.cost(0.5)
    lowest, highest = costs.epsilon_range(budget, max_error=2.0)
    assert lowest == 0.5
    assert highest > 0.5  # the stronger level pays for more than epsilon = 0.5
    at_risk = costs.cost_at_risk(costs.optimal_epsilon(highest), highest)
    assert 0 <= budget - at_risk < 1e-3
    assert costs.epsilon_range(600_000, 2.0, sensitivity=3.0) == (1.5, math.inf)


@pytest.mark.loop(
    ("call", "word"),
    [
        (lambda: CompensationModel(0, 100), "'budget'"),
        (lambda: CompensationModel(1, 0), "'stakeholders'"),
        (lambda: CompensationModel(1, 1, c=0), "'c'"),
        (lambda: CompensationModel(1, 1, minimum=-1), "'minimum'"),
        (lambda: model().cost_at_risk(1.0, 0.5), "'epsilon'"),
        (lambda: model().optimal_epsilon(0.0), "'epsilon0'"),
        (lambda: model().affordable_epsilon(1e4, 0.5, 0.0), "'confidence'"),
        (lambda: model().affordable_epsilon(1e4, 0.5, 1.5), "'confidence'"),
        (lambda: model().affordable_epsilon(100, 0.5, 0.5), "37217.20"),
        (lambda: model().epsilon_range(0, 2), "'budget'"),
        (lambda: model().epsilon_range(1e4, 0), "'max_error'"),
        (lambda: model().epsilon_range(1e4, 1, sensitivity=0), "'sensitivity'"),
        (lambda: model().epsilon_range(50_000, 2), "67978.96"),
        (lambda: model(minimum=50).epsilon_range(1000, 2), "72978.96"),
    ],
)
def test_errors(call, word):
    with pytest.raises(ValueError, match=word):
        call()
    assert model().epsilon_range(67978.96, 2.0)[0] == 0.5  # the budget that is named is enough
    assert model().law(0.5, 1.0) == LaplaceLoss(1.0).two_sided(0.5)
    assert model().affordable_epsilon(1e6, 0.5, 0.6) == math.inf
    at_least = CompensationModel(10, 3, c=2.0, minimum=1.0)
    assert_allclose(at_least.cost([0.0, 1.0, math.inf]), [3, 3 * (1 + 10 * math.exp(-2)), 33])
    assert at_least.affordable_epsilon(at_least.cost(0.8), 5.0, 1.0) == pytest.approx(0.8)
