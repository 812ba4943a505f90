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
    plan_release,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import count_bound, mean_bound
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


AGES = np.random.default_rng(0).integers(18, 99, N)


def by_decade(ages):
    return np.histogram(np.asarray(ages, dtype=float), bins=[18, 30, 40, 60, 99])[0]


def both(X):
    return [by_decade(X[:, 0]), by_decade(X[:, 1])]


@pytest.mark.loop(
    ("function", "records", "bound"),
    [
        (by_decade, AGES, 2.0),
        (by_decade, AGES.astype(np.uint8), 2.0),
        (by_decade, pd.Series(AGES, dtype="Int64"), 2.0),
        (lambda X: by_decade(X["age"]), pd.DataFrame({"age": AGES, "town": "x"}), 2.0),
        (lambda X: by_decade(X["age"]), pl.DataFrame({"age": AGES, "town": ["x"] * N}), 2.0),
        (both, np.column_stack([AGES, AGES]), 4.0),
        (lambda X: np.bincount(X, minlength=2), AGES % 2, 2.0),
        (lambda X: [X.sum(), (~X).sum()], AGES > 50, 2.0),
        (lambda X: np.clip(X, 0, 100).mean(), AGES.astype(float), 100 / N),
    ],
)
def test_a_number_is_refused_where_a_bounded_function_moves_farther(
    function, records, bound, accountant
):
    pays = {"mechanism": NOISE, "accountant": accountant}
    n_before = len(accountant.rows())  # of other cases
    with pytest.raises(ValueError, match=r"no bound .* one of 31.*count_bound"):
        release(function, records, sensitivity=bound / 2, **pays)
    assert len(accountant.rows()) == n_before
    assert release(function, records, sensitivity=bound, **pays).guarantee.gamma == 0
    assert len(accountant.rows()) == n_before + 1


def test_a_function_that_grows_with_the_records_has_a_bound_in_a_range():
    for function in (np.mean, np.sum, np.max, np.var):
        assert release(function, AGES, mechanism=NOISE, sensitivity=1e-3).value.shape == ()
    scores = lambda X: np.bincount(X, minlength=2)  # noqa: E731 - short
    choice = {"mechanism": ExponentialMechanism(1.0), "sensitivity": 1, "responses": "ab"}
    assert release(scores, AGES % 2, **choice).value in "ab"
    single = AGES.astype(np.float32)  # in which a mean moves by more than its exact bound
    clipped = lambda X: np.clip(X, 0, 100).mean()  # noqa: E731 - short
    assert release(clipped, single, mechanism=NOISE, sensitivity=100 / N).value.shape == ()


FAR = [np.nan, np.inf, -np.inf, 1e300, -1e308, 5e-324, 18.0, 40.0, 99.0, 99.5]
TOWNS = ["north", "south", "unknown", "", None, "nan", "\x00"]
OBJECTS = [*TOWNS, np.nan, pd.NA, 3, 10**400, b"north", (1, 2), 1e300]


def as_columns(named):
    return np.column_stack([*named.values()])


@pytest.mark.parametrize(
    ("container", "towns"),
    [
        (pd.DataFrame, OBJECTS),
        (pl.DataFrame, TOWNS),
        (lambda it: np.column_stack([*it.values()]), FAR),
    ],
    ids=["pandas", "polars", "numpy"],
)
@pytest.mark.parametrize("mechanism", [NOISE, GaussianMechanism(1.0, 1e-5)], ids=["l1", "l2"])
def test_counts_move_within_their_bound(container, towns, mechanism):
    """A histogram of ages and a table of towns; any record may take the place of another."""

    def tables(X):
        ages, towns = (X["age"], X["town"]) if hasattr(X, "columns") else X.T.tolist()
        cells = ["north", "south", 18.0, 99.0]
        same = [[type(each) is type(cell) and each == cell for each in towns] for cell in cells]
        counts = np.sum(same, axis=1)
        return np.concatenate([by_decade(ages), counts])

    def records(indices):
        columns = {"age": [FAR[i % len(FAR)] for i in indices]}
        texts = [towns[i % len(towns)] for i in indices]
        if container is pd.DataFrame:  # of which an older one reads 10**400 as a number
            texts = pd.Series(texts, dtype=object)
        return container(columns | {"town": texts})

    rng = np.random.default_rng(0)
    options = {"n_samples": 5, "mechanism": mechanism, "like": records(range(5))}
    plan = plan_release(tables, sensitivity=count_bound(5, n_tables=2), **options)
    assert plan.sensitivity.value == pytest.approx(4 ** (1 / mechanism.order))
    pairs = [[records([*others, each]) for each in rng.integers(999, size=2)]
             for others in rng.integers(999, size=(300, 4))]  # fmt: skip
    values = [[plan.target(X, seed=0) for X in pair] for pair in pairs]
    moved = np.linalg.norm(np.diff(values, axis=1)[:, 0], ord=mechanism.order, axis=1)
    assert 0.7 * plan.sensitivity.value < moved.max() <= plan.sensitivity.value


def test_a_value_beyond_the_range_of_the_noise_is_refused_before_it_is_paid_for(accountant):
    pays = {"sensitivity": 1.0, "accountant": accountant}
    large = LaplaceMechanism(50.0)
    for offset, mechanism in ((1e17, NOISE), (1e14, large)):
        with pytest.raises(ValueError, match="too large for a sensitivity of 1: at most"):
            release(lambda X, far=offset: X.sum() + far, X, mechanism=mechanism, **pays)
    assert not accountant.rows()


def test_a_form_that_cannot_be_made_up_is_not_tried():
    frame = pd.DataFrame({"x": X[:, 0]})
    columns = [
        pd.Categorical(np.arange(N) % 2),
        pd.Categorical([None] * N),
        pd.cut(frame["x"], 3),
    ]
    frames = [frame.assign(g=column) for column in columns]
    frames.append(pd.DataFrame(X, columns=["x", "x"]))
    for each in frames:
        assert np.shape(release(len, each, mechanism=NOISE, sensitivity=1.0).value) == ()
    pairs = np.ones(N, dtype=[("a", float), ("b", int)])
    with pytest.raises(ValueError, match=r"X holds .* to columns of numbers"):
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
