"""Kinds of records and responses: frames, sparse, missing, single precision, several outputs."""

import inspect
import re
import warnings
from datetime import datetime
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingRegressor,
    RandomForestClassifier,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import VarianceThreshold
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import all_estimators, get_tags

from skdp import (
    LaplaceMechanism,
    PrivacyUtilityDisplay,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    UniformOracle,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import mean_bound
from skdp.core.dataset import Dataset
from skdp.core.schema import Schema
from skdp.estimators.inputs import takes, takes_weights
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.drawing import draw

pytestmark = pytest.mark.usefixtures("one_thread")

rng = np.random.default_rng(0)
N = 60
X, X_public = rng.uniform(size=(2, N, 3))
y, y_public = X[:, 0] + X[:, 1], X_public[:, 0] + X_public[:, 1]
labels, public_labels = (y > 1).astype(int), (y_public > 1).astype(int)
three, public_three = np.digitize(y, [0.8, 1.2]), np.digitize(y_public, [0.8, 1.2])


def private(estimator, *public, **options):
    oracle = public[0] if callable(public[0]) else PublicDataOracle(*public)
    sampler = SensitivitySampler(oracle, gamma=0.25, n_pairs=3, random_state=0)
    options = {
        "mechanism": LaplaceMechanism(1.0, code=None),
        "sensitivity": sampler,
        "random_state": 0,
    } | options
    return PrivateEstimator(estimator, **options)


def mixed(values, library=pd):
    """Turn columns into one of numbers, one of strings and one of integers."""
    towns = np.array(["Bern", "Rome", "Oslo"])[(values[:, 1] * 3).astype(int)]
    ages = (values[:, 2] * 80).astype(int)
    return library.DataFrame({"height": values[:, 0], "town": towns, "age": ages})


def table_model(last):
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encode, ["town"]), (StandardScaler(), ["height", "age"]))
    return make_pipeline(columns, last)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.parametrize(
    "estimator", [LinearSVC(), Ridge(), StandardScaler(), KMeans(2, n_init=1), PCA(2)], ids=repr
)
def test_number_types(estimator, dtype):
    records, public = ((10 * values).astype(dtype) for values in (X, X_public))
    model = private(estimator, 10 * X_public, public_labels).fit(records, labels)
    method = "predict" if hasattr(estimator, "predict") else "transform"
    assert np.isfinite(getattr(model, method)(records)).all()
    assert np.isfinite(getattr(model, method)(public)).all()


def test_single_precision_is_kept():
    single = X.astype(np.float32)
    model = private(KMeans(2, n_init=1), X_public, mechanism=LaplaceMechanism(1e-6))
    model = model.set_params(sensitivity__oracle=lambda n, rng: rng.uniform(size=(n, 3)))
    centers = model.fit(single).estimator_.cluster_centers_
    assert centers.dtype == np.float32
    assert np.isfinite(centers).all()
    model = private(LinearRegression(), X_public, y_public)
    assert model.fit(single, y).estimator_.coef_.dtype == np.float32
    oracle = as_oracle(lambda n, r: r.integers(5, size=(n, 3)))
    drawn = draw(oracle, 4, rng, schema=Schema.of(Dataset(single)))
    assert drawn[0].dtype == np.float32


@pytest.mark.parametrize("library", [pd, pl])
def test_mixed_frames(library):
    records, public = mixed(X, library), mixed(X_public, library)
    if not hasattr(Ridge().fit(records[["height", "age"]], y), "feature_names_in_"):
        pytest.skip("scikit-learn before 1.9 finds no columns by name in polars 2")
    model = private(table_model(Ridge()), public, y_public, mechanism=LaplaceMechanism(np.inf))
    model.fit(records, y)
    exact = table_model(Ridge()).fit(records, y)
    np.testing.assert_allclose(model.predict(records), exact.predict(records))
    noisy = private(table_model(Ridge()), public, y_public).fit(records, y)
    assert not np.allclose(noisy.predict(records), exact.predict(records))


def test_categorical_columns_and_trees():
    records, public = mixed(X), mixed(X_public)
    for frame in (records, public):
        frame["town"] = frame["town"].astype("category")
    forest = RandomForestClassifier(5, max_depth=4, random_state=0)
    mechanism = LaplaceMechanism(epsilon=20.0)  # at 1, noise alone could make it guess
    model = private(table_model(forest), public, public_labels, mechanism=mechanism, random_state=0)
    assert model.fit(records, labels).score(records, labels) > 0.7
    strings = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    towns, public_towns = records[["town"]].to_numpy(), public[["town"]].to_numpy()
    assert private(strings, public_towns, public_labels).fit(towns, labels).predict(towns).size == N


@pytest.mark.slow
def test_a_town_that_only_a_private_record_has():
    """Unknown categories are ignored where the encoder says so, and give no value where not."""
    records, public = mixed(X), mixed(X_public)
    records.loc[3, "town"] = "Atlantis"
    model = private(table_model(Ridge()), public, y_public).fit(records, y)
    encoder = model.estimator_[0].named_transformers_["onehotencoder"]
    assert encoder.categories_[0].tolist() == ["Bern", "Oslo", "Rome"]
    strict = table_model(Ridge()).set_params(
        columntransformer__onehotencoder__handle_unknown="error"
    )
    with (
        pytest.warns(UserWarning, match="after the budget has paid"),
        pytest.raises(ValueError, match="failed on the private data") as caught,
    ):
        private(strict, public, y_public).fit(records, y)
    assert "Atlantis" not in str(caught.value)


def test_an_encoder_that_may_fail_after_the_budget_has_paid_is_pointed_out():
    public, towns = mixed(X_public), ["Bern", "Oslo", "Rome"]
    declared = public.assign(town=pd.Categorical(public["town"], towns))
    ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    for encoder, frame, remedy in (
        (
            OneHotEncoder(),
            public,
            "that the public records lack.* handle_unknown='ignore', or give",
        ),
        (OrdinalEncoder(), public, "handle_unknown='use_encoded_value', unknown_value=-1, or"),
        (OrdinalEncoder(categories=[towns]), public, "that is not listed, .* unknown_value=-1"),
        (ordinal, public, None),
        (OneHotEncoder(categories=[towns]), public, "that is not listed, .* 'category': then"),
        (OneHotEncoder(categories=[towns]), declared, None),
        (OneHotEncoder(), declared, None),
    ):
        columns = make_column_transformer((encoder, ["town"]), remainder="drop")
        model = private(make_pipeline(columns, Ridge()), frame, y_public)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.plan(N)
        said = [str(warning.message) for warning in caught]
        assert len(said) == (remedy is not None)
        assert not said or re.search(remedy, said[0])


def test_columns_of_polars_that_take_any_category():
    records, public = (
        frame.cast({"town": pl.Categorical}) for frame in (mixed(X, pl), mixed(X_public, pl))
    )
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), [1]))
    model = private(make_pipeline(encode, Ridge()), public, y_public).fit(records, y)
    assert model.predict(records).shape == (N,)
    encode = make_column_transformer((OneHotEncoder(), [1]))
    with pytest.warns(UserWarning, match="a category that the public records lack"):
        private(make_pipeline(encode, Ridge()), public, y_public).plan(N)


def test_an_oracle_may_have_gaps_that_equal_nothing():
    texts = pd.DataFrame({"a": pd.array(["x", pd.NA, "y"] * 20, dtype="string")})
    sampler = SensitivitySampler(PublicDataOracle(texts), gamma=0.4, random_state=0)
    share = sampler.sample(lambda X: float(X["a"].isna().mean()), n_samples=9, geometry="l1")
    assert 0 <= share.value <= 1 / 8


def test_what_no_noise_can_be_added_to_is_named_with_what_to_write():
    days = pd.to_datetime(["2020-01-01", "2020-01-02"] * 20)
    frame = pd.DataFrame({"age": np.arange(40.0), "town": ["a", "b"] * 20, "day": days})
    encoder = OneHotEncoder(categories=[["a", "b"]])
    filled = make_pipeline(SimpleImputer(strategy="most_frequent"), encoder)
    for towns, columns, words in (
        (encoder, ["age", "town", "day"], r"the columns \['day'\], .* Make numbers"),
        (filled, ["age", "town"], r"here \['town'\].*fill_value='missing'"),
    ):
        steps = make_column_transformer((towns, ["town"]), remainder="passthrough")
        sampler = SensitivitySampler(PublicDataOracle(frame[columns], np.arange(40) % 2))
        model = PrivateEstimator(
            make_pipeline(steps, LogisticRegression()),
            mechanism=LaplaceMechanism(1.0),
            sensitivity=sampler,
        )
        with pytest.raises((TypeError, ValueError), match=words):
            model.plan(40, like=(frame[columns], np.arange(40) % 2))


DAYS = [datetime(2020, 1, 1), datetime(2020, 1, 2)] * 20
DATES = {
    "pandas": pd.DataFrame({"age": np.arange(40.0), "day": DAYS}),
    "polars": pl.DataFrame({"age": np.arange(40.0), "day": DAYS}),
    "categories": pd.DataFrame({"day": pd.Series(DAYS).astype("category")}),
    "array": np.array(DAYS, dtype="datetime64[s]")[:, None],
    "durations": pd.DataFrame({"day": pd.Series(DAYS) - DAYS[0]}),
}


@pytest.mark.parametrize("name", DATES)
def test_dates_are_no_numbers(name):
    """Even where a step drops or encodes them: a missing one is read as the least of all."""
    columns = make_column_transformer(("drop", [-1]), remainder="passthrough")
    model = private(make_pipeline(columns, Ridge()), np.ones((40, 1)), np.arange(40.0))
    with pytest.raises(ValueError, match=r"X holds dates or durations.*such as days since"):
        model.fit(DATES[name], np.arange(40.0))


def test_dates_are_no_responses():
    with pytest.raises(ValueError, match="y holds dates"):
        private(Ridge(), np.ones((40, 1)), np.arange(40.0)).fit(np.ones((40, 1)), DATES["array"])


@pytest.mark.parametrize("library", [pd, pl])
def test_categories_beside_an_oracle_of_strings_are_said_to_be_strings(library):
    """Who declares them expects that one which is not public is refused, as where both do."""
    towns = ["Bern", "Rome"] * 20
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]))
    data = library.DataFrame({"town": [*towns[:-1], "Oslo"]})
    if library is pd:
        declared, public = (f.astype("category") for f in (data, pd.DataFrame({"town": towns})))
    else:
        declared, public = (
            f.with_columns(pl.col("town").cast(pl.Enum(sorted(set(f["town"])))))
            for f in (data, pl.DataFrame({"town": towns}))
        )
    model = private(
        make_pipeline(encode, Ridge()), library.DataFrame({"town": towns}), np.arange(40.0)
    )
    with pytest.warns(UserWarning, match=r"declare categories in \['town'\].* taken as any text"):
        model.fit(declared, np.arange(40.0))
    model.fit(data, np.arange(40.0))
    both = private(make_pipeline(encode, Ridge()), public, np.arange(40.0))
    for frame in (declared, data):  # also where the oracle alone declares them
        with pytest.raises(ValueError, match="another form"):
            both.fit(frame, np.arange(40.0))
    both.fit(library.DataFrame({"town": towns}), np.arange(40.0))


def days_since_2020(X):
    return (X - pd.Timestamp("2020-01-01")) / pd.Timedelta(days=1)


@pytest.mark.parametrize("library", [pd, pl])
def test_a_known_sensitivity_cannot_invent_categories(library):
    model = private(table_model(Ridge()), X_public, sensitivity=1.0)
    with pytest.raises(ValueError, match=r"must be a SensitivitySampler.*'town' does"):
        model.fit(mixed(X, library), y)
    days = library.DataFrame({"day": library.Series([datetime(2020, 1, 1)] * N)})
    with pytest.raises(
        ValueError, match=r"dates or durations in the columns \['day'\].*Make numbers"
    ):
        model.fit(days, y)
    numbers = mixed(X, library)[["height", "age"]]
    scaled = make_pipeline(StandardScaler(), Ridge())
    assert private(scaled, X_public, sensitivity=1.0).fit(numbers, y).predict(numbers).size == N


@pytest.mark.parametrize(
    ("container", "learned"), [(list, False), (np.array, True), (pd.Series, False)]
)
def test_texts(container, learned):
    """One text a record, for vectorizers that learn nothing or have learned from public text."""
    texts, public = (["good day" if label else "bad day" for label in y] for y in (labels, three))
    vectorizer = HashingVectorizer(n_features=16)
    if learned:
        vectorizer = FrozenEstimator(TfidfVectorizer().fit(public))
    model = private(
        make_pipeline(vectorizer, LogisticRegression(C=100.0)),
        PublicDataOracle(public, three > 0),
        mechanism=LaplaceMechanism(1000.0),
        random_state=0,
    ).fit(container(texts), labels.astype(bool))
    assert model.score(texts, labels) == 1


def test_numbers_are_no_texts():
    vectorizer = make_pipeline(HashingVectorizer(n_features=16), LogisticRegression())
    with pytest.raises(ValueError, match="must be two-dimensional"):
        private(vectorizer, PublicDataOracle(X_public, public_labels)).fit(X[:, 0], labels)


def test_a_known_sensitivity_cannot_invent_strings():
    model = private(make_pipeline(OneHotEncoder(), Ridge()), X_public, sensitivity=1.0)
    with pytest.raises(ValueError, match="as X does"):
        model.fit(np.array([["a"], ["b"]] * 30), y)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
def test_sparse(kind):
    scaler = make_pipeline(MaxAbsScaler(), LogisticRegression())
    many = make_pipeline(OneVsRestClassifier(RidgeClassifier()))
    for estimator in (scaler, many, DecisionTreeClassifier(max_depth=2)):
        model = private(estimator, kind(X_public), public_three).fit(kind(X), three)
        assert model.predict(kind(X)).shape == (N,)
        known = private(estimator, X_public, sensitivity=1.0, classes=[0, 1, 2])
        assert known.fit(kind(X), three).predict(kind(X)).shape == (N,)


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csc_array])
def test_dense_oracle_of_sparse_records(kind):
    """Else the pairs would be fitted in another way than the private records, or not at all."""
    model = private(Ridge(), X_public, y_public, mechanism=LaplaceMechanism(np.inf))
    exact = Ridge().fit(kind(X), y)
    np.testing.assert_allclose(model.fit(kind(X), y).predict(X), exact.predict(X))
    drawn = draw(PublicDataOracle(X_public), 4, rng, schema=Schema.of(Dataset(kind(X))))
    assert type(drawn[0]) is kind
    with pytest.raises(TypeError, match="dense data is required"):
        private(GaussianNB(), X_public, public_labels).fit(kind(X), labels)


@pytest.mark.parametrize("container", [np.array, pd.Series, pl.Series])
def test_one_column_stands_in_for_single_values(container):
    ages = container(100 * X[:, 0])
    sampler = SensitivitySampler(UniformOracle([(0, 100)]), random_state=0)
    mechanism = LaplaceMechanism(100.0)
    released = release(np.median, ages, mechanism=mechanism, sensitivity=sampler, random_state=0)
    assert released.value == pytest.approx(100 * np.median(X[:, 0]), abs=2)
    two = SensitivitySampler(UniformOracle([(0, 100), (0, 1)]))
    with pytest.raises(ValueError, match="2 columns, and that of the data has 1 dimension"):
        release(np.median, ages, mechanism=mechanism, sensitivity=two)


@pytest.mark.parametrize("library", [pd, pl])
def test_numbers_do_not_stand_in_for_categories(library):
    """With handle_unknown="ignore" all private categories would be unknown, silently."""
    with pytest.raises(
        ValueError, match=r"column 'town', holds .loat64, and that of the data (.tr|object)"
    ):
        private(table_model(Ridge()), X_public, y_public).fit(mixed(X, library), y)


def test_string_labels():
    names = np.array(["no", "perhaps", "yes"])
    one_rest = OneVsRestClassifier(RidgeClassifier())
    for estimator in (one_rest, RandomForestClassifier(3, max_depth=2)):
        model = private(estimator, X_public, names[public_three]).fit(X, names[three])
        assert set(model.predict(X)) <= set(names)
        assert model.classes_.tolist() == names.tolist()


MULTI_LABEL = np.column_stack([labels, three > 0]).astype(int)
PUBLIC_MULTI_LABEL = np.column_stack([public_labels, public_three > 0]).astype(int)
SEVERAL = np.column_stack([labels, three + 5])
PUBLIC_SEVERAL = np.column_stack([public_labels, public_three + 5])


@pytest.mark.parametrize(
    ("estimator", "Y", "Y_public", "classes"),
    [
        (OneVsRestClassifier(RidgeClassifier()), MULTI_LABEL, PUBLIC_MULTI_LABEL, [0, 1]),
        (MultiOutputClassifier(RidgeClassifier()), MULTI_LABEL, PUBLIC_MULTI_LABEL, [0, 1]),
        (
            MultiOutputClassifier(RidgeClassifier()),
            SEVERAL,
            PUBLIC_SEVERAL,
            [[0, 1], [5, 6, 7]],
        ),
        (RandomForestClassifier(3, max_depth=2), SEVERAL, PUBLIC_SEVERAL, [[0, 1], [5, 6, 7]]),
    ],
)
def test_several_outputs(estimator, Y, Y_public, classes):
    for options in ({}, {"classes": classes}, {"classes": classes, "sensitivity": 1.0}):
        model = private(estimator, X_public, Y_public, **options).fit(X, Y)
        for column, known in zip(model.predict(X).T, Y.T, strict=True):
            assert np.isin(column, known).all()
    with pytest.raises(ValueError, match=r"'classes' .* must declare the labels"):
        private(estimator, X_public, sensitivity=1.0).fit(X, Y)
    other = Y.copy()
    other[0, 1] = 9
    with pytest.raises(ValueError, match="label that is not public"):
        private(estimator, X_public, Y_public).fit(X, other)


def test_classes_of_several_outputs_must_be_as_many():
    model = private(MultiOutputClassifier(RidgeClassifier()), X_public, PUBLIC_SEVERAL)
    with pytest.raises(ValueError, match=r"each of the 2 outputs\. Got 3 lists"):
        model.set_params(classes=[[0, 1], [5, 6], [7, 8]]).fit(X, SEVERAL)
    with pytest.raises(ValueError, match=r"yield every class of \[\[0, 1, 4\], \[5, 6, 7\]\]"):
        model.set_params(classes=[[0, 1, 4], [5, 6, 7]]).fit(X, SEVERAL)


def test_several_real_responses():
    Y, Y_public = np.column_stack([y, -y]), np.column_stack([y_public, -y_public])
    assert private(Ridge(), X_public, Y_public).fit(X, Y).predict(X).shape == (N, 2)


def _without_gaps(X):
    return np.nan_to_num(np.asarray(X))


GAPS = np.where(X > 0.9, np.nan, X)
PUBLIC_GAPS = np.where(X_public > 0.9, np.nan, X_public)


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (make_pipeline(SimpleImputer(), Ridge()), pd.DataFrame),
        (make_pipeline(SimpleImputer(), Ridge()), pl.DataFrame),
        (make_pipeline(StandardScaler(), SimpleImputer(), Ridge()), np.asarray),
        (make_pipeline(make_column_transformer((SimpleImputer(), [0, 1, 2])), Ridge()), np.asarray),
        (make_pipeline(make_union(SimpleImputer()), Ridge()), np.asarray),
        (BaggingRegressor(make_pipeline(SimpleImputer(), Ridge()), 2), np.asarray),
        (make_pipeline(FunctionTransformer(_without_gaps), Ridge()), pl.DataFrame),
    ],
)
def test_missing_values_where_they_are_taken(estimator, kind):
    records, public = kind(GAPS), kind(PUBLIC_GAPS)
    if kind is pd.DataFrame:
        records.columns = public.columns = ["a", "b", "c"]
    model = private(estimator, public, y_public).fit(records, y)
    assert np.isfinite(model.predict(records)).all()


@pytest.mark.parametrize(
    "estimator",
    [Ridge(), make_pipeline(StandardScaler(), Ridge()), VotingRegressor([("r", Ridge())])],
)
def test_missing_values_where_they_are_not_taken(estimator):
    with pytest.raises(ValueError, match="NaN"):
        private(estimator, X_public, y_public).fit(GAPS, y)
    with pytest.raises(ValueError, match="missing or infinite, in column"):
        private(estimator, PUBLIC_GAPS, y_public).fit(X, y)
    with pytest.raises(ValueError, match=r"if private records have some, .* begins with one"):
        private(estimator, PUBLIC_GAPS, y_public).plan(len(X))


@pytest.mark.loop(
    ("column", "message"),
    [
        (pd.array([True, None] * 30, dtype="boolean"), "NaN"),
        (pd.array([3, None] * 30, dtype="Int8"), "NaN"),
        (np.array([3, None] * 30, dtype=object), "NaN"),
        (np.array([3, pd.NA] * 30, dtype=object), "NaN"),
        (pl.Series([True, None] * 30), "NaN"),
    ],
)
def test_missing_entries_of_every_type_are_refused_before_they_are_paid_for(column, message):
    frame = pl.DataFrame if isinstance(column, pl.Series) else pd.DataFrame
    records, full = frame({"a": X[:, 0], "b": column}), frame({"a": X[:, 1], "b": column})
    full = full.fill_null(True) if frame is pl.DataFrame else full.ffill()
    model = private(make_pipeline(StandardScaler(), Ridge()), full, y_public)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(records, y)
    for response in (np.array([1.0, None] * 30), np.array([1.0, "a"] * 30, dtype=object)):
        with pytest.raises(ValueError, match=r"y contains NaN|does not convert"):
            model.fit(full, response)


def test_missing_texts_are_refused():
    public = np.array(["a b", "c"] * 30, dtype=object)
    model = private(make_pipeline(HashingVectorizer(n_features=8), Ridge()), public, y_public)
    for missing in (None, np.nan, pd.NA, 3):
        with pytest.raises(ValueError, match="X must hold a text for each record"):
            model.fit(np.array(["a", missing] * 30, dtype=object), y)


def test_plans_and_simulations_take_missing_values_where_the_estimator_does():
    model = private(make_pipeline(SimpleImputer(), Ridge()), PUBLIC_GAPS, y_public)
    assert model.plan(len(X)).n_samples == len(X)
    display = PrivacyUtilityDisplay.from_plan(model, len(X), epsilons=[1.0], n_datasets=1)
    assert np.isfinite(display.scores).all()
    model = private(Ridge(), PUBLIC_GAPS, y_public)
    for refused in (model.plan, partial(PrivacyUtilityDisplay.from_plan, model)):
        with pytest.raises(ValueError, match=r"missing or infinite|takes no missing"):
            refused(len(X))


def test_infinite_values_are_never_taken():
    model = private(make_pipeline(SimpleImputer(), Ridge()), PUBLIC_GAPS, y_public)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(np.where(X > 0.9, np.inf, X), y)
    infinite = np.where(X_public > 0.9, np.inf, X_public)
    with pytest.raises(ValueError, match=r"missing or infinite, in column \S+ Leave such records"):
        private(make_pipeline(SimpleImputer(), Ridge()), infinite, y_public).fit(X, y)


class Scaler(StandardScaler):
    pass


def test_what_compositions_take():
    assert takes(OneHotEncoder(), "categorical")
    assert takes(make_pipeline("passthrough", OneHotEncoder(), Ridge()), "categorical")
    assert not takes(make_pipeline(StandardScaler(), OneHotEncoder()), "categorical")
    assert takes(make_pipeline(OrdinalEncoder(), SimpleImputer(), Ridge()), "allow_nan")
    assert not takes(make_pipeline(OrdinalEncoder(), Ridge()), "allow_nan")
    assert not takes(make_pipeline(make_pipeline("passthrough"), Ridge()), "allow_nan")
    assert takes(make_pipeline(make_pipeline("passthrough"), SimpleImputer(), Ridge()), "allow_nan")
    filling = OrdinalEncoder(encoded_missing_value=-1)
    assert takes(make_pipeline(filling, Ridge()), "allow_nan")
    members = [("a", make_pipeline(SimpleImputer(), Ridge()))]
    assert takes(StackingRegressor(members, Ridge()), "allow_nan")
    assert not takes(StackingRegressor(members, Ridge(), passthrough=True), "allow_nan")
    assert not takes(make_union(SimpleImputer(), Normalizer()), "allow_nan")
    assert not takes(VotingRegressor([("a", Ridge())]), "allow_nan")
    assert takes(make_pipeline(FunctionTransformer(np.nan_to_num), Ridge()), "allow_nan")
    assert not takes(make_pipeline(FunctionTransformer(validate=True), Ridge()), "allow_nan")
    assert not takes(make_pipeline(VarianceThreshold(), Ridge()), "allow_nan")
    assert takes(make_pipeline(VarianceThreshold(), SimpleImputer(), Ridge()), "allow_nan")
    assert not takes(make_pipeline(Scaler(), Ridge()), "allow_nan")


@pytest.mark.parametrize("wrap", [make_pipeline, FrozenEstimator, make_union])
def test_gaps_are_followed_through_steps_in_steps(wrap):
    """A frozen pipeline says of itself that it takes none; one of scalers leaves them."""
    fill, scale = wrap(make_pipeline(StandardScaler(), SimpleImputer())), wrap(StandardScaler())
    assert takes(make_pipeline(fill, Ridge()), "allow_nan")
    assert not takes(make_pipeline(scale, Ridge()), "allow_nan")
    assert takes(make_pipeline(scale, SimpleImputer(), Ridge()), "allow_nan")
    assert not takes(make_pipeline(wrap(make_union(fill, scale)), Ridge()), "allow_nan")
    alone = FeatureUnion([("fill", fill), ("none", "drop")])
    assert takes(make_pipeline(wrap(alone), Ridge()), "allow_nan")
    columns = make_column_transformer((fill, ["a"]), (scale, ["b"]))
    assert takes(make_pipeline(wrap(columns), Ridge()), "allow_nan")
    columns = make_column_transformer((scale, ["a"]), ("passthrough", ["b"]))
    assert not takes(make_pipeline(wrap(columns), Ridge()), "allow_nan")


def test_transformers_that_pass_gaps_on_are_known():
    tree = DecisionTreeRegressor(max_depth=2, random_state=0)
    for name, kind in all_estimators("transformer"):
        parameters = inspect.signature(kind).parameters.values()
        required = [each.name for each in parameters if each.default is each.empty]
        if required not in ([], ["estimator"]):  # compositions, and SparseCoder
            continue
        transformer = kind(**dict.fromkeys(required, tree))
        if name == "RandomTreesEmbedding" or not get_tags(transformer).input_tags.allow_nan:
            continue  # indicators of leaves
        passed = _transformed(transformer)
        gaps = np.isnan(passed.toarray() if hasattr(passed, "toarray") else passed).any()
        assert takes(make_pipeline(transformer, Ridge()), "allow_nan") != gaps, name


def _transformed(transformer):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some say that more records or folds would be better
        return transformer.fit(PUBLIC_GAPS, y_public > np.median(y_public)).transform(PUBLIC_GAPS)


def weighted(n_samples, rng):
    X = rng.uniform(size=(n_samples, 3))
    return X, X[:, 0] + X[:, 1], rng.uniform(size=n_samples)


WEIGHTS = rng.uniform(size=N)


@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(),
        make_pipeline(make_pipeline(StandardScaler(), Ridge())),
        # frozen, since folds are cut in an order that nobody knows
        StackingRegressor([("r", FrozenEstimator(Ridge().fit(X, y)))], Ridge(), cv=2),
        VotingRegressor([("r", Ridge()), ("l", LinearRegression())]),
    ],
)
def test_weights(estimator):
    model = private(estimator, weighted, mechanism=LaplaceMechanism(np.inf))
    model.fit(X, y, sample_weight=WEIGHTS)
    passed = {"sample_weight": WEIGHTS}
    if hasattr(estimator, "steps"):
        passed = {"pipeline__ridge__sample_weight": WEIGHTS}
    exact = clone(estimator).fit(X, y, **passed)
    np.testing.assert_allclose(model.predict(X), exact.predict(X))
    unweighted = private(estimator, X_public, y_public, mechanism=LaplaceMechanism(np.inf))
    assert not np.allclose(model.predict(X), unweighted.fit(X, y).predict(X))


def test_weights_of_bagging_follow_the_records():
    bag = BaggingRegressor(Ridge(), 2, random_state=0)
    model = private(bag, weighted).fit(X, y, sample_weight=WEIGHTS)
    assert np.isfinite(model.predict(X)).all()


def test_weights_that_the_oracle_does_not_yield_are_refused():
    with pytest.raises(
        ValueError, match=r"returned X and y\. It must return X, y and sample_weight"
    ):
        private(Ridge(), X_public, y_public).fit(X, y, sample_weight=WEIGHTS)
    with pytest.raises(
        ValueError, match=r"returned X, y and sample_weight\. It must return X and y"
    ):
        private(Ridge(), weighted).fit(X, y)


def test_an_estimate_without_weights_does_not_serve_a_weighted_fit():
    estimate = private(Ridge(), X_public, y_public).fit(X, y).sensitivity_
    with pytest.raises(ValueError, match="made for records of another form"):
        private(Ridge(), X_public, sensitivity=estimate).fit(X, y, sample_weight=WEIGHTS)
    estimate = private(Ridge(), weighted).fit(X, y, sample_weight=WEIGHTS).sensitivity_
    model = private(Ridge(), X_public, sensitivity=estimate)
    assert model.fit(X, y, sample_weight=WEIGHTS).sensitivity_ == estimate


@pytest.mark.parametrize("sensitivity", [1.0, mean_bound(N, ranges=(0, 1))])
def test_weights_need_a_sampled_sensitivity(sensitivity):
    model = private(Ridge(), X_public, sensitivity=sensitivity)
    with pytest.raises(ValueError, match="bounds on paper are for records without weights"):
        model.fit(X, y, sample_weight=WEIGHTS)


@pytest.mark.loop(
    ("weights", "message"),
    [
        (WEIGHTS[:5], r"one number for each of the 60 records of X. Got shape \(5,\)"),
        (WEIGHTS[:, None], "Got shape"),
        (np.full(N, "much"), "contains NaN"),
        (np.where(WEIGHTS > 0.5, np.nan, 1), "NaN"),
        (-WEIGHTS, "must not be negative"),
    ],
)
def test_weights_that_are_none(weights, message):
    with pytest.raises(ValueError, match=message):
        private(Ridge(), weighted).fit(X, y, sample_weight=weights)


def test_who_takes_no_weights():
    with pytest.raises(TypeError, match="no sample_weight with PCA"):
        private(PCA(1), weighted).fit(X, y, sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match=r"sample_weight beside y.*StandardScaler may"):
        private(StandardScaler(), weighted).fit(X, sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match="unexpected keyword argument 'coef_init'"):
        private(Ridge(), weighted).fit(X, y, coef_init=1)
    assert not takes_weights(make_pipeline(Ridge(), "passthrough"))
    assert takes_weights(make_pipeline(PCA(), Ridge()))


def test_frozen_members_keep_their_missing_values():
    imputer = FrozenEstimator(SimpleImputer().fit(PUBLIC_GAPS))
    model = private(make_pipeline(imputer, Ridge()), PUBLIC_GAPS, y_public).fit(GAPS, y)
    assert np.isfinite(model.predict(GAPS)).all()


def test_bounds_by_name_stand_in_for_a_frame():
    oracle = UniformOracle([(0, 1)] * 3, y_bounds=(0, 2))
    frame = pl.DataFrame(dict(zip("abc", X.T, strict=True)))
    expected = getattr(Ridge().fit(frame, y), "feature_names_in_", None)  # of polars 2 from 1.9 on
    found = getattr(private(Ridge(), oracle).fit(frame, y), "feature_names_in_", None)
    np.testing.assert_array_equal(found, expected)


def test_an_estimate_of_texts_serves_again_with_its_oracle():
    rng = np.random.default_rng(0)

    def table(n_samples, texts):
        X = pd.DataFrame({"a": rng.random(n_samples), "b": rng.choice(texts, n_samples)})
        return X, X["a"] + (X["b"] == "y") + rng.normal(scale=0.1, size=n_samples)

    oracle, data = PublicDataOracle(*table(60, ["x", "y"])), table(40, ["x", "y"])
    encoder = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    columns = make_column_transformer((encoder, ["b"]), remainder="passthrough")
    first = PrivateEstimator(
        make_pipeline(columns, Ridge()),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SensitivitySampler(oracle, gamma=0.4, random_state=0),
        accountant=PrivacyAccountant(":memory:", epsilon=3.0, gamma=0.8),
    ).fit(*data)
    again = clone(first).set_params(sensitivity=first.sensitivity_, mechanism__epsilon=2.0)
    with pytest.raises(ValueError, match="estimate together with its oracle"):
        again.fit(*data)
    again.set_params(prior=PublicDataOracle(*table(60, ["x", "z"])))
    with pytest.raises(ValueError, match="made for another target"):
        again.fit(*data)
    again.set_params(prior=oracle).fit(*data)
    assert again.sensitivity_ == first.sensitivity_
    assert (again.budget_.epsilon, again.budget_.gamma) == (3.0, 2 * first.guarantee_.gamma)
    assert again.budget_.n_estimates == 1
    assert again.predict_interval(data[0], 0.5, n_draws=9).shape == (40, 2)


def test_an_estimate_that_serves_again_draws_the_records_of_its_seed():
    """Where the clusters are in the public fit is a part of the target."""
    X = np.random.default_rng(0).random((40, 2))
    oracle, mechanism = UniformOracle([(0, 1)] * 2), LaplaceMechanism(1.0)
    sampler = SensitivitySampler(oracle, gamma=0.4, random_state=5)
    first = PrivateEstimator(KMeans(2, n_init=1), mechanism=mechanism, sensitivity=sampler).fit(X)
    again = clone(first).set_params(sensitivity=first.sensitivity_, prior=oracle).fit(X)
    assert again.sensitivity_ == first.sensitivity_
