"""All that numpy can read: a container is taken or refused by its class and its declared types.

A null in place of a value, or a longer text, changes neither the type of other records nor what is
refused.
"""

import array
import collections
import ctypes
import pickle
import zlib
from importlib.util import find_spec

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge

from skdp import (
    FunctionTarget,
    LaplaceMechanism,
    PrivateEstimator,
    SampleAndAggregate,
    SensitivitySampler,
    plan_release,
    release,
)
from skdp.accounting import PrivacyAccountant
from tests.test_neighbors import NUMBERS, N, outcome

COLUMN = [0, 1, *NUMBERS[2:, 0].tolist()]
N_BLOCKS = 10


class Own:
    def __init__(self, values):
        self.values = values


class Converted(Own):
    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class Interfaced(Own):
    @property
    def __array_interface__(self):
        return np.array(self.values).__array_interface__


class Structured(Own):
    @property
    def __array_struct__(self):
        return np.array(self.values).__array_struct__


class Indexed(Own):
    def __len__(self):
        return len(self.values)

    def __getitem__(self, place):
        return self.values[place]


class Iterated(Own):
    def __iter__(self):
        return iter(self.values)


class Shaped(Converted):
    @property
    def shape(self):
        return np.shape(self.values)

    def __len__(self):
        return len(self.values)


def whole(values):
    """Replace a null, which the container cannot hold, by a large number."""
    return [2 if each is None else each for each in values]


def masked(values):
    return np.ma.masked_array(whole(values), [each is None for each in values])


CONTAINERS = {
    "objects": lambda v: np.array(v, dtype=object),
    "list": list,
    "tuple": tuple,
    "masked": masked,
    "matrix": lambda v: np.asmatrix(whole(v)).T,
    "records": lambda v: np.rec.fromarrays([whole(v)], names="a"),
    "characters": lambda v: np.char.array(list(map(str, v))),
    "scalar": lambda v: np.float64(v[-1] or 0),
    "no dimension": lambda v: np.array(v[-1]),
    "array.array": lambda v: array.array("d" if None in v else "b", whole(v)),
    "memoryview": lambda v: memoryview(np.array(whole(v), dtype=float if None in v else int)),
    "bytes": lambda v: bytes(whole(v)),
    "bytearray": lambda v: bytearray(whole(v)),
    "ctypes": lambda v: (ctypes.c_double * len(v))(*whole(v)),
    "deque": collections.deque,
    "UserList": collections.UserList,
    "range": lambda v: range(len(v)),
    "values of a dict": lambda v: dict(enumerate(v)).values(),
    "dict": lambda v: dict(enumerate(v)),
    "set": set,
    "generator": iter,
    "text": lambda v: "".join(map(str, v)),
    **{kind.__name__: kind for kind in (Converted, Interfaced, Structured)},
    **{kind.__name__: kind for kind in (Indexed, Iterated, Shaped)},
    "csr": lambda v: sparse.csr_array(np.array([v], dtype=float).T),
    "coo": lambda v: sparse.coo_matrix(np.array([v], dtype=float).T),
    "polars lazy": lambda v: pl.LazyFrame({"a": v}),
    "narwhals frame": lambda v: nw.from_native(pl.DataFrame({"a": v})),
    "narwhals lazy": lambda v: nw.from_native(pl.LazyFrame({"a": v})),
    "narwhals series": lambda v: nw.from_native(pd.Series(v, dtype="Int64"), series_only=True),
    "pandas multi-index": lambda v: pd.MultiIndex.from_arrays([v, v]),
    "pandas intervals": lambda v: pd.arrays.IntervalArray.from_arrays(whole(v), whole(v)),
    "polars words": lambda v: pl.Series("a", [*map(str, v)], dtype=pl.Categorical),
    "polars frame of words": lambda v: pl.DataFrame(
        {"a": [*map(str, v)]}, schema={"a": pl.Categorical}
    ),
}
DTYPES = ["Int8", "Int64", "UInt8", "boolean", "Float32", "Float64", pd.CategoricalDtype([0, 1])]
DTYPES += ["int8[pyarrow]", "double[pyarrow]"] if find_spec("pyarrow") else []
for _dtype in DTYPES:
    CONTAINERS |= {
        f"pandas {_dtype}": lambda v, dtype=_dtype: pd.Series(v, dtype=dtype),
        f"pandas {_dtype} array": lambda v, dtype=_dtype: pd.Series(v, dtype=dtype).array,
        f"pandas {_dtype} values": lambda v, dtype=_dtype: pd.Series(v, dtype=dtype).values,
        f"pandas {_dtype} index": lambda v, dtype=_dtype: pd.Index(v, dtype=dtype),
        f"pandas {_dtype} frame": lambda v, dtype=_dtype: pd.DataFrame({"a": v}, dtype=dtype),
    }
POLARS = [pl.Int8, pl.Float32, pl.Boolean, pl.Decimal(10, 2)]
# the first version waits for itself, now and then, where it takes objects from a frame
POLARS += [] if pl.__version__ == "1.0.0" else [pl.Object]
for _dtype in POLARS:
    CONTAINERS |= {
        f"polars {_dtype}": lambda v, dtype=_dtype: pl.Series("a", v, dtype=dtype, strict=False),
        f"polars {_dtype} frame": lambda v, dtype=_dtype: pl.DataFrame(
            {"a": v}, schema={"a": dtype}, strict=False
        ),
    }
if find_spec("pyarrow"):
    import pyarrow as pa

    CONTAINERS |= {
        "arrow array": lambda v: pa.array(v, pa.int64()),
        "arrow chunks": lambda v: pa.chunked_array([v[:9], v[9:]], pa.int64()),
        "arrow table": lambda v: pa.table({"a": pa.array(v, pa.int8())}),
        "arrow batch": lambda v: pa.record_batch({"a": pa.array(v, pa.int8())}),
        "arrow codes": lambda v: pd.Series(v, dtype=pd.ArrowDtype(pa.dictionary("int8", "int8"))),
    }
if find_spec("xarray"):
    import xarray

    CONTAINERS |= {"xarray": xarray.DataArray}
if find_spec("torch"):
    import torch

    CONTAINERS |= {"torch": lambda v: torch.tensor(whole(v))}
if find_spec("dask"):
    import dask.array

    CONTAINERS |= {"dask": lambda v: dask.array.from_array(np.array(v, dtype=float))}


def as_table(made):
    """Return a single column as a table, where the container has some."""
    if isinstance(made, np.ndarray) and made.ndim == 1:
        return made[:, None]
    if isinstance(made, list | tuple):
        return type(made)([each] for each in made)
    is_column = isinstance(made, pd.Series | pl.Series)
    return made.to_frame() if is_column else made


def oracle(n_samples, rng):
    X = rng.uniform(size=(n_samples, 1))
    return X, X[:, 0], rng.uniform(size=n_samples)


FULL = np.array(COLUMN, dtype=float)
USUAL = {"X": FULL[:, None], "y": FULL, "sample_weight": FULL}


def sampled_facts(part, made):
    """All that is seen of a release under a sampled promise but for the noise."""
    budget = PrivacyAccountant(":memory:", epsilon=9)
    sampler = SensitivitySampler(oracle, gamma=0.3, n_pairs=3, random_state=0)
    model = PrivateEstimator(
        Ridge(), mechanism=LaplaceMechanism(1.0), sensitivity=sampler, accountant=budget
    )
    try:
        model.fit(**USUAL | {part: made})
    except Exception as error:
        return type(error), str(error), budget.total()
    saved = len(pickle.dumps(model.estimator_))
    return model.plan_.schema.key, model.sensitivity_.value, saved, budget.total().epsilon


def known_facts(promise, part, made, tmp_path):
    X, y = (made, FULL) if part == "X" else (FULL[:, None], made)
    return outcome(promise, X, y, tmp_path)


PARTS = [("regression", "X"), ("sampled", "sample_weight")]
SLOW = [("regression", "y"), ("naive Bayes", "y"), ("sampled", "X"), ("sampled", "y")]
PARTS += [pytest.param(*each, marks=pytest.mark.slow) for each in SLOW]


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize(("promise", "part"), PARTS)
def test_an_estimator_takes_a_container_by_its_class_and_type(promise, part, tmp_path):
    taken = set()
    for name, make in CONTAINERS.items():
        told = []
        for i, last in enumerate((COLUMN[-1], None)):
            made = make([*COLUMN[:-1], last])
            made = as_table(made) if part == "X" else made
            if promise == "sampled":
                told.append(sampled_facts(part, made))
            else:
                told.append(known_facts(promise, part, made, tmp_path / f"{name}{i}"))
        seen, other = told
        if not isinstance(seen[0], type):
            taken.add(name)
        if promise == "sampled" and other != seen:  # it may refuse gaps, by their form
            assert other[0] is ValueError, name
            assert any(word in other[1] for word in ("NaN", "missing", "convert")), name
        else:
            assert other == seen, name
    # else all would be equal if all were refused
    assert taken >= {"polars Int8 frame" if part == "X" else "polars Int8", "pandas Int64"}
    assert part == "X" or taken >= {"pandas Int64 values", "pandas Int64 index"}
    assert not any(
        word in name for word in ("lazy", "narwhals", "Own", "arrow", "dask") for name in taken
    )


def form_of(X):
    """Return a number of the type of the records, which tells if it depends on other blocks."""
    told = [type(X), getattr(X, "dtype", None), np.asarray(X).dtype]
    if isinstance(X, pd.Series | pl.Series):
        told.append(getattr(X.dtype, "pyarrow_dtype", None) and X.array.__arrow_array__())
        told.append(X.to_physical().to_list() if isinstance(X, pl.Series) else None)
    return zlib.crc32(repr(told).encode()) % 1000 / 1000


TEXTS = {
    "texts": lambda v: np.array([*map(str, v)]),
    "bytes of texts": lambda v: np.array([*map(str, v)], dtype=np.bytes_),
    "nullable texts": lambda v: pd.Series([*map(str, v)], dtype="string"),
    "objects of texts": lambda v: np.array([*map(str, v)], dtype=object),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_a_function_of_blocks_sees_no_type_of_another_block():
    """At epsilon=inf the values differ by at most the bound, which is that of one block."""
    target = FunctionTarget(form_of, key="form")
    options = {"mechanism": LaplaceMechanism(np.inf, code=None), "ranges": (0, 1)}
    options |= {"sensitivity": SampleAndAggregate(n_blocks=N_BLOCKS, random_state=0)}
    values, n_taken = [0, 1] * 50, 0
    for name, make in (CONTAINERS | TEXTS).items():
        told = []
        for last in (1, None):
            try:
                released = release(target, make([*values[:-1], last]), **options)
                told.append((released.value, str(released.plan)))
            except (TypeError, ValueError) as error:
                told.append((0.0, str(error)))
        n_taken += told[0][0] > 0
        assert abs(told[0][0] - told[1][0]) <= 1 / N_BLOCKS + 1e-9, name
        assert told[0][1] == told[1][1], name
    assert n_taken > 20


FOREIGN = {
    "polars lazy": r"polars\.LazyFrame.*X\.collect\(\)",
    "narwhals frame": r"narwhals\.DataFrame.*X\.to_native\(\)",
    "Converted": r"tests.Converted.*numpy\.asarray\(X, dtype=float\)",
    "array.array": r"array\.array.*numpy\.asarray\(X, dtype=float\)",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_another_container_is_refused_with_the_line_that_converts_it(name):
    model = PrivateEstimator(
        Ridge(), mechanism=LaplaceMechanism(1.0), sensitivity=SensitivitySampler(oracle)
    )
    foreign = CONTAINERS[name](COLUMN)
    for call in (
        lambda: model.fit(foreign, FULL),
        lambda: model.fit(FULL[:, None], foreign),
        lambda: plan_release(
            np.mean, n_samples=N, like=foreign, mechanism=LaplaceMechanism(1.0), sensitivity=1.0
        ),
        lambda: SensitivitySampler(lambda n, rng: foreign).sample(np.mean, N, "l1"),
    ):
        with pytest.raises(TypeError, match=rf"must come as.*Got {FOREIGN[name]}"):
            call()
