"""Which estimators ignore y: told without fitting, and checked against fits."""

import inspect
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.manifold import TSNE
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler, TargetEncoder
from sklearn.utils import all_estimators, get_tags

from skdp.estimators.inputs import uses_response

RNG = np.random.default_rng(0)
X = RNG.uniform(1, 2, size=(40, 4))
Y = RNG.integers(2, size=40)


class Foreign(TransformerMixin, BaseEstimator):
    """A transformer of somebody else, which may do anything with y."""

    def fit(self, X, y=None):
        return self


IGNORE = [
    StandardScaler(),
    KMeans(2),
    VarianceThreshold(),
    FunctionTransformer(np.tanh),
    FrozenEstimator(LogisticRegression()),
    make_pipeline(StandardScaler(), "passthrough", PCA(1)),
    make_union(StandardScaler(), make_pipeline(PCA(1))),
    ColumnTransformer([("a", PCA(1), [0, 1])], remainder="drop"),
]
MAY_USE = [
    Ridge(),
    Foreign(),
    SelectKBest(k=1),
    SelectFromModel(Ridge()),
    TargetEncoder(),
    TransformedTargetRegressor(Ridge()),
    make_pipeline(StandardScaler(), SelectKBest(k=1), KMeans(2)),
    make_union(StandardScaler(), Foreign()),
    ColumnTransformer([("a", PCA(1), [0, 1])], remainder=TargetEncoder()),
]


@pytest.mark.loop(
    ("estimator", "uses"), [*((e, False) for e in IGNORE), *((e, True) for e in MAY_USE)]
)
def test_who_may_use_y(estimator, uses):
    assert uses_response(estimator) == uses


SMALL = {"random_state": 0, "n_components": 2, "max_iter": 5, "n_estimators": 2, "bandwidth": 1.0}


def candidates():
    """All classes of scikit-learn of which it is said that they ignore y."""
    for _, kind in all_estimators():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # classes that are about to go
            try:
                estimator = kind()
                get_tags(estimator)
            except (TypeError, AttributeError, DeprecationWarning):  # of 1.7, for an AttributeError
                continue  # compositions, which need members
        takes_records = next(iter(inspect.signature(estimator.fit).parameters)) != "y"
        if takes_records and not uses_response(estimator):
            small = SMALL.keys() & estimator.get_params().keys()
            if kind is not TSNE:  # which is small, and takes many iterations or none
                estimator.set_params(**{name: SMALL[name] for name in small})
            yield pytest.param(estimator, id=kind.__name__)


def state(estimator, *dataset):
    """What a fit leaves in public attributes, or why there is none."""
    try:
        fitted = clone(estimator).fit(*dataset)
    except (TypeError, ValueError, AttributeError) as error:
        return type(error).__name__
    return {k: v for k, v in vars(fitted).items() if k.endswith("_") and not k.startswith("_")}


@pytest.mark.slow
@pytest.mark.parametrize("estimator", list(candidates()))
def test_no_fit_of_scikit_learn_depends_on_a_y_that_is_left_out(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # candidates of all kinds, on few records
        alone = state(estimator, X)
        assert joblib.hash(state(estimator, X, Y)) == joblib.hash(alone)
