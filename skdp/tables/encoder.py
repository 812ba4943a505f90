"""First steps of released models: entries become released log odds, or declared values."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags

from skdp.core.dataset import belongs_to
from skdp.core.types import Container
from skdp.tables.columns import Number
from skdp.tables.counts import Table
from skdp.tables.schema import Schema
from skdp.tables.values import together

LIMIT = 3.0  # log odds are cut to +-3


class ClassTableEncoder(TransformerMixin, BaseEstimator):
    """Replace each entry by the released log odds of its cell, between -1 and 1.

    A column becomes a number for each class but the first: ``log P(c | cell) / P(c)``, less the
    same of the first class, cut to +-3 and divided by 3. For a Number it is interpolated between
    the middles of the cells. A record is encoded by itself, whatever its entries are. The encoder
    is a part of a release, so `fit` learns nothing.

    Parameters
    ----------
    schema : Schema
        The declared columns.
    log_odds : list of array of shape (n_cells, n_classes)
        Released log odds of each column.
    n_cells : int
        The most cells of a Number.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.tables.columns import Category
    >>> from skdp.tables.encoder import ClassTableEncoder
    >>> from skdp.tables.schema import Schema
    >>> schema = Schema({"smokes": Category(["no", "yes"])}, classes=[0, 1])
    >>> encoder = ClassTableEncoder(schema, [np.array([[0.0, -1.5], [0.0, 0.9]])], n_cells=2)
    >>> encoder.transform([["yes"], ["no"], [None]]).tolist()
    [[0.3], [-0.5], [-0.5]]
    """

    def __init__(self, schema: Schema, log_odds: Sequence[Table], n_cells: int):
        self.schema = schema
        self.log_odds = log_odds
        self.n_cells = n_cells

    def fit(self, X: Container = None, y: Container = None) -> ClassTableEncoder:
        """Do nothing: all of it is released."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.allow_nan = True
        return tags

    @property
    def n_features_in_(self) -> int:
        """The number of declared columns."""
        return len(self.schema.columns)

    @property
    def of_cells(self) -> list[Table]:
        """What the middles of the cells of each column become."""
        return [np.clip(odds[:, 1:] - odds[:, :1], -LIMIT, LIMIT) / LIMIT for odds in self.log_odds]

    def transform(self, X: Container) -> NDArray[np.float64]:
        """Encode records in a frame, an array or a list."""
        read, _ = self.schema.read(X)
        parts: list[NDArray] = []
        for given, column, numbers in zip(
            read, self.schema.columns.values(), self.of_cells, strict=True
        ):
            if isinstance(column, Number):
                unit, middles = column.unit(column.clipped(given)), column.middles(self.n_cells)
                parts += [np.interp(unit, middles, values) for values in numbers.T]
            else:
                parts += list(numbers[column.cells(given)].T)
        return np.column_stack(parts)

    def get_feature_names_out(self, input_features: object = None) -> NDArray:
        """Name the numbers by column, and by class where there are more than two."""
        n = self.log_odds[0].shape[1] - 1
        ends = [f"_{c}" for c in range(1, n + 1)] if n > 1 else [""]
        names = [f"{name}{end}" for name in self.schema.columns for end in ends]
        return np.array(names, dtype=object)


def declared_values(
    X: Container, schema: Schema, names: list, library: str, categories: list
) -> Container:
    """Replace entries by the declared values as which they count: draws have no gap, for example.

    A model of raw columns gets these columns, in this order and library.
    """
    read = dict(zip(schema.columns, schema.read(X)[0], strict=True))
    made = {name: schema.columns[name].clipped(read[name]) for name in names}
    return with_categories(together(made, library), schema, categories)


def with_categories(X: Container, schema: Schema, names: Iterable[object]) -> Container:
    """Give columns of a new frame the type of their declared categories, and no other."""
    for name in names:
        column: Any = schema.columns[name]
        cells = column.cells(X[name])
        if belongs_to(X, "polars"):
            words = [str(value) for value in column.values]
            kept, kind = [words[cell] for cell in cells], sys.modules["polars"].Enum(words)
            X = X.with_columns(type(X[name])(name, kept, kind))
        else:
            X[name] = sys.modules["pandas"].Categorical.from_codes(cells, column.values)
    return X
