"""sensitivity="known": plain differential privacy by one word, or a reason why not."""

import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.covariance import EmpiricalCovariance
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import NMF, PCA
from sklearn.ensemble import RandomForestClassifier, RandomTreesEmbedding
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import LinearSVC, LinearSVR

from skdp import (
    BernsteinTransformer,
    ClipBox,
    ClipNorm,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivacyLeakWarning,
    PrivateEstimator,
    PrivateSearchCV,
    PublicDataOracle,
    RandomTaskOracle,
    SensitivitySampler,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.audit import audit_estimator
from skdp.bounds import svm_bound

EXACT = LaplaceMechanism(np.inf)


def blobs(n_records=300, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n_records) % 2
    return rng.normal(loc=np.outer(y, [2.0, -1.0, 0.5]), scale=0.7), y


X_PUBLIC = blobs(seed=1)[0]


@pytest.fixture
def data():
    return blobs()


@pytest.fixture
def scaler():
    return FrozenEstimator(StandardScaler().fit(X_PUBLIC))


def private(estimator, *steps, mechanism=EXACT, **others):
    if not others.pop("unlabeled", False):
        others = {"classes": [0, 1]} | others
    return PrivateEstimator(
        make_pipeline(*steps, estimator), mechanism=mechanism, sensitivity="known", **others
    )


def test_one_word_gives_a_plain_promise(data, scaler):
    model = private(
        MomentClassifier(),
        ClipBox(-5, 5),
        scaler,
        ClipNorm(2.0),
        mechanism=LaplaceMechanism(3.0),
        random_state=0,
    ).fit(*data)
    assert model.score(*data) > 0.9
    assert model.guarantee_.gamma == 0
    assert model.guarantee_.delta == 0
    assert str(model.plan_.guarantee) == (
        "epsilon=3 differential privacy, replace-one, n=300, sensitivity 0.018687 known on paper, "
        "assuming that labels, bounds and frozen steps are public, missing numbers "
        "counted as 0 after the steps, unless one fills them"
    )


@pytest.mark.parametrize(
    "estimator",
    [MomentClassifier(), MomentClassifier(second_moment=np.eye(3)), GaussianNB(), BernoulliNB()],
)
def test_without_noise_it_is_nearly_the_estimator(data, scaler, estimator):
    X, y = data
    model = private(estimator, scaler, ClipNorm(3.0)).fit(X, y)
    exact = make_pipeline(scaler, ClipNorm(3.0), clone(estimator)).fit(X, y)
    assert (model.predict(X) == exact.predict(X)).mean() > 0.95


def test_without_noise_naive_bayes_and_the_scaler_are_exact(data):
    X, y = data
    box = ClipBox([-4, -5, -4], [6, 4, 9])
    released = private(GaussianNB(), box).fit(X, y).estimator_[-1]
    exact = GaussianNB().fit(X, y)
    for name in ("theta_", "var_", "class_prior_"):
        np.testing.assert_allclose(getattr(released, name), getattr(exact, name), rtol=1e-6)

    scaler = private(StandardScaler(), box, unlabeled=True).fit(X).estimator_[-1]
    for name in ("mean_", "var_", "scale_"):
        np.testing.assert_allclose(
            getattr(scaler, name), getattr(StandardScaler().fit(X), name), rtol=1e-9
        )

    amounts = np.random.default_rng(0).poisson(2, size=(300, 3)).astype(float)
    for estimator in (MultinomialNB(), BernoulliNB(binarize=1.5)):
        released = private(estimator, ClipBox(0, 50)).fit(amounts, y).estimator_[-1]
        exact = clone(estimator).fit(amounts, y)
        np.testing.assert_allclose(released.feature_log_prob_, exact.feature_log_prob_)
        np.testing.assert_allclose(released.class_log_prior_, exact.class_log_prior_)


def test_without_noise_the_regressor_is_exact_with_a_public_second_moment(data):
    X, _ = data
    y = X @ [1.0, 2.0, 3.0] + 4
    moment = MomentRegressor().fit(X, y).second_moment_
    model = MomentRegressor(second_moment=moment, y_range=(-50, 50))
    released = private(model, ClipNorm(50.0), unlabeled=True).fit(X, y)
    np.testing.assert_allclose(released.predict(X), y, atol=1e-9)


@pytest.mark.parametrize(
    "regressor", [Ridge(alpha=3.0), LinearRegression(), LinearRegression(fit_intercept=False)]
)
def test_without_noise_a_regression_is_exact(data, regressor):
    X, _ = data
    y = X @ [1.0, 2.0, 3.0] + 4 + np.random.default_rng(0).normal(size=300)
    model = TransformedTargetRegressor(regressor, transformer=ClipBox(-30, 50))
    released = private(model, ClipNorm(50.0), unlabeled=True).fit(X, y).estimator_[-1]
    exact = clone(regressor).fit(X, y)
    np.testing.assert_allclose(released.regressor_.coef_, exact.coef_, rtol=1e-7)
    np.testing.assert_allclose(released.regressor_.intercept_, exact.intercept_, rtol=1e-7)
    np.testing.assert_allclose(released.predict(X), exact.predict(X))


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize(
    "options", [{"fit_intercept": False}, {"solver": "liblinear", "intercept_scaling": 2.0}]
)
def test_without_noise_a_logistic_regression_is_exact(data, C, options):
    X, y = data
    estimator = LogisticRegression(C=C, tol=1e-12, max_iter=10_000, **options)
    model = private(estimator, ClipNorm(50.0))
    exact = clone(estimator).fit(X, y)
    for container in (np.asarray, sparse.csr_array):
        released = model.fit(container(X), y).estimator_[-1]
        np.testing.assert_allclose(released.coef_, exact.coef_, rtol=1e-3)
        np.testing.assert_allclose(released.intercept_, exact.intercept_, rtol=1e-3, atol=1e-9)


@pytest.mark.parametrize("centered", [False, True])
def test_without_noise_covariance_and_components_are_exact(data, centered):
    X, _ = data
    covariance = EmpiricalCovariance(assume_centered=centered)
    released = private(covariance, ClipNorm(50.0), unlabeled=True).fit(X).estimator_[-1]
    exact = clone(covariance).fit(X)
    for name in ("location_", "covariance_", "precision_"):
        np.testing.assert_allclose(getattr(released, name), getattr(exact, name), atol=1e-9)
    for whiten in (False, True):
        model = private(PCA(2, whiten=whiten), ClipBox(-9, 9), unlabeled=True).fit(X)
        expected = PCA(2, whiten=whiten).fit_transform(X)
        np.testing.assert_allclose(abs(model.transform(X)), abs(expected), atol=1e-9)


def test_noise_leaves_a_covariance(data):
    """More noise than there is to learn, for each repair to be needed."""
    X, y = data
    noise = LaplaceMechanism(0.01)
    model = TransformedTargetRegressor(LinearRegression(), transformer=ClipBox(0, 1))
    for estimator in (model, EmpiricalCovariance(), PCA(2), GaussianNB(), StandardScaler()):
        others = {} if isinstance(estimator, GaussianNB) else {"unlabeled": True}
        fitted = private(estimator, ClipNorm(2.0), mechanism=noise, **others).fit(X, y)
        last = getattr(fitted.estimator_[-1], "regressor_", fitted.estimator_[-1])
        for name in ("coef_", "covariance_", "components_", "var_", "theta_"):
            assert np.isfinite(getattr(last, name, 0.0)).all()
        if hasattr(last, "covariance_"):
            assert np.linalg.eigvalsh(last.covariance_).min() >= 0
        assert np.all(getattr(last, "var_", 1.0) > 0)


@pytest.mark.parametrize("mechanism", [LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-5)])
def test_the_sensitivity_is_in_the_norm_of_the_mechanism(data, mechanism):
    plan = private(BernoulliNB(), mechanism=mechanism).plan(300, like=data)
    expected = 3 + 3**0.5 if mechanism.order == 1 else 3**0.5
    assert plan.sensitivity.value == pytest.approx(expected / 300)
    assert plan.sensitivity.value >= expected / 300
    assert set(plan.standard_errors) == {"class_sums"}
    assert plan.n_evaluations == 0


def test_a_plan_is_public_and_can_be_stored(data):
    plan = private(GaussianNB(), ClipNorm(3.0)).plan(300, like=(data[0] * 0, data[1] * 0))
    released = pickle.loads(pickle.dumps(plan)).execute(*data)
    assert released.value.predict(data[0]).shape == (300,)
    model = pickle.loads(pickle.dumps(private(GaussianNB(), ClipNorm(3.0)).fit(*data)))
    np.testing.assert_array_equal(model.predict(data[0]), released.value.predict(data[0]))


@pytest.mark.parametrize(
    "estimator", [MomentClassifier(), GaussianNB(), MultinomialNB(), BernoulliNB()]
)
def test_an_absent_class_is_no_error(data, estimator):
    """An error would tell that nobody in the data has the label."""
    X, y = data
    model = private(
        estimator, ClipBox(0, 1), mechanism=LaplaceMechanism(1.0), classes=["a", "b", "c"]
    )
    assert np.isin(model.fit(X, np.array(["a", "b"])[y]).predict(X), ["a", "b", "c"]).all()
    assert np.isin(model.fit(X, np.full(300, "c")).predict(X), ["a", "b", "c"]).all()


def test_awkward_records_do_not_fail(data):
    X, y = data
    X = X.copy()
    X[0], X[1], X[2, 0], X[3], X[4, 1] = 1e308, 5e-324, np.nan, np.inf, -np.inf
    for estimator in (MomentClassifier(), GaussianNB(), BernoulliNB()):
        assert private(estimator, ClipNorm()).fit(X, y).predict(data[0]).shape == (300,)
    response = np.resize([0.5, np.nan, np.inf, -1e308], 300)
    for estimator in (
        MomentRegressor(y_range=(0, 1)),
        TransformedTargetRegressor(Ridge(), transformer=ClipBox(0, 1), check_inverse=False),
    ):
        private(estimator, ClipNorm(), unlabeled=True).fit(X, response)


SHIFTED = X_PUBLIC - X_PUBLIC.min() + 1
REFUSING = [
    RandomTreesEmbedding(3, random_state=0),  # what single precision cannot hold
    PowerTransformer("box-cox"),  # what is not positive
    PowerTransformer(),
    Nystroem("chi2", n_components=9, random_state=0),  # what is negative
    make_pipeline(PolynomialFeatures(2), StandardScaler()),  # what overflows within
    PCA(2),
    KBinsDiscretizer(3, strategy="uniform", subsample=None),
]


@pytest.mark.slow
@pytest.mark.parametrize("step", REFUSING, ids=lambda step: type(step).__name__)
def test_a_record_that_a_public_step_refuses_is_no_error(data, step):
    """An error would tell that it is there; and it moves nothing farther than the bound."""
    X, y = data[0][:60] + 20, data[1][:60]
    model = private(MomentClassifier(), FrozenEstimator(clone(step).fit(SHIFTED)), ClipNorm())
    plan = model.fit(X, y).plan_
    before = model.estimator_[-1].moment_
    for numbers in (
        [np.nan, 1, 1],
        [np.inf, 1, 1],
        [-1, -1, -1],
        [0, 0, 0],
        [1e39] * 3,
        [1e308] * 3,
    ):
        neighbor = X.copy()
        neighbor[7] = numbers
        after = plan.execute(neighbor, y, random_state=0).value[-1].moment_
        assert np.abs(after - before).sum() <= model.sensitivity_.value
    assert np.isfinite(model.fit(np.full_like(X, np.nan), y).estimator_[-1].moment_).all()


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e308])
def test_no_record_is_refused_where_a_bound_clips_it(data, number):
    X, y = data
    bound = svm_bound(LinearSVC(loss="hinge", C=0.01), 300, 3, solver_error=1e-4)
    settings = {"mechanism": LaplaceMechanism(1.0), "sensitivity": bound, "classes": [0, 1]}
    model = PrivateEstimator(LinearSVC(loss="hinge", C=0.01), **settings)
    X[3, 0] = number
    assert "clipped to [0, 1]" in str(model.fit(X, y).guarantee_)


@pytest.mark.parametrize(
    ("container", "step"),
    [
        (np.asarray, PowerTransformer("box-cox")),
        (sparse.csr_array, QuantileTransformer(n_quantiles=20)),
    ],
    ids=["dense", "sparse"],
)
def test_records_that_a_public_step_refuses_do_not_stand_for_another(container, step):
    """They count as 0, so that no record is counted as often as there are such."""
    public = np.abs(X_PUBLIC) + 0.1
    X, y = np.tile(public.min(axis=0), (60, 1)), (np.arange(60) < 5).astype(int)
    X[10:] = -1
    neighbor = X.copy()
    neighbor[0] = public.max(axis=0)
    model = private(MomentClassifier(), FrozenEstimator(clone(step).fit(public)), ClipNorm())
    before, after = (model.fit(container(each), y).estimator_[-1].moment_ for each in (X, neighbor))
    assert 0 < np.abs(after - before).sum() <= model.sensitivity_.value


def test_a_sparse_record_that_a_public_step_refuses_is_no_error():
    X = sparse.csr_array(np.abs(blobs()[0]))
    quantiles = QuantileTransformer(n_quantiles=20).fit(np.abs(X_PUBLIC))
    model = private(MomentClassifier(), FrozenEstimator(quantiles), ClipNorm())
    before = model.fit(X, blobs()[1]).estimator_[-1].moment_
    X[7, 0] = -1.0
    after = model.fit(X, blobs()[1]).estimator_[-1].moment_
    assert np.abs(after - before).sum() <= model.sensitivity_.value


def test_nothing_of_the_private_fit_is_kept(data):
    X, y = data
    X = X / 7
    for estimator in (MomentClassifier(), GaussianNB(), BernoulliNB(), LogisticRegression(C=1e-3)):
        if isinstance(estimator, LogisticRegression):
            estimator.set_params(fit_intercept=False)
        model = private(estimator, ClipNorm(3.0), mechanism=LaplaceMechanism(1.0)).fit(X, y)
        exact = model.plan_.target(X, y, seed=0)
        stored = pickle.dumps(model)
        secrets = [*X.ravel(), *exact[np.abs(exact) < 0.1], *(300 * exact[np.abs(exact) > 1e-9])]
        assert not any(np.float64(secret).tobytes() in stored for secret in secrets if secret % 1)


def test_a_search_may_choose_the_radius(data):
    search = PrivateSearchCV(
        private(MomentClassifier(), ClipNorm(), mechanism=LaplaceMechanism(1.0)),
        {"estimator__clipnorm__radius": [0.5, 1.0]},
        mechanism=ExponentialMechanism(1.0),
        sensitivity=0.01,
        scoring="accuracy",
        cv=3,
    ).fit(*data)
    assert search.guarantee_.gamma == 0
    assert search.guarantee_.epsilon == 2


def test_a_search_refuses_no_record_either(data, scaler):
    X, y = data
    X[0], X[1, 2], X[2] = np.inf, np.nan, 1e308
    classifier = private(MomentClassifier(), scaler, ClipNorm(), mechanism=LaplaceMechanism(1.0))
    ridge = TransformedTargetRegressor(Ridge(), transformer=ClipBox(-9, 9), check_inverse=False)
    regressor = private(ridge, scaler, ClipNorm(), mechanism=LaplaceMechanism(1.0), unlabeled=True)
    for model, response in ((classifier, y), (regressor, np.where(np.arange(300) == 5, np.inf, y))):
        search = PrivateSearchCV(
            model,
            {"estimator__clipnorm__radius": [0.5, 1.0]},
            mechanism=ExponentialMechanism(1.0),
            sensitivity=0.1,
            cv=2,
        )
        assert search.fit(X, response).guarantee_.gamma == 0


def test_frames_and_sparse_records(data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abc"))
    model = private(MomentClassifier(), ClipBox(-2, 2), ClipNorm())
    expected = model.fit(X, y).predict(X)
    np.testing.assert_array_equal(model.fit(frame, y).predict(frame), expected)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    thin = sparse.csr_array(X)
    np.testing.assert_array_equal(model.fit(thin, y).predict(thin), expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "estimator", [MomentClassifier(constant=0), LogisticRegression(fit_intercept=False)]
)
def test_clips_may_return_frames(data, library, estimator):
    pytest.importorskip(library)  # an extra
    steps = make_pipeline(ClipNorm(), estimator).set_output(transform=library)
    settings = {"mechanism": EXACT, "sensitivity": "known", "classes": [0, 1]}
    released = PrivateEstimator(steps, **settings).fit(*data).estimator_[-1]
    expected = private(estimator, ClipNorm()).fit(*data).estimator_[-1]
    np.testing.assert_allclose(released.coef_, expected.coef_)


def test_scikit_learn_may_be_configured_to_frames(data):
    with config_context(transform_output="pandas"):
        for estimator in (BernoulliNB(), MomentClassifier(constant=0)):
            private(estimator, ClipNorm()).fit(*data)


@pytest.mark.slow
def test_the_largest_weight_of_a_record_has_a_minimizer():
    """Nearly separable records are the hard ones: the path to them takes most steps."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 60))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] + 0.01 * rng.normal(size=2000) > 0).astype(int)
    machine = LinearSVC(loss="hinge", C=9.9e7 / 2000, fit_intercept=False)
    assert private(machine, ClipNorm()).fit(X, y).score(X, y) > 0.9


def test_missing_numbers_of_frames_are_no_error(data):
    frame = pd.DataFrame(np.round(data[0]), columns=list("abc")).astype("Int64")
    frame.iloc[3, 1] = pd.NA
    private(BernoulliNB()).fit(frame, data[1])
    private(GaussianNB(), ClipNorm()).fit(frame, data[1])


def test_public_steps_may_stand_anywhere_before_the_clips(data):
    X, y = data
    steps = [
        Normalizer(),
        FrozenEstimator(make_pipeline(PCA(2), RandomTreesEmbedding(3)).fit(X_PUBLIC)),
        PolynomialFeatures(1, include_bias=False),
        "passthrough",
        make_pipeline(ClipBox(0, 1), ClipNorm(3**0.5)),
    ]
    model = private(MomentClassifier(), *steps).fit(X, y)
    assert model.guarantee_.gamma == 0
    assert model.predict(X).shape == (300,)


class Centered(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X - X.mean(axis=0)


class MyFrozen(FrozenEstimator):
    pass


def patched(scaler):
    scaler.transform = lambda X: X - X.mean(axis=0)
    return scaler


WRONG = [
    (
        [FrozenEstimator(patched(StandardScaler().fit(X_PUBLIC))), ClipNorm()],
        GaussianNB(),
        {},
        "the step StandardScaler that",
    ),
    (
        [FrozenEstimator(Nystroem(lambda x, z: x @ z, n_components=2).fit(X_PUBLIC)), ClipNorm()],
        GaussianNB(),
        {},
        "the step Nystroem that",
    ),
    ([], MomentClassifier(), {}, "without bounds on the records"),
    ([ClipNorm(), FrozenEstimator(StandardScaler().fit(X_PUBLIC))], GaussianNB(), {}, "right bef"),
    ([StandardScaler(), ClipNorm()], MomentClassifier(), {}, "StandardScaler in front"),
    (
        [FunctionTransformer(), ClipNorm()],
        GaussianNB(),
        {},
        "FunctionTransformer that.*beforeh",
    ),
    (
        [MyFrozen(StandardScaler().fit(X_PUBLIC)), ClipNorm()],
        GaussianNB(),
        {},
        "step MyFrozen that",
    ),
    (
        [FrozenEstimator(Centered().fit(X_PUBLIC)), ClipNorm()],
        GaussianNB(),
        {},
        "the step Centered that",
    ),
    (
        [FrozenEstimator(NMF(2).fit(abs(X_PUBLIC))), ClipNorm()],
        GaussianNB(),
        {},
        "the step NMF that",
    ),
    (
        [FrozenEstimator(make_pipeline(MinMaxScaler(), Centered()).fit(X_PUBLIC)), ClipNorm()],
        GaussianNB(),
        {},
        "the step Centered that",
    ),
    ([ClipNorm()], LogisticRegression(), {}, "No bound holds for a free intercept"),
    (
        [ClipNorm()],
        LogisticRegression(class_weight="balanced", solver="liblinear"),
        {},
        "class_weight=None",
    ),
    ([ClipNorm()], LogisticRegression(fit_intercept=False), {"classes": [0, 1, 2]}, "two classes"),
    (
        [ClipNorm(1e6)],
        LogisticRegression(C=1e3, solver="liblinear"),
        {},
        "so that the solver converges",
    ),
    ([ClipBox(-1e-80, 1e-80)], MomentClassifier(constant=0), {}, "over- or underflow"),
    ([ClipNorm(1e-100)], GaussianNB(), {}, "over- or underflow"),
    ([ClipNorm()], MomentRegressor(y_range=(0, 5e-324)), {"unlabeled": True}, "'y_range'"),
    (
        [ClipNorm()],
        TransformedTargetRegressor(Ridge(), transformer=ClipBox(0, 5e-324), check_inverse=False),
        {"unlabeled": True},
        "a width that is a number",
    ),
    ([ClipNorm()], LinearSVR(), {"unlabeled": True}, "no sum over the records"),
    ([ClipNorm()], RandomForestClassifier(), {}, "Forest.*one record may move its splits"),
    ([ClipNorm()], MomentClassifier(), {"classes": None}, "'classes' parameter"),
    ([ClipNorm()], MomentRegressor(), {"unlabeled": True}, "'y_range' parameter"),
    ([ClipNorm()], MultinomialNB(), {}, "not negative"),
    ([ClipNorm()], BernoulliNB(binarize=None), {}, r"ClipBox\(0, 1\)"),
    ([ClipNorm()], Ridge(), {"unlabeled": True}, "bounds on the response"),
    (
        [ClipNorm()],
        TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
        {"unlabeled": True},
        "'transformer' parameter",
    ),
    (
        [ClipNorm()],
        TransformedTargetRegressor(Ridge(positive=True), transformer=ClipBox(0, 1)),
        {"unlabeled": True},
        "positive=False",
    ),
    ([ClipNorm()], PCA(0.9), {"unlabeled": True}, "number of components"),
    ([ClipNorm()], GaussianNB(), {"release": ["theta_"]}, "'release' parameter"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # of NMF on few rows
@pytest.mark.parametrize(("steps", "estimator", "others", "message"), WRONG)
def test_what_has_no_bound_is_refused_before_the_budget_pays(
    data, steps, estimator, others, message, tmp_path
):
    accountant = PrivacyAccountant(tmp_path / "budget.db", epsilon=1.0)
    model = private(
        estimator, *steps, mechanism=LaplaceMechanism(1.0), accountant=accountant, **others
    )
    with pytest.raises(ValueError, match=message):
        model.fit(*data)
    assert accountant.total().n_releases == 0


def test_weights_and_several_responses_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="without weights"):
        private(GaussianNB(), ClipNorm()).fit(X, y, np.ones(300))
    model = private(MomentRegressor(y_range=(0, 1)), ClipNorm(), unlabeled=True)
    with pytest.raises(ValueError, match="one response for each record"):
        model.fit(X, np.column_stack([y, y]))


def test_an_undeclared_label_counts_as_the_first(data):
    """A refusal would tell that it is there."""
    X, y = data
    released = [
        private(GaussianNB(), ClipNorm()).set_params(random_state=0).fit(X, labels).estimator_
        for labels in (np.where(y == 1, 1, 0), np.where(y == 1, 1, 7))
    ]
    np.testing.assert_array_equal(released[0][-1].theta_, released[1][-1].theta_)


def test_another_word_is_no_sensitivity(data):
    model = private(GaussianNB(), ClipNorm()).set_params(sensitivity="paper")
    with pytest.raises(TypeError, match="'known'"):
        model.fit(*data)


def test_a_derived_bound_serves_no_other_target(data):
    X, y = data
    model = private(GaussianNB(), ClipNorm(), mechanism=LaplaceMechanism(1.0)).fit(X, y)
    with pytest.raises(ValueError, match="derived for another target"):
        clone(model).set_params(sensitivity=model.sensitivity_).fit(X, y)
    with pytest.raises(ValueError, match="derived for another target"):
        release(np.mean, X, mechanism=model.mechanism, sensitivity=model.sensitivity_)


def test_a_number_that_a_step_would_refuse_is_cut_off(data):
    X, y = data
    steps = [
        FrozenEstimator(StandardScaler().fit(X_PUBLIC / 1e200)),
        FrozenEstimator(PCA(2).fit(X_PUBLIC)),
        FrozenEstimator(RandomTreesEmbedding(3).fit(X_PUBLIC[:, :2])),
    ]
    for container in (np.asarray, sparse.csr_array):
        first = steps if container is np.asarray else steps[2:]
        given = np.where(np.arange(300)[:, None] == 5, 1e308, X)[:, : 3 if first is steps else 2]
        assert private(MomentClassifier(), *first, ClipNorm()).fit(container(given), y)


@pytest.mark.parametrize("radius", [1e-60, 1e-30, 1e30, 1e60])
def test_extreme_radii_have_the_bounds_of_radius_one(data, radius):
    for estimator in (MomentClassifier(constant=0), GaussianNB(), BernoulliNB()):
        bounds = [
            private(estimator, ClipNorm(each)).plan(300, like=data).sensitivity.value
            for each in (1.0, radius)
        ]
        scale = 1 if isinstance(estimator, BernoulliNB) else radius
        assert bounds[1] / scale == pytest.approx(bounds[0])


@pytest.mark.parametrize("as_frame", [False, True])
def test_bounds_that_are_a_part_of_the_records_are_pointed_out(data, as_frame):
    X, y = data
    X[:, :] = np.sort(X, axis=0)
    given = pd.DataFrame(X, copy=False) if as_frame else X
    model = private(GaussianNB(), ClipBox(X[0], X[-1]))
    with pytest.warns(PrivacyLeakWarning, match="part of the private records"):
        model.fit(given, y)
    private(GaussianNB(), ClipBox(X[0].copy(), X[-1].copy())).fit(given, y)


def test_a_bound_that_was_derived_is_for_its_target_alone(data):
    """It says "known on paper": of another target it would promise what nobody proved."""
    X, y = data
    model = private(GaussianNB(), ClipBox(-5, 5), mechanism=LaplaceMechanism(1.0)).fit(X, y)
    with pytest.raises(ValueError, match="derived for another target"):
        clone(model).set_params(estimator=GaussianNB(), sensitivity=model.sensitivity_).fit(X, y)
    with pytest.raises(ValueError, match="derived for another target"):
        release(
            lambda X: np.zeros(model.sensitivity_.shape),
            X,
            mechanism=LaplaceMechanism(1.0),
            sensitivity=model.sensitivity_,
        )
    wider = private(GaussianNB(), ClipBox(-9, 9), mechanism=LaplaceMechanism(1.0)).fit(X, y)
    with pytest.raises(ValueError, match="derived for another target"):
        replace(wider.plan_, sensitivity=model.sensitivity_)


def test_a_bound_that_was_checked_for_an_estimator_is_for_it_alone(data):
    X, y = np.clip(data[0], 0, 1), data[1]
    bound = svm_bound(LinearSVC(loss="hinge", C=0.01), len(X), 3, solver_error=1e-6)
    model = PrivateEstimator(
        LinearSVC(C=0.01, loss="hinge"),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=bound,
        classes=[0, 1],
    ).fit(X, y)
    with pytest.raises(ValueError, match="derived for another target"):
        clone(model).set_params(
            estimator=LogisticRegression(C=1e6), sensitivity=model.sensitivity_
        ).fit(X, y)
    again = clone(model).set_params(sensitivity=model.sensitivity_, mechanism__epsilon=2.0)
    assert again.fit(X, y).guarantee_.epsilon == 2.0


@pytest.mark.slow
def test_an_audit_finds_nothing_and_half_the_noise_is_caught(data):
    """On the worst pair: a long record on the diagonal changes its class."""
    X, y = data
    X[0], y[0] = 3.0, 0
    for mechanism in (LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-3)):
        model = private(MomentClassifier(), ClipNorm(), mechanism=mechanism).fit(X, y)
        settings = {"record": (X[0], 1), "pairs": 1, "stacked": True, "alpha": 1e-4, "rng": 0}
        kept = audit_estimator(model, X, y, **settings)
        assert kept.n_exceeding == 0
        assert kept.norms[0] > 0.99 * kept.sensitivity
        halved = replace(model.sensitivity_, value=model.sensitivity_.value / 2)
        model.sensitivity_ = halved
        model.plan_ = replace(model.plan_, sensitivity=halved)
        assert audit_estimator(model, X, y, **settings).n_exceeding == 1


@pytest.mark.slow
def test_a_prior_makes_a_known_release_better_and_promises_the_same():
    """Thirty correlated columns and a small epsilon: with a public code the noise hides less."""
    X, y = load_breast_cancer(return_X_y=True)
    public, X, y = X[::2], X[1::2], y[1::2]
    scaler = FrozenEstimator(StandardScaler().fit(public))
    options = {"mechanism": LaplaceMechanism(0.1), "random_state": 0}
    plain = private(MomentClassifier(), scaler, ClipNorm(4.0), **options)
    prior = clone(plain).set_params(prior=RandomTaskOracle(public, classes=[0, 1]))
    plans = [model.plan(len(X), like=(X, y)) for model in (plain, prior)]
    scores = [
        np.mean([plan.execute(X, y, random_state=i).value.score(X, y) for i in range(5)])
        for plan in plans
    ]
    assert scores[1] > scores[0] + 0.1
    for plan in plans:
        assert (plan.guarantee.gamma, plan.guarantee.oracle) == (0, None)
    assert plans[0].sensitivity.value <= 1.001 * plans[1].sensitivity.value
    assert "decoded by a prior" in str(plans[1])
    assert "RandomTaskOracle" not in str(plans[1].guarantee)


@pytest.mark.slow
def test_without_noise_a_prior_changes_nothing(data, scaler):
    X, y = data
    model = private(MomentClassifier(), scaler, ClipNorm(2.0))
    prior = clone(model).set_params(prior=PublicDataOracle(X_PUBLIC, blobs(seed=1)[1]))
    coefs = [each.fit(X, y).estimator_[-1].coef_ for each in (model, prior)]
    np.testing.assert_allclose(*coefs, rtol=1e-8)


def test_a_prior_is_for_what_is_known_on_paper_and_public(data, scaler):
    X, y = data
    oracle = PublicDataOracle(X_PUBLIC, blobs(seed=1)[1])
    sampled = PrivateEstimator(
        MomentClassifier(),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SensitivitySampler(oracle),
        prior=oracle,
    )
    with pytest.raises(ValueError, match=r"'prior' parameter.*known on paper"):
        sampled.fit(X, y)
    model = private(MomentClassifier(), scaler, ClipNorm(2.0), mechanism=LaplaceMechanism(1.0))
    with pytest.raises(ValueError, match="holds the private records"):
        clone(model).set_params(prior=PublicDataOracle(X, y)).fit(X, y)
    with pytest.raises(TypeError, match="oracle"):
        clone(model).set_params(prior=3).fit(X, y)


def test_a_box_beside_the_origin_leads_out_of_a_ball():
    """What the ball has shortened the box moves away again: every record is at (2, 2, 2)."""
    X, response = np.full((300, 3), 9.0), np.ones(300)
    other = np.where(np.arange(300) == 0, -1.0, response)
    model = private(MomentRegressor(y_range=(-1, 1)), ClipNorm(1.0), ClipBox(2, 3), unlabeled=True)
    before, after = (model.fit(X, y).estimator_[-1].moment_ for y in (response, other))
    assert 2 * 6 / 300 <= np.abs(before - after).sum() <= model.sensitivity_.value


def nullable(dtype):
    return lambda values: pd.DataFrame({"a": pd.Series(values, dtype=dtype)})


def of_polars(dtype):
    return lambda values: pl.DataFrame({"a": pl.Series(values, dtype=pl.Float64).cast(dtype)})


WITH_GAPS = {
    "array": lambda values: np.array(values, dtype=None if None not in values else float)[:, None],
    "pandas": lambda values: pd.DataFrame({"a": values}),
    "Int64": nullable("Int64"),
    "UInt8": nullable("UInt8"),
    "Float32": nullable("Float32"),
    "boolean": nullable("boolean"),
    "polars": of_polars(pl.Int64),
    "polars Int8": of_polars(pl.Int8),
    "polars Float32": of_polars(pl.Float32),
    "polars Boolean": of_polars(pl.Boolean),
}


@pytest.mark.parametrize("container", WITH_GAPS)
@pytest.mark.parametrize(
    "steps",
    [
        [ClipBox(0, 1)],
        [SimpleImputer(strategy="constant", fill_value=0.5), ClipBox(0, 1)],
        [SimpleImputer(), ClipBox(0, 1)],
        [StandardScaler(), ClipBox(-1, 1)],
    ],
    ids=["clip", "constant", "frozen", "scaler"],
)
def test_one_missing_number_does_not_make_others_of_the_rest(container, steps):
    """It makes floats of whole numbers, which a step may refuse: all of them, or none."""
    make, before, after = WITH_GAPS[container], [0, 1] * 10, [0, 1] * 9 + [0, None]
    public = make([0, 1, 1])
    if not hasattr(steps[0], "low") and getattr(steps[0], "strategy", "") != "constant":
        steps = [FrozenEstimator(clone(steps[0]).fit(public)), *steps[1:]]
    density = {"release": BernsteinTransformer(4, feature_range=(0, 1))}
    for estimator, options in ((StandardScaler(), {}), (KernelDensity(bandwidth=0.5), density)):
        model = private(estimator, *steps, unlabeled=True, **options)
        target = model.plan(20, like=make(before)).target
        exact, moved = (target(make(each), seed=0) for each in (before, after))
        assert exact.any()
        assert 0 < np.abs(moved - exact).sum() <= target.bound(1)
        model.fit(make(after))


@pytest.mark.parametrize(
    "estimator", [LinearRegression(), Ridge(1e-9), EmpiricalCovariance(), PCA(3, whiten=True)]
)
def test_columns_that_are_the_same_are_as_in_scikit_learn(estimator):
    """Which it is that a solver divides by zero depends on rounding."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        X = np.clip(rng.normal(size=(100, 1)), -1, 1)
        X, y = np.hstack([X, X, np.full_like(X, 1 / 3)]), np.clip(2 * X[:, 0] + 0.1, -1, 1)
        if not hasattr(estimator, "predict"):
            model = private(estimator, ClipBox(-1, 1), unlabeled=True).fit(X)
            attribute = "explained_variance_" if isinstance(estimator, PCA) else "covariance_"
            found, expected = (
                getattr(each, attribute) for each in (model.estimator_[-1], clone(estimator).fit(X))
            )
            np.testing.assert_allclose(found, expected, atol=1e-12)
            assert np.diag(np.atleast_2d(found)).min() >= 0
        else:
            wrapped = TransformedTargetRegressor(estimator, transformer=ClipBox(-1, 1))
            model = private(wrapped, ClipBox(-1, 1), unlabeled=True).fit(X, y)
            expected = clone(estimator).fit(X, y).predict(X)
            np.testing.assert_allclose(model.predict(X), expected, atol=1e-5)
