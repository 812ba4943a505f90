"""The nearest vector of probabilities.

Held, Wolfe and Crowder, "Validation of subgradient optimization", Mathematical Programming 6, 1974.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def project_to_simplex(values: ArrayLike) -> NDArray[np.float64]:
    """Move each row to the nearest vector of probabilities, ``max(row - t, 0)`` of sum one."""
    rows = np.asarray(values, dtype=np.float64)
    rows = rows - rows.max(axis=1, keepdims=True)  # has the same nearest point
    descending = -np.sort(-rows, axis=1)
    shifts = (np.cumsum(descending, axis=1) - 1) / np.arange(1, rows.shape[1] + 1)
    n_positive = np.sum(descending > shifts, axis=1, keepdims=True)
    return np.maximum(rows - np.take_along_axis(shifts, n_positive - 1, axis=1), 0)
