"""Record containers: every kind gives the same records, and none is modified."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from skdp.core.dataset import (
    Dataset,
    as_dataset,
    column_names,
    n_columns,
    n_records,
    neighboring_pair,
    take_records,
)
from skdp.core.plain import find_non_finite

MATRICES = {
    "numpy": lambda values: values,
    "fortran": np.asfortranarray,
    "strided": lambda values: np.repeat(values, 2, axis=0)[::2],
    "integers": lambda values: values.astype(np.int32),
    "object": lambda values: values.astype(object),
    "csr array": sparse.csr_array,
    "csr matrix": sparse.csr_matrix,
    "coo": sparse.coo_array,
    "csc": sparse.csc_matrix,
    "pandas": lambda values: pd.DataFrame(values, index=range(7, 7 + len(values))).add_prefix("c"),
    "polars": lambda values: pl.DataFrame(values, schema=[f"c{i}" for i in range(values.shape[1])]),
    "list": lambda values: values.tolist(),
}
VECTORS = {
    "numpy": lambda values: values,
    "strings": lambda values: values.astype(str),
    "pandas": pd.Series,
    "polars": lambda values: pl.Series(values),
    "list": lambda values: values.tolist(),
}
CONTAINERS = [(make, 2) for make in MATRICES.values()] + [(make, 1) for make in VECTORS.values()]


def dense(container):
    return np.asarray(container.todense() if sparse.issparse(container) else container)


def values_of(n, n_dims):
    values = np.arange(3.0 * n).reshape(n, 3)
    return values if n_dims == 2 else values[:, 0]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(CONTAINERS), st.integers(1, 8), st.data())
def test_take_records_is_indexing(kind, n, data):
    make, n_dims = kind
    container = make(values_of(n, n_dims))
    before = dense(container).copy()
    indices = np.array(data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=12)))
    taken = take_records(container, indices)
    np.testing.assert_array_equal(dense(taken), before[indices])
    np.testing.assert_array_equal(dense(container), before)
    assert n_records(taken) == len(indices)
    assert n_columns(taken) == (3 if n_dims == 2 else None)
    assert sparse.issparse(taken) == sparse.issparse(container)
    assert type(taken) is type(container)


def test_neighboring_pair_keeps_records_and_responses_together():
    X, y = np.arange(8.0).reshape(4, 2), np.arange(4) * 2
    for dataset in neighboring_pair(Dataset(X, y)):
        np.testing.assert_array_equal(dataset.X[:, 0], dataset.y)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(CONTAINERS), st.integers(2, 8), st.data())
def test_neighboring_pair_replaces_the_same_record_at_any_position(container, n, data):
    """No write to one reaches the other, and rows of frames are counted anew."""
    make, n_dims = container
    position = data.draw(st.integers(-1, n - 1))
    values = values_of(n + 1, n_dims)
    given_records = make(values)
    pair = [each.X for each in neighboring_pair(Dataset(given_records), position)]
    base, neighbor = (dense(each).astype(float) for each in pair)
    assert {str(row) for row in base} == {str(row) for row in values[:n]}
    np.testing.assert_array_equal(base[position], values[n - 1])
    np.testing.assert_array_equal(neighbor[position], values[n])
    others = np.arange(n) != position % n
    np.testing.assert_array_equal(base[others], neighbor[others])
    np.testing.assert_array_equal(dense(given_records).astype(float), values)
    if isinstance(pair[0], np.ndarray):
        assert not np.shares_memory(*pair)
        is_of_words = pair[0].dtype.kind == "U"  # each as wide as its longest word
        assert is_of_words or pair[0].strides == pair[1].strides
    if isinstance(pair[0], pd.DataFrame | pd.Series):
        assert [list(each.index) for each in pair] == [list(range(n))] * 2


def test_neighboring_pair_needs_two_records():
    with pytest.raises(ValueError, match="at least 2 records"):
        neighboring_pair(Dataset(np.zeros((1, 2))))


def test_as_dataset():
    X, y = np.zeros((2, 1)), np.ones(2)
    for sample in (X, (X,), (X, None), (X, None, None), Dataset(X)):
        assert as_dataset(sample).parts == (X,)
    for sample in ((X, y), (X, y, None), Dataset(X, y)):
        assert as_dataset(sample).parts == (X, y)
    assert as_dataset((X, y, y)).parts == (X, y, y)


@pytest.mark.parametrize(
    ("sample", "got"), [(None, "None"), ((None, 1), "a tuple of 2"), ((1, 2, 3, 4), "a tuple of 4")]
)
def test_as_dataset_refuses(sample, got):
    message = rf"The oracle f must be X or a tuple \(X, y\) or \(X, y, .*\). Got {got}."
    with pytest.raises(TypeError, match=message):
        as_dataset(sample, "The oracle f")


@pytest.mark.loop("thing", [3.0, "text", {"a": [1]}, np.float64(1), np.array(1.0), None])
def test_what_holds_no_records_is_refused(thing):
    with pytest.raises(TypeError, match=rf"Got (numpy\.)?{type(thing).__name__}: convert it"):
        n_records(thing)
    if not isinstance(thing, np.ndarray):
        with pytest.raises(TypeError, match="Records must come as"):
            take_records(thing, np.array([0]))


def test_columns():
    frame = pd.DataFrame({"a": [1], "b": [2]})
    assert column_names(frame) == column_names(pl.DataFrame({"a": [1], "b": [2]})) == ["a", "b"]
    assert column_names(pd.DataFrame([[1, 2]])) is None  # numbers are no names
    assert column_names(np.zeros((1, 2))) is None
    assert n_columns(["a text", "another"]) is None
    assert n_columns([]) is None
    assert n_columns(np.zeros((2, 3, 4))) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_find_non_finite_names_the_column(bad):
    values = np.arange(6.0).reshape(3, 2)
    for kind in ("numpy", "csr array", "pandas", "polars", "list"):
        assert find_non_finite(MATRICES[kind](values)) is None
        spoiled = values.copy()
        spoiled[2, 1] = bad
        place = find_non_finite(MATRICES[kind](spoiled))
        frame = kind in ("pandas", "polars")
        assert place == ("column 'c1'" if frame else "a value" if "csr" in kind else "column 1")
    for make in (np.asarray, pd.Series, pl.Series, list):
        assert find_non_finite(make([1.0, 2.0])) is None
        assert find_non_finite(make([1.0, bad])) == "a value"


def test_find_non_finite_sees_missing_values_and_passes_over_text():
    text = ["x", None]
    missing = [1, None]
    nullable = pd.DataFrame({"t": text, "m": pd.array(missing, dtype="Int64")})
    assert find_non_finite(nullable) == "column 'm'"
    assert find_non_finite(nullable[["t"]]) is None
    assert find_non_finite(pl.DataFrame({"t": text, "m": missing})) == "column 'm'"
    assert find_non_finite(pl.DataFrame({"t": text})) is None
    assert find_non_finite([["one", "two"], ["three"]]) is None
    assert find_non_finite(np.array(["a"], dtype=object)) is None
