"""Sources of plausible records, called as ``oracle(n_samples, rng)``.

There is no default one: the promise is about the records that the user holds to be plausible. No
oracle may be built from the private data.
"""

from __future__ import annotations

from collections.abc import Mapping

from numpy.random import Generator
from numpy.typing import ArrayLike

from skdp.core.checks import check_ranges, shown
from skdp.core.types import Sample
from skdp.oracles.shipped import Box, ShippedOracle


class UniformOracle(ShippedOracle):
    """Draw every feature uniformly between public bounds.

    Features are independent of each other and of the response, which is seldom plausible: prefer
    public records where there are any.

    Parameters
    ----------
    bounds : array-like of shape (n_features, 2), or dict of name -> (low, high)
        The range of each feature, in its own unit. With a dict the oracle returns a pandas frame.
    classes : array-like of shape (n_classes,), default=None
        Labels, each as likely as any other. A dataset may then lack a class.
    y_bounds : (low, high), default=None
        Range of a real response; not with `classes`.

    Attributes
    ----------
    classes_ : ndarray or None
        The sorted labels.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import UniformOracle
    >>> oracle = UniformOracle([(0, 1), (18, 99)], classes=["no", "yes"])
    >>> oracle
    UniformOracle(n_features=2, bounds=[(0, 1), (18, 99)], n_classes=2)
    >>> X, y = oracle(4, np.random.default_rng(0))
    >>> X.shape, y.shape
    ((4, 2), (4,))
    """

    independent_records = True

    def __init__(
        self,
        bounds: ArrayLike | Mapping[str, tuple[float, float]],
        *,
        classes: ArrayLike | None = None,
        y_bounds: tuple[float, float] | None = None,
    ) -> None:
        name, said = type(self).__name__, ""
        self._box = Box.of(bounds, name)
        self._y_bounds: list[float] | None = None
        if y_bounds is not None:
            if classes is not None:
                self._refuse("y_bounds", "be None when 'classes' is given", shown(y_bounds))
            self._y_bounds = check_ranges("y_bounds", [y_bounds], name)[0].tolist()
            self.responses = "numbers"
            said = "y_bounds=({:.12g}, {:.12g})".format(*self._y_bounds)
        super().__init__(str(self._box), self._set_classes(classes), said)

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        """Return `n_samples` records inside the bounds."""
        low, high = self._box.bounds.T
        X = self._box.name_columns(rng.uniform(low, high, size=(n_samples, len(low))))
        if self._classes is not None:
            return X, self._classes[rng.integers(len(self._classes), size=n_samples)]
        if self._y_bounds is not None:
            low, high = self._y_bounds
            return X, rng.uniform(low, high, size=n_samples)
        return X
