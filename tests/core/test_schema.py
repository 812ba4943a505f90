"""The form of the data: what is converted, what is refused, and what an estimate is good for."""

import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.compose import make_column_transformer
from sklearn.linear_model import Ridge, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivityEstimate,
    SensitivitySampler,
    UniformOracle,
    release,
)
from skdp.core.dataset import Dataset
from skdp.core.schema import DatasetForm, Form, declared
from skdp.oracles.trial import check_is_public

rng = np.random.default_rng(0)
X, X_public = rng.uniform(size=(2, 60, 2))
y, y_public = X[:, 0] + 0.1, X_public[:, 0] + 0.1
NAMES = ["a", "b"]
CATEGORIES = pd.CategoricalDtype(["high", "low"])


def mean(X):
    return np.mean(np.asarray(X), axis=0)


mean.__skdp_key__ = "mean-v1"


def sampler(oracle, **options):
    return SensitivitySampler(oracle, **{"gamma": 0.25, "n_pairs": 3, "random_state": 0} | options)


def model(estimator, oracle, **options):
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sampler(oracle)} | options
    return PrivateEstimator(estimator, **options)


def released(target, data, oracle, **options):
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sampler(oracle)} | options
    return release(target, data, **options)


def frame(dtypes, values=X):
    return pd.DataFrame(values, columns=NAMES).astype(dict(zip(NAMES, dtypes, strict=True)))


CONVERTED = {  # the form of the data, and records that can be brought into it
    "double to single": (np.float32([0]), np.array([0.1])),
    "integer to double": (np.array([0.5]), np.array([1, 2])),
    "number to bool": (np.array([True]), np.array([0, 1])),
    "whole double to integer": (np.array([1]), np.array([2.0])),
    "missing number": (np.float32([0]), np.array([np.nan])),
    "longer strings": (np.array(["a"]), np.array(["longer"])),
    "strings to objects": (np.array(["a"], dtype=object), np.array(["longer"])),
    "names that are no part of an array": (X, frame(["float64", "float64"])),
    "array of a list": (np.array([0.5]), [1.0, 2.0]),
    "series of a column": (pd.Series([0.5]), np.array([[1.0], [2.0]])),
    "series of another library": (pl.Series([0.5]), pd.Series([1.0, 2.0])),
    "sparse of dense": (sparse.csc_array(X), X_public),
    "sparse single": (sparse.csr_matrix(X.astype(np.float32)), sparse.coo_array(X_public)),
    "frame of an array": (frame(["float32", "float64"]), X_public),
    "frame of another library": (
        frame(["float32", "float64"]),
        pl.DataFrame(X_public, schema=NAMES),
    ),
    "nullable": (frame(["Float64", "Float64"]), X_public),
    "strings": (pd.DataFrame({"a": ["x"]}), pd.DataFrame({"a": ["long"]}, dtype=object)),
    "names that are numbers": (pd.DataFrame(X), X_public),
    "rows with labels": (frame(["float64", "float64"]), pd.DataFrame(X, NAMES * 30, NAMES)),
}


@pytest.mark.loop("name", CONVERTED)
def test_records_are_brought_into_the_form_of_others(name):
    private, drawn = CONVERTED[name]
    form = Form.of(declared(Dataset(private)).X)
    converted = form.convert(drawn)
    assert Form.of(converted) == form
    assert Form.of(form.convert(converted)) == form
    if isinstance(converted, pd.DataFrame):
        assert list(converted.index) == list(range(len(converted)))
    values, expected = (
        np.asarray(part.toarray() if sparse.issparse(part) else part) for part in (converted, drawn)
    )
    if values.dtype.kind in "fiub":
        values, expected = values.astype(float), expected.astype(float)
        np.testing.assert_allclose(values, expected.reshape(values.shape), rtol=1e-6)
    else:
        assert values.tolist() == expected.tolist()


REFUSED = {
    "wraps around": (np.uint8([0]), np.array([256]), "int64, and that of the data uint8, which"),
    "negative": (np.uint8([0]), np.array([-1]), "which cannot hold its values"),
    "a fraction": (np.array([1]), np.array([0.5]), "float64, and that of the data int64, which"),
    "no bool": (np.array([True]), np.array([2]), "bool, which cannot hold"),
    "overflow": (np.float32([0]), np.array([1e300]), "float32, which cannot hold its values"),
    "digits": (np.array([0.5]), np.array(["1"]), "<U1, and that of the data float64"),
    "numbers for strings": (np.array(["a"]), np.array([1.0]), "and that of the data string"),
    "a gap": (np.array([1]), np.array([np.nan]), "which cannot hold"),
    "columns": (X, X[:, :1], "its X has 1 column, and that of the data has 2 columns"),
    "sparse columns": (sparse.csr_array(X), sparse.csr_array(X[:, :1]), "has 1 column, and"),
    "order of columns": (frame(["f8", "f8"]), frame(["f8", "f8"])[["b", "a"]], "another order"),
    "column": (
        frame(["uint8", "f8"]),
        frame(["f8", "f8"]) + 300,
        "column 'a', holds float64, and that of the data uint8, which cannot hold its values",
    ),
    "polars column": (
        pl.DataFrame({"a": [1]}, schema={"a": pl.UInt8}),
        pl.DataFrame({"a": [300]}),
        "column 'a', holds Int64, and that of the data UInt8, which cannot hold its values",
    ),
    "polars strings": (pl.DataFrame({"a": ["1"]}), pl.DataFrame({"a": [1]}), "column 'a', holds"),
}


@pytest.mark.loop("name", REFUSED)
def test_what_would_change_the_records_is_refused(name):
    private, drawn, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        DatasetForm.of(Dataset(private)).convert(Dataset(drawn), "The oracle f")


class Own(np.ndarray):
    """Such as a matrix, which multiplies in its own way."""


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda X: X.view(Own), r"plain array. Got \w+. Pass"),
        (np.ma.masked_array, r"plain array. Got \w+. Pass"),
        (
            lambda X: pd.DataFrame(X).astype(pd.SparseDtype(float)),
            r"X holds .*sparse columns by sparse\.to_dense",
        ),
    ],
)
def test_arrays_that_compute_in_their_own_way_are_refused(make, word):
    with pytest.raises((TypeError, ValueError), match=word):
        released(mean, make(X), UniformOracle([(0, 1)] * 2))


def test_arrays_on_disk_are_plain(tmp_path):
    np.save(tmp_path / "X.npy", X)
    on_disk = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert released(mean, on_disk, UniformOracle([(0, 1)] * 2)).value.shape == (2,)


@pytest.mark.parametrize("make", [np.asarray, frame, pl.from_numpy], ids=["numpy", "pd", "pl"])
def test_integers_become_doubles_where_the_oracle_yields_floats(make):
    seen = set()

    def target(X):
        columns = [X[name] for name in X.columns] if hasattr(X, "columns") else [X]
        seen.update(str(column.dtype).lower() for column in columns)
        return np.asarray(X, dtype=float).mean(axis=0)

    integers = (100 * X).astype(np.int64)
    data = frame(["int64", "int64"], integers) if make is frame else make(integers)
    first = released(target, data, UniformOracle([(0, 100)] * 2))
    assert seen == {"float64"}
    assert first.value.shape == (2,)
    drawn = sampler(UniformOracle([(0, 100)] * 2))
    estimate = released(mean, data, None, sensitivity=drawn).sensitivity.with_prior(drawn)
    again = released(mean, data, None, sensitivity=estimate)  # the same form again
    assert again.sensitivity == estimate
    seen.clear()
    whole = [rng.integers(100, size=(60, 2)) for _ in range(3)]
    released(target, data, lambda n, rng: whole[0][rng.integers(60, size=n)])
    assert seen == {"int64"}


def test_row_labels_reach_neither_pairs_nor_the_release():
    """They could tell of a person, and the oracle's rows have none."""
    labels = []

    def target(X):
        labels.append(list(X.index))
        return X["a"].mean()

    dated = pd.DataFrame(X, columns=NAMES, index=pd.date_range("2020", periods=60))
    released(target, dated, PublicDataOracle(pd.DataFrame(X_public, columns=NAMES)))
    assert all(each == list(range(60)) for each in labels)


def test_a_column_of_categories_has_those_of_the_oracle():
    """A category that only the private dtype lists reaches no released estimator."""
    secret = pd.CategoricalDtype(["high", "low", "person 31337"])
    towns = np.array(["high", "low"])[(X[:, 1] > 0.5).astype(int)]
    data = pd.DataFrame({"a": X[:, 0], "b": pd.Series(towns).astype(secret)})
    public = data.assign(a=X_public[:, 0], b=data["b"].astype(CATEGORIES))
    encode = make_column_transformer((OrdinalEncoder(), ["b"]), remainder="passthrough")
    fitted = model(make_pipeline(encode, Ridge()), PublicDataOracle(public, y_public)).fit(data, y)
    assert b"31337" not in pickle.dumps(fitted.estimator_)
    assert "X pandas.DataFrame of ['category', 'float64']" in str(fitted.plan_.schema)
    data.loc[0, "b"] = "person 31337"
    for told in (data, data.astype({"b": str})):  # declared or not
        with pytest.raises(
            ValueError, match=r"The private dataset .* 'b', holds .* the public ones, \['.*oracle"
        ) as caught:
            model(make_pipeline(encode, Ridge()), PublicDataOracle(public, y_public)).fit(told, y)
        assert "person" not in str(caught.value)


def test_no_message_tells_categories_by_a_digest():
    """Whoever guesses who is in the data could make the digest of the guess."""
    data = pd.DataFrame({"b": pd.Series(["low", "person 31337"] * 30, dtype="category")})
    (*_, (name,)), *_ = DatasetForm.of(Dataset(data)).key
    digest = name.removeprefix("category ")
    numbers = SensitivitySampler(lambda n, rng: pd.DataFrame({"b": rng.normal(size=n)}))
    labels = pd.CategoricalDtype(["high", "low"])
    towns = SensitivitySampler(
        lambda n, rng: pd.DataFrame({"b": rng.choice(labels.categories, n)}).astype(labels),
        random_state=0,
    )

    def share(records):
        return np.mean(records["b"] == "low")

    for sensitivity in (numbers, towns.sample(share, 60, "l1")):
        with pytest.raises(ValueError, match="category") as caught:
            release(share, data, mechanism=LaplaceMechanism(1.0), sensitivity=sensitivity)
        assert digest
        assert digest not in str(caught.value)


FORMS = {
    "dense": X,
    "single": X.astype(np.float32),
    "sparse": sparse.csr_matrix(X),
    "pandas": frame(["f8", "f8"]),
    "mixed": frame(["f4", "f8"]),
    "polars": pl.DataFrame(X, schema=NAMES),
}


@pytest.mark.parametrize("made", FORMS)
def test_an_estimate_serves_records_of_its_own_form_only(made):
    """An estimate of sparse records, used for dense ones, was 57 times too small."""
    oracle = UniformOracle([(0, 1)] * 2, y_bounds=(0, 1))
    estimator = SGDRegressor(random_state=0, tol=None, max_iter=3)
    estimate = model(estimator, oracle).fit(FORMS[made], y).sensitivity_
    again = SensitivityEstimate.from_dict(json.loads(json.dumps(estimate.to_dict())))
    assert again == estimate
    for used in FORMS:
        reused = model(estimator, oracle, sensitivity=again, prior=oracle)
        if made == used:
            assert reused.fit(FORMS[used], y).sensitivity_ == estimate
            continue
        with pytest.raises(ValueError, match=r"another form of records|another target"):
            reused.fit(FORMS[used], y)
        assert not hasattr(reused, "estimator_")


def test_an_estimate_without_a_form_serves_nothing():
    estimate = sampler(UniformOracle([(0, 1)] * 2)).sample(mean, 60, LaplaceMechanism(1.0).geometry)
    values = estimate.to_dict()
    del values["form"]
    with pytest.raises(ValueError, match=r"form of records: unknown. This release has X numpy"):
        released(mean, X, None, sensitivity=SensitivityEstimate.from_dict(values))


def test_an_estimate_made_without_data_has_the_form_of_the_oracle():
    estimate = sampler(UniformOracle([(0, 1)] * 2)).sample(mean, 60, LaplaceMechanism(1.0).geometry)
    options = {"mechanism": LaplaceMechanism(1.0, code=None), "sensitivity": estimate}
    assert released(mean, X, None, **options).value.shape == (2,)
    with pytest.raises(ValueError, match="another form of records"):
        released(mean, X.astype(np.float32), None, **options)


def test_private_records_are_recognized_before_they_are_converted():
    """An estimator gets an array of a frame whose columns have numbers for names."""
    mixed = pd.DataFrame({0: X[:, 0], 1: np.arange(60)})
    with pytest.raises(ValueError, match="holds the private records"):
        model(StandardScaler(), PublicDataOracle(mixed)).fit(mixed)


@pytest.mark.parametrize(
    "data",
    [frame(["f8", "f8"]), pl.DataFrame(X, schema=NAMES), sparse.csr_matrix(X), pd.Series(X[:, 0])],
    ids=["pandas", "polars", "sparse", "series"],
)
def test_other_containers_of_private_records_are_refused_too(data):
    with pytest.raises(ValueError, match="holds the private records"):
        check_is_public(PublicDataOracle(data), Dataset(data))
    check_is_public(PublicDataOracle(data[:30]), Dataset(data[30:]))


@pytest.mark.parametrize(
    ("oracle", "message"),
    [
        (lambda n, rng: np.arange(2.0 * n).reshape(n, 2), "returned the same records for 30"),
        (lambda n, rng: X_public[np.arange(n) % 60], "returned the same records for 30"),
        (
            lambda n, rng: np.random.default_rng(3).normal(size=(n, 2)),
            "returned the same records for 30",
        ),
        (
            lambda n, rng: np.random.default_rng().normal(size=(n, 2)),
            "returned other records for the same rng",
        ),
        (
            lambda n, rng: pd.DataFrame(np.random.default_rng().normal(size=(n, 2)), columns=NAMES),
            "returned other records for the same rng",
        ),
        (lambda n, rng: sparse.csr_array(np.eye(n, 2)), "returned the same records"),
    ],
    ids=["constant", "table", "own seed", "own generator", "frame", "sparse"],
)
def test_an_oracle_that_does_not_draw_from_its_generator_is_refused(oracle, message):
    data = frame(["f8", "f8"]) if "DataFrame" in str(oracle(3, rng).__class__) else X
    with pytest.raises(ValueError, match=message):
        released(mean, data, oracle)
    with pytest.raises(ValueError, match=message):
        sampler(oracle).sample(mean, 60, LaplaceMechanism(1.0).geometry)


def test_a_small_domain_is_no_constant():
    """Three records of one bit are the same in one draw out of eight."""
    bits = UniformOracle([(0, 1)])
    for seed in range(20):
        estimate = sampler(lambda n, rng: np.rint(bits(n, rng)), random_state=seed)
        assert estimate.sample(mean, 2, LaplaceMechanism(1.0).geometry).value >= 0


SPARSE = [
    sparse.csr_matrix,
    sparse.csc_array,
    sparse.coo_matrix,
    sparse.lil_matrix,
    sparse.dok_array,
    sparse.bsr_array,
    sparse.dia_array,
]


@pytest.mark.parametrize("kind", SPARSE)
def test_pairs_have_the_sparse_format_of_the_private_records(kind):
    """A function may read rows or entries of a format: all are brought to rows."""
    seen = set()

    def target(X):
        indices = getattr(X, "indices", getattr(X, "row", X))
        seen.add((type(X), getattr(indices, "dtype", None)))
        return X.sum()

    private = kind(X)
    if private.format in ("csr", "csc"):
        private.indices, private.indptr = map(np.int64, (private.indices, private.indptr))
    released(target, private, PublicDataOracle(kind(X_public)))
    assert len(seen) == 1
    assert seen.pop()[0] is type(private.tocsr())


def test_sparse_records_are_stored_in_one_way_only():
    """A sum of squares of the entries would be that of 1000, not of the numbers they make."""
    numbers = np.array([0.5, 0.0, 0.25])
    entries = np.column_stack([numbers - 1000, np.full(3, 1000.0)]).ravel()
    stored = sparse.csr_matrix((entries, [1, 1, 0, 0, 1, 1], [0, 2, 4, 6]), shape=(3, 2))
    dataset = Dataset(stored)
    converted = DatasetForm.of(dataset).convert(dataset, "The private dataset").X
    assert converted.data.tolist() == [0.5, 0.25]
    assert stored.nnz == 6
    assert stored.data.tolist() == entries.tolist()


def test_a_list_declares_no_type():
    """Which one numpy reads off it would depend on a single record."""
    with pytest.raises(TypeError, match=r"must be an array.*numpy.asarray\(X, dtype=float\)"):
        released(mean, X.tolist(), UniformOracle([(0, 1)] * 2))


def test_a_complex_number_is_not_made_real():
    for data in (X, frame(["f8", "f8"])):
        with pytest.raises(ValueError, match="holds complex128"):
            DatasetForm.of(Dataset(data)).convert(Dataset(1j * X_public), "The oracle f")


def halve(X):
    """Write into the records."""
    if isinstance(X, pl.DataFrame):
        X.replace_column(0, X["a"] / 2)
        return X["a"].mean()
    values = X.data if sparse.issparse(X) else X
    values /= 2
    return X.mean()


@pytest.mark.parametrize(
    "kind",
    [np.array, sparse.csr_matrix, lambda X: pl.DataFrame(X, schema=NAMES)],
    ids=["array", "sparse", "polars"],
)
def test_what_a_target_writes_reaches_neither_the_private_records_nor_the_other_of_a_pair(kind):
    """A second release of the private records would else be one of what the first made of them."""
    private, untouched = kind(X), kind(X)
    value = released(halve, private, lambda n, rng: kind(rng.uniform(size=(n, 2)))).sensitivity
    assert str(private) == str(untouched)
    assert value.value < 1 / 60
