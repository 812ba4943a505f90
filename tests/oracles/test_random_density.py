"""RandomDensityOracle: every dataset has a density of its own, smooth and inside the box."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skdp import RandomDensityOracle
from skdp.core.oracle import has_independent_records

BOUNDS = [(-2.0, 3.0), (100.0, 101.0)]


def datasets(oracle, n_datasets, n_samples, seed=0):
    rng = np.random.default_rng(seed)
    return [oracle(n_samples, rng) for _ in range(n_datasets)]


def test_records_are_inside_the_box_and_vary():
    for widths in [(0.03, 0.3), (1e-9, 1e-9), (1e6, 1e6)]:
        X = np.vstack(datasets(RandomDensityOracle(BOUNDS, widths=widths), 50, 20))
        low, high = np.transpose(BOUNDS)
        assert np.isfinite(X).all()
        assert (low <= X).all()
        assert (high >= X).all()
        assert (np.ptp(X, axis=0) > 0.5 * (high - low)).all()


@pytest.mark.slow
def test_a_component_is_a_truncated_normal_law():
    """Kolmogorov-Smirnov on 5,000 records of a mode near the edge, found on a grid of 101.

    The law of the right mode is rejected once in 10^9 seeds; a normal law that is not truncated, at
    any mode, always.
    """
    oracle = RandomDensityOracle([(0, 1)], max_components=1, widths=(0.2, 0.2))
    rng = np.random.default_rng(0)
    X = next(X for X in (oracle(5_000, rng)[:, 0] for _ in range(100)) if np.median(X) < 0.18)
    modes = np.linspace(0, 1, 101)
    truncated = [stats.truncnorm(-mode / 0.2, (1 - mode) / 0.2, mode, 0.2) for mode in modes]
    assert max(stats.kstest(X, law.cdf).pvalue for law in truncated) > 1e-9
    assert max(stats.kstest(X, stats.norm(mode, 0.2).cdf).pvalue for mode in modes) < 1e-9


def test_each_dataset_has_its_own_mode_width_and_number_of_components():
    """Chi-square and Kolmogorov-Smirnov over 2,000 datasets; false-positive rate 1e-9 each."""
    narrow = RandomDensityOracle([(0, 1)], max_components=1, widths=(1e-6, 1e-6))
    modes = [X.mean() for X in datasets(narrow, 2000, 3)]
    assert stats.kstest(modes, "uniform").pvalue > 1e-9
    several = RandomDensityOracle([(0, 1)], max_components=3, widths=(1e-15, 1e-15))
    seen = [len(np.unique(X.round(6))) for X in datasets(several, 300, 400)]
    assert set(seen) == {1, 2, 3}
    assert 50 < seen.count(1) < 165  # binomial(300, 1/3), and some of tiny weights
    spread = RandomDensityOracle([(0, 1)], max_components=1, widths=(1e-5, 1e-3))
    widths = np.log([X.std() for X in datasets(spread, 2000, 200)])
    assert stats.kstest(widths, stats.uniform(np.log(1e-5), np.log(100)).cdf).statistic < 0.12


def test_the_law_does_not_depend_on_the_unit():
    unit, box = RandomDensityOracle([(0, 1), (0, 1)]), RandomDensityOracle(BOUNDS)
    first, second = (oracle(30, np.random.default_rng(3)) for oracle in (unit, box))
    low, high = np.transpose(BOUNDS)
    np.testing.assert_allclose(second, low + (high - low) * first, rtol=1e-13)
    named = RandomDensityOracle(dict(zip("ab", BOUNDS, strict=True)))
    pd.testing.assert_frame_equal(
        named(30, np.random.default_rng(3)), pd.DataFrame(second, columns=["a", "b"])
    )
    assert not has_independent_records(named)


@pytest.mark.loop(
    ("options", "message"),
    [
        ({"bounds": [(1, 1)]}, "'bounds' .* low < high"),
        ({"bounds": [(0, np.inf)]}, "'bounds' parameter of RandomDensityOracle"),
        ({"max_components": 0}, "'max_components' .* at least 1. Got 0"),
        ({"max_components": 1.5}, "'max_components'"),
        ({"widths": (0.3, 0.03)}, "'widths' .* smallest <= largest"),
        ({"widths": (0, 1)}, "'widths'"),
        ({"widths": 0.1}, "'widths'"),
        ({"widths": (0.1, np.nan)}, "'widths'"),
    ],
)
def test_bad_parameters_are_named(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        RandomDensityOracle(**{"bounds": [(0, 1)]} | options)
