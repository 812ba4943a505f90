"""Functions in an object that no other process could find."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import suppress
from types import FunctionType
from typing import Any


class _Walker(pickle.Pickler):
    """Goes through all that would be pickled, and writes nothing; large arrays are not copied."""

    def __init__(self) -> None:
        super().__init__(self, protocol=5, buffer_callback=lambda _: None)
        self.found: list[Callable] = []

    def write(self, data: object) -> None:
        pass

    def reducer_override(self, each: object) -> Any:
        if isinstance(each, FunctionType) and "<" in each.__qualname__:
            self.found.append(each)
            return list, ()  # anything that is found
        return NotImplemented


def nameless_functions(thing: object) -> list[Callable]:
    """List the lambdas and functions within functions that pickling would meet."""
    walker = _Walker()
    with suppress(Exception):  # of whatever kind: it is the thing's own
        walker.dump(thing)
    return walker.found
