"""An oracle of public records: the best choice where there are any."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skdp.core.checks import LONGEST, shown
from skdp.core.dataset import n_columns, n_records, take_records
from skdp.core.types import Container, Sample
from skdp.oracles.shipped import ShippedOracle, as_persons


class PublicDataOracle(ShippedOracle):
    """Resample the records of a public table, with replacement.

    The promise is then about pairs of datasets drawn from the empirical distribution of that table.
    It must not be the private table, nor a view of it, which is refused, nor a copy, which is not
    noticed.

    Parameters
    ----------
    X : array-like, sparse matrix, or frame of pandas or polars, shape (n_records, n_features)
        The public records. Referenced, not copied (lists are).
    y : array-like or series, shape (n_records,) or (n_records, n_outputs), default=None
        Their responses. With None the oracle returns `X` alone.
    groups : array-like of shape (n_records,), str or None, default=None
        The ids of the persons whom the records belong to, or the name of the column of X that has
        them. The oracle then resamples persons, each with all records, for a release with groups.
    name : str or None, default=None
        Name of the table in the guarantee, such as ``"census 2011"``.

    Attributes
    ----------
    classes_ : ndarray or None
        The sorted labels in `y`; None without `y`, or when `y` holds fractions or gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PublicDataOracle
    >>> oracle = PublicDataOracle(np.eye(3), ["a", "b", "b"])
    >>> oracle
    PublicDataOracle(n_records=3, n_features=3, labeled)
    >>> X, y = oracle(5, np.random.default_rng(0))
    >>> X.shape, y.shape
    ((5, 3), (5,))
    """

    independent_records = True

    def __init__(
        self,
        X: Container,
        y: Container = None,
        *,
        groups: Container = None,
        name: str | None = None,
    ) -> None:
        if name is not None and not (isinstance(name, str) and len(name) <= LONGEST):
            self._refuse("name", "be a short string", shown(name))
        self._X = self._checked_table(X)
        self._y = None if y is None else self._checked_table(y)
        self._n_records, width = n_records(self._X), n_columns(self._X)
        if y is not None and n_records(self._y) != self._n_records:
            self._refuse("y", f"hold {self._n_records} records, as X does", n_records(self._y))
        self._persons, self._n_units = as_persons(self._X, self._y, groups), self._n_records
        if self._persons is not None:
            self._n_units, width = self._persons.n_records, n_columns(self._persons.rows.X)
        self.name = name
        self.classes_ = None if y is None else _labels_of(self._y)
        super().__init__(
            "" if name is None else repr(name),
            f"n_records={self._n_records}",
            "" if self._persons is None else f"n_persons={self._n_units}",
            "" if width is None else f"n_features={width}",
            "" if y is None else "labeled",
        )

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        """Return `n_samples` records, or persons, picked uniformly, with responses if any."""
        # truncation, so no record is likelier than another by more than 2**-53
        indices = (rng.random(n_samples) * self._n_units).astype(np.intp)
        if self._persons is not None:
            return self._persons.take(indices).dataset
        X = take_records(self._X, indices)
        return X if self._y is None else (X, take_records(self._y, indices))


def _labels_of(y: Container) -> NDArray | None:
    """Return the sorted labels, or None when `y` is a response in the reals."""
    values = np.asarray(y)
    if values.ndim != 1 or (values.dtype.kind == "f" and not np.all(values == np.rint(values))):
        return None
    return np.unique(values)
