"""Densities in the Bernstein basis: nonnegative, of integral one, and easy to draw from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skdp.targets._bernstein_basis import (
    MAX_BASIS,
    MAX_DEGREE,
    as_tensor,
    bernstein_basis,
    check_count,
    elevation_matrix,
    multiply_axes,
    row_chunks,
)
from skdp.targets.bernstein import BernsteinTransformer


@dataclass(frozen=True, eq=False)
class BernsteinDensity:
    """A density on a box: a mixture of products of beta densities.

    A Bernstein polynomial, divided by its integral, is a product of beta densities. With
    nonnegative coefficients a function is therefore a mixture of them: never negative, with an
    integral known without quadrature in any dimension, and drawn from by two lines.

    Parameters
    ----------
    transformer : BernsteinTransformer
        The basis, fitted.
    coefficients : ndarray of shape (n_basis,)
        Nonnegative and not all zero. They are divided by the integral of their function.

    Raises
    ------
    ValueError
        If a coefficient is negative or not finite, all are zero, or their number is wrong.

    See Also
    --------
    BernsteinDensity.from_coefficients : Repair coefficients that have become negative by noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.targets.bernstein import BernsteinTransformer
    >>> from skdp.targets.bernstein_density import BernsteinDensity
    >>> bernstein = BernsteinTransformer(degree=2, feature_range=(0, 4)).fit(np.zeros((1, 1)))
    >>> density = BernsteinDensity.from_coefficients(bernstein, [-0.3, 1.0, 0.2])
    >>> density.evaluate([[0.0], [2.0], [4.0]]).round(4)
    array([0.    , 0.3571, 0.15  ])
    """

    transformer: BernsteinTransformer
    coefficients: NDArray[np.float64] = field(repr=False)

    def __post_init__(self) -> None:
        check_is_fitted(self.transformer)
        transformer = self.transformer
        weights = as_tensor(
            self.coefficients, "coefficients", transformer.degree, transformer.n_features_in_
        )
        if weights.shape[-1] != 1 or weights.min() < 0 or not weights.any():
            raise ValueError(
                "BernsteinDensity needs one function whose coefficients are nonnegative and not "
                "all zero. Make it with BernsteinDensity.from_coefficients."
            )
        scaled = weights.ravel() / weights.max()
        object.__setattr__(self, "coefficients", scaled / transformer.integral(scaled))

    @classmethod
    def from_coefficients(
        cls,
        transformer: BernsteinTransformer,
        coefficients: ArrayLike,
        degree: int | None = None,
    ) -> BernsteinDensity:
        """Make a density of a function that may be negative in places.

        The function is written in the basis of a higher degree, which does not change it;
        negative coefficients are then set to zero and the rest divided by the integral. The
        coefficients of a higher degree follow the function ever closer, so the result tends to
        ``max(function, 0)`` over its integral. All of this is post-processing.

        Parameters
        ----------
        transformer : BernsteinTransformer
            The basis, fitted.
        coefficients : array-like of shape (n_basis,)
            As returned by its ``coefficients``.
        degree : int or None, default=None
            Degree of the density, at least that of the transformer. None takes four times that
            degree, or less where 10 million basis functions do not allow it.

        Returns
        -------
        BernsteinDensity
            The density; the uniform one if no coefficient was positive.

        Raises
        ------
        ValueError
            If the degree is lower than that of the transformer, or the coefficients do not fit.
        """
        tensor = _one_function(transformer, coefficients)
        if degree is None:
            affordable = int(round(MAX_BASIS ** (1 / tensor.ndim), 6)) - 1
            degree = max(transformer.degree, min(4 * transformer.degree, affordable, MAX_DEGREE))
        check_count("degree", degree, transformer.degree, MAX_DEGREE)
        fine = BernsteinTransformer(
            degree, 1, feature_range=transformer.feature_range_, clip=transformer.clip
        )
        fine.fit(transformer.feature_range_.T)
        factors = [elevation_matrix(transformer.degree, degree)] * tensor.ndim
        weights = np.maximum(multiply_axes(factors, tensor), 0).ravel()
        return cls(fine, weights if weights.any() else np.ones_like(weights))

    def evaluate(self, X: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the density.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points of the box.

        Returns
        -------
        ndarray of shape (n_samples,)
            Never negative.

        Raises
        ------
        ValueError
            If a point is outside the box and the transformer does not clip.
        """
        return self.transformer.evaluate(self.coefficients, X)

    def sample(self, n_samples: int = 1, random_state: object = None) -> NDArray[np.float64]:
        """Draw from the density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of points.
        random_state : int, RandomState or None, default=None
            To draw from what is released is public, so any seed may be used.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Points of the box.
        """
        rng = check_random_state(random_state)
        degree, box = self.transformer.degree, self.transformer.feature_range_
        weights = self.coefficients / self.coefficients.sum()
        drawn = rng.choice(len(weights), size=n_samples, p=weights)
        q = np.stack(np.unravel_index(drawn, (degree + 1,) * len(box)), axis=-1)
        U = rng.beta(q + 1, degree - q + 1)
        low, high = box.T
        return np.clip(low * (1 - U) + high * U, low, high)


def integrate_positive(
    transformer: BernsteinTransformer,
    coefficients: ArrayLike,
    *,
    rtol: float = 1e-6,
    max_points: int = 2**27,
) -> tuple[float, float]:
    """Integrate ``max(function, 0)`` over a box of one, two or three dimensions.

    Composite Gauss-Legendre quadrature with four nodes in every cell, on a grid that doubles until
    the result settles. The cells that the zero set cuts decide the error, which falls at least with
    the square of their size: in three dimensions 1e-6 is mostly reached within a second, but not
    where the zero set is parallel to an axis. :class:`BernsteinDensity` is exact, without
    quadrature and in any dimension. Return the integral of the finest rule, and how much the last
    doubling changed it: an estimate of the error of the rule before, so most often a multiple of
    what is left. The grid is doubled until that is a share `rtol` of the integral, or refused at
    `max_points`.
    """
    tensor = _one_function(transformer, coefficients)
    if tensor.ndim > 3:
        raise ValueError(
            f"integrate_positive needs a box of at most 3 features. Got {tensor.ndim}. "
            "BernsteinDensity.from_coefficients needs no quadrature."
        )
    volume = math.prod(np.ptp(transformer.feature_range_, axis=1).tolist())
    finest = int(round(max_points ** (1 / tensor.ndim), 6)) // 4
    n_cells, change, value = 4, math.inf, volume * _positive_mean(tensor, 4)
    while 2 * n_cells <= finest:
        n_cells, last_change, previous = 2 * n_cells, change, value
        value = volume * _positive_mean(tensor, n_cells)
        change = abs(value - previous)
        # The change before must be small too, as two coarse rules may agree by chance.
        if change <= rtol * value and last_change <= 64 * rtol * value:
            return value, change
    raise ValueError(
        f"integrate_positive did not settle to rtol={rtol:g} with max_points={max_points}. Raise "
        "one of them; BernsteinDensity.from_coefficients needs no quadrature."
    )


def _positive_mean(tensor: NDArray[np.float64], n_cells: int) -> float:
    """Average ``max(function, 0)`` over the unit cube with `n_cells` cells along each axis."""
    nodes, weights = np.polynomial.legendre.leggauss(4)
    points = ((np.arange(n_cells)[:, None] + (nodes + 1) / 2) / n_cells).ravel()
    weights = np.tile(weights / (2 * n_cells), n_cells)
    factor = bernstein_basis(points, tensor.shape[0] - 1)
    totals = []
    for rows in row_chunks(len(points), len(points) ** (tensor.ndim - 1)):
        grid = multiply_axes([factor[rows], *[factor] * (tensor.ndim - 1)], tensor)
        np.maximum(grid, 0, out=grid)
        while grid.ndim > 1:
            grid = grid @ weights
        totals.append(float(grid @ weights[rows]))
    return math.fsum(totals)


def _one_function(
    transformer: BernsteinTransformer, coefficients: ArrayLike
) -> NDArray[np.float64]:
    """Check the coefficients of a single function and give them one axis for each feature."""
    check_is_fitted(transformer)
    tensor = as_tensor(coefficients, "coefficients", transformer.degree, transformer.n_features_in_)
    if tensor.shape[-1] != 1:
        raise ValueError(
            f"A density needs the coefficients of one function. Got {tensor.shape[-1]}."
        )
    return tensor[..., 0]
