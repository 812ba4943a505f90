"""Sensitivity sampling side by side: skdp, the loop a user would write, and the R package diffpriv.

For each target one table row per method: how many pairs the calibrations need for gamma = .05 and
.01, seconds per pair, seconds to a release at gamma = .05 by the method's own rule, and the peak
memory of the process. The loop and diffpriv use the rule of the published sampler ("dkw"); the
loop is timed on a few pairs and scaled to the number it needs. Times are medians of repetitions
taken in turns. Everything runs on one core unless the line says otherwise.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import expon
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from skdp import (
    AdditiveTarget,
    LaplaceMechanism,
    PublicDataOracle,
    SensitivitySampler,
    order_statistic,
)
from skdp._data import as_dataset, neighboring_pair
from skdp.sensitivity.adapters import as_oracle
from skdp.targets.parameters import ParameterTarget

NORM = LaplaceMechanism(epsilon=1.0, basis="identity").norm
LATTICE = np.linspace(0, 1, 11)[:, None]
BANDWIDTH = 0.05
USED_BY = {
    "exact": "skdp, by default (19 and 99 suffice)",
    "dkw": "diffpriv, and here the loop",
    "conditional": "with confidence .95",
}


@dataclass
class Case:
    """A target, and how a user without this library would evaluate it."""

    name: str
    n_samples: int
    oracle: Any
    target: Any
    evaluate: Any
    n_timed: int
    n_loop: int


def mixture(n_samples, rng):
    """Draw from .4 N(.5, var .02) + .6 N(.75, var .005)."""
    first = rng.random((n_samples, 1)) < 0.4
    deviations = rng.standard_normal((n_samples, 1))
    return np.where(first, 0.5 + 0.02**0.5 * deviations, 0.75 + 0.005**0.5 * deviations)


mixture.independent_records = True


def kernel(X):
    """Evaluate the kernel of each record on the lattice."""
    deviations = (X - LATTICE.T) / BANDWIDTH
    return np.exp(-0.5 * deviations * deviations) / (BANDWIDTH * np.sqrt(2 * np.pi))


def refitted_density(X):
    """Evaluate a kernel density estimate on the lattice."""
    return np.exp(KernelDensity(bandwidth=BANDWIDTH).fit(X).score_samples(LATTICE))


def estimator_case(estimator, n_samples, n_features, n_timed, n_loop):
    """Make a case of an estimator, with its registered attributes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * n_samples, n_features)) * np.linspace(1, 2, n_features)
    scores = X @ rng.standard_normal(n_features) + rng.standard_normal(2 * n_samples)
    response = (scores > 0).astype(int) if is_classifier(estimator) else scores
    dataset = (X,) if isinstance(estimator, PCA) else (X, response)
    target = ParameterTarget(estimator, "auto", clone(estimator).fit(*dataset))
    name = f"{type(estimator).__name__}, d = {n_features}"

    def evaluate(*dataset):
        return target.flatten(clone(estimator).fit(*dataset))

    oracle = PublicDataOracle(*dataset)
    return Case(name, n_samples, oracle, target, evaluate, n_timed, n_loop)


def cases():
    """Yield the cases one by one: they hold tables."""
    exponential = as_oracle(expon())
    yield Case("mean", 100, exponential, AdditiveTarget(np.asarray), np.mean, 50_000, 400)
    yield Case("mean", 1000, exponential, AdditiveTarget(np.asarray), np.mean, 50_000, 400)
    density = AdditiveTarget(kernel)
    yield Case("KDE, k = 10", 5000, mixture, density, refitted_density, 50_000, 20)
    yield estimator_case(GaussianNB(), 1000, 8, 2000, 40)
    yield estimator_case(BernoulliNB(), 1000, 8, 2000, 40)
    for estimator in (Ridge(), LinearRegression(), LinearDiscriminantAnalysis(), PCA()):
        yield estimator_case(estimator, 1000, 8, 1000, 40)
    yield estimator_case(LinearSVC(), 1000, 8, 40, 40)
    yield estimator_case(LinearSVC(), 1000, 64, 8, 8)
    yield estimator_case(LogisticRegression(), 1000, 20, 20, 20)
    yield estimator_case(LogisticRegression(), 100_000, 20, 3, 3)


def sample(case, n_pairs, seed=0, **options):
    """Run the sampler and return its seconds."""
    sampler = SensitivitySampler(
        case.oracle, gamma=None, n_pairs=n_pairs, random_state=seed, **options
    )
    start = perf_counter()
    estimate = sampler.sample(case.target, case.n_samples, NORM)
    seconds = perf_counter() - start
    if sum(estimate.failures.values()) > n_pairs // 10:
        raise RuntimeError(f"Failed pairs would be cheap: {estimate.failures}")
    return seconds


def loop(case, n_pairs, seed=0):
    """Draw, fit twice, take the norm, sort: what a user would write; return its seconds."""
    rng = np.random.default_rng(seed)
    start = perf_counter()
    norms = []
    for _ in range(n_pairs):
        dataset, neighbor = neighboring_pair(as_dataset(case.oracle(case.n_samples + 1, rng)))
        difference = np.ravel(case.evaluate(*dataset) - case.evaluate(*neighbor))
        norms.append(np.abs(difference).sum())
    norms.sort()
    return perf_counter() - start


def measure(case, n_repetitions):
    """Return the seconds of the sampler, of the loop, and the time to a promise."""
    sample(case, min(case.n_timed, 50))
    loop(case, 2)
    times = [
        (sample(case, case.n_timed, seed), loop(case, case.n_loop, seed), sample(case, 199, seed))
        for seed in range(n_repetitions)
    ]
    return [median(column) for column in zip(*times, strict=True)]


def peak_memory():
    """Return the largest memory of this process so far, in megabytes."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says includes the parent's before the program was loaded
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def print_pairs():
    """Print how many pairs each calibration needs."""
    print("Pairs needed            gamma = .05   gamma = .01")
    for calibration in ("exact", "dkw", "conditional"):
        confidence = 0.95 if calibration == "conditional" else None
        needed = [
            order_statistic(gamma, calibration=calibration, confidence=confidence).n_pairs
            for gamma in (0.05, 0.01)
        ]
        print(f"{calibration:20}{needed[0]:15}{needed[1]:14}  {USED_BY[calibration]}")


def print_table(n_repetitions, names):
    """Print a line for each case."""
    print(
        f"\n{'target':32}{'n':>8}{'skdp, s/pair':>14}{'loop, s/pair':>14}{'ratio':>8}"
        f"{'199 skdp, s':>13}{'1305 loop, s':>14}{'ratio':>8}{'peak MB':>9}"
    )
    for case in cases():
        if names and not any(name in case.name for name in names):
            continue
        fast, slow, release = measure(case, n_repetitions)
        fast, slow = fast / case.n_timed, slow / case.n_loop
        print(
            f"{case.name:32}{case.n_samples:8}{fast:14.3g}{slow:14.3g}{slow / fast:8.3g}"
            f"{release:13.3g}{1305 * slow:14.3g}{1305 * slow / release:8.3g}{peak_memory():9.0f}",
            flush=True,
        )
        if case.name.startswith("KDE"):
            print(
                f"    50,000 pairs {case.n_timed * fast:.3f} s; the loop on 200 {200 * slow:.3f} s"
            )
        if case.name == "LinearSVC, d = 8":
            minimal = median(sample(case, 19, seed) for seed in range(n_repetitions))
            print(
                f"    the 19 pairs that suffice for gamma = .05: {minimal:.3g} s, "
                f"ratio {1305 * slow / minimal:.3g}"
            )


def print_cores(n_pairs):
    """Print what a second core gives, from the best of runs in turns: other load slows both."""
    case = estimator_case(LinearSVC(), 1000, 8, 0, 0)
    cold = sample(case, n_pairs, n_jobs=2)
    turns = [(sample(case, n_pairs), sample(case, n_pairs, n_jobs=2)) for _ in range(5)]
    one, two = (min(column) for column in zip(*turns, strict=True))
    print(
        f"\n{n_pairs} pairs of LinearSVC: one core {one:.2f} s, two {two:.2f} s, "
        f"ratio {one / two:.2f}; with workers to start {cold:.2f} s, ratio {one / cold:.2f} "
        f"(load of the machine {os.getloadavg()[0]:.1f})"
    )


def print_memory():
    """Print the peak memory of 500 and of 50,000 pairs, each in a process of its own."""
    peaks = []
    for n_pairs in (500, 50_000):
        command = [sys.executable, __file__, "--peak", str(n_pairs)]
        result = subprocess.run(command, capture_output=True, text=True, check=True)
        peaks.append(float(result.stdout))
    ratio = peaks[1] / peaks[0]
    print(
        f"Peak memory, KDE: 500 pairs {peaks[0]:.0f} MB, 50,000 {peaks[1]:.0f}, ratio {ratio:.3f}"
    )


def print_import():
    """Print what importing skdp adds to importing the base of scikit-learn."""
    times = {"sklearn.base": [], "sklearn.base, skdp": []}
    for _ in range(5):
        for modules, seconds in times.items():
            start = perf_counter()
            subprocess.run([sys.executable, "-c", f"import {modules}"], check=True)
            seconds.append(perf_counter() - start)
    base, both = (min(seconds) for seconds in times.values())
    print(f"Import: sklearn.base {base:.2f} s, with skdp {both:.2f} s, ratio {both / base:.2f}")


def print_diffpriv():
    """Run the R package on the KDE, where it can be run."""
    script = "library(diffpriv)"
    rscript = shutil.which("Rscript")
    if rscript is None:
        print("diffpriv: Rscript is not installed, so it is not run.")
        return
    if subprocess.run([rscript, "-e", script], capture_output=True, check=False).returncode:
        print("diffpriv: Rscript is here, the package is not, so it is not run.")
        return
    script += """
    n <- 5000; at <- seq(0, 1, by = .1); h <- .05
    P <- function(n) { a <- runif(n) < .4
      ifelse(a, rnorm(n, .5, sqrt(.02)), rnorm(n, .75, sqrt(.005))) }
    f <- function(X) sapply(at, function(p) mean(dnorm(p, X, h)))
    m <- DPMechLaplace(target = f)
    t <- system.time(sensitivitySampler(m, oracle = P, n = n, m = 200))["elapsed"]
    cat(t / 200)
    """
    result = subprocess.run([rscript, "-e", script], capture_output=True, text=True, check=True)
    print(f"diffpriv: KDE, n = 5000, {float(result.stdout.split()[-1]):.3g} s/pair, 1305 pairs")


def main():
    """Print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only targets whose name holds one of these")
    parser.add_argument("--n-repetitions", type=int, default=3)
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        sample(Case("KDE", 5000, mixture, AdditiveTarget(kernel), None, 0, 0), options.peak)
        print(peak_memory())
        return
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        print_pairs()
        print_table(options.n_repetitions, options.names)
        if not options.names:
            print_cores(1500)
    if not options.names:
        print_memory()
        print_import()
        print_diffpriv()


if __name__ == "__main__":
    main()
