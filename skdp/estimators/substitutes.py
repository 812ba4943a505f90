"""Estimators that keep in public attributes what scikit-learn keeps in private ones.

Only public attributes can be released and set again. Each class here computes the same as the class
that it derives from, and replaces it wherever it is released.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.core.classes import public_name
from skdp.core.types import Container, Seed

# Attributes that describe the columns of a fit.
INPUT = {"n_features_in_", "feature_names_in_"}


class StandardizedPowerTransformer(PowerTransformer):
    """A PowerTransformer(standardize=True) with public means and variances."""

    def fit(self, X: ArrayLike, y: Container = None) -> Self:
        """Find the exponents, then the moments of the transformed columns."""
        power, scaler = self._steps()
        scaler.fit(power.fit_transform(X))
        for name in INPUT & vars(power).keys():
            setattr(self, name, getattr(power, name))
        self.lambdas_ = power.lambdas_
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
        for name in INPUT & vars(self).keys():
            setattr(power, name, getattr(self, name))
        power.lambdas_ = self.lambdas_
        scaler.mean_, scaler.var_, scaler.scale_ = self.mean_, self.var_, self.scale_
        scaler.n_features_in_ = self.n_features_in_
        return power, scaler


class NamedAsTheirs:
    """A mixin that names the output features after the base class, as in "pca0"."""

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Name the features that transform returns."""
        names = super().get_feature_names_out(input_features)  # type: ignore[misc]  # a mixin
        own = type(self).__name__.lower()
        theirs = next(kind.__name__.lower() for kind in type(self).__mro__ if public_name(kind))
        return np.asarray([re.sub(f"^{own}", theirs, name) for name in names], dtype=object)


class PublicNystroem(NamedAsTheirs, Nystroem):
    """A Nystroem whose `landmarks`, the components and normalization of a public fit, are given.

    None takes the landmarks from the records of this fit.
    """

    def __init__(
        self,
        landmarks: Sequence[object] | None = None,
        kernel: object = "rbf",
        *,
        gamma: float | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: dict | None = None,
        n_components: int = 100,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ):
        super().__init__(
            kernel,
            gamma=gamma,
            coef0=coef0,
            degree=degree,
            kernel_params=kernel_params,
            n_components=n_components,
            random_state=random_state,
            n_jobs=n_jobs,
        )
        self.landmarks = landmarks

    def fit(self, X: Container, y: Container = None) -> Self:
        """Take the landmarks given, or records of X."""
        super().fit(X, y)
        del self.component_indices_  # they describe the records of this fit
        if self.landmarks is not None:
            self.components_, self.normalization_ = self.landmarks
        return self


class DiscriminantProjection(NamedAsTheirs, LinearDiscriminantAnalysis):
    """A LinearDiscriminantAnalysis that transforms by an affine map, read off at d + 2 points.

    The rows of `components_` are the directions of the projection, `offset_` the image of 0.
    """

    def fit(self, X: Container, y: Container) -> Self:
        """Fit as LinearDiscriminantAnalysis does, then read its map."""
        super().fit(X, y)
        names = self.__dict__.pop("feature_names_in_", None)  # the points below have none
        values = np.asarray(X, dtype=np.float64)
        center = values.mean(axis=0)
        # Steps as long as the records are far away make the rounding error relatively small.
        steps = np.maximum(np.abs(center), values.std(axis=0))
        moved = center + np.where(steps > 0, steps, 1.0)
        points = np.vstack(
            [np.zeros_like(center), center, np.where(np.eye(len(center)), moved, center)]
        )
        images = np.asarray(super().transform(points), dtype=np.float64)
        if names is not None:
            self.feature_names_in_ = names
        self.offset_ = images[0]
        self.components_ = ((images[2:] - images[1]) / (moved - center)[:, None]).T
        return self

    def transform(self, X: Container) -> Container:
        """Apply the map."""
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return X @ self.components_.T + self.offset_
