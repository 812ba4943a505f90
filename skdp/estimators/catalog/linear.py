"""Linear models, generalized linear models, and networks."""

from __future__ import annotations

from dataclasses import replace

from skdp.core.types import Estimator
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.refused import PREDICT
from skdp.estimators.known.minimum import LogisticCoefficients, SupportVectorCoefficients
from skdp.estimators.known.squares import LeastSquares
from skdp.estimators.known.sums import class_moment, moment_of_response

# Attributes of linear models besides the coefficients: paths, scores, chosen penalties.
NOT_RELEASED = (
    "C_ Cs_ active_ alpha_ alphas_ best_score_ coef_path_ coefs_paths_ criterion_ cv_alphas_ "
    "cv_mse_path_ cv_results_ cv_values_ l1_ratio_ l1_ratios_ lambda_ mse_path_ n_nonzero_coefs_ "
    "noise_variance_ outliers_ scale_ scores_ sigma_ sparse_coef_"
)
NETWORK = "best_loss_ best_validation_score_ loss_ validation_scores_"
DISCRIMINANT = "covariance_ explained_variance_ratio_ means_ priors_ scalings_ xbar_"

LINEAR_MODELS = """sklearn.linear_model
    ElasticNet ElasticNetCV GammaRegressor HuberRegressor Lars LarsCV Lasso LassoCV LassoLars
    LassoLarsCV LassoLarsIC LogisticRegressionCV MultiTaskElasticNet MultiTaskElasticNetCV
    MultiTaskLasso MultiTaskLassoCV OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV
    PassiveAggressiveClassifier PassiveAggressiveRegressor Perceptron PoissonRegressor
    QuantileRegressor RidgeClassifier RidgeClassifierCV RidgeCV SGDClassifier SGDRegressor
    TheilSenRegressor TweedieRegressor
"""

COEFFICIENTS = ("coef_", "intercept_ if fit_intercept")


def _refuse_kernel(machine: Estimator) -> str | None:
    """Refuse a kernel that compares with training records, and probabilities, which need folds."""
    if machine.kernel == "linear" and getattr(machine, "probability", False) is not True:
        return None
    return (
        "its fitted state is the training records that support it, unless kernel='linear', without "
        f"probabilities. {PREDICT}"
    )


def _derive(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the coefficients, with the second moment of the public fit."""
    released.derive()


_linear = Entry(
    COEFFICIENTS,
    by_record=True,
    numbers="k (d + 1)",
    misleading=NOT_RELEASED,
    known="its coefficients are no sum over the records",
)

ENTRIES: dict[str, Entry] = {
    LINEAR_MODELS: _linear,
    "sklearn.linear_model LinearRegression Ridge": replace(_linear, known=LeastSquares),
    "sklearn.linear_model ARDRegression BayesianRidge": replace(
        _linear, unserved=("predict(return_std=True)",)
    ),
    "sklearn.linear_model.LogisticRegression": replace(_linear, known=LogisticCoefficients),
    "sklearn.svm.LinearSVC": replace(_linear, known=SupportVectorCoefficients),
    "sklearn.svm.LinearSVR": _linear,
    # With a linear kernel they take the classes of `linear_kernel`.
    "sklearn.svm NuSVC NuSVR SVC SVR": Entry(
        ("coef_", "intercept_"),
        numbers="d + 1, for each pair of classes",
        refuse=_refuse_kernel,
        known="it does not follow from the steps. For an SVC of two classes with a linear kernel "
        "pass skdp.bounds.svm_bound as 'sensitivity'",
    ),
    # Its transform needs further attributes, which would double the numbers.
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": Entry(
        ("coef_", "intercept_"),
        numbers="k (d + 1)",
        misleading=DISCRIMINANT,
        unserved=("transform",),
        by_record=True,
    ),
    # Our own models, which learn one moment.
    "skdp.estimators.moments.MomentClassifier": Entry(
        ("moment_",),
        _derive,
        of_means=True,
        lists_labels=True,
        numbers="(k - 1)(d + 1)",
        known=class_moment,
    ),
    "skdp.estimators.moments.MomentRegressor": Entry(
        ("moment_",), _derive, of_means=True, numbers="d + 1", known=moment_of_response
    ),
    "sklearn.linear_model.SGDOneClassSVM": Entry(("coef_", "offset_"), numbers="d + 1"),
    "sklearn.neural_network MLPClassifier MLPRegressor": Entry(
        ("coefs_", "intercepts_"), numbers="all weights", misleading=NETWORK
    ),
}
