"""What an estimate, a plan or a cached chunk serves: the same target, or one of the same key."""

import importlib
import json
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skdp import (
    BernsteinTransformer,
    FunctionTarget,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivityEstimate,
    SensitivitySampler,
    Target,
    UniformOracle,
    plan_release,
    release,
)
from skdp.core import identity
from skdp.core.identity import content_of, key_of, obstacle_of, origin_of
from skdp.functions import AdditiveTarget, BernsteinTarget
from skdp.oracles.adapters import as_oracle
from skdp.release import ChoiceTarget
from skdp.sensitivity.store import STORE

X = np.random.default_rng(0).uniform(size=(30, 2))
y = X[:, 0]
MECHANISM = LaplaceMechanism(1.0, code=None)  # no pilots, which take time
ORACLE = UniformOracle([(0, 1)] * 2, y_bounds=(0, 1))
UNLABELED = UniformOracle([(0, 1)] * 2)


class Own(Target):
    """A target of a module that is not installed."""

    def __init__(self, scale=1.0, key=None):
        self.scale, self.key = scale, key

    def __call__(self, X, *, seed):
        return self.scale * X.mean(axis=0)


class Named(Own):
    __skdp_key__ = "named-v1"


class Inherits(Named):
    def __call__(self, X, *, seed):
        return 1000 * super().__call__(X, seed=seed)


class OwnRidge(Ridge):
    """An estimator of a module that is not installed."""


class NamedRidge(Ridge):
    __skdp_key__ = "named-ridge-v1"


def own_mean(X):
    return X.mean(axis=0)


def named_mean(X):
    return X.mean(axis=0)


named_mean.__skdp_key__ = "mean-v1"


def doubled(X):
    return 2 * X


def named_double(X):
    return 2 * X


named_double.__skdp_key__ = "double-v1"


def local_class(scale=1):
    class Local(StandardScaler):
        def transform(self, X):
            return scale * super().transform(X)

    return Local()


def in_main(code):
    """Return what a script defines."""
    space = {"__name__": "__main__"}
    exec(f"from sklearn.linear_model import Ridge\n{code}", space)
    return space["made"]


def estimate_of(estimator, **options):
    """Return the estimate of an estimator with released coefficients, or of any other target."""
    sampler = SensitivitySampler(ORACLE, gamma=0.4, n_pairs=3, random_state=0, **options)
    return private(estimator, sampler).plan(len(X), like=(X, y)).sensitivity


def private(estimator, sensitivity):
    last = "ridge__" if hasattr(estimator, "steps") else ""
    return PrivateEstimator(
        estimator,
        mechanism=MECHANISM,
        sensitivity=sensitivity,
        release=[f"{last}coef_", f"{last}intercept_"],
        prior=None if isinstance(sensitivity, SensitivitySampler) else ORACLE,
    )


def serves(estimate, thing):
    """Return whether an estimate is taken for an estimator, or for a function or target."""
    try:
        if hasattr(thing, "fit"):
            private(thing, estimate).plan(len(X), like=(X, y))
        else:
            prior = SensitivitySampler(UNLABELED)
            release(thing, X, mechanism=MECHANISM, sensitivity=estimate.with_prior(prior))
    except ValueError as error:
        if "made for another target" not in str(error):
            raise
        return False
    return True


def scaled(**options):
    return make_pipeline(StandardScaler(**options), Ridge())


def columns(*names):
    return make_pipeline(ColumnTransformer([("on", StandardScaler(), list(names))]), Ridge())


def frozen(scale):
    return make_pipeline(FrozenEstimator(StandardScaler().fit(scale * X)), Ridge())


def applied(function, **options):
    return make_pipeline(FunctionTransformer(function, **options), Ridge())


SERVED = {
    "equal": (Ridge(), Ridge()),
    "clone": (scaled(), clone(scaled())),
    "array": (Ridge(alpha=np.array(2.0)), Ridge(alpha=np.array(2.0))),
    "frozen": (frozen(1.0), frozen(1.0)),
    "columns": (columns(0), columns(0)),
    "installed function": (applied(np.log1p), applied(np.log1p)),
    "class of one's own with a key": (NamedRidge(), NamedRidge()),
    "function with a key": (applied(named_double), applied(named_double)),
}
REFUSED = {
    "parameter": (Ridge(), Ridge(alpha=1.5)),
    "type of a parameter": (Ridge(alpha=1), Ridge(alpha=1.0)),
    "class": (Ridge(), LinearRegression()),
    "nested parameter": (scaled(), scaled(with_std=False)),
    "nested class": (scaled(), frozen(1.0)),
    "output": (scaled(), scaled().set_output(transform="pandas")),
    "array": (Ridge(alpha=np.array(2.0)), Ridge(alpha=np.array(3.0))),
    "frozen": (frozen(1.0), frozen(1000.0)),
    "columns": (columns(0), columns(1)),
    "installed function": (applied(np.log1p), applied(np.expm1)),
    "function with a key, parameter": (applied(named_double), applied(named_double, validate=True)),
    "class with a key, parameter": (NamedRidge(), NamedRidge(alpha=2.0)),
    "class with a key, class": (NamedRidge(), Ridge()),
}


@pytest.mark.loop("name", SERVED | REFUSED)
def test_an_estimate_serves_the_same_estimator_and_no_other(name):
    for which, expected in ((SERVED, True), (REFUSED, False)):
        first, second = which.get(name, (None, None))
        if first is not None:
            assert serves(estimate_of(first), second) == expected
            assert serves(estimate_of(second), first) == expected


OWN = {
    "lambda": applied(lambda X: X),
    "function": applied(doubled),
    "partial": applied(partial(doubled)),
    "method": applied(StandardScaler().fit(X).transform),
    "local class": make_pipeline(local_class(), Ridge()),
    "module": OwnRidge(),
    "script": in_main("class OwnRidge(Ridge):\n    pass\nmade = OwnRidge()"),
    "in disguise": in_main(
        "class Ridge(Ridge):\n"
        "    __module__, __qualname__ = 'sklearn.linear_model._ridge', 'Ridge'\n"
        "made = Ridge()"
    ),
    "attribute": in_main("made = Ridge()\nmade.fit = lambda X, y: made"),
}


@pytest.mark.loop("name", OWN)
def test_what_has_no_name_is_like_nothing_else(name):
    """Not even like itself: its code may have changed."""
    estimator = OWN[name]
    assert key_of(estimator) != key_of(estimator)
    assert obstacle_of(key_of(estimator))
    if name == "attribute":  # which a clone does not have
        return
    assert not serves(estimate_of(estimator), estimator)
    assert not STORE._runs  # no pair is used again


BOX = BernsteinTransformer(degree=2, feature_range=(0, 1))
FUNCTIONS = {
    "installed": (np.mean, np.mean, np.median),
    "partial": (*[partial(np.quantile, q=0.5)] * 2, partial(np.quantile, q=0.9)),
    "with a key": (FunctionTarget(np.mean, key="v1"), FunctionTarget(np.sum, key="v1"), np.mean),
    "with other keys": (
        *[FunctionTarget(own_mean, key="own-v1")] * 2,
        FunctionTarget(own_mean, key="own-v2"),
    ),
    "with an attribute": (named_mean, named_mean, own_mean),
    "target with a key": (Own(1.0, key="target-v1"), Own(2.0, key="target-v1"), Own(1.0)),
    "named class": (Named(1.0), Named(1.0), Named(2.0)),
    "named class and its heir": (Named(1.0), Named(1.0), Inherits(1.0)),
    "moments": (AdditiveTarget(np.sin), AdditiveTarget(np.sin), AdditiveTarget(np.cos)),
}


@pytest.mark.loop("name", FUNCTIONS)
def test_an_estimate_serves_functions_of_installed_packages_and_of_one_key(name):
    first, same, other = FUNCTIONS[name]
    sampler = SensitivitySampler(UNLABELED, gamma=0.4, random_state=0)
    estimate = release(first, X, mechanism=MECHANISM, sensitivity=sampler).sensitivity
    assert serves(estimate, same)
    assert not serves(estimate, other)


@pytest.mark.parametrize(
    "target", [own_mean, lambda X: X.mean(), FunctionTarget(own_mean), Own(), Inherits()]
)
def test_a_target_without_a_key_has_its_own_plan_only(target):
    sampler = SensitivitySampler(UNLABELED, gamma=0.4, random_state=0)
    plan = plan_release(target, n_samples=len(X), mechanism=MECHANISM, sensitivity=sampler)
    assert plan.execute(X).guarantee == plan.execute(X).guarantee
    assert replace(plan, mechanism=clone(plan.mechanism)).execute(X).sensitivity == plan.sensitivity
    message = r"made for another target.* not found in an installed package.*key='"
    with pytest.raises(ValueError, match=message):
        release(target, X, mechanism=MECHANISM, sensitivity=plan.sensitivity)
    stored = SensitivityEstimate.from_dict(json.loads(json.dumps(plan.sensitivity.to_dict())))
    assert not serves(stored, target)
    assert not STORE._runs  # no pair is used again


def test_a_plan_that_was_pickled_needs_a_key():
    """A pickle names a function, and the name may lead to another one by now."""
    sampler = SensitivitySampler(UNLABELED, gamma=0.4, random_state=0)
    options = {"n_samples": len(X), "mechanism": MECHANISM, "sensitivity": sampler}
    for target in (np.mean, named_mean, FunctionTarget(own_mean, key="v1"), Named()):
        plan = pickle.loads(pickle.dumps(plan_release(target, **options)))
        assert plan.execute(X).sensitivity == plan.sensitivity
    for target in (own_mean, Own()):
        plan = pickle.loads(pickle.dumps(plan_release(target, **options)))
        for each in (
            plan,
            replace(plan, mechanism=plan.mechanism),
            pickle.loads(pickle.dumps(plan)),
        ):
            with pytest.raises(ValueError, match=r"was pickled.*key='"):
                each.execute(X)


def edit_function(plan):
    plan.target.function = np.median


def edit_scale(plan):
    plan.target.scale = 1000.0


def edit_nested(plan):
    plan.target.estimator.set_params(ridge__alpha=1000.0)


@pytest.mark.parametrize(
    ("target", "edit"),
    [
        (np.mean, edit_function),
        (own_mean, edit_function),
        (Own(), edit_scale),
        (Named(), edit_scale),
        (applied(np.log1p), edit_nested),
        (applied(lambda X: X), edit_nested),
    ],
    ids=["installed", "function", "own", "named", "pipeline", "lambda in a pipeline"],
)
def test_a_plan_whose_target_was_edited_is_not_executed(target, edit):
    sampler = SensitivitySampler(ORACLE, gamma=0.4, random_state=0)
    if hasattr(target, "fit"):
        plan = private(target, sampler).plan(len(X), like=(X, y))
        data = X, y
    else:
        sampler.set_params(oracle=UNLABELED)
        plan = plan_release(target, n_samples=len(X), mechanism=MECHANISM, sensitivity=sampler)
        data = (X,)
    plan.execute(*data)
    edit(plan)
    for each in (plan, replace(plan, mechanism=plan.mechanism)):
        with pytest.raises(ValueError, match="other values than when the plan was made"):
            each.execute(*data)


CONTENT = {
    "array": (
        [np.ones(3), np.ones(6)[::2]],
        [np.zeros(3), np.ones(3, np.float32), np.ones((3, 1))],
    ),
    "order": ([np.ones((2, 3))], [np.asfortranarray(np.ones((2, 3))), np.ones((3, 2))]),
    "objects": ([np.array([1, "a"], object)], [np.array([1, "b"], object), [1, "a"], (1, "a")]),
    "set": ([{"a", "b"}, {"b", "a"}], [frozenset("ab"), ["a", "b"], {"a"}, {"ab"}]),
    "dict": ([{"a": 1}], [{"a": True}, {"a": 1.0}, {1: "a"}, [("a", 1)], {"a": [1]}]),
    "nesting": ([[[1], [2]]], [[[1, 2]], [1, 2], [[1], 2], [[1, [2]]]]),
    "number": ([0.0], [-0.0, 0, False, None, "0.0", b"0.0", 0j, np.float64(0)]),
    "sparse": (
        [sparse.csr_array(np.eye(2))],
        [sparse.csr_array(np.eye(3)), sparse.csc_array(np.eye(2))],
    ),
    "frame": (
        [pd.DataFrame({"a": [1.0]}), pd.DataFrame({"a": [1.0]})],
        [pd.DataFrame({"b": [1.0]}), pd.DataFrame({"a": [2.0]}), pd.DataFrame({"a": ["1"]})],
    ),
    "dtype": ([OneHotEncoder()], [OneHotEncoder(dtype=np.float32), OneHotEncoder(dtype=float)]),
    "table": ([PublicDataOracle(X), PublicDataOracle(X.copy())], [PublicDataOracle(2 * X)]),
    "law": (
        [as_oracle(stats.norm(0, 1))],
        [as_oracle(stats.norm(0, 2)), as_oracle(stats.expon(0, 1))],
    ),
    "density": ([as_oracle(KernelDensity().fit(X))], [as_oracle(KernelDensity().fit(2 * X))]),
    "choice": (
        [ChoiceTarget(Own(1, key="v1"), "ab"), ChoiceTarget(Own(2, key="v1"), "ab")],
        [ChoiceTarget(Own(1, key="v2"), "ab"), ChoiceTarget(Own(1, key="v1"), "abc")],
    ),
    "box": (
        [BernsteinTarget(FunctionTarget(each, key="v1"), BOX) for each in (np.mean, np.sum)],
        [BernsteinTarget(np.mean, BOX), BernsteinTarget(FunctionTarget(np.mean, key="v2"), BOX)],
    ),
    "trees": (
        [RandomForestRegressor(2, random_state=0).fit(X, y) for _ in range(2)],
        [RandomForestRegressor(2, random_state=0).fit(X, 2 * y)],
    ),
}


@pytest.mark.loop("name", CONTENT)
def test_content_counts(name):
    """All that differ have different keys, and what is equal has the same one."""
    same, others = CONTENT[name]
    keys = [key_of(each) for each in (*same, *others)]
    assert not any(map(obstacle_of, keys))
    assert len(set(keys[: len(same)])) == 1
    assert len(set(keys[len(same) - 1 :])) == 1 + len(others)


LOCK = threading.Lock()


def itself():
    made = []
    made.append(made)
    return made


@pytest.mark.loop(
    "thing",
    [
        *(lambda X: X, own_mean, Own(), OwnRidge, local_class(), (each for each in ())),
        *(LOCK, itself(), np.frompyfunc(own_mean, 1, 1), Named().__call__, {"a": [own_mean]}),
        *({own_mean}, np.array([own_mean], object), type("Mean", (Own,), {})(), np.random.normal),
        *(list[int], Named(own_mean), os),
    ],
)
def test_what_cannot_be_named_has_no_key(thing):
    assert obstacle_of(key_of(thing))
    assert key_of(thing) != key_of(thing)
    assert content_of(thing) == content_of(thing)


def test_versions_count(monkeypatch):
    estimate, plan = estimate_of(Ridge()), private(Ridge(), 9.0).plan(len(X), like=(X, y))
    for module, name in (
        *((each, "__version__") for each in (np, sklearn, identity.scipy, identity)),
        (identity, "REVISION"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, "99")
            assert not serves(estimate, Ridge())
            with pytest.raises(ValueError, match="another version of what it uses"):
                plan.execute(X, y)
    assert serves(estimate, Ridge())
    plan.execute(X, y)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that installs a package, and returns an object of its class."""
    site = tmp_path / "site"
    info = site / "ownlib-1.0.dist-info"
    info.mkdir(parents=True)
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def install(version="1.0", folder=None, file=site / "ownlib.py", **origin):
        if folder is not None:
            origin = {"url": folder.as_uri(), "dir_info": {}}
        (info / "METADATA").write_text(f"Name: ownlib\nVersion: {version}\n")
        (info / "direct_url.json").write_text(json.dumps(origin))
        (info / "top_level.txt").write_text("ownlib")
        (site / "ownlib.py").unlink(missing_ok=True)
        file.write_text("class Scaler:\n    factor = 1\n")
        importlib.invalidate_caches()
        sys.modules.pop("ownlib", None)
        origin_of.cache_clear()
        return importlib.import_module("ownlib").Scaler()

    yield install
    sys.modules.pop("ownlib", None)
    origin_of.cache_clear()


def test_a_package_counts_by_its_version(installed, tmp_path, monkeypatch):
    """One from a folder changes without it; that of a wheel is gone, as of a package of conda."""
    first, again, later = (key_of(installed(version)) for version in ("1.0", "1.0", "1.1"))
    assert first == again != later
    assert not obstacle_of(first)
    wheels = [key_of(installed(archive_info={"hash": each})) for each in "ab"]
    assert wheels[0] != wheels[1]
    assert not obstacle_of(key_of(installed(folder=tmp_path / "gone")))
    assert obstacle_of(key_of(installed(folder=tmp_path)))
    (tmp_path / "here").mkdir()
    monkeypatch.syspath_prepend(tmp_path / "here")
    assert obstacle_of(key_of(installed(file=tmp_path / "here" / "ownlib.py")))


OTHER = """
import sys, pickle
import numpy as np
from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler, release
estimates, estimator, plan, oracle, unlabeled, X = pickle.load(open(sys.argv[1], "rb"))
noise = LaplaceMechanism(1.0, code=None)
model = PrivateEstimator(
    estimator, mechanism=noise, sensitivity=estimates[0], prior=oracle,
    release=["ridge__coef_", "ridge__intercept_"],
)
assert model.fit(X, X[:, 0]).sensitivity_ == estimates[0]
assert plan.execute(X, X[:, 0]).sensitivity == estimates[0]
estimate = estimates[1].with_prior(SensitivitySampler(unlabeled))
released = release(np.mean, X, mechanism=noise, sensitivity=estimate)
assert released.sensitivity == estimates[1]
model.set_params(estimator__ridge__alpha=2.0)
try:
    model.fit(X, X[:, 0])
except ValueError as error:
    print(error)
"""


def test_another_process_takes_plans_and_estimates(tmp_path):
    estimator = make_pipeline(FrozenEstimator(StandardScaler().fit(X)), Ridge(alpha=np.array(1.0)))
    sampler = SensitivitySampler(ORACLE, gamma=0.4, random_state=0)
    plan = private(estimator, sampler).plan(len(X), like=(X, y))
    mean = sampler.set_params(oracle=UNLABELED).sample(np.mean, len(X), MECHANISM.geometry)
    file = tmp_path / "stored"
    file.write_bytes(
        pickle.dumps(([plan.sensitivity, mean], estimator, plan, ORACLE, UNLABELED, X))
    )
    done = subprocess.run(
        [sys.executable, "-c", OTHER, file],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert "made for another target" in done.stdout, done.stderr


@pytest.mark.parametrize(("key", "error"), [("", ValueError), (3, TypeError)])
def test_a_key_is_a_name(key, error):
    with pytest.raises(error, match=r"The 'key' of FunctionTarget must be a string"):
        FunctionTarget(np.mean, key=key)
    with pytest.raises(error, match=r"The 'key' of Own must be a string"):
        key_of(Own(key=key))
    function = lambda X: X.mean()  # noqa: E731 - a function of its own for each key
    function.__skdp_key__ = key
    assert obstacle_of(key_of(function))


def test_a_method_that_was_replaced_in_one_target_has_no_key():
    plan = private(Ridge(), 9.0).plan(len(X), like=(X, y))
    assert not obstacle_of(key_of(plan.target))
    plan.target.restore = lambda value: None
    assert obstacle_of(key_of(plan.target))
