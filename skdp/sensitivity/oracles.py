"""Sources of plausible records, called as ``oracle(n_samples, rng)``.

There is no default one: the promise is about the records that the user holds to be plausible. No
oracle may be built from the private data.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import check_ranges, floats, shown
from skdp.core.types import Sample
from skdp.sensitivity.shipped import Box, ShippedOracle


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


class GaussianOracle(ShippedOracle):
    """Draw records from a normal distribution, or from one per class.

    Parameters
    ----------
    mean : array-like of shape (n_features,) or (n_classes, n_features)
        The mean of the records; with `classes` one mean, or one for each in their order. The
        classes are equally likely, and a dataset may lack one.
    covariance : array-like of shape (n_features, n_features) or (n_features,)
        The covariance matrix, positive semidefinite, or the variances of independent features; the
        same for all classes.
    classes : array-like of shape (n_classes,), default=None
        The labels. With a single mean they are independent of the features.
    response : bool, default=False
        Whether the last coordinate is the response, returned as `y`: a linear model. Not with
        `classes`.

    Attributes
    ----------
    classes_ : ndarray or None
        The sorted labels.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import GaussianOracle
    >>> oracle = GaussianOracle([[0.2, 0.2], [0.8, 0.8]], [0.01, 0.01], classes=[-1, 1])
    >>> X, y = oracle(4, np.random.default_rng(0))
    >>> X.shape, y.shape
    ((4, 2), (4,))
    """

    independent_records = True

    def __init__(
        self,
        mean: ArrayLike,
        covariance: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        response: bool = False,
    ) -> None:
        said = self._set_classes(classes)
        self._mean = self._check_mean(mean)
        if response and (classes is not None or self._mean.shape[1] < 2):
            rule = "be False when 'classes' is given, and for a single coordinate"
            self._refuse("response", rule, shown(response))
        self._factor = self._factorize(covariance)
        self._response = bool(response)
        n_features = self._mean.shape[1] - self._response
        super().__init__(f"n_features={n_features}", said or "response" * self._response)

    def _check_mean(self, mean: ArrayLike) -> NDArray[np.float64]:
        means = np.atleast_2d(self._numbers("mean", mean))
        n_means = {1} if self._classes is None else {1, len(self._classes)}
        if means.ndim != 2 or len(means) not in n_means or not np.isfinite(means).all():
            rule = "be finite: one mean, or one for each of the classes"
            self._refuse("mean", rule, f"shape {np.shape(mean)}")
        return means

    def _factorize(self, covariance: ArrayLike) -> NDArray[np.float64]:
        """Return F of shape (d, d) with F'F = covariance, also when that is singular."""
        matrix = self._numbers("covariance", covariance)
        if matrix.ndim == 1:
            matrix = np.diag(matrix)
        d = self._mean.shape[1]
        rule = f"be finite, symmetric and positive semidefinite, of shape ({d}, {d}) or ({d},)"
        if matrix.shape != (d, d) or not np.isfinite(matrix).all():
            self._refuse("covariance", rule, f"shape {np.shape(covariance)}")
        variances, directions = np.linalg.eigh(matrix)
        slack = 1e-10 * np.abs(matrix).max()
        if variances[0] < -slack or np.abs(matrix - matrix.T).max() > slack:
            self._refuse("covariance", rule, "a matrix that is not")
        return np.sqrt(variances.clip(min=0))[:, None] * directions.T

    def _numbers(self, parameter: str, given: ArrayLike) -> NDArray[np.float64]:
        numbers = floats(given)
        if numbers is None:
            self._refuse(parameter, "be numbers", shown(given))
        return numbers

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        """Return `n_samples` independent records."""
        deviations = rng.standard_normal((n_samples, len(self._factor))) @ self._factor
        if self._classes is None:
            records = self._mean[0] + deviations
            return (records[:, :-1], records[:, -1]) if self._response else records
        codes = rng.integers(len(self._classes), size=n_samples)
        means = self._mean[codes] if len(self._mean) > 1 else self._mean
        return means + deviations, self._classes[codes]
