"""Sensitivity sampling side by side: skdp, the loop a user would write, and the R package diffpriv.

For each target one line per method: seconds per pair, how many pairs the rule of the method needs
for gamma = .05 and .01, seconds of sampling to these promises, and the peak memory of a process
that does it. skdp takes its default rule ("exact"), the loop that of the published sampler ("dkw").
The loop is timed on a few pairs and scaled, and so is what would take longer than half a minute
(~). Times are medians of repetitions taken in turns, on one core unless the line says otherwise.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from statistics import median
from time import perf_counter

from sklearn.svm import LinearSVC
from suite.cases import CASES, density, loop, parameters, sample, sample_pairs
from threadpoolctl import threadpool_limits

from skdp import order_statistic

GAMMAS = (0.05, 0.01)
LONG = 30.0
USED_BY = {
    "exact": "skdp, by default (19 and 99 suffice)",
    "dkw": "diffpriv, and here the loop",
    "conditional": "with confidence .95",
}


def pairs_needed(calibration):
    """Return the number of pairs for each gamma."""
    confidence = 0.95 if calibration == "conditional" else None
    return [
        order_statistic(gamma, calibration=calibration, confidence=confidence).n_pairs
        for gamma in GAMMAS
    ]


def peak_memory():
    """Return the largest memory of this process so far, in megabytes."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage says includes the parent's before the program was loaded
        lines = status.read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def alone(*arguments):
    """Run this script in a process of its own and return what it prints."""
    command = [sys.executable, __file__, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def seconds_to_promises(case, per_pair, n_repetitions):
    """Time the sampler to each gamma, or scale where that takes long; return times and marks."""
    found = []
    for gamma, n_pairs in zip(GAMMAS, pairs_needed("exact"), strict=True):
        if n_pairs * per_pair > LONG:
            found.append(f"~{n_pairs * per_pair:.3g}")
        else:
            times = [sample(case, seed, gamma=gamma) for seed in range(n_repetitions)]
            found.append(f"{median(times):.3g}")
    return found


def print_case(name, n_repetitions):
    """Print a line for each method."""
    case = CASES[name]()
    sample_pairs(case, case.n_pairs)
    peak = peak_memory()
    loop(case, 2)
    times = [
        (sample_pairs(case, case.n_pairs, seed), loop(case, case.n_loop, seed))
        for seed in range(n_repetitions)
    ]
    fast, slow = map(median, zip(*times, strict=True))
    fast, slow = fast / case.n_pairs, slow / case.n_loop
    releases = seconds_to_promises(case, fast, n_repetitions)
    exact, dkw = pairs_needed("exact"), pairs_needed("dkw")
    print(
        f"{name:34}{case.n_samples:7}  skdp{fast:10.3g}{slow / fast:9.3g}"
        f"{exact[0]:7}{releases[0]:>9}{exact[1]:8}{releases[1]:>10}{peak:9.0f}"
    )
    print(
        f"{'':41}  loop{slow:10.3g}{'':9}{dkw[0]:7}{f'~{dkw[0] * slow:.3g}':>9}"
        f"{dkw[1]:8}{f'~{dkw[1] * slow:.3g}':>10}{float(alone('--loop', name)):9.0f}"
    )
    if case.n_pairs == 50_000 and case.n_samples == 5000:
        print(f"    50,000 pairs {50_000 * fast:.3f} s; the loop on 200 {200 * slow:.3f} s")
    if name == "LinearSVC, d = 8":
        minimal = median(sample_pairs(case, 19, seed) for seed in range(n_repetitions))
        print(
            f"    gamma = .05 from the 19 pairs that suffice: {minimal:.3g} s; by the rule of "
            f"diffpriv the loop takes {dkw[0] * slow / minimal:.3g} times as long"
        )


def print_pairs():
    """Print how many pairs each calibration needs."""
    print("Pairs needed            gamma = .05   gamma = .01")
    for calibration, used_by in USED_BY.items():
        needed = pairs_needed(calibration)
        print(f"{calibration:20}{needed[0]:15}{needed[1]:14}  {used_by}")


def print_table(n_repetitions, names):
    """Print the cases, each measured in a process of its own."""
    print(
        f"\n{'target':34}{'n':>7}  {'':4}{'s/pair':>10}{'ratio':>9}{'.05:':>7}{'s':>9}"
        f"{'.01:':>8}{'s':>10}{'peak MB':>9}"
    )
    for name in CASES:
        if not names or any(part in name for part in names):
            print(alone("--case", name, "--n-repetitions", n_repetitions), end="", flush=True)


def print_cores(n_pairs):
    """Print what a second core gives, from the best of runs in turns: other load slows both."""
    case = parameters(LinearSVC(), 1000, 8, 0, 0)
    cold = sample_pairs(case, n_pairs, n_jobs=2)
    turns = [(sample_pairs(case, n_pairs), sample_pairs(case, n_pairs, n_jobs=2)) for _ in range(5)]
    one, two = (min(column) for column in zip(*turns, strict=True))
    print(
        f"\n{n_pairs} pairs of LinearSVC: one core {one:.2f} s, two {two:.2f} s, "
        f"ratio {one / two:.2f}; with workers to start {cold:.2f} s, ratio {one / cold:.2f} "
        f"(load of the machine {os.getloadavg()[0]:.1f})"
    )


def print_memory():
    """Print the peak memory of 500 and of 50,000 pairs, each in a process of its own."""
    few, many = (float(alone("--peak", n_pairs)) for n_pairs in (500, 50_000))
    print(f"Peak memory, KDE: 500 pairs {few:.0f} MB, 50,000 {many:.0f}, ratio {many / few:.3f}")


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
    """Print everything, or what one process is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="only targets whose name holds one of these")
    parser.add_argument("--n-repetitions", type=int, default=3)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--loop", help=argparse.SUPPRESS)
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # of fits that need not converge here
        if options.peak:
            sample_pairs(density(), options.peak)
            print(peak_memory())
        elif options.loop:
            loop(CASES[options.loop](), 2)
            print(peak_memory())
        elif options.case:
            print_case(options.case, options.n_repetitions)
        else:
            print_pairs()
            print_table(options.n_repetitions, options.names)
            if not options.names:
                print_cores(1500)
                print_memory()
                print_import()
                print_diffpriv()


if __name__ == "__main__":
    main()
