"""Scalers, discretizers, splines, imputers, and transformers whose structure is public."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor

from skdp.core.checks import shorten
from skdp.core.classes import ClassTable, named
from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.known import ScalerMoments
from skdp.estimators.catalog.linear import ENTRIES as LINEAR_ENTRIES
from skdp.estimators.catalog.linear import coefficients
from skdp.estimators.catalog.repairs import (
    Divisors,
    nonnegative,
    positive,
    read_variances,
    standard_deviations,
)

LINEAR = ClassTable(LINEAR_ENTRIES)


def _standard_scaler(fitted: Estimator) -> tuple[str, ...]:
    return ("mean_",) * bool(fitted.with_mean) + ("var_",) * bool(fitted.with_std)


def _read_standard_scaler(fitted: Estimator, public_fit: Estimator) -> Values:
    return {"var_": read_variances(fitted)} if fitted.with_std else {}


def _finish_standard_scaler(released: Estimator, public_fit: Estimator) -> None:
    """Replace negative variances by those of the public fit; recompute the scale."""
    if released.with_std:
        released.var_, released.scale_ = standard_deviations(released.var_, public_fit.var_)


def _power_transformer(fitted: Estimator) -> tuple[str, ...]:
    return ("lambdas_", "mean_", "var_") if fitted.standardize else ("lambdas_",)


def _standardized(transformer: Estimator, transforms: bool) -> str | None:
    return "StandardizedPowerTransformer" if transformer.standardize else None


def _read_power_transformer(fitted: Estimator, public_fit: Estimator) -> Values:
    return {"var_": read_variances(fitted)} if fitted.standardize else {}


def _finish_power_transformer(released: Estimator, public_fit: Estimator) -> None:
    """Replace negative variances by those of the public fit; recompute the scale."""
    if released.standardize:
        released.var_, released.scale_ = standard_deviations(released.var_, public_fit.var_)


def _finish_min_max_scaler(released: Estimator, public_fit: Estimator) -> None:
    """Sort minimum and maximum; recompute scale and offset."""
    ends = np.sort([released.data_min_, released.data_max_], axis=0)
    rebuilt = _refitted(released, ends)
    for name in ("data_min_", "data_max_", "data_range_", "scale_", "min_"):
        setattr(released, name, getattr(rebuilt, name))


def _finish_max_abs_scaler(released: Estimator, public_fit: Estimator) -> None:
    """Replace a negative maximum by that of the public fit; recompute the scale."""
    released.max_abs_ = nonnegative(released.max_abs_, public_fit.max_abs_)
    released.scale_ = _refitted(released, released.max_abs_[None]).scale_


def _robust_scaler(fitted: Estimator) -> tuple[str, ...]:
    return ("center_",) * bool(fitted.with_centering) + ("scale_",) * bool(fitted.with_scaling)


def _finish_robust_scaler(released: Estimator, public_fit: Estimator) -> None:
    """Replace a scale that is not positive by that of the public fit."""
    if released.with_scaling:
        released.scale_ = positive(released.scale_, public_fit.scale_)


def _finish_quantiles(released: Estimator, public_fit: Estimator) -> None:
    """Sort the quantiles of each column."""
    released.quantiles_ = np.sort(released.quantiles_, axis=0)


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


def _splines(fitted: Estimator) -> tuple[str, ...]:
    return ("bsplines_",) if isinstance(fitted.knots, str) else ()


def _read_knots(fitted: Estimator, public_fit: Estimator) -> Values:
    """Read the base knots of each column, or the two ends of evenly spaced ones."""
    knots = [spline.t[spline.k : len(spline.t) - spline.k] for spline in fitted.bsplines_]
    if fitted.knots == "uniform":
        knots = [column[[0, -1]] for column in knots]
    return {"bsplines_": np.array(knots)}


def _finish_splines(released: Estimator, public_fit: Estimator) -> None:
    """Sort the knots, and refit to them as records, of which they are the quantiles."""
    released.bsplines_ = _refitted(released, np.sort(released.bsplines_, axis=1).T).bsplines_


def _refitted(released: Estimator, rows: NDArray) -> Estimator:
    """Let scikit-learn derive other attributes, by a fit to the released values."""
    return clone(released).set_output(transform="default").fit(rows)


def _target_encoder(fitted: Estimator) -> tuple[str, ...]:
    return ("encodings_", "target_mean_")


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


def _refuse_indicator(estimator: Estimator) -> str | None:
    if not estimator.add_indicator:
        return None
    return (
        "with add_indicator=True it learns which columns have missing values. Use a FeatureUnion "
        "with MissingIndicator(features='all'), which learns nothing"
    )


def _public_nystroem(estimator: Estimator, transforms: bool) -> str:
    return "PublicNystroem"


def _refuse_precomputed(estimator: Estimator) -> str | None:
    if estimator.kernel != "precomputed":
        return None
    return "a precomputed kernel has one column for each record. Give it the records themselves"


def _refuse_some_columns(estimator: Estimator) -> str | None:
    if estimator.features == "all":
        return None
    return (
        f"with features={estimator.features!r} it learns which columns have missing values. Use "
        "features='all'"
    )


def _refuse_imputation(estimator: Estimator) -> str | None:
    model = estimator.estimator  # None stands for BayesianRidge
    linear = getattr(LINEAR.get(type(model)), "attributes", None) is coefficients
    if model is not None and not (linear and is_regressor(model)):
        return f"it imputes with {type(model).__name__}. Use BayesianRidge or another linear model"
    if estimator.imputation_order not in {"roman", "arabic"}:
        return (
            f"with imputation_order={estimator.imputation_order!r} the order of the columns "
            "depends on the data. Use 'roman' or 'arabic'"
        )
    if estimator.sample_posterior:
        return "with sample_posterior=True it needs the covariance of every regression. Use False"
    if estimator.n_nearest_features is not None:
        return "n_nearest_features depends on the data. Use None"
    return _refuse_indicator(estimator)


def _read_imputations(fitted: Estimator, public_fit: Estimator) -> Values:
    """Join the first guesses and the coefficients of every regression."""
    rounds, expected = fitted.imputation_sequence_, public_fit.imputation_sequence_
    if [step.feat_idx for step in rounds] != [step.feat_idx for step in expected]:
        raise ValueError("the columns or rounds of imputation differ from those of the public fit")
    models = [step.estimator for step in rounds]
    values = [
        np.append(model.coef_, model.intercept_) if model.fit_intercept else model.coef_
        for model in models
    ]
    return {"imputation_sequence_": [fitted.initial_imputer_.statistics_, *values]}


def _finish_imputations(released: Estimator, public_fit: Estimator) -> None:
    """Put the coefficients into the regressions."""
    statistics, *values = released.imputation_sequence_
    columns = {step.feat_idx for step in public_fit.imputation_sequence_}
    released.n_iter_ = len(values) // max(1, len(columns))
    released.initial_imputer_.statistics_ = statistics
    released.imputation_sequence_ = [
        step._replace(estimator=_with_coefficients(step.estimator, row))
        for step, row in zip(public_fit.imputation_sequence_, values, strict=True)
    ]


def _with_coefficients(model: Estimator, values: NDArray) -> Estimator:
    model = copy.deepcopy(model)
    if model.fit_intercept:
        values, model.intercept_ = values[:-1], values[-1]
    model.coef_ = values
    for name in LINEAR[type(model)].drop:
        model.__dict__.pop(name, None)
    return model


def _refuse_infrequent(estimator: Estimator) -> str | None:
    if estimator.min_frequency is None and estimator.max_categories is None:
        return None
    return (
        "min_frequency and max_categories depend on the data. Leave them None and declare the "
        "categories"
    )


def _refuse_open_seed(estimator: Estimator) -> str | None:
    if isinstance(estimator.random_state, int | np.integer):
        return None
    return (
        "its random weights must be the same in every fit, and public. Set random_state to an "
        "integer"
    )


def _refuse_open_seed_or_gamma(estimator: Estimator) -> str | None:
    if estimator.gamma == "scale":
        return "gamma='scale' depends on the data. Set gamma to a number"
    return _refuse_open_seed(estimator)


def _tfidf(fitted: Estimator) -> tuple[str, ...]:
    return ("idf_",) if fitted.use_idf else ()


_encoder = Entry((), public=("categories_",), refuse=_refuse_infrequent, numbers="0")

ENTRIES: dict[str, Entry] = {
    "sklearn.preprocessing.StandardScaler": Entry(
        _standard_scaler,
        _finish_standard_scaler,
        read=_read_standard_scaler,
        divisors=Divisors(("var_", "scale_")),
        numbers="2 d",
        passes_gaps=True,
        by_record=True,
        known=ScalerMoments,
    ),
    "sklearn.preprocessing.MinMaxScaler": Entry(
        ("data_min_", "data_max_"),
        _finish_min_max_scaler,
        numbers="2 d",
        passes_gaps=True,
        by_record=True,
    ),
    "sklearn.preprocessing.MaxAbsScaler": Entry(
        ("max_abs_",),
        _finish_max_abs_scaler,
        divisors=Divisors(("max_abs_",)),
        numbers="d",
        passes_gaps=True,
        by_record=True,
    ),
    "sklearn.preprocessing.RobustScaler": Entry(
        _robust_scaler,
        _finish_robust_scaler,
        divisors=Divisors(("scale_",)),
        numbers="2 d",
        passes_gaps=True,
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
        substitute=_standardized,
    ),
    "sklearn.preprocessing.QuantileTransformer": Entry(
        ("quantiles_",),
        _finish_quantiles,
        numbers="n_quantiles d",
        passes_gaps=True,
        by_record=True,
    ),
    "sklearn.preprocessing.KBinsDiscretizer": Entry(
        ("bin_edges_",),
        _finish_bins,
        read=_read_bin_edges,
        numbers="(n_bins + 1) d",
        by_record=True,
    ),
    "sklearn.preprocessing.SplineTransformer": Entry(
        _splines, _finish_splines, read=_read_knots, numbers="2 d, or n_knots d"
    ),
    "sklearn.preprocessing.TargetEncoder": Entry(
        _target_encoder, public=("categories_",), numbers="all categories + 1, times k"
    ),
    # Its inverse needs indicators, which are refused.
    "sklearn.impute.SimpleImputer": Entry(
        _statistics,
        refuse=_refuse_indicator,
        unserved=("inverse_transform",),
        numbers="d",
        by_record=True,
    ),
    "sklearn.impute.IterativeImputer": Entry(
        ("imputation_sequence_",),
        _finish_imputations,
        read=_read_imputations,
        refuse=_refuse_imputation,
        drop=("random_state_",),
        numbers="d (1 + d n_iter_)",
        uses_response=False,
    ),
    "sklearn.feature_extraction.text.TfidfTransformer": Entry(_tfidf, numbers="d"),
    **dict.fromkeys(
        named("sklearn.preprocessing", "Binarizer Normalizer"),
        Entry(learns_nothing=True, by_record=True),
    ),
    # These learn the number of columns, or public categories: there is nothing to release.
    "sklearn.preprocessing.OneHotEncoder": _encoder,
    "sklearn.preprocessing.OrdinalEncoder": replace(_encoder, passes_gaps=True),
    "sklearn.preprocessing.PolynomialFeatures": Entry((), numbers="0", by_record=True),
    "sklearn.impute.MissingIndicator": Entry(
        (), public=("features_",), refuse=_refuse_some_columns, numbers="0"
    ),
    # Every fit takes the landmarks of the public fit, so they are public and not released.
    "sklearn.kernel_approximation.Nystroem": Entry(
        (),
        public=("components_", "normalization_"),
        refuse=_refuse_precomputed,
        anchored=True,
        numbers="0",
        substitute=_public_nystroem,
        by_record=True,
    ),
    "sklearn.kernel_approximation.RBFSampler": Entry(
        (),
        public=("random_weights_", "random_offset_"),
        refuse=_refuse_open_seed_or_gamma,
        numbers="0",
        by_record=True,
    ),
    "sklearn.kernel_approximation.SkewedChi2Sampler": Entry(
        (), public=("random_weights_", "random_offset_"), refuse=_refuse_open_seed, numbers="0"
    ),
    "sklearn.kernel_approximation.PolynomialCountSketch": Entry(
        (), public=("indexHash_", "bitHash_"), refuse=_refuse_open_seed, numbers="0"
    ),
    **dict.fromkeys(
        named("sklearn.random_projection", "GaussianRandomProjection SparseRandomProjection"),
        Entry((), public=("components_",), refuse=_refuse_open_seed, numbers="0", by_record=True),
    ),
}
