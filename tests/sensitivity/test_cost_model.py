"""The cost model of the user guide against a simulation of the queue."""

import heapq
import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

from skdp import PublicDataOracle, SensitivitySampler
from skdp.estimators.parameters import ParameterTarget
from skdp.sensitivity import sampler as sampler_module


def chunk_size(n_pairs):
    """Return how many pairs make a task."""
    return min(50, 1 + n_pairs // 64)


def model(n_pairs, fit, n_workers, scheduling):
    """Return the seconds of a job, as the user guide says."""
    chunk = chunk_size(n_pairs)
    return max(2 * fit * n_pairs / n_workers, scheduling * n_pairs / chunk) + fit * chunk


def simulate(n_pairs, fit, n_workers, scheduling, rng):
    """Return when the last chunk ends: one scheduler hands the next to whoever is free first."""
    free = [0.0] * n_workers
    ready = end = 0.0
    chunk = chunk_size(n_pairs)
    for first in range(0, n_pairs, chunk):
        duration = 2 * fit * rng.uniform(0.5, 1.5, min(chunk, n_pairs - first)).sum()
        start = max(free[0], ready)
        ready = start + scheduling
        heapq.heapreplace(free, ready + duration)
        end = max(end, ready + duration)
    return end


@pytest.mark.parametrize(
    ("n_pairs", "fit", "n_workers"),
    [
        (2_000, 0.001, 1),
        (199, 1.0, 8),
        (199, 10.0, 16),
        (999, 60.0, 24),
        (41_971, 4.0, 200),
        (42_000, 0.01, 2),
        (42_000, 1.0, 100),
        (1_000_000, 1.0, 1000),
        (100_000, 0.002, 1000),  # more workers than the scheduler can feed
    ],
)
def test_model_agrees_with_the_queue(n_pairs, fit, n_workers):
    rng = np.random.default_rng(0)
    expected = simulate(n_pairs, fit, n_workers, 1e-3, rng)
    assert model(n_pairs, fit, n_workers, 1e-3) == pytest.approx(expected, rel=0.1)


def test_simulation_sees_a_wrong_model():
    """Audit: without the scheduler, the model fails where workers wait for it."""
    expected = simulate(100_000, 0.002, 1000, 1e-3, np.random.default_rng(0))
    assert model(100_000, 0.002, 1000, 0.0) < 0.5 * expected


@pytest.mark.loop(
    ("n_pairs", "fit", "n_workers", "seconds"),
    [
        (199, 1e-3, 1, 0.40),
        (199, 1.0, 8, 54),
        (41_971, 0.01, 2, 420),
        (41_971, 1.0, 100, 889),
        (10**6, 1.0, 1000, 2050),
    ],
)
def test_table_of_the_user_guide(n_pairs, fit, n_workers, seconds):
    assert model(n_pairs, fit, n_workers, 1e-3) == pytest.approx(seconds, rel=0.01)


@pytest.mark.parametrize("n_records", [10, 1000])
def test_bytes_of_a_task(monkeypatch, n_records):
    """A task is oracle, target and little else; a pair comes back as some 17 bytes."""
    sent, received = [], []

    def run(evaluate, pairs, chunk_size, **options):
        for first in range(0, len(pairs), chunk_size):
            chunk = pairs[first : first + chunk_size]
            outcomes = evaluate(chunk)
            sent.append(len(pickle.dumps((evaluate, chunk))))
            received.append(len(pickle.dumps(outcomes)) / len(chunk))
            yield outcomes

    monkeypatch.setattr(sampler_module, "run", run)
    monkeypatch.setattr(sampler_module, "LEAST_CHUNKS", 1)  # as where there are many pairs
    X, y = make_classification(n_records, 8, random_state=0)
    oracle = PublicDataOracle(X, y)
    target = ParameterTarget(LinearSVC(), "auto", LinearSVC().fit(X, y))
    SensitivitySampler(oracle, gamma=None, n_pairs=99).sample(target, 50, "l1")
    content = len(pickle.dumps(oracle)) + len(pickle.dumps(target))
    assert content - 500 < min(sent) <= max(sent) < content + 1000
    assert len(sent) == 2
    assert max(received) < 25
