"""What the mechanisms that add noise share: the public basis in which they add it."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.basis import KINDS, PublicBasis
from skdp.core.geometry import Geometry
from skdp.mechanisms.base import BasisParameter, ByteSource, Mechanism
from skdp.mechanisms.noise import OperatingSystemBytes, check_sensitivity, check_value

# Largest number of values of which the standard errors in a learned basis are worked out.
MAX_SPREAD = 2000


class AdditiveMechanism(Mechanism):
    """Independent noise on each coordinate of the value, in a public basis.

    With T the basis, the coordinates T f(D) get the noise, calibrated to their norm, and T^-1 of
    the sum is released. T is public, so going back is post-processing and the promise is that of
    the noisy coordinates. A subclass sets `order`, and writes `_check`, `_add_noise` and
    `guarantee`.
    """

    order: ClassVar[int]
    """Which norm, 1 or 2."""

    epsilon: float
    basis: BasisParameter

    @abstractmethod
    def _check(self) -> None:
        """Refuse parameters outside their range."""

    @abstractmethod
    def _add_noise(
        self, value: NDArray[np.float64], sensitivity: float, source: ByteSource
    ) -> NDArray[np.float64]:
        """Return the finite, nonempty value with noise."""

    @abstractmethod
    def _deviation(self, n_values: int, sensitivity: float) -> float:
        """Return the standard deviation of the noise in each of so many coordinates."""

    @property
    def geometry(self) -> Geometry:
        """The norm, and the basis as it stands: the identity while "auto" has learned no other."""
        if isinstance(self.basis, PublicBasis):
            return Geometry(self.order, self.basis)
        if not isinstance(self.basis, str):
            return Geometry(self.order, PublicBasis("given", matrix=self.basis))
        if self.basis in ("diagonal", "predictive"):
            raise ValueError(
                f"The 'basis' parameter of {type(self).__name__} is {self.basis!r}, which is "
                "learned from pilot pairs. Pass a SensitivitySampler as the sensitivity, or an "
                "estimate that was sampled in such a basis; a bound known on paper needs "
                "basis='identity', or the matrix that it was proved for."
            )
        return Geometry(self.order)

    def with_geometry(self, geometry: Geometry) -> Self:
        """Return a copy that adds its noise in the basis of a geometry.

        Parameters
        ----------
        geometry : Geometry
            Such as that of an estimate. The norm stays that of the mechanism.

        Returns
        -------
        AdditiveMechanism
            With the basis in place of the parameter `basis`.
        """
        return type(self)(**self.get_params(deep=False) | {"basis": geometry.basis})

    def release(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None
    ) -> NDArray[np.float64]:
        """Return the value with noise.

        Parameters
        ----------
        value : array-like of float
            The private value, of any shape.
        sensitivity : float in (0, inf)
            Largest norm of a difference.
        rng : ByteSource or None, default=None
            Where the noise comes from; None is the operating system.

        Returns
        -------
        ndarray of float64
            The private version, of the same shape. An equal copy if epsilon is infinite.

        Raises
        ------
        ValueError
            If a parameter or the sensitivity is outside its range, or the value is not finite.
            The message never shows the value.
        """
        self._check()
        sensitivity = check_sensitivity(sensitivity, type(self).__name__)
        value = check_value(value)
        if value.size == 0 or math.isinf(self.epsilon):
            return value
        basis = self.geometry.basis
        source = OperatingSystemBytes() if rng is None else rng
        noisy = self._add_noise(basis.forward(value), sensitivity, source)
        return basis.backward(noisy).reshape(value.shape)

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
            In the units of the value. None for more than 2,000 numbers in a learned basis.
        """
        n_values = int(np.prod(shape))
        if n_values == 0 or math.isinf(self.epsilon):
            return np.zeros(shape)
        basis = self.geometry.basis
        if not basis.digest:
            spread = np.ones(n_values)
        elif n_values <= MAX_SPREAD:
            spread = np.sqrt(sum(basis.backward(unit) ** 2 for unit in np.eye(n_values)))
        else:
            return None
        return (self._deviation(n_values, sensitivity) * spread).reshape(shape)

    def rehearse(self, shape: tuple[int, ...] | None, sensitivity: float) -> None:
        """Release zeros, so that what cannot be released fails before private data is read.

        Parameters
        ----------
        shape : tuple of int or None
            Of the value that is to be released. When it is unknown as many zeros are tried as the
            basis takes, or a single one.
        sensitivity : float in (0, inf)
            Largest norm of a difference.
        """
        super().rehearse((self.geometry.basis.size or 1,) if shape is None else shape, sensitivity)

    def _check_basis(self) -> None:
        if isinstance(self.basis, str) and self.basis not in (*KINDS, "auto"):
            raise ValueError(
                f"The 'basis' parameter of {type(self).__name__} must be 'auto', 'identity', "
                f"'diagonal', 'predictive' or a square matrix. Got {self.basis!r}."
            )

    def _basis_description(self) -> str | None:
        """What the guarantee says about the basis; None for the identity that nobody learned."""
        if self.learns_basis:
            return None
        basis = self.geometry.basis
        return str(basis) if basis.digest or basis.n_pilot_pairs else None
