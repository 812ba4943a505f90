"""What a fit sees of a record: its type, unit, order and value are decided by no other record.

Functions and estimators write down all that they can see of their records. They see the same for
two neighboring datasets, but for one block, or one record.
"""

import json
import subprocess
import sys
from decimal import Decimal
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

from skdp import (
    ClipBox,
    FunctionTarget,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SampleAndAggregate,
    SensitivitySampler,
    plan_release,
    release,
)
from skdp.core.dataset import take_records
from skdp.core.dtypes import is_gap
from skdp.core.plain import plain
from skdp.sensitivity.store import STORE
from tests.test_containers import CONTAINERS, TEXTS

N, N_BLOCKS = 120, 12
SEEN = []  # by each call of a function or fit


def facts(X):
    """List all that can be seen of records: types, parts, order and entries."""
    told = [type(X).__name__, repr(getattr(X, "dtype", None)), sorted(getattr(X, "__dict__", ()))]
    if isinstance(X, pd.DataFrame | pd.Series):
        told += [X.attrs, repr(X.index), [getattr(X, each, None) for each in X._metadata]]
    if isinstance(X, pd.DataFrame):
        return [*told, repr(X.columns), *(facts(X.iloc[:, i]) for i in range(X.shape[1]))]
    if isinstance(X, pl.DataFrame):
        return [*told, X.columns, *map(facts, X.get_columns())]
    if isinstance(X, pd.Series):
        if isinstance(X.dtype, pd.CategoricalDtype):
            return [*told, X.cat.codes.tolist(), X.cat.categories.tolist(), X.cat.ordered]
        arrow = X.array.__arrow_array__() if hasattr(X.dtype, "pyarrow_dtype") else ()
        return [*told, repr(arrow), entries_of(X.tolist())]
    if isinstance(X, pl.Series):
        parts = []
        if X.dtype.is_nested():
            is_struct = X.dtype == pl.Struct
            parts = facts(X.struct.unnest() if is_struct else X.explode())
        return [*told, parts, repr(X.to_physical()), entries_of(X.to_list())]
    if sparse.issparse(X):
        return [*told, X.shape, *map(facts, (X.data, X.indices, X.indptr))]
    return [*told, X.dtype.metadata, X.itemsize, X.strides, X.shape, entries_of(X.ravel().tolist())]


def entries_of(values):
    return [(type(each).__name__, repr(each)) for each in values]


def see(*parts):
    SEEN.append(repr([*map(facts, parts)]))
    return 0.5


def see_others(*parts):
    """See all records but the last one."""
    return see(*(take_records(part, np.arange(part.shape[0] - 1)) for part in parts))


NOISE = LaplaceMechanism(np.inf, code=None)
IN_BLOCKS = {
    "sensitivity": SampleAndAggregate(n_blocks=N_BLOCKS, random_state=0),
    "ranges": (0, 1),
    "mechanism": NOISE,
}
WAYS = {
    "in blocks": (FunctionTarget(see, key="see"), IN_BLOCKS, N_BLOCKS),
    "all at once": (
        FunctionTarget(see_others, key="others"),
        {"sensitivity": 1.0, "mechanism": NOISE},
        1,
    ),
}
FLAT = np.arange(N) % 7 / 7


def outcome(way, part, made):
    """Return what the calls on private records saw, and what is told; or how it is refused."""
    target, options, n_calls = WAYS[way]
    SEEN.clear()
    given = {"X": {"X": made}, "y": {"X": FLAT, "y": made}}
    given["sample_weight"] = {"X": FLAT, "y": FLAT, "sample_weight": made}
    try:
        released = release(target, **given[part], **options)
    except (TypeError, ValueError) as error:
        return [], [type(error).__name__, str(error)]
    return SEEN[-n_calls:], [str(released.plan), str(released.guarantee), str(released.value)]


def n_moved(seen, others):
    """Count the calls that saw other things."""
    assert len(seen) == len(others)
    return sum(one != other for one, other in zip(seen, others, strict=True))


BITS, WORDS = [0, 1] * (N // 2), ["red", "green"] * (N // 2)
DAY, LATER = "2020-01-01", "2020-01-01 00:00:00.123456789"
DUPLICATES = [1e20, *[1.0] * 38, -1e20]  # whose sum is told by their order


class Noted(pd.DataFrame):
    """A frame with a note beside the records, which each block would see."""

    _metadata = ("note",)

    @property
    def _constructor(self):
        return Noted


def noted(values):
    frame = Noted({"a": values})
    frame.note = frame.attrs["most"] = max(values)
    return frame


def duplicated(kind, columns):
    """Make rows with duplicates in column 0; the last one has its entries in given columns."""
    lengths = [len(DUPLICATES)] * (N - 1) + [2]
    data = np.array(DUPLICATES * (N - 1) + [1.0, 1.0])
    indices = np.array([0] * (len(data) - 2) + columns[-1])
    ends = np.cumsum([0, *lengths])
    if kind == "coo":
        rows = np.repeat(np.arange(N), lengths)
        return sparse.coo_array((data, (rows, indices)), shape=(N, 2))
    if kind == "csc":  # of which only the order within a column is free
        return sparse.csc_array(duplicated("coo", columns))
    if kind == "bsr":
        return sparse.bsr_array((data[:, None, None], indices, ends), shape=(N, 2))
    return getattr(sparse, kind)((data, indices, ends), shape=(N, 2))


def decimals(values):
    """Make the scale that holds all of them, as a library that reads a file does."""
    scale = max(-each.as_tuple().exponent for each in values)
    values = [each.quantize(Decimal(1).scaleb(-scale)) for each in values]
    return pl.Series(values, dtype=pl.Decimal(20, scale))


def labelled(values):
    return np.array(values, dtype=np.dtype(float, metadata={"most": max(values)}))


# by name: what makes a container, entries, and others for the last one
CASES = {
    **{name: (make, BITS, [None]) for name, make in (CONTAINERS | TEXTS).items()},
    "numpy dates": (lambda v: np.array(v, "M8"), [DAY] * N, [LATER.replace(" ", "T")]),
    "numpy durations": (lambda v: np.array(v, "m8"), [np.timedelta64(1, "s")] * N, ["NaT"]),
    "pandas dates": (partial(pd.to_datetime, format="mixed"), pd.Series([DAY] * N), [LATER]),
    "pandas zones": (lambda v: pd.Series(pd.DatetimeIndex(v, tz="UTC")), [DAY] * N, ["NaT"]),
    "pandas periods": (lambda v: pd.Series(pd.PeriodIndex(v, freq="D")), [DAY] * N, [None]),
    "pandas intervals with gaps": (
        lambda v: pd.Series(pd.arrays.IntervalArray([v and pd.Interval(v, 9) for v in v])),
        [1] * N,
        [None, 1.5],
    ),
    "pandas sparse": (lambda v: pd.Series(pd.arrays.SparseArray(v)), BITS, [7]),
    "pandas categories": (
        lambda v: pd.Series(pd.Categorical(v, categories=["red", "green", "blue"])),
        WORDS,
        ["blue", None],
    ),
    "pandas labels": (lambda v: pd.Series(v, index=v), BITS, [7]),
    "notes": (noted, BITS, [7]),
    "metadata": (labelled, BITS, [7]),
    "blocks of rows": (
        lambda v: sparse.bsr_array(np.array([v, v], dtype=float).T, blocksize=(2, 1)),
        [0] * N,
        [1],
    ),
    **{
        f"duplicates {kind}": (partial(duplicated, kind), [[0, 1]] * N, [[1, 0], [0, 0]])
        for kind in ("csr_array", "csr_matrix", "csc", "coo", "bsr")
    },
    "polars decimals": (decimals, [Decimal(1)] * N, [Decimal("1.234")]),
    "polars dates": (lambda v: pl.Series(np.array(v, "M8")), [DAY] * N, [LATER.replace(" ", "T")]),
    "polars structures": (pl.Series, [{"a": 1}] * N, [{"a": 1, "b": 2}]),
    "polars enum": (
        lambda v: pl.Series(v, dtype=pl.Enum(["red", "green", "blue"])),
        WORDS,
        ["blue"],
    ),
}
if hasattr(np.dtypes, "StringDType"):
    CASES["numpy texts"] = (lambda v: np.array(v, np.dtypes.StringDType()), WORDS, ["blue" * 99])
if find_spec("pyarrow"):
    import pyarrow as pa

    def nested(kind, words):
        codes = pa.array(words).dictionary_encode()
        ends = pa.array(range(N + 1), pa.int32())
        made = {
            "list": lambda: pa.ListArray.from_arrays(ends, codes),
            "struct": lambda: pa.StructArray.from_arrays([codes], ["a"]),
            "map": lambda: pa.MapArray.from_arrays(ends, pa.array(["a"] * N), codes),
        }
        return pd.Series(pd.arrays.ArrowExtensionArray(made[kind]()))

    for _kind in ("list", "struct", "map"):
        CASES[f"arrow {_kind} of codes"] = (partial(nested, _kind), WORDS, ["blue"])
    CASES["arrow decimals"] = (
        lambda v: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(v))),
        [Decimal(1)] * N,
        [Decimal("1.234")],
    )
PARTS = ["X", *(pytest.param(each, marks=pytest.mark.slow) for each in ("y", "sample_weight"))]


def with_last(values, entry):
    return [*list(values)[:-1], entry]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("way", WAYS)
def test_no_record_decides_what_is_seen_of_others(way, part):
    n_taken = 0
    for name, (make, values, entries) in CASES.items():
        seen, told = outcome(way, part, make(list(values)))
        n_taken += bool(seen)
        for entry in entries:
            others, said = outcome(way, part, make(with_last(values, entry)))
            assert said == told, name
            assert n_moved(seen, others) <= (way == "in blocks"), name
    assert n_taken > 40


CODES = {
    "words": (lambda v: v, pl.Categorical),
    "list": (lambda v: [v], pl.List(pl.Categorical)),
    "array": (lambda v: [v], pl.Array(pl.Categorical, 1)),
    "struct": (lambda v: {"a": v}, pl.Struct({"a": pl.Categorical})),
    "list of struct": (lambda v: [{"a": v}], pl.List(pl.Struct({"a": pl.Categorical}))),
}


def seen_of_codes(first):
    """Return the outcomes of all series and frames of codes whose first word is given."""
    made = {}
    for name, (wrap, dtype) in CODES.items():
        words = [f"{name}{word}" for word in [first, *WORDS[1:]]]  # codes are of all columns
        try:
            series = pl.Series("a", list(map(wrap, words)), dtype=dtype)
        except pl.exceptions.PolarsError:  # an older polars has no such series
            continue
        made |= {name: series, f"{name} in a frame": series.to_frame()}
    return {name: outcome("in blocks", "X", each) for name, each in made.items()}


def test_no_code_of_polars_depends_on_other_records():
    """Each dataset has a process of its own, which keeps the codes."""
    told = []
    for first in WORDS[:2]:
        code = f"from tests.test_forms import *; print(json.dumps(seen_of_codes({first!r})))"
        root = Path(__file__).parents[1]
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=root, capture_output=True, check=True
        )
        told.append(json.loads(run.stdout))
    assert len(told[0]["words"][0]) == N_BLOCKS
    for name, (seen, said) in told[0].items():
        assert told[1][name][1] == said, name
        assert n_moved(seen, told[1][name][0]) <= 1, name


def coded(categories, words=WORDS):
    return pd.Series(pd.Categorical(words, categories=categories), name="town")


@pytest.mark.parametrize("frame", [pd.Series.to_frame, pd.Series])
def test_a_plan_brings_categories_into_its_order(frame):
    """Unordered categories are equal in any order, and their codes are not."""
    like, other = frame(coded(["green", "red"])), frame(coded(["red", "green"]))
    target = WAYS["in blocks"][0]
    plan = plan_release(target, n_samples=N, like=like, **IN_BLOCKS)
    seen = []
    for each in (like, other):
        SEEN.clear()
        plan.execute(each)
        seen.append(SEEN[-N_BLOCKS:])
    assert n_moved(*seen) == 0

    def oracle(n_samples, rng):
        kinds = rng.permutation(["green", "red"])
        return frame(coded(kinds, rng.choice(kinds, n_samples)))

    def first_category(X):
        X = X["town"] if X.ndim == 2 else X
        SEEN.append(X.cat.categories[0])
        return 0.5 + X.cat.codes.mean() / 9

    SEEN.clear()
    sampler = SensitivitySampler(oracle, gamma=0.3, n_pairs=9, random_state=0)
    release(first_category, other, mechanism=LaplaceMechanism(1.0), sensitivity=sampler)
    assert len(set(SEEN)) == 1


class Seeing(ClassifierMixin, BaseEstimator):
    """Sees the records of each fit."""

    def fit(self, X, y):
        see(X, y)
        self.classes_, self.share_ = np.array([0, 1]), np.mean(y)
        return self

    def predict_proba(self, X):
        return np.tile([1 - self.share_, self.share_], (X.shape[0], 1))

    def predict(self, X):
        return np.zeros(X.shape[0], dtype=int)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        for name in ("allow_nan", "categorical", "sparse", "string"):
            setattr(tags.input_tags, name, True)
        return tags


FITTED = ["pandas Int8 frame", "polars Float32 frame", "objects", "notes", "texts"]
OF_X = ["duplicates csr_array", "duplicates coo", "pandas categories", "polars decimals"]


def as_table(made):
    if len(made.shape) == 2:
        return made
    return made[:, None] if isinstance(made, np.ndarray) else made.to_frame("a")


@pytest.mark.parametrize("part", ["X", pytest.param("y", marks=pytest.mark.slow)])
def test_no_record_decides_what_the_fits_to_other_blocks_see(part):
    for name in [*FITTED, *OF_X] if part == "X" else FITTED:
        make, values, entries = CASES[name]
        public = as_table(make(list(values))) if part == "X" else FLAT[:, None]
        prior = PublicDataOracle(take_records(public, np.arange(60)), BITS[:60])
        told = []
        for entry in (values[-1], *entries):
            STORE.clear()
            SEEN.clear()
            X, y = as_table(make(with_last(values, entry))), np.array(BITS)
            if part == "y":
                X, y = FLAT[:, None], X["a"] if hasattr(X, "columns") else X[:, 0]
            model = PrivateEstimator(
                Seeing(),
                mechanism=L2LaplaceMechanism(np.inf),
                sensitivity=IN_BLOCKS["sensitivity"],
                prior=prior,
                classes=[0, 1],
            )
            try:
                said = str(model.fit(X, y).guarantee_)
            except (TypeError, ValueError) as error:
                said = str(error)
            told.append((said, SEEN[:-2]))  # the last two fits are to what was released
        for said, seen in told[1:]:
            assert said == told[0][0], name
            assert n_moved(seen, told[0][1]) <= 1, name
        assert told[0][1] or name in ("polars decimals", "texts", "objects"), name


@pytest.mark.parametrize("kind", ["csr_array", "coo", "bsr"])
def test_a_clip_sums_each_row_by_itself(kind):
    rows = [ClipBox(-2, 2).transform(duplicated(kind, [last])) for last in ([0, 1], [1, 0])]
    assert np.array_equal(*(each.toarray() for each in rows))


NOTED = np.dtype(float, metadata={"most": 1})
REFUSED_FORMS = [
    (pd.Series(np.zeros(3, NOTED)), "Convert them"),
    (pd.DataFrame({"a": np.zeros(3, NOTED)}), "Convert them"),
    (sparse.csr_array((np.ones(3, NOTED), np.arange(3), np.arange(4))), "Convert them"),
]


@pytest.mark.parametrize(("container", "message"), REFUSED_FORMS)
def test_what_would_tell_each_block_of_others_is_refused(container, message):
    with pytest.raises((TypeError, ValueError), match=message):
        plain(container, "X")


def test_a_sparse_vector_is_refused():
    """All its records are one row, whose duplicates are sorted together."""
    try:
        vector = sparse.coo_array(([1.0, 2.0], (np.array([0, 2]),)), shape=(3,))
    except TypeError:
        pytest.skip("an older scipy has none")
    with pytest.raises(TypeError, match="must have rows"):
        plain(vector, "X")


def test_a_name_of_all_columns_stays_behind():
    frame = pd.DataFrame({"a": [1.0, 2.0]})
    frame.columns.name = "largest: 2"
    assert plain(frame, "X").columns.name is None


def test_an_entry_that_cannot_be_compared_is_no_gap():
    class Odd(float):
        def __ne__(self, other):
            raise RuntimeError

    assert not is_gap(Odd(1))
