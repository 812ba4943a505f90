"""The noise of class tables against their sensitivity, by enumeration."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from skdp.mechanisms.noise import byte_source
from skdp.tables import counts
from skdp.tables.columns import Category, Number
from skdp.tables.counts import TableNoise, class_tables

KINDS = list(itertools.product([1.0, 9.0], ["x", "y"], ["no", "yes"]))
COLUMNS = Number(0, 10), Category(["x", "y"]), Category(["no", "yes"])


def flat_counts(records):
    cells = [c.cells(list(p), 2) for c, p in zip(COLUMNS, zip(*records, strict=True), strict=True)]
    return np.concatenate([t.ravel() for t in class_tables(cells[:2], [2, 2], cells[2], 2)])


def law(center, scale, ends):
    """Probabilities of discrete Laplace noise about a count, with merged tails."""
    values = np.arange(ends[0] - 2000, ends[1] + 2001)
    p = np.exp(-np.abs(values - center) / scale)
    merged = np.bincount(np.clip(values, *ends) - ends[0], weights=p)
    return merged / merged.sum()


def test_every_pair_of_neighbors_is_covered_and_one_attains_epsilon(monkeypatch):
    """All datasets of two records of two columns, two cells and two classes, all replaced records.

    The counts get independent noise, so the largest log ratio of the joint law is the sum of those
    of the counts.
    """
    monkeypatch.setattr(counts, "BITS", 0)  # whole noise, whose outcomes can be listed
    epsilon, ends = 0.5, (-30, 32)
    scale = TableNoise(2, epsilon).scale
    laws = {count: law(count, scale, ends) for count in range(3)}
    largest = 0.0
    for kept, old, new in itertools.product(KINDS, repeat=3):
        pair = zip(flat_counts([kept, old]), flat_counts([kept, new]), strict=True)
        ratios = [np.max(np.log(laws[int(a)] / laws[int(b)])) for a, b in pair]
        largest = max(largest, sum(ratios))
    assert largest == pytest.approx(epsilon, abs=1e-9)


@pytest.mark.loop("n_tables", [1, 2, 14, 300])
@pytest.mark.loop("budget", [1e-3, 0.1, 1 / 3, 1.0, 20.0])
def test_scales_are_rounded_toward_privacy(n_tables, budget):
    unit = Fraction(2**counts.BITS)
    laplace = TableNoise(n_tables, budget)
    assert 2 * n_tables * unit / laplace.scale <= Fraction(budget)
    assert laplace.deviation == pytest.approx(2 * 2**0.5 * n_tables / budget, rel=1e-4)
    gaussian = TableNoise(n_tables, 1.0, budget)
    assert 2 * n_tables * unit**2 <= Fraction(budget) ** 2 * gaussian.scale**2
    assert gaussian.deviation == pytest.approx((2 * n_tables) ** 0.5 / budget, rel=1e-4)


@pytest.mark.parametrize("noise", [TableNoise(2, 0.5), TableNoise(2, 1.0, 0.3)])
def test_noise_is_added_to_each_count(noise):
    """Seeded. The standard error of a deviation is 1.6 % with Laplace noise."""
    tables = [np.full((1000, 2), 7), np.full((2000, 2), 10**9)]
    noisy = noise.add(tables, byte_source(0))
    for table, made in zip(tables, noisy, strict=True):
        difference = made - table
        assert made.shape == table.shape
        assert np.all(difference != 0)
        assert np.all(difference * 2**20 == np.rint(difference * 2**20))
        assert np.std(difference) == pytest.approx(noise.deviation, rel=0.1)
        assert abs(np.mean(difference)) < 5 * noise.deviation / made.size**0.5


def test_without_a_budget_the_counts_are_exact():
    tables = [np.array([[3, 4], [0, 1]])]
    np.testing.assert_array_equal(TableNoise(1, np.inf).add(tables, byte_source(0)), tables)
