"""Show the progress of a run: nothing at first, then a bar where somebody watches."""

from __future__ import annotations

import math
import multiprocessing
import sys
import warnings
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from skdp.sensitivity.calibration import OrderStatistic
from skdp.sensitivity.pairs import Outcomes

PATIENCE = 2.0
"""Seconds before anything is shown, unless `verbose` asks for it."""

T = TypeVar("T")


class Progress:
    """Count the pilot pairs and the calibrating pairs together.

    With `verbose` None it is shown after two seconds, in a terminal or notebook only: as a bar by
    tqdm, or in one line. With a positive number it is shown from the start, elsewhere by a line per
    chunk; with 0 never.
    """

    def __init__(self, verbose: int | None):
        self.verbose = verbose
        self.count = self.total = 0
        self.start = perf_counter()
        self.bar: Any = None
        self.told = verbose == 0 or (verbose is None and not _is_watched())

    def add(self, n_pairs: int, value: float | None) -> None:
        """Count pairs, and show the count and the estimate so far, if there is one."""
        self.count += n_pairs
        if self.bar is not None:
            self._advance(n_pairs, value)
        elif self.told:
            pass
        elif self.verbose is not None and not _is_watched():
            print(self._line(value), file=sys.stderr, flush=True)
        elif self.verbose is not None or perf_counter() - self.start > PATIENCE:
            self._begin(value)

    def _begin(self, value: float | None) -> None:
        try:
            with warnings.catch_warnings():
                # a notebook without ipywidgets gets a bar of text, and needs no advice
                warnings.filterwarnings("ignore", "IProgress not found")
                from tqdm.auto import tqdm
        except ImportError:
            hint = "; n_jobs uses more cores, and memory keeps what is done"
            hint = hint if self.verbose is None else ""
            self.told = self.verbose is None
            print(f"{self._line(value)}{hint}", file=sys.stderr, flush=True)
        else:
            # without a name before it, a million pairs and hours fit into 80 columns
            self.bar = tqdm(total=self.total, unit="pair")
            self.bar.start_t -= perf_counter() - self.start
            self._advance(self.count, value)

    def _advance(self, n_pairs: int, value: float | None) -> None:
        self.bar.total = self.total
        if value is not None:
            self.bar.set_postfix_str(f"sensitivity {value:.4g}", refresh=False)
        self.bar.update(n_pairs)

    def _line(self, value: float | None) -> str:
        rate = self.count / max(perf_counter() - self.start, 1e-9)
        left = (self.total - self.count) / rate
        estimate = "" if value is None else f", sensitivity {value:.4g}"
        return (
            f"SensitivitySampler: {self.count} of {self.total} pairs, {rate:.4g} pairs/s, "
            f"{left:.0f} s left{estimate}"
        )

    def close(self) -> None:
        """Take the bar away, or leave it as it is if all is done."""
        if self.bar is not None:
            self.bar.close()


_count: ContextVar[Progress | None] = ContextVar("count", default=None)


@contextmanager
def one_count(verbose: int | None) -> Iterator[None]:
    """Count the pilots of a block and the pairs that calibrate together."""
    progress = Progress(verbose)
    token = _count.set(progress)
    try:
        yield
    finally:
        _count.reset(token)
        progress.close()


def follow(
    chunks: Generator[T, None, None],
    n_pairs: int,
    statistic: OrderStatistic,
    *,
    verbose: int | None,
    are_pilots: bool = False,
) -> Generator[T, None, None]:
    """Pass chunks through, and show rate, remaining time and the estimate so far.

    The estimate is the order statistic at the same place among the pairs so far. In a shared count,
    the calibrating pairs follow the pilots. `chunks` is closed in any case.
    """
    shared = _count.get()
    progress = shared or Progress(verbose)
    more = statistic.n_pairs if shared and are_pilots else 0
    progress.total = progress.count + n_pairs + more
    norms = np.empty(0)
    try:
        for chunk in chunks:
            if isinstance(chunk, Outcomes):
                norms = np.append(norms, chunk.norms)
                k = math.ceil(statistic.k / statistic.n_pairs * len(norms))
                progress.add(len(chunk.norms), float(np.partition(norms, k - 1)[k - 1]))
            elif isinstance(chunk, list):  # of pilot pairs
                progress.add(len(chunk), None)
            yield chunk
    finally:
        chunks.close()
        if not shared:
            progress.close()


def _is_watched() -> bool:
    """Return whether this is the main process, in a terminal or notebook."""
    if multiprocessing.current_process().name != "MainProcess":
        return False
    return sys.stderr.isatty() or "ipykernel" in sys.modules
