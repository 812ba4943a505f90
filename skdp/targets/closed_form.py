"""Pair differences without refits: targets that are functions of moments.

The value of such a target depends on the dataset only through the mean of features u(x_i, y_i) of
its records, or through the mean of their products u u'. Replacing a record then moves two terms of
a sum. The mean itself (:class:`AdditiveTarget`), naive Bayes and scalers use the features; least
squares, discriminant analysis and covariances use their products.

A closed form stands in for refits only where it gives the same differences to 1e-8. It is tried
on the first pair of each run, and on every pair it says how far its difference may be off: sums
lose digits where records lie far from the origin, and equations where they are nearly singular.
Where it is too far off or has no value (NaN), and wherever the parameters of the estimator are not
known to allow it, the estimator is refitted.

The error of a difference is found by doing again all that rounding may have done, on a larger
scale: the sums of both datasets are moved together by what adding up n terms may lose, and apart by
what the operations thereafter may, each relative to the sum of the absolute values of its terms.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._data import Dataset, n_records, take_records
from skdp._target import KeyedTarget, as_function_target
from skdp.targets._closed_forms import ClosedForm, closed_forms
from skdp.targets._units import EXACT, TINY, Records, robust_units

TOLERANCE = 1e-8
"""Largest error of a difference, in units of its largest coordinate, or of its norm."""

ROWS_TOLERANCE = 1e-4
"""Of the largest entry: what rows may differ by in another batch, in single precision."""

UNIT = 2.0**-53
"""Largest relative error of one operation."""

APART = 32 * UNIT
"""By how much sums are moved apart: ten times what the few operations on each of them lose."""

MEANINGLESS = 1e-6
"""Of a value: what rounding may move by more is rounding, even where records are equal."""

FAR_ORIGIN = 2.0**26
"""Of a unit: about an origin further away, refits by products lose half of their digits too."""

FAR = 16.0
"""Records beyond so many units are left out of the trial, which is about formulas, not digits."""


class Moments:
    """How a target follows from sums over the records.

    Parameters
    ----------
    features : callable
        ``features(X)`` or ``features(X, y)`` returns u, shape (n_records, n_features). It may
        not look from one record at another.
    values : callable
        ``values(sums, n_samples)`` maps a batch of sums over the records, each of shape
        (n_features,), or (n_features, n_features) when `products`, to values of the target. NaN
        where it cannot.
    products : bool, default=False
        Whether the sums are those of the products u u'.
    linear : bool, default=False
        Whether the value is linear in the sum, so that a difference takes two records only.
    total : callable or None, default=None
        ``total(X)`` or ``total(X, y)`` returns the sum over the records, shape (n_features,), where
        that takes less memory than their features. Not for `products`.
    sizes : callable or None, default=None
        ``sizes(sums, n_samples)`` bounds the sums of the absolute values, of the shape of a batch
        of sums. None takes features that do not change their sign, and any `products`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.targets.closed_form import Moments
    >>> variance = Moments(
    ...     lambda X: np.hstack([X, X**2]), lambda s, n: s[:, 1:] / n - (s[:, :1] / n) ** 2
    ... )
    >>> variance.pair((np.array([[0.0], [2.0], [4.0]]),))
    (array([1.]), array([4.]))
    """

    def __init__(
        self,
        features: Callable[..., NDArray[np.float64]],
        values: Callable[[NDArray, int], NDArray[np.float64]],
        *,
        products: bool = False,
        linear: bool = False,
        total: Callable[..., NDArray[np.float64]] | None = None,
        sizes: Callable[[NDArray, int], NDArray[np.float64]] | None = None,
    ):
        self.features = features
        self.values = values
        self.products = products
        self.linear = linear
        self.total = total
        self.sizes = sizes or (_sizes_of_products if products else _sizes_of_sums)

    def sum(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up features, or their products, over the records of each dataset.

        Parameters
        ----------
        features : ndarray of shape (n_datasets, n_records, n_features)
            The features u.

        Returns
        -------
        ndarray of shape (n_datasets, n_features) or (n_datasets, n_features, n_features)
            The sums.
        """
        if self.products:
            return features.transpose(0, 2, 1) @ features
        return features.sum(axis=1)

    def pair(self, records: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate the target on the two neighboring datasets of n + 1 records.

        Parameters
        ----------
        records : tuple of containers of n_samples + 1 records each
            As drawn.

        Returns
        -------
        value, other : ndarray of float
            The two values; NaN where the closed form does not hold or is inaccurate.
        """
        common, last = self.split(records)
        found = self.pairs(common[None], last[None], n_records(records[0]) - 1)
        value, other, doubt = (each[0] for each in found)
        if np.abs(doubt).max() <= np.abs(value - other).max():
            return value, other
        return np.full_like(value, np.nan), np.full_like(other, np.nan)

    def split(self, records: Dataset) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Add up what the two neighboring datasets of n + 1 records share.

        Parameters
        ----------
        records : tuple of containers of n_samples + 1 records each
            As drawn.

        Returns
        -------
        common : ndarray of shape (n_features,) or (n_features, n_features)
            The sum over all but the last two records.
        last : ndarray of shape (2, n_features)
            The features of these two.
        """
        if self.total is None:
            features = self.features(*records)
            return self.sum(features[None, :-2])[0], features[-2:]
        place = np.arange(n_records(records[0]))
        shared, last = (
            [take_records(container, some) for container in records]
            for some in (place[:-2], place[-2:])
        )
        return self.total(*shared), self.features(*last)

    def pairs(
        self, common: NDArray[np.float64], last: NDArray[np.float64], n_samples: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Evaluate the target on many pairs at once.

        Parameters
        ----------
        common : ndarray of shape (n_pairs, ...)
            Sums over the n - 1 records that both datasets of a pair hold.
        last : ndarray of shape (n_pairs, 2, n_features)
            Features of the two records in which they differ.
        n_samples : int
            Number of records of a dataset.

        Returns
        -------
        value, other : ndarray of shape (n_pairs, ...)
            The two values of each pair.
        doubt : ndarray of shape (n_pairs, ...)
            How far rounding may have moved their difference, divided by `TOLERANCE`: a pair of
            which this is larger than the difference is inaccurate. NaN where it cannot be told.
        """
        both = [common + self.sum(last[:, j : j + 1]) for j in range(2)]
        same = (last[:, 0] == last[:, 1]).all(axis=1)
        if self.linear:  # what the common records lose, both values lose
            value, other = (self.values(sums, n_samples) for sums in both)
            error = APART * (np.abs(value) + np.abs(other))
        else:
            moved = self._moved(both, n_samples)
            values = self.values(np.concatenate([*both, *moved]), n_samples)
            value, other, *shaken = np.split(values, 4)
            error = (shaken[0] - shaken[1]) - (value - other)
            error = error + 4 * UNIT * (np.abs(value) + np.abs(other) + TINY)
            same &= (np.abs(last[:, 0]) <= EXACT).all(axis=1)
            same &= _sizes(shaken[0] - value) <= MEANINGLESS * _sizes(value)
        doubt = error / TOLERANCE
        doubt[same] = 0.0
        return value, other, doubt

    def _moved(self, both: list[NDArray], n_samples: int) -> list[NDArray[np.float64]]:
        """Move the sums of both datasets by what rounding may do, together and apart."""
        # the same for all pairs, of no pattern that could cancel
        directions = np.random.default_rng(0).uniform(0.5, 1.5, size=(3, *both[0].shape[1:]))
        directions *= np.where(directions < 1, -1.0, 1.0)
        if self.products:
            lower = np.tril_indices(directions.shape[1])
            directions[:, *lower] = directions.transpose(0, 2, 1)[:, *lower]
        together = n_samples * UNIT * directions[2]
        return [
            sums + (self.sizes(sums, n_samples) + TINY) * (together + APART * apart)
            for sums, apart in zip(both, directions, strict=False)
        ]


def _sizes(values: NDArray) -> NDArray[np.float64]:
    """Return the largest coordinate of each value."""
    return np.abs(values).reshape(len(values), -1).max(axis=1, initial=0.0)


def _sizes_of_sums(sums: NDArray, n_samples: int) -> NDArray[np.float64]:
    return np.abs(sums)


def _sizes_of_products(sums: NDArray, n_samples: int) -> NDArray[np.float64]:
    """Bound the sums of |u_j u_k| by Cauchy and Schwarz."""
    roots = np.sqrt(np.diagonal(sums, axis1=1, axis2=2))
    return roots[:, :, None] * roots[:, None, :]


class AdditiveTarget(KeyedTarget):
    """A mean over the records, as a target: f(D) = (1/n) sum of phi(x_i).

    Means, moments, histograms and kernel densities on a lattice are of this kind. A pair of
    neighboring datasets differs by (phi(x_n) - phi(x_{n+1})) / n, so with an oracle of independent
    records (one that says so by ``independent_records = True``, as the shipped oracles of records
    do) two records make a pair, and all pairs are evaluated at once.

    Parameters
    ----------
    phi : callable
        ``phi(X)`` or ``phi(X, y)`` returns one row of floats per record: shape (n_records,) or
        (n_records, ...). A row may depend on its own record only. A :class:`FunctionTarget`
        brings a key of its own.

    Raises
    ------
    TypeError
        If `phi` cannot be called.
    ValueError
        When sampled, if a row of `phi` depends on other records, or on their number or order.

    See Also
    --------
    skdp.release : Releases the value.

    Examples
    --------
    A histogram of 50,000 pairs, in a blink:

    >>> import numpy as np
    >>> from skdp import AdditiveTarget, LaplaceMechanism, release
    >>> from skdp import SensitivitySampler, UniformOracle
    >>> def histogram(X):
    ...     return np.eye(4)[(4 * X[:, 0]).astype(int).clip(0, 3)]
    >>> X = np.random.default_rng(0).uniform(size=(1000, 1))
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), n_pairs=50_000, random_state=0)
    >>> released = release(
    ...     AdditiveTarget(histogram), X, mechanism=LaplaceMechanism(1.0), sensitivity=sampler
    ... )
    >>> round(released.sensitivity.value, 6), released.value.shape
    (0.002, (4,))
    """

    def __init__(self, phi: Callable):
        self._phi = as_function_target(phi)
        self.allow_nan = self._phi.allow_nan
        self.key_parts = (self._phi,)
        self.description = f"mean of {self._phi.description}"

    def __call__(self, *dataset: Any, seed: int = 0) -> NDArray[np.float64]:
        """Return the mean of phi over the records."""
        return self._rows(*dataset).mean(axis=0)

    def closed_form(self, *records: Any) -> Moments:
        """Return the moments it is made of: the rows of phi.

        Parameters
        ----------
        *records : X or X, y
            Any public records; they tell the shape of a row.

        Returns
        -------
        Moments
            Linear ones.
        """
        shape = self._rows(*records).shape[1:]
        return Moments(
            lambda *dataset: self._rows(*dataset).reshape(n_records(dataset[0]), -1),
            lambda sums, n_samples: (sums / n_samples).reshape(-1, *shape),
            linear=True,
        )

    def check_oracle(self, *records: Any) -> None:
        """Refuse a phi that does not take records one by one: it has no moments.

        Parameters
        ----------
        *records : X or X, y
            Public records.

        Raises
        ------
        ValueError
            If the rows of some records are others when these stand alone, in another order.
        """
        places = np.arange(n_records(records[0]))
        rows, alone = (
            self._rows(*(take_records(container, taken) for container in records))
            for taken in (places, places[::-2])
        )
        expected = rows[places[::-2]]
        error = ROWS_TOLERANCE * np.abs(expected[np.isfinite(expected)]).max(initial=0.0)
        if alone.shape != expected.shape or not np.allclose(
            alone, expected, rtol=0, atol=error, equal_nan=True
        ):
            raise ValueError(
                "The 'phi' parameter of AdditiveTarget must treat each record by itself. Here a "
                "row depends on other records, on how many there are, or on their order. Release "
                "the function of all records instead, such as lambda X: phi(X).mean(axis=0)."
            )

    def _rows(self, *dataset: Any) -> NDArray[np.float64]:
        rows = self._phi(*dataset, seed=0)
        if rows.shape[:1] != (n_records(dataset[0]),):
            raise ValueError(
                "The 'phi' parameter of AdditiveTarget must return one row for each record, shape "
                f"({n_records(dataset[0])}, ...). Got shape {rows.shape}."
            )
        return rows


def closed_form_of(target: Any, records: Dataset) -> Moments | None:
    """Find moments that give the differences of a parameter target.

    Parameters
    ----------
    target : ParameterTarget
        The fitted parameters of an estimator.
    records : tuple of containers of n_samples + 1 public records each
        They are the origin of the moments, and the trial: refits must give the same difference.

    Returns
    -------
    Moments or None
        None when no closed form is known for the estimator as configured, for the attributes
        released or for the kind of records, or when the trial fails.
    """
    if not all(map(_is_plain, records)) or records[0].ndim != 2:
        return None
    length, width = records[0].shape
    forms = closed_forms(target.estimator, (length - 1, width))
    if not forms:
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # as in every pair: see run_chunk
        try:
            units = _units(target, records)
            trial = _without_far(records, units)
            values = target.pair_values(trial, seed=0)
            if (np.abs(units.center) > FAR_ORIGIN * units.scale).any():
                forms = [form for form in forms if not form.products]
            candidates = [_bind(target, form, units) for form in forms]
            return next((m for m in candidates if _agrees(m, trial, *values)), None)
        except Exception:  # a first pair that fails is no trial: go on with refits
            return None


def _is_plain(container: Any) -> bool:
    """Tell whether a container is an array whose numbers the estimators read as doubles."""
    return (isinstance(container, np.ndarray) and container.dtype.kind in "iubUO") or (
        isinstance(container, np.ndarray) and container.dtype == np.float64
    )


def _units(target: Any, records: Dataset) -> Records:
    """Find the classes, or the unit of the response, and origin and unit of each column."""
    has_origin = getattr(target.estimator, "fit_intercept", True)
    center, scale = robust_units(records[0], has_origin)
    classes = getattr(target.twin, "classes_", None)
    response = (0.0, 1.0)
    if classes is None and len(records) > 1 and records[1].ndim == 1:
        origin, unit = robust_units(records[1][:, None], has_origin)
        response = float(origin[0]), float(unit[0])
    return Records(classes, center, scale, response)


def _without_far(records: Dataset, units: Records) -> Dataset:
    """Put others in the place of records that lie far from the origin."""
    near: NDArray = np.abs(units.standardize(records[0])).max(axis=1) <= FAR
    if units.classes is None and len(records) > 1 and records[1].ndim == 1:
        near &= np.abs(units.standardize_response(records[1])) <= FAR
    places = np.arange(len(near))
    places[~near] = np.resize(places[near], np.count_nonzero(~near))
    return tuple(take_records(container, places) for container in records)


def _agrees(moments: Moments, records: Dataset, *expected: NDArray[np.float64]) -> bool:
    """Compare both values and their difference: two equal records say little."""
    found = moments.pair(records)
    pairs = [*zip(found, expected, strict=True), (found[0] - found[1], expected[0] - expected[1])]
    return all(np.abs(a - b).max() <= TOLERANCE * np.abs(b).max() for a, b in pairs)


def _bind(target: Any, form: ClosedForm, units: Records) -> Moments:
    def features(*dataset: Any) -> NDArray[np.float64]:
        return form.features(units, *dataset)

    def values(sums: NDArray, n_samples: int) -> NDArray[np.float64]:
        return target.flatten_many(form.attributes(units, sums / n_samples, n_samples))

    def sizes(sums: NDArray, n_samples: int) -> NDArray[np.float64]:
        assert form.sizes is not None
        return form.sizes(units, sums, n_samples)

    return Moments(
        features, values, products=form.products, sizes=None if form.sizes is None else sizes
    )
