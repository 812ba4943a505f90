"""Linear equations in means over the records: the closed forms of linear models."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdp.core.units import Records

Attributes = dict[str, NDArray[np.float64]]

WORST_CONDITION = 1e6
"""Of a scaled Gram matrix: beyond it an equation is left to the solver of the estimator."""

WORST_OF_SOLVER = 1e12
"""Of a matrix in the units of the records, where the solver of the estimator cuts its spectrum."""


def _solve(gram: NDArray, right: NDArray, scale: NDArray | None = None) -> NDArray[np.float64]:
    """Solve a batch of equations; NaN where the matrix is nearly singular.

    It must not be so in the units of the records either where these are given, as `scale`: there
    solvers cut off small singular values.
    """
    size = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
    gram = gram / (size[:, :, None] * size[:, None, :])
    finite = np.isfinite(gram.sum(axis=(1, 2)))[:, None, None]
    eigenvalues = np.linalg.eigvalsh(np.where(finite, gram, np.eye(gram.shape[1])))
    smallest, largest = eigenvalues[:, 0], eigenvalues[:, -1]
    usable = smallest * WORST_CONDITION > largest
    if scale is not None:
        units = (size * scale) ** 2
        spread = units.max(axis=1) / units.min(axis=1)
        usable &= smallest * WORST_OF_SOLVER > largest * spread
    usable = usable[:, None, None] & finite
    solution = np.linalg.solve(
        np.where(usable, gram, np.eye(gram.shape[1])), right / size[:, :, None]
    )
    return np.where(usable, solution / size[:, :, None], np.nan)


def least_squares(
    alpha: float, fit_intercept: bool, shape: str, solver: str
) -> Callable[[Records, NDArray, int], Attributes]:
    """Ridge regression of the columns behind x on x, from the products of (1, x, z)."""

    def attributes(records: Records, means: NDArray, n_samples: int) -> Attributes:
        end = 1 + len(records.center)
        gram, right = means[:, 1:end, 1:end], means[:, 1:end, end:]
        x, z = means[:, 0, 1:end], means[:, 0, end:]
        if fit_intercept:
            gram = gram - x[:, :, None] * x[:, None, :]
            right = right - x[:, :, None] * z[:, None, :]
        if solver == "svd":  # which leaves out directions below an absolute bound too
            spread = np.diagonal(gram, axis1=1, axis2=2) * n_samples * records.scale**2
            gram = np.where(spread.min(axis=1)[:, None, None] > 1e-20, gram, np.nan)
        gram = gram + np.diag(alpha / n_samples / records.scale**2)
        if shape == "matrix":  # codes all alike: a class is missing
            right = np.where((np.abs(z) < 1)[:, None, :], right, np.nan)
        scale = records.scale if solver in ("lstsq", "svd") else None
        coef = (_solve(gram, right, scale) / records.scale[:, None]).transpose(0, 2, 1)
        mean = records.center + x * records.scale
        origin, unit = records.response
        coef = coef * unit
        intercept = origin + z * unit - np.einsum("bkd,bd->bk", coef, mean)
        if not fit_intercept:
            intercept = np.zeros_like(intercept)
        if shape == "vector":
            return {"coef_": coef[:, 0], "intercept_": intercept[:, 0]}
        return {"coef_": coef, "intercept_": intercept}

    return attributes


def discriminant(
    lost: bool, solver: str, tol: float
) -> Callable[[Records, NDArray, int], Attributes]:
    """Linear discriminants; `lost`: whether the covariance divides by n less the classes."""

    def attributes(records: Records, means: NDArray, n_samples: int) -> Attributes:
        assert records.classes is not None
        k = len(records.classes)
        shares = np.diagonal(means[:, :k, :k], axis1=1, axis2=2)
        shares = np.where(shares > 0, shares, np.nan)
        centers = means[:, :k, k:] / shares[:, :, None]
        within = means[:, k:, k:] - np.einsum("bk,bkd,bke->bde", shares, centers, centers)
        within = within * n_samples / (n_samples - k if lost else n_samples)
        middle = np.einsum("bk,bkd->bd", shares, centers)
        apart = centers - middle[:, None, :]
        scale = records.scale if solver == "lsqr" else None
        coef = _solve(within, apart.transpose(0, 2, 1), scale).transpose(0, 2, 1)
        if solver == "svd":  # which leaves out directions in which the classes hardly differ
            between = np.sqrt(shares[:, :, None] * shares[:, None, :]) * (
                coef @ apart.transpose(0, 2, 1)
            )
            found = np.isfinite(between.sum(axis=(1, 2)))[:, None, None]
            between = np.linalg.eigvalsh(np.where(found, between, 0.0))
            last = -min(k - 1, coef.shape[2])
            clear = between[:, last] > 4 * tol**2 * between[:, -1]
            coef = np.where(clear[:, None, None], coef, np.nan)
        intercept = np.log(shares) - 0.5 * np.einsum("bkd,bkd->bk", coef, apart)
        coef = coef / records.scale
        middle = records.center + middle * records.scale
        intercept = intercept - np.einsum("bkd,bd->bk", coef, middle)
        if k == 2:
            coef, intercept = coef[:, 1:] - coef[:, :1], intercept[:, 1:] - intercept[:, :1]
        return {"coef_": coef, "intercept_": intercept}

    return attributes
