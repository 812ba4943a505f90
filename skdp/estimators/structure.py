"""The structure that the public fit, every fit of a pair and the private fit share.

It consists of the members, the columns and features that each sees, the order of a chain, the class
labels, the categories of encoders, and the signs and order of components.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from skdp.core.types import Estimator
from skdp.estimators.catalog import entry_of
from skdp.estimators.members import (
    configured_members,
    fitted_members,
    is_composition,
    parameter_path,
)
from skdp.estimators.moments import MomentClassifier
from skdp.estimators.packing import same
from skdp.estimators.parts import CanonicalStep, ReleasedPart, columns_of


def check_structure(fitted: Estimator, public_fit: Estimator) -> None:
    """Refuse a fit whose members are not those of the public fit, without naming a value."""
    if type(fitted) is type(public_fit) and not is_composition(public_fit):
        _check_classes(fitted, public_fit)
        return
    members = [*fitted_members(fitted)], [*fitted_members(public_fit)]
    if len(members[0]) != len(members[1]):
        raise ValueError("the members of a composition changed")
    for found, expected in zip(*members, strict=True):
        if found.path != expected.path or type(found.estimator) is not type(expected.estimator):
            raise ValueError("the members of a composition changed")
        _check_classes(found.estimator, expected.estimator)
        structure = entry_of(expected.estimator).structure
        if structure is not None and not _equal(
            structure(found.estimator), structure(expected.estimator)
        ):
            raise ValueError("the columns, features or order of a composition changed")


def _check_classes(fitted: Estimator, public_fit: Estimator) -> None:
    if not _equal(getattr(fitted, "classes_", None), getattr(public_fit, "classes_", None)):
        raise ValueError("a class is missing")


def labels_in(public_fit: Estimator) -> tuple:
    """Return the class labels of a public fit, for a key: a fit may weight each in its own way."""
    classes = getattr(public_fit, "classes_", [])
    by_output = classes if isinstance(classes, list) else [classes]
    return tuple(np.asarray(labels).tolist() for labels in by_output)


def _equal(value: Any, expected: Any) -> bool:
    if isinstance(expected, list):  # one array for each output or member
        return (
            isinstance(value, list)
            and len(value) == len(expected)
            and all(map(np.array_equal, value, expected))
        )
    if value is None or expected is None:
        return value is expected
    return np.array_equal(value, expected)


def with_public_structure(estimator: Estimator, public_fit: Estimator) -> Estimator:
    """Set open `categories`, `classes` and `landmarks` to those of the public fit, in place.

    A class that is missing in private records is then no error.
    """
    settings: dict[str, list] = {}
    for path, part, _ in fitted_members(public_fit):
        if isinstance(getattr(part, "categories", None), str):
            parameter, found = "categories", list(part.categories_)
        elif type(part).__name__ == "PublicNystroem":
            parameter, found = "landmarks", [part.components_, part.normalization_]
        elif isinstance(part, MomentClassifier):
            parameter, found = "classes", list(part.classes_)
        else:
            continue
        name = "__".join((*parameter_path(public_fit, path), parameter))
        known = settings.setdefault(name, found)
        if not same(known, found):
            raise ValueError(
                f"The {name!r} parameter of {type(public_fit).__name__} must list the categories, "
                "since its members see different ones. Got 'auto'."
                if parameter == "categories"
                else f"The members of {type(public_fit).__name__} see different landmarks of "
                "Nystroem, and these must be public. Map the records before, in a pipeline."
            )
    return estimator.set_params(**settings)


def with_canonical_steps(
    estimator: Estimator, public_fit: Estimator, parts: list[ReleasedPart]
) -> tuple[Estimator, list[ReleasedPart]]:
    """Exchange, in place, aligned steps that have steps behind them for CanonicalSteps.

    The parts of one step, as in members of a bag, are aligned to the public fit of the first.
    """
    steps = {
        member.path: member.estimator
        for member in configured_members(estimator)
        if member.transforms
    }
    exchanged: dict[tuple[str, ...], CanonicalStep] = {}
    aligned = []
    for part in parts:
        if part.names and part.entry.depends_on_public_fit:
            path = parameter_path(public_fit, part.path)
            if path in steps:
                step = exchanged.setdefault(path, CanonicalStep(steps[path], {}))
                first = step.parts.setdefault(columns_of(part.public_fit), part)
                part = replace(part, public_fit=first.public_fit)
        aligned.append(part)
    settings = {"__".join(path): step for path, step in exchanged.items()}
    return estimator.set_params(**settings), aligned
