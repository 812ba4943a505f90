"""Any value goes to a cell, alone: no failure, no warning, and no other record moves."""

import pickle
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdp.tables.columns import Category, Number
from skdp.tables.counts import class_tables
from skdp.tables.schema import Schema
from skdp.tables.values import canonical, numbers


class Broken:
    """An object each method of which fails."""

    def fail(self, *args):
        raise RuntimeError("a record is shown")

    __str__ = __repr__ = __float__ = __eq__ = __len__ = __getitem__ = __array__ = fail
    __hash__ = None
    __class__ = property(fail)


class Shouting(str):
    """A text that says something else than it is."""

    def __str__(self):
        return "x"

    __float__ = None


ODD = [
    *("x", "", "1", " 2 ", "nan", "inf", "1e400", "1_0", "\x00", "é", "maybe", "0.5", "a" * 10_000),
    *(None, float("nan"), np.nan, float("inf"), -np.inf, -1e308, 10**400, -(10**400), 10**5000),
    *(1 + 2j, 1 + 0j, complex("nan"), np.complex64(1), np.complex64(1 + 1j)),
    *(pd.NA, pd.NaT, pd.Timestamp("2020-01-01"), pd.Timedelta("1D"), np.datetime64("2020")),
    *(np.datetime64("NaT"), np.timedelta64(1, "D"), np.timedelta64("NaT"), np.longdouble("1e4000")),
    *(True, False, np.True_, np.float32(0.1), np.float16(np.inf), np.int8(1), np.uint64(2**64 - 1)),
    *([1], {}, (1, 2), {1}, b"1", b"\xff", bytearray(b"1"), object(), int, len, Broken(), Broken),
    *(np.array([1, 2]), np.array(1.0), np.array([1.0]), pd.Series([1, 2]), pl.Series([1])),
    *(1.0, "1.0", Decimal("1"), Decimal("sNaN"), Fraction(1, 3), Shouting("1"), Shouting("y")),
]


def forms(values):
    """The same values in a list, and in each container that takes them."""
    yield values
    for form in (np.array, pd.Series, lambda v: pd.Series(v, dtype=object)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = form(values)
        except Exception:  # of numpy or pandas: then nobody has such records
            continue
        if len(made.shape) == 1 and made.dtype.kind not in "mM":
            yield made


N = 50
RNG = np.random.default_rng(0)
GOOD = [
    RNG.uniform(0, 10, N).tolist(),
    RNG.integers(0, 3, N).tolist(),
    RNG.integers(0, 2, N).tolist(),
]
COLUMNS = Number(0, 10), Category([0, 1, 2]), Category([0, 1])


def counts(parts):
    """The class tables of a number and a category."""
    number, category, labels = (c.cells(p, 8) for c, p in zip(COLUMNS, parts, strict=True))
    return np.concatenate([t.ravel() for t in class_tables([number, category], [8, 3], labels, 2)])


def test_a_replaced_record_of_any_kind_changes_two_cells_of_each_table():
    """The bounds are 2 d = 4 and sqrt(2 d) = 2, in every container, without a warning."""
    base, n_inputs = counts(GOOD), 0
    for odd in ODD:
        for part in range(3):
            for form in forms([*GOOD[part][:-1], odd]):
                with warnings.catch_warnings(record=True) as given:
                    warnings.simplefilter("always")
                    change = counts([*GOOD[:part], form, *GOOD[part + 1 :]]) - base
                assert given == []
                assert np.abs(change).sum() <= 4
                assert np.sum(change**2) <= 4
                n_inputs += 1
    assert n_inputs >= 303


def test_many_replaced_records_reach_the_bounds():
    rng, odd = np.random.default_rng(1), [*ODD, *GOOD[0][:9], 0, 1, 2]
    largest = 0
    base = counts(GOOD)
    for _ in range(300):
        parts = [part.copy() for part in GOOD]
        for part in parts:
            part[7] = odd[rng.integers(len(odd))]
        change = counts(parts) - base
        assert np.sum(change**2) <= 4
        largest = max(largest, np.abs(change).sum())
    assert largest == 4


@pytest.mark.loop(
    ("value", "expected"),
    [
        *((one, 1.0) for one in (1, 1.0, True, "1", "1.0", " 1 ", b"1", np.int8(1), 1 + 0j)),
        *((gap, None) for gap in (None, np.nan, pd.NA, pd.NaT, "nan", "inf", 10**400, [1], 1j)),
        ("a", "a"),
        (Shouting("y"), "y"),
        (Broken(), None),
    ],
)
def test_canonical_values(value, expected):
    assert canonical(value) == expected
    assert type(canonical(value)) is type(expected)


@pytest.mark.loop(
    ("column", "values", "cells"),
    [
        (
            Number(0, 10),
            [-1, 0, 4.99, 5, 10, 11, None, np.inf, -np.inf, "7"],
            [0, 0, 1, 2, 3, 3, 0, 0, 0, 2],
        ),
        (Number(0, 3, integer=True), [0, 1, 2, 3, 2.6, 9], [0, 1, 2, 3, 3, 3]),
        (Number(0, 99_999, log=True), [0, 16, 17, 99_999], [0, 0, 1, 3]),
        (Number(0, 99, log=True, integer=True), [0, 2, 3, 8, 10, 99], [0, 0, 1, 1, 2, 3]),
        (Category(["a", 2, True]), ["a", "2", 1, 2.0, "b", None, np.inf], [0, 1, 2, 1, 0, 0, 0]),
    ],
)
def test_cells(column, values, cells):
    assert column.cells(values, 4).tolist() == cells


@pytest.mark.parametrize(
    "column",
    [
        np.array([0.1, np.nan, np.inf, -5, 1e300, 3]),
        np.array([0.1, np.nan, np.inf, -5, 3], np.float32),
        np.array([1, -5, 2**62]),
        np.array([2**64 - 1, 3], np.uint64),
        np.array([True, False]),
        np.array(["1e1", "x"]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([0.5, None], dtype="Float64"),
        pd.Series(["1", "x", None], dtype="string"),
        pd.Series([1.0, 2.0, None]).astype("category"),
        pl.Series([1, None, 3]),
        pl.Series([0.5, float("nan"), None], dtype=pl.Float32),
        pl.Series([True, None]),
        pl.Series(["1", "x", None], dtype=pl.Enum(["x", "1"])),
        pl.Series(["1", None], dtype=pl.Categorical),
    ],
    ids=lambda column: str(column.dtype)[:20],
)
def test_a_declared_type_gives_the_cells_of_single_entries(column):
    entries = column.tolist() if hasattr(column, "tolist") else column.to_list()
    np.testing.assert_array_equal(numbers(column), numbers(entries))
    for declared in (Number(0, 5), Number(0, 5, integer=True), Category([0, 1, "x", 3])):
        assert declared.cells(column, 4).tolist() == declared.cells(entries, 4).tolist()


SCHEMA = Schema({"a": Number(0, 10), "b": Category(["x", "y"])}, classes=["no", "yes"])
RECORDS = {"a": [1.0, None, 20.0], "b": ["y", "z", None]}
EXPECTED = [[0, 0, 3], [1, 0, 0]]


@pytest.mark.parametrize(
    "X",
    [
        pd.DataFrame({**RECORDS, "other": 0}),
        pd.DataFrame(RECORDS)[["b", "a"]].set_index(pd.Index([5, 5, 6])),
        pl.DataFrame(RECORDS),
        np.array([RECORDS["a"], RECORDS["b"]], dtype=object).T,
        [list(row) for row in zip(*RECORDS.values(), strict=True)],
        [{"b": "y", "a": 1.0}, {}, {"a": "20"}],
        [{"b": "y", "a": 1.0}, None, (50,)],
    ],
)
def test_records_are_read_from_each_container(X):
    columns, n = SCHEMA.read(X)
    assert n == 3
    for declared, column, cells in zip(SCHEMA.columns.values(), columns, EXPECTED, strict=True):
        assert declared.cells(column, 4).tolist() == cells


DATES = pd.date_range("2020-01-01", periods=3)


@pytest.mark.loop(
    ("X", "message"),
    [
        (pd.DataFrame({"a": DATES, "b": "x"}), r"\['a'\] .*dates"),
        (pd.DataFrame({"a": 1.0, "b": [1, 2, 3]}), "column 'b'"),
        (pd.DataFrame({"a": pd.Categorical(["u", "v", "u"]), "b": "x"}), "column 'a'"),
        (pd.DataFrame({"a": pd.Categorical([1.0, 2.0, 3.0]), "b": "x"}), "a type of numbers"),
        (pl.DataFrame({"a": pl.Series(["1"], dtype=pl.Enum(["1"])), "b": "x"}), "of numbers"),
        (pd.DataFrame({"a": ["1", "2", "3"], "b": "x"}, dtype="string"), "a type of numbers"),
        (pl.DataFrame({"a": ["1", "2", "3"], "b": "x"}), "a type of numbers"),
        (pd.DataFrame({"a": 1.0, "b": pd.Categorical([1, 2, 1])}), "column 'b'"),
        (pl.DataFrame({"a": [[1.0]] * 3, "b": ["x"] * 3}), r"\['a'\] .*to columns"),
        (pd.DataFrame({"a": [1.0]}), "Missing or repeated"),
        (pd.DataFrame([[1, 2, 3]], columns=["a", "a", "b"]), "Missing or repeated"),
        (np.zeros((3, 3)), "2 declared columns"),
        (np.zeros(3), "two dimensions"),
        ("text", "must come as a numpy array"),
    ],
)
def test_a_form_that_cannot_hold_what_is_declared_is_refused(X, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SCHEMA.read(X)


@pytest.mark.loop(
    ("y", "message"),
    [
        (np.array([0, 1, 1]), "type of y"),
        (DATES.to_series(), "type of y"),
        (np.array([["no"]] * 3), "one response"),
        (["no"], "one response"),
        ("no!", "one response"),
    ],
)
def test_labels_of_another_form_are_refused(y, message):
    with pytest.raises((TypeError, ValueError), match=message):
        SCHEMA.read(pd.DataFrame(RECORDS), y)


@pytest.mark.loop(
    "make",
    [
        lambda: Number(1, 1),
        lambda: Number(0, np.inf),
        lambda: Number(-1.5e308, 1.5e308),
        lambda: Number(np.nan, 1),
        lambda: Number(0.5, 2, integer=True),
        lambda: Number("0", 1),
        lambda: Category([]),
        lambda: Category("ab"),
        lambda: Category(["1", 1]),
        lambda: Category(["a", None]),
        lambda: Category([["a"], ["b"]]),
        lambda: Schema({}, classes=[0, 1]),
        lambda: Schema({"a": (0, 1)}, classes=[0, 1]),
        lambda: Schema({"a": Number(0, 1)}),
        lambda: Schema({"a": Number(0, 1)}, classes=[0]),
        lambda: Schema({"a": Number(0, 1)}, classes=[0, 1], y_range=(0, 1)),
        lambda: Schema({"a": Number(0, 1)}, y_range=(1, 0)),
    ],
)
def test_a_declaration_that_means_nothing_is_refused(make):
    with pytest.raises((TypeError, ValueError)):
        make()


def test_a_schema_is_a_value():
    schema = Schema({"a": Number(0, 10), "b": Category(["x", "y"])}, classes=("no", "yes"))
    assert schema == SCHEMA
    assert hash(schema) == hash(SCHEMA)
    assert pickle.loads(pickle.dumps(schema)) == SCHEMA
    assert Schema(dict(reversed(SCHEMA.columns.items())), classes=["no", "yes"]) != SCHEMA
    assert Schema({"a": Number(0, 1)}, y_range=(0, 2)).response == Number(0, 2)
    assert "must not be read off the private data" in str(schema)


def test_a_schema_is_read_off_public_records():
    frame = {"i": [3, 1, 2], "f": [0.5, 2.0, None], "w": ["b", "a", None], "t": [True, False, True]}
    frame["c"] = [1, 1, 1]
    expected = [Number(1, 3, integer=True), Number(0.5, 2), Category(["a", "b"])]
    expected += [Category([False, True]), Category([1])]
    for X in (pd.DataFrame(frame), pl.DataFrame(frame)):
        schema = Schema.like(X, classes=[0, 1])
        assert list(schema.columns.values()) == expected
        assert list(schema.columns) == list(frame)
    assert Schema.like(np.array([[0.5], [2]]), y_range=(0, 1)).columns == {0: Number(0.5, 2)}


@pytest.mark.loop(
    "column",
    [
        Number(-1, 3),
        Number(0, 9, integer=True),
        Number(5, 99_999, log=True),
        Number(5, 99_999, log=True, integer=True),
        Number(0, 1, integer=True),
        Category(["a", "b", "c"]),
        Category([3, 1, 2]),
    ],
)
def test_draws_are_in_their_cells(column):
    for most in (2, 5, 16):
        cells = np.random.default_rng(0).integers(column.n_cells(most), size=500)
        drawn = column.draw(cells, most, np.random.default_rng(1))
        assert column.cells(drawn, most).tolist() == cells.tolist()
