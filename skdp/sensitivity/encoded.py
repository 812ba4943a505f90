"""A sensitivity known on paper, of the public code of a value.

The value f is clipped to a box of half width R around the mean mu of the code T, which makes no
difference larger, and then T (f - mu) is computed in doubles. It changes, for any T and mu and in
the norm of the mechanism, by at most

    Delta norm(T) + 2 (rounding error of one T (f - mu)),

and this module bounds both terms from above. With u = 2^-53 the rounding error of row i is at most
(d + 2) u / (1 - (d + 2) u) R sum_j abs(T_ij) for any order of the sum, plus a little for subnormal
numbers. R is n times Delta: n replacements lead from one dataset of n records to any other, so no
value is farther from the values of other datasets, or from their mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import shown
from skdp.core.geometry import Geometry
from skdp.core.target import Target
from skdp.core.types import Container, Matrix
from skdp.sensitivity.bounds import KnownSensitivity

_UNIT = 2.0**-53
_PILOT_ROUNDING = 1e-12  # rounding error of a pair, relative to its values
_LEAST = 2.0**-1074  # the smallest double: the error of a product that underflows
_MOST = 1e300  # a larger code might overflow


@dataclass(frozen=True)
class EncodedSensitivity(KnownSensitivity):
    """A bound on the change of the code of values, which are clipped to `reach` around its mean."""

    reach: float = 0.0

    def bounded(self, target: Target, *drawn: Any) -> Target:
        mean = self.geometry.code.mean
        return _BoxedTarget(super().bounded(target), mean - self.reach, mean + self.reach)


def check_pilots_within(known: KnownSensitivity, values: Matrix, differences: Matrix) -> None:
    """Refuse a bound that a pilot pair of the prior exceeds."""
    largest = max((known.geometry.distance(row, 0 * row) for row in differences), default=0.0)
    if largest > known.value + _PILOT_ROUNDING * np.abs(values).sum(axis=1).max(initial=0):
        raise ValueError(
            f"The known sensitivity is {known.value:.6g}, but a pair of the 'prior' has values "
            f"that are {largest:.6g} apart. The bound is wrong, or the prior draws records that "
            "it is not for."
        )


def encoded(
    known: KnownSensitivity, geometry: Geometry, shape: tuple[int, ...]
) -> EncodedSensitivity:
    """Return a bound on values as one on their code, in the norm of a geometry with a code."""
    assert geometry.code is not None
    mean, encoder, order = geometry.code.mean, geometry.code.encoder, int(geometry.order)
    reach = known.value * known.n_samples * (1 + 2.0**-20)
    with np.errstate(over="ignore"):
        sides = mean + reach - mean, mean - (mean - reach)  # of the box, which is rounded too
        farthest = float(np.nextafter(np.maximum(*sides).max(), np.inf))
        rounding = _rounding(encoder, farthest, order)
        largest = farthest * float(np.abs(encoder).sum())
    if not max(rounding, largest) < _MOST:
        raise ValueError(
            "The known sensitivity is too large for a public code, which would overflow. Got "
            f"{shown(known.value)}. Leave out the 'prior', or scale the target."
        )
    value = Fraction(known.value) * Fraction(operator_norm(encoder, order))
    value += 2 * Fraction(rounding)
    up = math.nextafter(float(value), math.inf)
    changed = {"value": up, "geometry": geometry, "shape": shape, "reach": reach}
    return EncodedSensitivity(**vars(known) | changed)


def operator_norm(encoder: NDArray[np.float64], order: int) -> float:
    """Bound how much an encoder can enlarge a norm, from above, rounding included."""
    size = np.abs(encoder)
    k, d = encoder.shape
    up = 1 + 4 * (k + 4) * _UNIT
    if order == 1:
        return math.nextafter(float(size.sum(axis=0).max()) * up, math.inf)
    # the largest eigenvalue of T T' is at most its largest sum of absolute values of a row
    products = np.abs(encoder @ encoder.T) + _share(d) * (size @ size.T) * (1 + 2 * _share(d))
    square = float(products.sum(axis=1).max()) * up + 4 * k * d * _LEAST
    return math.nextafter(math.sqrt(square), math.inf)


def _rounding(encoder: NDArray[np.float64], farthest: float, order: int) -> float:
    """Bound the norm of the rounding error of a code, for values so far from its mean."""
    k, d = encoder.shape
    rows = np.abs(encoder).sum(axis=1)
    errors = _share(d) * farthest * rows + (d + 1) * _LEAST
    norm = math.hypot(*errors.tolist()) if order == 2 else math.fsum(errors.tolist())
    return math.nextafter(norm * (1 + 4 * (k + d + 8) * _UNIT), math.inf)


def _share(n_terms: int) -> float:
    """Bound the relative rounding error of a sum of so many products of differences."""
    return (n_terms + 2) * _UNIT / (1 - (n_terms + 2) * _UNIT) * (1 + 2.0**-40)


class _BoxedTarget(Target):
    """A target whose values are clipped to a box."""

    def __init__(self, target: Target, low: NDArray[np.float64], high: NDArray[np.float64]):
        self.target, self.low, self.high = target, low, high
        self.description = target.description

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Evaluate the target, and move each number into its range."""
        value = np.asarray(self.target(*dataset, seed=seed), dtype=np.float64)
        return np.clip(value, self.low.reshape(value.shape), self.high.reshape(value.shape))
