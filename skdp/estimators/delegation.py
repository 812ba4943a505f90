"""The methods that a fitted PrivateEstimator hands to the released estimator."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal, Self, overload

from numpy.typing import NDArray
from sklearn import config_context
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.core.types import Container, Estimator, Method, Seed
from skdp.estimators.catalog import entry_of
from skdp.estimators.members import last_step


def _where_released_has(*names: str) -> Callable[[Method], Method]:
    """Hide a method unless the released estimator, or before fit the one given, has these."""

    def check(self: DelegatedMethods) -> bool:
        estimator = getattr(self, "estimator_", self.estimator)
        for name in names:
            getattr(estimator, name)
            self._check_served(estimator, name)
        return True

    return available_if(check)


def _check_takes(released: Estimator, method: str, parameter: str) -> None:
    """Refuse a parameter that the method of the released estimator lacks."""
    last = last_step(released)
    if parameter not in inspect.signature(getattr(last, method)).parameters:
        raise TypeError(
            f"PrivateEstimator.{method} takes no {parameter} here, since {type(last).__name__} "
            "takes none."
        )


class DelegatedMethods:
    """Each method exists exactly when the wrapped estimator has it.

    They see the released estimator only, so they are post-processing: they cost no privacy, on
    whatever data they are called.
    """

    estimator: Estimator
    estimator_: Estimator
    release: Any

    def fit(self, X: Container, y: Container = None, sample_weight: Container = None) -> Self:
        """Fit privately."""
        raise NotImplementedError

    def _check_served(self, estimator: Estimator, name: str) -> None:
        """Raise an AttributeError if what is released does not suffice for the method."""
        last = last_step(estimator)
        if isinstance(self.release, str) and name in entry_of(last).unserved:
            raise AttributeError(
                f"{type(last).__name__}.{name} needs more than release='auto' releases. Name the "
                "attributes that it needs in 'release', where they are public."
            )

    def _released(self) -> Estimator:
        check_is_fitted(self)
        return self.estimator_

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of the wrapped estimator: what it takes and gives is unchanged."""
        if hasattr(self.estimator, "get_params"):
            return get_tags(self.estimator)
        return super().__sklearn_tags__()  # type: ignore[misc]  # this is a mixin

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_")

    @property
    def classes_(self) -> NDArray:
        """Class labels, ndarray of shape (n_classes,)."""
        return self._fitted_attribute("classes_")

    @property
    def n_features_in_(self) -> int:
        """Number of features seen in fit."""
        return self._fitted_attribute("n_features_in_")

    @property
    def feature_names_in_(self) -> NDArray:
        """Names of the features seen in fit, ndarray of shape (n_features,)."""
        return self._fitted_attribute("feature_names_in_")

    @property
    def offset_(self) -> Any:
        """What an outlier detector subtracts from its scores, float."""
        return self._fitted_attribute("offset_")

    def __getattr__(self, name: str) -> Any:
        """Say why a fitted attribute is missing; of all else the first error comes again."""
        if name.endswith("_") and name[0] != "_" and not hasattr(type(self), name):
            hint = " before fit"
            if "estimator_" in vars(self):
                there = hasattr(self.estimator_, name)
                hint = f" of its own: it is estimator_.{name}" if there else ""
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}{hint}.")
        try:
            return object.__getattribute__(self, name)
        except AttributeError as error:
            if error.__cause__ is None:
                raise
            raise AttributeError(f"{error}: {error.__cause__}") from None

    def _fitted_attribute(self, name: str) -> Any:
        if "estimator_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r} before fit.")
        return getattr(self.estimator_, name)

    @overload
    def predict(self, X: Container, return_std: Literal[False] = False) -> NDArray: ...

    @overload
    def predict(self, X: Container, return_std: bool) -> NDArray | tuple[NDArray, NDArray]: ...

    @_where_released_has("predict")
    def predict(self, X: Container, return_std: bool = False) -> NDArray | tuple[NDArray, NDArray]:
        """Predict with the released estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        return_std : bool, default=False
            Whether to return standard deviations too, where they can be had from what is released.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs), or a pair of them
            Predicted labels or responses, and their standard deviations if asked for.

        Raises
        ------
        TypeError
            If the estimator gives no standard deviations.
        AttributeError
            If what is released does not suffice for them.
        """
        released = self._released()
        if not return_std:
            return released.predict(X)
        _check_takes(released, "predict", "return_std")
        self._check_served(released, "predict(return_std=True)")
        return released.predict(X, return_std=True)

    @_where_released_has("fit_predict", "predict")
    def fit_predict(
        self, X: Container, y: Container = None, sample_weight: Container = None
    ) -> NDArray:
        """Fit privately, then predict the same records with the released estimator.

        The result says to which cluster each private record belongs, or whether it is an outlier:
        it is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private records.
        y : array-like of shape (n_samples,) or None, default=None
            The private responses; see :meth:`PrivateEstimator.fit`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The private weights of the records; see there.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels of clusters; for outlier detectors -1 for outliers, 1 for inliers.
        """
        return self.fit(X, y, sample_weight).predict(X)

    @_where_released_has("predict_proba")
    def predict_proba(self, X: Container) -> NDArray:
        """Predict class probabilities with the released estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`.
        """
        return self._released().predict_proba(X)

    @_where_released_has("predict_log_proba")
    def predict_log_proba(self, X: Container) -> NDArray:
        """Predict logarithms of class probabilities with the released estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Log-probabilities in the order of `classes_`.
        """
        return self._released().predict_log_proba(X)

    @_where_released_has("decision_function")
    def decision_function(self, X: Container) -> NDArray:
        """Evaluate the decision function of the released estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Confidence scores.
        """
        return self._released().decision_function(X)

    @_where_released_has("score_samples")
    def score_samples(self, X: Container) -> NDArray:
        """Score each record with the released estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores, such as log-densities.
        """
        return self._released().score_samples(X)

    @_where_released_has("score")
    def score(self, X: Container, y: Container = None, sample_weight: Container = None) -> float:
        """Score the released estimator on data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        y : array-like of shape (n_samples,) or None, default=None
            True labels or responses.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the records, where the estimator's score takes them.

        Returns
        -------
        float
            The score of the wrapped estimator: accuracy for classifiers, R2 for regressors. It
            is not private when the records are not public.

        Raises
        ------
        TypeError
            If there are weights, and the score takes none.
        """
        released = self._released()
        data = (X,) if y is None else (X, y)
        if sample_weight is None:
            return released.score(*data)
        _check_takes(released, "score", "sample_weight")
        with config_context(enable_metadata_routing=False):  # the wrapper's request is the one
            return released.score(*data, sample_weight=sample_weight)

    @_where_released_has("sample")
    def sample(self, n_samples: int = 1, random_state: Seed = None) -> Container:
        """Draw records from the released density.

        Parameters
        ----------
        n_samples : int, default=1
            Number of records.
        random_state : int, numpy.random.RandomState or None, default=None
            Seed of the drawing, where the released estimator takes one. The density is released,
            so any seed may be used.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
            New records, drawn from what was released.
        """
        options = {} if random_state is None else {"random_state": random_state}
        return self._released().sample(n_samples, **options)

    @_where_released_has("transform")
    def transform(self, X: Container) -> Container:
        """Transform records with the released estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        array-like of shape (n_samples, n_features_out)
            Transformed records.
        """
        return self._released().transform(X)

    @_where_released_has("transform")
    def fit_transform(
        self, X: Container, y: Container = None, sample_weight: Container = None
    ) -> Container:
        """Fit privately, then transform the same records with the released estimator.

        The result holds the private records, transformed: it is not private.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The private records.
        y : array-like of shape (n_samples,) or None, default=None
            The private responses; see :meth:`PrivateEstimator.fit`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            The private weights of the records; see there.

        Returns
        -------
        array-like of shape (n_samples, n_features_out)
            Transformed records.
        """
        return self.fit(X, y, sample_weight).transform(X)

    @_where_released_has("inverse_transform")
    def inverse_transform(self, X: Container) -> Container:
        """Undo :meth:`transform` with the released estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features_out)
            Transformed records.

        Returns
        -------
        array-like of shape (n_samples, n_features)
            Records.
        """
        return self._released().inverse_transform(X)

    @_where_released_has("get_feature_names_out")
    def get_feature_names_out(self, input_features: object = None) -> NDArray:
        """Name the features that :meth:`transform` returns.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the input features; None takes those seen in fit.

        Returns
        -------
        ndarray of str
            Names of the output features.
        """
        return self._released().get_feature_names_out(input_features)

    @_where_released_has("set_output")
    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the container that :meth:`transform` returns.

        Parameters
        ----------
        transform : {"default", "pandas", "polars"} or None, default=None
            The container; None leaves it as it is.

        Returns
        -------
        self : PrivateEstimator
            This object.
        """
        self.estimator.set_output(transform=transform)
        if hasattr(self, "estimator_"):
            self.estimator_.set_output(transform=transform)
        return self
