"""Coefficients from values on a lattice, of a given order or of the one that scores best.

The score is that of generalized cross-validation or, where the covariance of the noise is known,
Mallows'. Each candidate is a linear smoother S, and misses v - S v of the values v. A lattice is
refined for the lower orders only, and little where it has few steps or many points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache, reduce
from itertools import accumulate, islice, repeat
from typing import NamedTuple

import numpy as np

from skdp.core.types import Matrix
from skdp.functions.bernstein_basis import (
    MAX_DEGREE,
    bernstein_basis,
    multiply_axes,
    refinement_matrix,
)

ORDERS = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64, 91, 128)
RATIOS = (1, 2, 3, 4, 6, 8, 12, 16)
LOW_ORDER = 16
LEAST_STEPS = 3
MAX_FINE = 2**15
COST = 1.2
"""Factor on the noise that a candidate follows; with 1 noise is followed too often."""


class NoiseFollowed(NamedTuple):
    """The noise that each candidate follows, tr(S Sigma), in units of `scale` squared."""

    scale: float
    traces: tuple[float, ...]


def iterated(values: Matrix, order: int) -> Matrix:
    """Return the coefficients of an order; the axes of `values` but the last are of a lattice."""
    return sum(islice(_missed(values), order), np.zeros_like(values))


def noise_followed(noise: Matrix) -> NoiseFollowed:
    """Return the noise that is followed, of covariance R R', where R is `noise`."""
    scale = float(np.abs(noise).max(initial=0)) or 1.0  # squares of the largest floats overflow
    unit = noise / scale
    return NoiseFollowed(scale, _traces(unit.shape, unit.tobytes()))


@lru_cache(maxsize=16)  # a plan may be executed many times, and white noise is of one kind
def _traces(shape: tuple[int, ...], content: bytes) -> tuple[float, ...]:
    unit = np.frombuffer(content).reshape(shape)
    missed = (np.vdot(unit, each) for _, _, each in _candidates(unit))
    return tuple(float(np.vdot(unit, unit) - each) for each in missed)


def chosen(values: Matrix, noise: NoiseFollowed | None = None) -> Matrix:
    """Return the coefficients of the order and the degree that score best."""
    best, least = (1, 1), math.inf
    degree, d = len(values) - 1, values.ndim - 1
    scale = max(float(np.abs(values).max()), 0 if noise is None else noise.scale) or 1.0
    for i, (ratio, order, missed) in enumerate(_candidates(values / scale)):
        score = float(np.linalg.norm(missed))
        if noise is not None:
            score = score**2 + 2 * COST * noise.traces[i] * (noise.scale / scale) ** 2
        else:
            left = 1 - COST * _freedom(degree, ratio, order, d)
            score = score / left if left > 0 else math.inf
        if score < least:
            best, least = (ratio, order), score
    ratio, order = best
    return iterated(multiply_axes([refinement_matrix(degree, ratio)] * d, values), order)


def _candidates(values: Matrix) -> Iterator[tuple[int, int, Matrix]]:
    """Yield each ratio of the degrees and order, and what they miss of the values."""
    degree = len(values) - 1
    for ratio in (fine // degree for fine in degrees(degree, values.ndim - 1)):
        all_missed = _missed(values) if ratio == 1 else _missed_by_finer(values, ratio)
        for order, missed in enumerate(islice(all_missed, ORDERS[-1] + 1)):
            if order in ORDERS:
                yield ratio, order, missed


def degrees(degree: int, n_features: int) -> list[int]:
    """Return the degrees among which one is chosen: that of the lattice, and some multiples."""
    finer = [degree * ratio for ratio in RATIOS[1:] if LEAST_STEPS * ratio <= degree]
    fits = (each for each in finer if each <= MAX_DEGREE and (each + 1) ** n_features <= MAX_FINE)
    return [degree, *fits]


def _missed(values: Matrix) -> Iterator[Matrix]:
    """Yield what the orders 0, 1, ... miss on the lattice: (I - M)^order v."""
    basis = _basis_on_lattice(len(values) - 1)
    while True:
        yield values
        values = values - multiply_axes([basis] * (values.ndim - 1), values)


def _missed_by_finer(values: Matrix, ratio: int) -> Iterator[Matrix]:
    """Yield what the orders of a finer lattice miss, without an array of its size."""
    d = values.ndim - 1
    powers = _powers(len(values) - 1, ratio)
    return _differences(np.stack([multiply_axes([power] * d, values) for power in powers]))


def _differences(terms: Matrix) -> Iterator[Matrix]:
    """Turn terms in M^j, j = 0, 1, ..., into those in (I - M)^order, order = 0, 1, ..."""
    while len(terms):
        yield terms[0]
        terms = terms[:-1] - terms[1:]


@lru_cache(maxsize=16)
def _basis_on_lattice(degree: int) -> Matrix:
    """Return M along one axis."""
    return bernstein_basis(np.arange(degree + 1) / degree, degree)


@lru_cache(maxsize=16)
def _powers(degree: int, ratio: int) -> Matrix:
    """Return M^j L, j = 0, ..., LOW_ORDER, along one axis, at the points that were not added."""
    basis = _basis_on_lattice(degree * ratio)
    refine = refinement_matrix(degree, ratio)
    powers = accumulate(repeat(basis, LOW_ORDER), lambda power, m: m @ power, initial=refine)
    return np.stack([power[::ratio] for power in powers])


@lru_cache(maxsize=256)
def _freedom(degree: int, ratio: int, order: int, n_features: int) -> float:
    """Return the degrees of freedom as a share of the points: 1 - tr((I - M)^order L) / N.

    M has the products of k! / ((k - j)! k^j), j = 0, ..., k, for eigenvalues, with k the degree.
    """
    if ratio == 1:
        of_one = np.cumprod(np.append(1.0, 1 - np.arange(degree) / degree))
        of_all = reduce(np.multiply.outer, [of_one] * n_features)
        return float(1 - np.mean((1 - of_all) ** order))
    shares = np.trace(_powers(degree, ratio), axis1=1, axis2=2) / (degree + 1)
    return 1 - float(next(islice(_differences(shares**n_features), order, None)))
