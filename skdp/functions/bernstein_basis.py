"""Bernstein polynomials of one variable, and arithmetic with tensors of their coefficients."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_array

MAX_DEGREE = 1000  # above it the largest binomial coefficient is no longer a double
MAX_ORDER = 1000  # at this order the iteration interpolates all that the lattice resolves
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


def _binomials(degree: int) -> NDArray[np.float64]:
    """Return a row of Pascal's triangle, exact and then rounded."""
    return np.array([math.comb(degree, j) for j in range(degree + 1)], dtype=np.float64)
