"""Exact integer draws against their laws."""

import numpy as np
import pytest
from scipy import stats

from skdp.mechanisms import discrete
from skdp.mechanisms.discrete import (
    MAX_SCALE,
    below,
    bernoulli_exp,
    bernoulli_exp_power,
    coins,
    discrete_gaussian,
    discrete_laplace,
)
from skdp.mechanisms.noise import byte_source

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


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 2, 7])
def test_small_batches_have_the_same_law(size):
    """Cutting a batch must not prefer any value. False-positive rate 1e-6 a size."""
    source = byte_source(size)
    draws = np.concatenate([discrete_laplace(5, size, source) for _ in range(1500 // size)])
    assert chi_square_p_value(draws, 5) > FALSE_POSITIVE_RATE


def test_draws_are_independent_of_their_neighbors():
    """Rank correlation at lags 1 and 2; false-positive rate 2e-6; .02 would be caught (z = 9)."""
    draws = discrete_laplace(1000, N_DRAWS, byte_source(3))
    for lag in (1, 2):
        assert abs(stats.spearmanr(draws[lag:], draws[:-lag]).statistic) < 4.9 / N_DRAWS**0.5


@pytest.mark.parametrize("bound", [3, 5, 200, 257, 3 * 2**50])
def test_uniform_integers_are_uniform(bound):
    """The top third is where a remainder would show. False-positive rate 1e-6 a bound."""
    draws = below(bound, N_DRAWS, byte_source(0)).astype(np.int64)
    n_cells = min(bound, 12)
    edges = [bound * i // n_cells for i in range(n_cells + 1)]
    observed = np.histogram(draws, [*edges[:-1], bound - 0.5])[0]
    expected = np.diff(np.array(edges, dtype=object)).astype(float) * N_DRAWS / bound
    assert draws.min() >= 0
    assert draws.max() < bound
    assert stats.chisquare(observed, expected).pvalue > FALSE_POSITIVE_RATE


def test_noise_at_the_largest_scale_stays_within_int64(monkeypatch):
    endless = np.iinfo(np.int64).max
    monkeypatch.setattr(discrete, "_geometric", lambda size, source: np.full(size, endless))
    draws = discrete_laplace(MAX_SCALE, 100, byte_source(0))
    assert draws.dtype == np.int64
    assert np.all(np.abs(draws.astype(object)) > 2**63 - 2 * MAX_SCALE)
    assert (draws > 0).any()
    assert (draws < 0).any()


@pytest.mark.loop("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.loop("size", [0, 1, 1000])
def test_size(draw, size):
    assert draw(10, size, byte_source()).shape == (size,)


@pytest.mark.loop("draw", [discrete_laplace, discrete_gaussian])
@pytest.mark.loop("scale", [0, -1, MAX_SCALE + 1])
def test_scale_outside_its_range_is_refused(draw, scale):
    with pytest.raises(ValueError, match=r"must be an integer from 1 to 2\*\*52"):
        draw(scale, 1, byte_source(0))


def gaussian_p_value(draws, sigma):
    """Compare with the exact discrete Gaussian law, summed over all integers of each cell."""
    edges = np.unique(np.round(np.linspace(-3, 3, 40) * sigma).astype(np.int64))
    if sigma <= 2000:
        values = np.arange(-12 * sigma, 12 * sigma + 1)
        weights = np.exp(-(values**2) / (2 * sigma**2))
        cells = np.searchsorted(edges, values, side="right")
        expected = np.bincount(cells, weights) / weights.sum()
    else:  # the cell from a to b holds the integers in [a, b): midpoint rule, error below 1e-12
        tail = stats.norm.sf((edges - 0.5) / sigma)
        expected = -np.diff(np.concatenate([[1.0], tail, [0.0]]))
    observed = np.bincount(np.searchsorted(edges, draws, side="right"), minlength=edges.size + 1)
    return stats.chisquare(observed, expected * draws.size).pvalue


@pytest.mark.parametrize("sigma", [1, 2, 700, 3**30])
def test_discrete_gaussian_against_exact_law(sigma):
    """Seeded; false-positive rate 1e-6 a sigma. A sigma wrong by 3 % has a noncentrality of
    about 300, so the power is above 1 - 1e-6; continuous noise, rounded, is caught at sigma 1."""
    draws = discrete_gaussian(sigma, N_DRAWS, byte_source(sigma % 89))
    assert gaussian_p_value(draws, sigma) > FALSE_POSITIVE_RATE


def test_wrong_laws_are_caught():
    """Another scale, zero counted twice (a magnitude and a sign), and rounded continuous noise."""
    rng = np.random.default_rng(0)
    twice = (rng.geometric(1 - np.exp(-1.0), N_DRAWS) - 1) * rng.choice([-1, 1], N_DRAWS)
    rounded = np.rint(rng.normal(size=N_DRAWS)).astype(np.int64)
    p_values = [chi_square_p_value(twice, 1), gaussian_p_value(rounded, 1)]
    for factor in (0.96, 1.04):
        for scale in SCALES[1:]:
            draws = discrete_laplace(int(factor * scale), N_DRAWS, byte_source(1))
            p_values.append(chi_square_p_value(draws, scale))
        draws = discrete_gaussian(int(700 * factor), N_DRAWS, byte_source(0))
        p_values.append(gaussian_p_value(draws, 700))
    assert max(p_values) < FALSE_POSITIVE_RATE


@pytest.mark.parametrize("power", [0, 1, 3])
@pytest.mark.parametrize("weight", [0, 2, 7])
def test_coins_against_their_weights(weight, power):
    """Heads with probability exp(-weight / 7)^power; binomial, false-positive rate 1e-6 each.
    At 50,000 flips a weight wrong by .02 is caught with a power above .999."""
    source = byte_source(10 * weight + power)
    n_flips = 50_000
    flip = coins(np.full(n_flips, weight), 7, source)
    heads = bernoulli_exp_power(flip, np.full(n_flips, power), source).sum()
    chance = np.exp(-weight * power / 7)
    assert stats.binomtest(int(heads), n_flips, chance).pvalue > FALSE_POSITIVE_RATE
    if power == 1:
        again = int(bernoulli_exp(flip, n_flips, source).sum())
        assert stats.binomtest(again, n_flips, chance).pvalue > FALSE_POSITIVE_RATE
        if weight:
            assert stats.binomtest(again, n_flips, chance - 0.02).pvalue < FALSE_POSITIVE_RATE


@pytest.mark.slow
def test_small_gaussian_batches_have_the_same_law():
    source = byte_source(4)
    draws = np.concatenate([discrete_gaussian(3, 4, source) for _ in range(500)])
    assert gaussian_p_value(draws, 3) > FALSE_POSITIVE_RATE
