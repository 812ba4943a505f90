"""Fitted parameters as a target: attributes of an estimator to a flat vector, and back."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from skdp.core.checks import shown
from skdp.core.classes import public_name
from skdp.core.dataset import Dataset
from skdp.core.metric import OutputMetric
from skdp.core.target import Target, is_auto
from skdp.core.types import Container, Estimator, Matrix, Named, Values
from skdp.estimators.catalog import lookup, released_entry, traits_of
from skdp.estimators.catalog.compositions import FROZEN, is_pipeline
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.configuration import describe, seed_names, without_side_effects
from skdp.estimators.inputs import fit_on, order_matters, reorder, takes
from skdp.estimators.members import (
    Structure,
    configured_members,
    drop_out_of_bag,
    fitted_parts,
    labels_in,
    last_step,
    reach,
    split_name,
    with_canonical_steps,
    with_public_structure,
)
from skdp.estimators.metric import output_metric
from skdp.estimators.packing import flat, is_float, split
from skdp.estimators.parts import ReleasedPart
from skdp.estimators.public_fit import clean_copy


class ParameterTarget(Target):
    """The fitted parameters of an estimator as a vector; `restore` writes them on a public copy."""

    fits_estimator = True

    def __init__(self, estimator: Estimator, release: str | Sequence[str], public_fit: Estimator):
        public_fit = clean_copy(public_fit)
        self.estimator = with_public_structure(without_side_effects(estimator), public_fit)
        self.public_fit = public_fit
        parts = _released_parts(public_fit, release)
        depth = 1 if is_pipeline(public_fit) else 0  # members of others may depend on each other
        self.is_mean = is_auto(release) and all(
            part.entry.of_means and len(part.path) <= depth for part in parts
        )
        self.names = tuple(full for part in parts for _, full in part.full_names)
        self.estimator, self._parts = with_canonical_steps(self.estimator, public_fit, parts)
        for part in parts:
            part.drop_records()
        drop_out_of_bag(public_fit)
        self._structure = Structure(public_fit)
        self._like = self._values(public_fit)
        self._errors: Values = {}
        self.allow_nan = takes(estimator, "allow_nan")
        self._shuffled = order_matters(estimator)
        self._seeds = seed_names(self.estimator)
        names = {public_name(type(each.estimator)) for each in configured_members(self.estimator)}
        # a copy of what was never fitted is a clone, in less time, but for frozen steps
        self._clone = clone if names & {"", FROZEN} else copy.deepcopy
        self.needs_labels = not traits_of(last_step(public_fit)).lists_labels
        self.key_parts = (self.names, self.estimator, self._parts, labels_in(public_fit))
        self.description = f"{', '.join(self.names)} of {describe(estimator)}"

    def __call__(self, *parts: Container, seed: int) -> Matrix:
        """Fit on the dataset and return the released attributes as a vector."""
        fitted = self._clone(self.estimator).set_params(**dict.fromkeys(self._seeds, seed))
        dataset = Dataset(*parts)
        if self._shuffled:
            dataset = reorder(dataset, seed)
        with config_context(skip_parameter_validation=True):  # the public fit has done it
            return self.flatten(fit_on(fitted, dataset))

    def check_oracle(self, *records: Container) -> None:
        """Refuse an oracle with whose records a released attribute is not finite."""
        for name, value in self._like.items():
            if not np.isfinite(flat(value)).all():
                raise ValueError(
                    f"{name} is not finite in a fit to records of the oracle, as where a column "
                    "has no values. Leave such a column out of X, or let the oracle fill it."
                )

    def flatten(self, fitted: Estimator) -> Matrix:
        """Join the released attributes of a fit of the public structure into a vector."""
        return flat(*self._values(fitted).values())

    def restore(self, vector: Matrix) -> Estimator:
        """Overwrite the released attributes, and recompute the derived ones, on a public copy."""
        released = clean_copy(self.public_fit)
        values = split(vector, self._like)
        for part in self._parts if self._errors else ():
            values |= part.raise_divisors(values, self._like, self._errors)
        for part, member in self._members(released):
            for name, full in part.full_names:
                setattr(member, name, _in_precision(values[full], self._like[full]))
            part.finish(member)
        return released

    def with_noise(
        self, mechanism: object, sensitivity: float, errors: Matrix | None
    ) -> ParameterTarget:
        if errors is None:
            return self
        knowing = copy.copy(self)
        knowing._errors = split(errors, self._like)
        return knowing

    def by_name(self, value: Matrix) -> Named:
        """Return a vector as the released attributes, by name and in their shapes."""
        return split(value, self._like), None

    def output_metric(self, *dataset: Container) -> OutputMetric | None:
        """Measure how much the output depends on each released value, on public records."""
        vector = self.flatten(self.public_fit)
        return output_metric(self.public_fit, vector, self.restore, dataset[0])

    def _values(self, fitted: Estimator) -> Values:
        """Return the released values by name, each aligned to the public fit."""
        found = (part.read(member).values() for part, member in self._members(fitted))
        return dict(zip(self.names, chain.from_iterable(found), strict=True))

    def _members(self, fitted: Estimator) -> Iterator[tuple[ReleasedPart, Estimator]]:
        """Walk the released parts with those of a fit, which must have the public structure."""
        members = self._structure.members(fitted)
        return ((part, members[part.path]) for part in self._parts)


def _released_parts(public_fit: Estimator, release: str | Sequence[str]) -> list[ReleasedPart]:
    """Find the members that learn, each with the attributes that it releases."""
    found: dict[tuple[str, ...], list[str]] = {
        path: [*_attributes_of(path, part)] if is_auto(release) else []
        for path, part, _ in fitted_parts(public_fit)
    }
    for name in () if is_auto(release) else release:
        _check_released(public_fit, name)
        path, attribute = split_name(public_fit, name)
        found.setdefault(path, []).append(attribute)
    if not any(found.values()):
        raise ValueError(
            f"There is nothing to release: {type(public_fit).__name__} as configured learns "
            "nothing from private records, so it needs no privacy. Fit it on public ones, and use "
            "that."
        )
    parts = []
    for path, names in found.items():
        part, released = reach(public_fit, path), tuple(names)
        # an unknown class is taken as it is
        entry = released_entry(part) or Entry(attributes=released)
        parts.append(ReleasedPart(path, released, part, entry))
    return parts


def _attributes_of(path: tuple[str, ...], part: Estimator) -> tuple[str, ...]:
    if type(part).__name__ == "_ConstantPredictor":
        raise ValueError(
            f"The member {'__'.join(path)} has learned nothing, because it saw only one class. "
            "Use an oracle with more varied labels."
        )
    return lookup(part, path).names(part)


def _check_released(public_fit: Estimator, name: str) -> None:
    """Refuse a name that is not of a fitted attribute of floats, or of one that is computed."""
    if not isinstance(name, str):  # what stands there may be private
        raise TypeError(
            "The 'release' parameter of PrivateEstimator must list names of fitted attributes. "
            f"Got a {type(name).__name__}."
        )
    path, attribute = split_name(public_fit, name)
    if not is_float(vars(reach(public_fit, path)).get(attribute)):
        choices = [
            part.named(attribute)
            for part in fitted_parts(public_fit)
            for attribute, value in vars(part.estimator).items()
            if attribute.endswith("_") and is_float(value)
        ]
        raise ValueError(
            "The 'release' parameter of PrivateEstimator must name fitted attributes that hold "
            f"floats and are not computed from others. Got {shown(name)}. "
            f"{type(public_fit).__name__} has: {', '.join(choices) or 'none'}."
        )


def _in_precision(value: Container, like: Container) -> Container:
    """Round to single precision where the public fit has it, and nowhere to infinity."""
    if isinstance(value, list):
        return [_in_precision(*pair) for pair in zip(value, like, strict=True)]
    if getattr(like, "dtype", None) != np.float32:
        return value
    limits = np.finfo(np.float32)
    return np.clip(value, limits.min, limits.max).astype(np.float32)
