"""The release of an estimator whose sensitivity is known on paper: its target, and what is refused.

The steps before the last one of a pipeline must be public and treat each record by itself. What the
clips right before the last step promise of every record is what the bound is made of.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import chain, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_classifier

from skdp.core.checks import shown
from skdp.core.classes import public_name
from skdp.core.dataset import Dataset, take_records
from skdp.core.metric import OutputMetric
from skdp.core.plain import as_doubles, with_doubles
from skdp.core.target import Target, is_auto
from skdp.core.types import Container, Estimator, Named
from skdp.estimators.catalog import CATALOG, RECORD_ATTRIBUTES, entry_of
from skdp.estimators.catalog.compositions import FROZEN, is_pipeline, transforms_target
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.clip import ClipBox, ClipNorm, ranges_of
from skdp.estimators.configuration import describe
from skdp.estimators.copies import clean_copy
from skdp.estimators.inputs import takes
from skdp.estimators.members import last_step
from skdp.estimators.metric import MAX_EVALUATED, output_metric
from skdp.estimators.statistics import Front, Statistic

EVERYTHING = ClipBox(-np.finfo(np.float64).max, np.finfo(np.float64).max)
"""Brings records of any container into plain doubles, none of them missing."""
EVERYTHING.set_output(transform="default")  # whatever scikit-learn is configured to
CLIPS = (ClipBox, ClipNorm)


class PublicSteps:
    """The steps before the last one, frozen or made of parameters; they refuse no record."""

    def __init__(self, public_fit: Estimator, n_features: int):
        before = [*_flat(public_fit)][:-1]
        self.steps = [*chain.from_iterable(map(_thawed, before))]
        self.n_features = n_features

    def transform(self, X: Container) -> Container:
        """Return records as the last step sees them, in doubles, none of them missing.

        One that a step refuses becomes 0, as an error would tell that it is there, and is then
        clipped as the others are. Until then another stands in its place, so that what is made of
        that one depends on no record but itself: not even its type of numbers.
        """
        clips = takewhile(lambda step: type(step) in CLIPS, reversed(self.steps))
        first_clip = len(self.steps) - len([*clips])
        X, refused = _transform(self.steps[:first_clip], with_doubles(X))
        if refused.all():
            X = np.zeros((len(refused), self.n_features))
        X = EVERYTHING._rows(X, reset=False)
        if sparse.issparse(X):
            X.data[np.repeat(refused, np.diff(X.indptr))] = 0
        else:
            X[refused] = 0
        for clip in self.steps[first_clip:] or [EVERYTHING]:  # X is a copy in doubles without gaps
            clip._check(X)
            X = clip._clip(X)
        return X

    def transform_complete(self, X: Container) -> Container:
        """Return the records that the last step sees if it sees none with a gap, in doubles.

        Those are left out that a step refuses, or that miss a number which no step fills. The 0 of
        a clip fills none.
        """
        X, left_out = _transform(self.steps, with_doubles(X), clips_fill=False)
        if left_out.all():
            return np.zeros((0, self.n_features))
        return EVERYTHING.transform(X)[~(left_out | _hold(np.isnan, X))]


class KnownTarget(Target):
    """The statistic of an estimator as configured, and the estimator that is made of it."""

    fits_estimator = True
    preconditions = "that labels, bounds and frozen steps are public"

    def __init__(self, estimator: Estimator, public_fit: Estimator, n_samples: int):
        public_fit = self.public_fit = _copy_without(RECORD_ATTRIBUTES, public_fit)
        self.estimator, self.n_samples = estimator, n_samples
        model, y_range = _learner(public_fit)
        if getattr(model, "y_range", None) is not None:
            low, high = map(float, model.y_range)
            y_range = low, high
        front = _front_of([*_flat(public_fit)][:-1], model)
        self.statistic: Statistic = _statistic_of(model)(model, front, y_range)
        self.is_mean = self.statistic.is_mean
        self.steps = PublicSteps(public_fit, model.n_features_in_)
        self.allow_nan = takes(estimator, "allow_nan")
        self.key_parts = (estimator, self.steps.steps, self.statistic, n_samples)
        self.description = f"{self.statistic.name} of {describe(estimator)}"
        self.released = f"{self.statistic.name}: {self.statistic.content}"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the value."""
        return (math.prod(self.statistic.shape),)

    @property
    def missing(self) -> str:
        """What becomes of a missing number."""
        which = "that no step fills " if self.steps.steps else ""
        return f"missing numbers {which}count as 0"

    def bound(self, order: float) -> float:
        """Return how far one record can move the value, in the norm of this order."""
        return self.statistic.bound(order, self.n_samples)

    def __call__(self, *parts: Container, seed: int) -> NDArray[np.float64]:
        """Return the mean over the records, as a vector."""
        X, *response = self.as_seen(*parts)
        return self.statistic(X, *(response or [None])).ravel()

    def as_seen(self, *parts: Container) -> tuple[Container, ...]:
        """Return records as the last step sees them, none of which it refuses, and responses."""
        X, *response = self.steps.transform(parts[0]), *parts[1:]
        if not response or is_classifier(self.public_fit):
            return X, *response
        y = as_doubles(*response)
        low, high = self.statistic.y_range or (-np.inf, np.inf)
        return X, np.clip(np.where(np.isnan(y), 0.0, y), low, high)

    def restore(self, value: NDArray[np.float64]) -> Estimator:
        """Make a fitted estimator of a released vector, in the place of the public fit."""
        entry = entry_of(_learner(self.public_fit)[0])
        released = _copy_without(entry.drop, self.public_fit)
        model, _ = _learner(released)
        self.statistic.put(model, value.reshape(self.statistic.shape), self.n_samples)
        if entry.finish is not None:
            entry.finish(model, _learner(self.public_fit)[0])
        return released

    def with_noise(
        self, mechanism: Any, sensitivity: float, errors: NDArray[np.float64] | None
    ) -> KnownTarget:
        if errors is None:
            return self
        knowing = copy.copy(self)
        shape = self.statistic.shape
        knowing.statistic = copy.copy(self.statistic)
        knowing.statistic.errors = errors.reshape(shape)
        code = mechanism.geometry.code
        usual = None if code is None else code.mean
        knowing.statistic.usual = None if usual is None else usual.reshape(shape)
        return knowing

    def output_metric(self, *dataset: Container) -> OutputMetric | None:
        """Measure how much the output depends on each number, on public records."""
        value = self(*dataset, seed=0)
        if len(value) > MAX_EVALUATED:
            return None
        return output_metric(self.public_fit, value, self.restore, dataset[0])

    def by_name(self, value: NDArray[np.float64]) -> Named:
        """Return a vector as the matrix that it is."""
        return {self.statistic.name: value.reshape(self.statistic.shape)}, None


def _copy_without(names: frozenset[str], public_fit: Estimator) -> Estimator:
    copied = clean_copy(public_fit)
    model, _ = _learner(copied)
    for name in names & vars(model).keys():
        delattr(model, name)
    return copied


def check_known(estimator: Estimator, release: object, example: Dataset) -> None:
    """Refuse, before any fit, what has no sensitivity on paper."""
    if not is_auto(release):
        raise ValueError(
            "The 'release' parameter of PrivateEstimator must be 'auto' with sensitivity='known', "
            "which knows what is released, or for a KernelDensity a BernsteinTransformer. "
            f"Got {shown(release)}."
        )
    if example.sample_weight is not None:
        raise ValueError(
            "The 'sensitivity' parameter of PrivateEstimator is 'known', and what is known on "
            "paper is for records without weights. Got sample_weight. Sample the sensitivity."
        )
    if np.ndim(example.y) > 1:
        raise ValueError(
            "y must hold one response for each record with sensitivity='known'. "
            f"Got shape {np.shape(example.y)}."
        )
    _statistic_of(_learner(estimator)[0])
    check_steps(estimator)


def check_steps(estimator: Estimator) -> None:
    """Refuse steps before the last one that are not public."""
    for step in [*_flat(estimator)][:-1]:
        if type(step) not in CLIPS:
            _check_public(step)


def _learner(estimator: Estimator) -> tuple[Estimator, tuple[float, float] | None]:
    """Return the step that learns, and the range to which responses are clipped for it."""
    last = last_step(estimator)
    if not transforms_target(last):
        return last, None
    if type(last.transformer) is not ClipBox:
        raise ValueError(
            "The 'transformer' parameter of TransformedTargetRegressor must be ClipBox(low, high) "
            "with sensitivity='known', so that the response has a public range. "
            f"Got {shown(last.transformer)}."
        )
    low, high = ranges_of(last.transformer, 1)[:, 0].tolist()
    if not 0 < (high - low) / 2 < np.inf:
        raise ValueError(
            f"The range of the response must have a width that is a number. Got [{low}, {high}]."
        )
    return getattr(last, "regressor_", last.regressor), (low, high)


def _statistic_of(last: Estimator) -> type[Statistic]:
    """Return how an estimator is released, or say why no bound is known."""
    entry = entry_of(last)
    if isinstance(entry.known, type):
        return entry.known
    reason = "nothing bounds how far one record moves what it learns"
    names = sorted(kind.__name__ for kind in CATALOG.where(_is_known))
    raise ValueError(
        f"No sensitivity of {type(last).__name__} is known on paper: {entry.known or reason}. "
        f"One is of {', '.join(names)}. Use one of these, or sample the sensitivity."
    )


def _is_known(entry: Entry) -> bool:
    return isinstance(entry.known, type)


def _front_of(steps: list[Estimator], model: Estimator) -> Front:
    """Follow the clips right before the last step."""
    clips: list[ClipBox | ClipNorm] = []
    for step in steps:
        is_clip = type(step) in CLIPS
        clips = [*clips, step] if is_clip else []  # any other step may take records anywhere
    ends = np.full(model.n_features_in_, np.inf)
    front = Front(-ends, ends)
    for clip in clips:
        front = front.after(clip)
    return front


def public_parameters(estimator: Estimator, release: object) -> Iterator[object]:
    """Walk the parameters of the steps and the box, all of which were declared to be public."""
    steps = (step.get_params(deep=False).values() for step in _flat(estimator))
    return chain([getattr(release, "feature_range", ())], chain.from_iterable(steps))


def _flat(estimator: Estimator) -> Iterator[Estimator]:
    """Walk the steps of nested pipelines, without placeholders."""
    if not is_pipeline(estimator):
        return iter([] if estimator in (None, "passthrough") else [estimator])
    return chain.from_iterable(_flat(step) for _, step in estimator.steps)


def _thawed(step: Estimator) -> Iterator[Estimator]:
    """Walk what a step consists of, frozen or not."""
    return _flat(step.estimator) if public_name(type(step)) == FROZEN else iter([step])


def _transform(
    steps: list[Estimator], X: Container, clips_fill: bool = True
) -> tuple[Container, NDArray[np.bool_]]:
    """Transform each record by itself, and tell which ones a step refuses: there others stand.

    A clip refuses no record, or unless `clips_fill` those with gaps. Any other step refuses
    infinite numbers, gaps unless it takes them, and records for which it raises an error.
    """
    refused = np.zeros(X.shape[0], dtype=bool)

    def with_stand_ins() -> Container:
        # the others keep their places, as by these they may be rounded
        return take_records(X, np.where(refused, np.argmin(refused), np.arange(len(refused))))

    for step in steps:
        is_clip = type(step) in CLIPS
        if not is_clip:
            refused |= _hold(np.isinf, X)
        if not (clips_fill if is_clip else takes(step, "allow_nan")):
            refused |= _hold(np.isnan, X)
        try:
            X = step.transform(with_stand_ins())
        except Exception:
            refused[[*_failing(step, X, np.flatnonzero(~refused))]] = True
            if refused.all():
                break
            X = step.transform(with_stand_ins())
    return X, refused


def _hold(flaw: np.ufunc, X: Container) -> NDArray[np.bool_]:
    """Tell which records hold a number with a flaw."""
    if not sparse.issparse(X):
        return flaw(as_doubles(X)).any(axis=1)
    of_row = np.repeat(np.arange(X.shape[0]), np.diff(X.tocsr().indptr))
    return np.bincount(of_row, flaw(X.tocsr().data), minlength=X.shape[0]) > 0


def _failing(step: Estimator, X: Container, places: NDArray[np.intp]) -> Iterator[int]:
    """Find the records for which a step raises, by halves, as few do."""
    try:
        step.transform(take_records(X, places))
    except Exception:
        if len(places) <= 1:
            yield from places
            return
        for half in np.array_split(places, 2):
            yield from _failing(step, X, half)


def _check_public(step: Estimator) -> None:
    """Refuse a step that is fitted to private records, or that may mix them."""
    frozen = public_name(type(step)) == FROZEN
    for inner in _thawed(step):
        if not _treats_each_alone(inner):
            raise ValueError(
                f"It is not known of the step {type(inner).__name__} that it treats each record by "
                "itself, as scalers, PCA and selections of columns do, so no sensitivity is known "
                "on paper. If it does and is public, let it transform the records beforehand, as "
                "in model.fit(step.transform(X), y); else sample the sensitivity."
            )
    if not (frozen or _learns_nothing(step)):
        raise ValueError(
            f"The step {type(step).__name__} in front of the estimator is fitted to the private "
            "records, so that one of them moves all others: no sensitivity is known on paper. Fit "
            "it to public records and wrap it in sklearn.frozen.FrozenEstimator, or sample the "
            "sensitivity."
        )


def _treats_each_alone(step: Estimator) -> bool:
    # a function that a user wrote may remember records
    foreign = any(callable(vars(step).get(name)) for name in ("transform", "kernel"))
    known = type(step) in CLIPS or entry_of(step).by_record
    return known and not foreign


def _learns_nothing(step: Estimator) -> bool:
    entry = entry_of(step)
    made_of_parameters = entry.attributes is not None and not entry.names(step)
    return entry.by_record and (entry.learns_nothing or made_of_parameters)
