"""A public code: which few numbers of a value get noise, and how they are decoded.

Any public function may be measured and noised in place of the value f, and any public function may
be applied to the noisy numbers. Neither changes the promise: the sensitivity is that of the encoded
value, and decoding is post-processing. Here the encoder is a matrix T, and a prior of f, learned
from public fits, decodes ``y = T (f - mu) + noise`` (`spectrum.py`).
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from skdp.core.spectrum import LAPLACE, Spectrum, principal_axes
from skdp.core.types import Matrix

_PARTS = ("encoder", "mean", "deviations", "removable", "covariance")

_MOST_CONDITION = 1e14  # a matrix of a larger condition number is singular to working precision


@dataclass(frozen=True, eq=False)
class PublicCode:
    """An encoder T of the target's values and the prior that decodes it, of public numbers.

    Mechanisms learn one from public fits; to use it again, pass it as their parameter `code`.

    Parameters
    ----------
    encoder : array-like of shape (k, d)
        T, a row for each number that gets noise.
    mean : array-like of shape (d,)
        The prior mean of the value.
    deviations : array-like of shape (d,)
        The prior standard deviation of each value.
    removable : array-like of shape (k, k)
        ``C' M C``, with C the covariance and M the metric of the output, as a share of its prior
        variance ``tr(M S)``.
    covariance : array-like of shape (d, k)
        The prior covariance C of value and code.
    n_pilot_pairs : int, default=0
        From how many pairs of the oracle it was learned.
    shift : float, default=0.0
        Which share of the private records the prior allows to be unlike the oracle's.

    Raises
    ------
    ValueError
        If a part is of the wrong shape or not finite.

    Examples
    --------
    >>> from skdp.codes import PublicCode
    >>> code = PublicCode(
    ...     encoder=[[1.0, 1.0]],
    ...     mean=[0.0, 0.0],
    ...     covariance=[[3.0], [1.0]],
    ...     deviations=[2.0, 1.0],
    ...     removable=[[2.5]],
    ... )
    >>> code.forward([1.0, 3.0])
    array([4.])
    >>> code.decode([4.0], 4.0).round(1)
    array([1.5, 0.5])
    """

    encoder: Matrix
    mean: Matrix
    deviations: Matrix
    removable: Matrix
    covariance: Matrix
    n_pilot_pairs: int = 0
    shift: float = 0.0

    def __init_subclass__(cls) -> None:
        raise TypeError("PublicCode has no subclasses: its digest stands for how it is computed.")

    def __post_init__(self) -> None:
        for name in _PARTS:
            # a copy: there may be views that can be written into, even of a read-only array
            part = np.array(getattr(self, name), dtype=np.float64, order="C")
            part.flags.writeable = False
            object.__setattr__(self, name, part)
            if not np.isfinite(part).all():
                raise ValueError(f"The {name} of a code must be finite. It is not.")
        shapes = tuple(getattr(self, name).shape for name in _PARTS)
        k, d = shapes[0] if self.encoder.ndim == 2 else (0, 0)
        if shapes != ((k, d), (d,), (d,), (k, k), (d, k)):
            raise ValueError(f"The parts of a code must fit together. Got shapes {shapes}.")

    @property
    def size(self) -> int:
        """The number d of values."""
        return self.encoder.shape[-1]

    @property
    def n_released(self) -> int:
        """The number k of values that get noise."""
        return len(self.encoder)

    def forward(self, value: ArrayLike) -> Matrix:
        """Return the numbers that get noise: T times the difference of a value to the prior mean.

        It is computed by sums in a fixed order, not by a linear-algebra library whose rounding
        depends on the number of threads: it is part of the function whose sensitivity is sampled.
        """
        v = np.array(value, dtype=np.float64).ravel()
        if v.size != self.size:
            raise ValueError(
                f"The code is one of {self.size} values. Got {v.size} values. The target must "
                "return as many values on every dataset, and a PublicCode serves no other target."
            )
        return np.einsum("ij,j->i", self.encoder, v - self.mean)

    def reach(self, errors: ArrayLike) -> Matrix:
        """Bound how far errors of the values, in n cases, can move the code in the L1 norm."""
        sums = np.zeros(self.size)
        for row in self.encoder:  # no copy of a huge encoder
            sums += np.abs(row)
        return np.reshape(errors, (-1, self.size)) @ sums

    def decode(self, noisy: ArrayLike, variance: float, kurtosis: float = LAPLACE) -> Matrix:
        """Return the value that the prior makes of a noisy code, given variance and kurtosis.

        The kurtosis is in excess of that of normal noise. A prior that the code contradicts is
        widened, along each axis of the code by itself: the release of a dataset that is unlike the
        oracle's is then shrunk less.
        """
        y, spectrum = np.array(noisy, dtype=np.float64), self._spectrum
        gains = spectrum.read(y, variance, self.shift, kurtosis).gains
        change = gains * (spectrum.axes.T @ y)
        if self._undone is None:
            return self.mean + self.covariance @ (spectrum.axes @ change)
        # As C is S T', but a huge number does not spill as much of its rounding over others.
        shrunk = self._undone @ (spectrum.axes @ (spectrum.variances * change))
        return self.mean + (self.deviations > 0) * shrunk

    def standard_errors(
        self, variance: float, noisy: ArrayLike | None = None, kurtosis: float = LAPLACE
    ) -> Matrix:
        """Return the standard deviation of the error of each decoded value, if the prior holds.

        The `noisy` code that was released may widen the prior. None gives the errors before a
        release.
        """
        spectrum = self._spectrum
        reading = spectrum.read(noisy, variance, self.shift, kurtosis)
        scale = 1 / np.where(self.deviations > 0, self.deviations, np.inf)
        loadings = self.covariance @ spectrum.axes
        loadings *= scale[:, None]  # in place: it may be large
        loadings *= loadings
        left = spectrum.left_open(loadings, reading, self._undone is not None)
        return self.deviations * np.sqrt(np.maximum(left, 0))

    def share_learned(
        self, variance: float, noisy: ArrayLike | None = None, kurtosis: float = LAPLACE
    ) -> float:
        """Return the share of the prior variance of the output that a release takes away."""
        gains = self._spectrum.read(noisy, variance, self.shift, kurtosis).gains
        return float(np.clip(gains @ self._spectrum.removable, 0, 1))

    @cached_property
    def _undone(self) -> Matrix | None:
        """The inverse of a square encoder that is not singular to working precision."""
        if self.n_released != self.size:
            return None
        # a singular encoder has no inverse, and numbers beyond doubles are tested below
        with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError):
            rows = np.linalg.norm(self.encoder, axis=1)  # both are brought to length 1
            columns = np.linalg.norm(self.encoder / rows[:, None], axis=0)
            balanced = self.encoder / rows[:, None] / columns
            inverse = np.linalg.inv(balanced)
            condition = np.linalg.norm(balanced, 1) * np.linalg.norm(inverse, 1)
            inverse = inverse / columns[:, None] / rows
            if condition < _MOST_CONDITION and np.isfinite(inverse).all():
                return inverse
        return None

    @cached_property
    def _spectrum(self) -> Spectrum:
        code = self.encoder @ self.covariance
        variances, axes = principal_axes((code + code.T) / 2)
        removable = np.sum(axes * (self.removable @ axes), axis=0)
        return Spectrum(axes, np.maximum(variances, 0), np.maximum(removable, 0))

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that tell codes apart."""
        sha = hashlib.sha256(f"{self.n_pilot_pairs} {self.shift}".encode())
        for name in _PARTS:
            part = getattr(self, name)
            sha.update(f"{name}{part.shape}".encode())
            for row in np.atleast_2d(part):  # no copy of a huge encoder
                sha.update(row.astype("<f8", copy=False))
        return sha.hexdigest()[:12]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PublicCode) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"PublicCode({self})"

    def __str__(self) -> str:
        return (
            f"{self.n_released} of {self.size} directions, decoded by a prior from "
            f"{self.n_pilot_pairs} public fits"
        )

    def __setstate__(self, state: dict) -> None:
        for name in _PARTS:  # a pickle forgets that they must not be written into
            state[name].flags.writeable = False
        vars(self).update(state)

    def __deepcopy__(self, memo: object) -> PublicCode:
        return self  # it may be large, and nobody can write into it

    def to_dict(self) -> dict[str, object]:
        """Return the code as plain values, ready for JSON."""
        lists = {name: getattr(self, name).tolist() for name in _PARTS}
        return {"n_pilot_pairs": self.n_pilot_pairs, "shift": self.shift} | lists

    @classmethod
    def from_dict(cls, values: dict) -> PublicCode:
        """Make a code from the values of :meth:`to_dict`, equal bit for bit."""
        return cls(**values)
