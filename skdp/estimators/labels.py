"""Names for the entries of released attributes: their columns and classes."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import numpy as np
from sklearn.base import BaseEstimator

from skdp.core.types import AxisLabels, Container, Estimator, Labels, Matrix
from skdp.estimators.catalog.compositions import is_pipeline
from skdp.estimators.members import reach, split_name

# Attributes without an axis of columns, whatever their shape.
BY_CLASS = frozenset({"class_count_", "class_prior_", "intercept_", "priors_", "target_mean_"})
BY_NEITHER = frozenset({"bsplines_", "category_count_", "coefs_", "encodings_", "intercepts_"})
BY_NEITHER |= {"intercept_hidden_", "mean_precision_", "weights_"}


def labels_of(fitted: Estimator, numbers: Container) -> AxisLabels | None:
    """Return names along the first and the last axis of each released attribute, if known."""
    if not _are_attributes(fitted, numbers):
        return None
    found: AxisLabels = {}
    for name in numbers:
        with suppress(AttributeError, KeyError):  # a name of a target of the user's own
            found[name] = _labels(fitted, name)
    return found


def repaired(fitted: Estimator, numbers: Container) -> Matrix | None:
    """Return the numbers of the model that a repair changed, in the order of the summary."""
    if not _are_attributes(fitted, numbers):
        return None
    found = []
    for name, released in numbers.items():
        inside: object = None
        with suppress(AttributeError, KeyError):  # a name of a target of the user's own
            path, attribute = split_name(fitted, name)
            inside = getattr(reach(fitted, path), attribute)
        parts, there = (each if isinstance(each, list) else [each] for each in (released, inside))
        if len(there) != len(parts):  # the model keeps them in another form
            there = [None] * len(parts)
        found += [_changed(np.asarray(a, float), b) for a, b in zip(parts, there, strict=True)]
    return np.concatenate(found)


def _are_attributes(fitted: object, numbers: object) -> bool:
    return isinstance(numbers, dict) and isinstance(fitted, BaseEstimator)


def _changed(released: Matrix, there: object) -> Matrix:
    """Return the numbers of the model where they differ from the released ones, else NaN."""
    same = isinstance(there, np.ndarray | float) and np.shape(there) == released.shape
    values = np.asarray(there, dtype=np.float64) if same else released
    changed = ~np.isclose(values, released, rtol=1e-6, atol=0, equal_nan=True)
    return np.where(changed, values, np.nan).ravel()


def _labels(fitted: Estimator, name: str) -> tuple[Labels, Labels]:
    path, attribute = split_name(fitted, name)
    part, columns = fitted, getattr(fitted, "feature_names_in_", None)
    of_bits = False  # whether the classes are bits of a code, as in an OutputCodeClassifier
    for step in path:
        before = _columns_before(part, step, columns)
        of_bits = of_bits or hasattr(part, "code_book_")
        part = reach(part, (step,))
        columns = getattr(part, "feature_names_in_", before)
    classes = None if of_bits else _classes_of(part, fitted)
    if attribute in BY_NEITHER:
        return None, None
    return classes, classes if attribute in BY_CLASS else _as_text(columns)


def _classes_of(part: Estimator, whole: Estimator) -> Labels:
    """Return the classes of a part, or of the whole where the part saw their numbers instead."""
    own, given = (_as_text(getattr(each, "classes_", None)) for each in (part, whole))
    if own is None or given is None or own != [str(i) for i in range(len(own))]:
        return own
    return given if len(given) == len(own) else None


def _columns_before(whole: Estimator, step: str, columns: Labels) -> Labels:
    """Return the names of the columns that a step of a pipeline sees, if it has any."""
    if columns is None or not is_pipeline(whole):
        return None
    position = [name for name, _ in whole.steps].index(step)
    with suppress(AttributeError, ValueError):  # a step before it does not name its columns
        return whole[:position].get_feature_names_out(columns) if position else columns
    return None


def _as_text(labels: Iterable | None) -> Labels:
    """Write labels as text; None for several outputs, whose labels are lists."""
    found = [] if labels is None else list(labels)
    several = any(isinstance(label, Iterable) and not isinstance(label, str) for label in found)
    return [str(label) for label in found] if found and not several else None
