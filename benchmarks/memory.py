"""What sampling holds in memory: per table, and per pair.

Each line is a run in a process of its own, with its workers. The first table compares a public
table of 100,000 records with one of 100: the difference of the peaks, in sizes of the large table,
is how many copies of it a process held at its worst moment, pages shared with others included. The
second compares 500 pairs with 50,000. Linux only: the peak is the VmHWM of /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import joblib
import numpy as np
from scipy import sparse

from skdp import PublicDataOracle, SensitivitySampler
from skdp.sensitivity import execution

N_RECORDS, N_FEATURES = 100_000, 50
MEGABYTE = 2**20


def as_pandas(X):
    """Return a frame of pandas."""
    import pandas as pd

    return pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])


def as_polars(X):
    """Return a frame of polars."""
    import polars as pl

    return pl.DataFrame({f"x{j}": column for j, column in enumerate(X.T)})


TABLES = {
    "array": np.asarray,
    "pandas": as_pandas,
    "sparse": sparse.csr_array,
    "polars": as_polars,
}


def peak_memory():
    """Return the largest memory of this process so far, in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def peak_of_worker():
    """Return who this is, and its peak; slow enough for every worker to be asked."""
    time.sleep(0.05)
    return os.getpid(), peak_memory()


def read(X, pause):
    """Copy nothing; slow enough, where there are few pairs, that no worker does all."""
    time.sleep(pause)
    return X[0, 0] if isinstance(X, np.ndarray) else X.shape[0]


def run(kind, n_records, n_samples, n_pairs, n_jobs, pause=0.0):
    """Sample, and return the peaks of the parent and of the workers."""
    execution.STARTUP = 0.0
    X = np.random.default_rng(0).standard_normal((n_records, N_FEATURES))
    oracle = PublicDataOracle(TABLES[kind](X))
    del X
    sampler = SensitivitySampler(oracle, gamma=None, n_pairs=n_pairs, n_jobs=n_jobs, random_state=0)
    sampler.sample(partial(read, pause=pause), n_samples, "l1")
    peaks = [peak_memory()]
    if n_jobs > 1:
        asked = joblib.Parallel(n_jobs)(joblib.delayed(peak_of_worker)() for _ in range(20))
        peaks += dict(asked).values()
    return peaks


def in_new_process(*options):
    """Return what `run` does, in a process of its own."""
    command = [sys.executable, __file__, "--run", json.dumps(options)]
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(result.stdout)


def show(peaks):
    """Return peaks as text: of the parent, and of the workers."""
    return f"{peaks[0]:10.2f}   " + ", ".join(f"{peak:.2f}" for peak in sorted(peaks[1:]))


def print_copies(n_pairs):
    """Print how many copies of the table each process held."""
    size = N_RECORDS * N_FEATURES * 8 / MEGABYTE
    print(f"Table of {N_RECORDS} x {N_FEATURES}, {size:.0f} MB, n_jobs = 2: peaks, in tables")
    print(f"{'table':10}{'n':>8}{'parent':>10}   workers")
    for kind, n_samples in [*((kind, 1000) for kind in TABLES), ("array", N_RECORDS)]:
        small, large = (
            in_new_process(kind, n_records, n, n_pairs, 2, 0.002)
            for n_records, n in [(100, 1), (N_RECORDS, n_samples)]
        )
        base = [small[0], *[min(small[1:])] * (len(large) - 1)]
        copies = [(peak - least) / size for peak, least in zip(large, base, strict=True)]
        print(f"{kind:10}{n_samples:8}{show(copies)}", flush=True)


def print_pairs():
    """Print what more pairs take."""
    print(f"\nPairs, n = 100, peaks in MB\n{'pairs':>10}{'n_jobs':>8}{'parent':>10}   workers")
    for n_jobs in (1, 2):
        few, many = (in_new_process("array", 1000, 100, n, n_jobs) for n in (500, 50_000))
        for n_pairs, peaks in [(500, few), (50_000, many)]:
            print(f"{n_pairs:10}{n_jobs:8}{show(peaks)}")
        ratios = [after / before for after, before in zip(sorted(many), sorted(few), strict=True)]
        print(f"{'largest ratio':>18}{max(ratios):10.2f}", flush=True)


def main():
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-pairs", type=int, default=200, help="pairs per table")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.run:
        print(json.dumps(run(*json.loads(options.run))))
        return
    print_copies(options.n_pairs)
    print_pairs()


if __name__ == "__main__":
    main()
