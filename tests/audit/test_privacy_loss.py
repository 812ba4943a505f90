"""The local approach: known losses, the delta-method error, atoms, and what is refused."""

import math
import re

import numpy as np
import pytest
from scipy import integrate, stats

from skdp.audit import audit_epsilon, estimate_privacy_loss
from skdp.audit.privacy_loss import Samples, kernel_density
from tests.gallery import GeometricNoise, LaplaceNoise, RandomizedResponse

ROWS = np.random.default_rng(0).random


def outputs(mechanism, x, x_prime, n, seed=0):
    rng = np.random.default_rng(seed)
    return mechanism(x, n, rng), mechanism(x_prime, n, rng)


def loss_at(x, y, points):
    """Compare the densities of two samples at some points."""
    return Samples(x, y).at_points(np.array(points))


def test_density_against_the_direct_sum():
    rng = np.random.default_rng(0)
    X, points = 2.5 * rng.normal(size=500), 2.5 * rng.normal(size=50)
    expected = np.mean([stats.norm.pdf(points - x) for x in X], axis=0)
    assert np.abs(kernel_density(X, points) - expected).max() < 1e-7


def test_loss_of_laplace_noise_is_its_epsilon_outside_the_modes():
    loss = loss_at(*outputs(LaplaceNoise(1.0), 0.0, 1.0, 200_000), [-1.5, 0.5, 2.5])
    assert not loss.is_atom.any()
    assert loss.log_ratio == pytest.approx([1.0, 0.0, -1.0], abs=0.05)
    assert (loss.lower <= loss.loss).all()
    assert (loss.loss <= loss.upper).all()


def test_atoms_are_compared_by_frequency():
    x, y = outputs(RandomizedResponse(0.7, 3), 0, 1, 50_000)
    loss = estimate_privacy_loss(x, y)
    assert loss.points.tolist() == [0, 1, 2]
    assert loss.is_atom.all()
    p, q = np.bincount(x) / 50_000, np.bincount(y) / 50_000
    assert loss.log_ratio == pytest.approx(np.log(p / q))
    assert loss.standard_error == pytest.approx(np.sqrt((1 / p + 1 / q - 2) / 50_000))


def test_mixed_outputs_have_atoms_and_a_density():
    loss = estimate_privacy_loss(*outputs(LaplaceNoise(1.0, clip=(0.0, 1.0)), 0.0, 1.0, 50_000))
    assert loss.points[loss.is_atom].tolist() == [0.0, 1.0]
    assert loss.log_ratio[loss.is_atom] == pytest.approx([1.0, -1.0], abs=0.05)
    inside = ~loss.is_atom & (loss.points > 0.2) & (loss.points < 0.8)
    assert loss.log_ratio[inside] == pytest.approx(1 - 2 * loss.points[inside], abs=0.15)
    # the density has the mass that the atoms leave
    assert integrate.trapezoid(loss.density_x[~loss.is_atom], loss.points[~loss.is_atom]) < 0.4


def test_infinite_outputs_words_and_rows_are_atoms():
    x, y = outputs(LaplaceNoise(1.0), 0.0, 1.0, 5000)
    x[:1000], y[:400] = np.inf, np.inf
    loss = estimate_privacy_loss(x, y)
    assert loss.points[-1] == np.inf
    assert loss.log_ratio[-1] == pytest.approx(math.log(1000 / 400))
    words = estimate_privacy_loss(np.repeat(["7", "none"], [300, 100]), np.full(400, 7))
    assert words.points.tolist() == ["7", "none"]
    assert words.log_ratio[0] == pytest.approx(np.log(0.75))
    mixed = estimate_privacy_loss(np.append(x[1000:].astype(str), ["none"] * 9), y[400:])
    assert mixed.points[-1] == "none"
    assert isinstance(mixed.points[0], float)
    rows = [np.stack([each > 0, each <= 0], axis=1) for each in (x, y)]
    assert estimate_privacy_loss(*rows).points.tolist() == [[0, 1], [1, 0]]


def test_nothing_is_claimed_where_nothing_is_seen():
    x, y = outputs(LaplaceNoise(1.0), 0.0, 1.0, 5000)
    loss = loss_at(x, y, [0.5, 50.0])
    assert loss.visible.tolist() == [True, False]
    assert loss.lower[1] == 0.0
    assert loss.upper[1] == np.inf
    assert min(loss.density_x.min(), loss.density_y.min()) == loss.floor[0]
    one_sided = loss_at(x + 5, y - 5, [5.0])  # one density only: at least this
    assert one_sided.floored[0]
    assert one_sided.lower[0] > 1.0
    assert one_sided.upper[0] == np.inf


@pytest.mark.slow
def test_delta_method_and_coverage_against_simulation():
    # 150 replications: the standard deviation is known to about 6 %, so 29 % is five of them; fewer
    # than 129 covered at 95 % has probability 6e-6 per point. Undersmoothed, so bias is small.
    t, reps, rng = np.array([-1.0, 0.0, 1.5]), 150, np.random.default_rng(3)
    samples = (Samples(rng.normal(size=4000), rng.normal(size=4000) + 0.5) for _ in range(reps))
    losses = [each.at_points(t, exponent=1.2) for each in samples]  # h is about .15
    ratios, errors = (
        np.array([getattr(loss, name) for loss in losses])
        for name in ("log_ratio", "standard_error")
    )
    simulated, claimed = ratios.std(axis=0), errors.mean(axis=0)
    assert claimed == pytest.approx(simulated, rel=0.29)
    # The same without the kernel's share would be off by more than a half.
    assert np.all(np.abs(claimed * math.sqrt(0.28209) - simulated) > 0.29 * simulated)
    covered = np.abs(ratios - (0.125 - 0.5 * t)) <= stats.norm.ppf(0.975) * errors
    assert (covered.sum(axis=0) >= 129).all()


def test_the_search_shuns_noisy_points_and_a_second_sample_decides():
    """The plain argmax lies where few outputs are, and is inflated."""
    mechanism = GeometricNoise(1.0)
    assert estimate_privacy_loss(*outputs(mechanism, 0, 1, 5000, seed=1)).loss.max() > 1.1
    options = {"claimed_epsilon": 1.0, "n_search": 5000, "n_final": 50_000, "method": "local"}
    found = audit_epsilon(mechanism, [(0, 1)], rng=1, **options)
    assert re.search(r"loss at output (-[123]|[0-4]), blind below probability", found.event)
    assert found.lower_bound < found.estimate < found.resolution
    assert found.estimate == pytest.approx(1.0, abs=0.1)
    smooth = audit_epsilon(LaplaceNoise(1.0), [(0.0, 1.0)], rng=1, **options)
    assert "blind below density" in smooth.event
    # a loss in the other direction than in the search is none
    shares = iter([0.9, 0.3, 0.3, 0.9])
    turned = audit_epsilon(lambda x, n, rng: rng.random(n) < next(shares), [(0, 1)], **options)
    assert turned.lower_bound == 0


@pytest.mark.loop(
    ("x", "y", "word"),
    [
        (ROWS(99), ROWS(500), "at least 100"),
        (ROWS(500), ROWS((500, 2)), "columns"),
        (ROWS((500, 4)), ROWS((500, 4)), "one column"),
    ],
)
def test_bad_calls_are_refused(x, y, word):
    with pytest.raises(ValueError, match=word):
        estimate_privacy_loss(x, y)
