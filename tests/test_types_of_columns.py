"""Where numbers are needed a type that may hold words is refused, and no entry decides about it."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skdp import (
    ClipNorm,
    FunctionTarget,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    MomentRegressor,
    PrivateEstimator,
    PublicDataOracle,
    SampleAndAggregate,
    SensitivitySampler,
    plan_release,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import mean_bound
from skdp.exceptions import PrivateEvaluationError

N = 120
rng = np.random.default_rng(0)
NUMBERS, PUBLIC = (
    pd.DataFrame(each, columns=["age", "dose"]) for each in rng.uniform(size=(2, N, 2))
)
y, y_public = ((each["age"] > 0.5).to_numpy().astype(int) for each in (NUMBERS, PUBLIC))
COMMAS = pd.Series([f"{each:.3f}".replace(".", ",") for each in NUMBERS["age"]], dtype=object)
WORDS = NUMBERS.assign(age=COMMAS)
PRIOR = PublicDataOracle(PUBLIC, y_public)
RESPONSES = PublicDataOracle(PUBLIC, PUBLIC["age"].to_numpy())
BLOCKS = SampleAndAggregate(n_blocks=6, random_state=0)


def private(estimator, **options):
    options = {"mechanism": L2LaplaceMechanism(1.0), "random_state": 0} | options
    return PrivateEstimator(estimator, **options)


def sampled(estimator, X, y, mechanism=None):
    sampler = SensitivitySampler(PublicDataOracle(X, y), gamma=0.3, n_pairs=3, random_state=0)
    return private(estimator, mechanism=mechanism or LaplaceMechanism(1.0), sensitivity=sampler)


OF_CLASSES = {
    "known": (make_pipeline(ClipNorm(), MomentClassifier()), {"classes": [0, 1]}),
    "known with a prior": (make_pipeline(ClipNorm(), MomentClassifier()), {"prior": PRIOR}),
    "aggregate": (LogisticRegression(), {"sensitivity": BLOCKS, "prior": PRIOR}),
    "a number": (LogisticRegression(), {"sensitivity": 1.0, "classes": [0, 1]}),
}
OF_NUMBERS = {
    "known": (make_pipeline(ClipNorm(), MomentRegressor(y_range=(0, 1))), {}),
    "aggregate": (Ridge(), {"sensitivity": BLOCKS, "prior": RESPONSES}),
    "a number": (Ridge(), {"sensitivity": 1.0}),
}


@pytest.mark.parametrize("way", OF_CLASSES)
def test_words_for_numbers_are_refused_unpaid_under_a_plain_promise(way):
    budget = PrivacyAccountant(":memory:", epsilon=9)
    estimator, options = OF_CLASSES[way]
    model = private(estimator, **{"sensitivity": "known", "accountant": budget} | options)
    for X in (WORDS, WORDS.to_numpy(), NUMBERS.astype(object), pl.DataFrame(WORDS).to_numpy()):
        for call in (lambda X=X: model.fit(X, y), lambda X=X: model.plan(N, like=(X, y))):
            with pytest.raises(ValueError, match=r"X holds objects or words.*astype\(float\)"):
                call()
    for labels in (y.astype(object), y.astype(str), pd.Series(y).astype(str).astype("category")):
        with pytest.raises(ValueError, match=r"labels of the type of y.*y\.astype\(int\)"):
            model.fit(NUMBERS, labels)
    with pytest.raises(TypeError, match=r"Got a list: write numpy\.asarray\(X, dtype=float\)"):
        model.fit(NUMBERS.to_numpy().tolist(), y)
    assert budget.total().n_releases == 0


@pytest.mark.parametrize("way", OF_NUMBERS)
def test_a_response_of_words_is_refused_under_a_plain_promise(way):
    estimator, options = OF_NUMBERS[way]
    model = private(estimator, **{"sensitivity": "known"} | options)
    for response in (COMMAS, COMMAS.astype(str), NUMBERS["age"].astype(object).to_numpy()):
        with pytest.raises(ValueError, match=r"y holds objects or words.*astype\(float\)"):
            model.fit(NUMBERS, response)


def towns(values):
    return pd.DataFrame({"town": pd.Series(list(values), dtype=object), "age": NUMBERS["age"]})


TOWNS = ["a", "b", "c"] * (N // 3)
ENCODER = OneHotEncoder(handle_unknown="ignore")
COLUMNS = make_column_transformer((ENCODER, ["town"]), remainder="passthrough")
MODEL = make_pipeline(COLUMNS, LogisticRegression())


def test_words_are_taken_where_an_encoder_reads_them():
    """Unless the prior draws numbers in their column."""
    prior = PublicDataOracle(towns(TOWNS[::-1]), y_public)
    noise = LaplaceMechanism(1.0, code=None)
    model = private(MODEL, mechanism=noise, sensitivity=1.0, prior=prior)
    assert model.fit(towns(TOWNS), y).predict(towns(TOWNS)).shape == (N,)
    words = towns(TOWNS).assign(age=COMMAS)
    with pytest.raises(ValueError, match=r"prior draws numbers.*'age' holds object, not float64"):
        model.fit(words, y)


def mean_of(X):
    return float(np.mean(np.asarray(X, dtype=float)))


BOUND = mean_bound(N, ranges=(0, 1))
DECLARED = pd.CategoricalDtype(["a", "b", "c"])
IN_BLOCKS = {"sensitivity": BLOCKS, "ranges": (0, 1)}
PLANS = {
    "categories": (pd.Series(TOWNS, dtype=DECLARED), pd.Series(TOWNS, dtype=object), IN_BLOCKS),
    "doubles": (
        np.zeros((N, 1)),
        y[:, None].astype(object),
        {"sensitivity": mean_bound(N, ranges=(0, 1))},
    ),
    "a series": (pd.Series(np.zeros(N)), pd.Series(y, dtype=object), IN_BLOCKS),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_refuses_a_type_and_no_record_under_a_plain_promise(name):
    like, data, options = PLANS[name]
    target = FunctionTarget(mean_of, key="mean")
    plan = plan_release(target, n_samples=N, like=like, mechanism=LaplaceMechanism(1.0), **options)
    other = data.copy()
    other[3] = "zzz"
    told = []
    for each in (data, other):
        with pytest.raises(ValueError, match="of another form than the plan") as caught:
            plan.execute(each)
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert plan.execute(like)


NUMERALS = {
    "Decimal": lambda each: Decimal(str(each)),
    "Fraction": lambda each: Fraction(str(each)),
    "digits": str,
}


@pytest.mark.parametrize("name", NUMERALS)
def test_objects_that_are_numbers_are_so_on_both_sides_of_a_sampled_promise(name):
    """An oracle of objects, private ones, or both: the fit is that of the numbers."""
    exact = {"mechanism": LaplaceMechanism(np.inf, code=None)}
    X, X_public = NUMBERS.round(3), PUBLIC.round(3)
    expected = Ridge().fit(X, X["age"]).coef_

    def objects(frame):
        return frame.map(NUMERALS[name]).astype(object)

    for make in (pd.DataFrame, pd.DataFrame.to_numpy):
        for ours, theirs in ((True, True), (True, False), (False, True)):
            private = objects(X) if ours else X
            public = objects(X_public) if theirs else X_public
            model = sampled(Ridge(), make(public), public["age"].to_numpy(), **exact)
            model.set_params(sensitivity__clip=None)
            model.fit(make(private), private["age"].to_numpy())
            np.testing.assert_allclose(model.estimator_.coef_, expected)


class Odd:
    def __float__(self):
        raise KeyError("secret")


@pytest.mark.parametrize("entry", [Odd(), "secret"])
def test_an_entry_that_is_no_number_is_refused_without_its_value(entry):
    flawed = NUMBERS.astype(object)
    flawed.loc[3, "age"] = entry
    for X, word in ((flawed, "in its column 'age'"), (flawed.to_numpy(), "X has an entry")):
        public = PUBLIC if isinstance(X, pd.DataFrame) else PUBLIC.to_numpy()
        sampler = sampled(Ridge(), public, y_public).sensitivity
        with pytest.raises(ValueError, match=f"{word}.* does not convert") as caught:
            sampled(Ridge(), public, y_public).fit(X, y)
        with pytest.raises(ValueError, match="objects that are no numbers") as other:
            release(mean_of, X, y, mechanism=LaplaceMechanism(1.0), sensitivity=sampler)
        assert "secret" not in str(caught.value) + str(other.value)


def test_no_label_of_a_list_decides_about_the_type_of_all():
    labels = y.tolist()
    model = sampled(LogisticRegression(), PUBLIC, y_public)
    assert model.fit(NUMBERS, labels).estimator_.classes_.dtype == int
    with pytest.raises(ValueError, match="of several types"):
        model.fit(NUMBERS, [*labels[:-1], float(labels[-1])])


def test_codes_of_polars_are_read_as_words():
    """A code depends on the records before it, and those of other blocks."""
    seen = []

    def target(X):
        seen.append(X.dtype)
        return 0.5

    words = pl.Series("w", TOWNS, dtype=pl.Categorical)
    release(target, words, mechanism=LaplaceMechanism(1.0), **IN_BLOCKS)
    assert set(seen) == {pl.String}


GAPPY = NUMBERS.mask(NUMBERS > 0.9)
FILLED = {"numpy": lambda X: X.to_numpy(), "pandas": lambda X: X, "polars": pl.from_pandas}


@pytest.mark.parametrize("library", FILLED)
def test_the_line_that_fills_gaps_fills_them(library):
    make = FILLED[library]
    X, X_public = make(GAPPY), make(PUBLIC)
    options = {"mechanism": LaplaceMechanism(1.0)}
    options["sensitivity"] = sampled(Ridge(), X_public, y_public).sensitivity
    with pytest.raises(ValueError, match="missing entries") as caught:
        release(lambda X, y: 0.0, X, y, **options)
    names = {"X": X, "X_public": X_public, "numpy": np}
    exec(re.search(r"X = .*(?=\.$)", str(caught.value)).group(), names)
    assert release(lambda X, y: mean_of(X), names["X"], y, **options)


def test_messages_name_what_is_wrong():
    words = PUBLIC.assign(age=COMMAS[::-1].to_list()).astype({"age": "str"})
    with pytest.raises(ValueError, match="not convert") as caught:
        sampled(Ridge(), words, y_public).fit(WORDS.astype({"age": "str"}), y)
    # to an older pandas, these words are objects
    said = " ".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    assert re.search(r"column.* 'age'|columns \['age'\] hold no numbers", said)
    model = sampled(Ridge(), PUBLIC, y_public)
    with pytest.raises(ValueError, match=r"its X has the columns \['dose'\] besides\."):
        model.fit(NUMBERS[["age"]], y)
    with pytest.raises(ValueError, match=r"Its X lacks the columns \['dose'\]\."):
        model.plan(N).execute(NUMBERS[["age"]], y)
    for sensitivity in (1.0, model.sensitivity):
        with pytest.raises(ValueError, match="X has no records"):
            release(
                np.sum, np.empty((0, 1)), mechanism=LaplaceMechanism(1.0), sensitivity=sensitivity
            )
    with pytest.raises(ValueError, match="X has no records"):
        model.fit(NUMBERS[:0], y[:0])


def test_weights_of_zero_are_named_where_a_fit_fails():
    class Weighing(LogisticRegression):  # as later versions of scikit-learn
        def fit(self, X, y, sample_weight=None):
            if sample_weight is not None and not np.any(sample_weight):
                raise ValueError("Sample weights must contain at least one non-zero number.")
            return super().fit(X, y, sample_weight)

    def oracle(n_samples, rng):
        rows = rng.integers(N, size=n_samples)
        return PUBLIC.to_numpy()[rows], y_public[rows], rng.uniform(size=n_samples)

    sampler = SensitivitySampler(oracle, gamma=0.3, n_pairs=3, clip=None, random_state=0)
    noise = {"mechanism": LaplaceMechanism(1.0), "release": ["coef_", "intercept_"]}
    model = private(Weighing(), **noise, sensitivity=sampler)
    with pytest.raises(PrivateEvaluationError, match="weights of 0"):
        model.fit(NUMBERS.to_numpy(), y, sample_weight=np.zeros(N))
