"""Estimators made of released lattice values: all they hold is the basis and its coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, OutlierMixin, RegressorMixin
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from skdp.core.simplex import project_to_simplex
from skdp.core.types import Container, Method
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
    coefficients : ndarray of shape (n_coefficients,) or (n_coefficients, n_outputs)
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


class ReleasedOutlierDetector(OutlierMixin, ReleasedFunction):
    """A released decision function of an outlier detector.

    Parameters
    ----------
    transformer : BernsteinTransformer
        The basis, fitted.
    coefficients : ndarray of shape (n_coefficients,)
        As returned by its ``coefficients``.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import BernsteinTransformer
    >>> from skdp.functions import ReleasedOutlierDetector
    >>> bernstein = BernsteinTransformer(degree=2, feature_range=(0, 1)).fit(np.zeros((1, 1)))
    >>> ReleasedOutlierDetector(bernstein, np.array([-1.0, 3.0, -1.0])).predict([[0.0], [0.5]])
    array([-1,  1])
    """

    decision_function = ReleasedFunction.evaluate

    def predict(self, X: ArrayLike) -> NDArray[np.int_]:
        """Return -1 for outliers and 1 for inliers."""
        return np.where(self.evaluate(X) < 0, -1, 1)


def _gives(method: str) -> Callable[[Method], Method]:
    return available_if(lambda self: self.method == method)


class ReleasedClassifier(ClassifierMixin, ReleasedFunction):
    """A released decision function, or released class probabilities.

    Noise moves probabilities out of the simplex. `predict_proba` projects them back to its nearest
    point, which is post-processing and costs no privacy.

    Parameters
    ----------
    transformer : BernsteinTransformer
        The basis, fitted.
    coefficients : ndarray of shape (n_coefficients,) or (n_coefficients, n_classes)
        Those of the decision function or of the probabilities; for two classes, of the second
        class alone.
    classes : ndarray of shape (n_classes,)
        The class labels, which are public.
    method : {"decision_function", "predict_proba"}, default="decision_function"
        The function that the coefficients give. The object has no other beside `predict`.

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
        self,
        transformer: BernsteinTransformer,
        coefficients: ArrayLike,
        classes: ArrayLike,
        method: str = "decision_function",
    ):
        super().__init__(transformer, coefficients)
        self.classes = classes
        self.method = method

    @property
    def classes_(self) -> NDArray:
        """The class labels."""
        return np.asarray(self.classes)

    decision_function = _gives("decision_function")(ReleasedFunction.evaluate)

    @_gives("predict_proba")
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the released probabilities, one column for each class."""
        values = self.evaluate(X)
        if values.ndim == 1:
            values = np.stack([1 - values, values], axis=1)
        return project_to_simplex(values)

    @_gives("predict_proba")
    def predict_log_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Evaluate the logarithms of the probabilities; ``-inf`` where one is zero."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: ArrayLike) -> NDArray:
        """Predict the labels."""
        if self.method == "predict_proba":
            best = self.predict_proba(X).argmax(axis=1)
        else:
            scores = self.evaluate(X)
            best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
        return self.classes_[best]
