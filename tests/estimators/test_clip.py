"""Clipping: no record escapes the bounds, none is refused, and none moves another."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import estimator_checks_generator

from skdp import ClipBox, ClipNorm

RADII = [1.0, 0.1, 3.3, 1e-100, 1e100]


def awkward_records(rng, n_features, n_rows=3400):
    """Records of all sizes, and those at which a norm over- or underflows or hides its rounding."""
    sizes = np.exp(rng.uniform(-700, 700, size=(n_rows, 1)))
    wild = rng.normal(size=(n_rows, n_features)) * sizes
    wild[rng.random(wild.shape) < 0.1] *= 1e-300
    for row, value in enumerate((np.inf, -np.inf, np.nan, 1e308, 5e-324, 0.0, -0.0)):
        wild[row], wild[row + 10, 0] = value, value
    on_sphere = rng.normal(size=(n_rows, n_features))
    on_sphere /= np.linalg.norm(on_sphere, axis=1, keepdims=True)
    nearly = on_sphere * (1 + rng.normal(size=(n_rows, 1)) * 1e-15)
    return wild, on_sphere, nearly


@pytest.mark.parametrize("n_features", [1, 2, 3, 7, 64])
def test_no_norm_exceeds_the_radius(n_features):
    """255,000 records in all: the computed norm in two orders, and of some the exact one."""
    rng = np.random.default_rng(n_features)
    for radius in RADII:
        wild, *round_ones = awkward_records(rng, n_features)
        for X in (wild, *(radius * each for each in round_ones)):
            clipped = ClipNorm(radius).transform(X)
            scaled = clipped / radius if 0.01 < radius < 100 else clipped * (1 / radius)
            unit = np.nextafter(1.0, 2.0)  # the division rounds
            assert np.linalg.norm(scaled, axis=1).max() <= unit
            if 0.01 < radius < 100:
                assert np.linalg.norm(clipped, axis=1).max() <= radius
                assert np.sqrt((clipped[:, ::-1] ** 2).sum(axis=1)).max() <= radius
            for row in clipped[rng.integers(len(X), size=20)]:
                assert sum(Fraction(entry) ** 2 for entry in row) <= Fraction(radius) ** 2


@pytest.mark.parametrize("clip", [ClipNorm(0.7), ClipBox(-0.5, 2.0)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, sparse.csr_matrix])
def test_clipping_twice_is_clipping_once(clip, container):
    for X in awkward_records(np.random.default_rng(0), 5):
        once = clip.transform(container(X))
        twice = clip.transform(once)
        assert type(once) is type(container(X))
        assert (abs(once - twice)).max() == 0


@pytest.mark.parametrize("clip", [ClipNorm(0.7), ClipBox(-0.5, 2.0)])
def test_sparse_records_are_clipped_as_dense_ones(clip):
    for X in awkward_records(np.random.default_rng(1), 6):
        X[:, 3] = 0.0
        dense = clip.transform(X)
        np.testing.assert_allclose(clip.transform(sparse.csc_array(X)).toarray(), dense, rtol=1e-12)


@pytest.mark.loop("clip", [ClipNorm(0.7), ClipBox(-0.5, 2.0)])
@pytest.mark.loop("container", [np.asarray, np.asfortranarray, sparse.csr_array])
def test_no_record_moves_another(clip, container):
    X = awkward_records(np.random.default_rng(2), 6)[0]
    X[::3, 1:] = 0.0
    other = X.copy()
    other[17] = [np.inf, 1.0, -np.inf, np.nan, 0.0, 1e308]
    first, second = (clip.transform(container(each)) for each in (X, other))
    moved = np.flatnonzero(np.abs(np.asarray((first - second).sum(axis=1))).ravel())
    assert set(moved) <= {17}
    rest = np.arange(len(X)) != 17
    assert (abs(first - second))[rest].max() == 0


def test_duplicate_entries_of_a_sparse_record_are_one():
    X = sparse.coo_array(([0.8, 0.8, 0.1], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    np.testing.assert_allclose(ClipNorm().transform(X).toarray(), [[0, 1], [0.1, 0]])
    np.testing.assert_array_equal(ClipBox(0, 1).transform(X).toarray(), [[0, 1], [0.1, 0]])


def test_a_missing_number_counts_as_zero():
    np.testing.assert_array_equal(ClipBox(0.5, 2).transform([[np.nan, 1.0]]), [[0.5, 1.0]])
    np.testing.assert_array_equal(ClipNorm().transform([[np.nan, 0.5]]), [[0.0, 0.5]])


def test_infinite_entries_leave_the_others_no_weight():
    clipped = ClipNorm(2.0).transform([[np.inf, 1e308, -np.inf, 0.0]])
    np.testing.assert_allclose(clipped, [[2**0.5, 0, -(2**0.5), 0]])


def test_frames_keep_their_columns():
    frame = pd.DataFrame({"age": [150, 20], "sex": [0, 1]})
    clipped = ClipBox([18, 0], [98, 1]).set_output(transform="pandas").fit_transform(frame)
    pd.testing.assert_frame_equal(clipped, pd.DataFrame({"age": [98.0, 20], "sex": [0.0, 1]}))


@pytest.mark.loop("radius", [0, -1, 1e101, np.inf, np.nan, "1", None, True])
def test_impossible_radii_are_refused(radius):
    with pytest.raises(ValueError, match="'radius' parameter of ClipNorm"):
        ClipNorm(radius).fit([[1.0]])


@pytest.mark.loop(
    ("low", "high"), [(1, 0), (0, np.inf), (np.nan, 1), ([0, 0, 0], 1), ("a", 1), (None, 1)]
)
def test_impossible_boxes_are_refused(low, high):
    with pytest.raises(ValueError, match="'low' and 'high' parameters of ClipBox"):
        ClipBox(low, high).transform([[1.0, 2.0]])


def test_a_box_without_zero_would_fill_a_sparse_matrix():
    with pytest.raises(ValueError, match="must have 0 between them"):
        ClipBox(1, 2).fit(sparse.csr_array(np.eye(2)))


@pytest.mark.loop(
    ("clip", "check"),
    [
        pytest.param(clip, check, id=f"{type(clip).__name__}-{check.func.__name__}")
        for made in (ClipBox(-1, 1), ClipNorm())
        for clip, check in estimator_checks_generator(made)
        if "array_api" not in check.func.__name__  # needs libraries that skdp has no use for
    ],
)
def test_check_estimator(clip, check):
    check(clip)


@pytest.mark.parametrize("dtype", ["Float64", "Float32", "Int64", "boolean"])
def test_a_nullable_column_alone_is_clipped_and_stays_as_it_is(dtype):
    """Its array may not be written to, or is that of the frame."""
    frame = pd.DataFrame({"a": pd.array([1, None, 0, 1], dtype=dtype)})
    before = frame.copy()
    for clip in (ClipBox(-0.5, 0.5), ClipNorm(0.5)):
        clipped = clip.fit(frame).transform(frame)
        np.testing.assert_allclose(clipped.ravel(), [0.5, 0.0, 0.0, 0.5], rtol=1e-12)
    pd.testing.assert_frame_equal(frame, before)
