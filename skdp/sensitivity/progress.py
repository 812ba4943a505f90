"""Say how long a run takes, and show its progress, where somebody watches."""

from __future__ import annotations

import math
import multiprocessing
import sys
import warnings
from time import perf_counter
from typing import Any

LONG = 10.0
"""Seconds: of a run that takes longer, the expected duration is said."""

PATIENCE = 2.0
"""Seconds before a bar is shown, unless `verbose` asks for it."""

FIRST_LOADS = 1.0
"""Seconds: a first pair that takes less may only have loaded modules, so the second is awaited."""

PAIRS_OF_LINE = 50
"""Pairs after which `verbose` writes a line where there is no bar."""


class Progress:
    """The pairs that are done, and how long the others take.

    `later` is the number of pairs of the next run, which the expected duration counts too.
    """

    def __init__(self, total: int, verbose: int | None, n_workers: int, later: int = 0):
        self.total, self.later, self.n_workers = total, later, n_workers
        self.verbose = verbose or 0
        self.is_shown = bool(verbose) or (verbose is None and _is_watched())
        self.count, self.n_timed, self.seconds_per_pair = 0, 0, math.inf
        self.start = perf_counter()
        self.was_said = False
        self.bar: Any = None

    @property
    def seconds_left(self) -> float:
        """Seconds of work that are left; unknown, hence infinite, before two chunks were timed."""
        return self.seconds_per_pair * (self.total - self.count) if self.n_timed > 1 else math.inf

    def add(self, n_pairs: int, seconds: float | None = None) -> None:
        """Count pairs, which took so many seconds of one worker if that is known."""
        self.count += n_pairs
        if seconds is not None:
            self.n_timed += 1
            self.seconds_per_pair = min(self.seconds_per_pair, seconds / n_pairs)
            if self.is_shown and (self.n_timed > 1 or seconds >= FIRST_LOADS):
                self._say_duration()
        if self.is_shown:
            self._show(n_pairs)

    def _say_duration(self) -> None:
        expected = self.seconds_per_pair * (self.total - self.count + self.later) / self.n_workers
        if self.was_said or expected < LONG:
            return
        advice = "; n_jobs uses more cores" if self.n_workers == 1 else ""
        _say(f"about {_duration(expected)} for {self.total + self.later} pairs{advice}")
        self.was_said = True

    def _show(self, n_pairs: int) -> None:
        """Move the bar, or write a line from time to time where `verbose` asks for it."""
        elapsed = perf_counter() - self.start
        if self.bar is None and _is_watched() and (self.verbose or elapsed > PATIENCE):
            self.bar = _make_bar(self.total, elapsed)
        if self.bar:
            self.bar.update(self.count - self.bar.n)
        elif self.verbose and self.count // PAIRS_OF_LINE > (self.count - n_pairs) // PAIRS_OF_LINE:
            left = elapsed / self.count * (self.total - self.count)
            _say(f"{self.count} of {self.total} pairs, about {_duration(left)} left")

    def close(self) -> None:
        """Leave the bar as it is."""
        if self.bar:
            self.bar.close()


def _make_bar(total: int, elapsed: float) -> Any:
    """Make a bar; return False where tqdm is not installed."""
    try:
        with warnings.catch_warnings():
            # a notebook without widgets gets a bar of text, and needs no advice
            warnings.filterwarnings("ignore", "IProgress not found")
            from tqdm.auto import tqdm
    except ImportError:
        return False
    # without a name before it, a million pairs and hours fit into 80 columns
    bar = tqdm(total=total, unit="pair")
    bar.start_t -= elapsed
    return bar


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
