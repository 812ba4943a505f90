"""Releases whose sensitivity is known on paper: their records, and pairs on which they move most.

What a record adds to a sum is its code times its features, so a pair of records is a pair of
neighboring datasets whatever the other records are.
"""

import math
from fractions import Fraction

import numpy as np
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    BernsteinTransformer,
    ClipBox,
    ClipNorm,
    GaussianMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivateEstimator,
)
from skdp.estimators.known.squares import LeastSquares
from skdp.estimators.known.two_classes import MomentsOfResponse, TwoClassMoments
from skdp.estimators.known_target import KnownTarget

BALL, SMALL, LARGE = [ClipNorm(1.0)], [ClipNorm(0.3)], [ClipNorm(5.0)]
BOX, LOPSIDED = [ClipBox(-1, 1)], [ClipBox([-2, 1, 0, -1, 3], [1, 4, 2, -0.5, 7])]
BOTH, AMOUNTS = [ClipBox(-0.5, 2), ClipNorm(1.5)], [ClipBox(0, 3)]
THIN = [ClipBox(0, 1), ClipNorm(1.2)]


def bounded(regressor):
    return TransformedTargetRegressor(regressor, transformer=ClipBox(-2, 5), check_inverse=False)


# Clips, estimator, number of classes (0 for a response, None for nothing), and for L1 and L2 which
# share of the bound the search must reach: what the page says is attained within 5 %.
CASES = [
    (BALL, MomentClassifier(constant=0.5), 2, 0.95, 0.95),
    (BALL, MomentClassifier(constant=0.5), 3, 0.6, 0.95),
    (BALL, MomentClassifier(constant=0.5), 10, 0.95, 0.95),
    (SMALL, MomentClassifier(constant=2.0), 5, 0.95, 0.95),
    (LARGE, MomentClassifier(constant=0), 2, 0.95, 0.95),
    (LARGE, MomentClassifier(), 2, 0.95, 0.95),
    (SMALL, MomentClassifier(constant=2.0), 2, 0.8, 0.95),
    (SMALL, MomentClassifier(constant=2.0), 3, 0.6, 0.95),
    (BALL, MomentClassifier(second_moment=np.eye(5)), 2, 0.95, 0.95),
    (BALL, MomentClassifier(second_moment=np.eye(5)), 3, 0.6, 0.95),
    (BOX, MomentClassifier(), 2, 0.95, 0.95),
    (LOPSIDED, MomentClassifier(), 2, 0.7, 0.95),
    (BOTH, MomentClassifier(), 2, 0.9, 0.95),
    (BALL, MomentRegressor(y_range=(-3, 11)), 0, 0.95, 0.95),
    (BOX, MomentRegressor(y_range=(0, 1), constant=0), 0, 0.95, 0.95),
    (LOPSIDED, MomentRegressor(y_range=(-1, 1)), 0, 0.6, 0.95),
    (BOX, MomentRegressor(y_range=(0, 1), second_moment=np.eye(5)), 0, 0.95, 0.95),
    (BALL, StandardScaler(), None, 0.5, 0.95),
    (LARGE, StandardScaler(), None, 0.5, 0.95),
    (BOX, StandardScaler(), None, 0.95, 0.95),
    (LOPSIDED, StandardScaler(), None, 0.95, 0.95),
    (BALL, GaussianNB(), 2, 0.95, 0.95),
    (SMALL, GaussianNB(), 3, 0.95, 0.95),
    (LARGE, GaussianNB(), 2, 0.95, 0.95),
    (BOX, GaussianNB(), 3, 0.95, 0.95),
    (LOPSIDED, GaussianNB(), 2, 0.95, 0.95),
    (BOTH, GaussianNB(), 2, 0.5, 0.5),
    (AMOUNTS, MultinomialNB(), 3, 0.95, 0.95),
    (THIN, MultinomialNB(), 2, 0.95, 0.95),
    (BALL, bounded(Ridge()), 0, 0.4, 0.95),
    (LARGE, bounded(LinearRegression(fit_intercept=False)), 0, 0.4, 0.95),
    (BOX, bounded(Ridge(alpha=0.1)), 0, 0.4, 0.95),
]
# Where a bound on the L2 norm counts, two classes have the products of all columns released too.
WITH_PRODUCTS = [BALL, SMALL, LARGE, BOX, LOPSIDED, BOTH]
N_FEATURES = 5


def target_of(clips, estimator, n_classes, n_samples=50, mechanism=None):
    rng = np.random.default_rng(0)
    pipeline = make_pipeline(*clips, estimator)
    y = np.arange(60) % n_classes if n_classes else rng.uniform(size=60)
    fitted = pipeline.fit(rng.uniform(size=(60, N_FEATURES)), y)
    return KnownTarget(estimator, fitted, n_samples, mechanism)


def terms(target, X, y):
    """What each record adds to the sum."""
    X = target.steps.transform(X)
    statistic = target.statistic
    if isinstance(statistic, LeastSquares):
        rows = statistic.rows(X, y)
        first, second = np.triu_indices(rows.shape[1])
        return statistic.scales * rows[:, first] * rows[:, second]
    if isinstance(statistic, TwoClassMoments):
        signs, squares = 2 * y[:, None] - 1, np.sum(X**2, axis=1, keepdims=True)
        if isinstance(statistic, MomentsOfResponse):
            signs = statistic.model._codes(y)
        signs = signs / math.sqrt(2)
        if statistic.has_products:
            first, second = np.triu_indices(X.shape[1])
            squares = statistic.scales * X[:, first] * X[:, second]
        constant = np.full((len(X), 1), statistic.constant)
        parts = signs * X, signs * constant, X / math.sqrt(8), statistic.weight * squares
        return np.hstack(parts)
    codes, features = statistic.codes(y, len(X)), statistic.features(X)
    features = features.toarray() if sparse.issparse(features) else features
    return (codes[:, :, None] * features[:, None, :]).reshape(len(X), -1)


def extreme_records(rng, n_records, n_classes):
    """Corners, axes, diagonals and directions, far outside of any clip and within."""
    signs = rng.choice([-1.0, 1.0], size=(n_records, N_FEATURES))
    axes = np.eye(N_FEATURES)[rng.integers(N_FEATURES, size=n_records)] * signs
    kinds = rng.integers(6, size=n_records)
    X = np.choose(
        kinds[:, None],
        [signs, axes, np.abs(signs), rng.normal(size=signs.shape), -np.abs(signs), signs / 3],
    )
    X *= rng.choice([0.0, 1 / 3, 1.0, 3.0, 1e9], size=(n_records, 1))
    y = rng.integers(n_classes, size=n_records) if n_classes else rng.choice([-1e9, 1e9], n_records)
    return X, y


def norms(differences, order):
    return np.linalg.norm(differences, ord=order, axis=1)


def climb(target, order, rng, n_classes, n_starts=150, n_steps=40):
    """Move pairs of records uphill, many at once, in ever smaller steps."""
    X, y = extreme_records(rng, 2 * n_starts, n_classes)
    X = np.clip(X, -9, 9)

    def height(X):
        first, second = np.split(terms(target, X, y), 2)
        return norms(first - second, order)

    best = height(X)
    for size in np.geomspace(2, 1e-3, n_steps):
        tried = X + size * rng.normal(size=X.shape) * (rng.random(X.shape) < 0.5)
        heights = height(tried)
        better = np.tile(heights > best, 2)
        X[better] = tried[better]
        best = np.maximum(best, heights)
    return best.max()


N = 20


def plan_of(model, mechanism, example, **options):
    model = PrivateEstimator(model, mechanism=mechanism, sensitivity="known", **options)
    return model.plan(N, like=example)


def worst_of_mean(clips, estimator, n_classes, mechanism):
    """Return a plan and its values on two neighbors: what single records add is searched."""
    rng = np.random.default_rng(0)
    angles = np.linspace(0, 2 * math.pi, 48, endpoint=False)
    points = np.vstack([np.c_[np.cos(angles), np.sin(angles)], rng.choice([-9, 0, 9], (16, 2))])
    X = np.vstack([size * points for size in (1.0, 0.5, 9.0)])
    labels = (-9.0, 9.0) if n_classes == 0 else range(n_classes or 1)
    X, y = np.tile(X, (len(labels), 1)), np.repeat(labels, len(X))
    keep = slice(None if n_classes is not None else 1)
    records = (X, y)[keep]
    options = {"classes": range(n_classes)} if n_classes else {}
    example = tuple(part[:N] for part in records)
    plan = plan_of(make_pipeline(*clips, estimator), mechanism, example, **options)
    added = terms(plan.target, X, y)
    farthest = [norms(added - each, mechanism.order) for each in added]
    first, second = np.unravel_index(np.argmax(farthest), (len(X), len(X)))
    places = np.full(N, first)
    pair = places, np.append(places[1:], second)
    return plan, [plan.target(*(part[each] for part in records), seed=0) for each in pair]


def worst_of_minimizer(estimator, mechanism):
    """Return the same of equal records, one of which turns its label."""
    X, y = np.full((N, 2), 9.0), np.zeros(N, dtype=int)
    plan = plan_of(make_pipeline(*BALL, estimator), mechanism, (X, y), classes=[0, 1])
    turned = np.append(y[1:], 1)
    return plan, [plan.target(X, each, seed=0) for each in (y, turned)]


def worst_of_density(mechanism):
    """Return the same of equal records on a lattice point, one of which goes to another."""
    X = np.full((N, 1), 0.25)
    lattice = BernsteinTransformer(8, feature_range=(0, 1))
    plan = plan_of(KernelDensity(bandwidth=0.032), mechanism, (X,), release=lattice)
    return plan, [plan.target(each, seed=0) for each in (X, np.vstack([X[1:], [[0.75]]]))]


def exact_loss(mechanism, values, bound):
    """Return the largest log ratio of two probabilities, in units of the epsilon."""
    if isinstance(mechanism, GaussianMechanism):
        return np.nan
    lattice, scale = mechanism._scale(values[0].size, bound)
    moved = np.subtract(*(lattice.to_integers(each).astype(object) for each in values))
    if mechanism.order == 1:
        return float(Fraction(int(np.abs(moved).sum()), scale))
    return math.sqrt(Fraction(int((moved**2).sum()), scale**2))
