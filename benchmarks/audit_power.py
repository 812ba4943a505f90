"""How often the audits catch a broken mechanism, and how often they accuse an honest one.

Run ``python benchmarks/audit_power.py`` for power and small claims (about a minute), or with the
names of the parts: ``power``, ``small-claims``, ``validity`` (about twenty minutes), ``shipped`` (a
few minutes). ``--runs`` and ``--repetitions`` make them shorter.

- *power*: the label test on the seventeen broken mechanisms, with 20,000 search runs per dataset
  and 200,000 final runs, at alpha = .05. The settings of the search were chosen on these seeds;
  ``--first-seed`` gives others.
- *validity*: how often the bound exceeds the true epsilon on the ten honest mechanisms, for the
  label and pair tests with a fifth of these sizes (they are exact at any size) and for the local
  method with the same sizes.
- *small-claims*: mechanisms that claim epsilon = .1, with published figures of DP-Sniper (Bichsel,
  Steffen, Bogunovic and Vechev, "DP-Sniper: Black-Box Discovery of Differential Privacy
  Violations using Classifiers", IEEE S&P 2021) beside ours. Theirs come from 2e8 runs per
  mechanism at 90 % confidence, ours from 2e5 final runs and 4e4 search runs at 90 %, and with
  ``--more 25`` from as many times of both.
- *shipped*: every mechanism of the library in every kind of coordinates, on two values whose
  difference is the sensitivity, with its noise and with half of it, at alpha = 1e-4.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from floating_point import BASES, values_apart
from gallery import (
    Case,
    LaplaceNoise,
    MaxOfNoisy,
    SparseVector,
    TextbookLaplace,
    broken_cases,
    honest_cases,
)
from joblib import Parallel, delayed

from skdp import GaussianMechanism, L2LaplaceMechanism, LaplaceMechanism
from skdp.audit import audit_epsilon, audit_release

SLOW = {"histogram", "sparse vector"}
N_SEARCH, N_FINAL = 20_000, 100_000
METHODS = {"label": 5, "pair": 5, "local": 1}  # by how much the sizes are divided for validity


def bounds(case: Case, method: str, seeds, alpha: float = 0.05, divisor: float = 1) -> np.ndarray:
    """Audit a case once per seed and return the lower bounds."""
    return np.array(
        [
            audit_epsilon(
                case.mechanism, [case.pair], claimed_epsilon=case.claimed_epsilon,
                n_search=int(N_SEARCH / divisor), n_final=int(N_FINAL / divisor), alpha=alpha,
                method=method, rng=seed,
            ).lower_bound
            for seed in seeds
        ]
    )  # fmt: skip


def power(runs: int, first_seed: int) -> None:
    """Print how often each broken mechanism is caught."""
    print(
        f"\nPower: label test, {runs} runs, n_search={N_SEARCH}, n_final={2 * N_FINAL}, alpha=.05"
    )
    print(f"{'mechanism':32s} claim   true  caught   mean    min  seconds")
    for i, case in enumerate(broken_cases()):
        start = time.perf_counter()
        lower = bounds(case, "label", first_seed + 1000 * i + np.arange(runs))
        seconds = (time.perf_counter() - start) / runs
        caught = int((lower > case.claimed_epsilon).sum())
        print(
            f"{case.name:32s} {case.claimed_epsilon:5g} {case.true_epsilon:6.4g} "
            f"{caught:3d}/{runs:<3d} {lower.mean():6.3f} {lower.min():6.3f} {seconds:8.3f}",
            flush=True,
        )


def validity(repetitions: int, n_jobs: int) -> None:
    """Print how often the bound exceeds the truth on honest mechanisms, in percent."""
    print(f"\nValidity: bounds above the truth, in percent, alpha=.05, {repetitions} repetitions")
    print(f"(half as many for {', '.join(sorted(SLOW))}); three standard errors allow ", end="")
    limits = [5 + 300 * np.sqrt(0.05 * 0.95 / r) for r in (repetitions, repetitions // 2)]
    print(f"{limits[0]:.2f} ({limits[1]:.2f}); local is approximate, 8 is tolerated")
    print(f"{'mechanism':24s} true    label   mean    pair   mean   local   mean")
    for i, case in enumerate(honest_cases()):
        print(f"{case.name:24s} {case.true_epsilon:6.4f}", end="", flush=True)
        count = repetitions // 2 if case.name in SLOW else repetitions
        for j, (method, divisor) in enumerate(METHODS.items()):
            if method == "local" and case.name == "histogram":
                print("       -      -", end="")
                continue
            # Own seeds for every cell: the same draws would make its errors move together.
            seeds = 10**7 + 10**5 * (3 * i + j) + np.arange(count)
            parts = Parallel(n_jobs=n_jobs)(
                delayed(bounds)(case, method, chunk, divisor=divisor)
                for chunk in np.array_split(seeds, 20)
            )
            lower = np.concatenate(parts)
            above = 100 * np.mean(lower > case.true_epsilon + 1e-12)
            print(f" {above:7.2f} {lower.mean():6.3f}", end="", flush=True)
        print()


def small_claims(runs: int, more: float) -> None:
    """Print mean bounds beside the published ones, at a thousandth of the runs times `more`."""
    ones, zeros = (1,) * 10, (0,) * 10
    half = (2,) * 5 + (0,) * 5
    table = [
        (Case("Laplace", LaplaceNoise(10.0), (0.0, 1.0), 0.1), 0.098),
        (
            Case("histogram, scale inverted", LaplaceNoise(0.1), ((1, 0, 0, 0, 0), (0,) * 5), 0.1),
            4.60,
        ),
        (Case("max value of 5", MaxOfNoisy("laplace", 20.0), (zeros[:5], ones[:5]), 0.1), 0.249),
        (Case("sparse vector, unscaled", SparseVector(40.0, 40 / 3), (ones, half), 0.1), 0.170),
        (
            Case(
                "sparse vector, no cutoff", SparseVector(20.0, 20.0, cutoff=None), (ones, half), 0.1
            ),
            0.270,
        ),
        (Case("textbook Laplace", TextbookLaplace(10.0), (0.0, 1.0), 0.1), 0.252),
    ]
    n_final = 2 * more * N_FINAL
    print(f"\nClaims of .1: label and pair test, {runs} runs, {n_final:,.0f} final runs, 90 %;")
    print("DP-Sniper: published, 200,000,000 runs, 90 %")
    print(f"{'mechanism':32s}   true   label    pair  DP-Sniper")
    for i, (case, published) in enumerate(table):
        seeds = 10**6 + 1000 * i + np.arange(runs)
        means = [
            bounds(case, method, seeds, alpha=0.1, divisor=1 / more).mean()
            for method in ("label", "pair")
        ]
        print(
            f"{case.name:32s} {case.true_epsilon:6.4g} {means[0]:7.3f} {means[1]:7.3f} "
            f"{published:10.3f}",
            flush=True,
        )


def shipped() -> None:
    """Print the bounds of the library's mechanisms, as they are and with half the noise."""
    print("\nShipped mechanisms, claims of 2: bound, and with half the noise; alpha=1e-4")
    mechanisms = (
        (LaplaceMechanism, {}),
        (GaussianMechanism, {"delta": 1e-3}),
        (L2LaplaceMechanism, {}),
    )
    for make, options in mechanisms:
        for name, coordinates in BASES.items():
            mechanism = make(2.0, **options, **coordinates)
            x, x_prime, plan = values_apart(mechanism)
            size = plan.sensitivity.value
            n_final = 20_000 if options else 4000  # a delta hides what few runs show
            found = [
                audit_release(
                    x, x_prime, plan.mechanism, share * size, n_search=1000, n_final=n_final,
                    alpha=1e-4, rng=0,
                )
                for share in (1.0, 0.5)
            ]  # fmt: skip
            verdicts = [f"{each.lower_bound:.2f} {each.violated!s:5s}" for each in found]
            print(f"{make.__name__:20s} {name:10s}", *verdicts, flush=True)


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", default=["power", "small-claims"])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--repetitions", type=int, default=2000)
    parser.add_argument("--more", type=float, default=1.0)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    if "power" in options.parts:
        power(options.runs, options.first_seed)
    if "small-claims" in options.parts:
        small_claims(options.runs, options.more)
    if "shipped" in options.parts:
        shipped()
    if "validity" in options.parts:
        validity(options.repetitions, options.n_jobs)


if __name__ == "__main__":
    main()
