"""One estimator of a pipeline: its released attributes read, aligned, checked and put back."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

from sklearn.base import BaseEstimator, clone
from sklearn.utils import Tags, get_tags

from skdp.core.types import Container, Estimator, Values
from skdp.estimators.catalog import RECORD_ATTRIBUTES
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.packing import flat, is_float, same, shapes_of


@dataclass(frozen=True)
class ReleasedPart:
    """A member that is released, at a path, with its entry, which a worker's catalog may lack."""

    path: tuple[str, ...]
    names: tuple[str, ...]
    public_fit: Estimator
    entry: Entry

    @cached_property
    def full_names(self) -> list[tuple[str, str]]:
        """The released attributes, each beside its name in the whole."""
        return [(name, "__".join((*self.path, name))) for name in self.names]

    @cached_property
    def _registered(self) -> tuple[str, ...]:
        return self.entry.names(self.public_fit)

    @cached_property
    def _shapes(self) -> dict[str, tuple]:
        return shapes_of(self._values(self.public_fit))

    def read(self, fitted: Estimator) -> Values:
        """Return the aligned values of a fit; refuse another shape, without naming a value."""
        for name in self.entry.public:
            if not same(getattr(fitted, name), getattr(self.public_fit, name)):
                raise ValueError(f"the public {name} differ from those of the public fit")
        if not self.names:
            return {}
        values = self._values(fitted)
        if shapes_of(values) != self._shapes:
            raise ValueError("the shape of a fitted attribute changed")
        if self.entry.align is not None:
            values = self.entry.align(values, self.public_fit)
        return {name: values[name] for name in self.names}

    def canonical(self, fitted: Estimator) -> Estimator:
        """Return what would be released of a fit, if there were no noise."""
        released = copy.deepcopy(self.public_fit)
        for name, value in self.read(fitted).items():
            setattr(released, name, value)
        self.finish(released)
        return released

    def drop_records(self) -> None:
        """Drop what describes the public records, in place."""
        is_complete = set(self.names) >= set(self._registered)
        dropped = RECORD_ATTRIBUTES.union(self.entry.drop if is_complete else ())
        for name in dropped.difference(self.names) & vars(self.public_fit).keys():
            delattr(self.public_fit, name)

    def finish(self, released: Estimator) -> None:
        """Repair what was released, and derive the rest."""
        named = {name: getattr(released, name) for name in self.names}
        if self.entry.read is not None:
            for name, value in self.entry.read(self.public_fit, self.public_fit).items():
                setattr(released, name, named.get(name, value))
        for name in self.entry.repairs.keys() & set(self._registered):
            rule, values = self.entry.repairs[name], getattr(released, name)
            public = getattr(self.public_fit, name)
            is_list = isinstance(values, list)
            repaired = list(map(rule, values, public)) if is_list else rule(values, public)
            setattr(released, name, repaired)
        if self.entry.finish is not None:
            self.entry.finish(released, self.public_fit)
        for name in named.keys() - set(self._registered):
            setattr(released, name, named[name])  # the user named what could be derived

    def raise_divisors(self, values: Values, public: Values, errors: Values) -> Values:
        """Raise divisors that noise hides; values go by names with the path."""
        rules = ((self.entry.divisors.get(name), full) for name, full in self.full_names)
        return {
            full: rule(values[full], public[full], errors[full], self.public_fit)
            for rule, full in rules
            if rule is not None
        }

    @property
    def key_parts(self) -> tuple:
        """The parts on which its values depend; the rest of its entry follows from the class."""
        # the values depend on all floats of a public fit that gives them a form
        fitted = vars(self.public_fit) if self.is_anchored else {}
        names = [name for name in sorted(fitted) if name.endswith("_") and is_float(fitted[name])]
        anchor = b"".join(flat(fitted[name]).tobytes() for name in names)
        return self.path, self.names, self.entry.align, self.entry.finish, anchor

    @property
    def is_anchored(self) -> bool:
        """Whether what is released has a public form."""
        return self.entry.align is not None and bool(self.names)

    def _values(self, fitted: Estimator) -> Values:
        short = self.entry.read(fitted, self.public_fit) if self.entry.read is not None else {}
        names = dict.fromkeys((*self._registered, *self.names))
        return {name: short[name] if name in short else getattr(fitted, name) for name in names}


class CanonicalStep(BaseEstimator):
    """A step that takes the signs and the order of the public fit as soon as it is fitted."""

    def __init__(self, estimator: Estimator, parts: dict[int | None, ReleasedPart]):
        self.estimator = estimator
        self.parts = parts

    def fit(self, X: Container, y: Container = None) -> Self:
        """Fit the step, and make of it what will be released but for the noise."""
        fitted = clone(self.estimator).fit(X, y)
        part = self.parts.get(getattr(fitted, "n_features_in_", None))
        if part is None:
            raise ValueError("the number of columns changed")
        self.estimator_ = part.canonical(fitted)
        return self

    def transform(self, X: Container) -> Container:
        """Transform with the step as it will be released."""
        return self.estimator_.transform(X)

    def __getattr__(self, name: str) -> Callable:
        """Return a method of the fitted step, such as `get_feature_names_out`."""
        if name.startswith("_") or "estimator_" not in vars(self):
            return super().__getattribute__(name)  # which raises the first error again
        return getattr(self.estimator_, name)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Do nothing: the public fit has the same setting."""
        return self

    def __sklearn_clone__(self) -> Self:
        return type(self)(clone(self.estimator), self.parts)

    def __sklearn_tags__(self) -> Tags:
        return get_tags(self.estimator)
