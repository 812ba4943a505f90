"""The local approach: the privacy loss of a pair, point by point, and its maximum.

When all outputs are discrete, or all have a density, the epsilon of a pair is the supremum over t
of ``|ln f_x(t) - ln f_x'(t)|`` (theorem 1 of the source below). Clamped noise has both atoms and a
density; the theorem then holds on either part, and so do the estimates here: an atom is compared
with the same atom, the rest with the rest.

The approach is blind where both densities are below the floor: it may find a violation there is,
it cannot confirm that there is none.

Askin, Kutta and Dette, "Statistical Quantification of Differential Privacy: A Local Approach",
IEEE S&P 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skdp.audit.density import KERNEL_ROUGHNESS, TruncatedKernelDensity, reference_bandwidth
from skdp.audit.rules import MIN_CONTINUOUS, AtomTable, as_outputs

GRID_SIZE = {1: 1001, 2: 101, 3: 31}
ATOM_FLOOR = 10.0
DENSITY_FLOOR = 16.0
FRESH_EXPONENT = 1.15
"""The second stage uses ``h ~ n**(-1.15/(d+4))``: less bias than the usual 1, a little noisier."""


@dataclass(frozen=True)
class PrivacyLoss:
    """Estimated densities of two output laws and the loss between them.

    Parameters
    ----------
    points : ndarray of shape (n_points,) or (n_points, d)
        Outputs at which the loss was estimated: the grid, then the atoms.
    is_atom : ndarray of bool of shape (n_points,)
        Which points are values of positive probability.
    density_x, density_y : ndarray of shape (n_points,)
        Truncated densities, or probabilities at atoms.
    standard_error : ndarray of shape (n_points,)
        Of the log ratio.
    visible : ndarray of bool of shape (n_points,)
        Where at least one of the two densities exceeds its floor. Elsewhere nothing is known.
    floor : float
        The least density; nan when all outputs are atoms.
    atom_floor : float
        The least probability of an atom.
    confidence : float in (0, 1)
        Pointwise confidence of `lower` and `upper`.
    """

    points: NDArray[Any]
    is_atom: NDArray[np.bool_]
    density_x: NDArray[np.float64]
    density_y: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    visible: NDArray[np.bool_]
    floor: float
    atom_floor: float
    confidence: float

    @property
    def log_ratio(self) -> NDArray[np.float64]:
        """``ln f_x - ln f_x'`` at every point."""
        return np.log(self.density_x / self.density_y)

    @property
    def loss(self) -> NDArray[np.float64]:
        """Absolute log ratio at every point."""
        return np.abs(self.log_ratio)

    @property
    def _margin(self) -> NDArray[np.float64]:
        return float(stats.norm.ppf(0.5 + self.confidence / 2)) * self.standard_error

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower end of the two-sided pointwise interval; 0 where nothing is visible."""
        return np.where(self.visible, np.maximum(self.loss - self._margin, 0.0), 0.0)

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper end of the two-sided pointwise interval; inf where nothing is visible."""
        return np.where(self.visible, self.loss + self._margin, np.inf)

    def __str__(self) -> str:
        best = int(np.argmax(self.lower))
        where = f"atoms above {self.atom_floor:.3g}" if self.is_atom.any() else ""
        if not self.is_atom.all():
            where = " and ".join(filter(None, [where, f"densities above {self.floor:.3g}"]))
        return (
            f"loss {self.loss[best]:.4g} at output {self.points[best]} "
            f"({self.confidence:g} interval {self.lower[best]:.4g} to {self.upper[best]:.4g}); "
            f"seen: {where}"
        )


def estimate_privacy_loss(
    samples_x: ArrayLike,
    samples_y: ArrayLike,
    *,
    bandwidth: float | None = None,
    floor: float | None = None,
    grid: ArrayLike | None = None,
    confidence: float = 0.95,
) -> PrivacyLoss:
    """Estimate the loss function from outputs on either dataset of a pair.

    Values that repeat are atoms and compared by frequency; the rest has a density, estimated by
    a truncated Gaussian kernel with one bandwidth for both samples. By the delta method the
    variance of the log ratio is ``|K|^2 / (n h^d) (1/f_x + 1/f_x') - 2/n`` for densities and
    ``(1/p + 1/q - 2) / n`` for atoms.

    Parameters
    ----------
    samples_x, samples_y : array-like of shape (n,) or (n, d)
        Independent outputs on x and on x', numbers with d at most 3, or discrete outputs of any
        kind. The sizes may differ.
    bandwidth : float or None, default=None
        Standard deviation of the kernel; None for ``1.06 s n**(-1/(d+4))``.
    floor : float or None, default=None
        The least density; None for ``16 / (n h^d)``.
    grid : array-like of shape (n_points,) or (n_points, d) or None, default=None
        Where the densities are evaluated; None for an even grid over the samples.
    confidence : float in (0, 1), default=0.95
        Pointwise confidence.

    Returns
    -------
    PrivacyLoss
        Densities, loss and intervals. Its maximum is inflated by the search over the points:
        take :func:`audit_epsilon` with ``method="local"`` for a bound.

    Raises
    ------
    ValueError
        If a sample is too small, has another number of columns, or d exceeds 3.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import estimate_privacy_loss
    >>> rng = np.random.default_rng(0)
    >>> truth_x, truth_y = rng.random((2, 20_000)) < 0.75
    >>> loss = estimate_privacy_loss(truth_x, ~truth_y)
    >>> loss.points, np.round(loss.loss, 1)
    (array([0, 1]), array([1.1, 1.1]))
    """
    _check_settings(bandwidth, floor, confidence)
    x, y = _check_samples(samples_x, samples_y)
    table = AtomTable(np.concatenate([x, y]))
    parts = [_at_atoms(table, x, y)]
    points, n_atoms, density_floor = table.atoms, len(table.atoms), math.nan
    rest_x, rest_y = (_continuous_part(table, sample) for sample in (x, y))
    if min(len(rest_x), len(rest_y)) >= MIN_CONTINUOUS:
        where = _grid(rest_x, rest_y) if grid is None else _check_grid(grid, rest_x.shape[1])
        h = _common_bandwidth(rest_x, rest_y) if bandwidth is None else bandwidth
        smooth = _at_points(where, rest_x, rest_y, len(x), len(y), h, floor)
        density_floor = smooth.floor
        parts.insert(0, smooth)
        points = np.concatenate([where.reshape((len(where), *x.shape[1:])), table.atoms])
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("density_x", "density_y", "standard_error", "visible")
    }
    return PrivacyLoss(
        points=points,
        is_atom=np.arange(len(points)) >= len(points) - n_atoms,
        floor=density_floor,
        atom_floor=parts[-1].floor,
        confidence=confidence,
        **columns,
    )


@dataclass(frozen=True)
class LossPoint:
    """One output, the loss there, and its one-sided lower limit.

    Parameters
    ----------
    value : number, str or ndarray of shape (d,)
        The output.
    is_atom : bool
        Whether it has positive probability.
    sign : {-1, 1}
        1 when x is the likelier dataset there, else -1.
    loss : float
        Log ratio times `sign`, at least 0.
    lower : float
        One-sided lower confidence limit of the loss, at least 0.
    floor : float
        The least density, or probability, that was used.
    resolution : float
        The largest loss that the larger density and the floor allow at this output.
    """

    value: Any
    is_atom: bool
    sign: int
    loss: float
    lower: float
    floor: float
    resolution: float

    def __str__(self) -> str:
        where = np.array2string(np.asarray(self.value), precision=4)
        kind = "probability" if self.is_atom else "density"
        return f"output {where}, blind below {kind} {self.floor:.3g}"


def most_revealing_point(x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95) -> LossPoint:
    """Find the output whose loss has the largest lower confidence limit.

    The plain maximum of the loss would be drawn to points where the estimate is noisy.

    Parameters
    ----------
    x, y : array-like of shape (n,) or (n, d)
        Outputs on either dataset, as for :func:`estimate_privacy_loss`.
    confidence : float in (0, 1), default=0.95
        Pointwise confidence of the one-sided limit.

    Returns
    -------
    LossPoint
        The point. Its loss is inflated by the search: estimate it again with :func:`loss_at`.
    """
    loss = estimate_privacy_loss(x, y, confidence=confidence)
    margin = stats.norm.ppf(confidence) * loss.standard_error
    k = int(np.argmax(np.where(loss.visible, loss.loss - margin, -np.inf)))
    atom = bool(loss.is_atom[k])
    return _point(
        loss.points[k], atom, 1 if loss.log_ratio[k] >= 0 else -1, loss.density_x[k],
        loss.density_y[k], loss.standard_error[k], loss.atom_floor if atom else loss.floor,
        confidence,
    )  # fmt: skip


def loss_at(point: LossPoint, x: ArrayLike, y: ArrayLike, *, confidence: float = 0.95) -> LossPoint:
    """Estimate the loss at a given output, in a given direction, from fresh samples.

    The bandwidth is ``1.06 s n**(-1.15/(d+4))``, smaller than in the search: bias, which the
    confidence limit does not cover, shrinks faster than noise.

    Parameters
    ----------
    point : LossPoint
        From :func:`most_revealing_point`, on other samples.
    x, y : array-like of shape (n,) or (n, d)
        Fresh outputs on either dataset.
    confidence : float in (0, 1), default=0.95
        Confidence of the one-sided limit; approximate, by the delta method.

    Returns
    -------
    LossPoint
        The same output with its fresh estimate.
    """
    x, y = _check_samples(x, y)
    if point.is_atom:
        hits = [np.array([_share(sample, point.value)]) for sample in (x, y)]
        part = _compare(*hits, len(x), len(y), 1.0, ATOM_FLOOR / min(len(x), len(y)))
    else:
        table = AtomTable(np.concatenate([x, y]))
        rest_x, rest_y = (_continuous_part(table, sample) for sample in (x, y))
        h = _common_bandwidth(rest_x, rest_y, FRESH_EXPONENT / (rest_x.shape[1] + 4))
        where = np.reshape(point.value, (1, -1))
        part = _at_points(where, rest_x, rest_y, len(x), len(y), h, None)
    return _point(
        point.value, point.is_atom, point.sign, part.density_x[0], part.density_y[0],
        part.standard_error[0], part.floor, confidence,
    )  # fmt: skip


def _point(value, is_atom, sign, f_x, f_y, error, floor, confidence) -> LossPoint:
    """Make a point with its one-sided limit."""
    loss = sign * math.log(f_x / f_y)
    lower = loss - float(stats.norm.ppf(confidence)) * error
    resolution = math.log(max(f_x, f_y) / floor)
    return LossPoint(value, is_atom, sign, max(loss, 0.0), max(lower, 0.0), floor, resolution)


@dataclass(frozen=True)
class _Comparison:
    """Two truncated densities at some points, and the standard error of their log ratio."""

    density_x: NDArray[np.float64]
    density_y: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    visible: NDArray[np.bool_]
    floor: float


def _compare(raw_x, raw_y, n_x: int, n_y: int, roughness: float, floor: float) -> _Comparison:
    """Truncate two estimates and attach the delta-method error; roughness is 1 at atoms."""
    f_x, f_y = np.maximum(raw_x, floor), np.maximum(raw_y, floor)
    variance = roughness * (1 / (n_x * f_x) + 1 / (n_y * f_y)) - 1 / n_x - 1 / n_y
    visible = np.maximum(raw_x, raw_y) > floor
    return _Comparison(f_x, f_y, np.sqrt(np.maximum(variance, 0.0)), visible, floor)


def _at_atoms(table: AtomTable, x: NDArray[Any], y: NDArray[Any]) -> _Comparison:
    """Compare the frequencies of the atoms."""
    shares = []
    for sample in (x, y):
        index = table.index(sample)
        counts = np.bincount(index[index >= 0], minlength=len(table.atoms))
        shares.append(counts / len(sample))
    return _compare(*shares, len(x), len(y), 1.0, ATOM_FLOOR / min(len(x), len(y)))


def _at_points(where, rest_x, rest_y, n_x: int, n_y: int, h, floor) -> _Comparison:
    """Compare the densities of the continuous parts, which may have mass below 1."""
    d = rest_x.shape[1]
    h = np.broadcast_to(np.asarray(h, dtype=np.float64), d)
    raw = []
    for rest, n in ((rest_x, n_x), (rest_y, n_y)):
        kernel = TruncatedKernelDensity(bandwidth=1.0, floor=0.0).fit(rest / h)
        density = np.exp(kernel.score_samples(where / h)) / np.prod(h)
        raw.append(density * len(rest) / n)
    if floor is None:
        floor = DENSITY_FLOOR / (min(n_x, n_y) * np.prod(h))
    return _compare(*raw, n_x, n_y, KERNEL_ROUGHNESS**d / np.prod(h), float(floor))


def _common_bandwidth(rest_x, rest_y, exponent: float | None = None) -> NDArray[np.float64]:
    """Average the two reference bandwidths: equal ones let the biases cancel in the ratio."""
    return (reference_bandwidth(rest_x, exponent) + reference_bandwidth(rest_y, exponent)) / 2


def _continuous_part(table: AtomTable, sample: NDArray[Any]) -> NDArray[np.float64]:
    """Return the finite rows that are no atoms, as a matrix; none of them when they are text."""
    columns = sample.reshape(len(sample), -1)
    if not np.issubdtype(sample.dtype, np.number):
        return np.empty((0, columns.shape[1]))
    free = (table.index(sample) < 0) & np.isfinite(columns).all(axis=1)
    return columns[free].astype(np.float64)


def _share(sample: NDArray[Any], value: Any) -> float:
    """Return how often a value occurs."""
    equal = np.equal(sample, value)
    return float(np.mean(equal if equal.ndim == 1 else equal.all(axis=1)))


def _grid(rest_x, rest_y) -> NDArray[np.float64]:
    """Return an even grid over all but the outermost 1e-4 of either tail."""
    pooled = np.concatenate([rest_x, rest_y])
    ends = np.quantile(pooled, [1e-4, 1 - 1e-4], axis=0)
    axes = [np.linspace(low, high, GRID_SIZE[pooled.shape[1]]) for low, high in ends.T]
    return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)


def _check_settings(bandwidth, floor, confidence) -> None:
    """Refuse settings outside their range."""
    rules = {
        "bandwidth": (bandwidth is None or bandwidth > 0, "be None or positive", bandwidth),
        "floor": (floor is None or floor > 0, "be None or positive", floor),
        "confidence": (0 < confidence < 1, "be in (0, 1)", confidence),
    }
    for name, (holds, rule, value) in rules.items():
        if not holds:
            raise ValueError(
                f"The {name!r} parameter of estimate_privacy_loss must {rule}. Got {value!r}."
            )


def _check_samples(samples_x: ArrayLike, samples_y: ArrayLike):
    """Bring both samples to one type and refuse those that cannot be compared."""
    x, y = as_outputs(samples_x), as_outputs(samples_y)
    if min(len(x), len(y)) < 100 or x.shape[1:] != y.shape[1:]:
        raise ValueError(
            "The samples must have at least 100 outputs each and equally many columns. "
            f"Got shapes {x.shape} and {y.shape}."
        )
    if x.ndim == 2 and x.shape[1] > 3 and AtomTable(np.concatenate([x, y])).share < 0.9:
        raise ValueError(
            f"The outputs must have at most 3 columns for a density. Got {x.shape[1]}. "
            "Use audit_epsilon with method='label'."
        )
    if x.dtype.kind != y.dtype.kind and "U" in (x.dtype.kind, y.dtype.kind):
        x, y = x.astype(str), y.astype(str)
    return x, y


def _check_grid(grid: ArrayLike, d: int) -> NDArray[np.float64]:
    """Return the grid as a matrix of points."""
    points = np.asarray(grid, dtype=np.float64)
    points = points[:, None] if points.ndim == 1 else points
    if points.ndim != 2 or points.shape[1] != d:
        raise ValueError(
            "The 'grid' parameter of estimate_privacy_loss must have one row per point and "
            f"{d} columns. Got shape {points.shape}."
        )
    return points
