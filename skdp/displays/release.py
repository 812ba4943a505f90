"""The released numbers and their noise, as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import check_rules
from skdp.displays.drawing import Display, Look
from skdp.estimator import PrivateEstimator
from skdp.result import Release
from skdp.results.names import split_entry
from skdp.results.summary import AS_ORACLE, LEAST_LEARNED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.container import ErrorbarContainer

WITHIN = 1.96  # standard errors: normal errors are within them with probability .95
MOST_NUMBERS = 40

WIDEST = 40  # characters of a name beside the axes, which leave the numbers room


@dataclass(kw_only=True, eq=False, repr=False)
class ReleaseDisplay(Display):
    """The released numbers, each with an interval of 1.96 standard errors to either side.

    Hollow marks are numbers that are indistinguishable from the oracle's. Each attribute has axes
    of its own, unless `plot` is given axes for all.

    Parameters
    ----------
    names : list of str
        What each number is.
    values, errors : ndarray of float of shape (n_numbers,)
        The released numbers, and their standard errors.
    learned : ndarray of float of shape (n_numbers,)
        Which share of its prior variance the release took away, in [0, 1].
    n_more : int, default=0
        How many numbers were released that are not among these; the figure says it.

    Attributes
    ----------
    axes_ : ndarray of matplotlib Axes
        All axes.
    intervals_ : matplotlib ErrorbarContainer
        The intervals in the first.

    See Also
    --------
    skdp.results.summary.ReleaseSummary : The same as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> from skdp.displays import ReleaseDisplay
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(np.mean, X, mechanism=LaplaceMechanism(1.0), sensitivity=0.01)
    >>> display = ReleaseDisplay.from_estimator(released)
    >>> display.names, display.errors.round(3)
    (['value'], array([0.014]))
    """

    names: list[str]
    values: NDArray[np.float64]
    errors: NDArray[np.float64]
    learned: NDArray[np.float64]
    n_more: int = 0

    @classmethod
    def from_estimator(
        cls, estimator: PrivateEstimator | Release, *, attribute: str | None = None
    ) -> ReleaseDisplay:
        """Take the numbers of a fitted PrivateEstimator, or of a Release.

        With an `attribute`, such as ``"coef_"``, only its numbers are drawn. The first 40 numbers
        are drawn, and the figure says how many more there are.
        """
        summary = estimator.summary()
        of = [split_entry(name)[0] for name in summary.names]
        is_one, rule = attribute is None or attribute in of, f"be one of {list(dict.fromkeys(of))}"
        check_rules("ReleaseDisplay.from_estimator", attribute=(attribute, is_one, rule))
        chosen = [i for i, name in enumerate(of) if attribute in (None, name)]
        rows = chosen[:MOST_NUMBERS]
        return cls(
            names=[summary.names[i] for i in rows],
            values=summary.values[rows],
            errors=summary.errors[rows],
            learned=summary.learned[rows],
            n_more=len(chosen) - len(rows),
        )

    def _draw(self, ax: Axes | None, artist_kw: Look) -> None:
        if ax is None:
            import matplotlib.pyplot as plt

            of = np.array([split_entry(name)[0] for name in self.names])
            panels = [np.flatnonzero(of == name) for name in dict.fromkeys(of)]
            size = 8.0, max(2.0, 1.0 + 0.4 * len(panels) + 0.22 * len(self.names))
            rows = [len(each) + 1 for each in panels]
            _, axes = plt.subplots(
                len(panels), figsize=size, height_ratios=rows, squeeze=False, layout="constrained"
            )
            self.axes_ = axes[:, 0]
        else:
            panels, self.axes_ = [np.arange(len(self.names))], np.array([ax])
        ax = self._axes(self.axes_[0])
        drawn = [self._panel(*each, artist_kw) for each in zip(self.axes_, panels, strict=True)]
        self.intervals_ = drawn[0]
        if (self.learned < LEAST_LEARNED).any():
            where: Look = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 2}
            # the pad is above the name of an attribute
            ax.legend(handles=ax.get_lines()[-3:-1], frameon=False, borderaxespad=1.6, **where)
        more = f"\n{self.n_more} more are not drawn" if self.n_more else ""
        self.axes_[-1].set_xlabel(f"released number ± 1.96 standard errors{more}", loc="right")

    def _panel(self, ax: Axes, rows: NDArray[np.intp], artist_kw: Look) -> ErrorbarContainer:
        """Draw some of the numbers, and return their intervals."""
        at, values, errors = np.arange(len(rows)), self.values[rows], self.errors[rows]
        look: Look = {"fmt": "none", "ecolor": "0.5", "capsize": 2}
        intervals = ax.errorbar(values, at, xerr=WITHIN * errors, **(look | artist_kw))
        same = self.learned[rows] < LEAST_LEARNED
        ax.plot(values[~same], at[~same], "o", color="C0", label="read off the data")
        ax.plot(values[same], at[same], "o", color="C0", mfc="w", label=AS_ORACLE)
        ax.axvline(0, color="k", lw=0.8)
        names = [self.names[i] for i in rows]
        attributes, entries = zip(*map(split_entry, names), strict=True)
        if len(set(attributes)) == 1 and (any(entries) or len(attributes[0]) > WIDEST):
            # The layout knows of no width of a title: a long one ends where the axes do.
            title, long = _within(attributes[0], 2 * WIDEST), len(attributes[0]) > WIDEST
            ax.set_title(title, fontsize="medium", loc="right" if long else "left")
            names = list(entries)
        ax.set_yticks(range(len(names)), [_within(name, WIDEST) for name in names])
        ax.set_ylim(len(rows) - 0.5, -0.5)
        return intervals


def _within(name: str, widest: int) -> str:
    """Shorten a name in its middle: attributes differ in their last words, columns in any."""
    half = (widest - len(" ... ")) // 2
    return name if len(name) <= widest else f"{name[:half]} ... {name[-half:]}"
