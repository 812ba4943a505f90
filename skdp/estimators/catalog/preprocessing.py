"""Scalers, discretizers, imputers, and transformers whose structure is public."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.core.checks import shorten
from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.repairs import nonnegative, positive, raised_divisors
from skdp.estimators.known.sums import ScalerMoments

FREQUENT = (
    "min_frequency and max_categories depend on the data. Leave them None and declare the "
    "categories"
)


def _read_variances(fitted: Estimator, public_fit: Estimator) -> Values:
    """Read the variances, zero for columns that scikit-learn takes for constant."""
    variances = getattr(fitted, "var_", None)
    if variances is None:
        return {}
    taken_for_constant = (fitted.scale_ == 1) & (np.sqrt(variances) != 1)
    return {"var_": np.where(taken_for_constant, 0.0, variances).astype(variances.dtype)}


def _finish_variances(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the scale from the variances."""
    if getattr(released, "var_", None) is not None:
        released.scale_ = np.where(released.var_ == 0, 1.0, np.sqrt(released.var_))


def _finish_min_max_scaler(released: Estimator, public_fit: Estimator) -> None:
    """Sort minimum and maximum; recompute scale and offset."""
    ends = np.sort([released.data_min_, released.data_max_], axis=0)
    rebuilt = _refit(released, ends)
    for name in ("data_min_", "data_max_", "data_range_", "scale_", "min_"):
        setattr(released, name, getattr(rebuilt, name))


def _finish_max_abs_scaler(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the scale from the maximum."""
    released.scale_ = _refit(released, released.max_abs_[None]).scale_


def _read_bin_edges(fitted: Estimator, public_fit: Estimator) -> Values:
    """Read the two ends of uniform bins, which determine their edges."""
    if fitted.strategy != "uniform":
        return {}
    return {"bin_edges_": np.array([edges[[0, -1]] for edges in fitted.bin_edges_])}


def _finish_bins(released: Estimator, public_fit: Estimator) -> None:
    """Sort the edges of each column."""
    if released.strategy == "uniform":
        sizes = [len(edges) for edges in public_fit.bin_edges_]
        ends = np.sort(released.bin_edges_, axis=1)
        edges = [
            np.linspace(low, high, size) for (low, high), size in zip(ends, sizes, strict=True)
        ]
    else:
        edges = [np.sort(column) for column in released.bin_edges_]
    released.bin_edges_ = np.empty(len(edges), dtype=object)
    released.bin_edges_[:] = edges


def _refit(released: Estimator, rows: NDArray) -> Estimator:
    """Let scikit-learn derive other attributes, by a fit to the released values."""
    return clone(released).set_output(transform="default").fit(rows)


def _statistics(fitted: Estimator) -> tuple[str, ...]:
    if fitted.strategy == "constant":
        return ()
    if np.asarray(getattr(fitted, "statistics_", 0.0)).dtype.kind not in "fiub":
        names = getattr(fitted, "feature_names_in_", None)
        here = "" if names is None else f", here {shorten(names.tolist())}"
        raise ValueError(
            "The 'strategy' parameter of SimpleImputer must be 'constant' for columns of "
            f"strings{here}: no noise can be added to the most frequent one. Got 'most_frequent'. "
            "Write SimpleImputer(strategy='constant', fill_value='missing')."
        )
    return ("statistics_",)


SETTINGS: dict[str, tuple[Callable[[object], bool], str]] = {
    "add_indicator": (
        bool,
        "with add_indicator=True it learns which columns have missing values. Use a FeatureUnion "
        "with MissingIndicator(features='all'), which learns nothing",
    ),
    "features": (
        lambda value: value != "all",
        "with features='missing-only' it learns which columns have missing values. Use "
        "features='all'",
    ),
    "gamma": (
        lambda value: value == "scale",
        "gamma='scale' depends on the data. Set gamma to a number",
    ),
    "standardize": (
        bool,
        "scikit-learn keeps its means and scales in private attributes. Use "
        "PowerTransformer(standardize=False), and a StandardScaler behind it",
    ),
    "min_frequency": (lambda value: value is not None, FREQUENT),
    "max_categories": (lambda value: value is not None, FREQUENT),
    "random_state": (
        lambda value: not isinstance(value, int | np.integer),
        "its random weights must be the same in every fit, and public. Set random_state to an "
        "integer",
    ),
}
"""Parameters with values that are refused, and the reason."""


@dataclass(frozen=True)
class RefusedSettings:
    """A refusal of settings of these parameters, with which more is learned than is released."""

    names: tuple[str, ...]

    def __call__(self, estimator: Estimator) -> str | None:
        """Return the first reason, None if there is none."""
        settings = ((getattr(estimator, name), *SETTINGS[name]) for name in self.names)
        return next((reason for value, is_bad, reason in settings if is_bad(value)), None)


_encoder = Entry(
    (),
    public=("categories_",),
    refuse=RefusedSettings(("min_frequency", "max_categories")),
    numbers="0",
    by_record=True,
)
_scaler = Entry(passes_gaps=True, by_record=True)

ENTRIES: dict[str, Entry] = {
    "sklearn.preprocessing.StandardScaler": replace(
        _scaler,
        attributes=("mean_ if with_mean", "var_ if with_std"),
        finish=_finish_variances,
        read=_read_variances,
        of_means=True,
        repairs={"var_": nonnegative},
        divisors={"var_": raised_divisors, "scale_": raised_divisors},
        numbers="2 d",
        known=ScalerMoments,
    ),
    "sklearn.preprocessing.MinMaxScaler": replace(
        _scaler, attributes=("data_min_", "data_max_"), finish=_finish_min_max_scaler, numbers="2 d"
    ),
    "sklearn.preprocessing.MaxAbsScaler": replace(
        _scaler,
        attributes=("max_abs_",),
        finish=_finish_max_abs_scaler,
        repairs={"max_abs_": nonnegative},
        divisors={"max_abs_": raised_divisors},
        numbers="d",
    ),
    "sklearn.preprocessing.RobustScaler": replace(
        _scaler,
        attributes=("center_ if with_centering", "scale_ if with_scaling"),
        repairs={"scale_": positive},
        divisors={"scale_": raised_divisors},
        numbers="2 d",
    ),
    "sklearn.preprocessing.PowerTransformer": replace(
        _scaler, attributes=("lambdas_",), refuse=RefusedSettings(("standardize",)), numbers="d"
    ),
    "sklearn.preprocessing.KBinsDiscretizer": Entry(
        ("bin_edges_",),
        _finish_bins,
        read=_read_bin_edges,
        numbers="(n_bins + 1) d",
        by_record=True,
    ),
    # Its inverse needs indicators, which are refused.
    "sklearn.impute.SimpleImputer": Entry(
        _statistics,
        refuse=RefusedSettings(("add_indicator",)),
        unserved=("inverse_transform",),
        numbers="d",
        by_record=True,
    ),
    "sklearn.feature_extraction.text.TfidfTransformer": Entry(("idf_ if use_idf",), numbers="d"),
    "sklearn.preprocessing Binarizer FunctionTransformer Normalizer": Entry(
        learns_nothing=True, by_record=True
    ),
    "skdp.estimators.components.PublicComponents": Entry(learns_nothing=True, by_record=True),
    # These learn the number of columns, or public categories: there is nothing to release.
    "sklearn.preprocessing.OneHotEncoder": _encoder,
    "sklearn.preprocessing.OrdinalEncoder": replace(_encoder, passes_gaps=True),
    "sklearn.preprocessing.PolynomialFeatures": Entry((), numbers="0", by_record=True),
    "sklearn.impute.MissingIndicator": Entry(
        (), public=("features_",), refuse=RefusedSettings(("features",)), numbers="0"
    ),
    "sklearn.kernel_approximation.RBFSampler": Entry(
        (),
        public=("random_weights_", "random_offset_"),
        refuse=RefusedSettings(("gamma", "random_state")),
        numbers="0",
        by_record=True,
    ),
    "sklearn.random_projection GaussianRandomProjection SparseRandomProjection": Entry(
        (),
        public=("components_",),
        refuse=RefusedSettings(("random_state",)),
        numbers="0",
        by_record=True,
    ),
}
