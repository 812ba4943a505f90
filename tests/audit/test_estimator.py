"""Audits of fitted private estimators: kept promises pass, broken ones are caught."""

from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import stats
from sklearn.base import is_classifier
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from skdp import (
    BernsteinTransformer,
    GaussianMechanism,
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    PublicCode,
    PublicDataOracle,
    SensitivitySampler,
    UniformOracle,
)
from skdp.audit import EstimatorAudit, audit_estimator
from skdp.audit.estimator import _audit_pair, _oracle_pairs, exceedance_p_value
from skdp.core.dataset import Dataset
from skdp.core.identity import key_of
from skdp.core.schema import Schema
from skdp.sensitivity.adapters import as_oracle

N = 60
OPTIONS = {"stacked": True, "n_search": 2000, "n_final": 10_000, "rng": 0}


def plausible(n_samples, rng):
    X = rng.normal(size=(n_samples, 2))
    return X, X[:, 0] + 0.3 * rng.standard_t(3, size=n_samples)


X, Y = plausible(N, np.random.default_rng(9))


def fitted(mechanism=None, sensitivity=None):
    sampler = SensitivitySampler(plausible, gamma=0.1, n_pairs=99, random_state=0)
    model = PrivateEstimator(
        Ridge(),
        mechanism=mechanism or LaplaceMechanism(1.0),
        sensitivity=sampler if sensitivity is None else sensitivity,
        random_state=0,
    )
    return model.fit(X, Y)


@pytest.fixture(scope="module")
def usual():
    """Return a model that no test changes."""
    return fitted()


def at_a_share_of_k(estimate, share):
    """The mistake: read the sensitivity at a share of the rank."""
    statistic = estimate.order_statistic
    return replace(estimate, order_statistic=replace(statistic, k=int(share * statistic.k)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "share", "n_pairs", "n_final"),
    [(LaplaceMechanism(1.0), 0.25, 20, 3000), (GaussianMechanism(1.0, 1e-3), 0.1, 8, 3000)],
)
def test_a_kept_promise_passes_and_a_share_of_the_rank_is_caught(
    mechanism, share, n_pairs, n_final
):
    # The verdict is at 1e-3, so two honest audits fail by chance with probability 2e-3 over seeds.
    # At a quarter of the rank 10 of 20 pairs must exceed: over seeds, with 5,000 outputs, that has
    # probability .997. Gaussian noise is slow to draw, so its mistake is larger: 6 of 8, with .965.
    honest = fitted(mechanism)
    options = OPTIONS | {"pairs": n_pairs, "n_final": n_final}
    audit = audit_estimator(honest, X, Y, **options)
    assert not audit.violated
    assert audit.n_exceeding <= n_pairs / 4
    assert audit.quantile() <= 2.0
    dishonest = fitted(mechanism, at_a_share_of_k(honest.sensitivity_, share))
    assert dishonest.guarantee_ == honest.guarantee_
    caught = audit_estimator(dishonest, X, Y, oracle=plausible, **options)
    assert caught.violated
    assert caught.n_exceeding > n_pairs / 4
    assert str(caught).startswith("violation found")
    assert str(audit).startswith("none found")


@pytest.mark.slow
def test_bounds_follow_the_norm_of_each_pair(usual):
    audit = audit_estimator(usual, X, Y, pairs=10, **OPTIONS)
    truth = audit.norms / audit.sensitivity  # exact for Laplace noise of epsilon 1
    assert (audit.lower_bounds <= truth + 1e-3).all()
    clear = truth > 0.5
    assert (audit.lower_bounds[clear] > truth[clear] - 0.35).all()


@pytest.mark.slow
def test_results_do_not_depend_on_the_workers(usual):
    one, two = (audit_estimator(usual, X, Y, pairs=4, n_jobs=n, **OPTIONS) for n in (None, 2))
    assert np.array_equal(one.lower_bounds, two.lower_bounds)
    assert np.array_equal(one.norms, two.norms)


def test_an_outlier_is_outside_the_promise_and_shown(usual):
    outlier = (np.array([40.0, -40.0]), np.array(500.0))
    audit = audit_estimator(usual, X, Y, record=outlier, pairs=3, **OPTIONS)
    assert not audit.covered
    assert not audit.violated
    assert audit.n_exceeding == 3
    assert (audit.lower_bounds > 2.0).all()
    assert str(audit).startswith("outside the promise")
    same = audit_estimator(usual, X, Y, record=(X[0], Y[0]), pairs=1, **OPTIONS)
    assert same.lower_bounds[0] == pytest.approx(0.0)  # the record replaces itself


def test_a_record_is_one_that_fit_would_take(usual):
    for record, got in (((X[0, :1], Y[0]), "of 2 entries. Got 1"), (X[0], "2 parts, .* Got 1")):
        with pytest.raises(ValueError, match=f"'record' parameter of audit_estimator .*{got}"):
            audit_estimator(usual, X, Y, record=record, pairs=1, **OPTIONS)
    labels = np.arange(len(X)) % 2
    model = PrivateEstimator(
        LogisticRegression(), mechanism=LaplaceMechanism(1.0), sensitivity=9.0, classes=[0, 1]
    ).fit(X, labels)
    with pytest.raises(ValueError, match="label"):
        audit_estimator(model, X, labels, record=(X[0], 7), pairs=1, **OPTIONS)


# an encoder without a list of categories is warned of, and is not what is tested
@pytest.mark.filterwarnings("ignore:.*handle_unknown")
def test_a_record_of_a_mixed_table():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.uniform(size=90), "c": rng.choice(["u", "v"], 90)})
    y = rng.permutation(np.arange(90) % 2)
    columns = make_column_transformer((StandardScaler(), ["a"]), (OneHotEncoder(), ["c"]))
    for kind in (pd.DataFrame, pl.DataFrame):
        frame = kind(table.to_dict("list"))
        model = PrivateEstimator(
            make_pipeline(columns, LogisticRegression()),
            mechanism=LaplaceMechanism(1.0),
            sensitivity=SensitivitySampler(
                PublicDataOracle(frame[:50], y[:50]), gamma=0.4, n_pairs=3, random_state=0
            ),
        ).fit(frame[50:], y[50:])
        found = [
            audit_estimator(model, frame[50:], y[50:], record=(x, 1), pairs=1, **OPTIONS).norms
            for x in (frame[5:6], table.iloc[5], {**table.iloc[5]}, [*table.iloc[5]])
        ]
        assert np.ptp(found) == 0 < found[0]
        for x, words in ((frame[5:7], "1 row. Got 2"), ([1.0], r"2 entries\. Got 1")):
            with pytest.raises(ValueError, match=words):
                audit_estimator(model, frame[50:], y[50:], record=(x, 1), pairs=1, **OPTIONS)


@pytest.mark.slow
def test_a_sensitivity_known_on_paper_covers_every_record():
    record = (np.array([40.0, -40.0]), np.array(500.0))
    for value, violated in ((1000.0, False), (0.5, True)):
        model = fitted(sensitivity=value)
        audit = audit_estimator(model, X, Y, record=record, pairs=3, **OPTIONS)
        assert audit.covered
        assert audit.gamma == 0
        assert audit.violated is violated
    with pytest.raises(ValueError, match="'oracle' parameter of audit_estimator must be given"):
        audit_estimator(model, X, Y)
    known = KnownSensitivity(0.5, "l1", N)
    assert audit_estimator(
        fitted(sensitivity=known), X, Y, oracle=plausible, pairs=5, **OPTIONS
    ).covered


@pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")  # labels are read
def test_a_pair_without_a_value_counts_as_not_covered():
    labels = (Y > 0).astype(int)
    model = PrivateEstimator(
        LogisticRegression(), mechanism=LaplaceMechanism(1.0), sensitivity=0.1, random_state=0
    ).fit(X, labels)

    def one_class(n_samples, rng):
        return rng.random((n_samples, 2)), np.zeros(n_samples, dtype=int)

    audit = audit_estimator(model, X, labels, oracle=one_class, pairs=2, **OPTIONS)
    assert audit.lower_bounds.tolist() == [np.inf, np.inf]
    assert audit.violated


@pytest.mark.slow
def test_an_oracle_of_arrays_is_put_into_frames_as_in_fit():
    """Else a model that asks for columns by name has no value on any pair, and is accused."""
    frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    by_name = make_pipeline(make_column_transformer((StandardScaler(), ["x0"])), Ridge())
    sampler = SensitivitySampler(plausible, gamma=0.2, n_pairs=4, random_state=0)
    model = PrivateEstimator(by_name, mechanism=LaplaceMechanism(1.0), sensitivity=sampler)
    audit = audit_estimator(
        model.fit(frame, Y), frame, Y, pairs=2, stacked=True, n_search=100, n_final=200, rng=0
    )
    assert np.all(np.isfinite(audit.norms))


def test_bad_calls_are_refused(usual):
    for options in ({"pairs": 0}, {"pairs": N + 1, "record": (X[0], Y[0])}):
        with pytest.raises(ValueError, match="'pairs' parameter of audit_estimator must be"):
            audit_estimator(usual, X, Y, **options)
    unfitted = PrivateEstimator(Ridge(), mechanism=LaplaceMechanism(1.0), sensitivity=1.0)
    with pytest.raises(NotFittedError):
        audit_estimator(unfitted, X, Y)


def test_quantiles_are_of_the_pairs():
    audit = EstimatorAudit(np.array([0.1, 0.2, 0.3, 5.0]), np.ones(4), 1.0, 1.0, 0.0, 0.25, 0.05,
                           0.5, True, 0)  # fmt: skip
    assert audit.quantile() == 0.3
    assert audit.quantile(1.0) == 5.0
    assert audit.n_exceeding == 1


def test_p_value_of_exceedances_against_simulation():
    # Norms of any continuous law: 200,000 replications know the probability to within .001.
    rng = np.random.default_rng(0)
    m, gamma, new, replications = 19, 0.1, 10, 200_000
    k = 18  # ceil(.9 * 20)
    calibrating = rng.random((replications, m))
    estimate = np.partition(calibrating, k - 1, axis=1)[:, k - 1]
    exceeding = (rng.random((replications, new)) > estimate[:, None]).sum(axis=1)
    for count in (1, 3, 6):
        simulated = (exceeding >= count).mean()
        claimed = exceedance_p_value(count, new, gamma, m, alpha=1e-12)
        assert claimed == pytest.approx(simulated, abs=0.006)
        # Taking gamma as known for this very estimate is not the promise, and too strict.
        assert stats.binom.sf(count - 1, new, gamma) < claimed or count == 1


def test_p_value_with_known_sensitivity_and_by_chance():
    assert exceedance_p_value(1, 10, 0.0, 0, 0.01) == pytest.approx(1 - 0.99**10)
    assert exceedance_p_value(0, 10, 0.1, 19, 0.01) == pytest.approx(1.0)
    assert exceedance_p_value(2, 10, 0.1, 0, 1e-12) == pytest.approx(stats.binom.sf(1, 10, 0.1))


def test_uniform_data_without_response():
    from sklearn.preprocessing import StandardScaler

    model = PrivateEstimator(
        StandardScaler(),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, random_state=0),
        random_state=0,
    ).fit(np.random.default_rng(0).random((30, 1)))
    audit = audit_estimator(model, np.zeros((30, 1)), pairs=5, **OPTIONS)
    assert not audit.violated
    record = audit_estimator(model, np.zeros((30, 1)) + 0.5, record=[9.0], pairs=1, **OPTIONS)
    assert record.n_exceeding == 1


@pytest.mark.parametrize(
    ("estimator", "release"),
    [
        (LogisticRegression(), "auto"),
        (DecisionTreeClassifier(max_depth=2, random_state=0), "auto"),
        (KMeans(2, n_init=1), "auto"),
        (KernelDensity(bandwidth=1.0), BernsteinTransformer(4, feature_range=(-5, 5))),
    ],
    ids=["parameters", "leaves", "aligned clusters", "function"],
)
def test_target_is_made_again_as_it_was(estimator, release):
    """The audited function is the released one: at epsilon = inf both give the same estimator."""
    X, y = make_blobs(120, centers=[[-2.0], [2.0]], random_state=0)
    dataset = (X, y) if is_classifier(estimator) else (X,)
    public, private = [part[:60] for part in dataset], [part[60:] for part in dataset]
    sampler = SensitivitySampler(PublicDataOracle(*public), gamma=0.2, n_pairs=9, random_state=0)
    mechanism = LaplaceMechanism(epsilon=np.inf)
    model = PrivateEstimator(
        estimator, mechanism=mechanism, sensitivity=sampler, release=release, random_state=0
    ).fit(*private)
    target = model.plan_.target
    assert key_of(target) == model.sensitivity_.key
    seed = int.from_bytes(np.random.default_rng(0).bytes(4), "little") >> 1
    again = target.restore(target(*private, seed=seed))
    name = "score_samples" if hasattr(model, "score_samples") else "predict"
    np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X))


def test_noise_is_audited_in_its_code():
    """Around a code the audit holds, and half of its noise is caught.

    One pair at the claimed distance, alpha 1e-4: a false alarm has that probability.
    """
    matrix = np.array([[1.0, 0.5], [0.0, 2.0]])
    code = PublicCode(matrix, np.zeros(2), np.ones(2), np.eye(2) / 2, covariance=matrix.T)
    coded = LaplaceMechanism(1.0, code=code)
    x, moved = np.zeros(2), np.array([1.0, 0.0])
    target = dict(zip((0, 1), (x, moved), strict=True)).get
    pair = Dataset(0), Dataset(1)
    settings = {"stacked": True, "n_search": 5000, "n_final": 20_000, "alpha": 1e-4, "method": None}

    def bound(sensitivity):
        return _audit_pair(lambda i, seed: target(i), pair, coded, sensitivity, (0, 1), settings)[0]

    assert bound(1.0) <= 1.0
    assert bound(0.5) > 1.0


def test_audited_pairs_differ_at_any_position():
    """All of 5 positions in 200 pairs: one is missed with probability 5 * .8^200 = 2e-19."""
    drawn = Dataset(*plausible(6, np.random.default_rng(0)))
    places = [
        int(np.flatnonzero((first.X != second.X).any(axis=1))[0])
        for first, second in _oracle_pairs(as_oracle(plausible), Schema.of(drawn), 5, 200, seed=0)
    ]
    assert set(places) == set(range(5))
