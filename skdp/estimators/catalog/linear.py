"""Linear models, generalized linear models, and networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skdp.core.classes import named
from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.entry import Entry, always
from skdp.estimators.catalog.known_minimum import (
    LogisticCoefficients,
    SupportVectorCoefficients,
)
from skdp.estimators.catalog.known_squares import LeastSquares

# What the fits of linear models leave besides the coefficients: paths, scores, chosen penalties.
LEFT_OVERS = (
    "C_ Cs_ active_ alpha_ alphas_ best_score_ coef_path_ coefs_paths_ criterion_ cv_alphas_ "
    "cv_mse_path_ cv_results_ cv_values_ l1_ratio_ l1_ratios_ lambda_ mse_path_ n_nonzero_coefs_ "
    "noise_variance_ outliers_ scale_ scores_ sigma_ sparse_coef_"
)
NETWORK = "best_loss_ best_validation_score_ loss_ validation_scores_"
PLS = "x_loadings_ x_rotations_ x_weights_ x_scores_ y_loadings_ y_rotations_ y_weights_ y_scores_"

LINEAR_MODELS = """
    ElasticNetCV GammaRegressor HuberRegressor Lars LarsCV LassoCV LassoLars LassoLarsCV
    LassoLarsIC LogisticRegressionCV MultiTaskElasticNet MultiTaskElasticNetCV MultiTaskLasso
    MultiTaskLassoCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV
    PassiveAggressiveClassifier PassiveAggressiveRegressor Perceptron PoissonRegressor
    QuantileRegressor SGDClassifier SGDRegressor TheilSenRegressor TweedieRegressor
"""


def coefficients(fitted: Estimator) -> tuple[str, ...]:
    """Name the coefficients, and the intercept where one is fitted."""
    return ("coef_", "intercept_") if fitted.fit_intercept else ("coef_",)


def _read_intercept_at_origin(fitted: Estimator, public_fit: Estimator) -> Values:
    """Return the prediction at the origin: unlike `intercept_` it needs no mean of X beside it."""
    origin = np.zeros((1, fitted.n_features_in_))
    return {"intercept_": np.ravel(fitted.predict(origin))}


def _shift_intercept(released: Estimator, public_fit: Estimator) -> None:
    """Choose `intercept_` such that the prediction at the origin is the released one."""
    at_origin = released.intercept_
    released.intercept_ = np.zeros_like(at_origin)
    origin = np.zeros((1, released.n_features_in_))
    released.intercept_ = at_origin - np.ravel(released.predict(origin))


_linear = Entry(
    coefficients,
    numbers="k (d + 1)",
    drop=tuple(LEFT_OVERS.split()),
    known="its coefficients are no sum over the records",
)
_of_one_stream = replace(_linear, one_stream=True)
_bayesian = replace(_linear, unserved=("predict(return_std=True)",))
_pls = Entry(
    always("coef_", "intercept_"),
    _shift_intercept,
    read=_read_intercept_at_origin,
    numbers="k (d + 1)",
    drop=tuple(PLS.split()),
    unserved=("transform", "inverse_transform"),
    uses_response=True,
)
_network = Entry(
    always("coefs_", "intercepts_"), numbers="all weights", drop=tuple(NETWORK.split())
)

ENTRIES: dict[str, Entry] = {
    **dict.fromkeys(named("sklearn.linear_model", LINEAR_MODELS), _linear),
    "sklearn.linear_model.LinearRegression": replace(
        _linear,
        known=LeastSquares,
    ),
    "sklearn.linear_model.Ridge": replace(_of_one_stream, known=LeastSquares),
    "sklearn.linear_model.RidgeClassifier": replace(
        _of_one_stream,
    ),
    **dict.fromkeys(
        named("sklearn.linear_model", "RidgeCV RidgeClassifierCV"), replace(_linear, folds=False)
    ),
    **dict.fromkeys(named("sklearn.linear_model", "ElasticNet Lasso"), _of_one_stream),
    "sklearn.linear_model.LogisticRegression": replace(_of_one_stream, known=LogisticCoefficients),
    "sklearn.svm.LinearSVC": replace(_of_one_stream, known=SupportVectorCoefficients),
    "sklearn.svm.LinearSVR": _of_one_stream,
    **dict.fromkeys(named("sklearn.linear_model", "ARDRegression BayesianRidge"), _bayesian),
    "sklearn.linear_model.SGDOneClassSVM": Entry(always("coef_", "offset_"), numbers="d + 1"),
    **dict.fromkeys(named("sklearn.cross_decomposition", "CCA PLSCanonical PLSRegression"), _pls),
    **dict.fromkeys(named("sklearn.neural_network", "MLPClassifier MLPRegressor"), _network),
}
