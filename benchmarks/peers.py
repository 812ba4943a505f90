"""Score diffprivlib's models; utility.py runs this in an environment that has them.

Usage: python peers.py logistic|pipeline|linear|histogram TASK.npz SCORES.npy
"""

import sys
import warnings

import numpy as np
from diffprivlib.models import LinearRegression, LogisticRegression, StandardScaler
from diffprivlib.tools import histogram
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler as ExactScaler

N_RELEASES = 10
GRID = np.linspace(0, 1, 401)


def norm(X):
    return np.linalg.norm(X, axis=1).max()


def logistic(task, epsilon, C):
    """Clip records to the largest public norm."""
    model = LogisticRegression(
        epsilon=epsilon, data_norm=norm(task["public_X"]), C=C, max_iter=1000
    )
    return model.fit(*private(task)).score(*test(task))


def pipeline(task, epsilon, C):
    """Spend half on the scaler, half on the classifier."""
    X = task["public_X"]
    scaler = StandardScaler(epsilon=epsilon / 2, bounds=(X.min(axis=0), X.max(axis=0)))
    data_norm = norm(ExactScaler().fit_transform(X))
    model = LogisticRegression(epsilon=epsilon / 2, data_norm=data_norm, C=C, max_iter=1000)
    return make_pipeline(scaler, model).fit(*private(task)).score(*test(task))


def linear(task, epsilon, share):
    """Take the middle share of the public range for bounds; what is outside is clipped."""
    tail = (1 - share) / 2, (1 + share) / 2
    low, high = np.quantile(task["public_X"], tail, axis=0)
    model = LinearRegression(
        epsilon=epsilon, bounds_X=(low, high), bounds_y=tuple(np.quantile(task["public_y"], tail))
    )
    return model.fit(*private(task)).score(*test(task))


def density(task, epsilon, bins):
    """Return the L1 error of a histogram against the exact one of the records' kernel density."""
    heights, _ = histogram(task["private_X"][:, 0], epsilon, int(bins), range=(0, 1), density=True)
    values = heights[np.minimum((GRID * bins).astype(int), int(bins) - 1)]
    return np.abs(values - task["test_y"]).mean()


def private(task):
    return task["private_X"], task["private_y"]


def test(task):
    return task["test_X"], task["test_y"]


PEERS = {
    "logistic": (logistic, (0.01, 0.1, 1.0), max),
    "pipeline": (pipeline, (0.01, 0.1, 1.0), max),
    "linear": (linear, (0.8, 0.95, 1.0), max),
    "histogram": (density, (5, 10, 20), min),
}


def main():
    kind, path, scores = sys.argv[1:]
    score, settings, best = PEERS[kind]
    warnings.simplefilter("ignore")  # fits that noise keeps from converging, and clipped records
    with np.load(path) as task:
        found = [
            [[score(task, epsilon, each) for _ in range(N_RELEASES)] for each in settings]
            for epsilon in task["epsilons"]
        ]
    np.save(scores, [best(each, key=np.mean) for each in found])


if __name__ == "__main__":
    main()
