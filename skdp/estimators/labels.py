"""What the entries of released attributes are called: their columns and classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from skdp.core.types import Estimator
from skdp.estimators.catalog.compositions import is_pipeline
from skdp.estimators.members import reach, split_name

Labels: TypeAlias = Sequence[str] | None


def labels_of(fitted: Estimator, names: Iterable[str]) -> dict[str, tuple[Labels, Labels]]:
    """Return by name the classes and the columns of a released attribute, where they are known."""
    found = {}
    for name in names:
        path, _ = split_name(fitted, name)
        part, columns = fitted, getattr(fitted, "feature_names_in_", None)
        for step in path:
            columns = _columns_of_step(part, step, columns)
            part = reach(part, (step,))
        found[name] = _as_text(getattr(part, "classes_", None)), _as_text(columns)
    return found


def _columns_of_step(whole: Estimator, step: str, columns: Labels) -> Labels:
    """The columns that a step of a pipeline or a part of a table is given; else None."""
    if columns is None:
        return None
    if hasattr(whole, "transformers_"):  # of a ColumnTransformer
        chosen = next(chosen for name, _, chosen in whole.transformers_ if name == step)
        named = isinstance(chosen, list) and all(isinstance(each, str) for each in chosen)
        return chosen if named else None
    if not is_pipeline(whole):
        return None
    position = [name for name, _ in whole.steps].index(step)
    if not position:
        return columns
    try:
        return whole[:position].get_feature_names_out(columns)
    except (AttributeError, ValueError):  # a step before it does not name its columns
        return None


def _as_text(labels: Iterable | None) -> Labels:
    """Write labels as text; None for the lists of labels that several outputs have."""
    found = [] if labels is None else list(labels)
    several = any(isinstance(label, Iterable) and not isinstance(label, str) for label in found)
    return [str(label) for label in found] if found and not several else None
