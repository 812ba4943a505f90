"""Persons with several records: bounds, ids, what is said, and what is shown of the numbers."""

import dataclasses
import datetime
import decimal
import pickle
import re
import sqlite3
import uuid
import warnings
from contextlib import closing

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import config_context
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from skdp import (
    BernsteinTransformer,
    ClassTables,
    ClipNorm,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    LedgerError,
    MomentClassifier,
    Number,
    PersonsOracle,
    PrivacyGuarantee,
    PrivateEstimator,
    PrivateSearchCV,
    PublicDataOracle,
    RandomTaskOracle,
    SampleAndAggregate,
    Schema,
    SensitivityEstimate,
    SensitivitySampler,
    Target,
    load,
    plan_release,
    release,
    release_oracle,
)
from skdp.accounting import PrivacyAccountant
from skdp.accounting.tally import compose
from skdp.audit import audit_estimator, find_large_sensitivity
from skdp.bounds import count_bound, mean_bound
from skdp.core.dataset import Dataset, Elsewhere
from skdp.core.persons import N_TOGETHER, Persons, arrange, draw_one, slots, with_persons
from skdp.core.schema import DatasetForm
from skdp.core.target import as_target
from skdp.oracles.adapters import as_oracle
from skdp.oracles.drawing import draw
from skdp.planning.persons import of_persons
from skdp.sensitivity.likeness import AlikeTarget
from skdp.sensitivity.pairs import PairSource
from skdp.sensitivity.store import STORE
from skdp.sensitivity.strata import neighbors
from tests.known_cases import CASES, extreme_records, target_of, terms

EXACT = LaplaceMechanism(np.inf, code=None)
N = 37


def visits(n=N, seed=0):
    """Persons with 1 to 12 visits, in no order, and whose they are."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n), rng.integers(1, 13, n)))
    X = rng.normal(size=(len(groups), 3)) + (groups % 2)[:, None]
    return X, (groups % 2 + (rng.random(len(groups)) < 0.2)) % 2, groups


def moments(mechanism=EXACT, **options):
    options = {"sensitivity": "known", "classes": [0, 1]} | options
    known = np.eye(3) if "records_per_person" in options else None
    pipeline = make_pipeline(ClipNorm(1.0), MomentClassifier(second_moment=known))
    return PrivateEstimator(pipeline, mechanism=mechanism, **options)


def numbered(ids, X=None):
    X = np.zeros((len(ids), 1)) if X is None else X
    return with_persons(Dataset(X, groups=ids)).groups.tolist()


# --- bounds


def sums_of_persons(rng, target, n_classes, n_persons=400):
    """Weighed sums of the terms of persons with 1 to 40 extreme records, alike or not."""
    counts = rng.choice([1, 1, 2, 3, 7, 40], n_persons)
    starts = np.cumsum(counts) - counts
    X, y = extreme_records(rng, counts.sum(), n_classes or 0)
    are_alike = np.repeat(rng.random(n_persons) < 0.6, counts)
    rows = np.where(are_alike, np.repeat(starts, counts), np.arange(len(X)))
    weights = np.repeat(1 / np.maximum(counts, target.records_per_person), counts)
    return np.add.reduceat(terms(target, X[rows], y[rows]) * weights[:, None], starts)


@pytest.mark.loop("case", range(len(CASES)))
def test_no_person_moves_a_mean_by_more_than_its_bound(case):
    clips, estimator, n_classes, *_ = CASES[case]
    target, rng = target_of(clips, estimator, n_classes), np.random.default_rng(case)
    of_records = [target.bound(order) for order in (1, 2)]
    target.weigh_persons(7 if target.statistic.is_scaled else 1)
    for order, of_record in zip((1, 2), of_records, strict=True):
        one, another = (sums_of_persons(rng, target, n_classes) for _ in range(2))
        moved = np.linalg.norm(one - another, order, axis=1).max() / target.n_samples
        alone = np.linalg.norm(one, order, axis=1).max() / target.n_samples
        assert max(moved, alone) <= target.bound(order)
        assert moved > 0.3 * target.bound(order)
        assert of_record < target.bound(order) < of_record * (1 + 1e-8)


def test_a_mean_of_persons_is_that_of_their_weighed_records():
    X, y, groups = visits()
    for most in (1, 5):
        model = moments(records_per_person=most).fit(X, y, groups=groups)
        target = model.plan_.target
        weights = 1 / np.maximum(np.bincount(groups)[groups], most)
        rows = target.steps.transform(X)
        expected = N**-1 * len(X) * target.statistic(rows, y, weights)
        np.testing.assert_allclose(model._release.numbers["moment_"], expected, rtol=1e-12)


def test_records_stand_at_places_that_no_other_person_moves():
    counts = np.array([3, 1, 2])
    rows = Dataset(np.array([0, 1, 2, 10, 20, 21]))
    seen = [
        (part.X.tolist(), w.tolist())
        for each in slots(Persons(rows, counts), 2)
        for part, w in each
    ]
    assert seen == [
        ([0, 10, 20], [1 / 3, 1 / 2, 1 / 2]),
        ([1, 10, 21], [1 / 3, 0, 1 / 2]),
        ([2, 10, 20], [1 / 3, 0, 0]),
    ]
    assert len([*slots(Persons(Dataset(np.arange(2500)), np.ones(2500, int)), 1)]) == -(
        -2500 // N_TOGETHER
    )


def test_the_order_of_persons_is_uniform_and_one_record_of_each_is_drawn():
    rng, found, drawn = np.random.default_rng(0), set(), set()
    dataset = with_persons(Dataset(np.arange(5), groups=["a", "b", "a", "c", "b"]))
    for _ in range(300):
        persons = arrange(dataset, rng)
        assert persons.rows.n_records == 5
        first = persons.rows.X[persons.starts]
        found.add(tuple(first))
        one = draw_one(persons, rng).X
        assert sorted(np.array([0, 1, 0, 2, 1])[one]) == [0, 1, 2]
        drawn |= set(one.tolist())
    assert len(found) == 6  # each of 3! orders is missed by less than (5/6)^300
    assert drawn == set(range(5))


def test_the_first_rows_of_a_person_are_read_up_to_a_public_number(monkeypatch):
    monkeypatch.setattr("skdp.core.persons.MOST_ROWS", 2)
    dataset = with_persons(Dataset(np.arange(7), groups=[0, 1, 0, 0, 1, 2, 0]))
    persons = arrange(dataset, np.random.default_rng(0))
    each = np.split(persons.rows.X, persons.starts[1:])
    assert sorted(part.tolist() for part in each) == [[0, 2], [1, 4], [5]]


# --- ids

DAY = datetime.date(2020, 1, 1)


@pytest.mark.loop(
    ("ids", "expected"),
    [
        (["a", "b", "a", None], [0, 1, 0]),
        ([1, "1", 1.0, np.int64(1), np.float32(1)], [0, 1, 0, 0, 0]),
        ([2**53, 2**53 + 1, float(2**53), np.float64(2**53)], [0, 1, 0, 0]),
        ([np.nan, 5, float("nan"), pd.NA, pd.NaT, None, np.datetime64("NaT")], [0]),
        ([(1, 2), (1, 2), (2, 1)], [0, 0, 1]),
        ([("a", np.nan), ("a", float("nan")), ("a", (1, None)), ("a", 1)], [0]),
        ([object(), object(), 1], [0]),
        (np.array([(1, np.nan), (1, np.nan), (1, 2)], dtype="i8,f8"), [0]),
        ([DAY, DAY, uuid.UUID(int=1), decimal.Decimal("NaN")], [0, 0, 1]),
        ([[1], {}, "a"], [0]),
        (("a", "b", "a"), [0, 1, 0]),
        (np.array(["a", "bb", "a"]), [0, 1, 0]),
        (np.array([b"a", b"b"]), [0, 1]),
        (np.array([1.5, np.nan, 1.5]), [0, 0]),
        (np.array(["2020", "NaT", "2020"], dtype="M8[ns]"), [0, 0]),
        (np.array([1, "1", 1.0, None], dtype=object), [0, 1, 0]),
        (pd.Series([3, 1, None, 3], dtype="Int64"), [0, 1, 0]),
        (
            pd.Series(pd.Categorical([2**60 + 1, None, 2**60], categories=[2**60, 2**60 + 1, 7])),
            [0, 1],
        ),
        (pd.Categorical(["b", "a", None, "b"], categories=["a", "b", "c"]), [0, 1, 0]),
        (pd.Index(["x", "y", "x"]), [0, 1, 0]),
        (pd.Series(["x", pd.NA, "x"], dtype="string", index=[5, 5, 1]), [0, 0]),
        (pl.Series(["x", None, "y", "x"]), [0, 1, 0]),
        (pl.Series(["x", None, "y", "x"], dtype=pl.Categorical), [0, 1, 0]),
        (pl.Series([1, None, 2]), [0, 1]),
    ],
)
def test_ids_are_told_apart_one_by_one(ids, expected):
    assert numbered(ids) == expected


def test_a_column_of_ids_is_taken_out_of_any_frame():
    X, y, groups = visits()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    fits = [
        moments().fit(frame.assign(who=groups), y, groups="who"),
        moments().fit(frame, y, groups=groups),
        moments().fit(pl.from_pandas(frame).with_columns(who=groups), y, groups="who"),
    ]
    for model in fits:
        assert list(model.feature_names_in_) == ["a", "b", "c"]
        np.testing.assert_allclose(model.estimator_[-1].coef_, fits[0].estimator_[-1].coef_)
    plan = moments().plan(N, like=(frame.assign(who=0)[:2], y[:2]), groups="who")
    plan.execute(frame.assign(who=groups), y, groups="who")


def test_rows_without_an_id_are_left_out():
    X, y, groups = visits()
    ids = groups.astype(object)
    more = np.vstack([X, np.full((4, 3), 9.0)]), np.append(y, [1, 1, 1, 1])
    left = moments().fit(*more, groups=[*ids, None, np.nan, pd.NA, []])
    whole = moments().fit(X, y, groups=groups)
    np.testing.assert_allclose(left.estimator_[-1].coef_, whole.estimator_[-1].coef_)


# --- ways


def sampled(estimator, mechanism=EXACT, oracle=None, clip="ranges", **options):
    """An estimator whose sensitivity is sampled on persons."""
    X, y, groups = visits(seed=1)
    oracle = PublicDataOracle(X, y, groups=groups) if oracle is None else oracle
    sampler = SensitivitySampler(oracle, gamma=0.2, clip=clip, random_state=0)
    return PrivateEstimator(
        estimator, mechanism=mechanism, sensitivity=sampler, unit="person", **options
    )


def tables():
    schema = Schema({name: Number(-3, 3) for name in range(3)}, classes=[0, 1])
    return ClassTables(schema, random_state=0)


WAYS = {
    "moments": moments,
    "weighed": lambda **o: moments(L2LaplaceMechanism(1.0), records_per_person=3, **o),
    "logistic": lambda **o: PrivateEstimator(
        make_pipeline(ClipNorm(1.0), LogisticRegression(solver="liblinear", C=0.1)),
        **{"sensitivity": "known", "classes": [0, 1], "mechanism": LaplaceMechanism(1.0)} | o,
    ),
    "hinge": lambda **o: PrivateEstimator(
        make_pipeline(ClipNorm(1.0), LinearSVC(loss="hinge", C=0.01)),
        **{"sensitivity": "known", "classes": [0, 1], "mechanism": LaplaceMechanism(1.0)} | o,
    ),
    "number": lambda **o: PrivateEstimator(
        GaussianNB(), **{"sensitivity": 1.0, "classes": [0, 1], "mechanism": EXACT} | o
    ),
    "tables": lambda **o: PrivateEstimator(
        GaussianNB(), **{"sensitivity": tables(), "mechanism": LaplaceMechanism(1000.0)} | o
    ),
    "aggregate": lambda **o: PrivateEstimator(
        DecisionTreeClassifier(max_depth=1),
        prior=RandomTaskOracle(visits(seed=1)[0], classes=[0, 1]),
        mechanism=L2LaplaceMechanism(1.0),
        sensitivity=SampleAndAggregate(n_blocks=10, random_state=0),
        **o,
    ),
    "sampled": lambda **o: sampled(LogisticRegression(C=0.1), LaplaceMechanism(1.0), **o),
    "density": lambda **o: PrivateEstimator(
        KernelDensity(),
        release=BernsteinTransformer(2, feature_range=(-2, 2)),
        **{"sensitivity": "known", "mechanism": LaplaceMechanism(1.0, code=None)} | o,
    ),
}


@pytest.mark.parametrize(
    "way", ["weighed", "logistic", "tables", "density", "aggregate", "sampled"]
)
def test_no_number_of_records_is_shown(way, tmp_path):
    """Two neighboring datasets: one person has 151 records, or 393."""
    (X, y, _), shown = visits(), []
    n, n_rows = (110, 220) if way == "aggregate" else (20, 60)
    for m in (151, 393):
        STORE.clear()  # a plan says how many evaluations it has from before
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            rows = [*range(n_rows)] + [n_rows] * m
            ids = [f"secret-{i % n}" for i in range(n_rows)] + ["secret-last"] * m
            ledger = PrivacyAccountant(":memory:", epsilon=1e5, unit="person")
            model = WAYS[way](accountant=ledger, random_state=0).fit(X[rows], y[rows], groups=ids)
        paid = [{**row, "time": ""} for row in ledger.rows()]
        messages = [str(each.message) for each in caught]
        plan = re.sub(r" \(\S+ s\)", "", " ".join(str(model.plan_).split()))
        shown.append([plan, str(model.guarantee_), str(paid), messages])
        model.save(tmp_path / str(m))
        files = {path.name: path.read_bytes() for path in (tmp_path / str(m)).iterdir()}
        everything = b"".join([*files.values(), pickle.dumps(model.plan_)])
        text = "".join(files[name].decode() for name in ("README.md", "release.json"))
        for number in (m, m + n_rows):
            assert not re.search(rf"(?<![\w.]){number}(?![\w.])", text)
            assert np.array([number]).tobytes() not in everything
            assert np.array([number], float).tobytes() not in everything
        assert b"secret" not in everything
    assert shown[0] == shown[1]
    assert f"one of {n + 1} persons, with all of that person's records" in " ".join(
        shown[0][1].split()
    )


@pytest.mark.filterwarnings("ignore::UserWarning")  # plans of few persons warn
@pytest.mark.loop("way", ["logistic", "hinge", "number", "tables", "density"])
def test_where_a_bound_is_of_one_record_one_of_each_person_is_read(way):
    X, y, _ = visits()
    like = X[:50] if way == "density" else (X[:50], y[:50])
    of_records, of_persons = (WAYS[way]().plan(N, like, groups=unit) for unit in (None, True))
    assert of_records.sensitivity.value == of_persons.sensitivity.value
    assert not of_persons.target.sums_persons
    assert "one record, drawn anew by each release" in " ".join(str(of_persons).split())


def test_a_function_sees_one_record_of_each_person():
    _, _, groups = visits()
    seen, bound = [], mean_bound(N, ranges=(0, N))

    def mean(X):
        seen.append(np.sort(X[:, 0]))
        return X.mean(axis=0)

    X = groups[:, None].astype(float)
    noise = LaplaceMechanism(1.0)
    made = release(mean, X, mechanism=noise, sensitivity=bound, groups=groups)
    np.testing.assert_array_equal(seen[-1], np.arange(N))
    assert f"one of {N} persons" in " ".join(str(made.guarantee).split())
    given = {"like": X[:2], "mechanism": EXACT, "sensitivity": count_bound(N)}
    plan = plan_release(
        lambda X: [np.sum(X < 5), np.sum(X >= 5)], n_samples=N, groups=True, **given
    )
    assert plan.execute(X, groups=groups).value.tolist() == [5, N - 5]


def test_blocks_hold_whole_persons():
    rng = np.random.default_rng(0)
    groups = rng.permutation(np.repeat(np.arange(120), rng.integers(1, 9, 120)))
    X = np.column_stack([groups, 1 / np.bincount(groups)[groups]])

    def count(X):
        return [len(np.unique(X[:, 0])), X[:, 1].sum()]

    options = {"mechanism": EXACT, "sensitivity": SampleAndAggregate(8), "ranges": [(0, 120)] * 2}
    made = release(count, X, groups=groups, **options)
    np.testing.assert_allclose(made.value, [15, 15])
    assert made.guarantee.unit == "person"


def test_blocks_of_persons_have_the_bound_of_records_but_for_rounding():
    known, words = [], []
    for groups in (None, True):
        plan = WAYS["aggregate"]().plan(110, groups=groups)
        known.append(plan.sensitivity.value)
        words.append(" ".join(str(plan).split()))
    assert known[0] < known[1] < known[0] * (1 + 1e-9)
    assert "10 blocks of about 11 records" in words[0]
    assert "10 blocks of about 11 persons" in words[1]


def test_persons_are_taken_and_averaged_as_wholes():
    persons = Persons(Dataset(np.arange(6)), np.array([3, 1, 2]))
    taken = persons.take(np.array([2, 0]))
    assert (taken.rows.X.tolist(), taken.counts.tolist()) == ([4, 5, 0, 1, 2], [2, 3])
    assert persons.cut(2).rows.X.tolist() == [0, 1, 3, 4, 5]
    assert persons.join(taken).dataset.groups.tolist() == [0, 0, 0, 1, 2, 2, 3, 3, 4, 4, 4]
    np.testing.assert_allclose(persons.mean(np.arange(6.0)[:, None]), [(1 + 3 + 4.5) / 3])


def test_a_prior_of_a_bound_draws_records():
    (X, y, _), (public, *_) = visits(), visits(seed=1)
    prior = RandomTaskOracle(public, classes=[0, 1])
    plan = moments(L2LaplaceMechanism(1.0), prior=prior).plan(N, like=(X, y), groups=True)
    assert plan.mechanism.geometry.code is not None
    assert plan.target.sums_persons


def test_an_oracle_is_released_of_one_record_of_each_person():
    X, y, groups = visits()
    frame = pd.DataFrame(X.clip(-3, 3), columns=[*"abc"]).assign(who=groups)
    schema = Schema({name: Number(-3, 3) for name in "abc"}, classes=[0, 1])
    options = {"schema": schema, "mechanism": LaplaceMechanism(1000.0), "random_state": 0}
    with pytest.warns(UserWarning, match="epsilon=1000"):
        oracle = release_oracle(frame, y, groups="who", **options)
    assert (oracle.guarantee_.unit, oracle.guarantee_.n_samples) == ("person", N)
    assert oracle.tables_["a"].sum() == pytest.approx(N, abs=2)


# --- sampled


class Told(Target):
    """Keep the persons that it sees, each as the set of its records."""

    sums_persons = True

    def over_persons(self, X, *, counts, seed):
        ends = np.cumsum(counts)
        self.seen.append([frozenset(each[:, 0]) for each in np.split(X, ends[:-1])])
        return np.array([len(X)])

    def __call__(self, X, *, seed):
        raise AssertionError("records were seen alone")


def of_numbered_visits(n, rng):
    """Persons who come with 1 to 4 records that nobody else has, in no order."""
    groups = rng.permutation(np.repeat(np.arange(n), rng.integers(1, 5, n)))
    return rng.random((len(groups), 1)), None, None, groups


def test_a_pair_differs_in_one_person_with_all_records():
    oracle, target = as_oracle(of_numbered_visits), Told()
    form = DatasetForm.of(draw(oracle, 9, np.random.default_rng(0)))
    for pair in range(20):
        target.seen = []
        PairSource(target, oracle, 8, 0, form).evaluate(pair)
        one, another = target.seen
        differs = [i for i, both in enumerate(zip(one, another, strict=True)) if len({*both}) > 1]
        assert len(one) == len(set(one)) == 8
        assert len(differs) == 1
        assert another[differs[0]] not in one


def test_labels_of_a_person_are_flipped_together():
    """The last two datasets differ in the labels of one person, which are all alike then."""
    (X, y, groups), rng = visits(9), np.random.default_rng(0)
    drawn = Dataset(np.arange(len(y)), y, groups=np.sort(groups))
    oracle = PublicDataOracle(X, y, groups=groups)
    *_, one, another = neighbors("labels", oracle, lambda: drawn, rng)
    assert one.rows.X.tolist() == another.rows.X.tolist()
    persons = np.repeat(np.arange(8), one.counts)
    (who,) = set(persons[one.rows.y != another.rows.y])
    assert len(set(another.rows.y[persons == who])) == 1


def test_a_person_far_outside_counts_as_one_of_the_oracle_and_long_ones_are_cut():
    ends = (("X", ((0.0, 1.0),)), ("groups", ((1.0, 3.0),)))
    oracle, target = as_oracle(of_numbered_visits), Told()
    form = DatasetForm.of(draw(oracle, 9, np.random.default_rng(0)))
    alike = AlikeTarget(target, ends, oracle, form).with_stand_ins(4, seed=0)
    rows = np.array([0.1, 0.2, 9.0, 0.3, 1.2, 0.4, 0.5, 0.6, *np.full(6, 0.7)])[:, None]
    target.seen, counts = [], np.array([1, 2, 5, 6])
    alike.over_persons(rows, counts=counts, seed=0)
    (seen,), public = (
        target.seen,
        [
            frozenset(p[:, 0])
            for p in np.split(alike.stand_ins.rows.X, np.cumsum(alike.stand_ins.counts)[:-1])
        ],
    )
    assert seen[0] == {0.1}
    assert seen[1] == {*alike.stand_ins.take(np.array([1])).cut(3).rows.X[:, 0]}
    assert seen[2] == {0.3, 1.0, 0.4}  # the first three, and a number at the end of its range
    assert seen[3] <= public[3]  # six records are more than a range beyond three


def test_a_person_weighs_one_in_a_fit_whose_sensitivity_is_sampled():
    X, y, groups = visits()
    kept = {"tol": 1e-10, "C": 0.1}
    model = sampled(LogisticRegression(**kept), clip=None).fit(X, y, groups=groups)
    exact = LogisticRegression(**kept).fit(X, y, 1 / np.bincount(groups)[groups])
    np.testing.assert_allclose(model.estimator_.coef_, exact.coef_, rtol=1e-5)
    said = " ".join(str(dataclasses.replace(model.guarantee_, epsilon=1.0)).split())
    assert "Replacing one of 37 persons, with all of that person's records" in said
    assert "where a record drawn of the person, one of the replacement or both" in said
    assert "A record of a person is covered" not in said
    assert "weighted" in model.plan_.target.description
    audit = audit_estimator(model, X, y, pairs=3, n_search=100, n_final=100, rng=0)
    assert np.isfinite(audit.norms).all()
    plan = sampled(KNeighborsClassifier(5)).plan(N, like=(X, y), groups=True)
    assert not plan.target.weighs_persons  # it takes no weights
    assert ("records of a person", 1, 12) in plan.ranges


@pytest.mark.filterwarnings("ignore::UserWarning")  # a plan of few persons may be worth little
def test_an_estimate_of_persons_serves_them_alone(tmp_path):
    public, private = (
        pd.DataFrame(X, columns=[*"abc"]).assign(who=groups)
        for X, _, groups in (visits(seed=1), visits())
    )
    model = sampled(Ridge(), oracle=RandomTaskOracle(public, groups="who", y_scale=1.0))
    numbers = private["a"].to_numpy()
    plan = model.plan(N, groups=True)
    plan.sensitivity.save(tmp_path / "estimate.json")
    estimate = SensitivityEstimate.load(tmp_path / "estimate.json")
    given = {"sensitivity": estimate, "prior": plan.oracle}
    again = PrivateEstimator(Ridge(), mechanism=EXACT, **given)
    fitted = again.fit(private, numbers, groups="who")
    assert fitted.sensitivity_ == plan.sensitivity
    with pytest.raises(ValueError, match="release with groups"):
        again.fit(private.drop(columns="who"), numbers)


@pytest.mark.loop("effect", [0.0, 2.0])
def test_fresh_persons_are_covered_as_gamma_says(effect):
    """The largest of 9 norms covers 9 of 10 further pairs; 80 samplings, 4 standard errors."""

    def persons(n, rng):
        groups = np.repeat(np.arange(n), rng.integers(1, 9, n))
        X = (effect * rng.normal(size=n))[groups] + rng.normal(size=len(groups))
        return X[:, None], None, None, groups

    target, n, rng = of_persons(as_target(np.std)), 20, np.random.default_rng(1)
    fresh = []
    for _ in range(1000):
        X, _, _, groups = persons(n + 1, rng)
        fresh.append(abs(np.std(X[groups != n]) - np.std(X[groups != rng.integers(n)])))
    form = DatasetForm.of(draw(as_oracle(persons), n, rng))
    options = {"gamma": 0.1, "n_pairs": 9, "clip": None, "strata": None}
    values = [
        SensitivitySampler(persons, random_state=seed, **options)
        .sample(target, n, "l1", form)
        .value
        for seed in range(80)
    ]
    covered = np.mean(np.array(fresh)[:, None] <= values, axis=0)
    assert np.mean(covered) == pytest.approx(0.9, abs=4 * 0.09 / np.sqrt(80))


def test_oracles_of_persons_draw_all_records_of_each():
    X, _, groups = visits()
    sizes = np.bincount(groups)
    for given in (groups, [f"p{each}" for each in groups], pd.Series(groups, dtype="category")):
        oracle = RandomTaskOracle(X, classes=[0, 1], groups=given, person_noise=1.0)
        drawn, y, _, codes = oracle(50, np.random.default_rng(0))
        assert set(np.unique(codes)) == set(range(50))
        for person in range(50):
            (own,) = {
                groups[np.flatnonzero(X[:, 0] == row[0])[0]] for row in drawn[codes == person]
            }
            assert np.sum(codes == person) == sizes[own]
            assert len(set(y[codes == person])) == 1
    oracle = PersonsOracle(RandomTaskOracle(X, classes=["a", "b"]), sizes=[2, 5])
    _, _, _, codes = oracle(50, np.random.default_rng(0))
    assert {*np.bincount(codes)} == {2, 5}
    assert oracle.classes_.tolist() == ["a", "b"]
    assert "unrelated records" in oracle.description
    with pytest.raises(ValueError, match="same records for 30"):
        plan_release(
            np.mean,
            n_samples=2,
            mechanism=EXACT,
            groups=True,
            sensitivity=SensitivitySampler(lambda n, rng: (X[:n], None, None, np.arange(n))),
        )


def test_a_function_sees_all_records_of_persons_where_it_is_sampled():
    public, frame = (
        pl.DataFrame({"a": X[:, 0], "who": groups}) for X, _, groups in (visits(seed=1), visits())
    )
    oracle = PublicDataOracle(public, groups="who", name="visits")
    released = release(
        lambda X: X["a"].mean(),
        frame,
        mechanism=EXACT,
        sensitivity=SensitivitySampler(oracle, gamma=0.2, clip=None, random_state=0),
        groups="who",
    )
    assert released.value == pytest.approx(frame["a"].mean())
    assert released.guarantee.unit == "person"


# --- refusals


def test_the_kind_of_an_oracle_must_be_that_of_the_release():
    (X, y, groups), (*public, _) = visits(), visits(seed=1)
    records = PublicDataOracle(*public)
    law = KnownSensitivity(1.0, "l1", N, gamma=0.1, preconditions="some law")
    for given, words in ((records, "draw persons"), (law, "must be that of the oracle")):
        sampler = given if given is law else SensitivitySampler(given, random_state=0)
        ledger = PrivacyAccountant(":memory:", epsilon=1.0, unit="person")
        model = moments(LaplaceMechanism(1.0), sensitivity=sampler, accountant=ledger)
        for call in (
            lambda model=model: model.fit(X, y, groups=groups),
            lambda model=model: model.plan(N, like=(X, y), groups=True),
            lambda options={"sensitivity": sampler, "accountant": ledger}: release(
                np.mean, X, mechanism=LaplaceMechanism(1.0), groups=groups, **options
            ),
        ):
            with pytest.raises(ValueError, match=words):
                call()
        assert ledger.total().n_releases == 0
        assert not hasattr(model, "estimator_")


def test_oracles_of_persons_are_for_releases_of_persons():
    (X, y, groups), (*public, ids) = visits(), visits(seed=1)
    records, persons = PublicDataOracle(*public), PublicDataOracle(*public, groups=ids)
    sampler = SensitivitySampler(persons, random_state=0)
    calls = {
        lambda: moments(sensitivity=sampler).fit(X, y): "release with groups",
        lambda: moments(sensitivity=sampler).plan(N): "release with groups",
        lambda: moments(sensitivity=1.0, prior=persons).fit(X, y, groups=groups): "with groups",
        lambda: sampler.sample(np.mean, N, "l1"): "must yield records, but for a plan",
        lambda: find_large_sensitivity(np.mean, persons, N): "must yield records",
        lambda: RandomTaskOracle(X, classes=[0, 1], person_noise=0.1): "else None",
        lambda: RandomTaskOracle(X, classes=[0, 1], groups=groups, person_noise=2): "in \\[0, 1\\]",
        lambda: PersonsOracle(records, [0, 1]): "whole numbers of at least 1",
        lambda: sampled(
            LogisticRegression(), LaplaceMechanism(9.0), oracle=persons, shares={"check": 0.5}
        ).plan(N, groups=True): "sampled sensitivity of records",
        lambda: PublicDataOracle(X, y, groups=groups[1:]): "different lengths",
    }
    for call, words in calls.items():
        with pytest.raises(ValueError, match=words):
            call()


def test_a_sampled_plan_of_records_becomes_none_of_persons():
    sampler = SensitivitySampler(PublicDataOracle(visits(1)[0]), random_state=0)
    plan = plan_release(np.mean, n_samples=N, mechanism=EXACT, sensitivity=sampler)
    with pytest.raises(ValueError, match="must be that of the oracle"):
        dataclasses.replace(plan, unit="person")


def test_wrong_calls_are_refused_and_count_no_record():
    X, y, groups = visits()
    model = moments()
    for call, words in {
        lambda: model.fit(X, y, groups=groups[1:]): "different lengths",
        lambda: model.fit(X, y[1:], groups=groups): "different lengths",
        lambda: model.fit(X, y, groups=groups[:, None]): "one id for each row",
        lambda: model.fit(X, y, groups="who"): "name of a column",
        lambda: model.fit(pl.LazyFrame({"who": groups}), y, groups="who"): "must come as",
        lambda: model.fit(X, y, groups=[None] * len(X)): "at least one person",
        lambda: model.fit(X, y, np.ones(len(X)), groups): "sample_weight",
        lambda: model.fit(X[:, :, None], y, groups=groups): "two-dimensional",
        lambda: moments(unit="person").fit(X, y): "must be given with unit='person'",
        lambda: moments(unit="person").plan(9, like=(X, y)): "must be given with unit='person'",
        lambda: moments(unit="patient").fit(X, y): "be 'person'",
        lambda: moments(records_per_person=3).fit(X, y): "without groups",
        lambda: moments(records_per_person=0.5).fit(X, y): "in \\[1, inf\\)",
        lambda: moments(sensitivity=1.0, classes=None).fit(X, y, groups=groups): "must declare",
        lambda: WAYS["hinge"](records_per_person=3).fit(X, y, groups=groups): "must be 1",
        lambda: (
            moments().set_params(records_per_person=3).fit(X, y, groups=groups)
        ): "given a 'second_moment'",
        lambda: model.plan(N + 1, (X, y), groups=True).execute(X, y, groups=groups): "38 persons",
        lambda: model.plan(N, (X, y), groups=True).execute(X, y): "must be given",
        lambda: model.plan(len(X), (X, y)).execute(X, y, groups=groups): "must not be given",
        lambda: model.plan(N, (X, y), groups=groups): "True for a plan",
        lambda: PrivateSearchCV(moments(unit="person"), {"mechanism__epsilon": [1.0]}).fit(X, y): (
            "PrivateSearchCV.fit"
        ),
    }.items():
        with pytest.raises((ValueError, TypeError), match=words) as raised:
            call()
        if "sample" not in words:
            assert str(len(X)) not in str(raised.value)


def test_a_table_of_an_engine_is_refused():
    table = Elsewhere((2, 1), ["a"], ["float64"])
    with pytest.raises(TypeError, match="in memory"):
        with_persons(Dataset(table, groups=[0, 1]))


def test_the_unit_must_be_known_to_a_search_of_scikit_learn():
    X, y, groups = visits()
    model = moments(L2LaplaceMechanism(1.0), unit="person")
    grid = {"mechanism__epsilon": [1.0, 2.0]}
    with pytest.raises(ValueError, match="set_fit_request"):
        GridSearchCV(model, grid, cv=GroupKFold(2), error_score="raise").fit(X, y, groups=groups)
    with config_context(enable_metadata_routing=True):
        asked = model.set_fit_request(groups=True)
        found = cross_validate(
            asked, X, y, cv=GroupKFold(3), params={"groups": groups}, return_estimator=True
        )
        n_persons = [each.guarantee_.n_samples for each in found["estimator"]]
        assert sum(n_persons) == 2 * N
        assert {each.guarantee_.unit for each in found["estimator"]} == {"person"}


# --- ledgers


def test_a_ledger_has_one_unit(tmp_path):
    person = PrivacyGuarantee(epsilon=1.0, n_samples=10, unit="person")
    record = dataclasses.replace(person, unit="record")
    sampled = dataclasses.replace(person, gamma=0.1)
    path = tmp_path / "persons.db"
    ledger = PrivacyAccountant(path, epsilon=3.0, unit="person")
    ledger.spend(sampled)
    X, y, groups = visits()
    model = moments(LaplaceMechanism(1.0), accountant=ledger)
    for call in (lambda: ledger.spend(record), lambda: model.fit(X, y)):
        with pytest.raises(ValueError, match="is for persons"):
            call()
    model.fit(X, y, groups=groups)
    assert PrivacyAccountant.open(path).total().epsilon == 2.0
    assert "unit='person'" in repr(PrivacyAccountant.open(path))
    ledger.check(moments(LaplaceMechanism(1.0), unit="person"), 1)
    with pytest.raises(LedgerError, match="other limits"):
        PrivacyAccountant(path, epsilon=3.0)
    of_records = PrivacyAccountant(tmp_path / "records.db", epsilon=3.0)
    of_records.spend(person)
    of_records.spend(record)
    with pytest.raises(ValueError, match="about other pairs"):
        of_records.spend(sampled)
    with pytest.raises(ValueError, match="about other pairs"):
        compose(record, sampled)
    assert of_records.total().epsilon == 2.0
    with pytest.raises(ValueError, match="'unit'"):
        PrivacyAccountant(":memory:", epsilon=1.0, unit="visit")


def test_a_ledger_of_the_last_version_is_read_as_one_of_records(tmp_path):
    path = tmp_path / "old.db"
    PrivacyAccountant(path, epsilon=3.0).spend(PrivacyGuarantee(epsilon=1.0))
    with closing(sqlite3.connect(path)) as file:
        file.execute("ALTER TABLE ledger DROP COLUMN unit")
        file.execute("PRAGMA user_version = 3")
        file.commit()
    ledger = PrivacyAccountant(path, epsilon=3.0)
    ledger.spend(PrivacyGuarantee(epsilon=1.0))
    assert ledger.total().epsilon == 2.0
    with pytest.raises(LedgerError, match="other limits"):
        PrivacyAccountant(path, epsilon=3.0, unit="person")


# --- what is said


def test_a_sum_of_promises_is_about_records_where_one_is():
    person = PrivacyGuarantee(epsilon=1.0, n_samples=10, unit="person")
    record = PrivacyGuarantee(epsilon=1.0, n_samples=50)
    assert "A person with several records is not covered." in str(record)
    assert compose(person, person).unit == "person"
    for both in (compose(person, record), compose(record, person)):
        assert (both.unit, both.n_samples) == ("record", 50)
    with pytest.raises(ValueError, match="'unit'"):
        PrivacyGuarantee(epsilon=1.0, unit="visit")


def test_a_saved_release_of_persons_says_so(tmp_path):
    X, y, groups = visits()
    moments(L2LaplaceMechanism(1.0)).fit(X, y, groups=groups).save(tmp_path / "folder")
    assert load(tmp_path / "folder").guarantee.unit == "person"
    card = (tmp_path / "folder" / "README.md").read_text()
    assert "two candidates the person is" in card
    assert "all other persons" in card


def test_persons_with_visits_as_the_guide_measures_them():
    """Mixed effects, 2,000 persons: accuracy by record at epsilon .3."""
    from scipy.special import expit

    spread = np.random.default_rng(5).normal(size=(6, 6)) / np.sqrt(6)
    slopes = np.random.default_rng(6).normal(size=6)

    def make(n, rng):
        person = rng.normal(size=(n, 6)) @ spread
        groups = np.repeat(np.arange(n), 1 + rng.binomial(19, expit(-0.9 + person[:, 0])))
        X = person[groups] + 0.6 * rng.normal(size=(len(groups), 6)) @ spread
        odds = 1.5 * X @ slopes + 1.5 * rng.normal(size=n)[groups] - 1.0
        return X, (rng.random(len(groups)) < expit(odds)).astype(int), groups

    rng = np.random.default_rng(0)
    public, private, test = make(500, rng), make(2000, rng), make(2000, rng)
    scaler = StandardScaler().fit(public[0])
    radius = np.median(np.linalg.norm(scaler.transform(public[0]), axis=1))
    pipeline = make_pipeline(FrozenEstimator(scaler), ClipNorm(radius), MomentClassifier())
    options = {"sensitivity": "known", "classes": [0, 1]}
    scores = []
    for seed in range(4):
        model = PrivateEstimator(
            pipeline, mechanism=L2LaplaceMechanism(0.3), random_state=seed, **options
        )
        scores.append(model.fit(*private[:2], groups=private[2]).score(*test[:2]))
    assert np.mean(scores) == pytest.approx(0.842, abs=0.015)
    oracle = RandomTaskOracle(public[0], classes=[0, 1], groups=public[2], least_share=0.3)
    model = PrivateEstimator(
        make_pipeline(FrozenEstimator(scaler), LogisticRegression(C=0.1)),
        mechanism=LaplaceMechanism(0.3),
        sensitivity=SensitivitySampler(oracle, gamma=0.2, random_state=0),
        random_state=0,
    )
    score = model.fit(*private[:2], groups=private[2]).score(*test[:2])
    assert score == pytest.approx(0.876, abs=0.015)
