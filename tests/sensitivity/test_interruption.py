"""Runs that are killed or interrupted: what is finished is kept, and nothing goes on behind."""

import io
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.parallel import Parallel

import skdp
from skdp import SensitivitySampler
from skdp.sensitivity import execution

N_TIMED = 2
"""Pairs that are evaluated first, in a chunk each, for the decision on workers."""

CHUNK_SIZE = 7
"""A 64th part of the pairs, rounded up; it divides the others."""

N_PAIRS = 394

# A run that tells of each fit. Workers start whatever it takes. After some fits, it becomes slow.
# What differs between attempts stands in the environment: global variables would be in the key.
SCRIPT = """
import os, time
import numpy as np
from skdp import SensitivitySampler
from skdp.sensitivity import execution

def oracle(n_samples, rng):
    return rng.exponential(size=(n_samples, 1))

def slow_mean(X):
    log = os.environ["LOG"]
    with open(log, "a") as file:
        file.write("x")
    fast = os.stat(log).st_size < int(os.environ["N_FAST"])
    time.sleep(float(os.environ["SECONDS"]) if fast else 6.0)
    return X.mean()

def norms(n_jobs=None, **options):
    sampler = SensitivitySampler(oracle, gamma=None, n_pairs=394, random_state=0,
                                 n_jobs=n_jobs, memory=".", **options)
    return sampler.sample(slow_mean, 5, "l1").norms

slow_mean.__skdp_key__ = "slow-mean-v1"
oracle.__skdp_key__ = "oracle-v1"

if __name__ == "__main__":
    slow_mean.__module__ = oracle.__module__ = "script"
    execution.STARTUP = 0.0
    np.save("norms.npy", norms(int(os.environ["N_JOBS"]), verbose=1))
"""


def exponential(n_samples, rng):
    return rng.exponential(size=(n_samples, 1))


exponential.__skdp_key__ = "exponential-v1"


def expected_norms():
    sampler = SensitivitySampler(exponential, gamma=None, n_pairs=N_PAIRS, random_state=0)
    return sampler.sample(np.mean, 5, "l1").norms


def take_interrupts():
    """Undo what a shell does to the jobs that it runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


class Run:
    """The script with two workers, in a process group of its own, as a shell starts it."""

    def __init__(self, directory):
        self.log, self.errors = directory / "log", directory / "errors"
        script = directory / "script.py"
        script.write_text(SCRIPT)
        options = {"LOG": str(self.log), "PYTHONPATH": str(Path(skdp.__file__).parents[1])}
        options |= {"N_JOBS": "2", "SECONDS": "0.002", "N_FAST": "300"}
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [sys.executable, script.name],
                cwd=directory,
                env=os.environ | options,
                stderr=errors,
                start_new_session=True,
                preexec_fn=take_interrupts,
            )

    @property
    def n_calls(self):
        return self.log.stat().st_size if self.log.exists() else 0

    def wait_for(self, n_calls):
        deadline = time.monotonic() + 120
        while self.n_calls < n_calls:
            assert self.process.poll() is None, self.errors.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.002)

    def signal(self, number):
        """Signal the parent and all workers; return when they are gone, and how long it took."""
        begin = time.monotonic()
        os.killpg(self.process.pid, number)
        self.process.wait(timeout=240)
        while self.is_alive():
            assert time.monotonic() < begin + 240
            time.sleep(0.002)
        return time.monotonic() - begin

    def is_alive(self):
        """Return whether a process of the group is left."""
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        return True


@pytest.fixture
def interrupted(tmp_path):
    """Start the script; no process is left behind, whatever fails."""
    run = Run(tmp_path)
    yield run
    if run.is_alive():
        os.killpg(run.process.pid, signal.SIGKILL)
    run.process.wait()


@pytest.fixture
def run_here(tmp_path, monkeypatch):
    """Run the same in this process; return the norms and the number of fits."""

    def run():
        log = tmp_path / "here"
        log.touch()
        monkeypatch.chdir(tmp_path)
        for name, value in {"LOG": log, "SECONDS": 0.0, "N_FAST": 10**6}.items():
            monkeypatch.setenv(name, str(value))
        (tmp_path / "script.py").write_text(SCRIPT)
        script = types.ModuleType("script")
        monkeypatch.setitem(sys.modules, "script", script)
        exec(compile(SCRIPT, tmp_path / "script.py", "exec"), vars(script))
        return script.norms(), log.stat().st_size // 2

    return run


def n_cached(directory):
    return len(list(directory.rglob("output.pkl")))


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_ended_goes_on_where_it_was(interrupted, run_here, tmp_path, number):
    """Ctrl-C in a terminal reaches all processes. None waits for its chunk, of 84 s."""
    run = interrupted
    run.wait_for(301)
    assert run.signal(number) < 42  # 6 s for the fit, and a loaded machine
    assert run.process.returncode != 0
    assert ("KeyboardInterrupt" in run.errors.read_text()) is (number == signal.SIGINT)
    saved = n_cached(tmp_path)
    assert saved >= 1
    norms, n_pairs = run_here()
    np.testing.assert_array_equal(norms, expected_norms())
    assert n_pairs == N_PAIRS - N_TIMED - CHUNK_SIZE * (saved - N_TIMED)
    assert n_cached(tmp_path) == N_TIMED + (N_PAIRS - N_TIMED) // CHUNK_SIZE


@pytest.fixture
def long_job(monkeypatch):
    """Start workers whatever the job takes."""
    monkeypatch.setattr(execution, "STARTUP", 0.0)


def test_an_interrupted_caller_ends_the_workers(long_job, monkeypatch):
    """Whoever keeps the traceback, as a notebook does, keeps the generators of the run.

    That a generator of joblib which is closed ends its workers is joblib's promise.
    """
    ended = []

    class Watched(Parallel):
        def __call__(self, calls):
            try:
                yield from super().__call__(calls)
            finally:
                ended.append(True)

    class Interrupting(io.StringIO):
        def write(self, text):
            raise KeyboardInterrupt

    monkeypatch.setattr(
        execution, "Parallel", lambda n_jobs, return_as: Watched(return_as=return_as)
    )
    monkeypatch.setattr(sys, "stderr", Interrupting())  # at the first line of progress
    sampler = SensitivitySampler(
        exponential, gamma=None, n_pairs=N_PAIRS, n_jobs=2, verbose=1, random_state=0
    )
    with pytest.raises(KeyboardInterrupt) as kept:
        sampler.sample(np.mean, 5, "l1")
    assert ended
    assert kept.tb is not None


@pytest.fixture
def interrupts():
    """Take interrupts, also where a shell has made its background jobs ignore them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("memory", [False, True])
def test_interrupt_that_a_fit_catches_ends_the_run(memory, tmp_path, interrupts):
    attempts = []

    def mean_or_half(X):
        attempts.append(len(X))
        try:
            if len(attempts) == 4:
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # as neural networks do
            return 0.0
        return X.mean()

    mean_or_half.__skdp_key__ = "mean-or-half-v1"
    handler = signal.getsignal(signal.SIGINT)
    options = {"memory": tmp_path} if memory else {}
    sampler = SensitivitySampler(exponential, gamma=0.1, random_state=0, **options)
    with pytest.raises(KeyboardInterrupt):
        sampler.sample(mean_or_half, 5, "l1")
    assert len(attempts) == 4
    assert signal.getsignal(signal.SIGINT) is handler
