"""The catalog as a table for people."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from sklearn.utils import get_tags

from skdp.core.classes import ClassTable
from skdp.core.types import Estimator
from skdp.estimators.catalog import CATALOG
from skdp.estimators.catalog.entry import Entry


class SupportedEstimator(NamedTuple):
    """A class that ``release="auto"`` knows, with what is released at its default parameters.

    `numbers` says how many, with d features and k classes, outputs, components or clusters (k = 1
    for two classes of a linear classifier); it is empty for a class of your own.
    """

    name: str
    kind: str
    released: tuple[str, ...]
    numbers: str


def supported_estimators() -> list[SupportedEstimator]:
    """List the estimators that ``release="auto"`` knows.

    Registered classes of your own are among them. Beside these, it knows what is made of them,
    such as pipelines, and everything that learns nothing in fit. Listing the classes imports them.

    Returns
    -------
    list of SupportedEstimator
        In alphabetical order: name, kind, what is released, and how many numbers these are.

    Examples
    --------
    >>> from skdp import supported_estimators
    >>> [line for line in supported_estimators() if line.name == "KMeans"]
    [SupportedEstimator(name='KMeans', kind='clusterer', released=('cluster_centers_',),
        numbers='k d')]
    """
    lines = [_line(kind, entry) for kind, entry in released_classes().items()]
    return sorted(lines, key=lambda line: line.name.lower())


def released_classes() -> ClassTable[Entry]:
    """Return the entries of all classes that are released by their attributes."""
    return CATALOG.where(lambda entry: entry.attributes is not None)


def refused_classes() -> ClassTable[Entry]:
    """Return the entries of all classes that are refused whatever their configuration."""
    return CATALOG.where(lambda entry: isinstance(entry.refuse, str))


def _line(kind: type, entry: Entry) -> SupportedEstimator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of classes that are deprecated
        try:
            example: Estimator = kind()
        except TypeError:  # a class of the user that has required parameters
            return SupportedEstimator(kind.__name__, "", (), entry.numbers)
    return SupportedEstimator(kind.__name__, _kind_of(example), entry.names(example), entry.numbers)


def _kind_of(estimator: Estimator) -> str:
    kind = get_tags(estimator).estimator_type
    if kind in {"density_estimator", None}:
        return "transformer" if hasattr(estimator, "transform") else "density"
    return kind
