"""What clip='ranges' does to records unlike the oracle's, and what it costs where there are none.

Half of a table is private, a quarter of it has public features, and the rest take the place of a
private record: as they are, with one or all columns times 100, or with a column 1.2 times beyond
the public maximum. Then all private records are scaled, and the oracle's are not. Changes are in
sensitivities. Three more lines check that the value of far records does not depend on
them, that a further pair of a toy target is missed as often as promised, and the accuracy.

Tables are breast cancer, those of `classes.py`, whose `--data` is the folder of CSV files, and
rice, whose `--rice` is the folder with rice.arff.gz (UCI).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from class_tables import rice
from classes import tables
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from skdp import (
    FunctionTarget,
    LaplaceMechanism,
    PrivateEstimator,
    RandomTaskOracle,
    ReleasePlan,
    SensitivitySampler,
    release,
)

CLIPS = (None, "ranges")


def all_tables(folder: Path | None, of_rice: Path | None) -> Iterator[tuple[str, np.ndarray]]:
    """Yield tables with the response in the last column, in random order."""
    X, y = load_breast_cancer(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    yield "breast cancer", np.column_stack([X, y])[order]
    for name, rows in tables(folder, np.random.default_rng(0)) if folder else ():
        yield name, rows[:2400]
    if of_rice:
        X, y, *_ = rice(of_rice)
        rows = np.column_stack([X, y])
        yield "rice", rows[np.random.default_rng(0).permutation(len(rows))][:2400]


def change(plan: ReleasePlan, X: np.ndarray, y: np.ndarray, place: int, record: tuple) -> float:
    """Return the change by a record in another's place, in sensitivities."""
    target = plan.sensitivity.bounded(plan.target, plan.oracle, plan.schema)
    changed, labels = X.copy(), y.copy()
    changed[place], labels[place] = record
    values = [target(*each, seed=1) for each in ((X, y), (changed, labels))]
    return plan.mechanism.geometry.distance(*values) / plan.sensitivity.value


def unlike(
    rows: np.ndarray, clip: str | None, options: argparse.Namespace
) -> dict[str, tuple[float, float]]:
    """Return for each kind of record the share of changes above 1, and the largest."""
    rng = np.random.default_rng(7)
    private, public, others = np.split(rows, [len(rows) // 2, 3 * len(rows) // 4])
    varies = public[:, :-1].std(axis=0) > 0
    Z, X, W = (part[:, :-1][:, varies] for part in (public, private, others))
    y, v = private[:, -1].astype(int), others[:, -1].astype(int)
    plan = PrivateEstimator(
        make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)),
        mechanism=LaplaceMechanism(epsilon=1.0),
        sensitivity=SensitivitySampler(
            RandomTaskOracle(Z, classes=[0, 1]),
            clip=clip,
            random_state=0,
            gamma=0.25 if options.small else 0.05,
        ),
    ).plan(n_samples=len(X))
    numeric = np.flatnonzero([len(np.unique(column)) > 2 for column in Z.T])
    scaled = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    found: dict[str, list[float]] = {}
    for _ in range(options.pairs):
        place, other, column = rng.integers(len(X)), rng.integers(len(W)), rng.choice(numeric)
        one, all_, beyond = W[other].copy(), W[other].copy(), W[other].copy()
        one[column] *= 100
        all_[numeric] *= 100
        beyond[column] = 1.2 * Z[:, column].max()
        kinds = {"legitimate": W[other], "one x100": one, "all x100": all_, "1.2 max": beyond}
        for kind, record in kinds.items():
            moved = change(plan, X, y, place, (record, v[other]))
            found.setdefault(kind, []).append(moved)
        moved = change(plan, scaled, y, place, (scaled[other % len(X)], v[other]))
        found.setdefault("scaled outside", []).append(moved)
    return {kind: (float(np.mean(np.array(m) > 1)), max(m)) for kind, m in found.items()}


def heavy(n_samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw records of a heavy tail with a rare class, of which many are clipped and replaced."""
    return rng.standard_t(1.0, size=(n_samples, 1)), (rng.random(n_samples) < 0.2).astype(int)


def weighted(X: np.ndarray, y: np.ndarray) -> float:
    return float(np.sum(X[:, 0] * (1 + np.arange(len(X)) % 3) * (0.5 + y)))


def missed(n_samplings: int) -> np.ndarray:
    """Return the share of further pairs above the estimate, by stratum."""
    misses, target = np.zeros(3), FunctionTarget(weighted, key="weighted")
    for seed in range(n_samplings):
        sampler = SensitivitySampler(
            heavy, gamma=0.1, n_pairs=69, strata="classes", random_state=seed
        )
        norms = sampler.sample(target, 40, "l1").norms
        calibrating, further = norms[:, :19], norms[:, 19:]
        misses += (further > np.sort(calibrating, axis=1)[:, 17:18]).mean(axis=1)
    return misses / n_samplings


def accuracies(rows: np.ndarray, clip: str | None, model: object, n_fits: int) -> np.ndarray:
    """Return the accuracy of releases at epsilon 1."""
    found = []
    for seed in range(n_fits):
        order = np.random.default_rng(seed).permutation(len(rows))
        public, private, test = np.split(rows[order], [2 * len(rows) // 5, 4 * len(rows) // 5])
        oracle = RandomTaskOracle(public[:, :-1], classes=[0, 1], least_share=0.3)
        fitted = PrivateEstimator(
            model,
            mechanism=LaplaceMechanism(epsilon=1.0),
            sensitivity=SensitivitySampler(oracle, clip=clip, random_state=seed),
            random_state=seed,
        ).fit(private[:, :-1], private[:, -1].astype(int))
        found.append(fitted.score(test[:, :-1], test[:, -1].astype(int)))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the CSV files")
    parser.add_argument("--rice", type=Path, help="folder of rice.arff.gz")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--samplings", type=int, default=300)
    parser.add_argument("--fits", type=int, default=10)
    parser.add_argument("--small", action="store_true", help="few pairs, samplings and fits")
    options = parser.parse_args()
    if options.small:
        options.pairs, options.samplings, options.fits = 5, 5, 0
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # plans warn where little is learned, or gamma is large
        X = [np.full((30, 1), 1e9), np.linspace(-1e9, -1e6, 30)[:, None]]
        sampler = SensitivitySampler(lambda n, rng: heavy(n, rng)[0], random_state=0)
        sampled = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sampler, "random_state": 0}
        values = [release(np.mean, each, **sampled).value.tobytes() for each in X]
        print(f"all records far: the same bytes {values[0] == values[1]}")
        shares = missed(options.samplings)
        print(f"further pairs above, by stratum, promised .1: {shares.round(3).tolist()}")
        print("share of changes above the sensitivity, and the largest; clip=None -> 'ranges'")
        for name, rows in all_tables(options.data, options.rice):
            before, after = (unlike(rows, clip, options) for clip in CLIPS)
            for kind in before:
                said = " -> ".join(f"{a:.2f} {b:9.1f}" for a, b in (before[kind], after[kind]))
                print(f"{name:15} {kind:15} {said}", flush=True)
            models = {
                "SVM": make_pipeline(StandardScaler(), LinearSVC(C=0.01)),
                "logistic": make_pipeline(StandardScaler(), LogisticRegression(C=0.01)),
            }
            for label, model in models.items() if options.fits else ():
                both = [accuracies(rows, clip, model, options.fits) for clip in CLIPS]
                said = " -> ".join(f"{each.mean():.3f}" for each in both)
                differs = np.std(both[1] - both[0]) / np.sqrt(options.fits)
                print(f"{name:15} accuracy of {label}: {said}, +- {differs:.3f}", flush=True)


if __name__ == "__main__":
    main()
