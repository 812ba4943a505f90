"""The cost model of the user guide against a simulation of the queue."""

import heapq

import numpy as np
import pytest

CHUNK = 50


def model(n_pairs, fit, n_workers, scheduling):
    """Return the seconds of a job, as the user guide says."""
    return max(2 * fit * n_pairs / n_workers, scheduling * n_pairs / CHUNK) + 2 * fit * CHUNK


def simulate(n_pairs, fit, n_workers, scheduling, rng):
    """Return when the last chunk ends: one scheduler hands the next to whoever is free first."""
    free = [0.0] * n_workers
    ready = end = 0.0
    for _ in range(n_pairs // CHUNK):
        duration = 2 * fit * rng.uniform(0.5, 1.5, CHUNK).sum()
        start = max(free[0], ready)
        ready = start + scheduling
        heapq.heapreplace(free, ready + duration)
        end = max(end, ready + duration)
    return end


@pytest.mark.parametrize(
    ("n_pairs", "fit", "n_workers"),
    [
        (2_000, 0.001, 1),
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


@pytest.mark.parametrize(
    ("n_pairs", "fit", "n_workers", "seconds"),
    [
        (199, 1e-3, 1, 0.5),
        (41_971, 0.01, 2, 421),
        (41_971, 1.0, 100, 939),
        (10**6, 1.0, 1000, 2100),
    ],
)
def test_table_of_the_user_guide(n_pairs, fit, n_workers, seconds):
    assert model(n_pairs, fit, n_workers, 1e-3) == pytest.approx(seconds, rel=0.01)
