"""The oracle for densities when only the box is known."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from skdp.core.checks import check_count, floats, shown
from skdp.core.types import Sample
from skdp.oracles.shipped import Box, ShippedOracle


class RandomDensityOracle(ShippedOracle):
    """Draw each dataset from a random smooth density of its own, on a box.

    For a density when only bounds are public. Each dataset draws a mixture of normal distributions
    first and its records second, so the promise covers pairs from a density drawn at random (a
    dataset-level oracle).

    A mixture has 1 to `max_components` components, each number as likely as any other, with weights
    uniform on the simplex. A component has independent normal coordinates, truncated to the box:
    its mode is uniform on the box, and the logarithm of its standard deviation, in each coordinate,
    uniform between the logarithms of `widths`.

    Parameters
    ----------
    bounds : array-like of shape (n_features, 2), or dict of name -> (low, high)
        The range of each feature, in its own unit. With a dict the oracle returns a pandas frame.
    max_components : int, default=4
        Largest number of components, at least 1.
    widths : (float, float), default=(0.03, 0.3)
        Smallest and largest standard deviation of a component before truncation, in units of the
        side of the box; positive. No drawn density has a finer structure than the smallest.

    See Also
    --------
    UniformOracle : Draws all records uniformly on the box.
    BernsteinTransformer : Releases a density on a box.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import RandomDensityOracle
    >>> oracle = RandomDensityOracle([(0, 1), (18, 99)])
    >>> oracle(5, np.random.default_rng(0)).shape
    (5, 2)
    """

    independent_records = False

    def __init__(
        self,
        bounds: ArrayLike | Mapping[str, tuple[float, float]],
        *,
        max_components: int = 4,
        widths: tuple[float, float] = (0.03, 0.3),
    ) -> None:
        self._box = Box.of(bounds, type(self).__name__)
        if not np.all(np.diff(self._box.bounds) > 0):
            self._refuse("bounds", "give finite (low, high) with low < high", shown(bounds))
        name = type(self).__name__
        self._max_components = check_count("max_components", max_components, name)
        pair = floats(widths)
        if pair is None or pair.shape != (2,) or not (0 < pair[0] <= pair[1] < math.inf):
            rule = "be a pair of finite numbers (smallest, largest) with 0 < smallest <= largest"
            self._refuse("widths", rule, shown(widths))
        self._log_widths = math.log(pair[0]), math.log(pair[1])
        super().__init__(
            str(self._box), f"max_components={max_components}", f"widths=({pair[0]:g}, {pair[1]:g})"
        )

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        """Return `n_samples` records of a new random density."""
        n_features = len(self._box.bounds)
        n_components = int(rng.integers(1, self._max_components + 1))
        shape = (n_components, n_features)
        weights = rng.dirichlet(np.ones(n_components))
        modes = rng.random(shape)
        widths = np.exp(rng.uniform(*self._log_widths, size=shape))
        members = rng.choice(n_components, size=n_samples, p=weights)
        below, above = ndtr(-modes / widths), ndtr((1 - modes) / widths)
        shares = rng.uniform(below[members], above[members])
        places = modes[members] + widths[members] * ndtri(shares)
        low, high = self._box.bounds.T
        records = low + (high - low) * places.clip(0.0, 1.0)
        return self._box.name_columns(records.clip(low, high))
