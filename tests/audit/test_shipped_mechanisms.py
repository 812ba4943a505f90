"""Every mechanism of the library under audit: honest as shipped, caught with its noise halved.

At alpha = 1e-4 and a dozen audits of honest noise the file fails by chance with probability below
2e-3 over seeds; the seeds are fixed. Halved noise doubles epsilon, which is far beyond the error of
these sizes.
"""

import numpy as np
import pytest

from benchmarks.gallery import TextbookLaplace
from skdp import (
    ExponentialMechanism,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
)
from skdp.audit import audit_epsilon, audit_release
from skdp.core.geometry import Geometry

ALPHA = 1e-4
SIZES = {"n_search": 5000, "n_final": 50_000}


def both(value_x, value_y, mechanism, sensitivity, **options):
    """Audit the noise as shipped, and half of it."""
    options = {"alpha": ALPHA, "rng": 0} | options
    return tuple(
        audit_release(value_x, value_y, mechanism, share * sensitivity, **options)
        for share in (1.0, 0.5)
    )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_laplace(epsilon):
    honest, halved = both([0.3], [1.3], LaplaceMechanism(epsilon), 1.0, stacked=True, **SIZES)
    assert not honest.violated
    assert honest.lower_bound > 0.7 * epsilon
    assert halved.violated
    assert honest.method == "label"


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.01)])
def test_gaussian_by_the_pair_test(epsilon, delta):
    # A small delta lets little be seen of a loss that only grows in the tails: more runs.
    honest, halved = both(
        [0.3], [1.3], GaussianMechanism(epsilon, delta), 1.0, stacked=True, n_search=10_000,
        n_final=100_000,
    )  # fmt: skip
    assert not honest.violated
    assert halved.violated
    assert honest.method == "pair"
    assert honest.delta == delta


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exponential", "permute-and-flip"])
def test_choices(method):
    mechanism = ExponentialMechanism(2.0, method=method)
    scores = np.array([1.0, 0, 0, 0, 0]), np.array([0.0, 1, 1, 1, 1])
    honest, halved = both(*scores, mechanism, 1.0, n_search=150, n_final=500)
    assert not honest.violated
    assert halved.violated


@pytest.mark.slow
def test_vectors_in_the_norm_of_the_mechanism():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3, 4))
    step = rng.normal(size=(3, 4))
    for mechanism in (LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-3)):
        size = mechanism.geometry.distance(step, np.zeros_like(step))
        honest, halved = both(
            x, x + step, mechanism, size, stacked=True, n_search=2000, n_final=10_000
        )
        assert not honest.violated
        assert halved.violated


@pytest.mark.slow
def test_l2_laplace():
    mechanism = L2LaplaceMechanism(2.0)
    honest, halved = both([0.0, 0.0], [0.6, 0.8], mechanism, 1.0, n_search=100, n_final=250)
    assert not honest.violated
    assert halved.violated


def textbook(x, n, rng):
    return TextbookLaplace(1.0)(x, n, rng)


def numpys(x, n, rng):
    return x + rng.laplace(size=n)


def library(x, n, rng):
    return LaplaceMechanism(1.0).release(np.full(n, x), 1.0, rng)


@pytest.mark.parametrize("method", ["label", "pair"])
@pytest.mark.parametrize("pair", [(0.0, 1.0), (0.3, 1.3)])
def test_digits_betray_textbook_noise_and_not_the_lattice(pair, method):
    """In doubles by either way of drawing; rounded, the same values are honest."""
    options = {"claimed_epsilon": 1.0, "alpha": ALPHA, "rng": 0, "method": method}
    for mechanism in (textbook, numpys):
        found = audit_epsilon(mechanism, [pair], **options)
        assert found.lower_bound > 4.0
        assert "trailing zeros" in found.event
    for mechanism in (library, lambda x, n, rng: np.round(numpys(x, n, rng), 9)):
        assert 0.75 < audit_epsilon(mechanism, [pair], **options).lower_bound <= 1.0


class FloatLaplace(LaplaceMechanism):
    """Noise that is drawn and added in doubles."""

    def release(self, value, sensitivity, rng):
        return value + rng.laplace(scale=sensitivity / self.epsilon, size=np.shape(value))


@pytest.mark.parametrize("exact", [([0.3], [1.3]), ([0.0, 5.0], [0.5, 5.5])])
def test_a_release_is_audited_by_its_digits_too(exact):
    options = {"stacked": True, "alpha": ALPHA, "rng": 0}
    assert not audit_release(*exact, LaplaceMechanism(1.0), 1.0, **options).violated
    assert audit_release(*exact, FloatLaplace(1.0), 1.0, **options).violated


def test_values_of_different_shape_are_refused():
    with pytest.raises(ValueError, match=r"same shape. Got \(1,\) and \(2,\)"):
        audit_release([0.0], [0.0, 1.0], LaplaceMechanism(1.0), 1.0)


class SupremumLaplace(LaplaceMechanism):
    """Noise that is calibrated to the largest coordinate: enough for one value only."""

    geometry = Geometry(np.inf)


@pytest.mark.slow
def test_any_norm_and_any_mechanism():
    # In three coordinates the change of each is covered and their sum is not: epsilon is 3.
    result = audit_release(
        np.zeros(3), np.ones(3), SupremumLaplace(1.0), 1.0, n_search=150, n_final=600, rng=0,
        alpha=ALPHA,
    )  # fmt: skip
    assert result.violated
