"""Blocks whose releases see one part of the records only.

A block is open while the generator that opened it waits, and code that knows nothing of it runs
meanwhile. So a block remembers which generators ran when it was opened.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import CO_ASYNC_GENERATOR, CO_GENERATOR
from types import FrameType
from typing import NamedTuple

from skdp.core.checks import shown


class _Block(NamedTuple):
    ledger: str | None
    partition: str
    part: str
    generators: tuple[FrameType, ...]


_block: ContextVar[_Block | None] = ContextVar("block", default=None)
_OWN = ("skdp.accounting.accountant", __name__, "contextlib")


@contextmanager
def put_in_part(ledger: str | None, partition: str, part: str) -> Iterator[None]:
    """Let the releases of a ledger be of one part while a block lasts."""
    if not (partition and isinstance(partition, str) and isinstance(part, str)):
        raise ValueError(
            "The 'partition' and 'part' parameters of PrivacyAccountant.parallel must be "
            f"strings. Got {shown(partition)} and {shown(part)}."
        )
    if _block.get() is not None:
        raise ValueError("A block of PrivacyAccountant.parallel must not be within another.")
    generators = tuple(
        frame
        for frame in _running()
        if frame.f_code.co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR)
        and frame.f_globals.get("__name__") not in _OWN
    )
    token = _block.set(_Block(ledger, partition, part, generators))
    try:
        yield
    finally:
        _block.reset(token)


def part_in_force(ledger: str | None) -> tuple[str, str]:
    """Return partition and part of what a ledger counts now, empty if it is of all records."""
    block = _block.get()
    if block is None or block.ledger != ledger:
        return "", ""
    waiting = set(block.generators).difference(_running())
    if waiting:
        names = ", ".join(sorted(frame.f_code.co_name for frame in waiting))
        raise ValueError(
            "A block of PrivacyAccountant.parallel was opened by a generator that does not run "
            f"now, {names}. Whether this release sees the records of that part only cannot be "
            "told. Open the block where the release is made."
        )
    return block.partition, block.part


def _running() -> Iterator[FrameType]:
    """Walk the frames of this thread that run now, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
