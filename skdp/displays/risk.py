"""The cost of a stronger level than promised, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class RiskDisplay:
    """Expected compensation against the stronger level, with its minimum.

    Made by `from_model`; drawn by `plot`.

    Parameters
    ----------
    epsilon : ndarray of float of shape (n_points,)
        Stronger levels, in (0, epsilon0].
    cost : ndarray of float of shape (n_points,)
        Expected compensation at each level, in units of money.
    optimal_epsilon : float
        The level with the least expected compensation.
    optimal_cost : float
        The expected compensation there.
    epsilon0 : float
        Level of the mechanism.
    law : str
        Where the confidence of the stronger level comes from.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`.
    figure_ : matplotlib Figure
        Their figure.
    line_ : matplotlib Line2D
        The curve.
    minimum_ : matplotlib Line2D
        The mark at the minimum.

    See Also
    --------
    skdp.risk.CompensationModel : The cost model.

    Examples
    --------
    >>> from skdp import RiskDisplay
    >>> from skdp.risk import CompensationModel
    >>> display = RiskDisplay.from_model(CompensationModel(5500, 100), epsilon0=0.5)
    >>> print(f"{display.optimal_epsilon:.3f} {display.optimal_cost:.2f}")
    0.286 67978.95
    """

    def __init__(
        self,
        *,
        epsilon: NDArray[np.float64],
        cost: NDArray[np.float64],
        optimal_epsilon: float,
        optimal_cost: float,
        epsilon0: float,
        law: str,
    ):
        self.epsilon = epsilon
        self.cost = cost
        self.optimal_epsilon = optimal_epsilon
        self.optimal_cost = optimal_cost
        self.epsilon0 = epsilon0
        self.law = law

    @classmethod
    def from_model(cls, model: Any, epsilon0: float, *, n_points: int = 200) -> RiskDisplay:
        """Compute the curve and its minimum.

        Parameters
        ----------
        model : skdp.risk.CompensationModel
            The cost model, which also names the law.
        epsilon0 : float in (0, inf)
            Level of the mechanism.
        n_points : int of at least 2, default=200
            Number of levels, evenly spaced up to epsilon0.

        Returns
        -------
        RiskDisplay
            Not drawn yet.

        Raises
        ------
        ValueError
            If epsilon0 or n_points is outside its range.
        """
        if n_points < 2:
            raise ValueError(
                f"The 'n_points' parameter of RiskDisplay must be at least 2. Got "
                f"{shown(n_points)}."
            )
        optimal = model.optimal_epsilon(epsilon0)
        epsilon = epsilon0 * np.arange(1, n_points + 1) / n_points
        return cls(
            epsilon=epsilon,
            cost=np.array([model.cost_at_risk(level, epsilon0) for level in epsilon]),
            optimal_epsilon=optimal,
            optimal_cost=model.cost_at_risk(optimal, epsilon0),
            epsilon0=epsilon0,
            law=str(getattr(model.law, "__name__", model.law)),
        )

    def plot(self, ax: Axes | None = None, **line_kw: Any) -> RiskDisplay:
        """Draw the curve and mark its minimum.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **line_kw : dict
            Passed to the curve, on top of a label that names epsilon0 and the law.

        Returns
        -------
        RiskDisplay
            This object.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        label = f"$\\epsilon_0$ = {self.epsilon0:g}, {self.law} law"
        (self.line_,) = ax.plot(self.epsilon, self.cost, **({"label": label} | line_kw))
        (self.minimum_,) = ax.plot(
            [self.optimal_epsilon], [self.optimal_cost], "o", color=self.line_.get_color()
        )
        ax.set_xlabel("stronger level $\\epsilon$")
        ax.set_ylabel("expected compensation")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self
