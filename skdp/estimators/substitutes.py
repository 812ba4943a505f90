"""Estimators that keep in public attributes what scikit-learn keeps in private ones."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.core.types import Container

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
