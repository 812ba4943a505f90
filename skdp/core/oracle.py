"""The oracle: where plausible records come from."""

from __future__ import annotations

from abc import ABC, abstractmethod

from numpy.random import Generator
from numpy.typing import NDArray

from skdp.core.default import CLASS_NAME
from skdp.core.types import Sample


class Oracle(ABC):
    """A source of plausible, non-sensitive records.

    An oracle of your own inherits from this class and says how it draws, or is a plain function.
    Its records must be exchangeable: their order must mean nothing. It must not be derived from the
    private data.

    Attributes
    ----------
    description : str
        What the guarantee calls it; it shows no record. By default the name of the class.
    classes_ : ndarray or None
        The sorted class labels that it draws from. By default they are not known.
    independent_records : bool
        Whether its records are independent. False, the default, for a dataset-level oracle, which
        draws parameters of the whole dataset first. It is not inherited: a subclass says so anew.

    See Also
    --------
    PublicDataOracle : Draws from a public table.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Oracle
    >>> class Incomes(Oracle):
    ...     independent_records = True
    ...     def __call__(self, n_samples, rng):
    ...         return rng.exponential(size=(n_samples, 1))
    >>> Incomes().description, Incomes()(3, np.random.default_rng(0)).shape
    ('Incomes', (3, 1))
    """

    description: str = CLASS_NAME
    classes_: NDArray | None = None
    independent_records: bool = False

    @abstractmethod
    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        """Draw records.

        Parameters
        ----------
        n_samples : int
            Their number.
        rng : numpy.random.Generator
            Where all randomness comes from: the same state gives the same records in any process.

        Returns
        -------
        X, (X, y) or (X, y, sample_weight)
            Containers of `n_samples` records, responses and weights.
        """


def has_independent_records(oracle: object) -> bool:
    """Return whether an oracle, or its own class, says that its records are independent."""
    own = vars(type(oracle)) | getattr(oracle, "__dict__", {})
    copied = "__wrapped__" in own  # by functools.wraps, from the function that is called
    return own.get("independent_records", False) is True and not copied
