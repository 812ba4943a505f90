"""Decompositions: the components, in the order and with the signs of the public fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy.linalg import pinv
from scipy.special import psi

from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.alignment import NearestRows, SignedRows, scaled_as_public_fit
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.known_squares import PrincipalComponents
from skdp.estimators.catalog.repairs import nonnegative, orthonormal, positive, raised_divisors

# Smallest topic weight of a release, unless the prior is smaller. Its digamma function is moderate.
SMALLEST_WEIGHT = 1e-3
ROUNDING = float(np.finfo(np.float64).eps)


def _finish_pca(released: Estimator, public_fit: Estimator) -> None:
    """Set the variances that need no release."""
    if not released.whiten:  # transform reads its type only
        released.explained_variance_ = np.full_like(released.components_[:, 0], np.nan)
    elif len(released.components_) == released.n_features_in_:
        released.noise_variance_ = 0.0  # no component is left out


def _finish_factor_analysis(released: Estimator, public_fit: Estimator) -> None:
    """Make the noise variances large enough beside the factors to be inverted."""
    smallest = 100 * ROUNDING * np.sum(released.components_**2, axis=0)
    released.noise_variance_ = np.maximum(released.noise_variance_, smallest)


def _finish_fast_ica(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the mixing matrix."""
    released.mixing_ = pinv(released.components_)


def _align_nmf(values: Values, public_fit: Estimator) -> Values:
    """Order the components as in the public fit; without a penalty, scale them as there too."""
    values = NearestRows("components_", unit=True)(values, public_fit)
    penalized = public_fit.alpha_W != 0 or public_fit.alpha_H not in {0, "same"}
    return values if penalized else scaled_as_public_fit(values, "components_", public_fit)


def _finish_nmf(released: Estimator, public_fit: Estimator) -> None:
    """Replace negative entries by zero, and a component without positive ones by the public one."""
    components = np.maximum(released.components_, 0)
    is_negative = (released.components_ < 0).any(axis=1, keepdims=True)
    is_lost = is_negative & ~components.any(axis=1, keepdims=True)
    released.components_ = np.where(is_lost, public_fit.components_, components)


def _finish_topics(released: Estimator, public_fit: Estimator) -> None:
    """Raise topic weights to .001, or to a smaller prior; recompute the expectations."""
    smallest = min(SMALLEST_WEIGHT, released.topic_word_prior_)
    weights = np.maximum(released.components_, smallest)
    released.components_ = weights
    expected_log = psi(weights) - psi(weights.sum(axis=1, keepdims=True))
    released.exp_dirichlet_component_ = np.exp(expected_log)


def _align_dictionary(values: Values, public_fit: Estimator) -> Values:
    """Order the atoms as the public ones; where codes are not negative, keep the signs."""
    rule = NearestRows("components_", unit=True) if public_fit.positive_code else _signed
    return rule(values, public_fit)


_signed = SignedRows("components_")
_pca = Entry(
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
)

ENTRIES: dict[str, Entry] = {
    "sklearn.decomposition.PCA": replace(_pca, known=PrincipalComponents),
    "sklearn.decomposition.IncrementalPCA": _pca,
    "sklearn.decomposition SparsePCA MiniBatchSparsePCA": Entry(
        ("mean_", "components_"), align=_signed, numbers="(k + 1) d", misleading="error_"
    ),
    "sklearn.decomposition DictionaryLearning MiniBatchDictionaryLearning": Entry(
        ("components_",), align=_align_dictionary, numbers="k d", misleading="error_ n_steps_"
    ),
    "sklearn.decomposition NMF MiniBatchNMF": Entry(
        ("components_",),
        _finish_nmf,
        _align_nmf,
        numbers="k d",
        misleading="n_steps_ reconstruction_err_",
    ),
    "sklearn.decomposition.TruncatedSVD": Entry(
        ("components_",),
        align=_signed,
        repairs={"components_": orthonormal},
        numbers="k d",
        misleading="explained_variance_ explained_variance_ratio_ singular_values_",
        by_record=True,
    ),
    "sklearn.decomposition.FactorAnalysis": Entry(
        ("mean_", "components_", "noise_variance_"),
        _finish_factor_analysis,
        _signed,
        repairs={"noise_variance_": positive},
        divisors={"noise_variance_": raised_divisors},
        numbers="(k + 2) d",
        misleading="loglike_",
    ),
    "sklearn.decomposition.FastICA": Entry(
        ("components_", "mean_ if whiten"),
        _finish_fast_ica,
        _signed,
        numbers="(k + 1) d",
        misleading="whitening_",
    ),
    "sklearn.decomposition.LatentDirichletAllocation": Entry(
        ("components_",),
        _finish_topics,
        NearestRows("components_", unit=True),
        numbers="k d",
        misleading="bound_ n_batch_iter_",
    ),
    "sklearn.neural_network.BernoulliRBM": Entry(
        ("components_", "intercept_hidden_"),
        numbers="k (d + 1)",
        misleading="h_samples_ intercept_visible_",
        unserved=("score_samples",),
    ),
    "sklearn.neighbors.NeighborhoodComponentsAnalysis": Entry(
        ("components_",), align=_signed, numbers="k d"
    ),
}
