"""The columns of a table as they are declared, and the cells into which their entries go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skdp.core.checks import MOST, check_kind, check_real, check_rules, shorten
from skdp.core.types import Container
from skdp.tables.values import Canonical, canonical, entries, numbers, places


@dataclass(frozen=True)
class Number:
    """A column of numbers of a declared range.

    A number beyond the range counts as the nearest bound. Infinity, a missing entry and an entry
    that is no number count as `low`.

    Parameters
    ----------
    low, high : float
        The range, which must not be read off the private data.
    log : bool, default=False
        Whether cells are equally wide in ``log(1 + x - low)``. It is for long tails, such as
        incomes: on a linear scale nearly all records would be in one cell.
    integer : bool, default=False
        Whether the numbers are whole.

    Examples
    --------
    >>> from skdp import Number
    >>> age = Number(17, 90, integer=True)
    >>> age.cells([16, 17, 89.6, "90", None, "unknown"], 4).tolist()
    [0, 0, 3, 3, 0, 0]
    """

    low: float
    high: float
    log: bool = False
    integer: bool = False
    ordered: ClassVar[bool] = True
    has_numbers: ClassVar[bool] = True

    def __post_init__(self) -> None:
        low = check_real("low", self.low, "Number", -np.inf)
        high = check_real("high", self.high, "Number", low)
        fits = np.isfinite(high - low)
        check_rules("Number", high=(high, fits, "be a finite distance above 'low'"))
        for name, bound in (("low", low), ("high", high)):
            whole = not self.integer or (bound.is_integer() and abs(bound) <= MOST)
            check_rules("Number", **{name: (bound, whole, "be a whole number for integer=True")})
            object.__setattr__(self, name, bound)

    def __str__(self) -> str:
        kind = "whole numbers" if self.integer else "numbers"
        return f"{kind} from {self.low:.15g} to {self.high:.15g}{', log' if self.log else ''}"

    def unit(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Map the range to [0, 1], on a logarithmic scale if it is declared so."""
        above, width = values - self.low, self.high - self.low
        return np.log1p(above) / np.log1p(width) if self.log else above / width

    def from_unit(self, unit: NDArray[np.float64]) -> NDArray[np.float64]:
        """Invert `unit`."""
        width = self.high - self.low
        return self.low + (np.expm1(unit * np.log1p(width)) if self.log else unit * width)

    def edges(self, most: int) -> NDArray[np.float64]:
        """Return where the cells begin, at most so many of them, and where the last one ends."""
        if not self.integer:
            return self.from_unit(np.arange(most + 1) / most)
        if self.log:
            first = np.unique(np.ceil(self.from_unit(np.arange(most) / most)))
            return np.append(first[first <= self.high], self.high + 1)
        n_values = int(self.n_values)
        n_cells = min(most, n_values)
        return self.low + np.array([-(-i * n_values // n_cells) for i in range(n_cells + 1)], float)

    @property
    def n_values(self) -> float:
        """The number of values, infinite for numbers that are not whole."""
        return self.high - self.low + 1 if self.integer else np.inf

    def n_cells(self, most: int) -> int:
        """Return the number of cells."""
        return len(self.edges(most)) - 1

    def middles(self, most: int) -> NDArray[np.float64]:
        """Return the middles of the cells, on the scale of `unit`."""
        edges = self.edges(most)
        return (self.unit(edges[:-1]) + self.unit(edges[1:] - self.integer)) / 2

    def clipped(self, column: Container) -> NDArray[np.float64]:
        """Return the entries as numbers of the range."""
        values = numbers(column)
        values = np.clip(np.where(np.isnan(values), self.low, values), self.low, self.high)
        return np.rint(values) if self.integer else values

    def cells(self, column: Container, most: int) -> NDArray[np.intp]:
        """Return the cell of each entry, by comparisons with the edges."""
        return np.searchsorted(self.edges(most)[1:-1], self.clipped(column), side="right")

    def draw(self, cells: NDArray[np.intp], most: int, rng: Generator) -> NDArray:
        """Draw a number of each cell, uniformly on the scale; the first of a log scale is `low`."""
        edges = self.edges(most)
        unit, place = self.unit(edges), rng.random(len(cells))
        values = self.from_unit(unit[cells] + place * (unit[cells + 1] - unit[cells]))
        values = np.floor(values) if self.integer else values
        values = np.clip(values, edges[cells], edges[cells + 1] - self.integer)
        return np.where((cells == 0) & self.log, self.low, values)


@dataclass(frozen=True)
class Category:
    """A column of declared values.

    Any other entry, a missing one too, counts as the first value.

    Parameters
    ----------
    values : list of str, of numbers or of booleans
        The values, which must not be read off the private data. 1, 1.0, True and "1" are one value.

    Examples
    --------
    >>> from skdp import Category
    >>> Category(["none", "some", "much"]).cells(["much", "sme", None, "some"]).tolist()
    [2, 0, 0, 1]
    """

    values: Sequence
    ordered: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_kind("values", self.values, "Category", list | tuple | np.ndarray, "a list of values")
        values = tuple(entries(np.asarray(self.values, dtype=object)))
        object.__setattr__(self, "values", values)
        check_rules("Category", values=(self.values, len(values) > 0, "hold a value"))
        if None in self._places or len(self._places) < len(values):
            raise ValueError(
                "The 'values' parameter of Category must hold different words or finite numbers; "
                f"1 and '1' are one value. Got {shorten(values)}. A missing entry counts as the "
                "first value."
            )

    @cached_property
    def _places(self) -> dict[Canonical, int]:
        return {canonical(value): place for place, value in enumerate(self.values)}

    def __str__(self) -> str:
        return f"{len(self.values)} values {shorten(self.values)}"

    @property
    def has_numbers(self) -> bool:
        """Whether some of the values are numbers."""
        return any(isinstance(value, float) for value in self._places)

    def n_cells(self, most: int) -> int:
        """Return the number of values, however many cells a number has."""
        return len(self.values)

    def cells(self, column: Container, most: int = 0) -> NDArray[np.intp]:
        """Return the place of each entry."""
        return places(column, self._places)

    def clipped(self, column: Container) -> NDArray:
        """Return the declared values as which entries count."""
        return self.array[self.cells(column)]

    def draw(self, cells: NDArray[np.intp], most: int, rng: Generator) -> NDArray:
        """Return the values of cells."""
        return self.array[cells]

    @property
    def array(self) -> NDArray:
        """The values in an array of their type; in one of objects if they are words."""
        are_words = any(isinstance(value, str | bytes) for value in self.values)
        return np.array(self.values, dtype=object if are_words else None)


def cell_names(column: Number | Category, most: int) -> list[str]:
    """Name the cells of a column."""
    if isinstance(column, Category):
        return [str(value) for value in column.values]
    edges = column.edges(most)
    ends = edges[1:] - column.integer
    return [f"{a:.4g} to {b:.4g}" for a, b in zip(edges[:-1], ends, strict=True)]
