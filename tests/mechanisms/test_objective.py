"""Objective perturbation against its densities, its minimum and its noise."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from skdp.mechanisms.noise import byte_source
from skdp.mechanisms.objective import (
    STEEPEST,
    ObjectivePerturbation,
    _Objective,
    lattice_slack,
    perturbation_of,
    profile,
)


def log_density(w, signed, penalty, log_noise):
    """The log densities of the exact minimum at points w, by the change of variables from b."""
    s = expit(-(w @ signed.T))
    b = s @ signed - penalty * w
    hessians = np.einsum("mn,np,nq->mpq", s * (1 - s), signed, signed)
    return log_noise(b) + np.linalg.slogdet(hessians + penalty * np.eye(w.shape[1]))[1]


def random_rows(rng, n, p, radius):
    rows = rng.normal(size=(n, p))
    lengths = radius * rng.choice([1, 1, rng.random()], size=(n, 1))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) * lengths


def loss(mechanism, penalty, signed, other, w):
    """The largest log ratio at points w, of pure noise on the lattice that is drawn."""
    lattice, scale = mechanism.noise
    rate, order = 1 / math.ldexp(scale, lattice.exponent), 1 if mechanism.is_of_l1 else 2
    laws = [
        log_density(w, rows, penalty, lambda b: -rate * np.linalg.norm(b, order, axis=1))
        for rows in (signed, other)
    ]
    return np.max(np.abs(np.subtract(*laws)))


def test_no_pair_exceeds_the_pure_epsilon():
    """Random neighbors of one to three numbers, at the least penalty and above it."""
    rng = np.random.default_rng(0)
    largest = 0.0
    for _ in range(300):
        n, p, radius = rng.integers(1, 5), rng.integers(1, 4), rng.choice([0.5, 1, 4])
        epsilon = rng.choice([0.1, 0.5, 1, 4])
        mechanism = ObjectivePerturbation(radius, p, last=0.001, epsilon=epsilon)
        penalty = mechanism.least_penalty * rng.choice([1, 1, 2, 10])
        signed = random_rows(rng, n, p, radius)
        other = np.vstack([signed[:-1], random_rows(rng, 1, p, radius)])
        if rng.random() < 0.5:
            other[-1] = -signed[-1]
        w = rng.normal(size=(200, p)) * rng.choice([0.1, 1, 10, 100], size=(200, 1)) / radius
        largest = max(largest, loss(mechanism, penalty, signed, other, w) / epsilon)
    assert 0.55 < largest <= 1


def test_no_pair_exceeds_the_pure_epsilon_of_many_numbers():
    """Random neighbors on corners, and the example below, along a diagonal."""
    rng, largest = np.random.default_rng(0), 0.0
    for p in (17, 40):
        mechanism = ObjectivePerturbation(1.0, p, last=0.001, epsilon=1.0)
        assert mechanism.is_of_l1
        diagonal = np.ones(p - 1) / math.sqrt(p - 1)
        for c in (0.4, 0.5):
            common = np.tile(np.eye(p)[0], (100, 1)) * -1
            pair = [
                np.vstack([common, [c, *sign * math.sqrt(1 - c * c) * diagonal]])
                for sign in (1, -1)
            ]
            w = [[at, *b * diagonal] for at in (-6, -4, -2) for b in np.linspace(-4, 4, 21)]
            largest = max(largest, loss(mechanism, mechanism.least_penalty, *pair, np.array(w)))
        for _ in range(40):
            signed = np.where(rng.random((rng.integers(1, 4), p)) < 0.2, -1, 1) / math.sqrt(p)
            other = np.vstack([signed[:-1], -signed[-1:]])
            w = rng.normal(size=(100, p)) + rng.choice([-30, -3, 0], size=(100, 1)) * signed[-1]
            penalty = mechanism.least_penalty * rng.choice([1, 3])
            assert loss(mechanism, penalty, signed, other, w) <= 1
    assert 0.55 < largest <= 1


@pytest.mark.parametrize(("n", "at", "reached"), [(100, -2, 0.65), (10_000, -5.6, 0.84)])
def test_the_pure_bound_is_nearly_attained(n, at, reached):
    """Many records push one way, and two that differ a little across: the theory's example."""
    mechanism = ObjectivePerturbation(1.0, 2, last=0.001, epsilon=0.3)
    largest = 0.0
    for c in (0.4, 0.45, 0.5):
        across = math.sqrt(1 - c * c)
        common = np.tile([-1.0, 0.0], (n, 1))
        pair = [np.vstack([common, [[c, sign * across]]]) for sign in (1, -1)]
        w = np.array([[at + a, b] for a in (-0.1, 0, 0.1) for b in np.linspace(-2, 2, 41)])
        largest = max(largest, loss(mechanism, mechanism.least_penalty, *pair, w))
    assert reached * 0.3 <= largest <= 0.3


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_the_gaussian_profile_covers_delta_by_integration(epsilon):
    """With one number the densities of both minima are integrated, at many epsilons."""
    mu, kappa, radius = 0.5, 0.3 * epsilon, 1.0
    penalty, sd = radius**2 / kappa, 2 * radius / mu
    w = np.linspace(-8 * sd, 8 * sd, 4001)[:, None] / penalty
    largest = 0.0
    for n in (1, 3, 40):
        common = np.full((n - 1, 1), -1.0)
        laws = []
        for last in (1.0, -1.0):
            signed = np.vstack([common, [[last]]])
            log_law = log_density(w, signed, penalty, lambda b: -(b[:, 0] ** 2) / (2 * sd * sd))
            laws.append(np.exp(log_law - np.max(log_law)))
            laws[-1] /= laws[-1].sum()
        for e in (-1.0, 0.0, 0.05, epsilon / 4, epsilon / 2, epsilon):
            found = np.maximum(laws[0] - math.exp(e) * laws[1], 0).sum()
            bound = float(profile(e, mu, kappa))
            assert found <= bound + 1e-9
            largest = max(largest, found / bound)
    assert largest > 0.3


def test_the_profile_decreases_and_is_a_probability():
    for mu, kappa in ((0.01, 0.01), (0.5, 0.1), (2.0, 1.0), (8.0, 3.0)):
        values = profile(np.linspace(-20, 20, 2001), mu, kappa)
        assert np.all(np.diff(values) <= 1e-15)
        assert values[0] > 0.9
        assert np.all((values >= 0) & (values <= 1))


def example(n=3000, p=6, seed=0):
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n, p, 1.0)
    return rows, rng.random(n) < expit(4 * rows[:, 0])


def distance_to_minimum(objective, w):
    """By Newton's method in long doubles, where these are longer than doubles."""
    long, exact = objective.rows.astype(np.longdouble), w.astype(np.longdouble)
    for _ in range(3):
        s = 1 / (1 + np.exp(long @ exact))
        gradient = objective.penalty * (exact - objective.center) - s @ long + objective.noise
        hessian = (objective.rows.T * (s * (1 - s)).astype(float)) @ objective.rows
        hessian += objective.penalty * np.eye(len(w))
        exact -= np.linalg.solve(hessian, gradient.astype(float))
    return float(np.linalg.norm((w - exact).astype(float)))


@pytest.mark.loop("scale", [0.0, 1.0, 30.0, 1000.0])
@pytest.mark.loop("center", [0.0, 1.0, -40.0])
@pytest.mark.loop("penalty", [1e-3, 2.0])
@pytest.mark.loop("kind", ["usual", "all alike", "single", "next to nothing"])
def test_the_minimum_is_as_near_as_the_error_says(kind, penalty, center, scale):
    """It is always found: nothing that depends on records may fail after the payment."""
    rows, labels = example(1 if kind == "single" else 300)
    signed = np.where(labels[:, None], rows, -rows)
    if kind == "all alike":
        signed = np.tile(signed[0], (300, 1))
    signed *= 1e-9 if kind == "next to nothing" else 1
    noise = scale * penalty * np.random.default_rng(1).normal(size=6)
    objective = _Objective(signed, 1.0, penalty, np.full(6, center), noise)
    w = objective.minimum()
    far = max(1.0, np.linalg.norm(w - objective.center) / (2 * objective.farthest))
    assert distance_to_minimum(objective, w) <= objective.error * far


def test_a_steep_objective_is_made_flatter():
    """A least penalty next to zero is raised, to one that is next to nothing beside n records."""
    rows, labels = example()
    mechanism = ObjectivePerturbation(1.0, 6, last=1e3, epsilon=1e9)
    found = [
        mechanism.release(rows, labels, np.zeros(6), penalty, byte_source(0))
        for penalty in (mechanism.least_penalty, STEEPEST * 7 * len(rows))
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(
    "law", [{"epsilon": 1.0}, {"mu": 0.5, "kappa": 0.3}], ids=["pure", "gaussian"]
)
def test_a_release_is_near_the_truth_and_gets_the_last_noise(law):
    rows, labels = example()
    mechanism = ObjectivePerturbation(1.0, 6, last=1e-3, **law)
    penalty = 2 * mechanism.least_penalty
    made = [mechanism.release(rows, labels, np.zeros(6), penalty, byte_source(0)) for _ in range(2)]
    np.testing.assert_array_equal(*made)
    assert made[0][0] == pytest.approx(4, abs=1.5)
    again = ObjectivePerturbation(1.0, 6, last=1e3, **law)
    other = again.release(rows, labels, np.zeros(6), penalty, byte_source(0))
    change = np.abs(other - made[0])  # the noise of the objective is the same
    assert np.all(change > 0)
    assert np.max(change) < 1e-3


@pytest.mark.parametrize("p", [1, 5, 16])
def test_pure_noise_has_the_radius_of_its_law(p):
    """With no record and the center at 0 the minimum is -b / Lambda. False-positive rate 1e-6."""
    mechanism = ObjectivePerturbation(1.0, p, last=1e3, epsilon=0.5)
    penalty, source = mechanism.least_penalty, byte_source(p)
    rows, labels = np.zeros((1, p)), np.array([True])
    drawn = [mechanism.release(rows, labels, np.zeros(p), penalty, source) for _ in range(150)]
    radii = np.linalg.norm(drawn, axis=1) * penalty
    assert stats.kstest(radii, stats.gamma(p, scale=2 / 0.5).cdf).pvalue > 1e-6
    assert np.std(drawn) * penalty == pytest.approx(mechanism.deviation, rel=0.3)


def test_a_far_minimum_is_projected_and_long_rows_are_shortened():
    mechanism = ObjectivePerturbation(1.0, 2, last=1e3, epsilon=1e3)
    rows, labels = np.tile([0.6, 0.8], (10**5, 1)), np.ones(10**5, dtype=bool)
    w = mechanism.release(rows, labels, np.zeros(2), mechanism.least_penalty, byte_source(0))
    assert np.linalg.norm(w) <= 64.1
    long = mechanism.release(
        1e9 * rows, labels, np.zeros(2), mechanism.least_penalty, byte_source(0)
    )
    np.testing.assert_allclose(w, long, rtol=1e-6)


def test_what_is_not_covered_is_refused():
    rows, labels = example(10)
    mechanism = ObjectivePerturbation(1.0, 6, last=1e-3, epsilon=1.0)
    with pytest.raises(ValueError, match="'penalty' parameter of ObjectivePerturbation"):
        mechanism.release(rows, labels, np.zeros(6), 1.9, byte_source(0))


def test_noise_of_many_numbers_has_its_law():
    """With no record and the center at 0, as above. False-positive rate 1e-6."""
    mechanism = ObjectivePerturbation(1.0, 40, last=1e3, epsilon=0.5)
    penalty, none = mechanism.least_penalty, (np.zeros((1, 40)), np.array([True]))
    drawn = mechanism.release(*none, np.zeros(40), penalty, byte_source(0)) * penalty
    for seed in range(1, 40):
        more = mechanism.release(*none, np.zeros(40), penalty, byte_source(seed)) * penalty
        drawn = np.append(drawn, more)
    law = stats.laplace(scale=2 * math.sqrt(40) / 0.5)
    assert stats.kstest(drawn, law.cdf).pvalue > 1e-6
    assert mechanism.deviation == pytest.approx(law.std(), rel=1e-3)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (4.0, 1e-3)])
def test_a_budget_is_spent_and_not_exceeded(epsilon, delta):
    made = perturbation_of(epsilon, delta, 2.0, 5)
    left = epsilon - made.last
    assert 0.97 * delta < float(profile(left - lattice_slack(made.mu, 5), made.mu, made.kappa))
    assert float(profile(left - lattice_slack(made.mu, 5), made.mu, made.kappa)) <= delta
    pure = perturbation_of(epsilon, 0.0, 2.0, 5)
    assert 0.9999 * epsilon < pure.epsilon + pure.last <= epsilon


@pytest.mark.parametrize("label", [True, False])
def test_a_step_whose_length_underflows_is_taken(label):
    """Squares of numbers below 1e-162 are 0 in doubles."""
    made = perturbation_of(30.0, 0.0, 1e-60, 1)
    rows = np.full((400, 1), 1e-60 * label)
    given = rows, np.ones(400, dtype=bool), np.zeros(1), 1e104, byte_source(0)
    assert np.isfinite(made.release(*given)).all()


def test_a_budget_without_room_for_noise_is_refused():
    with pytest.raises(ValueError, match="'epsilon' parameter of GaussianMechanism is too small"):
        perturbation_of(1.36e-11, 1e-12, 1.0, 2)
