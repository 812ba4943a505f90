"""A bound on paper with a prior: plain promises, decoded by what only has to be useful."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from skdp import (
    ClipNorm,
    GaussianMechanism,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
    plan_release,
    release,
)
from skdp.bounds import mean_bound, svm_bound
from skdp.planning import making

N, D = 400, 30
DIRECTIONS = np.random.default_rng(99).normal(size=(3, D)) / 30
MECHANISMS = [LaplaceMechanism(0.3), L2LaplaceMechanism(0.3), GaussianMechanism(0.3, 1e-5)]

every_mechanism = pytest.mark.parametrize(
    "mechanism", MECHANISMS, ids=[type(each).__name__ for each in MECHANISMS]
)


def people(n, rng):
    """Columns that move together, from one dataset to the next."""
    common = rng.normal(size=3)
    noise = 0.02 * rng.normal(size=(n, D))
    return np.clip(0.5 + (common + rng.normal(size=(n, 3))) @ DIRECTIONS + noise, 0, 1)


def means(X):
    return X.mean(axis=0)


means.__skdp_key__ = "means-v1"


def seeded(oracle, n_pairs=199, random_state=0):
    return SensitivitySampler(oracle, n_pairs=n_pairs, random_state=random_state)


def known(**options):
    bound = mean_bound(N, D, ranges=(0, 1))
    return replace(bound, **{"prior": seeded(people)} | options)


X = people(N, np.random.default_rng(7))


@pytest.fixture(scope="module")
def plans():
    """The plan of each mechanism."""
    return {
        mechanism: plan_release(means, n_samples=N, mechanism=mechanism, sensitivity=known())
        for mechanism in MECHANISMS
    }


@every_mechanism
def test_the_promise_is_plain_and_says_what_the_prior_is_for(plans, mechanism):
    plan = plans[mechanism]
    guarantee = plan.guarantee
    assert guarantee.gamma == 0
    assert guarantee.oracle is None
    assert "people" not in str(guarantee)
    assert "assuming that the target is the mean" in guarantee.assumed
    assert "decoded by a prior from 199 public fits" in guarantee.code
    assert "people, for utility only" in str(plan)
    assert plan.n_evaluations == 398
    assert plan.standard_errors.shape == (D,)
    assert plan.mechanism.geometry.code is not None
    without = known(prior=None).in_norm(mechanism.order)
    assert plan.sensitivity.value == pytest.approx(without.value, rel=1e-8)
    released = pickle.loads(pickle.dumps(plan)).execute(X, random_state=0)
    assert released.sensitivity.prior is None  # no record of an oracle goes out with a release
    assert plan.oracle.description == "people"
    assert replace(released.guarantee, seeded=False) == guarantee
    np.testing.assert_array_equal(released.value, plan.execute(X, random_state=0).value)


@pytest.mark.slow
@every_mechanism
def test_a_mean_of_correlated_columns_is_closer_with_the_prior(plans, mechanism):
    """Seeded; the factor is above 5 for each, over 20 datasets."""
    prior, plain = plans[mechanism], mechanism
    if isinstance(mechanism, L2LaplaceMechanism):  # 30 numbers are too many without a code
        plain = GaussianMechanism(0.3, 1e-5)
    plain = plan_release(means, n_samples=N, like=X, mechanism=plain, sensitivity=known(prior=None))
    with_prior, without = 0.0, 0.0
    for seed in range(10):
        data = people(N, np.random.default_rng(1000 + seed))
        exact = data.mean(axis=0)
        with_prior += np.linalg.norm(prior.execute(data, random_state=seed).value - exact) / 10
        without += np.linalg.norm(plain.execute(data, random_state=seed).value - exact) / 10
    assert without > 4 * with_prior
    spread = np.sqrt(np.sum(prior.standard_errors**2))
    assert 0.5 * spread < with_prior < 1.5 * spread


@every_mechanism
def test_data_unlike_the_prior_are_as_private_and_worse_served(plans, mechanism):
    """The box around the prior mean is as wide as any dataset allows, so it clips nothing."""
    far = np.ones((N, D))
    plan = plans[mechanism]
    boxed = plan.sensitivity.bounded(plan.target)
    for data in (far, 0 * far, X):
        np.testing.assert_array_equal(boxed(data, seed=0), data.mean(axis=0))


def test_a_plan_says_where_a_mechanism_takes_no_more_directions():
    plan = plan_release(
        means, n_samples=N, like=X, mechanism=L2LaplaceMechanism(100.0), sensitivity=known()
    )
    said = " ".join(str(plan).split())
    assert "16 of 30 directions, its most: compare LaplaceMechanism" in said


def test_a_code_is_kept_for_later_releases_at_another_epsilon(plans):
    first = plans[MECHANISMS[1]]
    again = plan_release(
        means, n_samples=N, like=X, mechanism=L2LaplaceMechanism(3.0), sensitivity=first.sensitivity
    )
    assert again.mechanism.geometry == first.mechanism.geometry
    assert again.sensitivity == first.sensitivity
    assert again.share_learned > first.share_learned
    with pytest.raises(ValueError, match="bounds neither larger norms nor those of another"):
        plan_release(
            means,
            n_samples=N,
            like=X,
            mechanism=GaussianMechanism(1.0, 1e-5, code=None),
            sensitivity=first.sensitivity,
        )


def labeled(n, rng):
    X = rng.uniform(size=(n, 4))
    return X, (X @ [1.0, 2.0, -1.0, -2.0] + 0.1 * rng.normal(size=n) > 0).astype(int)


def test_an_estimator_whose_bound_is_known_is_decoded_too():
    """The public fit is one to the prior's records, and so are the labels."""
    X, y = labeled(500, np.random.default_rng(1))
    bound = svm_bound(LinearSVC(loss="hinge", C=0.01), 500, 4, solver_error=1e-4)
    model = PrivateEstimator(
        LinearSVC(C=0.01, loss="hinge", tol=1e-8, max_iter=100_000),
        mechanism=LaplaceMechanism(5.0),
        sensitivity=replace(bound, prior=seeded(labeled, 40)),
        classes=[0, 1],
        random_state=0,
    ).fit(X, y)
    assert model.guarantee_.gamma == 0
    assert "decoded by a prior from 40 public fits" in model.guarantee_.code
    assert model.score(X, y) > 0.8
    assert set(model.standard_errors_) == {"coef_", "intercept_"}

    def three(n, rng):
        X, y = labeled(n, rng)
        return X, y + (X[:, 0] > 0.9)

    wrong = model.set_params(sensitivity=replace(bound, prior=three), classes=[0, 1, 2])
    with pytest.raises(ValueError, match="known sensitivity is for 2 classes"):
        wrong.fit(X, y)


LARGE = 20_000


@pytest.mark.parametrize(
    ("sensitivity", "estimator", "is_mean"),
    [
        ("known", MomentClassifier(), True),
        ("known", LogisticRegression(solver="liblinear", C=0.01), False),
        ("sampled", make_pipeline(StandardScaler(), MomentClassifier()), True),
        ("sampled", GaussianNB(), True),
        ("sampled", make_pipeline(PCA(2), MomentClassifier()), False),
        ("sampled", BaggingClassifier(GaussianNB(), 2), False),
    ],
)
def test_pilots_of_a_mean_have_fewer_records(monkeypatch, sensitivity, estimator, is_mean):
    """The code is as good as that of pilots of all records, and the bound is that of all."""
    asked = []

    def oracle(n, rng):
        asked.append(n)
        return labeled(n, rng)

    n, options = LARGE if is_mean else 1500, {"sensitivity": seeded(oracle, 19)}
    if sensitivity == "known":
        estimator = make_pipeline(ClipNorm(1.5), estimator)
        options = {"sensitivity": "known", "prior": oracle}
    X, y = labeled(n + 2000, np.random.default_rng(1))
    noise = LaplaceMechanism(0.5)
    model = PrivateEstimator(estimator, mechanism=noise, classes=[0, 1], random_state=0, **options)
    plans, scores = [], []
    for most in (making.MOST_RECORDS, n):
        monkeypatch.setattr(making, "MOST_RECORDS", most)
        asked.clear()
        plans.append(model.plan(n, like=(X[:n], y[:n])))
        assert (asked.count(most + 1) >= 19) == (is_mean or most == n)
        released = [plans[-1].execute(X[:n], y[:n], random_state=seed).value for seed in range(3)]
        scores.append(np.mean([each.score(X[n:], y[n:]) for each in released]))
    assert abs(scores[0] - scores[1]) <= 0.003
    if sensitivity == "known":
        first, second = (plan.sensitivity.value for plan in plans)
        assert first == pytest.approx(second, rel=1e-8)


def tiny(value=1e-5, **options):
    return KnownSensitivity(value, "l2", N, prior=people, **options)


HELD = replace(mean_bound(N, D, ranges=(0, 1)), prior=PublicDataOracle(X))


@pytest.mark.loop(
    ("mechanism", "sensitivity", "word"),
    [
        (LaplaceMechanism(1.0), lambda: known().in_norm(2), "neither larger norms"),
        (L2LaplaceMechanism(1.0), tiny, "is 1e-05, but a pair of the 'prior'"),
        (L2LaplaceMechanism(1.0), lambda: tiny(0.0), "sensitivity is zero"),
        (L2LaplaceMechanism(1.0), lambda: tiny(gamma=0.05), "without a gamma"),
        (L2LaplaceMechanism(1.0), lambda: HELD, "holds the private records"),
    ],
)
def test_a_prior_that_does_not_fit_is_refused(mechanism, sensitivity, word):
    with pytest.raises(ValueError, match=word):
        release(means, X, mechanism=mechanism, sensitivity=sensitivity())
