"""Scores: how the predictions of a fitted estimator are read, and taught to a student."""

from __future__ import annotations

import copy
import math
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import clone
from sklearn.utils import get_tags

from skdp.core.classes import isinstance_by_name
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.inputs import takes_weights
from skdp.estimators.members import configured_members, last_step
from skdp.estimators.public_fit import fit_seeded

# A score of -1 or 1 says that a class is impossible or certain, which no noisy score can.
LARGEST_SCORE = 0.98
CERTAIN = 0.996  # the largest score whose logit is moved

FARTHEST = 3.0  # standard deviations of the oracle's responses to which a prediction is clipped

LEAST_LESSONS = 2000  # records that a student of weighted labels sees at least

# A student of the likeliest labels sees at least so many anchors of each class: cross-validation
# splits a class into five parts.
LEAST_OF_CLASS = 5


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Scores of a classifier: 2 p - 1 of each public class, of two classes that of the second."""

    classes: NDArray

    @property
    def n_columns(self) -> int:
        """Number of scores of a record."""
        return len(self.classes) if len(self.classes) > 2 else 1

    @property
    def moves(self) -> Matrix:
        """How far the scores of a label move at most, if it is replaced."""
        return np.full(min(2, self.n_columns), 2.0)

    def scores_of(self, y: Container) -> Matrix:
        """Return the scores of labels, one row each."""
        return np.where(np.asarray(y)[:, None] == self.classes, 1.0, -1.0)[:, -self.n_columns :]

    def read(self, fitted: Estimator, X: Container) -> Matrix:
        """Return the scores of records, one row each."""
        own = np.asarray(getattr(fitted, "classes_", self.classes)).tolist()
        known = {label: place for place, label in enumerate(self.classes.tolist())}
        scores = np.full((n_records(X), len(known)), -1.0)
        scores[:, [known[label] for label in own]] = self._own_scores(fitted, own, X)
        return np.clip(scores[:, -self.n_columns :], -1, 1)

    def teach(self, student: Estimator, X: Container, scores: Matrix, n_samples: int) -> Estimator:
        """Fit a student to drawn labels with weights, or to the likeliest where it takes none."""
        shares = (1 + np.clip(scores, -LARGEST_SCORE, LARGEST_SCORE)) / 2
        if shares.shape[1] == 1:
            shares = np.hstack([1 - shares, shares])
        shares /= shares.sum(axis=1, keepdims=True)
        if not takes_weights(student):
            labels = self.classes[likeliest(shares)]
            return _taught(student, Dataset(copy.deepcopy(X), labels), n_samples)
        places, weights = drawn_labels(shares)
        rows = np.repeat(np.arange(len(places)), places.shape[1])
        labels = self.classes[places.ravel()]
        return _taught(student, Dataset(take_records(X, rows), labels, weights.ravel()), n_samples)

    def _own_scores(self, fitted: Estimator, own: list, X: Container) -> Matrix:
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
    """Scores of a regressor: predictions in units of public responses, of each output."""

    center: Matrix
    scale: Matrix
    low: Matrix
    high: Matrix
    shape: tuple[int, ...]  # of one response

    @classmethod
    def of(cls, y: NDArray) -> ResponseScores:
        """Take center, scale and range from public responses."""
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        least, largest, scale = columns.min(axis=0), columns.max(axis=0), columns.std(axis=0)
        scale = np.where((least < largest) & (scale > 0), scale, 1.0)
        center = np.clip(columns.mean(axis=0), least, largest)  # a mean may round to beyond
        low = np.maximum(least, center - FARTHEST * scale)
        high = np.minimum(largest, center + FARTHEST * scale)
        return cls(center, scale, low, high, np.shape(y)[1:])

    @property
    def n_columns(self) -> int:
        """Number of scores of a record."""
        return len(self.center)

    @property
    def moves(self) -> Matrix:
        """How far the scores of a response move at most, if it is replaced."""
        return (self.high - self.low) / self.scale

    def scores_of(self, y: Container) -> Matrix:
        """Return the scores of responses, one row each."""
        columns = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        return (np.clip(columns, self.low, self.high) - self.center) / self.scale

    def read(self, fitted: Estimator, X: Container) -> Matrix:
        """Return the scores of records, one row each."""
        return self.scores_of(fitted.predict(X))

    def teach(self, student: Estimator, X: Container, scores: Matrix, n_samples: int) -> Estimator:
        """Fit a student to the predictions."""
        predicted = np.clip(self.center + self.scale * scores, self.low, self.high)
        dataset = Dataset(copy.deepcopy(X), predicted.reshape(len(scores), *self.shape))
        return _taught(student, dataset, n_samples)


@dataclass(frozen=True, eq=False)
class RecordScores:
    """Scores of a density or an outlier detector: a method's values in units of the public fit."""

    method: str
    public: Matrix  # values of the public fit
    center: float
    scale: float
    unit: float  # a value that is larger by it makes a record e times as frequent

    n_columns = 1

    @classmethod
    def of(cls, public_fit: Estimator, method: str, X: Container) -> RecordScores:
        """Take center and scale from the scores of a public fit."""
        values = np.asarray(getattr(public_fit, method)(X), dtype=np.float64)
        held = values[np.isfinite(values)]
        center, scale = (float(held.mean()), float(held.std())) if len(held) else (0.0, 0.0)
        scale = scale or 1.0
        return cls(method, values, center, scale, 1.0 if method == "score_samples" else scale)

    def read(self, fitted: Estimator, X: Container) -> Matrix:
        """Return the scores of records, in one column."""
        return self._in_units(np.asarray(getattr(fitted, self.method)(X), dtype=np.float64))

    def teach(self, student: Estimator, X: Container, scores: Matrix, n_samples: int) -> Estimator:
        """Fit a student to records drawn anew, more often where the score rose."""
        rise = (np.clip(scores, -FARTHEST, FARTHEST) - self._in_units(self.public)).ravel()
        rise *= self.scale / self.unit
        ends = np.cumsum(np.exp(rise - rise.max()))
        places = (np.arange(len(ends)) + 0.5) / len(ends)
        rows = np.searchsorted(ends / ends[-1], places)
        return fit_seeded(clone(student), Dataset(take_records(X, rows)))

    def _in_units(self, values: Matrix) -> Matrix:
        return np.clip((values.reshape(-1, 1) - self.center) / self.scale, -FARTHEST, FARTHEST)


def _taught(student: Estimator, lesson: Dataset, n_samples: int) -> Estimator:
    """Fit a student to records that together weigh as much as the private ones."""
    weights = np.ones(lesson.n_records) if lesson.sample_weight is None else lesson.sample_weight
    if not any(hasattr(member, "eta0") for _, member, _ in configured_members(student)):
        weights = weights * (n_samples / len(weights))  # else they would lengthen each step
    if takes_weights(student):
        with suppress(Exception):  # a step before may change the number of records
            return fit_seeded(clone(student), lesson._replace(sample_weight=weights))
    return fit_seeded(clone(student), lesson._replace(sample_weight=None))


Reader = ClassScores | ResponseScores | RecordScores


def kind_of(estimator: Estimator) -> str | None:
    """Return what an estimator predicts; None if it is nothing that a student can be told."""
    kind = get_tags(estimator).estimator_type
    if kind in ("classifier", "regressor"):
        return kind
    if kind == "outlier_detector":  # one that marks its own records only has no such method
        return kind if hasattr(estimator, "decision_function") else None
    # its score draws, and a student is unlike it without noise too
    unteachable = isinstance_by_name(last_step(estimator), "sklearn.neural_network.BernoulliRBM")
    scores = kind != "clusterer" and not unteachable and hasattr(estimator, "score_samples")
    return "density" if scores else None


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
        return _readable(ClassScores(np.asarray(classes)), public_fit, anchors)
    if kind == "regressor":
        return _readable(ResponseScores.of(y), public_fit, anchors)
    method = "decision_function" if kind == "outlier_detector" else "score_samples"
    return RecordScores.of(public_fit, method, anchors)


def _readable(reader: Reader, public_fit: Estimator, anchors: Container) -> Reader:
    """Return a reader, or refuse an estimator that predicts nothing at some anchors."""
    cause = None
    try:
        if np.isfinite(reader.read(public_fit, copy.deepcopy(anchors))).all():
            return reader
    except ValueError as error:
        cause = error
    raise ValueError(
        f"{type(last_step(public_fit)).__name__}, fitted to public records, predicts nothing for "
        "some of them, so that nothing can be released. Set its parameters so that it predicts for "
        "every record, such as a larger 'radius', and an 'outlier_label' of a classifier."
    ) from cause


def likeliest(shares: Matrix) -> NDArray[np.intp]:
    """Return the place of the likeliest class of each record, and keep some of each class."""
    places, free = shares.argmax(axis=1), np.ones(len(shares), dtype=bool)
    least = min(LEAST_OF_CLASS, len(shares) // shares.shape[1])
    for place, share in enumerate(shares.T):
        rows = np.argsort(np.where(free, share, -1.0))[len(share) - least :]
        places[rows], free[rows] = place, False
    return places


def drawn_labels(shares: Matrix) -> tuple[NDArray[np.intp], Matrix]:
    """Return places of labels, which alone have about these shares, and weights for exact ones.

    The labels of a row are of copies of a record. Shares below that of a copy hold in the mean.
    """
    rng = np.random.default_rng(0)
    n_copies = max(shares.shape[1], math.ceil(LEAST_LESSONS / len(shares)))
    points = (np.arange(n_copies) + rng.random((len(shares), 1))) / n_copies
    ends = shares.cumsum(axis=1)[:, None, :-1]
    places = (rng.permuted(points, axis=1)[:, :, None] >= ends).sum(axis=2)
    counts = np.eye(shares.shape[1])[places].sum(axis=1)
    each = np.maximum(n_copies * shares, 1) / np.maximum(counts, 1)
    weights = np.take_along_axis(each, places, axis=1)
    return places, weights / weights.mean(axis=1, keepdims=True)


def move_to(means: Matrix, logits: Matrix) -> Matrix:
    """Return the scores of logits, each column of which is moved to a mean score."""
    high = 20.0 + np.abs(logits).max(axis=0)  # where all scores are 1, and at -high -1
    low = -high
    for _ in range(60):
        middle = (low + high) / 2
        below = np.tanh((logits + middle) / 2).mean(axis=0) < means
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.tanh((logits + low) / 2)
