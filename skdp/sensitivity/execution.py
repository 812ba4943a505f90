"""Evaluate chunks of pairs, on one core or many, or read them from a cache.

All pairs are drawn from the oracle, so the cache holds public numbers only.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator
from numbers import Integral
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import joblib
import numpy as np
from sklearn import config_context
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import ThreadpoolController

from skdp.core.checks import check_rules
from skdp.core.room import noted_interrupts

T = TypeVar("T")

STARTUP = 1.5
"""Seconds of work from which workers are started: loky takes about one second to start."""

CHUNK_SIZE = 50
"""Pairs of two calls in a task, which take much longer than handing out the task."""


def check_resources(n_jobs: object, memory: object, verbose: object) -> None:
    """Check the number of workers, the folder and `verbose`."""

    def is_whole(value: object) -> bool:
        return value is None or (isinstance(value, Integral) and not isinstance(value, bool))

    n_jobs_fits = is_whole(n_jobs) and n_jobs != 0
    check_rules(
        "SensitivitySampler",
        n_jobs=(n_jobs, n_jobs_fits, "be None or an integer other than 0"),
        verbose=(verbose, is_whole(verbose), "be None or an integer"),
    )
    if memory is not None:
        _cached(memory)


def run(
    evaluate: Callable[[range], T],
    pairs: range,
    chunk_size: int,
    *,
    n_jobs: int | None = None,
    memory: object = None,
    key: str = "",
) -> Generator[T, None, None]:
    """Evaluate pairs chunk by chunk, in their order.

    ``evaluate(pairs)`` returns the same results in any process, and `key` identifies it in the
    `memory`. Closing the generator ends the workers.
    """
    missing = chunks = [pairs[i : i + chunk_size] for i in range(0, len(pairs), chunk_size)]
    task: Any = run_chunk
    if memory is not None:
        cached = _cached(memory)
        task = functools.partial(cached, key)
        missing = [
            chunk for chunk in chunks if not cached.check_call_in_cache(key, evaluate, chunk)
        ]
    if joblib.effective_n_jobs(n_jobs) > 1 and _takes_long(evaluate, missing):
        results = _on_workers(n_jobs, (delayed(task)(evaluate, chunk) for chunk in chunks))
        try:
            yield from results
        finally:
            _end(results)
        return
    for chunk in chunks:
        yield task(evaluate, chunk)


def run_chunk(evaluate: Callable[[range], T], pairs: range) -> T:
    """Evaluate consecutive pairs: silent, and on one thread, since the workers share the cores."""
    single_thread = _thread_pools(len(sys.modules)).limit(limits=1)
    with (
        single_thread,
        noted_interrupts(),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        config_context(),
    ):
        warnings.simplefilter("ignore")  # the public fit shows the warnings of a fit once
        return evaluate(pairs)


@functools.lru_cache(maxsize=1)
def _thread_pools(n_modules: int) -> ThreadpoolController:
    """Find the thread pools, anew when modules were loaded since: it takes milliseconds."""
    return ThreadpoolController()


def _on_workers(n_jobs: int | None, calls: Iterable[Any]) -> Iterator[Any]:
    """Return results as they come where the back end can do so (Ray cannot), else at the end."""
    try:
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
    except ValueError:
        parallel = Parallel(n_jobs=n_jobs)
    return iter(parallel(calls))


def _end(results: object) -> None:
    """End the workers, which would go on while somebody keeps the traceback of an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # joblib warns of results that nobody waited for
        getattr(results, "close", lambda: None)()


def _takes_long(evaluate: Callable, chunks: list[range]) -> bool:
    """Time the first missing pairs, and return whether workers are worth starting.

    The result of the pairs is not used, so the norms cannot depend on the decision. A long first
    evaluation may have loaded modules, so a second one decides.
    """
    if len(chunks) < 2:
        return False
    first = chunks[0][: getattr(evaluate, "at_once", 1)]
    n_times = sum(map(len, chunks)) / len(first)
    for _ in range(2):
        start = perf_counter()
        run_chunk(evaluate, first)
        if (perf_counter() - start) * n_times < STARTUP:
            return False
    return True


def _cached(memory: object) -> Any:
    """Return `_run_cached` with its results kept in a directory, by key and chunk."""
    if isinstance(memory, str | Path):
        memory = joblib.Memory(memory, verbose=0)
    if not hasattr(memory, "cache"):
        raise TypeError(
            "The 'memory' parameter of SensitivitySampler must be None, a path or a "
            f"joblib.Memory. Got {type(memory).__name__}."
        )
    return memory.cache(_run_cached, ignore=["evaluate"], verbose=0)


def _run_cached(key: str, evaluate: Callable[[range], T], pairs: range) -> T:
    return run_chunk(evaluate, pairs)
