"""Byte sources, refusals, and the lattice against exact fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp.mechanisms.discrete import MAX_SCALE
from skdp.mechanisms.noise import Lattice, OperatingSystemBytes, byte_source


@pytest.mark.loop(
    ("random_state", "error", "message"),
    [
        ("os", TypeError, "type str"),
        (1.5, TypeError, "type float"),
        (True, TypeError, "type bool"),
        (np.random.default_rng(0), TypeError, "type Generator. Leave it None"),
        (np.random.RandomState(0), TypeError, "type RandomState"),
        (np.random.SeedSequence(0), TypeError, "type SeedSequence"),
        (OperatingSystemBytes(), TypeError, "type OperatingSystemBytes"),
        (-1, ValueError, "at least 0. Got -1"),
    ],
)
def test_other_random_states_are_refused(random_state, error, message):
    with pytest.raises(error, match=message):
        byte_source(random_state)


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(value=finite, exponent=st.integers(-1100, 1020))
def test_rounding_against_exact_fractions(value, exponent):
    steps = round(Fraction(value) / Fraction(2) ** exponent)  # exact, ties to even
    clipped = max(-(2**61), min(2**61, steps))
    assert int(Lattice(exponent).to_integers(value)) == clipped


@given(
    value=finite,
    exponent=st.integers(-1074, 1020),
    drawn=st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-1000, 1000),
)
def test_released_values_are_on_the_lattice_or_nan(value, exponent, drawn):
    lattice = Lattice(exponent)
    rounded = lattice.to_integers(value)
    released = float(lattice.to_floats(rounded, drawn))
    exact = Fraction(int(rounded) + drawn) * Fraction(2) ** exponent
    if math.isnan(released):
        assert abs(int(rounded) + drawn) > 2**60 or abs(exact) > np.finfo(float).max
    else:
        assert (Fraction(released) / Fraction(2) ** exponent).denominator == 1
        assert abs(Fraction(released) - exact) <= abs(exact) / 2**53


def test_extreme_noise_hides_the_value_completely():
    """Noise at the end of int64 must give one answer for every value, or cutting it would tell."""
    lattice = Lattice(-40)
    values = np.array([-(2**61), -1, 0, 12345, 2**61])
    for end in (2**63 - 1, 2**63 - MAX_SCALE, -(2**63) + 1):
        assert np.isnan(lattice.to_floats(values, np.full(5, end))).all()


@given(sensitivity=st.floats(1e-300, 1e300), parts=st.floats(1, 1e6))
def test_step_is_fine_but_not_too_fine(sensitivity, parts):
    ratio = Fraction(2) ** Lattice.fine(sensitivity, parts).exponent * 2**14 * Fraction(parts)
    assert Fraction(1, 4) * Fraction(sensitivity) < ratio <= Fraction(sensitivity)


@given(
    pairs=st.lists(st.tuples(st.floats(-100, 100), st.floats(-5, 5)), min_size=1, max_size=30),
    exponent=st.integers(-8, 2),
)
def test_rounding_charge_covers_the_difference(pairs, exponent):
    lattice = Lattice(exponent)
    value, shift = np.array(pairs).T
    other = value + shift
    exact = [Fraction(a) - Fraction(b) for a, b in zip(value, other, strict=True)]
    change = np.abs(lattice.to_integers(value) - lattice.to_integers(other)).astype(object)
    l1 = float(sum(abs(x) for x in exact))
    if l1 > 0:
        assert sum(change) <= lattice.integer_sensitivity(l1, charge=len(pairs))
        l2 = float(sum(x * x for x in exact)) ** 0.5
        charge = int(np.ceil(len(pairs) ** 0.5))
        assert sum(change**2) <= lattice.integer_sensitivity(max(l2, 1e-300), charge) ** 2


def test_rounding_charge_is_needed():
    """Ties to even move 0.5 and 1.5 apart, to 0 and 2: a whole step more on each coordinate."""
    lattice, d = Lattice(-3), 50
    value = (2.0 * np.arange(d) + 0.5) / 8
    other = value + 1 / 8
    change = np.abs(lattice.to_integers(value) - lattice.to_integers(other)).sum()
    assert change == 2 * d
    assert change <= lattice.integer_sensitivity(d / 8, charge=d)
    assert change > lattice.integer_sensitivity(d / 8, charge=0)  # an uncharged version fails
