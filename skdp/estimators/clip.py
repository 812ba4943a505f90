"""Transformers that bring each record within public bounds, whatever it holds."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import validate_data

from skdp.core.checks import check_rules, is_real, shown
from skdp.core.dataset import summed_rows, validate_rows
from skdp.core.types import Container

EPS = float(np.finfo(np.float64).eps)
LEAST, MOST = 1e-100, 1e100  # radii for which no norm near the radius over- or underflows


class Clip(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of both clips, which learn nothing and refuse no record."""

    def fit(self, X: Container, y: Container = None) -> Self:
        """Check the parameters against the columns; nothing is learned."""
        self._check(self._rows(X, reset=True))
        return self

    def transform(self, X: Container) -> Container:
        """Return each record clipped by itself, in doubles; sparse records stay sparse."""
        rows = self._rows(X, reset=False)
        self._check(rows)
        return self._clip(rows)

    def _rows(self, X: Container, reset: bool) -> Container:
        """Return a copy in doubles without gaps."""
        validate = validate_data if reset else validate_rows
        formats = "csr", "csc", "coo", "bsr"
        rows = validate(
            self, X, accept_sparse=formats, dtype=np.float64, ensure_all_finite=False, copy=True
        )
        rows = rows.astype(np.float64, copy=False)  # sparse columns of pandas keep their type
        if not sparse.issparse(rows):
            return np.where(np.isnan(rows), 0.0, rows)
        rows = summed_rows(rows)
        rows.data[np.isnan(rows.data)] = 0.0
        return rows

    def _check(self, rows: Container) -> None:
        """Refuse parameters that are out of range."""
        raise NotImplementedError

    def _clip(self, rows: Container) -> Container:
        """Clip a copy of the records, dense or sparse."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


class ClipBox(Clip):
    """Move each value into the declared range of its column.

    A record that cannot occur, such as an age of 1000, then moves a model no further than one that
    can. With declared bounds some sensitivities are known on paper: see ``sensitivity="known"`` of
    :class:`PrivateEstimator`.

    No record is refused, since an error would tell that it is there: a missing number counts as 0
    and is clipped like any other, and an infinite one becomes the bound.

    Parameters
    ----------
    low : float or array-like of shape (n_features,)
        Lowest value, of all columns or column by column. Public: declare it, or take it from public
        records, never from the private ones.
    high : float or array-like of shape (n_features,)
        Highest value, as `low`.

    See Also
    --------
    ClipNorm : Clips the length of each record.

    Notes
    -----
    Nothing is learned, so `transform` works without `fit`. Sparse records need ranges that hold 0.

    Examples
    --------
    >>> from skdp import ClipBox
    >>> ClipBox([0, 18], [1, 98]).fit_transform([[2.0, 1000.0], [0.5, float("nan")]])
    array([[ 1. , 98. ],
           [ 0.5, 18. ]])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike):
        self.low = low
        self.high = high

    def inverse_transform(self, X: Container) -> Container:
        """Return the records as they are, as a TransformedTargetRegressor asks for."""
        return X

    def _check(self, rows: Container) -> None:
        low, high = ranges_of(self, rows.shape[1])
        if sparse.issparse(rows) and ((low > 0) | (high < 0)).any():
            raise ValueError(
                "The 'low' and 'high' parameters of ClipBox must have 0 between them where X is "
                f"sparse, or else clipping would fill it. Got low={shown(self.low)}, "
                f"high={shown(self.high)}."
            )

    def _clip(self, rows: Container) -> Container:
        low, high = ranges_of(self, rows.shape[1])
        if not sparse.issparse(rows):
            return np.clip(rows, low, high)
        rows.data = np.clip(rows.data, low[rows.indices], high[rows.indices])
        return rows


def ranges_of(clip: ClipBox, n_features: int) -> NDArray[np.float64]:
    """Return the lowest and the highest values of the columns, two rows; refuse others."""
    try:
        ends = np.array(
            [
                np.broadcast_to(np.asarray(end, dtype=np.float64), n_features)
                for end in (clip.low, clip.high)
            ]
        )
    except (TypeError, ValueError):
        ends = np.full((2, n_features), np.nan)
    if not np.isfinite(ends).all() or (ends[0] > ends[1]).any():
        raise ValueError(
            "The 'low' and 'high' parameters of ClipBox must be finite numbers, one for all or "
            f"one for each of the {n_features} columns, with low at most high. Got "
            f"low={shown(clip.low)}, high={shown(clip.high)}."
        )
    return ends


class ClipNorm(Clip):
    """Shorten each record that is longer than a public radius.

    Directions stay, so this suits records that a public scaler has brought to one scale. With a
    declared radius some sensitivities are known on paper: see ``sensitivity="known"`` of
    :class:`PrivateEstimator`.

    No record is refused, since an error would tell that it is there: a missing number counts as 0,
    and infinite ones leave the finite ones of their record no weight.

    Parameters
    ----------
    radius : float in [1e-100, 1e100], default=1.0
        Largest Euclidean norm. Public: declare it, or take it from public records.

    See Also
    --------
    ClipBox : Clips each value.

    Notes
    -----
    Nothing is learned, so `transform` works without `fit`. No norm exceeds the radius, neither the
    exact one of the returned doubles nor a computed one: a record is taken for too long unless it
    is shorter by more than rounding may hide, and is then shortened by a little more than that.

    Examples
    --------
    >>> from skdp import ClipNorm
    >>> ClipNorm().fit_transform([[3.0, 4.0], [0.3, 0.4]])
    array([[0.6, 0.8],
           [0.3, 0.4]])
    """

    def __init__(self, radius: float = 1.0):
        self.radius = radius

    def _check(self, rows: Container) -> None:
        fits = is_real(self.radius) and LEAST <= float(self.radius) <= MOST
        rule = f"be a number in [{LEAST}, {MOST}]"
        check_rules("ClipNorm", radius=(self.radius, fits, rule))

    def _clip(self, rows: Container) -> Container:
        n_rows, n_features = rows.shape
        if sparse.issparse(rows):
            entries, owner = rows.data, np.repeat(np.arange(n_rows), np.diff(rows.indptr))
            largest = np.zeros(n_rows)
            np.maximum.at(largest, owner, np.abs(entries))
        else:
            entries, owner = rows, np.arange(n_rows)[:, None]
            largest = np.abs(rows).max(axis=1)
        infinite = np.isinf(largest)
        # the power of two near the largest entry, by which to multiply is exact
        exponents = np.frexp(np.where(infinite, 1.0, largest))[1]
        entries = np.where(infinite[owner], np.isinf(entries) * np.sign(entries), entries)
        scaled = _times_power(entries, -exponents[owner])
        squares = scaled * scaled
        is_dense = squares.ndim == 2
        norms = np.sqrt(
            squares.sum(axis=1) if is_dense else np.bincount(owner, squares, minlength=n_rows)
        )
        radius, room = float(self.radius), EPS * (n_features + 8)
        too_long = infinite | (_times_power(norms * (1 + room), exponents) > radius)
        shorter = radius * (1 - 2 * room)
        factors = np.divide(shorter, norms, out=np.zeros_like(norms), where=too_long)
        clipped = np.where(too_long[owner], scaled * factors[owner], entries)
        if is_dense:
            return clipped
        rows.data = clipped
        return rows


def _times_power(numbers: NDArray[np.float64], exponents: NDArray) -> NDArray[np.float64]:
    """Multiply by powers of two, which is exact but for what is far too large or too small."""
    with np.errstate(over="ignore", under="ignore"):  # infinite or 0, as a bound takes them
        return np.ldexp(numbers, exponents)
