"""Densities in the Bernstein basis: nonnegative, of integral one, and easy to draw from."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skdp.core.checks import check_count
from skdp.functions.bernstein import BernsteinTransformer, as_coefficients
from skdp.functions.bernstein_basis import (
    MAX_BASIS,
    MAX_DEGREE,
    as_tensor,
    elevation_matrix,
    multiply_axes,
)


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

    Attributes
    ----------
    mass : float
        What they were divided by; 0 where the uniform density was taken since none was positive.

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
    >>> from skdp import BernsteinDensity, BernsteinTransformer
    >>> bernstein = BernsteinTransformer(degree=2, feature_range=(0, 4)).fit(np.zeros((1, 1)))
    >>> density = BernsteinDensity.from_coefficients(bernstein, [-0.3, 1.0, 0.2])
    >>> density.evaluate([[0.0], [2.0], [4.0]]).round(4)
    array([0.    , 0.3571, 0.15  ])
    """

    transformer: BernsteinTransformer
    coefficients: NDArray[np.float64] = field(repr=False)
    mass: float = field(init=False, repr=False, default=1.0)

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
        largest = weights.max()
        scaled = weights.ravel() / largest
        integral = transformer.integral(scaled)
        object.__setattr__(self, "coefficients", scaled / integral)
        object.__setattr__(self, "mass", float(largest * integral))

    @classmethod
    def from_coefficients(
        cls, transformer: BernsteinTransformer, coefficients: ArrayLike, degree: int | None = None
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
        coefficients : array-like of shape (n_coefficients,)
            As returned by its ``coefficients``.
        degree : int or None, default=None
            Degree of the density, at least that of the coefficients. None takes four times that
            of the transformer or, if more, twice that of the coefficients; less where 10 million
            basis functions do not allow it.

        Returns
        -------
        BernsteinDensity
            The density; the uniform one if no coefficient was positive.

        Raises
        ------
        ValueError
            If the degree is lower than that of the coefficients, or these do not fit.
        """
        tensor = _one_function(transformer, coefficients)
        own = len(tensor) - 1
        if degree is None:
            affordable = int(round(MAX_BASIS ** (1 / tensor.ndim), 6)) - 1
            wanted = max(4 * transformer.degree, 2 * own)
            degree = max(own, min(wanted, affordable, MAX_DEGREE))
        check_count(
            "degree", degree, "BernsteinDensity.from_coefficients", at_least=own, at_most=MAX_DEGREE
        )
        fine = BernsteinTransformer(
            degree, 1, feature_range=transformer.feature_range_, clip=transformer.clip
        )
        fine.fit(transformer.feature_range_.T)
        if hasattr(transformer, "feature_names_in_"):
            fine.feature_names_in_ = transformer.feature_names_in_
        factors = [elevation_matrix(own, degree)] * tensor.ndim
        weights = np.maximum(multiply_axes(factors, tensor), 0).ravel()
        if weights.any():
            return cls(fine, weights)
        uniform = cls(fine, np.ones_like(weights))
        object.__setattr__(uniform, "mass", 0.0)
        return uniform

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


def _one_function(
    transformer: BernsteinTransformer, coefficients: ArrayLike
) -> NDArray[np.float64]:
    """Check the coefficients of a single function and give them one axis for each feature."""
    tensor = as_coefficients(coefficients, transformer)
    if tensor.shape[-1] != 1:
        raise ValueError(
            f"A density needs the coefficients of one function. Got {tensor.shape[-1]}."
        )
    return tensor[..., 0]
