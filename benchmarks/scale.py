"""What large jobs take: records, pairs, releases of one ledger, released numbers.

Each row is a run in a process of its own, with one thread: seconds of the processor for the job
alone, without imports and data, and the peak memory of the whole process. Linux only: the peak is
the VmHWM of /proc.

Usage: python benchmarks/scale.py [job ...], such as pairs or ledger
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from memory import peak_memory
from sklearn.linear_model import Ridge

from skdp import (
    AdditiveTarget,
    GaussianMechanism,
    LaplaceMechanism,
    PrivacyGuarantee,
    PrivateEstimator,
    SensitivitySampler,
    UniformOracle,
    release,
)
from skdp.accounting import PrivacyAccountant

MILLION = 10**6
UNIT = [(0.0, 1.0)]


def records(n_columns):
    """Return a million records."""
    return np.random.default_rng(0).uniform(size=(MILLION, n_columns))


def sampler(oracle, **options):
    return SensitivitySampler(oracle, random_state=0, **options)


def identity(X):
    return X


def histogram(X):
    """Count the records of a million cells."""
    return np.bincount((X[:, 0] * MILLION).astype(int), minlength=MILLION).astype(float)


def mean_by(mechanism):
    X, oracle = records(10), UniformOracle(UNIT * 10)
    target = AdditiveTarget(identity)
    return lambda: release(target, X, mechanism=mechanism, sensitivity=sampler(oracle))


def mean():
    """mean of 10^6 records in 10 columns, noise on each number"""
    return mean_by(LaplaceMechanism(1.0, basis="identity"))


def mean_in_code():
    """the same in a public code, which takes 199 pilot means"""
    return mean_by(LaplaceMechanism(1.0))


def ridge():
    """`Ridge` of 10^6 records in 10 columns, in a public code"""
    X = records(10)
    oracle = UniformOracle(UNIT * 10, y_bounds=(0, 1))
    model = PrivateEstimator(Ridge(), mechanism=LaplaceMechanism(1.0), sensitivity=sampler(oracle))
    return lambda: model.fit(X, X[:, 0])


def pairs():
    """10^6 pairs of a mean"""
    target, many = AdditiveTarget(identity), sampler(UniformOracle(UNIT), n_pairs=MILLION)
    return lambda: many.sample(target, 1000, "l1")


def ledger():
    """1,000 releases in a ledger"""
    folder = tempfile.TemporaryDirectory(dir=".")
    accountant = PrivacyAccountant(Path(folder.name) / "budget.db", epsilon=1000.0, delta=1e-5)

    def spend():
        for _ in range(1000):
            accountant.spend(PrivacyGuarantee(epsilon=0.1, delta=1e-9))
        return f"{sum(each.stat().st_size for each in Path(folder.name).iterdir()) / 1000:.0f} kB"

    return spend


def released_by(mechanism, sensitivity):
    X = records(1)
    return lambda: release(histogram, X, mechanism=mechanism, sensitivity=sensitivity)


def laplace():
    """histogram of 10^6 cells, Laplace noise, sensitivity known"""
    return released_by(LaplaceMechanism(1.0), 2.0)


def gaussian():
    """the same with Gaussian noise"""
    return released_by(GaussianMechanism(1.0, delta=1e-6), 2.0)


def sampled():
    """the same with Laplace noise, sensitivity sampled by 199 pairs"""
    mechanism = LaplaceMechanism(1.0, basis="identity")
    return released_by(mechanism, sampler(UniformOracle(UNIT)))


def coded():
    """the same in a public code"""
    return released_by(LaplaceMechanism(1.0), sampler(UniformOracle(UNIT)))


JOBS = [pairs, mean, mean_in_code, ridge, ledger, laplace, gaussian, sampled, coded]


def measure(name):
    """Do a job, and print what it took."""
    job = {each.__name__: each for each in JOBS}[name]()
    start = time.process_time()
    done = job()
    took = time.process_time() - start
    note = f", {done}" if isinstance(done, str) else ""
    print(json.dumps([took, peak_memory(), note]))


def main():
    """Print the table."""
    names = sys.argv[1:] or [job.__name__ for job in JOBS]
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    print("| job | CPU seconds | peak in MiB |\n|---|---|---|")
    for job in [each for each in JOBS if each.__name__ in names]:
        run = subprocess.run(
            [sys.executable, __file__, "--run", job.__name__],
            env=os.environ | one_thread,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        took, peak, note = json.loads(run.stdout)
        print(f"| {job.__doc__}{note} | {took:.1f} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        measure(sys.argv[2])
    else:
        main()
