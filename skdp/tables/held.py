"""Records in memory, and what is counted of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import DTypeLike, NDArray

from skdp.core.plain import as_doubles
from skdp.core.types import Container, Matrix
from skdp.sensitivity.preconditions import Ranges, clip
from skdp.tables.columns import Number
from skdp.tables.counts import class_tables
from skdp.tables.encoder import ClassTableEncoder
from skdp.tables.schema import Schema

NARROWEST = 2.0**-900  # of a range: less has no inverse among doubles


class HeldTable:
    """Records in memory, by declared columns; its methods are those of an EngineTable."""

    def __init__(self, X: Container, y: Container, schema: Schema):
        read, self.n_records = schema.read(X, y)
        self.X, self.y, self.schema = X, y, schema
        self.columns = read[: len(schema.columns)]

    def cells(self, most: int, n_cells: int, dtype: DTypeLike = np.intp) -> list[NDArray]:
        """Return the cells of each column, and the labels."""
        declared = zip(self.schema.columns.values(), self.columns, strict=True)
        cells = [column.cells(given, n_cells) for column, given in declared]
        cells += [] if self.y is None else [self.schema.response.cells(self.y, most)]
        return [each.astype(dtype) for each in cells]

    def counts(self, sizes: Sequence[int], most: int, n_cells: int) -> list[NDArray[np.int64]]:
        """Count the records of each cell and label; without y of all cells together."""
        cells = self.cells(most, n_cells)
        if self.y is None:
            table = np.zeros(sizes, dtype=np.int64)
            np.add.at(table, tuple(cells), 1)
            return [table]
        return class_tables(cells[:-1], sizes, cells[-1], self.schema.response.n_cells(most))

    def cut(self, response: Number) -> HeldTable:
        """Return the same records with other cells of the response."""
        other = copy.copy(self)
        other.schema = replace(self.schema, y_range=response)
        return other

    def responses(self) -> NDArray[np.int64]:
        """Count the records of each cell of a response that is cut."""
        response = self.schema.response
        return np.bincount(response.cells(self.y, 0), minlength=response.n_cells(0))

    def sums(self, ranges: Ranges, n_steps: int) -> list[int]:
        """Add each column in whole steps of its range; the last number is that of the records."""
        low, rows = np.transpose(ranges)[0], as_doubles(clip(self.X, ranges))
        steps = (rows - low) * [steps_of_unit(*ends, n_steps) for ends in ranges] + 0.5
        return [*np.floor(steps).astype(np.int64).sum(axis=0).tolist(), self.n_records]

    def encoded(
        self, encoder: ClassTableEncoder, most: int
    ) -> tuple[Callable[[Callable[[Matrix], Matrix]], Matrix], NDArray[np.intp]]:
        """Return what makes rows of encoded records, and the labels."""
        encoded = encoder.transform(self.X)
        return lambda rows: rows(encoded), self.schema.response.cells(self.y, most)


def steps_of_unit(low: float, high: float, n_steps: int) -> float:
    """Return how many steps a unit has; 0 for a range of no width that matters.

    An engine may divide by a width as it multiplies by its inverse, which is rounded another way.
    """
    return n_steps / (high - low) if high - low > NARROWEST else 0.0
