"""Geometry: by which norm a difference is measured, of the values or of their public code."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import check_kind, check_rules
from skdp.core.code import PublicCode

ROUND_UP = 1 + 2.0**-48  # covers the rounding errors of a short formula
_ORDERS = {"l1": 1, "l2": 2, "sup": math.inf}
_NAMES = {order: name for name, order in _ORDERS.items()}


def _norm(order: float, difference: NDArray[np.float64]) -> float:
    """Return the norm of a vector: a sum right to the last bit, a length to the last bit or two."""
    if order == 1:
        with suppress(OverflowError):  # finite numbers, and a sum that is none
            return math.fsum(np.abs(difference).tolist())
        return math.inf
    if order == 2:
        return float(_up_if_subnormal(np.array(math.hypot(*difference.tolist()))))
    return float(np.max(np.abs(difference), initial=0.0))


def _norms(order: float, differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the norm of each row, up to rounding."""
    sizes = np.abs(differences)
    if order == math.inf:
        return sizes.max(axis=1, initial=0.0)
    with np.errstate(over="ignore", under="ignore"):  # such a norm is infinite
        if order == 1:
            return sizes.sum(axis=1)
        _, exponents = np.frexp(sizes.max(axis=1, initial=0.0))
        scaled = np.ldexp(differences, -exponents[:, None])  # exact, and squares stay in range
        norms = np.ldexp(np.sqrt((scaled * scaled).sum(axis=1)), exponents)
    return _up_if_subnormal(norms)


def _up_if_subnormal(norms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round up the norms that have too few bits for a small relative error."""
    coarse = (norms > 0) & (norms < np.finfo(np.float64).smallest_normal)
    return np.where(coarse, np.nextafter(norms, np.inf), norms)


@dataclass(frozen=True)
class Geometry:
    """How the difference of two values is measured: the norm, and the public code if there is one.

    A mechanism has a geometry, and is private on every pair whose values are at most the
    sensitivity apart in it. An estimate of a sensitivity stores the one in which it was measured.

    With a code T, ``T f(D)`` and ``T f(D')`` are computed each on its own, as a release does, and
    then differenced. In doubles that differs from ``T (f(D) - f(D'))`` by rounding errors that grow
    with f and not with the difference. So what is measured is the computed function that is
    released, rounding included.

    Parameters
    ----------
    order : {1, 2, inf}, default=1
        The norm: sum of absolute values, Euclidean length or largest absolute value.
    code : PublicCode or None, default=None
        The code whose numbers are compared; None for the values as they are.

    Raises
    ------
    ValueError
        If the order is another one.
    TypeError
        If the code is neither.

    Examples
    --------
    >>> from skdp.codes import Geometry
    >>> Geometry(1).distance([3.0, 4.0], [0.0, 0.0])
    7.0
    >>> Geometry(2).distance([3.0, 4.0], [0.0, 0.0])
    5.0
    """

    order: float = 1
    code: PublicCode | None = None

    def __init_subclass__(cls) -> None:
        raise TypeError("Geometry has no subclasses: another norm would pass for one of its own.")

    def __post_init__(self) -> None:
        check_rules("Geometry", order=(self.order, self.order in _NAMES, "be 1, 2 or inf"))
        check_kind("code", self.code, "Geometry", PublicCode | None, "a PublicCode or None")

    @property
    def key(self) -> str:
        """Name of the norm, "l1", "l2" or "sup", with the digest of the code if there is one."""
        name = _NAMES[self.order]
        return name if self.code is None else f"{name} in code {self.code.digest}"

    def distance(self, value: ArrayLike, other: ArrayLike) -> float:
        """Measure how far two values, or their codes, are apart, as computed in a release."""
        if self.code is not None:
            return _norm(self.order, self.code.forward(value) - self.code.forward(other))
        return _norm(self.order, np.ravel(np.subtract(value, other, dtype=np.float64)))

    def distances(
        self, values: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Measure the distance of each pair of values, up to rounding."""
        if self.code is not None:
            return np.array([self.distance(*pair) for pair in zip(values, others, strict=True)])
        return _norms(self.order, (values - others).reshape(len(values), -1))

    def bounds(self, other: Geometry) -> bool:
        """Return whether a sensitivity in this geometry is also one in another.

        With the same code the L1 norm is at least the L2 norm, and that at least the largest
        absolute value.
        """
        return self.order <= other.order and self.code == other.code

    def to_dict(self) -> dict[str, object]:
        """Return the geometry as plain values, ready for JSON."""
        code = None if self.code is None else self.code.to_dict()
        return {"norm": _NAMES[self.order], "code": code}

    @classmethod
    def from_dict(cls, values: dict) -> Geometry:
        """Make a geometry from the values of :meth:`to_dict`, equal bit for bit."""
        code = values["code"]
        return Geometry(_ORDERS[values["norm"]], code and PublicCode.from_dict(code))


class Measures(Protocol):
    """What a sensitivity asks of a mechanism: how it measures, and whether it takes a code."""

    @property
    def geometry(self) -> Geometry: ...

    @property
    def learns_code(self) -> bool: ...

    def with_code(self, code: PublicCode | None) -> Self: ...


MechanismType = TypeVar("MechanismType", bound=Measures)


def as_geometry(geometry: Geometry | str, owner: str) -> Geometry:
    """Return a geometry as it is, and the name of a norm as a geometry."""
    if isinstance(geometry, Geometry):
        return geometry
    rule = "be 'l1', 'l2', 'sup' or a Geometry, such as mechanism.geometry"
    is_name = isinstance(geometry, str) and geometry in _ORDERS
    check_rules(owner, geometry=(geometry, is_name, rule))
    return Geometry(_ORDERS[geometry])
