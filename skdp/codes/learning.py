"""Learn a public basis from pilot pairs: in which coordinates noise does the least harm.

Let T be any invertible matrix that does not depend on private data. Measuring T (f(D) - f(D')),
adding noise to T f(D) and going back by T^-1 promises the same for every T, since going back is
post-processing. What T changes is the error. All that is learned here comes from public pairs that
calibrate nothing.

The Lp norm of the mechanism (p = 1 for Laplace, 2 for Gaussian) is calibrated to a quantile of
the norms of T v over pairs, v = f(D) - f(D'). With z = R v such that the squared change of the
output is the squared length of z, Q orthogonal and ``T = diag(1 / w) Q' R``, noise on the
coordinates changes the output by a squared length that is proportional to

    (typical norm of T v)^2 sum_j w_j^2,    about (sum_j (a_j / w_j)^p)^(2/p) sum_j w_j^2,

where a_j = (mean of abs(j-th coordinate of Q' z)^p)^(1/p). Setting the derivative to zero gives
w_j^(p+2) proportional to a_j^p: the cube root of a_j for Laplace, the square root for Gaussian.

Where a rotation is learned, a_j is taken over coordinates of pairs that did not learn it: with
fewer pilot pairs than values the directions of their span would otherwise look like all there is.
And the kinds of basis are compared on pairs that did not learn the weights.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from skdp.core.basis import compact, reflect
from skdp.core.code import KINDS, PublicCode
from skdp.core.geometry import Geometry, MechanismType
from skdp.core.metric import KnownMetric, LocalMetric, OutputMetric
from skdp.core.types import Matrix

# Beyond this many values a predictive basis is low rank plus diagonal.
MAX_DENSE = 2000
MAX_RANK = 100
# Beyond this many values "auto" does not try it: the reflectors would fill gigabytes.
MAX_LOW_RANK = 100_000

# Of the largest eigenvalue of the metric: directions said to matter less are not believed. What is
# said of every change is believed further than what is said of small ones.
_LEAST_METRIC = 1e-6
_LEAST_LOCAL_METRIC = 1e-4
_LEAST_CHANGE = 1e-3  # of the largest a_j: coordinates said to change less are not believed
_LEAST_KNOWN_CHANGE = 0.03  # of the largest change of a number, where a metric says what matters
_FEW = 6  # times the mean change: beyond it the largest one is no usual one
_RARE = 3  # pairs that change a number
_ROUNDING = 1e-9  # of a number: what differs by less does not differ
_HEEDED = 1e-6  # of the output's change: less may be the rounding of single precision
_MATTERS = 0.1  # of a deviation: by so much no rounding changes what is learned from records
_N_FOLDS = 5
_LEVEL = 0.95  # of the norms that are compared, as a calibration at gamma = .05 would


class Learned(NamedTuple):
    """A basis, and the squared error of the output that it makes us expect, up to a constant.

    That is the square of the .95 quantile of the norms of pilot differences, times the squared
    output error of unit noise on each coordinate.
    """

    basis: PublicCode
    error: float


def center_of(values: Matrix) -> Matrix:
    """Return the means of pilot values; of a number that is the same in all of them, that number.

    The mean of equal numbers need not be the number, and its rounding would pass for a deviation.
    """
    return np.where((values == values[0]).all(axis=0), values[0], values.mean(axis=0))


def unheeded(values: Matrix, differences: Matrix, metric: OutputMetric | None) -> NDArray[np.bool_]:
    """Return which numbers vary in pilots, and by so little that the output does not heed it."""
    if metric is None or isinstance(metric, KnownMetric):
        return np.zeros(values.shape[1], dtype=bool)
    matrix = metric.matrix if isinstance(metric, LocalMetric) else metric
    with np.errstate(all="ignore"):
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
    in units of its rounding, and so almost as it is where the column varies in private ones. What
    is small need not be rounding, for units are anything. But rounding it is where the output does
    not heed it, and where the last bits of the records matter to it as the records do. `shaken`
    evaluates some pilots, and the same with other last bits.
    """
    rounded = unheeded(values, differences, metric)
    if not rounded.any():
        return values, differences
    some, again = shaken()
    with np.errstate(all="ignore"):
        by_rounding, deviations = np.abs(again - some), np.abs(some - np.median(values, axis=0))
    matter = (by_rounding > 0) & (by_rounding >= _MATTERS * deviations)
    rounded &= 2 * np.count_nonzero(matter, axis=0) > len(some)
    return np.where(rounded, center_of(values), values), np.where(rounded, 0.0, differences)


def seldom_change(differences: Matrix) -> NDArray[np.bool_]:
    """Return which numbers fewer pilot pairs change than tell how often they change."""
    return np.count_nonzero(differences, axis=0) < _RARE


def with_rare_changes(values: Matrix, differences: Matrix) -> Matrix:
    """Return pilot differences in which no number that varies seems to be one that never changes.

    A number that differs between pilots, and that fewer than `_RARE` of the m pairs change, such as
    a median of rounded numbers, changes by jumps that are too rare to be seen: with probability .05
    up to 3 / m of all pairs hold one (the rule of three). So three of the pilots are said to change
    it, by its standard deviation. Otherwise its scale would be made up, and a jump in one of the
    pairs that calibrate could be worth a thousand of their usual norms.
    """
    if len(values) < _RARE:
        return differences
    with np.errstate(over="ignore"):
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


def with_learned_basis(
    mechanism: MechanismType, differences: Matrix, metric: OutputMetric | None = None
) -> MechanismType:
    """Return a mechanism in the basis that it asks for, learned from pilot differences."""
    basis = learn_basis(mechanism.basis, differences, metric, mechanism.order)
    return mechanism.with_geometry(Geometry(mechanism.order, basis))


def learn_basis(
    kind: str, differences: Matrix, metric: OutputMetric | None, order: int
) -> PublicCode:
    """Learn a basis from the differences of pilot pairs.

    "auto" takes the kind with the least expected squared error of the output; beyond 100,000 values
    it does not consider "predictive". Where all differences are zero, or there are none, and for a
    single value the answer is the identity. The squared change of the output is ``v' metric v``; a
    vector is a diagonal, None the identity. A `LocalMetric` is believed less far. `order` is p of
    the norm that the mechanism is calibrated to.
    """
    differences, matrix, local = check_pilots(differences, metric)
    differences = with_least_changes(differences, least_changes(differences, metric))
    if differences.shape[1] == 1 or not differences.any():
        return PublicCode("identity", len(differences))
    # The size of T does not matter, so this only keeps squares from over- and underflow.
    differences = differences / np.abs(differences).max()
    kinds = [kind] if kind != "auto" else list(LEARNERS)
    if kind == "auto" and differences.shape[1] > MAX_LOW_RANK:
        kinds.remove("predictive")
    learned = []
    for each in kinds:
        try:
            with np.errstate(all="ignore"):
                learned.append(LEARNERS[each](differences, matrix, order, local))
        except ValueError:  # few pilot pairs of many values give axes that are singular
            if kind != "auto":
                raise
    return min(learned, key=_error_of).basis


def check_pilots(
    differences: Matrix, metric: OutputMetric | None
) -> tuple[Matrix, Matrix | None, bool]:
    """Return one finite row per pilot pair, a metric of such rows, and whether it is local."""
    local = isinstance(metric, LocalMetric)
    differences = np.asarray(differences, dtype=np.float64)
    if differences.ndim != 2 or not np.isfinite(differences).all():
        raise ValueError(
            "The pilot differences must be a finite array of shape (n_pilot_pairs, d). "
            f"Got shape {differences.shape}."
        )
    if metric is None:
        return differences, None, False
    d = differences.shape[1]
    given = metric.matrix if isinstance(metric, LocalMetric | KnownMetric) else metric
    matrix = np.asarray(given, dtype=np.float64)
    if matrix.shape not in ((d,), (d, d)) or not np.isfinite(matrix).all():
        raise ValueError(
            f"The metric of the output must be a finite array of shape ({d},) or ({d}, {d}). "
            f"Got shape {matrix.shape}."
        )
    return differences, matrix if matrix.any() else None, local


def least_changes(differences: Matrix, metric: OutputMetric | None) -> Matrix:
    """Return which change of each number is to be feared at least; 0 where pilots say enough.

    Where a function is all but 0 on the pilots' datasets, as a density is beyond their records, one
    record there changes it by many orders of magnitude more than any of theirs. It shows in changes
    of which a few are far larger than the rest. Where a metric says what matters, each number that
    changes in such a way is said to change by what matters 3 % of the largest change of its output.
    """
    if not isinstance(metric, KnownMetric):
        return np.zeros(differences.shape[1])
    matters = np.sqrt(_diagonal_of(metric.matrix))
    sizes = np.abs(differences).mean(axis=0)
    by_few = np.abs(differences).max(axis=0) > min(_FEW, len(differences) / 2) * sizes
    largest = (sizes * matters).reshape(-1, metric.n_outputs).max(axis=0)
    least = np.tile(_LEAST_KNOWN_CHANGE * largest, len(sizes) // metric.n_outputs) / matters
    return np.where(by_few & (sizes < least), least, 0)


def with_least_changes(differences: Matrix, least: Matrix) -> Matrix:
    """Add what is to be feared at least, with random signs: nothing is known of two together."""
    low = np.flatnonzero(least)
    if not len(low):
        return differences
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(differences), len(low)))
    differences = differences.copy()
    differences[:, low] += signs * least[low]
    return differences


def _identity(differences: Matrix, metric: Matrix | None, order: int, local: bool) -> Learned:
    """Take the values as they are."""
    d = differences.shape[1]
    spread = d if metric is None else _diagonal_of(metric).sum()
    error = _expected_error(differences, lambda rows, order: np.ones(d), order) * spread / d
    return Learned(PublicCode("identity", len(differences)), error)


def _diagonal(differences: Matrix, metric: Matrix | None, order: int, local: bool) -> Learned:
    """Give each value a scale of its own; of the metric only the diagonal is used."""
    units, metric = in_units(differences, metric, least_share(local))
    scale = np.sqrt(_diagonal_of(metric)) / units
    coordinates = differences * scale
    weights = _weights(coordinates, order)
    basis = PublicCode("diagonal", len(differences), encoder=scale / weights)
    return Learned(basis, _expected_error(coordinates, _weights, order))


def _predictive(differences: Matrix, metric: Matrix | None, order: int, local: bool) -> Learned:
    """Rotate to the principal axes of the output's change, and scale each.

    Beyond `MAX_DENSE` values only the leading axes are rotated, and the metric is taken for a
    diagonal.
    """
    n_pilot_pairs, d = differences.shape
    least = least_share(local)
    units, metric = in_units(differences, metric, least)
    if d > MAX_DENSE:
        scale = np.sqrt(_diagonal_of(metric)) / units
        z = differences * scale
        coordinates = _cross_fit(z, _leading_axes, _reflect)
        weights = _weights(coordinates, order)
        basis = PublicCode(
            "predictive", n_pilot_pairs, encoder=scale, reflectors=_leading_axes(z), weights=weights
        )
        return Learned(basis, _expected_error(coordinates, _weights, order))
    root = root_of(metric, least)
    z = differences / units @ root
    finders = [_principal_axes] if local else [_shrunk_axes]
    if n_pilot_pairs < d and not local:
        finders.append(_own_axes)
    return min((_rotated(z, find, root.T / units, order) for find in finders), key=_error_of)


def _rotated(z: Matrix, find_axes: Callable[[Matrix], Matrix], to_z: Matrix, order: int) -> Learned:
    """Rotate to axes that are found in the changes z, and scale each."""
    coordinates = _cross_fit(z, find_axes, np.matmul)
    matrix = (find_axes(z) / _weights(coordinates, order)).T @ to_z
    basis = PublicCode("predictive", len(z), encoder=matrix)
    return Learned(basis, _expected_error(coordinates, _weights, order))


LEARNERS: dict[str, Callable[[Matrix, Matrix | None, int, bool], Learned]] = dict(
    zip(KINDS, (_identity, _diagonal, _predictive), strict=True)
)


def least_share(local: bool) -> float:
    """Return below which share of the largest eigenvalue a metric is not believed."""
    return _LEAST_LOCAL_METRIC if local else _LEAST_METRIC


def _error_of(learned: Learned) -> float:
    return learned.error


def _diagonal_of(metric: Matrix) -> Matrix:
    return metric if metric.ndim == 1 else np.diag(metric)


def in_units(differences: Matrix, metric: Matrix | None, least: float) -> tuple[Matrix, Matrix]:
    """Give each value the unit of its own mean change, and floor the metric in these units.

    Then nothing that is learned depends on the units in which the values came.
    """
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


def _principal_axes(z: Matrix) -> Matrix:
    return np.linalg.eigh(z.T @ z)[1]


def _shrunk_axes(z: Matrix) -> Matrix:
    """Principal axes of second moments shrunk to their diagonal, the more the fewer the rows."""
    n_rows, d = z.shape
    moments = z.T @ z
    return np.linalg.eigh(n_rows * moments + d * np.diag(np.diag(moments)))[1]


def _own_axes(z: Matrix) -> Matrix:
    return np.eye(z.shape[1])


def _leading_axes(z: Matrix) -> Matrix:
    """Reflectors of an orthogonal matrix whose first columns are the leading axes."""
    axes = linalg.svd(z, full_matrices=False)[2][:MAX_RANK].T
    reflectors = np.tril(linalg.qr(axes, mode="raw")[0][0], -1)
    reflectors[np.diag_indices(axes.shape[1])] = 1.0
    return reflectors


def _reflect(z: Matrix, reflectors: Matrix) -> Matrix:
    block = compact(reflectors).T
    return np.array([reflect(row, reflectors, block) for row in z])


def folds(n_rows: int, n_folds: int = _N_FOLDS) -> list[tuple[slice, NDArray[np.intp]]]:
    """Split the rows: each fold, and the rows outside of it."""
    n_folds = min(n_folds, n_rows)
    folds = [slice(first, None, n_folds) for first in range(n_folds)]
    rows = np.arange(n_rows)
    return [(fold, np.delete(rows, fold) if n_folds > 1 else rows) for fold in folds]


def _cross_fit(
    z: Matrix,
    learn: Callable[[Matrix], Matrix],
    rotate: Callable[[Matrix, Matrix], Matrix],
) -> Matrix:
    """Rotate each row by axes that were learned without it."""
    rotated = np.empty_like(z)
    for fold, rest in folds(len(z)):
        rotated[fold] = rotate(z[fold], learn(z[rest]))
    return rotated


def _weights(coordinates: Matrix, order: int) -> Matrix:
    """The weights with the least expected error; see the module."""
    sizes = np.mean(np.abs(coordinates) ** order, axis=0) ** (1 / order)
    if not sizes.any():
        return np.ones_like(sizes)
    sizes = np.maximum(sizes, _LEAST_CHANGE * sizes.max())
    return (sizes / sizes.max()) ** (order / (order + 2))


def _expected_error(
    coordinates: Matrix, weigh: Callable[[Matrix, int], Matrix], order: int
) -> float:
    """Judge weights by rows that did not learn them."""
    norms = np.empty(len(coordinates))
    for fold, rest in folds(len(coordinates)):
        weights = weigh(coordinates[rest], order)
        norms[fold] = np.linalg.norm(coordinates[fold] / weights, ord=order, axis=1)
        norms[fold] *= np.linalg.norm(weights)
    return float(np.quantile(norms, _LEVEL) ** 2)
