"""Audit each release whose sensitivity is known on paper, on the worst pair that a search finds.

By mechanism: the share of the bound that the pair reaches, the exact privacy loss of Laplace and L2
Laplace noise on it (in integers, rounding included), and the epsilon that samples show.
It is 1, and above it nothing may be found with the noise that is due, and something must be with
half of it. Such an audit errs with probability 1e-4 at most.

Where half the noise is not found, ten times as many runs are made. Draws of L2 Laplace noise are
too slow for that, and its exact loss has to do.

Usage: python benchmarks/known_audit.py [--runs 8000] [--noise NAME ...]
"""

import argparse
import math
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from skdp import (
    BernsteinTransformer,
    ClipBox,
    ClipNorm,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivateEstimator,
)
from skdp.audit import audit_epsilon
from skdp.mechanisms.discrete import discrete_l2_laplace
from skdp.mechanisms.l2_laplace import l2_laplace_scale
from skdp.mechanisms.laplace import laplace_scale

sys.path.append(str(Path(__file__).parents[1] / "tests" / "estimators"))
from test_known_statistics import bounded, norms, terms

N = 20
BALL, BOX = ClipNorm(1.0), ClipBox(-1, 1)
MECHANISMS = {
    "Laplace": LaplaceMechanism(1.0),
    "L2 Laplace": L2LaplaceMechanism(1.0),
    "Gaussian": GaussianMechanism(1.0, 0.01),  # with a smaller delta more runs are needed
}
ALPHA = 1e-4
# Steps, and how many classes there are: 0 for a response, None for no y.
MEANS = [
    ([BALL, MomentClassifier()], 2),
    ([BALL, MomentClassifier()], 3),
    ([BALL, MomentClassifier()], 4),
    ([BALL, MomentRegressor(y_range=(-1, 1))], 0),
    ([BOX, GaussianNB()], 2),
    ([BALL, GaussianNB()], 2),
    ([BernoulliNB()], 3),
    ([ClipBox(0, 3), MultinomialNB()], 3),
    ([ClipBox(0, 2), CategoricalNB()], 2),
    ([DummyClassifier()], 3),
    ([BOX, StandardScaler()], None),
    ([BALL, StandardScaler()], None),
    ([BALL, bounded(Ridge())], 0),
    ([BALL, EmpiricalCovariance()], None),
    ([BALL, PCA(1)], None),
]
MINIMIZERS = [
    LogisticRegression(C=1e-3, fit_intercept=False),
    LogisticRegression(C=1e-3, solver="liblinear"),
    LinearSVC(C=1e-3, loss="hinge"),
    LinearSVC(C=1e-3),
]


def plan_of(model, mechanism, example, **options):
    model = PrivateEstimator(model, mechanism=mechanism, sensitivity="known", **options)
    return model.plan(N, like=example)


def worst_of_mean(steps, n_classes, mechanism, order):
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
    plan = plan_of(make_pipeline(*steps), mechanism, example, **options)
    added = terms(plan.target, X, y)
    farthest = [norms(added - each, order) for each in added]
    first, second = np.unravel_index(np.argmax(farthest), (len(X), len(X)))
    places = np.full(N, first)
    pair = places, np.append(places[1:], second)
    return plan, [plan.target(*(part[each] for part in records), seed=0) for each in pair]


def worst_of_minimizer(estimator, mechanism):
    """Return the same of equal records, one of which turns its label."""
    X, y = np.full((N, 2), 9.0), np.zeros(N, dtype=int)
    plan = plan_of(make_pipeline(BALL, estimator), mechanism, (X, y), classes=[0, 1])
    turned = np.append(y[1:], 1)
    return plan, [plan.target(X, each, seed=0) for each in (y, turned)]


def worst_of_density(mechanism):
    """Return the same of equal records on a lattice point, one of which goes to another."""
    X = np.full((N, 1), 0.25)
    lattice = BernsteinTransformer(8, feature_range=(0, 1))
    plan = plan_of(KernelDensity(bandwidth=0.03), mechanism, (X,), release=lattice)
    return plan, [plan.target(each, seed=0) for each in (X, np.vstack([X[1:], [[0.75]]]))]


def exact_loss(mechanism, values, bound):
    """Return the largest log ratio of two probabilities, in units of the epsilon."""
    if isinstance(mechanism, GaussianMechanism):
        return np.nan
    pure = laplace_scale if mechanism.order == 1 else l2_laplace_scale
    lattice, scale = pure(bound, values[0].size, mechanism.epsilon)
    moved = np.subtract(*(lattice.to_integers(each).astype(object) for each in values))
    if mechanism.order == 1:
        return float(Fraction(int(np.abs(moved).sum()), scale))
    return math.sqrt(Fraction(int((moved**2).sum()), scale**2))


def lower_bound(mechanism, values, sensitivity, runs):
    """Return the epsilon that samples of the noise show, from the statistic that tells most."""

    def outputs(which, n, rng):
        if isinstance(mechanism, L2LaplaceMechanism):  # many at once
            lattice, scale = l2_laplace_scale(sensitivity, values[0].size, mechanism.epsilon)
            noise = discrete_l2_laplace(scale, values[0].size, rng, n)
            released = lattice.to_floats(lattice.to_integers(values[which]), noise)
        else:
            copies = np.broadcast_to(values[which], (n, values[0].size))
            released = mechanism.release(copies, sensitivity, rng)
        near, far = (norms(released - each, mechanism.order) for each in values)
        power = 2 if isinstance(mechanism, GaussianMechanism) else 1
        return np.round((far**power - near**power) / sensitivity**power, 9)

    claim = mechanism.guarantee()
    return audit_epsilon(
        outputs,
        [(0, 1)],
        claimed_epsilon=claim.epsilon,
        delta=claim.delta,
        n_search=runs // 4,
        n_final=runs,
        alpha=ALPHA,
        method="pair" if claim.delta else "label",
        rng=0,
    )


def cases(mechanism):
    """Walk the releases: name, plan and two values."""
    for steps, n_classes in MEANS:
        name = " ".join(", ".join(map(repr, steps)).split())  # without line breaks
        if n_classes:
            name += f", {n_classes} classes"
        yield name, *worst_of_mean(steps, n_classes, mechanism, mechanism.order)
    for estimator in MINIMIZERS:
        yield repr(estimator), *worst_of_minimizer(estimator, mechanism)
    yield "KernelDensity(bandwidth=0.03)", *worst_of_density(mechanism)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=8000, help="of the test, a fourth to search")
    parser.add_argument("--noise", nargs="+", choices=MECHANISMS, default=list(MECHANISMS))
    options = parser.parse_args()
    runs = options.runs
    warnings.simplefilter("ignore")  # scikit-learn's, of fits to few records
    failed = False
    for title in options.noise:
        mechanism = MECHANISMS[title]
        print(f"\n| {title} | share of bound | exact loss | found | with half the noise |")
        print("|---|---|---|---|---|")
        for name, plan, values in cases(mechanism):
            bound = plan.sensitivity.value
            share = np.linalg.norm(np.subtract(*values), mechanism.order) / bound
            loss = exact_loss(mechanism, values, bound)
            due, half = (lower_bound(mechanism, values, each, runs) for each in (bound, bound / 2))
            if not half.violated and mechanism.most_values is None:
                # the more numbers, the rarer are outputs that tell
                half = lower_bound(mechanism, values, bound / 2, 10 * runs)
            missed = not (half.violated or exact_loss(mechanism, values, bound / 2) > 1)
            shown = (share, loss, due.lower_bound, half.lower_bound)
            print(f"| {name} | {' | '.join(f'{number:.3f}' for number in shown)} |", flush=True)
            failed |= share > 1 or loss > 1 or due.violated or missed
    return int(failed)


if __name__ == "__main__":
    with threadpool_limits(limits=1):
        sys.exit(main())
