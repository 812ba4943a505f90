"""An estimator made of a released density."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.types import Container, Seed
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.bernstein_density import BernsteinDensity
from skdp.functions.released import ReleasedFunction

LEAST_MASS, MOST_MASS = 0.6, 2.0
"""A density with less or more on its box is no longer that of the records.

Of kernels much wider than the records, and at an end of the box as amounts are, a half is on it.
"""


class ReleasedDensity(ReleasedFunction):
    """A released density: never negative, of integral one over its box.

    The methods are those of scikit-learn's KernelDensity.

    Parameters
    ----------
    density : BernsteinDensity
        The density.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import BernsteinDensity, BernsteinTransformer, ReleasedDensity
    >>> bernstein = BernsteinTransformer(degree=2, feature_range=(0, 1)).fit(np.zeros((1, 1)))
    >>> released = ReleasedDensity(BernsteinDensity(bernstein, np.array([0.0, 1.0, 0.0])))
    >>> np.exp(released.score_samples([[0.5], [0.9]])).round(2)
    array([1.5 , 0.54])
    >>> released.sample(2, random_state=0).shape
    (2, 1)
    """

    def __init__(self, density: BernsteinDensity):
        self.density = density

    @property  # a parameter of the others, which follows from the density here
    def transformer(self) -> BernsteinTransformer:  # type: ignore[override]  # hence
        """The basis."""
        return self.density.transformer

    def evaluate(self, X: ArrayLike) -> NDArray[np.float64]:
        return self.density.evaluate(X)

    def score_samples(self, X: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the logarithm of the density.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points of the box.

        Returns
        -------
        ndarray of shape (n_samples,)
            ``-inf`` where the density is zero.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.evaluate(X))

    def score(self, X: ArrayLike, y: Container = None) -> float:
        """Compute the total log-likelihood.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points of the box.
        y : ignored
            Present by convention.

        Returns
        -------
        float
            The sum of :meth:`score_samples`.
        """
        return float(np.sum(self.score_samples(X)))

    def sample(self, n_samples: int = 1, random_state: Seed = None) -> NDArray[np.float64]:
        """Draw records from the density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of records.
        random_state : int, numpy.random.RandomState or None, default=None
            The density is released, so any seed may be used.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Points of the box.
        """
        return self.density.sample(n_samples, random_state)


def remark_on_density(released: ReleasedDensity) -> str:
    """Say what became of the numbers that a density was made of."""
    if not released.density.mass:
        return "The function of these numbers is nowhere above 0, so that the density is uniform."
    mass = f"{released.density.mass:.3g}"
    if mass == "1":
        return "The density that is made of these numbers flattens narrow peaks."
    return (
        f"The density that is made of these numbers was divided by {mass}, its integral on the box "
        "without what was below 0, and flattens narrow peaks."
    )


def misplaced(released: object) -> str:
    """Say that much of a density is outside of its box, or that it is far above 1, if so."""
    mass = released.density.mass if isinstance(released, ReleasedDensity) else 1.0
    if LEAST_MASS <= mass <= MOST_MASS:
        return ""
    became = "was divided by it" if mass else "is uniform now"
    outside = "many records miss a number, or have much of their kernels outside of the box, "
    outside = outside if mass < 1 else ""
    return (
        f"The released density had an integral of {mass:.2g} on its box, and {became}: {outside}"
        "the kernels are narrower than the steps of the lattice, or the noise is as large as the "
        "density. Have box and bandwidth the units that they should?"
    )
