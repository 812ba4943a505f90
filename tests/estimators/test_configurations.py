"""What is released determines the output under any configuration, not just the usual one.

Random configurations are drawn of each class. At epsilon = inf the released estimator computes what
the private fit does, on records that neither has seen, and at much noise it still computes.
"""

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401 (imported for its effect)
from sklearn.model_selection import ParameterSampler
from sklearn.utils import all_estimators

from skdp.core.dataset import Dataset
from skdp.estimators.catalog import CATALOG
from skdp.estimators.catalog.table import released_classes
from skdp.estimators.configuration import without_side_effects
from skdp.estimators.inputs import order_matters, reorder
from skdp.estimators.parameters import ParameterTarget
from tests.estimator_cases import QUIET, assert_same_up_to_order, outputs

pytestmark = QUIET

N_DRAWN = 4
PRIORS = [None, [0.5, 0.3, 0.2]]
BOTH = [True, False]
LINEAR = {"fit_intercept": BOTH}

# Records of all kinds: positive amounts, real numbers, codes 0 to 2, and amounts with gaps.
AMOUNTS = [
    (
        "MultinomialNB",
        {"alpha": [0.5, 2.0], "fit_prior": BOTH, "class_prior": PRIORS, "force_alpha": BOTH},
    ),
    ("ComplementNB", {"alpha": [0.5, 2.0], "fit_prior": BOTH, "norm": BOTH}),
    (
        "BernoulliNB",
        {"alpha": [0.5, 2.0], "fit_prior": BOTH, "class_prior": PRIORS, "binarize": [1.0, 3.0]},
    ),
    ("GammaRegressor", LINEAR | {"alpha": [0.1, 2.0], "solver": ["lbfgs", "newton-cholesky"]}),
    ("TweedieRegressor", LINEAR | {"power": [0, 1, 1.5, 2, 3], "link": ["auto", "log"]}),
    ("MinMaxScaler", {"feature_range": [(0, 1), (-2, 3)], "clip": BOTH}),
    ("PowerTransformer", {"method": ["box-cox", "yeo-johnson"], "standardize": BOTH}),
    (
        "TfidfTransformer",
        {"norm": ["l1", "l2", None], "use_idf": BOTH, "smooth_idf": BOTH, "sublinear_tf": BOTH},
    ),
]
REALS = [
    ("GaussianNB", {"priors": PRIORS, "var_smoothing": [1e-9, 0.1]}),
    ("LinearDiscriminantAnalysis", {"priors": PRIORS, "n_components": [None, 1]}),
    (
        "LinearDiscriminantAnalysis",
        {"priors": PRIORS, "solver": ["lsqr", "eigen"], "shrinkage": [None, "auto", 0.3]},
    ),
    ("QuadraticDiscriminantAnalysis", {"priors": PRIORS, "reg_param": [0.0, 0.3]}),
    (
        "NearestCentroid",
        {
            "metric": ["euclidean", "manhattan"],
            "priors": ["uniform", "empirical", [0.5, 0.3, 0.2]],
            "shrink_threshold": [None, 0.3],
        },
    ),
    ("DummyClassifier", {"strategy": ["most_frequent", "prior", "stratified"]}),
    ("DummyRegressor", {"strategy": ["mean", "median", "quantile"], "quantile": [0.3]}),
    (
        "LogisticRegression",
        LINEAR | {"class_weight": [None, "balanced"], "solver": ["lbfgs", "newton-cg", "saga"]},
    ),
    ("LogisticRegressionCV", LINEAR | {"Cs": [2], "cv": [2], "refit": BOTH}),
    ("RidgeClassifier", LINEAR | {"class_weight": [None, "balanced"]}),
    ("SGDClassifier", LINEAR | {"loss": ["hinge", "log_loss"], "average": [False, True, 5]}),
    ("LinearSVC", LINEAR | {"multi_class": ["ovr", "crammer_singer"], "C": [0.1, 1.0]}),
    ("SGDOneClassSVM", LINEAR | {"nu": [0.2, 0.5], "average": BOTH}),
    (
        "MLPClassifier",
        {
            "activation": ["relu", "tanh"],
            "hidden_layer_sizes": [(3,), (2, 2)],
            "max_iter": [30],
        },
    ),
    ("LinearRegression", LINEAR | {"positive": BOTH}),
    ("Ridge", LINEAR | {"solver": ["auto", "svd", "lsqr", "saga"], "alpha": [0.1, 10.0]}),
    ("Lasso", LINEAR | {"positive": BOTH, "selection": ["cyclic", "random"], "alpha": [0.1]}),
    ("ElasticNet", LINEAR | {"positive": BOTH, "precompute": BOTH, "alpha": [0.1]}),
    ("Lars", LINEAR | {"n_nonzero_coefs": [1, 3], "fit_path": BOTH}),
    ("BayesianRidge", LINEAR | {"compute_score": BOTH}),
    ("PLSRegression", {"n_components": [1, 2], "scale": BOTH}),
    ("CCA", {"n_components": [1], "scale": BOTH}),
    ("PCA", {"n_components": [1, 2, None], "whiten": BOTH, "svd_solver": ["full", "arpack"]}),
    ("IncrementalPCA", {"n_components": [1, 2], "whiten": BOTH, "batch_size": [None, 10]}),
    ("FactorAnalysis", {"n_components": [1, 2], "rotation": [None, "varimax"]}),
    ("FastICA", {"whiten": ["unit-variance", "arbitrary-variance"], "fun": ["logcosh", "cube"]}),
    ("TruncatedSVD", {"algorithm": ["randomized", "arpack"], "n_components": [1, 2]}),
    ("SparsePCA", {"n_components": [2], "method": ["lars", "cd"], "ridge_alpha": [0.01, 1.0]}),
    (
        "DictionaryLearning",
        {
            "n_components": [2],
            "max_iter": [5],
            "transform_algorithm": ["omp", "lasso_lars", "threshold"],
            "split_sign": BOTH,
        },
    ),
    (
        "GaussianMixture",
        {
            "n_components": [2, 3],
            "covariance_type": ["full", "tied", "diag", "spherical"],
            "init_params": ["kmeans", "k-means++"],
            "reg_covar": [1e-6, 0.1],
        },
    ),
    (
        "BayesianGaussianMixture",
        {
            "n_components": [2, 3],
            "covariance_type": ["full", "tied", "diag", "spherical"],
            "weight_concentration_prior_type": ["dirichlet_process", "dirichlet_distribution"],
            "mean_precision_prior": [None, 2.0],
            "degrees_of_freedom_prior": [None, 7.0],
        },
    ),
    ("EmpiricalCovariance", {"assume_centered": BOTH, "store_precision": BOTH}),
    ("EllipticEnvelope", {"assume_centered": BOTH, "contamination": [0.1, 0.3]}),
    ("GraphicalLasso", {"assume_centered": BOTH, "alpha": [0.05, 0.2]}),
    ("KMeans", {"n_clusters": [2, 3], "algorithm": ["lloyd", "elkan"], "n_init": [1]}),
    ("StandardScaler", {"with_mean": BOTH, "with_std": BOTH}),
    (
        "RobustScaler",
        {
            "with_centering": BOTH,
            "with_scaling": BOTH,
            "quantile_range": [(25.0, 75.0), (10.0, 60.0)],
            "unit_variance": BOTH,
        },
    ),
    (
        "QuantileTransformer",
        {"n_quantiles": [3, 10], "output_distribution": ["uniform", "normal"]},
    ),
    (
        "KBinsDiscretizer",
        {
            "strategy": ["uniform", "quantile", "kmeans"],
            "encode": ["ordinal", "onehot", "onehot-dense"],
            "n_bins": [3, [2, 3, 4]],
        },
    ),
    (
        "SplineTransformer",
        {
            "knots": ["uniform", "quantile"],
            "extrapolation": ["constant", "linear", "continue", "periodic"],
            "include_bias": BOTH,
            "degree": [1, 3],
        },
    ),
]
CODES = [
    ("CategoricalNB", {"alpha": [0.5, 2.0], "fit_prior": BOTH, "min_categories": [None, 5]}),
    ("TargetEncoder", {"smooth": ["auto", 1.0]}),
]
GAPS = [
    ("SimpleImputer", {"strategy": ["mean", "median", "most_frequent"]}),
    (
        "IterativeImputer",
        {
            "max_iter": [2],
            "tol": [0.0],
            "imputation_order": ["roman", "arabic"],
            "initial_strategy": ["mean", "median", "constant"],
            "skip_complete": BOTH,
            "min_value": [-np.inf, 0.5],
        },
    ),
]
GRIDS = [
    *((kind, *case) for kind, cases in (("amounts", AMOUNTS), ("reals", REALS)) for case in cases),
    *((kind, *case) for kind, cases in (("codes", CODES), ("gaps", GAPS)) for case in cases),
]
KINDS = dict(all_estimators())


def records(kind, estimator, seed):
    """Return records of 3 columns, of unbalanced classes or with responses."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([0, 1, 2], [24, 16, 10]))
    X = np.array([[0.0, 0, 0], [3, 0, 1], [0, 3, -1]])[y] + rng.normal(size=(50, 3))
    if kind in ("amounts", "gaps"):
        X = np.exp(X / 3)
    if kind == "gaps":
        X[rng.uniform(size=X.shape) < 0.1] = np.nan
    if kind == "codes":
        X = np.vstack([np.arange(3)[:, None].repeat(3, axis=1), rng.integers(3, size=(47, 3))])
    if is_classifier(estimator):
        return X, y
    name = type(estimator).__name__
    if is_regressor(estimator) or name == "TargetEncoder":
        y = np.exp(np.nan_to_num(X) @ [0.1, -0.2, 0.1] + rng.normal(scale=0.1, size=50))
        return X, np.column_stack([y, rng.normal(size=50)]) if name == "CCA" else y
    return (X,)


def drawn(grid, seed):
    size = int(np.prod([len(values) for values in grid.values()]))
    return list(ParameterSampler(grid, min(N_DRAWN, size), random_state=seed))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name", "grid"), GRIDS, ids=lambda value: str(value)[:30])
def test_released_attributes_determine_the_output(kind, name, grid):
    estimators = [KINDS[name](**parameters) for parameters in drawn(grid, seed=1)]
    learning = [one for one in estimators if CATALOG[KINDS[name]].names(one)]
    assert learning
    for number, estimator in enumerate(learning):
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=0)
        public, private, new = (records(kind, estimator, 10 * number + i) for i in range(3))
        target = ParameterTarget(estimator, "auto", without_side_effects(estimator).fit(*public))
        vector = target(*private, seed=0)
        ordered = reorder(Dataset(*private), seed=0).parts if order_matters(estimator) else private
        fitted = clone(estimator).fit(*ordered)
        entry = CATALOG[type(estimator)]
        expected = outputs(fitted, entry.unserved, new[0])
        released = outputs(target.restore(vector), entry.unserved, new[0])
        assert released.keys() == expected.keys() != set()
        for method, value in released.items():
            if entry.depends_on_public_fit and method != "inverse_transform":
                assert_same_up_to_order(value, expected[method])
            else:
                np.testing.assert_allclose(value, expected[method], rtol=1e-6, atol=1e-6)
        noise = np.random.default_rng(number).laplace(scale=2.0, size=vector.shape)
        noisy = outputs(target.restore(vector + noise), entry.unserved, new[0])
        for method, value in noisy.items():
            assert value.shape == expected[method].shape
            if method == "predict_proba":
                assert value.min() >= 0
                np.testing.assert_allclose(value.sum(axis=1), 1)


def test_every_class_named_is_there():
    assert {name for _, name, _ in GRIDS} <= {kind.__name__ for kind in released_classes()}
