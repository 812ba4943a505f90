"""The encoder of released class tables: each column becomes its released log odds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from skdp.core.types import Container
from skdp.tables.columns import Number
from skdp.tables.counts import Table
from skdp.tables.schema import Schema

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

    @property
    def n_features_in_(self) -> int:
        """The number of declared columns."""
        return len(self.schema.columns)

    def transform(self, X: Container) -> NDArray[np.float64]:
        """Encode records in a frame, an array or a list."""
        read, _ = self.schema.read(X)
        parts: list[NDArray] = []
        for given, column, odds in zip(
            read, self.schema.columns.values(), self.log_odds, strict=True
        ):
            numbers = np.clip(odds[:, 1:] - odds[:, :1], -LIMIT, LIMIT) / LIMIT
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
