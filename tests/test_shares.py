"""Counts beside a release, for which shares of its epsilon pay."""

import math
import pickle
import re
from dataclasses import replace

import numpy as np
import polars
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from skdp import (
    ClassTables,
    ClipNorm,
    GaussianMechanism,
    LaplaceMechanism,
    MomentClassifier,
    Number,
    PrivateEstimator,
    PrivateSearchCV,
    RandomTaskOracle,
    Schema,
    UnlikeRecordsError,
    load,
)
from skdp.accounting import PrivacyAccountant
from skdp.bounds import svm_bound
from skdp.core.dataset import Dataset
from skdp.results.shares import Shares, n_right
from tests.helpers import private, sampler

RNG = np.random.default_rng(0)
X = RNG.normal(size=(800, 2))
y = (X[:, 0] + RNG.normal(size=800) > 0).astype(int)
ORACLE = RandomTaskOracle(RNG.normal(size=(300, 2)), classes=[0, 1])
KNOWN = make_pipeline(ClipNorm(3.0), MomentClassifier())


def known(**options):
    usual = {"mechanism": LaplaceMechanism(2.0), "sensitivity": "known", "classes": [0, 1]}
    return PrivateEstimator(
        KNOWN, **usual | {"shares": {"score": 0.05}, "random_state": 0} | options
    )


def sampled(**options):
    usual = {"sensitivity": sampler(ORACLE), "mechanism": LaplaceMechanism(2.0)}
    return private(LogisticRegression(C=0.1), **usual | options)


def test_the_score_and_the_release_cost_epsilon_together_and_are_rows_of_their_own():
    budget = PrivacyAccountant(":memory:", epsilon=2.0)
    model = known(accountant=budget).fit(X, y)
    assert model.guarantee_.epsilon == 2.0 == budget.total().epsilon
    assert model.mechanism_.epsilon == 1.9
    assert [(row["epsilon"], row["law"]) for row in budget.rows()] == [
        (1.9, "laplace"),
        (0.1, "laplace"),
    ]
    assert budget.rows()[1]["label"].startswith("score of ")
    assert model.private_score_.error == pytest.approx(math.sqrt(2) / 80)
    assert model.private_score_.score == pytest.approx(model.score(X, y), abs=0.1)
    assert "shares          0.1 for the score on private records" in str(model.plan_)
    assert f"for which it is right: {model.private_score_}" in " ".join(str(model.report()).split())


def test_the_noise_of_the_score_has_its_law():
    """Of 400 scores, by the kurtosis of Laplace noise the deviation is within 15 %: 4.2 sigma."""
    shares, paid = Shares(score=0.1), np.random.default_rng(1)
    model = LogisticRegression().fit(X, y)
    scores = [shares.score_of(model, Dataset(X, y), paid)[0] for _ in range(400)]
    assert np.std(scores) == pytest.approx(math.sqrt(2) / 80, rel=0.15)
    assert np.mean(scores) == pytest.approx(model.score(X, y), abs=4 * math.sqrt(2) / 80 / 20)


def test_a_replaced_record_moves_a_count_by_at_most_one_whatever_the_model_does():
    """A step of the user may look at all records, and a model may fail at one."""

    def centered(X):
        if np.isnan(X).any():
            raise SystemExit
        return X - X.mean(axis=0)

    model = make_pipeline(FunctionTransformer(centered), LogisticRegression()).fit(X, y)
    counts = []
    for record in ([0.0, 0.0], [1e9, 1e9], [math.nan, 0.0]):
        changed = X[:50].copy()
        changed[7] = record
        counts.append(n_right(model, Dataset(changed, y[:50])))
    assert max(counts) - min(counts) <= 1
    plain = LogisticRegression().fit(X, y)
    assert n_right(plain, Dataset(X, y)) == np.sum(plain.predict(X) == y)
    unreadable = np.vstack([X[:49], [math.nan, 0.0]])
    assert n_right(plain, Dataset(unreadable, y[:50])) == np.sum(plain.predict(X[:49]) == y[:49])


@pytest.mark.parametrize(
    "step",
    [
        FunctionTransformer(np.flip),
        FunctionTransformer(np.cumsum, kw_args={"axis": 0}),
        FunctionTransformer(np.vectorize(lambda number: max(0, number))),
        IterativeImputer(max_iter=1, sample_posterior=True, random_state=0),
        SimpleImputer(),
        StandardScaler(),
    ],
    ids=[
        "of numpy, by place",
        "sums",
        "type of the first",
        "stream of draws",
        "none",
        "fails at one",
    ],
)
def test_no_record_moves_a_count_by_way_of_others(step):
    """Neither by their order, nor by a type, a state or the size of a batch."""
    last = LogisticRegression()
    if isinstance(step, StandardScaler):
        last = DummyClassifier(strategy="uniform", random_state=0)
    given = np.where(RNG.random((60, 2)) < 0.2, math.nan, X[:60])
    given = given if "Imputer" in str(step) else X[:60]
    model, counts = make_pipeline(step, last).fit(given, y[:60]), []
    for record in ([0.0, 0.0], [9.0, -9.0], [math.nan, 0.0], [math.inf, 0.0]):
        changed = np.vstack([[record], given[1:]])
        counts.append(n_right(model, Dataset(changed, y[:60])))
    assert max(counts) - min(counts) <= 1


def test_the_promise_is_that_of_what_is_paid_also_with_another_mechanism():
    plan = replace(known().plan(len(X), like=(X[:2], y[:2])), mechanism=LaplaceMechanism(5.0))
    budget = PrivacyAccountant(":memory:", epsilon=9.0)
    assert plan.execute(X, y, accountant=budget).guarantee.epsilon == 5.1 == budget.total().epsilon


def test_records_unlike_the_oracles_are_refused_after_the_check_was_paid_for():
    budget = PrivacyAccountant(":memory:", epsilon=2.0)
    model = sampled(accountant=budget, shares={"check": 0.05, "score": 0.05})
    with pytest.raises(UnlikeRecordsError, match=r"epsilon of the check, 0\.1, is spent") as raised:
        model.fit(100 * X, y)
    assert not hasattr(model, "estimator_")
    assert [row["epsilon"] for row in budget.rows()] == [0.1]
    assert not budget.rows()[0]["gamma"]
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)
    with pytest.raises(Exception, match="does not allow"):  # 2 more
        model.fit(X, y)
    assert len(budget.rows()) == 1
    model.set_params(accountant=PrivacyAccountant(":memory:", epsilon=2.0)).fit(X, y)
    assert model.guarantee_.epsilon == model.budget_.epsilon == 2.0
    assert model.mechanism_.epsilon == 1.8
    assert "0.1 for the check of likeness and 0.1 for the score" in " ".join(
        str(model.plan_).split()
    )


@pytest.mark.parametrize("share", [0.0, 0.05, 1.0])
def test_a_check_finds_a_unit_and_lets_records_pass_of_which_few_are_outside(share):
    plan = sampled(shares={"check": 0.1}).plan(len(X))
    unlike = X.copy()
    unlike[: int(share * len(X))] *= 100
    refused = 0
    for seed in range(4):
        try:
            plan.execute(unlike, y, random_state=seed)
        except UnlikeRecordsError:
            refused += 1
    assert refused == (4 if share == 1 else 0)


@pytest.mark.parametrize(
    ("model", "n", "said"),
    [
        (known(), 349, "at least 35 / n. Got 0.1 of n=349 records: take a larger share"),
        (sampled(shares={"check": 0.05}), 109, "at least 11 / n. Got 0.1 of n=109"),
        (known(shares={"check": 0.05}), 800, "may hold 'check' for a sampled sensitivity"),
        (known(shares={"share": 0.05}), 800, "must be None, or say"),
        (
            private(
                SVC(kernel="linear", C=1e-3),
                sensitivity=svm_bound(SVC(kernel="linear", C=1e-3), 800, 2),
            ).set_params(classes=[0, 1], shares={"check": 0.1}),
            800,
            "may hold 'check' for a sampled sensitivity",
        ),
        (known(shares={"score": 0.6}), 800, "at most .5 in all"),
        (known(shares={"score": True}), 800, "at most .5 in all"),
        (known(mechanism=LaplaceMechanism(math.inf)), 800, "of a finite epsilon"),
        (private(Ridge(), X, X[:, 0], shares={"score": 0.1}), 800, "for one label of each record"),
        (
            sampled(sensitivity=sampler(ORACLE, clip=None), shares={"check": 0.1}),
            800,
            "leave it out",
        ),
    ],
)
def test_counts_that_are_not_defined_or_of_no_use_are_refused_in_the_plan(model, n, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        model.plan(n, like=(X[:2], y[:2]))


def test_persons_and_searches_take_no_score():
    with pytest.raises(ValueError, match=r"Got 0\.1 of n=400 persons: leave it out"):
        known().fit(X, y, groups=np.arange(800) // 2)
    with pytest.raises(ValueError, match="None in a search"):
        PrivateSearchCV(known(), {"mechanism__epsilon": [1.0]}, scoring="accuracy").fit(X, y)


def test_a_saved_release_keeps_its_score(tmp_path):
    model = known().fit(X, y)
    model.save(tmp_path / "release")
    assert load(tmp_path / "release").private_score == model.private_score_


@pytest.mark.parametrize(
    ("mechanism", "sensitivity"),
    [
        (GaussianMechanism(2.0, 1e-5), "known"),
        (
            LaplaceMechanism(2.0),
            ClassTables(Schema({"a": Number(-9, 9), "b": Number(-9, 9)}, classes=[0, 1])),
        ),
    ],
)
def test_other_noise_and_class_tables_take_a_score(mechanism, sensitivity):
    """Class tables count in the container of the user, here a frame and a series of polars."""
    budget = PrivacyAccountant(":memory:", epsilon=2.0, delta=1e-5)
    classes, records, labels = [0, 1], X, y
    if sensitivity != "known":
        classes, records, labels = None, polars.DataFrame(X, schema=["a", "b"]), polars.Series(y)
    model = known(classes=classes, mechanism=mechanism, sensitivity=sensitivity)
    model.set_params(accountant=budget).fit(records, labels)
    assert model.guarantee_.epsilon == budget.total().epsilon == 2.0
    assert model.guarantee_.delta == budget.total().delta == mechanism.guarantee().delta
    assert model.private_score_.score == pytest.approx(model.score(records, y), abs=0.15)
    if sensitivity != "known":  # to which "1" is 1
        model.set_params(accountant=PrivacyAccountant(":memory:", epsilon=2.0))
        model.fit(records, labels.cast(polars.String))
        assert model.private_score_.score == pytest.approx(model.score(records, y), abs=0.15)
