"""What was left of a budget, as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skdp.accounting.spend import Spend, short_label
from skdp.accounting.tally import Limits, Tally
from skdp.displays.drawing import Display, Look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 36  # longest label of a tick, in characters
MOST_TICKS = 40


@dataclass(kw_only=True, eq=False, repr=False)
class BudgetDisplay(Display):
    """Epsilon that was left of a budget after each release, as steps down to the limit.

    Parameters
    ----------
    left : ndarray of float of shape (n_rows + 1,)
        Epsilon that was left at first, and after each row of the ledger.
    labels : list of str
        What was released.
    title : str, default=""
        What is left at the end, in words.

    Attributes
    ----------
    line_, limit_ : matplotlib Line2D
        The epsilon that was left, and the line where nothing is left.

    Examples
    --------
    >>> from skdp import PrivacyGuarantee
    >>> from skdp.displays import BudgetDisplay
    >>> from skdp.accounting import PrivacyAccountant
    >>> ledger = PrivacyAccountant(":memory:", epsilon=3.0)
    >>> for epsilon in (2.0, 0.5):
    ...     ledger.spend(PrivacyGuarantee(epsilon=epsilon))
    >>> BudgetDisplay.from_accountant(ledger).left
    array([3. , 1. , 0.5])
    """

    left: NDArray[np.float64]
    labels: list[str]
    title: str = ""

    @classmethod
    def from_accountant(cls, accountant: Any) -> BudgetDisplay:
        """Add up the rows of a ledger that has a limit of epsilon."""
        limits = Limits(**accountant.limits)
        if np.isinf(limits.epsilon):
            raise ValueError(
                "BudgetDisplay needs a budget with a limit of epsilon. Got one without: make a "
                "PrivacyAccountant with a finite epsilon."
            )
        tally, rows = Tally(), accountant.rows()
        spent = [0.0, *(tally.add(Spend(**row)).total(limits).epsilon for row in rows)]
        return cls(
            left=limits.epsilon - np.array(spent),
            labels=[row["label"] or "" for row in rows],
            title=str(accountant).splitlines()[-1],
        )

    def _draw(self, ax: Axes | None, artist_kw: Look) -> None:
        n_rows = len(self.labels)
        ax = self._axes(ax, figsize=(np.clip(0.5 * n_rows, 6.4, 16), 4.8))
        at = np.arange(n_rows + 1)
        look: Look = {"where": "post", "marker": "o"}
        (self.line_,) = ax.step(at, self.left, **(look | artist_kw))
        self.limit_ = ax.axhline(0, color="k", lw=1)
        ax.set_title(self.title, fontsize="medium", wrap=True)
        ax.set_ylabel("$\\epsilon$ left")
        ax.set_ylim(bottom=min(0, self.left.min()) - 0.03 * self.left[0])
        names = [label or f"release {i}" for i, label in enumerate(self.labels, 1)]
        names = ["start", *(short_label(name, WIDEST) for name in names)]
        some = slice(None, None, -(-len(names) // MOST_TICKS))
        ax.set_xticks(at[some], names[some], rotation=30, ha="right", rotation_mode="anchor")
