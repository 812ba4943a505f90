"""Class tables as a way to a promise: any estimator, one payment, and no private number kept."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from skdp import (
    Category,
    ClassTables,
    ExponentialMechanism,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    Number,
    PrivateEstimator,
    PrivateSearchCV,
    Schema,
    Target,
    UtilityWarning,
    load,
    release,
    release_oracle,
)
from skdp.accounting import PrivacyAccountant
from skdp.audit import audit_estimator, find_leaks
from skdp.exceptions import BudgetExceededError

COLUMNS = {
    "age": Number(17, 90, integer=True),
    "gain": Number(0, 99_999, log=True),
    "work": Category(["private", "public"]),
}
SCHEMA = Schema(COLUMNS, classes=["no", "yes"])
PURE, DELTA = LaplaceMechanism(epsilon=1.0), GaussianMechanism(epsilon=1.0, delta=1e-6)


def made_up(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    age = np.clip(rng.normal(40 + 10 * y, 12, n), 17, 90).round().astype(int)
    gain = np.exp(rng.normal(3 + y, 2, n)) + 0.123456789
    work = np.where(rng.random(n) < 0.3 + 0.4 * y, "private", "public")
    return pd.DataFrame({"age": age, "gain": gain, "work": work}), np.where(y, "yes", "no")


X, Y = made_up()
TEST, T = made_up(seed=1)


def model(estimator=None, mechanism=PURE, schema=SCHEMA, seed=0, **others):
    estimator = LogisticRegression() if estimator is None else estimator
    chosen = ClassTables(schema, random_state=0)
    private = {"accountant": unlimited()} | others
    return PrivateEstimator(
        estimator, mechanism=mechanism, sensitivity=chosen, random_state=seed, **private
    )


def unlimited():
    return PrivacyAccountant(":memory:", epsilon=100.0, delta=0.5)


def in_polars(frame):
    return pl.DataFrame({name: frame[name].tolist() for name in frame})


class KeepsTypes(ClassifierMixin, BaseEstimator):
    """A classifier that keeps the types of its columns."""

    def fit(self, X, y):
        self.dtypes_, self.classes_ = list(X.dtypes), np.unique(y)
        return self

    def predict(self, X):
        return np.resize(self.classes_, len(X))


CONTAINERS = {
    "pandas": lambda frame: frame,
    "category": lambda frame: frame.astype({"work": "category"}),
    "polars": in_polars,
    "enum": lambda frame: in_polars(frame).cast({"work": pl.Enum(["private", "public"])}),
    "array": lambda frame: frame.to_numpy(),
}
ESTIMATORS = {
    "logistic": LogisticRegression(),
    "boosting": HistGradientBoostingClassifier(max_iter=30),
    "forest": RandomForestClassifier(20, min_samples_leaf=20),
    "neighbors": KNeighborsClassifier(15),
    "machine": SVC(cache_size=500),
    "pipeline": make_pipeline(
        make_column_transformer((StandardScaler(), ["age", "gain"]), (OneHotEncoder(), ["work"])),
        LogisticRegression(),
    ),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_any_container(container):
    convert = CONTAINERS[container]
    fitted = model().fit(convert(X), Y)
    assert fitted.score(convert(TEST), T) > 0.7
    assert fitted.estimator_.predict(convert(TEST)[:5]).shape == (5,)


@pytest.mark.parametrize("mechanism", [PURE, DELTA], ids=["pure", "delta"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_any_estimator(name, mechanism):
    fitted = model(ESTIMATORS[name], mechanism).fit(X, Y)
    assert fitted.score(TEST, T) > 0.69
    promise = fitted.guarantee_
    assert (promise.epsilon, promise.delta, promise.gamma) == (1.0, mechanism.guarantee().delta, 0)
    assert "that the Schema was not read off the data" in promise.assumed
    assert fitted.classes_.tolist() == ["no", "yes"]


def test_several_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=3000)
    records = np.column_stack([rng.normal(y, 0.5), rng.normal(size=3000)])
    schema = Schema({0: Number(-3, 5), 1: Number(-3, 3)}, classes=[0, 1, 2])
    fitted = model(schema=schema).fit(records, y)
    assert fitted.score(records, y) > 0.7


@pytest.mark.parametrize("estimator", [Ridge(), DecisionTreeRegressor(max_depth=4)])
def test_regression(estimator):
    schema = Schema({"a": Number(-3, 3), "b": Number(-3, 3)}, y_range=(-4, 4))
    rng = np.random.default_rng(0)
    records = pd.DataFrame(rng.uniform(-3, 3, (4000, 2)), columns=["a", "b"])
    y = records["a"] + rng.normal(size=4000) / 3
    fitted = model(estimator, schema=schema).fit(records, y)
    assert fitted.score(records, y) > 0.5


def test_a_large_epsilon_is_nearly_exact():
    fitted = model(mechanism=LaplaceMechanism(15.0)).fit(X, Y)
    exact = clone(fitted.estimator_).fit(X, Y)  # behind the released encoder
    assert abs(fitted.score(TEST, T) - exact.score(TEST, T)) < 0.02


def test_noise_is_new_and_seeds_are_for_tests():
    one, two, seeded, again = (model(seed=s).fit(X, Y) for s in (None, None, 3, 3))
    assert np.all(one.standard_errors_["age"] == two.standard_errors_["age"])
    assert np.all(one._release.numbers["age"] != two._release.numbers["age"])
    np.testing.assert_array_equal(seeded.predict_proba(TEST), again.predict_proba(TEST))
    assert seeded.guarantee_.seeded
    assert not one.guarantee_.seeded


def test_a_plan_needs_no_record():
    text = str(model().plan(n_samples=3000))
    assert "class tables of 3 columns" in text
    assert "n epsilon / d is 1000" in text
    assert "one evaluation on the private records" in text
    plan = model().plan(n_samples=3000, like=(X[:2], Y[:2]))
    released = plan.execute(X, Y, accountant=unlimited(), random_state=0)
    assert released.value.score(TEST, T) > 0.7


def test_few_records_are_warned_of():
    with pytest.warns(UtilityWarning, match="only the majority"):
        model().plan(n_samples=50)


def test_one_row_of_the_ledger_and_no_look_without_payment(tmp_path):
    accountant = PrivacyAccountant(tmp_path / "ledger.jsonl", epsilon=1.5)
    model(accountant=accountant).fit(X, Y)
    assert accountant.total().n_releases == 1
    assert accountant.total().epsilon == 1.0
    with pytest.raises(BudgetExceededError):
        model(accountant=accountant).fit(X, Y)


REFUSED = {
    "a missing column": (X[["age", "gain"]], Y, "declared column once"),
    "a column besides": (X.assign(name="x"), Y, "declared columns alone"),
    "a type": (X.assign(age=pd.array(["1"] * len(X), dtype="string")), Y, "a type of numbers"),
    "no responses": (X, None, "requires y"),
    "lengths": (X, Y[:-1], "one response for each"),
    "no records": (X[:0], Y[:0], "no records"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_data_of_another_form_spend_nothing(case):
    records, labels, message = REFUSED[case]
    accountant = unlimited()
    with pytest.raises((ValueError, TypeError), match=message):
        model(accountant=accountant).fit(records, labels)
    assert not accountant.total().epsilon


WRONG = {
    "mechanism": ({"mechanism": L2LaplaceMechanism(1.0)}, "must be a LaplaceMechanism"),
    "choice": ({"mechanism": ExponentialMechanism(1.0)}, "must be a LaplaceMechanism"),
    "release": ({"release": "predictions"}, "'release' parameter"),
    "classes": ({"classes": ["no", "yes"]}, "'classes' parameter"),
    "regressor": ({"estimator": Ridge()}, "'y_range' for a regressor"),
    "schema": ({"schema": COLUMNS}, "must be a Schema"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_parameters_spend_nothing(case):
    parameters, message = WRONG[case]
    accountant = unlimited()
    with pytest.raises((ValueError, TypeError), match=message):
        model(accountant=accountant, **parameters).fit(X, Y)
    assert not accountant.total().epsilon


def test_an_estimator_that_cannot_be_fitted_spends_nothing():
    accountant = unlimited()
    broken = make_pipeline(StandardScaler(), LogisticRegression())  # it takes no words
    with pytest.raises(ValueError, match="could not convert"):
        model(broken, accountant=accountant).fit(X, Y)
    assert not accountant.total().epsilon


def neighbors():
    """Records that differ from X in one entry of every kind, and in a label."""
    for entry in (None, np.nan, np.inf, "unheard", 1j, [1], {"a": 1}, 10**400, b"x", X):
        records = X.astype(object)
        for name in records:
            records.at[7, name] = entry
        yield records, Y
    labels = Y.astype(object)
    labels[7] = "undeclared"
    yield X.astype(object), labels


def test_no_entry_is_refused_and_neighbors_are_told_alike():
    said = set()
    for records, labels in neighbors():
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            fitted = model().fit(records, labels)
        messages = tuple(str(each.message) for each in heard)
        said.add((str(fitted.plan_), str(fitted.guarantee_), messages))
        assert np.isfinite(fitted._release.numbers["age"]).all()
    assert len(said) == 1


def test_nothing_private_is_kept(tmp_path):
    fitted = model(RandomForestClassifier(5, max_depth=3), seed=None).fit(X, Y)
    assert find_leaks(fitted, X[["gain"]]) == []
    fitted.save(tmp_path / "release")
    files = b"".join(path.read_bytes() for path in (tmp_path / "release").iterdir())
    assert not any(value.tobytes() in files for value in X["gain"].to_numpy()[:500])
    loaded = load(tmp_path / "release")
    np.testing.assert_array_equal(loaded.value.predict(TEST), fitted.predict(TEST))
    assert "age" in str(loaded.summary())
    assert "epsilon=1" in str(loaded.report())


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_private_categories_of_a_type_are_not_kept(library):
    """Neither of a column nor of the labels, in what is released, planned and printed."""
    work, labels = ["private", "public", "Zanzibar mill"], ["no", "yes", "Zanzibar vote"]
    typed, y = X.astype({"work": pd.CategoricalDtype(work)}), pd.Categorical(Y, labels)
    y = pd.Series(y)
    if library == "polars":
        typed = in_polars(X).cast({"work": pl.Enum(work)})
        y = pl.Series(Y.tolist(), dtype=pl.Enum(labels))
    fitted = model(KeepsTypes()).fit(typed, y)
    seen = fitted.estimator_[-1].dtypes_[2]
    assert list(seen.categories) == ["private", "public"]
    assert b"Zanzibar" not in pickle.dumps(fitted)
    assert "Zanzibar" not in repr(fitted.plan_) + str(fitted.plan_)


def gaps(n=3000, seed=0):
    """Numbers of which one that lacks tells of the first class."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.5
    columns = {name: np.clip(rng.normal(50 + 6 * y, 15), 0, 100) for name in "abc"}
    lacks = {name: rng.random(n) > np.where(y, 0.1, 0.5) for name in "abc"}
    frame = pd.DataFrame(columns)
    return frame.where(pd.DataFrame(lacks)), y.astype(int)


@pytest.mark.parametrize("name", ["boosting", "forest", "imputed"])
def test_a_model_of_raw_columns_is_told_what_a_gap_counts_as(name):
    """No drawn record has a gap, so by itself it would not know."""
    imputed = make_pipeline(SimpleImputer(), DecisionTreeClassifier(max_depth=5))
    schema = Schema({each: Number(0, 100) for each in "abc"}, classes=[0, 1])
    fitted = model((ESTIMATORS | {"imputed": imputed})[name], schema=schema).fit(*gaps())
    assert not fitted.plan_.target.is_encoded
    records, labels = gaps(seed=1)
    assert fitted.score(records, labels) > 0.72
    np.testing.assert_array_equal(fitted.predict(records), fitted.predict(records.fillna(0)))


@pytest.mark.parametrize("name", ["logistic", "forest"])
def test_columns_may_be_reordered_and_added_at_prediction(name):
    fitted = model(ESTIMATORS[name]).fit(X, Y)
    other = TEST.assign(unheard=1)[["work", "unheard", "gain", "age"]]
    for predict in (fitted.predict, fitted.estimator_.predict):
        np.testing.assert_array_equal(predict(other), predict(TEST))


def test_clones_and_pickles():
    fitted = model().fit(X, Y)
    assert clone(fitted).get_params()["sensitivity__schema"] is not None
    copied = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copied.predict(TEST), fitted.predict(TEST))


def test_what_needs_the_exact_value_is_refused():
    fitted = model().fit(X, Y)
    with pytest.raises(TypeError, match="release_oracle"):
        audit_estimator(fitted, X, Y, record=0)
    with pytest.raises(TypeError, match="must not be ClassTables"):
        PrivateSearchCV(model(), {"estimator__C": [0.1, 1.0]}).fit(X, Y)
    with pytest.raises(TypeError):
        fitted.predict_stability(TEST)
    with pytest.raises(ValueError, match="'scoring' parameter"):
        model().plan(len(X), scoring="roc_auc")


def test_a_target_of_the_user_cannot_leave_out_the_noise():
    class Quiet(Target):
        adds_noise = True

        def __call__(self, *parts, seed, noise=None):
            return np.zeros(2)

    with pytest.raises(ValueError, match="adds its noise itself"):
        release(Quiet(), X["gain"].to_numpy(), mechanism=PURE, sensitivity=1.0)


def test_an_oracle_is_paid_for_once():
    accountant = unlimited()
    oracle = release_oracle(
        X, Y, schema=SCHEMA, mechanism=DELTA, accountant=accountant, random_state=0
    )
    assert accountant.total().epsilon == oracle.guarantee_.epsilon == 1.0
    drawn, labels = oracle(5000, np.random.default_rng(0))
    student = LogisticRegression().fit(oracle.encoder_.transform(drawn), labels)
    assert student.score(oracle.encoder_.transform(TEST), T) > 0.7


def test_a_score_far_from_zero_is_corrected_in_time():
    """Without the length of the center in the rounding of a gradient, the solver did not end."""
    rng = np.random.default_rng(0)
    schema = Schema({"a": Number(0, 1)}, classes=[0, 1])
    for seed in range(20):
        X, y = rng.uniform(size=(1200, 1)), (rng.random(1200) < 0.02).astype(int)
        options = {"mechanism": LaplaceMechanism(epsilon=1.0), "random_state": seed}
        tables = ClassTables(schema, random_state=0)
        model = PrivateEstimator(LogisticRegression(), sensitivity=tables, **options)
        assert set(model.fit(X, y).predict(X)) <= {0, 1}


def test_linear_discriminants_learn_from_log_odds():
    """They fail on constant columns, which made-up tables without a signal would give alone."""
    assert model(LinearDiscriminantAnalysis()).fit(X, Y).score(X, Y) > np.mean(Y == "no") + 0.03
