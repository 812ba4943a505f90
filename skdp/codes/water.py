"""Divide a budget of sensitivity among the directions of a code: reverse water-filling.

A direction with prior variance v, released with weight u and noise of variance 1, keeps the
variance ``v / (v u^2 + 1)``, which counts with a factor g in the squared error of the output. On a
pair it changes by ``a u``. The weights minimize the error where the changes add up to the budget,
in absolute values (Laplace) or in squares (Gaussian). The latter is convex, with the solution

    u^2 = max(0, theta sqrt(g) / a - 1 / v),    theta set by the budget.

The former is not: with x = sqrt(v) u and nu the price of the budget, a direction costs
``g v (1 / (1 + x^2) + c x)`` with ``c = nu a / (g v^1.5)``, least at x = 0 or where
``2 x / (1 + x^2)^2 = c``, and at the latter, x >= 1, just when c <= 1/2. Hence a direction enters
with a jump, and those that enter are the ones of least ``a / (g v^1.5)``. How many there are is
found by bisection. One more may be worth it at a price that it would not pay by itself, and where
the budget is small another one alone: both are tried. The error is then within a few percent of the
least, and mostly at it.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
from scipy import optimize

from skdp.core.types import Matrix

FIRST_RATIO = 2.0  # of the order statistic to the typical norm, until it is measured

_TURN = 1 / math.sqrt(3)  # where 2 x / (1 + x^2)^2 is largest; beyond it the cost is convex
_MOST_PRICE = 2 * _TURN / (1 + _TURN**2) ** 2


class Noise(NamedTuple):
    """The order of the norm, the standard deviation of the noise per unit of sensitivity, a level.

    The level is the share of pairs that a calibration covers. Where the deviation depends on how
    many numbers get noise, it is that for `most` of them.
    """

    order: int
    deviation: float
    level: float = 0.95
    most: int | None = None

    def of(self, norms: Matrix) -> float:
        """Return the standard deviation of noise that is calibrated to these norms."""
        position = min(len(norms), math.ceil(self.level * (len(norms) + 1)))
        return self.deviation * float(np.sort(norms)[position - 1])

    def budget(self, ratio: float) -> float:
        """Return the typical norm of a change for which the noise has variance 1."""
        return 1 / (self.deviation * ratio)


def fill(
    order: int,  # of the norm of all ``a u``, which is the budget
    factors: Matrix,  # g
    variances: Matrix,  # v
    changes: Matrix,  # a, all positive
    budget: float,
    most: int | None = None,
) -> Matrix:
    """Return the weight u of each direction, 0 of all but `most`."""
    weights = np.zeros(len(variances))
    useful = np.flatnonzero((variances > 0) & (factors > 0))
    if most is not None:  # those that enter first
        power = 2 - order / 2
        useful = useful[np.argsort((changes / (factors ** (1 / order) * variances**power))[useful])]
        useful = useful[:most]
    if len(useful):
        rule = _fill_absolute if order == 1 else _fill_squares
        weights[useful] = rule(factors[useful], variances[useful], changes[useful], budget)
    return weights


def _fill_squares(factors: Matrix, variances: Matrix, changes: Matrix, budget: float) -> Matrix:
    """Fill in the order of the level theta at which each direction enters."""
    entries = changes / (variances * np.sqrt(factors))
    order = np.argsort(entries, kind="stable")
    entries, rates = entries[order], (changes * np.sqrt(factors))[order]
    # What it costs to come to the level of each entry.
    costs = entries * np.cumsum(rates) - np.cumsum(rates * entries)
    n_filled = max(1, int(np.sum(costs < budget**2)))
    filled, last = order[:n_filled], entries[n_filled - 1]
    beyond = max(budget**2 - costs[n_filled - 1], 0) / np.sum(rates[:n_filled])
    weights = np.zeros_like(variances)
    weights[filled] = np.sqrt(
        np.sqrt(factors[filled]) / changes[filled] * (beyond + (last - entries[:n_filled]))
    )
    return weights * (budget / np.linalg.norm(changes * weights))


def _fill_absolute(factors: Matrix, variances: Matrix, changes: Matrix, budget: float) -> Matrix:
    """Fill those that pay for themselves, and perhaps one more."""
    order = np.argsort(changes / (factors * variances**1.5), kind="stable")
    g, v, a = factors[order], variances[order], changes[order]
    prices, costs = a / (g * v**1.5), a / np.sqrt(v)

    def spent(n_filled: int) -> float:
        price = 0.5 / prices[n_filled - 1]
        return float(costs[:n_filled] @ _inner(price * prices[:n_filled]))

    low, high = 0, len(v)
    while low < high:  # the most directions of which the last just pays for itself
        middle = (low + high + 1) // 2
        low, high = (middle, high) if spent(middle) <= budget else (low, middle - 1)
    squares = (budget / costs) ** 2
    best = np.argmax(g * v * squares / (1 + squares))  # the direction that gains most by all of it
    candidates = [np.where(np.arange(len(costs)) == best, budget / costs, 0)]
    for n_filled in {max(low, 1), min(low + 1, len(v))}:
        price = _price(prices[:n_filled], costs[:n_filled], budget)
        x = np.zeros_like(v)
        x[:n_filled] = _inner(price * prices[:n_filled])
        candidates.append(x * (budget / (costs @ x)))
    weights = np.zeros_like(v)
    weights[order] = min(candidates, key=lambda x: np.sum(g * v / (1 + x**2))) / np.sqrt(v)
    return weights


def _price(prices: Matrix, costs: Matrix, budget: float) -> float:
    """Return the price at which the weights use up the budget, or the highest that all can pay."""

    @functools.cache  # both ends of the bracket are asked for again
    def excess(log_price: float) -> float:
        return math.log(float(costs @ _inner(math.exp(log_price) * prices)) / budget)

    highest = math.log(_MOST_PRICE / prices[-1])
    if excess(highest) >= 0:
        return math.exp(highest)
    lowest = highest - 1
    while excess(lowest) < 0:
        lowest -= 2 * (highest - lowest)
    return math.exp(optimize.brentq(excess, lowest, highest, xtol=1e-4))


def _inner(price: Matrix) -> Matrix:
    """Solve ``2 x / (1 + x^2)^2 = price`` for x >= 1 / sqrt(3).

    In logarithms the left side is concave, and the start is beyond the root: Newton's steps then
    come down to it and do not pass it.
    """
    price = np.minimum(price, _MOST_PRICE)
    target = np.log(price / 2)
    t = np.log(2 / price) / 3
    for _ in range(60):
        x2 = np.exp(2 * t)
        slope = np.minimum(1 - 4 * x2 / (1 + x2), -1e-9)
        step = (t - 2 * np.log1p(x2) - target) / slope
        t = np.maximum(t - step, math.log(_TURN))
        if np.abs(step).max() < 1e-5:  # squared by the next step
            break
    return np.exp(t)
