"""Decompositions: the components, in the order and with the signs of the public twin."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import psi

from skdp._classes import named
from skdp.targets.registry._alignment import NearestRows, SignedRows, Values, scaled_as_twin
from skdp.targets.registry._entry import Entry, always
from skdp.targets.registry._repairs import orthonormal, positive

# Smallest topic weight: its digamma function stays finite.
SMALLEST_WEIGHT = 1e-3


def _pca(fitted: Any) -> tuple[str, ...]:
    return ("mean_", "components_") + ("explained_variance_",) * bool(fitted.whiten)


def _finish_pca(released: Any, twin: Any) -> None:
    """Make the components orthonormal; a variance that is not positive becomes the twin's.

    With all variances the covariance is known too; without them it cannot be computed.
    """
    released.components_ = orthonormal(released.components_)
    if released.whiten:
        released.explained_variance_ = positive(
            released.explained_variance_, twin.explained_variance_
        )
        if len(released.components_) == released.n_features_in_:
            released.noise_variance_ = 0.0  # that of the components left out
    else:  # transform asks for its type only
        released.explained_variance_ = np.full_like(released.components_[:, 0], np.nan)


def _finish_truncated_svd(released: Any, twin: Any) -> None:
    """Make the components orthonormal."""
    released.components_ = orthonormal(released.components_)


def _finish_factor_analysis(released: Any, twin: Any) -> None:
    """A noise variance that is not positive becomes the twin's."""
    released.noise_variance_ = positive(released.noise_variance_, twin.noise_variance_)


def _fast_ica(fitted: Any) -> tuple[str, ...]:
    return ("components_",) + ("mean_",) * bool(fitted.whiten)


def _finish_fast_ica(released: Any, twin: Any) -> None:
    """Recompute the mixing matrix."""
    released.mixing_ = np.linalg.pinv(released.components_)


def _align_nmf(values: Values, twin: Any) -> Values:
    """Order the components as the twin's; without a penalty their lengths mean nothing either."""
    values = NearestRows("components_", unit=True)(values, twin)
    penalized = twin.alpha_W != 0 or twin.alpha_H not in {0, "same"}
    return values if penalized else scaled_as_twin(values, "components_", twin)


def _finish_nmf(released: Any, twin: Any) -> None:
    """Negative entries become zero; a component without positive ones becomes the twin's."""
    components = np.maximum(released.components_, 0)
    is_empty = ~components.any(axis=1, keepdims=True)
    released.components_ = np.where(is_empty, twin.components_, components)


def _finish_topics(released: Any, twin: Any) -> None:
    """Topic weights below .001 become .001; the expectations follow from them."""
    weights = np.maximum(released.components_, SMALLEST_WEIGHT)
    released.components_ = weights
    expected_log = psi(weights) - psi(weights.sum(axis=1, keepdims=True))
    released.exp_dirichlet_component_ = np.exp(expected_log)


_signed = SignedRows("components_")
_moments = (
    "explained_variance_ explained_variance_ratio_ n_samples_ noise_variance_ singular_values_ var_"
)
_pca_entry = Entry(
    _pca,
    _finish_pca,
    SignedRows("components_", ("explained_variance_",)),
    numbers="(k + 1) d",
    drop=tuple(_moments.split()),
    unserved=("score_samples", "score"),
)
_sparse_pca = Entry(
    always("mean_", "components_"), align=_signed, numbers="(k + 1) d", drop=("error_",)
)
_dictionary = Entry(
    always("components_"), align=_signed, numbers="k d", drop=("error_", "n_steps_")
)
_nmf = Entry(
    always("components_"),
    _finish_nmf,
    _align_nmf,
    numbers="k d",
    drop=("n_steps_", "reconstruction_err_"),
)

ENTRIES: dict[str, Entry] = {
    **dict.fromkeys(named("sklearn.decomposition", "PCA IncrementalPCA"), _pca_entry),
    **dict.fromkeys(named("sklearn.decomposition", "SparsePCA MiniBatchSparsePCA"), _sparse_pca),
    **dict.fromkeys(
        named("sklearn.decomposition", "DictionaryLearning MiniBatchDictionaryLearning"),
        _dictionary,
    ),
    **dict.fromkeys(named("sklearn.decomposition", "NMF MiniBatchNMF"), _nmf),
    "sklearn.decomposition.TruncatedSVD": Entry(
        always("components_"),
        _finish_truncated_svd,
        _signed,
        numbers="k d",
        drop=("explained_variance_", "explained_variance_ratio_", "singular_values_"),
    ),
    "sklearn.decomposition.FactorAnalysis": Entry(
        always("mean_", "components_", "noise_variance_"),
        _finish_factor_analysis,
        _signed,
        numbers="(k + 2) d",
        drop=("loglike_",),
    ),
    "sklearn.decomposition.FastICA": Entry(
        _fast_ica, _finish_fast_ica, _signed, numbers="(k + 1) d", drop=("whitening_",)
    ),
    "sklearn.decomposition.LatentDirichletAllocation": Entry(
        always("components_"),
        _finish_topics,
        NearestRows("components_", unit=True),
        numbers="k d",
        drop=("bound_", "n_batch_iter_"),
    ),
    "sklearn.neural_network.BernoulliRBM": Entry(
        always("components_", "intercept_hidden_"),
        numbers="k (d + 1)",
        drop=("h_samples_", "intercept_visible_"),
        unserved=("score_samples",),
    ),
    "sklearn.neighbors.NeighborhoodComponentsAnalysis": Entry(
        always("components_"), align=_signed, numbers="k d"
    ),
}
