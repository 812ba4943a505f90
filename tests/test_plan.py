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
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    BernsteinTransformer,
    ExponentialMechanism,
    GaussianMechanism,
    Geometry,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicCode,
    PublicDataOracle,
    RandomTaskOracle,
    ReleasePlan,
    SensitivitySampler,
    Target,
    UniformOracle,
    plan_release,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import mean_bound, svm_bound
from skdp.core.dataset import Dataset
from skdp.core.schema import Schema
from skdp.core.target import as_target
from skdp.exceptions import PrivacyLeakWarning

rng = np.random.default_rng(0)
X, X_public = rng.normal(size=(2, 80, 3))
y, y_public = (X[:, 0] > 0).astype(int), (X_public[:, 0] > 0).astype(int)


def sampler(*public, **options):
    oracle = public[0] if callable(public[0]) else PublicDataOracle(*public)
    return SensitivitySampler(oracle, **{"gamma": 0.2, "n_pairs": 14, "random_state": 0} | options)


def private(estimator, *public, **options):
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sampler(*public)} | options
    return PrivateEstimator(estimator, random_state=0, **options)


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
    return MODELS["classifier"][0].plan(80)


@pytest.mark.parametrize("name", MODELS)
def test_a_plan_gives_what_fit_gives_and_is_made_without_data(name):
    model, response = MODELS[name]
    plan = model.plan(len(X), like=X_public if response is None else (X_public, 1.0 * y_public))
    if name in ("classifier", "closed form"):  # labels are integers there
        plan = model.plan(len(X))
    data = (X,) if response is None else (X, response.astype(plan.schema.parts[1].dtypes[0]))
    released = plan.execute(*data, random_state=0)
    fitted = model.fit(*data)
    assert released.guarantee == fitted.guarantee_
    assert released.sensitivity == fitted.sensitivity_
    assert pickle.dumps(released.value) == pickle.dumps(fitted.estimator_)
    again = plan.execute(*data)
    assert not again.guarantee.seeded
    assert pickle.dumps(again.value) != pickle.dumps(released.value)


@pytest.mark.parametrize("sensitivity", [sampler(X_public), 0.1])
def test_a_plan_is_not_executed_in_another_code_than_was_settled(sensitivity):
    """A mechanism is an estimator, whose parameters can be set in place."""
    plan = plan_release(
        column_means, n_samples=80, like=X, mechanism=LaplaceMechanism(1.0), sensitivity=sensitivity
    )
    ledger = PrivacyAccountant(":memory:", epsilon=10)
    plan.mechanism.set_params(epsilon=2.0)
    assert plan.execute(X, accountant=ledger).guarantee.epsilon == 2.0
    plan.mechanism.set_params(code=scales(np.full(3, 1e-3)))
    with pytest.raises(ValueError, match=r"code|norm"):
        plan.execute(X, accountant=ledger)
    assert ledger.total().n_releases == 1


def scales(encoder):
    """A code that only scales each number."""
    d = len(encoder)
    return PublicCode(encoder, np.zeros(d), deviations=np.full(d, 1e9), removable=np.ones(d) / d)


GAUSSIAN = GaussianMechanism(1.0, 1e-5, code=None)


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"mechanism": LaplaceMechanism(1.0)}, "made for another norm: l2"),
        ({"n_samples": 10}, "made for another number of records: 80"),
        ({"schema": Schema.of(Dataset(X.astype(np.float32)))}, "records of another form"),
        ({"sensitivity": KnownSensitivity(0.1, "sup", 80)}, "bounds neither larger norms"),
    ],
)
def test_parts_of_plans_are_not_mixed(part, message):
    options = {"sensitivity": sampler(X_public), "n_samples": 80}
    plan = plan_release(column_means, mechanism=GAUSSIAN, **options)
    assert replace(plan, mechanism=GaussianMechanism(0.5, 1e-5)).guarantee.epsilon == 0.5
    with pytest.raises(ValueError, match=message):
        replace(plan, **part)


def test_a_plan_is_not_turned_to_another_target():
    """The estimate was sampled of one function, and the number given for it."""
    options = {"mechanism": LaplaceMechanism(1.0), "n_samples": 80, "like": X}
    made = {
        name: plan_release(column_means, sensitivity=known, **options)
        for name, known in {"sampled": sampler(X_public), "known": 0.1}.items()
    }
    for plan in made.values():
        assert replace(plan, target=as_target(column_means)).execute(X).value.shape == (3,)
        for stored in (plan, pickle.loads(pickle.dumps(plan))):
            with pytest.raises(ValueError, match="made for another target"):
                replace(stored, target=as_target(np.median))
    other = plan_release(np.median, sensitivity=sampler(X_public), **options)
    with pytest.raises(ValueError, match="made for another"):
        replace(made["sampled"], sensitivity=other.sensitivity, mechanism=other.mechanism)
    with pytest.raises(ValueError, match="made for another target"):
        ReleasePlan(
            as_target(column_means),
            *(other.schema, 80, other.mechanism, other.sensitivity),
        )


def test_the_plan_of_a_target_that_remembers():
    """What it remembers is part of what it is known by, and its own plan is made all the same."""
    seen = []

    def mean(X):
        seen.append(len(X))
        return X.mean()

    mechanism = LaplaceMechanism(1.0, code=None)
    plan = plan_release(mean, n_samples=80, mechanism=mechanism, sensitivity=sampler(X_public))
    assert replace(plan, mechanism=LaplaceMechanism(2.0)).guarantee.epsilon == 2.0
    assert plan.execute(X).guarantee == plan.guarantee


@pytest.mark.parametrize("where", ["sensitivity", "mechanism"])
@pytest.mark.parametrize("what", ["function", "estimator"])
def test_a_code_of_another_size_is_refused_before_it_is_paid_for(where, what):
    """Of a sensitivity that is known, nothing else tells how many values there are."""
    code = scales([1.0, 2.0, 3.0, 4.0, 5.0])
    mechanism = LaplaceMechanism(1.0, code=code)
    known = 0.1 if where == "mechanism" else KnownSensitivity(0.1, Geometry(1, code), 80)
    budget = PrivacyAccountant(":memory:", epsilon=9.0)
    options = {"mechanism": mechanism, "sensitivity": known, "accountant": budget}
    of_function = partial(release, column_means, X)
    of_estimator = PrivateEstimator(Ridge(), **options).fit
    with pytest.raises(ValueError, match="one of 5 values"):
        of_function(**options) if what == "function" else of_estimator(X, X[:, 0])
    assert budget.rows() == []


class ChangesCode(LaplaceMechanism):
    """It adds noise in another code than that in which it was asked what to sample."""

    @property
    def geometry(self):
        return Geometry(1)

    def with_code(self, code):
        return LaplaceMechanism(self.epsilon, code=scales([1e-3] * 3))


def test_noise_is_added_where_it_was_sampled():
    estimate = plan_release(
        column_means,
        n_samples=80,
        mechanism=LaplaceMechanism(1.0, code=None),
        sensitivity=sampler(X_public),
    ).sensitivity
    with pytest.raises(ValueError, match="made for another norm"):
        plan_release(
            column_means, n_samples=80, like=X, mechanism=ChangesCode(1.0), sensitivity=estimate
        )


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


def test_a_plan_does_not_keep_what_an_estimator_was_fitted_to():
    fitted = Ridge().fit(X_public, X_public[:, 0])
    with pytest.warns(PrivacyLeakWarning, match="holds a fitted Ridge"):
        plan = private(fitted, X_public, X_public[:, 0]).plan(80)
    assert fitted.coef_.tobytes() not in pickle.dumps(plan)


@pytest.mark.slow
def test_the_plan_of_a_fit_holds_nothing_private():
    """Neither records nor exact parameters; as ever, the search finds what is planted."""
    secret = X + 31337.25
    model = private(make_pipeline(StandardScaler(), RidgeClassifier()), X_public, y_public)
    stored = pickle.dumps(model.fit(secret, y).plan_)
    exact = make_pipeline(StandardScaler(), RidgeClassifier()).fit(secret, y)
    needles = [secret[0].tobytes(), secret[7, 1].tobytes(), exact[0].mean_.tobytes()]
    needles += [value.tobytes() for value in exact[-1].coef_.ravel()]
    assert not any(needle in stored for needle in needles)
    assert all(needle in pickle.dumps((stored, secret, exact)) for needle in needles)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((X[:50], y[:50]), r"must have 80 records in each of its parts.* Got parts of \[50, 50\]"),
        ((X[:, :2], y), "X has 2 columns, and that of the plan has 3 columns"),
        ((X, y[:, None]), "y has 1 column, and .* plan has 1 dimension: give the column itself"),
        ((X.astype(np.float32), y), "another form than the plan: X numpy.ndarray of .'float32'"),
        ((pd.DataFrame(X, columns=["a", "b", "c"]), y), "another form than the plan: X pandas"),
        ((X, y + 1), "a label that is not public"),
        ((X, None), "requires y to be passed"),
        ((X_public, y), "holds the private records"),
    ],
    ids=["n", "columns", "a table as y", "dtype", "container", "labels", "no y", "oracle"],
)
def test_other_data_are_refused_before_the_evaluation(classifier_plan, data, message, monkeypatch):
    plan = classifier_plan
    monkeypatch.setattr("skdp.plan.evaluate_privately", None)
    with pytest.raises(ValueError, match=message):
        plan.execute(*data)


def test_integers_are_taken_where_the_plan_has_doubles():
    plan = MODELS["transformer"][0].plan(80)
    assert plan.execute((10 * X).astype(int), random_state=0).value.mean_.dtype == np.float64


@pytest.mark.parametrize(
    ("mechanism", "sensitivity"),
    [
        (LaplaceMechanism(1.0), None),
        pytest.param(GaussianMechanism(1.0, 1e-5), None, marks=pytest.mark.slow),
        (LaplaceMechanism(1.0), 0.1),
    ],
    ids=repr,
)
def test_standard_errors_are_those_of_the_noise(mechanism, sensitivity):
    """Of 300 releases the deviation is within a third, 5 standard errors of it and more."""
    known = sampler(X_public) if sensitivity is None else sensitivity
    plan = plan_release(
        column_means, n_samples=80, like=X_public, mechanism=mechanism, sensitivity=known
    )
    if sensitivity is not None:
        assert plan.standard_errors is None  # of how many numbers is not known
        return
    noise = np.random.default_rng(0)
    value = plan.sensitivity.value
    releases = [mechanism_release(plan, value, noise) for _ in range(300)]
    np.testing.assert_allclose(np.std(releases, axis=0), plan.standard_errors, rtol=0.33)


def mechanism_release(plan, value, noise):
    return plan.mechanism.release(np.zeros(3), value, noise)


def test_standard_errors_have_the_names_and_shapes_of_the_attributes():
    plan = MODELS["pipeline"][0].plan(80)
    model = plan.execute(X, X[:, 0], random_state=0).value
    names = ["standardscaler__mean_", "standardscaler__var_", "ridge__coef_", "ridge__intercept_"]
    assert list(plan.standard_errors) == names
    assert plan.standard_errors["ridge__coef_"].shape == model[-1].coef_.shape


def test_a_plan_says_what_it_is(classifier_plan):
    plan = classifier_plan
    text = str(plan)
    assert "coef_, intercept_ of RidgeClassifier()" in text
    assert "gamma=0.2" in text
    code = plan.mechanism.geometry.code
    assert plan.n_evaluations == 2 * (len(plan.sensitivity.norms) + code.n_pilot_pairs) == 56
    assert f"{plan.n_evaluations} on public records" in text
    assert f"noise in {code.n_released} of 4 directions, decoded by a prior from 14 public" in text
    share = f"{plan.share_learned:.0%} of what could differ between models of this oracle"
    unlike = (
        f", if {100 * code.shift:g}% of the private records were unlike it" if code.shift else ""
    )
    assert f"\n  read off the data: {share}{unlike}\n" in text
    assert 0.1 < plan.share_learned < 1
    errors = np.ravel(plan.standard_errors["coef_"])
    low, high = (f"{errors[i]:.2g} [{i}]" for i in (errors.argmin(), errors.argmax()))
    assert f"standard error after decoding in coef_: {low} to {high}\n" in text
    assert 0 < errors.min() < errors.max()
    assert 0 < plan.seconds < perf_counter()  # which counts from the start of the machine
    known = plan_release(
        column_means,
        n_samples=80,
        like=X,
        mechanism=LaplaceMechanism(1.0),
        sensitivity=mean_bound(80, 3, ranges=(-9, 9)),
    )
    assert "evaluations: 0 on public records" in str(known)


def test_functions_and_choices_have_plans():
    box = BernsteinTransformer(degree=4, feature_range=(-3, 3), clip=True)
    density = private(KernelDensity(), X_public[:, :1], release=box).plan(80)
    assert density.execute(X[:, :1], random_state=0).value.score_samples(X[:3, :1]).shape == (3,)
    assert density.standard_errors.shape == (5,)
    chosen = plan_release(
        lambda X: np.sum(X > 0, axis=0),
        n_samples=80,
        mechanism=ExponentialMechanism(1.0),
        sensitivity=sampler(X_public),
        responses="abc",
    )
    assert chosen.execute(X).value in "abc"
    assert chosen.standard_errors is None


def test_release_is_to_make_a_plan_and_to_execute_it():
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sampler(X_public)}
    plan = plan_release(column_means, n_samples=80, like=X_public, **options)
    released = release(column_means, X, random_state=3, **options)
    np.testing.assert_array_equal(released.value, plan.execute(X, random_state=3).value)


def test_without_an_oracle_the_form_must_be_given():
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": 0.1}
    with pytest.raises(ValueError, match="The 'like' parameter of plan_release must be given"):
        plan_release(column_means, n_samples=80, **options)
    model = PrivateEstimator(Ridge(), **options)
    with pytest.raises(ValueError, match=r"The 'like' parameter of PrivateEstimator.plan must"):
        model.plan(80)
    for like in (X[:0], (X[:0], X[:0, 2]), (X[:9], X[:3, 2]), []):
        with pytest.raises(ValueError, match="must hold at least one record, and as many in each"):
            model.plan(80, like=like)
    plan = model.plan(80, like=([[0.0, 1.0]], [0.5]))
    assert plan.execute(X[:, :2], X[:, 2], random_state=0).value.coef_.shape == (2,)


def test_a_plan_keeps_a_mechanism_of_its_own():
    mechanism = LaplaceMechanism(1.0)
    plan = plan_release(
        column_means, n_samples=80, mechanism=mechanism, sensitivity=sampler(X_public)
    )
    mechanism.set_params(epsilon=100.0)
    assert plan.guarantee.epsilon == 1.0


def test_the_oracle_of_a_plan_may_be_any():
    plan = plan_release(
        np.median,
        n_samples=80,
        mechanism=LaplaceMechanism(1.0),
        sensitivity=sampler(UniformOracle([(0, 1)])),
    )
    assert plan.schema.parts[0].shape == (1,)


def test_a_plan_of_numbers_is_not_turned_into_a_choice():
    bound = KnownSensitivity(1.0, "l1", 80)
    plan = private(Ridge(), X_public, X_public[:, 0], sensitivity=bound).plan(80, like=(X, X[:, 0]))
    with pytest.raises(ValueError, match="chooses one of several responses"):
        replace(plan, mechanism=ExponentialMechanism(1.0))
    with pytest.raises(ValueError, match="'n_alternatives'"):
        replace(plan, n_alternatives=0)


def test_the_size_of_a_classifier_is_found_before_the_budget_pays():
    ledger = PrivacyAccountant(":memory:", epsilon=1.0)
    wide, labels = rng.uniform(size=(60, 20)), np.arange(60) % 2
    model = PrivateEstimator(
        LinearSVC(loss="hinge", C=0.1),
        mechanism=L2LaplaceMechanism(1.0),  # for at most 16 numbers
        sensitivity=svm_bound(LinearSVC(loss="hinge", C=0.1), 60, 20, solver_error=0.1),
        classes=[0, 1],
        accountant=ledger,
    )
    with pytest.raises(ValueError, match="at most 16 numbers"):
        model.fit(wide, labels)
    assert ledger.total().epsilon == 0


def test_labels_that_are_strings_are_of_one_form():
    X = np.random.default_rng(0).normal(size=(60, 2))
    words = np.where(X[:, 0] > 0, "yes", "no")
    sampler = SensitivitySampler(
        RandomTaskOracle(X_public[:, :2], classes=["no", "yes"]),
        gamma=0.3,
        n_pairs=10,
        random_state=0,
    )
    model = PrivateEstimator(
        LogisticRegression(),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=sampler,
        classes=["no", "yes"],
        random_state=0,
    )
    plan = model.plan(60, like=X)  # X alone: labels come in the form of the oracle's
    again = clone(model).set_params(sensitivity=plan.sensitivity)
    expected = plan.execute(X, words, random_state=0).value.coef_
    frames = [pd.Series(words, dtype=kind) for kind in (object, "category", "string")]
    for y in (words.astype("U9"), words.astype(object), words.tolist(), *frames):
        assert np.array_equal(plan.execute(X, y, random_state=0).value.coef_, expected)
        assert again.fit(X, y).classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="a label that is not public"):
        plan.execute(X, pd.Series(["maybe"] * 60))


def test_a_form_that_is_refused_is_told_by_its_columns():
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": 1.0}
    plan = plan_release(lambda table: len(table), n_samples=80, like=frame, **options)
    for other, message in (
        (
            frame[["age", "weight"]].assign(town=1.0),
            r"lacks \['height'\] and has .* \['town'\]",
        ),
        (frame[["height", "age", "weight"]], "The columns are in another order"),
        (frame.astype({"age": "float32"}), "Column 'age' holds float32, not float64"),
    ):
        with pytest.raises(ValueError, match=message):
            plan.execute(other)
