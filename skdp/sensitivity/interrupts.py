"""Interrupts by the user that a fit may catch, to go on with half a fit."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from skdp.core.room import put_back

_raised: list[BaseException] = []
"""By handlers of an interrupt, during the present chunk."""


@contextmanager
def noted_interrupts() -> Iterator[None]:
    """Note interrupts while a block lasts."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            handler(number, frame)
        except BaseException as error:
            _raised.append(error)
            raise

    try:
        signal.signal(signal.SIGINT, handle)
        yield
    finally:
        try:
            put_back({signal.SIGINT: handler})
        finally:
            _raised.clear()


def raise_noted() -> None:
    """Raise the first interrupt that was noted, if there is one."""
    if _raised:
        raise _raised[0]
