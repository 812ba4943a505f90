"""The names of output features, where one class takes the place of another."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp._classes import public_name


class NamedAsTheirs:
    """Output features that have the names of the class that another one stands in for.

    A mixin: ``class Mine(NamedAsTheirs, Theirs)``. Many classes of scikit-learn name what they give
    after themselves, as in "pca0".

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> from skdp.targets._naming import NamedAsTheirs
    >>> class Mine(NamedAsTheirs, PCA):
    ...     pass
    >>> Mine().fit([[0.0, 1.0], [2.0, 1.0]]).get_feature_names_out()
    array(['pca0', 'pca1'], dtype=object)
    """

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Name the features that transform returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            As in the class that this one stands in for.

        Returns
        -------
        ndarray of str
            The names.
        """
        names = super().get_feature_names_out(input_features)  # type: ignore[misc]
        own = type(self).__name__.lower()
        theirs = next(kind.__name__.lower() for kind in type(self).__mro__ if public_name(kind))
        return np.asarray([re.sub(f"^{own}", theirs, name) for name in names], dtype=object)
