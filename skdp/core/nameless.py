"""What is in an object and cannot be pickled, as no other process could find it."""

from __future__ import annotations

import pickle
from types import FunctionType
from typing import Any

from skdp.core.installed import is_named


class _Walker(pickle.Pickler):
    """Goes through all that would be pickled, and writes nothing; large arrays are not copied."""

    def __init__(self) -> None:
        super().__init__(self, protocol=5, buffer_callback=lambda _: None)
        self.found: list[FunctionType | type] = []

    def write(self, data: object) -> None:
        pass

    def reducer_override(self, each: object) -> Any:
        if not isinstance(each, FunctionType | type) or each.__module__ == "builtins":
            return NotImplemented
        if is_named(each, each.__module__, each.__qualname__):
            return NotImplemented
        if isinstance(each, FunctionType) or "<" in each.__qualname__:
            self.found.append(each)  # a class of a doctest has a name in no module, and is let pass
        return list, ()  # anything that is found


def nameless(thing: object) -> tuple[list[FunctionType | type], Exception | None]:
    """List functions and local classes that no name in a module is that of.

    The walk may end before its end, by an error of something that cannot be pickled at all.
    """
    walker = _Walker()
    try:
        walker.dump(thing)
    except Exception as error:  # of whatever kind: it is the thing's own
        return walker.found, error
    return walker.found, None
