"""What a privacy level costs, if costs follow the model of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq, minimize_scalar
from scipy.special import expit

from skdp.accounting.laws import LaplaceLoss
from skdp.core.checks import check_count, check_levels, check_real


def exact_confidence(epsilon: ArrayLike, epsilon0: float) -> Any:
    """Return the probability that Laplace noise of level epsilon0 keeps a stronger level."""
    return LaplaceLoss(epsilon0).two_sided(epsilon)


@dataclass(frozen=True)
class CompensationModel:
    """Compensation to keep ready for a breach, as a function of epsilon.

    A stakeholder gets ``minimum + budget * exp(-c / epsilon)`` after a breach of data that were
    processed at level epsilon (equation 8 of [1]_). Where a Laplace mechanism of level epsilon0
    keeps the stronger level epsilon with some confidence, the mean of the two costs with that
    confidence is expected (equation 9). The model changes no promise of a release.

    Parameters
    ----------
    budget : float in (0, inf)
        Compensation E of one stakeholder without any protection, in units of money.
    stakeholders : int of at least 1
        Number of people in the data.
    c : float in (0, inf), default=1.0
        How fast the cost falls with epsilon.
    minimum : float in [0, inf), default=0.0
        Compensation E_min of one stakeholder that remains at any epsilon.
    law : callable, default=exact_confidence
        The confidence ``law(epsilon, epsilon0)``, for an array of stronger levels. The default is
        the probability that the loss is at most epsilon in absolute value (Definition 6).

    References
    ----------
    .. [1] Dandekar, Basu and Bressan, "Differential Privacy at Risk", PoPETs 2021, section 5.

    Examples
    --------
    >>> from skdp.risk import CompensationModel
    >>> model = CompensationModel(budget=5500, stakeholders=100)
    >>> print(f"{model.cost(0.5):.2f}")
    74434.41
    >>> epsilon = model.optimal_epsilon(0.5)
    >>> print(f"{epsilon:.3f} {model.cost_at_risk(epsilon, 0.5):.2f}")
    0.286 67978.95
    """

    budget: float
    stakeholders: int
    c: float = 1.0
    minimum: float = 0.0
    law: Callable[[Any, float], Any] = field(default_factory=lambda: exact_confidence)

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_real("budget", self.budget, owner, 0.0, math.inf)
        check_count("stakeholders", self.stakeholders, owner)
        check_real("c", self.c, owner, 0.0, math.inf)
        check_real("minimum", self.minimum, owner, 0.0, math.inf, closed="l")

    def cost(self, epsilon: ArrayLike) -> Any:
        """Compensation of all stakeholders at a privacy level, E_dp of the paper.

        Parameters
        ----------
        epsilon : array-like of float of at least 0
            The level; inf is no protection at all.

        Returns
        -------
        float or ndarray of float
            ``stakeholders * (minimum + budget * exp(-c / epsilon))``, of the shape of `epsilon`.
        """
        levels = np.abs(check_levels("epsilon", epsilon, "cost", 0.0))  # of zeros too
        with np.errstate(divide="ignore", over="ignore"):
            share = np.exp(-self.c / levels)
        return (self.stakeholders * (self.minimum + self.budget * share))[()]

    def cost_at_risk(self, epsilon: float, epsilon0: float) -> float:
        """Expected compensation if a stronger level counts as often as it is kept, E_par.

        Parameters
        ----------
        epsilon : float in (0, epsilon0]
            The stronger level.
        epsilon0 : float in (0, inf)
            Level of the mechanism.

        Returns
        -------
        float
            The mean of ``cost(epsilon)`` and ``cost(epsilon0)``, with the confidence of `law`.
        """
        epsilon0 = check_real("epsilon0", epsilon0, "cost_at_risk", 0.0)
        epsilon = check_real("epsilon", epsilon, "cost_at_risk", 0.0, epsilon0, closed="r")
        confidence = self.law(epsilon, epsilon0)
        return float(confidence * self.cost(epsilon) + (1 - confidence) * self.cost(epsilon0))

    def optimal_epsilon(self, epsilon0: float) -> float:
        """Stronger level with the least expected compensation.

        The least of 800 points, dense at both ends, is refined between its neighbors, as the cost
        is not convex for epsilon0 above 1.1046, other than Lemma 14 of the paper says.

        Parameters
        ----------
        epsilon0 : float in (0, inf)
            Level of the mechanism.

        Returns
        -------
        float in (0, epsilon0]
            The level.
        """
        epsilon0 = check_real("epsilon0", epsilon0, "optimal_epsilon", 0.0, math.inf)
        size = math.log(self.c) - math.log(epsilon0)

        # As a share of the cost at epsilon0, exact near its ends.
        def saving(logit: NDArray[np.float64]) -> NDArray[np.float64]:
            with np.errstate(over="ignore"):
                share = -np.expm1(-np.exp(size - logit))
            return share * self.law(epsilon0 * expit(logit), epsilon0)

        reach = 12 + abs(size)
        grid = np.linspace(-reach, reach, 800)
        best = int(np.argmax(saving(grid)))
        bounds = grid[max(best - 1, 0)], grid[min(best + 1, 799)]
        found = minimize_scalar(
            lambda logit: -saving(logit), bounds=bounds, method="bounded", options={"xatol": 1e-10}
        )
        return epsilon0 * float(expit(found.x))

    def affordable_epsilon(self, budget: float, epsilon0: float, confidence: float) -> float:
        """Largest stronger level whose expected compensation is within a budget (equation 11).

        Parameters
        ----------
        budget : float in (0, inf)
            Money for all stakeholders together.
        epsilon0 : float in (0, inf)
            Level of the mechanism.
        confidence : float in (0, 1]
            Confidence with which the stronger level is kept.

        Returns
        -------
        float
            The largest epsilon with ``confidence * cost(epsilon) + (1 - confidence) *
            cost(epsilon0) <= budget``; inf if any will do.

        Raises
        ------
        ValueError
            If no level does; the message names the least budget.
        """
        owner = "affordable_epsilon"
        budget = check_real("budget", budget, owner, 0.0, math.inf)
        epsilon0 = check_real("epsilon0", epsilon0, owner, 0.0, math.inf)
        confidence = check_real("confidence", confidence, owner, 0.0, 1.0, closed="r")
        least = float(confidence * self.cost(0.0) + (1 - confidence) * self.cost(epsilon0))
        share = (budget - least) / confidence / self.stakeholders / self.budget
        if share <= 0:
            raise ValueError(
                f"The 'budget' parameter of {owner} must be above {least:.2f}, the cost with "
                f"confidence={confidence:g} even at epsilon = 0. Got {budget:g}."
            )
        return -self.c / math.log(share) if share < 1 else math.inf

    def epsilon_range(
        self, budget: float, max_error: float, *, sensitivity: float = 1.0
    ) -> tuple[float, float]:
        """Levels of a Laplace mechanism that are both accurate enough and affordable.

        The expected absolute error is ``sensitivity / epsilon0``. Equation 11 of the paper bounds
        the stronger level in place of epsilon0, which its own example violates.

        Parameters
        ----------
        budget : float in (0, inf)
            Money for all stakeholders together.
        max_error : float in (0, inf)
            Largest expected absolute error of a released number, T in the paper.
        sensitivity : float in (0, inf), default=1.0
            The sensitivity; 1 for a count.

        Returns
        -------
        lowest, highest : float
            Range of epsilon0. At `highest` the least cost at risk equals the budget; inf if the
            budget is enough at any level.

        Raises
        ------
        ValueError
            If no level does; the message names the least budget and the least error.
        """
        owner = "epsilon_range"
        budget = check_real("budget", budget, owner, 0.0, math.inf)
        max_error = check_real("max_error", max_error, owner, 0.0, math.inf)
        lowest = check_real("sensitivity", sensitivity, owner, 0.0, math.inf) / max_error
        highest = self._highest(budget)
        if highest < lowest:
            # Both remedies are rounded up, so that they are enough.
            nearest = f"Raise it to at least {math.ceil(100 * self._least_cost(lowest)) / 100:.2f}"
            if highest > 0:
                nearest += f", or max_error to at least {1.0005 * sensitivity / highest:.4g}"
            raise ValueError(
                f"The 'budget' parameter of {owner} must be at least the cost at epsilon0="
                f"{lowest:g}, which max_error={max_error:g} asks for. Got {budget:g}. {nearest}."
            )
        return lowest, highest

    def _least_cost(self, epsilon0: float) -> float:
        return self.cost_at_risk(self.optimal_epsilon(epsilon0), epsilon0)

    def _highest(self, budget: float) -> float:
        """Return the largest epsilon0 whose least cost at risk is affordable."""
        if budget <= self.stakeholders * self.minimum:
            return 0.0
        if self._least_cost(1e9 * self.c) <= budget:  # less noise than that is no noise
            return math.inf
        ends = (math.log(share * self.c) for share in (1e-9, 1e9))
        root = brentq(lambda log: self._least_cost(math.exp(log)) - budget, *ends, xtol=1e-10)
        return math.exp(root - 2e-10)
