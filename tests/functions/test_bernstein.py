"""The Bernstein basis against its theory, against exact fractions, and against dense algebra."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

from skdp.functions.bernstein import CHUNK_VALUES, BernsteinTransformer
from skdp.functions.bernstein_basis import ORDERS, bernstein_basis, elevation_matrix


def fitted(n_features, **params):
    params = {"order": 1, "feature_range": (0, 1)} | params
    return BernsteinTransformer(**params).fit(np.zeros((1, n_features)))


# The checks feed normal data and up to ten columns, so they need a box that holds the data, or
# clipping, and a low degree. Both are configurations of the transformer as it ships.
@pytest.mark.parametrize(
    "estimator",
    [
        BernsteinTransformer(degree=1, feature_range=(-1e4, 1e4)),
        BernsteinTransformer(degree=2, order=3, feature_range=(0, 1), clip=True),
    ],
    ids=["wide box", "clip"],
)
def test_is_an_estimator(estimator):
    check_estimator(estimator, on_skip=None)


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
    order=st.integers(1, 8),
    n_features=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_partition_of_unity_and_linear_functions(degree, order, n_features, seed):
    """The function of coefficients is that of the matrix, and a linear one is reproduced."""
    rng = np.random.default_rng(seed)
    box = np.sort(rng.normal(size=(n_features, 2)), axis=1) + np.array([0, 0.1])
    points = np.clip(box[:, 0] + np.ptp(box, axis=1) * rng.random((7, n_features)), *box.T)
    bernstein = fitted(n_features, degree=degree, order=order, feature_range=box)
    basis = bernstein.transform(points)
    assert basis.shape == (7, (degree + 1) ** n_features)
    assert basis.min() >= 0
    np.testing.assert_allclose(basis.sum(axis=1), 1, rtol=1e-13)
    for shape in ((bernstein.n_basis_, 2), (bernstein.n_basis_,)):
        coefficients = rng.normal(size=shape)
        found = bernstein.evaluate(coefficients, points)
        np.testing.assert_allclose(found, basis @ coefficients, atol=1e-12)
    slope = rng.normal(size=n_features)
    linear = bernstein.coefficients(bernstein.lattice_ @ slope + 1)
    np.testing.assert_allclose(bernstein.evaluate(linear, points), points @ slope + 1, atol=1e-10)


@pytest.mark.loop(("n_features", "degree"), [(1, 9), (2, 4), (3, 2)])
@pytest.mark.loop("order", [1, 2, 3, 7])
def test_coefficients_against_the_kronecker_matrix(n_features, degree, order):
    bernstein = fitted(n_features, degree=degree, order=order)
    values = np.random.default_rng(order).normal(size=(bernstein.n_basis_, 2))
    rest = np.eye(bernstein.n_basis_) - bernstein.transform(bernstein.lattice_)
    expected = sum(np.linalg.matrix_power(rest, j) for j in range(order)) @ values
    np.testing.assert_allclose(bernstein.coefficients(values), expected, atol=1e-11)
    np.testing.assert_allclose(bernstein.coefficients(values[:, 1]), expected[:, 1], atol=1e-11)


@pytest.mark.parametrize("order", [1, "auto"])
def test_coefficients_are_a_copy(order):
    for degree in (1, 3):
        bernstein = fitted(1, degree=degree, order=order)
        values = np.arange(degree + 1.0)
        bernstein.coefficients(values)[0] = 9
        assert values[0] == 0


@pytest.mark.loop("n_features", [1, 2])
@pytest.mark.loop("noise", [0.0, 0.01, 0.1, 1.0])
def test_order_is_chosen_by_score(n_features, noise):
    """Against the matrices of the definition; near the best of all, whatever the noise."""
    degree, rng = 12, np.random.default_rng(n_features)
    bernstein = fitted(n_features, degree=degree, order="auto")
    lattice, grid = bernstein.lattice_, rng.uniform(size=(500, n_features))

    def bump(at):
        return np.exp(-((at - 0.4) ** 2).sum(axis=1) / (0.02 / n_features))

    values = bump(lattice) + noise * rng.laplace(size=len(lattice))
    rest = np.eye(len(lattice)) - bernstein.transform(lattice)
    scores, errors, functions = {}, {}, {}
    for order in ORDERS:
        left = np.linalg.matrix_power(rest, order)
        followed = 1 - 1.2 * (1 - np.trace(left) / len(lattice))
        scores[order] = np.linalg.norm(left @ values) / followed if followed > 0 else np.inf
        functions[order] = clone(bernstein).set_params(order=order).fit(grid).coefficients(values)
        errors[order] = np.std(bernstein.evaluate(functions[order], grid) - bump(grid))
    best = min(scores, key=scores.__getitem__)
    assert errors[best] < 1.15 * errors[3]
    assert noise or errors[best] < 0.6 * errors[3]
    for unit in (1.0, 1e300):
        both = bernstein.coefficients(unit * np.column_stack([values, values])) / unit
        np.testing.assert_allclose(both, functions[best][:, None] * [1, 1], rtol=1e-6, atol=1e-9)


def test_chunks_do_not_change_the_answer():
    bernstein = fitted(3, degree=4)
    rng = np.random.default_rng(0)
    points, coefficients = rng.random((90_000, 3)), rng.normal(size=(125, 2))
    assert len(points) * coefficients.size / 5 > CHUNK_VALUES
    whole = bernstein.evaluate(coefficients, points)
    apart = [bernstein.evaluate(coefficients, some) for some in np.array_split(points, 99)]
    np.testing.assert_allclose(np.concatenate(apart), whole, rtol=1e-13)


@settings(max_examples=60, deadline=None)
@given(low=st.floats(-1e6, 1e6), ulps=st.integers(1, 10**6), degree=st.integers(1, 30))
@example(low=3.412488293872606, ulps=3, degree=20)  # rounding leads below the box
def test_lattice_stays_in_a_narrow_box(low, ulps, degree):
    high = low + ulps * np.spacing(max(abs(low), 1e-200))
    bernstein = fitted(1, degree=degree, feature_range=(low, high))
    lattice = bernstein.lattice_
    assert lattice.shape == (degree + 1, 1)
    assert (lattice[0], lattice[-1]) == (low, high)
    assert bernstein.transform(lattice).shape == (degree + 1, degree + 1)


def test_lattice_order_is_that_of_the_columns():
    bernstein = fitted(2, degree=2, feature_range=[(0, 1), (10, 20)])
    np.testing.assert_array_equal(bernstein.lattice_[:4], [[0, 10], [0, 15], [0, 20], [0.5, 10]])
    # At a corner of the box, exactly the basis function of that corner is one.
    corners = [0, 2, 6, 8]
    found = bernstein.transform(bernstein.lattice_[corners])
    np.testing.assert_array_equal(found, np.eye(9)[corners])


def test_integral_against_quadrature():
    bernstein = fitted(2, degree=5, order=2, feature_range=[(0, 2), (-1, 3)])
    coefficients = np.random.default_rng(0).normal(size=(36, 3))
    nodes, weights = np.polynomial.legendre.leggauss(6)
    points = np.stack(np.meshgrid(1 + nodes, 1 + 2 * nodes, indexing="ij"), -1).reshape(-1, 2)
    expected = np.outer(weights, 2 * weights).ravel() @ bernstein.evaluate(coefficients, points)
    np.testing.assert_allclose(bernstein.integral(coefficients), expected, rtol=1e-12)
    assert bernstein.integral(coefficients[:, 0]) == pytest.approx(expected[0], rel=1e-12)


@pytest.mark.parametrize(("degree", "higher"), [(1, 1), (3, 7), (10, 40), (200, 800)])
def test_elevation_keeps_the_function(degree, higher):
    matrix, points = elevation_matrix(degree, higher), np.linspace(0, 1, 9)
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-13)
    elevated = bernstein_basis(points, higher) @ matrix
    np.testing.assert_allclose(elevated, bernstein_basis(points, degree), atol=1e-13)


def test_fit_takes_nothing_from_the_values():
    bernstein = BernsteinTransformer(degree=2, feature_range=(0, 5))
    one, other = (clone(bernstein).fit(X) for X in (np.zeros((3, 2)), 1e6 * np.ones((9, 2))))
    assert one.__dict__.keys() == other.__dict__.keys()
    for name, value in vars(one).items():
        np.testing.assert_array_equal(value, getattr(other, name))


@pytest.mark.parametrize("value", [-1e-9, 1 + 1e-9])
def test_outside_the_box_is_refused_without_echo_or_clipped(value):
    bernstein, clipping = fitted(2, degree=2), fitted(2, degree=2, clip=True)
    for call in (bernstein.transform, lambda X: bernstein.evaluate(np.zeros(9), X)):
        with pytest.raises(ValueError, match="outside the 'feature_range'") as caught:
            call([[0.5, value]])
        assert str(value) not in str(caught.value)
    border = bernstein.transform([[0.5, round(value)]])
    np.testing.assert_array_equal(clipping.transform([[0.5, value]]), border)


def test_feature_names():
    bernstein = fitted(2, degree=1)
    names = ["x0^0 x1^0", "x0^0 x1^1", "x0^1 x1^0", "x0^1 x1^1"]
    assert bernstein.get_feature_names_out().tolist() == names
    assert bernstein.get_feature_names_out(["a", "b"])[1] == "a^0 b^1"
    with pytest.raises(ValueError, match="length equal to number of features"):
        bernstein.get_feature_names_out(["a"])
    table = pd.DataFrame({"age": [0.1, 0.9], "dose": [0.2, 0.3]})
    named = BernsteinTransformer(degree=1, feature_range=(0, 1)).set_output(transform="pandas")
    assert named.fit(table).transform(table).columns[2] == "age^1 dose^0"
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        named.get_feature_names_out(["dose", "age"])


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
        ({"feature_range": None}, "declared.*Got None"),
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
    for names, rows in ((["a", "b"], [(0, 24), (0, 90)]), (["b", "a"], [(0, 90), (0, 24)])):
        np.testing.assert_array_equal(bernstein.fit(frame[names]).feature_range_, rows)
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
