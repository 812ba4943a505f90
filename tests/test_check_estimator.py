"""PrivateEstimator is a scikit-learn estimator: check_estimator says so.

The sensitivity is a number, since the data sets of the checks change shape and an oracle's do not.
It is small, since some checks ask for accuracy, and utility is not what they are about here.
"""

import numpy as np
import pytest
from sklearn.base import is_clusterer
from sklearn.cluster import KMeans
from sklearn.linear_model import LogisticRegression, Ridge, SGDOneClassSVM
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import estimator_checks_generator

from skdp import BernsteinTransformer, PrivateEstimator
from tests import helpers

# One of each kind; the last two take time and rarely tell more.
ESTIMATORS = [
    Ridge(),
    StandardScaler(),
    make_pipeline(StandardScaler(), LogisticRegression()),
    KMeans(),
    GaussianMixture(),
    KernelDensity(bandwidth=20),
    SGDOneClassSVM(),
]
# Of a density, the function itself is released, on a box.
RELEASE = {"KernelDensity": BernsteinTransformer(degree=1, feature_range=(-10, 10), clip=True)}
KINDS = {
    "KMeans": "clusterer",
    "GaussianMixture": "density_estimator",
    "KernelDensity": None,  # scikit-learn does not call it one
    "SGDOneClassSVM": "outlier_detector",
}
# Under a plain promise no record is refused unpaid, as an error would tell that it is there.
ASK_FOR_REFUSALS = {"check_estimators_nan_inf", "check_dtype_object"}
# Nor does a list or an object with `__array__` declare a type, and both are refused.
PASS_LISTS = ("_train", "data_not_an_array")


pytestmark = pytest.mark.filterwarnings(
    # The labels of each check's data are unknown beforehand, so they are read from y.
    "ignore::skdp.exceptions.PrivacyLeakWarning",
    # The checks fit scikit-learn's own solvers to tiny data.
    "ignore::sklearn.exceptions.ConvergenceWarning",
    # Some checks have records of one class only, of which one against the rest warns.
    "ignore:Label not:UserWarning",
)


class ListsConverted(PrivateEstimator):
    """Do what the error says, so that the rest of a check is run."""

    def fit(self, X, y=None, sample_weight=None):
        return super().fit(np.asarray(X), None if y is None else np.asarray(y), sample_weight)


def private(estimator):
    release = RELEASE.get(type(estimator).__name__, "auto")
    return helpers.private(estimator, sensitivity=1e-6, release=release)


def checks(estimators, marks=()):
    for estimator in estimators:
        for model, check in estimator_checks_generator(private(estimator)):
            kind, name = type(estimator).__name__, getattr(check, "func", check).__name__
            # The former need libraries that skdp has no use for, the latter weights, which a number
            # for a sensitivity knows nothing of: they are refused.
            left_out = "array_api" in name or "sample_weight" in name or name in ASK_FOR_REFUSALS
            if any(part in name for part in PASS_LISTS):
                model = ListsConverted(**model.get_params(deep=False))
            if not left_out:
                yield pytest.param(model, check, id=f"{kind}-{name}", marks=marks)


@pytest.mark.parametrize(
    ("model", "check"),
    [*checks(ESTIMATORS[:-2]), *checks(ESTIMATORS[-2:], marks=[pytest.mark.slow])],
)
def test_check_estimator(model, check):
    """The noise is seeded, so that nothing is expected to fail."""
    check(model)


@pytest.mark.parametrize("estimator", [one for one in ESTIMATORS if type(one).__name__ in KINDS])
def test_the_kind_of_estimator_is_forwarded(estimator):
    model = private(estimator)
    assert get_tags(model).estimator_type == KINDS[type(estimator).__name__]
    assert is_clusterer(model) == isinstance(estimator, KMeans)
