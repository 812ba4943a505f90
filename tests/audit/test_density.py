"""Truncated kernel densities: against the direct sum, and as a scikit-learn estimator."""

import numpy as np
import pytest
from scipy import integrate
from sklearn.utils.estimator_checks import estimator_checks_generator

from skdp.audit import TruncatedKernelDensity

CHECKS = [
    pytest.param(estimator, check, id=getattr(check, "func", check).__name__)
    for estimator, check in estimator_checks_generator(TruncatedKernelDensity())
    if "array_api" not in getattr(check, "func", check).__name__  # those need other libraries
]


@pytest.mark.loop(("estimator", "check"), CHECKS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def direct_sum(X, points, bandwidth):
    distance = (points[:, None] - X) / bandwidth
    kernels = (
        np.exp(-(distance**2).sum(axis=2) / 2) / (np.sqrt(2 * np.pi) * bandwidth) ** X.shape[1]
    )
    return kernels.mean(axis=1)


@pytest.mark.parametrize("far", [0.0, 1e9])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_density_against_the_direct_sum(d, far):
    """On a grid; and exactly in four columns, and where a grid would be too large."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, d))
    X[0] += far
    points = rng.normal(size=(50, d))
    density = TruncatedKernelDensity(bandwidth=0.4, floor=0.0).fit(X)
    found = np.exp(density.score_samples(points))
    tolerance = 1e-5 if far or d == 4 else {1: 2e-3, 2: 8e-3, 3: 3e-2}[d]
    expected = direct_sum(X, points, 0.4)
    assert np.abs(found - expected).max() < tolerance * expected.max()


def test_floor_and_far_points():
    X = np.random.default_rng(0).normal(size=(1000, 1))
    automatic = TruncatedKernelDensity().fit(X)
    assert automatic.bandwidth_[0] == pytest.approx(1.06 * 1000**-0.2 * X.std(), rel=0.02)
    assert automatic.floor_ == pytest.approx(16 / (1000 * automatic.bandwidth_[0]))
    assert np.exp(automatic.score_samples([[1e6]])) == pytest.approx(automatic.floor_)
    chosen = TruncatedKernelDensity(floor=0.3).fit(X)
    assert np.exp(chosen.score_samples(X)).min() == pytest.approx(0.3)
    bare = TruncatedKernelDensity(floor=0.0).fit(X)
    assert bare.score_samples([[1e6]]) == -np.inf
    outliers = np.r_[np.zeros(90), np.arange(10.0)][:, None]  # no spread between the quartiles
    spread = TruncatedKernelDensity().fit(outliers).bandwidth_[0]
    assert spread == pytest.approx(1.06 * outliers.std() * 100**-0.2)
    t = np.linspace(-8, 8, 4001)
    density = np.exp(bare.score_samples(t[:, None]))
    assert integrate.trapezoid(density, t) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.loop(
    ("parameters", "message"),
    [
        ({"bandwidth": 0.0}, "'bandwidth' .* must be positive or 'reference'. Got 0.0"),
        ({"bandwidth": "silverman"}, "'bandwidth' .* Got 'silverman'"),
        ({"bandwidth": True}, "'bandwidth' .* Got True"),
        ({"floor": -1.0}, "'floor' .* must be at least 0 or 'auto'. Got -1.0"),
        ({"floor": np.inf}, "'floor' .* Got inf"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        TruncatedKernelDensity(**parameters).fit(np.zeros((10, 1)))
