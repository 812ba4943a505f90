"""Geometry: by which norm a difference is measured, of the values or of their public code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import shown
from skdp.core.code import PublicCode

ROUND_UP = 1 + 2.0**-48
"""Factor that covers the rounding errors of a short formula, so that a bound stays a bound."""


def _l1(difference: NDArray[np.float64]) -> float:
    """Sum the absolute values, without intermediate rounding."""
    try:
        return math.fsum(np.abs(difference).tolist())
    except OverflowError:  # finite numbers, and a sum that is none
        return math.inf


def _many_l1(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):
        return np.abs(differences).sum(axis=1)


def _l2(difference: NDArray[np.float64]) -> float:
    """Return the length, right to the last bit or two, without overflow or underflow on the way."""
    return float(_up_if_subnormal(np.array(math.hypot(*difference.tolist()))))


def _many_l2(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale each row by a power of two before it is squared, which is exact."""
    _, exponents = np.frexp(np.abs(differences).max(axis=1, initial=0.0))
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(differences, -exponents[:, None])
        norms = np.ldexp(np.sqrt((scaled * scaled).sum(axis=1)), exponents)
    return _up_if_subnormal(norms)


def _up_if_subnormal(norms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round up the norms that have too few bits for a small relative error."""
    coarse = (norms > 0) & (norms < np.finfo(np.float64).smallest_normal)
    return np.where(coarse, np.nextafter(norms, np.inf), norms)


def _sup(difference: NDArray[np.float64]) -> float:
    return float(np.max(np.abs(difference), initial=0.0))


def _many_sup(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.abs(differences).max(axis=1, initial=0.0)


_NORMS: dict[float, tuple[str, Callable[..., float], Callable[..., NDArray[np.float64]]]] = {
    1: ("l1", _l1, _many_l1),
    2: ("l2", _l2, _many_l2),
    math.inf: ("sup", _sup, _many_sup),
}
# The digest of a code stands for these, so no subclass may compute them in another way.
_DIGESTED = ("forward", "digest")
_ORDERS = {name: order for order, (name, *_) in _NORMS.items()}


@dataclass(frozen=True)
class Geometry:
    """How the difference of two values is measured: the norm, and the public code if there is one.

    A mechanism has a geometry, and is private on every pair whose values are at most the
    sensitivity apart in it. An estimate of a sensitivity stores the one in which it was measured.

    With a code T, ``T f(D)`` and ``T f(D')`` are computed each on its own, as a release does, and
    then differenced. In doubles that differs from ``T (f(D) - f(D'))`` by rounding errors that grow
    with f and not with the difference. So what is measured is the computed function that is
    released, rounding included.

    For a norm of your own, write a subclass that overrides `distance` and `key`.

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
        super().__init_subclass__()
        if cls.distance is not Geometry.distance and cls.key is Geometry.key:
            raise TypeError(
                f"{cls.__name__} must override 'key', which tells its sensitivities from those of "
                "another norm, as it overrides 'distance'."
            )

    def __post_init__(self) -> None:
        if self.order not in _NORMS:
            raise ValueError(
                f"The 'order' parameter of Geometry must be 1, 2 or inf. Got {shown(self.order)}."
            )
        if self.code is None:
            return
        if not isinstance(self.code, PublicCode):
            raise TypeError(
                "The 'code' parameter of Geometry must be a PublicCode or None. Got an object of "
                f"type {type(self.code).__name__}."
            )
        for name in _DIGESTED:
            if getattr(type(self.code), name) is not getattr(PublicCode, name):
                raise TypeError(
                    f"{type(self.code).__name__} must not override {name!r}: its sensitivities "
                    "would be taken for those of PublicCode. Write a subclass of Geometry that "
                    "overrides 'distance' and 'key'."
                )

    @property
    def key(self) -> str:
        """Name of the norm, "l1", "l2" or "sup", with the digest of the code if there is one."""
        name = _NORMS[self.order][0]
        return name if self.code is None else f"{name} in code {self.code.digest}"

    def distance(self, value: ArrayLike, other: ArrayLike) -> float:
        """Measure how far two values are apart, as computed in a release.

        Parameters
        ----------
        value, other : array-like of float
            Of the same shape.

        Returns
        -------
        float
            The norm of their difference, or of that of their codes.
        """
        _, norm, _ = _NORMS[self.order]
        if self.code is not None:
            return norm(self.code.forward(value) - self.code.forward(other))
        return norm(np.ravel(np.subtract(value, other, dtype=np.float64)))

    def distances(
        self, values: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Measure the distance of each pair of values, up to rounding."""
        if type(self) is not Geometry or self.code is not None:
            return np.array([self.distance(*pair) for pair in zip(values, others, strict=True)])
        _, _, norms = _NORMS[self.order]
        return norms((values - others).reshape(len(values), -1))

    def bounds(self, other: Geometry) -> bool:
        """Return whether a sensitivity in this geometry is also one in another.

        With the same code the L1 norm is at least the L2 norm, and that at least the largest
        absolute value. A norm of your own bounds itself only.
        """
        if type(self) is not Geometry or type(other) is not Geometry:
            return type(self) is type(other) and self.key == other.key
        return self.order <= other.order and self._digest == other._digest

    @property
    def _digest(self) -> str:
        return "" if self.code is None else self.code.digest

    def to_dict(self) -> dict[str, Any]:
        """Return the geometry as plain values, ready for JSON."""
        if type(self) is not Geometry:
            raise TypeError(
                f"{type(self).__name__} has a norm of its own, which JSON cannot hold. Pickle it."
            )
        code = None if self.code is None else self.code.to_dict()
        return {"norm": _NORMS[self.order][0], "code": code}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Geometry:
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
    if not isinstance(geometry, str) or geometry not in _ORDERS:
        raise ValueError(
            f"The 'geometry' parameter of {owner} must be 'l1', 'l2', 'sup' or a Geometry, such as "
            f"mechanism.geometry. Got {shown(geometry)}."
        )
    return Geometry(_ORDERS[geometry])
