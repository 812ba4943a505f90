"""The search for leaks: what is planted is found, and what is released holds none."""

import functools
import pickle
import zlib

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.linear_model import HuberRegressor, Ridge
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    SensitivitySampler,
    UniformOracle,
    release,
)
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


class Painted(Holder):
    def _repr_html_(self):
        return f"<b>{X[0, 1]:.12g}</b>"


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
    "html": (Painted(), "records"),
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


def test_what_is_public_is_no_leak():
    assert find_leaks(Holder(X[:5].copy()), X, public=X[:5].copy()) == []
    assert find_leaks(Holder(X[:6].copy()), X, public=X[:5].copy())[0].n_found == 3


def test_the_rest_of_a_table_is_neither_public_nor_private():
    """Records are often rows of one array, and each part leads to all of it."""
    private, public = X[:20], X[20:]
    assert find_leaks(Holder(private.copy()), private, public=public)
    assert find_leaks(Holder(public.copy()), private) == []
    counts = RNG.integers(0, 1000, size=(40, 4))
    assert find_leaks(Holder(counts[:20].copy()), counts[:20], public=counts[20:])


def test_whole_numbers_are_found_as_rows():
    counts = RNG.integers(0, 1000, size=(40, 4))
    assert find_leaks(Holder(counts[[3, 5]]), counts)[0].n_found == 2
    assert find_leaks(Holder(counts[3, :2].copy()), counts) == []
    assert find_leaks(Holder(counts[[3, 5]]), counts, public=counts[5:6].copy())[0].n_found == 1


def test_files_are_searched(tmp_path):
    (tmp_path / "clean.bin").write_bytes(bytes(1000))
    joblib.dump(X[:2], tmp_path / "cache.joblib")
    (tmp_path / "packed.bin").write_bytes(zlib.compress(X.tobytes()))  # which is not seen
    (leak,) = find_leaks(tmp_path, X)
    assert leak.where == str(tmp_path / "cache.joblib")
    assert leak.n_found == 6
    assert find_leaks(tmp_path / "clean.bin", X) == []


def private(estimator, tmp_path, release="auto"):
    """A private model, with the ledger and the cache folder that it leaves."""
    accountant = PrivacyAccountant(tmp_path / "ledger.db", epsilon=10.0)
    oracle = UniformOracle([(-3, 3)] * X.shape[1], y_bounds=(-9, 9))
    sampler = SensitivitySampler(
        oracle, gamma=0.2, n_pairs=9, memory=tmp_path / "cache", random_state=0
    )
    return PrivateEstimator(
        estimator,
        mechanism=LaplaceMechanism(1.0),
        sensitivity=sampler,
        release=release,
        accountant=accountant,
        random_state=0,
    )


@pytest.mark.parametrize(
    "estimator",
    [Ridge(), make_pipeline(StandardScaler(), Ridge()), DecisionTreeRegressor(max_depth=2)],
    ids=lambda estimator: type(estimator).__name__,
)
def test_a_private_model_its_ledger_and_its_cache_hold_none(estimator, tmp_path):
    names = "auto"
    if isinstance(estimator, DecisionTreeRegressor):
        from skdp import LeafTarget

        names = LeafTarget(y_range=(-9, 9))
    model = private(estimator, tmp_path, names).fit(X, Y)
    exact = clone(estimator).fit(X, Y)
    assert find_leaks(exact, X, Y, parameters=exact)  # there is something to find
    for thing in (model, model.plan_, pickle.loads(pickle.dumps(model.estimator_))):
        assert find_leaks(thing, X, Y, parameters=exact) == []
    model.save(tmp_path / "folder")
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) > 5
    assert find_leaks(tmp_path, X, Y, parameters=exact) == []


def test_a_released_value_holds_none():
    released = release(
        lambda X: X.mean(axis=0),
        X,
        mechanism=LaplaceMechanism(1.0),
        sensitivity=0.1,
        random_state=0,
    )
    assert find_leaks(released, X, parameters=X.mean(axis=0)) == []
    assert find_leaks(Holder(X.mean(axis=0)), X, parameters=X.mean(axis=0))
