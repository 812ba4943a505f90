"""Predictions as what is released: scores at public points, from which a student learns.

The *anchors* are public records, at which a fitted estimator is read. Its scores there are the
value that gets noise. The *student* is a fresh estimator, fitted to the anchors and to the decoded
scores. It sees no private record, so it is post-processing.
"""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from skdp.core.checks import check_count, shown
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.dtypes import MisfitError, holds_numbers
from skdp.core.metric import KnownMetric
from skdp.core.persons import first_of_each
from skdp.core.plain import as_doubles, as_objects, columns_of, plain
from skdp.core.schema import DatasetForm
from skdp.core.streams import ANCHOR_DATASET
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.configuration import alone, describe, seed_names, seeded
from skdp.estimators.inputs import fit_on, reorder, takes
from skdp.estimators.public_fit import clean_copy
from skdp.estimators.scores import ClassScores, Reader, kind_of, move_to, reader_of

# Anchors where the user asks for no other number, and how many times as many records are drawn to
# find as many different ones.
N_ANCHORS = 400
DRAWN = 4

JITTER = 0.3  # standard deviations of a column by which copies of an anchor are moved


class PredictionTarget(BaseEstimator):
    """Release the predictions of any estimator at public points, and teach them to a student.

    The released numbers are the scores of the fitted estimator at *anchors*, which are records of
    the oracle: of a classifier ``2 p - 1`` for the probability p of each class (of the second class
    alone where there are two), of a regressor the prediction in units of the oracle's responses, of
    an outlier detector or a density the decision function or `score_samples`. The estimator may be
    of any class, also of another package, and may be a pipeline or a search.

    The released estimator is a *student*: a fresh clone of the estimator, or of `student`, fitted
    to the anchors with the released scores. It may hold anchors, which are public, as the training
    records of a nearest neighbors classifier.

    Parameters
    ----------
    anchors : array-like, sparse matrix or frame of shape (n_anchors, n_features), default=None
        Public records in the form of the private ones. None takes records of the oracle.
    n_anchors : int or None, default=None
        Number of anchors to take from the oracle. None is 400. More cost no privacy, but time.
    student : estimator object or None, default=None
        The estimator that is fitted to the anchors and released, such as ``LogisticRegression()``.
        None takes a clone of the wrapped one.

    See Also
    --------
    PrivateEstimator : Takes it as `release`; ``"predictions"`` is short for ``PredictionTarget()``.

    Notes
    -----
    With an oracle of random rules, a code reads the scores along axes of such rules, and the mean
    response beside them. The student then learns from more public records than the anchors, moved
    to the released mean.

    Anchors of classifiers and regressors are different records of the oracle. Where it has fewer
    than asked for, copies are added whose numbers are moved by .3 standard deviations, within the
    range of each column. Anchors of other estimators are a plain draw.

    Probabilities come from `predict_proba`, else from the softmax of `decision_function`, else from
    `predict`. A class that a fit lacks has probability 0. Predictions of regressors are clipped to
    three standard deviations around the mean of the oracle's responses, and to their range.

    A student that takes `sample_weight` sees some copies of each anchor, whose labels are drawn by
    the released probabilities, and weights that make these exact: steps that take no weights learn
    from the labels. Another one sees the likeliest label of each anchor, and of each class at least
    the five anchors that are likeliest to have it. Regressors see the released predictions. In all
    the weights are as many as the private records, as penalties count against their number.
    Outlier detectors and densities see anchors that are drawn anew, in proportion to the
    exponential of the released score minus that of the public fit. Searches and cross-validation of
    the student run on the anchors. All that is post-processing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from skdp import LaplaceMechanism, PredictionTarget, PrivateEstimator
    >>> from skdp import RandomTaskOracle, SensitivitySampler
    >>> X, y = load_iris(return_X_y=True)
    >>> oracle = RandomTaskOracle(X[::2], classes=[0, 1, 2])
    >>> model = PrivateEstimator(
    ...     KNeighborsClassifier(15),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(oracle, gamma=0.2, random_state=0),
    ...     release=PredictionTarget(n_anchors=100),
    ... )
    >>> model.fit(X[1::2], y[1::2]).predict(X[1::2]).shape
    (75,)
    """

    def __init__(
        self,
        *,
        anchors: Container = None,
        n_anchors: int | None = None,
        student: Estimator = None,
    ):
        self.anchors = anchors
        self.n_anchors = n_anchors
        self.student = student


def check_predictions(release: PredictionTarget, estimator: Estimator) -> None:
    """Refuse, before any fit, an estimator that no student can learn, and wrong parameters."""
    kind, student = kind_of(estimator), release.student
    if kind is None:
        raise ValueError(
            f"PredictionTarget cannot release {type(estimator).__name__}: a student can be told "
            "the predictions of a classifier, a regressor, an outlier detector or a density, by "
            "their tags, and no transform and no clusters."
        )
    if release.n_anchors is not None:
        check_count("n_anchors", release.n_anchors, "PredictionTarget")
    is_class = student is not None and not hasattr(type(student), "fit")
    if student is not None and (is_class or kind_of(student) != kind):
        raise TypeError(
            f"The 'student' parameter of PredictionTarget must be a {kind.replace('_', ' ')} "
            f"like the estimator, unfitted. Got {shown(student)}."
        )


def anchors_of(
    release: PredictionTarget,
    estimator: Estimator,
    source: Any,
    schema: DatasetForm,
    least: int = 0,  # more records than anchors, as far as they differ
) -> Container:
    """Return the anchors in the form of the data, given or drawn by ``source.public_dataset``."""
    form, given = schema.parts.X, release.anchors
    if given is not None:
        try:
            return form.convert(np.asarray(given) if isinstance(given, list) else given)
        except MisfitError as misfit:
            raise ValueError(
                "The 'anchors' parameter of PredictionTarget must have the form of the data: "
                f"it{misfit}."
            ) from None
    n_anchors = release.n_anchors or N_ANCHORS
    if kind_of(estimator) not in ("classifier", "regressor"):
        return first_of_each(source.public_dataset(n_anchors, schema, ANCHOR_DATASET)).X
    most = max(least, n_anchors)
    drawn = source.public_dataset(DRAWN * most, schema, ANCHOR_DATASET).X
    return form.convert(different_records(drawn, most, least=n_anchors))


def predictions_of(
    release: PredictionTarget,
    estimator: Estimator,
    public_fit: Estimator,
    public: Dataset,
    anchors: Container,
    n_samples: int,
) -> Predictions:
    """Make the target, and try a student on the scores of the public fit."""
    reader = reader_of(public_fit, public.y, anchors)
    target = Predictions(estimator, release.student, reader, anchors, n_samples)
    try:
        target.restore(target.read(public_fit))
    except Exception as error:
        error.add_note("Raised when a student was fitted to the predictions of a public fit.")
        raise
    return target


class Predictions(Target):
    """The target of :class:`skdp.PredictionTarget`: scores of an estimator at public anchors.

    Where public `axes` are given, along which scores vary around their mean, the mean response of
    the records follows the scores. What is decoded of a code is then carried along the axes to all
    `rows`, the first of which are the anchors, and moved to the released mean.
    """

    fits_estimator = True
    is_decoded = False

    def __init__(
        self,
        estimator: Estimator,
        student: Estimator,
        reader: Reader,
        anchors: Container,
        n_samples: int,
        rows: Container = None,
        axes: Matrix | None = None,
    ):
        self.estimator = alone(estimator)
        self.student = self.estimator if student is None else alone(student)
        self.reader = reader
        self.anchors = anchors
        self.n_samples = n_samples
        self.allow_nan = takes(estimator, "allow_nan")
        self._seeds = seed_names(self.estimator)
        self.rows, self.axes = rows, axes
        self.n_beside = 0 if axes is None else reader.n_columns
        self.size = reader.n_columns * n_records(anchors)
        if isinstance(reader, ClassScores):
            self.class_strata = "labels"
        # values do not depend on the axes, which differ between machines by rounding
        has_axes = axes is not None
        self.key_parts = (self.estimator, self.student, reader, anchors, n_samples, has_axes)
        self.released = f"predictions at {n_records(anchors)} public records"
        self.description = (
            f"predictions of {describe(estimator)} at {n_records(anchors)} public records"
            f"{'' if student is None else f', taught to {describe(student)}'}"
        )

    def __call__(self, *parts: Container, seed: int) -> Matrix:
        """Fit on the dataset, in an order that the seed makes, and read the scores."""
        fitted = clone(self.estimator).set_params(**dict.fromkeys(self._seeds, seed))
        dataset = reorder(Dataset(*parts), seed)
        reader: Any = self.reader
        responses = reader.scores_of(dataset.y) if self.axes is not None else np.empty((1, 0))
        with seeded(seed):
            return self.value_of(self.read(fit_on(fitted, dataset)), responses)

    def value_of(self, scores: Matrix, responses: Matrix) -> Matrix:
        """Return scores, followed by the mean of the scores of responses where there are axes."""
        return scores if self.axes is None else np.append(scores, responses.mean(axis=0))

    def read(self, fitted: Estimator) -> Matrix:
        """Return the scores of a fitted estimator, a vector where there is one for each anchor."""
        scores = self.reader.read(fitted, copy.deepcopy(self.anchors))  # it may write into them
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def restore(self, value: Matrix) -> Estimator:
        """Fit a student to released scores."""
        value = np.ravel(value)
        rows, scores = self.anchors, value[: self.size].reshape(n_records(self.anchors), -1)
        if self.is_decoded:
            rows, scores = self.rows, self._at_rows(scores, value[self.size :])
        with warnings.catch_warnings(), seeded(0):  # else what a private fit drew shows in it
            warnings.simplefilter("ignore")  # of a fit to noisy scores
            taught = self.reader.teach(self.student, rows, scores, self.n_samples)
            return clean_copy(taught)

    def _at_rows(self, scores: Matrix, means: Matrix) -> Matrix:
        """Carry scores along the axes to all rows, and move them to the mean responses."""
        assert self.axes is not None  # or nothing was decoded so
        width = scores.shape[1]
        constant = np.tile(np.eye(width), len(scores))
        along = np.linalg.pinv(np.vstack([constant, self.axes[:, : self.size]]).T)[width:]
        found = means + (along @ scores.ravel() @ self.axes).reshape(-1, width)
        return move_to(means, found) if isinstance(self.reader, ClassScores) else found

    def with_noise(self, mechanism: Any, sensitivity: float, errors: Matrix | None) -> Target:
        """Return a copy that restores decoded scores, where there is a code along the axes."""
        decoded = copy.copy(self)
        decoded.is_decoded = self.axes is not None and mechanism.geometry.code is not None
        return decoded

    def output_metric(self, *dataset: Container) -> KnownMetric:
        """Count all anchors alike."""
        ones, width = np.ones(self.size), self.reader.n_columns
        if self.axes is None:
            return KnownMetric(ones, width, are_alike=True)
        reader: Any = self.reader
        matrix, axes = np.append(ones, np.zeros(width)), self.axes[:, : self.size]
        return KnownMetric(matrix, width, True, axes, reader.moves / self.n_samples)


def different_records(X: Container, most: int, least: int) -> Container:
    """Return the first different public records, and moved copies where there are too few."""
    if sparse.issparse(X):  # to compare and to move all entries would fill the memory
        return take_records(X, np.arange(most))
    rows = as_objects(X).tolist()
    first = {repr(row): place for place, row in reversed(list(enumerate(rows)))}
    places = np.sort(np.fromiter(first.values(), dtype=np.intp))[:most]
    taken = take_records(X, np.resize(places, max(least, len(places))))
    rng = np.random.default_rng(0)
    if isinstance(X, np.ndarray):
        if X.ndim < 2 or X.dtype.kind not in "iuf":
            return take_records(X, places)
        return np.column_stack([_jitter(column, len(places), rng) for column in taken.T])
    columns = {column.name: column for column in columns_of(plain(taken, "anchors"))}
    for name, column in columns.items():
        if holds_numbers(column.dtype):
            numbers = _jitter(as_doubles(column), len(places), rng).tolist()
            columns[name] = [None if math.isnan(number) else number for number in numbers]
    return type(X)(columns)


def _jitter(numbers: NDArray, n_kept: int, rng: np.random.Generator) -> Matrix:
    """Move all numbers but the first, whole ones by whole steps, within their range."""
    numbers = numbers.astype(np.float64)
    held = numbers[np.isfinite(numbers)]
    if n_kept == len(numbers) or not len(held):
        return numbers
    moved = numbers + JITTER * held.std() * rng.standard_normal(len(numbers))
    if (held == np.rint(held)).all():
        moved = np.rint(moved)
    moved = np.clip(moved, held.min(), held.max())
    return np.where(np.arange(len(numbers)) < n_kept, numbers, moved)
