"""Any number is answered rightly, or refused by the name of its parameter.

Numbers that are missing, infinite, zero, negative, tiny and huge are tried in every public function
and class.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdp import LaplaceMechanism
from skdp.accounting.composition import GridLoss
from skdp.risk import GaussianLoss, LaplaceLoss, PureLoss, privacy_loss_distribution

NAN, INF = math.nan, math.inf
ODD = [NAN, INF, -INF, 0.0, -0.0, -1.0, 5e-324, 1e-300, 0.5, 1.0, 1e10, 1e160, 1.7e308]
NO_NUMBERS = [True, "1", None, [0.5], 1j]
LAWS = [
    *(LaplaceLoss(scale) for scale in (5e-324, 1e-9, 1.0, 800.0, 1e300)),
    *(PureLoss(scale) for scale in (5e-324, 1e-9, 1.0, 745.0, 1e300)),
    *(GaussianLoss(scale) for scale in (1e-9, 1.0, 40.0, 1e149)),
    LaplaceLoss(0.5).self_compose(3),
    GaussianLoss(0.5).compose(LaplaceLoss(0.1)),
]
CALLS = {
    "epsilon0": LaplaceLoss,
    "epsilon0 of PureLoss": PureLoss,
    "mu": GaussianLoss,
    "n": LaplaceLoss(0.1).self_compose,
    "distance": lambda distance: privacy_loss_distribution(LaplaceMechanism(1.0), distance),
}


def answer(function):
    """Return what a function returns, or None, and the message of its refusal, or an empty one."""
    try:
        return function(), ""
    except (ValueError, TypeError) as error:
        return None, str(error)


@pytest.mark.loop("name", CALLS)
def test_parameters_are_answered_or_refused_by_name(name):
    answered = 0
    huge = [10**400, 2**53] if name != "n" else []
    for odd in [*ODD, 0, -1, 3, *huge, *NO_NUMBERS]:
        _, refusal = answer(lambda odd=odd: CALLS[name](odd))
        assert refusal == "" or f"'{name.split()[0]}' parameter of" in refusal, odd
        answered += not refusal
    assert answered


@pytest.mark.loop("law", LAWS)
def test_probabilities_at_odd_levels(law):
    levels = np.array(ODD)
    for method, limits in (("cdf", (0, 1)), ("delta", (1, 0))):
        function = getattr(law, method)
        values = function(levels)
        assert_array_equal(np.isnan(values), np.isnan(levels))
        assert (function(-INF), function(INF)) == limits
        order = np.argsort(levels[1:])
        steps = np.diff(values[1:][order])
        assert (steps <= 1e-15).all() if method == "delta" else (steps >= -1e-15).all()
        assert ((values[1:] >= 0) & (values[1:] <= 1)).all()
        assert not np.signbit(values[1:]).any()
        alone = [function(level) for level in levels.tolist()]
        assert_array_equal(alone, values)
        assert function([]).shape == (0,)
        assert_array_equal(function([[0, 1], [2, 3]]), function([[0.0, 1.0], [2.0, 3.0]]))
        for wrong in ("1", None, 1j, True, [[1.0], [2.0, 3.0]]):
            with pytest.raises(TypeError, match=f"parameter of {method} must hold real numbers"):
                function(wrong)


@pytest.mark.loop("law", LAWS)
def test_levels_at_odd_probabilities(law):
    for odd in ODD:
        for method, name in (("epsilon", "delta"), ("quantile", "probability")):
            level, refusal = answer(lambda m=method, o=odd: getattr(law, m)(o))
            if refusal:
                assert f"{name!r} parameter of {method} must be in" in refusal
                continue
            assert not math.isnan(level)
            value = law.delta(level) if method == "epsilon" else 1 - law.cdf(level)
            least = odd if method == "epsilon" else 1 - odd
            coarse = abs(level) > 1e15  # a level that far is no double to a standard deviation
            assert value <= least + 1e-9 or level >= law.bound or coarse


def test_law_on_a_coarse_grid_is_above_itself():
    """Also where the exponential of a step is no double."""
    for law in (LaplaceLoss(1e6), PureLoss(3000.0), LaplaceLoss(1.0)):
        grid = GridLoss.from_law(law, law.epsilon0 / 3)
        levels = law.epsilon0 * np.linspace(-1.2, 1.2, 50)
        assert (grid.delta(levels) >= law.delta(levels) - 1e-15).all()
        assert_allclose(grid.probabilities.sum() + grid.infinity, 1.0)
