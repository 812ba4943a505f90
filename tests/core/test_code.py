"""The public code: what it keeps of a value, and what the prior makes of a noisy one."""

import itertools
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from skdp.core.code import PublicCode
from skdp.core.spectrum import normal_laws
from tests.helpers import diagonal_code

seeds = st.integers(0, 10**6)


def code_of(encoder, covariance, mean=None, **options):
    """The code of a value with this prior covariance, and a mean of 0 unless it is given."""
    encoder, covariance = np.asarray(encoder, dtype=float), np.asarray(covariance, dtype=float)
    with_code = covariance @ encoder.T
    return PublicCode(
        encoder=encoder,
        mean=np.zeros(len(covariance)) if mean is None else mean,
        covariance=with_code,
        deviations=np.sqrt(np.diag(covariance)),
        removable=with_code.T @ with_code / np.trace(covariance),
        **options,
    )


def random_code(d, k, seed=0):
    """A code with a prior of full rank, and that prior: the mean and the covariance."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) * np.geomspace(1, 0.1, d)
    covariance, encoder, mean = root @ root.T, rng.normal(size=(k, d)), rng.normal(size=d)
    return code_of(encoder, covariance, mean), mean, covariance


def plain_code(variances, n_released, shift=0.0):
    """The first numbers of uncorrelated ones, as a matrix."""
    return code_of(np.eye(len(variances))[:n_released], np.diag(variances), shift=shift)


def posterior(mean, covariance, encoder, noisy, variance):
    """Mean and covariance of a normal value given its noisy code, by conditioning the joint law."""
    k = len(encoder)
    joint = np.block(
        [
            [covariance, covariance @ encoder.T],
            [encoder @ covariance, encoder @ covariance @ encoder.T + variance * np.eye(k)],
        ]
    )
    d = len(mean)
    gain = joint[:d, d:] @ np.linalg.inv(joint[d:, d:])
    return mean + gain @ noisy, joint[:d, :d] - gain @ joint[d:, :d]


LAGUERRE = np.polynomial.laguerre.laggauss(6)
WIDENINGS = np.array([1, 2, 4, 8, 16, 64, 256, 1e4, 1e6, 1e8, 1e12, 1e16, 1e20, 1e24])


def log_with_laplace_noise(values, variances, variance):
    """The log density of normal numbers with Laplace noise: six laws in place of an integral."""
    times, weights = LAGUERRE
    spread = variances[:, None] + variance * times
    laws = -(values[:, None] ** 2 / spread + np.log(2 * np.pi * spread)) / 2
    return special.logsumexp(laws, b=weights, axis=1)


def probabilities(shift):
    """A row per least widening: how likely each widening of an axis is before the release."""
    rows = []
    for least in WIDENINGS:
        row = [
            (0.02 + shift) * least / each if each > least else each == least for each in WIDENINGS
        ]
        rows.append(np.array(row) / sum(row))
    return np.array(rows)


def mixture(mean, covariance, encoder, noisy, variance, shift=0.0):
    """Mean of the mixture of posteriors, its variances, and the mean share that they remove.

    One by one, all choices of a widening for each axis of the code; that of what the code does not
    reach is the mean of these. Errors along different axes are taken for uncorrelated.
    """
    rows, likely, at, around, wider, removed = probabilities(shift), [], [], [], [], []
    variances, axes = np.linalg.eigh(encoder @ covariance @ encoder.T)
    carried = covariance @ encoder.T @ axes / variances  # by a unit along an axis
    rest = covariance - carried * variances @ carried.T
    sizes = np.sum(carried**2, axis=0) * variances / np.trace(covariance)
    for chosen in map(list, itertools.product(range(len(WIDENINGS)), repeat=len(encoder))):
        widening, prior = WIDENINGS[chosen], rows[0] @ np.prod(rows[:, chosen], axis=1)
        laws = log_with_laplace_noise(axes.T @ noisy, widening * variances, variance)
        likely.append(laws.sum() + np.log(prior))
        gains = widening * variances / (widening * variances + variance)
        at.append(gains * (axes.T @ noisy))
        around.append(variance * gains)
        wider.append(widening.mean())
        removed.append(sizes @ gains)
    shares = special.softmax(likely)
    center = shares @ at
    left = shares @ (around + (at - center) ** 2)
    errors = carried**2 @ left + shares @ wider * np.diag(rest)
    return mean + carried @ center, errors, shares @ removed


# Against theory.


@given(seeds, st.integers(1, 6), st.integers(1, 6), st.sampled_from([0.01, 1.0, 100.0]))
def test_before_a_release_the_errors_are_those_of_the_prior(seed, d, k, variance):
    code, mean, covariance = random_code(d, min(k, d), seed)
    _, left = posterior(mean, covariance, code.encoder, np.zeros(code.n_released), variance)
    errors = code.standard_errors(variance) / np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(errors**2, np.diag(left) / np.diag(covariance), atol=1e-7)
    share = 1 - np.trace(left) / np.trace(covariance)
    assert code.share_learned(variance) == pytest.approx(share, abs=1e-9)


@settings(max_examples=12)
@given(
    seeds,
    st.sampled_from([0.1, 10.0]),
    st.sampled_from([0.1, 3.0, 30.0, 1e3, 1e6]),
    st.sampled_from([0.0, 0.2, 1.0]),
)
def test_the_decoder_is_the_mean_of_the_mixture(seed, variance, size, shift):
    code, mean, covariance = random_code(4, 2, seed)
    code = replace(code, shift=shift)
    noisy = size * np.random.default_rng(seed).normal(size=2)
    expected, left, removed = mixture(mean, covariance, code.encoder, noisy, variance, shift)
    scale = np.linalg.norm(noisy) + np.linalg.norm(mean)
    np.testing.assert_allclose(code.decode(noisy, variance) / scale, expected / scale, atol=1e-6)
    errors = code.standard_errors(variance, noisy)
    np.testing.assert_allclose(errors, np.sqrt(left), rtol=1e-4)
    assert code.share_learned(variance, noisy) == pytest.approx(removed, abs=1e-6)


@pytest.mark.parametrize("size", [1e4, 1e6, 1e9])
def test_of_all_numbers_a_contradiction_of_any_size_leaves_what_the_noise_does(size):
    """A wrong unit: no prior can be had for it, and it spoils nothing."""
    code, mean, _ = random_code(5, 5)
    values = mean + size * np.array([1.0, -1, 2, -2, 0.5])
    noisy, variance = code.forward(values), 0.01
    np.testing.assert_allclose(code.decode(noisy, variance), values, atol=0.3)
    noise = np.sqrt(variance * np.sum(np.linalg.inv(code.encoder) ** 2, axis=1))
    np.testing.assert_allclose(code.standard_errors(variance, noisy), noise, rtol=0.01)


@pytest.mark.parametrize("size", [1e12, 1e15, 1e18, 1e20, 1e24])
def test_a_number_of_any_size_does_not_blow_up_its_own_error(size):
    """What alphas differ by there is far below the rounding of what they say."""
    code = plain_code([1.0, 1.0, 1.0], 3)
    noisy = [size, 1.0, 1.0]
    errors = code.standard_errors(1.0, noisy)
    assert errors[0] == pytest.approx(1, rel=0.01)
    like = code.standard_errors(1.0, [1e6, 1.0, 1.0])
    np.testing.assert_allclose(errors[1:], like[1:], rtol=1e-4)
    assert code.decode(noisy, 1.0) == pytest.approx([size, *code.decode([1e6, 1, 1], 1.0)[1:]])


def test_normal_noise_in_a_thousand_numbers_does_not_widen_the_prior():
    """Read as Laplace noise it does: each number speaks a little for it, and all of them much."""
    k, variance = 1000, 1000.0
    code = diagonal_code(np.ones(k))
    noisy = np.sqrt(variance) * np.random.default_rng(0).normal(size=k)
    assert np.mean(code.decode(noisy, variance, 0.0) ** 2) < 0.002
    assert code.share_learned(variance, noisy, 0.0) < 0.002
    assert np.median(code.standard_errors(variance, noisy, 0.0)) < 1.2
    assert np.mean(code.decode(noisy, variance) ** 2) > 0.01


@pytest.mark.parametrize("kurtosis", [0.0, 0.05, 0.5, 1.2, 3.0])
def test_the_laws_of_noise_have_the_kurtosis_that_is_said(kurtosis):
    variances, weights = normal_laws(kurtosis)
    assert weights.sum() == pytest.approx(1)
    assert weights @ variances == pytest.approx(1)
    assert 3 * weights @ variances**2 - 3 == pytest.approx(kurtosis)


@pytest.mark.parametrize("unit", [1.0, 1e4, 1e6])
def test_a_huge_number_does_not_spill_its_rounding_over_others(unit):
    """By the covariances of number and code it would: thirty deviations of what the noise does."""
    rng = np.random.default_rng(0)
    d, variance = 16, 1.0
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    covariance = (axes * np.geomspace(1e6, 1, d)) @ axes.T
    encoder = rng.normal(size=(d, d)) + 3 * np.eye(d)
    code = code_of(encoder, covariance, shift=0.2)
    value = np.r_[unit**2, np.ones(d - 1)]
    errors = []
    for _ in range(40):
        noisy = code.forward(value) + rng.laplace(scale=np.sqrt(variance / 2), size=d)
        errors.append(
            (code.decode(noisy, variance) - value) / code.standard_errors(variance, noisy)
        )
    assert np.sqrt(np.mean(np.square(errors), axis=0))[1:].max() < 2


def test_a_square_matrix_that_cannot_be_inverted_is_decoded_by_the_prior():
    code = code_of([[1.0, 1.0], [1.0, 1.0]], np.diag([1.0, 3.0]))
    for variance in (1e-12, 1e-8):
        assert code.decode([4.0, 4.0], variance) == pytest.approx([1, 3], rel=1e-6)
        expected = np.sqrt([0.75, 0.75])
        assert code.standard_errors(variance) == pytest.approx(expected, rel=1e-6)


@pytest.mark.slow
def test_standard_errors_are_those_of_a_simulation():
    """Mean squares of 2,500 errors: off by 6.5 of their deviations once in 10^10 runs."""
    code, mean, covariance = random_code(5, 3)
    rng, n = np.random.default_rng(1), 2_500
    squares = []
    for value in rng.multivariate_normal(mean, covariance, size=n):
        noisy = code.forward(value) + rng.normal(scale=0.7, size=3)
        error = code.decode(noisy, 0.49) - value
        squares.append((error / code.standard_errors(0.49, noisy)) ** 2)
    # A prior that might be wider makes the errors a little too large.
    np.testing.assert_allclose(np.mean(squares, axis=0), 0.96, atol=6.5 * np.sqrt(2 / n))


# Limits.


def test_with_endless_noise_the_public_mean_is_released():
    code, mean, covariance = random_code(6, 3)
    noisy = np.array([1.0, -2.0, 3.0])
    np.testing.assert_allclose(code.decode(noisy, 1e20), mean, rtol=1e-12)
    np.testing.assert_allclose(code.standard_errors(1e20), np.sqrt(np.diag(covariance)))
    assert code.share_learned(1e20) < 1e-15


@pytest.mark.parametrize("variance", [1e-30, 1e-20, 1e-10, 1e-5])
def test_little_noise_moves_a_square_code_by_little(variance):
    """No direction is lost or blown up where the noise is far below the rounding of H."""
    code, _, covariance = random_code(6, 6)
    value = np.linspace(-2, 2, 6)
    noise = np.sqrt(variance) * np.array([1, -1, 1, -1, 1, -1])
    moved = np.linalg.solve(code.encoder, noise)
    decoded = code.decode(code.forward(value) + noise, variance)
    limit = 3 * np.linalg.norm(moved) + 1e-6
    assert (
        np.linalg.norm(decoded - value) < limit + 30 * variance / np.linalg.eigvalsh(covariance)[0]
    )


def test_a_prior_of_no_variance_is_not_moved():
    """Nor in a code that mixes it with others."""
    code = code_of(np.eye(2), np.diag([0.0, 1.0]), np.array([3.0, 4.0]))
    np.testing.assert_allclose(code.decode([1.0, 1.0], 1.0), [3.0, 4.5], rtol=2e-3)
    np.testing.assert_allclose(code.standard_errors(1.0), [0, np.sqrt(0.5)])
    assert code.standard_errors(1.0, [1.0, 1.0])[0] == 0
    encoder = np.random.default_rng(0).normal(size=(3, 3))
    code = code_of(encoder, np.diag([0.0, 1.0, 2.0]), shift=0.2)
    for noisy in np.random.default_rng(1).normal(scale=1e6, size=(5, 3)):
        assert code.decode(noisy, 1.0)[0] == 0


# The widening of a prior that the release contradicts.


@pytest.mark.parametrize("law", ["normal", "laplace"])
def test_noise_alone_seldom_widens_the_prior(law):
    """Of 2,000 codes that are all noise; 1 in 100 do, and 3 in 100 do once in 10^9 runs."""
    code, _, _ = random_code(6, 1)
    noise = getattr(np.random.default_rng(0), law)(scale=1e3, size=2_000)
    widened = [code.share_learned(np.var(noise), [e]) > 1e-3 for e in noise]
    assert np.mean(widened) < 0.03


# The map, and the object.


def test_the_code_of_the_mean_is_zero_however_large_it_is():
    code = code_of([[1.0, 1e-3]], np.diag([1.0, 0.0]), np.array([1e12, -1e15]))
    np.testing.assert_array_equal(code.forward([1e12 + 0.5, -1e15]), [0.5])


def test_the_same_bits_whenever_it_is_computed():
    code, _, _ = random_code(40, 9)
    values = np.random.default_rng(0).normal(size=(50, 40)) * 1e5
    first = [code.forward(value).tobytes() for value in values]
    again = pickle.loads(pickle.dumps(code))
    strided = np.repeat(values, 3, axis=1)[:, ::3]
    assert [again.forward(value).tobytes() for value in strided[::-1]][::-1] == first


def test_through_json_and_pickle():
    code, _, _ = random_code(5, 2)
    for other in (
        PublicCode.from_dict(json.loads(json.dumps(code.to_dict()))),
        pickle.loads(pickle.dumps(code)),
    ):
        assert other == code
        assert hash(other) == hash(code)
        assert other.digest == code.digest
        for name, part in vars(code).items():
            np.testing.assert_array_equal(getattr(other, name), part)


@pytest.mark.loop("part", ["encoder", "mean", "covariance", "deviations", "removable"])
def test_each_part_makes_another_code(part):
    code = random_code(5, 2)[0]
    values = code.to_dict()
    moved = np.array(values[part])
    moved[(0,) * moved.ndim] *= 1 + 1e-15
    other = PublicCode.from_dict(values | {part: moved})
    assert other != code
    assert other.digest != code.digest


@pytest.mark.loop(
    "parts",
    [
        {"removable": np.ones(2)},
        {"encoder": np.zeros((2, 2, 2))},
        {"encoder": np.ones(2)},
        {"mean": np.zeros(3)},
    ],
)
def test_parts_that_do_not_fit_are_refused(parts):
    with pytest.raises(ValueError, match="must fit together"):
        replace(random_code(2, 2)[0], **parts)


def test_parts_that_are_not_finite_and_values_of_another_size_are_refused():
    values = random_code(3, 2)[0].to_dict()
    with pytest.raises(ValueError, match="The mean of a code must be finite"):
        PublicCode.from_dict(values | {"mean": [0.0, np.nan, 0.0]})
    with pytest.raises(ValueError, match=r"one of 3 values\. Got 4 values"):
        PublicCode.from_dict(values).forward(np.ones(4))


def test_nobody_can_write_into_a_code():
    below = np.ones(2)
    view = below[:]
    above = np.ones(2)
    window = above[:]
    view.flags.writeable = above.flags.writeable = False
    code = replace(random_code(2, 1)[0], deviations=view, mean=above)
    below[:] = window[:] = 100
    np.testing.assert_array_equal([code.deviations, code.mean], np.ones((2, 2)))
    for each in (code, pickle.loads(pickle.dumps(code))):
        with pytest.raises(ValueError, match="read-only"):
            each.encoder[0] = 100
        with pytest.raises(AttributeError):
            each.shift = 1.0


def test_errors_reach_a_code_at_their_largest():
    code = random_code(5, 3)[0]
    errors = np.arange(5.0)
    assert code.reach([errors]) == pytest.approx(np.sum(np.abs(code.encoder) * errors))


def test_no_subclass_passes_for_a_code():
    with pytest.raises(TypeError, match="no subclasses"):
        type("Own", (PublicCode,), {})
