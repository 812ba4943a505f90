"""Private gaps: where the oracle has some they are taken, and elsewhere they cost nothing."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
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
from skdp.exceptions import PrivateEvaluationError

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


def model(kind, budget):
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a"]),
        (OneHotEncoder(handle_unknown="ignore"), ["c", "d"]),
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


@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize(("name", "entry"), [("b", None), ("b", np.nan), ("c", None), ("d", None)])
def test_a_gap_where_the_oracle_has_none_costs_nothing(budget, kind, name, entry):
    """Neither in a fit nor in the execution of a plan."""
    private = model(kind, budget)
    X, y = table(kind, gaps=[(name, entry)])
    plan = private.plan(60)
    for call in (private.fit, plan.execute):
        with pytest.raises(ValueError, match=rf"missing entries in the columns \['{name}'\]"):
            call(X, y)
    assert not hasattr(private, "estimator_")
    assert budget.total().n_releases == 0
    plan.execute(*table(kind))
    assert budget.total().n_releases == 1


CONTAINERS = {
    "array": lambda x: x,
    "column": lambda x: x[:, None],
    "series": pd.Series,
    "objects": lambda x: np.array([None if np.isnan(each) else each for each in x], dtype=object),
    "nullable": lambda x: pd.DataFrame({"a": x}).astype("Float64"),
    "labels that repeat": lambda x: pd.DataFrame({"a": x}, index=np.zeros(40)),
    "polars": lambda x: pl.DataFrame({"a": x}),
}


def strict_mean(X):
    return np.mean(np.asarray(X, dtype=float))


def with_one_gap(name):
    numbers = np.random.default_rng(0).uniform(size=40)
    numbers[3] = np.nan
    return CONTAINERS[name](numbers)


SAMPLED = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.3, n_pairs=3, random_state=0)


@pytest.mark.loop("name", CONTAINERS)
@pytest.mark.parametrize(
    ("sensitivity", "error", "n_paid"),
    [(SAMPLED, ValueError, 0), (1 / 40, PrivateEvaluationError, 1)],
)
def test_gaps_of_a_function_are_refused_unpaid_or_not_told(name, sensitivity, error, n_paid):
    """Under a bound a refusal would tell of the gap. The function sees it, when it is paid for."""
    budget = PrivacyAccountant(":memory:", epsilon=9.0)
    options = {"mechanism": LaplaceMechanism(1.0), "accountant": budget}
    with pytest.raises(error) as caught:
        release(strict_mean, with_one_gap(name), sensitivity=sensitivity, **options)
    assert ("the oracle's records have none there" in str(caught.value)) is (n_paid == 0)
    assert budget.total().n_releases == n_paid


def test_gaps_are_taken_where_the_oracle_has_some(budget):
    def oracle(n_samples, rng):
        numbers = rng.uniform(size=(n_samples, 1))
        numbers[::9] = np.nan
        return numbers

    sampler = SensitivitySampler(oracle, gamma=0.3, n_pairs=3, random_state=0)
    options = {"mechanism": LaplaceMechanism(1.0), "accountant": budget}
    released = release(np.nanmean, with_one_gap("column"), sensitivity=sampler, **options)
    assert np.isfinite(released.value)
