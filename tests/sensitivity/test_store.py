"""Pairs that are known are not evaluated again, and nothing but time depends on it."""

import pickle
import threading
from collections import Counter
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score

from skdp import (
    FunctionTarget,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    UniformOracle,
    plan_release,
)
from skdp.codes.encoder import with_learned_code
from skdp.core import identity
from skdp.sensitivity.store import MAX_MADE, STORE, Evaluation, Store

ORACLE = UniformOracle([(0, 1)], y_bounds=(0, 1))
calls = Counter()


MEAN = FunctionTarget(partial(np.mean, axis=0))


@pytest.fixture(autouse=True)
def _counted(monkeypatch):
    """Count the evaluations of this process."""
    evaluate = FunctionTarget.__call__

    def call(self, *dataset, seed):
        calls["mean"] += 1
        return evaluate(self, *dataset, seed=seed)

    monkeypatch.setattr(FunctionTarget, "__call__", call)


def sample(target=MEAN, oracle=None, n=10, norm="l1", **options):
    """Return the norms, and the number of evaluations that they took."""
    options = {"n_pairs": 20, "gamma": None, "random_state": 0} | options
    calls.clear()
    sampler = SensitivitySampler(oracle or UniformOracle([(0, 1)]), **options)
    estimate = sampler.sample(target, n, norm)
    return estimate.norms.tobytes(), calls["mean"]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_pairs_are_evaluated_once(n_jobs):
    first, n_calls = sample()
    assert n_calls == 40
    assert sample(n_jobs=n_jobs) == (first, 2)  # the first pair is always evaluated
    more, n_calls = sample(n_pairs=30)
    assert (more[: len(first)], n_calls) == (first, 2 + 20)
    l2, n_calls = sample(norm="l2")  # another mechanism
    assert n_calls == 2
    STORE.clear()
    assert sample(norm="l2") == (l2, 40)
    assert sample(n_pairs=30) == (more, 2 + 20)


@pytest.mark.parametrize(
    "others",
    [
        {"n": 11},
        {"random_state": 1},
        {"oracle": UniformOracle([(0, 2)])},
        {"target": FunctionTarget(np.median)},
    ],
    ids=lambda others: next(iter(others)),
)
def test_other_pairs_are_evaluated(others):
    sample()
    assert sample(**others)[1] == 40


@pytest.mark.parametrize(
    ("module", "name"),
    [(identity, "__version__"), (identity, "REVISION"), (identity.sklearn, "__version__")],
)
def test_another_version_finds_no_pair(monkeypatch, module, name):
    """An upgrade may change fits: of scikit-learn, or our own."""
    for version, n_calls in [("1", 40), ("2", 40), ("1", 2)]:
        monkeypatch.setattr(module, name, version)
        assert sample(oracle=UniformOracle([(0, 1)]))[1] == n_calls


@pytest.mark.parametrize(
    "nameless",
    [
        {"target": FunctionTarget(lambda X: X.mean(axis=0))},
        {"target": FunctionTarget(np.mean, key="mean-v1")},
        {"oracle": lambda n, rng: rng.random((n, 1))},
        {"random_state": None},
        {"random_state": np.random.default_rng(0)},
    ],
    ids=["target", "key", "oracle", "no seed", "generator"],
)
def test_what_has_no_identity_is_not_kept(nameless):
    for _ in range(2):
        assert sample(**nameless)[1] == 40
    assert not STORE._runs


def test_a_patched_package_finds_no_pair(monkeypatch):
    """Its name and version are as before, but the first pair is not."""
    first, _ = sample()
    evaluate = FunctionTarget.__call__
    for factor, n_calls in [(100, 2 + 40), (100, 2), (1, 2 + 40)]:

        def call(self, *dataset, seed, factor=factor):
            return factor * evaluate(self, *dataset, seed=seed)

        monkeypatch.setattr(FunctionTarget, "__call__", call)
        norms, n_found = sample()
        assert n_found == n_calls
        expected = factor * np.frombuffer(first)
        np.testing.assert_allclose(np.frombuffer(norms), expected, rtol=1e-12)


def test_an_edited_table_is_another_oracle():
    table = np.random.default_rng(0).random((30, 1))
    oracle = PublicDataOracle(table)
    first = sample(oracle=oracle)
    assert sample(oracle=oracle) == (first[0], 2)
    table[0] += 1e-9
    assert sample(oracle=oracle)[1] == 40


def test_memory_in_the_process_is_bounded():
    value = Evaluation((np.zeros(100),))
    small = Store(5 * value.n_bytes, 2 * value.n_bytes)
    for key in "abc":
        assert small.keep(key, {0: value, 1: value}, 2)
    assert [len(small.find(key)) for key in "abc"] == [0, 2, 2]  # the oldest went
    assert not small.keep("d", {0: value}, 3)
    assert not small.find("d")
    with pytest.raises(ValueError, match="read-only"):
        small.find("b")[0].values[0][:] = 1


def test_threads_share_it_and_pickles_hold_none():
    expected, _ = sample(n_pairs=60)
    STORE.clear()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(sampled(60).norms.tobytes())) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == 4 * [expected]
    sampler = SensitivitySampler(ORACLE, random_state=0)
    assert b"Evaluation" not in pickle.dumps(sampler)


def sampled(n_pairs):
    sampler = SensitivitySampler(
        UniformOracle([(0, 1)]), n_pairs=n_pairs, gamma=None, random_state=0
    )
    return sampler.sample(MEAN, 10, "l1")


@pytest.mark.parametrize("code", [None, "auto"])
def test_folds_of_equal_size_cost_one_fit(code, monkeypatch):
    """The released values are those of fits that know nothing."""
    fits = Counter()
    fit = Ridge.fit

    def counted(self, *args, **options):
        fits["all"] += 1
        return fit(self, *args, **options)

    monkeypatch.setattr(Ridge, "fit", counted)
    monkeypatch.setattr("skdp.core.room.check_unpatched", int)
    rng = np.random.default_rng(0)
    X, y = rng.random((50, 1)), rng.random(50)
    model = PrivateEstimator(
        Ridge(),
        mechanism=LaplaceMechanism(1.0, code=code),
        sensitivity=SensitivitySampler(ORACLE, gamma=0.1, random_state=0),
        random_state=0,
    )
    model.fit(X[:40], y[:40])
    one, coefficient = fits["all"], model.estimator_.coef_
    STORE.clear()
    fits.clear()
    cross_val_score(model, X, y, cv=5)
    assert fits["all"] <= 1.5 * one
    assert np.array_equal(model.fit(X[:40], y[:40]).estimator_.coef_, coefficient)


def test_the_plan_says_that_pairs_were_known():
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, random_state=0)
    options = {"n_samples": 10, "mechanism": LaplaceMechanism(epsilon=1.0), "sensitivity": sampler}
    first, second = (plan_release(MEAN, **options) for _ in range(2))
    assert "reused" not in str(first)
    assert f"{first.n_evaluations} of them reused" in " ".join(str(second).split())


@pytest.mark.worth
def test_what_was_learned_of_pilots_is_learned_again_when_they_change(monkeypatch):
    learned = []
    monkeypatch.setattr(
        "skdp.planning.making.with_learned_code",
        lambda *args, **options: learned.append(1) or with_learned_code(*args, **options),
    )
    STORE.clear()
    sampler = SensitivitySampler(ORACLE, gamma=0.1, random_state=0)
    mechanism = LaplaceMechanism(epsilon=1.0)
    model = PrivateEstimator(Ridge(), mechanism=mechanism, sensitivity=sampler)
    plans = [model.plan(40) for _ in range(2)]
    assert sum(learned) == 1
    assert plans[0].mechanism.code == plans[1].mechanism.code
    assert np.array_equal(*(plan.expected_score.private for plan in plans))
    model.set_params(mechanism__epsilon=2.0).plan(40)
    monkeypatch.setattr("skdp.core.room.check_unpatched", int)
    monkeypatch.setattr(Ridge, "fit", lambda self, X, y, fit=Ridge.fit: fit(self, X, y + 1))
    model.plan(40)
    model.set_params(sensitivity__random_state=None).plan(40)
    assert sum(learned) == 4


def test_few_things_that_were_made_are_kept():
    few, made = Store(), []
    for key in [*map(str, range(MAX_MADE)), "0", "new", "1", "0", "", ""]:
        few.made(key, lambda key=key: made.append(key) or key)
    assert made == [*map(str, range(MAX_MADE)), "new", "1", "", ""]
