"""Records made like those of the oracle, each by itself: clipped to its ranges, or replaced.

A number outside its range becomes the nearest end. A record far outside becomes the public record
that was drawn for its place. What becomes of a record depends on it, its place and public draws, so
neighbors stay neighbors. A person is far outside with one such record, or with many more records
than others, and is replaced as a whole; the first records of a person are read, as many as the
oracle's persons have. The ranges are of draws apart from the pairs, and the public records are a
function of the seed of the evaluation: a private pair is then exchangeable with the sampled ones.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.dataset import (
    NAMES,
    Dataset,
    belongs_to,
    index_dtype,
    n_records,
    summed_rows,
    with_index_dtype,
)
from skdp.core.dtypes import DType, kind_of
from skdp.core.oracle import Oracle
from skdp.core.persons import Persons, as_units
from skdp.core.plain import as_doubles, columns_of, is_table
from skdp.core.schema import DatasetForm
from skdp.core.streams import STAND_INS, ranges_key, streams
from skdp.core.target import Target, value_of
from skdp.core.types import Container, Matrix
from skdp.oracles.drawing import draw

Ends: TypeAlias = tuple[float, float] | None  # None for a column that stays as it is
Units = TypeVar("Units", Dataset, Persons)
PartRanges: TypeAlias = tuple[tuple[str, tuple[Ends, ...]], ...]  # of the columns of some parts

N_DATASETS = 20, 200  # that make the ranges: at least, at most
N_RECORDS = 10_000  # that they hold in all, between these numbers of datasets
MOST = 50_000  # records of each
OUTSIDE = 0.05  # share of a range: a number farther outside is no rounding
MOST_OUTSIDE = 0.25  # share of the columns, and one column: with more outside a record is far
MOST_EXACT = 2.0**53  # a column with a larger number stays: doubles would round its integers
FAR = 1.0  # ranges: with one number farther outside a record is far


class ColumnRange(NamedTuple):
    """The range of a column, to which private records are clipped."""

    column: object
    low: float
    high: float


def draw_ranges(
    oracle: Oracle, n_samples: int, seed: int, schema: DatasetForm, has_labels: bool
) -> PartRanges:
    """Return the smallest and the largest number of each column, in draws of their own."""
    size, found = min(n_samples + 1, MOST), dict[str, Matrix]()  # no more than pairs ask for
    for number in range(int(np.clip(N_RECORDS // size, *N_DATASETS))):
        rng, _ = streams(seed, ranges_key(number))
        drawn = draw(oracle, size, rng, schema=schema, copied=False)
        if drawn.groups is not None:
            drawn = drawn._replace(groups=np.bincount(drawn.groups))
        for name, part in drawn.named.items():
            if name != "y" or not has_labels:
                low, high = ends_of(part)
                before = found.get(name, (low, high))
                found[name] = np.array([np.fmin(low, before[0]), np.fmax(high, before[1])])
    return tuple((name, tuple(map(_as_ends, ends.T.tolist()))) for name, ends in found.items())


def ends_of(part: Container) -> Matrix:
    """Return the smallest and the largest number of each column; NaN of one without numbers."""
    if sparse.issparse(part) and kind_of(part.dtype) in "fiu":
        rows, ends = part.tocsr(), np.zeros((2, part.shape[1]))
        finite = np.isfinite(rows.data)
        np.fmin.at(ends[0], rows.indices[finite], rows.data[finite])
        np.fmax.at(ends[1], rows.indices[finite], rows.data[finite])
        return ends
    numbers = numbers_of(part)
    numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    return np.array([np.fmin.reduce(numbers, axis=0), np.fmax.reduce(numbers, axis=0)])


def numbers_of(part: Container) -> Matrix:
    """Return the entries column by column, as doubles; NaN in columns without numbers."""
    n = n_records(part)
    if belongs_to(part, "pandas", "polars"):
        return np.column_stack(
            [as_doubles(c) if _is_number(c.dtype) else np.full(n, np.nan) for c in columns_of(part)]
        )
    if isinstance(part, np.ndarray) and _is_number(part.dtype):
        with np.errstate(over="ignore"):  # of long doubles
            return part.reshape(n, -1).astype(np.float64)
    return np.full((n, int(np.prod(getattr(part, "shape", (n,))[1:]))), np.nan)


def _is_number(dtype: DType) -> bool:
    return kind_of(dtype) in "fiu"


def _as_ends(ends: list[float]) -> Ends:
    low, high = ends
    if np.isnan(low) or max(-low, high) >= MOST_EXACT:
        return None
    return (0.0, 1.0) if {low, high} <= {0.0, 1.0} else (low, high)  # either value of a flag


class _Box:
    """The ranges of one part of a dataset."""

    def __init__(self, ends: tuple[Ends, ...]):
        self.ends = ends
        self.low, self.high = np.array([each or (-np.inf, np.inf) for each in ends]).T
        with np.errstate(over="ignore"):
            width = self.high - self.low
        self.width = np.where(np.isfinite(width) & (width > 0), width, np.nan)

    def clip(self, part: Container) -> Container:
        """Move each number to the nearest one in its range; all types stay."""
        if not any(self.ends):
            return part
        if belongs_to(part, "pandas", "polars"):
            return self._clip_columns(part)
        low, high = (_in_type(ends, part.dtype) for ends in (self.low, self.high))
        if not sparse.issparse(part):
            return np.clip(part.reshape(len(part), -1), low, high).reshape(part.shape)
        rows = part.tocsr(copy=True)
        rows.data = np.clip(rows.data, low[rows.indices], high[rows.indices])
        return with_index_dtype(type(part)(summed_rows(rows)), index_dtype(part))

    def _clip_columns(self, part: Container) -> Container:
        columns, numbers = columns_of(part), numbers_of(part)
        with np.errstate(invalid="ignore"):
            below, above = numbers < self.low, numbers > self.high
        outside = (below | above).any(axis=0)
        for place in np.flatnonzero(outside):
            made, dtype = columns[place], columns[place].dtype
            kind: Any = int if kind_of(dtype) in "iu" else float
            for at, end in zip((below, above), self.ends[place] or (), strict=True):
                made = _put(made, at[:, place], kind(end))
            if made.dtype != dtype:  # as in some versions
                made = made.cast(dtype) if belongs_to(part, "polars") else made.astype(dtype)
            columns[place] = made
        if not is_table(part):
            return columns[0]
        if belongs_to(part, "polars"):
            return type(part)(columns)
        made = part.copy(deep=False)
        for place in np.flatnonzero(outside):
            made.isetitem(place, columns[place])
        return made.copy()  # in one layout, whatever was clipped

    def is_far(self, part: Container, by_columns: bool) -> NDArray[np.bool_]:
        """Return for each record whether a number, or many, are far outside."""
        far = self.count(part, FAR) > 0
        most = max(1.0, MOST_OUTSIDE * np.isfinite(self.width).sum())
        return far | (self.count(part, OUTSIDE) > most) if by_columns else far

    def count(self, part: Container, least: float) -> NDArray[np.intp]:
        """Count for each record the numbers that are more than so many ranges outside."""
        outside = self._excess(part) > least
        if not sparse.issparse(part):
            return np.asarray(outside.sum(axis=1))
        of_row = np.repeat(np.arange(part.shape[0]), np.diff(part.tocsr().indptr))
        return np.bincount(of_row[outside], minlength=part.shape[0])

    def _excess(self, part: Container) -> Matrix:
        """Return how many ranges the numbers are outside; of a sparse part those it stores."""
        at: Any = slice(None)
        if sparse.issparse(part):
            rows = part.tocsr()
            numbers, at = rows.data.astype(np.float64), rows.indices
        else:
            numbers = numbers_of(part)
        low, high, width = self.low[at], self.high[at], self.width[at]
        with np.errstate(all="ignore"):
            return np.fmax(low - numbers, numbers - high) / width


def _put(column: Container, at: NDArray[np.bool_], end: float) -> Container:
    """Put a number in some places; `clip` of a library may change gaps in others."""
    if not at.any():
        return column
    if belongs_to(column, "pandas"):
        return column.mask(at, end)
    return column.set(type(column)(at), end)


def _in_type(ends: Matrix, dtype: np.dtype) -> NDArray:
    if dtype.kind == "f":
        return ends.astype(dtype)
    limits = np.iinfo(dtype)
    return np.array([int(min(max(end, limits.min), limits.max)) for end in ends], dtype=dtype)


class AlikeTarget(Target):
    """A target that sees records made like those of an oracle."""

    stand_ins: Dataset | Persons | None = None
    """The records in the places of those far outside; None draws them where they are needed."""

    def __init__(self, target: Target, ranges: PartRanges, oracle: Oracle, schema: DatasetForm):
        self.target, self.ranges, self._oracle, self._schema = target, ranges, oracle, schema
        self.description, self.is_mean = target.description, target.is_mean
        self.sums_persons = target.sums_persons
        self.key_parts = target, ranges  # oracle and schema are in each key of evaluations

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Evaluate the target on the records as they count."""
        records = Dataset(*dataset)
        alike = self.alike(records, partial(self._draw, records.n_records, seed))
        return self.target(*alike.parts, seed=seed)

    def over_persons(
        self, *rows: Container, counts: NDArray[np.intp], seed: int
    ) -> NDArray[np.float64]:
        """Evaluate the target on the persons as they count."""
        persons = Persons(Dataset(*rows), counts)
        alike = self.alike(persons, partial(self._draw, len(counts), seed))
        return value_of(self.target, alike, seed)

    def with_stand_ins(self, n_samples: int, seed: int) -> AlikeTarget:
        """Return a copy that has drawn, so that no private record decides whether it does."""
        made = copy.copy(self)
        made.stand_ins = self._draw(n_samples, seed)
        return made

    def _draw(self, n_samples: int, seed: int) -> Any:
        rng, _ = streams(seed, STAND_INS)
        return as_units(draw(self._oracle, n_samples, rng, schema=self._schema, copied=False))

    def alike(self, records: Units, drawn: Callable[[], Any]) -> Units:
        """Clip records, and replace those far outside by others, which may be used in turn."""
        far, clipped = self._are_far(records), self._clip(records)
        others: Any = clipped.take(np.arange(1))  # joined, since pandas lays out anew what it joins
        if far.any():
            stand_ins: Any = drawn() if self.stand_ins is None else self.stand_ins
            others = self._clip(stand_ins)
        places = np.arange(len(far))
        places = np.where(far, len(far) + places % others.n_records, places)
        return clipped.join(others).take(places)

    @cached_property
    def _boxes(self) -> dict[str, _Box]:
        return {name: _Box(ends) for name, ends in self.ranges}

    def _clip(self, records: Units) -> Units:
        boxes = self._boxes
        if isinstance(records, Persons):
            records = records.cut(boxes["groups"].high[0])
        return records.map(lambda x, name: boxes[name].clip(x) if name in boxes else x, NAMES)

    def are_outside(self, records: Dataset) -> NDArray[np.bool_]:
        """Return for each record whether a number of X is outside by more than a rounding."""
        return self._boxes["X"].count(records.X, OUTSIDE) > 0

    def _are_far(self, records: Dataset | Persons) -> NDArray[np.bool_]:
        if isinstance(records, Persons):
            far = np.logical_or.reduceat(self._are_far(records.rows), records.starts)
            return far | self._boxes["groups"].is_far(records.counts, False)
        far = self._boxes["X"].is_far(records.X, by_columns=True)
        return far | self._boxes["y"].is_far(records.y, False) if "y" in self._boxes else far


def name_ranges(ranges: PartRanges, schema: DatasetForm) -> Iterator[ColumnRange]:
    """Name the columns that have a range; those of X come first."""
    forms = schema.parts.named
    for part, ends in ranges:
        names: Iterable[object] = range(len(ends))
        if part != "X":
            part = "records of a person" if part == "groups" else part
            names = [part] if len(ends) == 1 else [f"{part} {place}" for place in names]
        elif forms[part].is_frame:
            names = forms[part].names
        named = zip(names, ends, strict=True)
        yield from (ColumnRange(name, *each) for name, each in named if each is not None)
