"""No trace of the private data or the private fit: search the bytes."""

import logging
import pickle
import traceback
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone, is_classifier, is_regressor
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.feature_selection import SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity, KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skdp import (
    BernsteinTransformer,
    LaplaceMechanism,
    PrivacyGuarantee,
    PrivateEstimator,
    PrivateEvaluationError,
    RandomTaskOracle,
    SampleAndAggregate,
    SensitivitySampler,
    Target,
    release,
)
from skdp.audit import find_leaks
from skdp.codes import Geometry
from skdp.core.dataset import Dataset
from skdp.estimators.parameters import ParameterTarget
from skdp.functions.fitted_function import FittedFunctionTarget
from skdp.mechanisms.base import Mechanism
from skdp.sensitivity.store import STORE
from tests import helpers

X, y = make_classification(n_samples=160, n_features=4, n_redundant=0, random_state=0)
# arrays of their own, of different length
X_public, y_public, X, y = (part.copy() for part in (X[:79], y[:79], X[80:], y[80:]))


def within(private, public):
    """Redraw private numbers outside public ranges: else their values are those of the ends."""
    low, high = public.min(axis=0), public.max(axis=0)
    drawn = np.random.default_rng(2).uniform(low, high, private.shape)
    return np.where((private > low) & (private < high), private, drawn)


X = within(X, X_public)
# Labels that name records: as floats they can be found in a pickle. Regressors use them.
PUBLIC_RESPONSE = np.random.default_rng(1).normal(size=79)
RESPONSE = within(np.random.default_rng(0).normal(size=80), PUBLIC_RESPONSE)

ESTIMATORS = [  # the catalog's tests search the release of every other class
    Ridge(),
    LinearSVC(),
    make_pipeline(StandardScaler(), LinearSVC()),
    make_pipeline(FrozenEstimator(StandardScaler().fit(X_public)), LogisticRegression()),
]  # Where a fit has converged or not, nothing of it may leak.
# a few steps are enough here
pytestmark = [
    pytest.mark.worth,
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]


def responses(estimator):
    return (RESPONSE, PUBLIC_RESPONSE) if is_regressor(estimator) else (y, y_public)


def private(estimator, y_public, **options):
    return helpers.private(estimator, X_public, y_public, **options)


def leaks(thing, estimator, y):
    """Search for the records, the responses of a regression and the exact parameters."""
    public = X_public, PUBLIC_RESPONSE if y.dtype.kind == "f" else y_public
    public_fit = clone(estimator).fit(*public)
    target = ParameterTarget(estimator, "auto", public_fit)
    plain = clone(target.estimator).fit(X, y)
    exact = [target(X, y, seed=0), target.flatten(plain), plain]  # with other last bits
    return find_leaks(thing, X, y, parameters=exact, public=[*public, public_fit])


@pytest.mark.parametrize(
    ("estimator", "known"),
    [*((estimator, False) for estimator in ESTIMATORS), (Ridge(), True), (ESTIMATORS[-1], True)],
)
def test_fitted_object_holds_no_secret(estimator, known):
    y, y_public = responses(estimator)
    if "random_state" in estimator.get_params():
        estimator = clone(estimator).set_params(random_state=0)
    options = {"sensitivity": 0.5} if known else {}
    if known and is_classifier(estimator):
        options["classes"] = [0, 1]
    model = private(estimator, y_public, **options).fit(X, y)
    assert leaks(model, estimator, y) == []


@pytest.mark.parametrize("estimator", [Ridge(), LinearSVC(random_state=0), ESTIMATORS[-1]])
def test_the_search_finds_what_is_there(estimator):
    """The exact fit, what is released without noise, a record that is kept, and labels."""
    y, y_public = responses(estimator)
    exact = private(estimator, y_public, mechanism=LaplaceMechanism(np.inf)).fit(X, y)
    for thing in (clone(estimator).fit(X, y), exact):
        assert leaks(thing, estimator, y)
    model = private(estimator, y_public).fit(X, y)
    model.forgotten_ = X[3].copy()
    assert [leak.where for leak in leaks(model, estimator, y)] == ["forgotten_", "pickle"]
    assert y.tobytes() not in pickle.dumps(model)


class Talking(GaussianNB):
    """Prints, logs and warns of the records that it sees."""

    def fit(self, X, y):
        print(X[0].tolist())
        logging.getLogger("talks").critical("%s", X[1].tolist())
        warnings.warn(f"{X[2].tolist()}", stacklevel=1)
        return super().fit(X, y)


TABLE, LABELS = make_classification(n_samples=680, n_features=4, n_redundant=0, random_state=1)
TASKS = RandomTaskOracle(TABLE[:200].copy(), classes=[0, 1])
FEW = SensitivitySampler(TASKS, gamma=0.2, n_pairs=9, random_state=0)
ROUTES = {
    "predictions": {"sensitivity": FEW, "release": "predictions"},
    "blocks": {"sensitivity": SampleAndAggregate(20, random_state=0), "prior": TASKS},
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # the estimator warns, and what it warns of is searched
@pytest.mark.parametrize("route", ROUTES)
def test_files_and_messages_of_the_routes_for_any_estimator_hold_no_secret(
    route, tmp_path, capfd, caplog
):
    """The search finds the records that it prints elsewhere, and what is released exactly."""
    X, y = within(TABLE[200:], TABLE[:200]), LABELS[200:].copy()

    def released(epsilon):
        mechanism = LaplaceMechanism(epsilon)
        options = {"mechanism": mechanism, "classes": [0, 1], "random_state": 0} | ROUTES[route]
        return PrivateEstimator(Talking(), **options).fit(X, y)

    def said():
        return [*capfd.readouterr(), caplog.text, *(str(each.message) for each in caught)]

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = released(1.0)
        texts = [*said(), str(model.plan_), str(model.summary()), str(model.guarantee_)]
        fitted = Talking().fit(X, y)
        aloud = said()

    def leaks_of(thing, target):
        exact = [target(X, y, seed=0), fitted.theta_, fitted.var_]
        if thing is not texts:  # in which digits of so many numbers are found by chance
            blocks = (Dataset(X[block], y[block]) for block in getattr(target, "blocks", []))
            exact += [target.fits.scores(block)[:-1] for block in blocks]  # the last is a mean
        return find_leaks(thing, X, parameters=exact, public=TABLE[:200])

    noiseless = released(np.inf)
    for each, expected in ((model, False), (noiseless, True)):
        folder = tmp_path / str(expected)
        each.save(folder)
        for thing in (each, folder):
            assert bool(leaks_of(thing, each.plan_.target)) == expected
    assert leaks_of(texts, model.plan_.target) == []
    for text in (aloud[0], aloud[-1], caplog.text):
        assert leaks_of(text, model.plan_.target)


BOX = BernsteinTransformer(2, 1, feature_range=(-6, 6))
MACHINES = [KernelDensity(bandwidth=2.0), SVC(), KNeighborsRegressor()]


def machine_dataset(machine, X, labels, response):
    y = labels if is_classifier(machine) else response
    return (X, y) if is_classifier(machine) or is_regressor(machine) else (X,)


@pytest.mark.parametrize("machine", MACHINES, ids=lambda e: type(e).__name__)
def test_released_function_holds_no_secret(machine):
    """Neither records nor exact lattice values; without noise the search finds the latter."""
    dataset = machine_dataset(machine, X, y, RESPONSE)
    public = machine_dataset(machine, X_public, y_public, PUBLIC_RESPONSE)
    target = FittedFunctionTarget(machine, BOX, clone(machine).fit(*public))
    search = partial(find_leaks, X=X, y=RESPONSE, parameters=target(*dataset, seed=0))

    def released(epsilon, code="auto"):
        noise = {"mechanism": LaplaceMechanism(epsilon, code=code)}
        return helpers.private(machine, *public, release=BOX, **noise).fit(*dataset)

    for code in (None, "auto") if isinstance(machine, KernelDensity) else ("auto",):
        assert search(released(1.0, code)) == []
    (found,) = (leak for leak in search(clone(machine).fit(*dataset)) if leak.where == "pickle")
    assert found.n_found >= X.size / 2
    if len(dataset) == 2:  # densities are normalized
        assert search(released(np.inf))


class Trace:
    """What a fit to the private records leaves behind."""


class Marked(LogisticRegression):
    def fit(self, X, y):
        super().fit(X, y)
        self.trace_ = Trace() if np.array_equal(X, PRIVATE) else None
        return self


PRIVATE = X


def test_no_object_of_the_private_fit_is_reachable(reaches):
    model = private(Marked(), y_public, release=["coef_", "intercept_"]).fit(X, y)
    assert not reaches(model, Trace)
    assert reaches([Marked().fit(X, y)], Trace)


@pytest.mark.parametrize("estimator", [LinearSVC(), Ridge()], ids=["refits", "closed form"])
def test_store_of_pairs_holds_no_secret(estimator):
    """The same search finds a value of a public fit."""
    y, y_public = responses(estimator)
    known = helpers.sampler(X_public, y_public, gamma=0.05, n_pairs=19)
    private(estimator, y_public, sensitivity=known).fit(X, y)
    runs = [run for run in STORE._runs.values() if run]
    assert runs
    assert leaks(runs, estimator, y) == []
    value = next(iter(runs[0].values())).values[0]
    assert find_leaks(runs, np.reshape(value, (-1, 1)))


def flawed(usual, on_private):
    """A target that appends something to the coefficients, and something else on private data."""

    def target(X, y):
        coef = LogisticRegression().fit(X, y).coef_.ravel()
        return np.append(coef, on_private if np.array_equal(X, PRIVATE) else usual)

    return target


@pytest.mark.parametrize(
    ("target", "what"),
    [(flawed([], [1.0]), "shape"), (flawed([1.0], [np.nan]), "not finite")],
    ids=["shape", "not finite"],
)
def test_variables_behind_an_error_hold_no_exact_value(target, what):
    """They hold the data, which the caller has passed, and nothing that was computed from them."""
    known = helpers.sampler(X_public, y_public, n_pairs=None)
    with pytest.raises(PrivateEvaluationError, match=what) as caught:
        release(target, X, y, mechanism=LaplaceMechanism(1.0), sensitivity=known)
    frames = [frame.f_locals for frame, _ in traceback.walk_tb(caught.tb)]
    held = [value for variables in frames[1:] for value in variables.values()]
    arrays = [value for value in held if isinstance(value, np.ndarray)]
    exact = LogisticRegression().fit(X, y).coef_
    assert any(value is X for value in held)
    assert not any(np.isin(exact, value).any() for value in arrays)


class Keeping(TransformerMixin, BaseEstimator):
    """A step that keeps what it transforms, as some do for speed or for people who look at it."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        self.last_ = X.copy()
        return X


class KeepingMechanism(Mechanism):
    geometry = Geometry(1)

    def release(self, value, sensitivity, rng):
        self.value = value.copy()
        seed = int.from_bytes(rng.bytes(8), "little")
        return np.random.default_rng(seed).laplace(value, sensitivity)

    def guarantee(self, gamma=0.0):
        return PrivacyGuarantee(1.0, gamma=gamma)


@pytest.mark.parametrize(
    "estimator",
    [
        make_pipeline(FrozenEstimator(Keeping().fit(X_public)), LogisticRegression()),
        make_pipeline(FrozenEstimator(Keeping().fit(X_public)), DecisionTreeClassifier()),
        make_pipeline(Keeping(), DecisionTreeClassifier(max_leaf_nodes=3)),
        make_pipeline(FrozenEstimator(Keeping().fit(X_public)), KNeighborsClassifier()),
    ],
    ids=["frozen", "frozen before a tree", "before a tree", "frozen in a student"],
)
def test_no_step_keeps_what_it_has_transformed(estimator):
    """Steps that are not fitted to private records see them too."""
    model = private(estimator, y_public, mechanism=KeepingMechanism()).fit(X, y)
    # the public fit keeps as many public records
    assert "records" not in {leak.kind for leak in find_leaks(model, X)}
    assert not hasattr(model.mechanism, "value")
    exact = model.plan_.target(X, y, seed=0)
    assert not np.array_equal(model.mechanism_.value, exact)  # it is of a public dataset


class Recalling(Target):
    description = "a target that would hand out what it has seen"

    def __call__(self, X, *, seed):
        self.seen = X
        return X.mean(axis=0)

    def restore(self, value):
        return value, getattr(self, "seen", None)


def test_a_target_restores_without_what_it_has_seen():
    value, seen = release(
        Recalling(), X, mechanism=LaplaceMechanism(epsilon=1.0), sensitivity=0.1
    ).value
    assert value.shape == (4,)
    assert seen is None


BOOSTED = GradientBoostingClassifier(n_estimators=3).fit(X_public, y_public)
SELECTED = SelectFromModel(BOOSTED, threshold=-1).fit(X_public, y_public)


@pytest.mark.parametrize(
    "estimator",
    [
        DecisionTreeClassifier(),
        RandomForestClassifier(n_estimators=3),
        make_pipeline(FrozenEstimator(SELECTED), DecisionTreeClassifier()),
        VotingClassifier([("a", FrozenEstimator(BOOSTED)), ("b", LogisticRegression())]),
        GradientBoostingClassifier(n_estimators=3),  # a student
    ],
    ids=["tree", "forest", "tree after trees", "vote", "student"],
)
def test_no_memory_between_the_fields_of_nodes(estimator, reaches):
    """Seven bytes of each node are never written: a copy has what stood there, even a number."""
    model = private(estimator, y_public).fit(X, y)
    trees = reaches(model.estimator_, type(BOOSTED.estimators_[0, 0].tree_))
    assert trees
    for tree in trees:
        nodes = tree.__getstate__()["nodes"]
        used = max(offset + dtype.itemsize for dtype, offset, *_ in nodes.dtype.fields.values())
        raw = np.frombuffer(nodes.tobytes(), np.uint8).reshape(len(nodes), -1)
        assert used < raw.shape[1]
        assert not raw[:, used:].any()
        assert np.isfinite(nodes["threshold"]).all()
