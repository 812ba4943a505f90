"""Repairs: noised values back into the range where they mean something.

They see released values and public ones only, so they cost no privacy. None of them changes a value
that is in range already.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.targets._simplex import project_to_simplex

# Smallest probability or count after a repair: its logarithm stays finite.
TINY = 1e-10


def positive(values: Any, fallback: Any) -> NDArray:
    """Replace what is not positive by the public twin's."""
    values = np.asarray(values)
    return np.where(values > 0, values, fallback)


def standard_deviations(variances: NDArray, fallback: NDArray) -> tuple[NDArray, NDArray]:
    """Replace negative variances by the public twin's; return them and the scale that they give."""
    variances = np.where(variances < 0, fallback, variances)
    return variances, np.where(variances == 0, 1.0, np.sqrt(variances))


def on_simplex(values: Any) -> NDArray:
    """Project a vector of probabilities to the nearest point of the simplex, entries positive."""
    values = np.asarray(values, dtype=np.float64)
    if np.all(values > 0) and np.isclose(values.sum(), 1.0, rtol=0, atol=1e-12):
        return values
    projected = np.maximum(project_to_simplex(values[None])[0], TINY)
    return projected / projected.sum()


def nearest_covariance(matrix: NDArray, twin: NDArray) -> NDArray:
    """Replace the eigenvalues that are not positive by the smallest positive one of the twin.

    Of a singular twin, eigenvalues that differ from zero by rounding alone do not count.
    """
    eigenvalues, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if np.all(eigenvalues > 0):
        return matrix
    public = np.linalg.eigvalsh(twin)
    rounding = len(public) * np.finfo(np.float64).eps * public.max()
    floor = public[public > rounding].min() if public.max() > 0 else 1.0
    return (vectors * positive(eigenvalues, floor)) @ vectors.T


def orthonormal(components: NDArray) -> NDArray:
    """Return the nearest matrix with orthonormal rows."""
    left, _, right = np.linalg.svd(components, full_matrices=False)
    return left @ right


def triangle(matrix: NDArray) -> NDArray:
    """Return the upper triangle of a symmetric matrix: each number once."""
    return np.asarray(matrix)[np.triu_indices(len(matrix))]


def from_triangle(values: NDArray) -> NDArray:
    """Return the symmetric matrix of an upper triangle."""
    size = int(np.sqrt(2 * len(values)))
    matrix = np.zeros((size, size))
    matrix[np.triu_indices(size)] = values
    return matrix + np.triu(matrix, 1).T
