"""Bounds in closed form on equal releases together."""

from __future__ import annotations

import math

from skdp.core.checks import check_count, check_real

LARGEST = 700.0  # the exponential of this level is still a double


def basic_composition(epsilon0: float, n: int) -> float:
    """Epsilon of `n` releases of level epsilon0 with delta = 0: the sum.

    Parameters
    ----------
    epsilon0 : float in (0, inf)
        Level of each release.
    n : int of at least 1
        Number of releases.

    Returns
    -------
    float
        ``n * epsilon0``.

    Examples
    --------
    >>> from skdp.risk import basic_composition
    >>> basic_composition(0.5, 10)
    5.0
    """
    epsilon0 = check_real("epsilon0", epsilon0, "basic_composition", 0.0, math.inf)
    return check_count("n", n, "basic_composition") * epsilon0


def advanced_composition(epsilon0: float, n: int, delta: float) -> float:
    """Epsilon of `n` releases of level epsilon0 by the advanced composition theorem.

    Parameters
    ----------
    epsilon0 : float in (0, 700)
        Level of each release.
    n : int of at least 1
        Number of releases.
    delta : float in (0, 1)
        Mass on which the bound may fail.

    Returns
    -------
    float
        ``epsilon0 sqrt(2 n ln(1/delta)) + n epsilon0 (exp(epsilon0) - 1)`` [1]_.

    References
    ----------
    .. [1] Dwork and Roth, "The Algorithmic Foundations of Differential Privacy", 2014,
       theorem 3.20.

    Examples
    --------
    >>> from skdp.risk import advanced_composition
    >>> round(advanced_composition(0.1, n=100, delta=1e-5), 3)
    5.85
    """
    epsilon0 = check_real("epsilon0", epsilon0, "advanced_composition", 0.0, LARGEST)
    mean = epsilon0 * math.expm1(epsilon0)
    return azuma(epsilon0, mean, n, delta, "advanced_composition")


def composition_at_risk(
    epsilon: float, epsilon0: float, confidence: float, n: int, delta: float
) -> float:
    """Epsilon of `n` releases whose loss is usually smaller than its bound.

    If the loss L of each release is at most epsilon0 in absolute value, and at most epsilon with
    probability at least `confidence`, then its mean is at most
    ``mu' = confidence (exp(epsilon) - 1 - epsilon) + (1 - confidence) (exp(epsilon0) - 1 -
    epsilon0)``: exp(-L) has mean 1, so the mean of L is that of ``exp(-L) - 1 + L``, which is
    largest at the negative end of an interval around zero. Azuma's inequality does the rest, as in
    Theorem 9 of [1]_ with a larger mean. The bound holds for several outputs too.

    Parameters
    ----------
    epsilon : float in (0, epsilon0]
        The stronger level.
    epsilon0 : float in (0, 700)
        Bound on the absolute loss of each release.
    confidence : float in [0, 1)
        A true lower bound on the probability that the absolute loss is at most epsilon, such as
        ``LaplaceLoss(epsilon0).two_sided(epsilon)``.
    n : int of at least 1
        Number of releases.
    delta : float in (0, 1)
        Mass on which the bound may fail.

    Returns
    -------
    float
        ``epsilon0 sqrt(2 n ln(1/delta)) + n mu'``. The law composed numerically,
        ``LaplaceLoss(epsilon0).self_compose(n).epsilon(delta)``, is smaller.

    References
    ----------
    .. [1] Dandekar, Basu and Bressan, "Differential Privacy at Risk", PoPETs 2021.

    Examples
    --------
    >>> from skdp.risk import LaplaceLoss, composition_at_risk
    >>> confidence = LaplaceLoss(0.5).two_sided(0.25)
    >>> round(composition_at_risk(0.25, 0.5, confidence, n=100, delta=1e-5), 2)
    37.75
    """
    epsilon, epsilon0 = check_stronger("composition_at_risk", epsilon, epsilon0, LARGEST)
    confidence = check_real("confidence", confidence, "composition_at_risk", 0.0, 1.0, closed="l")
    mean = confidence * (math.expm1(epsilon) - epsilon)
    mean += (1 - confidence) * (math.expm1(epsilon0) - epsilon0)
    return azuma(epsilon0, mean, n, delta, "composition_at_risk")


def azuma(epsilon0: float, mean: float, n: int, delta: float, owner: str) -> float:
    """Return the level that a sum of n losses in [-epsilon0, epsilon0] exceeds with mass delta."""
    n = check_count("n", n, owner)
    delta = check_real("delta", delta, owner, 0.0, 1.0)
    return epsilon0 * math.sqrt(-2 * n * math.log(delta)) + n * mean


def check_stronger(
    owner: str, epsilon: object, epsilon0: object, most: float = math.inf
) -> tuple[float, float]:
    """Return a level and that of the mechanism, or refuse a first one that is larger."""
    epsilon0 = check_real("epsilon0", epsilon0, owner, 0.0, most)
    epsilon = check_real("epsilon", epsilon, owner, 0.0)
    if epsilon > epsilon0:
        raise ValueError(
            f"The 'epsilon' parameter of {owner} must be at most epsilon0={epsilon0:g}, the level "
            f"of the mechanism, above which the loss never goes. Got {epsilon:g}."
        )
    return epsilon, epsilon0
