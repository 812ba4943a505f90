"""Kinds of records and responses: frames, sparse, missing, single precision, several outputs."""

import inspect
import warnings
from contextlib import nullcontext
from datetime import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingRegressor, StackingRegressor, VotingRegressor
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline, make_union
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
    MomentClassifier,
    PublicDataOracle,
    SensitivitySampler,
    UniformOracle,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import mean_bound
from skdp.estimators.inputs import takes
from tests import helpers

pytestmark = pytest.mark.usefixtures("one_thread")

rng = np.random.default_rng(0)
N = 60
X, X_public = rng.uniform(size=(2, N, 3))
y, y_public = X[:, 0] + X[:, 1], X_public[:, 0] + X_public[:, 1]
labels, public_labels = (y > 1).astype(int), (y_public > 1).astype(int)
three, public_three = np.digitize(y, [0.8, 1.2]), np.digitize(y_public, [0.8, 1.2])


def private(estimator, *public, **options):
    usual = {"mechanism": LaplaceMechanism(1.0, code=None)}
    return helpers.private(estimator, *public, **usual | options)


def mixed(values, library=pd):
    """Turn columns into one of numbers, one of strings and one of integers."""
    towns = np.array(["Bern", "Rome", "Oslo"])[(values[:, 1] * 3).astype(int)]
    ages = (values[:, 2] * 80).astype(int)
    return library.DataFrame({"height": values[:, 0], "town": towns, "age": ages})


def table_model(last):
    encode = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    columns = make_column_transformer((encode, ["town"]), (StandardScaler(), ["height", "age"]))
    return make_pipeline(columns, last)


@pytest.mark.loop("dtype", [np.float32, np.float64, np.int64, np.int32])
@pytest.mark.loop(
    "estimator", [LinearSVC(), Ridge(), StandardScaler(), KMeans(2, n_init=1), PCA(2)]
)
def test_number_types(estimator, dtype):
    records = (10 * X).astype(dtype)
    model = private(estimator, 10 * X_public, public_labels).fit(records, labels)
    method = "predict" if hasattr(estimator, "predict") else "transform"
    assert np.isfinite(getattr(model, method)(records)).all()


@pytest.mark.parametrize("library", [pd, pl])
def test_mixed_frames(library):
    records, public = mixed(X, library), mixed(X_public, library)
    if not hasattr(Ridge().fit(records[["height", "age"]], y), "feature_names_in_"):
        pytest.skip("scikit-learn before 1.9 finds no columns by name in polars 2")
    exact = table_model(Ridge()).fit(records, y).predict(records)
    for epsilon in (1.0, np.inf):
        noise = {"mechanism": LaplaceMechanism(epsilon, code=None)}
        model = private(table_model(Ridge()), public, y_public, **noise)
        model.set_params(sensitivity__clip=None).fit(records, y)
        assert np.allclose(model.predict(records), exact) == (epsilon == np.inf)


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
    any_text = mixed(X_public, pl).cast({"town": pl.Categorical})
    for encoder, frame, word in (
        (OneHotEncoder(), public, "handle_unknown='ignore'"),
        (OneHotEncoder(), any_text, "public records lack"),
        (OrdinalEncoder(), public, "unknown_value=-1"),
        (OrdinalEncoder(categories=[towns]), public, "not listed"),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), public, None),
        (OneHotEncoder(categories=[towns]), public, "'category'"),
        (OneHotEncoder(categories=[towns]), declared, None),
        (OneHotEncoder(), declared, None),
        (OneHotEncoder(handle_unknown="ignore"), any_text, None),
    ):
        columns = make_column_transformer((encoder, [1]), remainder="drop")
        model = private(make_pipeline(columns, Ridge()), frame, y_public)
        with pytest.warns(UserWarning, match=word) if word else nullcontext([]) as caught:
            model.plan(N)
        assert sum("after the budget" in str(each.message) for each in caught) == bool(word)


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
    with pytest.raises(ValueError, match=r"X holds .*dates to days since"):
        model.fit(DATES[name], np.arange(40.0))
    with pytest.raises(ValueError, match=r"y holds .*dates to days since"):
        model.fit(np.ones((40, 1)), DATES["array"])


@pytest.mark.parametrize("library", [pd, pl])
def test_a_category_that_only_the_oracle_lacks_is_refused_where_it_declares_some(library):
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["town"]))
    oracle, data = (
        library.DataFrame({"town": [*["Bern", "Rome"] * 19, "Bern", last]})
        for last in ("Rome", "Oslo")
    )

    def declare(frame):
        if library is pd:
            return frame.astype("category")
        return frame.with_columns(pl.col("town").cast(pl.Enum(sorted(set(frame["town"])))))

    both = private(make_pipeline(encode, Ridge()), declare(oracle), np.arange(40.0))
    for frame in (declare(data), data):  # also where the oracle alone declares them
        with pytest.raises(ValueError, match="another form"):
            both.fit(frame, np.arange(40.0))
    both.fit(oracle, np.arange(40.0))


@pytest.mark.parametrize("library", [pd, pl])
def test_neither_a_known_sensitivity_nor_numbers_stand_for_categories(library):
    """With handle_unknown="ignore" all private categories would be unknown, silently."""
    known = private(table_model(Ridge()), X_public, sensitivity=1.0)
    sampled = private(table_model(Ridge()), X_public, y_public)
    for model, data, word in (
        (known, mixed(X, library), "'town'"),
        (known, np.array([["a"], ["b"]] * 30), r"\['X'\]"),
        (known, library.DataFrame({"day": library.Series([DAYS[0]] * N)}), "dates"),
        (sampled, mixed(X, library), "'town', holds"),
    ):
        with pytest.raises(ValueError, match=word):
            model.fit(data, y)
    numbers = mixed(X, library)[["height", "age"]]
    scaled = private(make_pipeline(StandardScaler(), Ridge()), X_public, sensitivity=1.0)
    assert scaled.fit(numbers, y).predict(numbers).size == N


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
    ).fit(container(texts), labels.astype(bool))
    assert model.score(texts, labels) == 1
    for missing in () if learned else (None, np.nan, pd.NA, 3):
        with pytest.raises(ValueError, match="a text for each record"):
            model.fit(np.array(["a", missing] * 30, dtype=object), labels.astype(bool))
    with pytest.raises(ValueError, match="two-dimensional"):
        private(model.estimator, PublicDataOracle(X_public, public_labels)).fit(X[:, 0], labels)


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
    model.set_params(sensitivity__clip=None)
    exact = Ridge().fit(kind(X), y)
    np.testing.assert_allclose(model.fit(kind(X), y).predict(X), exact.predict(X))
    with pytest.raises(TypeError, match="dense data is required"):
        private(GaussianNB(), X_public, public_labels).fit(kind(X), labels)


@pytest.mark.parametrize("container", [np.array, pd.Series, pl.Series])
def test_one_column_stands_in_for_single_values(container):
    ages = container(100 * X[:, 0])
    one, two = (
        {"mechanism": LaplaceMechanism(100.0), "sensitivity": SensitivitySampler(oracle)}
        for oracle in (UniformOracle([(0, 100)]), UniformOracle([(0, 100), (0, 1)]))
    )
    assert release(np.median, ages, **one).value == pytest.approx(100 * np.median(X[:, 0]), abs=2)
    with pytest.raises(ValueError, match="2 columns, and that of the data has 1 dimension"):
        release(np.median, ages, **two)


MULTI_LABEL, PUBLIC_MULTI_LABEL, SEVERAL, PUBLIC_SEVERAL = (
    np.column_stack(each).astype(int)
    for each in (
        [labels, three > 0],
        [public_labels, public_three > 0],
        [labels, three + 5],
        [public_labels, public_three + 5],
    )
)
RIDGE_OUTPUTS = MultiOutputClassifier(RidgeClassifier())


@pytest.mark.parametrize(
    ("estimator", "Y", "Y_public", "classes"),
    [
        (OneVsRestClassifier(RidgeClassifier()), MULTI_LABEL, PUBLIC_MULTI_LABEL, [0, 1]),
        (RIDGE_OUTPUTS, MULTI_LABEL, PUBLIC_MULTI_LABEL, [0, 1]),
        (RIDGE_OUTPUTS, SEVERAL, PUBLIC_SEVERAL, [[0, 1], [5, 6, 7]]),
    ],
)
def test_several_outputs(estimator, Y, Y_public, classes):
    for options in ({}, {"classes": classes}, {"classes": classes, "sensitivity": 1.0}):
        model = private(estimator, X_public, Y_public, **options).fit(X, Y)
        for column, known in zip(model.predict(X).T, Y.T, strict=True):
            assert np.isin(column, known).all()
    other = Y.copy()
    other[0, 1] = 9
    for options, data, word in (
        ({}, other, "not public"),
        ({"classes": [[0, 1], [5, 6], [7, 8]]}, Y, "3 lists|list the labels"),
        ({"classes": [[0, 1, 4], [5, 6, 7]]}, Y, "every class|label"),
    ):
        with pytest.raises((ValueError, TypeError), match=word):
            private(estimator, X_public, Y_public, **options).fit(X, data)


LACKING = np.column_stack([labels, np.zeros_like(labels)])
LINE = LogisticRegression()


@pytest.mark.parametrize(
    ("estimator", "y", "y_public", "is_served"),
    [
        (LINE, labels, public_three, False),
        (OneVsRestClassifier(LINE), labels, public_three, False),
        (RIDGE_OUTPUTS, LACKING, PUBLIC_MULTI_LABEL, False),
        (RidgeClassifier(), LACKING, PUBLIC_MULTI_LABEL, False),
        (MomentClassifier(), labels, public_three, True),
        (DecisionTreeClassifier(max_depth=2), labels, public_three, True),
    ],
)
def test_a_lack_of_a_public_label_is_refused_unpaid_where_a_fit_needs_it(
    estimator, y, y_public, is_served
):
    budget = PrivacyAccountant(":memory:", epsilon=9)
    model = private(estimator, X_public, y_public, accountant=budget)
    plan = model.plan(N, like=(X[:2], y[:2]))
    known = {"sensitivity": plan.sensitivity, "prior": model.sensitivity.oracle}
    again = clone(model).set_params(**known)
    for fit in (model.fit, plan.execute, again.fit):
        with nullcontext() if is_served else pytest.raises(ValueError, match="each of the public"):
            fit(X, y)
    assert budget.total().epsilon == 3 * is_served


def _without_gaps(X):
    return np.nan_to_num(np.asarray(X))


class Scaler(StandardScaler):
    pass


UNKNOWN = {"handle_unknown": "use_encoded_value", "unknown_value": -1}
RIDGES = [("r", Ridge())]
FILLED = [("a", make_pipeline(SimpleImputer(), Ridge()))]


GAPS = np.where(X > 0.9, np.nan, X)
PUBLIC_GAPS = np.where(X_public > 0.9, np.nan, X_public)


@pytest.mark.parametrize(
    ("estimator", "kind"),
    [
        (make_pipeline(SimpleImputer(), Ridge()), pd.DataFrame),
        (make_pipeline(StandardScaler(), SimpleImputer(), Ridge()), pl.DataFrame),
        (make_pipeline(make_pipeline("passthrough"), SimpleImputer(), Ridge()), np.asarray),
        (make_pipeline(FrozenEstimator(SimpleImputer().fit(PUBLIC_GAPS)), Ridge()), np.asarray),
        (make_pipeline(OrdinalEncoder(**UNKNOWN), SimpleImputer(), Ridge()), np.asarray),
        (make_pipeline(make_column_transformer((SimpleImputer(), [0, 1, 2])), Ridge()), np.asarray),
        (make_pipeline(make_union(SimpleImputer()), Ridge()), np.asarray),
        (BaggingRegressor(make_pipeline(SimpleImputer(), Ridge()), 2), np.asarray),
        (StackingRegressor(FILLED, Ridge(), cv=2), np.asarray),
        (make_pipeline(FunctionTransformer(_without_gaps), Ridge()), pl.DataFrame),
    ],
)
def test_missing_values_where_they_are_taken(estimator, kind):
    records, public = kind(GAPS), kind(PUBLIC_GAPS)
    if kind is pd.DataFrame:
        records.columns = public.columns = ["a", "b", "c"]
    model = private(estimator, public, y_public).fit(records, y)
    assert np.isfinite(model.predict(records)).all()
    with pytest.raises(ValueError, match="infinity"):
        model.fit(kind(np.where(X > 0.9, np.inf, X)), y)


@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(),
        make_pipeline(StandardScaler(), Ridge()),
        make_pipeline(Scaler(), Ridge()),
        make_pipeline(make_pipeline("passthrough"), Ridge()),
        make_pipeline(OrdinalEncoder(**UNKNOWN), Ridge()),
        make_pipeline(FunctionTransformer(validate=True), Ridge()),
        make_pipeline(make_union(SimpleImputer(), Normalizer()), Ridge()),
        VotingRegressor(RIDGES),
        StackingRegressor(FILLED, Ridge(), cv=2, passthrough=True),
    ],
)
def test_missing_values_where_they_are_not_taken(estimator):
    with pytest.raises(ValueError, match="NaN"):
        private(estimator, X_public, y_public).fit(GAPS, y)
    for public in (PUBLIC_GAPS, np.where(X_public > 0.9, np.inf, X_public)):
        with pytest.raises(ValueError, match="missing or infinite"):
            private(estimator, public, y_public).fit(X, y)


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
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some say that more records or folds would be better
            fitted = transformer.fit(PUBLIC_GAPS, y_public > np.median(y_public))
            passed = fitted.transform(PUBLIC_GAPS)
        gaps = np.isnan(passed.toarray() if hasattr(passed, "toarray") else passed).any()
        assert takes(make_pipeline(transformer, Ridge()), "allow_nan") != gaps, name


def weighted(n_samples, rng):
    X = rng.uniform(size=(n_samples, 3))
    return X, X[:, 0] + X[:, 1], rng.uniform(size=n_samples)


WEIGHTS = rng.uniform(size=N)


@pytest.mark.parametrize(
    "estimator",
    [
        Ridge(),
        make_pipeline(make_pipeline(StandardScaler(), Ridge())),
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


PAPER = mean_bound(N, ranges=(0, 1))


@pytest.mark.loop(
    ("estimator", "options", "weights", "word"),
    [
        (Ridge(), {}, WEIGHTS[:5], "60 records"),
        (Ridge(), {}, WEIGHTS[:, None], "shape"),
        (Ridge(), {}, np.full(N, "much"), "does not convert"),
        (Ridge(), {}, np.where(WEIGHTS > 0.5, np.nan, 1), "NaN"),
        (Ridge(), {}, -WEIGHTS, "negative"),
        (Ridge(), {}, None, "returned X, y and sample_weight"),
        (Ridge(), {"public": (X_public, y_public)}, WEIGHTS, "returned X and y"),
        (Ridge(), {"sensitivity": 1.0}, WEIGHTS, "without weights"),
        (Ridge(), {"sensitivity": PAPER}, WEIGHTS, "without weights"),
        (PCA(1), {}, WEIGHTS, "no sample_weight with PCA"),
        (StandardScaler(), {"y": None}, WEIGHTS, "beside y"),
        (make_pipeline(Ridge(), "passthrough"), {}, WEIGHTS, "sample_weight"),
    ],
)
def test_weights_that_cannot_be_used_are_refused(estimator, options, weights, word):
    options = dict(options)
    public, response = options.pop("public", (weighted,)), options.pop("y", y)
    with pytest.raises((ValueError, TypeError), match=word):
        private(estimator, *public, **options).fit(X, response, sample_weight=weights)


def test_an_estimate_without_weights_does_not_serve_a_weighted_fit():
    estimate = private(Ridge(), X_public, y_public).fit(X, y).sensitivity_
    with pytest.raises(ValueError, match=r"another form of records|must return X, y and"):
        private(Ridge(), X_public, sensitivity=estimate).fit(X, y, sample_weight=WEIGHTS)
    estimate = private(Ridge(), weighted).fit(X, y, sample_weight=WEIGHTS).sensitivity_
    model = private(Ridge(), X_public, sensitivity=estimate)
    assert model.fit(X, y, sample_weight=WEIGHTS).sensitivity_ == estimate


@pytest.mark.skipif(not hasattr(pl, "Int128"), reason="an older polars has no such type")
@pytest.mark.parametrize("sensitivity", ["sampled", "known"])
def test_types_that_cannot_be_predicted_on_are_refused_before_payment(sensitivity):
    """By a rehearsal on the declared types."""
    number, frame = pl.Int128, pl.DataFrame(np.rint(9 * X), schema=["a", "b", "c"])
    exact = frame.with_columns(pl.col("a", "b", "c").cast(number), pl.Series("n", np.arange(N)))
    public = pl.DataFrame(X_public, schema=["a", "b", "c"]).with_columns(n=pl.lit(1.5))
    budget = PrivacyAccountant(":memory:", epsilon=9.0)
    options = {"accountant": budget, "classes": [0, 1]}
    oracle = PublicDataOracle(public, public_labels)
    options["sensitivity"] = helpers.sampler(oracle) if sensitivity == "sampled" else 0.1
    model = helpers.private(LogisticRegression(), **options)
    rule = "types on which the estimator can predict. Got .*Int128"
    for run in (lambda: model.plan(N, (exact, labels)), lambda: model.fit(exact, labels)):
        with pytest.raises(TypeError, match=rule):
            run()
    assert budget.total().epsilon == 0
    doubles = exact.cast(pl.Float64)
    assert model.fit(doubles, labels).predict(doubles).shape == (N,)
