"""A bound on values, as one on their code: larger than any change that can be computed."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skdp import (
    FunctionTarget,
    GaussianMechanism,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    SensitivitySampler,
    plan_release,
)
from skdp.bounds import mean_bound
from skdp.codes import Geometry, PublicCode
from skdp.sensitivity.encoded import encoded, operator_norm

N = 40


def code_of(encoder, mean=0.0):
    """A code of which only the encoder matters here."""
    k, d = encoder.shape
    parts = {"covariance": np.zeros((d, k)), "deviations": np.ones(d), "removable": np.eye(k)}
    return PublicCode(encoder=encoder, mean=np.broadcast_to(mean, d), **parts)


matrices = st.tuples(st.integers(1, 5), st.integers(0, 4), st.integers(0, 10**6), st.floats(-6, 6))


@given(matrices)
def test_the_operator_norm_is_bounded_from_above_and_closely(drawn):
    k, more, seed, spread = drawn
    rng = np.random.default_rng(seed)
    encoder = rng.normal(size=(k, k + more)) * np.geomspace(1, 10.0**spread, k)[:, None]
    exact = max(sum(map(Fraction, column)) for column in np.abs(encoder).T.tolist())
    assert exact <= Fraction(operator_norm(encoder, 1)) <= exact * Fraction(1 + 1e-12)
    spectral = np.linalg.norm(encoder, ord=2)
    assert spectral * (1 - 1e-12) <= operator_norm(encoder, 2) <= spectral * math.sqrt(k) * 1.001
    rows = np.linalg.qr(encoder.T)[0].T
    assert 1 - 1e-12 <= operator_norm(rows, 2) <= 1 + 1e-12


@given(matrices, st.floats(-12, 12), st.floats(0, 12), st.sampled_from([1, 2]))
def test_computed_codes_change_by_no_more_than_the_bound(drawn, scale, offset, order):
    """Differences of length Delta anywhere in the box, the codes computed as in a release."""
    k, more, seed, _ = drawn
    rng = np.random.default_rng(seed)
    encoder = rng.normal(size=(k, k + more))
    encoder /= operator_norm(encoder, order)
    d, delta = encoder.shape[1], 10.0**scale
    geometry = Geometry(order, code_of(encoder, 10.0**offset))
    known = KnownSensitivity(delta, Geometry(order), N)
    bound = encoded(known, geometry, (d,))
    assert bound.value <= delta * (1 + 1e-10) + 1e-13 * 10.0**offset
    _, _, rights = np.linalg.svd(encoder)
    worst = {1: np.eye(d)[np.abs(encoder).sum(axis=0).argmax()], 2: rights[0]}[order]
    for step in (worst, rng.normal(size=d)):
        step = step / np.linalg.norm(step, ord=order)
        value = 10.0**offset + delta * N * rng.uniform(-0.6, 0.6, size=d) / 2
        pair = [
            bound.bounded(FunctionTarget(lambda X, at=at: at))(np.zeros(1), seed=0)
            for at in (value, value + delta * step)
        ]
        moved = np.linalg.norm(np.subtract(*pair), ord=order)  # rounding of the values themselves
        assert geometry.distance(*pair) <= bound.value * max(1.0, moved / delta)


@given(matrices, st.floats(0, 6), st.sampled_from([1, 2]))
def test_a_bound_has_room_for_the_norm_of_any_code_and_for_its_rounding(drawn, offset, order):
    """Codes that enlarge differences, and their rounding in exact arithmetic."""
    k, more, seed, spread = drawn
    rng = np.random.default_rng(seed)
    encoder = rng.normal(size=(k, k + more)) * 10.0**spread
    d, mean = encoder.shape[1], 10.0**offset
    code = code_of(encoder, mean)
    bound = encoded(KnownSensitivity(0.1, Geometry(order), N), Geometry(order, code), (d,))
    largest = np.abs(encoder).sum(axis=0).max() if order == 1 else np.linalg.norm(encoder, 2)
    assert bound.value >= 0.1 * largest * (1 - 1e-12)
    room = (Fraction(bound.value) - Fraction(0.1) * Fraction(operator_norm(encoder, order))) / 2
    value = mean + rng.uniform(-4, 4, size=d)  # within N times 0.1 of the mean
    exact = [
        sum(Fraction(t) * (Fraction(v) - Fraction(mean)) for t, v in zip(row, value, strict=True))
        for row in encoder.tolist()
    ]
    errors = [float(Fraction(c) - e) for c, e in zip(code.forward(value), exact, strict=True)]
    assert np.linalg.norm(errors, ord=order) <= room


def test_bounds_of_another_norm_and_at_the_ends_of_the_range():
    def bound(value, norm, encoder):
        return encoded(KnownSensitivity(value, norm, N), Geometry(2, code_of(encoder)), (3,)).value

    assert 1 <= bound(1.0, "l1", np.eye(3)) < 1 + 1e-12
    assert bound(5e-324, "l2", np.eye(3) / 3) >= 5e-324
    with pytest.raises(ValueError, match="too large for a public code"):
        bound(1e308, "l2", np.eye(3))


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e15])
def test_a_prior_far_from_the_data_does_not_void_the_bound(offset):
    """Without the box the rounding of the code would be as large as the sensitivity, or larger."""
    encoder = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 3)))[0].T
    known = KnownSensitivity(1e-9, "l2", N)
    geometry = Geometry(2, code_of(encoder, offset))
    bound = encoded(known, geometry, (6,))
    rng = np.random.default_rng(1)
    for _ in range(50):
        value = rng.normal(size=6) * 10.0 ** rng.integers(-9, 3)
        step = rng.normal(size=6)
        other = value + 0.99e-9 * step / np.linalg.norm(step)
        pair = [
            bound.bounded(FunctionTarget(lambda X, at=at: at))(np.zeros(1), seed=0)
            for at in (value, other)
        ]
        assert geometry.distance(*pair) <= bound.value


def means(X):
    return X.mean(axis=0)


def oracle(n, rng):
    return np.clip(0.5 + 0.2 * rng.normal(size=(n, 2)) @ np.ones((2, 7)), 0, 1)


@pytest.mark.parametrize(
    "mechanism", [LaplaceMechanism(0.3), L2LaplaceMechanism(0.3), GaussianMechanism(0.3, 1e-5)]
)
def test_corners_of_the_box_do_not_exceed_the_bound_and_come_near(mechanism):
    """A search over records: what is released is what is bounded."""
    bound = mean_bound(N, 7, ranges=(0, 1)).in_norm(mechanism.order)
    known = replace(bound, prior=SensitivitySampler(oracle, n_pairs=199, random_state=0))
    plan = plan_release(means, n_samples=N, mechanism=mechanism, sensitivity=known)
    target, geometry = plan.sensitivity.bounded(plan.target), plan.mechanism.geometry
    assert geometry.code.n_released >= 1
    signs = np.array([[(i >> j) % 2 for j in range(7)] for i in range(128)], dtype=float)
    X = np.random.default_rng(0).random((N, 7))
    largest = 0.0
    for corner in signs:
        first, second = X.copy(), X.copy()
        first[0], second[0] = corner, 1 - corner
        largest = max(largest, geometry.distance(target(first, seed=0), target(second, seed=0)))
    assert 0.9 * known.value < largest <= plan.sensitivity.value
    assert plan.sensitivity.value <= known.value * (1 + 1e-9)
