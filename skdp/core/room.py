"""The room in which a target is evaluated on private data and noise is added to its value.

Nothing comes out but the released value, or a new exception that says nothing of the data. While
a thread is inside, the process is silent (see `skdp.core.silence`), and while the exact value is
there, signals wait: an interrupt ends the evaluation, but it never interrupts the noise.
"""

from __future__ import annotations

import copy
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset
from skdp.core.silence import silence, untraced
from skdp.core.target import Target
from skdp.exceptions import PrivateEvaluationError

T = TypeVar("T")

_key = threading.RLock()  # one thread at a time: what is silenced belongs to the process
_fork = threading.local()
_PATIENCE = 30.0  # seconds that a fork waits: an evaluation may in turn wait for a fork


def evaluate_privately(
    target: Target,
    dataset: Dataset,
    seed: int,
    shape: tuple[int, ...] | None,
    add_noise: Callable[[NDArray[np.float64]], T],
) -> T:
    """Return the target's value on private data, with noise, or raise a new exception."""
    with _key, _signals() as signals, silence():
        value, failure = untraced(_inside, target, dataset, seed, shape, add_noise, signals)
        if failure is not None:
            gc.collect()  # an exception and the frames that hold it are a circle
    try:
        if failure is not None:
            raise failure
        return value
    finally:
        del failure, signals  # else they would keep this frame, and this frame them


@contextmanager
def quiet() -> Iterator[None]:
    """Show nothing of what runs in a block, which may hold categories of the private data."""
    with _key, silence():
        yield


def spare(thing: T, depth: int = 3) -> T:
    """Copy what sees private data, so that the original keeps nothing of them."""
    try:
        return copy.deepcopy(thing)
    except Exception:  # it holds a lock, a file or the like
        copied = copy.copy(thing)
    for name, value in vars(copied).items() if depth else ():
        with suppress(Exception):  # what cannot be copied stays as it is
            vars(copied)[name] = spare(value, depth - 1)
    return copied


def _inside(
    target: Target,
    dataset: Dataset,
    seed: int,
    shape: tuple[int, ...] | None,
    add_noise: Callable[[NDArray[np.float64]], T],
    signals: _Signals,
) -> tuple[object, BaseException | None]:
    """Evaluate and add noise; the exact value is nowhere but in this frame and in its callees'."""
    who, tried = "The target", shape is not None
    try:
        with signals.let_in():
            exact = np.asarray(target(*dataset.parts, seed=seed), dtype=np.float64)
        if signals.ended_by is not None:  # a fit that catches an interrupt returns half a fit
            return None, signals.ended_by
        if tried and exact.shape != shape:
            return None, _failure(who, "a value of another shape than on public records", tried)
        if not np.isfinite(exact).all():
            return None, _failure(who, "a value that is not finite", tried)
        who = "The mechanism"
        return add_noise(exact), None
    except BaseException as error:
        return None, signals.ended_by or _replaced(error, who, tried)


def _replaced(error: BaseException, who: str, tried: bool = False) -> BaseException:
    """Make a new exception of the same kind, without message, frames and what went before."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt()
    kind = type(error)
    module = sys.modules.get(kind.__module__)
    made_before = getattr(module, "__dict__", {}).get(kind.__name__) is kind
    failure = _failure(who, kind.__name__ if made_before else "an error", tried)
    return SystemExit(str(failure)) if isinstance(error, SystemExit) else failure


def _failure(who: str, what: str, tried: bool) -> PrivateEvaluationError:
    """Say in public words what went wrong."""
    advice = (
        "It worked on public records: look there for what the private ones may lack, such as a "
        "class (inside OneVsRestClassifier let the oracle yield two) or "
        "variation in a column, or have and the public ones lack, such as a missing "
        "number, which an imputer fills, or a category, which an encoder takes unless its "
        "handle_unknown is 'error'."
        if tried
        else "Try it on public records first."
    )
    return PrivateEvaluationError(
        f"{who} failed on the private data ({what}); nothing is released, and the "
        "budget has paid. Details are withheld, since they may describe the data."
        f"{f' {advice}' if who == 'The target' else ''}"
    )


class _Signals:
    """Lets signals reach their handlers while the target runs, and makes them wait otherwise."""

    def __init__(self) -> None:
        self.handlers: dict[int, Callable] = {}
        self.waiting: list[int] = []
        self.pass_through = False
        self.ended_by: BaseException | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Call the handler, without the frame; the first that raises is the last to be called."""
        del frame  # its variables are private
        if not self.pass_through:
            self.waiting.append(number)
            return
        try:
            self.handlers[number](number, None)
        except BaseException as error:
            self.pass_through = False
            self.ended_by = _replaced(error, "The handler of a signal")
            raise

    @contextmanager
    def let_in(self) -> Iterator[None]:
        """Pass signals on, those that wait first."""
        self.pass_through = True
        try:
            while self.waiting:
                self.handle(self.waiting.pop(0), None)
            yield
        finally:
            self.pass_through = False


@contextmanager
def _signals() -> Iterator[_Signals]:
    """Handle all signals that have a handler in Python; those that waited come afterwards."""
    signals = _Signals()
    try:
        if threading.current_thread() is threading.main_thread():
            for number in map(int, signal.valid_signals()):
                handler = signal.getsignal(number)
                if callable(handler):
                    signals.handlers[number] = handler
                    signal.signal(number, signals.handle)
        yield signals
    finally:
        signals.pass_through = True
        put_back(dict(signals.handlers))
        for number in signals.waiting:
            signal.raise_signal(number)


def put_back(handlers: dict[int, Callable | int | None]) -> None:
    """Set all handlers, by number of their signal, though an interrupt may come in between."""
    try:
        for number in list(handlers):
            signal.signal(number, handlers[number])
            del handlers[number]
    finally:
        if handlers:
            put_back(handlers)


def _wait_for_key() -> None:
    """Fork no process while another thread evaluates: there it would never end."""
    _fork.has_key = _key.acquire(timeout=_PATIENCE)


def _give_key_back() -> None:
    if _fork.has_key:
        _key.release()


def _give_child_a_key() -> None:
    global _key
    if _fork.has_key:
        _key.release()
    else:
        _key = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_wait_for_key,
        after_in_parent=_give_key_back,
        after_in_child=_give_child_a_key,
    )
