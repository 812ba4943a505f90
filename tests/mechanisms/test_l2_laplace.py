"""The L2 Laplace mechanism: the promise in exact numbers, the law of the noise, what is refused."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from skdp import (
    KnownSensitivity,
    L2LaplaceMechanism,
    PublicDataOracle,
    SensitivitySampler,
    plan_release,
    release,
)
from skdp.mechanisms.discrete import MAX_SCALE, bernoulli_exp_of, discrete_l2_laplace, excess_digits
from skdp.mechanisms.noise import byte_source
from skdp.risk import PureLoss, privacy_loss_distribution

RATE = 1e-9  # of false positives of each test, whose seeds are fixed besides


@given(
    sensitivity=st.floats(-300, 300).map(lambda power: 10.0**power),
    size=st.integers(1, 16),
    epsilon=st.floats(-6, 6).map(lambda power: 10.0**power),
)
@example(sensitivity=1e-300, size=16, epsilon=1e6)
@example(sensitivity=1e300, size=16, epsilon=1e-6)
@example(sensitivity=5e-324, size=3, epsilon=1.0)
@example(sensitivity=1.0, size=16, epsilon=1e300)
def test_released_epsilon_by_exact_fractions(sensitivity, size, epsilon):
    """Never above the epsilon asked for, and at most .1 % more noise than Delta / epsilon."""
    lattice, scale = L2LaplaceMechanism(epsilon)._scale(size, sensitivity)
    step = Fraction(2) ** lattice.exponent
    over_root = math.isqrt(10**20 * size) + 1  # sqrt(size) in units of 1e-10, rounded up
    worst = Fraction(sensitivity) / step + Fraction(over_root, 10**10)
    assert worst / scale < Fraction(epsilon)
    assert 1 <= scale <= MAX_SCALE // 4
    if epsilon <= 1e6:
        assert Fraction(999, 1000) * scale <= Fraction(sensitivity) / Fraction(epsilon) / step


@given(
    rows=st.lists(st.tuples(st.floats(-9, 9), st.floats(-1, 1)), min_size=1, max_size=8),
    epsilon=st.floats(-6, 6).map(lambda power: 10.0**power),
)
def test_neighboring_values_are_not_further_apart_than_the_noise_allows(rows, epsilon):
    """The log ratio of two probabilities is at most the length between the integers, over t."""
    value, shift = np.array(rows).T
    other = value + shift
    sensitivity = L2LaplaceMechanism(epsilon).geometry.distance(value, other)
    if sensitivity == 0:
        return
    lattice, scale = L2LaplaceMechanism(epsilon)._scale(len(rows), sensitivity)
    steps = lattice.to_integers(value).astype(object) - lattice.to_integers(other).astype(object)
    assert sum(steps**2) <= (Fraction(epsilon) * scale) ** 2


@pytest.mark.parametrize(("scale", "reach"), [(1, 12), (3, 12), (1000, 3)])
def test_candidates_and_acceptance_multiply_to_the_law(scale, reach):
    """By enumeration in two dimensions, to 60 digits: all weights over exp(-norm / t) are alike."""
    wide = math.isqrt(2 * scale * scale - 1) + 1
    with localcontext() as context:
        context.prec = 80
        for z in product(range(-reach, reach + 1), repeat=2):
            square, total = z[0] ** 2 + z[1] ** 2, abs(z[0]) + abs(z[1])
            digits = excess_digits([square], [total], scale, wide, 0, 220)
            excess = Decimal(digits) / 2**220
            assert excess >= 0
            weight = (-Decimal(total) / wide).exp() * (-excess).exp()
            assert abs(weight / (-Decimal(square).sqrt() / scale).exp() - 1) < Decimal(10) ** -60


@pytest.mark.parametrize("bits", [1, 3, 52])
def test_coins_of_an_irrational_exponent(bits):
    """Also where the first bits decide nothing; binomial test."""
    roots = [Fraction(1, 4), Fraction(2), Fraction(7)]  # squares of 1/2 and of two irrationals

    def digits(i, bits):
        square = roots[i % 3] * 4**bits
        return math.isqrt(square.numerator // square.denominator)

    heads = bernoulli_exp_of(digits, 3 * 8000, byte_source(bits), bits=bits)
    for i, root in enumerate(roots):
        n_heads = int(heads[i::3].sum())
        assert stats.binomtest(n_heads, 8000, math.exp(-math.sqrt(root))).pvalue > RATE


@pytest.mark.parametrize(("size", "n_draws"), [(1, 8000), (2, 8000), (5, 3000), (16, 600)])
def test_the_length_of_fine_noise_has_a_gamma_law(size, n_draws):
    """Kolmogorov-Smirnov; half or twice the noise is caught, and so is noise of another shape."""
    scale = 2**40
    noise = discrete_l2_laplace(scale, size, byte_source(size), n_draws) / scale
    lengths = np.linalg.norm(noise, axis=1)
    law = stats.gamma(size).cdf
    assert stats.kstest(lengths, law).pvalue > RATE
    for wrong in (0.5, 2.0):
        assert stats.kstest(wrong * lengths, law).pvalue < RATE
    assert noise.var() == pytest.approx(size + 1, rel=0.2)
    if size > 1:  # no direction is preferred: the share of the first number, and of the last
        for share in (noise[:, 0] ** 2, noise[:, -1] ** 2):
            beta = stats.beta(0.5, (size - 1) / 2).cdf
            assert stats.kstest(share / lengths**2, beta).pvalue > RATE
    if size == 2:  # independent numbers of the same variance are told apart by their direction
        other = np.random.default_rng(0).laplace(size=noise.shape)
        share = other[:, 0] ** 2 / (other**2).sum(axis=1)
        assert stats.kstest(share, stats.beta(0.5, 0.5).cdf).pvalue < RATE


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("scale", [1, 2])
def test_coarse_noise_has_its_discrete_law(size, scale):
    """Chi-square over the squared lengths, whose law is a sum over the integer vectors of each."""
    n_draws, reach = 8000, 60 if size < 5 else 40
    squares = np.zeros(reach**2 * size + 1)
    squares[0] = 1.0  # how many integer vectors have each squared length
    for _ in range(size):
        squares = sum(
            (1 + (z > 0)) * np.pad(squares, (z * z, 0))[: len(squares)] for z in range(reach)
        )
    weights = squares * np.exp(-np.sqrt(np.arange(len(squares))) / scale)
    expected = n_draws * weights / weights.sum()
    drawn = discrete_l2_laplace(scale, size, byte_source(7), n_draws)
    observed = np.bincount((drawn**2).sum(axis=1), minlength=len(squares))[: len(squares)]
    common = expected > 20
    cells = [np.append(each[common], n_draws - each[common].sum()) for each in (observed, expected)]
    assert stats.chisquare(*cells).pvalue > RATE


@pytest.mark.parametrize("size", [1, 2, 16])
def test_errors_are_those_of_the_noise(size):
    mechanism = L2LaplaceMechanism(0.5)
    errors = mechanism.standard_errors((size,), 3.0)
    np.testing.assert_allclose(errors, math.sqrt(size + 1) * 6, rtol=1e-3)
    assert errors[0] >= 3.0 * mechanism.unit_deviation(size)


def total(X):
    return X.sum(axis=0)


def test_an_l1_bound_is_one_too_and_its_loss_is_that_of_its_epsilon():
    mechanism = L2LaplaceMechanism(1.0)
    X = np.random.default_rng(0).random((50, 3))
    known = KnownSensitivity(3.0, "l1", 50)
    released = release(total, X, mechanism=mechanism, sensitivity=known, random_state=0)
    assert released.guarantee.epsilon == 1.0
    assert released.guarantee.delta == 0
    assert mechanism.noise_law is None
    assert privacy_loss_distribution(mechanism, distance=0.5) == PureLoss(0.5)
    assert privacy_loss_distribution(mechanism, distance=2.0) == PureLoss(2.0)


@pytest.fixture(scope="module")
def public():
    """Forty columns that move along three directions."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 3)) @ rng.normal(size=(3, 40)) + 0.01 * rng.normal(size=(150, 40))


def test_a_sampler_brings_forty_numbers_to_a_code_of_few(public):
    sampler = SensitivitySampler(PublicDataOracle(public), gamma=0.1, random_state=0)
    options = {"n_samples": 150, "sensitivity": sampler}
    plans = [
        plan_release(total, mechanism=L2LaplaceMechanism(epsilon, code="learned"), **options)
        for epsilon in (0.1, 1.0)
    ]
    for plan in plans:
        code = plan.mechanism.geometry.code
        assert 1 <= code.n_released <= 16
        assert plan.execute(public + 0.1, random_state=0).value.shape == (40,)
    assert plans[0].share_learned <= plans[1].share_learned
    assert plans[1].share_learned > 0.5
    unlearned = L2LaplaceMechanism(1.0, code=None)
    with pytest.raises(ValueError, match="at most 16 numbers together"):
        plan_release(total, mechanism=unlearned, **options)


def test_too_many_numbers_are_refused_before_an_evaluation_where_they_are_known(public):
    mechanism = L2LaplaceMechanism(1.0)
    assert mechanism.release(np.zeros((4, 4)), 1.0, byte_source(0)).shape == (4, 4)
    for ask in (
        lambda: mechanism.release(np.zeros(17), 1.0),
        lambda: mechanism.standard_errors((17,), 1.0),
    ):
        with pytest.raises(ValueError, match=r"at most 16 numbers together, .* and got 17: let it"):
            ask()
    known = KnownSensitivity(1.0, "l2", 150)
    with pytest.raises(ValueError, match="exact draws of more take too long, and got 40: "):
        release(total, public, mechanism=L2LaplaceMechanism(1.0), sensitivity=known)
