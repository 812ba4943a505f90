"""What all mechanisms share: shapes, seeds, secret noise, refusals, parameters, numpy's numbers."""

import itertools
import math
import os
import pickle
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from skdp import ExponentialMechanism, GaussianMechanism, L2LaplaceMechanism, LaplaceMechanism
from skdp.core.geometry import Geometry
from skdp.mechanisms import noise
from skdp.mechanisms.discrete import MAX_SCALE, discrete_l2_laplace
from skdp.mechanisms.gaussian import gaussian_sigma
from skdp.mechanisms.noise import byte_source

GAUSSIAN = partial(GaussianMechanism, delta=1e-5)
ADDITIVE = [LaplaceMechanism, L2LaplaceMechanism, GAUSSIAN]
ALL = [*ADDITIVE, ExponentialMechanism]


@pytest.mark.loop("make", ADDITIVE)
@pytest.mark.loop("shape", [(), (4,), (2, 3), (2, 1, 3), (0,)])
def test_a_release_keeps_its_shape_and_changes_every_number(make, shape):
    value = np.full(shape, 0.1, dtype=np.float32)
    released = make(1.0).release(value, 0.5, byte_source(0))
    assert (released.shape, released.dtype) == (shape, np.float64)
    assert np.all(released != value)


@pytest.mark.loop("make", ADDITIVE)
def test_every_value_lies_on_the_same_lattice_whatever_was_released(make):
    """The trailing bits would otherwise tell 0.1 from 0.3 apart."""
    step = 2.0 ** make(0.7)._scale(16, 0.37)[0].exponent
    for center in (0.1, 0.3, -math.pi, 1e5 / 3):
        source = byte_source(1)
        released = [make(0.7).release(np.full(16, center), 0.37, source) for _ in range(12)]
        assert np.all(np.mod(released, step) == 0)
        # all sixteen endings occur for each value, so none marks it (seeded)
        assert np.unique(np.mod(np.divide(released, step), 16)).size == 16
    # noise of doubles has endings that are not on the lattice: the check above would catch it
    textbook = 0.1 + np.random.default_rng(0).laplace(scale=0.37 / 0.7, size=200)
    assert not np.any(np.mod(textbook, step) == 0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("make", [LaplaceMechanism, GAUSSIAN])
def test_noise_against_the_continuous_law(make, epsilon):
    """Kolmogorov-Smirnov, false-positive rate 1e-6 each.

    The rounding, at most .02 % of the scale, is far below the critical distance of .0085. Half or
    twice the noise differ by .12 at least.
    """
    value = np.linspace(-3, 3, 100_000)
    released = make(epsilon).release(value, 2.0, byte_source(5))
    law = stats.laplace(scale=2 / epsilon)
    if make is GAUSSIAN:
        law = stats.norm(scale=2 * gaussian_sigma(epsilon, 1e-5))
    assert stats.kstest(released - value, law.cdf).pvalue > 1e-6
    for wrong in (0.5, 2.0):
        assert stats.kstest((released - value) * wrong, law.cdf).pvalue < 1e-6


@pytest.mark.loop(("make", "k"), [*itertools.product(ADDITIVE, (1, 4))])
def test_noise_is_decoded_with_the_kurtosis_that_it_has(make, k):
    """Each row of noise has the law of one release of k numbers."""
    source, scale, n_draws = byte_source(0), 2**30, 24_000
    if make is L2LaplaceMechanism:
        drawn = discrete_l2_laplace(scale, k, source, n_draws // k)
    else:
        drawn = make(1.0)._draw(scale, n_draws, source)
    assert stats.kurtosis(drawn / scale, axis=None) == pytest.approx(
        make(1.0)._kurtosis(k), abs=0.5
    )


@pytest.mark.loop("value", [[14.0], [-1.7e308], [5e-324], [1e18, 1e-9, -3.0], [1e308, -1e308]])
@pytest.mark.loop("sensitivity", [5e-324, 1e-9, 1.0, 1e300])
@pytest.mark.loop("epsilon", [1e-3, 1e12])
@pytest.mark.loop("make", ADDITIVE)
def test_a_value_is_released_near_itself_or_not_at_all(make, value, sensitivity, epsilon):
    """40 standard errors are exceeded with a probability below 1e-20 a number."""
    value = np.array(value)
    released, errors = make(epsilon).release_with_errors(value, sensitivity, byte_source(0))
    told = 40 * errors + 1e-12 * np.abs(value).max()
    assert np.isnan(released).all() or (np.abs(released - value) <= told).all()
    if np.abs(value).max() <= 2.0**40 / len(value) * sensitivity / max(1, epsilon):
        assert np.isfinite(released).all() or sensitivity == 1e300


@pytest.mark.loop("make", ADDITIVE)
def test_infinite_epsilon_returns_an_equal_copy(make):
    value = np.array([[0.1, 1e300], [-0.3, 0.0]] * 9)
    released = make(math.inf).release(value, 1.0)
    np.testing.assert_array_equal(released, value)
    assert not np.shares_memory(released, value)


@pytest.mark.loop("make", ALL)
def test_the_seed_decides_and_without_one_the_operating_system(make, monkeypatch):
    def draw(seed):
        source = byte_source(seed)
        return [make(0.5).release([1.0, 2.0, 1.5], 1.0, source) for _ in range(50)]

    np.testing.assert_array_equal(draw(0), draw(0))
    assert np.any(np.not_equal(draw(0), draw(1)))
    asked, genuine = [], os.urandom
    monkeypatch.setattr(noise.os, "urandom", lambda n: asked.append(n) or genuine(n))
    make(1.0).release([1.0, 2.0], 1.0)
    assert asked


@pytest.mark.loop("make", ALL)
@pytest.mark.loop(
    ("name", "value"),
    [
        *(("epsilon", value) for value in (0, -1.0, math.nan, "1", None, True)),
        *(("delta", value) for value in (0.0, 1.0, True, math.nan)),
        *(("shift", value) for value in (2, -0.1, True)),
        *(("code", value) for value in (1, "none", np.eye(2))),
    ],
)
def test_parameters_outside_their_range_are_refused_in_use(make, name, value):
    mechanism = make(1.0)
    if name in mechanism.get_params():
        mechanism.set_params(**{name: value})  # storing it is fine: scikit-learn's convention
        words = f"'{name}' parameter of {type(mechanism).__name__} must be"
        for use in (lambda: mechanism.release([1.0], 1.0), mechanism.guarantee):
            with pytest.raises(ValueError, match=words):
                use()


@pytest.mark.loop("make", ALL)
@pytest.mark.loop("epsilon", [1.0, math.inf])
@pytest.mark.loop(
    ("value", "sensitivity", "message"),
    [
        *(([7.25], each, "'sensitivity' parameter") for each in (0.0, math.inf, -1.0, math.nan)),
        ([7.25, math.nan], 1.0, "must be finite"),
        ([7.25, -math.inf], 1.0, "must be finite"),
    ],
)
def test_refusals_do_not_show_the_value(make, epsilon, value, sensitivity, message):
    mechanism = make(epsilon)
    for use in (mechanism.release, getattr(mechanism, "probabilities", mechanism.release)):
        with pytest.raises(ValueError, match=message) as caught:
            use(value, sensitivity)
        assert "7.25" not in str(caught.value)


@pytest.mark.loop("make", ALL)
def test_an_epsilon_that_rounding_would_drown_is_refused(make):
    mechanism = make(1e-17)
    if make is GAUSSIAN:
        mechanism.set_params(delta=1e-18)
    with pytest.raises(ValueError, match="too small"):
        mechanism.release([1.0], 1.0)


@pytest.mark.loop(("make", "n_values"), [(LaplaceMechanism, 10**6), (L2LaplaceMechanism, 16)])
def test_the_lattice_gets_coarser_before_an_epsilon_is_refused(make, n_values):
    least = 4 * n_values / MAX_SCALE
    lattice, steps = make(least)._scale(n_values, 1.0)
    assert steps <= MAX_SCALE
    assert steps * 2.0**lattice.exponent < 1.7 / least
    with pytest.raises(ValueError, match=r"'epsilon' parameter of L.* is too small"):
        make(least / 100)._scale(n_values, 1.0)
    assert make(1e300)._scale(3, 1.0)[1] <= 2


@pytest.mark.loop(
    ("mechanism", "promised", "order", "others"),
    [
        (LaplaceMechanism(0.5, shift=0.1), (0.5, 0.0), 1, {"code": "auto"}),
        (L2LaplaceMechanism(0.5, shift=0.1), (0.5, 0.0), 2, {"code": "auto"}),
        (GaussianMechanism(0.5, 1e-6, shift=0.1), (0.5, 1e-6), 2, {"code": "auto", "delta": 1e-6}),
        (ExponentialMechanism(0.5), (0.5, 0.0), math.inf, {}),
    ],
)
def test_parameters_follow_scikit_learn(mechanism, promised, order, others):
    shift = {} if order == math.inf else {"shift": 0.1}
    assert mechanism.get_params() == {"epsilon": 0.5, **shift, **others}
    guarantee = mechanism.guarantee(gamma=0.05)
    assert (guarantee.epsilon, guarantee.delta, guarantee.gamma) == (*promised, 0.05)
    assert mechanism.geometry == Geometry(order)
    for copy in (clone(mechanism), pickle.loads(pickle.dumps(mechanism))):
        assert repr(copy) == repr(mechanism)
        same = [each.release([1.0, 2.0], 1.0, byte_source(3)) for each in (copy, mechanism)]
        np.testing.assert_array_equal(*same)
    assert clone(mechanism).set_params(epsilon=2.0).guarantee().epsilon == 2.0
    assert math.isinf(clone(mechanism).set_params(epsilon=math.inf).guarantee().epsilon)


@pytest.mark.loop("make", [*ALL, lambda epsilon: GaussianMechanism(epsilon, np.float32(1e-5))])
@pytest.mark.loop(
    "epsilon",
    [
        *(kind(3) for kind in (np.uint8, np.int8, np.int64, np.uint64)),
        *(kind(0.3) for kind in (np.float16, np.float32, np.float64, np.longdouble)),
        Fraction(1, 3),
    ],
)
def test_an_epsilon_of_any_type_gives_the_noise_of_a_float(make, epsilon):
    """Grids hold numbers of numpy, which overflow, or calibrate in low precision."""
    value = np.array([0.2, 0.7, -3.0])
    released, expected = (
        make(each).release(value, 0.37, np.random.default_rng(0))
        for each in (epsilon, float(epsilon))
    )
    np.testing.assert_array_equal(released, expected)
