"""Candidates for the rows of a public code, in output units, and the weights that they get."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import linalg

from skdp.codes.prior import OutputUnits, Prior
from skdp.codes.water import Noise, fill
from skdp.core.types import Matrix

_LEAST_CHANGE = 1e-3  # of the largest change: directions said to change less are not believed
_ORDINARY = math.sqrt(2 / math.pi)  # mean absolute value of a normal variable of variance 1


class Directions(NamedTuple):
    """The rows of a candidate in output units, and the numbers that determine their weights."""

    matrix: Matrix
    changes: Matrix
    variances: Matrix
    factors: Matrix | None  # squared lengths of columns of the inverse; None if the rows are square

    def encoder(self, noise: Noise, ratio: float) -> Matrix:
        """Return T for noise of a variance of about 1; no rows if their number has other noise."""
        order, budget, most = noise.order, noise.budget(ratio), noise.most
        if self.factors is None:
            rows = self.matrix if most in (None, len(self.matrix)) else self.matrix[:0]
            return rows * (budget / np.linalg.norm(self.changes, ord=order))
        weights = fill(order, self.factors, self.variances, self.changes, budget, most)
        return (weights[:, None] * self.matrix)[weights > 0]


class Learned(NamedTuple):
    """The changes of pilot pairs in output units, and the prior that the pilots make."""

    changes: Matrix
    prior: Prior
    units: OutputUnits

    def sizes(self, rows: Matrix, order: int) -> Matrix:
        """Return the sizes of changes: root mean squares by A, times a factor for the order 1."""
        sizes = np.sqrt(np.sum(rows @ self.prior.change * rows, axis=1))
        if order == 1:
            along = self.changes @ rows.T
            square = np.sqrt(np.mean(along**2, axis=0))
            absolute = np.mean(np.abs(along), axis=0)
            shape = np.full_like(square, _ORDINARY)
            sizes *= np.divide(absolute, square, out=shape, where=square > 0)
        return np.maximum(sizes, _LEAST_CHANGE * sizes.max())


def _principal(pilots: Learned, order: int) -> Directions:
    """Take the axes along which models differ."""
    variances, axes = np.linalg.eigh(pilots.prior.covariance)
    return Directions(
        axes.T, pilots.sizes(axes.T, order), _above_rounding(variances), np.ones(len(axes))
    )


def _contrasts(pilots: Learned, order: int) -> Directions:
    """Take the directions in which models differ most, compared to the change by one record."""
    change = pilots.prior.change.copy()
    change[np.diag_indices(len(change))] += _LEAST_CHANGE**2 * np.diag(change).max()
    root = linalg.cholesky(change, lower=True)
    half = linalg.solve_triangular(root, pilots.prior.covariance, lower=True)
    variances, axes = np.linalg.eigh(linalg.solve_triangular(root, half.T, lower=True))
    rows = linalg.solve_triangular(root, axes, lower=True, trans=1).T
    factors = np.sum((root @ axes) ** 2, axis=0)
    return Directions(rows, pilots.sizes(rows, order), _above_rounding(variances), factors)


def _above_rounding(variances: Matrix) -> Matrix:
    least = np.finfo(float).eps * len(variances) * variances.max()
    return np.where(variances > least, variances, 0)


def _square(rows: Matrix, pilots: Learned, order: int) -> Directions:
    """Release all rows, with the weights of least expected error.

    Noise of the norm ``sum_j (a_j / w_j)^p`` to the power 1/p in each row makes a squared error
    proportional to ``(sum_j (a_j / w_j)^p)^(2/p) sum_j w_j^2``, least where ``w_j^(p + 2)`` is
    proportional to ``a_j^p``.
    """
    sizes = pilots.sizes(rows, order)
    weights = sizes ** (order / (order + 2))
    return Directions(rows / weights[:, None], sizes / weights, np.empty(0), None)


def _diagonal(pilots: Learned, order: int) -> Directions:
    """Take the values themselves."""
    return _square(pilots.units.scale[:, None] * pilots.units.back.T, pilots, order)


def _metric_axes(pilots: Learned, order: int) -> Directions:
    """Take the axes of the metric."""
    return _square(np.eye(len(pilots.prior.change)), pilots, order)


def _predictive(pilots: Learned, order: int) -> Directions:
    """Take the axes of the change by one record."""
    return _square(np.linalg.eigh(pilots.prior.change)[1].T, pilots, order)


# In the order of preference where all else is alike.
CANDIDATES = (_contrasts, _principal, _diagonal, _metric_axes, _predictive)
