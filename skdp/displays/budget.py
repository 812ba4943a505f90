"""What was left of a budget, as a picture."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.spend import Spend, estimator_first, short_label
from skdp.accounting.tally import Limits, Tally
from skdp.core.checks import shown
from skdp.displays.given import check_given

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 36  # of a tick, in characters
MOST_TICKS = 40
# Rows whose room a run of many alike takes.
MOST_ROOM = 3


class BudgetDisplay:
    """What was left of a budget after each release.

    Made by `from_accountant`; drawn by `plot`.

    Parameters
    ----------
    left : ndarray of float of shape (n_rows + 1,)
        Epsilon that was left at first, and after each row of the ledger.
    time : ndarray of datetime64 of shape (n_rows,)
        When each row was spent, in universal time.
    labels : list of str
        What was released.
    path : str
        The ledger.
    title : str, default=""
        What is left at the end, in words.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`.
    figure_ : matplotlib Figure
        Their figure.
    line_ : matplotlib Line2D
        The epsilon that was left.
    limit_ : matplotlib Line2D
        Where nothing is left.

    See Also
    --------
    skdp.accounting.PrivacyAccountant : Keeps the budget.

    Examples
    --------
    >>> from skdp import BudgetDisplay, PrivacyGuarantee
    >>> from skdp.accounting import PrivacyAccountant
    >>> ledger = PrivacyAccountant(":memory:", epsilon=3.0)
    >>> for epsilon in (2.0, 0.5):
    ...     ledger.spend(PrivacyGuarantee(epsilon=epsilon))
    >>> BudgetDisplay.from_accountant(ledger).left
    array([3. , 1. , 0.5])
    """

    def __init__(
        self,
        *,
        left: NDArray[np.float64],
        time: NDArray[np.datetime64],
        labels: list[str],
        path: str,
        title: str = "",
    ):
        self.left = left
        self.time = time
        self.labels = labels
        self.path = path
        self.title = title

    @classmethod
    def from_accountant(cls, accountant: Any) -> BudgetDisplay:
        """Add up the rows of a ledger.

        Parameters
        ----------
        accountant : skdp.accounting.PrivacyAccountant
            The budget, which may have been opened to be read.

        Returns
        -------
        BudgetDisplay
            Not drawn yet.

        Raises
        ------
        TypeError
            If it is no budget.
        ValueError
            If the budget has no limit of epsilon.
        """
        is_path = isinstance(accountant, str | Path)
        opens = " PrivacyAccountant.open reads the file of one." if is_path else ""
        check_given(cls, "from_accountant", accountant, opens)
        limits = Limits(**accountant.limits)
        if np.isinf(limits.epsilon):
            raise ValueError(
                "BudgetDisplay needs a budget with a limit of epsilon. Got one without: make a "
                "PrivacyAccountant with a finite epsilon."
            )
        tally, rows = Tally(), accountant.rows()
        spent = [0.0, *(tally.add(Spend(**row)).total(limits).epsilon for row in rows)]
        # without the mark of the time zone, which numpy does not take
        time = [np.datetime64(row["time"].split("+")[0], "ms") for row in rows]
        return cls(
            left=limits.epsilon - np.array(spent),
            time=np.array(time, dtype="datetime64[ms]"),
            labels=[" ".join(filter(None, (row["label"], row["part"]))) for row in rows],
            path=accountant.path,
            title=str(accountant).splitlines()[-1],
        )

    def plot(self, ax: Axes | None = None, *, by: str = "release", **line_kw: Any) -> BudgetDisplay:
        """Draw what was left, as steps down to the limit.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        by : {"release", "time"}, default="release"
            What the axis counts: rows of the ledger, with the label of each, or of as many alike as
            the number in brackets says, which take the room of a few; or time. Where there are
            many, of a block of `as_default` the label of the block.
        **line_kw : dict
            Passed to the line.

        Returns
        -------
        BudgetDisplay
            This object.

        Raises
        ------
        ValueError
            If `by` is neither, or there is no release to begin the time with.
        """
        import matplotlib.pyplot as plt
        from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

        if by not in ("release", "time") or (by == "time" and not len(self.time)):
            raise ValueError(
                "The 'by' parameter of BudgetDisplay.plot must be 'release', or 'time' where there "
                f"are releases. Got {shown(by)} with {len(self.time)} releases."
            )
        runs = self._runs()
        room = [min(n, MOST_ROOM) for _, n in runs]
        if ax is None:
            width = np.clip(0.5 * sum(room), 6.4, 16)
            _, ax = plt.subplots(figsize=(width, 4.8), layout="constrained")
        at: Any = [self.time[0], *self.time] if by == "time" else _spread(runs, room)
        (self.line_,) = ax.step(at, self.left, **({"where": "post", "marker": "o"} | line_kw))
        self.limit_ = ax.axhline(0, color="k", lw=1)
        ax.set_title(self.title, fontsize="medium", wrap=True)
        ax.set_ylabel("$\\epsilon$ left")
        ax.set_ylim(bottom=min(0, self.left.min()) - 0.03 * self.left[0])
        if by == "release":
            names = [name if n == 1 else f"{name} ({n})" for name, n in runs]
            thin = slice(None, None, -(-len(names) // MOST_TICKS))
            ticks, names = (np.cumsum(room) - 1)[thin], names[thin]
            ax.set_xticks(ticks, names, rotation=30, ha="right", rotation_mode="anchor")
        else:
            locator = AutoDateLocator()
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
            ax.set_xlabel("time (UTC)")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _runs(self) -> list[tuple[str, int]]:
        """Label the rows that follow each other and are alike, with their number."""
        labels = [label or f"release {i}" for i, label in enumerate(self.labels, 1)]
        runs = [(_short(label), n) for label, n in _counted(["start", *labels])]
        if len(runs) > MOST_TICKS:  # by block of `as_default`, or what begins their labels
            runs = _counted(["start", *(_short(label).partition(": ")[0] for label in labels)])
        return runs


def _spread(runs: list[tuple[str, int]], room: list[int]) -> NDArray[np.float64]:
    """Place each row; the last one of a run is at the end of its room."""
    starts = np.cumsum([-1, *room[:-1]])
    places = zip(starts, runs, room, strict=True)
    return np.concatenate([at + np.linspace(0, of, n + 1)[1:] for at, (_, n), of in places])


def _counted(names: list[str]) -> list[tuple[str, int]]:
    """Return each name once for all that follow each other, with their number."""
    return [(name, len([*group])) for name, group in groupby(names)]


def _short(label: str) -> str:
    """Leave out which attributes of a model were released, where all of it is too long."""
    if len(label) > WIDEST:
        model, _, released = estimator_first(label).rpartition(": ")
        if model and released.partition(",")[0].endswith("_"):
            return short_label(model, WIDEST)
    return short_label(label, WIDEST)
