"""Clusters through joblib's back ends: the norms are those of one core, bit for bit."""

import os
import signal
import time
import warnings
from contextlib import suppress

import numpy as np
import pytest
from joblib import parallel_config

from skdp import (
    BudgetExceededError,
    LaplaceMechanism,
    PrivacyGuarantee,
    SensitivitySampler,
    plan_release,
)
from skdp.accounting import PrivacyAccountant

X = np.zeros((5, 1))

pytestmark = pytest.mark.slow


def exponential(n_samples, rng):
    return rng.exponential(size=(n_samples, 1))


def slow_mean(X):
    time.sleep(0.002)
    return X.mean()


def norms(n_jobs=None, target=slow_mean):
    sampler = SensitivitySampler(
        exponential, gamma=None, n_pairs=300, random_state=0, n_jobs=n_jobs
    )
    return sampler.sample(target, 5, "l1").norms


def spend_often(accountant, n_spends):
    """Return how many of the spends were admitted."""
    n_admitted = 0
    for _ in range(n_spends):
        with suppress(BudgetExceededError):  # those are not counted
            accountant.spend(PrivacyGuarantee(epsilon=0.1))
            n_admitted += 1
    return n_admitted


@pytest.fixture
def expected(long_job):
    """Return the norms of one core."""
    return norms(n_jobs=1, target=np.mean)


@pytest.mark.filterwarnings("ignore")  # of a cluster that loses a worker
def test_dask_with_a_worker_that_dies(expected, tmp_path):
    """Its threads share one ledger, too: every start of a process takes seconds."""
    distributed = pytest.importorskip("distributed", reason="needs the 'dask' extra")
    parent, log, fatal = os.getpid(), tmp_path / "log", tmp_path / "fatal"

    def fatal_mean(X):
        with log.open("a") as file:
            file.write("x")
        if os.getpid() != parent and log.stat().st_size > 300 and fatal.exists():
            fatal.unlink(missing_ok=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return slow_mean(X)

    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
        parallel_config(backend="dask"),
    ):
        np.testing.assert_array_equal(norms(n_jobs=-1, target=fatal_mean), expected)
        accountant = PrivacyAccountant(tmp_path / "ledger.db", epsilon=1.0)
        futures = [client.submit(spend_often, accountant, 8, pure=False) for _ in range(3)]
        assert sum(client.gather(futures)) == accountant.total().n_releases == 10
        plan = plan_release(
            np.mean, n_samples=5, like=X, mechanism=LaplaceMechanism(1.0), sensitivity=1.0
        )
        ledger = PrivacyAccountant(tmp_path / "others.db", epsilon=4.0)
        futures = [client.submit(plan.execute, X, accountant=ledger, pure=False) for _ in range(4)]
        assert len({float(each.value) for each in client.gather(futures)}) == 4  # no noise twice
        n_calls = log.stat().st_size
        fatal.touch()
        log.write_text("")
        np.testing.assert_array_equal(norms(n_jobs=-1, target=fatal_mean), expected)
    assert not fatal.exists()
    assert log.stat().st_size > n_calls  # the worker had begun a chunk


@pytest.mark.filterwarnings("ignore")  # of a cluster that starts
def test_ray(expected):
    ray = pytest.importorskip("ray", reason="needs the 'ray' extra")
    from ray.util.joblib import register_ray

    register_ray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of ray itself
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        with parallel_config(backend="ray"):
            np.testing.assert_array_equal(norms(n_jobs=2), expected)
    finally:
        ray.shutdown()
