"""Canonical forms: the public fit gives components a sign, and clusters an order."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from skdp.core.types import Estimator, Values


@dataclass(frozen=True)
class SignedRows:
    """Give rows order and signs of public ones; `others` move along."""

    reference: str
    others: tuple[str, ...] = ()

    def __call__(self, values: Values, public_fit: Estimator) -> Values:
        """Return the values, aligned."""
        rows, public = values[self.reference], getattr(public_fit, self.reference)
        cosines = _unit_rows(rows) @ _unit_rows(public).T
        order = _match(-np.abs(cosines))
        signs = np.sign(cosines[order, np.arange(len(order))]).astype(rows.dtype)
        signs[signs == 0] = 1
        moved = _moved(values, (self.reference, *self.others), order)
        return moved | {self.reference: moved[self.reference] * signs[:, None]}


@dataclass(frozen=True)
class NearestRows:
    """Give rows the order of the nearest public ones; `others` move along."""

    reference: str
    others: tuple[str, ...] = ()

    def __call__(self, values: Values, public_fit: Estimator) -> Values:
        """Return the values, aligned."""
        rows, public = values[self.reference], getattr(public_fit, self.reference)
        order = _match(cdist(rows, public, metric="sqeuclidean"))
        return _moved(values, (self.reference, *self.others), order)


def _moved(values: Values, names: tuple[str, ...], order: NDArray) -> Values:
    present = values.keys() & set(names)
    return values | {name: np.asarray(values[name])[order] for name in present}


def _unit_rows(rows: NDArray) -> NDArray:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def _match(costs: NDArray) -> NDArray:
    """Return, for each row of the public fit, the row that it is matched with."""
    rows, columns = linear_sum_assignment(costs)
    return rows[np.argsort(columns)]
