"""Two neighboring datasets: under a plain promise nothing but noise may differ between them."""

import itertools
import warnings
from dataclasses import replace
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import TransformedTargetRegressor
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    ClipBox,
    ClipNorm,
    LaplaceMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    UniformOracle,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import mean_bound
from skdp.exceptions import PrivateEvaluationError
from skdp.sensitivity.store import STORE

N = 40
NUMBERS = np.random.default_rng(0).integers(0, 2, size=(N, 2))
NUMBERS[:2] = [[0, 1], [1, 0]]
WORDS = np.where(NUMBERS == 1, "yes", "no").astype(object)
NULL, WILD, TEXT, MASK = None, 1e300, "text", np.nan
ODD = [np.complex128(1j), np.ma.masked, np.longdouble("1e4000"), Decimal("sNaN"), [3], 10**400]


def with_entry(values, entry):
    """Replace the last entry, of the last column if there are columns."""
    values = np.array(values, dtype=object)
    values[(-1, -1)[: values.ndim]] = entry
    return values


def numpy_of(dtype):
    return lambda values: np.array(values.tolist(), dtype=dtype)


def frame_of(make):
    return lambda values: make({name: values[:, i].tolist() for i, name in enumerate("ab")})


def pandas_of(dtype):
    def make(columns):
        return pd.DataFrame({name: pd.Series(each, dtype=dtype) for name, each in columns.items()})

    return make


def polars_of(dtype):
    return lambda columns: pl.DataFrame(
        {name: pl.Series(column, dtype=dtype, strict=False) for name, column in columns.items()}
    )


def unnamed(make):
    def renamed(columns):
        made = make(columns)
        made.columns = range(made.shape[1])
        return made

    return renamed


# by name: what makes the container of a table, and the entries that its type can hold
TABLES = {
    **{name: (numpy_of(name), [MASK, WILD, -WILD]) for name in ("float64", "longdouble")},
    **{name: (numpy_of(name), [MASK, np.inf]) for name in ("float16", "float32")},
    **{name: (numpy_of(name), [1]) for name in ("int64", "uint8", "bool")},
    "objects": (numpy_of(object), [NULL, MASK, WILD, TEXT, *ODD[:3]]),
    "list": (lambda values: values.tolist(), [NULL, MASK, WILD, TEXT, 0.5]),
    "csr": (lambda values: sparse.csr_array(values.astype(float)), [MASK, WILD]),
    "dok": (lambda values: sparse.dok_matrix(values.astype(float)), [MASK, WILD]),
    "object columns": (frame_of(pandas_of(object)), [NULL, TEXT, *ODD[3:]]),
}
for _dtype in ("Int64", "UInt8", "UInt16", "boolean", "Float32", "float64"):
    TABLES[f"pandas {_dtype}"] = (frame_of(pandas_of(_dtype)), [NULL])
    TABLES[f"unnamed {_dtype}"] = (frame_of(unnamed(pandas_of(_dtype))), [NULL])
_category = pd.CategoricalDtype([0, 1])
TABLES["unnamed categories"] = (frame_of(unnamed(pandas_of(_category))), [NULL])
for _dtype in ("int64", "uint8", "double", "bool") if find_spec("pyarrow") else ():
    TABLES[f"arrow {_dtype}"] = (frame_of(pandas_of(f"{_dtype}[pyarrow]")), [NULL])
WIDE = getattr(pl, "Int128", pl.UInt64)  # of later versions
for _dtype in (pl.Int64, pl.Boolean, pl.Float32, WIDE, pl.Decimal(10, 2), pl.Object):
    TABLES[f"polars {_dtype}"] = (frame_of(polars_of(_dtype)), [NULL])

WORDY = {
    "strings": (numpy_of(str), ["a longer text"]),
    "unnamed objects": (frame_of(unnamed(pandas_of(object))), [NULL, 1]),
    "unnamed strings": (frame_of(unnamed(pandas_of("string"))), [NULL]),
}


def column_of(made):
    """Return the last column of a table as a container of its own."""
    if isinstance(made, list):
        return [row[-1] for row in made]
    if sparse.issparse(made):
        return made.toarray()[:, -1]
    if isinstance(made, pl.DataFrame):
        return made.to_series(made.width - 1)
    return made.iloc[:, -1] if isinstance(made, pd.DataFrame) else made[:, -1]


def private(estimator, budget, **options):
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": "known"} | options
    return PrivateEstimator(estimator, accountant=budget, random_state=0, **options)


def fitted(estimator, **options):
    return lambda X, y, budget: private(estimator, budget, **options).fit(X, y)


def planned(estimator, **options):
    def executed(X, y, budget):
        plan = private(estimator, budget, **options).plan(N, like=(X[:2], y[:2]))
        return plan.execute(X, y, random_state=0)

    return executed


def fitted_again(estimator, sensitivity):
    def fitted(X, y, budget):
        model = private(estimator, budget, sensitivity=sensitivity)
        known = model.plan(N, like=(X[:2], y[:2])).sensitivity
        return model.set_params(sensitivity=known, prior=sensitivity.oracle).fit(X, y)

    return fitted


def of_mean(X, y, budget):
    bound = mean_bound(N, 2, ranges=(0, 1))
    options = {"mechanism": LaplaceMechanism(1.0), "accountant": budget, "random_state": 0}
    return release(lambda X: np.asarray(X).mean(axis=0), X, sensitivity=bound, **options)


def scaled(*steps):
    return make_pipeline(FrozenEstimator(StandardScaler().fit(NUMBERS.astype(float))), *steps)


LABELS = {"classes": [0, 1]}
CLIPPED = TransformedTargetRegressor(LinearRegression(), transformer=ClipBox(0, 1))
PROMISES = {
    "mean in ranges": of_mean,
    "naive Bayes": fitted(make_pipeline(ClipNorm(), GaussianNB()), **LABELS),
    "classes of words": fitted(make_pipeline(ClipNorm(), GaussianNB()), classes=["no", "yes"]),
    "moments of classes": fitted(scaled(ClipNorm(), MomentClassifier()), **LABELS),
    "regression": fitted(make_pipeline(ClipNorm(), MomentRegressor(y_range=(0, 1)))),
    "clipped response": fitted(make_pipeline(ClipNorm(), CLIPPED)),
    "planned": planned(make_pipeline(ClipNorm(), GaussianNB()), **LABELS),
    "with a prior": fitted(
        make_pipeline(ClipBox(0, 1), StandardScaler()), prior=UniformOracle([(0, 1)] * 2)
    ),
}
SAMPLER = SensitivitySampler(
    UniformOracle([(0, 1)] * 2, y_bounds=(0, 1)), gamma=0.3, n_pairs=3, random_state=0
)
SAMPLED = {
    "sampled": fitted(Ridge(), sensitivity=SAMPLER),
    "sampled and planned": planned(Ridge(), sensitivity=SAMPLER),
    "sampled before": fitted_again(Ridge(), SAMPLER),
}


def outcome(promise, X, y, folder):
    """All that is seen of a release but for the noise."""
    STORE.clear()  # a plan says which pairs were known from before
    budget = PrivacyAccountant(":memory:", epsilon=1e6)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            made = (PROMISES | SAMPLED)[promise](X, y, budget)
        except Exception as error:
            return type(error), str(error), budget.total()
    plan = getattr(made, "plan_", None)
    made.save(folder)
    rows = [{k: v for k, v in row.items() if k != "time"} for row in budget.rows()]
    seen = [] if plan is None else [plan.schema.key, str(replace(plan, seconds=0.0))]
    saved = {path.name: path.stat().st_size // 2**14 for path in Path(folder).iterdir()}
    told = [str(each.message) for each in caught]
    return *seen, str(getattr(made, "guarantee", None) or made.guarantee_), rows, told, saved


def common_outcome(promise, name, part, tmp_path, values=NUMBERS):
    """Compare a dataset of a container with its neighbors."""
    make, entries = (TABLES | WORDY)[name]
    base = make(values)
    y = NUMBERS[:, 0].astype(float)
    outcomes = []
    for i, made in enumerate([base, *(make(with_entry(values, entry)) for entry in entries)]):
        X, response = (made, y) if part == "X" else (NUMBERS.astype(float), column_of(made))
        outcomes.append(outcome(promise, X, response, tmp_path / f"{name}{part}{i}"))
    for other in outcomes[1:]:
        assert other == outcomes[0], (name, part)
    return outcomes[0]


QUICK = [("mean in ranges", "X"), ("moments of classes", "X"), ("regression", "y")]
OTHERS = ("naive Bayes", "clipped response", "planned")
SLOW = [(each, "X") for each in (*OTHERS, "regression", "with a prior")]
SLOW += [(each, "y") for each in (*OTHERS, "moments of classes")]
PARTS = [*QUICK, *(pytest.param(*each, marks=pytest.mark.slow) for each in SLOW)]


@pytest.mark.parametrize(("promise", "part"), PARTS)
def test_nothing_tells_of_one_record(promise, part, tmp_path):
    names = list(TABLES)
    if (promise, part) not in QUICK:  # a third of the containers, of each promise others
        names = names[SLOW.index((promise, part)) % 3 :: 3]
    seen = {name: common_outcome(promise, name, part, tmp_path) for name in names}
    refused = {name for name, facts in seen.items() if isinstance(facts[0], type)}
    sparse_ones = {"csr", "dok"} if part == "X" else set()  # some estimators take none
    # no entry is looked at to learn whether these are numbers
    untyped = {"list", "objects", "object columns", "unnamed categories", "polars Object"}
    untyped |= {name for name in TABLES if "Decimal" in name}  # whose scale a library may read
    beyond_numpy = (
        {"polars Int128"} if part == "X" else set()
    )  # the estimators cannot predict on it
    assert refused <= sparse_ones | untyped | beyond_numpy
    if part == "X" or promise in ("regression", "clipped response"):
        assert untyped & set(names) <= refused


def test_no_response_decides_about_the_form_of_all(tmp_path):
    nested, arrays = [[9.0]] * N, [np.ones(2)] * N
    for promise, most in itertools.product(("regression", "naive Bayes"), (nested, arrays)):
        outcomes = []
        for kind, entry in itertools.product((list, tuple), (most[0], None, 3.0, [9.0, 1.0])):
            responses = kind([entry, *most[1:]])
            outcomes.append(outcome(promise, NUMBERS.astype(float), responses, tmp_path))
            assert outcomes[-1] == outcomes[0]


@pytest.mark.parametrize("name", WORDY)
@pytest.mark.parametrize(("promise", "part"), [("regression", "X"), ("classes of words", "y")])
def test_no_word_tells_of_one_record(promise, part, name, tmp_path):
    seen = common_outcome(promise, name, part, tmp_path, WORDS)
    assert isinstance(seen[0], type) == (part == "X")


def test_a_missing_text_is_refused_by_no_number():
    texts = pd.Series([*(["a b", "c"] * (N // 2 - 1)), "d", None], dtype=object)
    estimator = make_pipeline(HashingVectorizer(n_features=4), LogisticRegression())
    prior = PublicDataOracle(np.array(["a", "b"], dtype=object), [0, 1])
    asserted = fitted(estimator, sensitivity=1.0, prior=prior, **LABELS)
    with pytest.raises(PrivateEvaluationError):
        asserted(texts, NUMBERS[:, 0], PrivacyAccountant(":memory:", epsilon=1))


OF_NUMBERS = {
    "float64": (np.float64, [1e30, -1e30]),
    "float32": (np.float32, [1e3]),
    "int64": (np.int64, [2**62]),
    "uint8": (np.uint8, [255]),
}


@pytest.mark.parametrize("promise", SAMPLED)
@pytest.mark.parametrize("name", OF_NUMBERS)
@pytest.mark.parametrize("container", [np.asarray, pd.DataFrame, pl.from_numpy, sparse.csr_array])
def test_no_number_tells_of_a_record_under_a_sampled_promise(promise, name, container, tmp_path):
    dtype, entries = OF_NUMBERS[name]
    base, y = NUMBERS.astype(dtype), NUMBERS[:, 0].astype(float)
    tables = [base, *(base.copy() for _ in entries)]
    for table, entry in zip(tables[1:], entries, strict=True):
        table[-1, -1] = entry
    outcomes = [
        outcome(promise, container(table), y, tmp_path / str(i)) for i, table in enumerate(tables)
    ]
    assert not isinstance(outcomes[0][0], type)
    assert all(other == outcomes[0] for other in outcomes)
