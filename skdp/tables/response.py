"""Cells of a response that is a number: they follow histograms of it that were released before.

A range that is written down without the data is mostly too wide, and equal cells of it would hold
nearly all records in one or two. So the response is counted in cells of equal width first, and then
in cells that are narrow where the first histogram has records. The class tables have a few cells,
each a union of some of the second histogram. The value of a cell is the mean of what it holds.

Each histogram has the noise of a class table, and counts as one more table. Given the noisy counts
before, its cells are functions of one entry and of public things. So replacing a record changes it
by 2 in the L1 norm and by sqrt(2) in the L2 norm, whatever the noisy counts before were: h
histograms and d tables by 2 (h + d) and by sqrt(2 (h + d)) together. Losses of Laplace noise add
up; those of Gaussian noise are, given what came before, normal with variances that add up to at
most mu^2, and the charge of `skdp.mechanisms.gaussian.lattice_delta` covers the sum, since the sum
of the products of two norms is at most the product of the norms of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import Matrix
from skdp.tables.columns import Number
from skdp.tables.counts import Table

N_HISTOGRAMS, FEWEST_STEPS = 2, 8
FEW_CELLS, MANY_CELLS, FROM_MANY = 4, 8, 5000  # of class tables; n epsilon / d for many
CLEAR = 4.5  # deviations of noise: cells with fewer records, and none beside with more, are empty
POWER = 0.65  # cells have equal sums of mass^POWER width^(1 - POWER)
LITTLE = 0.05  # share of the records that no noise may look like, where a remark is made
TWO_HOLD = 0.9  # share of the records in two cells, from which on the range is much too wide


def cells_of_response(n_records: int, epsilon: float, n_columns: int) -> int:
    """Return the most cells of a response that is a Number: more are worth it with many records."""
    return MANY_CELLS if n_records * epsilon / n_columns >= FROM_MANY else FEW_CELLS


@dataclass(frozen=True)
class CutNumber(Number):
    """A number with given cells: where they begin, and where the last one ends."""

    ends: tuple[float, ...] = ()

    def edges(self, most: int) -> NDArray[np.float64]:
        """Return where the cells begin and the last one ends, whatever the most is."""
        return np.array(self.ends)


def one_by_one(number: Number) -> CutNumber:
    """Return a cell for each of few whole numbers, whatever the scale is."""
    ends = np.append(number.low + np.arange(number.n_values), number.high + 1)
    return CutNumber(**asdict(number), ends=tuple(ends.tolist()))


@dataclass(frozen=True)
class ResponseCells:
    """The cells of a response, as functions of n, the range and released histograms.

    `n_steps` is the number of cells of a histogram, and `n_cells` that of a class table.
    """

    number: Number
    n_records: int
    deviation: float
    n_steps: int
    n_cells: int

    def of_histogram(self, released: Sequence[Table]) -> CutNumber:
        """Return the cells of the next histogram."""
        if not len(released):
            return self._cut(self.number.from_unit(np.linspace(0, 1, self.n_steps + 1)))
        unit, mass, _ = self._read(released)
        start, end = np.flatnonzero(mass)[[0, -1]] + [0, 1]  # what is beyond is a cell on each side
        before, after = np.zeros(int(start > 0)), np.ones(int(end < len(mass)))
        sums = np.append(0.0, np.cumsum(_weights(unit, mass)[start:end]))
        goals = np.linspace(0, sums[-1], self.n_steps + 1 - len(before) - len(after))
        inner = np.interp(goals, sums, unit[start : end + 1])
        return self._cut(self.number.from_unit(np.concatenate([before, inner, after])))

    def of_tables(self, released: Sequence[Table]) -> tuple[CutNumber, Matrix]:
        """Return the cells of the class tables, and the value of each."""
        unit, mass, middles = self._read(released)
        sums, starts = np.append(0.0, np.cumsum(_weights(unit, mass))), [0]
        for left in range(self.n_cells, 1, -1):
            goal = sums[starts[-1]] + (sums[-1] - sums[starts[-1]]) / left
            allowed = np.arange(starts[-1] + 1, len(mass) - left + 2)
            starts.append(int(allowed[np.argmin(np.abs(sums[allowed] - goal))]))
        sizes = np.add.reduceat(mass, starts)
        values = np.add.reduceat(mass * middles, starts) / np.maximum(sizes, 1e-300)
        at = np.arange(len(values))
        values = np.interp(at, at[sizes > 0], values[sizes > 0])  # an empty cell has one between
        edges = self.of_histogram(released[:-1]).edges(0)
        return self._cut(edges[[*starts, len(mass)]]), values

    def are_few(self, released: Sequence[Table]) -> bool:
        """Whether two cells of the last histogram hold nearly all records, and are no numbers."""
        edges, counts = self.of_histogram(released[:-1]).edges(0), released[-1]
        is_wide = not self.number.integer or np.diff(edges)[np.argmax(counts)] > 1
        is_wide &= CLEAR * self.deviation <= LITTLE * self.n_records  # else noise may look like it
        return bool(is_wide and np.sort(counts)[-2:].sum() >= TWO_HOLD * self.n_records)

    def _cut(self, edges: Matrix) -> CutNumber:
        """Cut the range at the inner ones of edges; a cell of whole numbers holds at least one."""
        number, place = self.number, np.arange(len(edges))
        end = number.high + number.integer
        if number.integer:
            edges = np.maximum.accumulate(np.ceil(edges) - place) + place
            edges = np.minimum(edges, end - place[::-1])
        return CutNumber(**asdict(number), ends=(number.low, *edges[1:-1].tolist(), end))

    def _read(self, released: Sequence[Table]) -> tuple[Matrix, Matrix, Matrix]:
        """Return the edges of the last histogram, in units, its masses, and the middles of cells.

        Far from all others, noise alone would move a mean a lot: there many records are needed.
        """
        edges, counts = self.of_histogram(released[:-1]).edges(0), released[-1]
        clear = (counts >= CLEAR * self.deviation) | (counts == counts.max())
        near = np.convolve(clear, np.ones(3), "same") > 0
        mass = np.where(near, np.maximum(counts, 0.0), 0.0)
        mass = mass if mass.any() else clear.astype(float)
        unit = self.number.unit(edges)
        middles = (unit[:-1] + self.number.unit(edges[1:] - self.number.integer)) / 2
        first, last = np.flatnonzero(mass)[[0, -1]]
        if first < last:  # records of a wide outer cell are near the others
            widths = np.diff(unit)
            most = self.number.unit(edges[first + 1] - self.number.integer)
            middles[first] = max(middles[first], unit[first + 1] - widths[first + 1] / 2)
            middles[first] = min(middles[first], most)  # a cell of whole numbers ends before
            middles[last] = min(middles[last], unit[last] + widths[last - 1] / 2)
        return unit, mass, self.number.from_unit(middles)


def _weights(unit: Matrix, mass: Matrix) -> Matrix:
    """Weigh the cells, so that cells of equal weight are a choice between equal mass and width."""
    return mass**POWER * np.diff(unit) ** (1 - POWER)
