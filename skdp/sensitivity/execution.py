"""Evaluate pairs in their order: those that are known, a few to time them, then all others.

All pairs are drawn from the oracle, so the store of the process holds public numbers only.
"""

from __future__ import annotations

import functools
import math
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Generic, TypeVar

import joblib
import numpy as np
from sklearn import config_context
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from skdp.core.room import noted_interrupts
from skdp.sensitivity.store import STORE, Evaluation

S = TypeVar("S")
T = TypeVar("T")

STARTUP = 1.5  # seconds of work from which workers are started; loky takes about one second
CHUNK_SECONDS = 1.0  # seconds of work in a chunk, of which an interrupt loses one
LARGE = 2**25 - 2**14  # bytes: the most that raises the size from which glibc returns memory
LONG = 10.0  # seconds; of a longer run the expected duration is said, and how far it is
FIRST_LOADS = 1.0  # seconds; a shorter first pair may only have loaded modules
N_LINES = 10  # lines that say how far a run is, at most
CHUNKS_OF_WORKER = 4  # at least, so that all end at about the same time


@dataclass(frozen=True)
class Job(Generic[T]):
    """Work on some pairs: evaluate and finish them; without a `key` no evaluation is kept."""

    evaluate: Callable[[range], Any]
    finish: Callable[[Any], T]
    key: str  # of the run in the store

    def __call__(self, pairs: range) -> tuple[Any, T]:
        """Return the evaluations, if they may be kept, and what is made of them."""
        found = self.evaluate(pairs)
        return found if self.key else None, self.finish(found)


def run(
    job: Job[T],
    known: list[Evaluation],
    n_pairs: int,
    *,
    n_jobs: int | None,
    verbose: int | None,
    later: int = 0,
    at_once: int = 1,  # so many pairs take about as long as one
) -> Generator[T, None, None]:
    """Yield what is made of the pairs, in order, chunk by chunk; the first ones are `known`."""
    if known:
        yield run_chunk(job.finish, known)
    pairs = range(len(known), n_pairs)
    n_workers = joblib.effective_n_jobs(n_jobs)
    progress = Progress(len(pairs), verbose, n_workers, later)
    while pairs:
        size = _chunk_size(progress, n_workers, at_once)
        if n_workers > 1 and STARTUP < progress.seconds_left < math.inf:
            chunks = [pairs[start : start + size] for start in range(0, len(pairs), size)]
            with closing(_on_workers(n_jobs, job, chunks)) as results:
                for chunk, (found, made) in zip(chunks, results, strict=True):
                    _keep(job, chunk, found, n_pairs)
                    progress.add(len(chunk))
                    yield made
            return
        chunk, pairs = pairs[:size], pairs[size:]
        start = perf_counter()
        found, made = run_chunk(job, chunk)
        if not _keep(job, chunk, found, n_pairs):  # workers need not send what nobody keeps
            job = replace(job, key="")
        progress.add(len(chunk), perf_counter() - start)
        yield made


def _chunk_size(progress: Progress, n_workers: int, at_once: int) -> int:
    """Return how many pairs to evaluate in a task; one, or `at_once`, until two were timed."""
    if progress.seconds_left == math.inf:
        return at_once
    in_time = CHUNK_SECONDS / max(progress.seconds_per_pair, 1e-9)
    most = progress.total / (CHUNKS_OF_WORKER * n_workers)
    return at_once * max(1, int(min(in_time, most) / at_once))


def _keep(job: Job[T], chunk: range, found: list[Evaluation] | None, n_pairs: int) -> bool:
    """Keep the evaluations of a chunk in the store, if there is room for all."""
    return found is not None and STORE.keep(job.key, dict(zip(chunk, found, strict=True)), n_pairs)


def _on_workers(
    n_jobs: int | None, job: Job[T], chunks: list[range]
) -> Generator[tuple[Any, T], None, None]:
    """Yield results in order, as they come where the back end can do so (Ray cannot)."""
    calls = (delayed(run_chunk)(job, chunk) for chunk in chunks)
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:
        parallel = Parallel(n_jobs=n_jobs)
    results = parallel(calls)
    try:
        yield from results
    finally:  # the workers would go on while somebody keeps the traceback of an error
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # joblib warns of results that nobody waited for
            getattr(results, "close", lambda: None)()


def run_chunk(function: Callable[[S], T], argument: S) -> T:
    """Call a function: silent, and on one thread, since the workers share the cores."""
    np.empty(LARGE, np.uint8)  # glibc then keeps the memory of a fit for the next one
    single_thread = _thread_pools(len(sys.modules)).limit(limits=1)
    with (
        single_thread,
        noted_interrupts(),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),  # as in the room of a private fit
        config_context(),
    ):
        warnings.simplefilter("ignore")  # the public fit shows the warnings of a fit once
        return function(argument)


@functools.lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Find the thread pools, anew when modules were loaded since: it takes milliseconds."""
    return ThreadpoolController()


class Progress:
    """The pairs that are done, and how long the others and those of a `later` run take."""

    def __init__(self, total: int, verbose: int | None, n_workers: int, later: int = 0):
        self.total, self.later, self.n_workers = total, later, n_workers
        self.is_shown = bool(verbose) or (verbose is None and _is_watched())
        self.shows_lines = bool(verbose)
        self.count, self.n_timed, self.seconds_per_pair = 0, 0, math.inf
        self.start = perf_counter()
        self.was_said = False

    @property
    def seconds_left(self) -> float:
        """Seconds of work that are left; unknown, hence infinite, before two chunks were timed."""
        return self.seconds_per_pair * (self.total - self.count) if self.n_timed > 1 else math.inf

    def add(self, n_pairs: int, seconds: float | None = None) -> None:
        """Count pairs, which took so many seconds of one worker if that is known."""
        before, self.count = self.count, self.count + n_pairs
        if seconds is not None:
            self.n_timed += 1
            self.seconds_per_pair = min(self.seconds_per_pair, seconds / n_pairs)
            if self.is_shown and (self.n_timed > 1 or seconds >= FIRST_LOADS):
                self._say_duration()
        tenths = [N_LINES * count // self.total for count in (before, self.count)]
        if self.shows_lines and tenths[0] < tenths[1]:
            left = (perf_counter() - self.start) / self.count * (self.total - self.count)
            _say(f"{self.count} of {self.total} pairs, about {_duration(left)} left")

    def _say_duration(self) -> None:
        expected = self.seconds_per_pair * (self.total - self.count + self.later) / self.n_workers
        if self.was_said or expected < LONG:
            return
        advice = "; n_jobs uses more cores" if self.n_workers == 1 else ""
        _say(f"about {_duration(expected)} for {self.total + self.later} pairs{advice}")
        self.was_said = self.shows_lines = True


def _is_watched() -> bool:
    """Return whether this is the main process, in a terminal or notebook."""
    if multiprocessing.current_process().name != "MainProcess":
        return False
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def _duration(seconds: float) -> str:
    size, unit = next(each for each in _UNITS if seconds < 100 * each[0])
    return f"{math.ceil(seconds / size)} {unit}"


_UNITS = (1, "s"), (60, "min"), (3600, "h"), (math.inf, "h")


def _say(line: str) -> None:
    print(f"skdp: {line}", file=sys.stderr, flush=True)
