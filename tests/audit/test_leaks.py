"""The search for leaks: what is planted is found, and what is released holds none."""

import functools
import zlib

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import RFECV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import HuberRegressor, LogisticRegression, Ridge
from sklearn.model_selection import TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from skdp import LaplaceMechanism, PrivateEstimator, PrivateSearchCV
from skdp.accounting import PrivacyAccountant
from skdp.audit import find_leaks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, -2.0, 0.5] + RNG.normal(size=60)
LABELS = (Y > 0).astype(int)


class Holder(BaseEstimator):
    """An object that keeps something, and shows what it is told to."""

    def __init__(self, kept=None):
        self.kept = kept

    def fit(self, X, y=None):
        return self


class Slotted:
    __slots__ = ("kept",)

    def __init__(self, kept):
        self.kept = kept


class Talkative(Holder):
    def __repr__(self):
        return f"Talkative(first={X[0, 0]!r})"


class Secretive(Holder):
    """Its pickle holds what it does not."""

    def __reduce__(self):
        return Holder, (X[5].tobytes(),)


class Remembering(Holder):
    last = X[7]


def closure(kept):
    return lambda: kept


def default(kept=X[8]):
    return kept


def generator(kept):
    yield kept


def running(kept):
    started = generator(kept)
    next(started)
    return started


EXACT = Ridge().fit(X, Y)
PLANTED = {
    "attribute": (Holder(X), "records"),
    "view of a larger array": (Holder(np.concatenate([np.zeros(9), X[3]])[:2]), "records"),
    "one number": (Holder(float(X[4, 2])), "records"),
    "in a list of lists": (Holder([[0.0], X[2].tolist()]), "records"),
    "key of a dictionary": (Holder({float(X[1, 1]): 0}), "records"),
    "closure": (Holder(closure(X[0])), "records"),
    "default": (Holder(default), "records"),
    "argument of a partial": (Holder(functools.partial(print, X[6])), "records"),
    "method of another object": (Holder(Holder(X[:2]).fit), "records"),
    "slot": (Holder(Slotted(X[9])), "records"),
    "class": (Remembering(), "records"),
    "sparse": (Holder(sparse.csr_matrix(X[:3])), "records"),
    "single precision": (Holder(X[:4].astype(np.float32)), "records"),
    "other byte order": (Holder(X[3].astype(">f8")), "records"),
    "bytes": (Holder(X[5].tobytes()), "records"),
    "bytes in the other order": (Holder(X[3].astype(">f8").tobytes()), "records"),
    "running generator": (Holder(running(X[2])), "records"),
    "text": (Holder(f"mean of {X[2, 2]!r}"), "records"),
    "repr": (Talkative(), "records"),
    "pickle": (Secretive(), "records"),
    "response": (Holder(Y[11]), "records"),
    "exact parameter": (Holder(Ridge().fit(X, Y).coef_), "parameters"),
    "labels of the records": (Holder(np.zeros(60, dtype=int)), "one per record"),
    "object array": (Holder(np.array([X[1, 0], "a"], dtype=object)), "records"),
}


@pytest.mark.loop("name", PLANTED)
def test_what_is_planted_is_found(name):
    thing, kind = PLANTED[name]
    assert kind in {leak.kind for leak in find_leaks(thing, X, Y, parameters=EXACT)}
    clean = Holder({"numbers": np.linspace(0, 1, 100), "n": 60, "text": "60 records of 3 columns"})
    assert find_leaks(clean, X, Y, parameters=EXACT) == []


def test_the_way_to_a_leak_is_told():
    model = make_pipeline(StandardScaler(), SVC()).fit(X, LABELS)
    where = {leak.where: leak for leak in find_leaks(model, X)}
    assert not {path for path in where if "steps[0]" in path}  # it holds means only
    assert find_leaks(Holder({"a": [0, X[0]]}), X)[0].where == "kept['a'][1]"


@pytest.mark.parametrize(
    ("model", "where", "kind"),
    [
        (KMeans(3, random_state=0), "labels_", "one per record"),
        (SVC(), "support_vectors_", "records"),
        (KernelDensity(), "tree_", "records"),
        (HuberRegressor(), "outliers_", "one per record"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_fitted_estimators_of_scikit_learn_are_known_to_leak(model, where, kind):
    y = LABELS if isinstance(model, SVC) else Y
    found = find_leaks(clone(model).fit(X, y), X)
    assert any(leak.where.startswith(where) and leak.kind == kind for leak in found)


def test_as_many_attributes_as_records_are_no_leak():
    crowded = Holder()
    vars(crowded).update({f"attribute_{i}": i for i in range(len(X) - 1)})
    assert find_leaks(crowded, X) == []
    assert find_leaks(Holder(vars(crowded).copy()), X)


COUNTS = RNG.integers(0, 1000, size=(40, 4))


@pytest.mark.loop(
    ("kept", "records", "public", "n_found"),
    [
        (X[:5].copy(), X, X[:5].copy(), 0),
        (X[:6].copy(), X, X[:5].copy(), 3),
        # records are often rows of one array, and each part leads to all of it
        (X[:20].copy(), X[:20], X[20:], 60),
        (X[20:].copy(), X[:20], None, 0),
        # whole numbers are found as rows
        (COUNTS[[3, 5]], COUNTS, None, 2),
        (COUNTS[[3, 5]].astype(float), COUNTS, None, 2),
        (COUNTS[3, :2].copy(), COUNTS, None, 0),
        (COUNTS[[3, 5]], COUNTS, COUNTS[5:6].copy(), 1),
        (COUNTS[:20].copy(), COUNTS[:20], COUNTS[20:], 20),
        (COUNTS[[3, 5]].tobytes(), COUNTS, None, 2),
    ],
)
def test_what_is_public_is_no_leak(kept, records, public, n_found):
    leaks = find_leaks(Holder(kept), records, public=public)
    where = [leak for leak in leaks if leak.kind == "records" and leak.where == "kept"]
    assert sum(leak.n_found for leak in where) == n_found
    assert bool(leaks) == (n_found > 0)


def test_files_are_searched(tmp_path):
    (tmp_path / "clean.bin").write_bytes(bytes(1000))
    joblib.dump(X[:2], tmp_path / "cache.joblib")
    (tmp_path / "packed.bin").write_bytes(zlib.compress(X.tobytes()))  # which is not seen
    (leak,) = find_leaks(tmp_path, X)
    assert leak.where == str(tmp_path / "cache.joblib")
    assert leak.n_found == 6
    assert find_leaks(tmp_path / "clean.bin", X) == []


# What an estimator around a private one learns by itself


class Reduction(MetaEstimatorMixin, BaseEstimator):
    """Weights its members by a group of each record, as the reductions of fairlearn do."""

    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y, *, groups):
        first = clone(self.estimator).fit(X, y)
        self.weights_ = [np.mean(first.predict(X)[groups == g] != y[groups == g]) for g in (0, 1)]
        self.predictors_ = [first, clone(self.estimator).fit(X, y, np.take(self.weights_, groups))]
        return self


MEMBER = PrivateEstimator(LogisticRegression(), mechanism=LaplaceMechanism(1.0), sensitivity=0.01)
SEARCH = PrivateSearchCV(MEMBER, {"estimator__C": [0.1, 1.0]})
FITTED = clone(MEMBER).set_params(classes=[0, 1])
LEARNING = {
    "stack": (StackingClassifier([("a", MEMBER)], cv=2), "final_estimator_.coef_"),
    "stack of a search": (StackingClassifier([("a", SEARCH)], cv=2), "final_estimator_.coef_"),
    "calibration": (CalibratedClassifierCV(MEMBER, cv=2), "calibrators[0].a_"),
    "threshold": (TunedThresholdClassifierCV(MEMBER, cv=2), "best_score_"),
    "boosting": (AdaBoostClassifier(MEMBER, n_estimators=2), "estimator_errors_"),
    "elimination": (RFECV(MEMBER, cv=2), "mean_test_score"),
    "reduction": (Reduction(MEMBER), "weights_"),
    "scaler": (make_pipeline(StandardScaler(), MEMBER), "mean_"),
    "out of bag": (BaggingClassifier(MEMBER, oob_score=True, n_estimators=30), "oob_score_"),
}
PASSING = {
    "vote": VotingClassifier([("a", MEMBER), ("b", SEARCH)]),
    "one vs rest": OneVsRestClassifier(MEMBER),
    "one vs one": OneVsOneClassifier(MEMBER),
    "outputs": MultiOutputClassifier(MEMBER),
    "bag": BaggingClassifier(MEMBER, n_estimators=3, max_features=2),
    "last step": make_pipeline(FrozenEstimator(StandardScaler().fit(X)), MEMBER),
}
THREE = np.digitize(Y, [-1, 1])


def learned_outside(outer, y=LABELS):
    options = {"groups": (X[:, 2] > 0).astype(int)} if isinstance(outer, Reduction) else {}
    budget = PrivacyAccountant(":memory:", epsilon=1.0)
    with budget.as_default():
        found = find_leaks(outer, X, y, **options)
    assert budget.total().epsilon == 0
    return [leak.where for leak in found if leak.kind == "learned outside"]


@pytest.mark.parametrize("name", LEARNING)
def test_what_is_learned_around_a_private_estimator_is_found(name):
    outer, where = LEARNING[name]
    assert [path for path in learned_outside(outer) if where in path]


def test_what_is_learned_around_a_released_model_is_found():
    released = FrozenEstimator(clone(FITTED).fit(X, LABELS))
    assert "final_estimator_.coef_" in learned_outside(StackingClassifier([("a", released)], cv=2))
    assert learned_outside(VotingClassifier([("a", released)])) == []


@pytest.mark.parametrize("name", PASSING)
def test_what_only_passes_records_on_learns_nothing(name):
    y = {"one vs rest": THREE, "one vs one": THREE, "outputs": np.column_stack([LABELS, THREE])}
    assert learned_outside(PASSING[name], y.get(name, LABELS)) == []
