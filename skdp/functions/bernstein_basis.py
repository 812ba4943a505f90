"""Bernstein polynomials of one variable, and arithmetic with tensors of their coefficients.

The coefficients of values on a lattice have an order. The order that scores best does so by
generalized cross-validation: each is a linear smoother S, and misses v - S v of the values v.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, reduce
from itertools import islice

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

from skdp.core.types import Matrix

MAX_DEGREE = 1000  # above it the largest binomial coefficient is no longer a double
MAX_ORDER = 1000  # at this order the iteration interpolates all that the lattice resolves
ORDERS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)  # that are tried
COST = 1.2  # factor on the degrees of freedom; with 1 noise is followed too often
MAX_BASIS = 10**7  # most basis functions of one box: 80 MB of coefficients


def bernstein_basis(u: NDArray[np.float64], degree: int) -> NDArray[np.float64]:
    """Evaluate ``C(k, q) u^q (1 - u)^(k - q)``, with q along the columns."""
    # Every factor is positive and correct to an ulp or two, so nothing cancels. Up to degree 1000
    # the binomials are doubles, and a power underflows only where the product is below 1e-60.
    q = np.arange(degree + 1)
    u = u[:, None]
    return _binomials(degree) * np.power(u, q) * np.power(1 - u, degree - q)


def elevation_matrix(degree: int, higher: int) -> NDArray[np.float64]:
    """Return the matrix that rewrites a polynomial in the Bernstein basis of a higher degree."""
    # By Vandermonde no product below exceeds a binomial of degree K, so none overflows.
    i, j = np.ogrid[: higher + 1, : degree + 1]
    rest = higher - degree
    possible = (i >= j) & (i - j <= rest)
    ways = _binomials(degree)[j] * _binomials(rest)[np.where(possible, i - j, 0)]
    return np.where(possible, ways / _binomials(higher)[i], 0.0)


def gram_matrix(degree: int) -> NDArray[np.float64]:
    """Integrate the products of two polynomials: C(k, i) C(k, j) / (C(2k, i + j) (2k + 1))."""
    # Ratios of Python's integers, as the binomials of twice the degree may exceed a double.
    row = [math.comb(degree, i) for i in range(degree + 1)]
    long = [(2 * degree + 1) * math.comb(2 * degree, i) for i in range(2 * degree + 1)]
    return np.array([[a * b / long[i + j] for j, b in enumerate(row)] for i, a in enumerate(row)])


def multiply_axes(
    factors: Sequence[NDArray[np.float64]], tensor: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Multiply the leading axes of a tensor by one matrix each."""
    # Each product takes the first axis away and appends the new one, so nothing is transposed.
    n_others = tensor.ndim - len(factors)
    for factor in factors:
        tensor = np.tensordot(tensor, factor, axes=(0, 1))
    return np.moveaxis(tensor, range(n_others), range(-n_others, 0))


def as_tensor(values: ArrayLike, name: str, degree: int, n_features: int) -> NDArray[np.float64]:
    """Check values on a lattice, and reshape them to an axis for each feature and outputs."""
    array = check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
    n_basis = (degree + 1) ** n_features
    if len(array) != n_basis:
        raise ValueError(
            f"The {name!r} parameter of BernsteinTransformer must have shape ({n_basis},) or "
            f"({n_basis}, n_outputs). Got {array.shape}."
        )
    return array.reshape((degree + 1,) * n_features + (-1,))


def iterate(values: Matrix, order: int) -> Matrix:
    """Return the coefficients of an order; the axes of `values` but the last are of a lattice."""
    return sum(islice(_missed(values), order), np.zeros_like(values))


def choose(values: Matrix) -> Matrix:
    """Return the coefficients of the order that scores best."""
    best, least = 1, math.inf
    degree, n_features = len(values) - 1, values.ndim - 1
    scale = float(np.abs(values).max()) or 1.0  # squares of the largest floats overflow
    for order, missed in enumerate(islice(_missed(values / scale), ORDERS[-1] + 1)):
        if order not in ORDERS:
            continue
        left = 1 - COST * _freedom(degree, order, n_features)
        score = float(np.linalg.norm(missed)) / left if left > 0 else math.inf
        if score < least:
            best, least = order, score
    return iterate(values, best)


def _missed(values: Matrix) -> Iterator[Matrix]:
    """Yield what the orders 0, 1, ... miss on the lattice: (I - M)^order v."""
    basis = _basis_on_lattice(len(values) - 1)
    while True:
        yield values
        values = values - multiply_axes([basis] * (values.ndim - 1), values)


@lru_cache(maxsize=16)
def _basis_on_lattice(degree: int) -> Matrix:
    """Return M along one axis."""
    return bernstein_basis(np.arange(degree + 1) / degree, degree)


@lru_cache(maxsize=256)
def _freedom(degree: int, order: int, n_features: int) -> float:
    """Return the degrees of freedom as a share of the points: 1 - tr((I - M)^order) / N.

    M has the products of k! / ((k - j)! k^j), j = 0, ..., k, for eigenvalues, with k the degree.
    """
    of_one = np.cumprod(np.append(1.0, 1 - np.arange(degree) / degree))
    of_all = reduce(np.multiply.outer, [of_one] * n_features)
    return float(1 - np.mean((1 - of_all) ** order))


def _binomials(degree: int) -> NDArray[np.float64]:
    """Return a row of Pascal's triangle, exact and then rounded."""
    return np.array([math.comb(degree, j) for j in range(degree + 1)], dtype=np.float64)
