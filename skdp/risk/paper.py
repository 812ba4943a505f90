"""The numbers of "Differential Privacy at Risk" as they were published.

Dandekar, Basu and Bressan [1]_ ask how often the loss of a mechanism of level epsilon0 stays below
a stronger level epsilon. Their answer for Laplace noise, Theorem 10, is the law of a
different quantity. The functions named ``paper_`` reproduce it, so that their figures can be
compared with the exact law of `LaplaceLoss`; each warns once. Nothing else in the package uses
them unless asked to by name.

In the paper gamma is sometimes the probability that the loss is above epsilon (Definition 6) and
elsewhere that it is at most epsilon. Here the latter is `confidence`; the risk is 1 - confidence.

References
----------
.. [1] Dandekar, Basu and Bressan, "Differential Privacy at Risk: Bridging Randomness and Privacy
   Budget", PoPETs 2021.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammainc
from scipy.stats import gamma, nbinom

from skdp.core.checks import check_count, check_levels, check_real, shown, warn
from skdp.exceptions import ReproductionWarning
from skdp.risk.bounds import LARGEST, azuma, check_stronger, dkw_factor

__all__ = [
    "paper_composition",
    "paper_confidence",
    "paper_epsilon",
    "paper_joint_confidence",
    "paper_sampled_confidence",
    "paper_t_cdf",
    "paper_t_pdf",
]

_REASON = (
    "This number is reproduced from 'Differential Privacy at Risk' and is not a probability of "
    "the privacy loss. Its proof takes the distances of the outcome from the two target values "
    "for independent, but they are functions of the same outcome. On the worst pair the loss of "
    "the Laplace mechanism equals epsilon0 with probability 1/2, so no level below epsilon0 can "
    "hold with a confidence above 1/2. Theorem 9 holds for a true confidence only, and Theorems 11 "
    "and 13 also drop the error of the sampled distribution. Use LaplaceLoss, joint_risk and "
    "self_compose for what holds; no guarantee is computed from this number."
)

_MOST_OUTPUTS, _LEAST = 10**9, 1e-305


@cache  # a warning that is turned into an error is not cached, and raised again
def _warn() -> None:
    warn(_REASON, ReproductionWarning)


def paper_t_cdf(x: ArrayLike, n_outputs: int = 1) -> Any:
    """Distribution function of T, the difference of two independent Gamma(n_outputs) variables.

    T is the absolute difference. It has the density that Theorem 10 takes for the law of the
    loss. Count two Poisson processes until one of them has n_outputs points; the other one then
    has j with probability ``2**-(k-1+j) C(k-1+j, j)``, k = n_outputs, and the wait for its missing
    k - j points is T. So the law is a mixture of Gamma laws, with positive terms only, which stays
    accurate where the published hypergeometric functions cancel.

    Parameters
    ----------
    x : array-like of float
        Where to evaluate; 0 below 0.
    n_outputs : int of at least 1, default=1
        Number k of released values.

    Returns
    -------
    float or ndarray of float in [0, 1]
        ``P(T <= x)``, of the shape of `x`.

    Examples
    --------
    >>> from skdp.risk.paper import paper_t_cdf
    >>> print(f"{paper_t_cdf(1.0):.6f} {paper_t_cdf(1.0, n_outputs=3):.6f}")
    0.632121 0.356211
    """
    shape, weight = _mixture(n_outputs, "paper_t_cdf")
    x = np.expand_dims(np.maximum(check_levels("x", x, "paper_t_cdf"), 0.0), -1)
    # The first is exponential; gammainc takes the smallest doubles for zero.
    laws = np.where(shape == 1, -np.expm1(-x), gammainc(shape, x))
    return np.minimum(laws @ weight, 1.0)[()]


def paper_t_pdf(t: ArrayLike, n_outputs: int = 1) -> Any:
    """Density of T, the difference of two independent Gamma(n_outputs) variables.

    It equals ``2**(2-k) t**(k-1/2) K_{k-1/2}(t) / (sqrt(2 pi) Gamma(k))`` with K the modified
    Bessel function and k = n_outputs. The leading 2**(1-k) and the factors epsilon0/Delta and
    1/theta that are printed in Theorem 10 and Lemma 20 are slips; they cancel in the ratio.

    Parameters
    ----------
    t : array-like of float
        Where to evaluate; 0 below 0.
    n_outputs : int of at least 1, default=1
        Number k of released values.

    Returns
    -------
    float or ndarray of float of at least 0
        The density, of the shape of `t`.

    Examples
    --------
    >>> from skdp.risk.paper import paper_t_pdf
    >>> print(f"{paper_t_pdf(1.0):.6f}")
    0.367879
    """
    shape, weight = _mixture(n_outputs, "paper_t_pdf")
    t = np.expand_dims(check_levels("t", t, "paper_t_pdf"), -1)
    t = np.where(np.isinf(t), -1.0, t)  # no density there either
    return (gamma.pdf(t, shape) @ weight)[()]


def paper_confidence(epsilon: float, epsilon0: float, n_outputs: int = 1) -> float:
    """Confidence of a stronger level for Laplace noise, as published (gamma_1, Theorem 10).

    Parameters
    ----------
    epsilon : float in (0, epsilon0]
        The stronger level.
    epsilon0 : float in (0, inf)
        Level of the mechanism.
    n_outputs : int of at least 1, default=1
        Number of released values.

    Returns
    -------
    float in (0, 1]
        ``P(T <= epsilon) / P(T <= epsilon0)``. The probability that the loss is at most epsilon
        is ``LaplaceLoss(epsilon0).cdf(epsilon)``, which is at most 1/2 below epsilon0.

    Warns
    -----
    ReproductionWarning
        Once, with the reason.

    Examples
    --------
    >>> import warnings
    >>> from skdp import ReproductionWarning
    >>> from skdp.risk import LaplaceLoss
    >>> from skdp.risk.paper import paper_confidence
    >>> warnings.simplefilter("ignore", ReproductionWarning)  # it says what is not true
    >>> print(f"{paper_confidence(0.5, 1.0):.4f}, in truth {LaplaceLoss(1.0).cdf(0.5):.4f}")
    0.6225, in truth 0.3894
    """
    _warn()
    epsilon, epsilon0 = check_stronger("paper_confidence", epsilon, epsilon0)
    return float(_ratio(epsilon, epsilon0, n_outputs))


def paper_epsilon(confidence: float, epsilon0: float, n_outputs: int = 1) -> float:
    """Level that Laplace noise is published to keep with a confidence (inverse of Theorem 10).

    Parameters
    ----------
    confidence : float in (0, 1)
        The confidence, gamma_1 in the paper.
    epsilon0 : float in (0, inf)
        Level of the mechanism.
    n_outputs : int of at least 1, default=1
        Number of released values.

    Returns
    -------
    float in (0, epsilon0)
        For one output equation (4), ``-ln(1 - confidence (1 - exp(-epsilon0)))``; else by root
        finding.

    Warns
    -----
    ReproductionWarning
        Once, with the reason.

    Examples
    --------
    >>> import warnings
    >>> from skdp import ReproductionWarning
    >>> from skdp.risk.paper import paper_epsilon
    >>> warnings.simplefilter("ignore", ReproductionWarning)  # it says what is not true
    >>> print(f"{paper_epsilon(0.5, epsilon0=1.0):.4f}")
    0.3799
    """
    _warn()
    confidence = check_real("confidence", confidence, "paper_epsilon", 0.0, 1.0)
    epsilon0 = check_real("epsilon0", epsilon0, "paper_epsilon", 0.0, math.inf)
    if check_count("n_outputs", n_outputs, "paper_epsilon") == 1:
        return -math.log1p(confidence * math.expm1(-epsilon0))
    # The density is at most 1, and no mass that counts is so far beyond the largest shape.
    low = confidence * paper_t_cdf(epsilon0, n_outputs) / 2
    if low == 0:
        return 5e-324  # the smallest double
    high = min(epsilon0, 1000 + 100 * math.sqrt(n_outputs))
    found = brentq(
        lambda log_level: _ratio(math.exp(log_level), epsilon0, n_outputs) - confidence,
        math.log(low),
        math.log(high),
        xtol=1e-14,
    )
    return math.exp(found)


def paper_sampled_confidence(confidence: float, rho: float, n_pairs: int) -> float:
    """Confidence of a sampled sensitivity, as published (Theorem 11).

    Parameters
    ----------
    confidence : float in (0, 1]
        The quantile of the sampled sensitivities, gamma_2 in the paper.
    rho : float in (0, 1)
        Distance of the empirical distribution function from the true one.
    n_pairs : int of at least 1
        Number of sampled pairs.

    Returns
    -------
    float in [0, 1]
        ``confidence * dkw_factor(rho, n_pairs)``; `sampled_confidence` is what holds.

    Warns
    -----
    ReproductionWarning
        Once, with the reason.

    Examples
    --------
    >>> import warnings
    >>> from skdp import ReproductionWarning
    >>> from skdp.risk.paper import paper_sampled_confidence
    >>> warnings.simplefilter("ignore", ReproductionWarning)  # it says what is not true
    >>> print(f"{paper_sampled_confidence(0.9, rho=0.01, n_pairs=20_000):.4f}")
    0.8670
    """
    _warn()
    owner = "paper_sampled_confidence"
    confidence = check_real("confidence", confidence, owner, 0.0, 1.0, closed="r")
    return confidence * dkw_factor(rho, n_pairs)


def paper_joint_confidence(
    epsilon: float,
    epsilon0: float,
    confidence: float,
    rho: float,
    n_pairs: int,
    *,
    n_outputs: int = 1,
    eta: float = 1.0,
) -> float:
    """Confidence over noise and sampled sensitivity together, as published (Theorem 13).

    Parameters
    ----------
    epsilon : float in (0, epsilon0]
        The stronger level.
    epsilon0 : float in (0, inf)
        Level of the mechanism.
    confidence : float in (0, 1]
        The quantile of the sampled sensitivities, gamma_2 in the paper.
    rho : float in (0, 1)
        Distance of the empirical distribution function from the true one.
    n_pairs : int of at least 1
        Number of sampled pairs.
    n_outputs : int of at least 1, default=1
        Number of released values.
    eta : float in [1, inf), default=1.0
        True sensitivity over sampled sensitivity; it is not known in practice.

    Returns
    -------
    float in [0, 1]
        ``P(T <= epsilon) / P(T <= eta epsilon0) * confidence * dkw_factor(rho, n_pairs)``;
        `joint_risk` is what holds.

    Warns
    -----
    ReproductionWarning
        Once, with the reason.

    Examples
    --------
    >>> import warnings
    >>> from skdp import ReproductionWarning
    >>> from skdp.risk.paper import paper_joint_confidence
    >>> warnings.simplefilter("ignore", ReproductionWarning)  # it says what is not true
    >>> print(f"{paper_joint_confidence(0.5, 1.0, confidence=0.9, rho=0.01, n_pairs=20_000):.4f}")
    0.5397
    """
    _warn()
    owner = "paper_joint_confidence"
    epsilon, epsilon0 = check_stronger(owner, epsilon, epsilon0)
    confidence = check_real("confidence", confidence, owner, 0.0, 1.0, closed="r")
    eta = check_real("eta", eta, owner, 1.0, math.inf, closed="l")
    noise = float(_ratio(epsilon, eta * epsilon0, n_outputs))
    return noise * confidence * dkw_factor(rho, n_pairs)


def paper_composition(
    epsilon: float, epsilon0: float, confidence: float, n: int, delta: float
) -> float:
    """Epsilon of `n` releases, as published (Theorem 9).

    The proof splits a mechanism into one of level epsilon and one of level epsilon0, which is not
    possible in general. The bound itself is true if `confidence` is a true lower bound on the
    probability that the absolute loss is at most epsilon, because `composition_at_risk` is
    smaller; with the value of `paper_confidence`, as in the paper, it is not proved.

    Parameters
    ----------
    epsilon : float in (0, epsilon0]
        The stronger level.
    epsilon0 : float in (0, 700)
        Level of each release.
    confidence : float in [0, 1]
        Confidence of the stronger level.
    n : int of at least 1
        Number of releases.
    delta : float in (0, 1)
        Mass on which the bound may fail.

    Returns
    -------
    float
        ``epsilon0 sqrt(2 n ln(1/delta)) + n mu`` with ``mu = confidence epsilon (exp(epsilon) -
        1) + (1 - confidence) epsilon0 (exp(epsilon0) - 1)``.

    Warns
    -----
    ReproductionWarning
        Once, with the reason.

    Examples
    --------
    >>> import warnings
    >>> from skdp import ReproductionWarning
    >>> from skdp.risk.paper import paper_composition
    >>> warnings.simplefilter("ignore", ReproductionWarning)  # it says what is not true
    >>> print(f"{paper_composition(0.274115, 0.5, confidence=0.609338, n=100, delta=1e-5):.3f}")
    41.932
    """
    _warn()
    owner = "paper_composition"
    epsilon, epsilon0 = check_stronger(owner, epsilon, epsilon0, LARGEST)
    confidence = check_real("confidence", confidence, owner, 0.0, 1.0, closed="lr")
    mean = confidence * epsilon * math.expm1(epsilon)
    mean += (1 - confidence) * epsilon0 * math.expm1(epsilon0)
    return azuma(epsilon0, mean, n, delta, owner)


def published_confidence(epsilon: ArrayLike, epsilon0: float, n_outputs: int) -> Any:
    """Return `paper_confidence` for many levels at once, without looking at them."""
    _warn()
    return _ratio(epsilon, epsilon0, n_outputs)


def _ratio(epsilon: ArrayLike, epsilon0: float, n_outputs: int) -> Any:
    total = paper_t_cdf(epsilon0, n_outputs)
    if total < _LEAST:
        raise ValueError(
            "The 'epsilon0' parameter of paper_confidence is so small that a share of it is no "
            f"double. Got {shown(epsilon0)}."
        )
    return paper_t_cdf(epsilon, n_outputs) / total


def _mixture(n_outputs: int, owner: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the shapes and the weights of the Gamma laws whose mixture is the law of T."""
    k = check_count("n_outputs", n_outputs, owner, at_most=_MOST_OUTPUTS)
    # k - j above 14 sqrt(k) has a total weight below 1e-20: (k - j)^2 / (4k) = 49.
    shape = np.arange(1.0, min(k, math.ceil(14 * math.sqrt(k))) + 1)
    return shape, 2 * nbinom.pmf(k - shape, k, 0.5)
