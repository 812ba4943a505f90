"""Ours, peers and published figures on the same tables: Adult, rice, breast cancer, any estimator.

Public are features without labels. Everything before the model, radii and second moments come from
them. Nothing is chosen by test scores. Peers run in environments that the script makes in
`--cache`. Figures that others published stand in `PUBLISHED`, with their source.

Usage: python benchmarks/field.py --data FOLDER [--tables adult any-adult] [--small]

FOLDER holds adult.data.gz (UCI census income) and rice.arff.gz (UCI rice).
"""

import argparse
import gzip
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import sklearn
from scipy.io import arff
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.svm import SVC, LinearSVC
from threadpoolctl import threadpool_limits
from utility import front_of, moments, peer_python, peer_scores

import skdp
from skdp import (
    ClipNorm,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    PrivateEstimator,
    RandomTaskOracle,
    SampleAndAggregate,
    SensitivitySampler,
)
from skdp.accounting import PrivacyAccountant

PUBLISHED = """
S-BDT (distributed private boosted decision trees, arXiv 2309.12041), Adult, delta 5e-8,
best of up to 18 settings by test score: accuracy .775/.799/.808/.830/.840 at
epsilon .01/.02/.03/.1/.5, exact .857. They use no public records.
PAC privacy ("PAC-Private Algorithms", S&P 2025), rice, LinearSVC: .575/.707/.849/.911 at a mutual
information of 1/128, 1/16, 1/2, 4, exact .926; at 1/128 membership is guessed with probability at
most .5625, which epsilon .251 allows. They use no public records.
"""
ADULT = [
    *("age", "workclass", "weight", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "country"),
    "income",
]
NUMBERS = ["age", "education-num", "hours-per-week"]
CAPITAL = ["capital-gain", "capital-loss"]
CATEGORIES = ["workclass", "marital-status", "occupation", "relationship", "race", "sex"]
DELTA = 5e-8  # as S-BDT


@dataclass(frozen=True)
class Split:
    """Public features, private and test records, as numbers scaled by public records."""

    public: tuple
    private: tuple
    test: tuple

    @property
    def oracle(self):
        """Declare that no class is rarer than this: rarer than in any of the tables."""
        classes = np.unique(self.private[1])
        return RandomTaskOracle(self.public[0], classes=classes, least_share=0.4 / len(classes))

    def first(self, n_private):
        """Return a split with fewer private records, for estimators that take long."""
        return replace(self, private=tuple(each[:n_private] for each in self.private))


def split_of(X, y, seed, n_public, n_private, front=None):
    """Cut a table, and transform it by steps that are fitted to public records."""
    order = np.random.default_rng(seed).permutation(len(y))
    cuts = np.split(order, [n_public, n_public + n_private])
    rows = (lambda part: X.iloc[part]) if hasattr(X, "iloc") else (lambda part: X[part])
    front = clone(StandardScaler() if front is None else front).fit(rows(cuts[0]))
    parts = [(np.asarray(front.transform(rows(part)), dtype=float), y[part]) for part in cuts]
    return Split(parts[0][:1], *parts[1:])


def with_share(y, share):
    """Return the places of as many records as there are with this share of ones."""
    ones, zeros = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    n_ones = min(len(ones), int(len(zeros) * share / (1 - share)))
    return np.sort(np.r_[ones[:n_ones], zeros[: int(n_ones * (1 - share) / share)]])


def adult(options, seed, raw=False, share=None):
    if options.small:
        X, y = make_classification(1500, 20, n_informative=4, weights=[0.75], random_state=0)
        return split_of(X, y, seed, 300, 900)
    with gzip.open(options.data / "adult.data.gz", "rt") as file:
        frame = pd.read_csv(file, header=None, names=ADULT, skipinitialspace=True)
    front = make_column_transformer(
        (StandardScaler(), NUMBERS),
        (make_pipeline(FunctionTransformer(np.log1p), StandardScaler()), CAPITAL),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), CATEGORIES),
    )
    if raw:  # as trees take it
        encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        front = make_column_transformer(("passthrough", NUMBERS + CAPITAL), (encoder, CATEGORIES))
    y = (frame["income"] == ">50K").to_numpy().astype(int)
    if share is not None:
        kept = with_share(y, share)
        frame, y = frame.iloc[kept], y[kept]
    return split_of(frame, y, seed, 2000, (len(y) - 2000) * 3 // 4 if share else 22130, front)


def rice(options, seed):
    if options.small:
        X, y = make_classification(600, 7, random_state=0)
        return split_of(X, y, seed, 150, 300)
    with gzip.open(options.data / "rice.arff.gz", "rt") as file:
        frame = pd.DataFrame(arff.loadarff(file)[0])
    y = (frame.pop("Class") == b"Cammeo").to_numpy().astype(int)
    return split_of(frame.to_numpy(dtype=float), y, seed, 952, 1905)


def cancer(options, seed):
    X, y = load_breast_cancer(return_X_y=True)
    return split_of(X, y, seed, 142, 284)


def digits(options, seed):
    X, y = load_digits(return_X_y=True)
    return split_of(X / 16, y, seed, 449, 900, FunctionTransformer())


@dataclass(frozen=True)
class Entry:
    """A line of a table: `fit(split, epsilon, seed)` returns a fitted model."""

    title: str
    promise: str
    fit: Callable
    n_releases: int = 3


def exact(model):
    return Entry(
        f"{name_of(model)}, exact", "none", lambda split, *_: clone(model).fit(*split.private), 1
    )


def alone(model):
    """Average what the public features alone give: fits to random tasks."""

    def fit(split, epsilon, seed):
        draw = split.oracle(len(split.private[1]), np.random.default_rng([8, seed]))
        return clone(model).fit(*draw)

    return Entry(f"{name_of(model)}, public records alone", "none", fit, 9)


def private(title, promise, model, mechanism, sensitivity, *, prior=False, limit=None, **options):
    """Make a line of ours; `model(split, epsilon)` may look at public records."""

    def fit(split, epsilon, seed):
        split = split.first(limit)
        return PrivateEstimator(
            model(split, epsilon),
            mechanism=mechanism(epsilon),
            sensitivity=sensitivity(split, seed),
            prior=split.oracle if prior else None,
            classes=split.oracle.classes_,
            **options,
        ).fit(*split.private)

    return Entry(title, promise, fit)


def few(split, epsilon, most):
    """Return a step that keeps so many components as epsilon resolves, no step for all columns.

    The 10 was chosen on other splits of Adult.
    """
    number = round(np.sqrt(len(split.private[1]) * epsilon / 10))
    return [PCA(min(max(number, 1), most), svd_solver="full")] if most else []


def sampled(title, model, components=None, **options):
    def behind_few(split, epsilon):
        steps = [step.fit(split.public[0]) for step in few(split, epsilon, components)]
        return make_pipeline(*map(FrozenEstimator, steps), clone(model)) if steps else clone(model)

    return private(
        title,
        "random, gamma .05",
        behind_few,
        LaplaceMechanism,
        lambda split, seed: SensitivitySampler(split.oracle, gamma=0.05, random_state=0),
        **options,
    )


def aggregated(title, model, student=None, **options):
    return private(
        title,
        "plain",
        lambda *_: clone(model),
        L2LaplaceMechanism,
        lambda split, seed: SampleAndAggregate(student=student, random_state=0),
        prior=True,
        **options,
    )


def sampled_twice(model):
    """Return the lines of all columns, and of a few components in front."""
    for title, components in (("all columns", None), ("few components", 40)):
        line = sampled(f"sampled, {name_of(model)}, {title}", model, components)
        yield replace(line, n_releases=10)


def by_moments(title, mechanism, promise="plain", components=None, **options):
    def model(split, epsilon):
        front, Z = front_of(split, 0.5, StandardScaler(), *few(split, epsilon, components))
        return make_pipeline(*front, moments(split, Z, front[-1].radius))

    line = private(title, promise, model, mechanism, lambda *_: "known", **options)
    return replace(line, n_releases=10)  # fast, and far apart at small epsilon


def gaussian(epsilon):
    return GaussianMechanism(epsilon, delta=DELTA)


def name_of(model):
    return type(model[-1] if hasattr(model, "steps") else model).__name__


logistic = LogisticRegression(max_iter=1000)
boosting = HistGradientBoostingClassifier(random_state=0)
forty = HistGradientBoostingClassifier(max_iter=40, early_stopping=False, random_state=0)
regularized = LogisticRegression(C=0.01, max_iter=1000)  # chosen on another split
mild = LogisticRegression(C=0.1, max_iter=1000)
svc = LinearSVC(C=0.01)
ESTIMATORS = {
    "SVC": SVC(),
    "nearest neighbors": KNeighborsClassifier(15),
    "forest": RandomForestClassifier(30, random_state=0),
    "boosting": boosting,
    "network": MLPClassifier((16,), alpha=1.0, max_iter=300, random_state=0),
}


def adult_entries(options):
    return [
        exact(logistic),
        exact(boosting),
        alone(logistic),
        by_moments("moments", L2LaplaceMechanism, components=15),
        by_moments("moments, Gaussian", gaussian, f"plain, delta {DELTA:g}", 40),
        by_moments("moments, prior", L2LaplaceMechanism, components=15, prior=True),
        *([] if options.small else [aggregated("blocks, boosting, logistic", boosting, logistic)]),
        aggregated("blocks, logistic", logistic),
        *sampled_twice(regularized),
        *([] if options.small else [sampled("sampled, boosting", boosting, release="predictions")]),
    ]


def rice_entries(options):
    return [
        exact(svc),
        alone(svc),
        sampled("sampled, LinearSVC", svc),
        by_moments("moments, prior", L2LaplaceMechanism, prior=True),
    ]


def cancer_entries(options):
    return [
        exact(logistic),
        alone(logistic),
        *sampled_twice(svc),
        by_moments("moments, prior", L2LaplaceMechanism, components=8, prior=True),
        by_moments("moments, no prior", L2LaplaceMechanism, components=8),
    ]


def digits_entries(options):
    return [exact(mild), alone(mild), *sampled_twice(mild)]


def share_entries(options):
    """Return moments that know nothing but the norm of public records."""

    def model(split, epsilon):
        radius = np.median(np.linalg.norm(split.public[0], axis=1))
        return make_pipeline(ClipNorm(radius), MomentClassifier())

    def known(*_):
        return "known"

    promise = f"plain, delta {DELTA:g}"
    return [exact(logistic), private("moments, no prior", promise, model, gaussian, known)]


def any_entries(limit):
    """Return a table of five estimators; more than `limit` records are for blocks alone."""

    def entries(options):
        chosen = ["nearest neighbors"] if options.small else list(ESTIMATORS)
        for name in chosen:
            model = ESTIMATORS[name]
            small, blocks = {"limit": limit}, aggregated(f"{name}, blocks", model)
            yield replace(exact(model), title=f"{name}, exact")
            yield replace(alone(model), title=f"{name}, public records alone", n_releases=3)
            if name == "network":
                yield sampled(f"{name}, parameters", model, **small)
            predictions = sampled(f"{name}, predictions", model, release="predictions", **small)
            yield from (replace(each, n_releases=2) for each in (predictions, blocks))

    return entries


def predictions_entries(options):
    """Return boosting of forty trees by its predictions, with as few records as take minutes."""
    yield exact(forty)
    yield sampled("boosting, predictions", forty, release="predictions", limit=8000)


@dataclass(frozen=True)
class Table:
    split: Callable
    entries: Callable
    epsilons: tuple
    n_splits: int = 2
    peers: tuple = ()  # a kind of peers.py, the package, and options of the split


FOUR = (0.1, 0.3, 1.0, 3.0)
TABLES = {
    "adult": Table(
        adult,
        adult_entries,
        (0.01, 0.03, 0.1, 0.5, 1.0),
        1,
        peers=(("clipped", "diffprivlib", {}), ("boosting-mixed", "interpret", {"raw": True})),
    ),
    "rice": Table(rice, rice_entries, (0.251, 0.74), 4),
    "cancer": Table(
        cancer,
        cancer_entries,
        FOUR,
        3,
        peers=(("clipped", "diffprivlib", {}), ("boosting", "interpret", {})),
    ),
    "digits": Table(digits, digits_entries, FOUR, 3),
    "any-cancer": Table(cancer, any_entries(None), FOUR, 2),
    "any-digits": Table(digits, any_entries(None), FOUR, 1),
    "any-adult": Table(adult, any_entries(2000), FOUR, 1),
    "predictions-adult": Table(adult, predictions_entries, (0.083, 0.28, 0.83, 2.8), 2),
} | {
    f"adult-share-{share:g}": Table(partial(adult, share=share), share_entries, (0.1, 1.0))
    for share in (0.01, 0.1, 0.25, 0.5)
}


def scores_of(model, split):
    """Return accuracy, and for two classes the area under the curve."""
    X, y = split.test
    accuracy = model.score(X, y)
    if len(np.unique(y)) > 2:
        return accuracy, np.nan
    if hasattr(model, "predict_proba"):
        return accuracy, roc_auc_score(y, model.predict_proba(X)[:, 1])
    score = model.decision_function if hasattr(model, "decision_function") else model.predict
    return accuracy, roc_auc_score(y, score(X))


def run(table, entry, seed, options):
    """Return scores of shape (n_epsilons, n_releases, 2) and the seconds of a fit."""
    table = TABLES[table]
    epsilons = table.epsilons[-1:] if options.small else table.epsilons
    epsilons = (np.inf,) if entry.promise == "none" else epsilons
    scores, started = [], time.process_time()
    n_releases = 1 if options.small else entry.n_releases
    budget = PrivacyAccountant(":memory:", epsilon=np.inf, delta=1.0)  # a worker has none
    with budget.as_default(), warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")  # plans warn of little that is learned
        split = table.split(options, seed)
        for epsilon in epsilons:
            models = [entry.fit(split, epsilon, i) for i in range(n_releases)]
            scores.append([scores_of(model, split) for model in models])
    seconds = (time.process_time() - started) / (len(epsilons) * n_releases)
    return np.array(scores), seconds


def cells(values):
    return "/".join(f"{value:.3f}".lstrip("0") for value in values)


def print_table(name, options):
    """Run a table and print it, a line for each entry."""
    table = TABLES[name]
    entries = [entry for entry in table.entries(options) if options.only in entry.title]
    seeds = range(1 if options.small else options.splits or table.n_splits)
    tasks = [(entry, seed) for entry in entries for seed in seeds]
    results = joblib.Parallel(n_jobs=options.n_jobs, return_as="generator")(
        joblib.delayed(run)(name, *task, options) for task in tasks
    )
    print(f"\n{name}: epsilon {'/'.join(f'{epsilon:g}' for epsilon in table.epsilons)}")
    print("| model | promise | accuracy | std. error | AUC | seconds |\n|---|---|---|---|---|---|")
    for entry in entries:
        each = [next(results) for _ in seeds]  # as they come
        means = np.stack([scores.mean(axis=1) for scores, _ in each])
        errors = np.stack([scores.std(axis=1) for scores, _ in each])[..., 0].mean(axis=0)
        seconds = np.mean([seconds for _, seconds in each])
        accuracy, area = means.mean(axis=0).T
        area = "" if np.isnan(area).any() else cells(area)
        line = [entry.title, entry.promise, cells(accuracy), cells(errors), area, f"{seconds:.2g}"]
        print("| " + " | ".join(line) + " |", flush=True)
    for kind, package, how in () if options.small else table.peers:
        if options.only not in f"{package}, {kind}":
            continue
        python = peer_python(options.cache, package)
        scores = [
            peer_scores(
                python,
                kind,
                table.split(options, seed, **how),
                table.epsilons,
                options.cache / f"{name}-{kind}-{seed}.npy",
                n_releases=3,
            )
            for seed in seeds
        ]
        mean = np.mean(scores, axis=(0, 2))
        print(f"| {package}, {kind} | plain | {cells(mean)} | | | |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of adult.data.gz and rice.arff.gz")
    tables = ["adult", "rice", "cancer", "digits"]
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=tables)
    parser.add_argument("--cache", type=Path, default=Path(".cache/field"))
    parser.add_argument("--splits", type=int, help="other than those of the guide")
    parser.add_argument("--n-jobs", type=int, default=-1)
    parser.add_argument("--only", default="", help="what is in the titles of the lines to run")
    parser.add_argument(
        "--small", action="store_true", help="made-up records, few models, no peers"
    )
    options = parser.parse_args()
    if options.small:
        options.n_jobs, options.tables = 1, ["adult", "rice", "any-cancer", "predictions-adult"]
    elif options.data is None:
        parser.error("--data is needed, or --small")
    options.cache.mkdir(parents=True, exist_ok=True)
    print(f"skdp {skdp.__version__}, scikit-learn {sklearn.__version__}", PUBLISHED, sep="\n")
    for name in options.tables:
        print_table(name, options)


if __name__ == "__main__":
    main()
