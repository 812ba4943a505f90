"""The laws of the privacy loss of the mechanisms, in closed form.

`LaplaceLoss` and `GaussianLoss` belong to the two additive mechanisms, on the worst pair they
cover; `PureLoss` is what can be said of any mechanism whose delta is zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr, ndtr, ndtri

from skdp.accounting.composition import Floats, PrivacyLossDistribution
from skdp.core.checks import check_count, check_real

_TAIL = 1e-16  # mass of an unbounded law that a grid may leave out; it is charged to delta
_LARGEST = 1e150  # its square is a double


@dataclass(frozen=True)
class LaplaceLoss(PrivacyLossDistribution):
    """Loss of the Laplace mechanism on a pair at distance ``epsilon0`` noise scales.

    With noise u of scale 1 the loss is ``abs(u - epsilon0) - abs(u)``: epsilon0 where u <= 0,
    -epsilon0 where u >= epsilon0 and ``epsilon0 - 2 u`` between. Hence an atom of mass 1/2 at
    epsilon0, one of mass ``exp(-epsilon0) / 2`` at -epsilon0, and
    ``P(L <= l) = exp((l - epsilon0) / 2) / 2`` between them.

    Parameters
    ----------
    epsilon0 : float in (0, inf)
        L1 distance of the two target values over the scale of the noise.

    Notes
    -----
    Several outputs at the same L1 distance are never worse than one, in `delta`, `epsilon`,
    composition and `cdf` at levels of at least 0: the user guide has the proof, by the chain of
    trade-off curves of [1]_.

    The law is that of continuous noise. `LaplaceMechanism` draws discrete noise on a lattice of
    step w in units of the scale, w about ``epsilon0 / 2**14`` or less: there, probabilities differ
    by a factor within ``1 +- w`` and `delta` by at most ``w**2 / 8``.

    References
    ----------
    .. [1] Dong, Roth and Su, "Gaussian Differential Privacy", JRSS B 2022, sections 2 and 3.

    Examples
    --------
    >>> from skdp.risk import LaplaceLoss
    >>> loss = LaplaceLoss(1.0)
    >>> print(f"{loss.cdf(0.5):.4f} {loss.delta(0.5):.4f}")
    0.3894 0.2212
    """

    epsilon0: float

    def __post_init__(self) -> None:
        check_real("epsilon0", self.epsilon0, type(self).__name__, 0.0, math.inf)

    def _cdf(self, loss: Floats) -> Floats:
        middle = np.exp((np.minimum(loss, self.epsilon0) - self.epsilon0) / 2) / 2
        return np.select([loss < -self.epsilon0, loss < self.epsilon0], [0.0, middle], 1.0)

    def _delta(self, epsilon: Floats) -> Floats:
        middle = -np.expm1((np.minimum(epsilon, self.epsilon0) - self.epsilon0) / 2)
        low = -np.expm1(np.minimum(epsilon, 0.0))
        return np.where(epsilon < -self.epsilon0, low, middle)

    def _epsilon(self, delta: float) -> float:
        return self.epsilon0 + 2 * math.log1p(-delta)

    def _quantile(self, probability: float) -> float:
        if probability > 0.5:
            return self.epsilon0
        return max(-self.epsilon0, self.epsilon0 + 2 * math.log(2 * probability))

    def _support(self) -> tuple[float, float]:
        return -self.epsilon0, self.epsilon0


@dataclass(frozen=True)
class GaussianLoss(PrivacyLossDistribution):
    """Loss of the Gaussian mechanism on a pair at distance ``mu`` standard deviations.

    L is normal with mean ``mu**2 / 2`` and standard deviation mu, in any number of dimensions,
    because the noise has no preferred direction [1]_. `cdf` at levels of at least 0 and `delta` get
    worse with mu, so the farthest covered pair is the worst one.

    Parameters
    ----------
    mu : float in (0, 1e150)
        L2 distance of the two target values over the standard deviation of the noise.

    References
    ----------
    .. [1] Balle and Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018,
       lemma 3 and theorem 5.

    Examples
    --------
    >>> from skdp.risk import GaussianLoss
    >>> print(f"{GaussianLoss(mu=0.5).delta(1.0):.6f} {GaussianLoss(mu=0.5).epsilon(1e-5):.4f}")
    0.006830 1.9931
    """

    mu: float

    def __post_init__(self) -> None:
        check_real("mu", self.mu, type(self).__name__, 0.0, _LARGEST)

    def _cdf(self, loss: Floats) -> Floats:
        return ndtr(loss / self.mu - self.mu / 2)

    def _delta(self, epsilon: Floats) -> Floats:
        level = epsilon / self.mu
        other = np.exp(np.minimum(epsilon + log_ndtr(-level - self.mu / 2), 0.0))
        return np.maximum(ndtr(self.mu / 2 - level) - other, 0.0)

    def _epsilon(self, delta: float) -> float:
        if delta == 0:
            return math.inf
        if self.delta(0.0) <= delta:
            return 0.0
        # P(L > epsilon) is above delta(epsilon), so its quantile is a bracket.
        high = self.mu * (self.mu / 2 - float(ndtri(delta)))
        if self.delta(high) < delta:  # or else they agree to rounding
            high = float(brentq(lambda level: self.delta(level) - delta, 0.0, high, xtol=1e-13))
        return high + 2e-13 * (1 + high)

    def _quantile(self, probability: float) -> float:
        return self.mu * (self.mu / 2 + float(ndtri(probability)))

    def _support(self) -> tuple[float, float]:
        reach = -self.mu * float(ndtri(_TAIL))
        return self.mu**2 / 2 - reach, self.mu**2 / 2 + reach

    @property
    def bound(self) -> float:
        return math.inf

    def self_compose(self, n: int) -> PrivacyLossDistribution:
        return GaussianLoss(self.mu * math.sqrt(check_count("n", n, "self_compose")))

    def compose(self, other: PrivacyLossDistribution) -> PrivacyLossDistribution:
        if isinstance(other, GaussianLoss):
            return GaussianLoss(math.hypot(self.mu, other.mu))  # exact: normal laws add up
        return super().compose(other)


@dataclass(frozen=True)
class PureLoss(PrivacyLossDistribution):
    """What is known of the loss of any mechanism that is epsilon0-differentially private.

    `delta`, `epsilon` and composition are those of randomized response, which no such mechanism
    exceeds [1]_. `cdf` is the largest lower bound over all these mechanisms; it comes from two
    outcomes, one with a loss just above l and one of -epsilon0.

    Parameters
    ----------
    epsilon0 : float in (0, inf)
        Bound on the absolute loss.

    References
    ----------
    .. [1] Kairouz, Oh and Viswanath, "The Composition Theorem for Differential Privacy", ICML
       2015, theorem 3.

    Examples
    --------
    >>> from skdp.risk import PureLoss
    >>> loss = PureLoss(1.0)
    >>> print(f"{loss.cdf(0.5):.4f} {loss.delta(0.5):.4f}")
    0.1863 0.2876
    """

    epsilon0: float

    def __post_init__(self) -> None:
        check_real("epsilon0", self.epsilon0, type(self).__name__, 0.0, math.inf)

    def _cdf(self, loss: Floats) -> Floats:
        level = np.clip(loss, 0.0, self.epsilon0)
        least = math.exp(-self.epsilon0) * np.expm1(-level) / np.expm1(-level - self.epsilon0)
        return np.select([loss < 0, loss < self.epsilon0], [0.0, least], 1.0)

    def _delta(self, epsilon: Floats) -> Floats:
        level = np.minimum(epsilon, self.epsilon0) - self.epsilon0
        middle = -np.expm1(level) * expit(self.epsilon0)
        low = -np.expm1(np.minimum(epsilon, 0.0))
        return np.where(epsilon < -self.epsilon0, low, middle)

    def _epsilon(self, delta: float) -> float:
        rest = 1 - delta / expit(self.epsilon0)
        return self.epsilon0 + math.log(rest) if rest > 0 else 0.0

    def _quantile(self, probability: float) -> float:
        if probability >= expit(-self.epsilon0):
            return self.epsilon0
        share = probability * math.exp(min(self.epsilon0, 700.0))  # above it only 1e-308 is left
        return math.log1p(-probability) - math.log1p(-min(share, 1 - 2**-53))

    def _support(self) -> tuple[float, float]:
        return -self.epsilon0, self.epsilon0
