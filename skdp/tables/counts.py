"""Class tables: how many records of each class have their entry of a column in each cell.

Table j counts ``T_j[x, c] = #{i : cell_j(x_ij) = x, y_i = c}``. A cell is a function of one entry
and of public things. So replacing a record changes each table by 0, or by a difference of two unit
vectors, of L1 norm 2 and L2 norm sqrt(2): the d tables by at most 2 d in the L1 norm and sqrt(2 d)
in the L2 norm. Both are attained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import ByteSource
from skdp.mechanisms.discrete import discrete_gaussian, discrete_laplace
from skdp.mechanisms.noise import Lattice

Table = NDArray[np.float64]  # (cell, class)

BITS = 20  # noise is a multiple of 2^-20: rounding its scale up costs next to nothing
LEAST = 1e-30  # epsilon or mu, for which the scale is far above what may be drawn


def class_tables(
    cells: Sequence[NDArray[np.intp]],
    sizes: Sequence[int],
    labels: NDArray[np.intp],
    n_classes: int,
) -> list[NDArray[np.int64]]:
    """Count the records of each cell and class, in a table of each column."""
    return [
        np.bincount(column * n_classes + labels, minlength=size * n_classes).reshape(size, -1)
        for column, size in zip(cells, sizes, strict=True)
    ]


@dataclass(frozen=True)
class TableNoise:
    """Noise for d class tables: Laplace for an epsilon, Gaussian for a mu = sqrt(2 d) / sigma.

    Counts are whole, so they are on the lattice of the noise, and their change on it is exact.
    """

    n_tables: int
    epsilon: float
    mu: float | None = None

    @property
    def scale(self) -> int:
        """The parameter of the noise in steps of 2^-20, rounded up."""
        if self.mu is None:
            epsilon = Fraction(max(self.epsilon, LEAST))
            return math.ceil(Fraction(2 * self.n_tables << BITS) / epsilon)
        mu = max(self.mu, LEAST)
        return math.ceil(math.ldexp(math.sqrt(2 * self.n_tables) * (1 + 1e-12) / mu, BITS))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise of a count; 0 for an infinite epsilon."""
        if math.isinf(self.epsilon):
            return 0.0
        return math.ldexp(math.sqrt(2) * self.scale if self.mu is None else self.scale, -BITS)

    def add(self, tables: list[NDArray[np.int64]], source: ByteSource) -> list[Table]:
        """Return the tables with noise."""
        if math.isinf(self.epsilon):
            return [table.astype(np.float64) for table in tables]
        draw = discrete_laplace if self.mu is None else discrete_gaussian
        noise = draw(self.scale, sum(table.size for table in tables), source)
        parts = np.split(noise, np.cumsum([table.size for table in tables])[:-1])
        return [
            Lattice(-BITS).to_floats(table << BITS, part.reshape(table.shape))
            for table, part in zip(tables, parts, strict=True)
        ]
