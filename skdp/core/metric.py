"""How the output depends on the released values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LocalMetric:
    """A metric of the output that holds for small changes of the values only.

    The squared change of the output is about ``v' matrix v`` for a small change v; a vector is a
    diagonal. Whoever learns a basis from it should not believe that a direction hardly matters. A
    metric that holds for changes of any size is a plain array.
    """

    matrix: NDArray[np.float64]
