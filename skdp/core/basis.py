"""A public basis: the coordinates in which a difference is measured and noise is added."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Beyond it a matrix is singular to working precision.
_MOST_CONDITION = 1e14

# Largest number of values of which the standard errors in a basis are worked out.
MAX_SPREAD = 2000

KINDS = ("identity", "diagonal", "predictive")
"""The kinds of basis that are learned."""

_PARTS = ("scale", "matrix", "reflectors", "weights")


@dataclass(frozen=True, eq=False)
class LocalMetric:
    """A metric of the output that holds for small changes of the values only.

    Whoever learns a basis from it should not believe that a direction hardly matters. A metric
    that holds for changes of any size is a plain array.

    Parameters
    ----------
    matrix : ndarray of shape (d, d) or (d,)
        The squared change of the output is about ``v' matrix v`` for a small change v; a vector is
        a diagonal.
    """

    matrix: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PublicBasis:
    """An invertible linear map T of the target's values, made from public numbers.

    ``T = diag(1 / weights) Q' A diag(scale)``, where A is `matrix` and Q the orthogonal matrix
    that is the product of the Householder reflections in the columns of `reflectors`; a part that
    is None is the identity. A diagonal basis has a scale, a dense one a matrix, and the one for
    very many values all but the matrix.

    `forward` is computed by sums in a fixed order, not by a linear-algebra library whose rounding
    depends on the number of threads: it is part of the function whose sensitivity is sampled.

    Parameters
    ----------
    kind : str
        How it came about: "identity", "diagonal", "predictive" or "given".
    n_pilot_pairs : int, default=0
        From how many pairs of the oracle it was learned.
    scale : array-like of shape (d,) or None, default=None
        A diagonal, of finite numbers other than 0.
    matrix : array-like of shape (d, d) or None, default=None
        Invertible.
    reflectors : array-like of shape (d, n_reflectors) or None, default=None
        Columns of any length but 0.
    weights : array-like of shape (d,) or None, default=None
        A diagonal, of finite numbers other than 0.

    Raises
    ------
    ValueError
        If a shape is wrong, a number is not finite or T cannot be inverted.

    Examples
    --------
    >>> from skdp import PublicBasis
    >>> basis = PublicBasis("given", matrix=[[2.0, 0.0], [1.0, 1.0]])
    >>> basis.forward([1.0, 3.0])
    array([2., 4.])
    >>> basis.backward([2.0, 4.0])
    array([1., 3.])
    """

    kind: str = "identity"
    n_pilot_pairs: int = 0
    scale: NDArray[np.float64] | None = None
    matrix: NDArray[np.float64] | None = None
    reflectors: NDArray[np.float64] | None = None
    weights: NDArray[np.float64] | None = None

    _inverse: NDArray[np.float64] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        for name in _PARTS:
            if getattr(self, name) is not None:
                part = np.array(getattr(self, name), dtype=np.float64, order="C")
                part.flags.writeable = False
                object.__setattr__(self, name, part)
                if not np.isfinite(part).all():
                    raise ValueError(
                        f"The {name} of a basis must be finite. It holds NaN or infinity."
                    )
        if self.matrix is not None:
            object.__setattr__(self, "_inverse", _invert(self.matrix))
        diagonals = [self.scale, self.weights]
        lengths = [] if self.reflectors is None else [np.any(self.reflectors, axis=0)]
        if not all(np.all(part) for part in [*diagonals, *lengths] if part is not None):
            raise ValueError("A basis must be invertible. One of its scales is zero.")

    @cached_property
    def _block(self) -> NDArray[np.float64]:
        """K with Q = I - Y K Y', Y the reflectors (the compact form of their product)."""
        assert self.reflectors is not None
        products = self.reflectors.T @ self.reflectors
        block = np.diag(2 / np.diag(products))
        for j in range(1, len(block)):
            block[:j, j] = -block[j, j] * (block[:j, :j] @ products[:j, j])
        return block

    def forward(self, value: ArrayLike) -> NDArray[np.float64]:
        """Return the coordinates T v of a value.

        Parameters
        ----------
        value : array-like of float
            Of any shape; it is read as a vector.

        Returns
        -------
        ndarray of shape (d,)
            The coordinates, computed in the same order of operations each time.

        Raises
        ------
        ValueError
            If the basis is one of another number of values.
        """
        u = np.array(value, dtype=np.float64).ravel()
        if self.size is not None and u.size != self.size:
            raise ValueError(
                f"The basis is one of {self.size} values. Got {u.size} values. The target must "
                "return as many values on every dataset, and a 'basis' of yours must have a "
                "column for each of them."
            )
        if self.scale is not None:
            u = u * self.scale
        if self.matrix is not None:
            u = np.einsum("ij,j->i", self.matrix, u)
        if self.reflectors is not None:
            u = u - self._reflect(u, self.reflectors, self._block.T)
        if self.weights is not None:
            u = u / self.weights
        return u

    def backward(self, coordinates: ArrayLike) -> NDArray[np.float64]:
        """Return the value that has the given coordinates.

        Parameters
        ----------
        coordinates : array-like of shape (d,)
            As from `forward`, or noisy.

        Returns
        -------
        ndarray of shape (d,)
            The value, as a vector.
        """
        v = np.array(coordinates, dtype=np.float64)
        if self.weights is not None:
            v = v * self.weights
        if self.reflectors is not None:
            v = v - self._reflect(v, self.reflectors, self._block)
        if self._inverse is not None:
            v = self._inverse @ v
        if self.scale is not None:
            v = v / self.scale
        return v

    def decode(self, noisy: ArrayLike, variance: float) -> NDArray[np.float64]:
        """Return the value that has noisy coordinates, whatever the noise.

        Parameters
        ----------
        noisy : array-like of shape (d,)
            Coordinates with noise.
        variance : float in [0, inf)
            Of the noise. A basis has no prior, and does not use it.

        Returns
        -------
        ndarray of shape (d,)
            What `backward` returns.
        """
        return self.backward(noisy)

    def standard_errors(
        self, variance: float, noisy: ArrayLike | None = None
    ) -> NDArray[np.float64] | None:
        """Return the standard deviation of the error of each value.

        Parameters
        ----------
        variance : float in [0, inf)
            Of the noise in each coordinate.
        noisy : array-like of shape (d,) or None, default=None
            What was released. It does not matter here.

        Returns
        -------
        ndarray of shape (d,) or None
            In the units of the values. None for the identity, where all are that of the noise, and
            for more than 2,000 values.
        """
        if self.size is None or self.size > MAX_SPREAD:
            return None
        inverse = np.array([self.backward(unit) for unit in np.eye(self.size)])
        return np.sqrt(variance * np.sum(inverse**2, axis=0))

    def share_learned(self, variance: float, noisy: ArrayLike | None = None) -> float:
        """Return how much of a released value comes from the private data: all of it.

        Parameters
        ----------
        variance : float in [0, inf)
            Of the noise in each coordinate.
        noisy : array-like of shape (d,) or None, default=None
            What was released.

        Returns
        -------
        float
            1.
        """
        return 1.0

    @staticmethod
    def _reflect(vector: NDArray, reflectors: NDArray, block: NDArray) -> NDArray[np.float64]:
        inner = np.einsum("ij,j->i", block, np.einsum("ij,i->j", reflectors, vector))
        return np.einsum("ij,j->i", reflectors, inner)

    @property
    def size(self) -> int | None:
        """The number d of values; None for the identity, which takes any."""
        parts = [getattr(self, name) for name in _PARTS]
        return next((len(part) for part in parts if part is not None), None)

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that tell maps apart; empty for the identity."""
        parts = [(name, getattr(self, name)) for name in _PARTS]
        if all(part is None for _, part in parts):
            return ""
        code = hashlib.sha256()
        for name, part in parts:
            if part is not None:
                code.update(f"{name}{part.shape}".encode())
                code.update(part.astype("<f8").tobytes())
        return code.hexdigest()[:12]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PublicBasis):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, int, str]:
        return self.kind, self.n_pilot_pairs, self.digest

    def __repr__(self) -> str:
        pilots = f", n_pilot_pairs={self.n_pilot_pairs}" if self.n_pilot_pairs else ""
        return f"PublicBasis({self.kind!r}{pilots})"

    def __str__(self) -> str:
        if not self.n_pilot_pairs:
            return f"{self.kind} basis"
        how = "kept after" if self.kind == "identity" else "learned from"
        return f"{self.kind} basis {how} {self.n_pilot_pairs} pilot pairs"

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(frozen(state))

    def to_dict(self) -> dict[str, Any]:
        """Return the basis as plain values, ready for JSON.

        Returns
        -------
        dict
            One entry per parameter.
        """
        arrays = {name: getattr(self, name) for name in _PARTS}
        lists = {name: None if part is None else part.tolist() for name, part in arrays.items()}
        return {"kind": self.kind, "n_pilot_pairs": self.n_pilot_pairs} | lists

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PublicBasis:
        """Make a basis from the values of :meth:`to_dict`.

        Parameters
        ----------
        values : dict
            As returned by :meth:`to_dict`.

        Returns
        -------
        PublicBasis
            Equal to the one that was stored, bit for bit.
        """
        return cls(**values)


def frozen(state: dict[str, Any]) -> dict[str, Any]:
    """Forbid writing into the arrays of an object again, which a pickle forgets."""
    for part in state.values():
        if isinstance(part, np.ndarray):
            part.flags.writeable = False
    return state


def _invert(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Invert after bringing rows and columns to length 1: scales are no sign of singularity."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"The 'basis' must be a square matrix. Got an array of shape {matrix.shape}."
        )
    with np.errstate(all="ignore"):
        rows = np.linalg.norm(matrix, axis=1)
        columns = np.linalg.norm(matrix / rows[:, None], axis=0)
        balanced = matrix / rows[:, None] / columns
        try:
            inverse = np.linalg.inv(balanced)
        except np.linalg.LinAlgError:
            inverse = np.full_like(balanced, np.nan)
        condition = np.linalg.norm(balanced, 1) * np.linalg.norm(inverse, 1)
        inverse = inverse / columns[:, None] / rows
    if not (condition < _MOST_CONDITION and np.isfinite(inverse).all()):
        raise ValueError(
            "The 'basis' must be an invertible matrix. It is singular to working precision."
        )
    return inverse
