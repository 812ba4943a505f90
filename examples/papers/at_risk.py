"""The numbers of "Differential Privacy at Risk" as they were published.

They are for comparison and no probabilities of the privacy loss. The proof of Theorem 10 takes the
distances of the outcome from the two target values for independent, but both are functions of the
same outcome. On the worst pair the loss of the Laplace mechanism equals epsilon0 with probability
1/2, so no level below epsilon0 can hold with a confidence above 1/2. Theorem 9 holds for a true
confidence only, and Theorem 13 also drops the error of the sampled distribution.

Dandekar, Basu and Bressan, "Differential Privacy at Risk: Bridging Randomness and Privacy Budget",
PoPETs 2021.
"""

import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import gammainc
from scipy.stats import nbinom


def cdf_of_t(x, n_outputs=1):
    """Return P(T <= x), T the absolute difference of two Gamma(n_outputs) variables.

    Count two Poisson processes until one of them has k points; the other one then has j with a
    negative binomial probability, and the wait for its missing k - j points is T. So the law is a
    mixture of Gamma laws, whose terms do not cancel as the published hypergeometric functions do.
    """
    shape = np.arange(1.0, n_outputs + 1)
    weights = 2 * nbinom.pmf(n_outputs - shape, n_outputs, 0.5)
    return gammainc(shape, np.expand_dims(x, -1)) @ weights


def paper_confidence(epsilon, epsilon0, n_outputs=1):
    """Return the confidence in a stronger level (Theorem 10)."""
    return cdf_of_t(epsilon, n_outputs) / cdf_of_t(epsilon0, n_outputs)


def paper_epsilon(confidence, epsilon0, n_outputs=1):
    """Return the stronger level of a confidence (inverse of Theorem 10)."""
    return brentq(
        lambda level: paper_confidence(level, epsilon0, n_outputs) - confidence, 0, epsilon0
    )


def dkw_n_pairs(rho, confidence=0.95):
    """Return from how many pairs on the distribution of the sensitivity is known to `rho`."""
    return math.ceil(math.log(2 / (1 - confidence)) / (2 * rho**2))


def dkw_factor(rho, n_pairs):
    """Return how likely an empirical distribution is within `rho` of the true one, at least."""
    return max(0.0, 1 - 2 * math.exp(-2 * rho**2 * n_pairs))


def sampled_confidence(confidence, rho, n_pairs):
    """Return how likely a sampled sensitivity covers a pair: Theorem 11 with its missing rho."""
    return max(0.0, confidence - rho) * dkw_factor(rho, n_pairs)


def paper_joint_confidence(epsilon, epsilon0, confidence, rho, n_pairs):
    """Return the confidence over noise and sampled sensitivity (Theorem 13)."""
    return paper_confidence(epsilon, epsilon0) * confidence * dkw_factor(rho, n_pairs)


def advanced_composition(epsilon0, n, delta):
    """Return the epsilon of n releases (Dwork and Roth 2014, theorem 3.20)."""
    return paper_composition(epsilon0, epsilon0, 1.0, n, delta)


def paper_composition(epsilon, epsilon0, confidence, n, delta):
    """Return the epsilon of n releases (Theorem 9)."""
    mean = confidence * epsilon * math.expm1(epsilon)
    mean += (1 - confidence) * epsilon0 * math.expm1(epsilon0)
    return epsilon0 * math.sqrt(2 * n * math.log(1 / delta)) + n * mean


def two_sided_confidence(epsilon, epsilon0):
    """Return how likely the loss is at most epsilon in absolute value (Definition 6)."""
    return np.where(epsilon < epsilon0, math.exp(-epsilon0 / 2) * np.sinh(epsilon / 2), 1.0)


def cost(epsilon):
    """Return the compensation of the 100 people of section 5.3 (equation 8)."""
    return 100 * 5500 * np.exp(-1 / epsilon)


def cost_at_risk(epsilon, epsilon0, confidence):
    """Return the compensation if a stronger level counts as often as it is kept (equation 9)."""
    kept = confidence(epsilon, epsilon0)
    return kept * cost(epsilon) + (1 - kept) * cost(epsilon0)


def best_epsilon(epsilon0, confidence):
    """Return the stronger level of the least compensation, which need not be convex."""
    levels = np.linspace(0, epsilon0, 1001)[1:]
    best = int(np.argmin(cost_at_risk(levels, epsilon0, confidence)))
    bounds = levels[max(best - 1, 0)], levels[min(best + 1, 999)]
    options = {"xatol": 1e-10}
    found = minimize_scalar(
        cost_at_risk, bounds=bounds, args=(epsilon0, confidence), method="bounded", options=options
    )
    return float(found.x)
