"""How a budget is shared between class tables and the second stage."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial

import numpy as np
from scipy.special import ndtr

from skdp.core.types import Matrix
from skdp.mechanisms.gaussian import gaussian_delta, gaussian_sigma
from skdp.mechanisms.objective import KAPPA, LAST, ObjectivePerturbation, lattice_slack, profile
from skdp.tables.counts import BITS, TableNoise

N_BINS = 4096  # of each half of the integral

Objective = Callable[[float], ObjectivePerturbation]


def split(
    epsilon: float, delta: float, second: float, n_tables: int, n_counts: int, n_weights: int
) -> tuple[TableNoise, Objective]:
    """Return the noise of the tables, and the mechanism of the second stage for rows of a length.

    `second` is the share of the latter: of epsilon, or of mu^2 with a delta. Epsilons add up; the
    squares of mu do but for what is not Gaussian in the second stage (`total_delta`).
    """
    part = (1.0 if delta else second) * epsilon  # it includes the last noise
    noise = math.nextafter((1 - LAST) * part, 0) if second else epsilon
    last = math.nextafter(part - noise, 0)
    objective = partial(ObjectivePerturbation, n_weights=n_weights, last=last)
    if math.isinf(epsilon) or not delta:
        rest = math.nextafter(epsilon - part, 0) if second else epsilon
        return TableNoise(n_tables, rest), partial(objective, epsilon=noise)
    mu = _largest_mu(noise, delta, second, n_counts, n_weights)
    first, last_mu = mu * math.sqrt(1 - second), mu * math.sqrt(second)
    kappa = KAPPA * second * noise
    return TableNoise(n_tables, epsilon, first), partial(objective, mu=last_mu, kappa=kappa)


@lru_cache(maxsize=64)
def _largest_mu(
    epsilon: float, delta: float, second: float, n_counts: int, n_weights: int
) -> float:
    """Return mu, rounded down, such that both parts together are (epsilon, delta)-private."""
    low, high = 0.0, (1 + 1e-6) / gaussian_sigma(epsilon, delta)
    for _ in range(40):
        middle = (low + high) / 2
        fits = total_delta(epsilon, delta, middle, second, n_counts, n_weights) <= delta
        low, high = (middle, high) if fits else (low, middle)
    return low


def total_delta(
    epsilon: float, delta: float, mu: float, second: float, n_counts: int, n_weights: int
) -> float:
    r"""Bound delta of tables and second stage at an epsilon; `delta` says how far tails matter.

    The parts have mu_1^2 = (1 - second) mu^2 and mu_2^2 = second mu^2. Let the second stage be
    (e, delta_2(e))-private for each e, whatever the tables were, and L ~ N(mu_1^2/2, mu_1^2) the
    loss of the tables. Then both are (epsilon, E delta_2(epsilon - L))-private. *Proof.* For a pair
    of datasets and a set S of results, P(S) - exp(epsilon) P'(S) is the mean, over tables t of the
    first dataset, of P(S \| t) - exp(epsilon - L(t)) P'(S \| t) <= delta_2(epsilon - L(t)). That
    holds for the least delta_2, the supremum over pairs. It is convex in exp(e), so a mixture of
    functions (1 - exp(e - c))_+, and the mean of each is the delta of Gaussian noise, which
    increases with mu_1: so tables that differ by less than the bound are covered.

    As delta_2 decreases, the discreteness of the noise costs what it does in
    `skdp.mechanisms.gaussian.lattice_delta`: a factor exp(k / (24 sigma^2)), and mu_1 sqrt(k) /
    (2 sigma) of epsilon, for k counts and sigma in steps, which is at least 2^20 / mu_1. The
    integral is taken from above, with delta_2 at the right end of each bin.
    """
    first, last = mu * math.sqrt(1 - second), mu * math.sqrt(second)
    sigma = 2.0**BITS / first
    factor = math.exp(min(n_counts / (24 * sigma * sigma), 700.0)) * (1 + 1e-9)
    left = epsilon - first * math.sqrt(n_counts) / (2 * sigma)
    if not second:
        return factor * gaussian_delta(left, 1 / first)
    left -= lattice_slack(last, n_weights)

    def second_delta(normal: Matrix) -> Matrix:
        loss = first * first / 2 + first * normal
        return profile(left - loss, last, KAPPA * second * epsilon)

    ends = np.linspace(0, 4 + math.sqrt(-2 * math.log(delta)), N_BINS + 1)
    tail = ndtr(-ends)
    mass = tail[:-1] - tail[1:]
    middle = mass @ (second_delta(ends[1:]) + second_delta(-ends[:-1]))
    return factor * float(middle + tail[-1] * (1 + second_delta(-ends[-1:])[0]))
