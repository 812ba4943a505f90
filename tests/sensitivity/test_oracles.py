"""The shipped oracles: laws of their draws, containers, descriptions and refusals."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.mixture import GaussianMixture

from skdp.core.dataset import as_dataset
from skdp.core.oracle import has_independent_records
from skdp.core.schema import DatasetForm
from skdp.sensitivity.adapters import as_oracle, describe_oracle, without_response
from skdp.sensitivity.drawing import draw
from skdp.sensitivity.oracles import UniformOracle
from skdp.sensitivity.public_data import PublicDataOracle
from skdp.sensitivity.random_task import RandomTaskOracle

SECRET = 31337.25
TABLE = np.arange(12.0).reshape(6, 2)
LABELS = np.array(["b", "a", "a", "c", "b", "a"])
CONTAINERS = {
    "numpy": np.asarray,
    "csr": sparse.csr_array,
    "coo": sparse.coo_matrix,
    "pandas": lambda X: pd.DataFrame(X, columns=["u", "v"], index=range(5, 5 + len(X))),
    "polars": lambda X: pl.DataFrame(X, schema=["u", "v"]),
    "list": lambda X: X.tolist(),
}
EVERY_ORACLE = {
    "public": PublicDataOracle(TABLE),
    "public, labeled": PublicDataOracle(TABLE, LABELS),
    "task": RandomTaskOracle(TABLE, y_scale=2.0),
    "task, classes": RandomTaskOracle(TABLE, classes=["x", "y", "z"]),
    "uniform": UniformOracle([(0, 1), (2, 3)]),
    "uniform, named": UniformOracle({"a": (0, 1), "b": (2, 3)}, y_bounds=(0, 1)),
}


def dense(container):
    return np.asarray(container.todense() if sparse.issparse(container) else container)


@pytest.mark.loop("name", EVERY_ORACLE)
def test_every_oracle_is_reproducible_pickles_and_fits_the_protocol(name):
    oracle = EVERY_ORACLE[name]
    assert as_oracle(oracle) is oracle
    drawn = as_dataset(oracle(12, np.random.default_rng(5)))
    again = as_dataset(pickle.loads(pickle.dumps(oracle))(12, np.random.default_rng(5)))
    other = as_dataset(oracle(12, np.random.default_rng(6)))
    fitting = draw(oracle, 12, np.random.default_rng(5), schema=DatasetForm.of(again), full=True)
    assert DatasetForm.of(fitting) == DatasetForm.of(drawn)
    assert oracle.classes_ is None or np.isin(drawn[1], oracle.classes_).all()
    for one, two in zip(drawn, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(drawn[0], other[0])
    assert describe_oracle(oracle) == repr(oracle) == oracle.description
    assert has_independent_records(oracle) == (not name.startswith("task"))


def test_descriptions_are_short_and_never_show_the_table():
    table = np.full((284, 30), SECRET)
    labels = np.arange(284) % 2
    assert repr(PublicDataOracle(table, labels)) == (
        "PublicDataOracle(n_records=284, n_features=30, labeled)"
    )
    assert repr(PublicDataOracle(table)) == "PublicDataOracle(n_records=284, n_features=30)"
    assert repr(PublicDataOracle(["a text"] * 3)) == "PublicDataOracle(n_records=3)"
    assert repr(RandomTaskOracle(table, y_mean=5, y_scale=2.5)) == (
        "RandomTaskOracle(n_records=284, n_features=30, y_mean=5, y_scale=2.5, noise=1)"
    )
    named = without_response(PublicDataOracle(table, labels, name="census 2011"))
    assert named.description == (
        "PublicDataOracle('census 2011', n_records=284, n_features=30, labeled)"
    )
    of_bounds = {
        "n_features=2, bounds={'a': (0, 0.5), 'b': (18, 99)}": {"a": (0, 0.5), "b": (18, 99)},
        "n_features=30": [(0, i) for i in range(30)],
    }
    for text, bounds in of_bounds.items():
        assert repr(UniformOracle(bounds)) == f"UniformOracle({text})"
    assert repr(UniformOracle([(0, 1)], y_bounds=(-1, 1))) == (
        "UniformOracle(n_features=1, bounds=[(0, 1)], y_bounds=(-1, 1))"
    )


def test_public_records_are_picked_uniformly_and_with_their_response():
    """Chi-square at level 1e-6 over 6 rows; picking row 0 10 % too often fails it."""
    X, y = PublicDataOracle(TABLE, LABELS)(30_000, np.random.default_rng(3))
    rows = (X[:, 0] / 2).astype(int)
    np.testing.assert_array_equal(X, TABLE[rows])
    np.testing.assert_array_equal(y, LABELS[rows])
    counts = np.bincount(rows, minlength=6)
    assert stats.chisquare(counts).pvalue > 1e-6
    counts[0] += counts[0] // 10
    assert stats.chisquare(counts).pvalue < 1e-6


@pytest.mark.loop("kind", CONTAINERS)
@pytest.mark.loop("cls", [PublicDataOracle, partial(RandomTaskOracle, y_scale=2.0)])
def test_tables_of_every_kind_give_the_same_records(cls, kind):
    table = CONTAINERS[kind](TABLE)
    before = dense(table).copy()
    sample = cls(table)(9, np.random.default_rng(2))
    expected = cls(TABLE)(9, np.random.default_rng(2))
    for got, wanted in zip(as_dataset(sample).parts, as_dataset(expected).parts, strict=True):
        np.testing.assert_allclose(dense(got), wanted, rtol=1e-12)
    X = as_dataset(sample).X
    np.testing.assert_array_equal(dense(table), before)
    if kind == "pandas":
        assert list(X.columns) == ["u", "v"]
        assert list(X.index) == list(range(9))
    if kind == "numpy":  # it is referenced, and its records are copies
        X[...] = -1
        np.testing.assert_array_equal(table, before)


@pytest.mark.loop(
    ("y", "classes"),
    [
        (LABELS, ["a", "b", "c"]),
        ([1, 0, 1, 0, 1, 0], [0, 1]),
        (np.array([1.0, -1, 1, 1, 1, -1]), [-1, 1]),
        (pl.Series(LABELS), ["a", "b", "c"]),
        (np.arange(6) + 0.5, None),
        (np.array([0, 1, np.nan, 0, 1, 1]), None),
        (np.zeros((6, 2), dtype=int), None),
        (None, None),
    ],
)
def test_public_data_oracle_knows_its_labels(y, classes):
    known = PublicDataOracle(TABLE, y).classes_
    assert known is None if classes is None else known.tolist() == classes


def test_uniform_oracle_fills_its_bounds():
    """Kolmogorov-Smirnov at level 1e-6 per column; wider bounds by 10 % fail it."""
    oracle = UniformOracle({"a": (-1, 1), "b": (5, 9)}, y_bounds=(10, 20))
    X, y = oracle(10_000, np.random.default_rng(8))
    assert list(X.columns) == ["a", "b"]
    for values, low, width in ((X["a"], -1, 2), (X["b"], 5, 4), (y, 10, 10)):
        assert stats.kstest(values, stats.uniform(low, width).cdf).pvalue > 1e-6
        assert stats.kstest(values, stats.uniform(low, 1.1 * width).cdf).pvalue < 1e-6
    assert oracle.classes_ is None


def test_labels_are_equally_likely_and_independent():
    """Chi-square at level 1e-6 on the labels, and on their table with a split of the feature."""
    oracle = UniformOracle([(0, 1)], classes=["b", "a"])
    X, y = oracle(10_000, np.random.default_rng(9))
    assert oracle.classes_.tolist() == ["a", "b"]
    table = [[np.sum(side & (y == k)) for k in "ba"] for side in (X[:, 0] < 0.5, X[:, 0] >= 0.5)]
    assert stats.chisquare(np.sum(table, axis=0)).pvalue > 1e-6
    assert stats.chi2_contingency(table).pvalue > 1e-6


REFUSED = [
    (lambda: PublicDataOracle(np.zeros((0, 2))), "'X' .* must hold at least one record"),
    (lambda: PublicDataOracle([]), "'X' parameter of PublicDataOracle"),
    (lambda: PublicDataOracle(TABLE, name=TABLE), r"'name' .* be a short string. Got a ndarray"),
    (lambda: PublicDataOracle(TABLE, [0, 1]), "'y' .* must hold 6 records, as X does. Got 2"),
    (lambda: UniformOracle([(0, np.inf)]), "'bounds' parameter of UniformOracle must give finite"),
    (lambda: UniformOracle([(1, 0)]), "low at most high"),
    (lambda: UniformOracle([(18, 90), (5.5, 3)]), r"Got \(5.5, 3.0\)"),
    (lambda: UniformOracle([0, 1, 2]), r"'bounds' .* \(low, high\)"),
    (lambda: UniformOracle(np.zeros((2, 3))), "'bounds'"),
    (lambda: UniformOracle(np.zeros((0, 2))), "'bounds'"),
    (lambda: UniformOracle([(0, 1)], y_bounds=(2, 1)), "'y_bounds' parameter of UniformOracle"),
    (lambda: UniformOracle([(0, 1)], classes=[0, 1], y_bounds=(0, 1)), "'y_bounds' .* be None"),
    (lambda: UniformOracle([(0, 1)], classes=[0]), "'classes' .* two or more different labels"),
    (lambda: UniformOracle([(0, 1)], classes=[0, 0]), "'classes'"),
    (lambda: UniformOracle([(0, 1)], classes=3), "'classes'"),
    (lambda: PublicDataOracle(3.0), "Records must come as .* Got float"),
]


@pytest.mark.loop(("make", "message"), REFUSED)
def test_parameters_out_of_range_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


class Mixin:
    def __call__(self, n_samples, rng):
        return np.full((n_samples, 1), rng.random())


def test_a_subclass_that_draws_in_its_own_way_claims_nothing_by_inheritance():
    """Two records of different datasets would differ by more than two records of one."""

    class Shifted(UniformOracle):
        def __call__(self, n_samples, rng):
            return super().__call__(n_samples, rng) + rng.normal()

    class Claims(Shifted):
        independent_records = True

    class Named(UniformOracle):
        pass

    class Relabeled(UniformOracle):
        independent_records = True

        def __call__(self, n_samples, rng):
            return 2 * super().__call__(n_samples, rng)

    class Mixed(Mixin, UniformOracle):
        pass

    kinds = (Shifted, Claims, Named, Relabeled, Mixed)
    claims = [has_independent_records(kind([(0, 1)])) for kind in kinds]
    assert claims == [False, True, False, True, False]


class Hierarchical:
    """With the interface of a density, and of a distribution."""

    def sample(self, n_samples, rng):
        return rng.normal() + 0.01 * rng.normal(size=(n_samples, 1))

    def rvs(self, size, random_state):
        return random_state.normal() + 0.01 * random_state.normal(size=size)


class OwnLaw(stats.rv_continuous):
    def _rvs(self, *args, size=None, random_state=None):
        return random_state.normal() + 0.01 * random_state.normal(size=size)


@pytest.mark.parametrize("source", [Hierarchical(), OwnLaw()(), type("M", (GaussianMixture,), {})])
def test_what_can_only_be_sampled_claims_nothing(source):
    source = source() if isinstance(source, type) else source
    if isinstance(source, GaussianMixture):
        source.fit(np.random.default_rng(0).normal(size=(30, 1)))
    assert not has_independent_records(as_oracle(source))
    source.independent_records = True
    assert has_independent_records(as_oracle(source))
