"""The law of the privacy loss of a release, on the worst pair or on most of the sampled ones.

A release with a sampled sensitivity covers a pair of datasets with some probability over the pair,
and on a covered pair the loss is small with some probability over the noise. A pair whose norm is
below another sampled sensitivity than the one that calibrated the noise is a pair at another
distance, and its loss has another law.
"""

from __future__ import annotations

import math

import numpy as np

from skdp.accounting.composition import PrivacyLossDistribution
from skdp.accounting.laws import GaussianLoss, LaplaceLoss, PureLoss
from skdp.core.checks import check_kind, check_real, shown
from skdp.core.guarantee import NoiseLaw
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.l2_laplace import L2LaplaceMechanism
from skdp.sensitivity.base import in_code_of
from skdp.sensitivity.estimate import SensitivityEstimate

_ROUNDING = 2.0**-14  # lattice rounding can add this share of the sensitivity to a difference


def privacy_loss_distribution(
    mechanism: Mechanism, distance: float = 1.0
) -> PrivacyLossDistribution:
    """Law of the privacy loss of one release.

    Parameters
    ----------
    mechanism : Mechanism
        One with a `noise_law`, such as `LaplaceMechanism` or `GaussianMechanism`, has its exact
        law; any other one whose delta is 0 has what its epsilon says.
    distance : float in (0, inf), default=1.0
        Norm of the difference of the target on the pair, over the sensitivity that calibrated the
        noise. 1 is the worst pair that is covered. Below it the loss is smaller; above it the pair
        is not covered, and the loss is larger than promised.

    Returns
    -------
    PrivacyLossDistribution
        The law on the worst pair at this distance.

    Raises
    ------
    ValueError
        If the distance is outside its range, the mechanism adds no noise, or a pair is not covered
        by a mechanism known by its epsilon only.
    TypeError
        If no law is known for the mechanism.

    Examples
    --------
    >>> from skdp import LaplaceMechanism
    >>> from skdp.risk import privacy_loss_distribution
    >>> loss = privacy_loss_distribution(LaplaceMechanism(epsilon=1.0))
    >>> print(f"{loss.epsilon(delta=1e-5):.5f} {loss.self_compose(50).epsilon(delta=1e-5):.3f}")
    0.99998 39.579
    >>> privacy_loss_distribution(LaplaceMechanism(epsilon=1.0), distance=0.5)
    LaplaceLoss(epsilon0=0.5)
    """
    owner = "privacy_loss_distribution"
    distance = check_real("distance", distance, owner, 0.0, math.inf)
    check_kind("mechanism", mechanism, owner, Mechanism, "a Mechanism")
    promise, name = mechanism.guarantee(), type(mechanism).__name__
    if math.isinf(promise.epsilon):
        raise ValueError(
            f"The 'epsilon' parameter of {name} must be finite for a privacy loss. Got inf, which "
            "adds no noise."
        )
    law = mechanism.noise_law or NoiseLaw("pure", promise.epsilon)
    if law.kind == "gaussian":
        return GaussianLoss(distance * law.parameter)
    if law.kind == "laplace":
        return LaplaceLoss(distance * law.parameter)
    if promise.delta > 0:
        raise TypeError(
            f"The 'mechanism' parameter of {owner} must have a 'noise_law', or a delta of 0. Got "
            f"an object of type {name}."
        )
    if isinstance(mechanism, ExponentialMechanism | L2LaplaceMechanism):
        return PureLoss(distance * law.parameter)  # the loss is proportional to the norm
    if distance > 1:
        raise ValueError(
            f"The 'distance' parameter of {owner} must be at most 1 for {name}, whose loss on "
            f"pairs that are not covered is not known. Got {distance:g}."
        )
    return PureLoss(law.parameter)


def joint_risk(
    mechanism: Mechanism, sensitivity: SensitivityEstimate, pair_probability: float
) -> PrivacyLossDistribution:
    """Law of the privacy loss that bounds all pairs up to a probability.

    The norm G of the next pair and the m sampled ones are exchangeable, so G is at most the j-th
    smallest with probability at least ``j / (m + 1)``. On a pair with that norm the noise, which
    was calibrated to another order statistic, acts as that of a mechanism whose epsilon is
    multiplied by the ratio of the two.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism that released, such as `mechanism_` of a fitted `PrivateEstimator`.
    sensitivity : SensitivityEstimate
        What the noise was calibrated to, such as its `sensitivity_`. With a sensitivity known on
        paper there is no pair to be drawn: see `privacy_loss_distribution`.
    pair_probability : float in (0, 1)
        The probability p over the pair and the sampled ones, chosen before these were seen.

    Returns
    -------
    PrivacyLossDistribution
        With probability at least p, `cdf` at levels of at least 0 is not below, and `delta` not
        above, that of this law.

    Raises
    ------
    ValueError
        If the sensitivity does not fit the mechanism or is not positive and finite, or the sampled
        pairs do not cover so many.

    Notes
    -----
    What rounding to the lattice adds to a small difference, at most 2**-14 of the sensitivity, is
    part of the ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, SensitivitySampler, UniformOracle
    >>> from skdp.risk import joint_risk
    >>> mechanism = LaplaceMechanism(epsilon=1.0)
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.05, random_state=0)
    >>> estimate = sampler.sample(np.mean, n_samples=100, geometry=mechanism.geometry)
    >>> for p in (0.5, 0.95):
    ...     print(joint_risk(mechanism, estimate, p).cdf([0.5, 1.0]).round(3))
    [1. 1.]
    [0.389 1.   ]
    """
    owner = "joint_risk"
    p = check_real("pair_probability", pair_probability, owner, 0.0, 1.0)
    rule = "a SensitivityEstimate; for one known on paper see privacy_loss_distribution(mechanism)"
    check_kind("sensitivity", sensitivity, owner, SensitivityEstimate, rule)
    privacy_loss_distribution(mechanism)  # refuses what has no law
    geometry = in_code_of(sensitivity.geometry, mechanism).geometry
    if not sensitivity.geometry.bounds(geometry):
        raise ValueError(
            f"The 'sensitivity' parameter of {owner} must be measured in the norm of the "
            f"mechanism, {geometry.key!r}. Got {shown(sensitivity.geometry.key)}."
        )
    value = check_real("sensitivity", sensitivity.value, owner, 0.0, math.inf)
    norms, m = sensitivity.norms, sensitivity.n_measured
    rank = math.ceil(p * (m + 1) * (1 - 1e-12))
    n_finite = int(np.isfinite(norms).sum(axis=-1).min())  # where the target could be evaluated
    if rank > n_finite:
        raise ValueError(
            f"The 'pair_probability' parameter of {owner} must be at most "
            f"{n_finite / (m + 1):.6g}, which the sampled sensitivities cover. Got {p:g}. Sample "
            "more pairs."
        )
    ratio = sensitivity._at_rank(rank) / value
    # (G + r) / (Delta + r) with r at most _ROUNDING Delta, where rounding helps the pair.
    return privacy_loss_distribution(mechanism, ratio + _ROUNDING * max(0.0, 1 - ratio))
