"""Steps in canonical form while what comes after them is fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags

if TYPE_CHECKING:
    from skdp.estimators.parts import ReleasedPart


class CanonicalStep(BaseEstimator):
    """A step that is brought into the form of the public twin as soon as it is fitted.

    Signs and order of components are those of the twin in what is released. So they must be while
    the next steps are fitted, or else their coefficients would belong to other components.

    They are fitted to what its `transform` gives; of a step whose `fit_transform` gives something
    else, as of DictionaryLearning, it is what they will see when they predict.
    """

    def __init__(self, estimator: Any, parts: dict[int | None, ReleasedPart]):
        self.estimator = estimator
        self.parts = parts

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the step, and make of it what will be released but for the noise."""
        fitted = clone(self.estimator).fit(X, y)
        part = self.parts.get(columns_of(fitted))
        if part is None:
            raise ValueError("the number of columns changed")
        self.estimator_ = part.canonical(fitted)
        return self

    def transform(self, X: Any) -> Any:
        """Transform with the step as it will be released."""
        return self.estimator_.transform(X)

    def inverse_transform(self, X: Any) -> Any:
        """Undo the transform, where the step can."""
        return self.estimator_.inverse_transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Name the features that transform returns."""
        return self.estimator_.get_feature_names_out(input_features)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Leave it to the twin, which has been told the same."""
        return self

    def __sklearn_clone__(self) -> Self:
        return type(self)(clone(self.estimator), self.parts)

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.estimator)


def see_through(estimator: Any) -> Any:
    """Return the step inside a fitted CanonicalStep, anything else as it is."""
    return estimator.estimator_ if isinstance(estimator, CanonicalStep) else estimator


def columns_of(fitted: Any) -> int | None:
    """Return the number of columns that a fit has seen, None if it does not say."""
    return getattr(fitted, "n_features_in_", None)
