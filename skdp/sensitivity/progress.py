"""Say how long a run takes, and how far it is, where somebody watches."""

from __future__ import annotations

import math
import multiprocessing
import sys
from time import perf_counter

LONG = 10.0  # seconds; of a longer run the expected duration is said, and how far it is
FIRST_LOADS = 1.0  # seconds; a shorter first pair may only have loaded modules
N_LINES = 10  # lines that say how far a run is, at most


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
