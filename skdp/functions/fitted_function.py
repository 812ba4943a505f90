"""FittedFunctionTarget: the function that an estimator learns, through its values on a lattice."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from skdp.core.classes import public_name
from skdp.core.dataset import Dataset
from skdp.core.metric import KnownMetric
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Matrix, Named
from skdp.estimators.configuration import describe, seed_names, without_side_effects
from skdp.estimators.inputs import fit_on, order_matters, reorder, takes
from skdp.estimators.members import before_last_step, labels_in, last_step
from skdp.estimators.public_fit import in_container_of
from skdp.functions.bernstein import BernsteinTransformer
from skdp.functions.lattice import (
    describe_lattice,
    fit_transformer,
    lattice_metric,
    place_labels,
    stretch,
)
from skdp.functions.released import ReleasedClassifier, ReleasedFunction, ReleasedRegressor
from skdp.functions.released_density import ReleasedDensity, describe_mass

# The method that is released of each kind of estimator, the density of all others.
METHODS: dict[str | None, str] = {"classifier": "decision_function", "regressor": "predict"}
DENSITY = "score_samples"
KERNEL_DENSITY = "sklearn.neighbors.KernelDensity"

# Distances that depend on the difference of two points only.
TRANSLATION_INVARIANT = frozenset(
    {"chebyshev", "cityblock", "euclidean", "infinity", "l1", "l2", "manhattan", "minkowski", "p"}
)

MOST_OUTSIDE = 0.5  # largest share of the oracle's records outside of the box


class FittedFunctionTarget(Target):
    """The target of a BernsteinTransformer: a function that an estimator learns, on its lattice."""

    fits_estimator = True
    needs_labels = True

    def __init__(
        self, estimator: Estimator, transformer: BernsteinTransformer, public_fit: Estimator
    ):
        self.estimator = without_side_effects(estimator)
        names = getattr(public_fit, "feature_names_in_", None)
        self.transformer = fit_transformer(transformer, public_fit.n_features_in_, names)
        self.allow_nan = takes(estimator, "allow_nan")
        self._kind = get_tags(public_fit).estimator_type
        self.method = METHODS.get(self._kind, DENSITY)
        if self._kind == "outlier_detector" or not hasattr(public_fit, self.method):
            raise ValueError(
                f"{type(public_fit).__name__} has no function that can be released on a lattice: "
                "needed is the decision_function of a classifier, a regressor, or the "
                "score_samples of a density. Use release='predictions'."
            )
        self._classes: Any = getattr(public_fit, "classes_", None)
        if isinstance(self._classes, list):
            raise ValueError(
                f"{type(public_fit).__name__} predicts labels of several outputs. "
                "FittedFunctionTarget takes classifiers of one."
            )
        n_classes = 0 if self._classes is None else len(self._classes)
        self._columns = (n_classes,) if n_classes > 2 else ()
        self._points = self.transformer.lattice_
        # the lattice as the last step sees it; None behind steps that are fitted to private records
        model = last_step(public_fit)
        self.seen = self._points if model is public_fit else None
        is_of_kernels = public_name(type(model)) == KERNEL_DENSITY
        self.bandwidth = float(model.bandwidth_) if is_of_kernels else math.inf
        self._seeds = seed_names(self.estimator)
        self._shuffled = order_matters(self.estimator)
        self.key_parts = (
            *(self.method, self.estimator, self._kind, self._columns, self._points),
            *labels_in(public_fit),
        )
        lattice = describe_lattice(self.transformer)
        self.description = f"{self.method} of {describe(estimator)} {lattice}"
        if names is None:
            self._evaluate(public_fit, self._points)  # refuses before any record is drawn

    def __call__(self, *parts: Container, seed: int) -> NDArray[np.float64]:
        """Fit on the dataset and evaluate on the lattice."""
        dataset = Dataset(*parts)
        fitted = clone(self.estimator)
        if self._seeds:
            fitted.set_params(**dict.fromkeys(self._seeds, seed))
        if self._shuffled:  # else the seed would treat the last record alike in all pairs
            dataset = reorder(dataset, seed)
        fit_on(fitted, dataset)
        if self._classes is not None and not np.array_equal(fitted.classes_, self._classes):
            raise ValueError("a class is missing")
        return self._evaluate(fitted, in_container_of(dataset.X, self._points))

    def check_oracle(self, *records: Container) -> None:
        """Refuse an oracle most of whose records are outside of the box."""
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

    def closed_form(self, *records: Container) -> Callable[..., NDArray[np.float64]] | None:
        if public_name(type(self.estimator)) != KERNEL_DENSITY:
            return None
        return kernel_rows(self.estimator, self._points, Dataset(*records))

    def warning(self, n_samples: int) -> str:
        """Warn of kernels that are too narrow for the lattice."""
        if self.seen is None:
            return ""
        bandwidth, widths = self.bandwidth, np.ptp(self.seen, axis=0)
        spacing = float(widths.max()) / self.transformer.degree
        # measured: with a third of a spacing, a share of .34 of the records seemed to be .42
        if bandwidth >= spacing / 3:
            return ""
        n_near = n_samples * (5 * bandwidth) ** len(widths) / np.prod(widths)
        return (
            f"The bandwidth of KernelDensity, {bandwidth:g}, is far below the spacing of the "
            f"lattice, {spacing:g}, which misses the records between its points: of {n_samples} "
            f"that are spread over the box about {n_near:.2g} are near each point. Take a "
            "bandwidth near the spacing."
        )

    def remark(self, restored: object) -> str:
        return describe_mass(restored)

    def restore(self, values: NDArray[np.float64]) -> ReleasedFunction:
        coefficients = self.transformer.coefficients(values)
        if self._kind == "classifier":
            return ReleasedClassifier(self.transformer, coefficients, self._classes)
        if self._kind == "regressor":
            return ReleasedRegressor(self.transformer, coefficients)
        return ReleasedDensity.from_coefficients(self.transformer, coefficients)

    def by_name(self, value: NDArray[np.float64]) -> Named:
        classes = None if self._classes is None else [str(label) for label in self._classes]
        return value, place_labels(self.transformer, value, classes)

    def output_metric(self, *dataset: Container) -> KnownMetric:
        columns = np.shape(Dataset(*dataset).y)[1:] if self._kind == "regressor" else self._columns
        return lattice_metric(self.transformer, self.transformer.n_basis_ * int(np.prod(columns)))

    def _evaluate(self, fitted: Estimator, points: Container) -> NDArray[np.float64]:
        values = np.asarray(getattr(fitted, self.method)(points), dtype=np.float64)
        if self.method == DENSITY:  # in the units that the last step sees
            return np.exp(values) * stretch(self.transformer, before_last_step(fitted, points))
        if self._kind == "classifier" and values.shape[1:] != self._columns:
            raise ValueError(
                f"The decision_function of a classifier of {len(self._classes)} classes must have "
                "one column for each class, or be a vector for two classes. Got shape "
                f"{values.shape}. An SVC needs decision_function_shape='ovr'."
            )
        return values


def kernel_rows(
    estimator: Estimator, points: Matrix, records: Dataset
) -> Callable[..., Matrix] | None:
    """Return ``rows(X)``, the density that each record adds; None where there is none."""
    exact = estimator.atol == 0 and estimator.rtol == 0  # a tolerance lets the tree stop early
    plain = estimator.metric in TRANSLATION_INVARIANT and estimator.metric_params is None
    if not exact or not plain or records.qualities:
        return None
    n_samples, width = records.n_records - 1, points.shape[1]
    bandwidth = clone(estimator).fit(np.zeros((n_samples, width))).bandwidth_
    kernel = clone(estimator).set_params(bandwidth=float(bandwidth)).fit(np.zeros((1, width)))
    return lambda X, y=None: _densities(kernel, points, np.asarray(X, np.float64)) / n_samples


def _densities(kernel: Estimator, points: Matrix, X: Matrix) -> Matrix:
    """Evaluate the density of each record alone at the points, a row per record."""
    differences = (points - X[:, None, :]).reshape(-1, points.shape[1])
    densities: NDArray = np.exp(kernel.score_samples(differences))
    return densities.reshape(len(X), len(points))
