"""The release of an estimator whose sensitivity is known on paper: its target, and what is refused.

The steps before the last one of a pipeline must be public and treat each record by itself. What the
clips right before the last step promise of every record is what the bound is made of.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from functools import reduce
from itertools import chain, cycle, islice, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_classifier

from skdp.core.checks import shown
from skdp.core.classes import isinstance_by_name, public_name
from skdp.core.dataset import Dataset, belongs_to, take_records
from skdp.core.dtypes import holds_numbers, is_gap, made_up_entries
from skdp.core.metric import OutputMetric
from skdp.core.persons import MOST_ROWS, Persons, slots
from skdp.core.plain import as_doubles, columns_of, is_table, with_doubles
from skdp.core.target import Target, is_auto
from skdp.core.types import Container, Estimator, Matrix, Named
from skdp.estimators.catalog import CATALOG, RECORD_ATTRIBUTES, entry_of
from skdp.estimators.catalog.compositions import (
    COLUMNS,
    FROZEN,
    PIPELINE,
    TRANSFORMED_TARGET,
    UNION,
    is_pipeline,
    is_placeholder,
)
from skdp.estimators.clip import ClipBox, ClipNorm, ranges_of
from skdp.estimators.configuration import describe
from skdp.estimators.inputs import takes
from skdp.estimators.known.statistics import Front, Statistic
from skdp.estimators.members import flat_steps, last_step
from skdp.estimators.metric import output_metric
from skdp.estimators.public_fit import clean_copy

EVERYTHING = ClipBox(-np.finfo(np.float64).max, np.finfo(np.float64).max)
"""Brings records of any container into plain doubles, none of them missing."""
EVERYTHING.set_output(transform="default")  # whatever scikit-learn is configured to
CLIPS = (ClipBox, ClipNorm)
MEMBERS = {PIPELINE: "steps", UNION: "transformer_list", COLUMNS: "transformers_"}


class PublicSteps:
    """The steps before the last one, frozen or made of parameters; they refuse no record."""

    def __init__(self, public_fit: Estimator, n_features: int):
        before = [*flat_steps(public_fit)][:-1]
        self.steps = [*chain.from_iterable(map(_thaw, before))]
        self.n_features = n_features

    def transform(self, X: Container) -> Container:
        """Return records as the last step sees them, in doubles, none of them missing."""
        clips = _last_clips(self.steps)
        X, refused = _transform(self.steps[: len(self.steps) - len(clips)], X)
        if refused.all():  # a refused record becomes 0, as an error would tell that it is there
            X = np.zeros((len(refused), self.n_features))
        if type(X) is np.ndarray and X.dtype == np.float64:  # there is nothing to check
            X = np.where(np.isnan(X), 0.0, X)
        else:
            X = EVERYTHING._rows(X, reset=False)
        if sparse.issparse(X):
            X.data[np.repeat(refused, np.diff(X.indptr))] = 0
        else:
            X[refused] = 0
        for clip in clips or [EVERYTHING]:  # X is a copy in doubles without gaps
            clip._check(X)
            X = clip._clip(X)
        return X

    def transform_complete(self, X: Container) -> Container:
        """Return records as the last step sees them, but for those that it refuses or with gaps."""
        X, left_out = _transform(self.steps, X, clips_fill=False)
        if left_out.all():
            return np.zeros((0, self.n_features))
        return EVERYTHING.transform(X)[~(left_out | _hold(np.isnan, X))]


class KnownTarget(Target):
    """The statistic of an estimator as configured, and the estimator that is made of it."""

    fits_estimator = True
    preconditions = "that labels, bounds and frozen steps are public"
    records_per_person = 1.0

    def __init__(
        self,
        estimator: Estimator,
        public_fit: Estimator,
        n_samples: int,
        mechanism: Any = None,
    ):
        self.public_fit, model = _copy_without(RECORD_ATTRIBUTES, public_fit)
        self.estimator, self.n_samples, self._model = estimator, n_samples, model
        _, y_range = _learner(public_fit)
        if getattr(model, "y_range", None) is not None:
            low, high = map(float, model.y_range)
            y_range = low, high
        ends = np.full(model.n_features_in_, np.inf)
        clips = _last_clips([*flat_steps(self.public_fit)][:-1])
        front = reduce(Front.after, clips, Front(-ends, ends))
        self.statistic: Statistic = _statistic_of(model)(model, front, y_range)
        if mechanism is not None:
            self.statistic.suit(mechanism)
        self.y_range = self.statistic.y_range
        self.is_mean = self.statistic.is_mean
        self.steps = PublicSteps(self.public_fit, model.n_features_in_)
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
        """What becomes of a missing number, and of a record that a step cannot transform."""
        which = "that no step fills, and records that a step refuses, " if self.steps.steps else ""
        return f"missing numbers {which}count as 0"

    def bound(self, order: float) -> float:
        """Return how far one record can move the value, in the norm of this order."""
        n_more = MOST_ROWS + 16 if self.sums_persons else 0
        return self.statistic.bound(order, self.n_samples, n_more)

    def weigh_persons(self, records_per_person: float) -> None:
        """Release a mean over persons, where the statistic is a mean over records."""
        self.sums_persons = self.is_mean and not self.adds_noise
        if records_per_person != 1 and not (self.sums_persons and self.statistic.is_scaled):
            raise ValueError(
                "The 'records_per_person' parameter of PrivateEstimator must be 1, but for a "
                "MultinomialNB or a MomentClassifier that is given a 'second_moment'. Got "
                f"{records_per_person:g}. Leave it out."
            )
        self.records_per_person = float(records_per_person)
        self.key_parts = (*self.key_parts, self.sums_persons, self.records_per_person)
        if self.sums_persons:
            most = f"max({records_per_person:g}, " if records_per_person > 1 else "("
            self.released += f", each record weighed 1 / {most}number of the person's)"

    def over_persons(self, *parts: Container, counts: NDArray[np.intp], seed: int) -> Matrix:
        """Return the mean over persons of the weighed sums of each, as a vector.

        The number of terms that are added one after the other is at most n + `MOST_ROWS`.
        """
        total = np.zeros(self.statistic.shape)
        for rows in slots(Persons(Dataset(*parts), counts), self.records_per_person):
            some = np.zeros_like(total)
            for dataset, weights in rows:
                seen = Dataset(*self.as_seen(*dataset.parts))
                some += self.statistic(seen.X, seen.y, weights) * (len(weights) / len(counts))
            total += some
        return total.ravel()

    def __call__(self, *parts: Container, seed: int) -> Matrix:
        """Return the mean over the records, as a vector."""
        seen = Dataset(*self.as_seen(*parts))
        return self.statistic(seen.X, seen.y).ravel()

    def as_seen(self, *parts: Container) -> tuple[Container, ...]:
        """Return records as the last step sees them, none of which it refuses, and responses."""
        dataset = Dataset(*parts)
        dataset = dataset._replace(X=self.steps.transform(dataset.X))
        X, y = dataset.X, dataset.y
        if y is None or is_classifier(self.public_fit):
            return dataset.parts
        y = as_doubles(y)
        low, high = self.statistic.y_range or (-np.inf, np.inf)
        return X, np.clip(np.where(np.isnan(y), 0.0, y), low, high)

    def restore(self, value: Matrix) -> Estimator:
        """Make a fitted estimator of a released vector, in the place of the public fit."""
        entry = entry_of(self._model)
        released, model = _copy_without(entry.drop, self.public_fit)
        self.statistic.put(model, value.reshape(self.statistic.shape), self.n_samples)
        if entry.finish is not None:
            entry.finish(model, self._model)
        return released

    def with_noise(self, mechanism: Any, sensitivity: float, errors: Matrix | None) -> KnownTarget:
        if errors is None:
            return self
        knowing, code = copy.copy(self), mechanism.geometry.code
        statistic = knowing.statistic = copy.copy(self.statistic)
        statistic.errors = errors.reshape(statistic.shape)
        statistic.usual = None if code is None else code.mean.reshape(statistic.shape)
        return knowing

    def output_metric(self, *dataset: Container) -> OutputMetric | None:
        """Measure how much the output depends on each number, on public records."""
        value = self(*dataset, seed=0)
        return output_metric(self.public_fit, value, self.restore, dataset[0])

    def by_name(self, value: Matrix) -> Named:
        """Return a vector as the matrix that it is."""
        return {self.statistic.name: value.reshape(self.statistic.shape)}, None


def _copy_without(names: frozenset[str], public_fit: Estimator) -> tuple[Estimator, Estimator]:
    """Copy a public fit without some attributes of its learner, which is returned too."""
    copied = clean_copy(public_fit)
    model, _ = _learner(copied)
    for name in names & vars(model).keys():
        delattr(model, name)
    return copied, model


def check_known(estimator: Estimator, release: object, example: Dataset) -> None:
    """Refuse, before any fit, what has no sensitivity on paper."""
    if not is_auto(release):
        raise ValueError(
            "The 'release' parameter of PrivateEstimator must be 'auto' with sensitivity='known', "
            "which knows what is released, or for a KernelDensity a BernsteinTransformer. "
            f"Got {shown(release)}."
        )
    example.refuse_weights()
    if np.ndim(example.y) > 1:
        raise ValueError(
            "y must hold one response for each record with sensitivity='known'. "
            f"Got shape {np.shape(example.y)}."
        )
    _statistic_of(_learner(estimator)[0])
    check_steps(estimator)


def check_steps(estimator: Estimator) -> None:
    """Refuse steps before the last one that are fitted to private records, or that may mix them."""
    for step in [*flat_steps(estimator)][:-1]:
        for inner in chain.from_iterable(map(_parts, _thaw(step))):
            if not _is_by_record(inner):
                raise ValueError(
                    f"It is not known of the step {type(inner).__name__} that it treats each "
                    "record by itself, as scalers, PCA and selections of columns do, so no "
                    "sensitivity is known on paper. If it does and is public, let it transform the "
                    "records beforehand, as in model.fit(step.transform(X), y); else sample the "
                    "sensitivity."
                )
        entry = entry_of(step)
        made_of_parameters = entry.attributes is not None and not entry.names(step)
        if not (type(step) in CLIPS or entry.learns_nothing or made_of_parameters):
            raise ValueError(
                f"The step {type(step).__name__} in front of the estimator is fitted to the "
                "private records, so that one of them moves all others: no sensitivity is known on "
                "paper. Fit it to public records and wrap it in sklearn.frozen.FrozenEstimator, or "
                "sample the sensitivity."
            )


def treats_alone(estimator: Estimator) -> bool:
    """Return whether each record is treated by itself in all steps, whose classes are known."""
    thawed = chain.from_iterable(map(_thaw, flat_steps(estimator)))
    return all(map(_is_by_record, chain.from_iterable(map(_parts, thawed))))


def _is_by_record(step: Estimator) -> bool:
    return not _is_foreign(step) and (type(step) in CLIPS or entry_of(step).by_record)


def _learner(estimator: Estimator) -> tuple[Estimator, tuple[float, float] | None]:
    """Return the step that learns, and the range to which responses are clipped for it."""
    last = last_step(estimator)
    if not isinstance_by_name(last, TRANSFORMED_TARGET):
        return last, None
    if is_pipeline(last.regressor):
        raise ValueError(
            "The TransformedTargetRegressor must be inside the pipeline with sensitivity='known', "
            "as its last step. Got one around a pipeline. Write make_pipeline(..., ClipNorm(1.0), "
            "TransformedTargetRegressor(Ridge(), transformer=ClipBox(low, high)))."
        )
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


def _statistic_of(last: Estimator) -> Callable[..., Statistic]:
    """Return how an estimator is released, or say why no bound is known."""
    entry = entry_of(last)
    if callable(entry.known):
        return entry.known
    reason = "nothing bounds how far one record moves what it learns"
    names = sorted(kind.__name__ for kind in CATALOG.where(lambda entry: callable(entry.known)))
    raise ValueError(
        f"No sensitivity of {type(last).__name__} is known on paper: {entry.known or reason}. "
        f"One is of {', '.join(names)}. Use one of these, or sample the sensitivity."
    )


def _last_clips(steps: list[Estimator]) -> list[ClipBox | ClipNorm]:
    """Return the clips at the end: any other step may take records anywhere."""
    return [*takewhile(lambda step: type(step) in CLIPS, reversed(steps))][::-1]


def public_parameters(estimator: Estimator) -> Iterator[object]:
    """Walk the parameters of steps and of their members, all declared to be public."""
    steps = (step.get_params(deep=True).values() for step in flat_steps(estimator))
    return chain.from_iterable(steps)


def _thaw(step: Estimator) -> Iterator[Estimator]:
    """Walk what a step consists of, frozen or not."""
    return flat_steps(step.estimator) if public_name(type(step)) == FROZEN else iter([step])


def _parts(step: Estimator) -> Iterator[Estimator]:
    """Walk a fitted step and its members, in whatever depth, without placeholders."""
    kind = public_name(type(step))
    members = [each[1] for each in getattr(step, MEMBERS.get(kind, ""), ())]
    if not is_placeholder(step):
        yield step
        yield from chain.from_iterable(map(_parts, [step.estimator] if kind == FROZEN else members))


def _is_foreign(step: Estimator) -> bool:
    """Return whether a step calls code of the user, which may remember records."""
    values = [vars(step).get(name) for name in ("transform", "predict", "kernel", "func")]
    return bool(vars(step).get("kw_args")) or not all(
        isinstance(each, np.ufunc) and each.signature is None and "d->d" in each.types
        for each in values
        if callable(each)  # such as np.log1p
    )


def entries_for(estimator: Estimator, X: Container) -> dict[str, list] | None:
    """Make up the columns of words of a frame, and those that a frozen ColumnTransformer encodes.

    None unless it is the first step: others need columns of numbers.
    """
    first = next(chain.from_iterable(map(_thaw, flat_steps(estimator))))
    if not is_table(X) or public_name(type(first)) != COLUMNS:
        return None
    words = [each for each in columns_of(X) if not holds_numbers(each.dtype)]
    entries = {each.name: made_up_entries(each.dtype) for each in words}
    for _, member, _ in first.transformers_:
        names = getattr(member, "feature_names_in_", ())
        for encoder in _parts(member):
            entries |= dict(zip(names, getattr(encoder, "categories_", ()), strict=False))
    return {
        name: [*islice(cycle(each for each in known if not is_gap(each)), X.shape[0])]
        for name, known in entries.items()
    }


def _transform(
    steps: list[Estimator], X: Container, clips_fill: bool = True
) -> tuple[Container, NDArray[np.bool_]]:
    """Transform each record by itself, and tell which ones a step refuses: there others stand."""
    refused, X = np.zeros(X.shape[0], dtype=bool), _of_fixed_types(X)
    for step in steps:
        is_clip = type(step) in CLIPS
        if not is_clip:
            refused |= _hold(np.isinf, X)
        if not (clips_fill if is_clip else takes(step, "allow_nan")):
            refused |= _hold(np.isnan, X)
        X, failed = one_by_one(step.transform, _with_stand_ins(X, refused))
        refused |= failed
        if refused.all():
            break
    return X if sparse.issparse(X) else as_doubles(X), refused


def _of_fixed_types(X: Container) -> Container:
    """Return records whose types follow from the declared ones when they become arrays."""
    X = with_doubles(X)
    if not (is_table(X) and belongs_to(X, "pandas")):
        return X
    made = X.copy(deep=False)
    for place, column in enumerate(columns_of(X)):
        if not holds_numbers(column.dtype):  # numbers as categories are floats beside a gap
            made.isetitem(place, column.astype(object))
    return made


def one_by_one(function: Callable, X: Container) -> tuple[Container, NDArray[np.bool_]]:
    """Call a function of each record, with all at once, and tell for which records it fails."""
    refused = np.zeros(X.shape[0], dtype=bool)
    try:
        return function(X), refused
    except Exception:
        refused[[*_failing(function, X, np.arange(len(refused)))]] = True
        return X if refused.all() else function(_with_stand_ins(X, refused)), refused


def _with_stand_ins(X: Container, refused: NDArray[np.bool_]) -> Container:
    # the others keep their places, by which they may be rounded; none depends on a refused one
    return take_records(X, np.where(refused, np.argmin(refused), np.arange(len(refused))))


def _hold(flaw: np.ufunc, X: Container) -> NDArray[np.bool_]:
    """Tell which records hold a number with a flaw, in the columns of numbers."""
    if not sparse.issparse(X):
        parts = columns_of(X) if is_table(X) else [X]
        numbers = [as_doubles(part) for part in parts if holds_numbers(part.dtype)]
        flaws = (flaw(each).reshape(len(each), -1).any(axis=1) for each in numbers)
        return np.any([np.zeros(X.shape[0], dtype=bool), *flaws], axis=0)
    of_row = np.repeat(np.arange(X.shape[0]), np.diff(X.tocsr().indptr))
    return np.bincount(of_row, flaw(X.tocsr().data), minlength=X.shape[0]) > 0


def _failing(function: Callable, X: Container, places: NDArray[np.intp]) -> Iterator[int]:
    """Find the records for which a function raises, by halves, as few do."""
    try:
        function(take_records(X, places))
    except Exception:
        if len(places) <= 1:
            yield from places
            return
        for half in np.array_split(places, 2):
            yield from _failing(function, X, half)
