"""Display: what all pictures share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Look = dict[str, Any]  # keywords of an artist
BLUE, VERMILION = "#0072B2", "#D55E00"  # told apart by the color-blind, Okabe and Ito (2008)


class Display(ABC):
    """A picture: `from_*` computes its fields, and `plot` draws them."""

    def plot(self, ax: Axes | None = None, **artist_kw: Any) -> Self:
        """Draw the picture, as the class describes it.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **artist_kw : dict
            Passed to the main artist: the line, the intervals or the image.

        Returns
        -------
        Self
            This object, with `ax_`, `figure_` and the artists.
        """
        self._draw(ax, artist_kw)
        return self

    @abstractmethod
    def _draw(self, ax: Axes | None, artist_kw: Look) -> None: ...

    def _axes(self, ax: Axes | None, **figure_kw: Any) -> Axes:
        """Return the axes to draw on, and keep them."""
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(layout="constrained", **figure_kw)
        self.ax_, self.figure_ = ax, ax.figure
        return ax
