"""A function under a bound is tried on made-up records, before anything is spent."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from skdp import (
    BernsteinTransformer,
    ExponentialMechanism,
    GaussianMechanism,
    KnownSensitivity,
    LaplaceMechanism,
    Target,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import mean_bound
from skdp.core.dataset import n_records
from skdp.functions import BernsteinTarget

N = 31
X = np.random.default_rng(0).uniform(size=(N, 2))
BOX = [(-1, 3), (5, 6)]
NOISE = LaplaceMechanism(1.0)


def means(X):
    return np.asarray(X).mean(axis=0)


def median(X):
    return np.median(X, axis=0)


class Sums(Target):
    def __call__(self, X, *, seed):
        return np.sum(X, axis=0)


@pytest.fixture
def accountant(tmp_path):
    return PrivacyAccountant(tmp_path / "ledger", epsilon=100.0, delta=1e-3)


@pytest.mark.loop(
    ("target", "records"),
    [
        (np.sum, X),
        (median, X),
        (median, X[:-1]),
        (lambda X: np.max(X, axis=0), (X > 0.5).astype(np.uint8)),
        (lambda X: 1.001 * means(X), pd.DataFrame(X, columns=["a", "b"])),
        (lambda X: means(X.fill_nan(1)) * 2, pl.DataFrame({"a": X[:, 0], "b": X[:, 1]})),
        (lambda X: np.unique(np.asarray(X)[:, 0]), pd.DataFrame(X).astype("Float64")),
        (lambda X: np.asarray(X.sum(axis=0)).ravel(), sparse.csr_array(X)),
        (lambda X: means(X[: N // 2]), X),
        (lambda X: means(X[-N // 2 :]), X),
        (lambda X: means(X[X[:, 0] != 0]), X),
        (Sums(), X),
    ],
)
def test_what_a_record_moves_by_more_than_the_bound_is_refused(target, records, accountant):
    box = (0, 1) if sparse.issparse(records) else BOX
    for noise in (NOISE, GaussianMechanism(1.0, 1e-5)):
        known = mean_bound(n_records(records), 2, ranges=box)
        with pytest.raises(ValueError, match=r"no bound for the target .* on made-up records"):
            release(target, records, mechanism=noise, sensitivity=known, accountant=accountant)
    assert not accountant.rows()


@pytest.mark.parametrize("n", [29, 30, 31])
def test_the_mean_of_a_group_is_refused_and_tells_of_no_category(n):
    rows, known, group = X[:n], mean_bound(n, 2, ranges=(0, 1)), np.arange(n) % 2
    with pytest.raises(ValueError, match="no bound for the target"):
        release(lambda X, y: means(X[y == 1]), rows, group, mechanism=NOISE, sensitivity=known)
    private = pd.Series(pd.Categorical(np.where(group, "7312.25", "1.5")))
    times = lambda X, y: means(X * np.asarray(y, float)[:, None])  # noqa: E731 - short
    # to be refused by such a number would tell it
    assert release(times, rows, private, mechanism=NOISE, sensitivity=known).value.shape == (2,)


def test_a_form_that_cannot_be_made_up_is_not_tried():
    frame = pd.DataFrame({"x": X[:, 0]})
    columns = [
        pd.Categorical(np.arange(N) % 2),
        pd.Categorical([None] * N),
        pd.period_range("2000", periods=N),
        pd.cut(frame["x"], 3).astype(object).astype("interval"),
    ]
    frames = [frame.assign(g=column) for column in columns]
    frames.append(pd.DataFrame(X, columns=["x", "x"]))
    frames.append(pl.DataFrame({"x": X[:, 0], "g": X.tolist()}))
    for each in frames:
        assert np.shape(release(len, each, mechanism=NOISE, sensitivity=1.0).value) == ()
    pairs = np.ones(N, dtype=[("a", float), ("b", int)])
    release(lambda X: X["a"].mean(), pairs, mechanism=NOISE, sensitivity=1.0)


@pytest.mark.loop("n", [1, 30])
def test_a_mean_passes_whatever_its_ranges(n):
    for box in (BOX, (0, 0.1), (1e6, 1e6 + 1), (-1e300, 1e300)):
        known = mean_bound(n, 2, ranges=box)
        assert release(means, X[:n], mechanism=NOISE, sensitivity=known).value.shape == (2,)
    for container in (pd.DataFrame, pl.DataFrame):
        known, records = mean_bound(n, 2, ranges=(0, 1)), container(X[:n])
        assert release(means, records, mechanism=NOISE, sensitivity=known).value.shape == (2,)
    wide, known = sparse.csr_array((n, 10**4)), mean_bound(n, 10**4, ranges=(0, 1))
    released = release(lambda X: X.mean(axis=0), wide, mechanism=NOISE, sensitivity=known)
    assert released.value.shape == (10**4,)
    with pytest.raises(ValueError, match=r"shape \(2,\), .* the mean of each column.* shape \(\)"):
        release(np.mean, X[:n], mechanism=NOISE, sensitivity=mean_bound(n, 2, ranges=(0, 1)))


@pytest.mark.parametrize(
    "known",
    [
        # of one-hot rows a mean moves by less than of others in the box
        KnownSensitivity(2 / N, "l1", N, ranges=BOX, preconditions="one-hot records"),
        # the ranges may bound what a median of these records can do, by a proof of somebody
        KnownSensitivity(4, "l1", N, ranges=BOX[:1]),
    ],
)
def test_a_proof_may_suppose_more_than_ranges(known):
    records = X[:, : len(known.ranges)]
    assert release(median, records, mechanism=NOISE, sensitivity=known).value.shape


ONE_OF_TWO = BernsteinTarget(lambda X, points: 1.0, BernsteinTransformer(4, feature_range=(0, 1)))


@pytest.mark.loop(
    ("target", "options", "words"),
    [
        (np.histogram, {}, r"returned a tuple .*np.histogram\(...\)\[0\]"),
        (lambda X: None, {}, "NoneType"),
        (lambda X: ["a", "b"], {"sensitivity": mean_bound(N, 2, ranges=BOX)}, "returned a list"),
        (np.sum, {"mechanism": ExponentialMechanism(1.0), "responses": "ab"}, "of 2 scores"),
        (np.mean, {"mechanism": ExponentialMechanism(1.0)}, "a vector with one score"),
        (np.mean, {"sensitivity": KnownSensitivity(1.0, "l1", N, shape=(2,))}, "values of shape"),
        (ONE_OF_TWO, {}, "must return shape"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused(target, options, words, accountant):
    options = {"mechanism": NOISE, "sensitivity": 1.0} | options
    with pytest.raises((TypeError, ValueError), match=words):
        release(target, X, accountant=accountant, **options)
    assert not accountant.rows()


class Unrestorable(Sums):
    def __call__(self, X, y=None, sample_weight=None, *, seed=None):
        return np.repeat(X.sum(), 2000)

    def restore(self, value):
        self.was_given = value
        raise KeyError("nothing")


def test_what_was_paid_for_is_not_lost(accountant):
    target = Unrestorable()
    with pytest.raises(KeyError) as caught:
        release(target, X, mechanism=NOISE, sensitivity=9.0, accountant=accountant)
    assert f"what was released is {target.was_given.tolist()}." in caught.value.__notes__[0]
    assert len(accountant.rows()) == 1
