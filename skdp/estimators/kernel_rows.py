"""Rows of a kernel density on a lattice: what each record adds to the density."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.core.dataset import Dataset
from skdp.core.types import Estimator, Matrix

TRANSLATION_INVARIANT = frozenset(
    {"chebyshev", "cityblock", "euclidean", "infinity", "l1", "l2", "manhattan", "minkowski", "p"}
)
"""Distances that depend on the difference of two points only."""


def kernel_rows(
    estimator: Estimator, points: Matrix, records: Dataset
) -> Callable[..., Matrix] | None:
    """Return ``rows(X)``, the density that each record adds; None where there is none."""
    exact = estimator.atol == 0 and estimator.rtol == 0  # a tolerance lets the tree stop early
    plain = estimator.metric in TRANSLATION_INVARIANT and estimator.metric_params is None
    if not exact or not plain or records.sample_weight is not None:
        return None
    n_samples, width = records.n_records - 1, points.shape[1]
    bandwidth = clone(estimator).fit(np.zeros((n_samples, width))).bandwidth_
    kernel = clone(estimator).set_params(bandwidth=float(bandwidth)).fit(np.zeros((1, width)))
    return lambda X, y=None: _densities(kernel, points, np.asarray(X, np.float64)) / n_samples


def _densities(kernel: Estimator, points: Matrix, X: Matrix) -> Matrix:
    """Evaluate the density of each record alone at the points, a row per record."""
    differences = (points - X[:, None, :]).reshape(-1, points.shape[1])
    densities: NDArray = np.exp(kernel.score_samples(differences))
    return densities.reshape(len(X), len(points))
