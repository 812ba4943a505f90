"""Attacks on the two routes for any estimator: means over blocks, and predictions.

Run ``python tests/attack_routes.py`` (a quarter of an hour of one core). It fails if anything
is found.

- *moves*: how far neighbors move a mean over blocks, as a share of the bound, in the L1 and in the
  L2 norm. The neighbors are random and adversarial: a record lets a block fail, end the process,
  warn, lack a class, give numbers that are not finite or of another shape, draw from the global
  generators, or change how numpy treats errors; it is huge, or like all others.
- *blocks*: audits of a pair that moves a mean by the whole bound.
- *predictions*: audits of fresh pairs of the oracle, of which a share gamma may be beyond the
  claim; and of the pair among them that differs most, with noise for this difference exactly.

Each audit is done with the full noise and with half of it, at alpha = 1e-4, and with several seeds.
"""

from __future__ import annotations

import argparse
import random
import sys
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from skdp import (
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    RandomTaskOracle,
    SampleAndAggregate,
    SensitivitySampler,
    plan_release,
)
from skdp.audit import audit_release
from skdp.audit.estimator import exceedance_p_value
from skdp.core.dataset import neighboring_pair
from skdp.oracles.drawing import draw

ALPHA, GAMMA, N_PAIRS = 1e-4, 0.05, 60
N_SAMPLES, N_BLOCKS, N_FEATURES = 200, 10, 4
MECHANISMS = (LaplaceMechanism(1.0), L2LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-3))
WORDS = ("fail", "exit", "nan", "inf", "long", "high", "low", "warn", "draw", "strict")
SPELLED = {word: 1e6 * (1 + place) for place, word in enumerate(WORDS)}
HUGE = (-1e300, 1e300, np.nan, np.inf, -np.inf, 0.0)


class Spiteful(ClassifierMixin, BaseEstimator):
    """Does what the largest entry of its records spells; high and low are two opposite models."""

    def __init__(self, high: Any = 1.0):
        self.high = high

    def fit(self, X: np.ndarray, y: np.ndarray) -> Spiteful:
        said = {number: word for word, number in SPELLED.items()}
        self.classes_, self.word_, self.last_ = np.unique(y), said.get(X.max(), ""), y[-1]
        if self.word_ == "fail":
            raise RuntimeError("a private value")
        if self.word_ == "exit":
            raise SystemExit
        if self.word_ == "warn":
            warnings.warn("a private value", stacklevel=1)
        if self.word_ == "draw":
            np.random.seed(1)  # noqa: NPY002  # the global one
            random.seed(1)
        if self.word_ == "strict":
            np.seterr(all="raise")
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        noise = np.random.random(len(X)) + random.random()  # noqa: NPY002  # the global one
        told = {"nan": np.nan, "inf": np.inf, "high": self.high, "low": 1 - self.high}
        share = told.get(self.word_, self.last_) + 1e-3 * noise + np.exp(-800.0)
        return np.column_stack([1 - share, share])[: len(X) - (self.word_ == "long")]


def spiteful_largest(X: np.ndarray) -> np.ndarray:
    """Return the extremes of a column, or do as a record spells."""
    fitted = Spiteful().fit(X, np.append(np.zeros(len(X) - 1), 1))
    return np.array([X[:, 1].max(), X[:, 1].min()]) + 0 * fitted.predict_proba(X)[:2, 1]


ESTIMATORS = [
    Spiteful(),
    DecisionTreeClassifier(max_depth=3),
    LogisticRegression(max_iter=20),
    GaussianNB(),
    KNeighborsClassifier(3),
    Ridge(),
    spiteful_largest,
]
PREDICTED = [KNeighborsClassifier(15), SVC(), HistGradientBoostingClassifier(max_iter=10)]


def target_of(estimator: Any) -> Any:
    """Plan an estimator or a function by blocks."""
    X = np.random.default_rng(0).normal(size=(300, N_FEATURES))
    by_blocks = SampleAndAggregate(N_BLOCKS, random_state=0)
    options = {"mechanism": L2LaplaceMechanism(1.0), "sensitivity": by_blocks}
    if not hasattr(estimator, "fit"):
        ranges = [(-1, 2), (0, 3)]
        return plan_release(estimator, n_samples=N_SAMPLES, like=X, ranges=ranges, **options).target
    is_ridge = isinstance(estimator, Ridge)
    rules = {"y_scale": 1.0} if is_ridge else {"classes": [0, 1]}
    prior = RandomTaskOracle(X, **rules)
    planned = LogisticRegression() if isinstance(estimator, Spiteful) else estimator
    target = PrivateEstimator(planned, prior=prior, **options).plan(n_samples=N_SAMPLES).target
    if isinstance(estimator, Spiteful):  # it takes the place of an estimator with a longer code
        scores = np.sign(target.code.encoder.sum(axis=0))
        target.fits.estimator = Spiteful((1 + scores) / 2)
    return target


def bounds_of(target: Any) -> list[float]:
    """Return the bounds in the L1 and in the L2 norm."""
    known = getattr(target, "known", None)  # of a function
    return [target.bound(n) if known is None else known.in_norm(n).value for n in (1, 2)]


def neighbors(target: Any, n_pairs: int, rng: np.random.Generator) -> Iterator[tuple]:
    """Yield datasets and their neighbors, both as (X, y)."""
    spelled = list(SPELLED.values())
    for i in range(n_pairs):
        if i % 10 == 0:
            X = rng.normal(size=(N_SAMPLES, N_FEATURES))
            X = [X, np.round(X), np.zeros_like(X) + X[0]][rng.integers(3)]  # ties
            y = rng.integers(2, size=N_SAMPLES)
            first = target.blocks[0]
            y[first[:-1]] = rng.integers(2)  # the last record decides whether there are two classes
            if rng.random() < 0.5:
                X[rng.choice(N_SAMPLES, 3), 0] = rng.choice(spelled, 3)
        other_X, other_y = X.copy(), y.copy()
        place = first[-1] if rng.random() < 0.5 else rng.integers(N_SAMPLES)
        other_y[place] = rng.integers(2)
        other_X[place] = rng.normal(size=N_FEATURES)
        if rng.random() < 0.7:
            some = rng.random(N_FEATURES) < 0.5
            other_X[place, some] = rng.choice([*spelled, *HUGE], some.sum())
        yield (X, y), (other_X, other_y)


def largest_moves(estimator: Any, n_pairs: int, seed: int) -> tuple[np.ndarray, int]:
    """Return the largest moves as shares of the bounds in L1 and L2, and the number of moves."""
    target = target_of(estimator)
    bounds, rng = bounds_of(target), np.random.default_rng(seed)
    largest, n_moved, last, value = np.zeros(2), 0, None, None
    for dataset, neighbor in neighbors(target, n_pairs, rng):
        takes = 2 if hasattr(estimator, "fit") else 1
        if dataset is not last:
            value = target(*(part.copy() for part in dataset[:takes]), seed=0)
            last = dataset
        moved = target(*neighbor[:takes], seed=0) - value
        norms = [np.linalg.norm(moved, order) for order in (1, 2)]
        largest = np.maximum(largest, np.array(norms) / bounds)
        n_moved += norms[0] > 0
    return largest, n_moved


def worst_pair_of_blocks() -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
    """Return a target and its values on a pair: one block says yes, or says no."""
    target = target_of(Spiteful())
    X = np.random.default_rng(1).normal(size=(N_SAMPLES, N_FEATURES))
    y = np.arange(N_SAMPLES) % 2
    values = []
    for word in ("high", "low"):
        place = target.blocks[0][0]
        X[place, 0], y[place] = SPELLED[word], word == "high"
        values.append(target(X, y, seed=0))
    return target, tuple(values)


def audit_blocks(
    seeds: range, n_final: int, mechanisms: Any = MECHANISMS
) -> Iterator[tuple[str, float, list[int]]]:
    """Yield mechanisms, the move as a share of the bound, and violations by share of the noise."""
    target, pair = worst_pair_of_blocks()
    change = (pair[0] - pair[1]).ravel()
    for mechanism in mechanisms:
        bound = target.bound(mechanism.order)
        options = {"alpha": ALPHA, "n_final": n_final, "n_search": n_final // 4}
        options["stacked"] = not isinstance(mechanism, L2LaplaceMechanism)
        found = [
            sum(
                audit_release(*pair, mechanism, share * bound, rng=seed, **options).violated
                for seed in seeds
            )
            for share in (1, 0.5)
        ]
        moved = float(np.linalg.norm(change, mechanism.order))
        yield type(mechanism).__name__, moved / bound, found


def audit_predictions(estimator: Any, seed: int, n_final: int) -> list[tuple[int, float, float]]:
    """Return by share of the noise the pairs beyond the claim, their p-value, and a bound."""
    X = np.random.default_rng(seed).normal(size=(400, N_FEATURES))
    oracle = RandomTaskOracle(X, classes=[0, 1], least_share=0.5)
    options = {"gamma": GAMMA, "n_pairs": 199, "strata": None}  # strata cover more than is claimed
    sampler = SensitivitySampler(oracle, random_state=seed, **options)
    plain = LaplaceMechanism(1.0, code=None)
    plan = PrivateEstimator(
        estimator, mechanism=LaplaceMechanism(1.0), sensitivity=sampler, release="predictions"
    ).plan(n_samples=N_SAMPLES)
    geometry, pairs = plan.mechanism.geometry, []
    for i in range(N_PAIRS):
        rng = np.random.default_rng([15, seed, i])
        records = draw(plan.oracle, N_SAMPLES + 1, rng, schema=plan.schema)
        datasets = neighboring_pair(records, int(rng.integers(N_SAMPLES)))
        values = [plan.target(*dataset.parts, seed=i) for dataset in datasets]
        pairs.append([geometry.code.forward(v) if geometry.code else v for v in values])
    norms = [float(np.abs(np.subtract(*pair)).sum()) for pair in pairs]

    def bound(pair: list, size: float, n_final: int) -> float:
        options = {"alpha": ALPHA, "n_final": n_final, "n_search": n_final // 4, "stacked": True}
        return audit_release(*pair, plain, size, rng=seed, **options).lower_bound

    results, worst = [], int(np.argmax(norms))
    for share in (1, 0.5):
        lower = [bound(pair, share * plan.sensitivity.value, n_final) for pair in pairs]
        beyond = sum(each > plain.epsilon for each in lower)
        p_value = exceedance_p_value(beyond, N_PAIRS, GAMMA, len(plan.sensitivity.norms), ALPHA)
        results.append((beyond, p_value, bound(pairs[worst], share * norms[worst], 5 * n_final)))
    return results


def print_moves(options: argparse.Namespace) -> bool:
    """Print the largest moves, and return whether one is beyond its bound."""
    wrong = False
    print(f"largest moves of {options.pairs} pairs, as shares of the bounds in L1 and in L2")
    for place, estimator in enumerate(ESTIMATORS):
        n_pairs = options.pairs // len(ESTIMATORS) + (place < options.pairs % len(ESTIMATORS))
        largest, n_moved = largest_moves(estimator, n_pairs, place)
        wrong |= bool((largest > 1).any())
        name = getattr(estimator, "__name__", type(estimator).__name__)
        shares = " ".join(f"{each:.15g}" for each in largest)
        print(f"{name:25s}{n_moved:6d} of {n_pairs} moved, {shares}", flush=True)
    return wrong


def print_blocks(options: argparse.Namespace) -> bool:
    """Print audits of blocks, and return whether one with all of the noise finds something."""
    print(f"blocks: violations found with all and half the noise, of {options.seeds} seeds")
    wrong = False
    for name, share, found in audit_blocks(range(options.seeds), 8000):
        wrong |= found[0] > 0
        print(f"{name:25s}moves by {share:.6f} of the bound: {found}", flush=True)
    return wrong


def print_predictions(options: argparse.Namespace) -> bool:
    """Do the same for predictions."""
    wrong = False
    print(f"predictions, {N_PAIRS} pairs, all and half the noise: beyond, p-value; the worst pair")
    for estimator in PREDICTED:
        for seed in range(min(options.seeds, 3)):
            full, half = audit_predictions(estimator, seed, 2000 if options.small else 10_000)
            wrong |= full[1] < ALPHA or full[2] > 1
            shown = "; ".join(f"{n} {p:.1e} {lower:.2f}" for n, p, lower in (full, half))
            print(f"{type(estimator).__name__:32s}{shown}", flush=True)
    return wrong


PARTS = {"moves": print_moves, "blocks": print_blocks, "predictions": print_predictions}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(PARTS)}; all by default")
    parser.add_argument("--pairs", type=int, default=20_000, help="neighbors of all targets")
    parser.add_argument("--seeds", type=int, default=10, help="repetitions of an audit")
    parser.add_argument("--small", action="store_true", help="few pairs and runs")
    options = parser.parse_args()
    if options.small:
        options.pairs, options.seeds = 140, 1
    warnings.simplefilter("ignore")  # of what is worth little, and of fits to few records
    with threadpool_limits(1):
        wrong = [PARTS[part](options) for part in options.parts or PARTS]
    sys.exit(int(any(wrong)))


if __name__ == "__main__":
    main()
