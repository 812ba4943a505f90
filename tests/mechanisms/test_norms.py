"""The norms against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skdp import GaussianMechanism, LaplaceMechanism
from skdp.mechanisms.base import l1_norm, l2_norm, sup_norm

vectors = st.lists(st.floats(-1e150, 1e150), max_size=20)


@given(vectors)
def test_norms_to_the_last_bits(vector):
    """The lattice charges an error of one part in 2^50 at most."""
    exact = [Fraction(x) for x in vector]
    total = sum(map(abs, exact))
    assert l1_norm(vector) == float(total)
    square = Fraction(l2_norm(vector)) ** 2
    assert abs(square - sum(x * x for x in exact)) <= square / 2**50 + Fraction(2) ** -2000
    assert sup_norm(vector) == float(max(map(abs, exact), default=0))


def test_extreme_and_shaped_differences():
    assert l2_norm([3 * 2.0**800, 4 * 2.0**800]) == 5 * 2.0**800
    assert l2_norm([3 * 2.0**-800, 4 * 2.0**-800]) == 5 * 2.0**-800
    assert l2_norm(np.ones((10, 10))) == 10
    assert sup_norm([[1.0, -3.0], [2.0, 0.0]]) == 3.0
    assert sup_norm([]) == 0.0
    assert math.isnan(sup_norm([1.0, math.nan]))


MECHANISMS = [LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-5)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=["L1", "L2"])
@given(
    rows=st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=5),
    exponent=st.integers(-1074, 1020),
)
@example(rows=[[3.0, 4.0, 0.0]], exponent=-535)
@example(rows=[[1.0, 1.0, 0.0]], exponent=-1074)
@example(rows=[[0.75, 0.5, -0.5]], exponent=1020)
def test_many_distances_over_the_whole_range_of_doubles(mechanism, rows, exponent):
    """Each is right to a few units in the last place, or rounded up where doubles lose bits."""
    values = np.ldexp(np.array(rows), exponent)
    exact = [[abs(Fraction(x)) for x in row] for row in values.tolist()]
    many = mechanism.distances(values, np.zeros_like(values)).tolist()
    for row, numbers, norm in zip(values, exact, many, strict=True):
        for found in (norm, mechanism.distance(row, np.zeros(3))):
            if mechanism.order == 1:
                size, true = Fraction(found), sum(numbers)
            else:
                size, true = Fraction(found) ** 2, sum(x * x for x in numbers)
            assert true * (1 - Fraction(1, 2**50)) <= size
            slack = (2 * Fraction(2) ** -1074) ** mechanism.order + true * Fraction(1, 2**50)
            assert size <= true + slack or 0 < found < 2.0**-1020


def test_distances_have_the_bits_of_the_plain_formula_where_it_is_right():
    rng = np.random.default_rng(0)
    values, others = rng.normal(size=(2, 500, 7)) * 10.0 ** rng.integers(-9, 9, size=(500, 1))
    for mechanism in MECHANISMS:
        plain = np.linalg.norm(values - others, ord=mechanism.order, axis=1)
        np.testing.assert_array_equal(mechanism.distances(values, others), plain)


def test_a_norm_beyond_the_doubles_is_infinite():
    """And no error: the pair counts as one on which the target has no value."""
    huge = np.full((1, 3), 1.5e308)
    for mechanism in MECHANISMS:
        assert mechanism.distance(huge[0], np.zeros(3)) == math.inf
        assert mechanism.distances(huge, np.zeros((1, 3))).tolist() == [math.inf]
    assert LaplaceMechanism(1.0, basis=np.eye(3)).distances(huge, np.zeros((1, 3))) == math.inf
