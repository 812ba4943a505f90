"""Measure public components against all columns, for logistic regression with three values of C.

Half of a table is private, a quarter has public features, and a quarter is for tests. The last
lines say how far each setting is behind the best of all seven, chosen by the test records.

Usage: python benchmarks/components.py [--data FOLDER] [--small]

FOLDER holds the tables of `classes.py`; without them one is made up.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from classes import tables
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    PublicComponents,
    RandomTaskOracle,
    SensitivitySampler,
)

EPSILONS = 0.1, 0.3, 1.0, 3.0


def settings(X_public):
    """Return seven settings: a scaler is private, and components are standardized without one."""
    few, scaler = PublicComponents(X_public), StandardScaler()
    fronts = {"components": [few], "scaler": [scaler], "scaler, components": [scaler, few]}
    for title, front in fronts.items():
        for C in (0.1,) if len(front) > 1 else (1.0, 0.1, 0.01):
            model = LogisticRegression(C=C, max_iter=1000)
            yield f"{title}, C={C:g}", make_pipeline(*front, model)


def scores_of(rows, epsilon, gamma, n_releases):
    """Return the mean accuracy and area under the curve of releases by each setting."""
    private, public, test = np.split(rows, [len(rows) // 2, 3 * len(rows) // 4])
    X_public, X, y = public[:, :-1], private[:, :-1], private[:, -1].astype(int)
    oracle = RandomTaskOracle(X_public, classes=[0, 1])
    sampler = SensitivitySampler(oracle, gamma=gamma, random_state=0)
    found = {}
    for title, estimator in settings(X_public):
        plan = PrivateEstimator(
            estimator, mechanism=LaplaceMechanism(epsilon=epsilon), sensitivity=sampler
        ).plan(n_samples=len(X), like=(X, y))
        scores = []
        for seed in range(n_releases):
            model = plan.execute(X, y, random_state=seed).value
            ranks = model.predict_proba(test[:, :-1])[:, 1]
            accuracy = model.score(test[:, :-1], test[:, -1])
            scores.append([accuracy, roc_auc_score(test[:, -1], ranks)])
        found[title] = np.mean(scores, axis=0)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, help="folder of the CSV files")
    parser.add_argument("--small", action="store_true", help="a made-up table, few releases")
    options = parser.parse_args()
    epsilons, gamma, n_releases = ((1.0,), 0.5, 2) if options.small else (EPSILONS, 0.05, 10)
    behind = {}
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # plans warn where little is learned, or gamma is large
        for name, rows in tables(options.data, np.random.default_rng(0)):
            if name not in ("made up", "hdma", "fair", "hi", "mroz"):
                continue
            print(f"{name}, {len(rows) // 2} private records; accuracy and area under the curve")
            of_table = [scores_of(rows, epsilon, gamma, n_releases) for epsilon in epsilons]
            best = [np.max([*found.values()], axis=0) for found in of_table]
            for title in of_table[0]:
                scores = np.array([found[title] for found in of_table])
                behind.setdefault(title, []).append((best - scores).mean(axis=0))
                cells = ("/".join(f"{score:.3f}"[1:] for score in each) for each in scores.T)
                print(f"  {title:24} {'  '.join(cells)}", flush=True)
    print("behind the best, mean over tables and epsilon: accuracy and area under the curve")
    for title, gaps in behind.items():
        print(f"  {title:24} {np.mean(gaps, axis=0).round(3)}")


if __name__ == "__main__":
    main()
