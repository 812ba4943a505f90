"""Classes of scikit-learn, known by their public names so that none has to be imported.

Importing a class may take longer than fitting it. So tables of classes are written with names such
as ``"sklearn.svm.LinearSVC"`` and are looked up with the class that has this name.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")

# modules with public estimators of skdp
OWN = ("skdp.estimators.clip", "skdp.estimators.components", "skdp.estimators.moments")


def public_name(kind: type) -> str:
    """Name a class of scikit-learn, or a public estimator of skdp, as imported; else be empty."""
    home = kind.__module__  # such as sklearn.svm._classes
    if not (home.startswith("sklearn.") or home in OWN) or home not in sys.modules:
        return ""
    found = vars(sys.modules[home]).get(kind.__name__)
    return f"{home.partition('._')[0]}.{kind.__name__}" if found is kind else ""


def isinstance_by_name(thing: object, *names: str) -> bool:
    """Return what `isinstance` would, without importing the classes."""
    for name in names:
        module, _, kind = name.rpartition(".")
        # no instance exists of a class whose module nobody has imported
        if isinstance(thing, getattr(sys.modules.get(module), kind, ())):
            return True
    return False


def named(module: str, names: str) -> list[str]:
    """Prefix each of the names, which stand in one string, with the module."""
    return [f"{module}.{name}" for name in names.split()]


class ClassTable(Mapping[type, Value]):
    """A value for each of some classes, not of their subclasses; iteration imports them."""

    def __init__(self, values: Mapping[str, Value]):
        self._values = dict(values)
        self.added: dict[type, Value] = {}  # of other packages

    def inherited(self, kind: type, default: Value) -> Value:
        """Return the value of the nearest class of scikit-learn that a class is or derives from."""
        names = (name for name in map(public_name, kind.__mro__) if name in self._values)
        return next((self._values[name] for name in names), default)

    def where(self, condition: Callable[[Value], bool]) -> ClassTable[Value]:
        """Return the part of the table whose values meet a condition, without any import."""
        part = ClassTable({name: v for name, v in self._values.items() if condition(v)})
        part.added = {kind: v for kind, v in self.added.items() if condition(v)}
        return part

    def __getitem__(self, kind: type) -> Value:
        return self.added[kind] if kind in self.added else self._values[public_name(kind)]

    def __contains__(self, kind: object) -> bool:
        return isinstance(kind, type) and (kind in self.added or public_name(kind) in self._values)

    def __iter__(self) -> Iterator[type]:
        for name in self._values:
            module, _, kind = name.rpartition(".")
            if kind == "IterativeImputer":  # scikit-learn has it behind this import only
                importlib.import_module("sklearn.experimental.enable_iterative_imputer")
            found = getattr(importlib.import_module(module), kind, None)
            if found is not None:
                yield found
        yield from self.added

    def __len__(self) -> int:
        return sum(1 for _ in self)
