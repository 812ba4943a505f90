"""Two samples side by side: truncated densities or frequencies, and the error of their ratio."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.audit.density import KERNEL_ROUGHNESS, TruncatedKernelDensity, reference_bandwidth
from skdp.audit.outputs import AtomTable, Outputs, as_outputs
from skdp.core.types import Matrix

ATOM_FLOOR = 10.0
DENSITY_FLOOR = 16.0


@dataclass(frozen=True)
class Comparison:
    """Two truncated densities at some points, and the standard error of their log ratio."""

    density_x: NDArray[np.float64]
    density_y: NDArray[np.float64]
    standard_error: NDArray[np.float64]
    visible: NDArray[np.bool_]
    floored: NDArray[np.bool_]
    floor: float


def compare(raw: ArrayLike, n_x: int, n_y: int, roughness: float, floor: float) -> Comparison:
    """Truncate two estimates and attach the delta-method error; roughness is 1 at atoms."""
    f_x, f_y = np.maximum(raw, floor)
    variance = roughness * (1 / (n_x * f_x) + 1 / (n_y * f_y)) - 1 / n_x - 1 / n_y
    visible, floored = np.max(raw, axis=0) > floor, np.min(raw, axis=0) <= floor
    return Comparison(f_x, f_y, np.sqrt(np.maximum(variance, 0.0)), visible, floored, floor)


def compare_atoms(table: AtomTable, x: Outputs, y: Outputs) -> Comparison:
    """Compare the frequencies of the atoms."""
    shares = []
    for sample in (x, y):
        index = table.index(sample)
        counts = np.bincount(index[index >= 0], minlength=len(table.atoms))
        shares.append(counts / len(sample))
    return compare(shares, len(x), len(y), 1.0, ATOM_FLOOR / min(len(x), len(y)))


def compare_densities(
    where: Matrix,
    rest_x: Matrix,
    rest_y: Matrix,
    n_x: int,
    n_y: int,
    h: ArrayLike,
    floor: float | None,
) -> Comparison:
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
    return compare(raw, n_x, n_y, KERNEL_ROUGHNESS**d / np.prod(h), float(floor))


def common_bandwidth(
    rest_x: Matrix, rest_y: Matrix, exponent: float | None = None
) -> NDArray[np.float64]:
    """Average the two reference bandwidths: equal ones let the biases cancel in the ratio."""
    return (reference_bandwidth(rest_x, exponent) + reference_bandwidth(rest_y, exponent)) / 2


def atoms_of(x: Outputs, y: Outputs) -> AtomTable:
    """Return the atoms of two samples, those that stand out where the others have a density."""
    return AtomTable(Outputs.joined(x, y), stand_out=x.keys.shape[1] <= 3)


def continuous_part(table: AtomTable, sample: Outputs) -> NDArray[np.float64]:
    """Return the finite rows of numbers that are no atoms, as a matrix."""
    columns = sample.values.reshape(len(sample), -1)
    return columns[(table.index(sample) < 0) & np.isfinite(columns).all(axis=1)]


def check_samples(
    samples_x: Outputs | ArrayLike, samples_y: Outputs | ArrayLike
) -> tuple[Outputs, Outputs]:
    """Read both samples and refuse those that cannot be compared."""
    x, y = (s if isinstance(s, Outputs) else as_outputs(s) for s in (samples_x, samples_y))
    if min(len(x), len(y)) < 100 or x.shape[1:] != y.shape[1:]:
        raise ValueError(
            "The samples must have at least 100 outputs each and equally many columns. "
            f"Got shapes {x.shape} and {y.shape}."
        )
    if x.keys.shape[1] > 3 and AtomTable(Outputs.joined(x, y)).share < 0.9:
        raise ValueError(
            f"The outputs must have at most 3 columns for a density. Got {x.shape[1]}. "
            "Use audit_epsilon with method='label'."
        )
    return x, y


def show(output: object) -> str:
    """Write an output to four digits."""
    return np.array2string(np.asarray(output), precision=4)
