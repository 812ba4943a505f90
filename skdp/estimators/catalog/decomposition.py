"""Principal components, in the order and with the signs of the public fit."""

from __future__ import annotations

import numpy as np

from skdp.core.types import Estimator
from skdp.estimators.catalog.alignment import SignedRows
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.repairs import nonnegative, orthonormal, raised_divisors


def _finish_pca(released: Estimator, public_fit: Estimator) -> None:
    """Set the variances that need no release."""
    if not released.whiten:  # transform reads its type only
        released.explained_variance_ = np.full_like(released.components_[:, 0], np.nan)
    elif len(released.components_) == released.n_features_in_:
        released.noise_variance_ = 0.0  # no component is left out


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
}
