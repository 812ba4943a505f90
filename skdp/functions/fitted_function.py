"""FittedFunctionTarget: the function that an estimator learns, through its values on a lattice."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags

from skdp.core.checks import check_rules
from skdp.core.classes import public_name
from skdp.core.dataset import Dataset
from skdp.core.metric import KnownMetric
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Named
from skdp.estimators.configuration import describe, seed_names, without_side_effects
from skdp.estimators.inputs import fit_on, order_matters, reorder, takes
from skdp.estimators.kernel_rows import kernel_rows
from skdp.estimators.members import before_last_step, labels_in, last_step
from skdp.estimators.public_fit import in_container_of
from skdp.functions.bernstein import BernsteinTransformer, coefficients_of
from skdp.functions.bernstein_basis import as_tensor
from skdp.functions.bernstein_order import NoiseFollowed, noise_followed
from skdp.functions.lattice import (
    describe_lattice,
    fit_transformer,
    lattice_metric,
    place_labels,
    stretch,
)
from skdp.functions.released import (
    ReleasedClassifier,
    ReleasedFunction,
    ReleasedOutlierDetector,
    ReleasedRegressor,
)
from skdp.functions.released_density import ReleasedDensity

# Methods that can be released of each kind of estimator; "auto" takes the first that it has.
METHODS: dict[str | None, tuple[str, ...]] = {
    "classifier": ("decision_function", "predict_proba"),
    "regressor": ("predict",),
    "outlier_detector": ("decision_function",),
}
DENSITY = "score_samples"  # of all other kinds

# Largest share of the oracle's records outside of the box.
MOST_OUTSIDE = 0.5


class FittedFunctionTarget(Target):
    """A function that an estimator learns, through its values on a lattice.

    A call fits a clone of the estimator, and evaluates one of its methods at the lattice points of
    a box, which must hold at least half of the oracle's records. :meth:`restore` makes a
    ReleasedDensity, ReleasedClassifier, ReleasedOutlierDetector or ReleasedRegressor of released
    values alone. A density is clipped at zero and normalized, and class probabilities are projected
    to the simplex.

    Parameters
    ----------
    estimator : estimator object
        The estimator as configured. Callbacks and parameters such as `memory` and `verbose` are
        switched off, since they would show a private fit.
    transformer : BernsteinTransformer
        Lattice and box.
    public_fit : estimator object
        The same estimator fitted on public records, for its class labels and columns.
    method : {"auto", "score_samples", "decision_function", "predict_proba", "predict"}, \
            default="auto"
        The function to release. "auto" takes the decision function of classifiers and outlier
        detectors (the probabilities of a classifier that has none), the prediction of regressors,
        and of other estimators the density, which is the exponential of `score_samples`.

    Raises
    ------
    ValueError
        If the estimator has no such method, or more outputs than classes.
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
    >>> target = FittedFunctionTarget(kde, bernstein, public_fit=kde.fit(X))
    >>> values = target(X, seed=0)
    >>> values.shape
    (11,)
    >>> target.restore(values)
    ReleasedDensity(...)
    """

    fits_estimator = True
    needs_labels = True
    _noise: NoiseFollowed | None = None

    def __init__(
        self,
        estimator: Estimator,
        transformer: BernsteinTransformer,
        public_fit: Estimator,
        *,
        method: str = "auto",
    ):
        self.estimator = without_side_effects(estimator)
        names = getattr(public_fit, "feature_names_in_", None)
        self.transformer = fit_transformer(transformer, public_fit.n_features_in_, names)
        self.allow_nan = takes(estimator, "allow_nan")
        self.method = _choose_method(public_fit, method)
        self._kind = get_tags(public_fit).estimator_type
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
        self.seen = self._points if last_step(public_fit) is public_fit else None
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

    def closed_form(self, *records: Container) -> Callable[..., NDArray[np.float64]] | None:
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
        if public_name(type(self.estimator)) != "sklearn.neighbors.KernelDensity":
            return None
        return kernel_rows(self.estimator, self._points, Dataset(*records))

    def restore(self, values: NDArray[np.float64]) -> ReleasedFunction:
        coefficients = coefficients_of(self.transformer, values, self._noise)
        if self._kind == "classifier":
            return ReleasedClassifier(self.transformer, coefficients, self._classes, self.method)
        if self._kind == "regressor":
            return ReleasedRegressor(self.transformer, coefficients)
        if self._kind == "outlier_detector":
            return ReleasedOutlierDetector(self.transformer, coefficients)
        return ReleasedDensity.from_coefficients(self.transformer, coefficients)

    def with_noise(
        self, mechanism: Any, sensitivity: float, errors: NDArray[np.float64] | None
    ) -> Self:
        # behind a code, cross-validation was nearer to the decision function of a kernel machine
        box = self.transformer
        if self.method != DENSITY or box.order != "auto":
            return self
        noise = mechanism.noise_columns((len(self._points),), sensitivity)
        if noise is None or not np.isfinite(noise).all():  # a bound may be near the largest float
            return self
        told = copy.copy(self)
        told._noise = noise_followed(as_tensor(noise, "noise", box.degree, box.n_features_in_))
        return told

    def by_name(self, value: NDArray[np.float64]) -> Named:
        classes = None if self._classes is None else [str(label) for label in self._classes]
        return value, place_labels(self.transformer, value, classes)

    def output_metric(self, *dataset: Container) -> KnownMetric:
        columns = np.shape(dataset[1])[1:] if self._kind == "regressor" else self._columns
        return lattice_metric(self.transformer, self.transformer.n_basis_ * int(np.prod(columns)))

    def _evaluate(self, fitted: Estimator, points: Container) -> NDArray[np.float64]:
        values = np.asarray(getattr(fitted, self.method)(points), dtype=np.float64)
        if self.method == DENSITY:  # in the units that the last step sees
            return np.exp(values) * stretch(self.transformer, before_last_step(fitted, points))
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


def _choose_method(public_fit: Estimator, method: str) -> str:
    """Return the method to release, of those that the estimator has."""
    possible = METHODS.get(get_tags(public_fit).estimator_type, (DENSITY,))
    offered = [name for name in possible if hasattr(public_fit, name)]
    owner = type(public_fit).__name__
    if not offered:
        raise ValueError(
            f"{owner} has no function that can be released on a lattice: needed is "
            f"{' or '.join(possible)}."
        )
    rule = f"be 'auto' or one of {offered} for {owner}"
    check_rules("FittedFunctionTarget", method=(method, method in ["auto", *offered], rule))
    return offered[0] if method == "auto" else method
