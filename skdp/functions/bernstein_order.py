"""Coefficients from values on a lattice, of a given order or of the one that scores best.

The score is that of generalized cross-validation. Each order is a linear smoother S, and misses
v - S v of the values v.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, reduce
from itertools import islice

import numpy as np

from skdp.core.types import Matrix
from skdp.functions.bernstein_basis import bernstein_basis, multiply_axes

ORDERS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)
COST = 1.2  # factor on the degrees of freedom; with 1 noise is followed too often


def iterated(values: Matrix, order: int) -> Matrix:
    """Return the coefficients of an order; the axes of `values` but the last are of a lattice."""
    return sum(islice(_missed(values), order), np.zeros_like(values))


def chosen(values: Matrix) -> Matrix:
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
    return iterated(values, best)


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
