"""Densities and frequencies of two samples of outputs, compared with a standard error."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.interpolate import RegularGridInterpolator
from scipy.ndimage import gaussian_filter
from sklearn.neighbors import KernelDensity

from skdp.audit.outputs import AtomTable, Outputs, as_outputs
from skdp.core.types import Matrix

ATOM_FLOOR, DENSITY_FLOOR = 10.0, 16.0

KERNEL_ROUGHNESS = 1 / (2 * math.sqrt(math.pi))
"""Integral of the squared Gaussian kernel in one dimension; in d dimensions its d-th power."""

MAX_BINS = 2**20
BINS_PER_BANDWIDTH = {1: 8.0, 2: 4.0, 3: 2.5}


class Comparison(NamedTuple):
    """Two densities at some points, the standard error of their log ratio, and their floor."""

    density_x: NDArray[np.float64]
    density_y: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    floor: float


class Samples:
    """Outputs on two datasets: a table of their atoms, and the rest of either as a matrix."""

    def __init__(self, samples_x: ArrayLike | Outputs, samples_y: ArrayLike | Outputs) -> None:
        self.both = x, y = as_outputs(samples_x), as_outputs(samples_y)
        if min(len(x), len(y)) < 100 or x.n_columns != y.n_columns:
            raise ValueError(
                "The samples must have at least 100 outputs each and equally many columns. "
                f"Got {len(x)} and {len(y)} outputs of {x.n_columns} and {y.n_columns} columns."
            )
        self.table = AtomTable(Outputs.joined(x, y), stand_out=x.n_columns <= 3)
        if x.n_columns > 3 and self.table.share < 0.9:
            raise ValueError(
                f"The outputs must have at most 3 columns for a density. Got {x.n_columns}. "
                "Use audit_epsilon with method='label'."
            )
        self.rests = tuple(
            s.values[(self.table.index(s) < 0) & np.isfinite(s.values).all(axis=1)]
            for s in self.both
        )

    def at_atoms(self) -> Comparison:
        """Compare the frequencies of the atoms."""
        n = len(self.table)
        indices = (self.table.index(sample) for sample in self.both)
        return self._compare([np.bincount(i[i >= 0], minlength=n) / len(i) for i in indices])

    def at_value(self, value: object) -> Comparison:
        """Compare the frequencies of one value."""
        key = as_outputs([value]).rows
        return self._compare([np.array([np.mean(s.rows == key)]) for s in self.both])

    def at_points(
        self, where: Matrix, bandwidth: float | None = None, exponent: float = 1.0
    ) -> Comparison:
        """Compare the densities of the continuous parts, which may have mass below 1."""
        d = where.shape[1]
        # Equal bandwidths let the biases cancel in the ratio.
        reference = np.mean([_bandwidths(rest, exponent) for rest in self.rests], axis=0)
        h = np.broadcast_to(reference if bandwidth is None else bandwidth, d)
        volume = float(np.prod(h))
        raw = [
            kernel_density(rest / h, where / h) / volume * len(rest) / len(sample)
            for rest, sample in zip(self.rests, self.both, strict=True)
        ]
        return self._compare(raw, KERNEL_ROUGHNESS**d / volume, DENSITY_FLOOR / volume)

    def _compare(
        self, raw: list[NDArray], roughness: float = 1.0, least: float = ATOM_FLOOR
    ) -> Comparison:
        """Raise two estimates to a floor, `least` over n, and attach the delta-method error."""
        n_x, n_y = map(len, self.both)
        floor = least / min(n_x, n_y)
        f_x, f_y = np.maximum(raw, floor)
        variance = roughness * (1 / (n_x * f_x) + 1 / (n_y * f_y)) - 1 / n_x - 1 / n_y
        return Comparison(f_x, f_y, np.sqrt(np.maximum(variance, 0.0)), floor)


def _bandwidths(X: Matrix, exponent: float) -> NDArray[np.float64]:
    """Return normal-reference bandwidths ``1.06 s n**(-exponent/(d+4))``, one per column.

    The spread s is the smaller of the standard deviation and the normalized interquartile range,
    and 1 for a constant column.
    """
    deviation, robust = X.std(axis=0), stats.iqr(X, axis=0) / 1.349
    spread = np.where(robust > 0, np.minimum(deviation, robust), deviation)
    return 1.06 * np.where(spread > 0, spread, 1.0) * len(X) ** (-exponent / (X.shape[1] + 4))


def kernel_density(sample: Matrix, points: Matrix) -> NDArray[np.float64]:
    """Estimate a density at some points by Gaussian kernels of deviation 1 in each column.

    Where a fine grid fits into memory, the sample is counted on it and smoothed.
    """
    low, high = sample.min(axis=0) - 6, sample.max(axis=0) + 6
    n_bins = np.ceil((high - low) * BINS_PER_BANDWIDTH[sample.shape[1]])
    if np.prod(n_bins) > MAX_BINS:
        return np.exp(KernelDensity(rtol=1e-6).fit(sample).score_samples(points))
    edges = [np.linspace(a, b, int(n) + 1) for a, b, n in zip(low, high, n_bins, strict=True)]
    counts, _ = np.histogramdd(sample, bins=edges)
    steps = (high - low) / n_bins
    mass = gaussian_filter(counts, sigma=1 / steps, mode="constant", truncate=6)
    middles = [(each[1:] + each[:-1]) / 2 for each in edges]
    density = mass / (len(sample) * np.prod(steps))
    return RegularGridInterpolator(middles, density, bounds_error=False, fill_value=0.0)(points)
