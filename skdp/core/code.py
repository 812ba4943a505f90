"""A public code: in which coordinates noise is added, and what is made of the noisy ones.

Any public function may be measured and noised in place of the value f, and any public function may
be applied to the noisy numbers. Neither changes the promise: the sensitivity is that of the encoded
value, and decoding is post-processing. Here the encoder T is a matrix.

*Without a prior* T is square, a basis, and is decoded by its inverse (`basis.py`).

*With a prior* of f, learned from public fits, T may leave out directions, and the decoder returns
what the prior says of f given ``y = T (f - mu) + noise`` (`spectrum.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.core.basis import compact, invert, reflect
from skdp.core.spectrum import LAPLACE, Spectrum, principal_axes
from skdp.core.types import Matrix

KINDS = ("identity", "diagonal", "predictive")
"""The kinds of basis that are learned."""

# Largest number of values of which the standard errors in a basis are worked out.
_MAX_SPREAD = 2000

_ENCODER = ("encoder", "reflectors", "weights")
_PRIOR = ("mean", "covariance", "deviations", "removable", "units", "outside")
_PARTS = (*_ENCODER, *_PRIOR)

# Numbers of an encoder that are worked on at a time.
_BLOCK = 2**17


class Owned(NamedTuple):
    """An array that nobody else keeps: a code need not copy it."""

    array: NDArray[Any]


@dataclass(frozen=True, eq=False)
class PublicCode:
    """An encoder T of the target's values and the decoder that goes with it, of public numbers.

    Without an encoder the values are taken as they are. Without a prior T is a basis: it must be
    square, and is decoded by its inverse.

    Parameters
    ----------
    kind : str, default="identity"
        How it came about: a basis is "identity", "diagonal", "predictive" or "given".
    n_pilot_pairs : int, default=0
        From how many pairs of the oracle it was learned.
    shift : float, default=0.0
        Which share of the private records the prior allows to be unlike the oracle's.
    encoder : array-like of shape (k, d), (d,) or None, default=None
        T. A vector is a diagonal, of which the rows of zeros are left out. A matrix for more than
        2,000 values is kept in single precision if that loses nothing of it.
    reflectors : array-like of shape (d, n_reflectors) or None, default=None
        Of a basis for very many values, whose encoder A is a diagonal:
        ``T = diag(1 / weights) Q' A``, with Q the orthogonal matrix that is the product of the
        Householder reflections in these columns, of any length but 0.
    weights : array-like of shape (d,) or None, default=None
        Goes with the reflectors; finite numbers other than 0.
    mean : array-like of shape (d,) or None, default=None
        The prior mean of the value.
    covariance : array-like of shape (d, k), (k,) or None, default=None
        The prior covariance of value and code; None for a diagonal encoder, where the values are
        taken for uncorrelated. A vector, with `units` and `outside`, says it for very many values:
        that of value j and number i is ``units[j]**2 (covariance[i] + outside[j]) T[i, j]``.
    deviations : array-like of shape (d,) or None, default=None
        The prior standard deviation of each value.
    removable : array-like of shape (k, k), (k,) or None, default=None
        ``C' M C``, M the metric of the output, as a share of its prior variance ``tr(M S)``; for a
        diagonal encoder its diagonal.
    units, outside : array-like of shape (d,) or None, default=None
        Go with a covariance that is a vector.

    Raises
    ------
    ValueError
        If a part is missing, of the wrong shape or not finite, or a basis cannot be inverted.

    Examples
    --------
    >>> from skdp import PublicCode
    >>> code = PublicCode(
    ...     encoder=[[1.0, 1.0]],
    ...     mean=[0.0, 0.0],
    ...     covariance=[[3.0], [1.0]],
    ...     deviations=[2.0, 1.0],
    ...     removable=[[2.5]],
    ... )
    >>> code.forward([1.0, 3.0])
    array([4.])
    >>> code.decode([4.0])
    array([3., 1.])
    >>> code.decode([4.0], 4.0).round(1)
    array([1.5, 0.5])

    A basis:

    >>> basis = PublicCode("given", encoder=[[2.0, 0.0], [1.0, 1.0]])
    >>> basis.forward([1.0, 3.0])
    array([2., 4.])
    >>> basis.decode([2.0, 4.0])
    array([1., 3.])
    """

    kind: str = "identity"
    n_pilot_pairs: int = 0
    shift: float = 0.0
    encoder: Matrix | None = None
    reflectors: Matrix | None = None
    weights: Matrix | None = None
    mean: Matrix | None = None
    covariance: Matrix | None = None
    deviations: Matrix | None = None
    removable: Matrix | None = None
    units: Matrix | None = None
    outside: Matrix | None = None

    def __post_init__(self) -> None:
        for name in _PARTS:
            part = getattr(self, name)
            if part is not None:
                # a copy: there may be views that can be written into, even of a read-only array
                owned = isinstance(part, Owned)
                part = part.array if owned else np.array(part, dtype=np.float64, order="C")
                if name == "encoder" and self.has_prior:
                    part = _shortened(part)
                part.flags.writeable = False
                object.__setattr__(self, name, part)
                if not np.isfinite(part).all():
                    raise ValueError(f"The {name} of a {self._name} must be finite. It is not.")
        given = {name: getattr(self, name) for name in _PARTS}
        shapes = {name: None if part is None else part.shape for name, part in given.items()}
        if not self.has_prior:
            self._check_invertible()
        if shapes != self._shapes():
            raise ValueError(f"The parts of a code must fit together. Got shapes {shapes}.")

    def _check_invertible(self) -> None:
        factors = [part for part in (self.encoder, self.weights) if part is not None]
        lengths = [] if self.reflectors is None else [np.any(self.reflectors, axis=0)]
        if not all(np.all(part) for part in [*factors, *lengths] if part.ndim == 1):
            raise ValueError("A basis must be invertible. One of its scales is zero.")
        if self.encoder is not None and self.encoder.ndim == 2:
            _ = self._inverse

    def _shapes(self) -> dict[str, tuple[int, ...] | None]:
        """The shapes that the parts must have, given that of the encoder."""
        shapes: dict[str, tuple[int, ...] | None] = dict.fromkeys(_PARTS)
        if self.encoder is None or self.encoder.ndim not in (1, 2):
            return shapes
        d, dense = self.encoder.shape[-1], self.encoder.ndim == 2
        shapes["encoder"] = self.encoder.shape
        if self.has_prior:
            k = len(self.encoder) if dense else len(self._kept)
            prior: list[Any] = [(d,), (d, k) if dense else None, (d,), (k, k) if dense else (k,)]
            if dense and self.units is not None:
                prior[1:] = (k,), (d,), (k, k), (d,), (d,)
            return shapes | dict(zip(_PRIOR, prior, strict=False))
        if self.reflectors is not None and not dense:
            shapes |= {"reflectors": (d, self.reflectors.shape[-1]), "weights": (d,)}
        return shapes

    @property
    def has_prior(self) -> bool:
        """Whether a prior decodes; else all values are released, in a basis."""
        return self.mean is not None

    @property
    def _name(self) -> str:
        return "code" if self.has_prior else "basis"

    @cached_property
    def _kept(self) -> NDArray[np.intp]:
        """The values that a diagonal encoder keeps."""
        assert self.encoder is not None
        return np.flatnonzero(self.encoder)

    @property
    def size(self) -> int | None:
        """The number d of values; None for the identity, which takes any."""
        return None if self.encoder is None else self.encoder.shape[-1]

    @property
    def n_released(self) -> int | None:
        """The number k of values that get noise; None for the identity."""
        return self.size if self.removable is None else len(self.removable)

    def forward(self, value: ArrayLike) -> Matrix:
        """Return the code of a value.

        It is computed by sums in a fixed order, not by a linear-algebra library whose rounding
        depends on the number of threads: it is part of the function whose sensitivity is sampled.

        Parameters
        ----------
        value : array-like of float
            Of any shape; it is read as a vector.

        Returns
        -------
        ndarray of shape (k,)
            T times the value, or what it differs by from the prior mean.

        Raises
        ------
        ValueError
            If the code is one of another number of values.
        """
        v = np.array(value, dtype=np.float64).ravel()
        if self.encoder is None:
            return v
        if v.size != self.size:
            raise ValueError(
                f"The {self._name} is one of {self.size} values. Got {v.size} values. The target "
                "must return as many values on every dataset, and a 'basis' of yours must have a "
                "column for each of them."
            )
        if self.mean is not None:
            v = v - self.mean
        if self.encoder.ndim == 2:
            return np.einsum("ij,j->i", self.encoder, v)
        v = v[self._kept] * self.encoder[self._kept]
        if self.reflectors is None or self.weights is None:
            return v
        return reflect(v, self.reflectors, self._block.T) / self.weights

    @cached_property
    def _inverse(self) -> Matrix:
        assert self.encoder is not None
        return invert(self.encoder)

    @cached_property
    def _block(self) -> Matrix:
        assert self.reflectors is not None
        return compact(self.reflectors)

    def reach(self, errors: ArrayLike) -> float:
        """Return how far errors of the values can move the code, in the L1 norm.

        Parameters
        ----------
        errors : array-like of shape (d,)
            The largest error of each value, as an absolute number.

        Returns
        -------
        float
            The norm where no errors cancel; other norms are at most as large.
        """
        e = np.abs(np.array(errors, dtype=np.float64)).ravel()
        return float(e.sum() if self.encoder is None else self._column_sums @ e)

    @cached_property
    def _column_sums(self) -> Matrix:
        """The sum of absolute values in each column of a code."""
        assert self.encoder is not None
        sums = np.zeros(self.encoder.shape[-1])
        for row in np.atleast_2d(self.encoder):
            sums += np.abs(row)
        return sums

    def covariances(self) -> Iterator[tuple[slice, Matrix]]:
        """Yield the prior covariances of values and code, where the encoder is no diagonal.

        Yields
        ------
        values : slice
            Which values: all at once, but of very many some at a time.
        covariances : ndarray of shape (n_values, k)
            Of each of them with each number of the code.
        """
        if self.covariance is None or self.encoder is None:
            return
        if self.units is None or self.outside is None:
            yield slice(None), self.covariance
            return
        k, d = self.encoder.shape
        width = max(1, _BLOCK // max(k, 1))
        for values in (slice(start, start + width) for start in range(0, d, width)):
            block = self.encoder[:, values] * self.units[values]
            block *= self.covariance[:, None] + self.outside[values]
            block *= self.units[values]
            yield values, block.T

    def decode(self, noisy: ArrayLike, variance: float = 0.0, kurtosis: float = LAPLACE) -> Matrix:
        """Return what is made of a noisy code: by the prior, or by the inverse of a basis.

        A prior that the code contradicts is widened, along each axis of the code by itself: the
        release of a dataset that is unlike the oracle's is then shrunk less.

        Parameters
        ----------
        noisy : array-like of shape (k,)
            A code with noise.
        variance : float in [0, inf), default=0.0
            Of the noise in each of its numbers, which a basis does not use. With none the k numbers
            are met as far as the prior lets the values vary, and all values are exact if they are
            as many.
        kurtosis : float in [0, 3], default=3.0
            Of the noise, in excess of that of normal noise: 3 for Laplace noise.

        Returns
        -------
        ndarray of shape (d,)
            The decoded value, as a vector.
        """
        y = np.array(noisy, dtype=np.float64)
        if self.encoder is None:
            return y
        if self.mean is None:
            if self.reflectors is not None and self.weights is not None:
                y = reflect(y * self.weights, self.reflectors, self._block)
            return self._inverse @ y if self.encoder.ndim == 2 else y / self.encoder
        if variance == 0 and self._reaches_all:
            return self.mean + (y / self.encoder if self._undone is None else self._undone @ y)
        reading = self._spectrum.read(y, variance, self.shift, kurtosis)
        return self.mean + self._shrunk(y, reading.gains)

    def _shrunk(self, y: Matrix, gains: Matrix) -> Matrix:
        """By what the decoded value differs from the prior mean."""
        assert self.mean is not None
        assert self.deviations is not None
        spectrum = self._spectrum
        change = gains * spectrum.along(y)
        if self._undone is not None:
            # As C is S T', but a huge number does not spill as much of its rounding over others.
            return (self.deviations > 0) * (
                self._undone @ spectrum.back(spectrum.variances * change)
            )
        change = spectrum.back(change)
        away = np.zeros_like(self.mean)
        if self.covariance is None:
            away[self._kept] = self._loadings * change
        for values, covariances in self.covariances():
            away[values] = covariances @ change
        return away

    def noise_columns(self, deviation: float, columns: Matrix) -> Matrix:
        """Return what is decoded of columns of noise, while it does not widen the prior.

        Parameters
        ----------
        deviation : float in (0, inf)
            Standard deviation of the noise in each number of the code.
        columns : ndarray of shape (k, n_columns)
            Of unit noise.

        Returns
        -------
        ndarray of shape (d, n_columns)
            In the units of the values.
        """
        if self.encoder is None:
            return deviation * columns
        decode: Callable[[Matrix], Matrix] = self.decode
        if self.has_prior:
            reading = self._spectrum.read(None, deviation**2, self.shift, LAPLACE)
            decode = partial(self._shrunk, gains=reading.gains)
        return deviation * np.stack([decode(each) for each in columns.T], axis=1)

    def standard_errors(
        self, variance: float, noisy: ArrayLike | None = None, kurtosis: float = LAPLACE
    ) -> Matrix | None:
        """Return the standard deviation of the error of each decoded value, if the prior holds.

        Parameters
        ----------
        variance : float in [0, inf)
            Of the noise in each number of the code.
        noisy : array-like of shape (k,) or None, default=None
            The code that was released, by which the prior may be widened. None leaves it as it is:
            the errors before a release.
        kurtosis : float in [0, 3], default=3.0
            As for `decode`.

        Returns
        -------
        ndarray of shape (d,) or None
            In the units of the values. None for the identity, where all are that of the noise, and
            in a predictive basis of more than 2,000 values.
        """
        if self.encoder is None:
            return None
        if self.deviations is None:
            if self.encoder.ndim == 1 and self.reflectors is None:
                return np.sqrt(variance) / np.abs(self.encoder)
            if len(self.encoder) > _MAX_SPREAD:
                return None
            inverse = np.array([self.decode(unit) for unit in np.eye(len(self.encoder))])
            return np.sqrt(variance * np.sum(inverse**2, axis=0))
        if variance == 0 and self._reaches_all:
            return np.zeros(self.encoder.shape[-1])
        spectrum = self._spectrum
        reading = spectrum.read(noisy, variance, self.shift, kurtosis)
        scale = 1 / np.where(self.deviations > 0, self.deviations, np.inf)
        left = np.full_like(self.deviations, reading.wider)
        if self.covariance is None:
            left[self._kept] = reading.left
        for values, covariances in self.covariances():
            loadings = covariances @ spectrum.axes
            loadings *= scale[values, None]  # in place: it may be large
            loadings *= loadings
            left[values] = spectrum.left_open(loadings, reading, self._reaches_all)
        return self.deviations * np.sqrt(np.maximum(left, 0))

    def share_learned(
        self, variance: float, noisy: ArrayLike | None = None, kurtosis: float = LAPLACE
    ) -> float:
        """Return how much of the decoded value comes from the private data.

        Parameters
        ----------
        variance : float in [0, inf)
            Of the noise in each number of the code.
        noisy : array-like of shape (k,) or None, default=None
            As for `standard_errors`.
        kurtosis : float in [0, 3], default=3.0
            As for `decode`.

        Returns
        -------
        float in [0, 1]
            The share of the prior variance of the output that a release takes away; 1 where there
            is no prior.
        """
        if not self.has_prior:
            return 1.0
        gains = self._spectrum.read(noisy, variance, self.shift, kurtosis).gains
        return float(np.clip(gains @ self._spectrum.removable, 0, 1))

    @property
    def _reaches_all(self) -> bool:
        """Whether a code without noise says all values."""
        assert self.encoder is not None
        by_number = self.encoder.ndim == 1 and self.n_released == self.size
        return by_number or self._undone is not None

    @cached_property
    def _undone(self) -> Matrix | None:
        """The inverse of a square matrix, if there is one."""
        assert self.encoder is not None
        if self.encoder.ndim == 2 and self.n_released == self.size:
            with suppress(ValueError):
                return self._inverse
        return None

    @property
    def _loadings(self) -> Matrix:
        """The prior covariance of each value that a diagonal encoder keeps, and its number."""
        assert self.encoder is not None
        assert self.deviations is not None
        return self.deviations[self._kept] ** 2 * self.encoder[self._kept]

    @cached_property
    def _spectrum(self) -> Spectrum:
        assert self.encoder is not None
        assert self.removable is not None
        if self.covariance is None:
            return Spectrum(None, self._loadings * self.encoder[self._kept], self.removable)
        code: Any = sum(self.encoder[:, values] @ block for values, block in self.covariances())
        variances, axes = principal_axes((code + code.T) / 2)
        removable = np.sum(axes * (self.removable @ axes), axis=0)
        return Spectrum(axes, np.maximum(variances, 0), np.maximum(removable, 0))

    @cached_property
    def digest(self) -> str:
        """Twelve hexadecimal digits that tell codes apart; empty for the identity."""
        if self.encoder is None:
            return ""
        sha = hashlib.sha256()
        for name in _PARTS:
            part = getattr(self, name)
            if part is not None:
                sha.update(f"{name}{part.shape}".encode())
                for row in np.atleast_2d(part):  # no copy of a huge encoder
                    sha.update(row.astype("<f8", copy=False))
        return sha.hexdigest()[:12]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PublicCode):
            return NotImplemented
        return self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[str, int, float, str]:
        return self.kind, self.n_pilot_pairs, self.shift, self.digest

    def __repr__(self) -> str:
        size = f", {self.n_released} of {self.size} numbers" if self.has_prior else ""
        pilots = f", n_pilot_pairs={self.n_pilot_pairs}" if self.n_pilot_pairs else ""
        return f"PublicCode({self.kind!r}{size}{pilots})"

    def __str__(self) -> str:
        if self.has_prior:
            return (
                f"{self.n_released} of {self.size} directions, decoded by a prior from "
                f"{self.n_pilot_pairs} public fits"
            )
        if not self.n_pilot_pairs:
            return f"{self.kind} basis"
        how = "kept after" if self.kind == "identity" else "learned from"
        return f"{self.kind} basis {how} {self.n_pilot_pairs} pilot pairs"

    def __setstate__(self, state: dict[str, Any]) -> None:
        for part in state.values():  # a pickle forgets that they must not be written into
            if isinstance(part, np.ndarray):
                part.flags.writeable = False
        vars(self).update(state)

    def __deepcopy__(self, memo: Any) -> PublicCode:
        # it may be large, and keeps nothing but what it is made of; a subclass might
        return self if type(self) is PublicCode else replace(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the code as plain values, ready for JSON.

        Returns
        -------
        dict
            One entry per parameter that is not None.
        """
        parts = {name: getattr(self, name) for name in _PARTS}
        lists = {name: part.tolist() for name, part in parts.items() if part is not None}
        origin = {"kind": self.kind, "n_pilot_pairs": self.n_pilot_pairs, "shift": self.shift}
        return origin | lists

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> PublicCode:
        """Make a code from the values of :meth:`to_dict`.

        Parameters
        ----------
        values : dict
            As returned by :meth:`to_dict`.

        Returns
        -------
        PublicCode
            Equal to the one that was stored, bit for bit.
        """
        return cls(**values)


def _shortened(encoder: NDArray[Any]) -> NDArray[Any]:
    """Keep a large matrix in single precision if that loses nothing."""
    if encoder.ndim != 2 or encoder.shape[1] <= _MAX_SPREAD or encoder.dtype == np.float32:
        return encoder
    with np.errstate(over="ignore"):
        single = encoder.astype(np.float32)
    return single if np.array_equal(single, encoder) else encoder
