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
    """Show how many pairs are done: `verbose` means what SensitivitySampler says."""

    def __init__(self, verbose: int | None):
        self.verbose = verbose
        self.count = self.total = 0
        self.start = perf_counter()
        self.bar: Any = None
        self.is_silent = verbose == 0 or (verbose is None and not _is_watched())

    def add(self, n_pairs: int, value: float | None) -> None:
        """Count pairs, and show the count and the estimate so far, if there is one."""
        self.count += n_pairs
        if self.bar is not None:
            self._advance(n_pairs, value)
        elif self.is_silent or (self.verbose is None and perf_counter() - self.start <= PATIENCE):
            pass
        elif not _is_watched() or not self._begin_bar():
            advice = "; n_jobs uses more cores, and memory keeps what is done"
            advice = advice if self.verbose is None else ""
            self.is_silent = self.verbose is None
            print(f"{self._line(value)}{advice}", file=sys.stderr, flush=True)
        else:
            self._advance(self.count, value)

    def _begin_bar(self) -> bool:
        """Make a bar; return False where tqdm is not installed."""
        try:
            with warnings.catch_warnings():
                # a notebook without ipywidgets gets a bar of text, and needs no advice
                warnings.filterwarnings("ignore", "IProgress not found")
                from tqdm.auto import tqdm
        except ImportError:
            return False
        # without a name before it, a million pairs and hours fit into 80 columns
        self.bar = tqdm(total=self.total, unit="pair")
        self.bar.start_t -= perf_counter() - self.start
        return True

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
        """Remove the bar, or leave it as it is if all is done."""
        if self.bar is not None:
            self.bar.close()


_shared: ContextVar[Progress | None] = ContextVar("shared", default=None)


@contextmanager
def one_count(verbose: int | None) -> Iterator[None]:
    """Count the pilot pairs and the calibrating pairs of a block together."""
    progress = Progress(verbose)
    token = _shared.set(progress)
    try:
        yield
    finally:
        _shared.reset(token)
        progress.close()


def follow(
    chunks: Generator[T, None, None],
    n_pairs: int,
    statistic: OrderStatistic,
    *,
    verbose: int | None,
    are_pilots: bool = False,
) -> Generator[T, None, None]:
    """Pass chunks through, show the progress and the estimate so far, and close the chunks.

    The estimate is the order statistic at the same share of the pairs so far.
    """
    shared = _shared.get()
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
