"""What the sampler adds to the fits themselves.

Prints the cost of a sampled pair in units of two bare ``clone(...).fit(...)`` of the same estimator
on the same datasets, on one thread. The two are timed in turns, in processor time, and the
median of the ratios is taken, so that other load on the machine changes little.
"""

from __future__ import annotations

import argparse
import warnings
from statistics import median
from time import process_time

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from skdp import PublicDataOracle, SensitivitySampler
from skdp.core.dataset import as_dataset, neighboring_pair
from skdp.estimators.parameters import ParameterTarget

ESTIMATORS = {"LinearSVC": LinearSVC(), "LogisticRegression": LogisticRegression()}


def time_sampler(sampler, target, n_samples):
    """Return the seconds per pair of one run of the sampler."""
    start = process_time()
    estimate = sampler.sample(target, n_samples, "l1")
    seconds = process_time() - start
    if estimate.failures:
        raise RuntimeError(f"Failed pairs would be cheap: {estimate.failures}")
    return seconds / len(estimate.norms)


def time_bare_fits(estimator, pairs):
    """Return the seconds that two bare fits take, as a user would write them."""
    start = process_time()
    for dataset, neighbor in pairs:
        clone(estimator).fit(*dataset)
        clone(estimator).fit(*neighbor)
    return (process_time() - start) / len(pairs)


def pairs_of(oracle, n_samples, n_pairs, seed):
    """Draw the pairs that a sampler with this seed measures."""
    for pair in range(n_pairs):
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(pair,)))
        rng.integers(2**31)  # the seed of the target, which the sampler draws first
        yield neighboring_pair(as_dataset(oracle(n_samples + 1, rng)))


def compare(estimator, n_samples, n_features, n_pairs, n_repetitions):
    """Return the medians of both times and of their ratio."""
    X, y = make_classification(2 * n_samples, n_features, random_state=0)
    oracle = PublicDataOracle(X, y)
    target = ParameterTarget(estimator, "auto", clone(estimator).fit(X, y))
    times = []
    for seed in range(n_repetitions + 1):
        sampler = SensitivitySampler(oracle, gamma=None, n_pairs=n_pairs, random_state=seed)
        pairs = list(pairs_of(oracle, n_samples, n_pairs, seed))
        times.append((time_sampler(sampler, target, n_samples), time_bare_fits(estimator, pairs)))
    del times[0]  # the first run pays for what is only loaded once
    sampled, bare = zip(*times, strict=True)
    return median(sampled), median(bare), median(s / b for s, b in times)


def main():
    """Print one line for each estimator."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n-samples", type=int, default=1000)
    parser.add_argument("--n-features", type=int, default=8)
    parser.add_argument("--n-pairs", type=int, default=199, help="pairs of each repetition")
    parser.add_argument("--n-repetitions", type=int, default=11)
    options = parser.parse_args()
    print(f"n={options.n_samples}, d={options.n_features}: processor milliseconds per pair")
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # of fits that need not converge here
        for name, estimator in ESTIMATORS.items():
            sampled, bare, ratio = compare(estimator, **vars(options))
            print(
                f"{name:20} sampler {1e3 * sampled:.3f}, two bare fits {1e3 * bare:.3f}, "
                f"ratio {ratio:.3f}"
            )


if __name__ == "__main__":
    main()
