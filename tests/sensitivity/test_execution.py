"""Where and when pairs are evaluated: never what they are."""

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest

import skdp
from skdp import AdditiveTarget, PublicDataOracle, SensitivitySampler, UniformOracle
from skdp.mechanisms.base import l1_norm
from skdp.sensitivity import blocks, execution
from skdp.sensitivity.execution import fingerprint

N_PAIRS = 400
CHUNKS = N_PAIRS // blocks.CHUNK_SIZE

# A run that can be killed: it says when it has begun a pair, and takes .4 s in all.
SCRIPT = """
import sys, time
import numpy as np
from skdp import SensitivitySampler
from skdp.mechanisms.base import l1_norm

directory, log, n_jobs, seconds = sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4])

def oracle(n_samples, rng):
    return rng.exponential(size=(n_samples, 1))

def slow_mean(X):
    with open(log, "a") as file:
        file.write("x")
    time.sleep(seconds)
    return X.mean()

if __name__ == "__main__":
    slow_mean.__module__ = oracle.__module__ = "script"
    sampler = SensitivitySampler(oracle, gamma=None, n_pairs=400, random_state=0,
                                 n_jobs=n_jobs, memory=directory, verbose=1)
    estimate = sampler.sample(slow_mean, 5, l1_norm)
    np.save(directory + "/norms.npy", estimate.norms)
"""


def exponential(n_samples, rng):
    return rng.exponential(size=(n_samples, 1))


def expected_norms():
    sampler = SensitivitySampler(exponential, gamma=None, n_pairs=N_PAIRS, random_state=0)
    return sampler.sample(np.mean, 5, l1_norm).norms


@pytest.fixture
def start(tmp_path):
    """Start the script in a process of its own."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": str(Path(skdp.__file__).parents[1])}

    def begin(log, n_jobs=1, seconds=0.002):
        command = [sys.executable, script, tmp_path, tmp_path / log, str(n_jobs), str(seconds)]
        return subprocess.Popen(
            list(map(str, command)), env=environment, stderr=subprocess.PIPE, text=True
        )

    return begin


def wait_for(process, path, n_calls):
    deadline = time.monotonic() + 60
    while not path.exists() or path.stat().st_size < n_calls:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def count_calls(path):
    return path.stat().st_size // 2


@pytest.mark.slow
def test_killed_run_goes_on_where_it_was(start, tmp_path):
    """SIGKILL at three moments: only the chunk in work is lost, and the norms are the same."""
    measured = 0
    for attempt, n_calls in enumerate([150, 350, 250]):
        log = tmp_path / f"log{attempt}"
        process = start(log.name)
        wait_for(process, log, n_calls)
        process.kill()
        process.communicate()
        measured += count_calls(log)
    process = start("last")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    measured += count_calls(tmp_path / "last")
    np.testing.assert_array_equal(np.load(tmp_path / "norms.npy"), expected_norms())
    assert measured <= N_PAIRS + 3 * blocks.CHUNK_SIZE


@pytest.mark.slow
def test_interrupted_run_ends_at_once_and_keeps_its_chunks(start, tmp_path):
    process = start("first")
    wait_for(process, tmp_path / "first", 300)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, errors = process.communicate(timeout=30)
    assert time.monotonic() - begin < 5  # a second on an idle machine
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert "100 of 400 pairs" in errors  # not a terminal: a line per chunk
    process = start("second")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    np.testing.assert_array_equal(np.load(tmp_path / "norms.npy"), expected_norms())
    assert count_calls(tmp_path / "second") <= N_PAIRS - 100


def test_cache_answers_for_the_same_run_only(tmp_path):
    log = tmp_path / "log"

    def sample(oracle=exponential, n_samples=5, norm=l1_norm, seed=0, power=1):
        def mean(X):
            with log.open("a") as file:
                file.write("x")
            return (X**power).mean()

        log.write_text("")
        sampler = SensitivitySampler(
            oracle, gamma=None, n_pairs=100, random_state=seed, memory=tmp_path / "cache"
        )
        return sampler.sample(mean, n_samples, norm).norms, log.stat().st_size

    first, n_calls = sample()
    again, n_calls_again = sample()
    np.testing.assert_array_equal(again, first)
    assert (n_calls, n_calls_again) == (200, 0)
    others = [
        {"n_samples": 6},
        {"seed": 1},
        {"power": 2},
        {"norm": lambda difference: 2 * abs(difference)},
        {"oracle": UniformOracle([(0, 1)])},
        {"oracle": UniformOracle([(0, 2)])},
    ]
    for options in others:
        norms, n_calls = sample(**options)
        assert n_calls == 200
        assert not np.array_equal(norms, first)


def test_two_processes_share_a_cache(start, tmp_path):
    processes = [start("a", seconds=0.0005), start("b", seconds=0.0005)]
    for process in processes:
        _, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
    np.testing.assert_array_equal(np.load(tmp_path / "norms.npy"), expected_norms())


@pytest.fixture
def long_job(monkeypatch):
    """Start workers whatever the job takes."""
    monkeypatch.setattr(execution, "STARTUP", 0.0)


def test_short_jobs_start_no_workers(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("workers were started")

    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.05, n_jobs=2, random_state=0)
    monkeypatch.setattr(execution, "Parallel", refuse)
    sampler.sample(np.mean, 10, l1_norm)
    monkeypatch.setattr(execution, "STARTUP", 0.0)
    with pytest.raises(AssertionError, match="workers were started"):
        sampler.sample(np.mean, 10, l1_norm)


def test_workers_use_the_cache_too(long_job, tmp_path):
    sampler = SensitivitySampler(
        exponential, gamma=None, n_pairs=N_PAIRS, random_state=0, n_jobs=2, memory=tmp_path
    )
    few = sampler.set_params(n_pairs=100).sample(np.mean, 5, l1_norm)
    many = sampler.set_params(n_pairs=N_PAIRS).sample(np.mean, 5, l1_norm)
    np.testing.assert_array_equal(many.norms, expected_norms())
    np.testing.assert_array_equal(few.norms, many.norms[:100])
    again = sampler.set_params(n_jobs=None).sample(np.mean, 5, l1_norm)
    np.testing.assert_array_equal(again.norms, many.norms)


def test_large_tables_are_mapped_not_copied(long_job):
    oracle = PublicDataOracle(np.random.default_rng(0).normal(size=(300_000, 1)))  # 2.4 MB
    sampler = SensitivitySampler(oracle, gamma=None, n_pairs=120, n_jobs=2, random_state=0)

    def mapped(X):
        base = oracle.table[0]
        while base is not None and not isinstance(base, np.memmap):
            base = getattr(base, "base", None)
        if base is None:
            raise RuntimeError("a copy")
        return X.mean()

    estimate = sampler.sample(mapped, 5, l1_norm)
    assert not estimate.failures
    alone = sampler.set_params(n_jobs=1).sample(mapped, 5, l1_norm)
    assert alone.failures == {"RuntimeError: a copy": 120}  # the check sees a difference


def test_fingerprint_sees_code_defaults_and_enclosed_values():
    def make(step, exponent=1):
        def function(X, shift=exponent):
            return X + step + shift

        return function

    assert fingerprint(make(1)) == fingerprint(make(1))
    different = [make(1), make(2), make(1, 3), partial(make(1), shift=2), np.mean, l1_norm]
    assert len(set(map(fingerprint, different))) == len(different)


def test_fingerprint_sees_data_and_parameters():
    X = np.eye(3)
    same = fingerprint(PublicDataOracle(X)), fingerprint(PublicDataOracle(X.copy()))
    assert same[0] == same[1] != fingerprint(PublicDataOracle(2 * X))
    first, second = AdditiveTarget(lambda X: X), AdditiveTarget(lambda X: X**2)
    assert fingerprint(first) != fingerprint(second)
    assert fingerprint(first.__call__) != fingerprint(second.__call__)


def test_what_cannot_be_pickled_cannot_be_cached(tmp_path):
    class Oracle:
        def __init__(self):
            self.file = (i for i in range(3))

        def __call__(self, n_samples, rng):
            return rng.random((n_samples, 1))

    sampler = SensitivitySampler(Oracle(), gamma=0.2, memory=str(tmp_path))
    with pytest.raises(TypeError, match="objects that can be pickled"):
        sampler.sample(np.mean, 4, l1_norm)


def test_memory_must_be_one(tmp_path):
    sampler = SensitivitySampler(exponential, gamma=0.2, random_state=0, memory=3)
    with pytest.raises(TypeError, match="a path or a joblib"):
        sampler.sample(np.mean, 4, l1_norm)
    expected = sampler.set_params(memory=None).sample(np.mean, 4, l1_norm)
    memory = joblib.Memory(tmp_path, verbose=0)
    assert sampler.set_params(memory=memory).sample(np.mean, 4, l1_norm) == expected
