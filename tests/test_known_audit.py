"""Releases whose sensitivity is known, on their worst pairs: the promise is kept, and only just."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.naive_bayes import CategoricalNB
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from skdp import (
    BernsteinTransformer,
    ClipBox,
    ClipNorm,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    PrivateEstimator,
)
from skdp.audit import audit_release
from skdp.mechanisms.l2_laplace import l2_laplace_scale

N = 20
ZEROS, FAR = np.zeros((N, 2)), np.full((N, 2), 9.0)
LABELS = np.zeros(N, dtype=int)
LATTICE = BernsteinTransformer(8, feature_range=(0, 1))

# What is released, the records, and the record that takes the place of the first one: X and y.
WORST = [
    (make_pipeline(ClipBox(0, 2), CategoricalNB()), (ZEROS, LABELS), (2.0, 0)),
    (DummyClassifier(), (ZEROS, LABELS), (0.0, 1)),
    (make_pipeline(ClipNorm(), LinearSVC(C=1e-3, loss="hinge", intercept_scaling=0.7)),
     (FAR, LABELS), (9.0, 1)),
    (KernelDensity(bandwidth=0.03), (np.full((N, 1), 0.25),), (0.75,)),
]  # fmt: skip


def neighbor(records, record):
    changed = tuple(part.copy() for part in records)
    for part, value in zip(changed, record, strict=True):
        part[0] = value
    return changed


@pytest.mark.parametrize(
    ("estimator", "records", "record"),
    WORST,
    ids=["bins", "shares", "svm", "kde"],
)
def test_the_promise_is_kept_and_half_the_noise_is_found(estimator, records, record):
    """Seeded; an audit errs with probability 1e-4 at most."""
    density = isinstance(estimator, KernelDensity)
    plan = PrivateEstimator(
        estimator,
        mechanism=LaplaceMechanism(1.0),
        sensitivity="known",
        release=LATTICE if density else "auto",
        classes=None if density else [0, 1],
    ).plan(N, like=records)
    pair = [plan.target(*each, seed=0) for each in (records, neighbor(records, record))]
    bound = plan.sensitivity.value
    # the exact loss of Laplace noise on a pair is epsilon times this ratio
    assert 0.9 < np.abs(pair[0] - pair[1]).sum() / bound <= 1
    options = {"stacked": True, "alpha": 1e-4, "rng": 0, "n_search": 2000, "n_final": 8000}
    assert not audit_release(*pair, plan.mechanism, bound, **options).violated
    assert audit_release(*pair, plan.mechanism, bound / 2, **options).violated


def test_noise_by_the_euclidean_length_keeps_its_promise_and_half_of_it_does_not():
    """Exactly for L2 Laplace noise, whose log ratio is the length of the difference over t."""
    records = FAR, LABELS
    model = PrivateEstimator(
        make_pipeline(ClipNorm(), MomentClassifier()),
        mechanism=L2LaplaceMechanism(1.0),
        sensitivity="known",
        classes=[0, 1],
    )
    plan = model.plan(N, like=records)
    pair = [plan.target(*each, seed=0) for each in (records, neighbor(records, (9.0, 1)))]
    bound = plan.sensitivity.value
    losses = []
    for sensitivity in (bound, bound / 2):
        lattice, scale = l2_laplace_scale(sensitivity, pair[0].size, 1.0)
        losses.append(np.linalg.norm(np.subtract(*map(lattice.to_integers, pair)) / scale))
    assert 0.99 < losses[0] <= 1 < 1.98 < losses[1]

    options = {"stacked": True, "alpha": 1e-4, "rng": 0, "n_search": 2000, "n_final": 8000}
    mechanism = GaussianMechanism(1.0, 0.01)
    assert not audit_release(*pair, mechanism, bound, **options).violated
    assert audit_release(*pair, mechanism, bound / 2, **options).violated
