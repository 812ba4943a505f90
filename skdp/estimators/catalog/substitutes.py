"""Classes that are released through a substitute with public attributes."""

from __future__ import annotations

from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.alignment import SignedRows
from skdp.estimators.catalog.entry import Entry, Substitute, always
from skdp.estimators.catalog.repairs import Divisors, read_variances, standard_deviations

DISCRIMINANT = "covariance_ explained_variance_ratio_ means_ priors_ scalings_ xbar_"


def _always(estimator: Estimator, transforms: bool) -> bool:
    return True


def _standardizes(estimator: Estimator, transforms: bool) -> bool:
    return estimator.standardize


def _transforms(estimator: Estimator, transforms: bool) -> bool:
    return transforms


def _power_transformer(fitted: Estimator) -> tuple[str, ...]:
    return ("lambdas_", "mean_", "var_") if fitted.standardize else ("lambdas_",)


def _read_power_transformer(fitted: Estimator, public_fit: Estimator) -> Values:
    return {"var_": read_variances(fitted)} if fitted.standardize else {}


def _finish_power_transformer(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the scale; a variance that noise made negative becomes the public fit's."""
    if released.standardize:
        released.var_, released.scale_ = standard_deviations(released.var_, public_fit.var_)


def _refuse_precomputed(estimator: Estimator) -> str | None:
    if estimator.kernel != "precomputed":
        return None
    return "a precomputed kernel has one column for each record. Give it the records themselves"


_projection = Entry(
    always("components_", "offset_"),
    align=SignedRows("components_", flipped=("offset_",)),
    numbers="k (d + 1)",
    drop=("coef_", "intercept_", *DISCRIMINANT.split()),
)

ENTRIES: dict[str, Entry] = {
    # Its transform has attributes of its own, which would double the numbers.
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": Entry(
        always("coef_", "intercept_"),
        numbers="k (d + 1)",
        drop=tuple(DISCRIMINANT.split()),
        unserved=("transform",),
        substitute=Substitute("DiscriminantProjection", _transforms, _projection),
    ),
    # Its landmarks are the public fit's in every fit: they are no secret, and not released.
    "sklearn.kernel_approximation.Nystroem": Entry(
        always(),
        public=("components_", "normalization_"),
        refuse=_refuse_precomputed,
        anchored=True,
        numbers="0",
        substitute=Substitute("PublicNystroem", _always),
        by_record=True,
    ),
    "sklearn.preprocessing.PowerTransformer": Entry(
        _power_transformer,
        _finish_power_transformer,
        read=_read_power_transformer,
        divisors=Divisors(("var_",)),
        numbers="3 d",
        passes_gaps=True,
        by_record=True,
        substitute=Substitute("StandardizedPowerTransformer", _standardizes),
    ),
}
