"""Classes of scikit-learn, told by their public names so that none has to be imported.

Importing a class of scikit-learn may take longer than fitting it, and an estimator that arrives has
its class with it. So tables of classes are written with names such as ``"sklearn.svm.LinearSVC"``
and are looked up with the class that has this name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Set
from typing import Any, TypeVar

Value = TypeVar("Value")


def public_name(kind: type) -> str:
    """Name a class of scikit-learn as it is imported.

    Parameters
    ----------
    kind : type
        Any class.

    Returns
    -------
    str
        Module and name; empty if the class is none of scikit-learn's.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> from skdp._classes import public_name
    >>> public_name(LinearSVC), public_name(type("LinearSVC", (LinearSVC,), {}))
    ('sklearn.svm.LinearSVC', '')
    """
    home = kind.__module__  # such as sklearn.svm._classes
    if not home.startswith("sklearn.") or home not in sys.modules:
        return ""
    found = vars(sys.modules[home]).get(kind.__name__)
    return f"{home.partition('._')[0]}.{kind.__name__}" if found is kind else ""


def is_a(thing: Any, *names: str) -> bool:
    """Tell what `isinstance` would, without importing the classes.

    Parameters
    ----------
    thing : object
        Such as an estimator.
    *names : str
        Classes of scikit-learn, each with its module.

    Returns
    -------
    bool
        Whether `thing` is an instance of one of them or of a subclass.

    Examples
    --------
    >>> from sklearn.pipeline import Pipeline
    >>> from skdp._classes import is_a
    >>> is_a(Pipeline([]), "sklearn.pipeline.Pipeline")
    True
    """
    for name in names:
        module, _, kind = name.rpartition(".")
        # a thing is of no class whose module nobody has imported
        if isinstance(thing, getattr(sys.modules.get(module), kind, ())):
            return True
    return False


def named(module: str, names: str) -> list[str]:
    """Put the module before each of the names, which stand in one string."""
    return [f"{module}.{name}" for name in names.split()]


class ClassSet(Set[type]):
    """A set of classes of scikit-learn, written by name. A subclass is not in it.

    Only iteration imports the classes; those that this version of scikit-learn does not have are
    left out.

    Parameters
    ----------
    names : iterable of str
        The classes, each with its module.

    Examples
    --------
    >>> from sklearn.svm import SVC, LinearSVC
    >>> from skdp._classes import ClassSet
    >>> machines = ClassSet(["sklearn.svm.LinearSVC", "sklearn.svm.LinearSVR"])
    >>> LinearSVC in machines, SVC in machines
    (True, False)
    """

    def __init__(self, names: Iterable[str]):
        self.names = tuple(names)

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and public_name(kind) in self.names

    def __iter__(self) -> Iterator[type]:
        return _imported(self.names)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class ClassTable(Mapping[type, Value]):
    """A value for each of some classes of scikit-learn, written by name, and for classes added.

    A subclass is not in the table. Only iteration imports the classes; those that this version of
    scikit-learn does not have are left out.

    Parameters
    ----------
    values : mapping of str to object
        What belongs to each class, which is named with its module.

    Attributes
    ----------
    added : dict of type to object
        Any other classes, of which some may be added.

    Examples
    --------
    >>> from sklearn.svm import LinearSVC
    >>> from skdp._classes import ClassTable
    >>> table = ClassTable({"sklearn.svm.LinearSVC": "coef_ intercept_"})
    >>> table[LinearSVC], table.get(int)
    ('coef_ intercept_', None)
    """

    def __init__(self, values: Mapping[str, Value]):
        self._values = dict(values)
        self.added: dict[type, Value] = {}

    def __getitem__(self, kind: type) -> Value:
        return self.added[kind] if kind in self.added else self._values[public_name(kind)]

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and (kind in self.added or public_name(kind) in self._values)

    def __iter__(self) -> Iterator[type]:
        yield from _imported(self._values)
        yield from self.added

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _imported(names: Iterable[str]) -> Iterator[type]:
    """Import the classes of these names that this version of scikit-learn has."""
    for name in names:
        module, _, kind = name.rpartition(".")
        if kind == "IterativeImputer":  # scikit-learn has it behind this import only
            importlib.import_module("sklearn.experimental.enable_iterative_imputer")
        found = getattr(importlib.import_module(module), kind, None)
        if found is not None:
            yield found
