"""Prepare pilot pairs for learning a code: units, rounding, and changes too rare to be seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdp.core.metric import KnownMetric, LocalMetric, OutputMetric
from skdp.core.types import Matrix

MAX_DENSE = 2000  # of more values no matrix of all by all is made
MAX_RANK = 100  # rows of a code

# Of the largest eigenvalue of the metric: directions said to matter less are not believed. What is
# said of every change is believed further than what is said of small ones.
_LEAST_METRIC = 1e-6
_LEAST_LOCAL_METRIC = 1e-4
_LEAST_KNOWN_CHANGE = 0.03  # of the largest change of a number, where a metric says what matters
_FEW = 6  # times the mean change: beyond it the largest one is no usual one
_RARE = 3  # pairs that change a number
_ROUNDING = 1e-9  # of a number: what differs by less does not differ
_HEEDED = 1e-6  # of the output's change: less may be the rounding of single precision
_MATTERS = 0.1  # of a deviation: by so much no rounding changes what is learned from records


def center_of(values: Matrix) -> Matrix:
    """Return the means of pilot values; of equal ones their number, which has no rounding."""
    return np.where((values == values[0]).all(axis=0), values[0], values.mean(axis=0))


def center_of_alike(values: Matrix, n_outputs: int) -> Matrix:
    """Return the means of pilot values, drawn to the mean of all points by James and Stein.

    The mean of m pilots has an error of their variance over m. It is drawn by as much as that is of
    its squared distance to the mean of all points: else it outweighs a release that tells little.
    """
    points = values.reshape(len(values), -1, n_outputs)
    level = points.mean(axis=1, keepdims=True)
    away, error = (points - level).mean(axis=0), (points - level).var(axis=0).sum() / len(values)
    distance = np.sum(away**2)
    kept = max(0.0, 1 - error / distance) if distance > 0 else 0.0
    return np.ravel(level.mean(axis=0) + kept * away)


def unheeded(values: Matrix, differences: Matrix, metric: OutputMetric | None) -> NDArray[np.bool_]:
    """Return which numbers vary among pilots by too little to change the output."""
    matrix, _ = matrix_of(metric, values.shape[1])
    if matrix is None or isinstance(metric, KnownMetric):
        return np.zeros(values.shape[1], dtype=bool)
    with np.errstate(all="ignore"):  # what is not finite is tested below
        changes = np.concatenate([values - center_of(values), differences])
        size = np.abs(changes).max(axis=0)
        by = changes * matrix if matrix.ndim == 1 else changes @ matrix
        output = np.sqrt(np.sum(changes * by, axis=1).max())
        heeded = size * np.sqrt(_diagonal_of(matrix)) > _HEEDED * output
        return (size > 0) & (output > 0) & ~heeded


def without_rounding(
    values: Matrix,
    differences: Matrix,
    metric: OutputMetric | None,
    shaken: Callable[[], tuple[Matrix, Matrix]],
) -> tuple[Matrix, Matrix]:
    """Return pilots in which a number that differs by its rounding alone is the same in all.

    Such as the coefficient of a column that is constant in the oracle's records: it would be read
    in units of its rounding. A number is rounding where the output does not heed it, and the last
    bits of the records matter to it as the records do: `shaken` evaluates some with other bits.
    """
    rounded = unheeded(values, differences, metric)
    if not rounded.any():
        return values, differences
    some, again = shaken()
    with np.errstate(all="ignore"):  # infinite pilots differ by NaN, which matters to none
        by_rounding, deviations = np.abs(again - some), np.abs(some - np.median(values, axis=0))
    matter = (by_rounding > 0) & (by_rounding >= _MATTERS * deviations)
    rounded &= 2 * np.count_nonzero(matter, axis=0) > len(some)
    return np.where(rounded, center_of(values), values), np.where(rounded, 0.0, differences)


def seldom_change(differences: Matrix) -> NDArray[np.bool_]:
    """Return which numbers fewer pilot pairs change than tell how often they change."""
    return np.count_nonzero(differences, axis=0) < _RARE


def with_rare_changes(values: Matrix, differences: Matrix) -> Matrix:
    """Return pilot differences in which no number that varies seems to be one that never changes.

    A number that varies, and that fewer than `_RARE` of the m pairs change, such as a median of
    rounded numbers, changes by rare jumps: with probability .05 up to 3 / m of all pairs hold one
    (the rule of three). So three pilots are said to change it, by its standard deviation. Else a
    jump in a pair that calibrates could be worth a thousand of the usual norms.
    """
    with np.errstate(over="ignore"):  # an infinite spread is tested below
        spread = values.std(axis=0)
    varies = np.isfinite(spread) & (spread > _ROUNDING * np.abs(values).max(axis=0))
    rare = np.flatnonzero(varies & seldom_change(differences))
    if not len(rare):
        return differences
    differences = differences.copy()
    for step in range(_RARE):  # not all in the same pairs, and each in more than one fold
        rows = (_RARE * np.arange(len(rare)) + step) % len(values)
        seen = differences[rows, rare]
        differences[rows, rare] = np.where(seen == 0, spread[rare], seen)
    return differences


def matrix_of(metric: OutputMetric | None, d: int) -> tuple[Matrix | None, bool]:
    """Return the matrix of a metric of d values, or its diagonal, and whether it is local."""
    if metric is None:
        return None, False
    matrix = np.asarray(
        metric.matrix if isinstance(metric, KnownMetric | LocalMetric) else metric, dtype=np.float64
    )
    if matrix.shape not in ((d,), (d, d)) or not np.isfinite(matrix).all():
        raise ValueError(
            f"The metric of the output must be a finite array of shape ({d},) or ({d}, {d}). "
            f"Got shape {matrix.shape}."
        )
    return matrix if matrix.any() else None, isinstance(metric, LocalMetric)


def least_changes(differences: Matrix, metric: OutputMetric | None) -> Matrix:
    """Return which change of each number is to be feared at least; 0 where pilots say enough.

    Where a function is all but 0 on the pilots' datasets, as a density is beyond their records, one
    record there changes it far more than any of theirs. It shows where a few changes are far larger
    than the rest: these matter at least as 3 % of the largest change of the output.
    """
    if not isinstance(metric, KnownMetric) or metric.are_alike:
        return np.zeros(differences.shape[1])
    matters = np.sqrt(_diagonal_of(metric.matrix))
    sizes = np.abs(differences).mean(axis=0)
    by_few = np.abs(differences).max(axis=0) > min(_FEW, len(differences) / 2) * sizes
    largest = (sizes * matters).reshape(-1, metric.n_outputs).max(axis=0)
    least = np.tile(_LEAST_KNOWN_CHANGE * largest, len(sizes) // metric.n_outputs) / matters
    return np.where(by_few & (sizes < least), least, 0)


def with_least_changes(differences: Matrix, least: Matrix) -> Matrix:
    """Add the least change of each number, with a random sign where pilots show none."""
    low = np.flatnonzero(least)
    if not len(low):
        return differences
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(differences), len(low)))
    differences = differences.copy()
    differences[:, low] += signs * least[low]
    return differences


def least_share(local: bool) -> float:
    """Return below which share of the largest eigenvalue a metric is not believed."""
    return _LEAST_LOCAL_METRIC if local else _LEAST_METRIC


def _diagonal_of(metric: Matrix) -> Matrix:
    return metric if metric.ndim == 1 else np.diag(metric)


def in_units(differences: Matrix, metric: Matrix | None, least: float) -> tuple[Matrix, Matrix]:
    """Give each value the unit of its mean change, as units mean nothing, and floor the metric."""
    units = np.abs(differences).mean(axis=0)
    units[units == 0] = np.median(units[units > 0])
    if metric is None:
        metric = np.ones(len(units))
    if metric.ndim == 1:
        metric = metric * units**2
        return units, np.maximum(metric, least * metric.max())
    metric = units[:, None] * metric * units
    diagonal = np.diag_indices(len(units))
    metric[diagonal] = np.maximum(metric[diagonal], least * metric[diagonal].max())
    return units, metric


def root_of(metric: Matrix, least: float) -> Matrix:
    """Return R with R R' the metric, its columns along the axes of the metric."""
    if metric.ndim == 1:
        return np.diag(np.sqrt(metric))
    values, vectors = np.linalg.eigh(metric)
    return vectors * np.sqrt(np.maximum(values, least * values[-1]))
