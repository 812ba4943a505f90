"""Names for the kinds of things that signatures speak of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

# scikit-learn ships no types, and what an estimator has depends on its class, on its parameters and
# on whether it is fitted: `coef_` appears in fit, `predict_proba` with a parameter.
Estimator: TypeAlias = Any

# An array, a sparse matrix, a frame or series of pandas or polars, or a list: see
# skdp.core.dataset. The libraries are optional or have no types, and share no method.
Container: TypeAlias = Any

# Fitted attributes by their names: numbers, arrays, and lists of arrays.
Values: TypeAlias = dict[str, Any]

Matrix: TypeAlias = NDArray[np.float64]  # numbers, as a matrix or a vector
# What scikit-learn calls a random_state.
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
Sample: TypeAlias = Container | tuple[Container, ...]  # X, or the parts of a dataset in order
Labels: TypeAlias = Sequence[str] | None  # names of the entries along an axis, if they are known
AxisLabels: TypeAlias = dict[str, tuple[Labels, Labels]]  # along the first and the last axis
Named: TypeAlias = tuple[Matrix | Values, AxisLabels | None]  # with the names of their entries
Scoring: TypeAlias = str | Callable | None  # as in scikit-learn; None is the estimator's own
Released: TypeAlias = NDArray[np.float64] | int  # a value with noise, or the position of a choice
Decorated = TypeVar("Decorated", bound=Callable)  # whose decorator keeps its type


class ByteSource(Protocol):
    """A source of uniform random bytes; every `numpy.random.Generator` is one."""

    def bytes(self, length: int) -> bytes:
        """Return `length` random bytes."""
        ...
