"""A bound in closed form on equal releases together."""

from __future__ import annotations

import math

from skdp.core.checks import check_count, check_real


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
    owner = "advanced_composition"
    epsilon0 = check_real("epsilon0", epsilon0, owner, 0.0, 700.0)  # its exponential is a double
    n = check_count("n", n, owner)
    delta = check_real("delta", delta, owner, 0.0, 1.0)
    return epsilon0 * math.sqrt(-2 * n * math.log(delta)) + n * epsilon0 * math.expm1(epsilon0)
