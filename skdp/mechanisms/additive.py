"""The base class of the mechanisms that add noise to a value, or to a public code of it."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.checks import check_real, check_rules, is_real
from skdp.core.code import PublicCode
from skdp.core.geometry import Geometry
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.spectrum import LAPLACE
from skdp.core.types import ByteSource
from skdp.mechanisms.base import CodeParameter, Mechanism
from skdp.mechanisms.noise import MAX_NOISY, Lattice, OperatingSystemBytes, check_value


class AdditiveMechanism(Mechanism):
    """Noise on each number of the value, or of a public code of it.

    The noise is calibrated to the norm of what it is added to. A code and its decoder are public,
    so the promise is that of the noisy numbers, and decoding is post-processing. A subclass sets
    `order`, and writes `_scale`, `_draw` and `_spread`.
    """

    order: ClassVar[int]
    """The order of the norm, 1 or 2."""

    delta: float = 0.0

    def __init__(self, epsilon: float, *, code: CodeParameter = "auto", shift: float = 0.2):
        self.epsilon = epsilon
        self.code = code
        self.shift = shift

    @abstractmethod
    def _scale(self, n_values: int, sensitivity: float) -> tuple[Lattice, int]:
        """Choose the lattice and the scale of the noise in its steps, from public numbers."""

    @abstractmethod
    def _draw(self, scale: int, size: int, source: ByteSource) -> NDArray[np.int64]:
        """Draw the noise of so many numbers, in steps."""

    @abstractmethod
    def _spread(self, n_values: int) -> float:
        """Return the standard deviation of each of so many draws, in scales."""

    def _kurtosis(self, n_values: int) -> float:
        """Return the excess kurtosis of the noise in each number: that of Laplace noise."""
        return LAPLACE

    def _deviation(self, n_values: int, sensitivity: float) -> float:
        """Return the standard deviation of the noise in each of so many numbers."""
        lattice, scale = self._scale(n_values, sensitivity)
        return math.ldexp(self._spread(n_values) * scale, lattice.exponent)

    def unit_deviation(self, n_values: int) -> float:
        """Return the standard deviation of the noise for sensitivity 1, without the lattice."""
        return self._spread(n_values) / float(self.epsilon)

    def _largest(self, n_values: int, sensitivity: float) -> float:
        if n_values == 0 or math.isinf(self.epsilon) or not self._releases_as_here:
            return math.inf
        with np.errstate(over="ignore"):
            return float(np.ldexp(float(MAX_NOISY), self._scale(n_values, sensitivity)[0].exponent))

    @property
    def _releases_as_here(self) -> bool:
        """Whether a release is not that of a subclass, which may add noise to the value itself."""
        return type(self).release is AdditiveMechanism.release

    @property
    def learns_code(self) -> bool:
        """Whether a public code is to be learned for it, which `release` must then use."""
        return isinstance(self.code, str) and self._releases_as_here

    @property
    def _public_code(self) -> PublicCode | None:
        """The code, or None while one that is to be learned is not."""
        return None if isinstance(self.code, str) else self.code

    @property
    def geometry(self) -> Geometry:
        """The norm, and the code if there is one already."""
        return Geometry(self.order, self._public_code)

    def with_code(self, code: PublicCode | None) -> Self:
        return type(self)(**self.get_params(deep=False) | {"code": code})

    def guarantee(self, gamma: float = 0.0) -> PrivacyGuarantee:
        self._check()
        return PrivacyGuarantee(
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            gamma=gamma,
            code=None if self._public_code is None else str(self._public_code),
        )

    def release(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None
    ) -> NDArray[np.float64]:
        return self._release(value, sensitivity, rng)[0]

    def release_with_errors(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        if not self._releases_as_here:
            released = self.release(value, sensitivity, rng)
            return released, self.standard_errors(np.shape(value), sensitivity)
        released, noisy = self._release(value, sensitivity, rng)
        return released, self.standard_errors(released.shape, sensitivity, noisy)

    def _release(
        self, value: ArrayLike, sensitivity: float, rng: ByteSource | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
        """Return the released value and the noisy numbers; None where nothing is noised."""
        self._check()
        sensitivity = check_real("sensitivity", sensitivity, type(self).__name__, 0.0)
        value = check_value(value)
        if value.size == 0 or math.isinf(self.epsilon):
            return value, None
        code, numbers = self.geometry.code, value.ravel()
        if code is not None:
            # a pair of which a code overflows is not covered; the end of the lattice stands for it
            with np.errstate(all="ignore"):
                numbers = np.nan_to_num(
                    code.forward(value), nan=np.inf, posinf=np.inf, neginf=-np.inf
                )
        lattice, scale = self._scale(numbers.size, sensitivity)
        noise = self._draw(scale, numbers.size, OperatingSystemBytes() if rng is None else rng)
        noisy = lattice.to_floats(lattice.to_integers(numbers), noise)
        if np.isnan(noisy).any():  # beyond the lattice, so the numbers say nothing
            return np.full(value.shape, np.nan), None
        released = noisy
        if code is not None:
            released = code.decode(noisy, self._variance(sensitivity), self._kurtosis(noisy.size))
        return released.reshape(value.shape), noisy

    def _variance(self, sensitivity: float) -> float:
        """Return the variance of the noise in each number of the code; 0 without a code."""
        code = self._public_code
        return 0.0 if code is None else self._deviation(code.n_released, sensitivity) ** 2

    def standard_errors(
        self, shape: tuple[int, ...], sensitivity: float, noisy: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        n_values, code = math.prod(shape), self._public_code
        if n_values == 0 or math.isinf(self.epsilon):
            return np.zeros(shape)
        if code is None:
            return np.full(shape, self._deviation(n_values, sensitivity))
        kurtosis = self._kurtosis(code.n_released)
        return code.standard_errors(self._variance(sensitivity), noisy, kurtosis).reshape(shape)

    def share_learned(self, sensitivity: float) -> float:
        code = self._public_code
        if code is None or math.isinf(self.epsilon):
            return 1.0
        return code.share_learned(self._variance(sensitivity))

    def _check(self) -> None:
        """Refuse parameters outside their range."""
        epsilon, shift, code = self.epsilon, self.shift, self.code
        above_0 = "be a number above 0 (or inf, which adds no noise; a spent budget leaves 0)"
        share = "be a number in [0, 1], a share of the records"
        known = code in ("auto", "learned") if isinstance(code, str) else code is None
        check_rules(
            type(self).__name__,
            epsilon=(epsilon, is_real(epsilon) and epsilon > 0, above_0),
            shift=(shift, is_real(shift) and 0 <= shift <= 1, share),
            code=(
                code,
                known or isinstance(code, PublicCode),
                "be None, 'auto', 'learned' or a PublicCode",
            ),
        )
