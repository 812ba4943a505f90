"""Bounds from counts: against scipy, against published vectors, and their level."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from skdp.audit.certificates import clopper_pearson, label_bound, pair_bound


@given(n=st.integers(1, 10_000), share=st.floats(0, 1), alpha=st.floats(1e-6, 0.4))
def test_clopper_pearson_against_scipy(n, share, alpha):
    k = round(share * n)
    lower, upper = clopper_pearson(k, n, alpha)
    interval = stats.binomtest(k, n).proportion_ci(1 - 2 * alpha, method="exact")
    assert lower == pytest.approx(interval.low, abs=1e-11)
    assert upper == pytest.approx(interval.high, abs=1e-11)
    assert np.ravel(clopper_pearson(0, 0, alpha)).tolist() == [0.0, 1.0]


# Recomputed with scipy.stats.beta.ppf before this code was written. The last are the largest bounds
# of 1e3 and 1e6 final runs.
@pytest.mark.loop(
    ("bound", "counts", "delta", "expected"),
    [
        (label_bound, (73106, 100_000), {}, 0.9882579),
        (label_bound, (100_000, 136_788), {}, 0.9899549),
        (label_bound, (0, 0), {}, 0.0),
        (label_bound, (40, 100), {}, 0.0),
        (pair_bound, (90, 100, 10, 100), {}, 1.5421524),
        (pair_bound, (10, 100, 90, 100), {}, 0.0),
        (pair_bound, (90, 100, 10, 100), {"delta": 0.9}, 0.0),
        (label_bound, (2000, 2000), {}, 6.50),
        (label_bound, (2 * 10**6, 2 * 10**6), {}, 13.41),
        (pair_bound, (1000, 1000, 0, 1000), {}, 5.60),
        (pair_bound, (10**6, 10**6, 0, 10**6), {}, 12.51),
    ],
)
def test_bounds_against_frozen_numbers(bound, counts, delta, expected):
    digits = len(str(expected).partition(".")[2])
    assert bound(*counts, 0.05, **delta) == pytest.approx(expected, abs=10**-digits)


def exact_level(bound_exceeds, n_x, p_x, n_y, p_y):
    """Probability that a pair bound exceeds the truth, summed over all outcomes."""
    k_x, k_y = np.meshgrid(np.arange(n_x + 1), np.arange(n_y + 1), indexing="ij")
    weights = np.outer(stats.binom(n_x, p_x).pmf(k_x[:, 0]), stats.binom(n_y, p_y).pmf(k_y[0]))
    return float(weights[bound_exceeds(k_x, k_y)].sum())


@pytest.mark.parametrize(("p_x", "p_y", "delta"), [(0.5, 0.2, 0), (0.1, 0.05, 0.02), (0.9, 0.3, 0)])
def test_level_of_the_pair_bound_is_exact_from_above(p_x, p_y, delta):
    truth = math.log((p_x - delta) / p_y)

    def honest(k_x, k_y):
        return pair_bound(k_x, 60, k_y, 80, 0.05, delta) > truth

    def uncorrected(k_x, k_y):  # the limits at alpha, both: the level doubles, and it shows
        with np.errstate(divide="ignore", invalid="ignore"):  # no hit has the logarithm -inf
            return np.log((k_x / 60 - delta) / (k_y / 80)) > truth

    assert exact_level(honest, 60, p_x, 80, p_y) <= 0.05
    assert exact_level(uncorrected, 60, p_x, 80, p_y) > 0.3


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0, 3.0])
def test_level_of_the_label_bound_is_exact_from_above(epsilon):
    right = np.arange(201)
    law = stats.binom(200, 1 / (1 + math.exp(-epsilon)))
    exceeds = label_bound(right, 200, 0.05) > epsilon
    assert 0.01 < law.pmf(right[exceeds]).sum() <= 0.05
    with np.errstate(divide="ignore"):  # no hit has the logarithm -inf
        plain = np.log(right / np.maximum(200 - right, 1e-12)) > epsilon
    assert law.pmf(right[plain]).sum() > 0.3
