"""Metrics: how much the output depends on the released values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LocalMetric:
    """A metric of the output that holds for small changes of the values only.

    The squared change of the output is about ``v' matrix v`` for a small change v; a vector is a
    diagonal. A code learned from it should not rely on a direction that hardly matters. A
    metric that holds for changes of any size is a plain array.
    """

    matrix: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class KnownMetric:
    """A metric of the output that follows from no records, as that of a function on given points.

    So of any two numbers of an output it says which matters more, and their changes can be
    compared. The numbers of one point lie side by side, one for each of `n_outputs`. Where the
    points `are_alike`, nothing is known of one that is not known of all, unless pilots show it.

    Where public `axes` are given, along which the points vary around their mean, each row for one,
    the numbers of all points are followed by the mean response of each output. A record moves it by
    `moves` at most.
    """

    matrix: NDArray[np.float64]
    n_outputs: int = 1
    are_alike: bool = False
    axes: NDArray[np.float64] | None = None
    moves: NDArray[np.float64] | None = None


OutputMetric: TypeAlias = NDArray[np.float64] | LocalMetric | KnownMetric
"""A plain array holds for changes of any size, and comes from records of the oracle."""
