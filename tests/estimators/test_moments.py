"""MomentClassifier and MomentRegressor: least squares, of which one sum is learned."""

from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_digits, load_iris, make_blobs
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from skdp import (
    ClipBox,
    ClipNorm,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivacyLeakWarning,
    PrivateEstimator,
    RandomTaskOracle,
    SensitivitySampler,
)
from skdp.estimators.known_target import KnownTarget
from skdp.estimators.moments import class_codes


@pytest.fixture
def line():
    rng = np.random.default_rng(0)
    X = rng.normal(loc=[1, 2, 3], size=(200, 3))
    return X, X @ [1.0, -2.0, 0.5] + 4 + rng.normal(size=200)


@pytest.mark.parametrize("constant", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("y_range", [None, (-100, 300)])
def test_the_regressor_is_least_squares(line, constant, y_range):
    X, y = line
    exact = LinearRegression().fit(X, y)
    model = MomentRegressor(constant=constant, y_range=y_range).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, exact.intercept_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), rtol=1e-9)
    assert model.score(X, y) == pytest.approx(exact.score(X, y))


def test_without_a_constant_there_is_no_intercept(line):
    X, y = line
    model = MomentRegressor(constant=0).fit(X, y)
    exact = LinearRegression(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, rtol=1e-9)
    assert model.intercept_ == 0
    assert model.moment_.shape == (1, 3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_classifier_is_least_squares_on_codes(n_classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < n_classes], y[y < n_classes]
    codes = class_codes(n_classes)
    exact = LinearRegression().fit(X, codes[y]).predict(X) @ codes.T
    model = MomentClassifier(shrinkage=0).fit(X, y)
    scores = exact[:, 1] - exact[:, 0] if n_classes == 2 else exact
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X), exact.argmax(axis=1))


def test_a_given_second_moment_takes_the_place_of_that_of_the_records():
    X, y = load_iris(return_X_y=True)
    own = MomentClassifier().fit(X, y)
    given = MomentClassifier(second_moment=own.second_moment_).fit(X, y)
    np.testing.assert_array_equal(given.coef_, own.coef_)
    centered = MomentClassifier(second_moment=np.eye(4)).fit(X, y)
    np.testing.assert_array_equal(centered.second_moment_, np.eye(5))


def test_declared_classes_may_be_absent():
    X, y = make_blobs(60, centers=2, random_state=0)
    model = MomentClassifier(classes=[0, 1, 2]).fit(X, y)
    assert model.moment_.shape == (2, 3)
    assert set(model.predict(X)) <= {0, 1}
    with pytest.raises(ValueError, match="not among 'classes'"):
        MomentClassifier(classes=[1, 2]).fit(X, y)


def test_sparse_records_give_the_same():
    X, y = load_digits(return_X_y=True)
    dense, thin = (MomentClassifier().fit(each, y) for each in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(thin.coef_, dense.coef_, atol=1e-9)
    np.testing.assert_array_equal(thin.predict(sparse.csr_array(X)), dense.predict(X))


@pytest.mark.loop(
    ("model", "message"),
    [
        (MomentClassifier(constant=-1), "'constant' parameter of MomentClassifier"),
        (MomentClassifier(constant=np.inf), "'constant'"),
        (MomentClassifier(constant=1e200), "'constant'"),
        (MomentRegressor(constant=10**400), "'constant'"),
        (MomentClassifier(shrinkage=1.5), "'shrinkage'"),
        (MomentRegressor(shrinkage="auto"), "'shrinkage' parameter of MomentRegressor"),
        (MomentClassifier(second_moment=np.eye(7)), "'second_moment'"),
        (MomentClassifier(second_moment=[[1, 2], [3, 4]]), "'second_moment'"),
        (MomentClassifier(classes=[1]), "at least two classes"),
        (MomentRegressor(y_range=(1, 1)), "'y_range'"),
        (MomentRegressor(y_range=5), "'y_range'"),
        (MomentRegressor(y_range=(0, np.inf)), "'y_range'"),
    ],
)
def test_impossible_parameters_are_refused(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit([[1.0, 2.0], [3.0, 4.0]], [0, 1])


def test_from_four_classes_on_the_moment_of_each_is_released():
    """Their one-hot codes bring less noise by an L1 bound, and the same model without noise."""
    X, y = make_blobs(60, centers=5, random_state=0)
    clip = ClipNorm(4.0)
    private = PrivateEstimator(
        make_pipeline(clip, MomentClassifier()),
        mechanism=LaplaceMechanism(np.inf),
        sensitivity="known",
        classes=range(5),
    ).fit(X, y)
    exact = MomentClassifier().fit(clip.transform(X), y)
    np.testing.assert_allclose(private.estimator_[-1].moment_, exact.moment_, atol=1e-12)
    assert private.standard_errors_["class_moments"].shape == (5, 3)


@pytest.mark.loop(
    ("model", "check"),
    [
        pytest.param(model, check, id=f"{type(model).__name__}-{check.func.__name__}")
        for made in (MomentClassifier(), MomentRegressor())
        for model, check in estimator_checks_generator(made)
        if "array_api" not in check.func.__name__  # needs libraries that skdp has no use for
    ],
)
def test_check_estimator(model, check):
    check(model)


def test_a_refit_is_a_fit_to_public_records_and_the_labels_given_to_them():
    X, y = load_iris(return_X_y=True)
    public = X[1::3]
    for classes in (2, 3):
        few = y < classes
        plain = MomentClassifier().fit(X[few], y[few])
        again = MomentClassifier(classes=range(classes)).fit(public, plain.predict(public))
        for rows in (public, sparse.csr_array(public), public.tolist()):
            model = clone(MomentClassifier(refit_on=rows)).fit(X[few], y[few])
            np.testing.assert_array_equal(model.moment_, plain.moment_)
            np.testing.assert_allclose(model.coef_, again.coef_, rtol=1e-9)
            np.testing.assert_allclose(model.intercept_, again.intercept_, rtol=1e-9)
    for rows, message in ((public[:, :2], "'refit_on' parameter"), (public * np.nan, "refit_on")):
        with pytest.raises(ValueError, match=message):
            MomentClassifier(refit_on=rows).fit(X, y)


def test_a_refit_reads_released_numbers_only():
    """What decides where the noise goes knows nothing of it, since labels change by jumps."""
    X, y = make_blobs(150, centers=3, n_features=3, random_state=0)
    model = PrivateEstimator(
        make_pipeline(ClipNorm(20.0), MomentClassifier()),
        mechanism=LaplaceMechanism(1.0),
        sensitivity="known",
        classes=[0, 1, 2],
        random_state=0,
    )
    private, public = (X[50:], y[50:]), X[:50].copy()
    plain = clone(model).fit(*private)
    refitted = clone(model.set_params(estimator__momentclassifier__refit_on=public)).fit(*private)
    metrics = (each.plan_.target.output_metric(public, y[:50]) for each in (plain, refitted))
    np.testing.assert_array_equal(*metrics)
    first, second = (each.estimator_[-1] for each in (plain, refitted))
    np.testing.assert_array_equal(first.moment_, second.moment_)
    again = clone(first).set_params(classes=[0, 1, 2]).fit(public, first.predict(public))
    np.testing.assert_allclose(second.coef_, again.coef_, rtol=1e-9)

    model.set_params(estimator__momentclassifier__refit_on=X[60:90])
    sampler = SensitivitySampler(RandomTaskOracle(public, classes=[0, 1, 2]), gamma=0.2)
    for sensitivity in ("known", sampler):
        with pytest.raises(PrivacyLeakWarning, match="part of the private records"):
            model.set_params(sensitivity=sensitivity).fit(*private)


def off_center(n_samples, rng, n_features=3):
    """Draw a third of the second class, in columns that fill a part of [0, 1]."""
    y = (rng.random(n_samples) < 0.34).astype(int)
    X = rng.normal(size=(n_samples, n_features)) + np.outer(y, [2, 0.5, 0][:n_features])
    X[:, -1] += X[:, 0]  # so the direction of the means is not that of least squares
    return 0.6 + 0.06 * X, y


@pytest.mark.parametrize(
    ("mechanism", "has_products"),
    [
        (LaplaceMechanism(1.0), False),
        (L2LaplaceMechanism(1.0), True),
        (GaussianMechanism(1.0, 1e-5), True),
    ],
)
def test_few_columns_off_center_find_the_smaller_class(mechanism, has_products):
    """A guessed variance gave the majority, .66; the exact model has .86."""
    X, y = off_center(23_000, np.random.default_rng(0))
    model = PrivateEstimator(
        make_pipeline(ClipBox(0, 1), MomentClassifier()),
        mechanism=mechanism,
        sensitivity="known",
        classes=[0, 1],
    )
    plan = model.plan(3000, like=(X[:3000], y[:3000]))
    assert plan.target.statistic.has_products == has_products
    exact = MomentClassifier(shrinkage=0).fit(X[:3000], y[:3000]).score(X[3000:], y[3000:])
    scores = [
        plan.execute(X[:3000], y[:3000], random_state=seed).value.score(X[3000:], y[3000:])
        for seed in range(4)
    ]
    assert np.mean(scores) > 0.66 + (0.6 if has_products else 0.3) * (exact - 0.66)


@pytest.mark.parametrize("model", [MomentClassifier, partial(MomentRegressor, y_range=(-1, 2))])
def test_without_noise_the_products_of_columns_give_least_squares(model):
    X, y = off_center(500, np.random.default_rng(0))
    exact, options = model(shrinkage=0).fit(X, y), {"classes": [0, 1]}
    if is_regressor(exact):
        options, y = {}, y + X[:, 1]
        exact.fit(X, y)
    for container in (np.asarray, sparse.csr_array):
        released = PrivateEstimator(
            make_pipeline(ClipNorm(9.0), model(shrinkage=0)),
            mechanism=GaussianMechanism(np.inf, 1e-5),
            sensitivity="known",
            **options,
        ).fit(container(X), y)
        found = released.estimator_[-1]
        np.testing.assert_allclose(found.coef_, exact.coef_, rtol=1e-6)
        np.testing.assert_allclose(found.intercept_, exact.intercept_, rtol=1e-6)
        np.testing.assert_allclose(found.second_moment_, exact.second_moment_, rtol=1e-6)


def test_a_response_is_predicted_from_columns_off_center():
    """A guessed variance around 0 gave an R2 below 0 without any noise; the exact one is .88."""
    rng = np.random.default_rng(0)
    X = 0.6 + 0.06 * rng.normal(size=(3000, 3))
    y = X @ [10.0, 20.0, 0.0] + 0.5 * rng.normal(size=3000)
    for mechanism, least in ((LaplaceMechanism(1e4), 0.6), (GaussianMechanism(100, 1e-5), 0.8)):
        model = PrivateEstimator(
            make_pipeline(ClipBox(0, 1), MomentRegressor(y_range=(13, 23))),
            mechanism=mechanism,
            sensitivity="known",
            random_state=0,
        )
        assert model.fit(X, y).score(X, y) > least


def test_products_are_released_only_where_they_cost_nothing():
    """Where a prior is given, too, it would have to tell the noise of so many numbers."""
    X, y = np.zeros((20, 70)), np.arange(20) % 2
    for n_columns, mechanism, has_products in (
        (3, L2LaplaceMechanism(1.0), True),
        (4, L2LaplaceMechanism(1.0), False),
        (64, GaussianMechanism(1.0, 1e-5), True),
        (65, GaussianMechanism(1.0, 1e-5), False),
        (2, LaplaceMechanism(1.0), False),
    ):
        pipeline = make_pipeline(ClipNorm(1.0), MomentClassifier())
        fitted = pipeline.fit(X[:, :n_columns], y)
        statistic = KnownTarget(pipeline, fitted, 20, mechanism).statistic
        assert statistic.has_products == has_products
