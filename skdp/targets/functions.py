"""Functions as targets: their values on a lattice, which a released estimator interpolates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from skdp._classes import public_name
from skdp._target import KeyedTarget, as_function_target
from skdp.targets._bernstein_basis import gram_matrix, multiply_axes
from skdp.targets.bernstein import BernsteinTransformer
from skdp.targets.bernstein_density import BernsteinDensity
from skdp.targets.closed_form import Moments
from skdp.targets.configuration import (
    describe,
    fit_on,
    seed_names,
    takes,
    without_side_effects,
)
from skdp.targets.kernel_sums import kernel_sums
from skdp.targets.order import order_matters, reorder
from skdp.targets.released import (
    ReleasedClassifier,
    ReleasedFunction,
    ReleasedOutlierDetector,
    ReleasedRegressor,
)
from skdp.targets.released_density import ReleasedDensity
from skdp.targets.twin import in_container_of

# What can be released of each kind of estimator; the first that it has is taken by default.
METHODS: dict[str | None, tuple[str, ...]] = {
    "classifier": ("decision_function", "predict_proba"),
    "regressor": ("predict",),
    "outlier_detector": ("decision_function",),
}
DENSITY = ("score_samples",)

# Largest number of released values for which the metric of the output is worked out.
MAX_METRIC = 2000

# Largest share of the oracle's records outside of the box.
MOST_OUTSIDE = 0.5


class BernsteinTarget(KeyedTarget):
    """The values of a function on a box, and the function made of them once they are released.

    Parameters
    ----------
    function : callable
        ``function(X, points)`` or ``function(X, y, points)`` evaluates the function that the
        dataset determines. `points` has shape (n_points, n_variables); the result has shape
        (n_points,) or (n_points, n_outputs). When it has a parameter `random_state`, it is given
        an integer there, the same for both evaluations of a pair. A :class:`FunctionTarget`
        brings a key of its own.
    transformer : BernsteinTransformer
        Lattice and box. If it is not fitted, the box has one row of its `feature_range` for each
        variable; a pair makes it an interval.

    Raises
    ------
    TypeError
        If `function` cannot be called, or `transformer` is no BernsteinTransformer.

    See Also
    --------
    skdp.release : Releases the function.

    Examples
    --------
    The share of the records below a point, as a function of the point:

    >>> import numpy as np
    >>> from skdp import BernsteinTarget, BernsteinTransformer, LaplaceMechanism, release
    >>> def share_below(X, points):
    ...     return np.mean(X[:, 0] < points, axis=1)
    >>> X = np.random.default_rng(0).uniform(size=(1000, 1))
    >>> target = BernsteinTarget(share_below, BernsteinTransformer(degree=8, feature_range=(0, 1)))
    >>> released = release(
    ...     target, X, mechanism=LaplaceMechanism(epsilon=1.0), sensitivity=9 / 1000
    ... )
    >>> released.value.predict([[0.25], [0.5]]).shape
    (2,)
    """

    def __init__(self, function: Callable, transformer: BernsteinTransformer):
        self._function = as_function_target(function)
        self.transformer = _fitted(transformer)
        self._points = self.transformer.lattice_
        self.key_parts = self._function, self._points
        self.allow_nan = self._function.allow_nan
        self.description = f"{self._function.description} {_describe(self.transformer)}"

    def __call__(self, *dataset: Any, seed: int) -> NDArray[np.float64]:
        """Evaluate the function on the lattice."""
        values = self._function(*dataset, self._points.copy(), seed=seed)
        n_points = len(self._points)
        if values.ndim not in (1, 2) or len(values) != n_points or values.size == 0:
            raise ValueError(
                f"the function must return shape ({n_points},) or ({n_points}, n_outputs), and "
                f"returned {values.shape}"
            )
        return values

    def restore(self, values: NDArray[np.float64]) -> ReleasedRegressor:
        """Make a function of released values.

        Parameters
        ----------
        values : ndarray of shape (n_basis,) or (n_basis, n_outputs)
            Released values on the lattice.

        Returns
        -------
        ReleasedRegressor
            The function, evaluated by its `predict`.
        """
        return ReleasedRegressor(self.transformer, self.transformer.coefficients(values))

    def output_metric(self, *dataset: Any) -> NDArray[np.float64] | None:
        """Tell how much the released function depends on each value.

        Parameters
        ----------
        *dataset : X or X, y
            Public records, to find the number of outputs.

        Returns
        -------
        ndarray of shape (n_values, n_values) or None
            See :func:`lattice_metric`. None also when the function fails on these records.
        """
        try:
            n_values = self(*dataset, seed=0).size
        except Exception:  # whatever it is, the function has no value here, as on some pair
            return None
        return lattice_metric(self.transformer, n_values)


class FittedFunctionTarget(KeyedTarget):
    """A function that an estimator learns, through its values on a lattice.

    Evaluating the target clones the estimator, fits it cold, and evaluates one of its methods at
    the lattice points of a box. :meth:`restore` makes a small estimator of released values, which
    holds them and nothing of a fit.

    Parameters
    ----------
    estimator : estimator object
        The estimator as configured. Callbacks and parameters such as `memory` and `verbose` are
        switched off, since what they show or keep of a private fit would leave the guarantee.
    transformer : BernsteinTransformer
        Lattice and box.
    twin : estimator object
        The same estimator fitted on public records. Only the class labels and the number and
        names of its columns are used.
    method : {"auto", "score_samples", "decision_function", "predict_proba", "predict"}, \
            default="auto"
        What to release. "auto" takes the decision function of classifiers and outlier detectors
        (the probabilities of a classifier that has none), the prediction of regressors, and for
        other estimators the density, which is the exponential of `score_samples`.

    Raises
    ------
    ValueError
        If the estimator has no such method, its values do not fit the class labels, or it
        predicts labels of several outputs.
    TypeError
        If `transformer` is no BernsteinTransformer.

    See Also
    --------
    skdp.PrivateEstimator : Its `release` takes this object, or a transformer for short.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.neighbors import KernelDensity
    >>> from skdp import BernsteinTransformer, FittedFunctionTarget
    >>> kde = KernelDensity(bandwidth=0.2)
    >>> X = np.random.default_rng(0).uniform(size=(50, 1))
    >>> bernstein = BernsteinTransformer(degree=10, feature_range=(0, 1))
    >>> target = FittedFunctionTarget(kde, bernstein, twin=kde.fit(X))
    >>> values = target(X, seed=0)
    >>> values.shape
    (11,)
    >>> target.restore(values)
    ReleasedDensity(density=BernsteinDensity(...))
    """

    def __init__(
        self,
        estimator: Any,
        transformer: BernsteinTransformer,
        twin: Any,
        *,
        method: str = "auto",
    ):
        self.estimator = without_side_effects(estimator)
        self.transformer = _fitted(transformer, twin.n_features_in_)
        if hasattr(twin, "feature_names_in_"):
            self.transformer.feature_names_in_ = twin.feature_names_in_
        self.allow_nan = takes(estimator, "allow_nan")
        self.method = _choose_method(twin, method)
        self._kind = get_tags(twin).estimator_type
        self._classes: Any = getattr(twin, "classes_", None)
        if isinstance(self._classes, list):
            raise ValueError(
                f"{type(twin).__name__} predicts labels of several outputs. FittedFunctionTarget "
                "takes classifiers of one."
            )
        n_classes = 0 if self._classes is None else len(self._classes)
        self._columns = (n_classes,) if n_classes > 2 else ()
        self._points = self.transformer.lattice_
        self._seeds = seed_names(self.estimator)
        self._shuffled = order_matters(self.estimator)
        self.key_parts = (
            *(self.method, self.estimator, self._kind, self._columns, self._points),
            *(self._shuffled, sklearn.__version__),
        )
        configured = describe(estimator)
        self.description = f"{self.method} of {configured} {_describe(self.transformer)}"
        if not hasattr(twin, "feature_names_in_"):
            self._evaluate(twin, self._points)  # refuses what can be refused before any record

    def __call__(self, *dataset: Any, seed: int) -> NDArray[np.float64]:
        """Fit on the dataset and evaluate on the lattice."""
        fitted = clone(self.estimator)
        if self._seeds:
            fitted.set_params(**dict.fromkeys(self._seeds, seed))
        if self._shuffled:  # else only what the seed does to the last record would be measured
            dataset = reorder(dataset, seed)
        fit_on(fitted, dataset)
        if self._classes is not None and not np.array_equal(fitted.classes_, self._classes):
            raise ValueError("a class is missing")
        return self._evaluate(fitted, in_container_of(dataset[0], self._points))

    def closed_form(self, *records: Any) -> Moments | None:
        """Find a way to evaluate pairs without refits.

        Parameters
        ----------
        *records : X or X, y
            Public records of one pair.

        Returns
        -------
        Moments or None
            For a kernel density, which is a sum over the records; see `skdp.targets.kernel_sums`.
        """
        if public_name(type(self.estimator)) != "sklearn.neighbors.KernelDensity":
            return None
        return kernel_sums(self.estimator, self._points, records)

    def check_oracle(self, *records: Any) -> None:
        """Refuse a box that most records of the oracle miss.

        What is outside of the box is not released: it would show the tails of a function, and
        nothing of it where the records are.

        Parameters
        ----------
        *records : X or X, y
            Records of the oracle.

        Raises
        ------
        ValueError
            If more than half of them are outside.
        """
        X = records[0]
        low, high = self.transformer.feature_range_.T
        points = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=np.float64)
        outside = np.mean(~((low <= points) & (points <= high)).all(axis=1))
        if outside > MOST_OUTSIDE:
            raise ValueError(
                "The 'feature_range' parameter of BernsteinTransformer must be a box that holds "
                f"most records. Got {self.transformer.feature_range_.tolist()}, which "
                f"{outside:.0%} of the oracle's records miss. Declare a wider box, in the units of "
                "the records."
            )

    def restore(self, values: NDArray[np.float64]) -> ReleasedFunction:
        """Make an estimator of released values.

        Parameters
        ----------
        values : ndarray of shape (n_basis,) or (n_basis, n_outputs)
            Released values on the lattice.

        Returns
        -------
        ReleasedDensity, ReleasedClassifier, ReleasedOutlierDetector or ReleasedRegressor
            It holds the coefficients, and the class labels of a classifier. A density is clipped
            at zero and normalized, class probabilities are projected to the simplex.
        """
        coefficients = self.transformer.coefficients(values)
        if self._kind == "classifier":
            return ReleasedClassifier(self.transformer, coefficients, self._classes, self.method)
        if self._kind == "regressor":
            return ReleasedRegressor(self.transformer, coefficients)
        if self._kind == "outlier_detector":
            return ReleasedOutlierDetector(self.transformer, coefficients)
        return ReleasedDensity(BernsteinDensity.from_coefficients(self.transformer, coefficients))

    def output_metric(self, *dataset: Any) -> NDArray[np.float64] | None:
        """Tell how much the released function depends on each value.

        Parameters
        ----------
        *dataset : X or X, y
            Public records, to find the number of outputs.

        Returns
        -------
        ndarray of shape (n_values, n_values) or None
            See :func:`lattice_metric`.
        """
        columns = np.shape(dataset[1])[1:] if self._kind == "regressor" else self._columns
        return lattice_metric(self.transformer, self.transformer.n_basis_ * int(np.prod(columns)))

    def _evaluate(self, fitted: Any, points: Any) -> NDArray[np.float64]:
        values = np.asarray(getattr(fitted, self.method)(points), dtype=np.float64)
        if self.method == "score_samples":
            return np.exp(values)
        if self._kind != "classifier":
            return values
        if self.method == "predict_proba" and not self._columns:
            values = values[:, 1]  # the other column is one minus it, and would cost noise
        if values.shape[1:] != self._columns:
            raise ValueError(
                f"The {self.method} of a classifier with {len(self._classes)} classes must have "
                "one column for each class, or be a vector for two classes. Got shape "
                f"{values.shape}. An SVC needs decision_function_shape='ovr'."
            )
        return values


def lattice_metric(transformer: BernsteinTransformer, n_values: int) -> NDArray[np.float64] | None:
    """Return the squared change of a released function as a quadratic form in its values.

    With c = A v the coefficients of values v and G the integrals of the products of two basis
    functions, the mean over the box of the squared function is v' A'GA v, which is exact: the
    product of two Bernstein polynomials is a multiple of a third, of twice the degree. None for
    more than 2000 values.
    """
    if n_values > MAX_METRIC:
        return None
    n_basis, n_features = transformer.n_basis_, transformer.n_features_in_
    coefficients = transformer.coefficients(np.eye(n_basis))
    tensor = coefficients.reshape((transformer.degree + 1,) * n_features + (-1,))
    factors = [gram_matrix(transformer.degree)] * n_features
    metric = coefficients.T @ multiply_axes(factors, tensor).reshape(n_basis, -1)
    # Values of one point lie side by side, so each output gets its own copy, interleaved.
    both = np.kron((metric + metric.T) / 2, np.eye(n_values // n_basis))
    return np.asarray(both, dtype=np.float64)


def _choose_method(twin: Any, method: str) -> str:
    possible = METHODS.get(get_tags(twin).estimator_type, DENSITY)
    offered = [name for name in possible if hasattr(twin, name)]
    if not offered:
        raise ValueError(
            f"{type(twin).__name__} has no function that can be released on a lattice: needed is "
            f"{' or '.join(possible)}."
        )
    if method == "auto":
        return offered[0]
    if method not in offered:
        raise ValueError(
            f"The 'method' parameter of FittedFunctionTarget must be 'auto' or one of {offered} "
            f"for {type(twin).__name__}. Got {method!r}."
        )
    return method


def _fitted(transformer: Any, n_features: int | None = None) -> BernsteinTransformer:
    """Fit a clone to a table of the right width; its values do not matter."""
    if not isinstance(transformer, BernsteinTransformer):
        raise TypeError(
            f"A function is released on the lattice of a BernsteinTransformer. Got {transformer!r}."
        )
    if n_features is None:
        rows = np.shape(transformer.feature_range)
        implied = rows[0] if len(rows) == 2 else 1
        n_features = getattr(transformer, "n_features_in_", implied)
    return clone(transformer).fit(np.zeros((1, n_features)))


def _describe(transformer: BernsteinTransformer) -> str:
    """Say where the values are; the order is left out, since it works on released values."""
    return f"on {transformer.degree + 1} points a side of {transformer.feature_range_.tolist()}"
