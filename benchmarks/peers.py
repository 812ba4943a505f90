"""Score the models of diffprivlib or of interpret, in an environment that has the one asked for.

Usage: python peers.py KIND TASK.npz SCORES.npy
"""

import sys
import warnings
from itertools import product

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as ExactScaler

try:
    from diffprivlib.models import (
        GaussianNB,
        LinearRegression,
        LogisticRegression,
        RandomForestClassifier,
        StandardScaler,
    )
    from diffprivlib.tools import histogram
except ImportError:  # they pin different versions of scikit-learn
    from interpret.privacy import DPExplainableBoostingClassifier

GRID = np.linspace(0, 1, 401)


def norm(X):
    return np.linalg.norm(X, axis=1).max()


def logistic(task, epsilon, C):
    """Clip records to the largest public norm."""
    model = LogisticRegression(
        epsilon=epsilon, data_norm=norm(task["public_X"]), C=C, max_iter=1000
    )
    return model.fit(*private(task)).score(*test(task))


def clipped(task, epsilon, setting):
    """Clip records to a norm that a share of the public ones keep."""
    C, share = setting
    data_norm = np.quantile(np.linalg.norm(task["public_X"], axis=1), share)
    model = LogisticRegression(epsilon=epsilon, data_norm=data_norm, C=C, max_iter=200)
    return model.fit(*private(task)).score(*test(task))


def pipeline(task, epsilon, C):
    """Spend half on the scaler, half on the classifier."""
    X = task["public_X"]
    scaler = StandardScaler(epsilon=epsilon / 2, bounds=(X.min(axis=0), X.max(axis=0)))
    data_norm = norm(ExactScaler().fit_transform(X))
    model = LogisticRegression(epsilon=epsilon / 2, data_norm=data_norm, C=C, max_iter=1000)
    return make_pipeline(scaler, model).fit(*private(task)).score(*test(task))


def bounds(task, share, part="X"):
    """Return the ends of the middle share of the public range; what is outside is clipped."""
    return tuple(np.quantile(task[f"public_{part}"], [(1 - share) / 2, (1 + share) / 2], axis=0))


def linear(task, epsilon, share):
    model = LinearRegression(
        epsilon=epsilon, bounds_X=bounds(task, share), bounds_y=bounds(task, share, "y")
    )
    return model.fit(*private(task)).score(*test(task))


def bayes(task, epsilon, share):
    model = GaussianNB(epsilon=epsilon, bounds=bounds(task, share))
    return model.fit(*private(task)).score(*test(task))


def forest(task, epsilon, n_estimators):
    model = RandomForestClassifier(
        n_estimators, epsilon=epsilon, bounds=bounds(task, 1.0), classes=np.unique(task["public_y"])
    )
    return model.fit(*private(task)).score(*test(task))


def scaler(task, epsilon, share):
    """Return the mean error of the logarithm of the variances."""
    X = task["private_X"]
    model = StandardScaler(epsilon=epsilon, bounds=bounds(task, share)).fit(X)
    return np.abs(np.log(model.var_ / X.var(axis=0))).mean()


def density(task, epsilon, bins):
    """Return the L1 error of a histogram against the exact one of the records' kernel density."""
    heights, _ = histogram(task["private_X"][:, 0], epsilon, int(bins), range=(0, 1), density=True)
    values = heights[np.minimum((GRID * bins).astype(int), int(bins) - 1)]
    return np.abs(values - task["test_y"]).mean()


def boosting(task, epsilon, n_numbers):
    """Fit an additive model by boosting, delta 1e-5; columns after so many are categories."""
    X = task["public_X"]
    n_numbers = X.shape[1] if n_numbers is None else n_numbers
    names = [f"x{j}" for j in range(X.shape[1])]
    bounds = zip(X.min(axis=0)[:n_numbers], X.max(axis=0)[:n_numbers], strict=True)
    model = DPExplainableBoostingClassifier(
        feature_names=names,
        feature_types=["continuous"] * n_numbers + ["nominal"] * (X.shape[1] - n_numbers),
        epsilon=epsilon,
        delta=1e-5,
        n_jobs=1,
        privacy_bounds=dict(zip(names, bounds, strict=False)),
    )
    return model.fit(*private(task)).score(*test(task))


def private(task):
    return task["private_X"], task["private_y"]


def test(task):
    return task["test_X"], task["test_y"]


PEERS = {
    "logistic": (logistic, (0.01, 0.1, 1.0), max),
    "pipeline": (pipeline, (0.01, 0.1, 1.0), max),
    "clipped": (clipped, tuple(product((0.01, 0.1, 1.0), (0.5, 1.0))), max),
    "bayes": (bayes, (0.8, 0.95, 1.0), max),
    "forest": (forest, (5, 10, 30), max),
    "scaler": (scaler, (0.95, 0.99, 1.0), min),
    "linear": (linear, (0.8, 0.95, 1.0), max),
    "histogram": (density, (5, 10, 20), min),
    "boosting": (boosting, (None,), max),
    "boosting-mixed": (boosting, (5,), max),
}


def main():
    kind, path, scores = sys.argv[1:]
    score, settings, best = PEERS[kind]
    warnings.simplefilter("ignore")  # fits that noise keeps from converging, and clipped records
    with np.load(path) as task:
        found = [
            [[score(task, epsilon, each) for _ in range(task["n_releases"])] for each in settings]
            for epsilon in task["epsilons"]
        ]
    np.save(scores, [best(each, key=np.mean) for each in found])


if __name__ == "__main__":
    main()
