"""Records unlike the oracle's: what is clipped, what is replaced, and that pairs stay alike."""

import functools
import json
import pickle
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    FunctionTarget,
    LaplaceMechanism,
    PrivacyAccountant,
    PrivateEstimator,
    PublicDataOracle,
    RandomTaskOracle,
    SensitivityEstimate,
    SensitivitySampler,
    UniformOracle,
    plan_release,
    release,
)
from skdp.core.dataset import Dataset, neighboring_pair
from skdp.core.plain import as_doubles
from skdp.core.schema import DatasetForm
from skdp.core.target import as_target
from skdp.functions.additive import AdditiveTarget
from skdp.oracles.adapters import as_oracle
from skdp.sensitivity.likeness import AlikeTarget, draw_ranges, ends_of
from skdp.sensitivity.strata import LAYOUTS, neighbors

MECHANISM = LaplaceMechanism(1.0, code=None)
RNG = np.random.default_rng(0)
BOX = UniformOracle([(0, 1), (10, 20)])


def column_means(X):
    return np.asarray(X, dtype=float).reshape(len(X), -1).mean(axis=0)


def sampler(oracle, **options):
    return SensitivitySampler(oracle, **{"gamma": 0.2, "random_state": 0} | options)


def alike(public, private, **options):
    """Return private records as they count, beside public ones of the same form."""
    table = public if isinstance(public, tuple) else (public,)
    dataset = Dataset(*(private if isinstance(private, tuple) else (private,)))
    schema = DatasetForm.of(dataset)
    oracle = as_oracle(
        lambda n, rng: Dataset(*table).take(rng.integers(Dataset(*table).n_records, size=n)).parts
    )
    ranges = draw_ranges(oracle, dataset.n_records, 0, schema, **{"has_labels": False} | options)
    target = AlikeTarget(as_target(np.size), ranges, oracle, schema)
    drawn = target.with_stand_ins(dataset.n_records, seed=3)
    return drawn.alike(dataset, lambda: None), drawn.stand_ins


PUBLIC = np.column_stack([np.linspace(0, 10, 50), np.linspace(-1, 1, 50), np.linspace(5, 6, 50)])
PRIVATE = np.array([[1.0, 0.5, 5.5], [10.4, -1.5, 5.5], [1.0, np.nan, 5.2], [1e9, 0.0, 5.5]])
CLIPPED = np.array([[1.0, 0.5, 5.5], [10.0, -1.0, 5.5], [1.0, np.nan, 5.2]])


FLOATS = {
    "numpy": np.asarray,
    "single": lambda X: X.astype(np.float32),
    "pandas": lambda X: pd.DataFrame(X, columns=list("abc")),
    "mixed": lambda X: pd.DataFrame(X, columns=list("abc")).astype({"a": "float32"}),
    "nullable": lambda X: pd.DataFrame(X, columns=list("abc")).astype("Float64"),
    "repeated": lambda X: pd.DataFrame(X, columns=["a", "a", "b"]),
    "polars": lambda X: pl.DataFrame(X, schema=list("abc")),
    "polars, single": lambda X: pl.DataFrame(X, schema=list("abc")).cast(pl.Float32),
}


@pytest.mark.parametrize("kind", FLOATS)
def test_numbers_are_clipped_in_their_own_type(kind):
    make = FLOATS[kind]
    if kind == "repeated":  # no oracle yields such a frame
        ranges = draw_ranges(PublicDataOracle(PUBLIC), 4, 0, DatasetForm.of(Dataset(PUBLIC)), True)
        target = AlikeTarget(as_target(np.size), ranges, None, None)
        counted = target.alike(Dataset(make(PRIVATE[:3])), lambda: None)
    else:
        counted, drawn = alike(make(PUBLIC), make(PRIVATE))
        np.testing.assert_array_equal(as_doubles(counted.X)[3], as_doubles(drawn.X)[3])
    assert DatasetForm.of(Dataset(counted.X)) == DatasetForm.of(Dataset(make(PRIVATE)))
    np.testing.assert_allclose(as_doubles(counted.X)[:3], CLIPPED, rtol=1e-6)


INTEGERS = {
    "numpy": lambda values: np.array(values, dtype=np.int64)[:, None],
    "small": lambda values: np.array(values, dtype=np.int8)[:, None],
    "vector": lambda values: np.array(values, dtype=np.int32),
    "pandas": lambda values: pd.DataFrame({"a": values}),
    "nullable": lambda values: pd.DataFrame({"a": pd.array(values, dtype="Int64")}),
    "series": lambda values: pd.Series(values, dtype="int16"),
    "polars": lambda values: pl.DataFrame({"a": pl.Series(values, dtype=pl.Int16)}),
}


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_stay_integers(kind):
    make = INTEGERS[kind]
    counted, _ = alike(make([3, 5, 30]), make([2, 31, 7]))
    assert DatasetForm.of(Dataset(counted.X)) == DatasetForm.of(Dataset(make([2, 31, 7])))
    assert np.ravel(np.asarray(counted.X)).tolist() == [3, 30, 7]


def test_a_number_outside_leaves_gaps_of_other_records():
    """The 0 / 0 of a nullable column, which is NaN and not missing in some versions of pandas."""
    public = pd.DataFrame({"a": PUBLIC[:, 0]}).astype("Float64")
    ratios = pd.Series([1.0, 0.0, 2.0], dtype="Float64") / pd.Series([1.0, 0, 1], dtype="Float64")
    counted = []
    for number in (3.0, 10.2):
        ratios[0] = number
        counted.append(alike(public, ratios.to_frame("a"))[0].X["a"])
    assert counted[1][0] == 10
    assert repr(counted[0][1]) == repr(counted[1][1])


def test_frames_end_in_one_layout():
    """Else sums over them are rounded in another order if a record is far."""
    public = pd.DataFrame({"a": PUBLIC[:, 0], "b": PUBLIC[:, 1], "whole": 1, "c": PUBLIC[:, 2]})
    private, layouts = public.copy(), []
    for number in (5.0, 10.4, 1e9):
        private.loc[0, "a"] = number
        X = alike(public, private)[0].X
        some = (X[[*names]].to_numpy() for names in (["a", "c"], ["c", "whole"], X.columns))
        layouts.append([each.strides for each in some])
    assert layouts[0] == layouts[1] == layouts[2]


def test_an_oracle_is_asked_for_as_many_records_as_pairs_have():
    def some_of_few(n_samples, rng):
        return rng.choice(PUBLIC, n_samples, replace=False)  # fails if there are fewer

    ranges = draw_ranges(as_oracle(some_of_few), 30, 0, DatasetForm.of(Dataset(PUBLIC)), False)
    np.testing.assert_array_equal(ranges[0][1], np.transpose([PUBLIC.min(0), PUBLIC.max(0)]))


def test_what_holds_no_numbers_stays():
    """Flags that the oracle's draws lack, words, categories and objects."""
    values = {
        "flag": [0, 1, 1],
        "truth": [True, False, True],
        "word": ["a", "z", "1000"],
        "kind": pd.Categorical([1, 2, 2], categories=[1, 2]),
        "any": np.array([1, "b", None], dtype=object),
    }
    private = pd.DataFrame(values)
    public = pd.DataFrame({name: values[name][:1] for name in values})
    public["kind"] = public["kind"].astype(private["kind"].dtype)
    counted, _ = alike(pd.concat([public] * 2), private)
    pd.testing.assert_frame_equal(counted.X, private)
    words = ["so", "it", "is"]
    assert words == alike(words, words)[0].X


def test_sparse_records_are_clipped_where_they_store_numbers():
    public = sparse.csr_array(np.array([[0, 2.0, -3, 4, 1], [0, 3, -2, 5, 0]]))
    private = sparse.csc_array(np.array([[0, 3.1, 0, 0, 1], [0, 0, -3.1, 1, 1], [0, 50, 0, 0, 0]]))
    counted, drawn = alike(public, private)
    assert counted.X.format == "csc"
    expected = [[0, 3, 0, 0, 1], [0, 0, -3, 1, 1], drawn.X.toarray()[2].tolist()]
    np.testing.assert_array_equal(counted.X.toarray(), expected)


def test_weights_and_responses_are_clipped_and_labels_are_not():
    X, y, weights = np.linspace(0, 9, 10), np.linspace(5, 7, 10), np.linspace(1, 2, 10)
    private = np.array([4.0, 5.0, 6.0]), np.array([4.0, 7.5, 1e3]), np.array([1.5, 99.0, 0.5])
    counted, drawn = alike((X, y, weights), private)
    assert counted.y.tolist() == [5.0, 7.0, drawn.y[2]]
    assert counted.sample_weight.tolist() == [1.5, 2.0, drawn.sample_weight[2]]
    assert counted.X.tolist() == [4.0, 5.0, drawn.X[2]]
    counted, _ = alike((X, y, weights), private, has_labels=True)
    assert counted.y.tolist() == private[1].tolist()


def test_far_is_one_number_beyond_a_range_or_a_quarter_of_them_outside():
    public = np.vstack([np.zeros(8), np.full(8, 10.0)])
    private = np.full((5, 8), 5.0)
    private[0, 0] = 19.9  # below two ranges
    private[1, 0] = 20.1
    private[2, :2] = 11  # a quarter
    private[3, :3] = -1  # more
    private[4] = 10.4  # within 5 %
    counted, drawn = alike(public, private)
    replaced = np.isin(counted.X, (0, 10)).all(axis=1) & ((private != 10.4).any(axis=1))
    assert replaced.tolist() == [False, True, False, True, False]
    np.testing.assert_array_equal(counted.X[[1, 3]], drawn.X[[1, 3]])
    assert counted.X[[0, 2, 4], 0].tolist() == [10, 10, 10]
    target = AlikeTarget(as_target(np.size), (("X", ((0.0, 10.0),) * 8),), None, None)
    target.stand_ins = Dataset(np.full((5, 8), 12.0))  # a draw may be outside the ranges too
    assert target.alike(Dataset(private), lambda: None).X[1].tolist() == [10] * 8


@pytest.mark.parametrize("code", [None, "learned"])
def test_if_all_are_far_the_value_does_not_depend_on_them(code):
    mechanism = LaplaceMechanism(1.0, code=code)
    values = [
        release(
            column_means, X, mechanism=mechanism, sensitivity=sampler(BOX), random_state=1
        ).value.tobytes()
        for X in (np.full((30, 2), 1e6), -RNG.uniform(100, 200, size=(30, 2)))
    ]
    assert values[0] == values[1]


def test_a_private_value_is_that_of_the_records_as_they_count():
    """A mean with one record of 1e6 moves by two sensitivities at most; else by thousands."""
    X = BOX(30, np.random.default_rng(1))
    wild = X.copy()
    wild[3, 0] = 1e6
    exact = LaplaceMechanism(np.inf, code=None)
    for clip, least, most in (("ranges", 0, 2.0), (None, 1e3, np.inf)):
        plan = plan_release(
            column_means, n_samples=30, mechanism=exact, sensitivity=sampler(BOX, clip=clip)
        )
        values = [plan.execute(each, random_state=0).value for each in (X, wild)]
        moved = np.abs(values[0] - values[1]).sum() / plan.sensitivity.value
        assert least <= moved <= most


def test_an_oracle_that_fails_costs_nothing(tmp_path):
    is_down = False

    def law(n_samples, rng):
        if is_down:
            raise ConnectionError("The simulator is down.")
        return BOX(n_samples, rng)

    budget = PrivacyAccountant(tmp_path / "budget.db", epsilon=5.0, gamma=0.5)
    plan = plan_release(column_means, n_samples=30, mechanism=MECHANISM, sensitivity=sampler(law))
    is_down = True
    with pytest.raises(ConnectionError):
        plan.execute(BOX(30, np.random.default_rng(1)), accountant=budget)
    assert budget.total().epsilon == 0


def test_ordinary_records_are_released_as_before():
    table = np.random.default_rng(2).normal(size=(60, 3))
    oracle, model = RandomTaskOracle(table, classes=[0, 1]), LogisticRegression()
    X, y = table[:40].copy(), np.arange(40) % 2
    fits = [
        PrivateEstimator(
            model,
            mechanism=LaplaceMechanism(1.0, code="learned"),
            sensitivity=sampler(oracle, clip=clip, n_pairs=5),
            random_state=0,
        ).fit(X, y)
        for clip in ("ranges", None)
    ]
    assert np.array_equal(*(fit.estimator_.coef_ for fit in fits))
    assert fits[0].sensitivity_.value == fits[1].sensitivity_.value


def heavy(n_samples, rng):
    """Records of a law with a heavy tail, which are often clipped and replaced, and rare labels."""
    X = rng.standard_t(0.6, size=(n_samples, 1))
    return X, (rng.random(n_samples) < 0.2).astype(float)


def weighted_sum(X, y):
    return np.sum(X[:, 0] * (1 + np.arange(len(X)) % 3) * (0.5 + y))


@pytest.mark.parametrize("strata", [None, "classes"])
def test_private_pairs_are_exchangeable_with_sampled_ones(strata, monkeypatch):
    """Ranges of few draws, so that many records are replaced, in private pairs as in sampled."""
    monkeypatch.setattr("skdp.sensitivity.likeness.N_DATASETS", (1, 1))
    oracle, n = as_oracle(heavy), 12
    drawn = sampler(oracle, gamma=None, n_pairs=800, strata=strata)
    estimate = drawn.sample(weighted_sum, n - 1, "l1")
    target = estimate.bounded(
        as_target(weighted_sum),
        oracle,
        DatasetForm.of(Dataset(*heavy(3, np.random.default_rng(0)))),
    )
    rng, norms = np.random.default_rng(1), []
    for seed in range(800):
        records = Dataset(*heavy(n, rng))
        datasets = (
            neighbors(strata, oracle, lambda: Dataset(*heavy(n, rng)), rng)
            if strata
            else neighboring_pair(records, int(rng.integers(n - 1)))
        )
        private = target.with_stand_ins(n - 1, seed)
        values = [private(*each.parts, seed=seed) for each in datasets]
        norms.append([abs(values[i] - values[j]) for i, j in LAYOUTS[strata].pairs])
    replaced = target._are_far(Dataset(*heavy(10_000, rng))).mean()
    assert 0.02 < replaced < 0.5
    for ours, theirs in zip(np.atleast_2d(estimate.norms), np.transpose(norms), strict=True):
        assert stats.ks_2samp(ours, theirs).pvalue > 1e-9


def test_record_pairs_equal_two_calls(monkeypatch):
    """Pairs of two records see the same clip, and have one stand-in for both."""
    monkeypatch.setattr("skdp.sensitivity.likeness.N_DATASETS", (1, 1))

    def identity(X):
        return X

    def law(n_samples, rng):
        return rng.standard_t(1.0, size=(n_samples, 1))

    law.independent_records = True
    closed = sampler(law, gamma=None, n_pairs=1000).sample(AdditiveTarget(identity), 20, "l1")
    called = sampler(law, gamma=None, n_pairs=1000).sample(np.mean, 20, "l1")
    low, high = closed.ranges[0][1][0]
    assert closed.norms.max() <= (high - low) / 20 * 1.001
    assert stats.ks_2samp(closed.norms, called.norms).pvalue > 1e-9


def test_an_estimate_keeps_its_ranges_and_needs_its_oracle(tmp_path):
    estimate = sampler(BOX).sample(np.mean, 30, "l1")
    ((part, ends),) = estimate.ranges
    assert part == "X"
    np.testing.assert_allclose(ends, [(0, 1), (10, 20)], atol=0.05)
    estimate.save(tmp_path / "estimate.json")
    loaded = SensitivityEstimate.load(tmp_path / "estimate.json")
    assert loaded == estimate
    assert loaded.identity == estimate.identity
    X = BOX(30, np.random.default_rng(1))
    options = {"mechanism": MECHANISM, "random_state": 0}
    expected = release(np.mean, X, sensitivity=estimate, **options).value
    again = loaded.with_prior(SensitivitySampler(BOX))
    assert release(np.mean, X, sensitivity=again, **options).value == expected
    other = loaded.with_prior(SensitivitySampler(UniformOracle([(0, 2), (10, 20)])))
    for wrong in (loaded, other):
        with pytest.raises(ValueError, match=r"so it needs this oracle\. Got"):
            release(np.mean, X, sensitivity=wrong, **options)


def test_oracles_of_one_description_are_told_apart_by_their_content():
    tables = [RNG.normal(size=(40, 2)), 100 * RNG.normal(size=(40, 2))]
    means = FunctionTarget(column_means, key="means")
    options = {"n_samples": 30, "mechanism": MECHANISM}
    plans = [
        plan_release(means, sensitivity=sampler(PublicDataOracle(table)), **options)
        for table in tables
    ]
    first, second = (plan.sensitivity for plan in plans)
    assert first.oracle == second.oracle
    public = SensitivitySampler(PublicDataOracle(tables[0].copy()))
    wrong = first.with_prior(SensitivitySampler(PublicDataOracle(tables[1])))
    for change in (
        lambda: plan_release(means, sensitivity=wrong, **options),
        lambda: replace(plans[0], oracle=plans[1].oracle),
        lambda: replace(plans[0], sensitivity=second),
        lambda: replace(plans[0], oracle=None),
    ):
        with pytest.raises(ValueError, match="so it needs this oracle"):
            change()
    replace(plans[0], oracle=public.draws_from)
    values = first.to_dict()
    del values["oracle_key"]  # as an earlier version stored it
    replace(plans[0], sensitivity=SensitivityEstimate.from_dict(values), oracle=plans[1].oracle)


def test_an_oracle_that_keeps_something_has_no_key():
    law = PublicDataOracle(PUBLIC)
    law.drawn = []

    def draw(n_samples, rng, draws=law):
        draws.drawn.append(n_samples)
        return draws(n_samples, rng)

    draw.__skdp_key__ = "named"
    keeps = functools.partial(draw, draws=law)
    assert sampler(keeps).sample(np.mean, 30, "l1").oracle_key == ""
    assert sampler(draw).sample(np.mean, 30, "l1").oracle_key != ""


def test_an_estimate_without_ranges_is_of_records_as_they_are():
    values = sampler(BOX, clip=None).sample(np.mean, 30, "l1").to_dict()
    del values["ranges"]  # as an earlier version stored it
    old = SensitivityEstimate.from_dict(json.loads(json.dumps(values)))
    X = np.full((30, 2), 1e3)
    released = release(np.mean, X, mechanism=MECHANISM, sensitivity=old)
    assert released.value == pytest.approx(1e3, abs=100)
    assert "count as they are" in str(released.guarantee)


def test_plan_and_guarantee_say_it():
    model = PrivateEstimator(
        Ridge(),
        mechanism=MECHANISM,
        sensitivity=sampler(UniformOracle([(0, 1)] * 6, y_bounds=(3, 4))),
    )
    plan = model.plan(40)
    assert [each.column for each in plan.ranges] == [*range(6), "y"]
    np.testing.assert_allclose(pd.DataFrame(plan.ranges)["high"], [1] * 6 + [4], atol=0.05)
    assert "3 more in plan.ranges" in str(plan)
    said = " ".join(str(plan.guarantee).split())
    assert "A record far outside is replaced by one of the oracle's." in said
    model.sensitivity.set_params(clip=None)
    assert model.plan(40).ranges == []
    assert (
        plan_release(
            np.mean, n_samples=3, like=PRIVATE, mechanism=MECHANISM, sensitivity=1.0
        ).ranges
        == []
    )
    with pytest.raises(ValueError, match=r"'clip' parameter .* must be 'ranges' or None"):
        sampler(BOX, clip="minmax").order_statistic()


def test_neither_counts_nor_extremes_leave(leak_search):
    extreme = 98765.4321
    X = BOX(40, np.random.default_rng(5))
    X[:7, 0] = extreme
    X[7:9, 1] = 20.4321987
    y = (X[:, 1] > 15).astype(int)
    y[:2] = 0, 1
    model = PrivateEstimator(
        make_pipeline(StandardScaler(), LogisticRegression()),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=sampler(RandomTaskOracle(BOX(50, RNG), classes=[0, 1]), n_pairs=4),
    ).fit(X, y)
    held = pickle.dumps([model.plan_, model._release, model.estimator_, model.sensitivity_])
    for number in (extreme, 20.4321987):
        assert np.float64(number).tobytes() not in held
        assert repr(number).encode() not in held
    like = BOX(40, np.random.default_rng(6))
    other = PrivateEstimator(**model.get_params(deep=False)).fit(like, y)
    assert other.plan_.ranges == model.plan_.ranges
    assert other.guarantee_ == model.guarantee_


def test_integers_beyond_doubles_stay():
    numbers = np.array([[2**62 + 1, 3], [2**63 - 1, 4]])
    for make in (np.asarray, pd.DataFrame, pl.from_numpy):
        counted, _ = alike(make(numbers[:1]), make(numbers))
        assert np.asarray(counted.X).tolist() == [[2**62 + 1, 3], [2**63 - 1, 3]]


def test_ends_of_what_is_missing_or_infinite():
    ends = ends_of(np.array([[np.nan, np.inf, 1], [np.nan, 2, 3]]))
    np.testing.assert_array_equal(ends, [[np.nan, 2, 1], [np.nan, 2, 3]])
