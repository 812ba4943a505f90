"""The integer noise against its exact law, and the lattice against exact fractions."""

import os
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdp.mechanisms import noise
from skdp.mechanisms.noise import (
    MAX_SCALE,
    Lattice,
    OperatingSystemBytes,
    byte_source,
    check_sensitivity,
    check_value,
    discrete_laplace,
)

FALSE_POSITIVE_RATE = 1e-6  # of each chi-square test below
SCALES = [1, 1000, 2**40 + 1]
N_DRAWS = 200_000


def laplace_upper_tail(z, scale):
    """P(Z >= z) of the discrete Laplace law, z any integer: a geometric sum."""
    q = np.exp(-1.0 / scale)
    positive = np.exp(-np.maximum(z, 1) / scale) / (1 + q)
    negative = 1 - np.exp(-np.maximum(1 - z, 1) / scale) / (1 + q)
    return np.where(z >= 1, positive, negative)


def chi_square_p_value(draws, scale):
    """Compare draws with the exact law, in up to 40 cells with expected counts above 50."""
    quantiles = np.linspace(-4.5, 4.5, 40) * scale
    edges = np.unique(np.round(quantiles).astype(np.int64))
    tail = laplace_upper_tail(edges, scale)
    expected = -np.diff(np.concatenate([[1.0], tail, [0.0]])) * draws.size
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=edges.size + 1)
    return stats.chisquare(observed, expected).pvalue


@pytest.mark.parametrize("scale", SCALES)
def test_discrete_laplace_against_exact_law(scale):
    """Seeded; false-positive rate 1e-6 a scale. A scale wrong by 4 % has a noncentrality of
    about 300 at these counts, so the power against it is above 1 - 1e-6."""
    draws = discrete_laplace(scale, N_DRAWS, byte_source(scale % 97))
    assert chi_square_p_value(draws, scale) > FALSE_POSITIVE_RATE


@pytest.mark.parametrize("scale", SCALES[1:])
@pytest.mark.parametrize("factor", [0.96, 1.04])
def test_wrong_scale_is_caught(scale, factor):
    draws = discrete_laplace(int(factor * scale), N_DRAWS, byte_source(1))
    assert chi_square_p_value(draws, scale) < FALSE_POSITIVE_RATE


def test_zero_counted_twice_is_caught():
    """The classical mistake: a magnitude and a sign, without drawing a negative zero again."""
    rng = np.random.default_rng(0)
    draws = (rng.geometric(1 - np.exp(-1.0), N_DRAWS) - 1) * rng.choice([-1, 1], N_DRAWS)
    assert chi_square_p_value(draws, 1) < FALSE_POSITIVE_RATE


@pytest.mark.parametrize("size", [1, 2, 7])
def test_small_batches_have_the_same_law(size):
    """Cutting a batch must not prefer any value. False-positive rate 1e-6 a size."""
    source = byte_source(size)
    draws = np.concatenate([discrete_laplace(5, size, source) for _ in range(7000 // size)])
    assert chi_square_p_value(draws, 5) > FALSE_POSITIVE_RATE


def test_draws_are_independent_of_their_neighbors():
    """Rank correlation at lags 1 and 2; false-positive rate 2e-6; .02 would be caught (z = 9)."""
    draws = discrete_laplace(1000, N_DRAWS, byte_source(3))
    for lag in (1, 2):
        assert abs(stats.spearmanr(draws[lag:], draws[:-lag]).statistic) < 4.9 / N_DRAWS**0.5


@pytest.mark.parametrize("bound", [3, 5, 200, 257, 3 * 2**50])
def test_uniform_integers_are_uniform(bound):
    """The top third is where a remainder would show. False-positive rate 1e-6 a bound."""
    draws = noise._below(bound, N_DRAWS, byte_source(0)).astype(np.int64)
    n_cells = min(bound, 12)
    edges = [bound * i // n_cells for i in range(n_cells + 1)]
    observed = np.histogram(draws, [*edges[:-1], bound - 0.5])[0]
    expected = np.diff(np.array(edges, dtype=object)).astype(float) * N_DRAWS / bound
    assert draws.min() >= 0
    assert draws.max() < bound
    assert stats.chisquare(observed, expected).pvalue > FALSE_POSITIVE_RATE


def test_noise_at_the_largest_scale_stays_within_int64(monkeypatch):
    endless = np.iinfo(np.int64).max
    monkeypatch.setattr(noise, "_geometric", lambda size, source: np.full(size, endless))
    draws = discrete_laplace(MAX_SCALE, 100, byte_source(0))
    assert draws.dtype == np.int64
    assert np.all(np.abs(draws.astype(object)) > 2**63 - 2 * MAX_SCALE)
    assert (draws > 0).any()
    assert (draws < 0).any()


@pytest.mark.parametrize("size", [0, 1, 1000])
def test_size(size):
    assert discrete_laplace(10, size, byte_source()).shape == (size,)


@pytest.mark.parametrize("scale", [0, -1, MAX_SCALE + 1])
def test_scale_outside_its_range_is_refused(scale):
    with pytest.raises(ValueError, match=r"must be in \[1, 2\*\*52\]"):
        discrete_laplace(scale, 1, byte_source(0))


def test_same_bytes_same_noise():
    first = discrete_laplace(10**6, 500, byte_source(7))
    again = discrete_laplace(10**6, 500, byte_source(np.random.default_rng(7)))
    other = discrete_laplace(10**6, 500, byte_source(8))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_operating_system_bytes_are_used_by_default(monkeypatch):
    asked = []
    genuine = os.urandom
    monkeypatch.setattr(noise.os, "urandom", lambda n: asked.append(n) or genuine(n))
    discrete_laplace(1000, 10, byte_source(None))
    assert sum(asked) >= 10 * 8


def test_sources_pass_through():
    for source in (OperatingSystemBytes(), np.random.default_rng(0), np.random.RandomState(0)):
        assert byte_source(source) is source


@pytest.mark.parametrize(
    ("random_state", "error", "message"),
    [
        ("os", TypeError, "type str"),
        (1.5, TypeError, "type float"),
        (True, TypeError, "type bool"),
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
        Lattice(-10).to_integers([123.456, bad])
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
def test_released_values_are_finite_and_on_the_lattice(value, exponent, drawn):
    lattice = Lattice(exponent)
    released = float(lattice.to_floats(lattice.to_integers(value), drawn))
    assert np.isfinite(released)
    assert (Fraction(released) / Fraction(2) ** exponent).denominator == 1


def test_extreme_noise_hides_the_value_completely():
    """Noise at the end of int64 must give one answer for every value, or cutting it would tell."""
    lattice = Lattice(-40)
    values = np.array([-(2**61), -1, 0, 12345, 2**61])
    for end in (2**63 - 1, 2**63 - MAX_SCALE, -(2**63) + 1):
        assert np.unique(lattice.to_floats(values, np.full(5, end))).size == 1


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
