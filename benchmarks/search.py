"""What a choice of hyper-parameters is worth: the default, a search in public, and a private one.

A fifth of the records is public, and another one is to score on in public; of the rest two thirds
are private, and a third is for tests. Half of the public labels may be drawn anew. The epsilon is
that of everything together, and the scores are those by which PrivateSearchCV chooses.

Usage: python benchmarks/search.py [--splits 6] [--small]
"""

import argparse
import functools
import itertools
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.preprocessing import StandardScaler

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    PrivateSearchCV,
    PublicDataOracle,
    SensitivitySampler,
    public_search,
)
from skdp.core import room

ROWS = {
    "cancer": (load_breast_cancer, RidgeClassifier()),
    "digits": (load_digits, RidgeClassifier()),
    "diabetes": (load_diabetes, Ridge()),
}
GRID = {"estimator__alpha": [1.0, 100.0, 1e4]}
N_FITS = [0]


def counted(fit):
    @functools.wraps(fit)
    def count(*args, **kwargs):
        N_FITS[0] += 1
        return fit(*args, **kwargs)

    return count


def split(load, wrong_labels, seed):
    """Return public, public test, private and test records, in units of the public ones."""
    X, y = load(return_X_y=True)
    y = (y - 25) / 321 if load is load_diabetes else y  # to [0, 1]
    rng = np.random.default_rng(seed)
    parts = np.split(rng.permutation(len(X)), np.array([1, 2, 4]) * len(X) // 5)
    X = StandardScaler().fit(X[parts[0]]).transform(X)
    labels = y.copy()
    for part in parts[:2] if wrong_labels else ():
        wrong = part[rng.random(len(part)) < 0.5]
        labels[wrong] = rng.permutation(y[wrong])
    tables = [(X[part], labels[part]) for part in parts]
    return PublicDataOracle(*tables[0]), PublicDataOracle(*tables[1]), *tables[2:]


def model_of(estimator, oracle, epsilon):
    """Return a private model of few pairs."""
    sampler = SensitivitySampler(oracle, gamma=0.1, n_pairs=30, random_state=0)
    return PrivateEstimator(estimator, mechanism=LaplaceMechanism(epsilon), sensitivity=sampler)


def in_public(model, test_oracle, n_samples):
    """Return the model that a search in public chooses."""
    options = {"test_oracle": test_oracle, "n_datasets": 3, "random_state": 0}
    return public_search(model, GRID, n_samples, **options)[0]


def in_private(model, test_oracle, n_samples):
    """Return a search that costs what one fit of the model does."""
    epsilon = model.mechanism.epsilon / 3
    return PrivateSearchCV(model.set_params(mechanism__epsilon=epsilon), GRID, y_range=(0, 1))


METHODS = {"default": lambda model, *_: model, "public": in_public, "private": in_private}


def measure(row, wrong_labels, epsilon, seed, method):
    """Return the score, the fits and the seconds of a choice and a release."""
    load, estimator = ROWS[row]
    oracle, test_oracle, private, test = split(load, wrong_labels, seed)
    N_FITS[0], start = 0, time.perf_counter()
    model = method(model_of(estimator, oracle, epsilon), test_oracle, len(private[0]))
    model.fit(*private)
    seconds, predicted = time.perf_counter() - start, model.predict(test[0])
    right = predicted == test[1]
    if row == "diabetes":
        right = 1 - np.abs(np.clip(predicted, 0, 1) - test[1])
    return np.mean(right), N_FITS[0], seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--splits", type=int, default=6)
    parser.add_argument("--small", action="store_true", help="one cell, to see that it runs")
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # plans warn of little that is learned
    room.check_unpatched = int  # which would refuse that fits are counted
    for kind in (Ridge, RidgeClassifier):
        kind.fit = counted(kind.fit)
    cells = itertools.product((True, False), (1.0, 3.0), ROWS)
    print("| data | public labels | epsilon | method | score | fits | seconds |")
    for wrong, epsilon, row in itertools.islice(cells, 1 if given.small else None):
        for name, method in METHODS.items():
            seeds = range(1 if given.small else given.splits)
            found = np.array([measure(row, wrong, epsilon, seed, method) for seed in seeds])
            score, fits, seconds = found.mean(axis=0)
            error = found[:, 0].std() / np.sqrt(len(found))
            labels = "half anew" if wrong else "of the law"
            said = f"{score:.3f} ({error:.3f}) | {fits:.0f} | {seconds:.1f}"
            print(f"| {row} | {labels} | {epsilon:g} | {name} | {said} |", flush=True)


if __name__ == "__main__":
    main()
