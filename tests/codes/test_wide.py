"""Codes of very many values: as the dense ones where these are known, and small in memory."""

import tracemalloc

import numpy as np
import pytest

from skdp.codes.encoder import learn_code
from skdp.codes.water import Noise

ORDERS = [1, 2]


def pilots(m=40, d=2500, rank=3, rest=0.01, seed=0):
    """Values that differ along few directions, and a little along all."""
    rng = np.random.default_rng(seed)
    along = rng.normal(size=(rank, d))
    values = rng.normal(size=(m, rank)) @ along + rest * rng.normal(size=(m, d)) + 2
    return values, 0.02 * (rng.laplace(size=(m, rank)) @ along + rest * rng.normal(size=(m, d)))


def learn(values, differences, order=1, deviation=1.0, metric=None, shift=0.2, **options):
    noise = Noise(order, deviation)
    return learn_code(values, differences, metric, noise, n_samples=50, shift=shift, **options)


def released(code, values, differences, order, deviation):
    """Decoded values, with Gaussian noise that is calibrated to the changes; and its variance."""
    codes = [code.forward(v) - code.forward(0 * v) for v in differences]
    s = Noise(order, deviation).of(np.linalg.norm(codes, ord=order, axis=1))
    noise = np.random.default_rng(1).normal(scale=s, size=(len(values), code.n_released))
    decoded = [code.decode(code.forward(v) + e, s**2) for v, e in zip(values, noise, strict=True)]
    return np.array(decoded), s**2


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("deviation", [1.0, 10.0])
def test_as_good_as_the_dense_code_where_values_fill_a_small_space(order, deviation):
    values, differences = pilots(80, 200)
    new, held_out = (values[40:], differences[40:])
    errors = []
    for most in (2000, 100):
        code = learn(values[:40], differences[:40], order, deviation, most_dense=most)
        decoded, _ = released(code, new, held_out, order, deviation)
        errors.append(np.mean((decoded - new) ** 2))
    assert errors[1] < 1.3 * errors[0]
    assert errors[1] < 0.8 * np.mean((new - values[:40].mean(axis=0)) ** 2)


@pytest.mark.parametrize("order", ORDERS)
def test_the_standard_errors_hold_for_new_values(order):
    """Mean squares over 500 new values, whose prior is known up to what 40 pilots tell."""
    values, differences = pilots(540, 2500, rest=0.1)
    code = learn(values[:40], differences[:40], order, shift=0.0)
    decoded, variance = released(code, values[40:], differences[40:], order, 1.0)
    said = np.mean(code.standard_errors(variance) ** 2)
    assert np.mean((decoded - values[40:]) ** 2) == pytest.approx(said, rel=0.5)


def test_a_shift_widens_the_prior_by_what_so_many_records_change():
    records = pilots(10, 2001)
    narrow, wide = (learn(*records, shift=shift) for shift in (0.0, 0.5))
    changed = (0.5 * 50) ** 2 * np.mean(records[1] ** 2, axis=0) / 2
    widened = wide.deviations**2 - narrow.deviations**2
    np.testing.assert_allclose(widened.sum(), changed.sum(), rtol=0.5)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("deviation", [1e-3, 1e9])
def test_few_pilots_constant_columns_and_all_sizes_of_noise(order, shift, deviation):
    values, differences = pilots(12)
    values[:, :100], differences[:, :200] = 3.0, 0.0
    metric = np.geomspace(1, 1e3, 2500)
    code = learn(values, differences, order, deviation, metric, shift)
    if code is None:  # the values themselves are told better
        assert deviation == 1e-3
        return
    decoded, variance = released(code, values[:1], differences, order, deviation)
    assert np.isfinite(decoded).all()
    assert np.isfinite(code.standard_errors(variance)).all()
    assert 0 <= code.share_learned(variance) <= 1
    np.testing.assert_allclose(decoded[0, :100], 3)
    assert np.abs(decoded - values.mean(axis=0)).max() < 1e-2 or deviation < 1e8


@pytest.mark.parametrize("order", ORDERS)
def test_no_code_is_learned_where_the_values_themselves_are_told_better(order):
    """Values without structure: the axes of the pilots say little of others."""
    values, differences = np.random.default_rng(0).normal(size=(2, 30, 2200)) * [[[1]], [[1e-3]]]
    assert learn(values, differences, order, deviation=1e-4) is None
    assert learn(values, differences, order, deviation=1e4).share_learned(1e12) < 1e-3


@pytest.mark.parametrize("order", ORDERS)
def test_a_third_of_the_largest_shift_is_expected_to_stay_public(order):
    """Of changes without structure the axes reach little: of .5 * 50 records a third comes."""
    values, differences = np.random.default_rng(0).normal(size=(2, 100, 2200)) * [[[0.1]], [[0.5]]]
    stays = np.sum((0.5 * 50) ** 2 / 6 * np.mean(differences**2, axis=0))
    norms = np.linalg.norm(differences, ord=order, axis=1)
    each = (stays / 2200) ** 0.5 / Noise(order, 1.0).of(norms)
    assert learn(values, differences, order, 0.9 * each, shift=0.5) is None
    assert learn(values, differences, order, 1.2 * each, shift=0.5) is not None


def test_units_do_not_matter():
    values, differences = pilots()
    units = np.geomspace(1, 100, 2500)
    one = learn(values, differences, metric=np.ones(2500))
    other = learn(values * units, differences * units, metric=units**-2.0)
    decoded = one.decode(one.forward(values[0]), 0.5)
    moved = other.decode(other.forward(values[0] * units), 0.5)
    np.testing.assert_allclose(moved / units, decoded, atol=1e-4)
    np.testing.assert_allclose(
        other.standard_errors(0.5) / units, one.standard_errors(0.5), rtol=1e-3
    )


@pytest.mark.slow
def test_no_array_of_all_by_all():
    values, differences = pilots(199, 10_000)
    tracemalloc.start()
    learn(values, differences)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * values.nbytes  # 127 MB; all by all are 800
