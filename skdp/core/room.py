"""Evaluate a target on private data and add noise to its value, in silence.

Only the released value leaves this room, or a new exception that does not depend on the data.
While a thread is inside, the whole process prints, logs and warns of nothing. The limitations page
of the documentation lists the leaks that remain. Code that other packages put around estimators
stays outside: a known autologger is switched off, and anything else is refused.
"""

from __future__ import annotations

import copy
import ctypes
import functools
import gc
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from types import FrameType, FunctionType
from typing import Any, ParamSpec, TypeVar

import joblib
import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator

from skdp.core.dataset import Dataset
from skdp.core.identity import origin_of
from skdp.exceptions import PrivateEvaluationError

T = TypeVar("T")
P = ParamSpec("P")

_key = threading.RLock()  # one thread at a time: what is silenced belongs to the process
_caught: list[int] = []  # numbers of interrupts: a fit may catch one, and return half a fit

# what mlflow does around a method is switched off, and the others only compute
TRUSTED = {"sklearn", "numpy", "scipy", "joblib", "threadpoolctl", "torch", "mlflow"}
TRUSTED |= sys.stdlib_module_names

_lock, _switched_off = threading.Lock(), ExitStack()
_n_inside = 0  # in all threads, since the switch of mlflow belongs to the process


def evaluate_privately(
    target: Callable[..., NDArray[np.float64]],
    dataset: Dataset,
    seed: int,
    shape: tuple[int, ...] | None,
    add_noise: Callable[[NDArray[np.float64]], T],
) -> T:
    """Return the target's value on private data, with noise, or raise a new exception."""
    with quiet(), noted_interrupts():
        value, failure = _inside(target, dataset, seed, shape, add_noise)
    try:
        if failure is not None:
            raise failure
        return value
    finally:
        del failure  # else it would keep this frame, and this frame it


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the output, logs and warnings of a block."""
    with _key, ExitStack() as stack:
        enter = stack.enter_context
        enter(_closed_descriptors())
        # the stack closes it, and no `with` of its own
        nowhere = open(os.devnull, "w", encoding="utf-8", errors="replace")  # noqa: SIM115
        enter(nowhere)
        enter(redirect_stdout(nowhere))
        enter(redirect_stderr(nowhere))
        stack.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)  # all levels, those above CRITICAL too
        enter(warnings.catch_warnings(record=True))  # nobody keeps the record
        warnings.simplefilter("ignore")  # a warning would tell of records
        enter(np.errstate(all="ignore"))
        # other processes have descriptors of their own, and get large arrays through files
        enter(joblib.parallel_config(backend="sequential"))
        enter(config_context())
        enter(without_autologging())
        yield


def undisturbed(function: Callable[P, T]) -> Callable[P, T]:
    """Call a function under numpy's default treatment of errors, and with no code around fits."""

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        check_unpatched()
        errors = np.errstate(divide="warn", over="warn", under="ignore", invalid="warn")
        if is_first := not gc.get_freeze_count():
            gc.freeze()  # to search what was there before would take long
        try:
            with errors, without_autologging():
                return function(*args, **kwargs)
        finally:
            gc.collect()  # an exception and the frames that hold it are a circle
            if is_first:
                gc.unfreeze()

    return called


def spare(thing: T, depth: int = 3) -> T:
    """Copy an object that sees private data, so that the original keeps none of them."""
    try:
        return copy.deepcopy(thing)
    except Exception:  # it holds a lock, a file or the like
        copied = copy.copy(thing)
    for name, value in getattr(copied, "__dict__", {}).items() if depth else ():
        with suppress(Exception):  # what cannot be copied stays as it is
            vars(copied)[name] = spare(value, depth - 1)
    return copied


def _inside(
    target: Callable[..., NDArray[np.float64]],
    dataset: Dataset,
    seed: int,
    shape: tuple[int, ...] | None,
    add_noise: Callable[[NDArray[np.float64]], T],
) -> tuple[Any, BaseException | None]:
    """Evaluate and add noise; only this frame and its callees hold the exact value."""
    who, tried = "The target", shape is not None
    try:
        parts = dataset.map(spare).parts  # a target may write into them, without noise
        exact = np.asarray(target(*parts, seed=seed), dtype=np.float64)
        raise_noted()
        if tried and exact.shape != shape:
            return None, _failure(who, "a value of another shape than on public records", tried)
        if not np.isfinite(exact).all():
            return None, _failure(who, "a value that is not finite", tried)
        who = "The mechanism"
        return add_noise(exact), None
    except BaseException as error:
        return None, _replace(error, who, tried)


def _replace(error: BaseException, who: str, tried: bool) -> BaseException:
    """Make a new exception of the same kind, without message, frames and context."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt()
    kind = type(error)
    module = sys.modules.get(kind.__module__)
    made_before = getattr(module, "__dict__", {}).get(kind.__name__) is kind
    failure = _failure(who, kind.__name__ if made_before else "an error", tried)
    return SystemExit(str(failure)) if isinstance(error, SystemExit) else failure


def _failure(who: str, what: str, tried: bool) -> PrivateEvaluationError:
    """Make an error of public words."""
    advice = (
        "It worked on public records: private ones may lack a class or variation in a "
        "column, or have weights of 0, a missing number, which an imputer fills, or a new "
        "category, which an encoder takes unless its handle_unknown is 'error'."
        if tried
        else "Try it on public records first."
    )
    return PrivateEvaluationError(
        f"{who} failed on the private data ({what}); nothing is released, and the "
        "budget has paid. Details are withheld, since they may describe the data."
        f"{f' {advice}' if who == 'The target' else ''}"
    )


@contextmanager
def _closed_descriptors() -> Iterator[None]:
    """Close descriptors 1 and 2, to which C libraries and child processes write."""
    _flush()
    opened = [os.open(os.devnull, os.O_RDWR)]
    while opened[-1] <= 2:  # one was closed, and must not become the copy of another
        opened.append(os.open(os.devnull, os.O_RDWR))
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    with ExitStack() as stack:  # an interrupt while it closes skips none of what follows
        for descriptor in [*kept.values(), *opened]:
            stack.callback(os.close, descriptor)
        for descriptor, copied in kept.items():
            stack.callback(os.dup2, copied, descriptor)
        stack.callback(_flush)
        for descriptor in kept:
            os.dup2(opened[-1], descriptor)
        yield


def _flush() -> None:
    """Empty all buffers, in Python and in C, into where the descriptors lead now."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(Exception):  # there may be none, or a closed one
            stream.flush()  # type: ignore[union-attr]  # None raises, and is suppressed
    with suppress(OSError, AttributeError):  # there may be no such library
        ctypes.CDLL("ucrtbase" if os.name == "nt" else None).fflush(None)


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


@contextmanager
def without_autologging() -> Iterator[None]:
    """Switch off the autologgers of mlflow, which store each fit, until the last thread is out."""
    global _n_inside
    with _lock:
        _n_inside += 1
        if mlflow := sys.modules.get("mlflow.utils.autologging_utils"):
            _switched_off.enter_context(mlflow.disable_autologging())
    try:
        yield
    finally:
        with _lock:
            _n_inside -= 1
            if not _n_inside:
                _switched_off.close()


def check_unpatched() -> None:
    """Refuse a method of an installed estimator that was replaced by code of another package."""
    for owner in {base for kind in _subclasses(BaseEstimator) for base in kind.__mro__}:
        home = owner.__module__.partition(".")[0]
        own = vars(sys.modules.get(owner.__module__, owner))
        for name, method in vars(owner).items():
            if not isinstance(method, FunctionType):
                continue
            if type(method) is FunctionType and method.__globals__ is own and not vars(method):
                continue  # most: of this module and without a wrapper
            for package in {*_packages_of(method)} - TRUSTED - {home}:
                if origin_of(home) in (None, origin_of(package)):
                    continue  # the user's own class, or two packages of one distribution
                path = f"{owner.__module__}.{owner.__qualname__}.{name}"
                undo = f", or write {path} = {path}.__wrapped__" * hasattr(method, "__wrapped__")
                raise RuntimeError(
                    f"{path} was replaced by code of {package}, which may keep private records "
                    f"and exact models. Start Python without that code{undo}."
                )


def _subclasses(kind: Any) -> Iterator[type]:
    for inheriting in kind.__subclasses__():
        yield inheriting
        yield from _subclasses(inheriting)


def _packages_of(method: object) -> Iterator[str]:
    """Yield the packages of a function and of those that it wraps; of a proxy that of its class."""
    while isinstance(method, FunctionType):
        is_proxy = type(method) is not FunctionType
        module = None if is_proxy else method.__globals__.get("__name__")
        yield str(module or type(method).__module__).partition(".")[0]
        method = getattr(method, "__wrapped__", None)
