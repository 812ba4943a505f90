"""How near one record comes to the bounds known on paper, and that none exceeds them.

For statistics that are means: 10^5 pairs of extreme records, and hill climbing from pairs, for each
known case. For minimizers, datasets of a few records, all of which are moved uphill, as what
one moves depends on the others. For densities, records on and between lattice points. Printed are
the shares of the bounds that were reached; one above 1 would show a wrong bound.

Usage: python benchmarks/known_bounds.py [--pairs 100000] [--starts 20]
"""

import argparse
import sys
import warnings

import numpy as np
from known_cases import CASES, climb, extreme_records, norms, target_of, terms
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from skdp import BernsteinTransformer, ClipNorm
from skdp.estimators.known import KnownTarget
from skdp.known_density import KERNELS, KnownDensityTarget

MINIMIZERS = {
    "LogisticRegression(fit_intercept=False)": LogisticRegression(fit_intercept=False),
    "LinearSVC(loss='hinge')": LinearSVC(loss="hinge"),
    "LinearSVC()": LinearSVC(),
}


def of_means(options):
    """Return the share reached in both norms, case by case."""
    for clips, estimator, n_classes, *_ in CASES:
        target, shares = target_of(clips, estimator, n_classes), []
        for order in (1, 2):
            rng = np.random.default_rng(order)
            reached = climb(target, order, rng, n_classes, n_starts=1000, n_steps=100)
            n_records = options.pairs // 20
            X, y = extreme_records(rng, n_records, n_classes)
            added = terms(target, X, y)
            for shift in range(1, 21):
                reached = max(reached, norms(added - np.roll(added, shift, axis=0), order).max())
            shares.append(reached / target.statistic.bound(order, 1))
        yield f"{estimator!r}".replace("\n", ""), describe(clips), shares


def describe(clips):
    return ", ".join(map(repr, clips)) or "none"


def of_minimizers(options):
    """Return the largest share of the L2 bound over datasets of up to eight records."""
    rng = np.random.default_rng(0)
    for name, estimator in MINIMIZERS.items():
        for C in (1e-3, 0.1, 1.0, 10.0):
            reached = max(
                climb_datasets(estimator.set_params(C=C), n_samples, rng, options.starts)
                for n_samples in (1, 2, 4, 8)
            )
            yield name, f"C = {C:g}", [reached]


def climb_datasets(estimator, n_samples, rng, n_starts, n_features=2, n_steps=60):
    """Move all records of two neighbors uphill."""
    pipeline = make_pipeline(ClipNorm(), estimator).fit(np.eye(n_features), [0, 1])
    target = KnownTarget(pipeline, pipeline, n_samples)
    bound, best = target.bound(2), 0.0
    rows = np.arange(n_samples), np.append(np.arange(n_samples - 1), n_samples)

    def height(X, y):
        first, second = (target(X[each], y[each], seed=0) for each in rows)
        return np.linalg.norm(first - second) / bound

    for _ in range(n_starts):
        X = rng.normal(size=(n_samples + 1, n_features)) * rng.choice([1.0, 5.0])
        y = rng.integers(2, size=len(X))
        here = height(X, y)
        for size in np.geomspace(1, 1e-3, n_steps):
            tried = X + size * rng.normal(size=X.shape) * (rng.random(X.shape) < 0.5)
            turned = np.where(rng.random(len(y)) < 0.1, 1 - y, y)
            there = height(tried, turned)
            if there > here:
                X, y, here = tried, turned, there
        best = max(best, here)
    return best


def of_densities(options):
    """Return the share reached in both norms on a lattice of 9 points a side."""
    rng = np.random.default_rng(0)
    bernstein = BernsteinTransformer(8, feature_range=(0, 1))
    for kernel in KERNELS:
        for d, bandwidth in ((1, 0.03), (1, 0.2), (2, 0.1)):
            estimator = KernelDensity(bandwidth=bandwidth, kernel=kernel).fit(np.zeros((1, d)))
            target = KnownDensityTarget(estimator, bernstein, estimator, n_samples=1)
            X = np.vstack([rng.integers(0, 9, size=(200, d)) / 8, rng.uniform(size=(200, d))])
            values = np.array([target(x[None], seed=0) for x in X])
            shares = [
                max(np.linalg.norm(values - each, ord=order, axis=1).max() for each in values)
                / target.bound(order)
                for order in (1, 2)
            ]
            yield f"KernelDensity({kernel!r})", f"d = {d}, bandwidth {bandwidth}", shares


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=100_000, help="of a mean, at random")
    parser.add_argument("--starts", type=int, default=20, help="of a minimizer, per size")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # scikit-learn's, of fits to two records
    highest = 0.0
    with threadpool_limits(limits=1):
        for part in (of_means, of_minimizers, of_densities):
            print(f"\n| estimator | {part.__name__[3:]} | shares of the bounds |\n|---|---|---|")
            for name, what, shares in part(options):
                print(f"| `{name}` | `{what}` | {' '.join(f'{share:.3f}' for share in shares)} |")
                highest = max(highest, *shares)
    print(f"\nhighest share: {highest:.6f}")
    return int(highest > 1)


if __name__ == "__main__":
    sys.exit(main())
