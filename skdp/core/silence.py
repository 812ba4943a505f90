"""Silence in the whole process: nothing is shown, logged, kept or handed to hooks."""

from __future__ import annotations

import ctypes
import logging
import os
import random
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout, suppress
from typing import Any

import joblib
import numpy as np
from sklearn import config_context


@contextmanager
def silence() -> Iterator[None]:
    """Close every way out that does not belong to the code that runs; all is as before after it."""
    with ExitStack() as stack:
        enter = stack.enter_context
        enter(_kept_states())
        enter(_closed_descriptors())
        # the stack closes it, and no `with` of its own
        nowhere = open(os.devnull, "w", encoding="utf-8", errors="replace")  # noqa: SIM115
        enter(nowhere)
        enter(redirect_stdout(nowhere))
        enter(redirect_stderr(nowhere))
        enter(_closed_logging())
        enter(_forgotten_warnings())
        enter(_unhooked())
        enter(np.errstate(all="ignore"))
        # other processes have descriptors of their own, and get large arrays through files
        enter(joblib.parallel_config(backend="sequential"))
        enter(config_context())
        yield


@contextmanager
def _closed_descriptors() -> Iterator[None]:
    """Lead descriptors 1 and 2 nowhere, to which C libraries and child processes write."""
    _flush()
    opened = [os.open(os.devnull, os.O_RDWR)]
    while opened[-1] <= 2:  # one was closed, and must not become the copy of another
        opened.append(os.open(os.devnull, os.O_RDWR))
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        for descriptor in kept:
            os.dup2(opened[-1], descriptor)
        yield
    finally:
        _flush()
        for descriptor, copy in kept.items():
            os.dup2(copy, descriptor)
        for descriptor in [*kept.values(), *opened]:
            os.close(descriptor)


def _flush() -> None:
    """Empty all buffers, in Python and in C, into where the descriptors lead now."""
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with suppress(Exception):  # there may be none, or a closed one
            stream.flush()  # type: ignore[union-attr]  # None raises, and is suppressed
    with suppress(OSError, AttributeError):
        ctypes.CDLL("ucrtbase" if os.name == "nt" else None).fflush(None)


@contextmanager
def _closed_logging() -> Iterator[None]:
    """Disable logging at all levels, those above CRITICAL too."""
    level = logging.root.manager.disable
    logging.disable(sys.maxsize)
    try:
        yield
    finally:
        logging.disable(level)


@contextmanager
def _forgotten_warnings() -> Iterator[None]:
    """Ignore warnings; those that the code turns on again are neither shown nor kept."""
    once: dict[object, object] = getattr(warnings, "onceregistry", {})
    before = dict(once)
    with warnings.catch_warnings(record=True):  # the record, which nobody has, replaces all hooks
        warnings.simplefilter("ignore")  # they may show private values
        yield
    once.clear()
    once.update(before)
    for module in list(sys.modules.values()):  # Python itself clears these when filters change
        registry = getattr(module, "__dict__", {}).get("__warningregistry__")
        if registry:
            registry.clear()


@contextmanager
def _unhooked() -> Iterator[None]:
    """Take away the hooks of threads, and that for exceptions which nobody can catch."""
    with ExitStack() as stack:
        for get, put in (
            (threading.gettrace, threading.settrace),
            (threading.getprofile, threading.setprofile),
        ):
            stack.callback(put, get())  # type: ignore[arg-type]  # None takes a hook away
            put(None)
        for owner, name in ((sys, "unraisablehook"), (threading, "excepthook")):
            stack.callback(setattr, owner, name, getattr(owner, name))
            setattr(owner, name, _say_nothing)
        yield


def untraced(function: Callable, *arguments: object) -> Any:
    """Call a function while no trace or profile function in Python is handed its frames.

    Both are put back in the frame that took them away: a tracer counts calls and returns.
    """
    trace, profile = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    if callable(profile):  # a profiler in C could not be put back, and is not handed variables
        sys.setprofile(None)
    try:
        return function(*arguments)
    finally:
        if callable(profile):
            sys.setprofile(profile)
        sys.settrace(trace)


def _say_nothing(*_: object) -> None:
    """Take the place of a hook."""


@contextmanager
def _kept_states() -> Iterator[None]:
    """Put the global random states back: how far they have moved may depend on the data."""
    # numpy's global generator is what is kept: hence the noqa
    numpy_state, state = np.random.get_state(legacy=False), random.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002 - as above
        random.setstate(state)
