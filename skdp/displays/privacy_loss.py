"""The privacy loss as a picture: densities above, loss below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from skdp.displays.colors import BLUE, GREEN, VERMILION

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class PrivacyLossDisplay:
    """Two output laws and the privacy loss between them, point by point.

    Made by `from_loss`; drawn by `plot`. The upper panel shows the densities of the outputs on x
    and on x', with bars for values of positive probability; the lower one shows the loss, the
    absolute log ratio, with pointwise intervals. Where one density is below its floor the loss is
    at least what is drawn, as a dotted line without an interval; where both are, it is left out.

    Parameters
    ----------
    loss : skdp.audit.PrivacyLoss
        From :func:`skdp.audit.estimate_privacy_loss`, with outputs of one dimension.
    claimed_epsilon : float or None, default=None
        Draw the claim as a line.

    Attributes
    ----------
    axes_ : ndarray of two matplotlib Axes
        Densities and loss.
    figure_ : matplotlib Figure
        The figure that holds them.

    See Also
    --------
    skdp.audit.estimate_privacy_loss : What is drawn.

    References
    ----------
    Askin, Kutta and Dette, "Statistical Quantification of Differential Privacy: A Local
    Approach", IEEE S&P 2022, figure 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PrivacyLossDisplay
    >>> from skdp.audit import estimate_privacy_loss
    >>> rng = np.random.default_rng(0)
    >>> loss = estimate_privacy_loss(rng.laplace(size=5000), 1 + rng.laplace(size=5000))
    >>> display = PrivacyLossDisplay.from_loss(loss, claimed_epsilon=1.0)
    >>> display.plot().axes_[1].get_ylabel()
    'privacy loss'
    """

    axes_: NDArray
    figure_: Figure

    def __init__(self, *, loss: Any, claimed_epsilon: float | None = None):
        self.loss = loss
        self.claimed_epsilon = claimed_epsilon

    @classmethod
    def from_loss(cls, loss: Any, *, claimed_epsilon: float | None = None) -> Self:
        """Take an estimate of the loss.

        Parameters
        ----------
        loss : skdp.audit.PrivacyLoss
            From :func:`skdp.audit.estimate_privacy_loss`, with outputs of one dimension.
        claimed_epsilon : float or None, default=None
            Draw the claim as a line.

        Returns
        -------
        PrivacyLossDisplay
            Not drawn yet.

        Raises
        ------
        ValueError
            If the outputs have more than one dimension.
        """
        if loss.points.ndim != 1:
            raise ValueError(
                "The 'loss' parameter of PrivacyLossDisplay.from_loss must have outputs of one "
                f"dimension. Got {loss.points.shape[1]}."
            )
        return cls(loss=loss, claimed_epsilon=claimed_epsilon)

    def plot(
        self, ax: Sequence[Axes] | None = None, *, names: tuple[str, str] = ("x", "x'")
    ) -> Self:
        """Draw the densities and the loss.

        Parameters
        ----------
        ax : sequence of two matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        names : tuple of two str, default=("x", "x'")
            Names of the two datasets in the legend.

        Returns
        -------
        PrivacyLossDisplay
            Itself.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(2, 1, sharex=True, layout="constrained")
        self.axes_ = np.asarray(ax)
        self.figure_ = self.axes_[0].figure
        self._plot_densities(self.axes_[0], names)
        self._plot_loss(self.axes_[1])
        return self

    def _plot_densities(self, ax: Axes, names: tuple[str, str]) -> None:
        loss, atom = self.loss, self.loss.is_atom
        for k, (name, values) in enumerate(
            zip(names, (loss.density_x, loss.density_y), strict=True)
        ):
            look: dict[str, Any] = {"color": (BLUE, VERMILION)[k], "ls": ("-", "--")[k]}
            ax.plot([], [], label=name, **look)
            if not atom.all():
                ax.plot(loss.points[~atom], values[~atom], **look)
            if atom.any():
                markers = ax.stem(loss.points[atom], values[atom], basefmt=" ")
                markers.stemlines.set(**look)
                markers.markerline.set(color=look["color"], marker="os"[k], fillstyle="none")
        ax.set_ylim(bottom=0)
        ax.set_ylabel("probability" if atom.all() else "density")
        ax.legend()

    def _plot_loss(self, ax: Axes) -> None:
        loss, atom = self.loss, self.loss.is_atom
        if not atom.all():
            points = loss.points[~atom]
            known = np.where(loss.floored, np.nan, loss.loss)[~atom]
            least = np.where(loss.visible, loss.loss, np.nan)[~atom]
            low, high = (
                np.where(loss.floored, np.nan, end)[~atom] for end in (loss.lower, loss.upper)
            )
            ax.plot(points, least, color=GREEN, ls=":", lw=1)
            ax.plot(points, known, color=GREEN, label="loss")
            ax.fill_between(points, low, high, color=GREEN, alpha=0.25, lw=0)
        shown = atom & loss.visible
        if shown.any():
            above = np.where(loss.floored, 0.0, loss.upper - loss.loss)
            distance = [(loss.loss - loss.lower)[shown], above[shown]]
            ax.errorbar(loss.points[shown], loss.loss[shown], distance, fmt="o", color=GREEN)
        if self.claimed_epsilon is not None:
            ax.axhline(self.claimed_epsilon, color="0.4", ls="--", lw=1, label="claimed")
            ax.legend()
        ax.set_ylim(bottom=0)
        ax.set_xlabel("output")
        ax.set_ylabel("privacy loss")
