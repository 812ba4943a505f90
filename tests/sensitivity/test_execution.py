"""Where and when pairs are evaluated, interrupts, and what a run shows: never what pairs are."""

import io
import multiprocessing
import re
import signal
import sys
import types

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.parallel import Parallel

from skdp import FunctionTarget, PublicDataOracle, SensitivitySampler, UniformOracle
from skdp.sensitivity import execution
from skdp.sensitivity.store import STORE


def normal(n_samples, rng):
    return rng.normal(size=(n_samples, 1))


def test_short_jobs_start_no_workers(monkeypatch, request):
    def refuse(*args, **kwargs):
        raise AssertionError("workers were started")

    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.05, n_jobs=2, random_state=0)
    monkeypatch.setattr(execution, "Parallel", refuse)
    sampler.sample(np.mean, 10, "l1")
    STORE.clear()
    request.getfixturevalue("long_job")
    with pytest.raises(AssertionError, match="workers were started"):
        sampler.sample(np.mean, 10, "l1")


def in_memory(records):
    return records


def as_frame(records):
    return pytest.importorskip("pandas", reason="needs the 'dataframe' extra").DataFrame(
        records, columns=["a", "b"]
    )


TABLES = {
    "array": (in_memory, np.asarray),
    "columns": (np.asfortranarray, np.asarray),
    "frame": (as_frame, lambda frame: frame.to_numpy()),
    "sparse": (sparse.csr_array, lambda matrix: matrix.data),
}


@pytest.mark.parametrize("kind", TABLES)
def test_large_tables_are_mapped_not_copied(long_job, tmp_path, kind):
    """Every task on every worker sees the same file, and only the parent has a copy."""
    make, data_of = TABLES[kind]
    oracle = PublicDataOracle(make(np.random.default_rng(0).normal(size=(150_000, 2))))  # 2.4 MB
    sampler = SensitivitySampler(oracle, gamma=None, n_pairs=120, n_jobs=2, random_state=0)
    log = tmp_path / "log"
    log.touch()

    def mapped(X):
        base = data_of(oracle._X)
        while base is not None and not isinstance(base, np.memmap):
            base = getattr(base, "base", None)
        if base is None:
            raise RuntimeError("a copy")
        with log.open("a") as file:
            file.write(f"{base.filename}\n")
        return np.asarray(X.sum())

    estimate = sampler.sample(mapped, 5, "l1")
    assert estimate.failures == {"RuntimeError: a copy": 2}  # which are timed in this process
    assert len(set(log.read_text().splitlines())) == 1
    alone = sampler.set_params(n_jobs=1).sample(mapped, 5, "l1")
    assert alone.failures == {"RuntimeError: a copy": 120}  # the check sees a difference


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
        normal, gamma=None, n_pairs=394, n_jobs=2, verbose=1, random_state=0
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


def test_interrupt_that_a_fit_catches_ends_the_run(interrupts):
    """No value of the fit that caught it is kept."""
    attempts, fatal = [], 8

    def mean_or_half(X):
        attempts.append(len(X))
        try:
            if len(attempts) == fatal:
                signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:  # as neural networks do
            return 0.0
        return X.mean()

    handler = signal.getsignal(signal.SIGINT)
    oracle, target = UniformOracle([(0, 1)]), FunctionTarget(mean_or_half, key="mean-or-half-v1")
    sampler = SensitivitySampler(oracle, gamma=None, n_pairs=20, random_state=0)
    with pytest.raises(KeyboardInterrupt):
        sampler.sample(target, 5, "l1")
    assert len(attempts) == fatal
    assert signal.getsignal(signal.SIGINT) is handler
    norms = sampler.sample(target, 5, "l1").norms
    np.testing.assert_array_equal(norms, sampler.sample(np.mean, 5, "l1").norms)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(n_pairs=49, **options):
    return SensitivitySampler(normal, gamma=None, n_pairs=n_pairs, **options).sample(
        np.mean, 4, "l1"
    )


def test_lines_of_a_run_that_was_asked_to_tell(capsys):
    run(199, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert 4 <= len(lines) <= 10
    for line in lines:
        assert re.match(r"skdp: \d+ of 199 pairs, about \d+ \w+ left", line)
    assert lines[-1].startswith("skdp: 199 of 199")


@pytest.mark.parametrize(
    ("seconds", "n_workers", "later", "line"),
    [
        ([0.04, 0.04], 1, 0, None),
        ([0.9, 0.04], 1, 0, None),  # the first pair has loaded modules
        ([0.2, 0.2], 1, 0, "skdp: about 20 s for 100 pairs; n_jobs uses more cores"),
        ([2.0, 2.0], 1, 0, "skdp: about 4 min for 100 pairs; n_jobs uses more cores"),
        ([2.0, 2.0], 4, 100, "skdp: about 100 s for 200 pairs"),
    ],
)
def test_duration_of_a_long_run_is_said_once(monkeypatch, seconds, n_workers, later, line):
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    followed = execution.Progress(100, None, n_workers, later)
    for each in seconds:
        followed.add(1, each)
    assert stream.getvalue().splitlines() == ([] if line is None else [line])
    followed.add(98)
    assert ("100 of 100 pairs" in stream.getvalue()) is (line is not None)


@pytest.mark.parametrize("where", ["nobody looks", "short run", "asked for", "worker"])
def test_silence(monkeypatch, where):
    shown = io.StringIO() if where == "nobody looks" else Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setattr(execution, "LONG", 1e9 if where == "short run" else -1.0)
    if where == "worker":
        worker = types.SimpleNamespace(name="LokyProcess-1")
        monkeypatch.setattr(multiprocessing, "current_process", lambda: worker)
    run(verbose=0 if where == "asked for" else None)
    assert shown.getvalue() == ""
