"""Coefficients by values on a lattice: as often iterated as said, or as the values themselves say.

A lattice is refined for a low order only, and little where it has few steps or many points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, reduce
from itertools import islice
from typing import NamedTuple, Self

import numpy as np

from skdp.core.types import Matrix
from skdp.functions.bernstein_basis import (
    MAX_DEGREE,
    bernstein_basis,
    multiply_axes,
    refinement_matrix,
)

ORDERS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)
RATIOS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
LOW_ORDER = 4
LEAST_STEPS = 3
MAX_FINE = 2**15
COST = 1.2
"""What a degree of freedom costs in the choice; with 1 it follows the noise too often."""


def iterated(values: Matrix, order: int) -> Matrix:
    """Return the coefficients of an order; the axes of `values` but the last are of a lattice."""
    coefficients, _ = next(islice(_iterates_of(values, 1), order - 1, None))
    return coefficients


def chosen(values: Matrix) -> Matrix:
    """Return those of the order and the degree that cross-validation finds best."""
    best, least = values, math.inf
    unit = np.abs(values).max() or 1.0  # squares of the largest floats overflow
    degree, d = len(values) - 1, values.ndim - 1
    for ratio in (fine // degree for fine in degrees(degree, d)):
        orders = [order for order in ORDERS if ratio == 1 or order <= LOW_ORDER]
        on_lattice = (slice(None, None, ratio),) * d
        iterates = islice(_iterates_of(values, ratio), orders[-1])
        for order, (coefficients, missed) in enumerate(iterates, 1):
            if order not in orders:
                continue
            left = 1 - COST * _freedom(degree, ratio, order, d)
            size = float(np.linalg.norm(missed[on_lattice] / unit))
            score = size / left if left > 0 else math.inf
            if score < least:
                best, least = coefficients, score
    return best


def degrees(degree: int, n_features: int) -> list[int]:
    """Return the degrees among which one is chosen: that of the lattice, and some multiples."""
    finer = [degree * ratio for ratio in RATIOS[1:] if LEAST_STEPS * ratio <= degree]
    fits = (each for each in finer if each <= MAX_DEGREE and (each + 1) ** n_features <= MAX_FINE)
    return [degree, *fits]


def _iterates_of(values: Matrix, ratio: int) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield coefficients by values, and what they miss on the finer lattice, by order."""
    d, smoother = values.ndim - 1, _Smoother.of(len(values) - 1, ratio)
    missed = multiply_axes([smoother.refine] * d, values)
    coefficients = np.zeros_like(missed)
    while True:
        coefficients = coefficients + missed
        missed = missed - multiply_axes([smoother.basis] * d, missed)
        yield coefficients, missed


class _Smoother(NamedTuple):
    """The Bernstein operator on a lattice of `ratio` times the steps, along one axis."""

    refine: Matrix
    basis: Matrix

    @classmethod
    @lru_cache(maxsize=16)
    def of(cls, degree: int, ratio: int) -> Self:
        """Make it for a lattice of so many steps."""
        n_steps = degree * ratio
        basis = bernstein_basis(np.arange(n_steps + 1) / n_steps, n_steps)
        return cls(refinement_matrix(degree, ratio), basis)


@lru_cache(maxsize=256)
def _freedom(degree: int, ratio: int, order: int, n_features: int) -> float:
    """Return the degrees of freedom as a share of the points: 1 - tr((I - M)^order) / N.

    The eigenvalues of M are the products of k! / ((k - j)! k^j), j = 0, ..., k, k the degree. On
    a finer lattice only the traces of its powers are products, which is good for a low order.
    """
    if ratio == 1:
        of_one = np.cumprod(np.append(1.0, 1 - np.arange(degree) / degree))
        of_all = reduce(np.multiply.outer, [of_one] * n_features)
        return float(1 - np.mean((1 - of_all) ** order))
    smoother = _Smoother.of(degree, ratio)
    power, left = smoother.refine, 1.0
    for j in range(1, order + 1):
        power = smoother.basis @ power
        share = float(np.trace(power[::ratio])) / (degree + 1)
        left += (-1) ** j * math.comb(order, j) * share**n_features
    return 1 - left
