"""Runs that are interrupted: what is finished is kept, and nothing goes on behind."""

import io
import signal
import sys

import numpy as np
import pytest
from sklearn.utils.parallel import Parallel

from skdp import FunctionTarget, SensitivitySampler, UniformOracle
from skdp.sensitivity import execution


def exponential(n_samples, rng):
    return rng.exponential(size=(n_samples, 1))


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
        exponential, gamma=None, n_pairs=394, n_jobs=2, verbose=1, random_state=0
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
