"""Released densities: nonnegative, of integral one, and easy to draw from."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from skdp.core.checks import check_count
from skdp.core.types import Container, Seed
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.bernstein_basis import (
    MAX_BASIS,
    MAX_DEGREE,
    as_tensor,
    elevation_matrix,
    multiply_axes,
)
from skdp.functions.released import ReleasedFunction

LEAST_MASS, MOST_MASS = 0.6, 2.0  # outside of them a density is not that of the records


class ReleasedDensity(ReleasedFunction):
    """A released density: a mixture of products of beta densities on a box.

    A Bernstein polynomial, divided by its integral, is a product of beta densities. A function with
    nonnegative coefficients is therefore never negative, and its integral is known in any
    dimension. The methods are those of scikit-learn's KernelDensity.

    Parameters
    ----------
    transformer : BernsteinTransformer
        The basis, fitted.
    coefficients : array-like of shape (n_basis,)
        Nonnegative and not all zero. They are divided by the integral of their function.

    Attributes
    ----------
    mass : float
        The integral by which they were divided; 0 where no coefficient was positive and the uniform
        density was taken.

    Raises
    ------
    ValueError
        If a coefficient is negative or not finite, all are zero, or their number is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import BernsteinTransformer
    >>> from skdp.functions import ReleasedDensity
    >>> bernstein = BernsteinTransformer(degree=2, feature_range=(0, 4)).fit(np.zeros((1, 1)))
    >>> released = ReleasedDensity.from_coefficients(bernstein, [-0.3, 1.0, 0.2])
    >>> released.evaluate([[0.0], [2.0], [4.0]]).round(4)
    array([0.    , 0.3571, 0.15  ])
    >>> released.sample(2, random_state=0).shape
    (2, 1)
    """

    coefficients: NDArray[np.float64]

    def __init__(self, transformer: BernsteinTransformer, coefficients: ArrayLike):
        check_is_fitted(transformer)
        weights = as_tensor(
            coefficients, "coefficients", transformer.degree, transformer.n_features_in_
        )
        if weights.shape[-1] != 1 or weights.min() < 0 or not weights.any():
            raise ValueError(
                "ReleasedDensity needs one function whose coefficients are nonnegative and not "
                "all zero. Make it with ReleasedDensity.from_coefficients."
            )
        largest = weights.max()
        scaled = weights.ravel() / largest
        integral = transformer.integral(scaled)
        super().__init__(transformer, scaled / integral)
        self.mass = float(largest * integral)

    @classmethod
    def from_coefficients(
        cls, transformer: BernsteinTransformer, coefficients: ArrayLike, degree: int | None = None
    ) -> Self:
        """Make a density of a function that may be negative in places.

        The function is written in the basis of a higher degree, which does not change it; negative
        coefficients are then set to zero. The higher the degree, the closer the result is to
        ``max(function, 0)`` over its integral. None takes four times the degree of the transformer,
        as far as 10 million basis functions allow it. If no coefficient is positive, the density is
        uniform. All of this is post-processing.
        """
        check_is_fitted(transformer)
        own = transformer.degree
        tensor = as_tensor(coefficients, "coefficients", own, transformer.n_features_in_)
        if tensor.shape[-1] != 1:
            raise ValueError(
                f"A density needs the coefficients of one function. Got {tensor.shape[-1]}."
            )
        tensor = tensor[..., 0]
        if degree is None:
            affordable = int(round(MAX_BASIS ** (1 / tensor.ndim), 6)) - 1
            degree = max(own, min(4 * own, affordable, MAX_DEGREE))
        owner = "ReleasedDensity.from_coefficients"
        check_count("degree", degree, owner, at_least=own, at_most=MAX_DEGREE)
        box, names = transformer.feature_range_, getattr(transformer, "feature_names_in_", None)
        fine = BernsteinTransformer(degree, 1, feature_range=box, clip=transformer.clip)
        fine.fit(box.T)
        if names is not None:
            fine.feature_names_in_ = names
        factors = [elevation_matrix(own, degree)] * tensor.ndim
        weights = np.maximum(multiply_axes(factors, tensor), 0).ravel()
        if weights.any():
            return cls(fine, weights)
        uniform = cls(fine, np.ones_like(weights))
        uniform.mass = 0.0
        return uniform

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the logarithm of the density; ``-inf`` where it is zero."""
        with np.errstate(divide="ignore"):  # the logarithm of 0 is -inf
            return np.log(self.evaluate(X))

    def score(self, X: ArrayLike, y: Container = None) -> float:
        """Return the total log-likelihood, the sum of `score_samples`."""
        return float(np.sum(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> NDArray[np.float64]:
        """Draw records from the density, with any seed, since the density is released."""
        rng = check_random_state(random_state)
        degree, box = self.transformer.degree, self.transformer.feature_range_
        weights = self.coefficients / self.coefficients.sum()
        drawn = rng.choice(len(weights), size=n_samples, p=weights)
        q = np.stack(np.unravel_index(drawn, (degree + 1,) * len(box)), axis=-1)
        U = rng.beta(q + 1, degree - q + 1)
        low, high = box.T
        return np.clip(low * (1 - U) + high * U, low, high)


def remark_on_density(released: ReleasedDensity) -> str:
    """Say by what a density was divided, and that its narrow peaks are flattened."""
    if not released.mass:
        return "The function of these numbers is nowhere above 0, so that the density is uniform."
    mass = f"{released.mass:.3g}"
    divided = f"was divided by {mass}, its integral on the box without what was below 0, and "
    divided = "" if mass == "1" else divided
    return f"The density that is made of these numbers {divided}flattens narrow peaks."


def describe_mass(released: object) -> str:
    """Warn that much of a density is outside of its box, or that it is far above 1."""
    mass = released.mass if isinstance(released, ReleasedDensity) else 1.0
    if LEAST_MASS <= mass <= MOST_MASS:
        return ""
    became = "was divided by it" if mass else "is uniform now"
    outside = "many records miss a number, or have much of their kernels outside of the box, "
    return (
        f"The released density had an integral of {mass:.2g} on its box, and {became}: "
        f"{outside if mass < 1 else ''}the kernels are narrower than the steps of the lattice, or "
        "the noise is as large as the density. Check that the box and the bandwidth have the units "
        "of the records."
    )
