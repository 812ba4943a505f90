"""The norms against exact fractions, and geometries as values."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from skdp import (
    KnownSensitivity,
    LaplaceMechanism,
    Mechanism,
    PrivacyGuarantee,
    SensitivitySampler,
    UniformOracle,
    release,
)
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


def test_distances_have_the_bits_of_the_plain_formula_where_it_is_right():
    rng = np.random.default_rng(0)
    values, others = rng.normal(size=(2, 500, 7)) * 10.0 ** rng.integers(-9, 9, size=(500, 1))
    for geometry in GEOMETRIES:
        plain = np.linalg.norm(values - others, ord=geometry.order, axis=1)
        np.testing.assert_array_equal(geometry.distances(values, others), plain)


def test_a_norm_beyond_the_doubles_is_infinite():
    """And no error: the pair counts as one on which the target has no value."""
    huge, zeros = np.full((1, 3), 1.5e308), np.zeros((1, 3))
    for geometry in (L1, L2):
        assert geometry.distance(huge, zeros) == math.inf
        assert geometry.distances(huge, zeros).tolist() == [math.inf]


SCALES = PublicCode(
    encoder=[1.0, 2.0, 3.0], mean=np.zeros(3), deviations=np.ones(3), removable=[0.1, 0.2, 0.3]
)
SCALED = [Geometry(p, SCALES) for p in (1, 2, math.inf)]
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
    for plain, scaled in zip(2 * GEOMETRIES, SCALED + CODED, strict=True):
        moved = scaled.code.forward(value + step) - scaled.code.forward(value)
        assert scaled.distance(value + step, value) == norm(plain, moved)
        assert scaled.distance(value + step, value) != scaled.distance(step, 0 * step)
        pairs = np.array([value + step, step]), np.array([value, 0 * step])
        expected = [scaled.distance(*pair) for pair in zip(*pairs, strict=True)]
        assert scaled.distances(*pairs).tolist() == expected


def test_keys_tell_geometries_apart():
    assert [geometry.key for geometry in GEOMETRIES] == ["l1", "l2", "sup"]
    assert len({geometry.key for geometry in [*GEOMETRIES, *SCALED, *CODED]}) == 9
    assert L1 == Geometry(1, None) != L2


def test_a_larger_norm_bounds_the_smaller_ones_of_its_code():
    for family in (GEOMETRIES, SCALED, CODED):
        bounds = [[one.bounds(other) for other in family] for one in family]
        assert bounds == [[True, True, True], [False, True, True], [False, False, True]]
    for family in (SCALED, CODED):
        pairs = [(one, other) for one in GEOMETRIES for other in family]
        assert not any(one.bounds(other) or other.bounds(one) for one, other in pairs)


def test_errors_do_not_cancel_in_a_code():
    errors = np.array([[1.0, 1.0, 0.0]])
    for coded in CODED:
        assert CODE.reach(errors)[0] == 2.5 > norm(coded, errors)


def test_a_geometry_is_stored_bit_for_bit():
    for geometry in [*GEOMETRIES, *SCALED, *CODED]:
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


class Doubled(Geometry):
    """Twice the L1 norm."""

    key = "doubled"

    def distance(self, value, other):
        return 2 * super().distance(value, other)


def test_a_norm_of_ones_own():
    """It is measured by its `distance` throughout, and bounds itself only."""
    own, rows = Doubled(), np.arange(6.0).reshape(2, 3)
    assert own.distances(rows, np.zeros_like(rows)).tolist() == [6.0, 24.0]
    assert own.bounds(Doubled())
    assert not any(own.bounds(other) or other.bounds(own) for other in GEOMETRIES)
    with pytest.raises(TypeError, match=r"Doubled has a norm of its own.*Pickle it"):
        own.to_dict()


@pytest.mark.loop(
    ("base", "replaced", "key"),
    [
        (Doubled, "distance", "doubled"),
        (Geometry, "distance", "l1"),  # the name of another norm
        (Geometry, "distances", "l1"),
    ],
)
def test_norms_of_ones_own_are_told_apart_by_their_class_too(base, replaced, key):
    parts = {replaced: lambda self, *values: getattr(base, replaced)(self, *values) / 8, "key": key}
    other = type("Other", (base,), parts)()
    assert other.bounds(type(other)())
    for geometry in (Doubled(), Geometry(1)):
        assert not other.bounds(geometry)
        assert not geometry.bounds(other)


def test_a_norm_of_ones_own_has_a_key_of_its_own():
    """Else a sensitivity in it would pass for one in the L1 norm."""
    with pytest.raises(TypeError, match="Halved must override 'key'"):
        type("Halved", (Geometry,), {"distance": lambda self, value, other: 0.0})


class DoubledLaplace(Mechanism):
    """A mechanism from outside of the package, with a norm of its own."""

    geometry = Doubled()

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def release(self, value, sensitivity, rng):
        return LaplaceMechanism(self.epsilon).release(value, sensitivity / 2, rng)

    def guarantee(self, gamma=0.0):
        return PrivacyGuarantee(epsilon=self.epsilon, gamma=gamma)


def test_releases_in_a_norm_of_ones_own():
    X = np.random.default_rng(0).uniform(size=(50, 1))
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, random_state=0)
    options = {"mechanism": DoubledLaplace(1.0), "random_state": 0}
    own = release(np.mean, X, sensitivity=sampler, **options)
    mechanism = LaplaceMechanism(1.0, code=None)
    plain = release(np.mean, X, mechanism=mechanism, sensitivity=sampler)
    assert own.sensitivity.value == 2 * plain.sensitivity.value
    again = release(np.mean, X, sensitivity=own.sensitivity, **options)
    assert again.sensitivity == own.sensitivity
    release(np.mean, X, sensitivity=KnownSensitivity(0.04, Doubled(), 50), **options)
    for other in (plain.sensitivity, KnownSensitivity(0.04, "l1", 50)):
        with pytest.raises(ValueError, match=r"'doubled'|: l1\. This release has doubled"):
            release(np.mean, X, sensitivity=other, **options)
