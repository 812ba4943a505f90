"""Means over the records as targets: two records make a pair."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import n_records, take_records
from skdp.core.target import Target, as_function_target, check_unlabeled
from skdp.core.types import Container

ROWS_TOLERANCE = 1e-4  # of the largest entry: a row may round so in another batch


class AdditiveTarget(Target):
    """A mean over the records, as a target: f(D) = (1/n) sum of phi(x_i).

    Means, moments, histograms and kernel densities on a lattice are of this kind. A pair of
    neighboring datasets differs by (phi(x_n) - phi(x_{n+1})) / n. So with an oracle of independent
    records, which says so by ``independent_records = True``, two records make a pair.

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
    The sensitivity of a histogram, sampled with 50,000 pairs:

    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> from skdp.functions import AdditiveTarget
    >>> from skdp import SensitivitySampler, UniformOracle
    >>> def histogram(X):
    ...     return np.eye(4)[(4 * X[:, 0]).astype(int).clip(0, 3)]
    >>> X = np.random.default_rng(0).uniform(size=(1000, 1))
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), n_pairs=50_000, random_state=0)
    >>> counts = LaplaceMechanism(1.0, code=None)
    >>> released = release(AdditiveTarget(histogram), X, mechanism=counts, sensitivity=sampler)
    >>> round(released.sensitivity.value, 6), released.value.shape
    (0.002, (4,))
    """

    is_mean = True

    def __init__(self, phi: Callable):
        self._phi = as_function_target(phi)
        self.allow_nan = self._phi.allow_nan
        self.key_parts = (self._phi,)
        self.description = f"mean of {self._phi.description}"

    def __call__(self, *dataset: Container, seed: int = 0) -> NDArray[np.float64]:
        """Return the mean of phi over the records."""
        return self._rows(*dataset).mean(axis=0)

    def check_oracle(self, *records: Container) -> None:
        """Refuse a function whose rows depend on other records."""
        # rows of records that are evaluated alone, or in another order, are the same
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

    def closed_form(self, *records: Container) -> Callable[..., NDArray[np.float64]]:
        n_samples = n_records(records[0]) - 1
        return lambda *dataset: self._rows(*dataset) / n_samples

    def _rows(self, *dataset: Container) -> NDArray[np.float64]:
        value = self._phi._call(*dataset, seed=0)
        if np.ndim(value) != 1:  # a series has the records for labels
            check_unlabeled(value, self._phi.description)
        rows = np.array(value, dtype=np.float64)
        if rows.shape[:1] != (n_records(dataset[0]),):
            raise ValueError(
                "The 'phi' parameter of AdditiveTarget must return one row for each record, shape "
                f"({n_records(dataset[0])}, ...). Got shape {rows.shape}."
            )
        return rows
