"""Computed defaults of attributes, which a class or an object may replace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class _Default:
    def __init__(self, compute: Callable[[Any], object]):
        self._compute = compute

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else self._compute(instance)


def default(compute: Callable[[Any], object]) -> Any:
    """Make an attribute that is computed unless a class or an object sets it."""
    return _Default(compute)


def class_name(thing: object) -> str:
    """Return the name of the class of an object."""
    return type(thing).__name__
