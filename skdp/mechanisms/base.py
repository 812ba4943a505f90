"""What every mechanism offers: a geometry, a release and a guarantee."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdp.core.basis import PublicBasis
from skdp.core.geometry import Geometry
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee
from skdp.core.types import Released

BasisParameter = str | PublicBasis | NDArray[np.float64] | None


class ByteSource(Protocol):
    """A source of uniform random bytes; every `numpy.random.Generator` is one."""

    def bytes(self, length: int) -> bytes:
        """Return `length` random bytes."""
        ...


class _OnlyBytes:
    """A source that, as that of the operating system, has no other method than `bytes`."""

    def __init__(self) -> None:
        self.bytes = np.random.default_rng(0).bytes


class Mechanism(BaseEstimator, ABC):
    """Base class of the mechanisms.

    A mechanism is *sensitivity-induced private*: when f(D) and f(D') are at most the sensitivity
    apart in its geometry, the laws of ``release(f(D), sensitivity, rng)`` and
    ``release(f(D'), sensitivity, rng)`` are within the guarantee of each other on that very pair
    [1]_. A subclass sets `geometry` and writes `release` and `guarantee`; nothing else is needed
    for a new mechanism. All that it may ask of `rng` is ``rng.bytes(length)``, since the operating
    system gives nothing else.

    One that adds noise in a basis has a parameter `basis` too, overrides `with_geometry`, and sets
    `order`, the 1 or 2 of its norm. Where the parameter is "auto", "diagonal" or "predictive", the
    basis is learned for it.

    References
    ----------
    .. [1] Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
       ICML 2017, definition 9.
    """

    basis: BasisParameter = None
    """Which basis it asks for; None where it has no such parameter."""

    order: ClassVar[int]
    """The 1 or 2 of its norm, where it has a basis."""

    @property
    @abstractmethod
    def geometry(self) -> Geometry:
        """By which norm, and in which basis, a sensitivity is measured that belongs here."""

    @abstractmethod
    def release(self, value: NDArray[np.float64], sensitivity: float, rng: ByteSource) -> Released:
        """Return a private version of the target value."""

    @abstractmethod
    def guarantee(self, gamma: float = 0.0) -> PrivacyGuarantee:
        """Return the promise of one release with a sensitivity that fails with `gamma`."""

    @property
    def noise_law(self) -> NoiseLaw | None:
        """Law of the noise, for composition; None if no more is known than the guarantee."""
        return None

    @property
    def chooses(self) -> bool:
        """Whether a release is the position of one score, instead of the value with noise."""
        return False

    @property
    def learns_basis(self) -> bool:
        """Whether `basis` names a kind that is learned from pilot pairs."""
        return isinstance(self.basis, str) and self.basis != "identity"

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

    def with_geometry(self, geometry: Geometry) -> Self:
        """Return a copy that adds its noise in the basis of a geometry, where there are bases.

        Parameters
        ----------
        geometry : Geometry
            Such as that of an estimate. The norm stays that of the mechanism.

        Returns
        -------
        Mechanism
            This one, unless overridden.
        """
        return self
