"""What the mechanisms that add noise share: the public coordinates in which they add it."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import check_rules, is_real
from skdp.core.code import KINDS, PublicCode
from skdp.core.geometry import Geometry
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.spectrum import LAPLACE
from skdp.core.types import Matrix
from skdp.mechanisms.base import BasisParameter, ByteSource, Mechanism
from skdp.mechanisms.noise import Lattice, OperatingSystemBytes, check_sensitivity, check_value

# Columns of noise, and numbers in them.
MOST_COLUMNS = 64
MOST_NOISE = 2**18


class AdditiveMechanism(Mechanism):
    """Noise on each coordinate of the value, in a public basis or code.

    With T the basis, the coordinates T f(D) get the noise, calibrated to their norm, and T^-1 of
    the sum is released. A code has fewer coordinates, and a decoder in the place of T^-1. All of it
    is public, so going back is post-processing and the promise is that of the noisy coordinates. A
    subclass sets `order`, and writes `_scale`, `_draw` and `_spread`.
    """

    order: ClassVar[int]
    """Which norm, 1 or 2."""

    delta: float = 0.0

    def __init__(
        self,
        epsilon: float,
        basis: BasisParameter = "auto",
        shift: float = 0.2,
        decode: bool = True,
    ):
        self.epsilon = epsilon
        self.basis = basis
        self.shift = shift
        self.decode = decode

    @abstractmethod
    def _scale(self, n_values: int, sensitivity: float) -> tuple[Lattice, int]:
        """Choose the lattice and the scale of the noise in its steps, from public numbers."""

    @abstractmethod
    def _draw(self, scale: int, size: int, source: ByteSource) -> NDArray[np.int64]:
        """Draw the noise of so many numbers, in steps."""

    @abstractmethod
    def _spread(self, n_values: int) -> float:
        """Return the standard deviation of each of so many draws, in scales."""

    def guarantee(self, gamma: float = 0.0) -> PrivacyGuarantee:
        self._check()
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            gamma=gamma,
            basis=self._basis_description(),
        )

    def _add_noise(
        self, value: NDArray[np.float64], sensitivity: float, source: ByteSource
    ) -> NDArray[np.float64]:
        """Return the nonempty value with noise."""
        lattice, scale = self._scale(value.size, sensitivity)
        return lattice.to_floats(lattice.to_integers(value), self._draw(scale, value.size, source))

    def _deviation(self, n_values: int, sensitivity: float) -> float:
        """Return the standard deviation of the noise in each of so many coordinates."""
        lattice, scale = self._scale(n_values, sensitivity)
        return math.ldexp(self._spread(n_values) * scale, lattice.exponent)

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
        return self._spread(n_values) / float(self.epsilon)

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
        return type(self)(**self.get_params(deep=False) | {"basis": geometry.basis})

    def release(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None
    ) -> NDArray[np.float64]:
        return self._release(value, sensitivity, rng)[0]

    def release_with_errors(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
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
        # a pair of which a code overflows is not covered; the end of the lattice stands for it
        with np.errstate(all="ignore"):
            coordinates = np.nan_to_num(
                code.forward(value), nan=np.inf, posinf=np.inf, neginf=-np.inf
            )
        noisy = self._add_noise(coordinates, sensitivity, source)
        if np.isnan(noisy).any():  # beyond the lattice, so the numbers say nothing
            return np.full(value.shape, np.nan), None
        kurtosis = self._kurtosis(noisy.size)
        decoded = code.decode(noisy, self._variance(sensitivity), kurtosis)
        return decoded.reshape(value.shape), noisy

    def _kurtosis(self, n_values: int) -> float:
        """The excess kurtosis of the noise in each number: that of Laplace noise."""
        return LAPLACE

    def _variance(self, sensitivity: float) -> float:
        """The variance of the noise in each number of a code; 0 for a basis, which ignores it."""
        code = self.geometry.basis
        if not code.has_prior or code.n_released is None:
            return 0.0
        return self._deviation(code.n_released, sensitivity) ** 2

    def standard_errors(
        self, shape: tuple[int, ...], sensitivity: float
    ) -> NDArray[np.float64] | None:
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
            kurtosis = 0.0 if noisy is None else self._kurtosis(noisy.size)
            errors = code.standard_errors(variance, noisy, kurtosis)
        else:  # that of unit noise, as the square of large noise may overflow
            errors = code.standard_errors(1.0) if code.digest else np.ones(n_values)
            if errors is not None:
                errors = self._deviation(n_values, sensitivity) * errors
        return None if errors is None else errors.reshape(shape)

    def noise_columns(
        self, shape: tuple[int, ...], sensitivity: float
    ) -> NDArray[np.float64] | None:
        own = type(self).release is not AdditiveMechanism.release
        n_values, code = int(np.prod(shape)), self.geometry.basis
        n_noised = n_values if code.n_released is None else code.n_released
        if n_noised == 0 or math.isinf(self.epsilon) or own:
            return None
        n_columns = max(1, min(MOST_COLUMNS, MOST_NOISE // n_values))
        if n_noised <= n_columns:
            columns: Matrix = np.eye(n_noised)
        else:  # random signs, the same whenever one asks
            columns = np.random.default_rng(0).choice([-1.0, 1.0], (n_noised, n_columns))
            columns /= math.sqrt(n_columns)
        return code.noise_columns(self._deviation(n_noised, sensitivity), columns)

    def share_learned(self, sensitivity: float) -> float:
        if math.isinf(self.epsilon):
            return 1.0
        return self.geometry.basis.share_learned(self._variance(sensitivity))

    def _check(self) -> None:
        """Refuse parameters outside their range."""
        epsilon, shift, basis = self.epsilon, self.shift, self.basis
        above_0 = "be a number above 0 (or inf, which adds no noise; a spent budget leaves 0)"
        named = basis in (*KINDS, "auto") if isinstance(basis, str) else basis is not None
        kinds = "be 'auto', 'identity', 'diagonal', 'predictive' or a square matrix"
        share = "be a number in [0, 1], a share of the records"
        check_rules(
            type(self).__name__,
            epsilon=(epsilon, is_real(epsilon) and epsilon > 0, above_0),
            shift=(shift, is_real(shift) and 0 <= shift <= 1, share),
            decode=(self.decode, isinstance(self.decode, bool | np.bool_), "be True or False"),
            basis=(basis, named, kinds),
        )

    def _basis_description(self) -> str | None:
        """What the guarantee says about the basis; None for the identity that nobody learned."""
        if self.learns_basis:
            return None
        basis = self.geometry.basis
        return str(basis) if basis.digest or basis.n_pilot_pairs else None
