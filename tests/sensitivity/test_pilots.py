"""Pilot pairs: drawn like the others, none of them, and never counted among them."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from skdp import LaplaceMechanism, SensitivitySampler, release
from skdp.functions import AdditiveTarget
from skdp.sensitivity.pairs import gather_pilots
from skdp.sensitivity.sampler import MAX_PILOT_PAIRS

DATA = np.random.default_rng(0).normal(size=(50, 3))


def normal(n_samples, rng):
    return rng.normal(size=(n_samples, 3))


def mean(X):
    return X.mean(axis=0)


mean.__skdp_key__ = "mean-v1"


def first_mean(X):
    return X[:, 0].mean()


def unlucky_mean(X):
    if X[0, 0] > 0.7:
        raise ValueError("the first record is large")
    return X.mean(axis=0) if X[0, 0] > -0.7 else np.full(2 + (X[0, 0] > -1), np.nan)


def sampler(oracle=normal, n_pairs=40, **options):
    options = {"gamma": 0.1, "n_pairs": n_pairs, "random_state": 3} | options
    return SensitivitySampler(oracle, **options)


def test_differences_have_the_law_of_the_target():
    """Mean of 400 squares of N(0, 2/25) and of N(0, 1/5): chi-square with 1200 degrees, 5 s.d."""
    values, differences = sampler(n_pairs=400).pilots(mean, 5)
    assert values.shape == differences.shape == (400, 3)
    for each, variance in ((differences, 2 / 25), (values, 1 / 5)):
        assert np.sum(each**2) / variance == pytest.approx(1200, abs=5 * math.sqrt(2400))
    # cov(value, value - other) is that of one record of five: correlation sqrt(1 / 10) of 1200
    correlation = np.corrcoef(values.ravel(), differences.ravel())[0, 1]
    assert correlation == pytest.approx(math.sqrt(0.1), abs=5 / math.sqrt(1200))


def test_no_record_of_a_pilot_pair_is_in_another_pair():
    seen = []

    def remember(n_samples, rng):
        seen.append(normal(n_samples, rng))
        return seen[-1]

    watched = sampler(remember)
    watched.pilots(mean, 5)

    def numbers(drawn):
        return {float(value) for X in drawn for value in X.ravel()}

    ranges, pilots = numbers(seen[4:204]), numbers(seen[204:])  # the first ones are only checked
    seen.clear()
    watched.sample(mean, 5, "l1")
    assert (len(pilots), len(ranges)) == (40 * 6 * 3, 200 * 6 * 3)
    assert numbers(seen[4:204]) == ranges
    assert not (pilots | ranges) & numbers(seen[3:4] + seen[204:])
    assert not pilots & set(watched.public_dataset(5)[0].ravel().tolist())


def test_failed_pairs_are_left_out():
    differences = sampler().pilots(unlucky_mean, 5)[1]
    assert 5 < len(differences) < 35
    assert np.isfinite(differences).all()
    calls = []

    def fail(X):
        calls.append(len(X))
        raise ValueError("never")

    assert [each.shape for each in sampler().pilots(fail, 5)] == [(0, 0), (0, 0)]
    assert len(calls) == 40


def test_memory_is_bounded():
    rows = [[np.ones((2, 3))] * 40]
    assert [len(gather_pilots(rows, 40, most)[1]) for most in (20, 2, 10**6)] == [6, 1, 40]
    assert sampler(n_pairs=1100).pilots(mean, 5)[1].shape == (MAX_PILOT_PAIRS, 3)


def additive(X):
    return X


RECORDS = multivariate_normal([0.0] * 3)


@pytest.mark.parametrize(
    ("target", "options", "n_pilots", "n_pairs"),
    [
        (mean, {}, 29, 29),  # each pair takes two evaluations
        (mean, {"gamma": 0.03}, 99, 99),
        (mean, {"n_pairs": 40}, 40, 40),
        (mean, {"calibration": "conditional"}, 29, 29),  # its own least number
        (AdditiveTarget(additive), {}, 29, 29),
        (AdditiveTarget(additive), {"oracle": RECORDS}, 99, 99),  # two records make a pair
        (first_mean, {}, 29, 29),  # a single number too
    ],
)
def test_a_code_takes_few_pairs_where_they_are_dear(target, options, n_pilots, n_pairs):
    chosen = sampler(**{"n_pairs": None} | options)
    released = release(
        target, DATA, mechanism=LaplaceMechanism(1.0, code="learned"), sensitivity=chosen
    )
    estimate = released.sensitivity
    assert estimate.geometry.code.n_pilot_pairs == n_pilots
    assert len(estimate.norms) == n_pairs
    assert estimate.gamma == options.get("gamma", 0.1)
    whole = release(target, DATA, mechanism=LaplaceMechanism(1.0, code=None), sensitivity=chosen)
    usual = options.get("n_pairs") or chosen.order_statistic().n_pairs
    assert len(whole.sensitivity.norms) == usual


def test_rounding_of_a_constant_is_no_change():
    """The diagonal of a correlation matrix is 1, give or take a bit: no scale to calibrate to."""

    def correlations(X):
        return np.corrcoef(X.T)

    X = np.random.default_rng(0).normal(size=(50, 3))
    errors = {}
    for code in (None, "learned"):
        mechanism, sensitivity = LaplaceMechanism(1.0, code=code), sampler(n_pairs=99)
        released = release(
            correlations, X, mechanism=mechanism, sensitivity=sensitivity, random_state=0
        )
        errors[code] = np.abs(released.value - correlations(X)).sum()
    assert errors["learned"] < 2 * errors[None]
    differences = sampler().pilots(correlations, 50)[1].reshape(-1, 3, 3)
    assert not np.diagonal(differences, axis1=1, axis2=2).any()
    assert (differences != 0).any(axis=0).sum() == 6
