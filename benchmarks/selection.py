"""What choosing hyper-parameters buys, privately and in public, at the same total epsilon.

The penalty of a logistic regression is taken from four, by each of: the default; `PrivateSearchCV`,
with .3 of the epsilon for the choice; `public_search`; and a search without privacy on the private
records, which is not to be had. Each then fits with the rest of the epsilon. Public records are of
the law of the private ones, or have half of their labels drawn anew. Plans are made once; each
execution has private records of its own, and noise of its own. Reading private data in many ways is
for benchmarks only.

Usage: python benchmarks/selection.py [--n-samples 200 2000] [--repeats 100]
"""

import argparse
import math

import numpy as np
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression

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
from skdp.search import CandidateScores

EPSILON, CHOICE = 1.0, 0.3
GRID = [1e-4, 1e-2, 1.0, 100.0]
N_PAIRS = 19
FREE = PrivacyAccountant(":memory:", epsilon=math.inf)


def private(epsilon, oracle, C=1.0, share=1):
    """Return the model; of the gamma it has a share, and as many more pairs."""
    return PrivateEstimator(
        LogisticRegression(C=C),
        mechanism=LaplaceMechanism(epsilon),
        sensitivity=SensitivitySampler(
            oracle, gamma=0.1 / share, n_pairs=N_PAIRS * share, random_state=0
        ),
        classes=[0, 1],
    )


def run(n_samples, relabeled, repeats, X, y):
    """Print a row: the mean accuracy of each way to choose, with its standard error."""
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(1000) < relabeled, rng.integers(2, size=1000), y[:1000])
    oracle = PublicDataOracle(X[:500], labels[:500])
    other = PublicDataOracle(X[500:1000], labels[500:])
    X, y, X_test, y_test = X[1000:-5000], y[1000:-5000], X[-5000:], y[-5000:]
    grid = {"estimator__C": GRID}
    best, _ = public_search(
        private(EPSILON, oracle), grid, n_samples, test_oracle=other, random_state=1
    )
    scores = CandidateScores([LogisticRegression(C=C) for C in GRID], None, 5)
    sampler = SensitivitySampler(oracle, gamma=0.1, n_pairs=N_PAIRS, random_state=2)
    choices = {
        name: plan_release(
            scores,
            n_samples=n_samples,
            like=(X[:2], y[:2]),
            mechanism=ExponentialMechanism(epsilon),
            sensitivity=sampler,
        )
        for name, epsilon in (("private", CHOICE), ("not private", math.inf))
    }
    whole = [private(EPSILON, oracle, C).plan(n_samples) for C in GRID]
    shared = [private(EPSILON - CHOICE, oracle, C, len(GRID)).plan(n_samples) for C in GRID]
    found = {name: [] for name in ("default", "private", "public", "not private")}
    for _ in range(repeats):
        rows = rng.choice(len(X), n_samples, replace=False)
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
            found[name].append(released.score(X_test, y_test))
    cells = [
        f"{np.mean(values):.3f} ({np.std(values) / math.sqrt(repeats):.3f})"
        for values in found.values()
    ]
    print(
        f"| {n_samples} | {relabeled:g} | {' | '.join(cells)} | {best.estimator.C:g} |", flush=True
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n-samples", type=int, nargs="+", default=[200, 2000])
    parser.add_argument("--repeats", type=int, default=100)
    options = parser.parse_args()
    X, y = make_classification(
        n_samples=16_000, n_features=5, n_informative=3, n_redundant=0, random_state=0
    )
    print("| n | labels drawn anew | C = 1 | private | public | not private | public C |")
    print("|---|---|---|---|---|---|---|")
    for n_samples in options.n_samples:
        for relabeled in (0.0, 0.5):
            run(n_samples, relabeled, options.repeats, X, y)


if __name__ == "__main__":
    main()
