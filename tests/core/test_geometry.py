"""The norms against exact fractions, and geometries as values."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skdp.codes import Geometry, PublicCode

vectors = st.lists(st.floats(-1e150, 1e150), max_size=20)


L1, L2, SUP = GEOMETRIES = [Geometry(1), Geometry(2), Geometry(math.inf)]


def norm(geometry, difference):
    return geometry.distance(difference, np.zeros_like(difference))


@given(vectors)
def test_norms_to_the_last_bits(vector):
    """The lattice charges an error of one part in 2^50 at most."""
    exact = [Fraction(x) for x in vector]
    total = sum(map(abs, exact))
    assert norm(L1, vector) == float(total)
    square = Fraction(norm(L2, vector)) ** 2
    assert abs(square - sum(x * x for x in exact)) <= square / 2**50 + Fraction(2) ** -2000
    assert norm(SUP, vector) == float(max(map(abs, exact), default=0))


def test_extreme_and_shaped_differences():
    assert norm(L2, [3 * 2.0**800, 4 * 2.0**800]) == 5 * 2.0**800
    assert norm(L2, [3 * 2.0**-800, 4 * 2.0**-800]) == 5 * 2.0**-800
    assert norm(L2, np.ones((10, 10))) == 10
    assert norm(SUP, [[1.0, -3.0], [2.0, 0.0]]) == 3.0
    assert norm(SUP, []) == 0.0
    assert math.isnan(norm(SUP, [1.0, math.nan]))


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=["L1", "L2", "sup"])
@given(
    rows=st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=5),
    exponent=st.integers(-1074, 1020),
)
@example(rows=[[3.0, 4.0, 0.0]], exponent=-535)
@example(rows=[[1.0, 1.0, 0.0]], exponent=-1074)
@example(rows=[[0.75, 0.5, -0.5]], exponent=1020)
def test_many_distances_over_the_whole_range_of_doubles(geometry, rows, exponent):
    """Each is right to a few units in the last place, or rounded up where doubles lose bits."""
    values = np.ldexp(np.array(rows), exponent)
    exact = [[abs(Fraction(x)) for x in row] for row in values.tolist()]
    many = geometry.distances(values, np.zeros_like(values)).tolist()
    order, add = (1, max) if geometry is SUP else (geometry.order, sum)
    for row, numbers, size in zip(values, exact, many, strict=True):
        for found in (size, norm(geometry, row)):
            size, true = Fraction(found) ** order, add(x**order for x in numbers)
            assert true * (1 - Fraction(1, 2**50)) <= size
            slack = (2 * Fraction(2) ** -1074) ** order + true * Fraction(1, 2**50)
            assert size <= true + slack or 0 < found < 2.0**-1020


def test_a_norm_beyond_the_doubles_is_infinite():
    """And no error: the pair counts as one on which the target has no value."""
    huge, zeros = np.full((1, 3), 1.5e308), np.zeros((1, 3))
    for geometry in (L1, L2):
        assert geometry.distance(huge, zeros) == math.inf
        assert geometry.distances(huge, zeros).tolist() == [math.inf]


CODE = PublicCode(
    encoder=[[1.0, -1.0, 0.1], [0.0, 0.5, 0.3]],
    mean=[0.1, 0.2, 0.3],
    covariance=[[1.0, 0.0], [-1.0, 0.5], [0.1, 0.3]],
    deviations=[1.0, 1.0, 1.0],
    removable=[[0.6, 0.0], [0.0, 0.3]],
)
CODED = [Geometry(p, CODE) for p in (1, 2, math.inf)]


def test_codes_are_computed_value_by_value():
    """In doubles (x + h) - x is not h: what is measured is what a release computes."""
    value, step = np.full(3, 1e16), np.ones(3)
    for plain, coded in zip(GEOMETRIES, CODED, strict=True):
        moved = coded.code.forward(value + step) - coded.code.forward(value)
        assert coded.distance(value + step, value) == norm(plain, moved)
        assert coded.distance(value + step, value) != coded.distance(step, 0 * step)
        pairs = np.array([value + step, step]), np.array([value, 0 * step])
        expected = [coded.distance(*pair) for pair in zip(*pairs, strict=True)]
        assert coded.distances(*pairs).tolist() == expected


def test_keys_tell_geometries_apart():
    assert [geometry.key for geometry in GEOMETRIES] == ["l1", "l2", "sup"]
    assert len({geometry.key for geometry in [*GEOMETRIES, *CODED]}) == 6
    assert L1 == Geometry(1, None) != L2


def test_a_larger_norm_bounds_the_smaller_ones_of_its_code():
    for family in (GEOMETRIES, CODED):
        bounds = [[one.bounds(other) for other in family] for one in family]
        assert bounds == [[True, True, True], [False, True, True], [False, False, True]]
    pairs = [(one, other) for one in GEOMETRIES for other in CODED]
    assert not any(one.bounds(other) or other.bounds(one) for one, other in pairs)


def test_errors_do_not_cancel_in_a_code():
    errors = np.array([[1.0, 1.0, 0.0]])
    for coded in CODED:
        assert CODE.reach(errors)[0] == 2.5 > norm(coded, errors)


def test_a_geometry_is_stored_bit_for_bit():
    for geometry in [*GEOMETRIES, *CODED]:
        again = Geometry.from_dict(json.loads(json.dumps(geometry.to_dict(), allow_nan=False)))
        assert again == geometry
        assert again.key == geometry.key


@pytest.mark.loop(
    ("name", "given", "error"),
    [
        *(("order", order, ValueError) for order in (0, 3, "l1", None, math.nan)),
        *(("code", code, TypeError) for code in ("auto", np.eye(2))),
    ],
)
def test_other_orders_and_codes_are_refused(name, given, error):
    with pytest.raises(error, match=f"'{name}' parameter of Geometry must be"):
        Geometry(**{name: given})


def test_no_norm_of_ones_own_passes_for_one_of_these():
    with pytest.raises(TypeError, match="no subclasses"):
        type("Own", (Geometry,), {"distance": lambda self, value, other: 0.0})
