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
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skdp.audit.density import KERNEL_ROUGHNESS, TruncatedKernelDensity, reference_bandwidth
from skdp.audit.outputs import AtomTable, Outputs, as_outputs
from skdp.audit.rules import MIN_CONTINUOUS
from skdp.core.checks import check_rules
from skdp.core.types import Matrix

GRID_SIZE = {1: 1001, 2: 101, 3: 31}
ATOM_FLOOR, DENSITY_FLOOR = 10.0, 16.0

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
        True for values of positive probability.
    density_x, density_y : ndarray of shape (n_points,)
        Truncated densities, or probabilities at atoms.
    standard_error : ndarray of shape (n_points,)
        Standard error of the log ratio.
    visible : ndarray of bool of shape (n_points,)
        True where at least one of the two densities exceeds its floor. Elsewhere nothing is known.
    floored : ndarray of bool of shape (n_points,)
        True where at least one of the two densities was raised to its floor. If the other one is
        visible, the loss is estimated from below only.
    floor : float
        The least density; nan when all outputs are atoms.
    atom_floor : float
        The least probability of an atom.
    confidence : float in (0, 1)
        Pointwise confidence of `lower` and `upper`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import estimate_privacy_loss
    >>> rng = np.random.default_rng(0)
    >>> loss = estimate_privacy_loss(rng.poisson(2, size=10_000), rng.poisson(3, size=10_000))
    >>> loss.points[:3], loss.loss[:3].round(1)
    (array([0, 1, 2]), array([0.9, 0.6, 0.2]))
    """

    points: NDArray
    is_atom: NDArray[np.bool_]
    density_x: NDArray[np.float64]
    density_y: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    visible: NDArray[np.bool_]
    floored: NDArray[np.bool_]
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
        """Upper end of the two-sided pointwise interval; inf where a density is floored."""
        return np.where(self.floored, np.inf, self.loss + self._margin)

    def __str__(self) -> str:
        best = int(np.argmax(self.lower))
        seen = [f"atoms above {self.atom_floor:.3g}"] if self.is_atom.any() else []
        seen += [] if self.is_atom.all() else [f"densities above {self.floor:.3g}"]
        return (
            f"loss {self.loss[best]:.4g} at output {_show(self.points[best])} "
            f"({self.confidence:g} interval {self.lower[best]:.4g} to {self.upper[best]:.4g}); "
            f"seen: {' and '.join(seen)}"
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
    check_rules(
        "estimate_privacy_loss",
        bandwidth=(bandwidth, bandwidth is None or bandwidth > 0, "be None or positive"),
        floor=(floor, floor is None or floor > 0, "be None or positive"),
        confidence=(confidence, 0 < confidence < 1, "be in (0, 1)"),
    )
    samples = _Samples(samples_x, samples_y)
    atoms = samples.table.atoms
    parts, points = [samples.at_atoms()], [atoms]
    if min(map(len, samples.rests)) >= MIN_CONTINUOUS:
        d = samples.rests[0].shape[1]
        where = _grid(*samples.rests) if grid is None else _check_grid(grid, d)
        parts.insert(0, samples.at_points(where, bandwidth, floor))
        points.insert(0, where.reshape((len(where), *samples.x.shape[1:])))
        if atoms.dtype.kind == "U" and len(atoms):  # numbers stay numbers beside words
            points = [part.astype(object) for part in points]
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("density_x", "density_y", "standard_error", "visible", "floored")
    }
    return PrivacyLoss(
        points=np.concatenate(points),
        is_atom=np.repeat([False, True], [sum(map(len, points)) - len(atoms), len(atoms)]),
        floor=parts[0].floor if len(parts) > 1 else math.nan,
        atom_floor=parts[-1].floor,
        confidence=confidence,
        **columns,
    )


class Comparison(NamedTuple):
    """Two truncated densities at some points, and the standard error of their log ratio."""

    density_x: NDArray[np.float64]
    density_y: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    visible: NDArray[np.bool_]
    floored: NDArray[np.bool_]
    floor: float


class _Samples:
    """Outputs on two datasets: a table of their atoms, and the rest of either as a matrix."""

    def __init__(self, samples_x: object, samples_y: object) -> None:
        self.x, self.y = x, y = as_outputs(samples_x), as_outputs(samples_y)
        if min(len(x), len(y)) < 100 or x.shape[1:] != y.shape[1:]:
            raise ValueError(
                "The samples must have at least 100 outputs each and equally many columns. "
                f"Got shapes {x.shape} and {y.shape}."
            )
        n_columns = x.keys.shape[1]
        self.table = AtomTable(Outputs.joined(x, y), stand_out=n_columns <= 3)
        if n_columns > 3 and self.table.share < 0.9:
            raise ValueError(
                f"The outputs must have at most 3 columns for a density. Got {n_columns}. "
                "Use audit_epsilon with method='label'."
            )
        self.rests = tuple(map(self._rest, (x, y)))

    def _rest(self, sample: Outputs) -> NDArray[np.float64]:
        """Return the finite rows of numbers that are no atoms."""
        columns = sample.values.reshape(len(sample), -1)
        return columns[(self.table.index(sample) < 0) & np.isfinite(columns).all(axis=1)]

    def at_atoms(self) -> Comparison:
        """Compare the frequencies of the atoms."""
        indices = (self.table.index(sample) for sample in (self.x, self.y))
        counts = (np.bincount(i[i >= 0], minlength=len(self.table)) for i in indices)
        return self._compare([c / len(s) for c, s in zip(counts, (self.x, self.y), strict=True)])

    def at_value(self, value: object) -> Comparison:
        """Compare the frequencies of one value."""
        key = as_outputs([value]).rows
        return self._compare([np.array([np.mean(s.rows == key)]) for s in (self.x, self.y)])

    def at_points(
        self,
        where: Matrix,
        bandwidth: float | None = None,
        floor: float | None = None,
        exponent: float | None = None,
    ) -> Comparison:
        """Compare the densities of the continuous parts, which may have mass below 1."""
        d = where.shape[1]
        # Equal bandwidths let the biases cancel in the ratio.
        reference = np.mean([reference_bandwidth(rest, exponent) for rest in self.rests], axis=0)
        h = np.broadcast_to(reference if bandwidth is None else bandwidth, d)
        raw = []
        for rest, sample in zip(self.rests, (self.x, self.y), strict=True):
            kernel = TruncatedKernelDensity(bandwidth=1.0, floor=0.0).fit(rest / h)
            density = np.exp(kernel.score_samples(where / h)) / np.prod(h)
            raw.append(density * len(rest) / len(sample))
        if floor is None:
            floor = DENSITY_FLOOR / (min(len(self.x), len(self.y)) * float(np.prod(h)))
        return self._compare(raw, KERNEL_ROUGHNESS**d / np.prod(h), floor)

    def _compare(
        self, raw: list[NDArray], roughness: float = 1.0, floor: float | None = None
    ) -> Comparison:
        """Truncate two estimates and attach the delta-method error; roughness is 1 at atoms."""
        n_x, n_y = len(self.x), len(self.y)
        floor = ATOM_FLOOR / min(n_x, n_y) if floor is None else floor
        f_x, f_y = np.maximum(raw, floor)
        variance = roughness * (1 / (n_x * f_x) + 1 / (n_y * f_y)) - 1 / n_x - 1 / n_y
        visible, floored = np.max(raw, axis=0) > floor, np.min(raw, axis=0) <= floor
        return Comparison(f_x, f_y, np.sqrt(np.maximum(variance, 0.0)), visible, floored, floor)


def _grid(rest_x: Matrix, rest_y: Matrix) -> Matrix:
    """Return an even grid over all but the outermost 1e-4 of either tail."""
    pooled = np.concatenate([rest_x, rest_y])
    ends = np.quantile(pooled, [1e-4, 1 - 1e-4], axis=0)
    axes = [np.linspace(low, high, GRID_SIZE[pooled.shape[1]]) for low, high in ends.T]
    return np.stack([m.ravel() for m in np.meshgrid(*axes, indexing="ij")], axis=1)


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


class LossPoint(NamedTuple):
    """One output, the loss there in the direction of `sign`, and its one-sided lower limit.

    The sign is 1 where x is the likelier dataset, else -1, and an atom is an output of positive
    probability. The resolution is the largest loss that the larger of the two densities, or
    probabilities, allows beside the floor, the least that was used.
    """

    value: Any
    is_atom: bool
    sign: int
    loss: float = 0.0
    lower: float = 0.0
    floor: float = 0.0
    resolution: float = 0.0

    def __str__(self) -> str:
        kind = "probability" if self.is_atom else "density"
        return f"output {_show(self.value)}, blind below {kind} {self.floor:.3g}"


def most_revealing_point(x: Any, y: Any, *, confidence: float = 0.95) -> LossPoint:
    """Find the output whose loss has the largest lower confidence limit.

    The plain maximum of the loss would be drawn to points where the estimate is noisy. The loss of
    the point is inflated by the search: estimate it again with :func:`loss_at`.
    """
    loss = estimate_privacy_loss(x, y, confidence=confidence)
    lower = loss.loss - stats.norm.ppf(confidence) * loss.standard_error
    k = int(np.argmax(np.where(loss.visible, lower, -np.inf)))
    sign = 1 if loss.log_ratio[k] >= 0 else -1
    return LossPoint(loss.points[k], bool(loss.is_atom[k]), sign, loss.loss[k], max(lower[k], 0.0))


def loss_at(point: LossPoint, x: Any, y: Any, *, confidence: float = 0.95) -> LossPoint:
    """Estimate the loss at a given output, in a given direction, from fresh samples.

    The bandwidth is ``1.06 s n**(-1.15/(d+4))``, smaller than in the search: bias, which the
    confidence limit does not cover, shrinks faster than noise. `confidence` is that of the
    one-sided limit; approximate, by the delta method.
    """
    samples, where = _Samples(x, y), np.reshape(point.value, (1, -1))
    if point.is_atom:
        part = samples.at_value(point.value)
    else:
        part = samples.at_points(where, exponent=FRESH_EXPONENT / (where.shape[1] + 4))
    f_x, f_y = part.density_x[0], part.density_y[0]
    loss = point.sign * math.log(f_x / f_y)
    lower = loss - float(stats.norm.ppf(confidence)) * part.standard_error[0]
    return point._replace(
        loss=max(loss, 0.0),
        lower=max(lower, 0.0),
        floor=part.floor,
        resolution=math.log(max(f_x, f_y) / part.floor),
    )


def _show(output: object) -> str:
    """Write an output to four digits."""
    return np.array2string(np.asarray(output), precision=4)
