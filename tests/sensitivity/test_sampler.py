"""The sampler: against theory, whatever the workers, honest about failures; and its estimate."""

import dataclasses
import json
import math

import numpy as np
import pytest
from joblib import parallel_config
from scipy import stats

from skdp import Oracle, SensitivityEstimate, SensitivitySampler, UniformOracle
from skdp.core.geometry import Geometry
from skdp.functions import AdditiveTarget
from skdp.sensitivity import execution, order_statistic


def exponential(n_samples, rng):
    return rng.exponential(size=(n_samples, 1))


class Exponential(Oracle):
    """The same, of which two records make a pair of sums."""

    independent_records = True

    def __call__(self, n_samples, rng):
        return exponential(n_samples, rng)


def normal(n_samples, rng):
    return rng.normal(size=(n_samples, 1))


def unlucky_mean(X):
    """Fail when the first record is in the upper quarter, which both datasets of a pair share."""
    if X[0, 0] > 0.75:
        raise ValueError(f"the first record is large, {1000 * 'x'}")
    return X.mean()


def test_mean_of_exponentials_against_theory():
    """|f(D) - f(D')| follows Exp(n) (example 6 of the ICML paper), so its quantile is known.

    With m = 9999 pairs and gamma = .1 the estimate's exceedance probability follows
    Beta(1000, 9000): it leaves mean +- 5 standard deviations (.003) with probability < 1e-6.
    """
    n = 100
    sampler = SensitivitySampler(Exponential(), gamma=0.1, n_pairs=9999, random_state=0)
    estimate = sampler.sample(AdditiveTarget(np.abs), n, "l1")
    exceedance = math.exp(-n * estimate.value)
    assert exceedance == pytest.approx(0.1, abs=5 * 0.003)
    assert estimate.value == pytest.approx(math.log(1 / 0.1) / n, rel=0.07)


def test_sampled_norms_have_the_law_of_the_target():
    """Kolmogorov-Smirnov at 1e-4 false positives; halved norms are caught."""
    estimate = SensitivitySampler(exponential, n_pairs=999, random_state=1).sample(
        np.mean, 50, "l1"
    )
    law = stats.expon(scale=1 / 50)
    assert stats.kstest(estimate.norms, law.cdf).pvalue > 1e-4
    assert stats.kstest(estimate.norms / 2, law.cdf).pvalue < 1e-4


@pytest.mark.loop("random_state", [None, 5, np.random.default_rng(5), np.random.RandomState(5)])
def test_the_seed_is_recorded_and_draws_all_again(random_state):
    sampler = SensitivitySampler(exponential, n_pairs=40, random_state=random_state)
    estimate = sampler.sample(np.mean, 20, "l1")
    again = SensitivitySampler(exponential, n_pairs=40, random_state=estimate.seed)
    assert again.sample(np.mean, 20, "l1") == estimate
    assert (sampler.sample(np.mean, 20, "l1") == estimate) is isinstance(random_state, int)
    more = again.set_params(n_pairs=130).sample(np.mean, 20, "l1")
    np.testing.assert_array_equal(more.norms[:40], estimate.norms)
    first, same, other = (again.public_dataset(7, attempt=each)[0] for each in (0, 0, 1))
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("seconds", [0.0, 1e-3, 1e9])
def test_norms_do_not_depend_on_workers_or_chunks(long_job, monkeypatch, n_jobs, seconds):
    sampler = SensitivitySampler(exponential, gamma=0.1, n_pairs=40, random_state=3)
    expected, pilots = sampler.sample(np.mean, 20, "l1"), sampler.pilots(np.mean, 20)
    monkeypatch.setattr(execution, "CHUNK_SECONDS", seconds)
    with parallel_config(backend="threading"):  # other processes are seen in test_execution.py
        estimate = sampler.set_params(n_jobs=n_jobs).sample(np.mean, 20, "l1")
        again = sampler.pilots(np.mean, 20)
    assert estimate.norms.tobytes() == expected.norms.tobytes()
    assert [each.tobytes() for each in again] == [each.tobytes() for each in pilots]


def test_pairs_of_datasets_are_neighbors():
    pairs, positions = [], []

    def remember(X):
        pairs.append(X.copy())
        return 0.0

    SensitivitySampler(normal, n_pairs=99, gamma=0.1, random_state=0).sample(remember, 6, "l1")
    for first, second in zip(pairs[::2], pairs[1::2], strict=True):
        changed = (first != second).any(axis=1)
        assert changed.sum() == 1
        positions.append(int(np.flatnonzero(changed)[0]))
    # each position with probability 1/6: a chi-square test at level 1e-9
    assert stats.chisquare(np.bincount(positions, minlength=6)).pvalue > 1e-9
    assert set(positions) == set(range(6))


def test_failed_pairs_count_as_infinite():
    """A quarter of the pairs fails, so gamma = .5 is attained and gamma = .1 is not."""
    for gamma in (0.5, 0.1):
        sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=gamma, n_pairs=99)
        estimate = sampler.set_params(random_state=0).sample(unlucky_mean, 10, "l1")
        ((cause, count),) = estimate.failures.items()
        assert cause.startswith("ValueError: the first record is large, x")
        assert len(cause) == 200
        assert 0 < count == np.isinf(estimate.norms).sum() < 50
        assert math.isfinite(estimate.value) is (gamma == 0.5)


@pytest.mark.parametrize(
    ("function", "cause"),
    [
        (lambda X: np.nan, "the value is not finite"),
        (lambda X: np.ones(1 + (X[-1, 0] > 0)), "the shape of the value changed"),
        (lambda X: np.ones(1 + (X[0, 0] > 0)), "the shape of the value changed"),
        (lambda X: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
    ids=["nan", "shape within a pair", "shape between pairs", "exception"],
)
def test_causes_of_failure_are_told_apart(function, cause):
    estimate = SensitivitySampler(normal, gamma=0.1, n_pairs=30, random_state=0).sample(
        function, 4, "l1"
    )
    assert set(estimate.failures) == {cause}


def test_oracle_that_fails_halfway_is_refused():
    calls = []

    def tired(n_samples, rng):
        calls.append(n_samples)
        if len(calls) > 5:
            raise RuntimeError("no more records")
        return normal(n_samples, rng)

    with pytest.raises(Exception, match="no more records"):
        SensitivitySampler(tired, gamma=0.2).sample(np.mean, 4, "l1")


def test_same_seed_within_a_pair_and_another_in_the_next():
    seeds = []

    def noisy(X, random_state):
        seeds.append(random_state)
        return np.random.default_rng(random_state).normal()

    estimate = SensitivitySampler(normal, gamma=0.1, n_pairs=9).sample(noisy, 4, "l1")
    assert max(estimate.norms) == 0  # all randomness is shared, and X is not used
    assert seeds[::2] == seeds[1::2]
    assert len(set(seeds)) == 9


def test_the_geometry_is_one_or_the_name_of_a_norm():
    sampler = SensitivitySampler(normal, gamma=0.2)
    assert sampler.sample(np.mean, 4, "sup").geometry == Geometry(math.inf)
    assert sampler.sample(np.mean, 4, Geometry(2)).geometry == Geometry(2)
    for wrong in ("l3", np.linalg.norm, None):
        with pytest.raises(ValueError, match=r"'geometry' parameter .* 'l1', 'l2', 'sup' or a Geo"):
            sampler.sample(np.mean, 4, wrong)


def an_estimate(gamma=0.2, calibration="dkw", **changes):
    statistic = order_statistic(gamma, calibration=calibration)
    rng = np.random.default_rng(0)
    norms = rng.exponential(size=statistic.n_pairs)
    values = {
        "norms": norms,
        "order_statistic": statistic,
        "n_samples": 10,
        "geometry": Geometry(1),
        "target": "a function",
        "shape": (3,),
        "oracle": "an oracle",
        "seed": 2**127 + 1,
        "failures": {},
        "key": "a-function-v1",
    }
    return SensitivityEstimate(**values | changes)


def test_json_keeps_every_bit(tmp_path):
    statistic = order_statistic(0.2, calibration="dkw")
    norms = np.random.default_rng(1).lognormal(sigma=30, size=statistic.n_pairs)
    norms[:2] = math.inf
    estimate = an_estimate(norms=norms, failures={"ValueError: no": 2})
    estimate.save(tmp_path / "estimate.json")
    loaded = SensitivityEstimate.load(tmp_path / "estimate.json")
    assert loaded == estimate
    assert loaded.norms.tobytes() == estimate.norms.tobytes()
    assert loaded.seed == estimate.seed
    json.loads((tmp_path / "estimate.json").read_text(), parse_constant=pytest.fail)


def test_estimate_is_frozen():
    estimate = an_estimate()
    with pytest.raises(dataclasses.FrozenInstanceError):
        estimate.value = 0.0
    with pytest.raises(ValueError, match="read-only"):
        estimate.norms[0] = 0.0


def test_estimate_differs_from_other_values():
    assert an_estimate() != an_estimate(n_samples=11)
    assert an_estimate() != an_estimate(key="a-function-v2")
    assert an_estimate() != "an estimate"
    assert len(repr(an_estimate())) < 250


def test_norms_are_as_many_as_pairs():
    with pytest.raises(ValueError, match="one value for each of the 61 pairs"):
        an_estimate(norms=np.ones(3))
