"""The linear algebra of a basis: inverses, and products of reflections."""

from __future__ import annotations

import numpy as np

from skdp.core.types import Matrix

# Beyond it a matrix is singular to working precision.
_MOST_CONDITION = 1e14


def invert(matrix: Matrix) -> Matrix:
    """Invert a matrix after bringing rows and columns to length 1: scales are no singularity."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"The 'basis' must be a square matrix. Got an array of shape {matrix.shape}."
        )
    with np.errstate(all="ignore"):
        rows = np.linalg.norm(matrix, axis=1)
        columns = np.linalg.norm(matrix / rows[:, None], axis=0)
        balanced = matrix / rows[:, None] / columns
        try:
            inverse = np.linalg.inv(balanced)
        except np.linalg.LinAlgError:
            inverse = np.full_like(balanced, np.nan)
        condition = np.linalg.norm(balanced, 1) * np.linalg.norm(inverse, 1)
        inverse = inverse / columns[:, None] / rows
    if not (condition < _MOST_CONDITION and np.isfinite(inverse).all()):
        raise ValueError(
            "The 'basis' must be an invertible matrix. It is singular to working precision."
        )
    return inverse


def compact(reflectors: Matrix) -> Matrix:
    """Return K with Q = I - Y K Y', the product of the reflections in the columns of Y."""
    products = reflectors.T @ reflectors
    block = np.diag(2 / np.diag(products))
    for j in range(1, len(block)):
        block[:j, j] = -block[j, j] * (block[:j, :j] @ products[:j, j])
    return block


def reflect(vector: Matrix, reflectors: Matrix, block: Matrix) -> Matrix:
    """Rotate by Q, or by Q' if the block is transposed, by sums in a fixed order."""
    inner = np.einsum("ij,j->i", block, np.einsum("ij,i->j", reflectors, vector))
    return vector - np.einsum("ij,j->i", reflectors, inner)
