"""Records of any value, in any container: replacing one moves 2 d counts, and nothing else."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, Ridge

from skdp import (
    Category,
    ClassTables,
    GaussianMechanism,
    LaplaceMechanism,
    Number,
    PrivateEstimator,
    SampleAndAggregate,
    Schema,
    SensitivitySampler,
    release_oracle,
)
from skdp.accounting import PrivacyAccountant

PURE, DELTA = LaplaceMechanism(epsilon=1.0), GaussianMechanism(epsilon=1.0, delta=1e-6)
COLUMNS = {
    "age": Number(0, 90, integer=True),
    "gain": Number(0, 99_999, log=True),
    "work": Category(["private", "public", "2"]),
}
SCHEMA = Schema(COLUMNS, classes=["no", "yes"])


def unlimited():
    return PrivacyAccountant(":memory:", epsilon=1e6, delta=0.5)


def made_up(n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    work = np.where(rng.random(n) < 0.3 + 0.4 * y, "private", "public")
    gain = np.exp(rng.normal(3 + 2 * y, 1, n))
    age = np.clip(rng.normal(40 + 20 * y, 12, n), 17, 90).round()
    return pd.DataFrame({"age": age, "gain": gain, "work": work}), np.where(y, "yes", "no")


X, Y = made_up()


def method(error):
    def fail(*args, **kwargs):
        raise error("a record is shown")

    return fail


def failing(error, base):
    """A class all methods of which that a reader may call raise an error of this class."""
    names = "__str__ __repr__ __float__ __int__ __index__ __eq__ __hash__ __len__ __getitem__ "
    names += "__bool__ __array__ __complex__ __lt__ __iter__ __format__ decode item"
    body = {name: method(error) for name in names.split()}
    body["__class__"] = property(method(error))
    return type("Failing", (base,), body)


FAILING = [
    failing(error, base)(*arguments)
    for error in (ValueError, RecursionError, KeyboardInterrupt, SystemExit, BaseException)
    for base, *arguments in ((object,), (str, "1"), (float, 3.0), (int, 3), (bytes, b"1"), (dict,))
]
ODD = [
    *("", "x", "1", " 2 ", "nan", "-inf", "1e400", "1_0", "\x00", "é", "\ud800", "a" * 10_000),
    *("0x10", "½", "٣", "1,5", "True", "None", "<NA>", "private ", "Private", "2.0", "02"),
    *(None, np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 10**400, -(10**5000), 2**64),
    *(1 + 2j, 2 + 0j, complex("nan"), np.complex64(1), True, False, np.True_, np.float16(np.inf)),
    *(np.float32(0.1), np.int8(-1), np.uint64(2**64 - 1), np.longdouble("1e4000"), np.str_("2")),
    *(pd.NA, pd.NaT, pd.Timestamp("2020"), pd.Timedelta("1D"), pd.Interval(0, 1)),
    *(np.datetime64("2020"), np.timedelta64("NaT"), Decimal("1"), Decimal("sNaN"), Fraction(1, 3)),
    *(b"1", b"\xff", bytearray(b"1"), [1], (1, 2), {1}, {}, {"a": 1}, object(), int, len),
    *(np.array([1, 2]), np.array(1.0), pd.Series([1]), pl.Series([1]), X, *FAILING),
]
CONTAINERS = {
    "object": lambda column, name: pd.Series(as_objects(column)),
    "category": lambda column, name: (
        pd.Series(column, dtype=object).astype("category") if name == "work" else column
    ),
    "nullable": lambda column, name: pd.Series(
        column, dtype={"age": "Int64", "gain": "Float64", "work": "string"}[name]
    ),
    "arrow": lambda column, name: pd.Series(
        column, dtype={"age": "int64", "gain": "double", "work": "string"}[name] + "[pyarrow]"
    ),
    "large": lambda column, name: _large(column, name),
}


def _large(column, name):
    pyarrow = pytest.importorskip("pyarrow")
    types = {"age": pyarrow.float32(), "gain": pyarrow.float64(), "work": pyarrow.large_string()}
    return pd.Series(column, dtype=pd.ArrowDtype(types[name]))


def as_objects(values):
    """Place entries one by one: an older pandas calls their methods."""
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value
    return made


def told(records, labels):
    """The counts, up to the noise of the seed, and all else that is said."""
    accountant = unlimited()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        oracle = release_oracle(
            records, labels, schema=SCHEMA, mechanism=PURE, accountant=accountant, random_state=0
        )
    said = str(oracle.guarantee_), [str(each.message) for each in heard], str(accountant.total())
    return np.concatenate([table.ravel() for table in oracle.tables_.values()]), said


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # older pandas
@pytest.mark.parametrize("container", CONTAINERS)
def test_an_odd_record_moves_two_counts_of_each_table_and_nothing_else(container):
    """In each column whose type holds the value, and in the label: 2 d in all."""
    if container in ("arrow", "large"):
        pytest.importorskip("pyarrow")
    make, n_tried = CONTAINERS[container], 0
    plain = pd.DataFrame({name: make(X[name].tolist(), name) for name in X})
    base, said = told(plain, Y)
    for odd in ODD if container == "object" else ODD[: -len(FAILING)]:
        records, labels = plain.copy(), Y.astype(object)
        labels[7:8] = as_objects([odd])
        for name in X:
            column = X[name].tolist()
            column[7] = odd
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    records[name] = make(column, name)
                n_tried += 1
            except BaseException:  # then nobody has such a record
                continue
        counts, other = told(records, labels)
        assert np.abs(counts - base).sum() <= 2 * len(COLUMNS)
        assert other == said
    assert n_tried > {"object": 280, "category": 150}.get(container, 50)


@pytest.mark.loop("place", range(len(FAILING)))
def test_no_method_of_an_entry_is_called_by_a_fit(place):
    records = X.astype(object)
    for name in records:
        records[name] = pd.Series(as_objects([*X[name].tolist()[:-1], FAILING[place]]))
    fitted = PrivateEstimator(
        LogisticRegression(),
        mechanism=PURE,
        sensitivity=ClassTables(SCHEMA, random_state=0),
        accountant=unlimited(),
        random_state=0,
    )
    assert len(fitted.fit(records, Y).predict(X.astype(object))) == len(X)


def frame(container):
    """Many records, whose columns have these types."""
    records, labels = made_up(2000, seed=2)
    if container.startswith("polars"):
        made = pl.DataFrame({name: records[name].tolist() for name in records})
        kinds = {"Enum": pl.Enum(["public", "private", "2"]), "Categorical": pl.Categorical}
        return made.cast({"work": kinds[container.split()[1]]}), labels
    if container in ("arrow", "large"):
        pytest.importorskip("pyarrow")
    make = CONTAINERS[container]
    return pd.DataFrame({name: make(records[name].tolist(), name) for name in records}), labels


def private(estimator, schema=SCHEMA, mechanism=PURE, **options):
    chosen = ClassTables(schema, random_state=0)
    options = {"mechanism": mechanism, "sensitivity": chosen, "random_state": 0} | options
    return PrivateEstimator(estimator, accountant=unlimited(), **options)


@pytest.mark.parametrize("container", [*CONTAINERS, "polars Enum", "polars Categorical"])
@pytest.mark.parametrize("estimator", [LogisticRegression(), HistGradientBoostingClassifier()])
def test_columns_of_any_declared_type_are_learned_from(container, estimator):
    records, labels = frame(container)
    assert private(estimator).fit(records, labels).score(records, labels) > 0.85


@pytest.mark.parametrize("mechanism", [PURE, DELTA], ids=["pure", "delta"])
@pytest.mark.parametrize("estimator", [Ridge(), HistGradientBoostingRegressor()])
def test_odd_responses_are_cells_of_their_range(estimator, mechanism):
    rng = np.random.default_rng(0)
    records = pd.DataFrame({"a": rng.uniform(0, 10, 2000)})
    schema = Schema({"a": Number(0, 10)}, y_range=(0, 20))
    response = (2 * records["a"] + rng.normal(size=2000)).astype(object)
    fitted = private(estimator, schema, mechanism).fit(records, response)
    assert fitted.score(records, response.astype(float)) > 0.8
    base = fitted._release.numbers["histogram 1 of y"]
    for odd in (None, np.nan, np.inf, "7", "x", 1j, [1], 10**400, pd.NA, FAILING[0]):
        other = [*response[:-1], odd]
        again = private(estimator, schema, mechanism).fit(records, pd.Series(as_objects(other)))
        assert np.abs(again._release.numbers["histogram 1 of y"] - base).sum() <= 2
        assert str(again.guarantee_) == str(fitted.guarantee_)


def test_a_released_oracle_is_a_prior_and_draws_pairs():
    """At no further cost, as it was paid for."""
    rng, schema = np.random.default_rng(0), Schema({0: Number(0, 9), 1: Number(0, 9)}, [0, 1])
    labels = rng.integers(2, size=2000)
    records = np.clip(rng.normal(3 + 3 * labels[:, None], 1, (2000, 2)), 0, 9)
    oracle = release_oracle(
        records, labels, schema=schema, mechanism=PURE, accountant=unlimited(), random_state=0
    )
    for sensitivity, prior in ((SampleAndAggregate(10), oracle), (oracle_pairs(oracle), None)):
        fitted = private(
            LogisticRegression(), sensitivity=sensitivity, prior=prior, classes=[0, 1]
        ).fit(records, labels)
        assert fitted.score(records, labels) > 0.9
        assert fitted.guarantee_.epsilon == 1.0


def oracle_pairs(oracle):
    return SensitivitySampler(oracle, gamma=0.3, n_pairs=20, random_state=0)
