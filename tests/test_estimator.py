"""PrivateEstimator: a scikit-learn citizen, private where it must be, and clear when it refuses."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import LaplaceMechanism, PrivacyLeakWarning
from skdp.risk import privacy_loss_distribution
from tests import helpers

X, y = make_classification(n_samples=200, n_features=4, n_redundant=0, random_state=0)
X_public, y_public, X, y = X[:100], y[:100], X[100:], y[100:]
NAMES = ["age", "dose", "height", "weight"]


def private(estimator, *public, **options):
    return helpers.private(estimator, *(public or (X_public, y_public)), **options)


def test_every_coordinate_is_noised_and_lies_on_the_lattice_of_its_noise():
    """All coordinates are multiples of one power of two, which the exact ones are not."""
    exact = RidgeClassifier().fit(X, y).coef_
    mechanism = LaplaceMechanism(1.0, code=None)
    fits = [
        private(RidgeClassifier(), mechanism=mechanism, random_state=seed).fit(X, y)
        for seed in (0, None, None)
    ]
    first, *_ = released = [np.append(fit.coef_, fit.intercept_) for fit in fits]
    step = 2.0 ** np.floor(np.log2(fits[0].sensitivity_.value) - 20)
    assert np.all(first % step == 0)
    assert not np.any(exact % step == 0)
    # Each number has 2^14 steps in the scale of its noise: five agree with a chance below 1e-20.
    assert np.any(released[1] != released[2])


@pytest.mark.parametrize("mechanism", [LaplaceMechanism(1.0), LaplaceMechanism(1.0, code=None)])
def test_parameters_set_after_fit_leave_what_was_released(mechanism):
    model = private(RidgeClassifier(), mechanism=mechanism).fit(X, y)
    model.set_params(mechanism__epsilon=100.0)
    assert model.mechanism_.epsilon == model.guarantee_.epsilon == 1.0
    assert model.mechanism_.geometry == model.sensitivity_.geometry
    assert privacy_loss_distribution(model.mechanism_).bound == 1.0
    model.set_params(estimator__alpha=100.0)
    assert "RidgeClassifier()" in model.plan_.target.description  # an audit looks at this


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
    data = (X, y) if is_classifier(estimator) else (X,)
    model = private(estimator, *(X_public, y_public)[: len(data)], release=release)
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


@pytest.mark.worth
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
    # pilot pairs; pairs, one of each stratum by four fits; a public and a private fit; and three on
    # which releases are simulated
    assert first == 2 * 4 + 4 * 4 + 2 + 3
    model.set_params(sensitivity=model.sensitivity_, mechanism__epsilon=2.0).fit(X, y)
    assert log.stat().st_size - first == 2 + 3  # a public and a private fit, and three simulated
    assert (model.guarantee_.epsilon, model.guarantee_.gamma) == (2.0, 0.2)


def frozen(scale):
    return make_pipeline(FrozenEstimator(StandardScaler().fit(X_public * scale)), Ridge())


@pytest.mark.slow
@pytest.mark.parametrize(("frame", "named_oracle"), [(pd.DataFrame, False), (pl.DataFrame, True)])
def test_frames_keep_their_names(frame, named_oracle):
    def as_frame(X):
        return frame(dict(zip(NAMES, X.T, strict=True)))

    if not hasattr(StandardScaler().fit(as_frame(X)), "feature_names_in_"):
        pytest.skip("scikit-learn before 1.9 reads no names from polars 2")
    public = as_frame(X_public) if named_oracle else X_public
    model = private(make_pipeline(StandardScaler(), LinearSVC()), public, y_public)
    assert list(model.fit(as_frame(X), y).feature_names_in_) == NAMES
    assert model.predict(as_frame(X)).shape == (100,)
    renamed = {"age": "years"}
    with pytest.raises(ValueError, match="feature names"):
        model.predict(
            as_frame(X).rename(**{"columns" if frame is pd.DataFrame else "mapping": renamed})
        )
    known = private(LinearSVC(), sensitivity=0.1, classes=[0, 1]).fit(as_frame(X), y)
    assert list(known.feature_names_in_) == NAMES


def test_names_of_the_oracle_are_left_out_where_the_records_have_none():
    model = private(LinearSVC(), pd.DataFrame(X_public, columns=NAMES), y_public).fit(X, y)
    assert not hasattr(model.estimator_, "feature_names_in_")


def test_labels_are_read_from_y_under_a_warning_only_without_an_oracle():
    with pytest.warns(PrivacyLeakWarning, match="labels"):
        private(LinearSVC(), sensitivity=0.1).fit(X, y)


def test_failure_on_public_records_says_so():
    model = private(LinearSVC(), X_public, np.column_stack([y_public, y_public]))
    with pytest.raises(ValueError, match="y should be a 1d array") as caught:
        model.fit(X, np.column_stack([y, y]))
    assert caught.value.__notes__ == ["Raised when LinearSVC was fitted to public records."]


def test_warnings_of_the_public_fit_are_shown_and_of_the_private_one_not():
    hard = SGDClassifier(max_iter=1, tol=1e-9)
    with pytest.warns(ConvergenceWarning) as caught:
        private(hard, release=["coef_", "intercept_"]).fit(X, y)
    assert sum(each.category is ConvergenceWarning for each in caught) == 1  # the public fit's
