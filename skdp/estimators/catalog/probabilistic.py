"""Naive Bayes, quadratic discriminants, and dummies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.repairs import (
    TINY,
    from_triangle,
    lower_factor,
    nearest_covariance,
    on_simplex,
    positive,
    positive_counts,
    raised_divisors,
    raised_variances,
    triangle,
)
from skdp.estimators.known.sums import Counts, GaussianMoments

ROUNDING = float(np.finfo(np.float64).eps)  # relative error of the longest axis of a covariance


def _counts(fitted: Estimator) -> tuple[str, ...]:
    learns_prior = fitted.fit_prior and fitted.class_prior is None
    return ("feature_count_",) + ("class_count_",) * learns_prior


def _smoothing(released: Estimator) -> NDArray:
    """Return the smoothing of the counts, which scikit-learn raises to 1e-10 by default."""
    return released.alpha if released.force_alpha else np.maximum(released.alpha, 1e-10)


def _log_shares(counts: np.ndarray) -> np.ndarray:
    """Return the logarithms of the shares in each row; counts that are not positive become tiny."""
    counts = positive_counts(counts)
    return np.log(counts) - np.log(counts.sum(axis=-1, keepdims=True))


def _finish_class_prior(released: Estimator) -> None:
    """Recompute the log-prior from the class counts; counts that are not positive become tiny."""
    if released.fit_prior and released.class_prior is None:
        released.class_count_ = positive_counts(released.class_count_)
        released.class_log_prior_ = np.log(released.class_count_ / released.class_count_.sum())


def _finish_multinomial_nb(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the log-probabilities; negative counts become zero."""
    released.feature_count_ = np.maximum(released.feature_count_, 0)
    released.feature_log_prob_ = _log_shares(released.feature_count_ + _smoothing(released))
    _finish_class_prior(released)


def _finish_complement_nb(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the weights from the counts of the other classes; negative counts become zero."""
    released.feature_count_ = np.maximum(released.feature_count_, 0)
    released.feature_all_ = released.feature_count_.sum(axis=0)
    others = released.feature_all_ + _smoothing(released) - released.feature_count_
    others = positive_counts(others)
    logged = np.log(others / others.sum(axis=1, keepdims=True))
    total = logged.sum(axis=1, keepdims=True)  # zero with a single feature
    normalized = logged / np.where(total < 0, total, 1.0)
    released.feature_log_prob_ = normalized if released.norm else -logged


def _finish_bernoulli_nb(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the log-probabilities; counts are clipped to [0, count of the class]."""
    released.class_count_ = positive_counts(released.class_count_)
    n_records, alpha = released.class_count_[:, None], _smoothing(released)
    released.feature_count_ = np.clip(released.feature_count_, 0, n_records)
    present, total = released.feature_count_ + alpha, n_records + 2 * alpha
    logged = np.log(np.where(present > 0, present, TINY * total)) - np.log(total)
    # The logarithm of the complement of a certain event would be infinite.
    released.feature_log_prob_ = np.where(np.exp(logged) < 1, logged, -TINY)
    _finish_class_prior(released)


def _finish_categorical_nb(released: Estimator, public_fit: Estimator) -> None:
    """Recompute log-probabilities and class counts; negative counts become zero."""
    counts = [np.maximum(count, 0) for count in released.category_count_]
    released.category_count_ = counts
    alpha = _smoothing(released)
    released.feature_log_prob_ = [_log_shares(count + alpha) for count in counts]
    # Every column counts every record once, so each gives a noisy count of the classes.
    released.class_count_ = np.mean([count.sum(axis=1) for count in counts], axis=0)
    _finish_class_prior(released)


def _read_class_covariances(fitted: Estimator, public_fit: Estimator) -> Values:
    """Return the covariances, since signs and order of eigenvectors are arbitrary."""
    pairs = zip(fitted.rotations_, fitted.scalings_, strict=True)
    return {"covariance_": [triangle((vectors * sizes) @ vectors.T) for vectors, sizes in pairs]}


def _finish_quadratic(released: Estimator, public_fit: Estimator) -> None:
    """Make covariances positive definite; recompute eigenvectors."""
    pairs = zip(public_fit.rotations_, public_fit.scalings_, strict=True)
    public = [(vectors * sizes) @ vectors.T for vectors, sizes in pairs]
    released.covariance_ = [
        nearest_covariance(from_triangle(values), matrix)
        for values, matrix in zip(released.covariance_, public, strict=True)
    ]
    decomposed = [np.linalg.svd(lower_factor(matrix)) for matrix in released.covariance_]
    released.scalings_ = [np.maximum(sizes, ROUNDING * sizes[0]) ** 2 for _, sizes, _ in decomposed]
    released.rotations_ = [vectors for vectors, _, _ in decomposed]


def _dummy_classifier(fitted: Estimator) -> tuple[str, ...]:
    return () if fitted.strategy in {"uniform", "constant"} else ("class_prior_",)


def _dummy_regressor(fitted: Estimator) -> tuple[str, ...]:
    return () if fitted.strategy == "constant" else ("constant_",)


ENTRIES: dict[str, Entry] = {
    "sklearn.naive_bayes.GaussianNB": Entry(
        ("class_prior_ if not priors", "theta_", "var_"),
        of_means=True,
        repairs={"class_prior_": on_simplex, "var_": positive},
        divisors={"var_": raised_divisors},
        numbers="2 k d + k",
        misleading="class_count_ epsilon_",
        known=GaussianMoments,
        by_record=True,
    ),
    "sklearn.naive_bayes.MultinomialNB": Entry(
        _counts, _finish_multinomial_nb, numbers="k (d + 1)", known=Counts, by_record=True
    ),
    "sklearn.naive_bayes.ComplementNB": Entry(
        ("feature_count_",), _finish_complement_nb, numbers="k d", misleading="class_count_"
    ),
    "sklearn.naive_bayes.BernoulliNB": Entry(
        ("feature_count_", "class_count_"), _finish_bernoulli_nb, numbers="k (d + 1)"
    ),
    "sklearn.naive_bayes.CategoricalNB": Entry(
        ("category_count_",), _finish_categorical_nb, numbers="k times all categories"
    ),
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis": Entry(
        ("means_", "covariance_", "priors_ if not priors"),
        _finish_quadratic,
        read=_read_class_covariances,
        repairs={"priors_": on_simplex},
        divisors={"covariance_": raised_variances},
        numbers="k d (d + 3) / 2 + k",
        by_record=True,
    ),
    "sklearn.dummy.DummyClassifier": Entry(
        _dummy_classifier, repairs={"class_prior_": on_simplex}, numbers="k"
    ),
    "sklearn.dummy.DummyRegressor": Entry(_dummy_regressor, numbers="k"),
}
