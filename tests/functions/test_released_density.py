"""Functions and densities made of released values: integral, sign, sampling, labels."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import integrate, stats
from sklearn.exceptions import NotFittedError

from skdp import BernsteinTransformer
from skdp.core.simplex import project_to_simplex
from skdp.functions import ReleasedClassifier, ReleasedDensity, ReleasedRegressor

from_coefficients = ReleasedDensity.from_coefficients


def fitted(n_features, degree, order="auto", feature_range=(0, 1)):
    bernstein = BernsteinTransformer(degree, order, feature_range=feature_range)
    return bernstein.fit(np.zeros((1, n_features)))


def noisy(n_features, degree=6, seed=0, feature_range=(0, 1)):
    """Coefficients that are negative in many places."""
    bernstein = fitted(n_features, degree, 3, feature_range)
    values = np.random.default_rng(seed).normal(0.3, 1, bernstein.n_basis_)
    return bernstein, bernstein.coefficients(values)


@pytest.mark.loop(
    ("n_features", "box"), [(1, (0, 1)), (1, (-3, 50)), (2, [(0, 2), (5, 6)]), (3, (0, 0.1))]
)
@pytest.mark.loop("degree", [None, 6, 9])
def test_density_is_one(n_features, box, degree):
    """By a Gauss rule that is exact for the degree."""
    bernstein, coefficients = noisy(n_features, feature_range=box)
    density = from_coefficients(bernstein, coefficients, degree)
    assert density.transformer.degree == (degree or 24)
    assert density.coefficients.min() == 0
    nodes, weights = np.polynomial.legendre.leggauss(16)
    low, high = density.transformer.feature_range_.T
    unit = np.stack(np.meshgrid(*[(nodes + 1) / 2] * n_features, indexing="ij"), axis=-1)
    points = low + (high - low) * unit.reshape(-1, n_features)
    rule = np.prod(np.meshgrid(*[weights / 2] * n_features, indexing="ij"), axis=0).ravel()
    values = density.evaluate(points)
    assert values.min() >= 0
    assert rule @ values * np.prod(high - low) == pytest.approx(1, abs=1e-12)


def test_a_density_stays_what_it_is():
    bernstein, grid = fitted(1, 8, feature_range=(0, 4)), np.linspace(0, 4, 50)[:, None]
    coefficients = np.random.default_rng(0).random(9)
    expected = bernstein.evaluate(coefficients, grid) / bernstein.integral(coefficients)
    density = from_coefficients(bernstein, coefficients)
    np.testing.assert_allclose(density.evaluate(grid), expected, rtol=1e-12)


def test_tends_to_the_clipped_function():
    bernstein, coefficients = noisy(1, seed=4)
    grid = np.linspace(0, 1, 2001)[:, None]
    clipped = np.maximum(bernstein.evaluate(coefficients, grid), 0)
    clipped /= integrate.trapezoid(clipped, grid[:, 0])
    distances = [
        np.abs(from_coefficients(bernstein, coefficients, degree).evaluate(grid) - clipped).mean()
        for degree in (12, 48, 192, 768)
    ]
    assert all(a > 2 * b for a, b in itertools.pairwise(distances))
    assert distances[-1] < 0.01


def test_nothing_positive_gives_the_uniform_density():
    density = from_coefficients(fitted(1, 3, feature_range=(0, 4)), [-1.0, -2.0, 0.0, -1.0])
    np.testing.assert_allclose(density.evaluate([[0.0], [1.7], [4.0]]), 0.25)
    assert density.mass == 0


def test_sample_agrees_with_the_density():
    """Kolmogorov-Smirnov on 20,000 draws at level 1e-4 against the exact distribution function;
    a shift of 3 % of the box is caught with probability above .999."""
    density = from_coefficients(*noisy(1, seed=4, feature_range=(2, 6)))
    degree = density.transformer.degree
    weights = density.coefficients / density.coefficients.sum()
    q = np.arange(degree + 1)

    def distribution(x):
        u = np.clip((x[:, None] - 2) / 4, 0, 1)
        return stats.beta.cdf(u, q + 1, degree - q + 1) @ weights

    points = density.sample(20_000, random_state=0)
    assert points.shape == (20_000, 1)
    assert stats.kstest(points[:, 0], distribution).pvalue > 1e-4
    assert stats.kstest(points[:, 0] + 0.12, distribution).pvalue < 1e-4


def test_sample_agrees_in_two_dimensions():
    """Chi-square on 6 x 6 cells at level 1e-4, expected counts by an exact Gauss rule; columns
    in the wrong order are caught."""
    density = from_coefficients(*noisy(2, degree=4, seed=1, feature_range=[(0, 1), (10, 12)]))
    points = density.sample(20_000, random_state=0)
    edges = [np.linspace(0, 1, 7), np.linspace(10, 12, 7)]
    counts, _, _ = np.histogram2d(*points.T, bins=edges)
    nodes, weights = np.polynomial.legendre.leggauss(10)
    axes = [(e[:-1, None] + (e[1] - e[0]) * (nodes + 1) / 2).ravel() for e in edges]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    cells = density.evaluate(grid).reshape(6, 10, 6, 10)
    expected = np.einsum("iajb,a,b->ij", cells, weights / 12, weights / 6) * 20_000
    assert expected.sum() == pytest.approx(20_000, rel=1e-9)
    expected *= 20_000 / expected.sum()
    assert stats.chisquare(counts.ravel(), expected.ravel()).pvalue > 1e-4
    assert stats.chisquare(counts.T.ravel(), expected.ravel()).pvalue < 1e-4


BERNSTEIN, NEGATIVE = noisy(1)


@pytest.mark.loop(
    ("call", "error", "message"),
    [
        *(
            (lambda bad=bad: ReleasedDensity(BERNSTEIN, bad), ValueError, "nonnegative and not all")
            for bad in (NEGATIVE, np.zeros(7), np.ones((7, 2)))
        ),
        (lambda: ReleasedDensity(BERNSTEIN, np.ones(3)), ValueError, "must have shape"),
        (lambda: from_coefficients(BERNSTEIN, NEGATIVE, 5), ValueError, "from 6 to 1000. Got 5"),
        (lambda: from_coefficients(BERNSTEIN, np.ones((7, 2))), ValueError, "of one function"),
        (
            lambda: ReleasedDensity(BernsteinTransformer(feature_range=(0, 1)), np.ones(11)),
            *(NotFittedError, "not fitted"),
        ),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message):
        call()


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
