"""The name of its class, as the default of an attribute."""

from __future__ import annotations

from typing import Any


class _ClassName:
    """The name of the class, until a class or an object sets the attribute."""

    def __get__(self, instance: object, owner: type) -> str:
        return owner.__name__


CLASS_NAME: Any = _ClassName()
