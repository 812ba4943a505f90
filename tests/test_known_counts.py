"""Histograms with a bound on paper: shares of classes, and counts of categories."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline

from skdp import ClipBox, LaplaceMechanism, PrivateEstimator

CATEGORIES = ClipBox(0, [3, 3, 5])


def private(*steps, epsilon=np.inf, **others):
    return PrivateEstimator(
        make_pipeline(*steps),
        mechanism=LaplaceMechanism(epsilon),
        **{"sensitivity": "known", "classes": ["no", "yes"]} | others,
    )


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(300, 3))
    return X, np.where(X[:, 0] + rng.integers(0, 2, 300) > 2, "yes", "no")


def test_without_noise_they_are_exact(data):
    X, y = data
    shares = private(DummyClassifier()).fit(X, y).estimator_[-1].class_prior_
    np.testing.assert_allclose(shares, [np.mean(y == "no"), np.mean(y == "yes")])
    exact = CategoricalNB(min_categories=[4, 7, 6], fit_prior=False).fit(X, y)
    model = private(CATEGORIES, CategoricalNB(min_categories=[2, 7, 1], fit_prior=False))
    released = model.fit(X, y).estimator_[-1]
    np.testing.assert_allclose(released.predict_proba(X), exact.predict_proba(X))
    assert released.n_categories_.tolist() == [4, 7, 6]


def test_the_guarantee_is_plain_and_any_record_is_taken(data):
    X, y = data[0].astype(float), data[1].copy()
    X[:4] = np.array([np.nan, np.inf, -np.inf, 1e300])[:, None]
    y[:] = "no"  # the other class is absent
    for steps in ((DummyClassifier(strategy="stratified"),), (CATEGORIES, CategoricalNB())):
        model = private(*steps, epsilon=1.0).fit(X, y)
        assert model.guarantee_.gamma == 0
        assert set(model.predict(data[0])) <= {"no", "yes"}


def test_what_has_no_bound_is_refused(data):
    for steps, message in (
        ((DummyClassifier(strategy="uniform"),), "learns nothing"),
        ((CategoricalNB(),), r"Put ClipBox\(0, highest\)"),
        ((ClipBox(-1, 3), CategoricalNB()), r"Put ClipBox\(0, highest\)"),
        ((ClipBox(0, 1e7), CategoricalNB()), r"Put ClipBox\(0, highest\)"),
    ):
        with pytest.raises(ValueError, match=message):
            private(*steps).plan(300, like=data)
