"""The norms against exact fractions."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

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
