"""A limit to the time that a call may take, for targets that hang."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from types import FrameType
from typing import TypeVar

from sklearn import get_config, set_config

from skdp.core.room import put_back

T = TypeVar("T")

LONGEST = 1e8
"""Seconds, three years: no timer takes much more."""


class OverdueError(Exception):
    """The limit has passed."""


class _Alarm(BaseException):
    """It is no Exception, since many fits catch those and go on."""


def within(seconds: float | None, call: Callable[..., T], *arguments: object) -> T:
    """Return what a call returns, or raise OverdueError, whatever has become of a late one."""
    if seconds is None:
        return call(*arguments)
    start = perf_counter()
    rings: list[int] = []
    settings = get_config()
    try:
        with _alarm(seconds, rings):
            value = call(*arguments)
    except _Alarm:
        pass
    except Exception:
        if not rings and perf_counter() - start <= seconds:
            raise
    else:
        if not rings and perf_counter() - start <= seconds:
            return value
    set_config(**settings)  # the alarm may have come just before some context restored them
    raise OverdueError


@contextmanager
def _alarm(seconds: float, rings: list[int]) -> Iterator[None]:
    """Note an alarm and raise, and once more after as long; in the main thread of a process."""
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or not hasattr(signal, "setitimer"):
        yield
        return
    is_over, left, interval = False, 0.0, 0.0
    is_set, due, start = False, min(seconds, LONGEST), perf_counter()

    def ring(number: int, frame: FrameType | None) -> None:
        if is_over:
            return
        if not is_set:  # somebody else's
            if callable(handler):
                handler(number, frame)
            return
        rings.append(number)
        raise _Alarm

    handler = signal.getsignal(signal.SIGALRM)
    signal.signal(signal.SIGALRM, ring)
    try:
        left, interval = signal.setitimer(signal.ITIMER_REAL, due, due)
        is_set = True
        try:
            yield
        finally:
            is_over = True
    finally:
        is_over = True  # a late one may have come before the first of these lines
        signal.setitimer(signal.ITIMER_REAL, 0)
        put_back({signal.SIGALRM: handler})
        if left:  # somebody else's alarm
            passed = perf_counter() - start
            signal.setitimer(signal.ITIMER_REAL, max(left - passed, 1e-6), interval)
