"""Sample and aggregate: plain differential privacy for any estimator."""

# ruff: noqa: NPY002  # estimators may draw from the global generator

import pickle
import random
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification, make_regression
from sklearn.experimental import enable_iterative_imputer  # noqa: F401  # imported for its effect
from sklearn.frozen import FrozenEstimator
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

from skdp import (
    ExponentialMechanism,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    RandomTaskOracle,
    SampleAndAggregate,
    plan_release,
    release,
)
from skdp.accounting import PrivacyAccountant
from skdp.aggregate.sharpness import FACTORS, Sharpness
from skdp.core.dataset import Dataset
from skdp.core.persons import Persons
from skdp.exceptions import UtilityWarning
from tests import attack_routes as routes

X, y = make_classification(
    4000, 6, n_informative=4, n_clusters_per_class=1, class_sep=1.5, random_state=1
)
PUBLIC, PRIVATE, TEST = slice(0, 500), slice(500, 3000), slice(3000, None)
TASKS = RandomTaskOracle(X[PUBLIC], classes=[0, 1])


class Moody(ClassifierMixin, BaseEstimator):
    """Fails, or gives what is not finite, as a record says; else predicts what was seen last."""

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        self.mood_, self.last_ = X[:, 0].max(), float(y[-1])
        if self.mood_ > 100:
            raise SystemExit if self.mood_ > 1000 else RuntimeError("a private value")
        np.random.seed(abs(int(self.mood_)))
        random.seed(int(self.mood_))
        return self

    def predict_proba(self, X):
        certain = np.nan if self.mood_ < -100 else 1.0
        share = np.clip(self.last_ + np.random.normal(scale=0.1, size=len(X)), 0, 1) * certain
        return np.column_stack([1 - share, share])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def private(estimator, epsilon=1.0, n_blocks=20, oracle=TASKS, **parameters):
    return PrivateEstimator(
        estimator,
        mechanism=parameters.pop("mechanism", L2LaplaceMechanism(epsilon)),
        sensitivity=SampleAndAggregate(n_blocks, random_state=0),
        prior=oracle,
        **parameters,
    )


@pytest.mark.parametrize(
    "estimator", [DecisionTreeClassifier(max_depth=3), KNeighborsClassifier(5)]
)
def test_any_classifier_has_a_plain_promise_and_learns(estimator):
    model = private(estimator, 3.0, 50, random_state=0).fit(X[PRIVATE], y[PRIVATE])
    assert (model.guarantee_.epsilon, model.guarantee_.gamma) == (3.0, 0.0)
    assert type(model.estimator_) is type(estimator)
    exact = estimator.fit(X[PRIVATE], y[PRIVATE]).score(X[TEST], y[TEST])
    assert model.score(X[TEST], y[TEST]) > exact - 0.15


def test_a_regressor_learns():
    table, response = make_regression(3000, 4, noise=5.0, random_state=0)
    response = response / response.std()
    oracle = RandomTaskOracle(table[:500], y_scale=1.0)
    model = private(Ridge(), 5.0, 50, oracle=oracle, random_state=0).fit(
        table[500:], response[500:]
    )
    assert model.score(table, response) > 0.7


@pytest.mark.parametrize(
    "estimator",
    [
        pytest.param(each, id=f"{each!r:.20}", marks=[pytest.mark.slow] * (place in (2, 3, 4, 5)))
        for place, each in enumerate(routes.ESTIMATORS)
    ],
)
def test_no_record_moves_the_value_further_than_the_bound(estimator):
    """Of random neighbors, and of those that make a block fail, lack a class, warn and so on."""
    largest, n_moved = routes.largest_moves(estimator, 60, seed=0)
    assert (largest <= 1).all()
    assert n_moved > 10
    assert largest[1] > (0.9 if estimator is routes.ESTIMATORS[0] else 0.1)


def test_the_promise_by_blocks_is_kept_and_half_the_noise_is_found():
    """Seeded; an audit errs with probability 1e-4 at most. Of six seeds all found the half."""
    ((_, share, found),) = routes.audit_blocks(range(1), 8000, routes.MECHANISMS[:1])
    assert 0.8 < share <= 1
    assert found == [0, 1]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:With strata=None")  # strata cover more than is claimed
def test_the_promise_of_predictions_is_kept_and_half_the_noise_is_found():
    """Seeded; the pairs and the worst pair err with probability 1e-4 each at most."""
    full, half = routes.audit_predictions(KNeighborsClassifier(15), 0, 10_000)
    assert full[1] > routes.ALPHA > half[1]
    assert full[2] <= 1 < half[2]


def test_a_block_that_fails_tells_nothing(recwarn, capfd):
    plan = private(Moody()).plan(len(X[PRIVATE]))
    bad = X[PRIVATE].copy()
    bad[:, 0] = 5000  # each fit ends the process
    told = []
    for records in (bad, X[PRIVATE]):
        recwarn.clear()
        accountant = PrivacyAccountant(":memory:", epsilon=1.0, delta=0.0)
        released = plan.execute(records, y[PRIVATE], accountant=accountant)
        messages = [str(each.message) for each in recwarn], *capfd.readouterr()
        told.append([released.guarantee, released.plan, str(released.budget), messages])
    assert told[0] == told[1]


def test_the_state_of_global_generators_stays():
    np.random.seed(5)
    random.seed(5)
    private(KNeighborsClassifier()).fit(X[PRIVATE], y[PRIVATE])
    found = np.random.random(), random.random()
    np.random.seed(5)
    random.seed(5)
    assert found == (np.random.random(), random.random())


def test_the_number_of_blocks_is_chosen_and_reproducible():
    plans = [private(GaussianNB(), n_blocks="auto").plan(600) for _ in range(2)]
    first, second = (plan.target for plan in plans)
    assert first.code.n_blocks == second.code.n_blocks >= 20
    np.testing.assert_array_equal(first.code.encoder, second.code.encoder)
    assert f"{first.code.n_blocks} blocks" in str(plans[0])


class Counted(GaussianNB):
    """Counts all fits of the class, which a plan makes on public records alone."""

    n_fits = 0

    def fit(self, X, y, sample_weight=None):
        Counted.n_fits += 1
        return super().fit(X, y, sample_weight)


@pytest.mark.worth
def test_a_plan_says_how_many_fits_it_made_and_simulates_some_blocks():
    Counted.n_fits = 0
    oracle = RandomTaskOracle(X[PUBLIC], classes=[0, 1], least_share=0.4)  # a block has both
    plan = private(Counted(), n_blocks=200, oracle=oracle).plan(3000)
    said = plan.target.n_public_fits
    assert f"{said} evaluations on public records" in str(plan)
    assert abs(said - Counted.n_fits) < 20  # public fits and students, without blocks of one class


@pytest.mark.parametrize(("n_public", "n_rows"), [(30, 500), (700, 700), (4000, 2000)])
def test_a_student_sees_no_public_record_twice_and_moved_ones_where_there_are_few(n_public, n_rows):
    oracle = RandomTaskOracle(X[:n_public], classes=[0, 1])
    rows = private(GaussianNB(), n_blocks=5, oracle=oracle).plan(200).target.rows
    assert len(np.unique(rows, axis=0)) == len(rows) == n_rows
    known = (rows[:, None, 0] == X[None, :n_public, 0]).any(axis=1)
    assert known[: min(n_public, n_rows)].all()


def test_a_gaussian_mechanism_and_the_whole_default():
    mechanism = GaussianMechanism(1.0, 1e-5)
    model = private(GaussianNB(), mechanism=mechanism, classes=[0, 1])
    assert model.fit(X[PRIVATE], y[PRIVATE]).guarantee_.delta == 1e-5
    model.set_params(sensitivity="aggregate")
    assert model.plan(500).guarantee.gamma == 0


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"prior": None}, "'prior'"),
        ({"release": ["coef_"]}, "'release'"),
        ({"sensitivity": SampleAndAggregate(2501)}, "'n_blocks'"),
        ({"sensitivity": SampleAndAggregate(1)}, "n_blocks"),
        ({"sensitivity": SampleAndAggregate("many")}, "'n_blocks'"),
    ],
)
def test_what_is_refused_names_the_parameter(change, word):
    with pytest.raises(ValueError, match="100 records"):
        private(LogisticRegression()).plan(80)
    model = private(LogisticRegression()).set_params(**change)
    with pytest.raises((ValueError, TypeError), match=word):
        model.fit(X[PRIVATE], y[PRIVATE])


def test_no_block_depends_on_the_records_of_another():
    """A clone shares a frozen step, of which this one draws a number for each gap."""
    public = np.where(np.random.default_rng(0).random(X[PUBLIC].shape) < 0.2, np.nan, X[PUBLIC])
    imputer = IterativeImputer(sample_posterior=True, max_iter=2, random_state=0).fit(public)
    estimator = make_pipeline(FrozenEstimator(imputer), DecisionTreeClassifier(max_depth=2))
    target = private(estimator, n_blocks=10).plan(400, like=(X[:400], y[:400])).target
    gaps = X[600:1000].copy()
    gaps[::7, 1] = np.nan
    other = gaps.copy()
    other[target.blocks[0][0]] = np.nan
    found = [scores_by_block(target, each, y[600:1000]) for each in (gaps, other)]
    differ = [not np.array_equal(*each) for each in zip(*found, strict=True)]
    assert not any(differ[1:])


def test_weights_and_students_of_another_kind_are_refused_unpaid():
    with pytest.raises(TypeError, match="sample_weight"):
        private(LogisticRegression()).fit(X[PRIVATE], y[PRIVATE], np.ones(2500))
    model = private(LogisticRegression()).set_params(sensitivity__student=Ridge())
    with pytest.raises(TypeError, match="student"):
        model.plan(500)
    model.set_params(
        sensitivity__student=KNeighborsClassifier(),
        estimator=GaussianNB(priors=np.array([0.5, 0.5])),
    )
    assert model.plan(500).guarantee.gamma == 0


class Drawing(Moody):
    """Its fit draws as many numbers from the global generators as it sees labels of one."""

    def fit(self, X, y):
        np.random.random(int(np.sum(y)))
        self.classes_, self.mood_ = np.array([0, 1]), 0.0
        self.last_ = (np.random.random() + random.random()) / 2
        return self


def scores_by_block(target, X, y):
    return [target.fits.scores(Dataset(X[block], y[block])) for block in target.blocks]


def test_no_block_draws_on_from_another():
    target = private(Drawing(), n_blocks=10).plan(400).target
    other = y[600:1000].copy()
    other[target.blocks[0]] = 1 - other[target.blocks[0]]
    found = [scores_by_block(target, X[600:1000], labels) for labels in (y[600:1000], other)]
    for each in zip(*(scores[1:] for scores in found), strict=True):
        np.testing.assert_array_equal(*each)


@pytest.mark.parametrize(
    ("estimator", "cases"),
    [
        # what is not finite, as what fails, is a constant
        (Moody(), [(-500.0, None, 0.0), (500.0, None, 0.0)]),
        (LogisticRegression(), [(0.0, 1, 1.0), (0.0, 0, -1.0)]),  # which refuses a single class
    ],
)
def test_a_block_without_a_fit_counts_as_a_constant(estimator, cases):
    target = private(estimator, n_blocks=10).plan(400).target
    for mood, label, expected in cases:
        table, labels = X[600:640].copy(), y[600:640] if label is None else np.full(40, label)
        table[:, 0] = mood
        assert set(np.unique(labels)) == ({0, 1} if label is None else {label})
        assert set(target.fits.scores(Dataset(table, labels))) == {expected}


def test_the_bound_adds_the_moves_of_the_scores_and_of_the_mean_response():
    target = private(GaussianNB()).plan(500).target
    code = target.code
    size, of_scores, of_mean = len(code.encoder), 2 * code.radius / 20, code.weight * 2 / 500
    assert min(size, code.n_numbers - size) > 0
    assert target.bound(1) == pytest.approx(size**0.5 * of_scores + of_mean, rel=1e-9)
    assert target.bound(2) == pytest.approx(np.hypot(of_scores, of_mean), rel=1e-9)
    assert target.bound(2) >= np.hypot(of_scores, of_mean)


OUTPUTS = np.column_stack([X[:, 0], X[:, 1] * 1e3 - 7, np.full(len(X), 0.1)])
FORMS = {
    "two classes": (GaussianNB(), RandomTaskOracle(X[PUBLIC], classes=[0, 1])),
    "four classes": (GaussianNB(), RandomTaskOracle(X[PUBLIC], classes=[0, 1, 2, 3])),
    "a response": (Ridge(), PublicDataOracle(X[PUBLIC], OUTPUTS[PUBLIC, 1])),
    "outputs": (Ridge(), PublicDataOracle(X[PUBLIC], OUTPUTS[PUBLIC])),
}


@pytest.mark.parametrize(("estimator", "oracle"), FORMS.values(), ids=FORMS)
def test_the_whole_bound_is_attained(estimator, oracle):
    """The worst model of a block, and the worst response beside it, of all that y may hold."""
    target = private(estimator, 50.0, 10, oracle).plan(400).target
    code, reader = target.code, target.fits.reader
    assert code.weight > 0
    opposite = np.linalg.pinv(code.encoder) @ np.ones(len(code.encoder))
    found = []

    def scores(block):  # of a block that is told by a record
        sign = np.sign(block.X[:, 0].max() - 1e6)
        return code.center + sign * 1e9 * opposite

    target.fits.scores = scores
    responses = [0, 1, 2, 3]
    if not hasattr(reader, "classes"):
        odd = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324]
        lines = [reader.low, reader.high, *(np.full_like(reader.low, each) for each in odd)]
        responses = [line.reshape(reader.shape) for line in lines]
    for word in (-1e7, 1e7):
        for response in responses:
            table, labels = X[:400].copy(), np.array([responses[0]] * 400)
            table[:, 0] = -1.0
            table[target.blocks[0][0], 0], labels[target.blocks[0][0]] = word, response
            found.append(target(table, labels, seed=0))
    for order in (1, 2):
        moved = [np.linalg.norm(one - other, order) for one in found for other in found]
        assert 0.999 < max(moved) / target.bound(order) <= 1


def test_public_responses_that_are_nearly_alike_keep_the_bound():
    """Their mean rounds to beyond them, and what is missing counts as the middle."""
    high = np.nextafter(1e9 + 0.3, np.inf)
    public = np.where(X[PUBLIC, 0] > 0, 1e9 + 0.3, high)
    for responses in (public, np.zeros(500), np.full(500, 1e-200)):
        oracle = PublicDataOracle(X[PUBLIC], responses)
        target = private(Ridge(), 50.0, 10, oracle).plan(400).target
        reader, code = target.fits.reader, target.code
        missing = np.full(400, np.nan)
        for response in (np.inf, -np.inf, 0.0):
            other = missing.copy()
            other[0] = response
            records = (Dataset(X[:400], each) for each in (missing, other))
            means = [target.fits.mean(Persons(each, np.ones(400, int))) for each in records]
            moved = code.weight * (means[0] - means[1])
            assert np.abs(moved) <= (1 + 1e-12) * code.weight * reader.moves / 400


def test_the_share_of_a_rare_class_is_released():
    """The rules of the oracle have shares of .25 to .75."""
    rare = np.flatnonzero(y[PRIVATE] == 1)[: 2500 // 20]
    kept = np.sort(np.r_[rare, np.flatnonzero(y[PRIVATE] == 0)])
    table, labels = X[PRIVATE][kept], y[PRIVATE][kept]
    model = private(LogisticRegression(), 5.0, 20, random_state=0).fit(table, labels)
    assert np.mean(labels) == pytest.approx(0.09, abs=0.01)
    shares = model.predict_proba(X[PUBLIC])[:, 1]  # whose scores the student was told
    assert np.mean(shares) == pytest.approx(np.mean(labels), abs=0.04)


def test_sharpened_scores_keep_their_means_and_take_the_factor_of_rules_that_look_like_them():
    rng = np.random.default_rng(0)
    timid = 0.05 * rng.standard_normal((1000, 3)) + [-0.3, 0.0, 0.3]
    best = np.abs(np.log(FACTORS) - np.log([[4.0], [1.0]]))  # of timid rules, and of bold ones
    sharpness = Sharpness(np.array([[0.2, 0.05], [0.2, 0.5]]), best)
    spreads = []
    for scores in (timid, np.clip(8 * timid - 7 * timid.mean(axis=0), -1, 1)):
        told = sharpness.sharpen(scores)
        assert (np.abs(told) <= 1).all()
        moves = np.diff(told[scores[:, 0].argsort(), 0])
        assert moves.min() >= 0  # the order stays
        spreads.append((told.std(axis=0) / scores.std(axis=0)).mean())
        if scores is timid:
            np.testing.assert_allclose(told.mean(axis=0), timid.mean(axis=0), atol=1e-9)
    assert spreads[0] > 2 > 1 >= spreads[1]


@pytest.mark.parametrize(("slope", "offset", "gain"), [(0.5, -2.3, -0.005), (4.0, -4.5, 0.03)])
def test_a_rare_class_is_foretold_where_its_signal_is_strong_enough(slope, offset, gain):
    """Of 20 seeds no release was off: fewer than one in seven is, with a confidence of 95 %."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((8500, 4))
    p = 1 / (1 + np.exp(-slope * table[:, 0] - offset))  # 10 %, or 15 % in the mean
    labels = (rng.random(len(p)) < p).astype(int)
    oracle = RandomTaskOracle(table[:500], classes=[0, 1])
    model = private(LogisticRegression(), 1.0, 200, oracle, random_state=0)
    told = model.fit(table[500:], labels[500:]).predict_proba(table)[:, 1]
    assert np.where(told > 0.5, p, 1 - p).mean() > 1 - p.mean() + gain
    off = p * np.log(p / told) + (1 - p) * np.log((1 - p) / (1 - told))
    assert off.mean() < 0.1  # the relative entropy of calibrated probabilities


class Late(GaussianNB):
    """Learns nothing of less than a thousand records."""

    def predict_proba(self, X):
        if self.class_count_.sum() >= 1000:
            return super().predict_proba(X)
        return np.tile(self.class_prior_, (len(X), 1))


@pytest.mark.worth
def test_a_plan_compares_blocks_with_a_model_of_all_records():
    expected = private(Late(), n_blocks=20).plan(2500).expected_score
    assert expected.table["exact"][0] > 0.8  # the easiest task with frequent classes
    assert float(expected.at(majority=0.5, exact=0.85).score) < 0.6


@pytest.mark.worth
def test_a_plan_warns_where_a_rare_class_is_hardly_foretold():
    expect = {"majority": 0.9, "exact": 0.91}
    with pytest.warns(UtilityWarning, match="no more than a guess"):
        plan = private(LogisticRegression(), n_blocks=100, expect=expect).plan(4000)
    assert 0.88 < float(plan.expected_score) <= 0.91


def moody_largest(X):
    """Fails, or returns what is not finite, of another shape or beyond the ranges."""
    mood = X[:, 0].max()
    if mood > 1000:
        raise SystemExit
    if mood > 100:
        warnings.warn("a private value", stacklevel=1)
        np.random.seed(int(mood))
    return np.full(1 if mood > 500 else 2, X[:, 1].max()) / (mood != 50.0)


def test_a_function_is_released_by_blocks():
    """Seeded, of a standard error of .1 and less."""
    table = np.random.default_rng(0).uniform(size=(10_000, 2))
    options = {"sensitivity": "aggregate", "random_state": 0}
    released = release(
        lambda X: np.quantile(X[:, 1], [0.5, 0.9]),
        table,
        mechanism=L2LaplaceMechanism(1.0),
        ranges=[(0, 1), (0, 3)],
        names=["half", "high"],
        **options,
    )
    assert (released.guarantee.epsilon, released.guarantee.gamma) == (1.0, 0.0)
    assert "share no state" in released.guarantee.assumed
    assert released.sensitivity.value == pytest.approx(10**0.5 / 100)
    np.testing.assert_allclose(released.value, [0.5, 0.9], atol=0.4)
    number = release(
        lambda X: X.mean(), table, mechanism=GaussianMechanism(1.0, 1e-5), ranges=(0, 1), **options
    )
    assert number.value.shape == ()
    assert number.value == pytest.approx(0.5, abs=0.2)
    chosen = release(
        lambda X: [np.sum(X < 0.2), np.sum(X >= 0.2)],
        table,
        mechanism=ExponentialMechanism(1.0),
        ranges=[(0, 200)] * 2,
        responses=["low", "high"],
        **options,
    )
    assert chosen.value == "high"


@pytest.mark.parametrize("order", [1, 2])
def test_no_record_moves_a_function_further_than_its_ranges(order):
    mechanism = {1: LaplaceMechanism(1.0), 2: L2LaplaceMechanism(1.0)}[order]
    plan = plan_release(
        moody_largest,
        n_samples=100,
        like=X[:2, :2],
        mechanism=mechanism,
        sensitivity=SampleAndAggregate(n_blocks=20, random_state=0),
        ranges=[(-1, 2), (0, 3)],
    )
    rng, largest = np.random.default_rng(0), 0.0
    bound = plan.sensitivity.value
    assert bound == pytest.approx((9 + 9 if order == 2 else 36) ** 0.5 / 20)
    for _ in range(100):
        records = rng.choice(
            [-1e300, -5.0, 0.5, 5.0, 1e300], size=(100, 2), p=[0.4, 0.4, 0.1, 0.05, 0.05]
        )
        records[:, 0] = rng.choice([0.0, 50.0, 101.0, 600.0, 5000.0, np.nan, np.inf], size=100)
        other = records.copy()
        other[rng.integers(100)] = rng.choice([-1e300, 0.5, 1e300, 50.0, np.nan]), 1e300
        moved = plan.target(records, seed=0) - plan.target(other, seed=0)
        largest = max(largest, np.linalg.norm(moved, order))
    assert 0.99 * bound < largest <= bound


@pytest.mark.parametrize(
    ("options", "error", "word"),
    [
        ({"sensitivity": "aggregate"}, ValueError, "'ranges'.*None"),
        ({"sensitivity": "aggregate", "ranges": (1, 0)}, ValueError, "'ranges'"),
        ({"sensitivity": "aggregate", "ranges": (0, np.inf)}, ValueError, "'ranges'"),
        ({"sensitivity": "aggregate", "ranges": (0, 10**400)}, ValueError, "'ranges'"),
        # values of some records would overflow in the sum over blocks, and others not
        ({"sensitivity": "aggregate", "ranges": (0, 1e307)}, ValueError, "'ranges'.*finite"),
        ({"sensitivity": "aggregate", "ranges": [(0, 1)] * 3}, ValueError, r"returned shape \(2,"),
        ({"sensitivity": 0.1, "ranges": (0, 1)}, ValueError, "'ranges'.*aggregate"),
        ({"sensitivity": SampleAndAggregate(1), "ranges": (0, 1)}, ValueError, "n_blocks"),
    ],
)
def test_what_a_function_by_blocks_needs_is_said_unpaid(options, error, word):
    accountant = PrivacyAccountant(":memory:", epsilon=1.0, delta=0.0)
    with pytest.raises(error, match=word):
        release(
            moody_largest,
            X,
            mechanism=LaplaceMechanism(1.0),
            accountant=accountant,
            **options,
        )
    assert accountant.total().epsilon == 0


def test_the_bound_of_a_function_by_blocks_serves_no_other_function():
    options = {"mechanism": LaplaceMechanism(1.0), "random_state": 0}
    released = release(np.mean, X, sensitivity="aggregate", ranges=(-1, 1), **options)
    with pytest.raises(ValueError, match="derived for another target"):
        release(np.sum, X, sensitivity=released.sensitivity, **options)


class OtherNumbers:
    """Ranges that read as others each time."""

    ndim = 1

    def __init__(self):
        self.high = 0.0

    def __array__(self, dtype=None, copy=None):
        self.high += 1
        return np.array([0.0, self.high])


def test_values_are_clipped_to_the_ranges_of_the_bound():
    blocks = SampleAndAggregate(n_blocks=20)
    options = {"sensitivity": blocks, "mechanism": LaplaceMechanism(1.0), "n_samples": 100}
    plan = plan_release(np.mean, like=X[:2], ranges=OtherNumbers(), **options)
    bound = plan.sensitivity.value
    assert plan.target(np.full((100, 1), 9.0), seed=0) <= 20 * bound


def test_a_record_that_has_no_copy_fails_its_block_alone():
    records = np.zeros((100, 1), dtype=object)
    records[3, 0] = (number for number in [0.0])
    options = {"mechanism": LaplaceMechanism(1.0), "random_state": 0}
    released = release(np.mean, records, sensitivity="aggregate", ranges=(0, 1), **options)
    assert np.isfinite(released.value)


def moody_cells(records):
    """Write into the cells of its records, or interrupt itself."""
    cells = np.asarray(records, dtype=object).ravel().tolist()
    value, moods = max(number for number, _ in cells), {mood for _, mood in cells}
    if "write" in moods:
        for cell in cells:
            cell[0] = 1.0
    if "interrupt" in moods:
        raise KeyboardInterrupt
    return value


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame])
def test_blocks_share_no_object_and_do_not_interrupt(form):
    """Records may be one object, and a function may write into them, or raise what it likes."""
    like = np.empty((1, 1), dtype=object)
    like[0, 0] = [0.0, ""]
    plan = plan_release(
        moody_cells,
        n_samples=100,
        like=form(like),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SampleAndAggregate(n_blocks=20, random_state=0),
        ranges=(0, 1),
    )
    for mood in ("write", "interrupt"):
        records, shared = np.empty((100, 1), dtype=object), [0.0, ""]
        for block in plan.target.blocks:
            for place in block:
                records[place, 0] = [0.0, ""]
            records[block[0], 0] = shared
        records[plan.target.blocks[0][1], 0] = [0.0, mood]
        assert plan.target(form(records), seed=0) <= plan.sensitivity.value


# told of some of these ranges before they are refused
@pytest.mark.filterwarnings("ignore:The 'ranges' of mean_bound are so narrow")
@pytest.mark.parametrize("ranges", [(1e16, 1e16 + 2), (5, 5)])
def test_ranges_that_noise_does_not_reach_are_refused_unpaid(ranges):
    ledger = PrivacyAccountant(":memory:", epsilon=1.0)
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": "aggregate", "ranges": ranges}
    with pytest.raises(ValueError, match="too large for a sensitivity"):
        release(np.mean, np.ones((100, 1)), accountant=ledger, **options)
    assert ledger.total().n_releases == 0


def test_a_plan_holds_no_permutation():
    """Of a million records it takes 8 MB, and its seed a line."""
    plan = plan_release(
        np.mean,
        n_samples=10**6,
        like=np.zeros((2, 1)),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SampleAndAggregate(random_state=0),
        ranges=(0, 1),
    )
    assert len(pickle.dumps(plan)) < 100_000
    targets = [private(GaussianNB()).plan(n_samples).target for n_samples in (2000, 50_000)]
    small, large = (len(pickle.dumps(target)) for target in targets)
    assert large < 1.1 * small
