"""Accuracy of released models by basis: how much a good basis is worth.

For each row (data, model, oracle) and each mechanism and basis the sensitivity is sampled once a
split; the exact parameters are then released many times at each epsilon, and the released models
are scored on test records. Half of the records are public, .35 private and .15 for tests. Reading
the same private data many times is for benchmarks only. There are two protocols:

- "reference": what the reference figures below were measured with, over three or four splits. The
  scalers are fitted on all records; random tasks have no noise and equal classes. Each cell is
  printed with its difference from the figure, and "<" if it is more than .02 below.
- "own": the scalers are fitted on the public half, and random tasks are as by default. It has
  further rows.

A cell is the mean over splits. The standard error in brackets takes the splits for independent;
seven at a time test on every record about once, so it errs on the large side.

Usage: python benchmarks/utility.py [--protocol own] [--rows NAME ...] [--splits 21]
"""

import argparse
import hashlib
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import product

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import LinearSVC

from skdp import PublicDataOracle, RandomTaskOracle, SensitivitySampler, release
from skdp.estimators.parameters import ParameterTarget
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.mechanisms.noise import byte_source

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


def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y  # the range of a pixel is public


def digits_3_8():
    X, y = digits()
    keep = np.isin(y, [3, 8])
    return X[keep], y[keep]


def load(loader):
    return lambda: loader(return_X_y=True)


cancer, diabetes = load(load_breast_cancer), load(load_diabetes)
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
    "digits38-C.1-labeled": Row(digits_3_8, clone(logistic).set_params(C=0.1)),
    "digits38-C.1-features": Row(digits_3_8, clone(logistic).set_params(C=0.1), oracle="features"),
    "diabetes-ridge": Row(diabetes, Ridge(0.1), StandardScaler(), epsilons=(0.3, 1.0, 3.0, 10.0)),
    "cancer-svc": Row(cancer, svc, StandardScaler()),
    "digits10-C.1-labeled": Row(
        digits, clone(logistic).set_params(C=0.1), epsilons=(1.0, 3.0, 10.0)
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


@dataclass(frozen=True)
class Reference:
    """Figures of a row, by mechanism and basis, at its values of epsilon."""

    exact: float
    cells: dict


def figures(exact, *columns):
    names = [(m, b) for m in MECHANISMS for b in ("identity", "predictive")]
    return Reference(exact, dict(zip(names, columns, strict=False)))


# Columns: Laplace identity and predictive, Gaussian identity and predictive.
REFERENCES = {
    "cancer-minmax-C1-labeled": figures(
        0.959,
        (0.655, 0.851, 0.937),
        (0.864, 0.943, 0.955),
        (0.763, 0.907, 0.947),
        (0.900, 0.949, 0.955),
    ),
    "cancer-minmax-C10-labeled": figures(
        0.968,
        (0.565, 0.715, 0.874),
        (0.757, 0.932, 0.962),
        (0.625, 0.779, 0.923),
        (0.807, 0.943, 0.965),
    ),
    "cancer-minmax-C1-features": figures(
        0.959,
        (0.618, 0.798, 0.929),
        (0.823, 0.941, 0.954),
        (0.646, 0.867, 0.943),
        (0.874, 0.942, 0.954),
    ),
    "cancer-minmax-C10-features": figures(
        0.968,
        (0.550, 0.649, 0.858),
        (0.689, 0.896, 0.960),
        (0.555, 0.732, 0.887),
        (0.758, 0.925, 0.962),
    ),
    "cancer-std-C.01-features": figures(
        0.948,
        (0.781, 0.911, 0.942),
        (0.808, 0.926, 0.944),
        (0.818, 0.924, 0.943),
        (0.867, 0.929, 0.945),
    ),
    "digits38-C.1-labeled": figures(
        0.975,
        (0.561, 0.692, 0.890),
        (0.672, 0.886, 0.968),
        (0.607, 0.783, 0.943),
        (0.774, 0.942, 0.978),
    ),
    "digits38-C.1-features": figures(
        0.975,
        (0.527, 0.633, 0.851),
        (0.622, 0.829, 0.956),
        (0.560, 0.727, 0.904),
        (0.729, 0.905, 0.970),
    ),
    "diabetes-ridge": figures(0.466, (-15, -1.07, 0.40, 0.46), (-0.25, 0.39, 0.46, 0.47)),
    "cancer-svc": figures(None, (0.767, 0.919, 0.953), (0.802, 0.953, 0.965)),
}
TOLERANCE = 0.02
N_TURNS = 7


class Remembered(ParameterTarget):
    """A target that fits each pair once, whatever the mechanisms and bases that measure it."""

    def __init__(self, *args):
        super().__init__(*args)
        self._seen = {}

    def pair_values(self, records, seed, position=-1):
        key = ((seed, position), *(np.asarray(part).tobytes() for part in records))
        digest = hashlib.sha256(repr(key[0]).encode() + b"".join(key[1:])).digest()
        if digest not in self._seen:
            self._seen[digest] = super().pair_values(records, seed, position)
        return self._seen[digest]


@dataclass
class Split:
    """Target, oracle and records of one split of a row."""

    target: ParameterTarget
    oracle: object
    private: tuple
    test: tuple

    @classmethod
    def of(cls, row, seed, protocol):
        X, y = row.load()
        # A permutation serves as often as it takes to test on each record about once.
        permutation, turn = divmod(seed, N_TURNS)
        order = np.random.default_rng(permutation).permutation(len(X))
        order = np.roll(order, turn * len(X) // N_TURNS)
        n_public, n_private = len(X) // 2, int(0.35 * len(X))
        public, private, test = np.split(order, [n_public, n_public + n_private])
        if row.scaler is not None:
            seen = X if protocol == "reference" else X[public]
            X = clone(row.scaler).fit(seen).transform(X)
        if row.oracle == "labeled":
            oracle = PublicDataOracle(X[public], y[public])
        else:
            plain = {"noise": 0.0, "class_shares": (1, 1)} if protocol == "reference" else {}
            oracle = RandomTaskOracle(X[public], classes=np.unique(y), **plain)
        sampler = SensitivitySampler(oracle, random_state=seed)
        twin = clone(row.model).fit(*sampler.public_dataset(n_private))
        target = Remembered(row.model, row.release, twin)
        return cls(target, oracle, (X[private], y[private]), (X[test], y[test]))


def scores_of(row, split, mechanism, basis, n_releases, seed):
    """Mean score of released models at each epsilon, and the kind of basis that was used."""
    make = MECHANISMS[mechanism]
    sampler = SensitivitySampler(split.oracle, gamma=0.05, random_state=seed)
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
    return scores.mean(axis=1), estimate.basis.kind


def run(name, options):
    """Print the cells of a row; return the mean scores by mechanism and basis."""
    started = time.perf_counter()
    row, exact, scores, kinds = ROWS[name], [], defaultdict(list), defaultdict(Counter)
    n_releases = -(-options.releases // options.splits)
    for seed in range(options.splits):
        split = Split.of(row, seed, options.protocol)
        fitted = split.target(*split.private, seed=0)
        exact.append(split.target.restore(fitted).score(*split.test))
        for key in product(MECHANISMS, options.bases):
            means, kind = scores_of(row, split, *key, n_releases, seed)
            scores[key].append(means)
            kinds[key][kind] += 1
    reference = REFERENCES.get(name) if options.protocol == "reference" else None
    print(
        f"\n{name}: n={len(split.private[0])}, d={fitted.size}, {options.splits} splits of "
        f"{n_releases} releases, exact {summary(exact, reference and reference.exact)}"
    )
    print(f"{'epsilon':>21} " + " ".join(f"{epsilon:>22g}" for epsilon in row.epsilons))
    for (mechanism, basis), rows in scores.items():
        figure = reference and reference.cells.get((mechanism, basis))
        figure = figure or [None] * len(row.epsilons)
        cells = " ".join(
            f"{summary(*each):>22}" for each in zip(np.transpose(rows), figure, strict=True)
        )
        chosen = kinds[mechanism, basis]
        chosen = ", ".join(f"{kind} {n}" for kind, n in chosen.items()) if basis == "auto" else ""
        print(f"{mechanism:>9} {basis:>11} {cells}  {chosen}".rstrip(), flush=True)
    print(f"{time.perf_counter() - started:.0f} s", flush=True)
    return {key: np.mean(rows, axis=0) for key, rows in scores.items()}


def summary(scores, figure=None):
    """Mean, standard error over splits, and the difference from a reference figure."""
    error = np.std(scores, ddof=1) / np.sqrt(len(scores)) if len(scores) > 1 else np.nan
    text = f"{np.mean(scores):.3f} ({error:.3f})"
    if figure is None:
        return text
    difference = np.mean(scores) - figure
    return f"{text} {difference:+.3f}{'<' if difference < -TOLERANCE else ' '}"


def conclude(table, protocol):
    """Print how far cells are below the reference, and "auto" below the best basis."""
    if protocol == "reference":
        below = defaultdict(list)
        for name, means in table.items():
            for key, figure in REFERENCES[name].cells.items():
                if key in means:
                    cells = zip(ROWS[name].epsilons, means[key] - figure, strict=True)
                    below[key[1]] += [(d, name, key[0], e) for e, d in cells]
        for basis, cells in below.items():
            far = sorted(cell for cell in cells if cell[0] < -TOLERANCE)
            print(f"\n{basis}: {len(far)} of {len(cells)} cells more than {TOLERANCE} below")
            for difference, *where in far:
                print(f"  {difference:+.3f}", *where)
    gaps = []
    for name, means in table.items():
        for mechanism in MECHANISMS:
            others = [means[key] for key in means if key[0] == mechanism and key[1] != "auto"]
            if (mechanism, "auto") in means and others:
                gap = means[mechanism, "auto"] - np.max(others, axis=0)
                gaps += [
                    (g, name, mechanism, e) for g, e in zip(gap, ROWS[name].epsilons, strict=True)
                ]
    if gaps:
        gap, *where = min(gaps)
        print(f"\nauto against the best basis of its row: {gap:+.3f} at worst,", *where)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocol", choices=["reference", "own"], default="reference")
    parser.add_argument("--rows", nargs="+", choices=ROWS)
    parser.add_argument("--bases", nargs="+", choices=BASES, default=BASES)
    parser.add_argument("--releases", type=int, default=420, help="per cell")
    parser.add_argument("--splits", type=int, default=21)
    options = parser.parse_args()
    names = ROWS if options.protocol == "own" else REFERENCES
    table = {name: run(name, options) for name in options.rows or names}
    conclude(table, options.protocol)


if __name__ == "__main__":
    main()
