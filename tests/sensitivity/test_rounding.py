"""Shaken records: what a value makes of their last bits is its rounding."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, Ridge

from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler
from skdp.core.dataset import Dataset
from skdp.core.schema import Form
from skdp.oracles.drawing import perturbed

N = 200


def table(kind, dtype=float):
    """A column that varies, gaps, counts, and a constant."""
    rng = np.random.default_rng(0)
    X = np.column_stack(
        [rng.normal(size=N), rng.normal(size=N), rng.poisson(3, size=N), np.full(N, 0.1)]
    ).astype(dtype)
    X[::7, 1] = np.nan
    names = ["varies", "gaps", "counts", "constant"]
    frames = {
        "pandas": lambda: pd.DataFrame(X, columns=names),
        "polars": lambda: pl.DataFrame(dict(zip(names, X.T, strict=True))),
        "mixed": lambda: pd.DataFrame(X, columns=names).assign(
            counts=X[:, 2].astype(int), color=pd.Categorical(np.resize(["a", "b"], N))
        ),
    }
    sparse_ones = {"csr": sparse.csr_array, "coo": sparse.coo_matrix}
    if kind in frames:
        return frames[kind]()
    return sparse_ones[kind](X) if kind in sparse_ones else X


def dense(container):
    if sparse.issparse(container):
        return container.toarray()
    return np.asarray(
        container[container.columns[:4]] if hasattr(container, "columns") else container
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["array", "csr", "coo", "pandas", "polars", "mixed"])
def test_records_are_the_same_but_for_their_last_bits(kind, dtype):
    X, y, weights = table(kind, dtype), np.arange(N), np.linspace(0.1, 0.9, N)
    before = dense(X).copy()
    moved = perturbed(Dataset(X, y, weights), np.random.default_rng(1))
    assert Form.of(moved.X) == Form.of(X)
    np.testing.assert_array_equal(dense(X), before)  # the given one is as it was
    np.testing.assert_array_equal(moved.y, y)
    np.testing.assert_allclose(moved.sample_weight, weights, rtol=1e-12)
    assert (moved.sample_weight != weights).mean() > 0.9
    after, same = dense(moved.X).astype(dtype), before.astype(dtype)
    np.testing.assert_allclose(after, same, rtol=1.05 * np.finfo(dtype).eps ** 0.8, atol=0)
    np.testing.assert_array_equal(after[:, 2], same[:, 2])
    assert (np.abs(after) <= np.abs(same))[~np.isnan(same)].all()
    for column in (0, 1, 3):
        there = ~np.isnan(same[:, column])
        assert (after[there, column] != same[there, column]).mean() > 0.9
    if kind == "mixed":
        assert list(moved.X["color"]) == list(X["color"])


REPEATED = table("pandas").set_axis(["a", "a", "b", "c"], axis="columns")


@pytest.mark.parametrize(
    "X",
    [
        list(range(N)),
        [[each / 3] for each in range(N)],
        np.arange(N),
        np.full(N, 2.0**31 - 1),
        REPEATED,
        REPEATED["b"],
        pl.Series("b", np.arange(N) / 3),
    ],
)
def test_records_of_other_kinds_stay_as_they_are(X):
    moved = perturbed(Dataset(X), np.random.default_rng(1)).X
    assert Form.of(moved) == Form.of(X)
    np.testing.assert_array_equal(np.asarray(moved), np.asarray(X))
    wide = np.full(N, 1.7e18)  # integers that no sum holds exactly
    assert (wide != perturbed(Dataset(wide), np.random.default_rng(1)).X).mean() > 0.9


def hormones(n_samples, rng):
    """A blood pressure, and a hormone in mol/L."""
    X = rng.normal(size=(n_samples, 2))
    noise = rng.normal(size=(n_samples, 2))
    return X, np.column_stack(
        [120 + 10 * X[:, 0] + 5 * noise[:, 0], 1e-10 * (3 + X[:, 1] + 0.3 * noise[:, 1])]
    )


def incomes(n_samples, rng):
    X = np.column_stack([rng.normal(5e4, 1e4, n_samples), rng.normal(3e-10, 3e-11, n_samples)])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@pytest.mark.parametrize(
    ("estimator", "oracle", "names"),
    [
        (LinearRegression(), hormones, ["coef_[1, 1]", "intercept_[1]"]),
        (Ridge(), hormones, ["coef_[1, 1]", "intercept_[1]"]),
        (SimpleImputer(), incomes, ["statistics_[1]"]),
    ],
)
def test_what_is_in_a_small_unit_is_read_as_well(estimator, oracle, names):
    """Whatever its size beside the others: the last bits do not change it."""
    model = PrivateEstimator(
        estimator,
        mechanism=LaplaceMechanism(3.0),
        sensitivity=SensitivitySampler(oracle, gamma=0.2, random_state=0),
        random_state=0,
    )
    records = oracle(600, np.random.default_rng(1))
    summary = model.fit(*(records if isinstance(records, tuple) else (records,))).summary()
    assert "the same in all public fits" not in summary.notes
    for name in names:
        assert summary.errors[summary.names.index(name)] > 0
