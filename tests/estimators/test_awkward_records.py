"""Repairs leave what is in range as it is, in whatever units, and mend the rest in these units.

Without noise the released estimator computes what the private fit does, on records that may make
repairs go wrong: columns whose units differ by 1e8, that are far from zero, constant or nearly, of
tiny variance, linearly dependent, or more than records. With any noise it still computes.
"""

import warnings

import numpy as np
import pytest
import sklearn
from scipy import optimize
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.covariance import EmpiricalCovariance, LedoitWolf, MinCovDet
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from skdp.core.dataset import Dataset
from skdp.estimators.catalog import released_entry
from skdp.estimators.catalog.repairs import (
    lower_factor,
    nearest_covariance,
    on_simplex,
    orthonormal,
    positive,
    positive_counts,
)
from skdp.estimators.configuration import without_side_effects
from skdp.estimators.inputs import order_matters, reorder
from skdp.estimators.parameters import ParameterTarget
from tests.estimator_cases import QUIET
from tests.estimator_cases import outputs as outputs_of_methods

pytestmark = [
    *QUIET,
    pytest.mark.filterwarnings("ignore::scipy.linalg.LinAlgWarning"),  # of equal columns
]


CHANGES = {
    "units": lambda X: X * [1.0, 1e-4, 1e4],
    "far": lambda X: X + 1e8,
    "time stamp": lambda X: X * [1.0, 1e4, 1e-6] + [0.0, 1.7e9, 0.0],
    "constant": lambda X: X * [1.0, 0.0, 1.0] + [0.0, 0.1, 0.0],
    "nearly constant": lambda X: X * [1.0, 1e-7, 1.0] + [0.0, 1e8, 0.0],
    "tiny": lambda X: X * 1e-7,
    "huge": lambda X: X * 1e8,
    "dependent": lambda X: np.column_stack([X[:, 0], X[:, 1], X[:, 0] - X[:, 1]]),
    "rounded": np.round,
    "wide": lambda X: np.hstack(
        [X[:20], np.sin(np.arange(1.0, 31) * X[:20, :1] ** 2 + X[:20, 1:2])]
    ),
}
ESTIMATORS = [
    GaussianNB(),
    GaussianNB(priors=[0.0, 0.5, 0.5]),
    QuadraticDiscriminantAnalysis(tol=1e-30),
    QuadraticDiscriminantAnalysis(tol=1e-30, reg_param=0.1, priors=[2, 1, 1]),
    DummyClassifier(),
    GaussianMixture(2, random_state=0),
    GaussianMixture(2, covariance_type="tied", reg_covar=1e-8, random_state=0),
    GaussianMixture(2, covariance_type="diag", reg_covar=1e-20, random_state=0),
    EmpiricalCovariance(),
    EmpiricalCovariance(assume_centered=True, store_precision=False),
    LedoitWolf(),
    MinCovDet(random_state=0),
    PCA(2),
    PCA(2, whiten=True),
    IncrementalPCA(2),
    TruncatedSVD(2, random_state=0),
    StandardScaler(),
    StandardScaler(with_mean=False),
    MinMaxScaler((-1, 2)),
    MaxAbsScaler(),
    RobustScaler(),
    KBinsDiscretizer(3, encode="ordinal", strategy="uniform"),
    KBinsDiscretizer(3, encode="ordinal", strategy="kmeans"),
]


def records(estimator, change, seed):
    """Return 60 records of three columns and three classes, changed."""
    rng = np.random.default_rng(seed)
    y = np.arange(60) % 3
    X = change(np.array([[0.0, 0, 0], [5, 0, 1], [0, 5, -1]])[y] + rng.normal(size=(60, 3)))
    if is_classifier(estimator):
        return X, y[: len(X)]
    if is_regressor(estimator):
        return X, (X - X.mean(axis=0)) @ rng.normal(size=(X.shape[1], 2))
    return (X,)


def outputs(fitted, unserved, X):
    """Return what each method gives, by name, but for labels."""
    if not is_regressor(fitted):
        unserved = {*unserved, "predict"}
    return outputs_of_methods(fitted, unserved, X)


def distance(output, expected, aligned):
    """Return the largest error of a column in units of it, after matching columns if aligned."""
    output, expected = (one.reshape(len(one), -1) for one in (output, expected))
    size = np.abs(expected).max(axis=0)
    size = np.where(size > 1e-9 * size.max(), size, max(size.max(), 1e-300))
    if not aligned:
        return (np.abs(output - expected).max(axis=0) / size).max()
    signs = np.array([1.0, -1.0])[:, None, None, None]
    errors = np.abs(output.T[:, None] - signs * expected.T[None]).max(axis=3).min(axis=0) / size
    return errors[linear_sum_assignment(errors)].max()


def fitted_and_target(estimator, change):
    """Return the target, the released vector, what it is to compute, and new records; or None."""
    if is_regressor(estimator) and change == "nearly constant":
        return None  # its coefficient, 1e7, times 1e8 has no digits left for a prediction
    public, private, (new, *_) = (records(estimator, CHANGES[change], seed) for seed in range(3))
    ordered = reorder(Dataset(*private), seed=0).parts if order_matters(estimator) else private
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # scikit-learn warns of many such records
        try:
            fitted = clone(estimator).fit(*ordered)
            expected = outputs(fitted, released_entry(estimator).unserved, new)
            public_fit = without_side_effects(estimator).fit(*public)
        except (ValueError, np.linalg.LinAlgError, FloatingPointError):
            return None  # scikit-learn refuses these records itself
    target = ParameterTarget(estimator, "auto", public_fit)
    try:
        vector = target(*private, seed=0)
    except ValueError:
        return None
    if not np.isfinite(vector).all():
        return None
    expected = {name: value for name, value in expected.items() if np.isfinite(value).all()}
    return target, vector, expected, new


SLOW = (MinCovDet,)  # a search for each fit
FEW_CHANGES = ["far", "constant", "tiny", "dependent", "rounded"]


# Before 1.9 scikit-learn predicts nan for classes of singular covariances; a release repairs them.
REPAIRED_BEFORE = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9)


def is_singular(estimator, change):
    singular = change in ("constant", "dependent", "wide")
    return singular and isinstance(estimator, QuadraticDiscriminantAnalysis)


@pytest.mark.parametrize(
    "estimator",
    [pytest.param(one, marks=[pytest.mark.slow] * isinstance(one, SLOW)) for one in ESTIMATORS],
    ids=lambda one: type(one).__name__,
)
def test_without_noise_the_release_is_the_private_fit_and_with_any_it_computes(estimator):
    entry, rng, compared = released_entry(estimator), np.random.default_rng(0), 0
    for change in FEW_CHANGES if isinstance(estimator, SLOW) else CHANGES:
        case = fitted_and_target(estimator, change)
        if case is None:
            continue
        target, vector, expected, new = case
        if not (REPAIRED_BEFORE and is_singular(estimator, change)):
            released = outputs(target.restore(vector), entry.unserved, new)
            for name, value in expected.items():
                aligned = entry.align is not None and name != "inverse_transform"
                assert distance(released[name], value, aligned) < 1e-6, (change, name)
                compared += 1
        for scale in (1e-3 * np.abs(vector), 1e3 * np.abs(vector).max()):
            noise = scale * rng.laplace(size=vector.shape)
            with np.errstate(all="ignore"):  # noise of 1,000 times the value
                released = outputs(target.restore(vector + noise), entry.unserved, new)
            for name in expected.keys() - {"inverse_transform"}:
                assert not np.isnan(released[name]).any(), (change, name)
    assert compared >= 4


def restored(estimator, public, *private):
    target = ParameterTarget(estimator, "auto", without_side_effects(estimator).fit(*public))
    return target.restore(target(*private, seed=0))


def random_pair(rng, size, rank):
    """Return a symmetric matrix that may be no covariance, and a covariance of a given rank."""
    noisy, factor = rng.normal(size=(size, size)), rng.normal(size=(size, rank))
    return noisy + noisy.T + size * rng.uniform() * np.eye(size), factor @ factor.T


@pytest.mark.parametrize("singular", [False, True])
def test_covariances_are_repaired_in_whatever_units(singular):
    """The repair commutes with a change of units, keeps variances, and repairs once for all."""
    rng, n_repaired = np.random.default_rng(0), 0
    for size in (1, 2, 3, 8, 20):
        for rank in (1, size, 2 * size):
            matrix, public_fit = random_pair(rng, size, rank)
            scales = 2.0 ** rng.integers(-80, 80, size=size)
            to_units = np.outer(scales, scales)
            repaired = nearest_covariance(matrix, public_fit, singular=singular)
            other = nearest_covariance(matrix * to_units, public_fit * to_units, singular=singular)
            np.testing.assert_allclose(other / to_units, repaired, rtol=1e-9, atol=1e-12)
            again = nearest_covariance(repaired, public_fit, singular=singular)
            assert again is repaired
            variances = positive(np.diag(matrix), np.diag(public_fit))
            np.testing.assert_allclose(np.diag(repaired), variances, rtol=1e-9)
            assert np.all(np.abs(repaired) <= 1.000001 * np.sqrt(np.outer(variances, variances)))
            factor = lower_factor(nearest_covariance(matrix, public_fit))
            assert np.isfinite(factor).all()
            n_repaired += repaired is not matrix
    assert n_repaired >= 5


def test_column_that_is_taken_for_constant_stays_so():
    X = 1e8 + 1e-7 * np.random.default_rng(0).normal(size=(50, 1))
    fitted = StandardScaler().fit(X)
    assert fitted.scale_ == 1
    assert fitted.var_ > 0
    released = restored(StandardScaler(), (X + 1,), X)
    np.testing.assert_array_equal(released.transform(X), fitted.transform(X))
    small = np.array([[1e-17], [2e-17]])
    for scaler in (MinMaxScaler(), MaxAbsScaler()):
        released = restored(scaler, (np.ones((2, 1)),), small)
        np.testing.assert_array_equal(released.scale_, clone(scaler).fit(small).scale_)


@pytest.mark.parametrize("alpha", [0.0, 1e-12, 1.0])
@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB, BernoulliNB, CategoricalNB])
def test_counts_are_of_any_unit_and_smoothing_of_any_size(kind, alpha):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.integers(1, 4, size=(60, 3)) * (
        2.0**-40 if kind in (MultinomialNB, ComplementNB) else 1
    )
    X = np.where(rng.uniform(size=X.shape) < 0.3, 0, X) if kind in (BernoulliNB,) else X
    model = kind(alpha=alpha)
    fitted, released = clone(model).fit(X, y), restored(model, (X[::-1], y[::-1]), X, y)
    expected = fitted.predict_log_proba(X)
    np.testing.assert_allclose(released.predict_log_proba(X), expected, rtol=1e-6, atol=1e-9)
    vector = ParameterTarget(model, "auto", fitted)(X, y, seed=0)
    for scale in (1.0, 1e3, 1e9):
        noisy = ParameterTarget(model, "auto", fitted).restore(
            vector + scale * rng.laplace(size=vector.shape)
        )
        assert np.isfinite(noisy.predict_log_proba(X)).all()


def test_probabilities_in_range_stay_and_others_become_the_nearest():
    """Against a solver that knows nothing of the formula."""
    for inside in (np.array([0.0, 1.0]), np.float32([0.1, 0.7, 0.2]), np.array([1e-30, 1.0])):
        assert on_simplex(inside) is inside
    for outside in ([2.0, -1.0], [1e30, 1e30], [-1e30, 0.0, 1e20], [0.3, 0.3]):
        projected = on_simplex(np.array(outside))
        assert projected.min() > 0
        np.testing.assert_allclose(projected.sum(), 1)
    values = np.array([0.3, -0.4, 0.8, 0.1])
    solved = optimize.minimize(
        lambda point: np.sum((point - values) ** 2),
        np.full(4, 0.25),
        bounds=[(0, 1)] * 4,
        constraints={"type": "eq", "fun": lambda point: point.sum() - 1},
        tol=1e-12,
    )
    np.testing.assert_allclose(on_simplex(values), solved.x, atol=1e-5)


def test_repairs_leave_good_values_alone_and_mend_bad_ones():
    """Also where the public fit has no variance, and where next to none is left by the noise."""
    bad = np.array([[1.0, 0.0], [0.0, -3.0]])
    np.testing.assert_allclose(nearest_covariance(bad, np.diag([4.0, 2.0])), np.diag([1.0, 2.0]))
    np.testing.assert_allclose(nearest_covariance(bad, np.zeros((2, 2))), np.eye(2))
    matrix = np.array([[-1.0, 0.5, 0.0], [0.5, 1e-320, 2.0], [0.0, 2.0, 0.0]])
    assert np.isfinite(nearest_covariance(matrix, np.zeros((3, 3)))).all()
    np.testing.assert_array_equal(positive([-1.0, 0.0, 2.0], [0.0, 3.0, 0.0]), [1.0, 3.0, 2.0])
    counts = positive_counts(np.array([[-1.0, 4e-20, 0.0], [-1.0, 0.0, -2.0]]))
    np.testing.assert_allclose(counts, [[4e-30, 4e-20, 4e-30], [1e-10, 1e-10, 1e-10]])
    rows = orthonormal(np.random.default_rng(0).normal(size=(2, 4)))
    np.testing.assert_allclose(rows @ rows.T, np.eye(2), atol=1e-12)
    for exact in (rows, np.array([[1.0, 1e-16, 0.0], [0.0, 0.0, 1.0]])):
        assert orthonormal(exact) is exact
