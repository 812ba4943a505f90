"""The public twin: the estimator fitted on records that are nobody's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skdp._data import column_names

# Synthetic records need not be many: they only give the twin its shape.
N_SYNTHETIC = 100


def synthetic_dataset(X: Any, y: Any, classes: NDArray | None) -> tuple:
    """Make records of the declared shape, from public metadata alone.

    Read from X and y are the number of records, the number and names of the columns, the kind of
    container and the number of outputs. No entry of them is looked at.

    Parameters
    ----------
    X : array-like, sparse or data frame of shape (n_samples, n_features)
        The private records.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), or None
        The private responses.
    classes : ndarray of shape (n_classes,) or None
        The class labels, which are public; None where the response is real.

    Returns
    -------
    tuple
        ``(X,)`` or ``(X, y)``: uniform features on [0, 1]; every class as often as any other, or
        real responses around 1.
    """
    rng = np.random.default_rng(0)
    n_classes = 0 if classes is None else len(classes)
    n_samples = min(X.shape[0], N_SYNTHETIC + 2 * n_classes)
    features = _like(rng.uniform(size=(n_samples, X.shape[1])), X)
    if y is None:
        return (features,)
    shape = (n_samples, *np.shape(y)[1:])
    if classes is None:
        return features, rng.uniform(0.5, 1.5, size=shape)
    return features, np.resize(classes, shape)


def fit_twin(estimator: Any, dataset: tuple) -> Any:
    """Fit a clone of `estimator` on public records.

    A twin that has not converged serves as well as another, so that warning is not shown.

    Parameters
    ----------
    estimator : estimator object
        Already cloned and rid of side effects.
    dataset : tuple
        Public records.

    Returns
    -------
    estimator object
        `estimator`, fitted.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(*dataset)


def _like(features: NDArray, X: Any) -> Any:
    """Put the features into the kind of container that X is, under the same column names."""
    if sparse.issparse(X):
        kind = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
        made = kind(features).asformat(X.format)
        for index in ("indices", "indptr", "row", "col"):
            if hasattr(X, index):  # some solvers take indices of one width only
                setattr(made, index, getattr(made, index).astype(getattr(X, index).dtype))
        return made
    names = column_names(X)
    if names is None:
        return features
    return type(X)(dict(zip(names, features.T, strict=True)))
