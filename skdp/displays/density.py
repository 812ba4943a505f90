"""A released density, as a picture."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import check_count, shown
from skdp.displays.colors import BLUE
from skdp.functions.released_density import ReleasedDensity
from skdp.intervals import interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class PrivateDensityDisplay:
    """A released density of one or two columns, drawn over its box.

    Made by `from_estimator` or `from_density`; drawn by `plot`, as a line or as an image.

    Parameters
    ----------
    grid : list of ndarray of float of shape (n_points,)
        Where it is evaluated, column by column.
    values : ndarray of float of shape (n_points,) or (n_points, n_points)
        The density on the grid, the first axis being that of the first column.
    names : list of str
        What the columns are called.
    band : ndarray of float of shape (n_points, 2) or None, default=None
        Between what the exact density might be, for one column.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`.
    figure_ : matplotlib Figure
        Their figure.
    line_ : matplotlib Line2D
        The density of one column.
    band_ : matplotlib FillBetweenPolyCollection
        What the noise leaves open of it.
    mesh_ : matplotlib QuadMesh
        The density of two.

    See Also
    --------
    ReleasedDensity : What is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import BernsteinDensity, BernsteinTransformer, PrivateDensityDisplay
    >>> from skdp import ReleasedDensity
    >>> bernstein = BernsteinTransformer(degree=2, feature_range=(0, 1)).fit(np.zeros((1, 1)))
    >>> density = ReleasedDensity(BernsteinDensity(bernstein, np.array([0.0, 1.0, 0.0])))
    >>> PrivateDensityDisplay.from_density(density, n_points=5).values
    array([0.   , 1.125, 1.5  , 1.125, 0.   ])
    """

    def __init__(
        self,
        *,
        grid: list[NDArray[np.float64]],
        values: NDArray[np.float64],
        names: list[str],
        band: NDArray[np.float64] | None = None,
    ):
        self.grid = grid
        self.values = values
        self.names = names
        self.band = band

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        n_points: int = 200,
        level: float | None = None,
        n_draws: int = 199,
        random_state: int | None = None,
    ) -> PrivateDensityDisplay:
        """Evaluate the density that a fitted PrivateEstimator released.

        Parameters
        ----------
        estimator : PrivateEstimator
            Fitted, with a BernsteinTransformer as its `release`.
        n_points : int of at least 2, default=200
            As for `from_density`.
        level : float in (0, 1) or None, default=None
            How often the exact density is inside of the band, point by point; None draws none. See
            :meth:`PrivateEstimator.predict_interval`.
        n_draws : int, default=199
            How often the release is simulated for the band.
        random_state : int or None, default=None
            Seed of the simulation, which is public.

        Returns
        -------
        PrivateDensityDisplay
            Not drawn yet.

        Raises
        ------
        TypeError
            If it released no density.
        ValueError
            If the density has more than two columns, or more than one and a band, or there are too
            few draws or no oracle for it.
        """
        display = cls.from_density(estimator.estimator_, n_points=n_points)
        if level is None:
            return display
        if len(display.grid) > 1:
            raise ValueError(
                "The 'level' parameter of PrivateDensityDisplay.from_estimator is for densities of "
                f"one column. Got {shown(level)} for {len(display.grid)}: leave it None."
            )
        options = {"n_draws": n_draws, "random_state": random_state}
        models = estimator._release.might_have_been(**options)
        outputs = [cls.from_density(each, n_points=n_points).values for each in models]
        display.band = interval(outputs, level)
        return display

    @classmethod
    def from_density(
        cls, density: ReleasedDensity, *, n_points: int = 200
    ) -> PrivateDensityDisplay:
        """Evaluate a released density on a grid over its box.

        Parameters
        ----------
        density : ReleasedDensity
            Of one or two columns.
        n_points : int of at least 2, default=200
            Number of points along each column.

        Returns
        -------
        PrivateDensityDisplay
            Not drawn yet.

        Raises
        ------
        TypeError
            If it is no released density.
        ValueError
            If the density has more than two columns.
        """
        owner = "PrivateDensityDisplay.from_density"
        if not isinstance(density, ReleasedDensity):
            raise TypeError(
                f"The 'density' parameter of {owner} must be a ReleasedDensity. Got "
                f"{type(density).__name__}."
            )
        check_count("n_points", n_points, owner, at_least=2)
        n_columns = density.n_features_in_
        if n_columns > 2:
            raise ValueError(
                f"The 'density' parameter of {owner} must have one or two columns. Got {n_columns}."
            )
        grid = [
            np.linspace(low, high, n_points) for low, high in density.transformer.feature_range_
        ]
        points = np.stack([axis.ravel() for axis in np.meshgrid(*grid, indexing="ij")], axis=1)
        transformer: Any = copy.copy(density.transformer)
        columns = vars(transformer).pop("feature_names_in_", ["x", "y"][:n_columns])  # points: none
        names = [str(name) for name in columns]
        values = transformer.evaluate(density.density.coefficients, points)
        values = values.reshape((n_points,) * n_columns)
        return cls(grid=grid, values=values, names=names)

    def plot(self, ax: Axes | None = None, **artist_kw: Any) -> PrivateDensityDisplay:
        """Draw the density: a line over one column, an image over two.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **artist_kw : dict
            Passed to the line, or to the image.

        Returns
        -------
        PrivateDensityDisplay
            This object.
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        look: dict[str, Any]
        label = f"probability per unit of {' and of '.join(self.names)}"
        if len(self.grid) == 1:
            if self.band is not None:
                look = {"color": BLUE, "alpha": 0.25, "lw": 0}
                low, high = self.band.T
                self.band_ = ax.fill_between(self.grid[0], low, high, **look)
            (self.line_,) = ax.plot(*self.grid, self.values, **({"color": BLUE} | artist_kw))
            ax.set_ylim(bottom=0)
            ax.set_ylabel(label)
        else:
            look = {"cmap": "viridis", "vmin": 0, "shading": "nearest"}
            self.mesh_ = ax.pcolormesh(*self.grid, self.values.T, **(look | artist_kw))
            ax.figure.colorbar(self.mesh_, ax=ax, label=label)
            ax.set_ylabel(self.names[1])
        ax.set_xlabel(self.names[0])
        self.ax_, self.figure_ = ax, ax.figure
        return self
