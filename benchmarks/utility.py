"""Accuracy of released models by basis: how much a good basis is worth.

For each row (data, model, oracle) and each mechanism and basis the sensitivity is sampled once a
split; the exact parameters are then released many times at each epsilon, and the released models
are scored on test records. Private, public and test records are disjoint; scalers are fitted on
the public half. Reading the same private data many times is for benchmarks only.

Usage: python benchmarks/utility.py [--rows NAME ...] [--releases 160] [--splits 4] [--n-jobs 1]
"""

import argparse
import time
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

from skdp import PublicDataOracle, RandomTaskOracle, SensitivitySampler, release
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.mechanisms.noise import byte_source
from skdp.targets.parameters import ParameterTarget

BASES = ("identity", "diagonal", "predictive", "auto")
MECHANISMS = {
    "Laplace": lambda epsilon, basis: LaplaceMechanism(epsilon, basis=basis),
    "Gaussian": lambda epsilon, basis: GaussianMechanism(epsilon, 1e-5, basis=basis),
}


class FlatMLP(MLPClassifier):
    """A neural network whose weights are one array, so that they can be released by name."""

    @property
    def weights_(self):
        return np.concatenate([layer.ravel() for layer in (*self.coefs_, *self.intercepts_)])

    @weights_.setter
    def weights_(self, vector):
        layers = [*self.coefs_, *self.intercepts_]
        parts = np.split(vector, np.cumsum([layer.size for layer in layers])[:-1])
        shaped = [part.reshape(layer.shape) for part, layer in zip(parts, layers, strict=True)]
        self.coefs_, self.intercepts_ = shaped[: len(self.coefs_)], shaped[len(self.coefs_) :]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    load: object
    model: object
    scaler: object = None
    oracle: str = "labeled"
    release: object = "auto"
    epsilons: tuple = (0.3, 1.0, 3.0)


def digits_3_8():
    X, y = load_digits(return_X_y=True)
    keep = np.isin(y, [3, 8])
    return X[keep], y[keep]


def load(loader):
    return lambda: loader(return_X_y=True)


cancer, digits, diabetes = load(load_breast_cancer), load(load_digits), load(load_diabetes)
logistic = LogisticRegression(max_iter=1000)
svc = LinearSVC(C=0.01)
ROWS = {
    "cancer-minmax-C1-labeled": Row(cancer, clone(logistic).set_params(C=1), MinMaxScaler()),
    "cancer-minmax-C10-labeled": Row(cancer, clone(logistic).set_params(C=10), MinMaxScaler()),
    "cancer-minmax-C1-features": Row(
        cancer, clone(logistic).set_params(C=1), MinMaxScaler(), "features"
    ),
    "cancer-minmax-C10-features": Row(
        cancer, clone(logistic).set_params(C=10), MinMaxScaler(), "features"
    ),
    "cancer-std-C.01-features": Row(
        cancer, clone(logistic).set_params(C=0.01), StandardScaler(), "features"
    ),
    "digits38-C.1-labeled": Row(digits_3_8, clone(logistic).set_params(C=0.1), MinMaxScaler()),
    "digits38-C.1-features": Row(
        digits_3_8, clone(logistic).set_params(C=0.1), MinMaxScaler(), "features"
    ),
    "diabetes-ridge": Row(diabetes, Ridge(0.1), StandardScaler(), epsilons=(0.3, 1.0, 3.0, 10.0)),
    "cancer-svc": Row(cancer, svc, StandardScaler()),
    "digits10-C.1-labeled": Row(
        digits, clone(logistic).set_params(C=0.1), MinMaxScaler(), epsilons=(1.0, 3.0, 10.0)
    ),
    "cancer-mlp": Row(
        cancer,
        FlatMLP((4,), alpha=1.0, solver="lbfgs", max_iter=300, random_state=0),
        StandardScaler(),
        release=["weights_"],
        epsilons=(1.0, 3.0, 10.0, 30.0),
    ),
    "cancer-pipeline-raw": Row(
        cancer, make_pipeline(StandardScaler(), svc), epsilons=(1.0, 3.0, 10.0, 30.0)
    ),
}


@dataclass
class Split:
    """Target, oracle and records of one split of a row."""

    target: ParameterTarget
    oracle: object
    private: tuple
    test: tuple

    @classmethod
    def of(cls, row, seed):
        X, y = row.load()
        labels = None if isinstance(row.model, Ridge) else y
        half = train_test_split(X, y, test_size=0.5, random_state=seed, stratify=labels)
        X_public, X_rest, y_public, y_rest = half
        labels = None if labels is None else y_rest
        X_private, X_test, y_private, y_test = train_test_split(
            X_rest, y_rest, train_size=0.7, random_state=seed, stratify=labels
        )
        model = row.model
        if row.scaler is not None:
            scaler = FrozenEstimator(clone(row.scaler).fit(X_public))
            X_public, X_private, X_test = map(scaler.transform, (X_public, X_private, X_test))
        if row.oracle == "labeled":
            oracle = PublicDataOracle(X_public, y_public)
        else:
            oracle = RandomTaskOracle(X_public, classes=np.unique(y))
        sampler = SensitivitySampler(oracle, random_state=seed)
        twin = clone(model).fit(*sampler.public_dataset(len(X_private)))
        target = ParameterTarget(model, row.release, twin)
        return cls(target, oracle, (X_private, y_private), (X_test, y_test))


def scores_of(row, split, mechanism, basis, n_releases, seed, n_jobs):
    """Scores of released models, shape (n_epsilons, n_releases), and the basis that was used."""
    make = MECHANISMS[mechanism]
    sampler = SensitivitySampler(split.oracle, gamma=0.05, random_state=seed, n_jobs=n_jobs)
    first = release(split.target, *split.private, mechanism=make(1.0, basis), sensitivity=sampler)
    estimate = first.sensitivity
    exact = split.target(*split.private, seed=seed)
    source = byte_source(seed)
    scores = np.empty((len(row.epsilons), n_releases))
    for scores_at, epsilon in zip(scores, row.epsilons, strict=True):
        noise = make(epsilon, basis).with_basis(estimate.basis)
        for i in range(n_releases):
            released = split.target.restore(noise.release(exact, estimate.value, source))
            scores_at[i] = released.score(*split.test)
    return scores, estimate.basis.kind


def run(name, row, n_splits, n_releases, n_jobs, bases):
    started = time.perf_counter()
    splits = [Split.of(row, seed) for seed in range(n_splits)]
    exact = np.mean([s.target.restore(s.target(*s.private, seed=0)).score(*s.test) for s in splits])
    d = splits[0].target(*splits[0].private, seed=0).size
    print(f"\n{name}: n={len(splits[0].private[0])}, d={d}, exact {exact:.3f}", flush=True)
    print(f"{'epsilon':>22} " + " ".join(f"{epsilon:>8g}" for epsilon in row.epsilons))
    for mechanism in MECHANISMS:
        for basis in bases:
            runs = [
                scores_of(row, split, mechanism, basis, -(-n_releases // n_splits), seed, n_jobs)
                for seed, split in enumerate(splits)
            ]
            means = np.concatenate([scores for scores, _ in runs], axis=1).mean(axis=1)
            kinds = " ".join(kind[:4] for _, kind in runs) if basis == "auto" else ""
            cells = " ".join(f"{mean:8.3f}" for mean in means)
            print(f"{mechanism:>10} {basis:>11} {cells}  {kinds}", flush=True)
    print(f"{time.perf_counter() - started:.0f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--bases", nargs="+", choices=BASES, default=BASES)
    parser.add_argument("--releases", type=int, default=160, help="per cell")
    parser.add_argument("--splits", type=int, default=4)
    parser.add_argument("--n-jobs", type=int, default=1)
    options = parser.parse_args()
    for name in options.rows:
        run(name, ROWS[name], options.splits, options.releases, options.n_jobs, options.bases)


if __name__ == "__main__":
    main()
