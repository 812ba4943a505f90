"""The prior of the value, from pilot pairs: its mean and covariance before private data are seen.

The values f(D) of pilot datasets have a mean and a covariance S, and the differences v of pairs a
second moment A. The private records may be unlike the oracle's. If a share rho of n records is
unlike in one common way, the value moves by up to rho n times the influence of one record, whose
covariance is A / 2, as a pair holds two. The prior covariance therefore is

    S + rho^2 n^2 A / 2.

Influences that are local or chaotic, as those on a tree or a network, do not add up in that way.
So where a metric says what the value means, the factor of A is at most rho^2 times the one that
gives the shift `_MOST_SHIFT` times the mean square of the value. A change that no pilot shows is
not capped.

With few pilots S and A are uncertain off their diagonal, and are drawn towards it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skdp.codes.pilots import in_units, least_share, root_of
from skdp.core.types import Matrix

# The largest variance of a shift by all records, relative to the mean square of the value: twice
# that of the way to its opposite. Measured: less of it hurts the means of standardized columns.
_MOST_SHIFT = 8.0


class OutputUnits(NamedTuple):
    """The linear map R of values to units in which a squared length is a change of the output."""

    to: Matrix  # R', so that ``v @ to`` maps rows, to coordinates along the axes of the metric
    back: Matrix  # its inverse
    scale: Matrix  # the diagonal of R before the rotation

    @classmethod
    def of(cls, differences: Matrix, metric: Matrix | None, local: bool) -> OutputUnits:
        """Floor the metric in units of the mean changes of the values, and take its root."""
        least = least_share(local)
        units, floored = in_units(differences, metric, least)
        diagonal = floored if floored.ndim == 1 else np.diag(floored)
        root = root_of(floored, least)
        squares = np.sum(root**2, axis=0)
        return cls(root / units[:, None], (root / squares).T * units, np.sqrt(diagonal) / units)


class Prior(NamedTuple):
    """Mean and covariance of a value, and the second moment of a change by one record."""

    mean: Matrix
    covariance: Matrix
    change: Matrix

    @classmethod
    def of(
        cls,
        values: Matrix,
        changes: Matrix,
        reach: float,  # number of records that may be unlike
        unseen: Matrix | float = 0.0,  # second moment of changes that these do not show
        additive: float = 1.0,  # share of a change that adds up over records
    ) -> Prior:
        """Estimate from rows in output units."""
        m = len(values)
        mean = values.mean(axis=0)
        # of a further value around this mean, (1 + 1/m) times S
        spread = (values - mean) * np.sqrt((1 + 1 / m) / (m - 1))
        seen = shrunk(changes.T @ changes / len(changes), len(changes))
        shift = reach**2 / 2 * (additive * seen + unseen)
        return cls(mean, shrunk(spread.T @ spread, m) + shift, seen + unseen)


def additive_share(n_samples: int, values: Matrix, changes: Matrix) -> float:
    """Return the share of a change that adds up over records, given rows in output units."""
    value, change = (float(np.mean(np.sum(rows**2, axis=1))) for rows in (values, changes))
    return min(1.0, 2 * _MOST_SHIFT * value / (n_samples**2 * change)) if change > 0 else 1.0


def shrunk(moments: Matrix, n_rows: int) -> Matrix:
    """Draw a matrix of moments towards its diagonal, the more the fewer the rows."""
    kept = n_rows / (n_rows + len(moments))
    return kept * moments + (1 - kept) * np.diag(np.diag(moments))
