"""Predictions as what is released: scores at public points, from which a student learns.

The *anchors* are public records, at which a fitted estimator is read. Its scores there are the
value that gets noise. The *student* is a fresh estimator, fitted to the anchors and to the decoded
scores. It sees no private record, so it is post-processing.
"""

from __future__ import annotations

import copy
import math
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

from skdp.core.checks import check_count, shown
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.dtypes import MisfitError, holds_numbers
from skdp.core.metric import KnownMetric
from skdp.core.plain import as_doubles, as_objects, columns_of, plain
from skdp.core.schema import Schema
from skdp.core.streams import ANCHOR_DATASET
from skdp.core.target import Target
from skdp.core.types import Container, Estimator
from skdp.estimators.configuration import describe, make_quiet, seed_names
from skdp.estimators.copies import clean_copy
from skdp.estimators.inputs import fit_on, reorder, takes, takes_weights
from skdp.estimators.public_fit import fit_seeded

# Anchors where the user asks for no other number, and how many times as many records are drawn to
# find as many different ones.
N_ANCHORS = 400
DRAWN = 4

# Standard deviations of a column by which copies of an anchor are moved.
JITTER = 0.3

# A score of -1 or 1 says that a class is impossible or certain, which no noisy score can.
LARGEST_SCORE = 0.98

# Standard deviations of the oracle's responses to which a prediction is clipped.
FARTHEST = 3.0

# A student that takes no weights sees at least so many anchors of each class: cross-validation
# splits a class into five parts.
LEAST_OF_CLASS = 5


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
    Anchors of classifiers and regressors are different records of the oracle. Where it has fewer
    than asked for, copies are added whose numbers are moved by .3 standard deviations, within the
    range of each column. Anchors of other estimators are a plain draw.

    Probabilities come from `predict_proba`, else from the softmax of `decision_function` (of two
    classes the score is its hyperbolic tangent), else from `predict`. A class that a fit lacks has
    probability 0. Predictions of
    regressors are clipped to three standard deviations around the mean of the oracle's responses,
    and to their range.

    A student that takes `sample_weight` sees each anchor once for each class, with the released
    probability as its weight. Another one sees the likeliest label of each anchor, and of each
    class at least the five anchors that are likeliest to have it. Regressors see the released
    predictions. Outlier detectors and densities cannot be told scores: they see anchors that are
    drawn anew with weights proportional to the exponential of the released score minus that of the
    public fit, which for a density is the ratio of the two. Searches and cross-validation of the
    student run on the anchors. All that is post-processing and costs no privacy.

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
            "their tags, and no transform and no clusters. A class of your own inherits from "
            "ClassifierMixin or RegressorMixin."
        )
    if release.n_anchors is not None:
        check_count("n_anchors", release.n_anchors, "PredictionTarget")
    is_estimator = hasattr(student, "fit") and not isinstance(student, type)
    if student is not None and not (is_estimator and kind_of(student) == kind):
        raise TypeError(
            f"The 'student' parameter of PredictionTarget must be a {kind.replace('_', ' ')} "
            f"like the estimator, unfitted. Got {shown(student)}."
        )


def anchors_of(
    release: PredictionTarget, estimator: Estimator, source: Any, schema: Schema
) -> Container:
    """Return the anchors in the form of the data, given or drawn by ``source.public_dataset``."""
    form = schema.parts[0]
    if release.anchors is not None:
        given = release.anchors
        try:
            return form.convert(np.asarray(given) if isinstance(given, list) else given)
        except MisfitError as misfit:
            raise ValueError(
                "The 'anchors' parameter of PredictionTarget must have the form of the data: "
                f"it{misfit}."
            ) from None
    n_anchors = release.n_anchors or N_ANCHORS
    if kind_of(estimator) not in ("classifier", "regressor"):
        return source.public_dataset(n_anchors, schema, ANCHOR_DATASET).X
    drawn = source.public_dataset(DRAWN * n_anchors, schema, ANCHOR_DATASET).X
    return form.convert(different_records(drawn, n_anchors))


def predictions_of(
    release: PredictionTarget,
    estimator: Estimator,
    public_fit: Estimator,
    public: Dataset,
    anchors: Container,
) -> Predictions:
    """Make the target, and try a student on the scores of the public fit."""
    weighted = public.sample_weight is not None
    reader = reader_of(public_fit, public.y, anchors)
    target = Predictions(estimator, release.student, reader, anchors, weighted)
    try:
        target.restore(target.read(public_fit))
    except Exception as error:
        error.add_note("Raised when a student was fitted to the predictions of a public fit.")
        raise
    return target


class Predictions(Target):
    """The target of :class:`skdp.PredictionTarget`: scores of an estimator at public anchors.

    `student` is None where the estimator is its own student; `reader` reads scores of a fitted
    estimator and teaches them to a student.
    """

    fits_estimator = True

    def __init__(
        self,
        estimator: Estimator,
        student: Estimator,
        reader: Reader,
        anchors: Container,
        weighted: bool = False,
    ):
        self.estimator = alone(estimator)
        self.student = self.estimator if student is None else alone(student)
        self.reader = reader
        self.anchors = anchors
        self.allow_nan = takes(estimator, "allow_nan")
        self._seeds = seed_names(self.estimator)
        self.key_parts = (self.estimator, self.student, reader, anchors, weighted)
        self.released = f"predictions at {n_records(anchors)} public records"
        self.description = (
            f"predictions of {describe(estimator)} at {n_records(anchors)} public records"
            f"{'' if student is None else f', taught to {describe(student)}'}"
            f"{', weighted' * weighted}"
        )

    def __call__(self, *parts: Container, seed: int) -> NDArray[np.float64]:
        """Fit on the dataset, in an order that the seed makes, and read the scores."""
        fitted = clone(self.estimator)
        if self._seeds:
            fitted.set_params(**dict.fromkeys(self._seeds, seed))
        with seeded(seed):
            return self.read(fit_on(fitted, reorder(Dataset(*parts), seed)))

    def read(self, fitted: Estimator) -> NDArray[np.float64]:
        """Return the scores of a fitted estimator, a vector where there is one for each anchor."""
        scores = self.reader.read(fitted, copy.deepcopy(self.anchors))  # it may write into them
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def restore(self, value: NDArray[np.float64]) -> Estimator:
        """Fit a student to released scores."""
        scores = np.reshape(value, (n_records(self.anchors), -1))
        with warnings.catch_warnings(), seeded(0):  # else what a private fit drew shows in it
            warnings.simplefilter("ignore")  # of a fit to noisy scores
            return clean_copy(self.reader.teach(self.student, self.anchors, scores))

    def output_metric(self, *dataset: Container) -> KnownMetric:
        """Count all anchors alike."""
        size = self.reader.n_columns * n_records(self.anchors)
        return KnownMetric(np.ones(size), self.reader.n_columns, are_alike=True)


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Scores of a classifier: 2 p - 1 of each public class, of two classes that of the second."""

    classes: NDArray

    @property
    def n_columns(self) -> int:
        """Number of scores of a record."""
        return len(self.classes) if len(self.classes) > 2 else 1

    def scores_of(self, y: Container) -> NDArray[np.float64]:
        """Return the scores of labels, one row each."""
        return np.where(np.asarray(y)[:, None] == self.classes, 1.0, -1.0)[:, -self.n_columns :]

    def read(self, fitted: Estimator, X: Container) -> NDArray[np.float64]:
        """Return the scores of records, one row each."""
        own = np.asarray(getattr(fitted, "classes_", self.classes)).tolist()
        known = {label: place for place, label in enumerate(self.classes.tolist())}
        scores = np.full((n_records(X), len(known)), -1.0)
        scores[:, [known[label] for label in own]] = self._own_scores(fitted, own, X)
        return np.clip(scores[:, -self.n_columns :], -1, 1)

    def teach(self, student: Estimator, X: Container, scores: NDArray[np.float64]) -> Estimator:
        """Fit a student to probabilities as weights, or to labels where it takes none."""
        shares = (1 + np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)) / 2
        if shares.shape[1] == 1:
            shares = np.hstack([1 - shares, shares])
        shares /= shares.sum(axis=1, keepdims=True)
        if takes_weights(student):
            rows = np.repeat(np.arange(len(shares)), len(self.classes))
            labels = np.tile(self.classes, len(shares))
            weighted = Dataset(take_records(X, rows), labels, shares.ravel())
            with suppress(Exception):  # a step before may change the number of records
                return fit_seeded(clone(student), weighted)
        labels = self.classes[likeliest(shares)]
        return fit_seeded(clone(student), Dataset(copy.deepcopy(X), labels))

    def _own_scores(self, fitted: Estimator, own: list, X: Container) -> NDArray[np.float64]:
        """Return a column for each class that a fit has."""
        if hasattr(fitted, "predict_proba"):
            return 2 * np.asarray(fitted.predict_proba(X), dtype=np.float64) - 1
        if hasattr(fitted, "decision_function") and len(own) > 1:
            margins = np.asarray(fitted.decision_function(X), dtype=np.float64)
            if margins.ndim == 1:
                margins = np.column_stack([-margins, margins])
            if margins.shape[1] == len(own):  # and not one for each pair of classes
                return 2 * softmax(margins, axis=1) - 1
        votes = np.ravel(fitted.predict(X)).tolist()
        return np.array([[1.0 if label == vote else -1.0 for label in own] for vote in votes])


@dataclass(frozen=True, eq=False)
class ResponseScores:
    """Scores of a regressor: predictions in units of public responses, of each output.

    `shape` is that of one response.
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, y: NDArray) -> ResponseScores:
        """Take center, scale and range from public responses."""
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        center, scale = columns.mean(axis=0), columns.std(axis=0)
        scale = np.where(scale > 0, scale, 1.0)
        low = np.maximum(columns.min(axis=0), center - FARTHEST * scale)
        high = np.minimum(columns.max(axis=0), center + FARTHEST * scale)
        return cls(center, scale, low, high, np.shape(y)[1:])

    @property
    def n_columns(self) -> int:
        """Number of scores of a record."""
        return len(self.center)

    def scores_of(self, y: Container) -> NDArray[np.float64]:
        """Return the scores of responses, one row each."""
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return (np.clip(columns, self.low, self.high) - self.center) / self.scale

    def read(self, fitted: Estimator, X: Container) -> NDArray[np.float64]:
        """Return the scores of records, one row each."""
        return self.scores_of(fitted.predict(X))

    def teach(self, student: Estimator, X: Container, scores: NDArray[np.float64]) -> Estimator:
        """Fit a student to the predictions."""
        predicted = np.clip(self.center + self.scale * scores, self.low, self.high)
        dataset = Dataset(copy.deepcopy(X), predicted.reshape(len(scores), *self.shape))
        return fit_seeded(clone(student), dataset)


@dataclass(frozen=True, eq=False)
class RecordScores:
    """Scores of a density or an outlier detector: a method's values in units of the public fit.

    `public` are the values of the public fit. A value that is larger by `unit` makes a record e
    times as frequent.
    """

    method: str
    public: NDArray[np.float64]
    center: float
    scale: float
    unit: float

    n_columns = 1

    @classmethod
    def of(cls, public_fit: Estimator, method: str, X: Container) -> RecordScores:
        """Take center and scale from the scores of a public fit."""
        values = np.asarray(getattr(public_fit, method)(X), dtype=np.float64)
        held = values[np.isfinite(values)]
        center, scale = (float(held.mean()), float(held.std())) if len(held) else (0.0, 0.0)
        scale = scale or 1.0
        return cls(method, values, center, scale, 1.0 if method == "score_samples" else scale)

    def read(self, fitted: Estimator, X: Container) -> NDArray[np.float64]:
        """Return the scores of records, in one column."""
        return self._in_units(np.asarray(getattr(fitted, self.method)(X), dtype=np.float64))

    def teach(self, student: Estimator, X: Container, scores: NDArray[np.float64]) -> Estimator:
        """Fit a student to records drawn anew, more often where the score rose."""
        rise = (np.clip(scores, -FARTHEST, FARTHEST) - self._in_units(self.public)).ravel()
        rise *= self.scale / self.unit
        ends = np.cumsum(np.exp(rise - rise.max()))
        places = (np.arange(len(ends)) + 0.5) / len(ends)
        rows = np.searchsorted(ends / ends[-1], places)
        return fit_seeded(clone(student), Dataset(take_records(X, rows)))

    def _in_units(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.clip((values.reshape(-1, 1) - self.center) / self.scale, -FARTHEST, FARTHEST)


Reader = ClassScores | ResponseScores | RecordScores


def kind_of(estimator: Estimator) -> str | None:
    """Return what an estimator predicts; None if it is nothing that a student can be told."""
    kind = get_tags(estimator).estimator_type
    if kind in ("classifier", "regressor"):
        return kind
    if kind == "outlier_detector":  # one that marks its own records only has no such method
        return kind if hasattr(estimator, "decision_function") else None
    return "density" if kind != "clusterer" and hasattr(estimator, "score_samples") else None


def reader_of(public_fit: Estimator, y: Container, anchors: Container) -> Reader:
    """Return how the scores of an estimator are read and taught."""
    kind = kind_of(public_fit)
    if kind == "classifier":
        classes = getattr(public_fit, "classes_", np.unique(y))
        if np.ndim(y) > 1 or isinstance(classes, list):
            raise ValueError(
                f"{type(public_fit).__name__} predicts labels of several outputs. PredictionTarget "
                "takes classifiers of one: release each output by itself."
            )
        return ClassScores(np.asarray(classes))
    if kind == "regressor":
        return ResponseScores.of(y)
    method = "decision_function" if kind == "outlier_detector" else "score_samples"
    return RecordScores.of(public_fit, method, anchors)


def likeliest(shares: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the place of the likeliest class of each record, and keep some of each class."""
    places, free = shares.argmax(axis=1), np.ones(len(shares), dtype=bool)
    least = min(LEAST_OF_CLASS, len(shares) // shares.shape[1])
    for place, share in enumerate(shares.T):
        rows = np.argsort(np.where(free, share, -1.0))[len(share) - least :]
        places[rows], free[rows] = place, False
    return places


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed the global generators, from which an estimator may draw, and put them back."""
    # an estimator may draw from it
    before, of_numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # an estimator may draw from it
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(of_numpy)  # noqa: NPY002  # an estimator may draw from it


def alone(estimator: Estimator) -> Estimator:
    """Return a clone whose fit prints nothing, writes nothing and starts no workers."""
    estimator = make_quiet(clone(estimator))
    given = estimator.get_params().items()
    jobs = {name: 1 for name, value in given if name.split("__")[-1] == "n_jobs" and value}
    return estimator.set_params(**jobs)


def different_records(X: Container, n_wanted: int) -> Container:
    """Return the first different public records, and moved copies where there are few.

    Numbers of a frame may come back as doubles.
    """
    if sparse.issparse(X):  # to compare and to move all entries would fill the memory
        return take_records(X, np.arange(n_wanted))
    rows = as_objects(X).tolist()
    first = {repr(row): place for place, row in reversed(list(enumerate(rows)))}
    places = np.sort(np.fromiter(first.values(), dtype=np.intp))[:n_wanted]
    taken = take_records(X, np.resize(places, n_wanted))
    rng = np.random.default_rng(0)
    if isinstance(X, np.ndarray):
        if X.ndim < 2 or X.dtype.kind not in "iuf":
            return take_records(X, places)
        return np.column_stack([_moved(column, len(places), rng) for column in taken.T])
    columns = {column.name: column for column in columns_of(plain(taken, "anchors"))}
    for name, column in columns.items():
        if holds_numbers(column.dtype):
            numbers = _moved(as_doubles(column), len(places), rng).tolist()
            columns[name] = [None if math.isnan(number) else number for number in numbers]
    return type(X)(columns)


def _moved(numbers: NDArray, n_kept: int, rng: np.random.Generator) -> NDArray[np.float64]:
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
