"""Descriptions, checks, boxes and tables that the shipped oracles share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from skdp.core.checks import LONGEST, check_ranges, floats, shown
from skdp.core.dataset import Dataset, as_series, n_records
from skdp.core.oracle import Oracle
from skdp.core.persons import Persons, with_persons
from skdp.core.plain import as_labels
from skdp.core.types import Container


class ShippedOracle(Oracle):
    """An oracle with a short description that never shows a record."""

    _classes: Any = None
    responses: str = ""  # "labels" or "numbers" where it was told which

    def __init__(self, *facts: str) -> None:
        self.description = f"{type(self).__name__}({', '.join(fact for fact in facts if fact)})"

    def __repr__(self) -> str:
        return self.description

    def _refuse(self, parameter: str, rule: str, got: object) -> NoReturn:
        """Raise the error of a parameter that the oracle cannot use."""
        name = type(self).__name__
        raise ValueError(f"The {parameter!r} parameter of {name} must {rule}. Got {got}.")

    def _set_classes(self, classes: ArrayLike | None) -> str:
        """Keep the labels, refuse fewer than two, and return how many there are, in words."""
        if classes is None:
            return ""
        labels = np.asarray(classes)
        if labels.ndim != 1 or len(labels) < 2 or len(np.unique(labels)) != len(labels):
            self._refuse("classes", "hold two or more different labels", shown(classes))
        self._classes, self.classes_, self.responses = labels, np.sort(labels), "labels"
        return f"n_classes={len(labels)}"

    def _checked_table(self, X: Container) -> Container:
        """Return a public table with rows that can be picked; only lists are copied."""
        X = as_labels(X) if isinstance(X, list | tuple) else as_series(X)
        if sparse.issparse(X):
            X = X.tocsr()
        if n_records(X) < 1:
            self._refuse("X", "hold at least one record", "none")
        return X


def as_persons(X: Container, y: Container, groups: Container) -> Persons | None:
    """Return the persons of a public table; None where no groups are given."""
    return None if groups is None else Persons.of(with_persons(Dataset(X, y, groups=groups)))


class Box(NamedTuple):
    """The ranges of features, and their names if they have any."""

    bounds: NDArray[np.float64]
    names: list[str] | None = None

    @classmethod
    def of(cls, bounds: object, oracle: str) -> Box:
        """Read pairs (low, high), or one, or a dict of them by name, which yields frames."""
        if not isinstance(bounds, Mapping):
            numbers = floats(bounds)
            is_pair = numbers is not None and numbers.shape == (2,)
            return cls(check_ranges("bounds", [bounds] if is_pair else bounds, oracle))
        return cls(check_ranges("bounds", list(bounds.values()), oracle), list(bounds))

    def __str__(self) -> str:
        """Say how many features there are, and their ranges where these are few."""
        ranges = [f"({low:.12g}, {high:.12g})" for low, high in self.bounds]
        named = [f"{name!r}: {each}" for name, each in zip(self.names or [], ranges, strict=False)]
        bounds = f"{{{', '.join(named)}}}" if named else f"[{', '.join(ranges)}]"
        return f"n_features={len(ranges)}{f', bounds={bounds}' * (len(bounds) <= LONGEST)}"

    def name_columns(self, records: NDArray[np.float64]) -> Container:
        """Return a frame where the columns have names."""
        if self.names is None:
            return records
        import pandas as pd

        return pd.DataFrame(records, columns=self.names, copy=False)
