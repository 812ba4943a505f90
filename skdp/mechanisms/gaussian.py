"""The Gaussian mechanism, on a lattice, calibrated for every epsilon."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from skdp.core.checks import check_rules, is_real, shown
from skdp.core.guarantee import NoiseLaw
from skdp.core.types import ByteSource
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.base import CodeParameter
from skdp.mechanisms.discrete import MAX_SCALE, discrete_gaussian
from skdp.mechanisms.noise import Lattice

_LEAST_DELTA = 1e-300  # below it the curve underflows, and noise might come out too small


def gaussian_delta(epsilon: float, sigma: float) -> float:
    """Return delta of continuous Gaussian noise at an epsilon, for sensitivity 1, rounded up.

    Theorem 8 of Balle and Wang: with a = 1 / (2 sigma) - epsilon sigma and b = a - 1 / sigma,
    delta = Phi(a) - e^epsilon Phi(b). Because b^2 - a^2 = 2 epsilon, the second term equals
    phi(a) times the Mills ratio at -b, which keeps the huge exponential out of the computation.
    The floating-point error of the formula is added; epsilon may be negative.
    """
    half, tilt = 0.5 / sigma, epsilon * sigma
    a, b = half - tilt, -half - tilt
    weight = 0.5 * math.exp(-0.5 * a * a)  # sqrt(pi / 2) phi(a)
    first = ndtr(a) if a >= 0 else weight * erfcx(-a / math.sqrt(2))
    second = weight * erfcx(-b / math.sqrt(2)) if b < 0 else math.exp(epsilon + log_ndtr(b))
    # An error of 2^-52 in a, of as much in the two functions, and of a^2 2^-52 in the weight.
    return float(first - second + (min(a * a, 1e6) + 1) * 2.0**-50 * first)


def gaussian_sigma(epsilon: float, delta: float) -> float:
    """Return the smallest standard deviation of continuous noise per unit of L2 sensitivity.

    It is rounded up, by at most 1e-8 of it (section 3 of Balle and Wang).
    """
    return _smallest(lambda sigma: gaussian_delta(epsilon, sigma) <= delta, start=1.0)


def lattice_delta(epsilon: float, sigma: float, steps: float, n_values: int) -> float:
    r"""Bound delta of discrete Gaussian noise, on whole numbers, at a given epsilon.

    Let Y be discrete Gaussian noise of parameter sigma on d integers, N continuous Gaussian
    noise of the same sigma, R its rounding to the nearest integers, and w, with Euclidean length
    at most s, what the two rounded values differ by. Then

        delta_Y(epsilon) <= exp(d / (24 sigma^2)) delta_N(epsilon - s sqrt(d) / (2 sigma^2)).

    *Proof.* (1) One value of R is y with probability phi(y) E[exp(-(2 y u + u^2) / (2 sigma^2))],
    u uniform in [-1/2, 1/2] and phi the density of N. By symmetry in u and Jensen's inequality
    the expectation is at least E[exp(-u^2 / (2 sigma^2))] >= exp(-1 / (24 sigma^2)). By Poisson's
    summation formula the weights exp(-y^2 / (2 sigma^2)) add up to at least sigma sqrt(2 pi), so
    P(Y = y) <= phi(y). Hence P(Y = y) <= exp(1 / (24 sigma^2)) P(R = y), and over d independent
    values the d-th power of it.
    (2) The privacy loss of Y at y is (2 <w, y> + \|w\|^2) / (2 sigma^2), and delta_Y(epsilon) is
    the mean of h(<w, Y>), where h(x) is the positive part of
    1 - exp(epsilon - (2 x + \|w\|^2) / (2 sigma^2)). By (1) that is at most
    exp(d / (24 sigma^2)) times the mean of h(<w, R>).
    (3) R and N are at most sqrt(d) / 2 apart, so <w, R> <= <w, N> + \|w\| sqrt(d) / 2. h
    increases, and adding c to its argument is taking c / sigma^2 off epsilon; so the mean of
    h(<w, R>) is at most delta_N, for w, at epsilon - \|w\| sqrt(d) / (2 sigma^2). This increases
    with \|w\|, which is at most s.

    `sigma` and the L2 sensitivity `steps`, rounding charged, are in steps of the lattice. The bound
    may exceed 1 when the lattice is coarse.
    """
    excess = n_values / (24 * sigma * sigma)
    shift = steps * math.sqrt(n_values) / (2 * sigma * sigma)
    return math.exp(min(excess, 700.0)) * gaussian_delta(epsilon - shift, sigma / steps)


@functools.lru_cache(maxsize=64)  # a release asks for it more than once
def gaussian_scale(
    sensitivity: float, n_values: int, epsilon: float, delta: float
) -> tuple[Lattice, int]:
    """Choose the lattice, and the least parameter whose `lattice_delta` is at most delta."""
    epsilon, delta = float(epsilon), float(delta)  # numpy's float32 would compute in float32
    charge = math.isqrt(n_values - 1) + 1  # sqrt(n_values), rounded up
    ratio = gaussian_sigma(epsilon, delta)
    # Little noise needs a fine step too, or rounding sigma up would cost.
    lattice = Lattice.fine(sensitivity, charge * min(max(1.0, 1 / ratio), 2.0**20))
    while True:
        steps = lattice.integer_sensitivity(sensitivity, charge)
        if steps * ratio < MAX_SCALE / 2:  # the lattice takes less than twice the continuous one
            break
        if steps <= 4 * charge:
            raise ValueError(
                "The 'epsilon' and 'delta' parameters of GaussianMechanism are too small for "
                f"{n_values} released values: rounding to a lattice would cost as much as the "
                f"noise. Got epsilon={shown(epsilon)} and delta={shown(delta)}."
            )
        lattice = Lattice(lattice.exponent + 1)
    sigma = _smallest(
        lambda sigma: lattice_delta(epsilon, sigma, steps, n_values) <= delta, start=steps * ratio
    )
    return lattice, math.ceil(max(sigma, steps * ratio))


def _smallest(enough: Callable[[float], bool], start: float) -> float:
    """Bisect for the smallest sigma that is enough, and end on the safe side of it."""
    high = start
    while not enough(high):
        high *= 2
    low = high / 2
    while enough(low):
        low, high = low / 2, low
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    # Relative errors of 2^-52 in 1 / sigma and epsilon sigma are much less than this.
    return high * (1 + 1e-9)


class GaussianMechanism(AdditiveMechanism):
    """Noise of the Gaussian law, calibrated to the L2 norm.

    The standard deviation is calibrated exactly, for every epsilon [1]_. The noise is discrete
    Gaussian on a power-of-two lattice and drawn exactly [2]_. What rounding and discreteness can
    cost is charged, with proofs at `skdp.mechanisms.noise.Lattice` and
    `skdp.mechanisms.gaussian.lattice_delta`: less than .1 % more noise than the continuous law.

    Parameters
    ----------
    epsilon : float in (0, inf]
        Bound on the privacy loss. ``inf`` adds no noise.
    delta : float in [1e-300, 1)
        Probability mass on which the bound may fail. Much less than one over the number of
        records is usual.
    code : None, "auto", "learned" or PublicCode, default="auto"
        What gets the noise, as in LaplaceMechanism.
    shift : float in [0, 1], default=0.2
        Which share of the private records may be unlike the oracle's, as in LaplaceMechanism.

    References
    ----------
    .. [1] Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy: Analytical
       Calibration and Optimal Denoising", ICML 2018, theorem 8.
    .. [2] Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential Privacy",
       NeurIPS 2020.

    Examples
    --------
    >>> from skdp import GaussianMechanism
    >>> mechanism = GaussianMechanism(epsilon=1.0, delta=1e-5)
    >>> mechanism.release([0.2, 0.7], sensitivity=0.01).shape
    (2,)
    >>> mechanism.guarantee(gamma=0.05).short
    'random differential privacy, epsilon=1, delta=1e-05, gamma=0.05'
    """

    order: ClassVar[int] = 2

    def __init__(
        self, epsilon: float, delta: float, *, code: CodeParameter = "auto", shift: float = 0.2
    ):
        super().__init__(epsilon, code=code, shift=shift)
        self.delta = delta

    def unit_deviation(self, n_values: int) -> float:
        epsilon, delta = float(self.epsilon), float(self.delta)
        return 0.0 if math.isinf(epsilon) else gaussian_sigma(epsilon, delta)

    def _kurtosis(self, n_values: int) -> float:
        return 0.0

    @property
    def noise_law(self) -> NoiseLaw | None:
        """Law of the noise, for composition; None where it is next to none, or a subclass's."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        is_own = self._releases_as_here and type(self)._draw is GaussianMechanism._draw
        if epsilon > 1e6 or not is_own:
            return None
        return NoiseLaw("gaussian", 1 / gaussian_sigma(epsilon, delta))

    def _scale(self, n_values: int, sensitivity: float) -> tuple[Lattice, int]:
        return gaussian_scale(sensitivity, n_values, self.epsilon, self.delta)

    def _draw(self, scale: int, size: int, source: ByteSource) -> NDArray[np.int64]:
        return discrete_gaussian(scale, size, source)

    def _spread(self, n_values: int) -> float:
        return 1.0

    def _check(self) -> None:
        super()._check()
        delta, least = self.delta, _LEAST_DELTA
        fits = is_real(delta) and least <= delta < 1
        rule = f"be a number in [{least}, 1)"
        check_rules(type(self).__name__, delta=(delta, fits, rule))
