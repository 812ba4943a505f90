"""Blocks whose releases see one part of the records only.

What a block declares is of the code that runs within it. But a generator or a coroutine that opened
one may wait, and others run meanwhile; a copy of its context may outlive it, as may a process that
was forked within it. So a block knows whether it is open, in which process, and who may wait.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR, CO_ITERABLE_COROUTINE
from types import FrameType

from skdp.core.checks import shown

_OWN = ("skdp.accounting.accountant", __name__, "contextlib")
_MAY_WAIT = CO_GENERATOR | CO_ASYNC_GENERATOR | CO_COROUTINE | CO_ITERABLE_COROUTINE


@dataclass
class _Block:
    ledger: str | None
    partition: str
    part: str
    openers: tuple[FrameType, ...]
    process: int
    is_open: bool = True


_entered: ContextVar[_Block | None] = ContextVar("entered", default=None)


def _block() -> _Block | None:
    """Return the block that is open here."""
    block = _entered.get()
    here = block is not None and block.is_open and block.process == os.getpid()
    return block if here else None


@contextmanager
def put_in_part(ledger: str | None, partition: str, part: str) -> Iterator[None]:
    """Let the releases of a ledger be of one part while a block lasts."""
    if not (partition and isinstance(partition, str) and isinstance(part, str)):
        raise ValueError(
            "The 'partition' and 'part' parameters of PrivacyAccountant.parallel must be "
            f"strings. Got {shown(partition)} and {shown(part)}."
        )
    if _block() is not None:
        raise ValueError("A block of PrivacyAccountant.parallel must not be within another.")
    openers = tuple(
        frame
        for frame in _running()
        if frame.f_code.co_flags & _MAY_WAIT and frame.f_globals.get("__name__") not in _OWN
    )
    block = _Block(ledger, partition, part, openers, os.getpid())
    token = _entered.set(block)
    try:
        yield
    finally:
        block.is_open, block.openers = False, ()  # copies of this context hold it for longer
        _entered.reset(token)


def part_in_force(ledger: str | None) -> tuple[str, str]:
    """Return partition and part of what a ledger counts now, empty if it is of all records."""
    block = _block()
    if block is None or block.ledger != ledger:
        return "", ""
    waiting = set(block.openers).difference(_running())
    if waiting:
        names = ", ".join(sorted({frame.f_code.co_name for frame in waiting}))
        raise ValueError(
            "A block of PrivacyAccountant.parallel was opened by a generator or coroutine that "
            f"does not run here, {names}. Whether this release sees the records of that part only "
            "cannot be told. Open the block where the release is made."
        )
    return block.partition, block.part


def _running() -> Iterator[FrameType]:
    """Walk the frames of this thread that run now, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
