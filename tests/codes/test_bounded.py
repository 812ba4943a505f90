"""Codes for a sensitivity known on paper: no difference grows, and the choice is the best there."""

import numpy as np
import pytest
from scipy import linalg

from skdp import GaussianMechanism, L2LaplaceMechanism, LaplaceMechanism
from skdp.codes.bounded import with_bounded_code

MECHANISMS = [LaplaceMechanism(0.5), L2LaplaceMechanism(0.5), GaussianMechanism(0.5, 1e-5)]
DELTA = 0.25

every_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda m: type(m).__name__)


def pilots(d, n_pilots=120, scales=1.0, seed=0):
    """Values along three directions and changes of all sizes."""
    rng = np.random.default_rng(seed)
    values = 10 * rng.normal(size=(n_pilots, 3)) @ rng.normal(size=(3, d)) + rng.normal(size=d)
    changes = 0.1 * rng.normal(size=(n_pilots, d))
    return values * scales, changes * scales


def code_of(mechanism, values, changes, metric=None, delta=DELTA, n_samples=100):
    learned = with_bounded_code(mechanism, delta, values, changes, metric, n_samples=n_samples)
    return learned.geometry.code


def norm_of(code, order):
    """How much the encoder can enlarge a difference."""
    return np.linalg.norm(code.encoder, ord=order)  # the largest column, the spectral norm


@every_mechanism
@pytest.mark.parametrize("d", [4, 2100])
def test_a_number_that_no_pilot_varies_has_no_prior_deviation_but_rounding(mechanism, d):
    """The mean of equal numbers need not be the number."""
    values, changes = pilots(d)
    values[:, 2], changes[:, 2] = 0.1, 0.0
    code = code_of(mechanism, values, changes)
    assert values[:, 2].mean() != 0.1
    assert code.mean[2] == 0.1
    assert code.deviations[2] == code.standard_errors(1.0)[2] == 0
    assert code.deviations[3] > 0


@every_mechanism
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 1e6])
@pytest.mark.parametrize(
    ("d", "n_pilots", "scales"),
    [
        (2, 40, 1.0),
        (16, 40, 1.0),
        (30, 120, np.geomspace(1e-7, 1e7, 30)),
        pytest.param(200, 12, 1.0, marks=pytest.mark.slow),
        pytest.param(200, 60, np.geomspace(1e-4, 1e4, 200), marks=pytest.mark.slow),
    ],
)
def test_no_difference_grows(mechanism, epsilon, d, n_pilots, scales):
    mechanism = type(mechanism)(**mechanism.get_params() | {"epsilon": epsilon})
    code = code_of(mechanism, *pilots(d, n_pilots, scales))
    assert 1 <= code.n_released <= d
    assert norm_of(code, mechanism.order) <= 1
    assert code.size == d
    assert mechanism.order == 1 or norm_of(code, 2) > 1 - 1e-6


@pytest.mark.slow
@every_mechanism
def test_no_difference_grows_in_very_many_values(mechanism):
    code = code_of(mechanism, *pilots(2500, 40), metric=np.linspace(1, 2, 2500))
    assert norm_of(code, mechanism.order) <= 1
    assert code.n_released <= (100 if mechanism.most_values is None else 16)
    variance = (DELTA * mechanism.unit_deviation(code.n_released)) ** 2
    assert 0.1 < code.share_learned(variance) <= 1
    errors = code.standard_errors(variance)
    assert np.all(errors <= code.deviations)


def predicted(code, mechanism, delta=DELTA):
    return code.share_learned((delta * mechanism.unit_deviation(code.n_released)) ** 2)


def share_of(encoder, covariance, metric, deviation):
    """J(T) over tr(M S), from the definition."""
    signal = encoder @ covariance
    total = signal @ encoder.T + deviation**2 * np.eye(len(encoder))
    removed = np.trace(metric @ signal.T @ np.linalg.solve(total, signal))
    return removed / np.trace(metric @ covariance)


def prior_covariance(values, changes, n_samples, shift, metric):
    """S from the definition, where the axes in which it is shrunk are those of the values."""
    m, d = values.shape
    kept = m / (m + d)
    root = np.sqrt(metric)

    def shrunk(moments):
        return kept * moments + (1 - kept) * np.diag(np.diag(moments))

    spread = np.cov((values * root).T) * (1 + 1 / m)
    change = shrunk((changes * root).T @ (changes * root) / m)
    covariance = shrunk(spread) + (shift * n_samples) ** 2 / 2 * change
    return covariance / root / root[:, None]


@pytest.mark.loop("epsilon", [0.01, 0.1, 1.0])
@pytest.mark.loop("weighted", [False, True])
def test_l2_code_is_the_best_of_all_orthonormal_ones(epsilon, weighted):
    """Against random spans, spans beside it, the plain principal axes, and all other k."""
    d, mechanism = 12, L2LaplaceMechanism(epsilon)
    values, changes = pilots(d)
    values += np.random.default_rng(5).normal(size=values.shape) * np.geomspace(0.1, 10, d)
    metric = np.geomspace(1, 100, d) if weighted else np.ones(d)
    code = code_of(mechanism, values, changes, metric)
    covariance = prior_covariance(values, changes, 100, 0.2, metric)
    np.testing.assert_allclose(code.deviations, np.sqrt(np.diag(covariance)), rtol=1e-6)
    metric = np.diag(metric)

    def share(encoder):
        return share_of(encoder, covariance, metric, DELTA * mechanism.unit_deviation(len(encoder)))

    best = share(code.encoder)
    assert predicted(code, mechanism) == pytest.approx(best, rel=1e-6)
    rng = np.random.default_rng(0)
    principal = np.linalg.eigh(covariance)[1].T[::-1]
    outputs = linalg.eigh(covariance @ metric @ covariance)[1].T[::-1]
    for k in range(1, d + 1):
        beside = np.linalg.qr(code.encoder.T + 0.03 * rng.normal(size=code.encoder.T.shape))[0].T
        others = [principal[:k], outputs[:k], np.linalg.qr(rng.normal(size=(d, k)))[0].T, beside]
        assert all(share(other) <= best * (1 + 1e-8) for other in others)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0])
def test_l1_code_is_never_worse_than_what_it_starts_from(epsilon):
    d, mechanism = 12, LaplaceMechanism(epsilon)
    values, changes = pilots(d)
    code = code_of(mechanism, values, changes)
    covariance = prior_covariance(values, changes, 100, 0.2, np.ones(d))
    deviation = DELTA * mechanism.unit_deviation(1)
    first = np.sign(np.linalg.eigh(covariance)[1][:, -1:]).T
    for start in (np.eye(d), first):
        started = share_of(start, covariance, np.eye(d), deviation)
        assert predicted(code, mechanism) >= started * (1 - 1e-6)
    if epsilon == 0.01:  # a sum of values at the price of one
        started = share_of(np.eye(d), covariance, np.eye(d), deviation)
        assert predicted(code, mechanism) > 1.4 * started


def test_gaussian_noise_is_added_to_the_values_as_they_are():
    """It does not grow with the number of values, so leaving one out gains nothing."""
    values, changes = pilots(9)
    code = code_of(GaussianMechanism(0.5, 1e-5), values, changes)
    np.testing.assert_array_equal(code.encoder, np.eye(9))
    np.testing.assert_array_equal(code.mean, values.mean(axis=0))


@every_mechanism
def test_a_unit_of_the_values_changes_nothing(mechanism):
    values, changes = pilots(8)
    code = code_of(mechanism, values, changes)
    for unit in (2.0**-300, 2.0**300):
        other = code_of(mechanism, values * unit, changes * unit, delta=DELTA * unit)
        np.testing.assert_allclose(np.abs(other.encoder), np.abs(code.encoder), atol=1e-6)
        assert predicted(other, mechanism, DELTA * unit) == pytest.approx(
            predicted(code, mechanism), rel=1e-6
        )


@every_mechanism
def test_where_nothing_can_be_learned_there_is_no_code(mechanism):
    values, changes = pilots(8)
    learn = {"metric": None, "n_samples": 100}
    for delta, epsilon, rows, moved in (
        (DELTA, np.inf, values, changes),
        (5e-324, 1.0, values, changes),
        (1e300, 1.0, values, changes),
        (DELTA, 1.0, values[:4], changes[:4]),
        (DELTA, 1.0, values, 0 * changes),
        (DELTA, 1.0, 1e200 * values, 1e200 * changes),
    ):
        plain = type(mechanism)(**mechanism.get_params() | {"epsilon": epsilon})
        assert with_bounded_code(plain, delta, rows, moved, **learn).code is None
