"""Every estimator of scikit-learn that is released, configured, with records that suit it.

`benchmarks/audit_estimators.py` takes them from here, too.
"""

import warnings
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import Normalizer, StandardScaler

from skdp.estimators.catalog import CATALOG, released_classes
from skdp.estimators.configuration import without_side_effects
from skdp.estimators.parameters import ParameterTarget

QUIET = [  # marks of tests that fit all of them
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),  # of tiny data
    pytest.mark.filterwarnings("ignore::FutureWarning"),  # of what is about to go
    pytest.mark.filterwarnings("ignore::UserWarning:sklearn"),  # of tiny data
    pytest.mark.filterwarnings("ignore::RuntimeWarning:sklearn"),  # of constant columns
]
METHODS = (
    "predict",
    "predict_proba",
    "decision_function",
    "transform",
    "inverse_transform",
    "score_samples",
    "mahalanobis",
)


def evaluate(model, name, X):
    """Call a method; the inverse is that of the transformed records."""
    output = getattr(model, name)(model.transform(X) if name == "inverse_transform" else X)
    return output.toarray() if hasattr(output, "toarray") else np.asarray(output)


def outputs(fitted, unserved, X):
    """Return what each served method gives, by name."""
    names = [name for name in METHODS if hasattr(fitted, name) and name not in unserved]
    return {name: evaluate(fitted, name, X) for name in names}


def assert_same_up_to_order(output, expected):
    """Compare columns up to signs and order, and labels up to their names."""
    if output.ndim == 1 and output.dtype.kind == "i":
        pairs = {*zip(output.tolist(), expected.tolist(), strict=True)}
        assert len(pairs) == len({*output}) == len({*expected})
    elif output.ndim == 1:
        np.testing.assert_allclose(output, expected, rtol=1e-6, atol=1e-6)
    else:
        sums, differences = (
            np.abs(output.T[:, None] + sign * expected.T[None]).max(axis=2) for sign in (1, -1)
        )
        distances = np.minimum(sums, differences)
        matched = distances[linear_sum_assignment(distances)]
        assert matched.max() < 1e-6 * (1 + np.abs(expected).max())


N_RECORDS = 40
CENTERS = np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 1.0], [0.0, 6.0, -1.0]])


def clusters(rng):
    y = np.arange(N_RECORDS) % 3
    return CENTERS[y] + rng.normal(size=(N_RECORDS, 3)), y


def responses(rng):
    X = rng.normal(size=(N_RECORDS, 3))
    return X, X @ [1.0, -2.0, 0.5] + 1 + rng.normal(scale=0.1, size=N_RECORDS)


def positive_responses(rng):
    X, y = responses(rng)
    return X, np.exp(y / 3)


def two_responses(rng):
    X = rng.normal(size=(N_RECORDS, 3))
    noise = rng.normal(scale=0.1, size=(N_RECORDS, 2))
    return X, X @ np.array([[1.0, 0.0], [0.5, 1.0], [0.0, -1.0]]) + noise


def two_classes(rng):
    X, y = responses(rng)
    return X, (y > 1).astype(int)


def several_labels(rng):
    X, Y = two_responses(rng)
    return X, (Y > 0).astype(int)


def features(rng):
    return responses(rng)[:1]


def amounts(rng):
    """Positive amounts, such as counts, that differ between the classes."""
    y = np.arange(N_RECORDS) % 3
    return rng.gamma(2 + np.abs(CENTERS[y])), y


def switches(rng):
    X, y = amounts(rng)
    return (X > 2).astype(float), y


def codes(rng):
    X = np.vstack([np.arange(3)[:, None].repeat(3, axis=1), rng.integers(3, size=(37, 3))])
    return X, np.arange(N_RECORDS) % 2


def coded_responses(rng):
    X, _ = codes(rng)
    return X, rng.normal(size=N_RECORDS)


def records(rng):
    """A spiked covariance: the components are well apart."""
    rotation = np.linalg.qr(np.random.default_rng(7).normal(size=(4, 4)))[0]
    return (rng.normal(size=(N_RECORDS, 4)) * [8.0, 4.0, 2.0, 0.5] @ rotation + 1,)


def unlabeled(rng):
    return (clusters(rng)[0],)


def fractions(rng):
    return (rng.uniform(size=(N_RECORDS, 3)),)


def missing(rng):
    X, _ = responses(rng)
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    return (X,)


# Parameters and data of each class; clusters or responses, whichever it takes, where not listed.
CASES = {
    **{name: ({"alphas": [0.01, 0.1], "cv": 2}, responses) for name in ("LassoCV", "ElasticNetCV")},
    "AdditiveChi2Sampler": ({}, fractions),
    "ARDRegression": ({}, responses),
    "BernoulliNB": ({}, switches),
    "CategoricalNB": ({}, codes),
    "ComplementNB": ({}, amounts),
    "GaussianMixture": ({"n_components": 3}, unlabeled),
    "GaussianRandomProjection": ({"n_components": 2}, responses),
    "SparseRandomProjection": ({"n_components": 2}, responses),
    "GammaRegressor": ({}, positive_responses),
    "PoissonRegressor": ({}, positive_responses),
    "TweedieRegressor": ({"power": 1.5}, positive_responses),
    "IncrementalPCA": ({"n_components": 2, "whiten": True}, records),
    "KBinsDiscretizer": ({"encode": "ordinal", "strategy": "kmeans"}, unlabeled),
    "KMeans": ({"n_clusters": 3, "n_init": 2}, unlabeled),
    "LogisticRegressionCV": ({"Cs": 2, "cv": 2}, clusters),
    "MLPClassifier": ({"hidden_layer_sizes": (3,), "max_iter": 20}, clusters),
    "MLPRegressor": ({"hidden_layer_sizes": (3,), "max_iter": 20}, responses),
    "MaxAbsScaler": ({}, unlabeled),
    "MiniBatchKMeans": ({"n_clusters": 3, "n_init": 2}, unlabeled),
    "MultinomialNB": ({}, amounts),
    "MultiTaskElasticNet": ({"alpha": 0.1}, two_responses),
    "MultiTaskElasticNetCV": ({"alphas": [0.01, 0.1], "cv": 2}, two_responses),
    "MultiTaskLasso": ({"alpha": 0.1}, two_responses),
    "MultiTaskLassoCV": ({"alphas": [0.01, 0.1], "cv": 2}, two_responses),
    "MissingIndicator": ({"missing_values": 0, "features": "all"}, coded_responses),
    **{name: ({"kernel": "linear"}, clusters) for name in ("NuSVC", "SVC")},
    **{name: ({"kernel": "linear"}, responses) for name in ("NuSVR", "SVR")},
    "OneHotEncoder": ({"handle_unknown": "ignore"}, coded_responses),
    "OrdinalEncoder": (
        {"handle_unknown": "use_encoded_value", "unknown_value": -1},
        coded_responses,
    ),
    "PCA": ({"n_components": 2, "whiten": True}, records),
    "PolynomialFeatures": ({}, responses),
    "PowerTransformer": ({"standardize": False}, unlabeled),
    "RBFSampler": ({"n_components": 3}, responses),
    "SGDOneClassSVM": ({}, unlabeled),
    "SimpleImputer": ({}, missing),
    "TfidfTransformer": ({}, switches),
    "TheilSenRegressor": ({"max_subpopulation": 50}, responses),
    "TruncatedSVD": ({"n_components": 2}, records),
}
# Further configurations whose entries take another way.
VARIANTS = [
    ("BernoulliNB", {"class_prior": [0.5, 0.25, 0.25]}),
    ("ComplementNB", {"norm": True}),
    ("DummyClassifier", {"strategy": "most_frequent"}),
    ("DummyRegressor", {"strategy": "quantile", "quantile": 0.3}),
    ("EmpiricalCovariance", {"assume_centered": True}),
    ("EmpiricalCovariance", {"store_precision": False}),
    ("GaussianMixture", {"covariance_type": "tied"}),
    ("GaussianMixture", {"covariance_type": "diag"}),
    ("GaussianMixture", {"covariance_type": "spherical"}),
    ("GaussianNB", {"priors": [0.5, 0.25, 0.25]}),
    ("KBinsDiscretizer", {"strategy": "uniform", "encode": "onehot"}),
    ("KBinsDiscretizer", {"strategy": "quantile"}),
    ("LinearDiscriminantAnalysis", {"solver": "lsqr", "shrinkage": 0.1}),
    ("LinearRegression", {"fit_intercept": False}),
    ("MultinomialNB", {"fit_prior": False}),
    ("PCA", {"whiten": False}),
    ("QuadraticDiscriminantAnalysis", {"reg_param": 0.1, "priors": [0.5, 0.25, 0.25]}),
    ("RobustScaler", {"with_centering": False}),
    ("SimpleImputer", {"strategy": "median"}),
    ("SVC", {"decision_function_shape": "ovo"}),
    ("SVC", {"break_ties": True}),
    ("StandardScaler", {"with_mean": False}),
    ("TfidfTransformer", {"use_idf": False}),
]


class Case(NamedTuple):
    """A class, configured."""

    kind: type
    parameters: dict
    composed: object = None
    generated: object = None

    @property
    def name(self):
        return self.kind.__name__

    @property
    def generate(self):
        """The kind of records that it takes."""
        usual = {"classifier": clusters, "regressor": responses}
        chosen = self.generated or CASES.get(self.name, (None, None))[1]
        return chosen or usual.get(self.make().__sklearn_tags__().estimator_type, unlabeled)

    def make(self):
        """Return the estimator, in a pipeline if it releases nothing of its own."""
        if self.composed is not None:
            estimator = clone(self.composed)
            if estimator.get_params().get("random_state", 0) is None:
                estimator.set_params(random_state=0)
            return estimator
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # classes that are about to go
            estimator = self.kind(**CASES.get(self.name, ({}, None))[0] | self.parameters)
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=0)
        nothing = not CATALOG[self.kind].names(estimator)
        return make_pipeline(estimator, Ridge()) if nothing else estimator

    def datasets(self):
        """Return public and private records."""
        return self.generate(np.random.default_rng(1)), self.generate(np.random.default_rng(2))

    def target(self):
        public, private = self.datasets()
        estimator = self.make()
        return ParameterTarget(
            estimator, "auto", without_side_effects(estimator).fit(*public)
        ), private


def cube(values):
    return values**3


def scaled(model):
    return make_pipeline(StandardScaler(), model)


LOGISTIC = LogisticRegression(C=0.1)
LINES = [("ridge", Ridge()), ("line", LinearRegression())]
COLUMNS = make_column_transformer(
    (StandardScaler(), [0]), ("drop", [1]), remainder="passthrough", sparse_threshold=0
)
UNION = make_union(StandardScaler(), Normalizer(), "passthrough")
THREE = [("a", LOGISTIC), ("b", scaled(LOGISTIC)), ("c", "drop")]
COMPOSITIONS = [
    (make_pipeline(make_pipeline(StandardScaler()), LOGISTIC), clusters),
    (make_pipeline(COLUMNS, LOGISTIC), clusters),
    (COLUMNS, features),
    (make_pipeline(UNION, Ridge()), responses),
    (TransformedTargetRegressor(scaled(Ridge()), transformer=StandardScaler()), responses),
    (TransformedTargetRegressor(Ridge(), func=np.cbrt, inverse_func=cube), responses),
    (OneVsRestClassifier(scaled(LOGISTIC)), clusters),
    (OneVsRestClassifier(LOGISTIC), several_labels),
    (OneVsOneClassifier(LOGISTIC), clusters),
    (MultiOutputClassifier(LOGISTIC), several_labels),
    (MultiOutputRegressor(Ridge()), two_responses),
    (VotingClassifier(THREE, voting="soft"), clusters),
    (VotingRegressor(LINES), responses),
    (FixedThresholdClassifier(LOGISTIC, threshold=0.3), two_classes),
]
COMPOSED = [Case(type(made), {}, made, generate) for made, generate in COMPOSITIONS]
OWN = [kind for kind in released_classes() if kind.__module__.startswith("sklearn.")]
SUPPORTED = [Case(kind, {}) for kind in sorted(OWN, key=lambda kind: kind.__name__)]
BY_NAME = {case.name: case.kind for case in SUPPORTED}
VARIED = [Case(BY_NAME[name], parameters) for name, parameters in VARIANTS]
