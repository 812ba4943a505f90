"""Repairs of noised values, from released and public values only; they change nothing in range."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.simplex import project_to_simplex
from skdp.core.types import Estimator

TINY = 1e-10  # smallest probability after a repair, so that its logarithm is finite


def positive(values: ArrayLike, fallback: ArrayLike) -> NDArray:
    """Replace values that are not positive by the fallback, or by 1 if it is not positive."""
    values, fallback = np.asarray(values), np.asarray(fallback)
    return np.where(values > 0, values, np.where(fallback > 0, fallback, 1.0))[()]


def raised_divisors(
    values: ArrayLike, public: ArrayLike, errors: ArrayLike, public_fit: Estimator = None
) -> NDArray:
    """Raise divisors that noise hides to the public values, at most to two standard errors."""
    return np.maximum(values, np.minimum(public, 2 * np.asarray(errors)))


def public_where_hidden(
    values: ArrayLike, public: ArrayLike, errors: ArrayLike, public_fit: Estimator = None
) -> NDArray:
    """Take public numbers in columns where the noise is larger than public rows are apart."""
    public = np.asarray(public)
    apart = np.ptp(public, axis=0) if len(public) > 1 else np.inf
    return np.where(np.asarray(errors) > apart, public, values)


def raised_variances(
    values: ArrayLike, public: ArrayLike, errors: ArrayLike, public_fit: Estimator = None
) -> NDArray:
    """Raise the variances among the numbers of triangles, the last axis."""
    is_variance = triangle(np.eye(side_of(values))) > 0
    return np.where(is_variance, raised_divisors(values, public, errors), values)


def raised_eigenvalues(matrix: NDArray, public: NDArray, errors: NDArray) -> NDArray:
    """Raise eigenvalues that may be noise to the variance that the public matrix has there."""
    eigenvalues, vectors = np.linalg.eigh(matrix)
    expected = np.sum(vectors * (public @ vectors), axis=0)
    raised = raised_divisors(eigenvalues, expected, np.linalg.norm(errors, axis=0).max())
    return (vectors * raised) @ vectors.T if (raised > eigenvalues).any() else matrix


def nonnegative(values: ArrayLike, fallback: ArrayLike) -> NDArray:
    """Replace negative values by the fallback."""
    values = np.asarray(values)
    return np.where(values < 0, fallback, values)


def positive_counts(counts: ArrayLike) -> NDArray:
    """Replace counts that are not positive by a tiny share of the positive counts of the row."""
    counts = np.asarray(counts)
    total = np.where(counts > 0, counts, 0).sum(axis=-1, keepdims=True)
    return np.where(counts > 0, counts, TINY * np.where(total > 0, total, 1.0))


def on_simplex(values: ArrayLike, fallback: ArrayLike | None = None) -> NDArray:
    """Return the nearest vector of probabilities, with positive entries."""
    values = np.asarray(values)
    rounding = 100 * np.finfo(values.dtype).eps
    if np.all(values >= 0) and abs(values.sum(dtype=np.float64) - 1) <= rounding:
        return values
    projected = np.maximum(project_to_simplex(values[None])[0], TINY)
    return projected / projected.sum()


def correlations(matrix: NDArray) -> tuple[NDArray, NDArray]:
    """Return correlations and standard deviations, 1 for columns that do not vary."""
    variances = np.diag(matrix)
    deviations = np.sqrt(np.where(variances > 0, variances, 1.0)).astype(matrix.dtype)
    with np.errstate(over="ignore"):  # noise may make a variance tiny
        scaled = matrix / deviations / deviations[:, None]
    np.fill_diagonal(scaled, 1.0)
    return scaled, deviations


def nearest_covariance(matrix: NDArray, public: NDArray, *, singular: bool = False) -> NDArray:
    """Repair a matrix that is no covariance, by public variances and public correlations."""
    if _is_covariance(matrix, singular):
        return matrix
    variances = positive(np.diag(matrix), np.diag(public)).astype(matrix.dtype)
    scaled, deviations = correlations(np.where(np.eye(len(matrix)), variances, matrix))
    eigenvalues, vectors = np.linalg.eigh(np.clip(scaled, -1, 1))
    spectrum = np.linalg.eigvalsh(np.clip(correlations(public)[0], -1, 1))
    smallest = max(TINY, _rounding(matrix))
    floor = spectrum[spectrum > smallest].min(initial=1.0)
    repaired = (vectors * np.where(eigenvalues > smallest, eigenvalues, floor)) @ vectors.T
    lengths = deviations / np.sqrt(np.diag(repaired))
    return repaired * lengths * lengths[:, None]


def lower_factor(covariance: NDArray) -> NDArray:
    """Return L of a covariance L L^T that is not singular, whatever the units of its columns."""
    scaled, deviations = correlations(covariance)
    return deviations[:, None] * np.linalg.cholesky(scaled)


def _is_covariance(matrix: NDArray, singular: bool) -> bool:
    variances, rounding = np.diag(matrix), _rounding(matrix)
    unvaried = variances <= 0
    if np.any(matrix[unvaried]) or (np.any(unvaried) and not singular):
        return False
    scaled = correlations(matrix)[0]
    if np.abs(scaled).max() > 1 + rounding:
        return False
    if singular:
        return bool(np.linalg.eigvalsh(scaled).min() >= -rounding)
    try:
        np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        return False
    return True


def _rounding(matrix: NDArray) -> float:
    """Return how far rounding may move an eigenvalue of correlations."""
    return 100 * len(matrix) * float(np.finfo(matrix.dtype).eps)


def orthonormal(components: NDArray, fallback: NDArray | None = None) -> NDArray:
    """Return the nearest matrix with orthonormal rows; one that has them stays as it is."""
    rounding = 100 * len(components) * np.finfo(components.dtype).eps
    if np.abs(components @ components.T - np.eye(len(components))).max() <= rounding:
        return components
    left, _, right = np.linalg.svd(components, full_matrices=False)
    return left @ right


def triangle(matrix: NDArray) -> NDArray:
    """Return the upper triangle of a symmetric matrix, which holds each number once."""
    return np.asarray(matrix)[np.triu_indices(len(matrix))]


def side_of(values: ArrayLike) -> int:
    """Return the number of rows of the matrix of an upper triangle."""
    return int(np.sqrt(2 * np.shape(values)[-1]))


def from_triangle(values: NDArray) -> NDArray:
    """Return the symmetric matrix of an upper triangle."""
    size = side_of(values)
    matrix = np.zeros((size, size), dtype=values.dtype)
    matrix[np.triu_indices(size)] = values
    return matrix + np.triu(matrix, 1).T
