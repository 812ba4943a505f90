"""Kernel densities on a lattice are sums over the records: what one of them adds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.core.dataset import Dataset, n_records
from skdp.core.moments import TOLERANCE, Moments
from skdp.core.types import Container, Estimator

TRANSLATION_INVARIANT = frozenset(
    {"chebyshev", "cityblock", "euclidean", "infinity", "l1", "l2", "manhattan", "minkowski", "p"}
)
"""Distances that depend on the difference of two points only."""

_TRIED = 5


def kernel_sums(
    estimator: Estimator, points: NDArray[np.float64], records: Dataset
) -> Moments | None:
    """Find what a record adds to a kernel density, as the density of that record alone.

    The estimator itself evaluates the kernel, with its normalization: fitted on a single record in
    the origin, at the differences of points and records. The number of the public `records` decides
    the bandwidth that is left to a rule, and the densities of the first few are tried against their
    sums. None where the density is approximated or weighted, the distance is not that of a
    difference, or the trial fails.
    """
    # a tolerance lets the tree stop early, wherever it then is
    exact = estimator.atol == 0 and estimator.rtol == 0
    plain = estimator.metric in TRANSLATION_INVARIANT and estimator.metric_params is None
    if not exact or not plain or records.sample_weight is not None:
        return None
    try:
        X = _as_floats(records.X)
        bandwidth = float(clone(estimator).fit(X[:-1]).bandwidth_)
        alone = clone(estimator).set_params(bandwidth=bandwidth)
        moments = _moments(alone, points)
        few = X[:_TRIED]
        expected = np.exp(clone(alone).fit(few).score_samples(points))
        error = np.abs(moments.features(few).mean(axis=0) - expected).max()
    except Exception:  # no value here: go on with refits, which say why
        return None
    return moments if error <= TOLERANCE * expected.max() else None


def _moments(estimator: Estimator, points: NDArray[np.float64]) -> Moments:
    origin = clone(estimator).fit(np.zeros((1, points.shape[1])))

    def features(X: Container, y: Container = None) -> NDArray[np.float64]:
        differences = points - _as_floats(X)[:, None, :]
        densities = np.exp(origin.score_samples(differences.reshape(-1, points.shape[1])))
        return densities.reshape(-1, len(points))

    def total(X: Container, y: Container = None) -> NDArray[np.float64]:
        fitted = clone(estimator).fit(_as_floats(X))
        return n_records(X) * np.exp(fitted.score_samples(points))

    def values(sums: NDArray, n_samples: int) -> NDArray[np.float64]:
        return sums / n_samples

    return Moments(features, values, linear=True, total=total)


def _as_floats(X: Container) -> NDArray[np.float64]:
    return np.asarray(X, dtype=np.float64)
