"""Classes that are released through a stand-in with public attributes."""

from __future__ import annotations

from typing import Any

from sklearn.cluster import BisectingKMeans
from sklearn.cross_decomposition import PLSSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import PowerTransformer

from skdp.targets._bisecting import SplitKMeans, aligned_splits, leaves
from skdp.targets._stand_ins import (
    AffinePLSSVD,
    DiscriminantProjection,
    PublicNystroem,
    StandardizedPowerTransformer,
)
from skdp.targets.registry._alignment import SignedRows
from skdp.targets.registry._entry import Entry, always
from skdp.targets.registry._linear import DISCRIMINANT, PLS
from skdp.targets.registry._repairs import standard_deviations


def stand_in_of(estimator: Any, transforms: bool) -> type | None:
    """Return the class that takes the place of an estimator, None if it stays.

    Parameters
    ----------
    estimator : estimator object
        As configured.
    transforms : bool
        Whether it is a step that transforms, and not one that predicts.

    Returns
    -------
    type or None
        A class with the same parameters.
    """
    kind = type(estimator)
    if kind is LinearDiscriminantAnalysis:
        return DiscriminantProjection if transforms else None
    if kind is PowerTransformer and not estimator.standardize:
        return None
    return _STAND_INS.get(kind)


def _power_transformer(fitted: Any) -> tuple[str, ...]:
    return ("lambdas_", "mean_", "var_") if fitted.standardize else ("lambdas_",)


def _finish_power_transformer(released: Any, twin: Any) -> None:
    """Recompute the scale; a variance that noise made negative becomes the twin's."""
    if released.standardize:
        released.var_, released.scale_ = standard_deviations(released.var_, twin.var_)


def _refuse_precomputed(estimator: Any) -> str | None:
    if estimator.kernel != "precomputed":
        return None
    return "a precomputed kernel has one column for each record. Give it the records themselves"


def _read_splits(fitted: Any, twin: Any) -> dict[str, Any]:
    """Lay the tree of splits upon the twin's."""
    return {"split_centers_": aligned_splits(fitted, twin)}


def _finish_splits(released: Any, twin: Any) -> None:
    """Take the centers of the clusters from the last splits."""
    released.cluster_centers_ = leaves(released.split_clusters_, released.split_centers_)


_affine = SignedRows("components_", flipped=("offset_",))
_power = Entry(_power_transformer, _finish_power_transformer, numbers="3 d")
# Its landmarks are the public twin's in every fit: they are no secret, and not released.
_nystroem = Entry(
    always(),
    public=("components_", "normalization_"),
    refuse=_refuse_precomputed,
    anchored=True,
    numbers="0",
)
_pls_svd = Entry(
    always("components_", "offset_"), align=_affine, numbers="k (d + 1)", drop=tuple(PLS.split())
)
_splits = Entry(
    always("split_centers_"),
    _finish_splits,
    read=_read_splits,
    anchored=True,
    numbers="2 (k - 1) d",
)

_STAND_INS: dict[type, type] = {
    BisectingKMeans: SplitKMeans,
    Nystroem: PublicNystroem,
    PLSSVD: AffinePLSSVD,
    PowerTransformer: StandardizedPowerTransformer,
}
STAND_INS = frozenset({*_STAND_INS.values(), DiscriminantProjection})

ENTRIES: dict[type, Entry] = {
    BisectingKMeans: _splits,
    SplitKMeans: _splits,
    Nystroem: _nystroem,
    PublicNystroem: _nystroem,
    PLSSVD: _pls_svd,
    AffinePLSSVD: _pls_svd,
    PowerTransformer: _power,
    StandardizedPowerTransformer: _power,
    DiscriminantProjection: Entry(
        always("components_", "offset_"),
        align=_affine,
        numbers="k (d + 1)",
        drop=("coef_", "intercept_", *DISCRIMINANT.split()),
    ),
}
