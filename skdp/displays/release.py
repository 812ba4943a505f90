"""The released numbers and their noise, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import check_count, shown
from skdp.displays.drawing import DrawsOnAxes
from skdp.result import AS_ORACLE, FIXED, LEAST_LEARNED, split_entry

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WITHIN = 1.96
"""Standard errors to either side: normal errors are within them with probability .95."""

MOST_SPREAD = 100
"""Numbers that are more times larger than others, as in another unit, ask for axes of their own."""

UNSEEN = 0.005
"""A standard error of a smaller share of the largest number has an interval that no dot shows."""

WIDEST = 40
"""Longer names, in characters, would leave little of a figure to the numbers."""


class ReleaseDisplay(DrawsOnAxes):
    """The released numbers, each with the interval that its noise leaves.

    Made by `from_estimator`, also of a Release, or by `from_summary`; drawn by `plot`. Hollow marks
    are numbers that are indistinguishable from the oracle's.

    Parameters
    ----------
    names : list of str
        What each number is.
    values : ndarray of float of shape (n_numbers,)
        The released numbers.
    errors : ndarray of float of shape (n_numbers,)
        Their standard errors.
    learned : ndarray of float of shape (n_numbers,)
        Which share of its prior variance the release took away, in [0, 1].
    n_more : int, default=0
        How many numbers were released that are not among these; the figure says it.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`; the first if there are several.
    axes_ : ndarray of matplotlib Axes
        All of them.
    figure_ : matplotlib Figure
        Their figure.
    intervals_ : matplotlib ErrorbarContainer
        The intervals in the first.

    See Also
    --------
    skdp.result.ReleaseSummary : The same as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, release
    >>> from skdp.displays import ReleaseDisplay
    >>> X = np.random.default_rng(0).uniform(size=(100, 1))
    >>> released = release(np.mean, X, mechanism=LaplaceMechanism(1.0), sensitivity=0.01)
    >>> display = ReleaseDisplay.from_summary(released.summary())
    >>> display.names, display.errors.round(3)
    (['value'], array([0.014]))
    """

    def __init__(
        self,
        *,
        names: list[str],
        values: NDArray[np.float64],
        errors: NDArray[np.float64],
        learned: NDArray[np.float64],
        n_more: int = 0,
    ):
        self.names = names
        self.values = values
        self.errors = errors
        self.learned = learned
        self.n_more = n_more

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, attribute: str | None = None, max_numbers: int = 40
    ) -> ReleaseDisplay:
        """Take the numbers of a fitted PrivateEstimator, or of a Release.

        Parameters
        ----------
        estimator : PrivateEstimator or Release
            Fitted; or what was released, such as :func:`load` returns.
        attribute : str or None, default=None
            Only this one, such as ``"coef_"``. None takes all.
        max_numbers : int of at least 1, default=40
            The first of so many; the figure says how many more there are.

        Returns
        -------
        ReleaseDisplay
            Not drawn yet.

        Raises
        ------
        NotFittedError
            Before fit.
        ValueError
            If no such attribute was released.
        """
        return cls.from_summary(estimator.summary(), attribute=attribute, max_numbers=max_numbers)

    @classmethod
    def from_summary(
        cls, summary: Any, *, attribute: str | None = None, max_numbers: int = 40
    ) -> ReleaseDisplay:
        """Take the numbers of a summary.

        Parameters
        ----------
        summary : ReleaseSummary
            Of a release or of a fitted model.
        attribute : str or None, default=None
            As for `from_estimator`.
        max_numbers : int of at least 1, default=40
            As for `from_estimator`.

        Returns
        -------
        ReleaseDisplay
            Not drawn yet.

        Raises
        ------
        ValueError
            If no such attribute was released.
        """
        check_count("max_numbers", max_numbers, "ReleaseDisplay.from_summary")
        of = [split_entry(name)[0] for name in summary.names]
        if attribute is not None and attribute not in of:
            raise ValueError(
                "The 'attribute' parameter of ReleaseDisplay.from_summary must be one of "
                f"{list(dict.fromkeys(of))}. Got {shown(attribute)}."
            )
        all_rows = [i for i, name in enumerate(of) if attribute in (None, name)]
        rows = all_rows[:max_numbers]
        return cls(
            names=[summary.names[i] for i in rows],
            values=summary.values[rows],
            errors=summary.errors[rows],
            learned=summary.learned[rows],
            n_more=len(all_rows) - len(rows),
        )

    def plot(self, ax: Axes | None = None, **errorbar_kw: Any) -> ReleaseDisplay:
        """Draw each number with an interval of 1.96 standard errors to either side.

        Attributes of other sizes, such as the variances and coefficients of a pipeline, have axes
        of their own where one would hide the intervals, and where names are long. Where some
        numbers of one hide others, as of columns in other units, the axis is linear around zero and
        logarithmic beyond.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw all of it; None makes a new figure.
        **errorbar_kw : dict
            Passed to the intervals.

        Returns
        -------
        ReleaseDisplay
            This object.
        """
        import matplotlib.pyplot as plt

        panels = [np.arange(len(self.names))] if ax is not None else self._panels()
        if ax is None:
            rows = [len(each) + 1 for each in panels]
            size = 8.0, max(2.0, 1.0 + 0.4 * len(panels) + 0.22 * len(self.names))
            _, axes = plt.subplots(
                len(panels), figsize=size, height_ratios=rows, squeeze=False, layout="constrained"
            )
            self.axes_ = axes[:, 0]
        else:
            self.axes_ = np.array([ax])
        self._axes(self.axes_[0])
        drawn = [
            self._draw(each, at, errorbar_kw) for each, at in zip(self.axes_, panels, strict=True)
        ]
        self.intervals_ = drawn[0]
        if (self.learned < LEAST_LEARNED).any():
            *marks, _ = self.ax_.get_lines()[-4:]
            where: dict[str, Any] = {"loc": "lower right", "bbox_to_anchor": (1, 1), "ncols": 3}
            where["borderaxespad"] = 1.6  # above the name of an attribute
            self.ax_.legend(handles=marks[: 2 + self._fixed.any()], frameon=False, **where)
        more = f"\n{self.n_more} more are not drawn: see max_numbers" if self.n_more else ""
        self.axes_[-1].set_xlabel(f"released number ± 1.96 standard errors{more}", loc="right")
        return self

    @property
    def _fixed(self) -> NDArray[np.bool_]:
        return (self.learned < LEAST_LEARNED) & np.isnan(self.errors)

    def _panels(self) -> list[NDArray[np.intp]]:
        """The numbers of each attribute where these hide others or their intervals, else all."""
        of = np.array([split_entry(name)[0] for name in self.names])
        panels = [np.flatnonzero(of == name) for name in dict.fromkeys(of)]
        largest = np.array([np.max(self._sizes(each)) for each in panels])
        usual = np.array([np.median(self._widths(each)) for each in panels])
        seen_alone = (usual > UNSEEN * largest) & (usual < UNSEEN * largest.max(initial=0))
        long = max(map(len, self.names), default=0) > WIDEST
        if _times(largest) > MOST_SPREAD or seen_alone.any() or long:
            return panels
        return [np.arange(len(of))]

    def _sizes(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.abs(self.values[rows]) + self._widths(rows)

    def _widths(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        return np.nan_to_num(self.errors[rows])

    def _draw(self, ax: Axes, rows: NDArray[np.intp], errorbar_kw: dict[str, Any]) -> Any:
        """Draw some of the numbers."""
        at, values = np.arange(len(rows)), self.values[rows]
        look: dict[str, Any] = {"fmt": "none", "ecolor": "0.5", "capsize": 2}
        intervals = ax.errorbar(values, at, xerr=WITHIN * self.errors[rows], **(look | errorbar_kw))
        sizes, widths = self._sizes(rows), self._widths(rows)
        sizes = sizes[sizes > 0]
        largest = sizes.max(initial=0)
        hidden = _times(widths) > 10 and (widths < UNSEEN * largest).any()
        if sizes.size and (hidden or largest > MOST_SPREAD * np.median(sizes)):
            lowest = np.floor(np.log10(np.quantile(sizes, 0.1, method="lower")))
            decades = np.log10(largest) - lowest
            ax.set_xscale("symlog", linthresh=10.0**lowest, linscale=max(1, decades / 3))
            step = max(1, round(decades / 3))  # the labels of more decades touch
            ticks = 10.0 ** np.arange(np.floor(np.log10(largest)), lowest - 1, -step)
            low, high = ax.get_xlim()
            ax.set_xticks([0, *ticks[ticks < high], *-ticks[ticks < -low]])
        same = self.learned[rows] < LEAST_LEARNED
        fixed = self._fixed[rows]
        ax.plot(values[~same], at[~same], "o", color="C0", label="read off the data")
        hollow: dict[str, Any] = {"mfc": "w", "label": AS_ORACLE}
        ax.plot(values[same & ~fixed], at[same & ~fixed], "o", color="C0", **hollow)
        ax.plot(values[fixed], at[fixed], "x", color="C0", label=FIXED)
        ax.axvline(0, color="k", lw=0.8)
        self._name(ax, rows)
        ax.set_ylim(len(rows) - 0.5, -0.5)
        return intervals

    def _name(self, ax: Axes, rows: NDArray[np.intp]) -> None:
        """Write the names beside the numbers; an attribute that all share once, above them."""
        names = [self.names[i] for i in rows]
        attributes, entries = zip(*map(split_entry, names), strict=True)
        long = max(len(split_entry(name)[0]) for name in self.names) > WIDEST
        if len(set(attributes)) == 1 and (long or any(entries)):
            # The layout knows of no width of a title: long ones end where the axes do.
            title = _within(attributes[0], 2 * WIDEST)
            ax.set_title(title, fontsize="medium", loc="right" if long else "left")
            names = list(entries)
        ticks = [_within(name, WIDEST) for name in names]
        if len(set(ticks)) < len(set(names)):  # attributes differ in their last words
            last = ["__".join(each.split("__")[-2:]) for each in attributes]
            parts = zip(last, entries, strict=True)
            ticks = [_within(f"{name} {entry}".strip(), WIDEST) for name, entry in parts]
        ax.set_yticks(range(len(names)), ticks)


def _within(name: str, widest: int) -> str:
    """Shorten a name in its middle: attributes differ in their last words, columns in any."""
    half = (widest - len(" ... ")) // 2
    return name if len(name) <= widest else f"{name[:half]} ... {name[-half:]}"


def _times(numbers: NDArray[np.float64]) -> float:
    """Return how many times the largest is the smallest of those above 0."""
    above = numbers[numbers > 0]
    return float(above.max() / above.min()) if above.size else 1.0
