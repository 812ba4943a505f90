"""How the cost of a private fit grows with records, features and pairs, in exact fits.

Each job runs alone in a process of its own with one thread: seconds of a processor for one private
fit over those of one exact fit to the same records, and the peak memory in MiB.
Then the pairs of one estimate are sampled by two loky workers and by a Dask cluster of two
processes, in turns: their norms are the same bits.

Usage: python benchmarks/scale.py [--figure FILE] [--small]
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import time
from contextlib import ExitStack
from statistics import median

import joblib
import matplotlib.pyplot as plt
import numpy as np
from dask.distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from skdp import LaplaceMechanism, PrivateEstimator, SampleAndAggregate, SensitivitySampler

MODELS = {"logistic regression": LogisticRegression(), "naive Bayes": GaussianNB()}
ROUTES = ("sampled", "aggregate")
BASE = {"n": 10_000, "d": 10, "pairs": 59}
LABELS = {"n": "records", "d": "features", "pairs": "calibrating pairs"}
GROWTH = {"n": (10_000, 100_000, 1_000_000), "d": (10, 30, 100), "pairs": (59, 199, 599)}


def records(n_samples, rng, d=10):
    """Draw records of two classes."""
    X = rng.standard_normal((n_samples, d))
    return X, (X[:, 0] + X[:, 1] + rng.standard_normal(n_samples) > 0).astype(int)


class Oracle:
    """Public records of the same law."""

    independent_records = True

    def __init__(self, d):
        self.d = d

    def __call__(self, n_samples, rng):
        return records(n_samples, rng, self.d)


def measure(name, route, n, d, pairs):
    """Return the cost of a private fit in exact fits, the peak memory in MiB, and seconds."""
    X, y = records(n, np.random.default_rng(0), d)
    model, oracle = MODELS[name], Oracle(d)
    sampler = SensitivitySampler(oracle, n_pairs=pairs, random_state=0)
    private = PrivateEstimator(
        model,
        mechanism=LaplaceMechanism(1.0),
        sensitivity=sampler if route == "sampled" else SampleAndAggregate(random_state=0),
        prior=None if route == "sampled" else oracle,
        classes=[0, 1],
    )

    def seconds(estimator):
        start = time.process_time()
        clone(estimator).fit(X, y)
        return time.process_time() - start

    seconds(model)
    exact = median(seconds(model) for _ in range(5))
    taken = seconds(private)
    return taken / exact, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, taken


def apart(*job):
    """Run a job in a process of its own."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    command = [sys.executable, "-W", "ignore", __file__, "--job", json.dumps(job)]
    run = subprocess.run(command, env=os.environ | one_thread, stdout=subprocess.PIPE, check=True)
    return json.loads(run.stdout)


def sampled_by(backend, n_samples, pairs):
    """Return the seconds of sampling by two workers, and the norms."""
    sampler = SensitivitySampler(
        Oracle(10), gamma=None, n_pairs=pairs, random_state=0, n_jobs=None if backend is None else 2
    )
    model = PrivateEstimator(
        MODELS["logistic regression"],
        mechanism=LaplaceMechanism(1.0, code=None),
        sensitivity=clone(sampler).set_params(n_pairs=1, n_jobs=None),
        classes=[0, 1],
    )
    target = model.plan(n_samples).target
    with ExitStack() as stack:
        if backend == "dask":
            cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
            stack.enter_context(Client(stack.enter_context(cluster)))
        if backend is not None:
            stack.enter_context(joblib.parallel_config(backend=backend))
            joblib.Parallel(n_jobs=2)(joblib.delayed(time.sleep)(0.5) for _ in range(4))  # start
        start = time.perf_counter()
        norms = sampler.sample(target, n_samples, "l1").norms
        return time.perf_counter() - start, norms.tolist()


def draw(growth, file):
    """Draw the costs, a panel for each thing that grows."""
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.8), sharey=True, layout="constrained")
    for ax, (what, lines) in zip(axes, growth.items(), strict=True):
        for (name, route), costs in lines.items():
            style = {"marker": "o", "linestyle": "-" if route == "sampled" else "--"}
            color = f"C{list(MODELS).index(name)}"
            ax.plot(GROWTH[what], costs, label=f"{name}, {route}", color=color, **style)
        ax.set(xscale="log", yscale="log", xlabel=LABELS[what], xticks=GROWTH[what])
        ax.set_xticklabels([f"{each:,}" for each in GROWTH[what]])
        ax.minorticks_off()
    axes[0].set_ylabel("cost of a private fit, in exact fits")
    lines, names = axes[0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=4, frameon=False)
    figure.savefig(file, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--figure", help="a file for the figure")
    parser.add_argument("--small", action="store_true", help="few records and pairs")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        kind, *job = options.job
        print(json.dumps((measure if kind == "fit" else sampled_by)(*job)))
        return
    if options.small:
        GROWTH.clear()  # of one size, nothing grows
        GROWTH["n"] = (1000,)
        BASE.update(n=1000, d=5, pairs=19)
    growth = {}
    print("| grows | model | route | exact fits | peak in MiB | seconds |")
    print("|---|---|---|---|---|---|")
    for what, values in GROWTH.items():
        growth[what] = {}
        for name, route in itertools.product(MODELS, ROUTES):
            if (what, route) == ("pairs", "aggregate"):
                continue
            jobs = [BASE | {what: value} for value in values]
            results = [apart("fit", name, route, *job.values()) for job in jobs]
            growth[what][name, route] = [cost for cost, _, _ in results]
            columns = [
                "/".join(f"{each:.3g}" for each in one) for one in zip(*results, strict=True)
            ]
            line = [f"{what} {'/'.join(map(str, values))}", name, route, *columns]
            print("| " + " | ".join(line) + " |", flush=True)
    if options.figure:
        draw(growth, options.figure)
    size = (500, 19) if options.small else (20_000, 599)
    runs = {each: apart("sample", each, *size) for each in (None, "loky", "dask")}
    if any(norms != runs[None][1] for _, norms in runs.values()):
        raise SystemExit("The norms depend on who computes them.")
    one, loky, dask = (seconds for seconds, _ in runs.values())
    print(f"Two workers, times as fast as one core: loky {one / loky:.2f}, Dask {one / dask:.2f}.")
    print("The norms are the same bits.")


if __name__ == "__main__":
    main()
