"""Pairs in strata: what they are, whom they cover, and what is refused."""

import functools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.cluster import KMeans
from sklearn.feature_selection import f_classif, f_regression
from sklearn.linear_model import LogisticRegression, Ridge

from skdp import (
    FunctionTarget,
    GaussianMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    RandomTaskOracle,
    SensitivityEstimate,
    SensitivitySampler,
)
from skdp.audit import audit_estimator
from skdp.displays import SensitivityDisplay
from skdp.risk import joint_risk
from skdp.sensitivity import OrderStatistic, order_statistic

X = np.random.default_rng(0).normal(size=(200, 3))
LABELS = np.array(["a", "b", "c"])
TWO = RandomTaskOracle(X, classes=["a", "b"])
THREE = RandomTaskOracle(X, classes=LABELS)


def counts(X, y):
    return (np.asarray(y)[:, None] == LABELS).sum(axis=0).astype(float)


def class_mean(X, y):
    """The mean of the class that is last in the alphabet, which is rare in half of the tasks."""
    return X[y == "b"].mean(axis=0)


COUNTS = FunctionTarget(counts, key="counts")
MEAN = FunctionTarget(class_mean, key="class-mean")


def sample(target=COUNTS, oracle=TWO, n=60, **options):
    options = {"n_pairs": 40, "gamma": None, "random_state": 0} | options
    return SensitivitySampler(oracle, **options).sample(target, n, "l1")


@functools.cache
def fresh_norms():
    return sample(MEAN, n_pairs=2000, random_state=1).norms


def sorted_frames(n_samples, rng):
    """Records in the order of their labels, which the rules of oracles do not allow."""
    labels = np.sort(rng.choice(["a", "b"], p=[0.9, 0.1], size=n_samples))
    return pd.DataFrame({"x": rng.normal(size=n_samples)}), pd.Series(labels)


def weighted(n_samples, rng):
    drawn, y = THREE(n_samples, rng)
    return drawn, y, rng.uniform(size=n_samples)


def test_two_classes_change_their_counts_in_one_stratum_only():
    for oracle in (TWO, sorted_frames):
        norms = sample(oracle=oracle, strata="classes").norms
        assert norms.shape == (3, 40)
        np.testing.assert_array_equal(norms, np.repeat([[0.0], [2.0], [0.0]], 40, axis=1))


@pytest.mark.parametrize("oracle", [THREE, weighted], ids=["shipped", "weighted"])
def test_the_rarest_class_of_each_draw_decides(oracle):
    """Records of other classes are of equal classes as often as not, by lot."""

    def rarest(X, y, *weights):
        found = counts(X, y)
        # the draw has one record more, so a tie may be broken there
        return found[np.argsort(found)[0]] if np.ptp(np.sort(found)[:2]) > 2 else math.nan

    target = FunctionTarget(rarest, key="rarest")
    norms = sample(target, oracle, n_pairs=200, strata="classes").norms
    assert np.isfinite(norms).mean() > 0.6
    for row, change in zip(norms, [0, 1, 0], strict=True):
        assert set(row[np.isfinite(row)]) == {change}
    others = sample(
        FunctionTarget(lambda *dataset: counts(*dataset[:2])), oracle, n_pairs=200, strata="classes"
    ).norms[0]
    assert 60 < (others == 2).sum() < 140  # six standard deviations


def test_two_datasets_differ_in_one_record_and_place():
    seen = []

    def note(X, y):
        seen.append(X[:, 0].copy())
        return X.mean(axis=0)

    oracle = PublicDataOracle(np.arange(10_000.0)[:, None], np.arange(10_000) % 3 > 1)
    sample(note, oracle, n=20, n_pairs=3, strata="classes")
    for four in np.reshape(seen, (3, 4, 20)):
        for first, second in ((0, 1), (1, 2), (2, 3)):
            assert (four[first] != four[second]).sum() == 1
        assert len(np.unique(four)) == 21


def test_labels_add_pairs_that_differ_in_one_label():
    """The record is of each class by lot, and takes each other class by lot; six deviations."""
    seen = []

    def note(X, y, weights):
        seen.append((X[:, 0].copy(), np.asarray(y).copy(), np.copy(weights)))
        return counts(X, y)

    norms = sample(note, weighted, n_pairs=200, strata="labels").norms
    plain = sample(lambda X, y, weights: counts(X, y), weighted, n_pairs=200, strata="classes")
    np.testing.assert_array_equal(norms[:3], plain.norms)
    assert (norms[3] == 2).all()
    moves = []
    for first, second in (each[3:] for each in np.split(np.arange(1000), 200)):
        (X0, y0, w0), (X1, y1, w1) = seen[first], seen[second]
        np.testing.assert_array_equal(X0, X1)
        np.testing.assert_array_equal(w0, w1)
        (place,) = np.flatnonzero(y0 != y1)
        moves.append(y0[place] + y1[place])
    found, times = np.unique(moves, return_counts=True)
    assert found.tolist() == ["ab", "ac", "ba", "bc", "ca", "cb"]
    assert (np.abs(times - 200 / 6) < 6 * np.sqrt(200 * 5 / 36)).all()


def test_fresh_pairs_of_a_label_exceed_as_gamma_says():
    """A vote that only the label of one record decides; false positives below 1e-9."""
    nearest = FunctionTarget(lambda X, y: (np.asarray(y) == "b")[X[:, 0] > 1].sum(), key="near")
    few = sample(nearest, n_pairs=39, gamma=0.25, strata="labels")
    fresh = sample(nearest, n_pairs=400, random_state=1, strata="labels").norms
    k = few.order_statistic.k
    assert ((fresh > few.value).sum(axis=1) <= stats.betabinom(400, 40 - k, k).isf(1e-9 / 4)).all()
    plan = model().plan(n_samples=60)
    assert plan.sensitivity.strata == "classes"
    promise = str(model(strata="labels").plan(n_samples=60).guarantee)
    assert "where the two differ in the label alone. A number" in " ".join(promise.split())


def test_a_third_of_each_stratum():
    def draw(n_samples, rng):
        return np.zeros((n_samples, 1)), rng.permutation(n_samples).astype(float)

    def thirds(X, y):
        return np.array([1, 10, 100])[np.asarray(y, dtype=int) // 21].sum()

    norms = sample(thirds, draw, n=62, n_pairs=150, strata="thirds").norms
    for row, changes in zip(norms, [{0, 9, 99}, {0, 9, 90}, {0, 90, 99}], strict=True):
        assert set(row) == changes
        assert 17 < (row == 0).sum() < 84  # 50 by chance: less than six standard deviations


def test_fresh_pairs_exceed_in_no_stratum_more_often_than_gamma():
    """The probability of a miss is Beta(m + 1 - k, k); false positives below 1e-9."""
    few = sample(MEAN, n_pairs=199, gamma=0.05)
    fresh = fresh_norms()
    most = stats.betabinom(2000, 10, 190).isf(1e-9 / 3)
    assert ((fresh > few.value).sum(axis=1) <= most).all()
    with pytest.warns(UserWarning, match="left out wholly"):
        pool = sample(
            MEAN,
            oracle=RandomTaskOracle(X, classes=["a", "b"], class_shares=[0.95, 0.05]),
            n_pairs=199,
            gamma=0.1,
            strata=None,
        )
    rare = sample(
        MEAN,
        RandomTaskOracle(X, classes=["a", "b"], class_shares=[0.95, 0.05]),
        n_pairs=2000,
        random_state=1,
    ).norms
    assert ((rare > pool.value).sum(axis=1) > 2 * 0.1 * 2000).any()  # why there are strata


def test_each_stratum_misses_gamma_of_the_time():
    """A fresh pair is above the largest of nine others a tenth of the time; six deviations."""
    groups = fresh_norms().reshape(3, 200, 10)
    missed = (groups[..., 9] > groups[..., :9].max(axis=-1)).sum(axis=1)
    assert (np.abs(missed - 20) < 6 * np.sqrt(200 * 0.1 * 0.9)).all()


@pytest.mark.parametrize("strata", ["classes", "thirds"])
def test_the_store_and_workers_change_nothing(strata):
    oracle = TWO if strata == "classes" else RandomTaskOracle(X, y_scale=1.0)
    target = f_classif if strata == "classes" else f_regression
    first = sample(target, oracle, n_pairs=20, strata=strata)
    again = sample(target, oracle, n_pairs=30, strata=strata, n_jobs=2)
    assert again.n_reused == 80
    np.testing.assert_array_equal(again.norms[:, :20], first.norms)
    alone = sample(target, oracle, n_pairs=30, strata=strata, random_state=0, verbose=0)
    assert alone == again
    assert sample(target, oracle, n_pairs=30, strata=strata, random_state=1) != again


def model(estimator=None, mechanism=None, **options):
    options = {"oracle": TWO, "random_state": 0} | options
    return PrivateEstimator(
        LogisticRegression(C=0.1) if estimator is None else estimator,
        mechanism=mechanism or LaplaceMechanism(epsilon=1.0),
        sensitivity=SensitivitySampler(**options),
        classes=["a", "b"],
        random_state=0,
    )


def test_a_classifier_has_39_pairs_in_each_stratum():
    plan = model().plan(n_samples=100)
    assert plan.sensitivity.norms.shape == (3, 39)
    assert plan.n_evaluations == 4 * 39 + 2 * 59
    assert str(plan.sensitivity.order_statistic).startswith("order statistic 38 of 39 in each of 3")
    said = " ".join(str(plan.guarantee).split())
    assert (
        "least_share=0.05). Records unlike these may not be covered. The promise holds as surely "
        "where the record, its replacement or both are of the rarest class. Two records that "
        "differ in the label alone may not be covered. A number outside the range of the oracle's "
        "records is moved to the end of that range. A record far outside is replaced by one of the "
        "oracle's. Classes near or below 6.8 % of the records may not be covered."
    ) in said
    mechanism = GaussianMechanism(epsilon=1.0, delta=1e-5, code=None)
    plan = model(mechanism=mechanism, gamma=0.2).plan(n_samples=100)
    assert plan.sensitivity.norms.shape == (3, 49)


def test_the_published_method_in_one_setting():
    mechanism = LaplaceMechanism(epsilon=1.0, code=None)
    options = {"strata": None, "calibration": "dkw", "gamma": 0.3}
    with pytest.warns(UserWarning, match="strata='classes'"):
        plan = model(mechanism=mechanism, **options).plan(n_samples=40)
    assert plan.sensitivity.norms.shape == (order_statistic(0.3, calibration="dkw").n_pairs,)
    assert "rarest" not in str(plan.guarantee)

    def plain(n_samples, rng):
        return TWO(n_samples, rng)

    with pytest.warns(UserWarning, match="strata='classes'"):
        model(oracle=plain, strata=None).plan(n_samples=40)


def test_no_strata_where_there_are_no_classes():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="With strata")
        oracle = PublicDataOracle(X, np.arange(200))  # whole numbers are no labels for these
        assert sample(lambda X, y: X.T @ y, oracle).strata is None
        for estimator in (Ridge(), KMeans(2, n_init=1)):
            sampler = SensitivitySampler(oracle, gamma=0.2, random_state=0)
            private = PrivateEstimator(
                estimator, mechanism=LaplaceMechanism(epsilon=1.0), sensitivity=sampler
            )
            assert private.plan(n_samples=50).sensitivity.strata is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"strata": "class"}, "'strata' parameter of SensitivitySampler must be 'auto', 'classes'"),
        ({"strata": 3}, "Got 3"),
        ({"strata": "thirds"}, "number as its response"),
        ({"strata": "classes", "oracle": PublicDataOracle(X)}, "must be None unless each record"),
        (
            {"strata": "classes", "oracle": PublicDataOracle(X, np.arange(200)), "n": 10},
            "less than twice in 11 records, 100 times in a row",
        ),
        ({"strata": "thirds", "oracle": RandomTaskOracle(X, y_scale=1.0), "n": 2}, "a third"),
    ],
)
def test_refusals_before_the_first_evaluation(options, words):
    def target(*dataset):
        raise AssertionError

    with pytest.raises(ValueError, match=words):
        sample(target, **options)


def test_calibrations_share_their_confidence_among_strata():
    given = {"gamma": 0.1, "n_pairs": 400, "calibration": "conditional"}
    ours = order_statistic(**given, confidence=0.94, n_strata=3)
    assert ours.k == order_statistic(**given, confidence=0.98).k
    assert (ours.confidence, ours.n_strata) == (0.94, 3)
    least = {n: order_statistic(0.05, calibration="dkw", n_strata=n) for n in (1, 3)}
    assert least[3].n_pairs > least[1].n_pairs
    m, rho = least[3].n_pairs, least[3].rho
    assert rho + math.sqrt(math.log(3 / rho) / (2 * m)) <= 0.05
    assert order_statistic(0.05, n_strata=3).k == order_statistic(0.05).k
    with pytest.raises(ValueError, match="must be a level that k=1305"):
        OrderStatistic(1305, 1305, 0.05, "dkw", n_strata=3)


def test_an_estimate_of_strata_is_a_value(tmp_path):
    def fails_at_times(X, y):
        return math.inf if (X[:, 0] > 2).sum() > 3 else class_mean(X, y)

    estimate = sample(FunctionTarget(fails_at_times, key="fails"), n_pairs=60, gamma=0.3)
    assert np.isinf(estimate.norms).any()
    k = estimate.order_statistic.k
    assert estimate.value == max(np.sort(row)[k - 1] for row in estimate.norms)
    estimate.save(tmp_path / "estimate.json")
    loaded = SensitivityEstimate.load(tmp_path / "estimate.json")
    assert loaded == estimate
    assert loaded.identity == estimate.identity
    assert loaded.strata == "classes"
    assert 0.05 < loaded.least_share < 0.1  # of datasets of this size
    assert SensitivityDisplay.from_estimate(loaded).norms[k - 1] == estimate.value
    mechanism = LaplaceMechanism(epsilon=1.0, code=None)
    assert joint_risk(mechanism, estimate, 0.5).cdf([1.0])[0] == 1
    with pytest.raises(ValueError, match="pairs of a stratum"):
        SensitivityEstimate.from_dict(estimate.to_dict() | {"strata": None})
    with pytest.raises(ValueError, match="'strata' parameter of SensitivityEstimate"):
        SensitivityEstimate.from_dict(estimate.to_dict() | {"strata": "other"})


def test_an_audit_draws_the_pairs_that_are_promised():
    records = np.random.default_rng(1).normal(size=(200, 3))
    y = np.where(records[:, 0] > 0, "a", "b")
    fitted = model().fit(records, y)
    found = audit_estimator(
        fitted, records, y, pairs=12, stacked=True, rng=0, n_search=200, n_final=200
    )
    assert not found.violated
