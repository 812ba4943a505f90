"""The base class of mechanisms: a geometry, a release and a guarantee."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdp.core.code import PublicCode
from skdp.core.geometry import Geometry
from skdp.core.guarantee import NoiseLaw, PrivacyGuarantee
from skdp.core.types import ByteSource, Released

CodeParameter = PublicCode | str | None


class Mechanism(BaseEstimator, ABC):
    """Base class of the mechanisms.

    A mechanism is *sensitivity-induced private*: when f(D) and f(D') are at most the sensitivity
    apart in its geometry, the laws of ``release(f(D), sensitivity, rng)`` and ``release(f(D'),
    sensitivity, rng)`` are within the guarantee of each other on that very pair [1]_. A subclass
    sets `geometry` and writes `release` and `guarantee`; all else has a default. All that it may
    ask of `rng` is ``rng.bytes(length)``, since the operating system gives nothing else.

    References
    ----------
    .. [1] Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
       ICML 2017, definition 9.

    Examples
    --------
    Randomized response, of a bit: it is wrong with probability 1 / (1 + exp(epsilon)).

    >>> import numpy as np
    >>> from skdp import Mechanism, PrivacyGuarantee, release
    >>> from skdp.codes import Geometry
    >>> class RandomizedResponse(Mechanism):
    ...     geometry = Geometry(1)
    ...
    ...     def __init__(self, epsilon):
    ...         self.epsilon = epsilon
    ...
    ...     def release(self, value, sensitivity, rng):
    ...         draw = int.from_bytes(rng.bytes(4), "little") / 2**32
    ...         return np.where(draw < 1 / (1 + np.exp(self.epsilon)), 1 - value, value)
    ...
    ...     def guarantee(self, gamma=0.0):
    ...         return PrivacyGuarantee(epsilon=self.epsilon, gamma=gamma)
    >>> mechanism = RandomizedResponse(epsilon=3.0)
    >>> released = release(np.max, np.array([0, 1, 0]), mechanism=mechanism, sensitivity=1)
    >>> float(released.value) in (0, 1), released.guarantee.epsilon
    (True, 3.0)
    """

    chooses: ClassVar[bool] = False
    """Whether a release is the position of one score, instead of the value with noise."""

    most_values: ClassVar[int | None] = None
    """How many numbers can get noise together, where there is a limit."""

    code: CodeParameter = None
    """The public code, or how to come by one, where the mechanism takes a code."""

    @property
    @abstractmethod
    def geometry(self) -> Geometry:
        """The norm, and the code, in which a sensitivity for this mechanism is measured."""

    @abstractmethod
    def release(self, value: NDArray[np.float64], sensitivity: float, rng: ByteSource) -> Released:
        """Return a private version of the target value.

        Parameters
        ----------
        value : array-like of float
            The private value, of any shape.
        sensitivity : float in (0, inf)
            Largest distance of two values, in the geometry.
        rng : ByteSource or None
            Where the noise comes from. None, the default of skdp, is the operating system.

        Returns
        -------
        ndarray of float64, or int
            The value with noise, of the same shape; an equal copy if epsilon is infinite. NaN where
            the mechanism cannot tell the value: then `skdp.release` raises an error. Or the
            position of the chosen response.

        Raises
        ------
        ValueError
            If a parameter or the sensitivity is outside its range, or the value is not finite.
            The message never shows the value.
        """

    @abstractmethod
    def guarantee(self, gamma: float = 0.0) -> PrivacyGuarantee:
        """Return the promise of one release.

        Parameters
        ----------
        gamma : float in [0, 1), default=0.0
            Probability that the sensitivity does not cover a pair of the oracle.

        Returns
        -------
        PrivacyGuarantee
            With epsilon and delta of the mechanism; it says what is taken to be so.
        """

    def release_with_errors(
        self, value: NDArray[np.float64], sensitivity: float, rng: ByteSource
    ) -> tuple[Released, NDArray[np.float64] | None]:
        """Return what `release` does, and the standard errors of its numbers.

        They are larger than `standard_errors` says where what was released contradicts the prior of
        a code. They may depend on what is released, and on nothing else of the value.
        """
        released = self.release(value, sensitivity, rng)
        return released, self.standard_errors(np.shape(value), sensitivity)

    @property
    def noise_law(self) -> NoiseLaw | None:
        """Law of the noise, for composition; None if no more is known than the guarantee."""
        return None

    @property
    def learns_code(self) -> bool:
        """Whether a public code is to be learned for it from public fits."""
        return False

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
            prior leave open if the data are like the oracle's. None, the default, where they are
            not known.
        """
        return None

    def _largest(self, n_values: int, sensitivity: float) -> float:
        """Return the size beyond which a number is not released; inf, the default, for none."""
        return math.inf

    def share_learned(self, sensitivity: float) -> float:
        """Return which share of the prior variance of the output is read off the private data."""
        return 1.0

    def with_code(self, code: PublicCode | None) -> Self:
        """Return a copy that adds its noise in a public code; by default the mechanism itself."""
        return self
