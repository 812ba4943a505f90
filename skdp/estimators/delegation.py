"""The methods that a private estimator hands to the released estimator."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, Self

from numpy.typing import NDArray
from sklearn import config_context
from sklearn.utils import Tags, get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp.core.target import is_auto
from skdp.core.types import Container, Decorated, Estimator
from skdp.estimators.catalog import entry_of
from skdp.estimators.members import last_step


def _released_has(*names: str) -> Callable[[Decorated], Decorated]:
    """Hide a method unless the released estimator, or before fit the one given, has these."""

    def check(self: DelegatedMethods) -> bool:
        estimator = self._model
        for name in names:
            getattr(estimator, name)
            self._check_served(estimator, name)
        return True

    return available_if(check)


RARE = ("sample", "get_feature_names_out")


def _of_model(name: str, does: str) -> Callable[..., Container]:
    """Hand a method that takes records to the released estimator."""

    def method(self: DelegatedMethods, X: Container, **params: object) -> Container:
        check_is_fitted(self)
        if params.get("return_std"):
            self._check_served(self.estimator_, f"{name}(return_std=True)")
        return getattr(self.estimator_, name)(X, **params)

    method.__name__ = name
    method.__doc__ = f"{does} with the released estimator, which takes the same options."
    return _released_has(name)(method)


def _fit_then(name: str, tells: str, *needs: str) -> Callable[..., Container]:
    """Fit, then hand the same records to a method of the released estimator."""

    def method(
        self: DelegatedMethods, X: Container, y: Container = None, sample_weight: Container = None
    ) -> Container:
        return getattr(self.fit(X, y, sample_weight), name)(X)

    method.__name__ = f"fit_{name}"
    method.__doc__ = f"""Fit privately, then {name} the same records with the released estimator.

        The result is not private. {tells}.
        """
    return _released_has(*needs)(method)


class DelegatedMethods:
    """Methods that the wrapped estimator has, as post-processing by the released one."""

    estimator: Estimator
    random_state: int | None
    release: Any = "auto"
    estimator_: Estimator
    _had_seed = False

    predict: Callable[..., NDArray] = _of_model("predict", "Predict labels or responses")
    predict_proba = _of_model("predict_proba", "Predict class probabilities")
    predict_log_proba = _of_model("predict_log_proba", "Predict log-probabilities")
    decision_function = _of_model("decision_function", "Evaluate decision functions")
    score_samples = _of_model("score_samples", "Evaluate scores, such as log-densities,")
    fit_predict = _fit_then(
        "predict",
        "It says to which cluster each record belongs, or whether it is an outlier",
        *("fit_predict", "predict"),
    )
    fit_transform = _fit_then("transform", "It holds the private records, transformed", "transform")
    transform = _of_model("transform", "Transform records")
    inverse_transform = _of_model("inverse_transform", "Undo `transform`")

    def fit(self, X: Container, y: Container = None, sample_weight: Container = None) -> Self:
        """Fit privately."""
        raise NotImplementedError

    def set_params(self, **params: object) -> Self:
        """Set parameters, but no seed of the noise where the constructor was given none.

        Ensembles seed their members and keep the seeds, with which the noise could be undone.
        """
        seed = params.get("random_state")
        if self.random_state is not None:
            self._had_seed = True  # it may be replaced, also after None
        elif isinstance(seed, Integral) and not isinstance(seed, bool) and not self._had_seed:
            del params["random_state"]
        super().set_params(**params)  # type: ignore[misc]  # of BaseEstimator, beside this class
        return self

    @property
    def _model(self) -> Estimator:
        """The released estimator, before fit the one given."""
        return vars(self).get("estimator_", self.estimator)

    def _check_served(self, estimator: Estimator, name: str) -> None:
        """Raise an AttributeError if the released attributes do not suffice for a method."""
        last = last_step(estimator)
        if is_auto(self.release) and name in entry_of(last).unserved:
            raise AttributeError(
                f"{type(last).__name__}.{name} needs more than release='auto' releases. Name the "
                "attributes that it needs in 'release', where they are public."
            )

    def __sklearn_tags__(self) -> Tags:
        """Return the tags of the wrapped estimator."""
        if hasattr(self.estimator, "get_params"):
            return get_tags(self.estimator)
        return super().__sklearn_tags__()  # type: ignore[misc]  # this is a mixin

    def __sklearn_is_fitted__(self) -> bool:
        return "estimator_" in vars(self)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the released estimator: a fitted one, or a rare method."""
        is_fitted = name.endswith("_") and name[0] != "_"
        if "estimator_" in vars(self) and (is_fitted or name in RARE):
            return getattr(self.estimator_, name)
        return super().__getattribute__(name)  # which raises the first error again

    @_released_has("score")
    def score(self, X: Container, y: Container = None, sample_weight: Container = None) -> float:
        """Score the released estimator; on private records the score is not private."""
        check_is_fitted(self)
        data = (X,) if y is None else (X, y)
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        with config_context(enable_metadata_routing=False):  # the wrapper's request is the one
            return self.estimator_.score(*data, **weights)

    @_released_has("set_output")
    def set_output(self, *, transform: str | None = None) -> Self:
        """Set the container that :meth:`transform` returns; None leaves it as it is."""
        self.estimator.set_output(transform=transform)
        if "estimator_" in vars(self):
            self.estimator_.set_output(transform=transform)
        return self
