"""What every mechanism offers: a norm, a release and a guarantee."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from skdp.core.guarantee import PrivacyGuarantee


class ByteSource(Protocol):
    """A source of uniform random bytes; every `numpy.random.Generator` is one."""

    def bytes(self, length: int) -> bytes:
        """Return `length` random bytes."""
        ...


class _OnlyBytes:
    """A source that, as that of the operating system, has no other method than `bytes`."""

    def __init__(self) -> None:
        self.bytes = np.random.default_rng(0).bytes


def l1_norm(difference: ArrayLike) -> float:
    """Sum of absolute values.

    It is summed without intermediate rounding.
    """
    sizes = np.abs(np.ravel(difference)).tolist()
    try:
        return math.fsum(sizes)
    except OverflowError:  # finite numbers, and a sum that is none
        return math.inf


def l1_norms(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sum the absolute values of each row.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms.base import l1_norms
    >>> l1_norms(np.array([[3.0, -4.0], [0.0, 1.0]]))
    array([7., 1.])
    """
    with np.errstate(over="ignore"):
        return np.abs(differences).sum(axis=1)


def l2_norm(difference: ArrayLike) -> float:
    """Euclidean length.

    It is right to the last bit or two, without overflow or underflow on the way. Where doubles have
    fewer bits, below 2**-1022, it is rounded up.
    """
    return float(_up_if_subnormal(np.array(math.hypot(*np.ravel(difference).tolist()))))


def l2_norms(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Measure the Euclidean length of each row.

    Each row is scaled by a power of two before it is squared, which is exact.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.mechanisms.base import l2_norms
    >>> l2_norms(np.array([[3.0, -4.0], [3e-200, 4e-200]]))
    array([5.e+000, 5.e-200])
    """
    _, exponents = np.frexp(np.abs(differences).max(axis=1, initial=0.0))
    with np.errstate(over="ignore", under="ignore"):
        scaled = np.ldexp(differences, -exponents[:, None])
        norms = np.ldexp(np.sqrt((scaled * scaled).sum(axis=1)), exponents)
    return _up_if_subnormal(norms)


def _up_if_subnormal(norms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Round up the norms that have too few bits for a small relative error."""
    coarse = (norms > 0) & (norms < np.finfo(np.float64).smallest_normal)
    return np.where(coarse, np.nextafter(norms, np.inf), norms)


def sup_norm(difference: ArrayLike) -> float:
    """Largest absolute value.

    It is 0 for an empty difference, and NaN if a number is NaN.
    """
    return float(np.max(np.abs(difference), initial=0.0))


class Mechanism(BaseEstimator, ABC):
    """Base class of the mechanisms.

    A mechanism is *sensitivity-induced private*: when ``norm(f(D) - f(D')) <= sensitivity``, the
    laws of ``release(f(D), sensitivity, rng)`` and ``release(f(D'), sensitivity, rng)`` are within
    the guarantee of each other on that very pair [1]_. A subclass sets `norm_name` and writes
    `norm`, `release` and `guarantee`; nothing else is needed for a new mechanism. All that it may
    ask of `rng` is ``rng.bytes(length)``, since the operating system gives nothing else. One that
    sets `learns_basis` also has ``fit_basis(differences, metric)``, a copy of itself with the basis
    fixed that it learned from pilot pairs.

    References
    ----------
    .. [1] Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
       ICML 2017, definition 9.
    """

    @property
    @abstractmethod
    def norm_name(self) -> str:
        """The norm, by which a sensitivity is known to belong here."""

    @abstractmethod
    def norm(self, difference: NDArray[np.float64]) -> float:
        """Measure the difference of two target values."""

    @abstractmethod
    def release(self, value: NDArray[np.float64], sensitivity: float, rng: ByteSource) -> Any:
        """Return a private version of the target value."""

    @abstractmethod
    def guarantee(self, gamma: float = 0.0) -> PrivacyGuarantee:
        """Return the promise of one release with a sensitivity that fails with `gamma`."""

    @property
    def chooses(self) -> bool:
        """Whether a release is the position of one score, instead of the value with noise."""
        return False

    @property
    def learns_basis(self) -> bool:
        """Whether `fit_basis` is to be called with pilot differences: not unless overridden."""
        return False

    def rehearse(self, shape: tuple[int, ...] | None, sensitivity: float) -> None:
        """Release zeros, so that what cannot be released fails before private data is read.

        Parameters
        ----------
        shape : tuple of int or None
            Of the value that is to be released. None is unknown, and nothing is tried.
        sensitivity : float in (0, inf)
            Largest norm of a difference.
        """
        if shape is not None:
            self.release(np.zeros(shape), sensitivity, _OnlyBytes())

    def standard_errors(
        self, shape: tuple[int, ...], sensitivity: float
    ) -> NDArray[np.float64] | None:
        """Return the standard deviation of the noise in each number of a release.

        Parameters
        ----------
        shape : tuple of int
            Of the value that is to be released.
        sensitivity : float in (0, inf)
            Largest norm of a difference.

        Returns
        -------
        ndarray of the shape, or None
            None unless overridden: nothing is known of the noise.
        """
        return None

    def distance(self, value: NDArray[np.float64], other: NDArray[np.float64]) -> float:
        """Measure how far two target values are apart, as computed in a release.

        Parameters
        ----------
        value, other : ndarray
            Of the same shape.

        Returns
        -------
        float
            The norm of their difference.
        """
        return self.norm(value - other)

    def with_basis(self, basis: Any) -> Self:
        """Fix the basis to that in which a sensitivity was measured, where there are bases.

        Parameters
        ----------
        basis : PublicBasis or None
            None is the identity.

        Returns
        -------
        Mechanism
            This one, unless overridden.
        """
        return self
