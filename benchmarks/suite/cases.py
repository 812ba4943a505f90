"""What is timed: a target, an oracle, and how one would evaluate it without this library."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from scipy.stats import expon
from sklearn.base import clone, is_classifier
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.neighbors import KernelDensity
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skdp import (
    AdditiveTarget,
    BernsteinTransformer,
    FittedFunctionTarget,
    LaplaceMechanism,
    LeafTarget,
    PublicDataOracle,
    SensitivitySampler,
)
from skdp.core.dataset import as_dataset, neighboring_pair
from skdp.estimators.parameters import ParameterTarget
from skdp.sensitivity.adapters import as_oracle

GEOMETRY = LaplaceMechanism(epsilon=1.0, basis="identity").geometry
LATTICE = np.linspace(0, 1, 11)[:, None]
BANDWIDTH = 0.05


@dataclass
class Case:
    """A target; `evaluate` is the plain way, which a loop takes `n_loop` times where it is timed.

    `n_pairs` is how many pairs the sampler is timed on: enough that what it does once per run is
    spread over them.
    """

    n_samples: int
    oracle: Any
    target: Any
    evaluate: Any
    n_pairs: int
    n_loop: int


def mixture(n_samples, rng):
    """Draw from .4 N(.5, var .02) + .6 N(.75, var .005)."""
    first = rng.random((n_samples, 1)) < 0.4
    deviations = rng.standard_normal((n_samples, 1))
    return np.where(first, 0.5 + 0.02**0.5 * deviations, 0.75 + 0.005**0.5 * deviations)


mixture.independent_records = True


def kernel(X):
    """Evaluate the kernel of each record on the lattice."""
    deviations = (X - LATTICE.T) / BANDWIDTH
    return np.exp(-0.5 * deviations * deviations) / (BANDWIDTH * np.sqrt(2 * np.pi))


def refitted_density(X):
    """Evaluate a kernel density estimate on the lattice."""
    return np.exp(KernelDensity(bandwidth=BANDWIDTH).fit(X).score_samples(LATTICE))


def mean(n_samples):
    """Make the case of a mean of exponential records."""
    oracle, target = as_oracle(expon()), AdditiveTarget(np.asarray)
    return Case(n_samples, oracle, target, np.mean, 50_000, 400)


def density():
    """Make the case of a kernel density, as a mean of kernels."""
    target = AdditiveTarget(kernel)
    return Case(5000, mixture, target, refitted_density, 50_000, 20)


def estimated_density():
    """Make the case of a kernel density, as the estimator that it is."""
    kde = KernelDensity(bandwidth=BANDWIDTH)
    twin = clone(kde).fit(mixture(5000, np.random.default_rng(0)))
    target = FittedFunctionTarget(
        kde, BernsteinTransformer(degree=10, feature_range=(0, 1)), twin=twin
    )
    return Case(5000, mixture, target, refitted_density, 50_000, 20)


def table(n_samples, n_features, is_labeled):
    """Draw a public table of twice the number of records."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * n_samples, n_features)) * np.linspace(1, 2, n_features)
    scores = X @ rng.standard_normal(n_features) + rng.standard_normal(2 * n_samples)
    return X, (scores > 0).astype(int) if is_labeled else scores


def parameters(estimator, n_samples, n_features, n_pairs, n_loop):
    """Make the case of an estimator, with its registered attributes."""
    X, y = table(n_samples, n_features, is_classifier(estimator))
    dataset = (X,) if isinstance(estimator, PCA) else (X, y)
    twin = clone(estimator).fit(*dataset)
    target = ParameterTarget(estimator, "auto", twin)

    def evaluate(*dataset):
        fitted = clone(estimator).fit(*dataset)
        values = {name: getattr(fitted, name) for name in target.names}
        if isinstance(estimator, PCA):
            cosines = np.sum(values["components_"] * twin.components_, axis=1, keepdims=True)
            values["components_"] = values["components_"] * np.sign(cosines)
        return np.concatenate([np.ravel(value) for value in values.values()])

    oracle = PublicDataOracle(*dataset)
    return Case(n_samples, oracle, target, evaluate, n_pairs, n_loop)


def leaves():
    """Make the case of the counts in the leaves of a public tree."""
    X, y = table(1000, 8, is_labeled=True)
    tree = DecisionTreeClassifier(max_leaf_nodes=32, random_state=0).fit(X, y)
    target = LeafTarget().bind(clone(tree), tree)

    def evaluate(X, y):
        counts = np.zeros((tree.tree_.node_count, 2))
        np.add.at(counts, (tree.apply(X), y), 1)
        return counts

    return Case(1000, PublicDataOracle(X, y), target, evaluate, 50_000, 400)


def _cases():
    yield "mean, n = 100", lambda: mean(100)
    yield "mean, n = 1000", lambda: mean(1000)
    yield "KDE, k = 10", density
    yield "KernelDensity, k = 10", estimated_density
    yield "32 leaves, d = 8", leaves
    for estimator, n_pairs in (
        (GaussianNB(), 20_000),
        (BernoulliNB(), 20_000),
        (Ridge(), 10_000),
        (LinearRegression(), 10_000),
        (LinearDiscriminantAnalysis(), 10_000),
        (PCA(), 10_000),
        (LinearSVC(), 100),
    ):
        name = f"{type(estimator).__name__}, d = 8"
        yield name, partial(parameters, estimator, 1000, 8, n_pairs, min(n_pairs, 100))
    yield "LinearSVC, d = 64", lambda: parameters(LinearSVC(), 1000, 64, 10, 10)
    yield "LogisticRegression, d = 20", lambda: parameters(LogisticRegression(), 1000, 20, 50, 50)
    large = partial(parameters, LogisticRegression(), 100_000, 20, 3, 3)
    yield "LogisticRegression, d = 20, large", large


CASES = dict(_cases())
"""Each makes its case when it is called: they hold tables."""


def sample(case, seed=0, **options):
    """Run the sampler and return its seconds; `options` are its parameters."""
    sampler = SensitivitySampler(case.oracle, random_state=seed, **options)
    start = perf_counter()
    estimate = sampler.sample(case.target, case.n_samples, GEOMETRY)
    seconds = perf_counter() - start
    if sum(estimate.failures.values()) > len(estimate.norms) // 10:
        raise RuntimeError(f"Failed pairs would be cheap: {estimate.failures}")
    return seconds


def sample_pairs(case, n_pairs, seed=0, **options):
    """Run the sampler on so many pairs and return its seconds."""
    return sample(case, seed, gamma=None, n_pairs=n_pairs, **options)


def loop(case, n_pairs, seed=0):
    """Draw, fit twice, take the norm, sort: what a user would write; return its seconds."""
    rng = np.random.default_rng(seed)
    start = perf_counter()
    norms = []
    for _ in range(n_pairs):
        dataset, neighbor = neighboring_pair(as_dataset(case.oracle(case.n_samples + 1, rng)))
        difference = np.ravel(case.evaluate(*dataset) - case.evaluate(*neighbor))
        norms.append(np.abs(difference).sum())
    norms.sort()
    return perf_counter() - start
