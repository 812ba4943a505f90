"""The Bernstein basis against its theory, against exact fractions, and against dense algebra."""

import functools
import math
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.interpolate import RectBivariateSpline
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from skdp.functions import bernstein_basis as _bernstein_basis
from skdp.functions.bernstein import BernsteinTransformer, coefficients_of
from skdp.functions.bernstein_basis import bernstein_basis, elevation_matrix, multiply_axes
from skdp.functions.bernstein_order import ORDERS, noise_followed


def fitted(n_features, **params):
    params = {"order": 1, "feature_range": (0, 1)} | params
    return BernsteinTransformer(**params).fit(np.zeros((1, n_features)))


def approximate(function, points, n_features=1, **params):
    """The iterated Bernstein polynomial of a function, at some points."""
    bernstein = fitted(n_features, **params)
    return bernstein.evaluate(bernstein.coefficients(function(bernstein.lattice_)), points)


# The checks feed normal data and up to ten columns, so they need a box that holds the data, or
# clipping, and a low degree. Both are configurations of the transformer as it ships.
@pytest.mark.parametrize(
    "estimator",
    [
        BernsteinTransformer(degree=1, feature_range=(-1e4, 1e4)),
        BernsteinTransformer(degree=1, feature_range=(0, 1), clip=True),
        BernsteinTransformer(degree=2, order=3, feature_range=(0, 1), clip=True),
    ],
    ids=["wide box", "clip", "higher order"],
)
def test_is_an_estimator(estimator):
    check_estimator(estimator, on_skip=None)


def test_check_values():
    """Values computed once with two independent programs, from the definition."""
    one = approximate(lambda x: x[:, 0] * np.sin(10 * x[:, 0]), [[0.2], [0.5]], degree=25)
    np.testing.assert_allclose(one, [0.110179, -0.272451], atol=5e-7)
    two = approximate(lambda x: x[:, 0] * np.sin(10 * x[:, 1]), [[0.2, 0.3]], 2, degree=5)
    np.testing.assert_allclose(two, [0.016724], atol=5e-7)
    assert (fitted(1, degree=25).n_basis_, fitted(2, degree=5).n_basis_) == (26, 36)


@pytest.mark.parametrize("degree", [1, 10, 200, 1000])
def test_basis_against_fractions(degree):
    rng = np.random.default_rng(0)
    points = np.r_[0.0, 1.0, 0.5, 1e-3, 1 - 1e-3, rng.random(4)]
    basis = bernstein_basis(points, degree)
    assert basis.min() >= 0
    for point, row in zip(points, basis, strict=True):
        u = Fraction(point)
        for q in range(0, degree + 1, max(1, degree // 20)):
            exact = math.comb(degree, q) * u**q * (1 - u) ** (degree - q)
            assert abs(Fraction(row[q]) - exact) <= exact / 10**12 + Fraction(1, 10**60)


@settings(max_examples=40, deadline=None)
@given(
    degree=st.integers(1, 12),
    n_features=st.integers(1, 3),
    low=st.floats(-1e3, 1e3),
    width=st.floats(1e-3, 1e3),
    seed=st.integers(0, 2**32 - 1),
)
def test_partition_of_unity_and_agreement_with_the_matrix(degree, n_features, low, width, seed):
    rng = np.random.default_rng(seed)
    high = low + width
    bernstein = fitted(n_features, degree=degree, feature_range=(low, high))
    points = np.clip(low + width * rng.random((7, n_features)), low, high)
    basis = bernstein.transform(points)
    assert basis.shape == (7, (degree + 1) ** n_features)
    assert basis.min() >= 0
    np.testing.assert_allclose(basis.sum(axis=1), 1, rtol=1e-13)
    coefficients = rng.normal(size=(bernstein.n_basis_, 2))
    expected = basis @ coefficients
    np.testing.assert_allclose(bernstein.evaluate(coefficients, points), expected, atol=1e-12)
    np.testing.assert_allclose(
        bernstein.evaluate(coefficients[:, 0], points), expected[:, 0], atol=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(
    degree=st.integers(1, 12),
    order=st.integers(1, 8),
    n_features=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_reproduces_linear_functions_for_every_order(degree, order, n_features, seed):
    rng = np.random.default_rng(seed)
    slope, shift = rng.normal(size=n_features), rng.normal()
    box = np.sort(rng.normal(size=(n_features, 2)), axis=1) + np.array([0, 0.1])
    points = box[:, 0] + np.ptp(box, axis=1) * rng.random((5, n_features))
    got = approximate(
        lambda x: x @ slope + shift,
        points,
        n_features,
        degree=degree,
        order=order,
        feature_range=box,
    )
    np.testing.assert_allclose(got, points @ slope + shift, atol=1e-10)


@pytest.mark.loop(("n_features", "degree"), [(1, 9), (2, 4), (3, 2)])
@pytest.mark.loop("order", [1, 2, 3, 7])
def test_coefficients_against_the_kronecker_matrix(n_features, degree, order):
    bernstein = fitted(n_features, degree=degree, order=order)
    values = np.random.default_rng(order).normal(size=(bernstein.n_basis_, 2))
    rest = np.eye(bernstein.n_basis_) - bernstein.transform(bernstein.lattice_)
    expected = sum(np.linalg.matrix_power(rest, j) for j in range(order)) @ values
    np.testing.assert_allclose(bernstein.coefficients(values), expected, atol=1e-11)
    np.testing.assert_allclose(bernstein.coefficients(values[:, 1]), expected[:, 1], atol=1e-11)
    if order == 1:
        np.testing.assert_array_equal(bernstein.coefficients(values), values)


@pytest.mark.parametrize("order", [1, "auto"])
def test_coefficients_are_a_copy(order):
    for degree in (1, 3):
        bernstein = fitted(1, degree=degree, order=order)
        values = np.arange(degree + 1.0)
        bernstein.coefficients(values)[0] = 9
        assert values[0] == 0


def test_only_coefficients_that_a_transformer_makes_are_taken():
    for degree, order, n, fits in (
        *((12, "auto", 49, True), (12, "auto", 61, False), (12, 3, 25, False)),
        *((1, "auto", 3, False), (100, "auto", 1201, False), (10, "auto", 1501, False)),
    ):
        bernstein = fitted(1, degree=degree, order=order)
        refused = pytest.raises(ValueError, match=rf"must have shape \({degree + 1},\)")
        with nullcontext() if fits else refused:
            bernstein.evaluate(np.ones(n), [[0.5]])


def cubic(values, places):
    """Cubic convolution (Keys 1981, equation 25): a value is a mean of the four around it."""
    first, last = values[0] * 3 - values[1] * 3 + values[2], values[-1] * 3 - values[-2] * 3
    around = [first, *values, last + values[-3]]

    def weight(t):
        t = abs(t)
        near, far = 1.5 * t**3 - 2.5 * t**2 + 1, -0.5 * t**3 + 2.5 * t**2 - 4 * t + 2
        return near if t <= 1 else far if t <= 2 else 0.0

    return [sum(weight(x - i + 1) * v for i, v in enumerate(around)) for x in places]


def choice(n_features, degree):
    """What may be chosen: of each ratio and order the matrices of its values and what is missed."""
    bernstein = fitted(n_features, degree=degree, order="auto")
    rng = np.random.default_rng(n_features)
    grid = rng.uniform(size=(500, n_features))
    identity = np.eye(degree + 1)
    candidates = {}
    for ratio in (1, 2, 3, 4):
        fine = fitted(n_features, degree=ratio * degree, order=1)
        places = np.arange(ratio * degree + 1) / ratio
        along = np.transpose([cubic(values, places) for values in identity])
        refine = functools.reduce(np.kron, [along] * n_features)
        at = np.isclose(refine.max(axis=1), 1).nonzero()[0]
        rest = np.eye(fine.n_basis_) - fine.transform(fine.lattice_)
        missed, coefficients = refine, np.zeros_like(refine)
        for order in range(1, 129 if ratio == 1 else 17):
            coefficients, missed = coefficients + missed, rest @ missed
            if order in ORDERS:
                candidates[ratio, order] = fine.transform(grid) @ coefficients, missed[at]
    return rng, bernstein, grid, candidates


@pytest.mark.loop("n_features", [1, 2])
def test_order_and_degree_are_chosen_by_cross_validation_of_the_values(n_features):
    """Against the matrices of the definition; near the best of all, whatever the noise."""
    degree = 12
    rng, bernstein, grid, candidates = choice(n_features, degree)
    lattice = bernstein.lattice_
    width = 0.02 if n_features == 1 else 0.01
    exact = np.exp(-((grid - 0.4) ** 2).sum(axis=1) / width)
    chosen, errors = set(), []
    for noise in (0.0, 0.01, 0.1, 1.0):
        values = np.exp(-((lattice - 0.4) ** 2).sum(axis=1) / width)
        values += noise * rng.normal(size=len(values))
        scores = {
            key: np.mean((left @ values) ** 2) / (1 - 1.2 * (1 - np.trace(left) / len(left))) ** 2
            for key, (_, left) in candidates.items()
            if 1.2 * (1 - np.trace(left) / len(left)) < 1
        }
        best = min(scores, key=scores.__getitem__)
        coefficients = bernstein.coefficients(values)
        assert coefficients.shape == ((best[0] * degree + 1) ** n_features,)
        auto = bernstein.evaluate(coefficients, grid)
        np.testing.assert_allclose(auto, candidates[best][0] @ values, rtol=1e-6, atol=1e-9)
        both = bernstein.coefficients(np.column_stack([values, values]))
        np.testing.assert_allclose(bernstein.evaluate(both, grid), np.c_[auto, auto])
        huge = bernstein.evaluate(bernstein.coefficients(values * 1e300), grid)
        np.testing.assert_allclose(huge, auto * 1e300)
        mean = np.mean(auto)
        assert bernstein.integral(coefficients) == pytest.approx(mean, abs=6 * np.std(auto) / 22)
        chosen.add(best)
        of_all = [np.std(by @ values - exact) for by, _ in candidates.values()]
        errors.append([np.std(auto - exact), min(of_all), of_all[2]])
    auto, least, of_three = np.transpose(errors)
    assert (auto < 6 * least).all()
    assert (auto < 1.05 * of_three).all()
    assert (auto[:2] < of_three[:2] / 2).all()
    assert len({ratio for ratio, _ in chosen}) > 1


@pytest.mark.loop("n_features", [1, 2])
def test_order_and_degree_are_chosen_by_noise_that_is_known(n_features):
    """Against the matrices of the definition, for white noise and for noise as a code leaves it."""
    degree = 12
    rng, bernstein, grid, candidates = choice(n_features, degree)
    lattice = bernstein.lattice_
    n_values, width = len(lattice), 0.05
    signal = np.exp(-((lattice - 0.4) ** 2).sum(axis=1) / width)
    apart = np.sum((lattice[:, None] - lattice) ** 2, axis=-1)
    smooth = np.linalg.cholesky(np.exp(-apart / 0.03) + 1e-6 * np.eye(n_values))
    chosen = set()
    for root in (np.eye(n_values), smooth, smooth[:, :5]):
        for size in (0.01, 0.3):
            noise = size * root
            values = signal + noise @ rng.laplace(scale=0.5**0.5, size=noise.shape[1])
            scores = {
                key: np.sum((left @ values) ** 2) - 2.4 * np.sum(noise * (left @ noise))
                for key, (_, left) in candidates.items()
            }
            best = min(scores, key=scores.__getitem__)
            told = noise_followed(noise.reshape((degree + 1,) * n_features + (-1,)))
            auto = bernstein.evaluate(coefficients_of(bernstein, values, told), grid)
            np.testing.assert_allclose(auto, candidates[best][0] @ values, rtol=1e-6, atol=1e-9)
            for unit in (1e300, 1e-300):
                told = noise_followed(unit * noise.reshape((degree + 1,) * n_features + (-1,)))
                other = bernstein.evaluate(coefficients_of(bernstein, unit * values, told), grid)
                np.testing.assert_allclose(other, auto * unit, rtol=1e-6)
            chosen.add(best)
    assert len(chosen) > 2


def test_smooth_noise_that_is_known_is_not_taken_for_signal():
    rng, bernstein = np.random.default_rng(0), fitted(2, degree=12, order="auto")
    lattice, grid = bernstein.lattice_, rng.uniform(size=(500, 2))
    apart = np.sum((lattice[:, None] - lattice) ** 2, axis=-1)
    noise = 0.1 * np.linalg.cholesky(np.exp(-apart / 0.01) + 1e-6 * np.eye(len(lattice)))
    told = noise_followed(noise.reshape(13, 13, -1))
    signal, exact = (np.exp(-np.sum((at - 0.4) ** 2, axis=1) / 0.1) for at in (lattice, grid))
    errors = []
    for _ in range(20):
        values = signal + noise @ rng.laplace(scale=0.5**0.5, size=len(lattice))
        both = bernstein.coefficients(values), coefficients_of(bernstein, values, told)
        errors.append([np.std(bernstein.evaluate(each, grid) - exact) for each in both])
    by_validation, by_noise = np.mean(errors, axis=0)
    assert by_noise < 0.9 * by_validation


def test_peaks_as_narrow_as_a_step_are_followed_over_two_columns():
    """Precise values of them serve about as well as their interpolation by cubic splines."""
    rng, degree = np.random.default_rng(0), 14
    bernstein = fitted(2, degree=degree, order="auto")
    grid, steps = rng.uniform(size=(1000, 2)), np.linspace(0, 1, degree + 1)

    def peaks(x):
        left, right = ((((x - at) * degree) ** 2).sum(axis=1) for at in ([0.35, 0.6], [0.7, 0.3]))
        return np.exp(-left / 3) + np.exp(-right / 6) / 2

    values = peaks(bernstein.lattice_) + rng.laplace(scale=0.003, size=bernstein.n_basis_)
    spline = RectBivariateSpline(steps, steps, values.reshape(degree + 1, -1)).ev(*grid.T)
    auto = bernstein.evaluate(bernstein.coefficients(values), grid)
    error, of_spline = (np.abs(each - peaks(grid)).mean() for each in (auto, spline))
    assert error < 1.25 * of_spline


def test_a_finer_lattice_has_no_more_points_than_is_quick():
    bernstein = fitted(3, degree=12, order="auto")
    spike = np.exp(-((bernstein.lattice_ - 0.4) ** 2).sum(axis=1) / 0.005)
    assert len(bernstein.coefficients(spike)) == 25**3  # not 37**3


def test_higher_order_converges_faster():
    """Error of order h on a smooth function falls like degree^-h; the slope is fitted."""
    grid = np.linspace(0, 1, 401)[:, None]
    degrees = np.array([10, 20, 40, 80])
    slopes = {}
    for order in (1, 2, 3):
        errors = [
            np.abs(
                approximate(lambda x: np.sin(3 * x[:, 0]), grid, degree=k, order=order)
                - np.sin(3 * grid[:, 0])
            ).max()
            for k in degrees.tolist()
        ]
        slopes[order] = -np.polyfit(np.log(degrees), np.log(errors), 1)[0]
    assert slopes[1] == pytest.approx(1, abs=0.15)
    assert slopes[2] == pytest.approx(2, abs=0.3)
    assert slopes[3] > 2.5


def test_columns_can_be_exchanged():
    rng = np.random.default_rng(3)
    box = np.array([[0, 1], [-2, 5], [10, 11]])
    order = [2, 0, 1]
    points = box[:, 0] + np.ptp(box, axis=1) * rng.random((20, 3))

    def function(x):
        return np.exp(-x[:, 0]) * np.cos(x[:, 1]) + x[:, 2] ** 2

    straight = approximate(function, points, 3, degree=6, order=2, feature_range=box)
    permuted = approximate(
        lambda x: function(x[:, np.argsort(order)]),
        points[:, order],
        3,
        degree=6,
        order=2,
        feature_range=box[order],
    )
    np.testing.assert_allclose(straight, permuted, rtol=1e-12)


def test_interpolates_ends_and_keeps_bounds():
    bernstein = fitted(1, degree=12)
    values = np.random.default_rng(0).random(13)
    got = bernstein.evaluate(bernstein.coefficients(values), np.linspace(0, 1, 101)[:, None])
    np.testing.assert_allclose(got[[0, -1]], values[[0, -1]])
    assert values.min() <= got.min() <= got.max() <= values.max()


def test_chunks_do_not_change_the_answer(monkeypatch):
    bernstein = fitted(3, degree=4)
    rng = np.random.default_rng(0)
    points, coefficients = rng.random((50, 3)), rng.normal(size=(125, 2))
    whole = bernstein.transform(points), bernstein.evaluate(coefficients, points)
    monkeypatch.setattr(_bernstein_basis, "_CHUNK_VALUES", 300)
    np.testing.assert_array_equal(bernstein.transform(points), whole[0])
    np.testing.assert_allclose(bernstein.evaluate(coefficients, points), whole[1], rtol=1e-13)


def test_degree_200_in_one_and_four_dimensions():
    grid = np.linspace(0, 1, 50)[:, None]
    smooth = approximate(lambda x: np.cos(x[:, 0]), grid, degree=200, order=3)
    np.testing.assert_allclose(smooth, np.cos(grid[:, 0]), atol=2e-5)
    points = np.random.default_rng(0).random((2000, 4))
    got = approximate(lambda x: x.prod(axis=1), points, 4, degree=8, order=2)
    # The Bernstein operator is exact on multilinear functions.
    np.testing.assert_allclose(got, points.prod(axis=1), atol=1e-13)


@settings(max_examples=60, deadline=None)
@given(
    low=st.floats(-1e6, 1e6),
    ulps=st.integers(1, 10**6),
    degree=st.integers(1, 30),
)
def test_lattice_stays_in_a_narrow_box(low, ulps, degree):
    high = low + ulps * np.spacing(max(abs(low), 1e-200))
    bernstein = fitted(1, degree=degree, feature_range=(low, high))
    lattice = bernstein.lattice_
    assert lattice.shape == (degree + 1, 1)
    assert lattice[0] == low
    assert lattice[-1] == high
    assert bernstein.transform(lattice).shape == (degree + 1, degree + 1)


def test_lattice_order_is_that_of_the_columns():
    bernstein = fitted(2, degree=2, feature_range=[(0, 1), (10, 20)])
    np.testing.assert_array_equal(bernstein.lattice_[:4], [[0, 10], [0, 15], [0, 20], [0.5, 10]])
    # At a corner of the box, exactly the basis function of that corner is one.
    corners = [0, 2, 6, 8]
    np.testing.assert_array_equal(
        bernstein.transform(bernstein.lattice_[corners]), np.eye(9)[corners]
    )


def test_integral_against_quadrature():
    bernstein = fitted(2, degree=5, order=2, feature_range=[(0, 2), (-1, 3)])
    coefficients = np.random.default_rng(0).normal(size=(36, 3))
    nodes, weights = np.polynomial.legendre.leggauss(6)
    points = np.stack(np.meshgrid(1 + nodes, 1 + 2 * nodes, indexing="ij"), -1).reshape(-1, 2)
    expected = np.outer(weights, 2 * weights).ravel() @ bernstein.evaluate(coefficients, points)
    np.testing.assert_allclose(bernstein.integral(coefficients), expected, rtol=1e-12)
    assert bernstein.integral(coefficients[:, 0]) == pytest.approx(expected[0], rel=1e-12)
    np.testing.assert_allclose(bernstein.integral(np.eye(36)), 8 / 36)


@pytest.mark.parametrize(("degree", "higher"), [(1, 1), (3, 7), (10, 40), (200, 800)])
def test_elevation_keeps_the_function(degree, higher):
    matrix = elevation_matrix(degree, higher)
    points = np.linspace(0, 1, 9)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_allclose(
        bernstein_basis(points, higher) @ matrix, bernstein_basis(points, degree), atol=1e-13
    )


def test_multiply_axes_against_kron():
    rng = np.random.default_rng(0)
    factors = [rng.normal(size=shape) for shape in ((2, 3), (4, 2), (3, 3))]
    tensor = rng.normal(size=(3, 2, 3, 5))
    expected = np.kron(np.kron(*factors[:2]), factors[2]) @ tensor.reshape(18, 5)
    got = multiply_axes(factors, tensor)
    assert got.shape == (2, 4, 3, 5)
    np.testing.assert_allclose(got.reshape(24, 5), expected, rtol=1e-12)


def test_fit_takes_nothing_from_the_values():
    bernstein = BernsteinTransformer(degree=2, feature_range=(0, 5))
    one, other = (clone(bernstein).fit(X) for X in (np.zeros((3, 2)), 1e6 * np.ones((9, 2))))
    assert one.__dict__.keys() == other.__dict__.keys()
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, name))


def test_clip_moves_points_to_the_border():
    bernstein = fitted(1, degree=3, clip=True)
    np.testing.assert_array_equal(
        bernstein.transform([[-5.0], [7.0]]), bernstein.transform([[0.0], [1.0]])
    )


@pytest.mark.parametrize("value", [-1e-9, 1 + 1e-9])
def test_outside_the_box_is_refused_without_echo(value):
    bernstein = fitted(2, degree=2)
    for call in (
        bernstein.transform,
        lambda X: bernstein.evaluate(np.zeros(9), X),
    ):
        with pytest.raises(ValueError, match="outside the 'feature_range'") as caught:
            call([[0.5, value]])
        assert str(value) not in str(caught.value)


def test_feature_names():
    bernstein = fitted(2, degree=1)
    assert bernstein.get_feature_names_out().tolist() == [
        "x0^0 x1^0",
        "x0^0 x1^1",
        "x0^1 x1^0",
        "x0^1 x1^1",
    ]
    assert bernstein.get_feature_names_out(["a", "b"])[1] == "a^0 b^1"
    with pytest.raises(ValueError, match="length equal to number of features"):
        bernstein.get_feature_names_out(["a"])
    table = pd.DataFrame({"age": [0.1, 0.9], "dose": [0.2, 0.3]})
    named = (
        BernsteinTransformer(degree=1, feature_range=(0, 1))
        .set_output(transform="pandas")
        .fit(table)
    )
    assert named.transform(table).columns[2] == "age^1 dose^0"
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        named.get_feature_names_out(["dose", "age"])


def test_works_in_a_pipeline():
    X = np.linspace(0, 1, 60)[:, None]
    y = np.sin(6 * X[:, 0])
    model = make_pipeline(
        BernsteinTransformer(degree=8, feature_range=(0, 1)), LinearRegression(fit_intercept=False)
    )
    assert model.fit(X, y).score(X, y) > 0.9999


@pytest.mark.loop(
    ("params", "message"),
    [
        ({"degree": 0}, "'degree' parameter .* Got 0"),
        ({"degree": 1001}, r"from 1 to 1000"),
        ({"degree": 2.5}, "Got 2.5"),
        ({"degree": True}, "Got True"),
        ({"order": 0}, "'order' parameter"),
        ({"order": None}, "Got None"),
        ({"order": "Auto"}, "must be 'auto' or an integer from 1 to 1000. Got 'Auto'"),
        ({"degree": 1000}, "more than 10000000 basis functions"),
        ({"feature_range": (1, 0)}, "low below high"),
        ({"feature_range": (0, 0)}, "low below high"),
        ({"feature_range": (0, np.inf)}, "finite"),
        ({"feature_range": (np.nan, 1)}, "finite"),
        ({"feature_range": [(0, 1), (0, 1)]}, "for each column, here 3"),
        ({"feature_range": 3}, "must be a pair"),
        ({"feature_range": "wide"}, "must be a pair"),
        ({"feature_range": (0, 1e200)}, "finite"),
    ],
)
def test_refused_parameters(params, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fitted(3, **params)


def test_a_box_may_name_its_columns_in_any_order():
    box = {"b": (0, 90), "a": (0, 24)}
    frame = pd.DataFrame({"a": [1.0], "b": [2.0]})
    bernstein = BernsteinTransformer(degree=2, feature_range=box)
    np.testing.assert_array_equal(bernstein.fit(frame).feature_range_, [(0, 24), (0, 90)])
    np.testing.assert_array_equal(
        bernstein.fit(frame[["b", "a"]]).feature_range_, [(0, 90), (0, 24)]
    )
    for X, columns in ((frame[["a"]], r"are \['a'\]"), (frame.to_numpy(), "have no names")):
        with pytest.raises(ValueError, match=rf"names \['b', 'a'\], and the columns {columns}"):
            bernstein.fit(X)


def test_refused_values():
    bernstein = fitted(2, degree=2)
    for values in (np.zeros(8), np.zeros((3, 3))):
        for call in (bernstein.coefficients, bernstein.integral):
            with pytest.raises(ValueError, match=r"must have shape \(9,\)"):
                call(values)
    with pytest.raises(ValueError, match="infinity"):
        bernstein.coefficients(np.full(9, np.inf))
    unfitted = BernsteinTransformer(feature_range=(0, 1))
    for call in (
        lambda: unfitted.lattice_,
        lambda: unfitted.transform([[0.5]]),
        lambda: unfitted.coefficients([0.0]),
        lambda: unfitted.get_feature_names_out(),
    ):
        with pytest.raises(NotFittedError):
            call()


def test_the_box_is_a_decision():
    """A default one would show the tails of most functions without a word."""
    with pytest.raises(TypeError, match="required keyword-only argument: 'feature_range'"):
        BernsteinTransformer()
    with pytest.raises(ValueError, match=r"'feature_range' parameter .*declared.*Got None"):
        BernsteinTransformer(feature_range=None).fit([[0.0]])
    copied = clone(BernsteinTransformer(feature_range=(15, 45)))
    assert copied.get_params() == {
        "clip": False,
        "degree": 10,
        "feature_range": (15, 45),
        "order": "auto",
    }
