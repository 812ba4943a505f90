"""Linear models, generalized linear models, and networks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.alignment import SignedRows
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.known_minimum import LogisticCoefficients, SupportVectorCoefficients
from skdp.estimators.catalog.known_squares import LeastSquares
from skdp.estimators.catalog.known_sums import ClassMoment, ResponseMoment
from skdp.estimators.catalog.refused import FEW_FEATURES, SUPPORT_VECTORS

# Attributes of linear models besides the coefficients: paths, scores, chosen penalties.
NOT_RELEASED = (
    "C_ Cs_ active_ alpha_ alphas_ best_score_ coef_path_ coefs_paths_ criterion_ cv_alphas_ "
    "cv_mse_path_ cv_results_ cv_values_ l1_ratio_ l1_ratios_ lambda_ mse_path_ n_nonzero_coefs_ "
    "noise_variance_ outliers_ scale_ scores_ sigma_ sparse_coef_"
)
NETWORK = "best_loss_ best_validation_score_ loss_ validation_scores_"
DISCRIMINANT = "covariance_ explained_variance_ratio_ means_ priors_ scalings_ xbar_"
PLS = "x_loadings_ x_rotations_ x_weights_ x_scores_ y_loadings_ y_rotations_ y_weights_ y_scores_"

LINEAR_MODELS = """sklearn.linear_model
    ElasticNet ElasticNetCV GammaRegressor HuberRegressor Lars LarsCV Lasso LassoCV LassoLars
    LassoLarsCV LassoLarsIC LogisticRegressionCV MultiTaskElasticNet MultiTaskElasticNetCV
    MultiTaskLasso MultiTaskLassoCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV
    PassiveAggressiveClassifier PassiveAggressiveRegressor Perceptron PoissonRegressor
    QuantileRegressor RidgeClassifier RidgeClassifierCV RidgeCV SGDClassifier SGDRegressor
    TheilSenRegressor TweedieRegressor
"""

COEFFICIENTS = ("coef_", "intercept_ if fit_intercept")


def _read_intercept_at_origin(fitted: Estimator, public_fit: Estimator) -> Values:
    """Return the prediction at the origin, which unlike `intercept_` needs no mean of X."""
    origin = np.zeros((1, fitted.n_features_in_))
    return {"intercept_": np.ravel(fitted.predict(origin))}


def _shift_intercept(released: Estimator, public_fit: Estimator) -> None:
    """Choose `intercept_` such that the prediction at the origin is the released one."""
    at_origin = released.intercept_
    released.intercept_ = np.zeros_like(at_origin)
    origin = np.zeros((1, released.n_features_in_))
    released.intercept_ = at_origin - np.ravel(released.predict(origin))


def _refuse_kernel(machine: Estimator) -> str | None:
    """Return why a machine has no coefficients; None if it has."""
    if machine.kernel != "linear":
        return (
            f"{SUPPORT_VECTORS}, unless its kernel is 'linear'. Use LinearSVC or LinearSVR, after "
            f"RBFSampler for a kernel. {FEW_FEATURES}"
        )
    if getattr(machine, "probability", False) is True:
        return "its probabilities need folds of the records. Leave 'probability' alone"
    return None


def _derive(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the coefficients, with the second moment of the public fit."""
    released.derive()


_linear = Entry(
    COEFFICIENTS,
    numbers="k (d + 1)",
    misleading=NOT_RELEASED,
    known="its coefficients are no sum over the records",
)
_least_squares = replace(_linear, known=LeastSquares)
# The entry of LinearDiscriminantAnalysis where it transforms.
PROJECTION = Entry(
    ("components_", "offset_"),
    align=SignedRows("components_", flipped=("offset_",)),
    numbers="k (d + 1)",
    misleading=f"coef_ intercept_ {DISCRIMINANT}",
)

ENTRIES: dict[str, Entry] = {
    LINEAR_MODELS: _linear,
    "sklearn.linear_model LinearRegression Ridge": _least_squares,
    "sklearn.linear_model ARDRegression BayesianRidge": replace(
        _linear, unserved=("predict(return_std=True)",)
    ),
    "sklearn.linear_model.LogisticRegression": replace(_linear, known=LogisticCoefficients),
    "sklearn.svm.LinearSVC": replace(_linear, known=SupportVectorCoefficients),
    "sklearn.svm.LinearSVR": _linear,
    **{
        f"sklearn.svm.{name}": Entry(
            ("coef_", "intercept_"),
            numbers="d + 1" if name.endswith("R") else "k (k - 1) / 2 (d + 1)",
            refuse=_refuse_kernel,
            substitute=f"LinearKernel{name} if kernel=linear",
        )
        for name in ("SVC", "NuSVC", "SVR", "NuSVR")
    },
    # Its transform needs further attributes, which would double the numbers.
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": Entry(
        ("coef_", "intercept_"),
        numbers="k (d + 1)",
        misleading=DISCRIMINANT,
        unserved=("transform",),
        substitute="DiscriminantProjection",
    ),
    # Our own models, which learn one moment.
    "skdp.estimators.moments.MomentClassifier": Entry(
        ("moment_",), _derive, numbers="(k - 1)(d + 1)", known=ClassMoment
    ),
    "skdp.estimators.moments.MomentRegressor": Entry(
        ("moment_",), _derive, numbers="d + 1", known=ResponseMoment
    ),
    "sklearn.linear_model.SGDOneClassSVM": Entry(("coef_", "offset_"), numbers="d + 1"),
    "sklearn.cross_decomposition CCA PLSCanonical PLSRegression": Entry(
        ("coef_", "intercept_"),
        _shift_intercept,
        read=_read_intercept_at_origin,
        numbers="k (d + 1)",
        misleading=PLS,
        unserved=("transform", "inverse_transform"),
        uses_response=True,
    ),
    "sklearn.neural_network MLPClassifier MLPRegressor": Entry(
        ("coefs_", "intercepts_"), numbers="all weights", misleading=NETWORK
    ),
}
