"""What the mechanisms that add noise share: the public coordinates in which they add it."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import is_real
from skdp.core.code import KINDS, PublicCode
from skdp.core.geometry import Geometry
from skdp.mechanisms.base import BasisParameter, ByteSource, Mechanism
from skdp.mechanisms.noise import OperatingSystemBytes, check_sensitivity, check_value


class AdditiveMechanism(Mechanism):
    """Noise on each coordinate of the value, in a public basis or code.

    With T the basis, the coordinates T f(D) get the noise, calibrated to their norm, and T^-1 of
    the sum is released. A code has fewer coordinates, and a decoder in the place of T^-1. All of it
    is public, so going back is post-processing and the promise is that of the noisy coordinates. A
    subclass sets `order`, and writes `_check`, `_add_noise`, `guarantee` and `unit_deviation`.
    """

    order: ClassVar[int]
    """Which norm, 1 or 2."""

    epsilon: float
    basis: BasisParameter
    shift: float
    decode: bool

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

    @abstractmethod
    def unit_deviation(self, n_values: int) -> float:
        """Return the standard deviation of the noise for a sensitivity of 1, without a lattice.

        Parameters
        ----------
        n_values : int
            How many numbers get noise.

        Returns
        -------
        float
            In each of them.
        """

    @property
    def learns_basis(self) -> bool:
        """Whether `basis` names a kind that is learned; with a `release` of its own no "auto" is.

        Such a `release` may add its noise to the value itself. A subclass whose does not may
        override this, and `learns_code`.
        """
        own = type(self).release is not AdditiveMechanism.release
        return super().learns_basis and not (own and str(self.basis) == "auto")

    @property
    def learns_code(self) -> bool:
        """Whether a public code is to be learned instead of a basis."""
        return self.learns_basis and str(self.basis) == "auto" and self.decode

    @property
    def geometry(self) -> Geometry:
        """The norm, and the coordinates: those of the value while "auto" has learned no others."""
        if isinstance(self.basis, PublicCode):
            return Geometry(self.order, self.basis)
        if not isinstance(self.basis, str):
            return Geometry(
                self.order, PublicCode("given", encoder=np.atleast_2d(np.asarray(self.basis)))
            )
        if self.basis in ("diagonal", "predictive"):
            raise ValueError(
                f"The 'basis' parameter of {type(self).__name__} is {self.basis!r}, which is "
                "learned from pilot pairs. Pass a SensitivitySampler as the sensitivity, or an "
                "estimate that was sampled in such a basis; a bound known on paper needs "
                "basis='identity', or the matrix that it was proved for."
            )
        return Geometry(self.order)

    def with_geometry(self, geometry: Geometry) -> Self:
        """Return a copy that adds its noise in the coordinates of a geometry.

        Parameters
        ----------
        geometry : Geometry
            Such as that of an estimate. The norm stays that of the mechanism.

        Returns
        -------
        AdditiveMechanism
            With the basis or code in place of the parameter `basis`.
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
        return self._release(value, sensitivity, rng)[0]

    def release_with_errors(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the value with noise, and the standard errors of its numbers.

        Parameters
        ----------
        value : array-like of float
            As for `release`.
        sensitivity : float in (0, inf)
            As for `release`.
        rng : ByteSource or None, default=None
            As for `release`.

        Returns
        -------
        released : ndarray of float64
            As from `release`.
        errors : ndarray in the shape of the value, or None
            As from `standard_errors`, but larger where what was released contradicts the prior of
            a code.
        """
        if type(self).release is not AdditiveMechanism.release:  # a subclass has its own way
            released = self.release(value, sensitivity, rng)
            return released, self.standard_errors(np.shape(value), sensitivity)
        released, noisy = self._release(value, sensitivity, rng)
        return released, self._errors(released.shape, sensitivity, noisy)

    def _release(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the released value and its noisy coordinates; None where nothing is noised."""
        self._check()
        sensitivity = check_sensitivity(sensitivity, type(self).__name__)
        value = check_value(value)
        if value.size == 0 or math.isinf(self.epsilon):
            return value, None
        code = self.geometry.basis
        source = OperatingSystemBytes() if rng is None else rng
        # a pair of which a code overflows is not covered; on the others this changes nothing
        with np.errstate(all="ignore"):
            coordinates = np.nan_to_num(code.forward(value))
        noisy = self._add_noise(coordinates, sensitivity, source)
        return code.decode(noisy, self._variance(sensitivity)).reshape(value.shape), noisy

    def _variance(self, sensitivity: float) -> float:
        """The variance of the noise in each number of a code; 0 for a basis, which ignores it."""
        code = self.geometry.basis
        if not code.has_prior or code.n_released is None:
            return 0.0
        return self._deviation(code.n_released, sensitivity) ** 2

    def standard_errors(
        self, shape: tuple[int, ...], sensitivity: float
    ) -> NDArray[np.float64] | None:
        """Return the standard deviation of the error of each number of a release.

        Parameters
        ----------
        shape : tuple of int
            Of the value that is to be released.
        sensitivity : float in (0, inf)
            Largest norm of a difference.

        Returns
        -------
        ndarray of the shape, or None
            In the units of the value: of the noise, or where a code is decoded, of what noise and
            prior leave open if the data are like the oracle's. None for more than 2,000 numbers in
            a learned basis.
        """
        return self._errors(shape, sensitivity, None)

    def _errors(
        self, shape: tuple[int, ...], sensitivity: float, noisy: NDArray[np.float64] | None
    ) -> NDArray[np.float64] | None:
        """The standard errors, before a release or after it."""
        n_values = int(np.prod(shape))
        if n_values == 0 or math.isinf(self.epsilon):
            return np.zeros(shape)
        code = self.geometry.basis
        variance = self._variance(sensitivity)
        if variance:
            errors = code.standard_errors(variance, noisy)
        else:  # that of unit noise, as the square of large noise may overflow
            errors = code.standard_errors(1.0) if code.digest else np.ones(n_values)
            if errors is not None:
                errors = self._deviation(n_values, sensitivity) * errors
        return None if errors is None else errors.reshape(shape)

    def share_learned(self, sensitivity: float) -> float:
        """Return how much of what is released comes from the private data.

        Parameters
        ----------
        sensitivity : float in (0, inf)
            Largest norm of a difference.

        Returns
        -------
        float in [0, 1]
            Of a code the share of the prior variance of the output that a release takes away; else
            1.
        """
        if math.isinf(self.epsilon):
            return 1.0
        return self.geometry.basis.share_learned(self._variance(sensitivity))

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
        owner, shift = type(self).__name__, self.shift
        if not (is_real(shift) and 0 <= shift <= 1):
            raise ValueError(
                f"The 'shift' parameter of {owner} must be a number in [0, 1], a share of the "
                f"records. Got {shift!r}."
            )
        if not isinstance(self.decode, bool | np.bool_):
            raise ValueError(
                f"The 'decode' parameter of {owner} must be True or False. Got {self.decode!r}."
            )
        named = isinstance(self.basis, str) and self.basis in (*KINDS, "auto")
        if self.basis is None or (isinstance(self.basis, str) and not named):
            raise ValueError(
                f"The 'basis' parameter of {owner} must be 'auto', 'identity', "
                f"'diagonal', 'predictive' or a square matrix. Got {self.basis!r}."
            )

    def _basis_description(self) -> str | None:
        """What the guarantee says about the basis; None for the identity that nobody learned."""
        if self.learns_basis:
            return None
        basis = self.geometry.basis
        return str(basis) if basis.digest or basis.n_pilot_pairs else None
