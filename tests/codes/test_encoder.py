"""Learned codes: optimal where theory says, invariant where it should be, safe at the edges."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from skdp.codes.encoder import learn_code
from skdp.codes.water import Noise, fill
from skdp.core.metric import KnownMetric, LocalMetric

seeds = st.integers(0, 10**6)
ORDERS = [1, 2]


def orthogonal(d, seed):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(d, d)))[0]


def pilots(m=199, d=6, seed=0, few=2):
    """Values that differ along a few directions, and changes along others too."""
    rng = np.random.default_rng(seed)
    along = np.where(np.arange(d) < few, 1.0, 0.02)
    values = rng.normal(size=(m, d)) * along @ orthogonal(d, seed + 1) + rng.normal(size=d)
    return values, 0.01 * rng.laplace(size=(m, d)) @ orthogonal(d, seed + 2)


def metric_of(d, seed=0):
    features = np.random.default_rng(seed).normal(size=(3 * d, d))
    return features.T @ features / len(features)


def learn(values, differences, metric=None, order=1, deviation=1.0, n_samples=100, shift=0.2):
    noise = Noise(order, deviation)
    return learn_code(values, differences, metric, noise, n_samples=n_samples, shift=shift)


def deviation_of(code, differences, noise):
    """Standard deviation of the noise that these changes would need."""
    codes = [code.forward(v) - code.forward(0 * v) for v in differences]
    return noise.of(np.linalg.norm(codes, ord=noise.order, axis=1))


def squared_error(code, values, differences, noise, metric=None):
    """Mean squared error of the output over values that are decoded from Gaussian noise."""
    rng = np.random.default_rng(3)
    s = deviation_of(code, differences, noise)
    metric = np.eye(values.shape[1]) if metric is None else metric
    errors = []
    for value in values:
        y = code.forward(value)
        errors.append(code.decode(y + rng.normal(scale=s, size=y.size), s**2) - value)
    return np.mean(np.sum(errors @ metric * errors, axis=1))


def expected_error(encoder, covariance):
    """The expected squared error of the best linear guess, for noise of variance 1."""
    with_code = encoder @ covariance
    total = with_code @ encoder.T + np.eye(len(encoder))
    return np.trace(covariance) - np.sum(with_code * np.linalg.solve(total, with_code))


def test_what_no_pilot_varies_is_not_read_and_does_not_matter_to_the_rest():
    """Nothing says its unit; the metric mixes it with others, which must not make one up."""
    values, differences = pilots(d=6)
    fixed, rest = [1, 4], [0, 2, 3, 5]
    values[:, fixed], differences[:, fixed] = 0.1, 0.0
    for metric in (None, metric_of(6), LocalMetric(metric_of(6)), np.arange(6.0)):
        given = metric.matrix if isinstance(metric, LocalMetric) else metric
        part = given if given is None or given.ndim == 1 else given[:, rest]
        part = part if part is None else part[rest]
        if isinstance(metric, LocalMetric):
            part = LocalMetric(part)
        for deviation in (1e-3, 1.0):
            code = learn(values, differences, metric, deviation=deviation)
            alone = learn(values[:, rest], differences[:, rest], part, deviation=deviation)
            assert not code.encoder[:, fixed].any()
            noisy = np.ones(code.n_released)
            assert code.decode(noisy, 1.0)[fixed].tolist() == [0.1, 0.1]
            for errors in (code.standard_errors(1.0), code.standard_errors(1.0, noisy)):
                assert errors[fixed].tolist() == [0, 0]
                assert errors[rest].all()
            of_prior = code.standard_errors(1.0)[rest]
            np.testing.assert_allclose(of_prior, alone.standard_errors(1.0), rtol=1e-6)
    nothing = np.where(np.isin(np.arange(6), fixed), 1.0, 0.0)  # all else does not matter
    assert learn(values, differences, nothing).n_released


# Against theory.


@pytest.mark.parametrize("seed", range(3))
def test_gaussian_weights_are_the_best_rows_where_values_and_changes_have_the_same_axes(seed):
    """No encoder of three dimensions does better, at the same mean square of changes."""
    rng = np.random.default_rng(seed)
    spread, size = np.exp(rng.normal(size=(2, 3)))
    covariance = np.diag(spread**2)
    budget = 1.5
    weights = fill(2, np.ones(3), spread**2, size, budget)
    ours = expected_error(np.diag(weights), covariance)

    def cost(entries):
        T = entries.reshape(3, 3)
        return expected_error(T * budget / np.linalg.norm(T * size), covariance)

    best = min(
        optimize.minimize(cost, rng.normal(size=9), method="BFGS", options={"gtol": 1e-8}).fun
        for _ in range(8)
    )
    assert ours == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("order", ORDERS)
def test_the_expected_error_is_that_of_releases(order):
    """Normal values and noise: 800 new values; their mean is off by a quarter by other pilots."""
    values, differences = pilots(999, seed=5, few=6)
    noise = Noise(order, 1.0)
    code = learn(values[:199], differences[:199], order=order, shift=0.0)
    s = deviation_of(code, differences[199:], noise)
    left = np.sum(code.standard_errors(s**2) ** 2)
    assert squared_error(code, values[199:], differences[199:], noise) == pytest.approx(
        left, rel=0.25
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("deviation", [0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("shift", [0.0, 0.2])
def test_not_worse_than_the_mean_or_all_values(order, deviation, shift):
    """On new values, a code beats both what it costs to release all and to release nothing.

    A prior that allows for a shift costs something where there is none.
    """
    values, differences = pilots(400, seed=7)
    noise = Noise(order, deviation)
    code = learn(values[:199], differences[:199], None, order, deviation, shift=shift)
    error = squared_error(code, values[199:], differences[199:], noise)
    all_values = values.shape[1] * noise.of(np.linalg.norm(differences, ord=order, axis=1)) ** 2
    nothing = np.mean(np.sum((values[199:] - values[:199].mean(axis=0)) ** 2, axis=1))
    assert error < (1.5 if shift else 1.05) * min(all_values, nothing)


def test_less_noise_releases_more_numbers_and_more_noise_one():
    values, differences = pilots(d=12, few=4)
    counts = [
        learn(values, differences, deviation=s).n_released for s in (1e-6, 1e-2, 1.0, 30.0, 1e9)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 12
    assert counts[-1] == 1


def test_more_shift_trusts_the_pilots_less():
    values, differences = pilots()
    for deviation in (0.3, 3.0):
        errors = [
            learn(values, differences, deviation=deviation, shift=shift).deviations.sum()
            for shift in (0.0, 0.2, 1.0)
        ]
        assert errors == sorted(errors)


# Invariance.


@settings(max_examples=10)
@given(seeds, st.sampled_from(ORDERS), st.sampled_from([1e-150, 1e-20, 1e20, 1e150]))
@pytest.mark.slow
def test_the_units_of_values_do_not_matter(seed, order, size):
    values, differences = pilots(30, 5, seed)
    units = size * np.geomspace(1, 1e3, 5)
    metric = metric_of(5, seed)
    one = learn(values, differences, metric, order)
    other = learn(
        values * units, differences * units, metric / np.outer(units / size, units / size), order
    )
    y = one.forward(values[0]), other.forward(values[0] * units)
    decoded = one.decode(y[0], 0.5), other.decode(y[1], 0.5) / units
    scale = np.abs(values).max()
    np.testing.assert_allclose(decoded[1] / scale, decoded[0] / scale, atol=1e-4)
    errors = one.standard_errors(0.5), other.standard_errors(0.5) / units
    np.testing.assert_allclose(errors[1], errors[0], rtol=1e-3)
    assert one.share_learned(0.5) == pytest.approx(other.share_learned(0.5), abs=1e-4)


@settings(max_examples=10)
@given(seeds, st.sampled_from(ORDERS))
@pytest.mark.slow
def test_the_order_of_the_values_does_not_matter(seed, order):
    values, differences = pilots(30, 5, seed)
    metric, p = metric_of(5, seed), np.random.default_rng(seed).permutation(5)
    one = learn(values, differences, metric, order)
    other = learn(values[:, p], differences[:, p], metric[np.ix_(p, p)], order)
    decoded = (
        one.decode(one.forward(values[0]), 0.5)[p],
        other.decode(other.forward(values[0, p]), 0.5),
    )
    np.testing.assert_allclose(*decoded, atol=1e-4 * np.abs(values).max())


def test_learning_twice_gives_the_same_bits():
    values, differences = pilots()
    one, other = learn(values, differences), learn(values, differences)
    assert one == other
    assert pickle.dumps(one) == pickle.dumps(other)


# Edges.


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("m", [5, 19])
@pytest.mark.parametrize("d", [1, 2, 40])
@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("deviation", [1e-9, 1.0, 1e9])
def test_few_pilots_of_one_or_many_values(order, m, d, shift, deviation):
    values, differences = pilots(m, d)
    code = learn(values, differences, None, order, deviation, shift=shift)
    s = deviation_of(code, differences, Noise(order, deviation))
    decoded = code.decode(code.forward(values[0]), s**2)
    assert np.isfinite(decoded).all()
    assert np.isfinite(code.standard_errors(s**2)).all()
    assert 0 <= code.share_learned(s**2) <= 1
    if deviation == 1e-9:
        np.testing.assert_allclose(decoded, values[0], atol=1e-5 * np.abs(values).max())
        assert code.share_learned(s**2) > 0.999
    if deviation == 1e9:
        np.testing.assert_allclose(decoded, values.mean(axis=0), atol=1e-5)
        assert code.share_learned(s**2) < 1e-5


@pytest.mark.parametrize("order", ORDERS)
def test_a_jump_that_no_pilot_pair_shows_costs_as_much_as_other_changes(order):
    """Of a number that the output does not feel; its prior allows for a shift, as of others."""
    rng = np.random.default_rng(0)
    values, differences = rng.normal(size=(59, 4)), rng.laplace(size=(59, 4)) / 100
    values[:, 0] *= 1e4
    differences[:, 0] = 0
    metric = np.diag([0.0, 1, 1, 1])
    code = learn(values, differences, metric, order, deviation=1e-3, n_samples=2000)
    assert code.n_released == 4
    shifted = np.sqrt(1 + 0.2**2 * 2000)  # a record has 1 / 2000 of the variance
    assert code.deviations[0] == pytest.approx(shifted * values[:, 0].std(), rel=0.05)
    strict = learn(values, differences, metric, order, 1e-3, n_samples=2000, shift=0.0)
    assert strict.deviations[0] == pytest.approx(values[:, 0].std(), rel=0.05)
    changes = np.array([[1e4, 0, 0, 0], [0, 0.01, 0.01, 0.01], [0, 0, 0, 0]])
    jump, other, nothing = map(code.forward, changes)
    norms = [np.linalg.norm(moved - nothing, ord=order) for moved in (jump, other)]
    assert norms[0] < 10 * norms[1]


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_values_that_do_not_differ_between_pilots(shift):
    _, differences = pilots()
    values = np.ones_like(differences)
    code = learn(values, differences, shift=shift)
    assert code.n_released == 6 if shift else code is None


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("d", [5, 2500])
@pytest.mark.parametrize("n_changed", [1, 2, 5])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_pairs_of_which_few_change_anything(order, d, n_changed, shift):
    """What is learned from enough of them gives back the mean."""
    rng = np.random.default_rng(0)
    values, differences = rng.normal(size=(40, d)), np.zeros((40, d))
    differences[:n_changed, : max(1, d // 5)] = 1e-3
    code = learn(values, differences, None, order, shift=shift)
    if code is None:
        assert n_changed < 5 or d == 2500  # the values are told better by themselves
        return
    decoded = code.decode(code.forward(values.mean(axis=0)), 1.0)
    np.testing.assert_allclose(decoded, values.mean(axis=0), atol=1e-9)


def test_nothing_is_learned_without_noise_without_changes_or_from_few_pilots():
    values, differences = pilots()
    assert learn(values, differences, deviation=0.0) is None
    assert learn(values, 0 * differences) is None
    for few in (4, 1):
        assert learn(values[:few], differences[:few]) is None


@pytest.mark.parametrize(("d", "few"), [(6, 4), (2500, 1000)])
@pytest.mark.parametrize("shift", [0.1, 1.0])
def test_where_a_function_is_all_but_zero_errors_allow_for_one_record_that_is_there(shift, d, few):
    values, differences = np.random.default_rng(0).normal(size=(2, 60, d))
    for pilots in (values, differences):
        pilots[:, few:] *= 1e-15
    differences[2:, few:] *= 1e-3  # the changes by a few records are the largest
    code = learn(values, differences, KnownMetric(np.ones(d)), shift=shift)
    size = np.abs(differences[:, :few]).mean(axis=0).max()
    np.testing.assert_allclose(code.deviations[few:], 0.03 * size * shift * 100 / np.sqrt(2))
    assert code.deviations[:few].min() > 0.5
    assert learn(values, differences, shift=shift).deviations[few:].max() < 1e-12


@pytest.mark.parametrize("d", [6, 2100])
@pytest.mark.parametrize("shift", [0.2, 1.0])
def test_a_shift_turns_an_output_little_farther_than_to_its_opposite(d, shift):
    """One record changes all here: such influences do not add up. Nothing caps a bare number."""
    values, differences = np.random.default_rng(0).normal(size=(2, 60, d))
    spread = values.var(axis=0, ddof=1).sum() * (1 + 1 / 60)
    added = [8 * np.mean(np.sum(values**2, axis=1)), 100**2 / 2 * np.sum(differences**2) / 60]
    for metric, most in zip((np.ones(d), None), added, strict=True):
        code = learn(values, differences, metric, shift=shift)
        assert np.sum(code.deviations**2) == pytest.approx(
            spread + shift**2 * most, rel=1e-3 if d == 6 else 0.05
        )


def test_influences_of_a_sum_add_up():
    """Values far from 0, of which a record has its share: the whole shift is allowed for."""
    values, differences = np.random.default_rng(0).normal(size=(2, 60, 6)) / [[[10]], [[100]]]
    codes = [learn(values + 5, differences, metric) for metric in (np.ones(6), None)]
    np.testing.assert_allclose(codes[0].deviations, codes[1].deviations)
