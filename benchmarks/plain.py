"""Plain differential privacy (gamma 0) of a few models, by mechanism, beside diffprivlib's.

Ours is `sensitivity="known"`: the bound follows from the clip in front of the model. A part of the
records is public, its features alone: from it come scaler, radius, second moment, and a prior by
which a code is learned. The promise depends on none of them. What the prior says is evaluated once
for each row and split, and kept in `--cache` like the scores of diffprivlib.

Usage: python benchmarks/plain.py [--rows NAME ...] [--splits 3] [--releases 20] [--figure PATH]
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from field import mean, peer_python, peer_scores, print_tables, summary
from rows import Split, cancer, diabetes, load
from sklearn.base import is_classifier
from sklearn.datasets import (
    load_digits,
    load_wine,
    make_classification,
    make_regression,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, RandomTreesEmbedding
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from skdp import (
    ClipBox,
    ClipNorm,
    GaussianMechanism,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivateEstimator,
    RandomTaskOracle,
    SensitivitySampler,
)
from skdp.core.dataset import Dataset
from skdp.estimator import known_sensitivity
from skdp.mechanisms.noise import byte_source
from skdp.plan import make_plan

COLUMNS = {
    "Laplace": LaplaceMechanism,
    "L2 Laplace": L2LaplaceMechanism,
    "Gaussian, delta 1e-5": lambda epsilon: GaussianMechanism(epsilon, 1e-5),
}
LINES = {
    "Laplace": {"color": "#0072B2", "marker": "o"},
    "L2 Laplace": {"color": "#56B4E9", "marker": "^", "linestyle": "--"},
    "Gaussian, delta 1e-5": {"color": "#009E73", "marker": "D", "linestyle": "-."},
    "diffprivlib": {"color": "#D55E00", "marker": "P", "linestyle": ":"},
}
MAX_N = 20_000


@dataclass(frozen=True)
class Row:
    """A model and its data; `model(split)` makes ours from what is public."""

    title: str
    load: Callable
    model: Callable
    exact: object
    peer: str
    has_prior: bool = True
    measure: str = "accuracy"
    epsilons: tuple = (0.1, 0.3, 1.0, 3.0)

    def split(self, seed):
        """Return a quarter of the records as public, half as private, a quarter for tests."""
        X, y = self.load()
        order = np.random.default_rng(seed).permutation(len(X))
        n = MAX_N if len(X) > MAX_N else len(X) // 2
        known, private, test = np.split(order, [(len(X) - n) // 2, (len(X) + n) // 2])
        known = known[:2000]
        classes = np.unique(y) if is_classifier(self.exact) else None
        if classes is None:
            low, high = range_of(y[known])
            oracle = RandomTaskOracle(X[known], y_mean=(low + high) / 2, y_scale=(high - low) / 4)
        else:
            oracle = RandomTaskOracle(X[known], classes=classes)
        return Split(oracle, (X[private], y[private]), (X[test], y[test]), (X[known], y[known]))


def range_of(y):
    """Return what the public side declares of a response."""
    return tuple(np.quantile(y, [0.025, 0.975]))


def classification():
    return make_classification(MAX_N + 7000, 20, n_informative=5, random_state=0)


def regression():
    return make_regression(MAX_N + 7000, 20, noise=50, random_state=0)


def clipped(split, quantile, *steps):
    """Return public steps and a clip to the norm that a share of the public records keep."""
    front = make_pipeline(*steps).fit(split.public[0])
    Z = front.transform(split.public[0])
    clip = ClipNorm(float(np.quantile(np.linalg.norm(Z, axis=1), quantile)))
    return [*map(FrozenEstimator, front), clip], clip.fit_transform(Z)


def second_moment(Z):
    rows = np.c_[Z, np.ones(len(Z))]
    return rows.T @ rows / len(rows)


def moments(shrinkage=0.6, components=None):
    def model(split):
        axes = [] if components is None else [PCA(components, svd_solver="full")]
        front, Z = clipped(split, 0.5, StandardScaler(), *axes)
        learner = MomentClassifier(
            constant=front[-1].radius / 2, shrinkage=shrinkage, second_moment=second_moment(Z)
        )
        return make_pipeline(*front, learner)

    return model


def bayes(components=None):
    def model(split):
        axes = [] if components is None else [PCA(components, svd_solver="full")]
        front, _ = clipped(split, 0.5, StandardScaler(), *axes)
        return make_pipeline(*front, GaussianNB())

    return model


def leaves(split):
    trees = RandomTreesEmbedding(30, max_depth=4, sparse_output=False, random_state=0)
    front, Z = clipped(split, 0.5, trees, PCA(20, svd_solver="full"))
    learner = MomentClassifier(
        constant=front[-1].radius / 2, shrinkage=0.6, second_moment=second_moment(Z)
    )
    return make_pipeline(*front, learner)


def response(split):
    front, Z = clipped(split, 0.5, StandardScaler())
    learner = MomentRegressor(
        y_range=range_of(split.public[1]),
        constant=front[-1].radius / 2,
        shrinkage=0.1,
        second_moment=second_moment(Z),
    )
    return make_pipeline(*front, learner)


def scaler(split):
    low, high = np.quantile(split.public[0], [0.0005, 0.9995], axis=0)
    return make_pipeline(ClipBox(low, high), StandardScaler())


wine, digits = load(load_wine), load(load_digits)
logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
ROWS = {
    "cancer": Row("logistic, breast cancer", cancer, moments(), logistic, "clipped"),
    "wine": Row("logistic, wine", wine, moments(), logistic, "clipped"),
    "digits": Row("logistic, ten digits", digits, moments(components=16), logistic, "clipped"),
    "synthetic": Row(
        "logistic, synthetic", classification, moments(shrinkage=0.03), logistic, "clipped"
    ),
    "nb-cancer": Row("naive Bayes, breast cancer", cancer, bayes(), GaussianNB(), "bayes"),
    "nb-digits": Row("naive Bayes, ten digits", digits, bayes(8), GaussianNB(), "bayes"),
    "nb-synthetic": Row("naive Bayes, synthetic", classification, bayes(), GaussianNB(), "bayes"),
    "forest": Row(
        "leaves, breast cancer", cancer, leaves, RandomForestClassifier(random_state=0), "forest"
    ),
    "diabetes": Row(
        "linear, diabetes",
        diabetes,
        response,
        LinearRegression(),
        "linear",
        measure="R²",
    ),
    "regression": Row(
        "linear, synthetic", regression, response, LinearRegression(), "linear", measure="R²"
    ),
    "scaler": Row(
        "scaler, synthetic",
        classification,
        scaler,
        StandardScaler(),
        "scaler",
        has_prior=False,
        measure="error of log variance",
    ),
}


def standardized(split):
    """Return a split in units of the public records."""
    scaler = StandardScaler().fit(split.public[0])
    parts = ((scaler.transform(X), y) for X, y in (split.private, split.test, split.public))
    return Split(split.oracle, *parts)


class KeptPilots(SensitivitySampler):
    """A sampler whose pilots were evaluated before."""

    def __init__(self, oracle, kept, **options):
        super().__init__(oracle, **options)
        self.kept = kept

    def pilots(self, target, n_samples, schema=None, mechanism=None):
        return self.kept


@dataclass(frozen=True)
class KeptBound(KnownSensitivity):
    """A bound whose prior has kept pilots."""

    kept: tuple = ()

    @property
    def sampler(self):
        return KeptPilots(self.prior, self.kept, gamma=None, random_state=0)


class Kept:
    """A row in one split: target, bound, and the target's value on pilots and private records."""

    def __init__(self, name, seed, folder):
        self.row, self.name, self.seed = ROWS[name], name, seed
        self.data = self.row.split(seed)
        self.model = self.row.model(self.data)
        first = self._plan_without_prior(LaplaceMechanism(1.0))
        self.target, self.schema = first.target, first.schema
        self.example = self.schema.convert(Dataset(*self._private()), "The private dataset")
        path = folder / f"plain-{name}-{seed}.npz"
        if self.row.has_prior and not path.exists():
            sampler = SensitivitySampler(self.data.oracle, gamma=None, n_pairs=199, random_state=0)
            values, differences = sampler.pilots(
                self.target, len(self.data.private[0]), self.schema, LaplaceMechanism(1.0)
            )
            np.savez(path, values=values, differences=differences)
        if self.row.has_prior:
            with np.load(path) as arrays:
                self.pilots = arrays["values"], arrays["differences"]

    def _private(self):
        return self.data.private[:1] if self.row.peer == "scaler" else self.data.private

    def _plan_without_prior(self, mechanism):
        classes = {"classes": self.data.oracle.classes_}
        model = PrivateEstimator(self.model, mechanism=mechanism, sensitivity="known", **classes)
        return model.plan(len(self.data.private[0]), like=self._private())

    def plan(self, mechanism):
        """Make the plan that a user gets, with the kept pilots."""
        known = known_sensitivity(self.target, mechanism)
        if self.row.has_prior:
            fields_of = {each.name: getattr(known, each.name) for each in fields(KnownSensitivity)}
            known = KeptBound(**fields_of | {"prior": self.data.oracle}, kept=self.pilots)
        return make_plan(
            self.target, self.schema, self.example, mechanism=mechanism, sensitivity=known
        )

    def scores(self, mechanism, n_releases):
        """Return the scores of so many releases."""
        source = byte_source(self.seed)
        try:
            plan = self.plan(mechanism)
        except ValueError:  # more than 16 numbers, and no code
            return [np.nan] * n_releases
        exact = plan.sensitivity.bounded(self.target)(*self.example.parts, seed=0)
        return [
            self.score(
                self.target.restore(plan.mechanism.release(exact, plan.sensitivity.value, source))
            )
            for _ in range(n_releases)
        ]

    def exact(self):
        """Return the score of the exact model, on standardized records."""
        data = standardized(self.data)
        if self.row.peer == "scaler":
            return 0.0
        return self.row.exact.fit(*data.private).score(*data.test)

    def score(self, model):
        """Return the score on the test records, of a scaler the error for the exact one."""
        if self.row.peer == "scaler":
            exact = StandardScaler().fit(*self._private())
            return np.abs(np.log(model[-1].var_ / exact.var_)).mean()
        return model.score(*self.data.test)


def run(name, seed, options):
    """Return the scores of a row in one split: a single one of the exact model, and by column."""
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # of weak promises, and of plans that learn little
        kept = Kept(name, seed, options.cache)
        scores = {"exact": [kept.exact()]}
        for title, mechanism in COLUMNS.items():
            scores[title] = [
                kept.scores(mechanism(epsilon), options.releases) for epsilon in kept.row.epsilons
            ]
        path = options.cache / f"plain-peer-{name}-{seed}.npy"
        scores["diffprivlib"] = peer_scores(
            options.python, kept.row.peer, standardized(kept.data), kept.row.epsilons, path, 5
        )
    return scores


def draw(results, path):
    """Draw the score against epsilon, a panel for each row."""
    fig, axes = plt.subplots(3, 4, figsize=(13, 8.5), layout="constrained")
    for ax in axes.flat[len(results) :]:
        ax.set_axis_off()
    for ax, (name, splits) in zip(axes.flat, results.items(), strict=False):
        means, row = summary(splits, mean), ROWS[name]
        exact = float(means.pop("exact"))
        if np.isfinite(exact):
            ax.axhline(exact, color="black", linewidth=1, label="exact, not private")
        for title, scores in means.items():
            ax.plot(row.epsilons, scores, label=title, markersize=5, **LINES[title])
        ax.set(xscale="log", title=row.title, ylabel=row.measure, xlabel="epsilon")
        ax.set_xticks(row.epsilons, [f"{epsilon:g}" for epsilon in row.epsilons])
        ax.minorticks_off()
        if row.peer == "scaler":
            ax.set_yscale("log")
        elif row.peer == "linear":
            ax.set_ylim(-1, 1)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="lower right")
    fig.savefig(path, dpi=90)
    plt.close(fig)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--releases", type=int, default=20, help="per split and epsilon")
    parser.add_argument("--cache", type=Path, default=Path(".cache/plain"))
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    options.python = peer_python(options.cache)
    results = {}
    for name in options.rows:
        results[name] = [run(name, seed, options) for seed in range(options.splits)]
    print_tables(results, ROWS, options)
    if options.figure:
        draw(results, options.figure)


if __name__ == "__main__":
    main()
