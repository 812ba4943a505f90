"""Evaluate pairs in their order: those that are known, a few to time them, then all others.

All pairs are drawn from the oracle, so the store of the process, and the folder of a `memory`, hold
public numbers only.
"""

from __future__ import annotations

import functools
import math
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from time import perf_counter
from typing import Any, Generic, TypeVar

import joblib
import numpy as np
from sklearn import config_context
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from skdp.core.checks import check_rules
from skdp.core.room import noted_interrupts
from skdp.sensitivity.progress import Progress
from skdp.sensitivity.store import STORE, Evaluation

T = TypeVar("T")

STARTUP = 1.5
"""Seconds of work from which workers are started: loky takes about one second to start."""

CHUNK_SIZE = 50
"""Pairs of two calls in a task, which take much longer than handing out the task."""

BLOCKS_OF_CHUNK = 4
"""Blocks of pairs that are evaluated at once in a task."""

LEAST_CHUNKS = 64
"""Number of chunks of a short run: small ones keep more of it and serve more workers."""


@dataclass(frozen=True)
class Job(Generic[T]):
    """What is done for some pairs: they are evaluated, and something is made of what comes back.

    `key` names the run in the store of the process, or in the folder of a `memory`. Where nothing
    may be kept it is empty.
    """

    evaluate: Callable[[range], Any]
    finish: Callable[[Any], T]
    key: str

    def __call__(self, pairs: range) -> T:
        return self.finish(self.evaluate(pairs))


@dataclass(frozen=True)
class Resources:
    """Where pairs are evaluated, and what is shown of it, as the parameters of a sampler say."""

    n_jobs: int | None
    memory: Any
    verbose: int | None

    def check(self) -> None:
        """Check the number of workers, the folder and `verbose`."""
        whole = {
            name: value is None or (isinstance(value, Integral) and not isinstance(value, bool))
            for name, value in vars(self).items()
        }
        n_jobs_fits = whole["n_jobs"] and self.n_jobs != 0
        check_rules(
            "SensitivitySampler",
            n_jobs=(self.n_jobs, n_jobs_fits, "be None or an integer other than 0"),
            verbose=(self.verbose, whole["verbose"], "be None or an integer"),
        )
        if self.memory is not None:
            _cached(self.memory)


def run(
    job: Job[T],
    known: list[Evaluation],
    n_pairs: int,
    resources: Resources,
    *,
    later: int = 0,
    at_once: int = 1,
) -> Generator[T, None, None]:
    """Yield what is made of the pairs, in their order, chunk by chunk.

    The first pairs are `known`, and so many `at_once` take about as long as one. A job returns the
    same in any process, so it does not matter which pairs workers evaluate. Closing the generator
    ends them.
    """
    if known:
        yield run_chunk(job.finish, known)
    pairs = range(len(known), n_pairs)
    n_workers = joblib.effective_n_jobs(resources.n_jobs)
    in_folder = job.key and resources.memory is not None
    store = _InFolder(job, resources.memory) if in_folder else _InProcess(job, pairs)
    chunks = _cut(pairs, at_once)
    with closing(Progress(len(pairs), resources.verbose, n_workers, later)) as progress:
        for place, chunk in enumerate(chunks):
            if n_workers > 1 and STARTUP < progress.seconds_left < math.inf:
                rest = chunks[place:]
                with closing(_on_workers(resources.n_jobs, store.task, rest)) as results:
                    for each, result in zip(rest, results, strict=True):
                        progress.add(len(each))
                        yield store.finish(each, result)
                return
            is_new, start = not store.holds(chunk), perf_counter()
            result = store.task(chunk)
            progress.add(len(chunk), perf_counter() - start if is_new else None)
            yield store.finish(chunk, result)


def _cut(pairs: range, at_once: int) -> list[range]:
    """Cut pairs into chunks, after two small ones that are timed."""
    size = (
        min(CHUNK_SIZE, 1 + len(pairs) // LEAST_CHUNKS)
        if at_once == 1
        else BLOCKS_OF_CHUNK * at_once
    )
    starts = [*pairs[::at_once][:2], *pairs[2 * at_once :: size]]
    return [range(*ends) for ends in pairwise([*starts, pairs.stop])]


class _InProcess:
    """Evaluations go to the store of the process, where the run has a key and there is room."""

    def __init__(self, job: Job, pairs: range):
        self.job, self.pairs = job, pairs
        self.whole = functools.partial(run_chunk, job)
        self.task = functools.partial(run_chunk, job.evaluate) if job.key else self.whole

    def holds(self, chunk: range) -> bool:
        """No chunk: those that are known are none of these."""
        return False

    def finish(self, chunk: range, result: Any) -> Any:
        """Keep what a task returned, and make of it what the job makes."""
        if self.task is self.whole:
            return result
        found = dict(zip(chunk, result, strict=True))
        has_room = STORE.keep(self.job.key, found, self.pairs.stop)
        if chunk.start == self.pairs.start and not has_room:
            self.task = self.whole  # workers need not send what nobody keeps
        return run_chunk(self.job.finish, result)


class _InFolder:
    """What is made of each chunk is kept in the folder of a `memory`."""

    def __init__(self, job: Job, memory: Any):
        self.job, self.cached = job, _cached(memory)
        self.task = functools.partial(self.cached, job.key, job)

    def holds(self, chunk: range) -> bool:
        """Return whether an earlier run kept the chunk."""
        return self.cached.check_call_in_cache(self.job.key, self.job, chunk)

    def finish(self, chunk: range, result: Any) -> Any:
        """Return it as it is."""
        return result


def _on_workers(
    n_jobs: int | None, task: Callable[[range], T], chunks: list[range]
) -> Generator[T, None, None]:
    """Yield results in order, as they come where the back end can do so (Ray cannot)."""
    calls = (delayed(task)(chunk) for chunk in chunks)
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


def run_chunk(function: Callable[[Any], T], argument: Any) -> T:
    """Call a function: silent, and on one thread, since the workers share the cores."""
    single_thread = _thread_pools(len(sys.modules)).limit(limits=1)
    with (
        single_thread,
        noted_interrupts(),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        config_context(),
    ):
        warnings.simplefilter("ignore")  # the public fit shows the warnings of a fit once
        return function(argument)


@functools.lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Find the thread pools, anew when modules were loaded since: it takes milliseconds."""
    return ThreadpoolController()


def _cached(memory: Any) -> Any:
    """Return `_run_cached` with its results kept in a directory, by key and chunk."""
    if isinstance(memory, str | Path):
        memory = joblib.Memory(memory, verbose=0)
    if not hasattr(memory, "cache"):
        raise TypeError(
            "The 'memory' parameter of SensitivitySampler must be None, a path or a "
            f"joblib.Memory. Got {type(memory).__name__}."
        )
    return memory.cache(_run_cached, ignore=["job"], verbose=0)


def _run_cached(key: str, job: Callable[[range], T], pairs: range) -> T:
    return run_chunk(job, pairs)
