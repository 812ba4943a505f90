"""Components, clusters, mixtures and covariances, in the order of the public fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import pinvh, solve_triangular
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist

from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.repairs import (
    from_triangle,
    lower_factor,
    nearest_covariance,
    nonnegative,
    on_simplex,
    orthonormal,
    positive,
    public_where_hidden,
    raised_divisors,
    raised_variances,
    triangle,
)

# Attributes of the public fit that the released mixture does not need.
MIXTURE = (
    "converged_ covariance_prior_ lower_bound_ lower_bounds_ mean_prior_ precisions_init_ "
    "weights_init_"
)
COVARIANCE = "covariance_ dist_ precision_ raw_covariance_ raw_location_ raw_support_ shrinkage_"


@dataclass(frozen=True)
class SignedRows:
    """Give rows order and signs of public ones; `others` move along."""

    reference: str
    others: tuple[str, ...] = ()

    def __call__(self, values: Values, public_fit: Estimator) -> Values:
        """Return the values, aligned."""
        rows, public = values[self.reference], getattr(public_fit, self.reference)
        cosines = _unit_rows(rows) @ _unit_rows(public).T
        order = _match(-np.abs(cosines))
        signs = np.sign(cosines[order, np.arange(len(order))]).astype(rows.dtype)
        signs[signs == 0] = 1
        moved = _reorder(values, (self.reference, *self.others), order)
        return moved | {self.reference: moved[self.reference] * signs[:, None]}


@dataclass(frozen=True)
class NearestRows:
    """Give rows the order of the nearest public ones; `others` move along."""

    reference: str
    others: tuple[str, ...] = ()

    def __call__(self, values: Values, public_fit: Estimator) -> Values:
        """Return the values, aligned."""
        rows, public = values[self.reference], getattr(public_fit, self.reference)
        order = _match(cdist(rows, public, metric="sqeuclidean"))
        return _reorder(values, (self.reference, *self.others), order)


def _reorder(values: Values, names: tuple[str, ...], order: NDArray) -> Values:
    present = values.keys() & set(names)
    return values | {name: np.asarray(values[name])[order] for name in present}


def _unit_rows(rows: NDArray) -> NDArray:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0)


def _match(costs: NDArray) -> NDArray:
    """Return, for each row of the public fit, the row that it is matched with."""
    rows, columns = linear_sum_assignment(costs)
    return rows[np.argsort(columns)]


def _finish_pca(released: Estimator, public_fit: Estimator) -> None:
    """Set the variances that need no release."""
    if not released.whiten:  # transform reads its type only
        released.explained_variance_ = np.full_like(released.components_[:, 0], np.nan)
    elif len(released.components_) == released.n_features_in_:
        released.noise_variance_ = 0.0  # no component is left out


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


def _read_covariance(fitted: Estimator, public_fit: Estimator) -> Values:
    return {"covariance_": triangle(fitted.covariance_)}


def _finish_covariance(released: Estimator, public_fit: Estimator) -> None:
    """Make the covariance positive semidefinite; the precision is its pseudo-inverse."""
    covariance = from_triangle(released.covariance_)
    released.covariance_ = nearest_covariance(covariance, public_fit.covariance_, singular=True)
    released.precision_ = pinvh(released.covariance_) if released.store_precision else None


def _align_mixture(values: Values, public_fit: Estimator) -> Values:
    has_own = public_fit.covariance_type != "tied"
    others = ("weights_",) + ("covariances_",) * has_own
    return NearestRows("means_", others)(values, public_fit)


ENTRIES: dict[str, Entry] = {
    "sklearn.decomposition PCA IncrementalPCA": Entry(
        ("mean_", "components_", "explained_variance_ if whiten"),
        _finish_pca,
        SignedRows("components_", ("explained_variance_",)),
        repairs={"components_": orthonormal, "explained_variance_": nonnegative},
        divisors={"explained_variance_": raised_divisors},
        numbers="(k + 1) d",
        misleading="explained_variance_ explained_variance_ratio_ n_samples_ noise_variance_ "
        "singular_values_ var_",
        unserved=("score_samples", "score"),
        by_record=True,
    ),
    "sklearn.decomposition.TruncatedSVD": Entry(
        ("components_",),
        align=SignedRows("components_"),
        repairs={"components_": orthonormal},
        numbers="k d",
        misleading="explained_variance_ explained_variance_ratio_ singular_values_",
        by_record=True,
    ),
    "sklearn.cluster KMeans MiniBatchKMeans": Entry(
        ("cluster_centers_",),
        align=NearestRows("cluster_centers_"),
        divisors={"cluster_centers_": public_where_hidden},
        numbers="k d",
        misleading="n_steps_",
    ),
    "sklearn.mixture.GaussianMixture": Entry(
        ("weights_", "means_", "covariances_"),
        _finish_covariances,
        _align_mixture,
        _read_mixture,
        repairs={"weights_": on_simplex},
        divisors={"covariances_": _mixture_variances, "means_": public_where_hidden},
        numbers="k + k d (d + 3) / 2",
        misleading=MIXTURE,
    ),
    "sklearn.covariance EmpiricalCovariance ShrunkCovariance LedoitWolf OAS MinCovDet": Entry(
        ("covariance_", "location_ if not assume_centered"),
        _finish_covariance,
        read=_read_covariance,
        divisors={"covariance_": raised_variances},
        numbers="d (d + 3) / 2",
        misleading=COVARIANCE,
    ),
}
