"""Names and numbers of a release, as people read them."""

from __future__ import annotations

import math
import platform
import re
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import suppress
from importlib.metadata import version

import numpy as np
from sklearn.base import BaseEstimator

from skdp.core.checks import shown
from skdp.core.code import PublicCode
from skdp.core.target import Target
from skdp.core.types import AxisLabels, Container, Estimator, Labels, Matrix, Values
from skdp.estimators.catalog.compositions import is_pipeline
from skdp.estimators.members import reach, split_name
from skdp.mechanisms.base import Mechanism

CONFLICT = 5.0  # warn of a number that is more standard deviations from its prior mean

# A number in brackets belongs to the attribute if more of its name follows.
ENTRY = re.compile(r"((?:[^\[\]]|\[\d+\](?=[\[_]))+)\[(.*)\]")

# Attributes without an axis of columns, whatever their shape.
BY_CLASS = frozenset({"class_count_", "class_prior_", "intercept_", "priors_", "target_mean_"})
BY_NEITHER = frozenset({"bsplines_", "category_count_", "coefs_", "encodings_", "intercepts_"})
BY_NEITHER |= {"intercept_hidden_", "mean_precision_", "weights_"}


def as_names(names: Iterable[object] | None, mechanism: Mechanism) -> list[str] | None:
    """Return names as a list of strings, or refuse them."""
    if names is None:
        return None
    if mechanism.chooses:
        raise ValueError(
            "The 'names' parameter of release is for numbers. "
            f"{type(mechanism).__name__} releases none."
        )
    listed = [] if isinstance(names, str | bytes | Set) else list(names)
    if not listed or any(isinstance(each, list | np.ndarray) for each in listed):
        raise ValueError(
            "The 'names' parameter of release must be one list of names of the numbers, in order. "
            f"Got {shown(names)}."
        )
    return [str(name) for name in listed]


def check_names(names: list[str] | None, shape: tuple[int, ...] | None) -> None:
    """Refuse names of which the number fits neither the value nor its last axis."""
    if names is None or shape is None or len(names) in (math.prod(shape), *shape[-1:]):
        return
    along = f", or the {shape[-1]} along its last axis" if len(shape) > 1 else ""
    raise ValueError(
        f"The 'names' parameter of release must name the {math.prod(shape)} numbers of the value"
        f"{along}. Got {len(names)} names."
    )


def axis_labels(
    names: list[str] | None, target: Target, value: Matrix | None, fitted: object
) -> AxisLabels | None:
    """Name the entries of a value as the caller does, else as the target or the estimator."""
    if names is not None:
        return {"value": (None, names)}
    numbers, labels = (None, None) if value is None else target.by_name(value)
    return labels or labels_of(fitted, numbers)


def flat_numbers(numbers: Matrix | Values) -> Matrix:
    """Join the numbers in the order of `flat_names`."""
    return np.concatenate([np.ravel(part).astype(np.float64) for *_, part in _arrays(numbers)])


def flat_names(numbers: Matrix | Values, labels: AxisLabels | None = None) -> list[str]:
    """Name each number: by its attribute, and by class and column where `labels` has them."""
    names: list[str] = []
    for attribute, name, part in _arrays(numbers):
        names += _index(name, np.shape(part), (labels or {}).get(attribute, (None, None)))
    return list(map(on_one_line, names))


def positive_class(numbers: Matrix | Values, labels: AxisLabels | None) -> str:
    """Say which of two classes a positive coefficient speaks for."""
    for attribute, name, part in _arrays(numbers):
        classes, _ = (labels or {}).get(attribute, (None, None))
        is_once = name.endswith("coef_") and np.shape(part)[:-1] in ((), (1,))
        is_of_part = "[" in name  # a member of an ensemble has made-up labels
        if is_once and not is_of_part and classes is not None and len(classes) == 2:
            return f" (positive: class {on_one_line(classes[1])})"
    return ""


def by_attribute(numbers: Matrix | Values) -> Values:
    """Return numbers by their names; those without a name are called "value"."""
    return numbers if isinstance(numbers, dict) else {"value": numbers}


def _arrays(numbers: Matrix | Values) -> Iterator[tuple[str, str, Matrix]]:
    """Yield each array with the attribute that it belongs to and its own name."""
    for name, values in by_attribute(numbers).items():
        if isinstance(values, list):
            yield from ((name, f"{name}[{i}]", part) for i, part in enumerate(values))
        else:
            yield name, name, values


def _index(name: str, shape: tuple[int, ...], labels: tuple[Labels, Labels]) -> list[str]:
    """Name each entry of an array by its index, or by labels of the first and the last axis."""
    of_first, of_last = labels
    axes: list[Sequence[str]] = [[str(i) for i in range(n)] for n in shape]
    if len(shape) > 1 and of_first is not None and len(of_first) == shape[0]:
        axes[0] = of_first
    if shape and of_last is not None and len(of_last) == shape[-1]:
        axes[-1] = of_last
    has_name = of_first is not None and len(of_first) == 1
    if len(shape) > 1 and shape[0] == 1 and not has_name:  # as of two classes
        axes, shape = axes[1:], shape[1:]
    if not has_name and of_last is not None and len(of_last) == math.prod(shape):
        return [f"{name}[{label}]" for label in of_last]
    entries = np.ndindex(*shape)
    inner = (", ".join(axis[i] for axis, i in zip(axes, at, strict=True)) for at in entries)
    return [f"{name}[{at}]" if at else name for at in inner]


def split_entry(name: str) -> tuple[str, str]:
    """Split "estimators_[0]__coef_[age]", say, into the attribute and its entry."""
    found = ENTRY.fullmatch(name)
    return (found[1], found[2]) if found else (name, "")


def on_one_line(text: object) -> str:
    """Write characters that do not print, such as line breaks, as escapes."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))


def versions(libraries: Sequence[str]) -> dict[str, str]:
    """Return the versions of Python and of libraries."""
    return {"Python": platform.python_version()} | {name: version(name) for name in libraries}


def two_digits(number: float) -> str:
    """Write a number with two digits, below 10,000 without an exponent."""
    return f"{number:.0f}" if 10 <= number < 1e4 else f"{number:.2g}"


def percent(share: float) -> str:
    """Write a share with two decimals or three digits, whichever is finer, rounded up."""
    if not 0 < share < 1:
        return f"{100 * share:g}%"
    unit = min(0.01, 10.0 ** (math.floor(math.log10(100 * share)) - 2))
    return f"{math.ceil(100 * share / unit * (1 - 1e-12)) * unit:.4g}%"


def short_score(score: float) -> str:
    """Write a score with two decimals, a large one with three digits."""
    return f"{score:.2f}" if abs(score) < 100 else f"{score:.3g}"


def distance_from_prior(code: PublicCode, value: Matrix, errors: Matrix) -> Matrix:
    """Return the distance of each number from its prior mean, over prior and error together."""
    away, least = np.abs(np.ravel(value) - code.mean), 1e-8 * np.abs(code.mean)  # of rounding
    scale, known = np.hypot(code.deviations, np.ravel(errors)), code.deviations > least
    distance = np.divide(away, scale, out=np.zeros_like(away), where=known)
    return distance.reshape(np.shape(value))


def describe_conflict(distance: float, name: str, gamma: float) -> str:
    """Describe a conflict with the prior; empty where there is none."""
    if distance <= CONFLICT:
        return ""
    seen = (
        f"{name} is {two_digits(distance)} standard deviations from what public records would "
        "say, the farthest of all numbers. What was not read off the private records is the "
        "oracle's"
    )
    if not gamma:
        return f"The prior is far from the records: {seen}. It does not affect the guarantee."
    return (
        f"What was released contradicts the oracle: {seen}, and the noise may be too small, since "
        "gamma is about records like the oracle's. Check that all columns have the same units, or "
        "use an oracle that is like the private records."
    )


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
        seen = getattr(part, "feature_names_in_", None)
        columns = before if seen is None else seen
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
