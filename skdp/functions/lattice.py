"""Functions on a box as targets: their values on a lattice, and the function made of these."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.core.checks import shown
from skdp.core.metric import KnownMetric
from skdp.core.target import Target, ValueFormError, as_function_target
from skdp.core.types import AxisLabels, Container, Estimator, Labels, Matrix, Named
from skdp.functions.bernstein import BernsteinTransformer, rows_by_column
from skdp.functions.bernstein_basis import gram_matrix, multiply_axes
from skdp.functions.released import ReleasedRegressor

MAX_METRIC = 2000  # most released values for which the metric of the output is worked out
MODERATE = 3  # the order that stands in for "auto" in the metric


class BernsteinTarget(Target):
    """The values of a function on a box, and the function made of them once they are released.

    Parameters
    ----------
    function : callable
        ``function(X, points)`` or ``function(X, y, points)`` evaluates the function that the
        dataset determines. `points` has shape (n_points, n_variables); the result has shape
        (n_points,) or (n_points, n_outputs). A parameter `random_state` is given an integer, the
        same for both evaluations of a pair. A :class:`FunctionTarget` brings a key of its own.
    transformer : BernsteinTransformer
        Lattice and box, with one row of its `feature_range` for each variable.

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
    >>> from skdp import BernsteinTransformer, LaplaceMechanism, release
    >>> from skdp.functions import BernsteinTarget
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
        self.transformer = fit_transformer(transformer)
        self._points = self.transformer.lattice_
        self.key_parts = self._function, self._points
        self.allow_nan = self._function.allow_nan
        self.description = f"{self._function.description} {describe_lattice(self.transformer)}"

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Evaluate the function on the lattice."""
        values = self._function(*dataset, self._points.copy(), seed=seed)
        n_points = len(self._points)
        if values.ndim not in (1, 2) or len(values) != n_points or values.size == 0:
            raise ValueFormError(
                f"the function must return shape ({n_points},) or ({n_points}, n_outputs), and "
                f"returned {values.shape}"
            )
        return values

    def restore(self, values: NDArray[np.float64]) -> ReleasedRegressor:
        return ReleasedRegressor(self.transformer, self.transformer.coefficients(values))

    def by_name(self, value: NDArray[np.float64]) -> Named:
        return value, place_labels(self.transformer, value)

    def output_metric(self, *dataset: Container) -> KnownMetric | None:
        try:
            n_values = self(*dataset, seed=0).size
        except Exception:  # the function has no value here, as on some pairs
            return None
        return lattice_metric(self.transformer, n_values)


def lattice_metric(transformer: BernsteinTransformer, n_values: int) -> KnownMetric:
    """Return the mean square of a released function as a quadratic form in its values."""
    n_basis, n_features = transformer.n_basis_, transformer.n_features_in_
    n_outputs = n_values // n_basis
    if n_values > MAX_METRIC:
        return KnownMetric(np.ones(n_values), n_outputs)
    if transformer.order == "auto":
        transformer = fit_transformer(clone(transformer).set_params(order=MODERATE), n_features)
    coefficients = transformer.coefficients(np.eye(n_basis))
    tensor = coefficients.reshape((transformer.degree + 1,) * n_features + (-1,))
    factors = [gram_matrix(transformer.degree)] * n_features
    # A'GA, of coefficients A v and the integrals G of products of basis functions
    metric = coefficients.T @ multiply_axes(factors, tensor).reshape(n_basis, -1)
    # Values of one point lie side by side, so each output gets its own copy, interleaved.
    both = np.kron((metric + metric.T) / 2, np.eye(n_outputs))
    return KnownMetric(np.asarray(both, dtype=np.float64), n_outputs)


def stretch(transformer: BernsteinTransformer, seen: Matrix) -> float:
    """Return how much affine steps stretch the box, from the lattice `seen` after them; else 1."""
    seen, lattice = np.asarray(seen, dtype=np.float64), transformer.lattice_
    if seen.shape != lattice.shape or np.array_equal(seen, lattice):
        return 1.0
    n_columns = lattice.shape[1]
    corners = (transformer.degree + 1) ** np.arange(n_columns)[::-1] * transformer.degree
    edges = seen[corners] - seen[0]
    low, high = transformer.feature_range_.T
    affine = seen[0] + (lattice - low) / (high - low) @ edges
    if not np.allclose(seen, affine, rtol=1e-6, atol=1e-6 * np.ptp(seen)):
        return 1.0
    return float(abs(np.linalg.det(edges)) / np.prod(high - low))


def fit_transformer(
    transformer: Estimator, n_features: int | None = None, names: NDArray | None = None
) -> BernsteinTransformer:
    """Fit a clone to a table of the right width, with columns of these names or none."""
    if not isinstance(transformer, BernsteinTransformer):
        raise TypeError(
            f"A function is released on the lattice of a BernsteinTransformer. Got "
            f"{shown(transformer)}."
        )
    if n_features is None:
        rows = np.shape(transformer.feature_range)
        implied = rows[0] if len(rows) == 2 else 1
        n_features = getattr(transformer, "n_features_in_", None) or implied
    made = clone(transformer)
    made.feature_range = rows_by_column(transformer.feature_range, names)
    made.fit(np.zeros((1, n_features)))
    if names is not None:
        made.feature_names_in_ = names
    return made


def describe_lattice(transformer: BernsteinTransformer) -> str:
    """Name the lattice; the order is left out, since it works on released values."""
    return f"on {transformer.degree + 1} points a side of {transformer.feature_range_.tolist()}"


def place_labels(
    transformer: BernsteinTransformer, numbers: object, of_last: Labels = None
) -> AxisLabels:
    """Name values by the points of the lattice; `of_last` are the names of several outputs."""
    names = getattr(transformer, "feature_names_in_", None)
    columns = [""] * transformer.n_features_in_ if names is None else [f"{n}=" for n in names]
    low, high = transformer.feature_range_.T
    step = (high - low) / transformer.degree
    needed = np.log10(np.maximum(abs(low), abs(high))) - np.log10(step)
    digits = np.clip(2 + np.ceil(needed), 6, 17).astype(int)  # or neighbors look alike
    lattice = transformer.lattice_
    lattice[np.abs(lattice) < 1e-9 * step] = 0  # which may be a rounding error
    places = [
        ", ".join(f"{name}{x:.{n}g}" for name, x, n in zip(columns, point, digits, strict=True))
        for point in lattice
    ]
    return {"value": (places, places if getattr(numbers, "ndim", 0) == 1 else of_last)}
