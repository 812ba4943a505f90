"""Estimators made of released lattice values: all they hold is the basis and its coefficients."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import Tags

from skdp.core.types import Container
from skdp.functions.bernstein import BernsteinTransformer


class ReleasedFunction(BaseEstimator):
    """Base of the released estimators, whose `fit` does nothing, so that they hold no records."""

    def __init__(self, transformer: BernsteinTransformer, coefficients: ArrayLike):
        self.transformer = transformer
        self.coefficients = coefficients

    def fit(self, X: Container = None, y: Container = None) -> Self:
        """Do nothing: a released function does not change."""
        return self

    def evaluate(self, X: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the function at points of the box, one row each."""
        return self.transformer.evaluate(self.coefficients, X)

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the box."""
        return self.transformer.n_features_in_

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of the columns, when the private records have them."""
        return self.transformer.feature_names_in_

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        """Return itself, since a clone of the transformer would have no box."""
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.target_tags.required = False
        return tags


class ReleasedRegressor(RegressorMixin, ReleasedFunction):
    """A released regression function, or any other function on a box.

    Parameters
    ----------
    transformer : BernsteinTransformer
        The basis, fitted.
    coefficients : ndarray of shape (n_basis,) or (n_basis, n_outputs)
        As returned by its ``coefficients``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import BernsteinTransformer
    >>> from skdp.functions import ReleasedRegressor
    >>> bernstein = BernsteinTransformer(degree=2, feature_range=(0, 1)).fit(np.zeros((1, 1)))
    >>> ReleasedRegressor(bernstein, np.array([0.0, 0.5, 1.0])).predict([[0.25]])
    array([0.25])
    """

    predict = ReleasedFunction.evaluate


class ReleasedClassifier(ClassifierMixin, ReleasedFunction):
    """A released decision function.

    Parameters
    ----------
    transformer : BernsteinTransformer
        The basis, fitted.
    coefficients : ndarray of shape (n_basis,) or (n_basis, n_classes)
        One column for each class; for two classes, that of the second one alone.
    classes : ndarray of shape (n_classes,)
        The class labels, which are public.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import BernsteinTransformer
    >>> from skdp.functions import ReleasedClassifier
    >>> bernstein = BernsteinTransformer(degree=1, feature_range=(0, 1)).fit(np.zeros((1, 1)))
    >>> released = ReleasedClassifier(bernstein, np.array([-1.0, 2.0]), np.array(["no", "yes"]))
    >>> released.predict([[0.0], [0.5], [1.0]])
    array(['no', 'yes', 'yes'], dtype='<U3')
    """

    def __init__(
        self, transformer: BernsteinTransformer, coefficients: ArrayLike, classes: ArrayLike
    ):
        super().__init__(transformer, coefficients)
        self.classes = classes

    @property
    def classes_(self) -> NDArray:
        """The class labels."""
        return np.asarray(self.classes)

    decision_function = ReleasedFunction.evaluate

    def predict(self, X: ArrayLike) -> NDArray:
        """Predict the labels."""
        scores = self.evaluate(X)
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return self.classes_[best]
