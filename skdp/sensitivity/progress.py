"""The progress of a run: a bar in a terminal or notebook, else a line per chunk."""

from __future__ import annotations

import math
import sys
from collections.abc import Generator
from time import perf_counter
from typing import Any

import numpy as np

from skdp.sensitivity.calibration import OrderStatistic
from skdp.sensitivity.pairs import Outcomes


def follow(
    chunks: Generator[Outcomes, None, None], statistic: OrderStatistic
) -> Generator[Outcomes, None, None]:
    """Pass chunks through, and show rate, remaining time and the estimate so far.

    The bar needs tqdm and a terminal or a notebook; otherwise each chunk writes a line to the
    standard error stream. `chunks` is closed at the end, whatever the end.
    """
    running = _Running(statistic)
    bar = _bar(statistic.n_pairs)
    try:
        for chunk in chunks:
            running.add(chunk)
            if bar is None:
                print(running, file=sys.stderr, flush=True)
            else:
                bar.set_postfix_str(f"sensitivity {running.value():.4g}", refresh=False)
                bar.update(len(chunk.norms))
            yield chunk
    finally:
        chunks.close()
        if bar is not None:
            bar.close()


class _Running:
    """What is known after some of the chunks."""

    def __init__(self, statistic: OrderStatistic):
        self.statistic = statistic
        self.norms = np.empty(statistic.n_pairs)
        self.count = 0
        self.start = perf_counter()

    def add(self, chunk: Outcomes) -> None:
        self.norms[self.count : self.count + len(chunk.norms)] = chunk.norms
        self.count += len(chunk.norms)

    def value(self) -> float:
        """Return the order statistic at the same place among the pairs so far."""
        k = math.ceil(self.statistic.k / self.statistic.n_pairs * self.count)
        return float(np.partition(self.norms[: self.count], k - 1)[k - 1])

    def __str__(self) -> str:
        rate = self.count / max(perf_counter() - self.start, 1e-9)
        left = (self.statistic.n_pairs - self.count) / rate
        return (
            f"SensitivitySampler: {self.count} of {self.statistic.n_pairs} pairs, {rate:.4g} "
            f"pairs/s, {left:.0f} s left, sensitivity {self.value():.4g}"
        )


def _bar(n_pairs: int) -> Any:
    """Return a progress bar; None outside a terminal or notebook, or without tqdm."""
    if not sys.stderr.isatty() and "ipykernel" not in sys.modules:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    # without a name before it, a million pairs and hours fit into 80 columns
    return tqdm(total=n_pairs, unit="pair")
