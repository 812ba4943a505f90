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

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skdp.audit.densities import Samples
from skdp.audit.outputs import Outputs
from skdp.audit.rules import MIN_CONTINUOUS
from skdp.core.checks import check_rules
from skdp.core.types import Matrix

GRID_SIZE = {1: 1001, 2: 101, 3: 31}


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
        Densities, or probabilities at atoms, of at least the floor.
    standard_error : ndarray of shape (n_points,)
        Standard error of the log ratio.
    floor : float
        The least density.
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
    floor: float
    atom_floor: float
    confidence: float

    @property
    def visible(self) -> NDArray[np.bool_]:
        """True where one of the two densities exceeds its floor; elsewhere nothing is known."""
        return np.maximum(self.density_x, self.density_y) > self._floors

    @property
    def floored(self) -> NDArray[np.bool_]:
        """True where a density was raised to its floor, so that the loss is a lower estimate."""
        return np.minimum(self.density_x, self.density_y) <= self._floors

    @property
    def _floors(self) -> NDArray[np.float64]:
        return np.where(self.is_atom, self.atom_floor, self.floor)

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
            f"loss {self.loss[best]:.4g} at output {show(self.points[best])} "
            f"({self.confidence:g} interval {self.lower[best]:.4g} to {self.upper[best]:.4g}); "
            f"seen: {' and '.join(seen)}"
        )


def estimate_privacy_loss(
    samples_x: ArrayLike | Outputs,
    samples_y: ArrayLike | Outputs,
    *,
    bandwidth: float | None = None,
    grid: ArrayLike | None = None,
    confidence: float = 0.95,
) -> PrivacyLoss:
    """Estimate the loss function from outputs on either dataset of a pair.

    Values that repeat are atoms and compared by frequency; the rest has a density, estimated by
    a Gaussian kernel with one bandwidth h for both samples and raised to a floor, ``16 / (n h^d)``.
    By the delta method the variance of the log ratio is ``|K|^2 / (n h^d) (1/f_x + 1/f_x') - 2/n``
    for densities and ``(1/p + 1/q - 2) / n`` for atoms.

    Parameters
    ----------
    samples_x, samples_y : array-like of shape (n,) or (n, d)
        Independent outputs on x and on x', numbers with d at most 3, or discrete outputs of any
        kind. The sizes may differ.
    bandwidth : float or None, default=None
        Standard deviation of the kernel; None for ``1.06 s n**(-1/(d+4))``.
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
        confidence=(confidence, 0 < confidence < 1, "be in (0, 1)"),
    )
    samples = Samples(samples_x, samples_y)
    atoms = samples.table.atoms
    at_atoms = samples.at_atoms()
    parts, points = [at_atoms], [atoms]
    if min(map(len, samples.rests)) >= MIN_CONTINUOUS:
        where = _grid(*samples.rests) if grid is None else _check_grid(grid, atoms.shape[1])
        parts.insert(0, samples.at_points(where, bandwidth))
        # numbers stay numbers beside words
        points = [where.astype(object) if atoms.dtype.kind == "U" and len(atoms) else where, atoms]
    shown = np.concatenate(points)
    return PrivacyLoss(
        points=shown[:, 0] if shown.shape[1] == 1 else shown,
        is_atom=np.arange(len(shown)) >= len(shown) - len(atoms),
        density_x=np.concatenate([part.density_x for part in parts]),
        density_y=np.concatenate([part.density_y for part in parts]),
        standard_error=np.concatenate([part.standard_error for part in parts]),
        floor=parts[0].floor,
        atom_floor=at_atoms.floor,
        confidence=confidence,
    )


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


def show(output: object) -> str:
    """Write an output to four digits."""
    return np.array2string(np.asarray(output), precision=4)
