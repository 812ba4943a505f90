"""What a released model divides by is told from 0, in units of its standard errors."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.covariance import EmpiricalCovariance
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, RobustScaler, StandardScaler

from skdp import ClipBox, ClipNorm, LaplaceMechanism, PrivateEstimator, PublicDataOracle, load
from skdp.estimators.catalog.repairs import from_triangle, nearest_covariance
from tests import helpers
from tests.helpers import sampler

IRIS = load_iris(return_X_y=True)
PUBLIC = [part[::2] for part in IRIS]
PRIVATE = [part[1::2] for part in IRIS]


def private(estimator, epsilon):
    options = {"mechanism": LaplaceMechanism(epsilon, code=None)}
    return helpers.private(estimator, sensitivity=sampler(*PUBLIC, n_pairs=9), **options)


def given_and_public(plan, release, attribute):
    """The released numbers of an attribute, their standard errors, and the public fit's."""
    target = plan.target
    public = target.by_name(target.flatten(target.public_fit))[0][attribute]
    return release.numbers[attribute], release.standard_errors[attribute], public


def least(values, errors, public):
    return np.maximum(values, np.minimum(public, 2 * np.asarray(errors)))


def named(each):
    return type(each).__name__ if hasattr(each, "fit") else ""


@pytest.mark.parametrize(
    ("step", "attribute"),
    [
        (StandardScaler(), "var_"),
        (RobustScaler(), "scale_"),
        (MaxAbsScaler(), "max_abs_"),
        (GaussianNB(), "var_"),
        (PCA(2, whiten=True), "explained_variance_"),
        (GaussianMixture(2, covariance_type="diag", random_state=0), "covariances_"),
        (GaussianMixture(2, covariance_type="spherical", random_state=0), "covariances_"),
    ],
    ids=named,
)
def test_noise_around_zero_is_not_divided_by(step, attribute):
    """It becomes the public fit's, but at most two standard errors; nothing told from 0 changes."""
    raised, few = 0, [part[::5] for part in PRIVATE]  # the largest of many would seldom change
    for epsilon in (0.03, 0.3, np.inf):
        plan = private(step, epsilon).plan(len(few[0]))
        for seed in range(3):
            release = plan.execute(*few, random_state=seed)
            values, errors, public = given_and_public(plan, release, attribute)
            inside = getattr(release.value, attribute)
            np.testing.assert_allclose(inside, least(values, errors, public), rtol=1e-6)
            if epsilon == np.inf:
                np.testing.assert_array_equal(inside, values)
            raised += np.sum(inside > values)
            again = release.simulator.target.restore(plan.target.flatten(plan.target.public_fit))
            assert (getattr(again, attribute) >= 0).all()
    assert raised > 2


def test_nor_in_a_step_nor_in_simulated_releases(tmp_path):
    """Also of a release that was saved: what it repeats is repaired by the same errors."""
    pipeline = make_pipeline(StandardScaler(), RidgeClassifier())
    plan = private(pipeline, 0.1).plan(len(PRIVATE[0]))
    release = plan.execute(*PRIVATE, random_state=0)
    release.save(tmp_path / "folder")
    name = "standardscaler__var_"
    smallest = np.minimum(plan.target._like[name], 2 * release.standard_errors[name])
    assert (smallest > release.numbers[name]).any()
    for each in (release, load(tmp_path / "folder")):
        models = [each.value, *each.plausible_models(n_draws=20)]
        assert (np.array([model[0].var_ for model in models]) >= smallest * (1 - 1e-12)).all()


@pytest.mark.parametrize(
    ("model", "attribute"),
    [
        (EmpiricalCovariance(), "covariance_"),
        (QuadraticDiscriminantAnalysis(reg_param=0.1), "covariance_"),
        (GaussianMixture(2, covariance_type="tied", random_state=0), "covariances_"),
        (GaussianMixture(2, covariance_type="full", random_state=0), "covariances_"),
    ],
    ids=named,
)
def test_of_a_covariance_the_variances_are_raised(model, attribute):
    """The others are left to what makes a covariance of the whole."""
    raised, few = 0, [part[::3] for part in PRIVATE]
    is_variance = np.eye(4)[np.triu_indices(4)] > 0
    may_be_singular = isinstance(model, EmpiricalCovariance)
    for epsilon in (0.1, 1.0, 10.0):
        plan = private(model, epsilon).plan(len(few[0]))
        for seed in range(3):
            release = plan.execute(*few, random_state=seed)
            values, errors, public = map(np.array, given_and_public(plan, release, attribute))
            told = np.where(is_variance, least(values, errors, public), values)
            each = (np.reshape(numbers, (-1, 10)) for numbers in (told, public))
            matrices = np.reshape(getattr(release.value, attribute), (-1, 4, 4))
            for numbers, usual, matrix in zip(*each, matrices, strict=True):
                expected = nearest_covariance(
                    from_triangle(numbers), from_triangle(usual), singular=may_be_singular
                )
                np.testing.assert_allclose(matrix, expected, rtol=1e-6, atol=1e-9)
            raised += np.sum(told > values)
    assert raised > 2


def regression_data(n_samples, seed):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n_samples, 8)) + 1.5 * rng.normal(size=(n_samples, 1))) / 8
    return X, np.clip(X @ np.linspace(4, -2, 8) + rng.normal(scale=0.3, size=n_samples), -2, 2)


@pytest.mark.parametrize("has_prior", [False, True], ids=["", "prior"])
def test_a_known_fit_divides_by_no_direction_of_noise(has_prior):
    """Of columns that go together: a covariance without repair has no inverse, or a huge one."""
    X, y = regression_data(2000, 0)
    regressor = TransformedTargetRegressor(LinearRegression(), transformer=ClipBox(-2, 2))
    model = PrivateEstimator(
        make_pipeline(ClipNorm(1.0), regressor),
        mechanism=LaplaceMechanism(1.0),
        sensitivity="known",
        prior=PublicDataOracle(*regression_data(300, 1)) if has_prior else None,
    )
    plan = model.plan(len(X), like=(X, y))
    predicted = [plan.execute(X, y, random_state=seed).value.predict(X) for seed in range(10)]
    assert np.mean((predicted - y) ** 2) < 3 * np.var(y)


@pytest.mark.parametrize("has_prior", [False, True], ids=["", "prior"])
@pytest.mark.parametrize("model", [StandardScaler(), GaussianNB()])
def test_a_variance_of_a_known_sensitivity_is_positive_and_exact_without_noise(model, has_prior):
    """Also of a class that is absent: where the labels are declared, and no noise is added."""
    n_parts = 1 if isinstance(model, StandardScaler) else 2
    data = [part[PRIVATE[1] < 2] for part in PRIVATE[:n_parts]]
    estimator = helpers.private(
        make_pipeline(ClipBox(0, 8), model),
        mechanism=LaplaceMechanism(np.inf),
        sensitivity="known",
        classes=None if n_parts == 1 else [0, 1, 2],
        prior=PublicDataOracle(*PUBLIC[:n_parts]) if has_prior else None,
    )
    found = estimator.fit(*data).estimator_[-1].var_
    expected = clone(model).fit(*data).var_
    np.testing.assert_allclose(found if n_parts == 1 else found[:2], expected, rtol=1e-5)
    for epsilon in (0.03, 1.0):
        plan = estimator.set_params(mechanism__epsilon=epsilon).plan(len(data[0]), like=tuple(data))
        for seed in range(3):
            variances = plan.execute(*data, random_state=seed).value[-1].var_
            assert np.all((variances > 1e-3) & (variances < 32))
