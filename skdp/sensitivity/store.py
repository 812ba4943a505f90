"""Evaluations on public records that are kept in the process, and what was made of them.

A run of evaluations has a key, of all that determines them but their numbers. Without a key nothing
is kept. There is one store for a process, which is neither pickled nor shared with workers.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import takewhile
from typing import Any, NamedTuple, TypeVar

from numpy.typing import NDArray
from sklearn import get_config

from skdp.core.identity import key_of, obstacle_of
from skdp.core.oracle import Oracle
from skdp.core.schema import DatasetForm
from skdp.core.target import Target

T = TypeVar("T")

MAX_MADE = 8
_OVERHEAD = 200  # bytes of an evaluation besides its numbers

DRAWN = 2**64  # from here on a seed may have been drawn, so nobody asks for its pairs again


class Evaluation(NamedTuple):
    """The values of a target on the datasets of a pair, of three pairs, or on one, or why not."""

    values: tuple[NDArray, ...] = ()
    failure: str | None = None

    def pair(self, first: int, second: int) -> Evaluation:
        """Return two of the values, or why there are none."""
        return self if self.failure else Evaluation((self.values[first], self.values[second]))

    @property
    def bits(self) -> tuple[object, ...]:
        """What it holds, to be compared bit by bit."""
        return self.failure, *((value.shape, value.tobytes()) for value in self.values)

    @property
    def n_bytes(self) -> int:
        """Memory that it takes."""
        return _OVERHEAD + sum(value.nbytes for value in self.values)


class Store:
    """The evaluations of the runs that were used last, by key and number; safe among threads."""

    def __init__(self, most: int = 2**27, most_of_run: int = 2**26) -> None:
        self.most, self.most_of_run = most, most_of_run  # bytes
        self._runs: OrderedDict[str, dict[int, Evaluation]] = OrderedDict()
        self._bytes: dict[str, int] = {}
        self._made: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: str) -> dict[int, Evaluation]:
        """Return what is kept of a run."""
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
            return dict(self._runs.get(key, {}))

    def first(self, key: str, n: int) -> list[Evaluation]:
        """Return what is kept of the first of `n` evaluations, without a gap."""
        found = self.find(key)
        return [found[number] for number in takewhile(found.__contains__, range(n))]

    def keep(self, key: str, found: Mapping[int, Evaluation], n_in_all: int = 1) -> bool:
        """Keep evaluations, for the runs used longest ago; or return False if all do not fit."""
        for value in (value for each in found.values() for value in each.values):
            value.flags.writeable = False
        n_bytes = sum(each.n_bytes for each in found.values())
        if not key or n_bytes * n_in_all > self.most_of_run * len(found):
            return False
        with self._lock:
            run = self._runs.setdefault(key, {})
            run.update(found)
            self._runs.move_to_end(key)
            self._bytes[key] = self._bytes.get(key, 0) + n_bytes
            while sum(self._bytes.values()) > self.most:
                oldest, _ = self._runs.popitem(last=False)
                del self._bytes[oldest]
        return True

    def recall(self, key: str, number: int, evaluate: Callable[[], Evaluation]) -> Evaluation:
        """Return what is kept of a number, or evaluate it and keep it."""
        found = self.find(key).get(number)
        if found is None:
            found = evaluate()
            self.keep(key, {number: found})
        return found

    def made(self, key: str, make: Callable[[], T]) -> T:
        """Return what was made of evaluations under a key, or make it; the last few are kept."""
        if not key:
            return make()
        with self._lock:
            found = self._made.pop(key, None)
        made = make() if found is None else found
        with self._lock:
            self._made[key] = made
            while len(self._made) > MAX_MADE:
                self._made.popitem(last=False)
        return made

    def forget(self, key: str) -> None:
        """Drop a run."""
        with self._lock:
            self._runs.pop(key, None)
            self._bytes.pop(key, None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._runs.clear()
            self._bytes.clear()
            self._made.clear()


STORE = Store()


def key_in_store(
    target: Target, oracle: Oracle, n_samples: int, seed: int, schema: DatasetForm, *others: object
) -> str:
    """Return the key of all that determines evaluations; empty where none may be used again."""
    if seed >= DRAWN:
        return ""
    forms = [
        (part.key, part.index_dtype, list(map(str, part.names))) for part in schema.parts.parts
    ]
    facts = target, oracle, n_samples, seed, forms, get_config(), others
    key = key_of(facts, takes_keys=False)  # whose code may be edited, and the key not
    return "" if obstacle_of(key) else key
