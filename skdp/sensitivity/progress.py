"""Show the progress of a run: nothing at first, then a bar where somebody watches."""

from __future__ import annotations

import math
import multiprocessing
import sys
import warnings
from collections.abc import Generator
from time import perf_counter
from typing import Any, TypeVar

import numpy as np

from skdp.sensitivity.calibration import OrderStatistic

PATIENCE = 2.0
"""Seconds before anything is shown, unless `verbose` asks for it."""

T = TypeVar("T", bound=Any)
"""A chunk of pairs: its length is their number, and measured ones have norms."""


def follow(
    chunks: Generator[T, None, None],
    n_pairs: int,
    verbose: int | None,
    statistic: OrderStatistic | None = None,
) -> Generator[T, None, None]:
    """Pass chunks through, show the progress, and close the chunks.

    With an order statistic of `n_pairs` the estimate so far is shown: that of the same share.
    """
    progress, norms = Progress(n_pairs, verbose), np.empty(0)
    try:
        for chunk in chunks:
            estimate = None
            if statistic is not None:
                norms = np.append(norms, chunk.norms)
                k = math.ceil(statistic.k / n_pairs * len(norms))
                estimate = float(np.partition(norms, k - 1)[k - 1])
            progress.add(len(chunk), estimate)
            yield chunk
    finally:
        chunks.close()
        progress.close()


class Progress:
    """The number of pairs that are done, shown as the `verbose` of a sampler says."""

    def __init__(self, total: int, verbose: int | None):
        self.total, self.verbose, self.count = total, verbose, 0
        self.start = perf_counter()
        self.bar: Any = None
        self.is_silent = verbose == 0 or (verbose is None and not _is_watched())

    def add(self, n_pairs: int, estimate: float | None) -> None:
        """Count pairs, and show the count and the estimate so far, if there is one."""
        self.count += n_pairs
        is_early = self.verbose is None and perf_counter() - self.start <= PATIENCE
        if self.is_silent or (is_early and self.bar is None):
            return
        if self.bar is None and _is_watched():
            self.bar = self._make_bar()
        said = "" if estimate is None else f"sensitivity {estimate:.4g}"
        if self.bar is not None:
            self.bar.set_postfix_str(said, refresh=False)
            self.bar.update(self.count - self.bar.n)
            return
        rate = self.count / max(perf_counter() - self.start, 1e-9)
        left = (self.total - self.count) / rate
        advice = "" if self.verbose else "; n_jobs uses more cores, and memory keeps what is done"
        line = f"{self.count} of {self.total} pairs, {rate:.4g} pairs/s, {left:.0f} s left"
        said = f", {said}" if said else ""
        print(f"SensitivitySampler: {line}{said}{advice}", file=sys.stderr, flush=True)
        self.is_silent = self.verbose is None

    def _make_bar(self) -> Any:
        """Make a bar; return None where tqdm is not installed."""
        try:
            with warnings.catch_warnings():
                # a notebook without ipywidgets gets a bar of text, and needs no advice
                # a notebook without widgets gets a line
                warnings.filterwarnings("ignore", "IProgress not found")
                from tqdm.auto import tqdm
        except ImportError:
            return None
        # without a name before it, a million pairs and hours fit into 80 columns
        bar = tqdm(total=self.total, unit="pair")
        bar.start_t -= perf_counter() - self.start
        return bar

    def close(self) -> None:
        """Remove the bar, or leave it as it is if all is done."""
        if self.bar is not None:
            self.bar.close()


def _is_watched() -> bool:
    """Return whether this is the main process, in a terminal or notebook."""
    if multiprocessing.current_process().name != "MainProcess":
        return False
    return sys.stderr.isatty() or "ipykernel" in sys.modules
