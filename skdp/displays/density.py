"""A released density, as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp.core.checks import check_count, shown
from skdp.displays.drawing import BLUE, VERMILION, Display, Look
from skdp.estimator import PrivateEstimator
from skdp.functions.bernstein_basis import bernstein_basis, multiply_axes
from skdp.result import Release

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateDensityDisplay(Display):
    """A released density over its box: a line over one column, an image over two.

    Bars at the points of the lattice show what the noise leaves open of the exact density. Where
    the line leaves many of them, it is too smooth.

    Parameters
    ----------
    grid : list of ndarray of float of shape (n_points,)
        Where the density is evaluated, column by column.
    values : ndarray of float of shape (n_points,) or (n_points, n_points)
        The density on the grid, the first axis being that of the first column.
    names : list of str
        What the columns are called.
    lattice : ndarray of float of shape (degree + 1,) or None, default=None
        Points of the only column at which the density was released; between them it is smoothed.
    intervals : ndarray of float of shape (degree + 1, 2) or None, default=None
        Ends of intervals that hold the exact density there: that of these records with their
        kernels, divided by the `mass` if that is below 1.
    level : float in (0, 1) or None, default=None
        How often the exact density is in an interval, point by point.
    mass : float, default=1.0
        What the released values were divided by, so that the density has an integral of one on the
        box, as the legend says. A mass below 1 comes from kernels that reach beyond the box and
        from records with gaps; one above 1 from the noise.

    Attributes
    ----------
    line_, bars_ : matplotlib Line2D
        The density of one column, and its intervals.
    mesh_ : matplotlib QuadMesh
        The density of two columns.

    See Also
    --------
    skdp.functions.ReleasedDensity : What is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KernelDensity
    >>> from skdp import BernsteinTransformer, LaplaceMechanism, PrivateEstimator
    >>> from skdp.displays import PrivateDensityDisplay
    >>> box = BernsteinTransformer(degree=4, feature_range=(0, 1))
    >>> model = PrivateEstimator(
    ...     KernelDensity(bandwidth=0.2), mechanism=LaplaceMechanism(1.0), sensitivity="known",
    ...     release=box,
    ... ).fit(np.random.default_rng(0).random((500, 1)))
    >>> PrivateDensityDisplay.from_estimator(model, n_points=5).values.shape
    (5,)
    """

    grid: list[NDArray[np.float64]]
    values: NDArray[np.float64]
    names: list[str]
    lattice: NDArray[np.float64] | None = None
    intervals: NDArray[np.float64] | None = None
    level: float | None = None
    mass: float = 1.0

    @classmethod
    def from_estimator(
        cls,
        estimator: PrivateEstimator | Release,
        *,
        n_points: int = 200,
        level: float | None = None,
        random_state: int = 0,
    ) -> PrivateDensityDisplay:
        """Evaluate a released density on a grid over its box.

        Parameters
        ----------
        estimator : PrivateEstimator or Release
            Fitted, with a BernsteinTransformer as its `release`; or what was released, such as
            :func:`load` returns.
        n_points : int of at least 2, default=200
            Number of points along each column.
        level : float in (0, 1) or None, default=None
            How often the exact density of one column is inside of the intervals, point by point of
            the lattice; None makes none. :meth:`Release.value_interval` has them undivided.
        random_state : int, default=0
            Seed of the simulation, which is public.

        Returns
        -------
        PrivateDensityDisplay
            Not drawn yet.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            If the density has more than two columns, or more than one beside a `level`, or there
            is no oracle for the intervals.
        """
        owner = "PrivateDensityDisplay.from_estimator"
        check_count("n_points", n_points, owner, at_least=2)
        if isinstance(estimator, Release):
            density = estimator.value
        else:
            check_is_fitted(estimator)
            density = estimator.estimator_
        n_columns = density.n_features_in_
        if n_columns > (2 if level is None else 1):
            raise ValueError(
                f"The density of {owner} must have one or two columns, and one where there is a "
                f"'level'. Got {n_columns} columns and level={shown(level)}."
            )
        degree, sides = density.transformer.degree, density.transformer.feature_range_
        names = getattr(density.transformer, "feature_names_in_", None)
        names = ["x", "y"][:n_columns] if names is None else names
        basis = bernstein_basis(np.linspace(0, 1, n_points), degree)
        tensor = density.coefficients.reshape((degree + 1,) * n_columns)
        display = cls(
            grid=[np.linspace(low, high, n_points) for low, high in sides],
            values=multiply_axes([basis] * n_columns, tensor),
            names=[str(name) for name in names],
            mass=density.mass,
        )
        if level is not None:
            ends = estimator.value_interval(level, random_state=random_state)
            display.lattice = np.linspace(sides[0][0], sides[0][1], len(ends))
            display.level = level
            display.intervals = np.maximum(ends, 0) / min(display.mass or 1, 1)
        return display

    def _draw(self, ax: Axes | None, artist_kw: Look) -> None:
        ax = self._axes(ax)
        units = r" $\times$ ".join(f"unit of {name}" for name in self.names)
        divided = "" if f"{self.mass:.3g}" in ("0", "1") else f"divided by {self.mass:.3g}"
        ax.set_xlabel(self.names[0])
        if len(self.grid) == 2:
            look: Look = {"cmap": "viridis", "vmin": 0, "shading": "nearest"}
            self.mesh_ = ax.pcolormesh(*self.grid, self.values.T, **(look | artist_kw))
            label = f"probability per\n({units})\n{divided}".strip()
            ax.figure.colorbar(self.mesh_, ax=ax, label=label)
            ax.set_ylabel(self.names[1])
            return
        if self.intervals is not None and self.lattice is not None:
            said = ["exact, with its kernel", f"{self.level:.0%}", divided if self.mass < 1 else ""]
            look = {"color": VERMILION, "lw": 3, "solid_capstyle": "round", "zorder": 3}
            look |= {"alpha": 0.6, "label": ", ".join(filter(None, said))}
            gapped = np.insert(self.intervals, 2, np.nan, axis=1)  # a legend heeds a line alone
            (self.bars_,) = ax.plot(np.repeat(self.lattice, 3), gapped.ravel(), **look)
        look = {"color": BLUE, "label": ", ".join(filter(None, ["released", divided]))}
        (self.line_,) = ax.plot(*self.grid, self.values, **(look | artist_kw))
        if self.intervals is not None or divided:
            ax.legend()
        ax.set_ylim(bottom=0, auto=None)  # for what is drawn into it afterwards
        ax.set_ylabel(f"probability per {units}")
