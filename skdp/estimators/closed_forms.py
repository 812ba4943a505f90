"""Estimators as functions of moments: which fitted attribute is what function of which means."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import Container, Estimator
from skdp.core.units import Records
from skdp.estimators.equations import Attributes, discriminant, least_squares

Shape = tuple[int, int]

EPS = np.finfo(np.float64).eps


class ClosedForm(NamedTuple):
    """The closed form of an estimator, given its parameters.

    Parameters
    ----------
    features : callable
        ``features(records, X)`` or ``features(records, X, y)`` returns u.
    attributes : callable
        ``attributes(records, means, n_samples)`` returns the fitted attributes of a batch.
    products : bool
        Whether the means are those of the products u u'.
    sizes : callable or None
        ``sizes(records, sums, n_samples)`` bounds the sums of the absolute values; see
        :class:`skdp.core.moments.Moments`.
    """

    features: Callable[..., NDArray[np.float64]]
    attributes: Callable[[Records, NDArray, int], Attributes]
    products: bool = False
    sizes: Callable[[Records, NDArray, int], NDArray[np.float64]] | None = None


# Features. Products of (1, x, z) hold the mean and all second moments.


def _one_x(records: Records, X: NDArray, y: Container = None) -> NDArray[np.float64]:
    return np.hstack([np.ones((len(X), 1)), records.standardize(X)])


def _one_x_y(records: Records, X: NDArray, y: NDArray) -> NDArray[np.float64]:
    return np.hstack([_one_x(records, X), records.standardize_response(y)[:, None]])


def _classes_x(records: Records, X: NDArray, y: NDArray) -> NDArray[np.float64]:
    return np.hstack([records.indicators(y), records.standardize(X)])


def _one_x_codes(records: Records, X: NDArray, y: NDArray) -> NDArray[np.float64]:
    codes = 2 * records.indicators(y) - 1
    return np.hstack([np.ones((len(X), 1)), records.standardize(X), codes[:, _columns(records)]])


def _x_squares(records: Records, X: NDArray, y: Container = None) -> NDArray[np.float64]:
    Z = records.standardize(X)
    return np.hstack([Z, Z**2])


def _by_class(records: Records, y: NDArray, columns: NDArray) -> NDArray[np.float64]:
    """Return (1, columns) in the block of the record's class, 0 elsewhere."""
    u = np.hstack([np.ones((len(y), 1)), columns])
    return (records.indicators(y)[:, :, None] * u[:, None, :]).reshape(len(y), -1)


def _squares_by_class(records: Records, X: NDArray, y: NDArray) -> NDArray[np.float64]:
    return _by_class(records, y, _x_squares(records, X))


def _sizes_of_squares(records: Records, sums: NDArray, n_samples: int) -> NDArray[np.float64]:
    """Bound the sums of (|z|, z^2), or of (1, |z|, z^2) class by class."""
    n_classes = 1 if records.classes is None else len(records.classes)
    blocks = sums.reshape(len(sums), n_classes, -1)
    width = 2 * len(records.center)
    square = blocks[:, :, -width // 2 :]
    count: Any = n_samples if blocks.shape[2] == width else blocks[:, :, :1]
    first = blocks[:, :, : blocks.shape[2] - width]
    return np.concatenate([first, np.sqrt(count * square), square], axis=2).reshape(sums.shape)


def _columns(records: Records) -> slice:
    """Of two classes only the second has an equation."""
    assert records.classes is not None
    return slice(1, None) if len(records.classes) == 2 else slice(None)


def _split_classes(records: Records, means: NDArray) -> tuple[NDArray, NDArray]:
    """Return the share of each class, and the mean of its columns times its share.

    Both are NaN for a class that is missing: a fit without it is no fit of the same classes.
    """
    assert records.classes is not None
    blocks = means.reshape(len(means), len(records.classes), -1)
    blocks = np.where(blocks[:, :, :1] > 0, blocks, np.nan)
    return blocks[:, :, 0], blocks[:, :, 1:]


# Attributes of a batch of datasets: the first axis is that of the batch.


def _standard_scaler(records: Records, means: NDArray, n_samples: int) -> Attributes:
    mean, square = np.split(means, 2, axis=1)
    var = np.maximum(square - mean**2, 0) * records.scale**2
    mean = records.center + mean * records.scale
    # a column that may be taken for constant has a scale of its own rule
    lost = n_samples * EPS * var + (n_samples * EPS * mean) ** 2
    scale = np.sqrt(np.where(var > 100 * lost, var, np.nan))
    return {"mean_": mean, "var_": var, "scale_": scale}


def gaussian_nb(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """Means and mean squares of each class."""
    smoothing = estimator.var_smoothing

    def attributes(records: Records, means: NDArray, n_samples: int) -> Attributes:
        shares, sums = _split_classes(records, means)
        mean, square = np.split(sums / shares[:, :, None], 2, axis=2)
        total, total_square = np.split(sums.sum(axis=1), 2, axis=1)
        largest = ((total_square - total**2) * records.scale**2).max(axis=1)
        var = (square - mean**2) * records.scale**2 + smoothing * largest[:, None, None]
        theta = records.center + mean * records.scale
        counts = shares * n_samples
        return {"theta_": theta, "var_": var, "class_prior_": shares, "class_count_": counts}

    return [ClosedForm(_squares_by_class, attributes, sizes=_sizes_of_squares)]


def _count_nb(estimator: Estimator, log_shares: Callable[..., NDArray]) -> list[ClosedForm]:
    """Naive Bayes on counts: raw columns, since sums of counts have no origin to move."""
    if not isinstance(estimator.alpha, Real):
        return []
    alpha, binarize = float(estimator.alpha), getattr(estimator, "binarize", None)
    fit_prior = estimator.fit_prior

    def features(records: Records, X: NDArray, y: NDArray) -> NDArray[np.float64]:
        # refits of counts refuse negative ones, and sums of one sign know their rounding
        counts = np.where(X < 0, np.nan, X) if binarize is None else binarize < X
        return _by_class(records, y, counts)

    def attributes(records: Records, means: NDArray, n_samples: int) -> Attributes:
        shares, sums = _split_classes(records, means)
        counts, class_counts = n_samples * sums, n_samples * shares
        prior = np.log(shares) if fit_prior else np.full_like(shares, -np.log(shares.shape[1]))
        return {
            "feature_count_": counts,
            "class_count_": class_counts,
            "class_log_prior_": prior + 0 * shares,
            "feature_log_prob_": log_shares(counts, class_counts, alpha),
        }

    return [ClosedForm(features, attributes)]


def _multinomial(counts: NDArray, class_counts: NDArray, alpha: float) -> NDArray:
    smoothed = counts + alpha
    return np.log(smoothed) - np.log(smoothed.sum(axis=2, keepdims=True))


def _bernoulli(counts: NDArray, class_counts: NDArray, alpha: float) -> NDArray:
    return np.log(counts + alpha) - np.log((class_counts + 2 * alpha)[:, :, None])


def _complement(counts: NDArray, class_counts: NDArray, alpha: float) -> NDArray:
    smoothed = counts.sum(axis=1, keepdims=True) + alpha - counts
    return -(np.log(smoothed) - np.log(smoothed.sum(axis=2, keepdims=True)))


def _nearest_centroid(records: Records, means: NDArray, n_samples: int) -> Attributes:
    shares, sums = _split_classes(records, means)
    mean, square = np.split(sums / shares[:, :, None], 2, axis=2)
    within = np.einsum("bk,bkd->bd", shares, square - mean**2)
    # records that are all alike are refused
    differ = within > n_samples * 10 * EPS * np.einsum("bk,bkd->bd", shares, square)
    within = np.where(differ.any(axis=1, keepdims=True), within, np.nan)
    spread = np.sqrt(within * n_samples / (n_samples - shares.shape[1]))
    return {
        "centroids_": records.center + mean * records.scale,
        "within_class_std_dev_": spread * records.scale,
    }


def _covariance(means: NDArray, records: Records) -> tuple[NDArray, NDArray]:
    """Return mean and covariance, both in the original units, from the products of (1, x)."""
    mean = means[:, 0, 1:]
    centered = means[:, 1:, 1:] - mean[:, :, None] * mean[:, None, :]
    covariance = centered * np.outer(records.scale, records.scale)
    return records.center + mean * records.scale, covariance


def _empirical_covariance(records: Records, means: NDArray, n_samples: int) -> Attributes:
    location, covariance = _covariance(means, records)
    triangle = np.triu_indices(covariance.shape[1])
    return {"location_": location, "covariance_": covariance[:, *triangle]}


def _sizes_of_spectrum(records: Records, sums: NDArray, n_samples: int) -> NDArray[np.float64]:
    """Bound the products by the largest, in the original units, as eigenvalues lose digits."""
    squares = np.diagonal(sums, axis1=1, axis2=2).copy()
    squares[:, 1:] = (squares[:, 1:] * records.scale**2).max(axis=1, keepdims=True)
    units = np.concatenate([[1.0], records.scale])
    return np.sqrt(squares[:, :, None] * squares[:, None, :]) / np.outer(units, units)


def _principal(
    records: Records, means: NDArray, n_samples: int, n_components: object
) -> Attributes:
    mean, covariance = _covariance(means, records)
    usable = np.isfinite(covariance.sum(axis=(1, 2)))[:, None]
    finite = np.where(usable[:, :, None], covariance, 0.0)
    variances, vectors = np.linalg.eigh(finite * n_samples)
    variances = variances[:, ::-1] / (n_samples - 1)
    components = vectors.transpose(0, 2, 1)[:, ::-1]
    # the sign is that of scikit-learn: the largest entry of a component is positive
    largest = np.abs(components).argmax(axis=2)[:, :, None]
    components = components * np.sign(np.take_along_axis(components, largest, axis=2))
    # equal variances have no directions of their own, and a tiny one is lost in its square
    gaps = np.diff(variances, axis=1, append=0)
    clear: NDArray = (
        np.logical_and.reduce(-gaps > 1e-6 * variances[:, :1], axis=1)[:, None] & usable
    )
    variances = np.where(clear, variances, np.nan)
    kept = slice(n_components)
    return {
        "mean_": mean,
        "components_": np.where(clear[:, :, None], components, np.nan)[:, kept],
        "explained_variance_": variances[:, kept],
        "explained_variance_ratio_": (variances / variances.sum(axis=1, keepdims=True))[:, kept],
        "singular_values_": np.sqrt(np.maximum(variances, 0) * (n_samples - 1))[:, kept],
    }


# The closed forms that may hold for an estimator as configured, and for records of a shape: none
# where none is known, several where versions of scikit-learn differ. A trial tells.


def _is_randomized(pca: Estimator, n_samples: int, n_features: int) -> bool:
    """Return whether a PCA may choose its randomized solver, which is not exact."""
    by_covariance = n_features <= 1000 and n_samples >= 10 * n_features
    large = not by_covariance and max(n_samples, n_features) > 500
    return pca.svd_solver == "auto" and pca.n_components is not None and large


def standard_scaler(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """Means and mean squares."""
    return [ClosedForm(_x_squares, _standard_scaler, sizes=_sizes_of_squares)]


def multinomial_nb(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """Counts of each class."""
    return _count_nb(estimator, _multinomial)


def bernoulli_nb(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """Counts of each class."""
    return _count_nb(estimator, _bernoulli)


def complement_nb(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """Counts of each class, and of all others."""
    return _count_nb(estimator, _complement)


def nearest_centroid(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """Means of each class, and the deviations within."""
    return [ClosedForm(_squares_by_class, _nearest_centroid, sizes=_sizes_of_squares)]


def empirical_covariance(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """Means and products."""
    return [ClosedForm(_one_x, _empirical_covariance, products=True)]


def pca(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """Eigenvectors of the covariance, unless the solver may be randomized."""
    # a share of the variance, or "mle", makes their number depend on the data
    by_number = isinstance(estimator.n_components, Integral | None)
    if not by_number or _is_randomized(estimator, *shape):
        return []
    attributes = partial(_principal, n_components=estimator.n_components)
    return [ClosedForm(_one_x, attributes, products=True, sizes=_sizes_of_spectrum)]


def linear_discriminant(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """Linear equations in the covariance within classes."""
    solver, tol = estimator.solver, estimator.tol
    if tol > 1e-4:  # the condition that is asked for here is not enough
        return []
    return [
        ClosedForm(_classes_x, discriminant(lost, solver, tol), products=True)
        for lost in (False, True)
    ]


def linear_regression(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """The normal equations."""
    solution = least_squares(0.0, estimator.fit_intercept, "vector", "lstsq")
    return [ClosedForm(_one_x_y, solution, products=True)]


def ridge(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """The normal equations with a penalty."""
    return _ridge(estimator, shape, _one_x_y, "vector")


def ridge_classifier(estimator: Estimator, shape: Shape) -> list[ClosedForm]:
    """The same for the codes of the classes."""
    return _ridge(estimator, shape, _one_x_codes, "matrix")


def _ridge(estimator: Estimator, shape: Shape, features: Callable, form: str) -> list[ClosedForm]:
    if not isinstance(estimator.alpha, Real) or shape[1] > shape[0]:  # another equation is solved
        return []
    alpha, solver = float(estimator.alpha), estimator.solver
    solution = least_squares(alpha, estimator.fit_intercept, form, solver)
    return [ClosedForm(features, solution, products=True)]
