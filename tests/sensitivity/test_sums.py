"""Sums of many pairs over a public table: those of the records that refits would see."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import StandardScaler

from skdp import PublicDataOracle, SensitivitySampler
from skdp.core.moments import Moments
from skdp.estimators.parameters import ParameterTarget
from skdp.sensitivity import blocks, execution, sums
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.pairs import PairSource
from skdp.sensitivity.sums import DrawnSums, TableSums, sums_of_pairs

rng = np.random.default_rng(0)
X = rng.normal(loc=[5.0, 0.0, -2.0], size=(150, 3))
LABELS = (rng.random(150) < 0.4).astype(int)


def features(X, y=None):
    return np.hstack([X, X**2])


def source(oracle, n_samples=50, **options):
    moments = Moments(features, lambda sums, n: sums.reshape(len(sums), -1) / n, **options)
    return PairSource(None, oracle, n_samples, 3, moments)


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("pairs", [range(7), range(60, 200)])
def test_counts_times_table_are_sums_of_drawn_records(products, pairs):
    pairs_of = source(PublicDataOracle(X), products=products)
    common, last = TableSums(pairs_of)(pairs)
    expected, expected_last = DrawnSums(pairs_of)(pairs)
    np.testing.assert_allclose(common, expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_array_equal(last, expected_last)


def test_a_table_is_summed_where_it_is_small(monkeypatch):
    oracle = PublicDataOracle(X)
    assert isinstance(sums_of_pairs(source(oracle)), TableSums)
    assert isinstance(sums_of_pairs(source(oracle, n_samples=7)), DrawnSums)  # 20 * 7 < 150
    monkeypatch.setattr(sums, "MAX_TABLE", 150 * 64 - 1)
    assert isinstance(sums_of_pairs(source(oracle)), DrawnSums)
    monkeypatch.setattr(sums, "N_ROWS", 2)
    assert isinstance(sums_of_pairs(source(oracle)), TableSums)
    monkeypatch.setattr(sums, "MAX_TABLE", 150 * 6 - 1)
    assert isinstance(sums_of_pairs(source(oracle)), DrawnSums)
    assert isinstance(sums_of_pairs(source(as_oracle(lambda n, rng: X[:n]))), DrawnSums)


def test_what_a_subclass_does_to_the_records_is_not_lost():
    """The table alone would give half the sensitivity."""

    class Doubled(PublicDataOracle):
        def __call__(self, n_samples, rng):
            return 2 * super().__call__(n_samples, rng)

    target = ParameterTarget(StandardScaler(), ["mean_"], StandardScaler().fit(X))
    assert target.closed_form(X) is not None
    once, twice = (
        SensitivitySampler(oracle, gamma=None, n_pairs=20, random_state=0)
        .sample(target, 50, "l1")
        .norms
        for oracle in (PublicDataOracle(X), Doubled(X))
    )
    np.testing.assert_allclose(twice, 2 * once, rtol=1e-9)


@pytest.mark.parametrize("at_once", [5, 256])
@pytest.mark.parametrize(
    "estimator", [GaussianNB(), RidgeClassifier(), LinearDiscriminantAnalysis(), PCA()], ids=str
)
def test_norms_do_not_depend_on_how_many_pairs_there_are(estimator, at_once, monkeypatch):
    monkeypatch.setattr(blocks, "BATCH", at_once)
    target = ParameterTarget(estimator, "auto", clone(estimator).fit(X, LABELS))
    oracle = PublicDataOracle(X, LABELS)

    def norms(n_pairs):
        sampler = SensitivitySampler(oracle, gamma=None, n_pairs=n_pairs, random_state=0)
        return sampler.sample(target, 50, "l1").norms

    many = norms(280)
    for n_pairs in (1, 19, 260):
        np.testing.assert_array_equal(norms(n_pairs), many[:n_pairs])


def test_workers_are_not_started_for_many_cheap_pairs(monkeypatch):
    """A batch takes longer than a pair, and is timed as the batch that it is."""
    clock = iter(range(100))
    monkeypatch.setattr(execution, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr(execution, "run_chunk", lambda evaluate, pairs: None)

    def evaluate(pairs):
        raise AssertionError

    evaluate.at_once = 256
    started = []

    def workers(calls):
        return [started.append(call) for call in calls]

    monkeypatch.setattr(execution, "Parallel", lambda **options: workers)
    for n_pairs, chunk_size, job, n_calls in [
        (300, 256, evaluate, 0),
        (700, 256, evaluate, 3),
        (3, 1, lambda pairs: None, 3),
    ]:
        started.clear()
        list(execution.run(job, range(n_pairs), chunk_size, n_jobs=2))
        assert len(started) == n_calls
