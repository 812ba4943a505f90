"""Tables that an engine holds: the same cells, the same noise, and no value in a message."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression

from skdp import (
    Category,
    ClassTables,
    CountTarget,
    LaplaceMechanism,
    MeanTarget,
    Number,
    PrivateEstimator,
    PrivateSearchCV,
    PublicDataOracle,
    SampleAndAggregate,
    Schema,
    plan_release,
    release,
    release_oracle,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import count_bound, mean_bound
from skdp.exceptions import BudgetExceededError, PrivateEvaluationError
from skdp.tables import engines
from skdp.tables.engines import engine_table
from skdp.tables.release import HeldTable

pytest.importorskip("narwhals")
pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),  # by ibis
    pytest.mark.filterwarnings("ignore:The inplace keyword"),  # by dask, of pandas 3.1
]

N = 200
NAN, INF = float("nan"), float("inf")
SCHEMA = Schema(
    {
        "age": Number(17, 90, integer=True),
        "gain": Number(0, 99_999, log=True),
        "share": Number(-1, 1),
        "visits": Number(0, 40, integer=True),
        "work": Category(["none", "part", "full", "é", ""]),
        "code": Category(["x", 1, 2.5, "-3", "y z"]),
        "grade": Category([1, 2, 3, "words that no number is"]),
        "smokes": Category([True, False]),
        "kind": Category(["only"]),
    },
    classes=["no", "yes", "7"],
)
WORDS = {
    "work": ["none", "part", "full", "é", "", " full", "Full", "undeclared", "\x01", None],
    "code": [
        *("x", "1", "1.0", "+1", " 1 ", "1e0", "01", "2.5", "25e-1", "-3", "-3.00", "-3\n", "y z"),
        *("y z ", "nan", "inf", "-inf", "1e400", "e", ".", "1e", "0x1", "--3", "1.", ".1e1", None),
    ],
    "y": ["no", "yes", "7", "7.0", "8", "maybe", "", None],
    "kind": ["only", "other", None],
}


def odd_rows():
    """Rows that a typed column can hold: gaps, NaN, infinities, edges, halves, odd texts."""
    rng = np.random.default_rng(0)
    age = [None, NAN, INF, -INF, 1e308, -1e308, -0.0, *np.arange(16.5, 91, 0.5)]
    gain = [None, NAN, INF, 0.0, 5e-324, *SCHEMA.columns["gain"].edges(8), *np.geomspace(1, 2e5)]
    share = [None, NAN, -INF, *SCHEMA.columns["share"].edges(8), *rng.uniform(-2, 2, 100)]
    made = {
        "age": (age, pl.Float64),
        "gain": (gain, pl.Float64),
        "share": (share, pl.Float64),
        "visits": ([None, -(2**63), 2**63 - 1, *range(-2, 45)], pl.Int64),
        "grade": ([1.0, 2.0, 3.0, 2.5, NAN, INF, -INF, None, 1e300], pl.Float64),
        "smokes": ([True, False, None], pl.Boolean),
        **{name: (words, pl.String) for name, words in WORDS.items()},
    }
    columns = {}
    for name, (entries, kind) in made.items():
        taken = [*entries, *(entries[place] for place in rng.integers(len(entries), size=N))][:N]
        columns[name] = pl.Series(name, taken, dtype=kind, strict=False).shuffle(seed=len(columns))
    return pl.DataFrame(columns)


ROWS = odd_rows()


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("engines") / "rows.parquet"
    ROWS.write_parquet(path)
    return str(path)


def on_polars(file):
    return pl.scan_parquet(file)


def on_polars_memory(file):
    return ROWS.lazy()


def on_duckdb(file):
    return pytest.importorskip("duckdb").read_parquet(file)


def on_dask(file):
    pytest.importorskip("pyarrow")
    pytest.importorskip("dask", "2024.8")
    return pytest.importorskip("dask.dataframe").read_parquet(file).repartition(npartitions=2)


def on_ibis(file):
    pytest.importorskip("duckdb")
    return pytest.importorskip("ibis").duckdb.connect().read_parquet(file)


def on_spark(file):
    pyspark = pytest.importorskip("pyspark.sql")
    options = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
    builder = pyspark.SparkSession.builder.master("local[1]")
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder.getOrCreate().read.parquet(file)


ENGINES = [on_polars, on_polars_memory, on_duckdb, on_dask, on_ibis, on_spark]
every_engine = pytest.mark.parametrize("engine", ENGINES, ids=lambda each: each.__name__[3:])


def counts(table):
    sizes = [column.n_cells(8) for column in SCHEMA.columns.values()]
    return np.concatenate([each.ravel() for each in table.counts(sizes, 4, 8)])


@every_engine
def test_cells_are_those_of_a_frame_in_memory(engine, file):
    X = engine(file)
    held = counts(HeldTable(ROWS.drop("y"), ROWS["y"], SCHEMA))
    np.testing.assert_array_equal(counts(engine_table(X, "y", SCHEMA, N)), held)


def released(X, y="y", mechanism=None, schema=SCHEMA, **options):
    accountant = PrivacyAccountant(":memory:", epsilon=1e6, delta=0.5)
    mechanism = LaplaceMechanism(epsilon=1000.0) if mechanism is None else mechanism
    options = {"n_samples": N, "random_state": 0, "accountant": accountant} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a weak promise
        return release_oracle(X, y, schema=schema, mechanism=mechanism, **options)


TWO = Schema(SCHEMA.columns, classes=["no", "yes"])


@every_engine
def test_the_same_bytes_are_released_under_the_same_seed(engine, file):
    first, oracle = (released(X, schema=TWO) for X in (ROWS.lazy(), engine(file)))
    assert oracle.weights_ is not None  # the second stage saw the rows
    kept = [pickle.dumps((each.tables_, each.weights_)) for each in (first, oracle)]
    assert kept[0] == kept[1]
    X = pd.DataFrame({name: ROWS[name].to_list() for name in TWO.columns})
    in_memory = released(X, pd.Series(ROWS["y"].to_list(), dtype=object), schema=TWO)
    assert pickle.dumps(in_memory.tables_) == pickle.dumps(oracle.tables_)
    np.testing.assert_allclose(in_memory.weights_, oracle.weights_, atol=0.5)


def refusals():
    frame = ROWS.lazy()
    dates = frame.with_columns(age=pl.date(2020, 1, 1))
    yield frame, "y", {"n_samples": None}, "'n_samples' parameter must be the number of rows"
    yield frame, "y", {"n_samples": N + 1}, f"must have the {N + 1} rows.*The engine counts {N}"
    yield frame, ROWS["y"], {}, "y must be the name of a column.*Got Series"
    yield frame, "age", {}, "y must be the name of a column.*Got the column 'age'"
    yield frame, "Y", {}, "y must be the name of a column.*Got the column 'Y'"
    yield frame.drop("age", "code"), "y", {}, r"Missing are \['age', 'code'\]"
    pattern = Schema({"^age$": Number(0, 1)}, classes=["no", "yes"])
    yield frame.with_columns(pl.lit(1).alias("^age$")), "y", {"schema": pattern}, "like a pattern"
    yield frame.with_columns(pl.lit(1).alias("*")), "*", {}, "like a pattern"
    yield frame.with_columns(age="work"), "y", {}, "type of column 'age' cannot hold"
    yield dates, "y", {}, "type of column 'age' cannot hold"
    yield frame.with_columns(work=pl.col("age")), "y", {}, "type of column 'work' cannot hold"
    yield frame.with_columns(y=pl.concat_list("age")), "y", {}, "type of column 'y' cannot hold"
    failing = frame.select("secret words")
    yield failing, "y", {}, r"asked for the columns of the table \(ColumnNotFoundError\)"


@pytest.mark.loop(("X", "y", "options", "said"), list(refusals()))
def test_a_table_that_does_not_fit_is_refused_before_payment(X, y, options, said):
    accountant = PrivacyAccountant(":memory:", epsilon=1e6, delta=0.5)
    with pytest.raises((ValueError, TypeError), match=said) as raised:
        released(X, y, accountant=accountant, **options)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert accountant.total().epsilon == 0


def test_what_an_engine_cannot_write_is_refused_before_payment(monkeypatch):
    def fail(text):
        raise NotImplementedError("the engine has no regular expressions")

    monkeypatch.setattr(engines, "_number_of", fail)
    accountant = PrivacyAccountant(":memory:", epsilon=1e6, delta=0.5)
    with pytest.raises(ValueError, match=r"types of the cells of the table \(NotImplementedError"):
        released(ROWS.lazy(), accountant=accountant)
    assert accountant.total().epsilon == 0


def test_a_failure_of_the_engine_shows_no_value_and_the_spend_stands():
    """The cast fails on a row, not on the number of rows."""
    accountant = PrivacyAccountant(":memory:", epsilon=1e6, delta=0.5)
    X = ROWS.lazy().with_columns(age=pl.col("work").cast(pl.Float64))
    with pytest.raises(PrivateEvaluationError, match="the budget has paid") as raised:
        released(X, accountant=accountant)
    assert raised.value.__context__ is None
    assert not any(word in str(raised.value) for word in WORDS["work"] if word and len(word) > 3)
    assert accountant.total().epsilon == 1000
    small = PrivacyAccountant(":memory:", epsilon=1)
    with pytest.raises(BudgetExceededError):
        released(X, accountant=small)


def test_a_table_that_changes_between_two_looks_is_not_released(monkeypatch):
    """Each statement of a lazy query may read its file anew."""
    monkeypatch.setattr(engines.EngineTable, "check", lambda self: None)
    with pytest.raises(PrivateEvaluationError):
        released(ROWS.lazy(), n_samples=N - 1)


def made_up(n=5000):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    signal = rng.normal(3 + 2 * y, 1)
    return pl.DataFrame({"a": signal, "b": signal + 0.1, "c": rng.integers(5, size=n), "y": y})


FEW = Schema({"a": Number(0, 9), "b": Number(0, 9), "c": Category([0, 1, 2, 3, 4])}, classes=[0, 1])


def private(chosen):
    accountant = PrivacyAccountant(":memory:", epsilon=10)
    return PrivateEstimator(
        LogisticRegression(),
        mechanism=LaplaceMechanism(epsilon=1.0),
        sensitivity=chosen,
        accountant=accountant,
        random_state=0,
    )


def test_an_estimator_learns_from_an_engine_and_a_plan_serves_its_table():
    rows = made_up()
    X, y = pd.DataFrame({name: rows[name].to_list() for name in "abc"}), rows["y"].to_numpy()
    model = private(ClassTables(FEW, n_samples=len(rows), random_state=0)).fit(rows.lazy(), "y")
    held = private(ClassTables(FEW, random_state=0)).fit(X, y)
    assert str(model.guarantee_) == str(held.guarantee_)
    assert model.score(X, y) == pytest.approx(held.score(X, y), abs=0.01)
    empty = rows.clear().lazy()  # an example: none of its rows is counted
    plan = private(ClassTables(FEW, random_state=0)).plan(len(rows), like=(empty, "y"))
    assert "and a corrected score" in str(plan)
    assert plan.execute(rows.lazy(), "y").guarantee == plan.guarantee
    with pytest.raises(ValueError, match="The engine counts 10"):
        plan.execute(rows.head(10).lazy(), "y")
    with pytest.raises(ValueError, match="Got 9, and 5000 records"):
        private(ClassTables(FEW, n_samples=9)).fit(X, y)


def test_a_plan_says_that_cells_of_many_rows_are_not_fetched(monkeypatch):
    """Then all of the budget goes to the tables."""
    rows = made_up()
    monkeypatch.setattr(engines, "MOST_CODES", 4 * len(rows) - 1)
    chosen = ClassTables(FEW, n_samples=len(rows), random_state=0)
    model = private(chosen).fit(rows.lazy(), "y")
    assert "no recalibration" in str(model.plan_)
    without = private(chosen.set_params(recalibrate=False)).fit(rows.lazy(), "y")
    for name, table in without.oracle_.tables_.items():
        np.testing.assert_array_equal(model.oracle_.tables_[name], table)


@every_engine
@pytest.mark.parametrize("name", ["share", "visits"])
def test_a_response_is_counted_in_cells_that_follow_it(engine, name, file):
    """As in memory: its histograms, of which each decides the next cells, and the tables."""
    columns = {each: SCHEMA.columns[each] for each in ("age", "work")}
    schema = Schema(columns, y_range=SCHEMA.columns[name])
    oracle = released(engine(file), name, schema=schema, n_samples=N)
    held = released(ROWS.select("age", "work"), ROWS[name], schema=schema)
    np.testing.assert_array_equal(oracle.histograms_, held.histograms_)
    for column in schema.columns:
        np.testing.assert_array_equal(oracle.tables_[column], held.tables_[column])


def test_many_categories_take_wider_cells():
    values = [f"v{place}" for place in range(300)]
    rows = pl.DataFrame({"a": values * 10, "y": [0, 1] * 1500})
    schema = Schema({"a": Category(values)}, classes=[0, 1])
    table = engine_table(rows.lazy(), "y", schema, len(rows))
    _, labels = table.encoded(released(rows.lazy(), schema=schema, n_samples=3000).encoder_, 4)
    assert labels.tolist() == rows["y"].to_list()
    np.testing.assert_array_equal(table.counts([300], 4, 8)[0].sum(axis=1), 10)


def test_few_and_many_cells_are_counted_in_one_statement(tmp_path):
    values = [f"v{place}" for place in range(300)]
    path = str(tmp_path / "rows.parquet")
    pl.DataFrame({"a": values, "b": [0.5] * 300, "y": [0, 1] * 150}).write_parquet(path)
    schema = Schema({"a": Category(values), "b": Number(0, 1)}, classes=[0, 1])
    table = engine_table(on_ibis(path), "y", schema, 300)
    assert [counts.sum() for counts in table.counts([300, 8], 4, 8)] == [300, 300]


TOGETHER = {name: SCHEMA.columns[name] for name in ("code", "visits", "grade")}
MEANS = MeanTarget(["age", "share"]), mean_bound(N, ranges=[(17, 90), (-3, 9)])
STATISTICS = [
    (CountTarget(TOGETHER, 6), count_bound(N)),
    (CountTarget({"gain": SCHEMA.columns["gain"]}), count_bound(N)),
    (MeanTarget(["visits"]), mean_bound(N, ranges=(2, 40))),
    (MeanTarget(["grade"]), mean_bound(N, ranges=(-1e-3, 7e4))),
    MEANS,
]


def statistic(target, X, bound, budget=None, **options):
    budget = PrivacyAccountant(":memory:", epsilon=1e6) if budget is None else budget
    options = {"mechanism": LaplaceMechanism(1.0), "random_state": 0} | options
    return release(target, X, sensitivity=bound, accountant=budget, **options)


@every_engine
def test_counts_and_means_are_those_of_a_frame_in_memory(engine, file):
    X = engine(file)
    for target, bound in STATISTICS:
        found, held = (statistic(target, rows, bound) for rows in (X, ROWS))
        assert found.value.tobytes() == held.value.tobytes()
        assert str(found.guarantee) == str(held.guarantee)


@every_engine
def test_sums_of_whole_steps_are_those_of_a_frame_in_memory(engine, file):
    """Polars multiplies by the rounded inverse of a constant where numpy divides by it."""
    target, bound = MEANS
    tables = (
        target.read(engine(file), bound).X,
        HeldTable(ROWS[["age", "share"]], None, target.schema),
    )
    found, held = (table.sums(bound.ranges, 2**51) for table in tables)
    assert found == held


def test_a_plan_of_counts_serves_the_table_of_an_engine():
    counts, budget = STATISTICS[0][0], PrivacyAccountant(":memory:", epsilon=9)
    facts = {"mechanism": LaplaceMechanism(1.0), "sensitivity": count_bound(N)}
    plan = plan_release(counts, n_samples=N, like=ROWS.lazy(), **facts)
    first, again = (plan.execute(ROWS.lazy(), accountant=budget) for _ in range(2))
    assert (first.value != again.value).any()
    with pytest.raises(ValueError, match="The engine counts 9"):
        plan.execute(ROWS.lazy().head(9), accountant=budget)
    assert budget.total().epsilon == 2


def refused_statistics():
    frame, (counts, bound) = ROWS.lazy(), STATISTICS[0]
    yield counts, frame, 2.0, "must be a bound of skdp.bounds: count_bound.*Got 2.0"
    yield counts, frame, MEANS[1], "must be a bound of skdp.bounds"
    yield MEANS[0], frame, bound, "must be a bound of skdp.bounds"
    yield counts, frame, count_bound(N + 1), f"must have the {N + 1} rows.*The engine counts {N}"
    yield counts, frame.drop("code"), bound, r"Missing are \['code'\]"
    yield counts, frame.with_columns(visits="work"), bound, "type of column 'visits' cannot hold"
    yield MeanTarget(["work"]), frame, mean_bound(N, ranges=(0, 1)), "column 'work' cannot hold"
    yield MeanTarget(["age"]), frame, MEANS[1], r"has ranges for 2 column\(s\)"
    yield len, frame, bound, r"take a table of an engine\. Got polars.LazyFrame: convert it"


@pytest.mark.loop(("target", "X", "bound", "said"), list(refused_statistics()))
def test_a_statistic_of_another_form_is_refused_before_payment(target, X, bound, said):
    budget = PrivacyAccountant(":memory:", epsilon=10)
    with pytest.raises((ValueError, TypeError), match=said) as raised:
        statistic(target, X, bound, budget)
    assert raised.value.__context__ is None
    assert budget.total().epsilon == 0


def test_a_sum_that_fails_in_the_engine_shows_no_value():
    budget = PrivacyAccountant(":memory:", epsilon=10)
    X = ROWS.lazy().with_columns(age=pl.col("work").cast(pl.Float64))
    with pytest.raises(PrivateEvaluationError, match="the budget has paid") as raised:
        statistic(MEANS[0], X, MEANS[1], budget)
    assert not any(word in str(raised.value) for word in WORDS["work"] if word and len(word) > 3)
    assert budget.total().epsilon == 1


def test_a_table_that_changes_between_two_looks_has_no_sums(monkeypatch):
    monkeypatch.setattr(engines.EngineTable, "check", lambda self: None)
    with pytest.raises(PrivateEvaluationError):
        statistic(MEANS[0], ROWS.lazy().head(N - 1), MEANS[1])


def test_what_takes_records_in_memory_says_so_before_payment():
    X, model = made_up().lazy(), private(ClassTables(FEW, n_samples=5000))
    oracle = PublicDataOracle(np.zeros((9, 3)), np.arange(9) % 2)
    aggregate = private(SampleAndAggregate(9)).set_params(prior=oracle)
    table = r"take a table of an engine\. Got polars.LazyFrame: convert it, as by X.collect\(\)"
    for call, said in (
        (PrivateSearchCV(model, {"estimator__C": [0.1, 1.0]}).fit, "must not be ClassTables"),
        (aggregate.fit, table),
        (private("known").set_params(classes=[0, 1]).fit, table),
        (lambda X, y: PublicDataOracle(X), table),
        (lambda X, y: model.fit(X, y, groups=y), table),
    ):
        with pytest.raises(TypeError, match=said):
            call(X, "y")
    assert not model.accountant.total().epsilon


class Parts(list):
    """Frames in the place of a data frame of Dask, which needs pyarrow."""

    _meta = property(lambda self: self[0].head(0))

    def __getitem__(self, key):
        return (
            Parts(part[key] for part in self) if isinstance(key, list) else super().__getitem__(key)
        )

    def to_native(self):
        return self

    def to_delayed(self):
        return self


def test_parts_of_a_table_of_dask_are_counted_as_frames():
    pytest.importorskip("dask")
    rows = pd.DataFrame({name: ROWS[name].to_list() for name in ROWS.columns})
    held = HeldTable(rows, rows["y"], SCHEMA)
    table_form = form = (N, len(SCHEMA.columns)), [*SCHEMA.columns], ["Float64"] * 9
    table = engines.DaskTable(*form, Parts([rows[:70], rows[70:]]), SCHEMA, "y", {})
    table.check()
    np.testing.assert_array_equal(counts(table), counts(held))
    encoder = released(ROWS.lazy()).encoder_
    both = (each.encoded(encoder, 4) for each in (table, engine_table(ROWS.lazy(), "y", SCHEMA, N)))
    (coded, labels), (expected, same) = both
    np.testing.assert_array_equal(labels, same)
    np.testing.assert_array_equal(coded(np.asarray)[:N], expected(np.asarray)[:N])
    target, bound = MEANS
    exact, known = target.proved(bound)
    form = form[0], list(target.schema.columns), form[2]
    parts = engines.DaskTable(*form, table.frame, target.schema, None, {})
    in_memory = known.bounded(exact)(rows[["age", "share"]], seed=0)
    np.testing.assert_array_equal(exact(parts, seed=0), in_memory)
    unlike = rows[70:].astype({"age": object, "work": "category"}).assign(kind=1.5)
    table = engines.DaskTable(*table_form, Parts([rows[:70], unlike]), SCHEMA, "y", {})
    rows.loc[70:, "kind"] = "other"
    np.testing.assert_array_equal(counts(table), counts(HeldTable(rows, rows["y"], SCHEMA)))
    shorter = engines.DaskTable(*form, Parts([rows[:70]]), target.schema, None, {})
    with pytest.raises(ValueError, match="The engine counts 70"):
        shorter.check()
    with pytest.raises(ValueError, match="number of rows has changed"):
        exact(shorter, seed=0)
