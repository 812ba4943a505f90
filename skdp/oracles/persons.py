"""The oracle for persons when no public persons are known."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from skdp.core.checks import floats, shown
from skdp.core.dataset import Dataset, as_dataset
from skdp.core.types import Sample
from skdp.oracles.adapters import as_oracle
from skdp.oracles.shipped import ShippedOracle


class PersonsOracle(ShippedOracle):
    """Make up persons of the records of another oracle, which have nothing in common.

    For a release with groups where public records are not of known persons. It covers no persons
    whose records are alike: where there may be such, take public persons, as
    ``PublicDataOracle(X, y, groups=...)`` does.

    Parameters
    ----------
    oracle : callable, frozen scipy.stats distribution or fitted estimator with `sample`
        Source of the records.
    sizes : array-like of int of at least 1, shape (n_sizes,)
        Public guesses of the number of records of a person, each as likely as any other.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import PersonsOracle, UniformOracle
    >>> oracle = PersonsOracle(UniformOracle([(0, 1)]), sizes=[1, 2, 2, 5])
    >>> X, _, _, groups = oracle(3, np.random.default_rng(0))
    >>> X.shape, groups.tolist()
    ((9, 1), [0, 0, 0, 0, 0, 1, 1, 2, 2])
    """

    def __init__(self, oracle: object, sizes: ArrayLike) -> None:
        self.source, numbers = as_oracle(oracle), floats(sizes)
        fits = numbers is not None and numbers.ndim == 1 and numbers.size > 0
        if numbers is None or not (fits and np.all((numbers >= 1) & (numbers == np.rint(numbers)))):
            self._refuse("sizes", "list whole numbers of at least 1", shown(sizes))
        self._sizes = numbers.astype(np.intp)
        self.classes_ = self.source.classes_
        self.responses = getattr(self.source, "responses", "")
        self.y_scale = getattr(self.source, "y_scale", None)
        sizes = f"{self._sizes.min()} to {self._sizes.max()} unrelated records of a person"
        super().__init__(self.source.description, sizes)

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        """Return the records of `n_samples` persons, and the numbers of the persons."""
        counts = rng.choice(self._sizes, n_samples)
        sample = self.source(int(counts.sum()), rng)
        drawn = as_dataset(sample, f"What the oracle {self.source.description} returns")
        return Dataset(*drawn[:3], groups=np.repeat(np.arange(n_samples), counts))
