"""What a fitted estimator tells of its fit; None where it does not tell."""

from __future__ import annotations

from typing import Any


def classes_of(fitted: object) -> Any:
    """Return the class labels, for several outputs a list of them."""
    return getattr(fitted, "classes_", None)


def names_seen(fitted: object) -> Any:
    """Return the names of the columns."""
    return getattr(fitted, "feature_names_in_", None)


def n_features_seen(fitted: object) -> int | None:
    """Return the number of columns."""
    return getattr(fitted, "n_features_in_", None)
