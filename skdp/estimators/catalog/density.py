"""Clusters, mixtures and covariances."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh, solve_triangular

from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.alignment import NearestRows
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.known_squares import Covariance
from skdp.estimators.catalog.repairs import (
    correlations,
    from_triangle,
    lower_factor,
    nearest_covariance,
    on_simplex,
    positive,
    raised_divisors,
    raised_variances,
    triangle,
)

# Attributes of the public fit that the released mixture does not need.
MIXTURE = (
    "converged_ covariance_prior_ lower_bound_ lower_bounds_ mean_prior_ precisions_init_ "
    "weights_init_"
)
COVARIANCE = (
    "alpha_ costs_ covariance_ cv_results_ dist_ precision_ raw_covariance_ raw_location_ "
    "raw_support_ shrinkage_"
)


def _read_mixture(fitted: Estimator, public_fit: Estimator) -> Values:
    """Read symmetric covariances as triangles."""
    covariances = fitted.covariances_
    if fitted.covariance_type == "tied":
        return {"covariances_": triangle(covariances)}
    if fitted.covariance_type == "full":
        return {"covariances_": np.array([triangle(matrix) for matrix in covariances])}
    return {}


def _mixture_variances(
    values: NDArray, public: NDArray, errors: NDArray, public_fit: Estimator
) -> NDArray:
    is_matrix = public_fit.covariance_type in {"tied", "full"}
    return (raised_variances if is_matrix else raised_divisors)(values, public, errors)


def _finish_covariances(released: Estimator, public_fit: Estimator) -> None:
    """Make covariances positive definite and recompute the precisions."""
    values, public = released.covariances_, public_fit.covariances_
    if released.covariance_type == "tied":
        released.covariances_ = nearest_covariance(from_triangle(values), public)
        factor = _precision_factor(released.covariances_)
    elif released.covariance_type == "full":
        pairs = zip(values, public, strict=True)
        matrices = [nearest_covariance(from_triangle(one), other) for one, other in pairs]
        released.covariances_ = np.array(matrices)
        factor = np.array([_precision_factor(matrix) for matrix in matrices])
    else:
        released.covariances_ = positive(values, public)
        factor = 1 / np.sqrt(released.covariances_)
    released.precisions_cholesky_ = factor
    is_matrix = released.covariance_type in {"tied", "full"}
    released.precisions_ = factor @ np.swapaxes(factor, -1, -2) if is_matrix else factor**2


def _precision_factor(matrix: np.ndarray) -> np.ndarray:
    """Return L^-T of the covariance L L^T, whose product with its transpose is the precision."""
    return solve_triangular(lower_factor(matrix), np.eye(len(matrix)), lower=True).T


def _finish_bayesian_mixture(released: Estimator, public_fit: Estimator) -> None:
    """Make covariances positive definite; recompute the weights from the counts of records."""
    counts = np.maximum(released.mean_precision_ - released.mean_precision_prior_, 0)
    released.mean_precision_ = released.mean_precision_prior_ + counts
    shared = released.covariance_type == "tied"
    released.degrees_of_freedom_ = released.degrees_of_freedom_prior_ + (
        counts.sum() / len(counts) if shared else counts
    )
    prior = released.weight_concentration_prior_
    if _is_ordered(released):
        later = np.hstack((np.cumsum(counts[::-1])[-2::-1], 0))
        stick, rest = released.weight_concentration_ = (1 + counts, prior + later)
        left = np.hstack((1, np.cumprod(rest[:-1] / (stick + rest)[:-1])))
        weights = stick / (stick + rest) * left
    else:
        weights = released.weight_concentration_ = prior + counts
    released.weights_ = weights / weights.sum()
    _finish_covariances(released, public_fit)


def _is_ordered(mixture: Estimator) -> bool:
    """Return whether the order of the components is part of the model, as of broken sticks."""
    return mixture.weight_concentration_prior_type == "dirichlet_process"


def _read_covariance(fitted: Estimator, public_fit: Estimator) -> Values:
    return {"covariance_": triangle(fitted.covariance_)}


def _finish_covariance(released: Estimator, public_fit: Estimator) -> None:
    """Make the covariance positive semidefinite; the precision is its pseudo-inverse."""
    covariance = from_triangle(released.covariance_)
    released.covariance_ = nearest_covariance(covariance, public_fit.covariance_, singular=True)
    released.precision_ = pinvh(released.covariance_) if released.store_precision else None


def _read_precision(fitted: Estimator, public_fit: Estimator) -> Values:
    return {"precision_": triangle(fitted.precision_)}


def _finish_precision(released: Estimator, public_fit: Estimator) -> None:
    """Make the precision positive definite; the covariance is its inverse."""
    released.precision_ = nearest_covariance(
        from_triangle(released.precision_), public_fit.precision_
    )
    scaled, deviations = correlations(released.precision_)
    released.covariance_ = pinvh(scaled) / deviations / deviations[:, None]


def _align_mixture(values: Values, public_fit: Estimator) -> Values:
    has_own = public_fit.covariance_type != "tied"
    others = ("weights_", "mean_precision_") + ("covariances_",) * has_own
    return NearestRows("means_", others)(values, public_fit)


def _align_bayesian_mixture(values: Values, public_fit: Estimator) -> Values:
    return values if _is_ordered(public_fit) else _align_mixture(values, public_fit)


_mixture = Entry(
    read=_read_mixture,
    divisors={"covariances_": _mixture_variances},
    numbers="k + k d (d + 3) / 2",
    misleading=MIXTURE,
)
_covariance = Entry(
    ("covariance_", "location_ if not assume_centered"),
    _finish_covariance,
    read=_read_covariance,
    divisors={"covariance_": raised_variances},
    numbers="d (d + 3) / 2",
    misleading=COVARIANCE,
)

ENTRIES: dict[str, Entry] = {
    "sklearn.cluster KMeans MiniBatchKMeans": Entry(
        ("cluster_centers_",),
        align=NearestRows("cluster_centers_"),
        numbers="k d",
        misleading="n_steps_",
    ),
    "sklearn.mixture.GaussianMixture": replace(
        _mixture,
        attributes=("weights_", "means_", "covariances_"),
        repairs={"weights_": on_simplex},
        finish=_finish_covariances,
        align=_align_mixture,
    ),
    "sklearn.mixture.BayesianGaussianMixture": replace(
        _mixture,
        attributes=("mean_precision_", "means_", "covariances_"),
        finish=_finish_bayesian_mixture,
        align=_align_bayesian_mixture,
    ),
    "sklearn.covariance.EmpiricalCovariance": replace(_covariance, known=Covariance),
    "sklearn.covariance ShrunkCovariance LedoitWolf OAS MinCovDet": _covariance,
    "sklearn.covariance.EllipticEnvelope": replace(
        _covariance,
        attributes=("covariance_", "location_ if not assume_centered", "offset_"),
        numbers="d (d + 3) / 2 + 1",
    ),
    "sklearn.covariance GraphicalLasso GraphicalLassoCV": Entry(
        ("precision_", "location_ if not assume_centered"),
        _finish_precision,
        read=_read_precision,
        numbers="d (d + 3) / 2",
        misleading=COVARIANCE,
    ),
}
