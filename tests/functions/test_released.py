"""Estimators made of released values, and the projection to the simplex."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from skdp import BernsteinTransformer
from skdp.core.simplex import project_to_simplex
from skdp.functions import ReleasedClassifier, ReleasedDensity, ReleasedRegressor

SQUARE = BernsteinTransformer(3, feature_range=(0, 1)).fit(np.zeros((1, 2)))
COEFFICIENTS = np.random.default_rng(0).normal(size=(16, 3))
POINTS = np.random.default_rng(1).uniform(size=(50, 2))


@given(arrays(np.float64, (4, 3), elements=st.floats(-1e3, 1e3)))
def test_projection_lies_in_the_simplex_and_is_nearest(values):
    """The nearest point p of a convex set: (values - p)'(vertex - p) <= 0 for each vertex."""
    projected = project_to_simplex(values)
    assert projected.min() >= 0
    np.testing.assert_allclose(projected.sum(axis=1), 1, atol=1e-9)
    for row, p in zip(values, projected, strict=True):
        assert np.max((np.eye(3) - p) @ (row - p)) <= 1e-6 * (1 + np.abs(row).max())


def test_labels_follow_from_scores():
    scores = ReleasedClassifier(SQUARE, COEFFICIENTS, np.array([3, 5, 9]))
    best = scores.decision_function(POINTS).argmax(axis=1)
    np.testing.assert_array_equal(scores.predict(POINTS), np.array([3, 5, 9])[best])
    of_two = ReleasedClassifier(SQUARE, COEFFICIENTS[:, 0], np.array(["no", "yes"]))
    signs = of_two.decision_function(POINTS) > 0
    np.testing.assert_array_equal(of_two.predict(POINTS) == "yes", signs)


def test_a_function_has_no_value_at_a_missing_number():
    with pytest.raises(ValueError, match="NaN"):
        ReleasedRegressor(SQUARE, COEFFICIENTS).predict([[0.5, 0.5], [0.5, np.nan]])


def test_zero_density_has_log_density_minus_infinity():
    interval = BernsteinTransformer(2, feature_range=(0, 1)).fit(np.zeros((1, 1)))
    density = ReleasedDensity(interval, np.array([0.0, 1.0, 0.0]))
    assert density.score_samples([[0.0]])[0] == -np.inf
    assert density.score([[0.5]]) == pytest.approx(np.log(1.5))
    assert density.n_features_in_ == 1
    assert not hasattr(density, "feature_names_in_")
    interval.feature_names_in_ = np.array(["height"], dtype=object)
    assert density.feature_names_in_ == ["height"]
