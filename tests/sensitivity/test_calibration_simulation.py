"""The promise of each calibration, by simulation, beside wrong versions that must fail.

Simulations draw the *conditional* miss probability. For sensitivities with a continuous
distribution function F the values F(G) are uniform and in the same order, so the share of fresh
pairs above the k-th of m draws is 1 - Beta(k, m + 1 - k): one beta draw stands for m sorted
sensitivities, exactly and for every continuous law. `test_ties_and_infinities` does sort.

Every comparison of a mean allows Z = 5 standard errors, 2.9e-7 on one side. There are fewer than
80 such comparisons in this file, so a right version fails it with probability below 2.4e-5. The
wrong versions shown beside the right ones are more than 10 standard errors off their limits.
"""

import math

import numpy as np
import pytest
from scipy.stats import ksone

from skdp.sensitivity.calibration import order_statistic

Z = 5
GAMMAS = [0.2, 0.1, 0.05, 0.01]


def misses(k, n_pairs, rng, size=20_000):
    """Draw the probability that a fresh pair is missed, given the draws."""
    return 1 - rng.beta(k, n_pairs + 1 - k, size=size)


def mean_and_error(values):
    return np.mean(values), np.std(values) / math.sqrt(len(values))


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("calibration", ["exact", "dkw", "conditional"])
def test_joint_coverage_is_never_below_the_promise(calibration, gamma):
    rng = np.random.default_rng(20170601)
    alone = order_statistic(gamma, calibration=calibration)
    for n_pairs in (alone.n_pairs, 2 * alone.n_pairs + 7):
        k = order_statistic(gamma, n_pairs, calibration=calibration).k
        mean, error = mean_and_error(misses(k, n_pairs, rng, 100_000))
        assert mean <= gamma + Z * error
        # The plain empirical quantile, what one would take without any theory, is caught.
        naive = math.floor((1 - gamma) * n_pairs)
        mean, error = mean_and_error(misses(naive, n_pairs, rng, 100_000))
        assert mean > gamma + Z * error


@pytest.mark.parametrize(("gamma", "n_pairs"), [(0.2, 12), (0.1, 24), (0.05, 49), (0.01, 249)])
def test_exact_is_tight_from_both_sides(gamma, n_pairs):
    # (1 - gamma)(m + 1) has a fractional part near one half here, so the right index lies well
    # inside (gamma - 1/(m+1), gamma] and both of its neighbors well outside.
    rng = np.random.default_rng(20170602)
    right = order_statistic(gamma, n_pairs).k

    def verdict(k):
        mean, error = mean_and_error(misses(k, n_pairs, rng))
        if mean > gamma + Z * error:
            return "broken"
        return "too timid" if mean < gamma - 1 / (n_pairs + 1) - Z * error else "right"

    assert verdict(right - 1) == "broken"
    assert verdict(right) == "right"
    assert verdict(right + 1) == "too timid"


def test_ties_and_infinities():
    # 40 % ties at zero, 5 % failed pairs, the rest continuous; the .9 quantile is continuous.
    rng = np.random.default_rng(20170605)
    statistic = order_statistic(0.1, 24)
    kind, values = rng.random((40_000, 25)), rng.random((40_000, 25))
    values[kind < 0.4] = 0.0
    values[kind > 0.95] = np.inf
    draws, fresh = np.sort(values[:, :-1], axis=1), values[:, -1]
    error = math.sqrt(0.1 * 0.9 / len(values))
    assert 0.1 - 1 / 25 - Z * error <= np.mean(fresh > draws[:, statistic.k - 1]) <= 0.1 + Z * error
    assert np.mean(fresh > draws[:, statistic.k - 2]) > 0.1 + Z * error


@pytest.mark.parametrize("gamma", GAMMAS)
def test_conditional_coverage_holds_for_its_share_of_samples(gamma):
    rng = np.random.default_rng(20170606)
    statistic = order_statistic(gamma, calibration="conditional", confidence=0.95)
    error = math.sqrt(0.95 * 0.05 / 20_000)

    def share_covered(k):
        return np.mean(misses(k, statistic.n_pairs, rng) <= gamma)

    assert share_covered(statistic.k) >= 0.95 - Z * error
    assert share_covered(statistic.k - 1) < 0.95 - Z * error
    # The exact calibration with as many pairs makes no such promise.
    exact = order_statistic(gamma, statistic.n_pairs)
    assert share_covered(exact.k) < 0.95 - Z * error


def test_only_dkw_may_be_read_at_a_gamma_chosen_afterwards():
    rng = np.random.default_rng(20170607)
    levels = np.arange(10, 51) / 100
    draws = np.sort(rng.random((4_000, 285)), axis=1)  # of a law that the reader knows

    def worst_excess(calibration):
        ks = np.array([order_statistic(g, 285, calibration=calibration).k for g in levels])
        return np.max(1 - draws[:, ks - 1] - levels, axis=1)

    mean, error = mean_and_error(worst_excess("dkw"))
    assert mean <= Z * error
    mean, error = mean_and_error(worst_excess("exact"))
    assert mean > Z * error


@pytest.mark.parametrize("n_pairs", [2, 10, 61, 285, 1305, 41971])
def test_dkw_bounds_the_one_sided_kolmogorov_statistic(n_pairs):
    # The exact law of sup(empirical - true) is known, so the uniform bound needs no simulation.
    rho = order_statistic(n_pairs=n_pairs, calibration="dkw").rho
    deviation = math.sqrt(-math.log(rho) / (2 * n_pairs))
    assert 0.6 * rho < ksone.sf(deviation, n_pairs) <= rho
    assert ksone.sf(deviation / math.sqrt(2), n_pairs) > rho  # the factor 2 forgotten
