"""What displays share: how they come by their axes, and colors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLUE, VERMILION, GREEN = "#0072B2", "#D55E00", "#009E73"
"""Colors that the color-blind tell apart, of Okabe and Ito (2008)."""


class DrawsOnAxes:
    """A display that draws on given axes or on those of a new figure."""

    def _axes(self, ax: Axes | None, **figure_kw: Any) -> Axes:
        """Return the axes to draw on, and keep them."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(layout="constrained", **figure_kw)
        self.ax_, self.figure_ = ax, ax.figure
        return ax
