"""What the mechanisms that add noise share: the public basis in which they add it."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.codes.learning import LEARNERS, learn_basis
from skdp.core.basis import LocalMetric, PublicBasis
from skdp.mechanisms.base import ByteSource, Mechanism, l1_norm, l1_norms, l2_norm, l2_norms
from skdp.mechanisms.noise import OperatingSystemBytes, check_sensitivity, check_value

# Largest number of values of which the standard errors in a learned basis are worked out.
MAX_SPREAD = 2000

_NORMS = {1: l1_norm, 2: l2_norm}
_MANY_NORMS = {1: l1_norms, 2: l2_norms}


class AdditiveMechanism(Mechanism):
    """Independent noise on each coordinate of the value, in a public basis.

    With T the basis, the coordinates T f(D) get the noise, calibrated to their norm, and T^-1 of
    the sum is released. T is public, so going back is post-processing and the promise is that of
    the noisy coordinates. A subclass sets `order`, and writes `_check`, `_add_noise` and
    `guarantee`.

    In doubles T f(D) - T f(D') and T (f(D) - f(D')) differ by rounding errors that grow with f and
    not with the difference. Therefore `distance` computes the coordinates of either value, just
    as `release` does, and then differences them: what is sampled is the sensitivity of the
    computed function that is released, rounding included.
    """

    order: ClassVar[int]
    """Which norm, 1 or 2."""

    epsilon: float
    basis: Any

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
    def norm_name(self) -> str:
        """The norm, such as "l1"; it names the basis too, unless that is the identity."""
        digest = self.public_basis.digest
        return f"l{self.order} in basis {digest}" if digest else f"l{self.order}"

    @property
    def public_basis(self) -> PublicBasis:
        """The basis as it stands: the identity while "auto" has not learned another."""
        if isinstance(self.basis, PublicBasis):
            return self.basis
        if not isinstance(self.basis, str):
            return PublicBasis("given", matrix=self.basis)
        if self.basis in ("diagonal", "predictive"):
            raise ValueError(
                f"The 'basis' parameter of {type(self).__name__} is {self.basis!r}, which is "
                "learned from pilot pairs. Pass a SensitivitySampler as the sensitivity, or an "
                "estimate that was sampled in such a basis; a bound known on paper needs "
                "basis='identity', or the matrix that it was proved for."
            )
        return PublicBasis()

    @property
    def learns_basis(self) -> bool:
        """Whether `fit_basis` is to be called with pilot differences."""
        return isinstance(self.basis, str) and self.basis != "identity"

    def fit_basis(
        self,
        differences: NDArray[np.float64],
        metric: NDArray[np.float64] | LocalMetric | None = None,
    ) -> Self:
        """Learn the basis from pilot pairs.

        Parameters
        ----------
        differences : ndarray of shape (n_pilot_pairs, d)
            Differences of the target's values on pairs that calibrate nothing.
        metric : ndarray of shape (d, d) or (d,), LocalMetric or None, default=None
            The squared change of the output is ``v' metric v`` for a change v of the value; a
            vector is a diagonal, None the identity.

        Returns
        -------
        AdditiveMechanism
            A copy with the basis fixed.
        """
        return self._copy(learn_basis(self.basis, differences, metric, self.order))

    def with_basis(self, basis: PublicBasis | None) -> Self:
        """Fix the basis to that in which a sensitivity was measured.

        Parameters
        ----------
        basis : PublicBasis or None
            None is the identity.

        Returns
        -------
        AdditiveMechanism
            A copy with this basis if a kind was asked for and it is of the kind, or else with the
            basis that it had; `norm_name` then tells whether the two agree.
        """
        if not isinstance(self.basis, str):
            return self._copy(self.public_basis)
        basis = PublicBasis() if basis is None else basis
        return self._copy(basis) if self.basis in ("auto", basis.kind) else self

    def norm(self, difference: ArrayLike) -> float:
        """Measure the difference of two target values.

        Parameters
        ----------
        difference : array-like of float
            Of any shape.

        Returns
        -------
        float
            The norm of its coordinates in the basis.
        """
        return _NORMS[self.order](self.public_basis.forward(difference))

    def distance(self, value: ArrayLike, other: ArrayLike) -> float:
        """Measure how far two target values are apart, as computed in a release.

        Parameters
        ----------
        value, other : array-like of float
            Of the same shape.

        Returns
        -------
        float
            The norm of the difference of their coordinates.
        """
        basis = self.public_basis
        return _NORMS[self.order](basis.forward(value) - basis.forward(other))

    def distances(
        self, values: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Measure many distances at once.

        Parameters
        ----------
        values, others : ndarray of shape (n_pairs, ...)
            Two target values of each pair.

        Returns
        -------
        ndarray of shape (n_pairs,)
            The `distance` of each, up to rounding.
        """
        if self.public_basis.digest:
            return np.array([self.distance(*pair) for pair in zip(values, others, strict=True)])
        differences = (values - others).reshape(len(values), -1)
        return _MANY_NORMS[self.order](differences)

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
        basis = self.public_basis
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
        basis = self.public_basis
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
        super().rehearse((self.public_basis.size or 1,) if shape is None else shape, sensitivity)

    def _copy(self, basis: PublicBasis) -> Self:
        return type(self)(**self.get_params(deep=False) | {"basis": basis})

    def _check_basis(self) -> None:
        if isinstance(self.basis, str) and self.basis not in (*LEARNERS, "auto"):
            raise ValueError(
                f"The 'basis' parameter of {type(self).__name__} must be 'auto', 'identity', "
                f"'diagonal', 'predictive' or a square matrix. Got {self.basis!r}."
            )

    def _basis_description(self) -> str | None:
        """What the guarantee says about the basis; None for the identity that nobody learned."""
        if self.learns_basis:
            return None
        basis = self.public_basis
        return str(basis) if basis.digest or basis.n_pilot_pairs else None
