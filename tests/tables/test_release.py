"""The release of class tables: what it holds, what it depends on, and what it is worth."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier

from skdp import GaussianMechanism, LaplaceMechanism, UtilityWarning, release_oracle
from skdp.mechanisms.noise import byte_source
from skdp.mechanisms.objective import ObjectivePerturbation
from skdp.tables.columns import Category, Number
from skdp.tables.correction import correct, n_weights, stage, student
from skdp.tables.release import Design, ReleasedOracle, release_tables
from skdp.tables.schema import Schema

COLUMNS = {
    "a": Number(-4, 4),
    "twin": Number(-4, 4),
    "b": Category(["u", "v", "w"]),
    "c": Number(0, 50, integer=True),
}
SCHEMA = Schema(COLUMNS, classes=["no", "yes"])


def made_up(n, seed=0):
    """A column of signal, a copy of it, a category with signal, and a column of noise."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    a = rng.normal(size=n) + 0.8 * y
    words = np.array(["u", "v", "w"])[np.clip(rng.integers(0, 3, n) + y, 0, 2)]
    twin = a + 0.1 * rng.normal(size=n)
    X = pd.DataFrame({"a": a, "twin": twin, "b": words, "c": rng.integers(0, 51, n)})
    return X, np.where(y, "yes", "no")


X, Y = made_up(3000)
TEST, T = made_up(4000, seed=1)
PURE, DELTA = LaplaceMechanism(epsilon=1.0), GaussianMechanism(epsilon=1.0, delta=1e-6)


def released(mechanism=PURE, records=X, labels=Y, noise=0, draws=0, schema=SCHEMA):
    rng = np.random.default_rng(draws)
    return release_tables(records, labels, schema, mechanism, byte_source(noise), rng)


def accuracy(oracle):
    score = oracle.score(oracle.encoder_.transform(TEST))
    return np.mean((score > 0) == (T == "yes"))


@pytest.mark.parametrize("mechanism", [PURE, DELTA], ids=["pure", "delta"])
def test_noise_does_not_come_from_the_public_seed(mechanism):
    first, other_draws, other_noise = (
        released(mechanism),
        released(mechanism, draws=1),
        released(mechanism, noise=1),
    )
    for name in SCHEMA.columns:
        np.testing.assert_array_equal(first.tables_[name], other_draws.tables_[name])
        assert np.all(first.tables_[name] != other_noise.tables_[name])
    assert np.all(first.weights_ != other_noise.weights_)


class OnlyBytes:
    """A source that gives bytes and nothing else, as the operating system."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def bytes(self, length):
        return self.rng.bytes(length)


class NoBytes(np.random.Generator):
    """A generator that noise must not touch."""

    def bytes(self, length):
        raise AssertionError("noise was drawn from the public generator")


@pytest.mark.parametrize("mechanism", [PURE, DELTA], ids=["pure", "delta"])
def test_noise_takes_bytes_of_its_source_alone(mechanism):
    public = NoBytes(np.random.PCG64(0))
    oracle = release_tables(X, Y, SCHEMA, mechanism, OnlyBytes(), public)
    assert oracle.weights_ is not None


@pytest.mark.parametrize("mechanism", [PURE, DELTA], ids=["pure", "delta"])
def test_a_release_holds_no_private_number(mechanism, leak_search):
    oracle = released(mechanism)
    assert leak_search(oracle, X["a"].to_numpy()) == []
    assert leak_search(pickle.dumps(oracle), X["a"].to_numpy()) == []
    exact = np.concatenate([t.ravel() for t in released(LaplaceMechanism(np.inf)).tables_.values()])
    noisy = np.concatenate([table.ravel() for table in oracle.tables_.values()])
    assert np.isin(np.rint(noisy * 2**20), exact * 2**20).sum() == 0
    again = pickle.loads(pickle.dumps(oracle))
    pd.testing.assert_frame_equal(
        again(50, np.random.default_rng(0))[0], oracle(50, np.random.default_rng(0))[0]
    )


ODD = [np.nan, np.inf, -1e300, "x", None, 1e308, [1], "5"]


@pytest.mark.parametrize("odd", ODD, ids=repr)
def test_neighbors_have_the_same_form(odd):
    """An odd record in place of a good one: nothing is refused, and no shape or word changes."""
    records = X.astype(object)
    records.iloc[7] = pd.Series([odd] * 4, index=X.columns)
    labels = Y.astype(object)
    labels[7] = odd
    base, other = released(), released(records=records, labels=labels)
    assert other.description == base.description
    assert [t.shape for t in other.tables_.values()] == [t.shape for t in base.tables_.values()]
    assert other.weights_.shape == base.weights_.shape
    change = sum(np.abs(other.tables_[name] - base.tables_[name]).sum() for name in COLUMNS)
    assert change <= 8


def test_without_a_budget_the_tables_are_exact():
    oracle = released(LaplaceMechanism(np.inf))
    table = oracle.tables_["b"]
    expected = pd.crosstab(X["b"], Y).to_numpy()
    np.testing.assert_array_equal(table, expected)
    assert oracle.deviation_ == 0
    assert oracle.weights_ is None


@pytest.mark.parametrize("mechanism", [PURE, DELTA], ids=["pure", "delta"])
def test_any_estimator_learns_from_draws(mechanism):
    """Exactly, logistic regression has .72 and the majority .6; the twin costs nothing here."""
    oracle = released(mechanism)
    drawn, labels = oracle(5000, np.random.default_rng(0))
    encoder = oracle.encoder_
    assert accuracy(oracle) > 0.69
    for model in (LogisticRegression(), KNeighborsClassifier(100)):
        model.fit(encoder.transform(drawn), labels)
        assert model.score(encoder.transform(TEST), T) > 0.67
    forest = RandomForestClassifier(50, min_samples_leaf=50, random_state=0)
    numbers = ["a", "twin", "c"]
    assert forest.fit(drawn[numbers], labels).score(TEST[numbers], T) > 0.62


def test_the_correction_does_not_count_a_copy_twice():
    """The log loss falls: a student of independent columns is too sure of itself."""
    mechanism, rng = LaplaceMechanism(8.0), np.random.default_rng(0)
    oracle = release_tables(X, Y, SCHEMA, mechanism, byte_source(0), rng, recalibrate=False)
    drawn, labels = oracle(5000, np.random.default_rng(0))
    first = student(oracle.encoder_.transform(drawn), (labels == "yes").astype(int))
    corrected = released(LaplaceMechanism(8.0))
    losses = []
    for weights in (first, corrected.weights_):
        score = oracle.encoder_.transform(TEST) @ weights[:-1] + weights[-1]
        losses.append(np.mean(np.logaddexp(0, np.where(T == "yes", -score, score))))
    assert losses[1] < losses[0] - 0.01


@pytest.mark.loop(
    ("n", "epsilon", "n_columns", "n_classes", "expected"),
    [
        (22_130, 1.0, 14, 2, "weights"),
        (2800, 1.0, 14, 2, "weights"),
        (2799, 1.0, 14, 2, "score"),
        (999, 1.0, 14, 2, None),
        (10**6, 1.0, 14, 3, None),
        (10**6, np.inf, 14, 2, None),
    ],
)
def test_stages(n, epsilon, n_columns, n_classes, expected):
    assert stage(n, epsilon, n_columns, n_classes) == expected


def test_many_columns_share_private_numbers_without_a_delta():
    assert n_weights("weights", 40, True) == 16
    assert n_weights("weights", 40, False) == 41
    rng = np.random.default_rng(0)
    encoded, first = rng.uniform(-1, 1, (4000, 40)), np.append(np.linspace(2, 0, 40), 0.3)
    labels = (encoded @ first[:-1] + rng.logistic(size=4000) > 0).astype(int)

    def objective_of(radius):
        return ObjectivePerturbation(radius, n_weights=16, last=1e-3, epsilon=1.0)

    def private(rows):
        return rows(encoded)

    weights = correct(first, encoded, private, labels, objective_of, byte_source(0))
    ratios = weights[:-1] / np.where(first[:-1] == 0, 1, first[:-1])
    assert len(np.unique(np.round(ratios[first[:-1] > 0], 9))) == 15
    assert np.all(np.abs(ratios[:10] - 1) < 0.8)


def test_the_score_alone_is_corrected_with_fewer_records():
    columns = {f"c{i}": Number(0, 1) for i in range(12)}
    rng = np.random.default_rng(0)
    records, labels = rng.random((1500, 12)), rng.integers(0, 2, 1500)
    records[:, 0] = 0.5 * (records[:, 0] + labels)
    for mechanism in (PURE, DELTA):
        oracle = released(mechanism, records, labels, schema=Schema(columns, classes=[0, 1]))
        assert oracle.weights_.shape == (13,)
        score = oracle.score(oracle.encoder_.transform(records))
        assert np.mean((score > 0) == labels) > 0.7


@pytest.mark.parametrize(
    ("records", "kind"),
    [
        (X, pd.DataFrame),
        (pl.DataFrame(X.to_dict("list")), pl.DataFrame),
        (X.astype(object).to_numpy(), np.ndarray),
        (X.to_numpy(dtype=object).tolist(), list),
    ],
    ids=["pandas", "polars", "array", "list"],
)
def test_draws_are_like_the_private_records(records, kind):
    oracle = released(records=records, labels=Y.tolist())
    drawn, labels = oracle(200, np.random.default_rng(0))
    assert type(drawn) is kind
    assert len(drawn) == len(labels) == 200
    assert set(labels) == {"no", "yes"}
    columns, _ = SCHEMA.read(drawn)
    assert all(
        column.has_numbers or set(given) <= {"u", "v", "w"}
        for column, given in zip(COLUMNS.values(), columns, strict=True)
    )
    np.testing.assert_array_equal(oracle.tables_["b"], released().tables_["b"])


def test_several_classes():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 3000)
    records = (labels * 2 + rng.normal(size=3000))[:, None]
    schema = Schema({"x": Number(-3, 7)}, classes=[0, 1, 2])
    oracle = released(PURE, records, labels, schema=schema)
    drawn, classes = oracle(3000, rng)
    model = LogisticRegression().fit(oracle.encoder_.transform(drawn), classes)
    assert oracle.classes_.tolist() == [0, 1, 2]
    assert oracle.weights_ is None
    assert model.score(oracle.encoder_.transform(records), labels) > 0.6


@pytest.mark.parametrize("mechanism", [PURE, DELTA, LaplaceMechanism(2.0)])
def test_regression(mechanism):
    """Draws have the mean of each of 4 cells, which hold some tenths of the records."""
    rng = np.random.default_rng(0)
    records = rng.uniform(0, 10, (3000, 2))
    y = np.clip(records[:, 0] + rng.normal(size=3000), 0, 10)
    schema = Schema({"x": Number(0, 10), "z": Number(0, 10)}, y_range=(0, 10))
    oracle = released(mechanism, records, y, schema=schema)
    drawn, values = oracle(5000, rng)
    means = np.unique(values)
    cells = oracle.response_[0].cells(y, 0)
    np.testing.assert_allclose(means, [y[cells == cell].mean() for cell in range(4)], atol=0.3)
    assert np.bincount(cells).min() > 300
    assert oracle.classes_ is None
    assert Ridge().fit(drawn, values).score(records, y) > 0.7


def test_a_response_of_few_whole_numbers_has_fewer_cells():
    schema = Schema({"x": Number(0, 10)}, y_range=Number(1, 3, integer=True))
    records, y = np.linspace(0, 10, 900)[:, None], np.repeat([1, 2, 3], 300)
    values = released(PURE, records, y, schema=schema)(100, np.random.default_rng(0))[1]
    assert set(values) == {1, 2, 3}


def test_parameters_of_mechanisms_are_checked_first():
    with pytest.raises(ValueError, match="'epsilon' parameter of LaplaceMechanism"):
        released(LaplaceMechanism(-1))
    with pytest.raises(ValueError, match="'delta' parameter of GaussianMechanism"):
        released(GaussianMechanism(1.0, delta=0))


def test_the_oracle_says_what_was_paid():
    assert released(DELTA).description == (
        "law released for epsilon=1, delta=1e-06 (class tables of 4 columns)"
    )
    assert ReleasedOracle.independent_records


@pytest.mark.loop("delta", [1e-300, 1e-3, 0.5, 0.999])
def test_any_delta_allows_a_correction(delta):
    assert released(GaussianMechanism(epsilon=1.0, delta=delta)).weights_ is not None


TOO_SMALL = [LaplaceMechanism(each) for each in (5e-324, 1e-300, 1e-20, 1e-12)]
TOO_SMALL += [GaussianMechanism(*each) for each in ((1e-300, 1e-300), (1e-20, 1e-12))]


@pytest.mark.loop("mechanism", TOO_SMALL)
def test_noise_that_is_too_large_is_refused_in_the_design(mechanism):
    with pytest.raises(ValueError, match="is too small for the tables of 4 columns"):
        Design.of(SCHEMA, 3000, mechanism, True)


@pytest.mark.loop("epsilon", [1e3, 1e6, 1e12, 1e300])
def test_a_large_epsilon_is_released(epsilon):
    assert np.isfinite(released(LaplaceMechanism(epsilon)).weights_).all()


def test_records_of_a_released_law_are_independent_and_students_see_all_classes():
    """Pairs that are made of two records have the law of those of whole datasets."""
    X, y = np.random.default_rng(0).uniform(size=(20_000, 1)), np.zeros(20_000, dtype=int)
    schema = Schema({"a": Number(0, 1)}, classes=[0, 1])
    options = {"schema": schema, "recalibrate": False, "random_state": 0}
    with pytest.warns(UtilityWarning, match="'0' of y"):
        oracle = release_oracle(X, y, mechanism=LaplaceMechanism(1.0), **options)
    drawn = [oracle(30, np.random.default_rng(seed))[1].sum() for seed in range(200)]
    assert np.mean(drawn) < 1
    complete = oracle(30, np.random.default_rng(0), complete=True)[1]
    assert complete.sum() >= 1
