"""Fingerprints: equal for what is the same, in every process, and different for what is not."""

import functools
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdp import PublicDataOracle
from skdp._fingerprint import digest, fingerprint

FACTOR = np.ones(2000)
LOCK = threading.Lock()


def scaled(X):
    with LOCK:
        return FACTOR * X


def twice_scaled(X):
    return [scaled(x) for x in X]


def recursive(n):
    return recursive(n - 1) if n else 0


def make(value, default=0):
    def function(X, scale=default):
        return [scale * x + value for x in X]

    return function


def scaler_of(X):
    return FrozenEstimator(StandardScaler().fit(X))


class Power:
    def __init__(self, exponent):
        self.exponent = exponent

    def __call__(self, X):
        return X**self.exponent


def test_code_defaults_and_enclosed_values_count():
    different = [make(1), make(2), make(1, default=3), make([1]), lambda X: X, lambda X: -X]
    different += [functools.partial(np.quantile, q=q) for q in (0.5, 1.0)]
    different += [functools.cache(each) for each in (lambda: 1, lambda: 2)]
    different += [Power(1), Power(2), np.mean, np.median]
    assert len(set(map(fingerprint, different))) == len(different)
    assert fingerprint(make(1)) == fingerprint(make(1))
    assert fingerprint(Power(1)) == fingerprint(Power(1))


@pytest.mark.parametrize("function", [scaled, twice_scaled])
def test_global_variables_count_also_of_functions_that_are_called(function, monkeypatch):
    before = fingerprint(function)
    monkeypatch.setitem(globals(), "FACTOR", np.append(np.ones(1999), 1000.0))
    assert fingerprint(function) != before


def test_functions_that_call_themselves_have_fingerprints():
    def enclosed(n, step=1):
        return enclosed(n - step) if n else 0

    assert fingerprint(recursive) == fingerprint(recursive)
    assert fingerprint(enclosed) == fingerprint(enclosed) != fingerprint(recursive)


def test_data_and_parameters_count():
    X = np.random.default_rng(0).normal(size=(50, 2))
    same = fingerprint(PublicDataOracle(X)), fingerprint(PublicDataOracle(X.copy()))
    assert same[0] == same[1] != fingerprint(PublicDataOracle(2 * X))
    first, second = PublicDataOracle(X), PublicDataOracle(X + 1)
    assert fingerprint(first.__call__) != fingerprint(second.__call__)


def test_what_an_estimator_shows_only_in_part_counts():
    X = np.random.default_rng(0).normal(size=(50, 2))
    penalties = np.ones(2000), np.append(np.ones(1999), 1000.0)
    for first, second in [
        [Ridge(alpha=alpha) for alpha in penalties],
        [scaler_of(X), scaler_of(2 * X)],
        [FunctionTransformer(make(value)) for value in (1, 2)],
    ]:
        assert fingerprint(first) != fingerprint(second)
    assert fingerprint(scaler_of(X)) == fingerprint(scaler_of(X))
    assert fingerprint(FunctionTransformer(make(1))) == fingerprint(FunctionTransformer(make(1)))


def test_every_process_finds_the_same():
    program = "f = lambda x: x in {'a', 'b', 'c'}; print(digest(f), digest(f))"
    digests = {
        subprocess.check_output(
            [sys.executable, "-c", f"from skdp._fingerprint import digest; {program}"],
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": seed},
        )
        for seed in ("1", "2", "3")
    }
    assert len(digests) == 1


def test_what_cannot_be_pickled_is_like_nothing_else():
    lock = threading.Lock()

    def locked(X):
        with lock:
            return X

    with pytest.raises(TypeError, match="'memory' parameter of SensitivitySampler"):
        fingerprint(locked)
    assert digest(locked) != digest(locked)
    assert digest(make(1)) == digest(make(1)) == fingerprint(make(1))[:12]
