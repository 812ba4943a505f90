"""The Laplace mechanism: the promise in exact fractions, and what is released."""

from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from skdp.mechanisms.discrete import MAX_SCALE
from skdp.mechanisms.laplace import LaplaceMechanism

sizes = st.integers(1, 20) | st.integers(1, 10**6)
epsilons = st.floats(-6, 6).map(lambda power: 10.0**power)
sensitivities = st.floats(-300, 300).map(lambda power: 10.0**power)


@given(sensitivity=sensitivities, d=sizes, epsilon=epsilons)
@example(sensitivity=1e-300, d=10**6, epsilon=1e6)
@example(sensitivity=1e300, d=10**6, epsilon=1e-6)
@example(sensitivity=1e300, d=1, epsilon=1e6)
@example(sensitivity=5e-324, d=3, epsilon=1.0)
def test_released_epsilon_by_exact_fractions(sensitivity, d, epsilon):
    """Never above the epsilon asked for, and at most .1 % more noise than Delta / epsilon."""
    lattice, scale = LaplaceMechanism(epsilon)._scale(d, sensitivity)
    step = Fraction(2) ** lattice.exponent
    worst = Fraction(sensitivity) / step + d  # largest L1 norm after rounding
    assert worst / scale < Fraction(epsilon)
    assert 1 <= scale <= MAX_SCALE
    needed = Fraction(sensitivity) / Fraction(epsilon) / step
    assert Fraction(999, 1000) * scale <= needed


@given(
    rows=st.lists(st.tuples(st.floats(-9, 9), st.floats(-1, 1)), min_size=1, max_size=8),
    epsilon=epsilons,
    outputs=st.randoms(use_true_random=False),
)
def test_probability_ratio_on_neighboring_values(rows, epsilon, outputs):
    """log P(z | f) / P(z | f') as an exact fraction, for outputs near, between and far away."""
    value, shift = np.array(rows).T
    other = value + shift
    sensitivity = LaplaceMechanism(epsilon).geometry.distance(value, other)
    if sensitivity == 0:
        return
    lattice, scale = LaplaceMechanism(epsilon)._scale(len(rows), sensitivity)
    here = lattice.to_integers(value).tolist()
    there = lattice.to_integers(other).tolist()
    for _ in range(5):
        z = [outputs.choice([a, b, a - 10**6, b + scale]) for a, b in zip(here, there, strict=True)]
        far = sum(abs(x - k) for x, k in zip(z, there, strict=True))
        near = sum(abs(x - k) for x, k in zip(z, here, strict=True))
        assert abs(Fraction(far - near, scale)) <= Fraction(epsilon)
