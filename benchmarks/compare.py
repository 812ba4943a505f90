"""Sensitivity sampling beside the loop that a user would write, in time to a promise.

For each target: seconds per pair, how many times faster that is than the loop, and the seconds of
sampling to gamma = .05 and .01. skdp takes the default rule ("exact"), the loop that of the
published sampler ("dkw"). The loop is timed on a few pairs and scaled, and so is what would take
longer than half a minute (~). Times are medians of repetitions taken in turns, on one core.
Where two records make a pair, "datasets" is the sampler with an oracle that does not say that its
records are independent, so that it evaluates whole datasets.

Usage: python benchmarks/compare.py [NAME ...] [--n-repetitions 3]
"""

import argparse
import warnings
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from skdp import (
    BernsteinTransformer,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
)
from skdp.functions import AdditiveTarget
from skdp.sensitivity import order_statistic

GAMMAS = (0.05, 0.01)
OF_RECORDS = 50_000  # pairs on which a target is timed where two records make a pair
LONG = 30.0
LATTICE = np.linspace(0, 1, 11)[:, None]
BANDWIDTH = 0.05


@dataclass
class Case:
    """A target; `evaluate` is the plain way, which a loop takes `n_loop` times where it is timed.

    `n_pairs` is how many pairs the sampler is timed on: enough that what it does once per run is
    spread over them.
    """

    n_samples: int
    oracle: Any
    target: Any
    evaluate: Any
    n_pairs: int
    n_loop: int


def exponential(n_samples, rng):
    """Draw from an exponential law."""
    return rng.exponential(size=(n_samples, 1))


def mixture(n_samples, rng):
    """Draw from .4 N(.5, var .02) + .6 N(.75, var .005)."""
    first = rng.random((n_samples, 1)) < 0.4
    deviations = rng.standard_normal((n_samples, 1))
    return np.where(first, 0.5 + 0.02**0.5 * deviations, 0.75 + 0.005**0.5 * deviations)


exponential.independent_records = mixture.independent_records = True


def kernel(X):
    """Evaluate the kernel of each record on the lattice."""
    deviations = (X - LATTICE.T) / BANDWIDTH
    return np.exp(-0.5 * deviations * deviations) / (BANDWIDTH * np.sqrt(2 * np.pi))


def refitted_density(X):
    """Evaluate a kernel density estimate on the lattice."""
    return np.exp(KernelDensity(bandwidth=BANDWIDTH).fit(X).score_samples(LATTICE))


def mean(n_samples):
    """Make the case of a mean of exponential records."""
    return Case(n_samples, exponential, AdditiveTarget(np.asarray), np.mean, OF_RECORDS, 400)


def density():
    """Make the case of a kernel density, as a mean of kernels."""
    return Case(5000, mixture, AdditiveTarget(kernel), refitted_density, OF_RECORDS, 20)


def planned(estimator, oracle, n_samples, **options):
    """Return the target that a plan has for an estimator."""
    model = PrivateEstimator(
        estimator,
        mechanism=LaplaceMechanism(1.0, code=None),
        sensitivity=SensitivitySampler(oracle, gamma=None, n_pairs=1, random_state=0),
        **options,
    )
    return model.plan(n_samples).target


def estimated_density():
    """Make the case of a kernel density, as the estimator that it is."""
    box = BernsteinTransformer(degree=10, feature_range=(0, 1))
    target = planned(KernelDensity(bandwidth=BANDWIDTH), mixture, 5000, release=box)
    return Case(5000, mixture, target, refitted_density, OF_RECORDS, 20)


def table(n_samples, n_features, is_labeled):
    """Draw a public table of twice the number of records."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * n_samples, n_features)) * np.linspace(1, 2, n_features)
    scores = X @ rng.standard_normal(n_features) + rng.standard_normal(2 * n_samples)
    return X, (scores > 0).astype(int) if is_labeled else scores


def parameters(estimator, n_samples, n_features, n_pairs, n_loop):
    """Make the case of an estimator, with its registered attributes."""
    X, y = table(n_samples, n_features, is_classifier(estimator))
    dataset = (X,) if isinstance(estimator, PCA) else (X, y)
    target = planned(estimator, PublicDataOracle(*dataset), n_samples)
    signs = clone(estimator).fit(*dataset)

    def evaluate(*dataset):
        fitted = clone(estimator).fit(*dataset)
        if isinstance(estimator, PCA):
            cosines = np.sum(fitted.components_ * signs.components_, axis=1, keepdims=True)
            fitted.components_ *= np.sign(cosines)
        return np.concatenate([np.ravel(getattr(fitted, name)) for name in target.names])

    return Case(n_samples, PublicDataOracle(*dataset), target, evaluate, n_pairs, n_loop)


def leaves():
    """Make the case of the counts in the leaves of a public tree."""
    X, y = table(1000, 8, is_labeled=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=32, random_state=0)
    target, public = planned(tree, PublicDataOracle(X, y), 1000), clone(tree).fit(X, y)

    def evaluate(X, y):
        counts = np.zeros((public.tree_.node_count, 2))
        np.add.at(counts, (public.apply(X), y), 1)
        return counts

    return Case(1000, PublicDataOracle(X, y), target, evaluate, OF_RECORDS, 400)


def _cases():
    yield "mean, n = 100", lambda: mean(100)
    yield "mean, n = 1000", lambda: mean(1000)
    yield "KDE, k = 10", density
    yield "KernelDensity, k = 10", estimated_density
    yield "32 leaves, d = 8", leaves
    for estimator, n_pairs in (
        (GaussianNB(), 20_000),
        (BernoulliNB(), 20_000),
        (Ridge(), 10_000),
        (LinearRegression(), 10_000),
        (LinearDiscriminantAnalysis(), 10_000),
        (PCA(), 10_000),
        (LinearSVC(), 100),
    ):
        name = f"{type(estimator).__name__}, d = 8"
        yield name, partial(parameters, estimator, 1000, 8, n_pairs, min(n_pairs, 100))
    yield "LinearSVC, d = 64", lambda: parameters(LinearSVC(), 1000, 64, 10, 10)
    yield "LogisticRegression, d = 20", lambda: parameters(LogisticRegression(), 1000, 20, 50, 50)


CASES = dict(_cases())
"""Each makes its case when it is called: they hold tables."""


def sample(case, seed=0, **options):
    """Run the sampler and return its seconds; `options` are its parameters."""
    sampler = SensitivitySampler(case.oracle, random_state=seed, **options)
    start = perf_counter()
    estimate = sampler.sample(case.target, case.n_samples, "l1")
    seconds = perf_counter() - start
    if sum(estimate.failures.values()) > len(estimate.norms) // 10:
        raise RuntimeError(f"Failed pairs would be cheap: {estimate.failures}")
    return seconds


def sample_pairs(case, n_pairs, seed=0, **options):
    """Run the sampler on so many pairs and return its seconds."""
    return sample(case, seed, gamma=None, n_pairs=n_pairs, **options)


def loop(case, n_pairs, seed=0):
    """Draw, fit twice, take the norm, sort: what a user would write; return its seconds."""
    rng = np.random.default_rng(seed)
    start = perf_counter()
    norms = []
    for _ in range(n_pairs):
        drawn = case.oracle(case.n_samples + 1, rng)
        parts = drawn if isinstance(drawn, tuple) else (drawn,)
        neighbor = [np.concatenate([part[:-2], part[-1:]]) for part in parts]
        difference = case.evaluate(*(part[:-1] for part in parts)) - case.evaluate(*neighbor)
        norms.append(np.abs(np.ravel(difference)).sum())
    norms.sort()
    return perf_counter() - start


def of_datasets(case):
    """Return the case with an oracle that does not say that its records are independent."""
    return replace(case, oracle=lambda n_samples, rng: case.oracle(n_samples, rng))


def pairs_needed(calibration, confidence=None):
    """Return the number of pairs for each gamma."""
    rules = {"calibration": calibration, "confidence": confidence}
    return [order_statistic(gamma, **rules).n_pairs for gamma in GAMMAS]


def seconds_to(case, gamma, expected, n_repetitions):
    """Time the sampler to a promise, or say what is expected where that takes long."""
    if expected > LONG:
        return f"~{expected:.3g}"
    return f"{median(sample(case, seed, gamma=gamma) for seed in range(n_repetitions)):.3g}"


def print_case(name, n_repetitions, small):
    """Print a line for the sampler, and one for the loop."""
    case = CASES[name]()
    n_pairs, n_loop = (20, 2) if small else (case.n_pairs, case.n_loop)
    sample_pairs(case, n_pairs)
    loop(case, 2)
    seeds = range(n_repetitions)
    whole = n_loop if case.n_pairs == OF_RECORDS else 0
    times = [
        (
            sample_pairs(case, n_pairs, seed) / n_pairs,
            loop(case, n_loop, seed) / n_loop,
            sample_pairs(of_datasets(case), whole, seed) / whole if whole else 0.0,
        )
        for seed in seeds
    ]
    fast, slow, general = map(median, zip(*times, strict=True))
    promised = zip(GAMMAS, pairs_needed("exact"), strict=True)
    ours = [seconds_to(case, gamma, n * fast, n_repetitions) for gamma, n in promised if not small]
    theirs = [f"~{n * slow:.3g}" for n in pairs_needed("dkw")]
    print(
        f"{name:34}{case.n_samples:7}  skdp{fast:10.3g}{slow / fast:9.3g}",
        *map("{:>9}".format, ours),
    )
    print(f"{'':41}  loop{slow:10.3g}{'':9}", *map("{:>9}".format, theirs), flush=True)
    if whole:
        print(f"{'':37}  datasets{general:10.3g}{slow / general:9.3g}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="only targets whose name holds one of these")
    parser.add_argument("--n-repetitions", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="few pairs")
    options = parser.parse_args()
    print("Pairs needed            gamma = .05   gamma = .01")
    for calibration, confidence in (("exact", None), ("dkw", None), ("conditional", 0.95)):
        needed = pairs_needed(calibration, confidence)
        print(f"{calibration:20}{needed[0]:15}{needed[1]:14}")
    print(f"\n{'target':34}{'n':>7}{'s/pair':>16}{'ratio':>9}{'s to .05':>10}{'s to .01':>10}")
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # of fits that need not converge here
        for name in CASES:
            if not options.names or any(part in name for part in options.names):
                print_case(name, 1 if options.small else options.n_repetitions, options.small)


if __name__ == "__main__":
    main()
