"""How far one record moves a statistic: never farther than its bound says, and as far as that.

What a record adds to the sum is its code times its features, so a pair of records is a pair of
neighboring datasets whatever the other records are.
"""

import math

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from skdp import ClipBox, ClipNorm, GaussianMechanism, MomentClassifier
from skdp.estimators.known_target import KnownTarget
from tests.known_cases import (
    AMOUNTS,
    BALL,
    CASES,
    N_FEATURES,
    WITH_PRODUCTS,
    climb,
    extreme_records,
    norms,
    target_of,
    terms,
)

IDS = [f"{type(case[1]).__name__}-{number}" for number, case in enumerate(CASES)]
N_RECORDS = 6000  # of which 4 pairs each are looked at


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    ("clips", "estimator", "n_classes", "share_l1", "share_l2"), CASES, ids=IDS
)
def test_no_pair_exceeds_the_bound_and_some_attain_it(
    clips, estimator, n_classes, share_l1, share_l2, order
):
    share = share_l1 if order == 1 else share_l2
    check_bound(lambda n: target_of(clips, estimator, n_classes, n), n_classes, order, share)


@pytest.mark.parametrize("clips", WITH_PRODUCTS)
@pytest.mark.parametrize("constant", [0.5, 3.0])
def test_products_add_nothing_in_the_l2_norm(clips, constant):
    """The bound is the one without them."""
    mechanism, model = GaussianMechanism(1.0, 1e-5), MomentClassifier(constant=constant)

    def make(n_samples):
        return target_of(clips, model, 2, n_samples, mechanism)

    plain = target_of(clips, model, 2)
    assert make(1).shape == (2 * N_FEATURES + 1 + N_FEATURES * (N_FEATURES + 1) // 2,)
    assert plain.shape == (2 * N_FEATURES + 2,)
    assert make(1).statistic.l2 == plain.statistic.l2
    check_bound(make, 2, 2, 0.95)


def check_bound(make, n_classes, order, share):
    """Try records, and pairs of small datasets, on targets for so many records."""
    target = make(50)
    bound = target.statistic.bound(order, 1)
    rng = np.random.default_rng(order)
    X, y = extreme_records(rng, N_RECORDS, n_classes)
    added = terms(target, X, y)
    reached = 0.0
    for shift in range(1, 5):
        reached = max(reached, norms(added - np.roll(added, shift, axis=0), order).max())
    reached = max(reached, climb(target, order, rng, n_classes))
    assert reached <= bound
    assert reached >= share * bound
    for n_samples in (1, 7):  # the computed values, whatever the other records are
        target = make(n_samples)
        for start in range(0, 50, 10):
            rows = np.arange(start, start + n_samples)
            parts = (X, y)[: None if n_classes is not None else 1]
            pair = (rows, np.append(rows[:-1], start + n_samples))
            value, other = (target(*(part[each] for part in parts), seed=0) for each in pair)
            moved = np.linalg.norm(value - other, ord=order)
            assert moved <= target.statistic.bound(order, n_samples)


def test_the_bound_pays_for_rounding():
    """With so many records that what one adds is lost in the sum, the bound is that of the sum."""
    target = target_of(BALL, MomentClassifier(), 2)
    small, large = (target.statistic.bound(2, n) for n in (10**3, 10**12))
    assert small == pytest.approx(math.sqrt(2 * 1.25) / 10**3)
    assert large > 10 * math.sqrt(2 * 1.25) / 10**12


@pytest.mark.parametrize("clips", [BALL, AMOUNTS])
def test_sparse_records_give_the_same(clips):
    rng = np.random.default_rng(0)
    X, y = rng.poisson(1, size=(40, N_FEATURES)).astype(float), np.arange(40) % 2
    for estimator in (MomentClassifier(), MultinomialNB()):
        target = target_of([ClipBox(0, 9), *clips], estimator, 2)
        dense = target(X, y, seed=0)
        np.testing.assert_allclose(target(sparse.csr_array(X), y, seed=0), dense, atol=1e-12)


def test_the_bound_of_a_minimizer_pays_for_the_rounding_of_long_sums():
    """One record decides whether a sum is above 2**15, and thus whether all others are rounded."""
    unit, shift = 2.0**-37, 2.0**-45
    steps = 2 * ((np.floor([0.1 / unit, -0.1 / unit]) + 0.5) * unit + shift)
    start = np.append(np.full(2**16, 0.99999), np.full(2, (1 - 0.99999) * 2**15))
    terms = np.concatenate([[1.0 - 1e-13], start, np.tile(steps, 200_000)])
    X, y = sparse.csr_array(np.abs(terms)[:, None]), (terms > 0).astype(int)
    pipeline = make_pipeline(ClipNorm(1.0), LogisticRegression(C=1e-22, fit_intercept=False))
    target = KnownTarget(pipeline, pipeline.fit(X[-60:], y[-60:]), len(y))
    value = target(X, y, seed=0)
    y[0] = 0
    assert abs(value - target(X, y, seed=0))[0] <= target.statistic.bound(2, len(y))
