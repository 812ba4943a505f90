"""What a released model divides by is told from 0, in units of its standard errors."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.covariance import EllipticEnvelope, EmpiricalCovariance
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, FactorAnalysis
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from skdp import (
    ClipBox,
    ClipNorm,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    load,
)
from skdp.estimators.catalog.repairs import (
    from_triangle,
    nearest_covariance,
    on_simplex,
    raised_eigenvalues,
    raised_variances,
)

IRIS = load_iris(return_X_y=True)
PUBLIC = [part[::2] for part in IRIS]
PRIVATE = [part[1::2] for part in IRIS]


def private(estimator, epsilon, **options):
    oracle = PublicDataOracle(*PUBLIC)
    return PrivateEstimator(
        estimator,
        mechanism=LaplaceMechanism(epsilon, **options),
        sensitivity=SensitivitySampler(oracle, gamma=0.2, n_pairs=9, random_state=0),
        random_state=0,
    )


def least(values, public, errors):
    return np.maximum(values, np.minimum(public, 2 * np.asarray(errors)))


@pytest.mark.parametrize(
    ("step", "attribute"),
    [
        (StandardScaler(), "var_"),
        (RobustScaler(), "scale_"),
        (MaxAbsScaler(), "max_abs_"),
        (PowerTransformer(), "var_"),
        (GaussianNB(), "var_"),
        (NearestCentroid(), "within_class_std_dev_"),
        (PCA(2, whiten=True), "explained_variance_"),
        (FactorAnalysis(1), "noise_variance_"),
        (GaussianMixture(2, covariance_type="diag", random_state=0), "covariances_"),
        (GaussianMixture(2, covariance_type="spherical", random_state=0), "covariances_"),
        (
            BayesianGaussianMixture(n_components=2, covariance_type="diag", random_state=0),
            "covariances_",
        ),
    ],
    ids=lambda each: type(each).__name__ if hasattr(each, "fit") else "",
)
def test_noise_around_zero_is_not_divided_by(step, attribute):
    """It becomes the public fit's, but at most two standard errors; nothing told from 0 changes."""
    raised, few = 0, [part[::5] for part in PRIVATE]  # the largest of many would seldom change
    for epsilon in (0.03, 0.3, np.inf):
        plan = private(step, epsilon, code=None).plan(len(few[0]))
        public = plan.target.by_name(plan.target.flatten(plan.target.public_fit))[attribute]
        for seed in range(5):
            release = plan.execute(*few, random_state=seed)
            values, errors = release.numbers[attribute], release.standard_errors[attribute]
            inside = getattr(release.value, attribute)
            np.testing.assert_allclose(inside, least(values, public, errors), rtol=1e-6)
            if epsilon == np.inf:
                np.testing.assert_array_equal(inside, values)
            raised += np.sum(inside > values)
            again = release.simulator.target.restore(plan.target.flatten(plan.target.public_fit))
            assert (getattr(again, attribute) >= 0).all()
    assert raised > 5


def test_nor_in_a_step_nor_in_simulated_releases(tmp_path):
    """Also of a release that was saved: what it repeats is repaired by the same errors."""
    pipeline = make_pipeline(StandardScaler(), RidgeClassifier())
    plan = private(pipeline, 0.1, code=None).plan(len(PRIVATE[0]))
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
        (EllipticEnvelope(random_state=0), "covariance_"),
        (QuadraticDiscriminantAnalysis(reg_param=0.1), "covariance_"),
        (GaussianMixture(2, covariance_type="tied", random_state=0), "covariances_"),
        (GaussianMixture(2, covariance_type="full", random_state=0), "covariances_"),
    ],
    ids=lambda each: type(each).__name__ if hasattr(each, "fit") else "",
)
def test_of_a_covariance_the_variances_are_raised(model, attribute):
    """The others are left to what makes a covariance of the whole."""
    raised, few = 0, [part[::3] for part in PRIVATE]
    is_variance = np.eye(4)[np.triu_indices(4)] > 0
    may_be_singular = isinstance(model, EmpiricalCovariance)
    for epsilon in (0.1, 1.0, 10.0):
        plan = private(model, epsilon, code=None).plan(len(few[0]))
        public = plan.target.by_name(plan.target.flatten(plan.target.public_fit))[attribute]
        for seed in range(5):
            release = plan.execute(*few, random_state=seed)
            values, errors = release.numbers[attribute], release.standard_errors[attribute]
            told = np.where(is_variance, least(np.array(values), np.array(public), errors), values)
            matrices = getattr(release.value, attribute)
            each = (np.reshape(numbers, (-1, 10)) for numbers in (told, public))
            for numbers, usual, matrix in zip(*each, np.reshape(matrices, (-1, 4, 4)), strict=True):
                expected = nearest_covariance(
                    from_triangle(numbers), from_triangle(usual), singular=may_be_singular
                )
                np.testing.assert_allclose(matrix, expected, rtol=1e-6, atol=1e-9)
            raised += np.sum(told > values)
    assert raised > 5


def test_a_scale_that_is_named_is_raised_too():
    """It is not that of the variance, which may be left out."""
    few = [part[::5] for part in PRIVATE]
    for names in (["scale_"], ["var_", "scale_"]):
        model = private(StandardScaler(), 0.03, code=None).set_params(release=names)
        plan = model.plan(len(few[0]))
        release = plan.execute(*few, random_state=0)
        for name in names:
            given = release.numbers[name], release.standard_errors[name]
            expected = least(given[0], getattr(plan.target.public_fit, name), given[1])
            np.testing.assert_allclose(getattr(release.value, name), expected)
            assert (given[0] < 0).any()


def test_of_an_absent_class_nothing_is_divided_by_zero():
    """As where the labels are declared and no noise is added."""
    model = PrivateEstimator(
        make_pipeline(ClipBox(0, 8), GaussianNB()),
        mechanism=LaplaceMechanism(np.inf),
        sensitivity="known",
        classes=[0, 1, 2],
    )
    X, y = PRIVATE
    model.fit(X[y < 2], y[y < 2])
    fitted = model.estimator_[-1]
    assert np.isfinite(fitted.theta_).all()
    assert (fitted.var_ > 0).all()
    np.testing.assert_array_equal(model.predict(X[y < 2]), y[y < 2])


def test_what_two_columns_share_is_not_raised():
    raised = raised_variances(
        np.array([0.5, -0.7, 9.0]), np.array([2.0, 1.0, 2.0]), np.array([0.6, 0.6, 0.6])
    )
    np.testing.assert_allclose(raised, [1.2, -0.7, 9.0])


@pytest.mark.parametrize("has_prior", [False, True], ids=["", "prior"])
@pytest.mark.parametrize("model", [StandardScaler(), GaussianNB()])
def test_of_a_known_sensitivity_too(model, has_prior):
    """There a variance follows from two moments, and so does its error.

    Instead of the public one stands that of the prior mean, or of a uniform column of the box: a
    third of half its width, squared.
    """
    is_scaler, half, raised = isinstance(model, StandardScaler), 3.0, 0
    private_parts = PRIVATE[: 1 if is_scaler else 2]
    estimator = PrivateEstimator(
        make_pipeline(ClipBox(2.0, 8.0), model),
        mechanism=LaplaceMechanism(3.0),
        sensitivity="known",
        classes=None if is_scaler else [0, 1, 2],
        prior=PublicDataOracle(*PUBLIC[: len(private_parts)]) if has_prior else None,
    )
    plan = estimator.fit(*private_parts).plan_
    statistic, code = plan.target.statistic, plan.mechanism.geometry.code
    usual = None if code is None else code.mean

    def shares_of(moments):
        return 1.0 if is_scaler else on_simplex(moments[:, -1] / statistic.constant)[:, None]

    def split(numbers, shares):
        return np.hsplit((numbers if is_scaler else numbers[:, :-1]) / shares, 2)

    def scaled(moments):
        first, second = split(moments, shares_of(moments))
        mean = np.clip(first, -1, 1)
        return mean, np.minimum(second / statistic.weight - mean**2, 1)

    typical = 1 / 3 if usual is None else scaled(usual.reshape(statistic.shape))[1]
    for seed in range(20):
        release = plan.execute(*private_parts, random_state=seed)
        (moments,), (errors,) = (
            [*each.values()] for each in (release.numbers, release.standard_errors)
        )
        mean, variance = scaled(moments)
        error, error_of_second = split(errors, shares_of(moments))
        spread = np.hypot(error_of_second / statistic.weight, 2 * mean * error)
        expected = least(variance, typical, spread)
        expected = half**2 * np.where(expected > 0, expected, 1 / 3)
        if not is_scaler:
            expected += model.var_smoothing * expected.max()
        np.testing.assert_allclose(np.atleast_2d(release.value[-1].var_), expected, rtol=1e-9)
        raised += np.sum(expected > half**2 * variance * (1 + 1e-6))
    assert raised > 5


def test_directions_are_told_from_zero_by_the_size_of_the_noise():
    """The largest eigenvalue of noise is twice the root of the number of columns."""
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.1, size=(200, 200))
    noise = np.triu(noise) + np.triu(noise, 1).T
    raised = raised_eigenvalues(noise, 100 * np.eye(200), np.full((200, 200), 0.1))
    largest = np.linalg.eigvalsh(noise).max()
    assert np.linalg.eigvalsh(raised).min() == pytest.approx(largest, rel=0.1)
    turned, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    matrix = (turned * [0.01, 0.05, 9.0]) @ turned.T
    public = (turned * [0.5, 0.07, 0.1]) @ turned.T
    errors = np.full((3, 3), 0.1)
    raised = raised_eigenvalues(matrix, public, errors)
    expected = [0.2 * np.sqrt(3), 0.07, 9.0]  # by the noise, as in public, as it was
    np.testing.assert_allclose(raised, (turned * expected) @ turned.T, atol=1e-12)
    assert raised_eigenvalues(matrix, public, 0 * errors) is matrix


def regression_data(n_samples, seed):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n_samples, 8)) + 1.5 * rng.normal(size=(n_samples, 1))) / 8
    return X, np.clip(X @ np.linspace(4, -2, 8) + rng.normal(scale=0.3, size=n_samples), -2, 2)


def known(estimator, has_prior=False):
    prior = regression_data(300, 1)[: 2 if isinstance(estimator, LinearRegression) else 1]
    if isinstance(estimator, LinearRegression):
        estimator = TransformedTargetRegressor(estimator, transformer=ClipBox(-2, 2))
    return PrivateEstimator(
        make_pipeline(ClipNorm(1.0), estimator),
        mechanism=LaplaceMechanism(1.0),
        sensitivity="known",
        prior=PublicDataOracle(*prior) if has_prior else None,
        random_state=0,
    )


@pytest.mark.parametrize("has_prior", [False, True], ids=["", "prior"])
def test_a_known_regression_divides_by_no_direction_of_noise(has_prior):
    """Of columns that go together."""
    X, y = regression_data(2000, 0)
    clipped, plan = ClipNorm(1.0).transform(X), known(LinearRegression(), has_prior).fit(X, y).plan_
    unrepaired, repaired = [], []
    for seed in range(20):
        released = plan.execute(X, y, random_state=seed)
        (moments,) = released.numbers.values()
        center, covariance = plan.target.statistic._moments(moments)
        slopes = 2 * np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
        predicted = 2 * center[-1] + (clipped - center[:-1]) @ slopes
        unrepaired.append(np.mean((predicted - y) ** 2))
        repaired.append(np.mean((released.value.predict(X) - y) ** 2))
    assert np.mean(repaired) < (1.0 if has_prior else 0.5) * np.mean(unrepaired)


@pytest.mark.parametrize("has_prior", [False, True], ids=["", "prior"])
def test_a_known_covariance_has_no_direction_of_noise(has_prior):
    X = ClipNorm(1.0).transform(regression_data(2000, 0)[0])
    plan, exact = known(EmpiricalCovariance(), has_prior).fit(X).plan_, EmpiricalCovariance().fit(X)
    lost, lost_unrepaired = [], []
    for seed in range(20):
        released = plan.execute(X, random_state=seed)
        (moments,) = released.numbers.values()
        unrepaired = EmpiricalCovariance().fit(X)
        unrepaired.location_, covariance = plan.target.statistic._moments(moments)
        unrepaired._set_covariance(covariance)
        lost.append(exact.score(X) - released.value.score(X))
        lost_unrepaired.append(exact.score(X) - unrepaired.score(X))
    assert np.mean(lost) < (1.0 if has_prior else 0.5) * np.mean(lost_unrepaired)


@pytest.mark.parametrize("has_prior", [False, True], ids=["", "prior"])
def test_what_eigenvalues_are_raised_to(has_prior):
    """Of columns around (.4, .4, ...), as a variance is off by the mean's error, too."""
    X = 0.2 * regression_data(2000, 0)[0] + 0.3
    oracle = PublicDataOracle(0.2 * regression_data(300, 1)[0] + 0.3)
    model = known(EmpiricalCovariance()).set_params(prior=oracle if has_prior else None)
    plan = model.fit(X).plan_
    statistic, code = plan.target.statistic, plan.mechanism.geometry.code
    usual = None if code is None else code.mean
    places = np.triu_indices(9)
    constant = np.array([1.0] * 8 + [0.5])  # beside the columns, half the radius

    def as_matrix(numbers):
        matrix = np.zeros((9, 9))
        matrix[places] = np.ravel(numbers) / np.where(places[0] == places[1], 1, np.sqrt(2))
        matrix = np.maximum(matrix, matrix.T) + np.minimum(matrix, matrix.T)
        matrix[np.diag_indices(9)] /= 2
        return matrix / np.outer(constant, constant)

    for seed in range(5):
        released = plan.execute(X, random_state=seed)
        (moments,) = released.numbers.values()
        (errors,) = released.standard_errors.values()
        center, unrepaired = statistic._moments(moments)
        np.testing.assert_allclose(center, as_matrix(moments)[8, :8])
        if usual is None:
            expected = np.eye(8) / 8
        else:
            around = as_matrix(usual)
            expected = around[:8, :8] - np.outer(around[8, :8], around[8, :8])
        off = as_matrix(errors)
        of_mean = np.outer(center, off[8, :8])
        off = np.sqrt(off[:8, :8] ** 2 + of_mean**2 + of_mean.T**2)
        eigenvalues, vectors = np.linalg.eigh(unrepaired)
        there = np.array([vector @ expected @ vector for vector in vectors.T])
        size = 2 * np.sqrt((off**2).sum(axis=0).max())
        raised = np.maximum(eigenvalues, np.minimum(there, size))
        found = released.value[-1].covariance_
        np.testing.assert_allclose(found, (vectors * raised) @ vectors.T, rtol=1e-6, atol=1e-12)
