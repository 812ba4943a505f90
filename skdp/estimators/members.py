"""The members of compositions, and the structure that all their fits share with the public fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from skdp.core.types import Container, Estimator
from skdp.estimators.catalog import entry_of, is_stateless, traits_of
from skdp.estimators.catalog.compositions import is_frozen, is_pipeline
from skdp.estimators.catalog.entry import Members
from skdp.estimators.packing import same
from skdp.estimators.parts import CanonicalStep, ReleasedPart

OUT_OF_BAG = frozenset({"oob_decision_function_", "oob_prediction_", "oob_score_"})


class Member(NamedTuple):
    """The whole, whose path is empty, or a member at a path, such as "estimators_[0]"."""

    path: tuple[str, ...]
    estimator: Estimator
    transforms: bool = False

    def named(self, name: str) -> str:
        """Return the name that a parameter or an attribute of the member has in the whole."""
        return "__".join((*self.path, name))


def configured_members(estimator: Estimator) -> Iterator[Member]:
    """Walk an estimator and those among its parameters, fitted or not, none in what is frozen."""
    return _walk(Member((), estimator), _parameters)


def fitted_members(estimator: Estimator) -> Iterator[Member]:
    """Walk a fitted estimator and its members that learn, a composition before its members."""
    return _walk(Member((), estimator), _learning) if _learns(estimator) else iter(())


def fitted_parts(estimator: Estimator) -> Iterator[Member]:
    """Walk the members that learn something in fit, and are no compositions."""
    return (member for member in fitted_members(estimator) if not is_composition(member.estimator))


def _walk(member: Member, members_of: Callable[[Estimator], Members]) -> Iterator[Member]:
    yield member
    path, owner, owner_transforms = member
    rule = traits_of(owner).transforms
    for name, inner in members_of(owner):
        transforms = rule is not None and rule(owner, name, owner_transforms)
        yield from _walk(Member((*path, name), inner, transforms), members_of)


def _parameters(estimator: Estimator) -> Members:
    if is_frozen(estimator):
        return []
    return [
        (name, value)
        for name, value in sorted(estimator.get_params(deep=True).items())
        if hasattr(value, "get_params")
        and hasattr(value, "fit")
        and not isinstance(value, type)
        and "__" not in name
    ]


def _learning(fitted: Estimator) -> Members:
    return [(name, member) for name, member in _members(fitted) if _learns(member)]


def _learns(estimator: Estimator) -> bool:
    return is_composition(estimator) or not (is_stateless(estimator) or is_frozen(estimator))


def _members(fitted: Estimator) -> Members:
    members_of = entry_of(fitted).members
    return [] if members_of is None else members_of(fitted)


def is_composition(estimator: Estimator) -> bool:
    """Return whether an estimator is released member by member."""
    return entry_of(estimator).members is not None


def reach(estimator: Estimator, path: Sequence[str]) -> Estimator:
    """Return the member of a fitted estimator at a path."""
    for name in path:
        estimator = dict(_members(estimator))[name]
    return estimator


def split_name(estimator: Estimator, name: str) -> tuple[tuple[str, ...], str]:
    """Split a name such as "estimators_[0]__coef_" into the path to a member and the attribute."""
    members = dict(_members(estimator))
    # a name may end in an underscore itself, so the longest name that fits is meant
    for member in sorted(members, key=len, reverse=True):
        if name.startswith(f"{member}__"):
            path, attribute = split_name(members[member], name[len(member) + 2 :])
            return (member, *path), attribute
    return (), name


def parameter_path(path: Sequence[str]) -> tuple[str, ...]:
    """Turn the path of a fitted member into that of the parameter it was made from."""
    return tuple("estimator" if "[" in name else name for name in path)


def flat_steps(estimator: Estimator) -> Iterator[Estimator]:
    """Walk the steps of nested pipelines, without placeholders."""
    if not is_pipeline(estimator):
        return iter([] if estimator in (None, "passthrough") else [estimator])
    return chain.from_iterable(flat_steps(step) for _, step in estimator.steps)


def last_step(estimator: Estimator) -> Estimator:
    """Return the last step of a pipeline, or the estimator itself."""
    while is_pipeline(estimator):
        estimator = estimator.steps[-1][1]
    return estimator


def before_last_step(estimator: Estimator, X: Container) -> Container:
    """Send records through all steps of a fitted pipeline but the last."""
    while is_pipeline(estimator):
        X = estimator[:-1].transform(X) if len(estimator) > 1 else X
        estimator = estimator.steps[-1][1]
    return X


def drop_out_of_bag(fitted: Estimator) -> None:
    """Remove the out-of-bag attributes of ensembles."""
    for _, member, _ in fitted_members(fitted):
        for attribute in OUT_OF_BAG & vars(member).keys():
            delattr(member, attribute)


class Structure:
    """What all fits share with the public fit, read once: members, labels, columns and order."""

    def __init__(self, public_fit: Estimator):
        self._public_fit, self._classes = public_fit, getattr(public_fit, "classes_", None)
        entry = entry_of(public_fit)
        self._members_of, self._rest_of = entry.members, entry.structure
        self._rest = None if self._rest_of is None else self._rest_of(public_fit)
        self._members = [(name, Structure(member)) for name, member in _members(public_fit)]

    def members(self, fitted: Estimator, path: tuple[str, ...] = ()) -> dict[tuple, Estimator]:
        """Return a fit and its members by path; refuse other ones, without naming a value."""
        if isinstance(fitted, CanonicalStep):
            fitted = fitted.estimator_
        if type(fitted) is not type(self._public_fit):
            raise ValueError("the members of a composition changed")
        classes = getattr(fitted, "classes_", None)
        if classes is not self._classes and not same(classes, self._classes):
            raise ValueError("a class is missing")
        found = {path: fitted}
        if self._members_of is None:
            return found
        members = list(self._members_of(fitted))
        if [name for name, _ in members] != [name for name, _ in self._members]:
            raise ValueError("the members of a composition changed")
        for (name, member), (_, structure) in zip(members, self._members, strict=True):
            found |= structure.members(member, (*path, name))
        if self._rest_of is not None and not same(self._rest_of(fitted), self._rest):
            raise ValueError("the columns, features or order of a composition changed")
        return found

    def __reduce__(self) -> tuple:
        return Structure, (self._public_fit,)  # the rules of the catalog are not pickled


def labels_in(public_fit: Estimator) -> tuple:
    """Return the class labels of a public fit, which are part of the key of a target."""
    found = getattr(public_fit, "classes_", None)
    classes = [] if found is None else found
    by_output = classes if isinstance(classes, list) else [classes]
    return tuple(np.asarray(labels).tolist() for labels in by_output)


def with_public_structure(estimator: Estimator, public_fit: Estimator) -> Estimator:
    """Set open `categories` and `classes` to those of the public fit, in place."""
    settings: dict[str, list] = {}
    for path, part, _ in fitted_members(public_fit):
        if isinstance(getattr(part, "categories", None), str):
            parameter, found = "categories", list(part.categories_)
        elif traits_of(part).lists_labels:
            parameter, found = "classes", list(part.classes_)
        else:
            continue
        name = "__".join((*parameter_path(path), parameter))
        if not same(settings.setdefault(name, found), found):
            raise ValueError(
                f"The {name!r} parameter of {type(public_fit).__name__} must list the categories, "
                "since its members see different ones. Got 'auto'."
            )
    return estimator.set_params(**settings)


def with_canonical_steps(
    estimator: Estimator, public_fit: Estimator, parts: list[ReleasedPart]
) -> tuple[Estimator, list[ReleasedPart]]:
    """Exchange, in place, aligned steps that have steps behind them for CanonicalSteps."""
    steps = {
        member.path: member.estimator
        for member in configured_members(estimator)
        if member.transforms
    }
    exchanged: dict[tuple[str, ...], CanonicalStep] = {}
    aligned = []
    for part in parts:
        path = parameter_path(part.path) if part.is_anchored else ()
        if path in steps:
            step = exchanged.setdefault(path, CanonicalStep(steps[path], {}))
            first = step.parts.setdefault(getattr(part.public_fit, "n_features_in_", None), part)
            part = replace(part, public_fit=first.public_fit)
        aligned.append(part)
    settings = {"__".join(path): step for path, step in exchanged.items()}
    return estimator.set_params(**settings), aligned
