"""Origin and unit of each column: sums of records around a distant origin lose digits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ROUND_UP = 1 + 2.0**-48
"""Covers the rounding errors of a short formula, so that no bound is too small by one of them."""

TINY = float(np.finfo(np.float64).tiny)
"""Below it errors are no longer relative."""

SMALL = 2.0**-485
"""Squares of smaller numbers lose digits, and those of numbers beyond its inverse may be infinite:
here, and in the estimators."""

EXACT = 2.0
"""Standardized values up to here are exact differences, so that equal ones are of equal records."""


class Records(NamedTuple):
    """What the closed forms need to know about the records before they see a pair.

    Parameters
    ----------
    classes : ndarray or None
        The sorted labels, of a classifier.
    center, scale : ndarray of shape (n_features,)
        Public origin and unit of each column: moments around a distant origin lose digits.
    response : (float, float), default=(0, 1)
        The same of the response of a regression.
    """

    classes: NDArray | None
    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    response: tuple[float, float] = (0.0, 1.0)

    def standardize(self, X: NDArray) -> NDArray[np.float64]:
        """Return the records relative to the origin, in the units."""
        return _standardized(X, self.center, self.scale)

    def standardize_response(self, y: NDArray) -> NDArray[np.float64]:
        """Return the response relative to its origin, in its unit."""
        return _standardized(y, *self.response)

    def indicators(self, y: NDArray) -> NDArray[np.float64]:
        """Return one column of 0 and 1 per class, NaN for a label that is none of them."""
        found = (y[:, None] == self.classes).astype(np.float64)
        return np.where(found.any(axis=1, keepdims=True), found, np.nan)


def _standardized(X: NDArray, center: object, scale: object) -> NDArray[np.float64]:
    """Return (X - center) / scale, NaN where a square of either would lose digits."""
    away = X - center
    Z = away / scale
    sizes = np.abs(away), np.abs(Z)
    squared = (np.minimum(*sizes) >= SMALL) & (np.maximum(*sizes) <= 1 / SMALL)
    return np.where(squared | (away == 0), Z, np.nan)


def robust_units(X: NDArray, has_origin: bool) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return origin and unit of each column, which a minority of outliers does not move.

    A unit is a power of two, and the origin is moved only where the column lies far from zero, so
    that standardizing the records near it is exact.
    """
    X = np.asarray(X, dtype=np.float64)
    median = np.median(X, axis=0) * has_origin
    away = np.abs(X - median)
    spread = np.nanmedian(np.where(away > 0, away, np.nan), axis=0)
    scale = np.ldexp(1.0, np.frexp(np.where(spread > 0, spread, 1.0))[1])
    is_far = np.abs(median) > 2 * EXACT * scale
    return np.where(is_far, median, 0.0), scale
