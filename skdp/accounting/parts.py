"""Blocks whose releases see one part of the records only.

What a block declares is of the code that runs within it. But a generator or a coroutine that opened
one may wait, and others run meanwhile; a copy of its context may outlive it or serve another
thread, and a process may be forked within it. So a block knows whether it is open, in which process
and thread, and who may wait.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    opener: FrameType | None
    where: tuple[int, int]
    is_open: bool = False


_entered: ContextVar[tuple[_Block, ...]] = ContextVar("entered", default=())


def _here() -> tuple[int, int]:
    """Return the process and the thread."""
    return os.getpid(), threading.get_ident()


def _block(ledger: str | None) -> _Block | None:
    """Return the block of a ledger that is open here."""
    given = (each for each in _entered.get() if each.ledger == ledger)
    return next((each for each in given if each.is_open and each.where == _here()), None)


@contextmanager
def put_in_part(ledger: str | None, partition: str, part: str) -> Iterator[None]:
    """Let the releases of a ledger be of one part while a block lasts."""
    if not (partition and isinstance(partition, str) and isinstance(part, str)):
        raise ValueError(
            "The 'partition' and 'part' parameters of PrivacyAccountant.parallel must be "
            f"strings. Got {shown(partition)} and {shown(part)}."
        )
    if _block(ledger) is not None:
        raise ValueError(
            "A block of PrivacyAccountant.parallel must not be within another. Name a part by both "
            "partitions, such as parallel('region and year', 'north, 2026')."
        )
    opener = next(
        (
            frame
            for frame in _running()
            if frame.f_code.co_flags & _MAY_WAIT and frame.f_globals.get("__name__") not in _OWN
        ),
        None,
    )
    block = _Block(ledger, partition, part, opener, _here())
    token = _entered.set((*_entered.get(), block))
    try:
        block.is_open = True  # here, as an interrupt may come before
        yield
    finally:
        block.is_open, block.opener = False, None  # copies of this context hold it for longer
        with suppress(ValueError):  # another context, as where a generator is closed
            _entered.reset(token)


def part_in_force(ledger: str | None) -> tuple[str, str]:
    """Return partition and part of what a ledger counts now, empty if it is of all records."""
    block = _block(ledger)
    if block is None:
        return "", ""
    if block.opener is not None and block.opener not in _running():
        raise ValueError(
            "A block of PrivacyAccountant.parallel was opened by a generator or coroutine that "
            f"does not run here, {block.opener.f_code.co_name}. Whether this release sees the "
            "records of that part only cannot be told. Open the block where the release is made."
        )
    return block.partition, block.part


def _running() -> Iterator[FrameType]:
    """Walk the frames of this thread that run now, the innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back
