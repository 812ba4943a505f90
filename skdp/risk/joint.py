"""Two sources of randomness at once: the pair, and the noise.

A release with a sampled sensitivity covers a pair of datasets with some probability over the pair,
and on a covered pair the loss is small with some probability over the noise. A pair whose norm is
below another sampled sensitivity than the one that calibrated the noise is a pair at another
distance, and its loss has another law.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.accounting.composition import PrivacyLossDistribution
from skdp.accounting.laws import GaussianLoss, LaplaceLoss, PureLoss
from skdp.core.checks import check_real, shown
from skdp.core.guarantee import NoiseLaw
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.l2_laplace import L2LaplaceMechanism
from skdp.sensitivity.base import in_code_of

_ROUNDING = 2.0**-14  # lattice rounding can add this share of the sensitivity to a difference


def privacy_loss_distribution(
    mechanism: Mechanism, sensitivity: object = 1.0, *, distance: float | None = None
) -> PrivacyLossDistribution:
    """Law of the privacy loss of one release.

    Parameters
    ----------
    mechanism : Mechanism
        One with a `noise_law`, such as `LaplaceMechanism` or `GaussianMechanism`, has its exact
        law; any other one whose delta is 0 has what its epsilon says.
    sensitivity : float in (0, inf), SensitivityEstimate or KnownSensitivity, default=1.0
        What the noise is calibrated to, as for `joint_risk`.
    distance : float in (0, inf) or None, default=None
        Norm of the difference of the target on the pair. None is the sensitivity, the worst pair
        that is covered. Below it the loss is smaller; above it the pair is not covered and the
        loss is larger than promised.

    Returns
    -------
    PrivacyLossDistribution
        The law on the worst pair at this distance.

    Raises
    ------
    ValueError
        If the sensitivity or the distance is outside its range, the mechanism adds no noise, or a
        pair is not covered by a mechanism known by its epsilon only.
    TypeError
        If no law is known for the mechanism.

    Examples
    --------
    >>> from skdp import LaplaceMechanism
    >>> from skdp.risk import privacy_loss_distribution
    >>> loss = privacy_loss_distribution(LaplaceMechanism(epsilon=1.0))
    >>> print(f"{loss.epsilon(delta=1e-5):.5f} {loss.self_compose(50).epsilon(delta=1e-5):.3f}")
    0.99998 39.579
    >>> privacy_loss_distribution(LaplaceMechanism(epsilon=1.0), sensitivity=0.2, distance=0.1)
    LaplaceLoss(epsilon0=0.5)
    """
    owner = "privacy_loss_distribution"
    value = _calibrated_to(mechanism, sensitivity, owner)
    distance = value if distance is None else distance
    law = _law(mechanism, check_real("distance", distance, owner, 0.0, math.inf) / value)
    if law is None:
        raise ValueError(
            f"The 'distance' parameter of {owner} must be at most the sensitivity for "
            f"{type(mechanism).__name__}, whose loss on other pairs is not known. "
            f"Got {shown(distance)}."
        )
    return law


def _law(mechanism: Mechanism, ratio: float) -> PrivacyLossDistribution | None:
    """Return the law on a pair at a distance in units of the sensitivity; None if unknown."""
    level = _level(mechanism)
    law = mechanism.noise_law or NoiseLaw("pure", level)
    if law.kind == "gaussian":
        return GaussianLoss(ratio * law.parameter)
    if law.kind == "laplace":
        return LaplaceLoss(ratio * law.parameter)
    if mechanism.guarantee().delta > 0:
        raise TypeError(
            "The 'mechanism' parameter of privacy_loss_distribution must have a 'noise_law', or a "
            f"delta of 0. Got an object of type {type(mechanism).__name__}."
        )
    if isinstance(mechanism, ExponentialMechanism | L2LaplaceMechanism):
        return PureLoss(ratio * level)  # the loss is proportional to the norm
    return PureLoss(level) if ratio <= 1 else None


def _calibrated_to(mechanism: Mechanism, sensitivity: Any, owner: str) -> float:
    """Return the number that the noise is calibrated to, in the norm of the mechanism."""
    if hasattr(sensitivity, "geometry"):
        geometry = in_code_of(sensitivity.geometry, mechanism).geometry
        if not sensitivity.geometry.bounds(geometry):
            raise ValueError(
                f"The 'sensitivity' parameter of {owner} must be measured in the norm of the "
                f"mechanism, {geometry.key!r}. Got {shown(sensitivity.geometry.key)}."
            )
        sensitivity = sensitivity.value
    return check_real("sensitivity", sensitivity, owner, 0.0, math.inf)


def _level(mechanism: Mechanism) -> float:
    """Return the epsilon of a mechanism, or refuse one without noise."""
    if not isinstance(mechanism, Mechanism):
        raise TypeError(
            "The 'mechanism' parameter of privacy_loss_distribution must be a Mechanism. Got an "
            f"object of type {type(mechanism).__name__}."
        )
    epsilon = float(mechanism.guarantee().epsilon)
    if math.isinf(epsilon):
        raise ValueError(
            f"The 'epsilon' parameter of {type(mechanism).__name__} must be finite for a privacy "
            "loss. Got inf, which adds no noise."
        )
    return epsilon


@dataclass(frozen=True, eq=False)
class JointRisk:
    """With probability p over the pair and q over the noise, the loss is at most epsilon.

    Made by `joint_risk`. At level j the pair has a norm of at most the j-th smallest sampled
    sensitivity, with probability at least ``pair_probability[j]``. On such a pair the loss is at
    most ``epsilon[e]`` with probability at least ``noise_probability[j, e]`` over the noise.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism that released.
    pair_probability : ndarray of float of shape (n_levels,)
        p, increasing.
    ratio : ndarray of float of shape (n_levels,)
        The j-th smallest sampled sensitivity over the one that calibrated the noise, with the
        rounding of the release charged; inf where the target could not be evaluated.
    epsilon : ndarray of float of shape (n_epsilon,)
        The levels of the loss.
    noise_probability : ndarray of float of shape (n_levels, n_epsilon)
        q, decreasing along the levels.
    confidence : float or None
        None: p is joint over the pair and the sampled pairs, for one level that was chosen before
        the sampled sensitivities were seen. A number: with this confidence over the sampled
        pairs, p holds at all levels at once, so they may be read and compared freely.

    Examples
    --------
    >>> from skdp import LaplaceMechanism
    >>> from skdp.risk import joint_risk
    >>> risk = joint_risk(LaplaceMechanism(epsilon=1.0), 0.01)
    >>> [round(q, 3) for q in risk.noise_probability[0].tolist()]
    [0.344, 0.389, 0.441, 1.0]
    """

    mechanism: Mechanism
    pair_probability: NDArray[np.float64]
    ratio: NDArray[np.float64]
    epsilon: NDArray[np.float64]
    noise_probability: NDArray[np.float64]
    confidence: float | None

    def law(self, pair_probability: float) -> PrivacyLossDistribution:
        """Law of the loss that bounds all pairs up to a probability.

        Parameters
        ----------
        pair_probability : float in (0, 1]
            The probability p over the pair.

        Returns
        -------
        PrivacyLossDistribution
            On a set of pairs of at least this probability, `cdf` at levels of at least 0 is not
            below, and `delta` not above, that of this law.

        Raises
        ------
        ValueError
            If so many pairs are not covered by the sampled sensitivities.
        """
        ratio = float(self.ratio[self._row(pair_probability)])
        return privacy_loss_distribution(self.mechanism, distance=ratio)

    def epsilon_at(self, pair_probability: float, noise_probability: float) -> float:
        """Level that the loss does not exceed with given probabilities.

        If both are chosen before the sampled sensitivities are seen and `confidence` is None, the
        loss is at most the returned level with probability at least their product.

        Parameters
        ----------
        pair_probability : float in (0, 1]
            The probability p over the pair.
        noise_probability : float in (0, 1]
            The probability q over the noise.

        Returns
        -------
        float of at least 0
            The level; inf for q = 1 and a loss without bound.
        """
        return max(0.0, self.law(pair_probability).quantile(noise_probability))

    def table(self, pair_probability: Iterable[float] = (0.5, 0.75, 0.9, 0.95)) -> list[dict]:
        """Return the statement at a few probabilities.

        Parameters
        ----------
        pair_probability : iterable of float in (0, 1], default=(0.5, 0.75, 0.9, 0.95)
            Probabilities p over the pair.

        Returns
        -------
        list of dict
            One row for each p and epsilon: ``pair_probability``, ``epsilon`` and
            ``noise_probability``, q.
        """
        return [
            {"pair_probability": p, "epsilon": float(level), "noise_probability": float(q)}
            for p in pair_probability
            for level, q in zip(self.epsilon, self.noise_probability[self._row(p)], strict=True)
        ]

    def _row(self, pair_probability: float) -> int:
        p = check_real("pair_probability", pair_probability, "JointRisk", 0.0, 1.0, closed="r")
        usable = np.isfinite(self.ratio)
        attainable = float(self.pair_probability[usable].max(initial=0.0))
        if p > attainable * (1 + 1e-12):
            raise ValueError(
                f"The 'pair_probability' parameter of JointRisk must be at most {attainable:.6g}, "
                f"which the sampled sensitivities cover. Got {p:g}. Sample more pairs."
            )
        return int(np.searchsorted(self.pair_probability, min(p, attainable) * (1 - 1e-12)))


def joint_risk(
    mechanism: Any,
    sensitivity: Any = None,
    *,
    epsilon: ArrayLike | None = None,
    confidence: float | None = None,
) -> JointRisk:
    """Combine the randomness of the pair with that of the noise, by the exact law of the loss.

    The norm G of the next pair and the m sampled ones are exchangeable, so G is at most the j-th
    smallest with probability at least ``j / (m + 1)``. On a pair with that norm the noise, which
    was calibrated to another order statistic, acts as that of a mechanism whose epsilon is
    multiplied by the ratio of the two. A ratio above 1 tells how much worse the pairs are that the
    release does not cover.

    Parameters
    ----------
    mechanism : Mechanism or fitted PrivateEstimator
        The mechanism that released; with a fitted estimator, leave out `sensitivity`.
    sensitivity : SensitivityEstimate, KnownSensitivity or float in (0, inf), default=None
        What the noise is calibrated to. For a bound known on paper there is one level, with
        p = 1 or what the bound says of its own failure.
    epsilon : array-like of float of at least 0, default=None
        Levels of the loss; None takes 1/4, 1/2, 3/4 and all of the epsilon of the mechanism.
    confidence : float in [0.5, 1) or None, default=None
        None makes every level a statement of its own, to be read at one level that was chosen
        before the draws were seen. A number makes them simultaneous, at ``j / m - sqrt(ln(1 / (1
        - confidence)) / (2 m))``, for all but a share ``1 - confidence`` of the samples of m pairs
        (Dvoretzky, Kiefer, Wolfowitz and Massart).

    Returns
    -------
    JointRisk
        The statement, as a curve and as a table.

    Raises
    ------
    ValueError
        If the sensitivity does not fit the mechanism, is not positive and finite, or a number is
        outside its range.

    Notes
    -----
    With a mechanism known by its epsilon only, a smaller pair is not known to lose less, and
    nothing is claimed for pairs that are not covered (q = 0). What rounding to the lattice adds to
    a small difference, at most 2**-14 of the sensitivity, is part of the ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, SensitivitySampler, UniformOracle
    >>> from skdp.risk import joint_risk
    >>> mechanism = LaplaceMechanism(epsilon=1.0)
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.05, random_state=0)
    >>> estimate = sampler.sample(np.mean, n_samples=100, geometry=mechanism.geometry)
    >>> risk = joint_risk(mechanism, estimate)
    >>> for row in risk.table([0.5, 0.95])[1::2]:
    ...     print({name: round(value, 3) for name, value in row.items()})
    {'pair_probability': 0.5, 'epsilon': 0.5, 'noise_probability': 1.0}
    {'pair_probability': 0.5, 'epsilon': 1.0, 'noise_probability': 1.0}
    {'pair_probability': 0.95, 'epsilon': 0.5, 'noise_probability': 0.389}
    {'pair_probability': 0.95, 'epsilon': 1.0, 'noise_probability': 1.0}
    >>> print(f"{risk.epsilon_at(0.9, 1.0):.3f} {risk.law(0.9).delta(0.5):.3f}")
    0.918 0.189
    """
    if sensitivity is None:
        if not hasattr(mechanism, "sensitivity_"):
            raise ValueError(
                "The 'sensitivity' parameter of joint_risk must be given, unless the first "
                "argument is a fitted PrivateEstimator. Got an object of type "
                f"{type(mechanism).__name__}."
            )
        mechanism, sensitivity = mechanism.mechanism_, mechanism.sensitivity_
    probability, ratio = _levels(mechanism, sensitivity, confidence)
    if epsilon is None:
        epsilon = np.arange(1, 5) / 4 * _level(mechanism)
    levels = np.atleast_1d(np.asarray(epsilon, dtype=float))
    if levels.ndim > 1 or not (levels >= 0).all():
        raise ValueError(
            "The 'epsilon' parameter of joint_risk must hold numbers of at least 0, in one "
            f"dimension. Got {shown(epsilon)}."
        )
    laws = [_law(mechanism, each) if math.isfinite(each) else None for each in ratio.tolist()]
    noise = [np.zeros(levels.size) if law is None else law.cdf(levels) for law in laws]
    return JointRisk(mechanism, probability, ratio, levels, np.array(noise), confidence)


def _levels(
    mechanism: Mechanism, sensitivity: Any, confidence: float | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the probabilities over the pair, and the distances in units of the sensitivity."""
    if confidence is not None:
        confidence = check_real("confidence", confidence, "joint_risk", 0.5, 1.0, closed="l")
    value = _calibrated_to(mechanism, sensitivity, "joint_risk")
    if not hasattr(sensitivity, "norms"):
        return np.array([1 - getattr(sensitivity, "gamma", 0.0)]), np.ones(1)
    ratio = np.sort(np.asarray(sensitivity.norms, dtype=float)) / value
    # (G + r) / (Delta + r) with r at most _ROUNDING Delta, where rounding helps the pair.
    ratio = ratio + _ROUNDING * np.maximum(0.0, 1 - ratio)
    rank, m = np.arange(1, ratio.size + 1), ratio.size
    if confidence is None:
        return rank / (m + 1), ratio
    error = math.sqrt(-math.log1p(-confidence) / (2 * m))
    return np.maximum(rank / m - error, 0.0), ratio
