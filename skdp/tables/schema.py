"""What must be public of a table: its declared columns, and the labels or the range of y."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from skdp.core.checks import check_kind, check_rules, shown
from skdp.core.dtypes import DType, kind_of
from skdp.core.types import Container
from skdp.tables.columns import Category, Number
from skdp.tables.values import can_hold, canonical, columns_of_records, entries

Range = Number | tuple[float, float]


@dataclass(frozen=True, eq=False)
class Schema:
    """The ranges and values of the columns of a table, and what is to be predicted.

    It holds all that is assumed to be public of the entries. No record is refused for its entries:
    one that fits no range or value counts as one that does.

    Parameters
    ----------
    columns : dict of Number and Category, by name
        Columns of a frame are found by name, those of an array by place.
    classes : list or None, default=None
        The labels, for classification. An undeclared label counts as the first.
    y_range : Number or (low, high) or None, default=None
        The range of the response, for regression.

    Warnings
    --------
    A schema that is read off the private data voids the promise: a bound that is the largest
    private value tells this value, and a value that was seen in the data tells that someone has it.
    Write what a codebook, a form or common sense says.

    Examples
    --------
    >>> from skdp import Category, Number, Schema
    >>> age, gain = Number(17, 90, integer=True), Number(0, 99_999, log=True)
    >>> columns = {"age": age, "gain": gain, "sex": Category(["female", "male"])}
    >>> print(Schema(columns, classes=[0, 1]))
    Schema of 3 columns, which must not be read off the private data
      age   whole numbers from 17 to 90
      gain  numbers from 0 to 99999, log
      sex   2 values ['female', 'male']
      y     2 values [0, 1]
    """

    columns: Mapping[object, Number | Category]
    classes: Sequence | None = None
    y_range: Range | None = None

    def __post_init__(self) -> None:
        check_kind("columns", self.columns, "Schema", Mapping, "a dict of columns by name")
        check_rules("Schema", columns=(self.columns, len(self.columns) > 0, "hold a column"))
        for name, column in self.columns.items():
            rule = f"a dict that has a Number or a Category for {shown(name)}"
            check_kind("columns", column, "Schema", Number | Category, rule)
        if (self.classes is None) == (self.y_range is None):
            raise ValueError("A Schema must have either 'classes' or a 'y_range'.")
        object.__setattr__(self, "columns", dict(self.columns))
        _ = self.response  # which checks it

    @property
    def response(self) -> Number | Category:
        """The column of what is to be predicted."""
        if isinstance(self.y_range, Number):
            return self.y_range
        if self.y_range is not None:
            return Number(*self.y_range)
        labels = Category(self.classes)  # type: ignore[arg-type] # one of the two is there
        check_rules("Schema", classes=(self.classes, len(labels.values) > 1, "hold two labels"))
        return labels

    @classmethod
    def like(
        cls, X: Container, classes: Sequence | None = None, y_range: Range | None = None
    ) -> Self:
        """Read a schema off public or made-up records; never off the private ones.

        Parameters
        ----------
        X : frame of pandas or polars, or array
            The records. A column of numbers gets their range, any other one its values, sorted.
        classes, y_range : list, Number, tuple or None
            As above.

        Returns
        -------
        Schema
            With names 0, 1, ... for the columns of an array.
        """
        names = list(getattr(X, "columns", range(np.shape(X)[-1])))
        read, _ = columns_of_records(X, names)
        return cls(dict(zip(names, map(_column_like, read), strict=True)), classes, y_range)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple:
        return (*self.columns.items(), self.response)

    def __str__(self) -> str:
        said = [*((str(name), each) for name, each in self.columns.items()), ("y", self.response)]
        width = max(len(name) for name, _ in said) + 2
        head = f"Schema of {len(self.columns)} columns, which must not be read off the private data"
        return "\n".join([head, *(f"  {name:{width}}{column}" for name, column in said)])

    def read(self, X: Container, y: Container = None) -> tuple[list[Container], int]:
        """Return the declared columns, then the response if it is given, and the number of records.

        Errors depend on names, shapes and declared types, never on an entry.
        """
        columns, n = columns_of_records(X, list(self.columns))
        declared = [(f"column {shown(name)}", column) for name, column in self.columns.items()]
        if y is not None:
            if not (isinstance(y, list) or len(getattr(y, "shape", ())) == 1) or len(y) != n:
                raise ValueError(
                    "y must be an array, a series or a list of one response for each of the "
                    f"{n} records. Got {shown(y)}."
                )
            columns, declared = [*columns, y], [*declared, ("y", self.response)]
        for given, (name, column) in zip(columns, declared, strict=True):
            check_type(name, column, getattr(given, "dtype", None))
        return columns, n


def check_type(name: str, column: Number | Category, dtype: DType) -> None:
    """Refuse a type that cannot hold what is declared of a column."""
    is_number = isinstance(column, Number)
    if dtype is not None and not can_hold(dtype, is_number, column.has_numbers):
        wanted = "numbers" if is_number else "the declared values"
        raise TypeError(
            f"The type of {name} cannot hold what the Schema declares, {column}. "
            f"Convert it to a type of {wanted}."
        )


def _column_like(column: Container) -> Number | Category:
    values = {canonical(entry): entry for entry in entries(column)}
    values.pop(None, None)
    found = [value for value in values if isinstance(value, float)]
    if kind_of(getattr(column, "dtype", None)) == "b" or not 1 < len(found) == len(values):
        return Category([values[key] for key in sorted(values, key=str)])
    return Number(min(found), max(found), integer=all(value.is_integer() for value in found))
