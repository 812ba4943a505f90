"""How many spends a second a ledger takes, from one process and from several at once.

A spend ends when its row is on the disk, so the disk sets the pace: what it does alone, a page
written and synced, is printed beside. A spend that is refused writes nothing.

Usage: python benchmarks/ledger.py [--processes 1 8] [--spends 2000] [--folder .]
"""

import argparse
import multiprocessing
import os
import tempfile
import time

from skdp import BudgetExceededError, PrivacyGuarantee
from skdp.accounting import PrivacyAccountant

EACH = PrivacyGuarantee(epsilon=0.1)


def spend(path, epsilon, n_spends, barrier):
    """Return how many spends were admitted, and when the first and the last of them ended."""
    accountant = PrivacyAccountant(path, epsilon=epsilon)
    admitted, end = 0, 0.0
    barrier.wait()
    start = time.time()
    for _ in range(n_spends):
        try:
            accountant.spend(EACH)
        except BudgetExceededError:
            continue
        admitted, end = admitted + 1, time.time()
    return admitted, start, end, time.time()


def race(folder, n_processes, n_spends):
    """Return spends and attempts a second, where a quarter of the attempts is within the limit."""
    path = os.path.join(folder, f"{n_processes}.db")
    n_allowed = n_processes * n_spends // 4
    PrivacyAccountant(path, epsilon=n_allowed / 10)
    with multiprocessing.Manager() as manager, multiprocessing.Pool(n_processes) as pool:
        job = (path, n_allowed / 10, n_spends, manager.Barrier(n_processes))
        found = pool.starmap(spend, [job] * n_processes, chunksize=1)
    admitted, starts, ends, stops = zip(*found, strict=True)
    assert sum(admitted) == n_allowed == PrivacyAccountant.open(path).total().n_releases
    start = min(starts)
    return n_allowed / (max(ends) - start), n_processes * n_spends / (max(stops) - start)


def syncs(folder, n_pages=300):
    """Return how many pages a second the disk writes, one after another."""
    with open(os.path.join(folder, "page"), "wb", buffering=0) as file:
        start = time.time()
        for _ in range(n_pages):
            file.write(bytes(4096))
            os.fsync(file.fileno())
        return n_pages / (time.time() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--spends", type=int, default=2000)
    parser.add_argument("--folder", default=".")
    options = parser.parse_args()
    print("| processes | spends a second | attempts a second | pages synced a second |")
    print("|---|---|---|---|")
    for n_processes in options.processes:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            spends, attempts = race(folder, n_processes, options.spends)
            print(f"| {n_processes} | {spends:.0f} | {attempts:.0f} | {syncs(folder):.0f} |")


if __name__ == "__main__":
    main()
