"""Mironov's attack: the digits of an output tell nothing, and would tell of numpy's noise."""

import numpy as np

from benchmarks.floating_point import (
    CODES,
    KINDS,
    reached,
    share_told_apart,
    unexplained,
    unexplained_numbers,
)
from skdp import GaussianMechanism, LaplaceMechanism


class Textbook:
    """Noise in doubles."""

    def release(self, value, sensitivity):
        return np.random.default_rng(0).laplace(value, sensitivity)


def test_the_attack_breaks_the_noise_of_numpy():
    """Seeded. Over seeds the share is .80, and .6 is twelve standard errors below."""
    assert share_told_apart(0.1, 1.1, 600, np.random.default_rng(0)) > 0.6
    outputs = np.random.default_rng(1).laplace(0.1, size=200)
    assert sum(reached(output, 0.1) for output in outputs) > 190  # 200 with one logarithm in both


def test_numbers_that_are_reached_from_one_value_are_reached_from_both():
    n = 50_000
    for mechanism in (LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-5)):
        assert unexplained_numbers(mechanism, n) == 0
    assert unexplained_numbers(Textbook(), n) > n


def test_so_they_are_in_every_code():
    for kind in KINDS:
        for options in CODES.values():
            assert unexplained(kind, options, 12) == (0, 72)
