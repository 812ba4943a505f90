"""Gaps that the public records lack are refused before the budget pays, where they would fail."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    UniformOracle,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.core.dataset import Dataset
from skdp.core.schema import Schema
from skdp.core.target import FunctionTarget
from skdp.sensitivity.gaps import check_gaps

WORDS = pd.CategoricalDtype(["x", "y"])


def table(kind, n_records=60, gaps=()):
    """A number with gaps, one without, words, and words of declared categories."""
    rng = np.random.default_rng(n_records)
    columns = {"a": rng.uniform(size=n_records).tolist(), "b": rng.uniform(size=n_records).tolist()}
    columns |= {name: rng.choice(["x", "y"], n_records).tolist() for name in "cd"}
    columns["a"][::7] = [None] * len(columns["a"][::7])
    for name, entry in gaps:
        columns[name][5] = entry
    y = rng.permutation(np.arange(n_records) % 2)
    if kind == "polars":
        return pl.DataFrame(columns, schema_overrides={"d": pl.Enum(["x", "y"])}), y
    return pd.DataFrame(columns).astype({"a": float, "b": float, "c": object, "d": WORDS}), y


def model(kind, budget, **encoder):
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a"]),
        (OneHotEncoder(**encoder), ["c", "d"]),
        remainder=StandardScaler(),
    )
    oracle = PublicDataOracle(*table(kind, 80))
    return PrivateEstimator(
        make_pipeline(columns, LogisticRegression()),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SensitivitySampler(oracle, gamma=0.3, n_pairs=3, random_state=0),
        accountant=budget,
    )


@pytest.fixture
def budget(tmp_path):
    return PrivacyAccountant(tmp_path / "ledger", epsilon=9.0)


# the encoder fails on what is unknown, as it should here; few records, and little is read off them
@pytest.mark.filterwarnings("ignore:This is nearly", "ignore:.*handle_unknown")
@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize(("name", "entry"), [("b", None), ("b", np.nan), ("c", None), ("d", None)])
def test_a_gap_that_no_step_fills_costs_nothing(budget, kind, name, entry):
    """Neither in a fit nor in the execution of a plan; public ones in "a" are fitted as ever."""
    private = model(kind, budget)
    X, y = table(kind, gaps=[(name, entry)])
    plan = private.plan(60)
    for call in (private.fit, plan.execute):
        with pytest.raises(ValueError, match=rf"in the columns \['{name}'\], .* raises ValueError"):
            call(X, y)
    assert not hasattr(private, "estimator_")
    assert budget.total().n_releases == 0
    plan.execute(*table(kind))
    assert budget.total().n_releases == 1


@pytest.mark.filterwarnings("ignore:This is nearly")  # of few records little is read off
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_gap_that_a_step_can_do_with_is_none_of_ours(budget, kind):
    private = model(kind, budget, handle_unknown="ignore")
    private.fit(*table(kind, gaps=[("c", None), ("d", None)]))
    assert budget.total().n_releases == 1


def test_a_column_whose_gaps_do_no_harm_is_not_named(budget):
    """Of two columns with gaps the encoder takes those of one, and the regression none."""
    x, public, y = np.random.default_rng(0).uniform(size=(3, 60))
    frame = pd.DataFrame({"kind": ["a", "b", "a"] * 20, "x": x})
    encoder = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), ["kind"]), remainder="passthrough"
    )
    private = PrivateEstimator(
        make_pipeline(encoder, Ridge()),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SensitivitySampler(
            PublicDataOracle(frame.assign(x=public), public), gamma=0.3, n_pairs=3, random_state=0
        ),
        accountant=budget,
    )
    frame.loc[3, "kind"] = None
    frame.loc[5, "x"] = np.nan
    with pytest.raises(ValueError, match=r"missing entries in the columns \['x'\], and"):
        private.fit(frame, y)
    private.fit(frame.fillna({"x": 0.0}), y)
    assert budget.total().n_releases == 1


@pytest.mark.parametrize("kind", ["pandas", "polars", "array"])
def test_an_empty_column_is_a_kind_of_its_own(budget, kind):
    """An imputer drops it, of which pairs with some gaps in that column show nothing."""
    rng = np.random.default_rng(0)
    x = rng.uniform(size=(2, 60, 2))
    x[0, ::9, 1] = np.nan
    public, X = map(np.copy, x)
    y = rng.uniform(size=60)
    X[:, 1] = np.nan
    if kind != "array":
        library = pd if kind == "pandas" else pl
        public, X = (
            library.DataFrame(dict(zip("ab", each.T, strict=True))) for each in (public, X)
        )
    for keeps in (False, True):
        model = PrivateEstimator(
            make_pipeline(SimpleImputer(keep_empty_features=keeps), StandardScaler(), Ridge()),
            mechanism=LaplaceMechanism(1.0),
            sensitivity=SensitivitySampler(
                PublicDataOracle(public, y.copy()), gamma=0.3, n_pairs=3, random_state=0
            ),
            accountant=budget,
        )
        if keeps:
            model.fit(X, y)
        else:
            with pytest.raises(ValueError, match="missing entries in the columns"):
                model.fit(X, y)
    assert budget.total().n_releases == 1


def test_a_fit_is_refused_before_pairs_are_sampled(budget):
    drawn = []

    def oracle(n_samples, rng):
        drawn.append(n_samples)
        return rng.uniform(size=(n_samples, 2)), rng.uniform(size=n_samples)

    model = PrivateEstimator(
        make_pipeline(
            make_column_transformer((SimpleImputer(), [0]), remainder=StandardScaler()), Ridge()
        ),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SensitivitySampler(oracle, gamma=0.3, n_pairs=30, random_state=0),
        accountant=budget,
    )
    X, y = oracle(60, np.random.default_rng(1))
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"missing entries in the columns \[1\]"):
        model.fit(X, y)
    tried = len(drawn)
    X[3, 1] = 0.5
    model.fit(X, y)
    assert len(drawn) > 2 * tried + 60


def of_numbers(container):
    numbers = np.random.default_rng(0).uniform(size=40)
    numbers[3] = np.nan
    return container(numbers)


CONTAINERS = {
    "array": lambda x: x,
    "column": lambda x: x[:, None],
    "list": list,
    "rows": lambda x: x[:, None].tolist(),
    "series": pd.Series,
    "nullable": lambda x: pd.DataFrame({"a": x}).astype("Float64"),
    "labels that repeat": lambda x: pd.DataFrame({"a": x}, index=np.zeros(40)),
    "polars": lambda x: pl.DataFrame({"a": x}),
}


def strict_mean(X):
    return np.mean(np.asarray(X, dtype=float))


@pytest.mark.parametrize("name", CONTAINERS)
@pytest.mark.parametrize("sampled", [True, False], ids=["sampled", "known"])
def test_a_function_is_tried_too(budget, name, sampled):
    """With a bound on paper, on records that are made up."""
    X = of_numbers(CONTAINERS[name])
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.3, n_pairs=3, random_state=0)
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": sampler if sampled else 1 / 40}
    with pytest.raises(ValueError, match=r"returns a value that is not finite|raises \w+Error"):
        release(strict_mean, X, accountant=budget, **options)
    assert budget.total().n_releases == 0


def checked(target, entries):
    X = pd.DataFrame({"a": pd.Series(entries * 10, dtype=object)})
    oracle = SensitivitySampler(PublicDataOracle(X.dropna())).draws_from
    dataset = Dataset(X)
    return check_gaps(FunctionTarget(target), dataset, Schema.of(dataset, True), oracle)


def test_each_kind_of_gap_is_tried():
    """A function may take a NaN and no None, and what it fails on anyway says nothing of gaps."""
    seen = []

    def keep(X):
        seen.append({type(entry) for entry in X["a"]})
        X.loc[:, "a"] = "written into"  # of a copy
        return 0.0

    checked(keep, [1.0, None, np.nan, pd.NA])
    assert seen == [{float, type(None), type(pd.NA)}]  # once
    with pytest.raises(ValueError, match="raises TypeError"):
        checked(lambda X: float(sum(X["a"])), [1.0, np.nan, None])
    checked(lambda X: np.nansum(list(X["a"])), [1.0, np.nan])
    checked(lambda X: X.nothing, [1.0, None])
