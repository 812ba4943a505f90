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
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skdp.audit.outputs import MIN_CONTINUOUS, AtomTable, Outputs, as_outputs

GRID_SIZE = 1001
ATOM_FLOOR, DENSITY_FLOOR = 10.0, 16.0
ROUGHNESS = 1 / (2 * math.sqrt(math.pi))  # integral of the squared Gaussian kernel
MARGIN = 1.96  # standard errors to either side of a two-sided interval of confidence .95


@dataclass(frozen=True)
class PrivacyLoss:
    """Estimated densities of two output laws and the loss between them.

    Parameters
    ----------
    points : ndarray of shape (n_points,) or (n_points, d)
        Outputs at which the loss was estimated: an even grid over the numbers, then the atoms.
    is_atom : ndarray of bool of shape (n_points,)
        True for values of positive probability.
    density_x, density_y : ndarray of shape (n_points,)
        Densities, or probabilities at atoms, of at least the floor.
    standard_error : ndarray of shape (n_points,)
        Standard error of the log ratio.
    floor : ndarray of shape (n_points,)
        The least density, or probability, that the samples can show.

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
    floor: NDArray[np.float64]

    @property
    def visible(self) -> NDArray[np.bool_]:
        """True where one of the two densities exceeds its floor; elsewhere nothing is known."""
        return np.maximum(self.density_x, self.density_y) > self.floor

    @property
    def floored(self) -> NDArray[np.bool_]:
        """True where a density was raised to its floor, so that the loss is a lower estimate."""
        return np.minimum(self.density_x, self.density_y) <= self.floor

    @property
    def log_ratio(self) -> NDArray[np.float64]:
        """``ln f_x - ln f_x'`` at every point."""
        return np.log(self.density_x / self.density_y)

    @property
    def loss(self) -> NDArray[np.float64]:
        """Absolute log ratio at every point."""
        return np.abs(self.log_ratio)

    @property
    def lower(self) -> NDArray[np.float64]:
        """Lower end of the pointwise interval of confidence .95; 0 where nothing is visible."""
        return np.where(self.visible, np.maximum(self.loss - MARGIN * self.standard_error, 0.0), 0)

    @property
    def upper(self) -> NDArray[np.float64]:
        """Upper end of that interval; inf where a density is floored."""
        return np.where(self.floored, np.inf, self.loss + MARGIN * self.standard_error)


def estimate_privacy_loss(
    samples_x: ArrayLike | Outputs, samples_y: ArrayLike | Outputs
) -> PrivacyLoss:
    """Estimate the loss function from outputs on either dataset of a pair.

    Values that repeat are atoms and compared by frequency; the rest has a density, estimated by
    a Gaussian kernel with one bandwidth h for both samples and raised to a floor, ``16 / (n h)``.
    By the delta method the variance of the log ratio is ``|K|^2 / (n h) (1/f_x + 1/f_x') - 2/n``
    for densities and ``(1/p + 1/q - 2) / n`` for atoms. The bandwidth is ``1.06 s n**(-1/5)``.

    Parameters
    ----------
    samples_x, samples_y : array-like of shape (n,), or (n, d) for discrete outputs
        Independent outputs on x and on x', numbers or discrete outputs of any kind. The sizes may
        differ.

    Returns
    -------
    PrivacyLoss
        Densities, loss and intervals. Its maximum is inflated by the search over the points:
        take :func:`audit_epsilon` with ``method="local"`` for a bound.

    Raises
    ------
    ValueError
        If a sample is too small, or has another number of columns.

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
    samples = Samples(samples_x, samples_y)
    atoms = samples.at_atoms()
    if min(map(len, samples.rests)) < MIN_CONTINUOUS:
        return atoms
    low, high = np.quantile(np.concatenate(samples.rests), [1e-4, 1 - 1e-4])
    smooth = samples.at_points(np.linspace(low, high, GRID_SIZE))
    both = {f.name: [getattr(each, f.name) for each in (smooth, atoms)] for f in fields(atoms)}
    if atoms.points.dtype.kind == "U" and len(atoms.points):  # numbers stay numbers beside words
        both["points"][0] = smooth.points.astype(object)
    return PrivacyLoss(**{name: np.concatenate(each) for name, each in both.items()})


class Samples:
    """Outputs on two datasets: a table of their atoms, and the other numbers of either."""

    def __init__(self, samples_x: ArrayLike | Outputs, samples_y: ArrayLike | Outputs) -> None:
        self.both = x, y = as_outputs(samples_x), as_outputs(samples_y)
        if min(len(x), len(y)) < 100 or x.n_columns != y.n_columns:
            raise ValueError(
                "The samples must have at least 100 outputs each and equally many columns. "
                f"Got {len(x)} and {len(y)} outputs of {x.n_columns} and {y.n_columns} columns."
            )
        is_line = x.n_columns == 1
        self.table = AtomTable(Outputs.joined(x, y))
        if not is_line and self.table.share < 0.9:
            raise ValueError(
                f"The outputs must have one column for a density. Got {x.n_columns}. "
                "Use audit_epsilon with method='label'."
            )
        self.rests = [
            s.values[(self.table.index(s) < 0) & np.isfinite(s.values[:, 0]) & is_line, 0]
            for s in self.both
        ]

    def at_atoms(self) -> PrivacyLoss:
        """Compare the frequencies of the atoms."""
        atoms, n = self.table.atoms, len(self.table)
        indices = (self.table.index(sample) for sample in self.both)
        shares = [np.bincount(i[i >= 0], minlength=n) / len(i) for i in indices]
        return self._compare(atoms[:, 0] if atoms.shape[1] == 1 else atoms, shares)

    def at_value(self, value: object) -> PrivacyLoss:
        """Compare the frequencies of one value."""
        key = as_outputs([value]).rows
        return self._compare(
            np.array([value]), [np.mean(s.rows == key, keepdims=True) for s in self.both]
        )

    def at_points(self, points: NDArray[np.float64], exponent: float = 1.0) -> PrivacyLoss:
        """Compare the densities of the continuous parts, which may have mass below 1."""
        # Equal bandwidths let the biases cancel in the ratio.
        h = float(np.mean([_bandwidth(rest, exponent) for rest in self.rests]))
        densities = [
            kernel_density(rest / h, points / h) / h * len(rest) / len(sample)
            for rest, sample in zip(self.rests, self.both, strict=True)
        ]
        return self._compare(points, densities, h)

    def _compare(
        self, points: NDArray, raw: list[NDArray[np.float64]], h: float | None = None
    ) -> PrivacyLoss:
        """Raise two estimates to a floor, and attach the delta-method error; atoms have no `h`."""
        roughness, least = (1.0, ATOM_FLOOR) if h is None else (ROUGHNESS / h, DENSITY_FLOOR / h)
        n_x, n_y = map(len, self.both)
        floor = least / min(n_x, n_y)
        f_x, f_y = np.maximum(raw, floor)
        variance = roughness * (1 / (n_x * f_x) + 1 / (n_y * f_y)) - 1 / n_x - 1 / n_y
        error, full = np.sqrt(np.maximum(variance, 0.0)), np.full(len(f_x), floor)
        return PrivacyLoss(points, np.full(len(f_x), h is None), f_x, f_y, error, full)


def _bandwidth(sample: NDArray[np.float64], exponent: float) -> float:
    """Return the normal-reference bandwidth ``1.06 s n**(-exponent/5)``, with a robust spread s."""
    deviation, robust = sample.std(), stats.iqr(sample) / 1.349
    spread = min(deviation, robust) if robust > 0 else deviation
    return 1.06 * (spread if spread > 0 else 1.0) * len(sample) ** (-exponent / 5)


def kernel_density(sample: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Estimate a density at some points by Gaussian kernels of deviation 1, cut at 6."""
    sample = np.sort(sample)
    lows, highs = np.searchsorted(sample, [points - 6, points + 6])
    near = (sample[low:high] for low, high in zip(lows, highs, strict=True))
    sums = [np.exp(-((x - at) ** 2) / 2).sum() for x, at in zip(near, points, strict=True)]
    return np.array(sums) / (len(sample) * math.sqrt(2 * math.pi))
