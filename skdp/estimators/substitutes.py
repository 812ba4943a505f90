"""Estimators that keep in public attributes what scikit-learn keeps in private ones."""

from __future__ import annotations

from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.core.types import Container

OF_SUPPORT = {"support_", "support_vectors_", "dual_coef_", "_dual_coef_", "_intercept_"}
OF_SUPPORT |= {"_n_support", "_probA", "_probB", "_num_iter", "n_iter_"}
OF_POWERS = {"n_features_in_", "feature_names_in_", "lambdas_"}


class StandardizedPowerTransformer(PowerTransformer):
    """A PowerTransformer(standardize=True) with public means and variances."""

    def fit(self, X: ArrayLike, y: Container = None) -> Self:
        """Find the exponents, then the moments of the transformed columns."""
        power, scaler = self._steps()
        scaler.fit(power.fit_transform(X))
        self.__dict__.update({name: vars(power)[name] for name in OF_POWERS & vars(power).keys()})
        self.mean_, self.var_, self.scale_ = scaler.mean_, scaler.var_, scaler.scale_
        return self

    def fit_transform(self, X: ArrayLike, y: Container = None) -> Container:
        """Fit, then transform the same records."""
        return self.fit(X, y).transform(X)

    def transform(self, X: ArrayLike) -> Container:
        """Transform by powers, then standardize."""
        power, scaler = self._fitted_steps()
        return scaler.transform(power.transform(X))

    def inverse_transform(self, X: ArrayLike) -> NDArray:
        """Undo the transform."""
        power, scaler = self._fitted_steps()
        vars(power).pop("feature_names_in_", None)  # the output of the scaler has no names
        return power.inverse_transform(scaler.inverse_transform(X))

    def _steps(self) -> tuple[PowerTransformer, StandardScaler]:
        power, scaler = PowerTransformer(method=self.method, standardize=False), StandardScaler()
        return power.set_output(transform="default"), scaler.set_output(transform="default")

    def _fitted_steps(self) -> tuple[PowerTransformer, StandardScaler]:
        check_is_fitted(self)
        power, scaler = self._steps()
        vars(power).update({name: vars(self)[name] for name in OF_POWERS & vars(self).keys()})
        scaler.mean_, scaler.var_, scaler.scale_ = self.mean_, self.var_, self.scale_
        scaler.n_features_in_ = self.n_features_in_
        return power, scaler


class DiscriminantProjection(LinearDiscriminantAnalysis):
    """A LinearDiscriminantAnalysis that transforms by the map `components_` @ x + `offset_`."""

    def fit(self, X: Container, y: Container) -> Self:
        """Fit as LinearDiscriminantAnalysis does, then read its map."""
        super().fit(X, y)
        scalings = self.scalings_[:, : super().transform(X[:1]).shape[1]]
        self.components_ = scalings.T
        self.offset_ = -self.xbar_ @ scalings if self.solver == "svd" else np.zeros(len(scalings.T))
        return self

    def transform(self, X: Container) -> Container:
        """Apply the map."""
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return X @ self.components_.T + self.offset_

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Name the features as LinearDiscriminantAnalysis does."""
        names = [f"lineardiscriminantanalysis{i}" for i in range(len(self.components_))]
        return np.asarray(names, dtype=object)


class LinearKernel:
    """A support vector machine with a linear kernel that predicts by coefficients alone."""

    coef_: Any = None  # in the place of a property, which cannot be set

    def fit(self, X: Container, y: Container, sample_weight: Container = None) -> Self:
        """Fit as scikit-learn does, then keep the coefficients and no support vector."""
        machine: Any = super()
        machine.fit(X, y, sample_weight)
        coef = machine.coef_
        self.coef_ = coef.toarray() if sparse.issparse(coef) else np.array(coef)
        for name in OF_SUPPORT & vars(self).keys():
            delattr(self, name)
        return self

    def _margins(self, X: Container) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        # of the machine beside this class
        return X @ self.coef_.T + self.intercept_  # type: ignore[attr-defined]


class LinearKernelClassifier(LinearKernel):
    """A classifier of that kind: each pair of classes has a vote."""

    classes_: NDArray
    decision_function_shape: str
    break_ties: bool

    def decision_function(self, X: Container) -> NDArray[np.float64]:
        """Evaluate the margins, or the votes of all pairs with the margins as fractions."""
        margins = self._margins(X)
        if len(self.classes_) == 2:
            return margins.ravel()
        if self.decision_function_shape == "ovo":
            return margins
        votes, confidence = self._votes(margins)
        return votes + confidence / (3 * (np.abs(confidence) + 1))

    def predict(self, X: Container) -> NDArray:
        """Return the class with the most votes, of several the first."""
        if len(self.classes_) == 2:
            return self.classes_[(self.decision_function(X) > 0).astype(np.intp)]
        scores = self.decision_function(X) if self.break_ties else self._votes(self._margins(X))[0]
        return self.classes_[scores.argmax(axis=1)]

    def _votes(self, margins: NDArray[np.float64]) -> tuple[NDArray[np.float64], ...]:
        """Return the number of votes for each class, and the sum of its margins."""
        votes, confidence = np.zeros((2, len(margins), len(self.classes_)))
        for (i, j), margin in zip(
            combinations(range(len(self.classes_)), 2), margins.T, strict=True
        ):
            votes[:, i] += margin >= 0
            votes[:, j] += margin < 0
            confidence[:, i] += margin
            confidence[:, j] -= margin
        return votes, confidence


class LinearKernelRegressor(LinearKernel):
    """A regressor of that kind."""

    def predict(self, X: Container) -> NDArray[np.float64]:
        """Return the linear function of the records."""
        return self._margins(X).ravel()


class LinearKernelSVC(LinearKernelClassifier, SVC):
    """An SVC with a linear kernel."""


class LinearKernelNuSVC(LinearKernelClassifier, NuSVC):
    """A NuSVC with a linear kernel."""


class LinearKernelSVR(LinearKernelRegressor, SVR):
    """An SVR with a linear kernel."""


class LinearKernelNuSVR(LinearKernelRegressor, NuSVR):
    """A NuSVR with a linear kernel."""
