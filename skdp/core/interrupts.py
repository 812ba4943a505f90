"""Interrupts by the user: a fit may catch one and return half a fit, which must be discarded."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_caught: list[int] = []
"""Numbers of the signals that came in the present block."""


@contextmanager
def noted_interrupts() -> Iterator[None]:
    """Note interrupts in a block; their handler gets no frame, which may hold private values."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return

    def note(number: int, frame: FrameType | None) -> None:
        _caught.append(number)
        handler(number, None)

    try:
        signal.signal(signal.SIGINT, note)
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        _caught.clear()


def raise_noted() -> None:
    """Raise KeyboardInterrupt if an interrupt came, also if it was caught."""
    if _caught:
        raise KeyboardInterrupt
