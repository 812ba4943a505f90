"""Counts and means of declared columns, of records in memory or where an engine holds them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Self

import numpy as np

from skdp.core.checks import check_count, check_kind, check_rules, shown
from skdp.core.dataset import Dataset, as_dataset
from skdp.core.identity import key_of
from skdp.core.plain import is_table
from skdp.core.target import Target
from skdp.core.types import AxisLabels, Container, Matrix, Sample
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.preconditions import OF_COUNTS, OF_MEAN, Ranges
from skdp.tables.columns import Category, Number, cell_names
from skdp.tables.engines import EngineTable, engine_table
from skdp.tables.held import HeldTable
from skdp.tables.schema import Schema

DECLARED = "that what is declared of the columns was not read off the data"


class ColumnsTarget(Target):
    """A statistic of declared columns, for which the bound of its kind is proved."""

    allow_nan = True
    supposed = OF_COUNTS
    ranges: Ranges | None = None

    def __init__(self, columns: Mapping[object, Number | Category]):
        self.schema = Schema(columns, classes=[0, 1])  # of which nothing is predicted
        self.key_parts = (self.schema,)
        self.description = f"{type(self).__name__} of {', '.join(map(str, columns))}"
        self.shape: tuple[int, ...] = (len(columns),)
        self.labels: AxisLabels = {"value": (None, [*map(str, columns)])}

    def by_name(self, value: Matrix) -> tuple[Matrix, AxisLabels]:
        return value, self.labels

    def proved(self, known: object) -> tuple[Self, KnownSensitivity]:
        """Return the target with its bound, or refuse the bound of another."""
        key, ours = key_of(self), copy.copy(self)
        if not isinstance(known, KnownSensitivity) or (
            known.preconditions != self.supposed and known.key != key
        ):
            raise TypeError(
                f"The 'sensitivity' of a {type(self).__name__} must be a bound of skdp.bounds: "
                f"count_bound for counts, mean_bound for means. Got {shown(known)}."
            )
        ours.ranges, ours.within = known.ranges, np.full(self.shape, float(known.n_samples))
        if known.ranges is not None:
            ours.within = np.mean(known.ranges, axis=1)
        return ours, replace(known, preconditions=DECLARED, shape=self.shape, key=key)

    def read(self, sample: Sample, known: object) -> Dataset:
        """Check the form of the records, and leave those of an engine where they are."""
        X, y, *_ = as_dataset(sample, "The private dataset")
        check_rules("release", y=(y, y is None, "be None where columns of X are declared"))
        n = self.proved(known)[1].n_samples
        if (table := engine_table(X, None, self.schema, n, has_y=False)) is not None:
            if table is not X:
                table.check()
            return Dataset(table)
        self.schema.read(X)
        return Dataset(X[list(self.schema.columns)] if is_table(X) else X)


class CountTarget(ColumnsTarget):
    """Counts of records by the cells of columns: a histogram of one, or a table of several.

    Parameters
    ----------
    columns : dict of Number and Category, by name
        The axes of the table, which must not be read off the private data.
    n_cells : int, default=10
        The most cells of a Number.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import CountTarget, LaplaceMechanism, Number, release
    >>> from skdp.bounds import count_bound
    >>> X = np.random.default_rng(0).uniform(size=(1000, 1))
    >>> histogram, noise = CountTarget({"share": Number(0, 1)}, n_cells=4), LaplaceMechanism(1.0)
    >>> release(histogram, X, mechanism=noise, sensitivity=count_bound(1000)).value.shape
    (4,)
    """

    def __init__(self, columns: Mapping[object, Number | Category], n_cells: int = 10):
        super().__init__(columns)
        self.n_cells = check_count("n_cells", n_cells, "CountTarget")
        self.key_parts = self.schema, self.n_cells
        names = [cell_names(each, n_cells) for each in self.schema.columns.values()]
        self.shape = tuple(map(len, names))
        self.labels = {"value": (names[0] if len(names) > 1 else None, names[-1])}

    def __call__(self, *dataset: Container, seed: int = 0) -> Matrix:
        """Count the records of each cell."""
        (X,) = dataset
        table = X if isinstance(X, EngineTable) else HeldTable(X, None, self.schema)
        return table.counts(self.shape, 0, self.n_cells)[0].astype(np.float64)


class MeanTarget(ColumnsTarget):
    """Means of columns of numbers, clipped to the ranges of a `skdp.bounds.mean_bound`.

    Entries are rounded to whole steps, of which a range has 2**61 / n at least: their sum is the
    same in any order.

    Parameters
    ----------
    columns : list of str
        The columns, in the order of the ranges.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, MeanTarget, release
    >>> from skdp.bounds import mean_bound
    >>> X = np.random.default_rng(0).uniform(size=(1000, 1))
    >>> bound, noise = mean_bound(1000, ranges=(0, 1)), LaplaceMechanism(epsilon=1.0)
    >>> released = release(MeanTarget(["share"]), X, mechanism=noise, sensitivity=bound)
    >>> bool(abs(released.value[0] - X.mean()) < 0.05)
    True
    """

    supposed = OF_MEAN

    def __init__(self, columns: Sequence[object]):
        check_kind("columns", columns, "MeanTarget", list | tuple, "a list of columns")
        super().__init__(dict.fromkeys(columns, Number(0, 1)))  # any range shows the type

    def __call__(self, *dataset: Container, seed: int = 0) -> Matrix:
        """Return the means of clipped records."""
        (X,), ranges = dataset, self.ranges or ()
        table = X if isinstance(X, EngineTable) else HeldTable(X, None, self.schema)
        n_steps = 2 ** min(51, 62 - table.n_records.bit_length())  # no sum is 2**62
        *sums, n = table.sums(ranges, n_steps)
        exact = zip(sums, (map(Fraction, ends) for ends in ranges), strict=True)
        return np.array([float(a + (b - a) * each / (n * n_steps)) for each, (a, b) in exact])
