"""Closed-form bounds on what a sampled sensitivity covers."""

from __future__ import annotations

import math

from skdp.core.checks import check_count, check_real


def dkw_n_pairs(rho: float, confidence: float = 0.95) -> int:
    """Number of pairs for which the distribution of the sampled sensitivity is known to `rho`.

    Smallest n with ``1 - 2 exp(-2 rho**2 n) >= confidence``, the factor of Theorems 11 and 13
    of [1]_, by the inequality of Dvoretzky, Kiefer, Wolfowitz and Massart.

    Parameters
    ----------
    rho : float in (1e-150, 1)
        Largest distance of the empirical distribution function from the true one.
    confidence : float in (0, 1), default=0.95
        Probability that the distance is not larger.

    Returns
    -------
    int
        Number of pairs.

    References
    ----------
    .. [1] Dandekar, Basu and Bressan, "Differential Privacy at Risk", PoPETs 2021.

    Examples
    --------
    >>> from skdp.risk import dkw_n_pairs
    >>> dkw_n_pairs(0.1), dkw_n_pairs(0.01)
    (185, 18445)
    """
    rho = check_real("rho", rho, "dkw_n_pairs", 1e-150, 1.0)  # its square is a double
    confidence = check_real("confidence", confidence, "dkw_n_pairs", 0.0, 1.0)
    return math.ceil(math.log(2 / (1 - confidence)) / (2 * rho**2))


def dkw_factor(rho: float, n_pairs: int) -> float:
    """Probability that an empirical distribution function is within `rho` of the true one.

    Parameters
    ----------
    rho : float in (0, 1)
        The distance.
    n_pairs : int of at least 1
        Number of sampled pairs.

    Returns
    -------
    float in [0, 1]
        ``1 - 2 exp(-2 rho**2 n_pairs)``, or 0 where that is negative.

    Examples
    --------
    >>> from skdp.risk import dkw_factor
    >>> round(dkw_factor(0.1, 185), 4)
    0.9506
    """
    rho = check_real("rho", rho, "dkw_factor", 0.0, 1.0)
    n_pairs = check_count("n_pairs", n_pairs, "dkw_factor")
    return max(0.0, 1 - 2 * math.exp(-2 * rho**2 * n_pairs))


def sampled_confidence(confidence: float, rho: float, n_pairs: int) -> float:
    """Probability that a sampled sensitivity covers a pair, as Theorem 11 should read.

    The sampled sensitivity is the quantile `confidence` of n_pairs sampled sensitivities. Where
    the empirical distribution is within rho of the true one, it covers a pair with probability at
    least ``confidence - rho``, not `confidence`: the published bound loses the rho on the way.
    The order statistics of `joint_risk` say more with fewer pairs.

    Parameters
    ----------
    confidence : float in (0, 1]
        The quantile, gamma_2 in the paper.
    rho : float in (0, 1)
        Distance of the empirical distribution function from the true one.
    n_pairs : int of at least 1
        Number of sampled pairs.

    Returns
    -------
    float in [0, 1)
        ``(confidence - rho) * dkw_factor(rho, n_pairs)``, or 0 where that is negative.

    Examples
    --------
    >>> from skdp.risk import sampled_confidence
    >>> round(sampled_confidence(0.9, rho=0.01, n_pairs=20_000), 4)
    0.8574
    """
    confidence = check_real("confidence", confidence, "sampled_confidence", 0.0, 1.0, closed="r")
    factor = dkw_factor(rho, n_pairs)
    return max(0.0, confidence - rho) * factor
