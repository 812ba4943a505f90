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
from contextlib import nullcontext, suppress
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from field import mean, peer_python, peer_scores, print_tables, summary
from rows import Split, cancer, diabetes, load
from sklearn.base import clone, is_classifier
from sklearn.datasets import (
    load_digits,
    load_wine,
    make_classification,
    make_regression,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier, RandomTreesEmbedding
from sklearn.frozen import FrozenEstimator
from sklearn.kernel_approximation import Nystroem
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
from skdp.estimators import known as known_targets
from skdp.mechanisms.noise import byte_source
from skdp.planning import make_plan
from skdp.preparation import known_sensitivity

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
    "OpenDP": {"color": "#CC79A7", "marker": "X", "linestyle": ":"},
}
MAX_N = 20_000
MANY = 10_000
"""From so many records on what a clip takes away is more than the noise that it saves."""
N_SIMULATED = 40
"""From how many datasets of the oracle the number of components is chosen."""


@dataclass(frozen=True)
class Row:
    """A model and its data; `model(split, number)` makes ours from what is public.

    `components` are the numbers of principal components to choose from.
    """

    title: str
    load: Callable
    model: Callable
    exact: object
    peer: str
    components: tuple = (None,)
    opendp: str | None = None
    has_prior: bool = True
    n_splits: int = 3
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
            low, high = response_range(y[known])
            oracle = RandomTaskOracle(X[known], y_mean=(low + high) / 2, y_scale=(high - low) / 4)
        else:
            oracle = RandomTaskOracle(X[known], classes=classes)
        return Split(oracle, (X[private], y[private]), (X[test], y[test]), (X[known], y[known]))


def response_range(y):
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


def components(number):
    """Return a step that leaves so many of the public principal components."""
    return [] if number is None else [PCA(number, svd_solver="full")]


def mismatch(Z, split):
    """Return the relative variance of the two second moments, public and private."""
    return Z.shape[1] * (1 / len(Z) + 1 / len(split.private[0]))


def second_moment(Z):
    rows = np.c_[Z, np.ones(len(Z))]
    return rows.T @ rows / len(rows)


def moments(*steps):
    """A class depends on a direction, so a second moment is shrunk by its relative error.

    Of many records there is so little noise that labels of fewer public ones say less.
    """

    def model(split, number):
        front, Z = clipped(split, 0.5, *map(clone, steps), *components(number))
        few = len(split.private[0]) < MANY
        return make_pipeline(
            *front,
            MomentClassifier(
                constant=front[-1].radius / 2,
                shrinkage=min(1.0, mismatch(Z, split) ** 0.5),
                second_moment=second_moment(Z),
                refit_on=Z if few else None,
            ),
        )

    return model


def bayes(*steps):
    """Of few records variances have much noise, and one that is too small does most harm."""

    def model(split, number):
        front, _ = clipped(split, 0.5, *map(clone, steps), *components(number))
        few = len(split.private[0]) < MANY
        return make_pipeline(*front, GaussianNB(var_smoothing=0.1 if few else 1e-9))

    return model


def response(split, number):
    """A squared error depends on the size of coefficients, so what shrinks them is less."""
    many = len(split.private[0]) >= MANY
    front, Z = clipped(split, 0.95 if many else 0.5, StandardScaler())
    learner = MomentRegressor(
        y_range=response_range(split.public[1]),
        constant=front[-1].radius / 2,
        shrinkage=min(1.0, mismatch(Z, split)),
        second_moment=second_moment(Z),
    )
    return make_pipeline(*front, learner)


def scaler(split, number):
    low, high = np.quantile(split.public[0], [0.0005, 0.9995], axis=0)
    return make_pipeline(ClipBox(low, high), StandardScaler())


wine, digits = load(load_wine), load(load_digits)
standard, centered = StandardScaler(), StandardScaler(with_std=False)
logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
leaves = RandomTreesEmbedding(30, max_depth=4, sparse_output=False, random_state=0)
kernel = Nystroem(n_components=100, random_state=0)
ROWS = {
    "cancer": Row(
        "logistic, breast cancer", cancer, moments(standard), logistic, "clipped", (4, 8, 16, 30)
    ),
    "wine": Row(
        "logistic, wine",
        wine,
        moments(standard),
        logistic,
        "clipped",
        (4, 8, 13),
        n_splits=24,
    ),
    "digits": Row(
        "logistic, ten digits", digits, moments(centered), logistic, "clipped", (8, 16, 32)
    ),
    "synthetic": Row(
        "logistic, synthetic",
        classification,
        moments(standard, kernel),
        logistic,
        "clipped",
        (16, 32, None),
    ),
    "nb-cancer": Row(
        "naive Bayes, breast cancer", cancer, bayes(standard), GaussianNB(), "bayes", (4, 8, 16)
    ),
    "nb-digits": Row(
        "naive Bayes, ten digits", digits, bayes(centered), GaussianNB(), "bayes", (8, 16)
    ),
    "nb-synthetic": Row(
        "naive Bayes, synthetic", classification, bayes(standard), GaussianNB(), "bayes"
    ),
    "forest": Row(
        "leaves, breast cancer",
        cancer,
        moments(leaves),
        RandomForestClassifier(random_state=0),
        "forest",
        (4, 8, 16, 32),
    ),
    "diabetes": Row(
        "linear, diabetes (R²)", diabetes, response, LinearRegression(), "linear", n_splits=24
    ),
    "regression": Row("linear, synthetic (R²)", regression, response, LinearRegression(), "linear"),
    "scaler": Row(
        "scaler, synthetic (error of log variance)",
        classification,
        scaler,
        StandardScaler(),
        "scaler",
        opendp="opendp_scaler",
        has_prior=False,
    ),
}


def kept_metrics():
    """Evaluate the metric of each target once, not for every plan."""
    evaluate, kept = known_targets.output_metric, {}

    def output_metric(public_fit, value, restore, X):
        target = restore.__self__
        if id(target) not in kept:
            kept[id(target)] = target, evaluate(public_fit, value, restore, X)
        return kept[id(target)][1]

    known_targets.output_metric = output_metric


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
    """A row in one split, with one number of components: target, and its value on pilots."""

    def __init__(self, name, seed, number, folder):
        self.row, self.seed = ROWS[name], seed
        self.data = self.row.split(seed)
        self.model = self.row.model(self.data, number)
        first = self._plan_without_prior(LaplaceMechanism(1.0))
        self.target, self.schema = first.target, first.schema
        self.example = self.schema.convert(Dataset(*self._private()), "The private dataset")
        path = folder / f"plain-{name}-{number}-{seed}.npz"
        if self.row.has_prior and not path.exists():
            n_pairs = 199 if len(self.data.private[0]) < MANY else 59
            sampler = SensitivitySampler(
                self.data.oracle, gamma=None, n_pairs=n_pairs, random_state=0
            )
            values, differences = sampler.pilots(
                self.target, len(self.data.private[0]), self.schema, LaplaceMechanism(1.0)
            )
            np.savez(path, values=values, differences=differences)
        if self.row.has_prior:
            with np.load(path) as arrays:
                self.pilots = arrays["values"], arrays["differences"]
        self.front = make_pipeline(*self.model[:-1]).fit(self.data.public[0])

    @cached_property
    def public(self):
        """The public records as the last step sees them."""
        return self.front.transform(self.data.public[0])

    @cached_property
    def test(self):
        """The test records as the last step sees them, and what they are."""
        X, y = self.data.test
        return self.front.transform(X), y

    def labels(self, values):
        """Return how models of these values label the public records."""
        return np.array([self.target.restore(value)[-1].predict(self.public) for value in values])

    @cached_property
    def exact_labels(self):
        """The labels that datasets of the oracle give, without noise."""
        return self.labels(self.pilots[0][:N_SIMULATED])

    def agreement(self, plan, labels):
        """Return how often releases of these datasets give the same labels."""
        source, value = byte_source(self.seed), plan.sensitivity.value
        released = [
            plan.mechanism.release(pilot, value, source) for pilot in self.pilots[0][: len(labels)]
        ]
        return np.mean(self.labels(released) == labels)

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

    def scores(self, plan, n_releases):
        """Return the scores of so many releases."""
        source = byte_source(self.seed)
        exact = plan.sensitivity.bounded(self.target)(*self.example.parts, seed=0)
        noised = (
            plan.mechanism.release_with_errors(exact, plan.sensitivity.value, source)
            for _ in range(n_releases)
        )
        usual = plan.mechanism.geometry.basis.mean
        return [
            self.score(self.target.knowing_errors(errors, usual).restore(value))
            for value, errors in noised
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
        return model[-1].score(*self.test)


def best_scores(candidates, mechanism, n_releases):
    """Release with the number of components that does best on datasets of the oracle.

    Of these, labeled by random rules, releases are simulated. The best one labels the public
    records most often as the largest number does without noise.
    """
    plans = []
    for kept in candidates:
        # more than 16 numbers, and no code
        with suppress(ValueError) if mechanism.most_values else nullcontext():
            plans.append((kept, kept.plan(mechanism)))
    if not plans:
        return [np.nan] * n_releases
    if len(plans) > 1:
        labels = candidates[-1].exact_labels
        plans.sort(key=lambda each: each[0].agreement(each[1], labels))
    kept, plan = plans[-1]
    return kept.scores(plan, n_releases)


def run(name, seed, options):
    """Return the scores of a row in one split: a single one of the exact model, and by column."""
    row = ROWS[name]
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # of weak promises, and of plans that learn little
        candidates = [Kept(name, seed, number, options.cache) for number in row.components]
        scores = {"exact": [candidates[0].exact()]}
        for title, mechanism in COLUMNS.items():
            scores[title] = [
                best_scores(candidates, mechanism(epsilon), options.releases)
                for epsilon in row.epsilons
            ]
        data = standardized(candidates[0].data)
        for title, kind, label in (
            ("diffprivlib", row.peer, "peer"),
            ("OpenDP", row.opendp, "opendp"),
        ):
            path = options.cache / f"plain-{label}-{name}-{seed}.npy"
            scores[title] = peer_scores(options.python, kind, data, row.epsilons, path, 5)
    return scores


def draw(results, path):
    """Draw the score against epsilon, a panel for each row."""
    fig, axes = plt.subplots(3, 4, figsize=(13, 9), layout="constrained")
    for ax in axes.flat[len(results) :]:
        ax.set_axis_off()
    for ax, (name, splits) in zip(axes.flat, results.items(), strict=False):
        means, row = summary(splits, mean), ROWS[name]
        exact = float(means.pop("exact"))
        if row.peer == "scaler":
            ax.set_yscale("log")
        else:
            ax.axhline(exact, color="black", linewidth=1, label="exact, not private")
        for title, scores in means.items():
            ax.plot(row.epsilons, scores, label=title, markersize=5, **LINES[title])
        ax.set(xscale="log", xlabel="epsilon")
        ax.set_title(row.title.replace(" (", "\n("))
        ax.set_xticks(row.epsilons, [f"{epsilon:g}" for epsilon in row.epsilons])
        ax.minorticks_off()
        if row.peer == "linear":
            ax.set_ylim(-1, 1)
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    fig.savefig(path, dpi=90)
    plt.close(fig)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--splits", type=int, help="instead of the number of each row")
    parser.add_argument("--releases", type=int, default=20, help="per split and epsilon")
    parser.add_argument("--cache", type=Path, default=Path(".cache/plain"))
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    options.python = peer_python(options.cache)
    kept_metrics()
    results = {}
    for name in options.rows:
        n_splits = options.splits or ROWS[name].n_splits
        results[name] = [run(name, seed, options) for seed in range(n_splits)]
    print_tables(results, ROWS, options)
    if options.figure:
        draw(results, options.figure)


if __name__ == "__main__":
    main()
