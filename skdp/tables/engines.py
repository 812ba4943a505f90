"""Class tables where the records lie: in a database, in files, in the memory of other processes.

narwhals writes one expression of the cells for every engine that it knows. The engine counts the
rows of each (cell, label), and only these counts come here. Where a score is corrected, the cells
of all rows come too, a byte for each entry.

A cell is the one of `Number.cells` and `Category.cells`, with two exceptions. A text counts as a
number if it is written in at most 80 of the digits 0 to 9, and not as "1_0", say. A decimal number
is rounded to a double by the engine.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import attrgetter, methodcaller, or_
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.checks import check_count, shorten
from skdp.core.dataset import Elsewhere, belongs_to, n_records
from skdp.core.room import quiet
from skdp.core.types import Container, Matrix
from skdp.sensitivity.preconditions import Ranges
from skdp.tables.columns import Category, Number
from skdp.tables.encoder import ClassTableEncoder
from skdp.tables.held import HeldTable, steps_of_unit
from skdp.tables.law import FEWEST, MOST
from skdp.tables.schema import Schema, check_type
from skdp.tables.values import canonical

if TYPE_CHECKING:
    import narwhals as nw

MOST_CODES = 2**30  # most bytes of the cells of all rows that come here
FEW, LARGEST = 8, sys.float_info.max
NUMBER = r"^[+-]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][+-]?[0-9]{1,2})?$"
TYPES = {"Boolean", "String", "Categorical", "Enum"}  # beside numbers
FAILED = (
    "The engine failed when it was asked for {} of the table ({}). Details are withheld, since "
    "they may describe the data, and nothing was spent. Ask the engine itself."
)


@dataclass(frozen=True, eq=False)
class EngineTable(Elsewhere):
    """A table that an engine holds, of which the declared columns and the response are counted."""

    frame: nw.LazyFrame
    schema: Schema
    y: str | None  # None where the declared columns are counted together
    types: dict[str, Any]

    @property
    def n_records(self) -> int:
        """The number of rows, as it is declared."""
        return self.shape[0]

    def check(self) -> None:
        """Refuse what the engine cannot count, and another number of rows than is declared."""
        _asked("the types of the cells", self._try)
        n = _asked("the number of rows", self._count_rows)
        if n != self.n_records:
            raise ValueError(
                f"The table must have the {self.n_records} rows that are declared as 'n_samples'. "
                f"The engine counts {n}."
            )

    def _try(self) -> None:
        """Let the engine find the types of a statement."""
        self._statement(FEWEST, FEWEST).collect_schema()

    def _count_rows(self) -> int:
        import narwhals as nw

        return int(next(iter(_fetch(self.frame.select(nw.len())).values()))[0])

    def counts(self, sizes: Sequence[int], most: int, n_cells: int) -> list[NDArray[np.int64]]:
        """Let the engine count the rows of each cell and label; without y of all cells together."""
        found = _fetch(self._statement(most, n_cells)).values()
        n_classes = self.schema.response.n_cells(most)
        shapes = [(size, n_classes) for size in sizes] if self.y else [tuple(sizes)]
        tables = [np.zeros(shape, dtype=np.int64) for shape in shapes]
        for table, *cells, n in zip(*(each.tolist() for each in found), strict=True):
            tables[int(table)][tuple(map(int, cells))] += int(n)
        for each in tables:
            self._check_unchanged(each.sum())
        return tables

    def cut(self, response: Number) -> Self:
        """Return the same table with other cells of the response."""
        return replace(self, schema=replace(self.schema, y_range=response))

    def responses(self) -> NDArray[np.int64]:
        """Let the engine count the rows of each cell of a response that is cut."""
        assert self.y is not None
        response, kinds = self.schema.response, [_kind(self.types[self.y])]
        schema = Schema({self.y: response}, classes=[0, 1])  # of which nothing is predicted
        form: tuple = (self.n_records, 1), [self.y], kinds, self.frame, schema, None, self.types
        return type(self)(*form).counts([response.n_cells(0)], 0, 0)[0]

    def _statement(self, most: int, n_cells: int) -> nw.LazyFrame:
        """Write the counts of all columns as one statement, of which no row is read."""
        import narwhals as nw

        *cells, label = self._expressions(most, n_cells)
        counted: list[nw.LazyFrame] = []
        for group in [[cell, label] for cell in cells] if self.y else [[*cells, label]]:
            keys = {f"cell{place}": cell.cast(nw.Int32) for place, cell in enumerate(group)}
            rows = self.frame.select(**keys).group_by(*keys).agg(nw.len().alias("n"))
            table = nw.lit(len(counted), nw.Int32).alias("table")
            counted.append(rows.select(table, *keys, "n"))
        return nw.concat(counted, how="vertical")

    def sums(self, ranges: Ranges, n_steps: int) -> list[int]:
        """Let the engine add each column in whole steps, and count the rows.

        A sum of whole numbers is the same in any order.
        """
        import narwhals as nw

        asked = {"n": nw.len()}
        for name, ends in zip(self.columns, ranges, strict=True):
            asked[f"sum{len(asked)}"] = _steps(name, *ends, n_steps).sum().cast(nw.Int64)
        n, *sums = (int(each[0]) for each in _fetch(self.frame.select(**asked)).values())
        self._check_unchanged(n)
        return [*sums, n]

    def _check_unchanged(self, n: int) -> None:
        """Refuse a table that has another number of rows than when they were counted."""
        if n != self.n_records:
            raise ValueError("The number of rows has changed since they were counted.")

    def encoded(
        self, encoder: ClassTableEncoder, most: int
    ) -> tuple[Callable[[Callable[[Matrix], Matrix]], CodedRows], NDArray[np.intp]]:
        """Fetch the cells of all rows; return what makes rows of them, and the labels."""
        *codes, labels = self._codes(most, encoder.n_cells)
        self._check_unchanged(len(labels))
        return lambda rows: CodedRows(codes, encoder.of_cells, rows), labels

    def _codes(self, most: int, n_cells: int) -> list[NDArray]:
        import narwhals as nw

        kind = {1: nw.Int8, 2: nw.Int16, 4: nw.Int32}[self._type.itemsize]
        cells = enumerate(self._expressions(most, n_cells))
        asked = {str(place): cell.cast(kind) for place, cell in cells}
        return list(_fetch(self.frame.select(**asked)).values())

    @property
    def _type(self) -> np.dtype:
        """The smallest type that holds any cell."""
        columns = [*self.schema.columns.values(), self.schema.response]
        return np.min_scalar_type(-max(each.n_cells(MOST) for each in columns))

    @property
    def is_small(self) -> bool:
        """Whether the cells of all rows may come here."""
        return self.n_records * (self.shape[1] + 1) * self._type.itemsize <= MOST_CODES

    def _expressions(self, most: int, n_cells: int) -> list[nw.Expr]:
        """Write the cells of the declared columns, and the label."""
        declared = [(str(name), each, n_cells) for name, each in self.schema.columns.items()]
        declared += [(self.y, self.schema.response, most)] if self.y else []
        return [_cell(name, self.types[name], each, finest) for name, each, finest in declared]


class DaskTable(EngineTable):
    """A table of Dask: each part is a frame in memory, and a worker counts it as one.

    Many expressions of cells would take its optimizer seconds, and read a file for each column.
    """

    def _try(self) -> None:
        self._ask(attrgetter("n_records"))(self._parts._meta)

    def _count_rows(self) -> int:
        return sum(self._of_parts(n_records, self._parts[self.columns[:1]]))

    def counts(self, sizes: Sequence[int], most: int, n_cells: int) -> list[NDArray[np.int64]]:
        parts = self._of_parts(self._ask(methodcaller("counts", sizes, most, n_cells)))
        tables = [np.sum(each, axis=0) for each in zip(*parts, strict=True)]
        for each in tables:
            self._check_unchanged(each.sum())
        return tables

    def sums(self, ranges: Ranges, n_steps: int) -> list[int]:
        parts = self._of_parts(self._ask(methodcaller("sums", ranges, n_steps)))
        sums = np.sum(parts, axis=0).tolist()
        self._check_unchanged(sums[-1])
        return sums

    def _codes(self, most: int, n_cells: int) -> list[NDArray]:
        parts = self._of_parts(self._ask(methodcaller("cells", most, n_cells, self._type)))
        return [np.concatenate(each) for each in zip(*parts, strict=True)]

    def _ask(self, ask: Callable[[HeldTable], Any]) -> Callable[[Container], Any]:
        return partial(_ask_part, self._parts._meta, self.y, self.schema, ask)

    @property
    def _parts(self) -> Any:
        return self.frame.to_native()[[*self.columns, *([self.y] if self.y else [])]]

    def _of_parts(self, function: Callable[[Container], Any], parts: Any = None) -> list:
        """Let workers call a function of each part."""
        import dask

        parts = (self._parts if parts is None else parts).to_delayed()
        return list(dask.compute(*map(dask.delayed(function), parts)))


def _ask_part(
    form: Container, y: str | None, schema: Schema, ask: Callable, part: Container
) -> Any:
    """Ask a part; a type that is not the declared one was decided by entries, and is no matter."""
    others = [name for name in form if part[name].dtype != form[name].dtype]
    part = part.astype(dict.fromkeys(others, object))
    columns = [name for name in form if name != y]
    return ask(HeldTable(part[columns], None if y is None else part[y], schema))


@dataclass(frozen=True)
class CodedRows:
    """Rows of the second stage, made of cells block by block."""

    codes: list[NDArray]
    of_cells: list[Matrix]
    rows: Callable[[Matrix], Matrix]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, and of numbers in each."""
        return len(self.codes[0]), self[:1].shape[1]

    def __getitem__(self, block: slice) -> Matrix:
        parts = zip(self.of_cells, self.codes, strict=True)
        return self.rows(np.column_stack([numbers[codes[block]] for numbers, codes in parts]))


def lazy_frame(X: Container) -> nw.LazyFrame | None:
    """Return a table that an engine holds in narwhals; None for records in memory."""
    in_memory = isinstance(X, list | tuple | np.ndarray) or sparse.issparse(X)
    if in_memory or belongs_to(X, "pandas", "polars") or not importlib.util.find_spec("narwhals"):
        return None
    import narwhals as nw

    frame = nw.from_native(X, pass_through=True)
    return frame if isinstance(frame, nw.LazyFrame) else None


def engine_table(
    X: Container, y: object, schema: Schema, n: int | None, has_y: bool = True
) -> EngineTable | None:
    """Check names and types of a table that an engine holds; None for records in memory."""
    if isinstance(X, EngineTable):
        return X
    frame = lazy_frame(X)
    if frame is None:
        return None
    if n is None:
        raise ValueError(
            "The 'n_samples' parameter must be the number of rows of a table that an engine holds, "
            "as in ClassTables(schema, n_samples=...). Got None: it is public, and says how much "
            "the noise matters."
        )
    check_count("n_samples", n, "ClassTables")
    types = _asked("the columns", frame.collect_schema)
    if has_y and (type(y) is not str or y not in types or y in schema.columns):
        got = f"the column {y!r}" if type(y) is str else type(y).__name__
        raise ValueError(
            "y must be the name of a column of the table that is not declared in 'columns' of the "
            f"Schema. Got {got}."
        )
    declared = {**schema.columns, y: schema.response} if has_y else schema.columns
    if odd := [name for name in map(str, declared) if re.fullmatch(r"\*|\^.*\$", name, re.S)]:
        raise ValueError(
            "The columns of a table that an engine holds must not be named like a pattern, which "
            f"may match others. Got {shorten(odd)}: rename them."
        )
    if missing := [name for name in schema.columns if name not in types]:
        raise ValueError(
            f"The table must have each declared column. Missing are {shorten(missing)}."
        )
    for name, column in declared.items():
        is_read = types[name].is_numeric() or _kind(types[name]) in TYPES
        check_type(f"column {name!r}", column, types[name] if is_read else np.dtype("V"))
    columns = [*map(str, schema.columns)]
    kinds = [_kind(types[name]) for name in columns]  # without categories, which may be private
    label = str(y) if has_y else None
    kind = DaskTable if frame.implementation.is_dask() else EngineTable
    return kind((n, len(columns)), columns, kinds, frame, schema, label, dict(types))


def _kind(dtype: Any) -> str:
    return str(dtype).partition("(")[0]


def _asked(what: str, ask: Callable[[], Any]) -> Any:
    """Ask an engine before anything is spent; its own errors may show values."""
    try:
        with quiet():
            return ask()
    except Exception as error:
        failed = type(error).__name__
    raise ValueError(FAILED.format(what, failed))


def _fetch(frame: nw.LazyFrame) -> dict[str, NDArray]:
    """Compute a frame."""
    if frame.implementation.is_duckdb():
        return frame.to_native().fetchnumpy()  # narwhals would take pyarrow
    collected = frame.collect()
    return {name: collected[name].to_numpy() for name in collected.columns}


def _cell(name: str, dtype: Any, column: Number | Category, most: int) -> nw.Expr:
    """Write the cell of a column, for any entry."""
    import narwhals as nw

    value = nw.col(name)
    if isinstance(column, Number):
        number, starts = value.cast(nw.Float64), _starts(column, most)
        places = list(range(len(starts) + 1))
        inner = _nested(places, lambda some: number >= starts[some[0] - 1])
        return nw.when(number.abs() <= LARGEST).then(inner).otherwise(nw.lit(0))
    keys = [canonical(each) for each in column.values]
    is_text = not (dtype.is_numeric() or _kind(dtype) == "Boolean")
    number = _number_of(value.cast(nw.String)) if is_text else value.cast(nw.Float64)

    def holds(some: list[int]) -> nw.Expr:
        numbers = [keys[place] for place in some if isinstance(keys[place], float)]
        words = [keys[place] for place in some if isinstance(keys[place], str)]
        tests = [*_among(number, numbers), *_among(value.cast(nw.String), words)]
        return reduce(or_, tests)

    others = range(1, len(keys))
    places = [0, *(place for place in others if is_text or isinstance(keys[place], float))]
    return nw.when(~value.is_null()).then(_nested(places, holds)).otherwise(nw.lit(0))


def _steps(name: str, low: float, high: float, n_steps: int) -> nw.Expr:
    """Write how many steps an entry is above `low`, as for a `MeanTarget` in memory."""
    import narwhals as nw

    number, gap = nw.col(name).cast(nw.Float64), min(max(0.0, low), high)
    value = nw.when(number.abs() <= LARGEST).then(number).otherwise(nw.lit(gap))
    # NaN passes neither test, also where an engine takes it for the largest number
    value = nw.when(number * -1 <= -high).then(nw.lit(high)).otherwise(value)
    value = nw.when(number <= low).then(nw.lit(low)).otherwise(value)
    above = (value - low) * steps_of_unit(low, high, n_steps) + 0.5
    return (above - above % 1).cast(nw.Int64)


def _among(value: nw.Expr, some: list) -> list[nw.Expr]:
    """List tests of which one holds for some values: few of them are faster one by one."""
    return [value == each for each in some] if len(some) <= FEW else [value.is_in(some)]


def _nested(places: list[int], holds: Callable[[list[int]], nw.Expr]) -> nw.Expr:
    """Halve the places, so that a row passes few tests; where none holds the first one is left."""
    import narwhals as nw

    if len(places) == 1:
        return nw.lit(places[0])
    low, high = places[: len(places) // 2], places[len(places) // 2 :]
    return nw.when(holds(high)).then(_nested(high, holds)).otherwise(_nested(low, holds))


def _starts(column: Number, most: int) -> list[float]:
    """Return the least double of each cell but the first; whole numbers are rounded to even."""
    edges = column.edges(most)[1:-1]
    if not column.integer:
        return edges.tolist()
    halves = edges - 0.5
    return np.where(np.rint(halves) < edges, np.nextafter(halves, np.inf), halves).tolist()


def _number_of(text: nw.Expr) -> nw.Expr:
    """Read a text as a number; null where it is none, so that no cast fails."""
    import narwhals as nw

    text = text.str.strip_chars()
    # in Java, $ also matches before a line separator at the end
    is_number = text.str.contains(NUMBER) & ~text.str.contains("[^0-9eE.+-]")
    return nw.when(is_number).then(text).otherwise(nw.lit(None, nw.String)).cast(nw.Float64)
