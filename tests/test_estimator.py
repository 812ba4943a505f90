"""PrivateEstimator: a scikit-learn citizen, private where it must be, and clear when it refuses."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor
from sklearn.datasets import load_breast_cancer, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    KnownSensitivity,
    LaplaceMechanism,
    MakeOracle,
    PrivateEstimator,
    PublicDataOracle,
    RandomTaskOracle,
    SensitivityEstimate,
    SensitivitySampler,
    UniformOracle,
)
from skdp.core.identity import key_of
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


def test_infinite_epsilon_gives_the_exact_estimator():
    model = private(LogisticRegression(), epsilon=np.inf).fit(X, y)
    exact = LogisticRegression().fit(X, y)
    np.testing.assert_array_equal(model.estimator_.coef_, exact.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), exact.predict_proba(X))


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


def test_guarantee_and_estimate_are_reported():
    model = private(LinearSVC()).fit(X, y)
    assert isinstance(model.sensitivity_, SensitivityEstimate)
    assert model.guarantee_.n_samples == 100
    assert model.guarantee_.gamma == 0.1
    assert "PublicDataOracle(n_records=100" in str(model.guarantee_)
    assert not model.guarantee_.seeded
    assert private(LinearSVC(), random_state=0).fit(X, y).guarantee_.seeded


def test_a_weak_promise_is_pointed_out():
    with pytest.warns(UserWarning, match="gamma=0.6 is above 0.5"):
        private(LinearSVC(), gamma=0.6).fit(X, y)


@pytest.mark.parametrize("sensitivity", [0.1, KnownSensitivity(0.1, "l1", 100)])
def test_known_sensitivity_is_plain_differential_privacy(sensitivity):
    model = private(LinearSVC(), sensitivity=sensitivity, classes=[0, 1]).fit(X, y)
    assert model.guarantee_.gamma == 0
    assert model.sensitivity_ == KnownSensitivity(0.1, "l1", 100)


def test_methods_are_those_of_the_estimator():
    svm, scaler = private(LinearSVC()), private(StandardScaler())
    assert hasattr(svm, "decision_function")
    assert not hasattr(svm, "predict_proba")
    assert not hasattr(svm, "transform")
    assert hasattr(scaler, "inverse_transform")
    assert not hasattr(scaler, "predict")
    assert is_classifier(svm)
    assert is_regressor(private(Ridge()))


def test_classifier_methods_delegate():
    model = private(LogisticRegression()).fit(X, y)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        np.testing.assert_array_equal(
            getattr(model, method)(X), getattr(model.estimator_, method)(X)
        )
    assert model.score(X, y) == np.mean(model.predict(X) == y)
    np.testing.assert_array_equal(model.classes_, [0, 1])
    assert model.n_features_in_ == 4


def test_transformer_methods_delegate():
    model = private(StandardScaler(), PublicDataOracle(X_public))
    transformed = model.fit_transform(X)
    np.testing.assert_array_equal(transformed, model.transform(X))
    np.testing.assert_allclose(model.inverse_transform(transformed), X)
    assert list(model.get_feature_names_out(NAMES)) == NAMES
    assert not hasattr(model, "classes_")
    assert list(model.set_output(transform="pandas").transform(X).columns) == [
        "x0",
        "x1",
        "x2",
        "x3",
    ]


class Density(BaseEstimator):
    """An estimator with score_samples and a score that takes no y."""

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def score_samples(self, X):
        return -((X - self.mean_) ** 2).sum(axis=1)

    def score(self, X):
        return float(self.score_samples(X).mean())


def test_density_methods_delegate():
    oracle = PublicDataOracle(X_public)
    model = private(Density(), oracle, release=["mean_"]).fit(X)
    assert model.score_samples(X).shape == (100,)
    assert model.score(X) == model.score_samples(X).mean()


def test_unfitted_says_so():
    model = private(LinearSVC())
    with pytest.raises(NotFittedError):
        model.predict(X)
    for attribute in ("classes_", "n_features_in_", "feature_names_in_"):
        assert not hasattr(model, attribute)


def test_clone_and_nested_parameters():
    model = private(LinearSVC(C=2.0)).fit(X, y)
    copied = clone(model).set_params(estimator__C=3.0, mechanism__epsilon=7.0)
    copied.set_params(sensitivity__gamma=0.2)
    parameters = copied.get_params()
    assert (parameters["estimator__C"], parameters["mechanism__epsilon"]) == (3.0, 7.0)
    assert parameters["sensitivity__gamma"] == 0.2
    assert model.get_params()["estimator__C"] == 2.0
    assert not hasattr(copied, "estimator_")


def test_pickled_model_predicts_alike():
    model = private(make_pipeline(StandardScaler(), LinearSVC())).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.guarantee_ == model.guarantee_
    assert again.sensitivity_ == model.sensitivity_


def test_html_representation_shows_parameters():
    page = private(LinearSVC())._repr_html_()
    assert "PrivateEstimator" in page
    assert "LinearSVC" in page


@pytest.mark.slow
def test_inside_pipeline_grid_search_and_cross_validation():
    scaler = FunctionTransformer(np.tanh)
    model = make_pipeline(scaler, private(RidgeClassifier(), epsilon=100.0))
    scores = cross_val_score(model, X, y, cv=3)
    assert scores.shape == (3,)
    assert np.all(np.isfinite(scores))
    search = GridSearchCV(
        private(LogisticRegression(), random_state=0),
        {"mechanism__epsilon": [0.01, 1000.0]},
        cv=3,
    ).fit(X, y)
    assert search.best_params_ == {"mechanism__epsilon": 1000.0}
    assert search.best_estimator_.guarantee_.epsilon == 1000.0


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
    assert first == plan.n_fits
    model.set_params(sensitivity=model.sensitivity_, mechanism__epsilon=2.0).fit(X, y)
    assert first == 2 * (9 + 9) + 2  # pilot pairs, pairs, the public fit and the private fit
    assert log.stat().st_size - first == 2  # the public fit and the private fit
    assert (model.guarantee_.epsilon, model.guarantee_.gamma) == (2.0, 0.1)


@pytest.mark.parametrize("code", ["auto", None])
@pytest.mark.parametrize("release", ["auto", ["coef_", "intercept_"]])
def test_plan_counts_every_fit(code, release, monkeypatch):
    calls = []
    fit = LogisticRegression.fit
    monkeypatch.setattr(
        LogisticRegression, "fit", lambda self, *data: calls.append(1) or fit(self, *data)
    )
    model = private(LogisticRegression(), release=release, classes=[0, 1], gamma=0.5)
    model.set_params(sensitivity__n_pairs=5, mechanism__code=code)
    plan = model.sensitivity.plan(len(X), model.mechanism)
    model.fit(X, y)
    assert len(calls) == plan.n_fits


def test_estimate_of_another_configuration_is_refused():
    model = private(RidgeClassifier(), classes=[0, 1]).fit(X, y)
    model.set_params(sensitivity=model.sensitivity_)
    changes = {"estimator__alpha": 100.0}, {"classes": [0, 1, 2]}, {"classes": [5, 6]}
    for change in changes:  # a class may have a weight of its own
        with pytest.raises(ValueError, match="made for another target"):
            clone(model).set_params(**change).fit(X, y + change.get("classes", [0])[0])


def frozen(scale):
    return make_pipeline(FrozenEstimator(StandardScaler().fit(X_public * scale)), Ridge())


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (frozen(1.0), frozen(1000.0)),
        (Ridge(alpha=np.ones(2000)), Ridge(alpha=np.repeat([1.0, 2.0, 1.0], [900, 200, 900]))),
    ],
    ids=["frozen", "long"],
)
def test_what_is_not_shown_of_an_estimator_is_in_the_key(first, second):
    """An estimate serves another fit only if the keys agree."""
    assert repr(first) == repr(second)
    keys = [key_of(estimator) for estimator in (first, clone(first), second)]
    assert keys[0] == keys[1] != keys[2]


def test_estimate_is_refused_when_a_frozen_step_is_another():
    model = private(frozen(1.0)).fit(X, y)
    model.set_params(sensitivity=model.sensitivity_).fit(X, y)
    model.set_params(estimator=frozen(1000.0))
    with pytest.raises(ValueError, match="made for another target"):
        model.fit(X, y)


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


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_records(container):
    oracle = PublicDataOracle(container(X_public), y_public)
    model = private(RidgeClassifier(), oracle).fit(container(X), y)
    assert model.predict(container(X)).shape == (100,)
    known = private(RidgeClassifier(), sensitivity=0.1, classes=[0, 1])
    assert known.fit(container(X), y).predict(X).shape == (100,)


def test_string_labels_and_more_than_two_classes():
    labels = np.array(["low", "middle", "high"])
    codes = np.arange(100) % 3
    oracle = PublicDataOracle(X_public, labels[codes])
    model = private(LogisticRegression(), oracle).fit(X, labels[codes])
    assert list(model.classes_) == ["high", "low", "middle"]
    assert set(model.predict(X)) <= set(labels)


def test_regressor_with_several_outputs():
    X, Y = make_regression(n_samples=100, n_features=3, n_targets=2, random_state=0)
    oracle = PublicDataOracle(X[:50], Y[:50])
    model = private(Ridge(), oracle, epsilon=1e6, random_state=0).fit(X[50:], Y[50:])
    assert model.predict(X).shape == (100, 2)
    assert model.score(X, Y) > 0.9
    known = private(Ridge(), sensitivity=0.1).fit(X, Y)
    assert known.predict(X).shape == (100, 2)


def test_callable_oracle_without_labels_of_its_own():
    oracle = MakeOracle(make_classification, n_features=4, n_redundant=0)
    model = private(RidgeClassifier(), oracle, classes=[0, 1]).fit(X, y)
    np.testing.assert_array_equal(model.classes_, [0, 1])


def test_labels_are_never_read_from_y():
    with pytest.raises(ValueError, match=r"'classes' parameter .* must declare"):
        private(LinearSVC(), sensitivity=0.1).fit(X, y)


def test_labels_unknown_to_the_oracle_are_refused():
    model = private(LinearSVC())
    with pytest.raises(ValueError, match=r"a label that is not public.*\[0, 1\]"):
        model.fit(X, np.where(np.arange(100) == 3, 2, y))
    assert not hasattr(model, "estimator_")


def test_declared_classes_that_the_oracle_never_yields_are_refused():
    with pytest.raises(ValueError, match=r"must yield every class of \[0, 1, 2\]"):
        private(LinearSVC(), classes=[0, 1, 2]).fit(X, y)


def test_oracle_that_yields_undeclared_labels_is_refused():
    with pytest.raises(ValueError, match="label"):
        private(LinearSVC(), PublicDataOracle(X_public, y_public * 2), classes=[0, 1]).fit(X, y)


def test_oracle_without_labels_is_refused_for_a_classifier():
    with pytest.raises(ValueError, match="The oracle PublicDataOracle"):
        private(LinearSVC(), PublicDataOracle(X_public), classes=[0, 1]).fit(X, y)


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


def test_oracle_of_lists():
    def lists(n_samples, rng):
        rows, labels = PublicDataOracle(X_public, y_public)(n_samples, rng)
        return rows.tolist(), labels.tolist()

    model = private(LogisticRegression(), lists, epsilon=100.0, random_state=0)
    assert model.fit(X, y).score(X, y) > 0.7


def test_frame_with_nan_is_refused():
    frame = pd.DataFrame(X.copy(), columns=NAMES)
    frame.loc[3, "dose"] = np.nan
    with pytest.raises(ValueError, match=r"NaN.*begins with an imputer"):
        private(LinearSVC()).fit(frame, y)
    frame.loc[3, "dose"] = np.inf
    with pytest.raises(ValueError, match=r"infinity.*[)]\.$"):
        private(LinearSVC()).fit(frame, y)


def test_estimate_of_another_size_is_refused():
    estimate = private(LinearSVC()).fit(X, y).sensitivity_
    with pytest.raises(ValueError, match=r"another number of records: 100\. This release has 90"):
        private(LinearSVC(), sensitivity=estimate, classes=[0, 1]).fit(X[:90], y[:90])


@pytest.mark.loop(
    ("options", "message"),
    [
        ({"estimator": "svm"}, "'estimator' parameter of PrivateEstimator"),
        ({"estimator": LinearSVC}, "'estimator' parameter of PrivateEstimator"),
        ({"mechanism": 1.0}, "'mechanism' parameter of PrivateEstimator"),
        ({"sensitivity": None}, "'sensitivity' parameter"),
        ({"sensitivity": UniformOracle([(0, 1)])}, r"Pass an oracle as SensitivitySampler\("),
        ({"sensitivity": -1.0}, "KnownSensitivity"),
        ({"mechanism": LaplaceMechanism(0.0)}, "'epsilon' parameter of LaplaceMechanism"),
        ({"random_state": "seed"}, "'random_state'"),
        ({"random_state": np.random.default_rng(0)}, "'random_state'.*Leave it None"),
        ({"random_state": np.random.RandomState(0)}, "'random_state'.*Leave it None"),
        ({"random_state": True}, "'random_state'"),
        ({"estimator": Ridge(), "classes": [0, 1]}, "'classes' parameter .* for classifiers"),
        ({"classes": 2}, "'classes' parameter .* must list the labels"),
        ({"classes": "ab"}, "'classes' parameter .* must list the labels"),
        ({"release": ["coefficients_"]}, "'release' parameter"),
        ({"release": "coef_"}, r"A single name is a list too: \['coef_'\]"),
        ({"release": np.mean}, "To release the value of a function, use skdp.release"),
    ],
)
def test_bad_parameters_are_refused_before_the_private_fit(options, message):
    model = private(LinearSVC(), classes=[0, 1]).set_params(**options)
    with pytest.raises((TypeError, ValueError), match=message):
        model.fit(X, y)
    assert not hasattr(model, "estimator_")


def test_missing_y_is_refused():
    with pytest.raises(ValueError, match="requires y to be passed, but the target y is None"):
        private(LinearSVC()).fit(X)


def test_warnings_of_the_public_fit_are_shown_and_of_the_private_one_not():
    hard = SGDClassifier(max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning) as caught:
        private(hard, release=["coef_", "intercept_"]).fit(X, y)
    assert len(caught) == 1  # the public fit's


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


def test_first_feature_drawn_from_a_box():
    """The commonest case in one piece: bounds are known, labels are read nowhere."""
    oracle = UniformOracle([(-3, 3)] * 4, classes=[0, 1])
    model = private(RidgeClassifier(10.0), oracle).fit(X, y)
    assert model.guarantee_.oracle.startswith("UniformOracle")
