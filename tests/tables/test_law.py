"""Post-processing of noisy tables: sizes, smoothing, draws, encoder."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from skdp.tables.columns import Category, Number
from skdp.tables.encoder import ClassTableEncoder
from skdp.tables.law import (
    class_given_cell,
    class_sizes,
    draw_cells,
    draw_classes,
    law_of_column,
    n_cells_of_numbers,
)
from skdp.tables.schema import Schema


@pytest.mark.loop(
    ("n", "sd", "cells"), [(10_000, 0, 16), (100, 50, 2), (400, 20, 5), (2**40, 1e-9, 16)]
)
def test_cells_hold_four_deviations_of_noise(n, sd, cells):
    assert n_cells_of_numbers(n, sd) == cells


def test_class_sizes_are_weighted_by_their_precisions():
    """With k cells a size has k times the variance of a count; a tiny class is lifted."""
    tables = [np.full((2, 2), 25.0), np.array([[40.0, 0], [0, 0], [0, 0], [0, 60]])]
    sizes = class_sizes(tables, 100, 0.0)
    np.testing.assert_allclose(sizes, np.array([50, 50]) * 2 / 3 + np.array([40, 60]) / 3)
    tiny = class_sizes([np.array([[1000.0, -3], [0, -5]])], 1000, 2.0)
    np.testing.assert_allclose(tiny, np.array([1000, 2 * 2 * 2**0.5]) / (1 + 4e-3 * 2**0.5))


def test_without_noise_and_with_many_records_the_table_is_kept():
    table = np.array([[9000.0, 1000], [4000, 6000], [2000, 8000]])
    sizes = table.sum(axis=0)
    for ordered in (False, True):
        counts, p, _ = class_given_cell(table, sizes, 0.0, ordered)
        np.testing.assert_allclose(counts, table.sum(axis=1))
        np.testing.assert_allclose(p, table / 10_000, atol=0.01)
        law, odds = law_of_column(table, sizes, 0.0, ordered)
        np.testing.assert_allclose(law.sum(axis=0), sizes)
        np.testing.assert_allclose(odds, np.log(p * 30_000 / sizes))


def test_a_column_of_noise_keeps_the_shares_and_a_column_of_signal_does_not():
    """Seeded; 200 columns of 8 cells, with noise of a quarter of their counts."""
    rng, sizes, sd = np.random.default_rng(0), np.array([300.0, 700]), 30.0
    flat, steep = np.full((8, 2), sizes / 8), np.linspace(2, 0, 8)[:, None]
    steep = np.hstack([steep * sizes[0] / 8, (2 - steep) * sizes[1] / 8])
    means = []
    for truth in (flat, steep):
        found = [
            class_given_cell(truth + rng.normal(scale=sd, size=(8, 2)), sizes, sd, True)[1]
            for _ in range(200)
        ]
        means.append(np.mean(np.abs(np.array(found) - 0.3 * np.array([1, 0]) - [0, 0.7])))
    assert means[0] < 0.05
    assert means[1] > 3 * means[0]


def test_draws_have_the_law_and_all_classes():
    law = np.array([[10.0, 0], [30, 50], [0, 10]])
    classes = draw_classes(np.array([1.0, 3]), 40_000, np.random.default_rng(0))
    cells = draw_cells(law, classes, np.random.default_rng(1))
    found = np.bincount(cells * 2 + classes, minlength=6).reshape(3, 2) / 40_000
    expected = law / law.sum(axis=0) * [0.25, 0.75]
    np.testing.assert_allclose(found, expected, atol=0.015)
    assert found[0, 1] == found[2, 0] == 0
    rare = [
        draw_classes(np.array([1e-9, 1, 1e-9]), 30, np.random.default_rng(0), complete)
        for complete in (True, False)  # all of them for students; else draws are independent
    ]
    assert [np.bincount(each).tolist() for each in rare] == [[1, 28, 1], [0, 30]]


SCHEMA = Schema(
    {
        "a": Number(0, 8),
        "b": Number(0, 4, integer=True),
        "gain": Number(0, 99, log=True),
        "c": Category(["x", "y"]),
    },
    classes=[0, 1],
)
ODDS = [
    *(np.column_stack([np.zeros(k), values]) for k, values in ((2, [-9, 1.5]), (2, [0, 3]))),
    *(np.column_stack([np.zeros(2), values]) for values in ([0, 3.0], [-0.6, 0.9])),
]


def test_the_encoder_interpolates_numbers_between_the_middles_of_cells():
    """Of "a" they are 2 and 6; of "b" 1 and 3.5, where whole numbers are; 10 is log 1/4."""
    encoder = ClassTableEncoder(SCHEMA, ODDS, 2)
    X = [[4, 1, 99 / 100, "y"], [1, 9, 1e9, None], [6, 2, None, "x"], ["?", 3, 9, "y"]]
    encoded = encoder.transform(X)
    np.testing.assert_allclose(encoded[:, 0], [-0.25, -1, 0.5, -1])
    np.testing.assert_allclose(encoded[:, 1], [0, 1, 0.4, 0.8])
    np.testing.assert_allclose(encoded[:, 2], [0, 1, 0, 0.5], atol=1e-12)
    np.testing.assert_allclose(encoded[:, 3], [0.3, -0.2, -0.2, 0.3])
    assert encoder.get_feature_names_out().tolist() == ["a", "b", "gain", "c"]


def test_the_encoder_is_a_transformer_that_learns_nothing():
    encoder = ClassTableEncoder(SCHEMA, ODDS, 2)
    X = pd.DataFrame([[4, 1, 5.0, "y"], [1, 9, 1e9, None]], columns=list(SCHEMA.columns))
    encoded = encoder.transform(X)
    for other in (clone(encoder), pickle.loads(pickle.dumps(encoder)), clone(encoder).fit(X)):
        np.testing.assert_array_equal(other.transform(X), encoded)
    one_by_one = np.vstack([encoder.transform(X.iloc[[i]]) for i in range(2)])
    np.testing.assert_array_equal(one_by_one, encoded)
    several = ClassTableEncoder(SCHEMA, [np.hstack([odds, odds]) for odds in ODDS], 2)
    assert several.transform(X).shape == (2, 12)
    assert several.get_feature_names_out()[:4].tolist() == ["a_1", "a_2", "a_3", "b_1"]
    assert encoder.transform(X.iloc[:0]).shape == (0, 4)
