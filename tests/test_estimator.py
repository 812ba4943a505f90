"""PrivateEstimator: a scikit-learn citizen, private where it must be, and clear when it refuses."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    LaplaceMechanism,
    PrivacyLeakWarning,
    PrivateEstimator,
    PublicDataOracle,
    RandomTaskOracle,
    SensitivitySampler,
)
from skdp.risk import joint_risk

X, y = make_classification(n_samples=200, n_features=4, n_redundant=0, random_state=0)
X_public, y_public, X, y = X[:100], y[:100], X[100:], y[100:]
NAMES = ["age", "dose", "height", "weight"]


def private(estimator, oracle=None, *, epsilon=1.0, gamma=0.1, **options):
    oracle = PublicDataOracle(X_public, y_public) if oracle is None else oracle
    sensitivity = SensitivitySampler(oracle, gamma=gamma, n_pairs=9, random_state=0)
    options = {"mechanism": LaplaceMechanism(epsilon), "sensitivity": sensitivity} | options
    return PrivateEstimator(estimator, **options)


def test_every_coordinate_is_noised_and_two_fits_differ():
    exact = RidgeClassifier().fit(X, y)
    seeded, *secret = (
        private(RidgeClassifier(), random_state=seed).fit(X, y).estimator_
        for seed in (0, None, None)
    )
    for attribute in ("coef_", "intercept_"):
        assert np.all(getattr(seeded, attribute) != getattr(exact, attribute))
    # Each number has 2^14 steps in the scale of its noise: five agree with a chance below 1e-20.
    first, second = (np.append(fit.coef_, fit.intercept_) for fit in secret)
    assert np.any(first != second)


@pytest.mark.parametrize("mechanism", [LaplaceMechanism(1.0), LaplaceMechanism(1.0, code=None)])
def test_parameters_set_after_fit_leave_what_was_released(mechanism):
    model = private(RidgeClassifier(), mechanism=mechanism).fit(X, y)
    model.set_params(mechanism__epsilon=100.0)
    assert model.mechanism_.epsilon == model.guarantee_.epsilon == 1.0
    assert model.mechanism_.geometry == model.sensitivity_.geometry
    assert joint_risk(model).epsilon.max() == 1.0
    model.set_params(estimator__alpha=100.0)
    assert "RidgeClassifier()" in model.plan_.target.description  # an audit looks at this


def test_released_values_lie_on_the_lattice_of_their_noise():
    """All coordinates are multiples of one power of two, which the exact ones are not."""
    mechanism = LaplaceMechanism(1.0, code=None)
    model = private(RidgeClassifier(), mechanism=mechanism).fit(X, y)
    released = np.append(model.estimator_.coef_, model.estimator_.intercept_)
    exact = RidgeClassifier().fit(X, y).coef_
    step = 2.0 ** np.floor(np.log2(model.sensitivity_.value) - 20)
    assert np.all(released % step == 0)
    assert not np.any(exact % step == 0)


def test_private_model_is_close_when_epsilon_is_large():
    X, y = load_breast_cancer(return_X_y=True)
    oracle = RandomTaskOracle(X[::2], classes=[0, 1])
    scaler = FrozenEstimator(StandardScaler().fit(X[::2]))
    model = private(make_pipeline(scaler, LinearSVC(C=0.001)), oracle, epsilon=10.0, random_state=0)
    assert model.fit(X[1::2], y[1::2]).score(X[1::2], y[1::2]) > 0.85


class Density(BaseEstimator):
    """An estimator with score_samples and a score that takes no y."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def score_samples(self, X):
        return -((X - self.mean_) ** 2).sum(axis=1)

    def score(self, X):
        return float(self.score_samples(X).mean())


@pytest.mark.parametrize(
    ("estimator", "release", "methods", "absent"),
    [
        (LogisticRegression(), "auto", "predict predict_proba decision_function", "transform"),
        (LinearSVC(), "auto", "predict decision_function", "predict_proba"),
        (StandardScaler(), "auto", "transform inverse_transform", "predict classes_"),
        (Density(), ["mean_"], "score_samples", "predict"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_methods_are_those_of_the_estimator(estimator, release, methods, absent):
    oracle = None if is_classifier(estimator) else PublicDataOracle(X_public)
    data = (X, y) if is_classifier(estimator) else (X,)
    model = private(estimator, oracle, release=release)
    assert not any(hasattr(model, name) for name in (*absent.split(), "n_features_in_"))
    assert is_classifier(model) == is_classifier(estimator)
    with pytest.raises(NotFittedError):
        getattr(model, methods.split()[0])(X)
    again = pickle.loads(pickle.dumps(model.fit(*data)))
    for name in methods.split():
        expected = getattr(model.estimator_, name)(X)
        for each in (model, again):
            np.testing.assert_array_equal(getattr(each, name)(X), expected)
    assert (again.guarantee_, again.sensitivity_) == (model.guarantee_, model.sensitivity_)
    if is_classifier(estimator):
        assert model.score(X, y) == np.mean(model.predict(X) == y)
        assert model.classes_.tolist() == [0, 1]
    elif release == "auto":
        assert list(model.get_feature_names_out(NAMES)) == NAMES
        assert "x0" in model.set_output(transform="pandas").transform(X).columns
    else:
        assert model.score(X) == model.score_samples(X).mean()


def test_clone_and_nested_parameters():
    model = private(LinearSVC(C=2.0)).fit(X, y)
    copied = clone(model).set_params(estimator__C=3.0, mechanism__epsilon=7.0)
    copied.set_params(sensitivity__gamma=0.2)
    parameters = copied.get_params()
    assert (parameters["estimator__C"], parameters["mechanism__epsilon"]) == (3.0, 7.0)
    assert parameters["sensitivity__gamma"] == 0.2
    assert model.get_params()["estimator__C"] == 2.0
    assert not hasattr(copied, "estimator_")


def test_reused_estimate_needs_no_new_pairs(tmp_path):
    log = tmp_path / "log"

    class Counting(RidgeClassifier):
        __skdp_key__ = "counting-v1"

        def fit(self, X, y):
            with log.open("a") as file:
                file.write("x")
            return super().fit(X, y)

    model = private(Counting(), release=["coef_", "intercept_"], classes=[0, 1]).fit(X, y)
    first = log.stat().st_size
    plan = SensitivitySampler(model.sensitivity.oracle, gamma=0.1, n_pairs=9).plan(
        len(X), model.mechanism
    )
    # a public and a private fit, and those to public datasets on which releases are simulated
    assert first == plan.n_evaluations + 2 + 5
    model.set_params(sensitivity=model.sensitivity_, mechanism__epsilon=2.0).fit(X, y)
    assert plan.n_evaluations == 2 * (9 + 9)  # pilot pairs and pairs
    assert log.stat().st_size - first == 2  # the public fit and the private fit
    assert (model.guarantee_.epsilon, model.guarantee_.gamma) == (2.0, 0.1)


def frozen(scale):
    return make_pipeline(FrozenEstimator(StandardScaler().fit(X_public * scale)), Ridge())


@pytest.mark.parametrize(
    ("estimator", "classes", "change"),
    [
        (RidgeClassifier(), [0, 1], {"estimator__alpha": 100.0}),
        (RidgeClassifier(), [0, 1], {"classes": [5, 6]}),  # a class may have a weight of its own
        (frozen(1.0), None, {"estimator": frozen(1000.0)}),  # of which the text is the same
    ],
)
def test_an_estimate_serves_the_configuration_it_was_made_for(estimator, classes, change):
    model = private(estimator, classes=classes).fit(X, y)
    model.set_params(sensitivity=model.sensitivity_).fit(X, y)
    with pytest.raises(ValueError, match="number of records"):
        model.fit(X[:90], y[:90])
    with pytest.raises(ValueError, match="another target"):
        clone(model).set_params(**change).fit(X, y + change.get("classes", [0])[0])


def frozen(scale):
    return make_pipeline(FrozenEstimator(StandardScaler().fit(X_public * scale)), Ridge())


@pytest.mark.slow
@pytest.mark.parametrize(("frame", "named_oracle"), [(pd.DataFrame, False), (pl.DataFrame, True)])
def test_frames_keep_their_names(frame, named_oracle):
    def as_frame(X):
        return frame(dict(zip(NAMES, X.T, strict=True)))

    if not hasattr(StandardScaler().fit(as_frame(X)), "feature_names_in_"):
        pytest.skip("scikit-learn before 1.9 reads no names from polars 2")
    oracle = PublicDataOracle(as_frame(X_public) if named_oracle else X_public, y_public)
    model = private(make_pipeline(StandardScaler(), LinearSVC()), oracle).fit(as_frame(X), y)
    assert list(model.feature_names_in_) == NAMES
    assert model.predict(as_frame(X)).shape == (100,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(
            as_frame(X).rename(columns={"age": "years"})
            if frame is pd.DataFrame
            else as_frame(X).rename({"age": "years"})
        )
    known = private(LinearSVC(), sensitivity=0.1, classes=[0, 1]).fit(as_frame(X), y)
    assert list(known.feature_names_in_) == NAMES


def test_names_of_the_oracle_are_left_out_where_the_records_have_none():
    oracle = PublicDataOracle(pd.DataFrame(X_public, columns=NAMES), y_public)
    model = private(LinearSVC(), oracle).fit(X, y)
    assert not hasattr(model.estimator_, "feature_names_in_")


def test_labels_are_read_from_y_under_a_warning_only_without_an_oracle():
    with pytest.warns(PrivacyLeakWarning, match="labels"):
        private(LinearSVC(), sensitivity=0.1).fit(X, y)


def test_oracle_that_fails_halfway_leaves_the_object_unfitted():
    calls = []

    def tired(n_samples, rng):
        calls.append(n_samples)
        if len(calls) > 6:
            raise RuntimeError("no more records")
        return PublicDataOracle(X_public, y_public)(n_samples, rng)

    model = private(LinearSVC(), tired)
    with pytest.raises(RuntimeError, match="no more records"):
        model.fit(X, y)
    assert not hasattr(model, "estimator_")


def test_failed_refit_keeps_the_earlier_release():
    model = private(LinearSVC()).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.where(np.arange(4) == 1, np.nan, X), y)
    np.testing.assert_array_equal(model.decision_function(X), before)


def test_failure_on_public_records_says_so():
    oracle = PublicDataOracle(X_public, np.column_stack([y_public, y_public]))
    with pytest.raises(ValueError, match="y should be a 1d array") as caught:
        private(LinearSVC(), oracle).fit(X, np.column_stack([y, y]))
    assert caught.value.__notes__ == ["Raised when LinearSVC was fitted to public records."]


def test_frame_with_nan_is_refused():
    frame = pd.DataFrame(X.copy(), columns=NAMES)
    frame.loc[3, "dose"] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*begins with an imputer"):
        private(LinearSVC()).fit(frame, y)
    frame.loc[3, "dose"] = np.inf
    with pytest.raises(ValueError, match=r"infinity.*[)]\.$"):
        private(LinearSVC()).fit(frame, y)


def test_warnings_of_the_public_fit_are_shown_and_of_the_private_one_not():
    hard = SGDClassifier(max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning) as caught:
        private(hard, release=["coef_", "intercept_"]).fit(X, y)
    assert sum(each.category is ConvergenceWarning for each in caught) == 1  # the public fit's


@pytest.mark.slow
def test_public_fit_is_drawn_again_until_it_holds_every_class():
    rare = np.zeros(100, dtype=int)
    rare[:3] = 1
    oracle = PublicDataOracle(X_public, rare)
    model = private(RidgeClassifier(), oracle, gamma=0.3).set_params(sensitivity__n_pairs=99)
    labels = np.where(np.arange(100) < 30, 1, 0)
    model.fit(X, labels)
    assert model.sensitivity_.failures == {"ValueError: a class is missing": 0} or np.isinf(
        model.sensitivity_.norms
    ).sum() == sum(model.sensitivity_.failures.values())
