"""Pair differences without refits: targets that are functions of moments.

The value of such a target depends on the dataset only through the mean of features u(x_i, y_i) of
its records, or through the mean of their products u u'. Replacing a record then moves two terms of
a sum. The mean itself (:class:`AdditiveTarget`), naive Bayes and scalers use the features; least
squares, discriminant analysis and covariances use their products.

A closed form stands in for refits only where it gives the same differences to 1e-8. It is tried
on the first pair of each run, and on every pair it says how far its difference may be off: sums
lose digits where records lie far from the origin, and equations where they are nearly singular.
Where it is too far off or has no value (NaN), and wherever the parameters of the estimator are not
known to allow it, the estimator is refitted.

The error of a difference is found by doing again all that rounding may have done, on a larger
scale: the sums of both datasets are moved together by what adding up n terms may lose, and apart by
what the operations thereafter may, each relative to the sum of the absolute values of its terms.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset
from skdp.core.units import EXACT, TINY

TOLERANCE = 1e-8
"""Largest error of a difference, in units of its largest coordinate, or of its norm."""

UNIT = 2.0**-53
"""Largest relative error of one operation."""

APART = 32 * UNIT
"""By how much sums are moved apart: ten times what the few operations on each of them lose."""

MEANINGLESS = 1e-6
"""Of a value: what rounding may move by more is rounding, even where records are equal."""


class Moments:
    """How a target follows from sums over the records.

    Parameters
    ----------
    features : callable
        ``features(X)`` or ``features(X, y)`` returns u, shape (n_records, n_features). It may
        not look from one record at another.
    values : callable
        ``values(sums, n_samples)`` maps a batch of sums over the records, each of shape
        (n_features,), or (n_features, n_features) when `products`, to values of the target. NaN
        where it cannot.
    products : bool, default=False
        Whether the sums are those of the products u u'.
    linear : bool, default=False
        Whether the value is linear in the sum, so that a difference takes two records only.
    total : callable or None, default=None
        ``total(X)`` or ``total(X, y)`` returns the sum over the records, shape (n_features,), where
        that takes less memory than their features. Not for `products`.
    sizes : callable or None, default=None
        ``sizes(sums, n_samples)`` bounds the sums of the absolute values, of the shape of a batch
        of sums. None takes features that do not change their sign, and any `products`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.core.dataset import Dataset
    >>> from skdp.core.moments import Moments
    >>> variance = Moments(
    ...     lambda X: np.hstack([X, X**2]), lambda s, n: s[:, 1:] / n - (s[:, :1] / n) ** 2
    ... )
    >>> variance.pair(Dataset(np.array([[0.0], [2.0], [4.0]])))
    (array([1.]), array([4.]))
    """

    def __init__(
        self,
        features: Callable[..., NDArray[np.float64]],
        values: Callable[[NDArray, int], NDArray[np.float64]],
        *,
        products: bool = False,
        linear: bool = False,
        total: Callable[..., NDArray[np.float64]] | None = None,
        sizes: Callable[[NDArray, int], NDArray[np.float64]] | None = None,
    ):
        self.features = features
        self.values = values
        self.products = products
        self.linear = linear
        self.total = total
        self.sizes = sizes or (_sizes_of_products if products else _sizes_of_sums)

    def sum(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up features, or their products, over the records of each dataset."""
        if self.products:
            return features.transpose(0, 2, 1) @ features
        return features.sum(axis=1)

    def pair(self, records: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate the target on the two neighboring datasets of n + 1 records.

        Both values are NaN where the closed form does not hold or is inaccurate.
        """
        common, last = self.split(records)
        found = self.pairs(common[None], last[None], records.n_records - 1)
        value, other, doubt = (each[0] for each in found)
        if np.abs(doubt).max() <= np.abs(value - other).max():
            return value, other
        return np.full_like(value, np.nan), np.full_like(other, np.nan)

    def split(self, records: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sum over all but the last two records, and the features of these two."""
        if self.total is None:
            features = self.features(*records.parts)
            return self.sum(features[None, :-2])[0], features[-2:].copy()  # not a part of them
        places = np.arange(records.n_records)
        shared, last = records.take(places[:-2]), records.take(places[-2:])
        return self.total(*shared.parts), self.features(*last.parts)

    def pairs(
        self, common: NDArray[np.float64], last: NDArray[np.float64], n_samples: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate the target on many pairs: both values of each, and their doubt.

        `common` has the sums over the n - 1 records that both datasets of a pair hold, `last` the
        features of the two others; each has an axis for the pairs in front. The doubt is how far
        rounding may have moved the difference of the values, divided by `TOLERANCE`: a pair whose
        doubt is larger than the difference is inaccurate. It is NaN where it is not known.
        """
        both = [common + self.sum(last[:, j : j + 1]) for j in range(2)]
        same = (last[:, 0] == last[:, 1]).all(axis=1)
        if self.linear:  # what the common records lose, both values lose
            value, other = (self.values(sums, n_samples) for sums in both)
            error = APART * (np.abs(value) + np.abs(other))
        else:
            moved = self._moved(both, n_samples)
            values = self.values(np.concatenate([*both, *moved]), n_samples)
            value, other, *shaken = np.split(values, 4)
            error = (shaken[0] - shaken[1]) - (value - other)
            error = error + 4 * UNIT * (np.abs(value) + np.abs(other) + TINY)
            same &= (np.abs(last[:, 0]) <= EXACT).all(axis=1)
            same &= _sizes(shaken[0] - value) <= MEANINGLESS * _sizes(value)
        doubt = error / TOLERANCE
        doubt[same] = 0.0
        return value, other, doubt

    def _moved(self, both: list[NDArray], n_samples: int) -> list[NDArray[np.float64]]:
        """Move the sums of both datasets by what rounding may do, together and apart."""
        # the same for all pairs, of no pattern that could cancel
        directions = np.random.default_rng(0).uniform(0.5, 1.5, size=(3, *both[0].shape[1:]))
        directions *= np.where(directions < 1, -1.0, 1.0)
        if self.products:
            lower = np.tril_indices(directions.shape[1])
            directions[:, *lower] = directions.transpose(0, 2, 1)[:, *lower]
        together = n_samples * UNIT * directions[2]
        return [
            sums + (self.sizes(sums, n_samples) + TINY) * (together + APART * apart)
            for sums, apart in zip(both, directions, strict=False)
        ]


def _sizes(values: NDArray) -> NDArray[np.float64]:
    """Return the largest coordinate of each value."""
    return np.abs(values).reshape(len(values), -1).max(axis=1, initial=0.0)


def _sizes_of_sums(sums: NDArray, n_samples: int) -> NDArray[np.float64]:
    return np.abs(sums)


def _sizes_of_products(sums: NDArray, n_samples: int) -> NDArray[np.float64]:
    """Bound the sums of |u_j u_k| by Cauchy and Schwarz."""
    roots = np.sqrt(np.diagonal(sums, axis1=1, axis2=2))
    return roots[:, :, None] * roots[:, None, :]
