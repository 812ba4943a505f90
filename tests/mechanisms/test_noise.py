"""Byte sources, refusals, and the lattice against exact fractions."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdp import GaussianMechanism, L2LaplaceMechanism, LaplaceMechanism
from skdp.mechanisms import noise
from skdp.mechanisms.discrete import MAX_SCALE, discrete_laplace
from skdp.mechanisms.noise import (
    Lattice,
    OperatingSystemBytes,
    byte_source,
    check_sensitivity,
    check_value,
    lattice_scale,
)


def test_same_bytes_same_noise():
    first = discrete_laplace(10**6, 500, byte_source(7))
    again = discrete_laplace(10**6, 500, byte_source(np.int64(7)))
    other = discrete_laplace(10**6, 500, byte_source(8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_operating_system_bytes_are_used_by_default(monkeypatch):
    asked = []
    genuine = os.urandom
    monkeypatch.setattr(noise.os, "urandom", lambda n: asked.append(n) or genuine(n))
    discrete_laplace(1000, 10, byte_source(None))
    assert sum(asked) >= 10 * 8


@pytest.mark.parametrize(
    ("mechanism", "k"),
    [
        (LaplaceMechanism(1.0), 1),
        (LaplaceMechanism(1.0), 4),
        (GaussianMechanism(1.0, 1e-5), 4),
        (L2LaplaceMechanism(1.0), 1),
        (L2LaplaceMechanism(1.0), 4),
    ],
)
def test_noise_is_decoded_with_the_kurtosis_that_it_has(mechanism, k):
    source = np.random.default_rng(0)
    noise = np.ravel([mechanism.release(np.zeros(k), 1.0, source) for _ in range(24_000 // k)])
    assert stats.kurtosis(noise) == pytest.approx(mechanism._kurtosis(k), abs=0.5)


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


@pytest.mark.parametrize(
    ("sensitivity", "message"),
    [
        (0.0, "the oracle never changes the target"),
        (np.inf, "sampling failed"),
        (-1.0, "must be positive and finite. Got -1.0."),
        (np.nan, "must be positive and finite. Got nan."),
    ],
)
def test_sensitivities_without_a_noise_are_refused(sensitivity, message):
    with pytest.raises(ValueError, match=message):
        check_sensitivity(sensitivity, "LaplaceMechanism")


def test_check_value_copies():
    value = np.array([[1.0, 2.0]])
    checked = check_value(value)
    np.testing.assert_array_equal(checked, value)
    assert not np.shares_memory(checked, value)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_without_an_echo(bad):
    with pytest.raises(ValueError, match="must be finite") as caught:
        LaplaceMechanism(1.0).release([123.456, bad], 1.0)
    assert "123" not in str(caught.value)


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


@given(
    sensitivity=st.floats(1e-300, 1e300),
    parts=st.floats(1, 1e6),
)
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


def test_lattice_scale_refuses_what_rounding_would_drown():
    least = Fraction(40, MAX_SCALE)
    lattice, scale = lattice_scale(1.0, 10, least, 10.0, "SomeMechanism")
    assert scale <= MAX_SCALE
    assert scale * 2.0**lattice.exponent * float(least) < 2
    with pytest.raises(ValueError, match="'epsilon' parameter of SomeMechanism is too small"):
        lattice_scale(1.0, 10, least / 10, 10.0, "SomeMechanism")


@pytest.mark.loop("value", [[14.0], [-1.7e308], [5e-324], [1e18, 1e-9, -3.0], [1e308, -1e308]])
@pytest.mark.loop("sensitivity", [5e-324, 1e-9, 1.0, 1e300])
@pytest.mark.loop("epsilon", [1e-3, 1e12])
def test_a_value_is_released_near_itself_or_not_at_all(value, sensitivity, epsilon):
    """40 standard errors are exceeded with a probability below 1e-20 a number."""
    value = np.array(value)
    for make in (LaplaceMechanism, L2LaplaceMechanism, GaussianMechanism):
        delta = {"delta": 1e-5} if make is GaussianMechanism else {}
        mechanism = make(epsilon, **delta)
        released, errors = mechanism.release_with_errors(value, sensitivity, byte_source(0))
        told = 40 * errors + 1e-12 * np.abs(value).max()
        assert np.isnan(released).all() or (np.abs(released - value) <= told).all()
        if np.abs(value).max() <= 2.0**40 / len(value) * sensitivity / max(1, epsilon):
            assert np.isfinite(released).all() or sensitivity == 1e300
