"""Classes that are released through a stand-in with public attributes."""

from __future__ import annotations

import importlib
from typing import Any

from skdp.core.classes import public_name
from skdp.estimators.catalog.alignment import SignedRows
from skdp.estimators.catalog.entry import Entry, always
from skdp.estimators.catalog.linear import DISCRIMINANT
from skdp.estimators.catalog.repairs import read_variances, standard_deviations

DISCRIMINANT_ANALYSIS = "sklearn.discriminant_analysis.LinearDiscriminantAnalysis"
POWER_TRANSFORMER = "sklearn.preprocessing.PowerTransformer"


def stand_in_of(estimator: Any, transforms: bool) -> type | None:
    """Return the class that takes the place of an estimator, None if it stays."""
    name = public_name(type(estimator))
    is_kept = name == DISCRIMINANT_ANALYSIS and not transforms
    is_public = name == POWER_TRANSFORMER and not estimator.standardize
    if name not in _STAND_INS or is_kept or is_public:
        return None
    module, _, kind = _STAND_INS[name].rpartition(".")
    return getattr(importlib.import_module(module), kind)


def _power_transformer(fitted: Any) -> tuple[str, ...]:
    return ("lambdas_", "mean_", "var_") if fitted.standardize else ("lambdas_",)


def _read_power_transformer(fitted: Any, twin: Any) -> dict[str, Any]:
    return {"var_": read_variances(fitted)} if fitted.standardize else {}


def _finish_power_transformer(released: Any, twin: Any) -> None:
    """Recompute the scale; a variance that noise made negative becomes the twin's."""
    if released.standardize:
        released.var_, released.scale_ = standard_deviations(released.var_, twin.var_)


def _refuse_precomputed(estimator: Any) -> str | None:
    if estimator.kernel != "precomputed":
        return None
    return "a precomputed kernel has one column for each record. Give it the records themselves"


_power = Entry(
    _power_transformer, _finish_power_transformer, read=_read_power_transformer, numbers="3 d"
)
# Its landmarks are the public twin's in every fit: they are no secret, and not released.
_nystroem = Entry(
    always(),
    public=("components_", "normalization_"),
    refuse=_refuse_precomputed,
    anchored=True,
    numbers="0",
)
_projection = Entry(
    always("components_", "offset_"),
    align=SignedRows("components_", flipped=("offset_",)),
    numbers="k (d + 1)",
    drop=("coef_", "intercept_", *DISCRIMINANT.split()),
)

ENTRIES: dict[str, Entry] = {
    "sklearn.kernel_approximation.Nystroem": _nystroem,
    POWER_TRANSFORMER: _power,
}
# By name, as those of scikit-learn, since the classes that they derive from are slow to import.
_STAND_INS = {
    "sklearn.kernel_approximation.Nystroem": "skdp.estimators.substitutes.PublicNystroem",
    POWER_TRANSFORMER: "skdp.estimators.substitutes.StandardizedPowerTransformer",
    DISCRIMINANT_ANALYSIS: "skdp.estimators.substitutes.DiscriminantProjection",
}
STAND_IN_ENTRIES = {_STAND_INS[name]: ENTRIES.get(name, _projection) for name in _STAND_INS}
