"""ReleasePlan: made without private data, kept, sent elsewhere, and executed."""

import pickle
import threading
from dataclasses import replace
from functools import partial
from time import perf_counter

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    ExponentialMechanism,
    GaussianMechanism,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    RandomTaskOracle,
    Target,
    plan_release,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import svm_bound
from skdp.codes import Geometry
from skdp.core.dataset import Dataset
from skdp.core.schema import DatasetForm
from skdp.core.target import as_target
from tests.helpers import diagonal_code, private, sampler

rng = np.random.default_rng(0)
X, X_public = rng.normal(size=(2, 80, 3))
y, y_public = (X[:, 0] > 0).astype(int), (X_public[:, 0] > 0).astype(int)


def column_means(X):
    return np.mean(X, axis=0)


column_means.__skdp_key__ = "column-means-v1"


MODELS = {
    "classifier": (private(RidgeClassifier(), X_public, y_public), y),
    "pipeline": (private(make_pipeline(StandardScaler(), Ridge()), X_public, X_public[:, 0]), y),
    "closed form": (private(GaussianNB(), X_public, y_public), y),
    "transformer": (private(StandardScaler(), X_public, y_public), None),
    "gaussian": (
        private(Ridge(), X_public, X_public[:, 0], mechanism=GaussianMechanism(1.0, 1e-5)),
        X[:, 0],
    ),
}


@pytest.fixture(scope="module")
def classifier_plan():
    enough = sampler(X_public, y_public, n_pairs=14)  # for a code
    return clone(MODELS["classifier"][0]).set_params(sensitivity=enough).plan(80)


@pytest.mark.parametrize("name", MODELS)
def test_a_plan_gives_what_fit_gives_and_is_made_without_data(name):
    model, response = MODELS[name]
    like = X_public if response is None else (X_public, 1.0 * y_public)
    has_labels = name in ("classifier", "closed form")
    plan = model.plan(len(X)) if has_labels else model.plan(len(X), like=like)
    data = (X,) if response is None else (X, response.astype(plan.schema.parts[1].dtypes[0]))
    released = plan.execute(*data, random_state=0)
    fitted = model.fit(*data)
    assert released.guarantee == fitted.guarantee_
    assert released.sensitivity == fitted.sensitivity_
    assert pickle.dumps(released.value) == pickle.dumps(fitted.estimator_)
    again = plan.execute(*data)
    assert not again.guarantee.seeded
    assert pickle.dumps(again.value) != pickle.dumps(released.value)


GAUSSIAN = GaussianMechanism(1.0, 1e-5, code=None)
SINGLE = DatasetForm.of(Dataset(X.astype(np.float32)))


def test_parts_of_plans_are_not_mixed():
    """Neither by replacing them, nor by setting the parameters of the mechanism in place."""
    options = {"n_samples": 80, "like": X}
    plan = plan_release(column_means, mechanism=GAUSSIAN, sensitivity=sampler(X_public), **options)
    known = plan_release(column_means, mechanism=GAUSSIAN, sensitivity=0.1, **options)
    other = plan_release(np.median, mechanism=GAUSSIAN, sensitivity=sampler(X_public), **options)
    assert replace(plan, mechanism=GaussianMechanism(0.5, 1e-5)).guarantee.epsilon == 0.5
    assert replace(plan, target=as_target(column_means)).execute(X).value.shape == (3,)
    for part, word in (
        ({"mechanism": LaplaceMechanism(1.0)}, "another norm"),
        ({"n_samples": 10}, "number of records"),
        ({"schema": SINGLE}, "another form"),
        ({"sensitivity": KnownSensitivity(0.1, "sup", 80)}, "larger norms"),
        ({"sensitivity": other.sensitivity}, "another target"),
        ({"target": as_target(np.median)}, "another target"),
        ({"n_alternatives": 0}, "'n_alternatives'"),
    ):
        with pytest.raises(ValueError, match=word):
            replace(plan, **part)
    bound = KnownSensitivity(1.0, "l1", 80)
    numbers = private(Ridge(), X_public, X_public[:, 0], sensitivity=bound)
    with pytest.raises(ValueError, match="chooses"):
        replace(numbers.plan(80, like=(X, X[:, 0])), mechanism=ExponentialMechanism(1.0))
    for stored in (known, pickle.loads(pickle.dumps(known))):
        with pytest.raises(ValueError, match="another target"):
            replace(stored, target=as_target(np.median))
    code = diagonal_code(np.full(3, 1e-3), np.full(3, 1e9))
    for each in (plan, known):
        ledger = PrivacyAccountant(":memory:", epsilon=10, delta=1e-3)
        each.mechanism.set_params(epsilon=2.0)
        assert each.execute(X, accountant=ledger).guarantee.epsilon == 2.0
        each.mechanism.set_params(code=code)
        with pytest.raises(ValueError, match=r"code|norm"):
            each.execute(X, accountant=ledger)
        assert ledger.total().n_releases == 1
    assert GAUSSIAN.epsilon == 1.0  # a plan has a mechanism of its own


FRAME = pd.DataFrame(X, columns=["a", "b", "c"])


@pytest.mark.parametrize(
    ("data", "word"),
    [
        ((X[:50], y[:50]), "80 records"),
        ((X[:, :2], y), "2 columns"),
        ((X, y[:, None]), "dimension"),
        ((X.astype(np.float32), y), "another form"),
        ((FRAME, y), "another form"),
        ((X, y + 1), "not public"),
        ((X, None), "requires y"),
        ((X_public, y), "private records"),
    ],
    ids=["n", "columns", "a table as y", "dtype", "container", "labels", "no y", "oracle"],
)
def test_other_data_are_refused_before_they_are_paid_for(classifier_plan, data, word):
    ledger = PrivacyAccountant(":memory:", epsilon=10)
    with pytest.raises(ValueError, match=word):
        classifier_plan.execute(*data, accountant=ledger)
    assert ledger.rows() == []


def test_labels_that_are_strings_are_of_one_form():
    words = np.where(y == 1, "yes", "no")
    model = private(RidgeClassifier(), RandomTaskOracle(X_public, classes=["no", "yes"]))
    plan = model.plan(80, like=X)  # X alone: labels come in the form of the oracle's
    again = clone(model).set_params(
        sensitivity=plan.sensitivity, classes=["no", "yes"], prior=plan.oracle
    )
    expected = plan.execute(X, words, random_state=0).value.coef_
    frames = [pd.Series(words, dtype=kind) for kind in (object, "category", "string")]
    for each in (words.astype("U9"), words.astype(object), words.tolist(), *frames):
        assert np.array_equal(plan.execute(X, each, random_state=0).value.coef_, expected)
    assert again.fit(X, frames[0]).classes_.tolist() == ["no", "yes"]


@pytest.mark.parametrize("where", ["sensitivity", "mechanism"])
@pytest.mark.parametrize("what", ["function", "estimator"])
def test_a_code_of_another_size_is_refused_before_it_is_paid_for(where, what):
    """Of a sensitivity that is known, nothing else tells how many values there are."""
    code = diagonal_code(np.arange(1.0, 6.0), np.full(5, 1e9))
    mechanism = LaplaceMechanism(1.0, code=code)
    known = 0.1 if where == "mechanism" else KnownSensitivity(0.1, Geometry(1, code), 80)
    budget = PrivacyAccountant(":memory:", epsilon=9.0)
    options = {"mechanism": mechanism, "sensitivity": known, "accountant": budget}
    of_function = partial(release, column_means, X)
    of_estimator = PrivateEstimator(Ridge(), **options).fit
    with pytest.raises(ValueError, match="one of 5 values"):
        of_function(**options) if what == "function" else of_estimator(X, X[:, 0])
    assert budget.rows() == []


class Keeps(Target):
    """It keeps what it sees, and holds something that cannot be copied."""

    def __init__(self):
        self.lock, self.seen = threading.Lock(), []

    def __call__(self, X, *, seed):
        self.last = X
        self.seen.append(X)
        return X.mean(axis=0)


def test_a_target_that_cannot_be_copied_keeps_no_private_records_either():
    target = Keeps()
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": 0.1}
    plan = plan_release(target, n_samples=len(X), like=X, **options)
    plan.execute(X)
    assert target.seen == []
    assert not hasattr(target, "last")


def test_a_plan_says_what_it_is(classifier_plan):
    plan = classifier_plan
    code, errors = plan.mechanism.geometry.code, np.ravel(plan.standard_errors["coef_"])
    assert plan.sensitivity.norms.shape == (3, 14)  # four evaluations give a pair of each stratum
    assert plan.n_evaluations == 4 * 14 + 2 * code.n_pilot_pairs == 84
    low, high = (f"{errors[i]:.2g} [{i}]" for i in (errors.argmin(), errors.argmax()))
    for said in (
        "Plan: RidgeClassifier, 80 private records",
        "gamma=0.2",
        f"{plan.n_evaluations} evaluations on public records",
        f"Laplace in {code.n_released} of 4 directions",
        f"expected score  {plan.expected_score.private.mean():.2f} +- ",
        f"coef_ {low} to {high}\n",
    ):
        assert said in str(plan)
    assert 0 < errors.min() < errors.max()
    assert 0 < plan.seconds < perf_counter()  # which counts from the start of the machine


def test_without_an_oracle_the_form_must_be_given():
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": 0.1}
    with pytest.raises(ValueError, match="'like' parameter of plan_release"):
        plan_release(column_means, n_samples=80, **options)
    model = PrivateEstimator(Ridge(), **options)
    with pytest.raises(ValueError, match=r"'like' parameter of PrivateEstimator\.plan"):
        model.plan(80)
    for like in (X[:0], (X[:0], X[:0, 2]), (X[:9], X[:3, 2]), []):
        with pytest.raises(ValueError, match="at least one record"):
            model.plan(80, like=like)
    plan = model.plan(80, like=(np.array([[0.0, 1.0]]), np.array([0.5])))
    assert plan.execute(X[:, :2], X[:, 2], random_state=0).value.coef_.shape == (2,)


def test_the_size_of_a_classifier_is_found_before_the_budget_pays():
    machine, ledger = LinearSVC(loss="hinge", C=0.1), PrivacyAccountant(":memory:", epsilon=1.0)
    model = PrivateEstimator(
        machine,
        mechanism=L2LaplaceMechanism(1.0),  # for at most 16 numbers
        sensitivity=svm_bound(machine, 60, 20, solver_error=0.1),
        classes=[0, 1],
        accountant=ledger,
    )
    with pytest.raises(ValueError, match="at most 16 numbers"):
        model.fit(rng.uniform(size=(60, 20)), np.arange(60) % 2)
    assert ledger.total().epsilon == 0
