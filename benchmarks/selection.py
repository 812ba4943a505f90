"""What choosing hyper-parameters buys, privately and in public, at the same total epsilon.

The penalty of a logistic regression is taken from four, by each of: the default; `PrivateSearchCV`,
with .3 of the epsilon for the choice; `public_search`; and a search without privacy on the private
records, which is not to be had. Each then fits with the rest of the epsilon. Public records are of
the law of the private ones, or have half of their labels drawn anew. Plans are made once; each
execution has private records of its own, drawn from the rest of the table and scored on what is
then left of it, and noise of its own. Reading private data in many ways is for benchmarks only.

Usage: python benchmarks/selection.py [--data synthetic cancer digits] [--repeats 60]
"""

import argparse
import math

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from skdp import (
    ExponentialMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    plan_release,
    public_search,
)
from skdp.accounting import PrivacyAccountant
from skdp.search.candidates import CandidateScores

EPSILON, CHOICE = 1.0, 0.3
GRID = [1e-4, 1e-2, 1.0, 100.0]
N_PAIRS = 19
MOST_TESTED = 5000
FREE = PrivacyAccountant(":memory:", epsilon=math.inf)


def synthetic():
    return make_classification(
        n_samples=16_000, n_features=5, n_informative=3, n_redundant=0, random_state=0
    )


def cancer():
    return load_breast_cancer(return_X_y=True)


def digits():
    """Load images of digits, to be told odd from even."""
    X, y = load_digits(return_X_y=True)
    return X, y % 2


# For each the records of either public table, and how many private ones.
DATA = {synthetic: (500, [200, 2000]), cancer: (100, [200]), digits: (200, [200, 1200])}


def logistic(C):
    return LogisticRegression(C=C, max_iter=1000)


def private(epsilon, oracle, C=1.0, share=1):
    """Return the model; of the gamma it has a share, and as many more pairs."""
    return PrivateEstimator(
        logistic(C),
        mechanism=LaplaceMechanism(epsilon),
        sensitivity=SensitivitySampler(
            oracle, gamma=0.1 / share, n_pairs=N_PAIRS * share, random_state=0
        ),
        classes=[0, 1],
    )


def run(load, n_public, n_samples, relabeled, repeats):
    """Print a row: the mean accuracy of each way to choose, with its standard error."""
    rng = np.random.default_rng(0)
    X, y = load()
    order = rng.permutation(len(X))
    X, y = X[order], y[order]
    X = StandardScaler().fit(X[:n_public]).transform(X)
    public, other, rest = np.split(np.arange(len(X)), [n_public, 2 * n_public])
    labels = np.where(rng.random(len(y)) < relabeled, rng.integers(2, size=len(y)), y)
    oracle, tests = (PublicDataOracle(X[rows], labels[rows]) for rows in (public, other))
    best, _ = public_search(
        private(EPSILON, oracle),
        {"estimator__C": GRID},
        n_samples,
        test_oracle=tests,
        random_state=1,
    )
    scores = CandidateScores([logistic(C) for C in GRID], None, 5)
    sampler = SensitivitySampler(oracle, gamma=0.1, n_pairs=N_PAIRS, random_state=2)
    choices = {
        name: plan_release(
            scores,
            n_samples=n_samples,
            like=(X[public], y[public]),
            mechanism=ExponentialMechanism(epsilon),
            sensitivity=sampler,
        )
        for name, epsilon in (("private", CHOICE), ("not private", math.inf))
    }
    whole = [private(EPSILON, oracle, C).plan(n_samples) for C in GRID]
    shared = [private(EPSILON - CHOICE, oracle, C, len(GRID)).plan(n_samples) for C in GRID]
    found = {name: [] for name in ("default", "private", "public", "not private")}
    for _ in range(repeats):
        drawn = rng.permutation(rest)
        rows, left = drawn[:n_samples], drawn[n_samples:][:MOST_TESTED]
        records = X[rows], y[rows]
        chosen = {
            name: each.execute(*records, accountant=FREE).value for name, each in choices.items()
        }
        plans = {
            "default": whole[GRID.index(1.0)],
            "private": shared[chosen["private"]],
            "public": whole[GRID.index(best.estimator.C)],
            "not private": whole[chosen["not private"]],
        }
        for name, plan in plans.items():
            released = plan.execute(*records, accountant=FREE).value
            found[name].append(released.score(X[left], y[left]))
    cells = [
        f"{np.mean(values):.3f} ({np.std(values) / math.sqrt(repeats):.3f})"
        for values in found.values()
    ]
    name = f"{load.__name__} | {n_samples:,} | {'half anew' if relabeled else 'of the law'}"
    print(f"| {name} | {' | '.join(cells)} | {best.estimator.C:g} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    loaders = {load.__name__: load for load in DATA}
    parser.add_argument("--data", nargs="+", choices=loaders, default=list(loaders))
    parser.add_argument("--repeats", type=int, default=60)
    options = parser.parse_args()
    print("| data | n | public labels | C = 1 | private | public | not private | public C |")
    print("|---|---|---|---|---|---|---|---|")
    for load in (loaders[name] for name in options.data):
        n_public, sizes = DATA[load]
        for n_samples in sizes:
            for relabeled in (0.0, 0.5):
                run(load, n_public, n_samples, relabeled, options.repeats)


if __name__ == "__main__":
    main()
