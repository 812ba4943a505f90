"""Support vector machines with a linear kernel that predict by coefficients alone."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.core.types import Container, Matrix

KEPT = ("classes_", "feature_names_in_", "intercept_", "n_features_in_")


class _Machine(BaseEstimator):
    """What fits as the class of scikit-learn beside it, and keeps no support vector."""

    coef_: Any = None  # in the place of a property, which cannot be set

    def fit(self, X: Container, y: Container, sample_weight: Container = None) -> Self:
        """Fit a machine of scikit-learn, and take its coefficients over."""
        kind = type(self).__bases__[1]
        machine = kind(**self.get_params()).fit(X, y, sample_weight)
        coef = machine.coef_
        self.coef_ = coef.toarray() if sparse.issparse(coef) else coef.copy()
        for name in filter(partial(hasattr, machine), KEPT):
            setattr(self, name, getattr(machine, name))
        return self

    def _margins(self, X: Container) -> Matrix:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return X @ self.coef_.T + self.intercept_


class _Classifier(_Machine):
    def decision_function(self, X: Container) -> Matrix:
        """Evaluate the margins, or the votes of all pairs with the margins as fractions."""
        margins = self._margins(X)
        if len(self.classes_) == 2:
            return margins.ravel()
        if self.decision_function_shape == "ovo":
            return margins
        return self._votes(margins, break_ties=True)

    def predict(self, X: Container) -> NDArray:
        """Return the class with the most votes, of several the first."""
        margins = self._margins(X)
        if len(self.classes_) == 2:
            return self.classes_[(margins.ravel() > 0).astype(np.intp)]
        return self.classes_[self._votes(margins, self.break_ties).argmax(axis=1)]

    def _votes(self, margins: Matrix, break_ties: bool) -> Matrix:
        """Count the votes for each class; the sum of its margins may break ties."""
        of_class = np.eye(len(self.classes_))
        first, second = np.triu_indices(len(of_class), 1)
        pairs = of_class[first] - of_class[second]
        lead = np.where(margins < 0, -1, 1) @ pairs  # votes for a class, less those against it
        confidence = margins @ pairs if break_ties else np.zeros(lead.shape)
        return (lead + len(of_class) - 1) / 2 + confidence / (3 * (np.abs(confidence) + 1))


class _Regressor(_Machine):
    def predict(self, X: Container) -> Matrix:
        """Return the linear function of the records."""
        return self._margins(X).ravel()


class LinearKernelSVC(_Classifier, SVC):
    """An SVC with a linear kernel."""


class LinearKernelNuSVC(_Classifier, NuSVC):
    """A NuSVC with a linear kernel."""


class LinearKernelSVR(_Regressor, SVR):
    """An SVR with a linear kernel."""


class LinearKernelNuSVR(_Regressor, NuSVR):
    """A NuSVR with a linear kernel."""
