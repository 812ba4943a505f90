"""Estimators that keep in public attributes what scikit-learn keeps in private ones.

What a fit has learned can be released, and put back, through public attributes only. Each class
here computes what the class that it derives from does, and takes its place wherever it is released.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import TransformerMixin
from sklearn.cross_decomposition import PLSSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import PowerTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.targets._naming import NamedAsTheirs

# What a fit says of the columns that it has seen.
INPUT = {"n_features_in_", "feature_names_in_"}


class StandardizedPowerTransformer(PowerTransformer):
    """A PowerTransformer with public means and variances.

    Takes the place of ``PowerTransformer(standardize=True)``.

    Parameters
    ----------
    method : {"yeo-johnson", "box-cox"}, default="yeo-johnson"
        The power transform.
    standardize : bool, default=True
        Taken for true whatever it is.
    copy : bool, default=True
        Taken for true whatever it is.

    Attributes
    ----------
    lambdas_ : ndarray of shape (n_features,)
        The exponents.
    mean_, var_, scale_ : ndarray of shape (n_features,)
        Mean, variance and standard deviation of the transformed columns.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.targets._stand_ins import StandardizedPowerTransformer
    >>> X = np.array([[1.0], [2.0], [8.0]])
    >>> bool(abs(StandardizedPowerTransformer().fit_transform(X).mean()) < 1e-9)
    True
    """

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Find the exponents, then the moments of the transformed columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        y : ignored
            Present by convention.

        Returns
        -------
        self : object
            This object.
        """
        power, scaler = self._steps()
        scaler.fit(power.fit_transform(X))
        for name in INPUT & vars(power).keys():
            setattr(self, name, getattr(power, name))
        self.lambdas_ = power.lambdas_
        self.mean_, self.var_, self.scale_ = scaler.mean_, scaler.var_, scaler.scale_
        return self

    def fit_transform(self, X: ArrayLike, y: Any = None) -> Any:
        """Fit, then transform the same records.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        y : ignored
            Present by convention.

        Returns
        -------
        array-like of shape (n_samples, n_features)
            Transformed records.
        """
        return self.fit(X, y).transform(X)

    def transform(self, X: ArrayLike) -> Any:
        """Transform by powers, then standardize.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        array-like of shape (n_samples, n_features)
            Transformed records.
        """
        power, scaler = self._fitted_steps()
        return scaler.transform(power.transform(X))

    def inverse_transform(self, X: ArrayLike) -> NDArray:
        """Undo the transform.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Transformed records.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            Records.
        """
        power, scaler = self._fitted_steps()
        vars(power).pop("feature_names_in_", None)  # what the scaler gives has none
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


class PublicNystroem(NamedAsTheirs, Nystroem):
    """A Nystroem whose landmarks can be given.

    Takes the place of Nystroem, whose landmarks are records of the fit. Those of the public twin
    serve in all fits, so that a map of records learns nothing from private ones.

    Parameters
    ----------
    landmarks : pair of arrays or None, default=None
        The `components_` and the `normalization_` of a fit on public records; None takes them
        from the records of this fit.
    kernel, gamma, coef0, degree, kernel_params, n_components, random_state, n_jobs
        As in Nystroem.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.targets._stand_ins import PublicNystroem
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> public = PublicNystroem(n_components=3, random_state=0).fit(X[:10])
    >>> given = PublicNystroem((public.components_, public.normalization_), n_components=3)
    >>> bool(np.all(given.fit(X[10:]).transform(X) == public.transform(X)))
    True
    """

    def __init__(
        self,
        landmarks: Sequence[Any] | None = None,
        kernel: Any = "rbf",
        *,
        gamma: float | None = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: dict | None = None,
        n_components: int = 100,
        random_state: Any = None,
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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Take the landmarks given, or records of X.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Records.
        y : ignored
            Present by convention.

        Returns
        -------
        self : object
            This object.
        """
        super().fit(X, y)
        del self.component_indices_  # of no use in the map, and of these records
        if self.landmarks is not None:
            self.components_, self.normalization_ = self.landmarks
        return self


class AffineMap(NamedAsTheirs, TransformerMixin):
    """A transform that is an affine map, read off the transform of the class beside it.

    A mixin: ``class Mine(AffineMap, Theirs)``. What `Theirs` computes its transform from may be
    private; its values are not, and those at the origin, at the mean of the records, and one step
    from there along each column are all of it.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The linear part: its rows are the directions onto which records are projected.
    offset_ : ndarray of shape (n_components,)
        The image of the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from skdp.targets._stand_ins import AffineMap
    >>> class AffinePCA(AffineMap, PCA):
    ...     pass
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> np.allclose(AffinePCA(2).fit(X).transform(X), PCA(2).fit(X).transform(X))
    True
    """

    n_features_in_: int

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit as the class beside this one does, then read its map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Responses.

        Returns
        -------
        self : object
            This object.
        """
        super().fit(X, y)
        names = self.__dict__.pop("feature_names_in_", None)  # the points below have none
        values = np.asarray(X, dtype=np.float64)
        center = values.mean(axis=0)
        # Steps as long as the records are far away: what is rounded off is then small beside them.
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

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, then transform the same records.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Responses.
        **fit_params : dict
            Further arguments of `fit`.

        Returns
        -------
        array-like of shape (n_samples, n_components)
            Transformed records.
        """
        return self.fit(X, y, **fit_params).transform(X)

    def transform(self, X: Any) -> Any:
        """Apply the map.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        array-like of shape (n_samples, n_components)
            Transformed records.
        """
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return X @ self.components_.T + self.offset_


class AffinePLSSVD(AffineMap, PLSSVD):
    """A PLSSVD with a public map of X; it does not transform responses.

    Takes the place of PLSSVD, whose parameters it has.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cross_decomposition import PLSSVD
    >>> from skdp.targets._stand_ins import AffinePLSSVD
    >>> X = np.random.default_rng(0).normal(size=(20, 3))
    >>> mine, theirs = (kind(2).fit(X, X[:, :2] ** 3) for kind in (AffinePLSSVD, PLSSVD))
    >>> np.allclose(mine.transform(X), theirs.transform(X))
    True
    """


class DiscriminantProjection(AffineMap, LinearDiscriminantAnalysis):
    """A LinearDiscriminantAnalysis of which the transform is wanted.

    Takes its place, with the same parameters, in steps that transform.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from skdp.targets._stand_ins import DiscriminantProjection
    >>> X, y = load_iris(return_X_y=True)
    >>> mine = DiscriminantProjection().fit_transform(X, y)
    >>> bool(abs(mine - LinearDiscriminantAnalysis().fit_transform(X, y)).max() < 1e-9)
    True
    """
