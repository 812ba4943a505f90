"""Released class tables, as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skdp.core.checks import check_rules
from skdp.displays.drawing import Display, Look
from skdp.estimator import PrivateEstimator
from skdp.result import Release
from skdp.tables.columns import cell_names
from skdp.tables.release import ReleasedOracle

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_COLUMNS, ABREAST = 9, 3  # panels, and how many of them are side by side
LARGEST = 4.0  # log odds at which the axes end


@dataclass(kw_only=True, eq=False, repr=False)
class ClassTablesDisplay(Display):
    """The released log odds of each cell, in a panel for each of the nine most telling columns.

    Above 0 are the cells in which a class is more frequent, against the first class, than in all
    records. An error bar has a standard error to either side, of noise and sampling together. With
    axes of your own the most telling column is drawn.

    Parameters
    ----------
    oracle : ReleasedOracle
        The class tables, of which the `log_odds_` and `information_` are drawn, on `axes_`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import Category, LaplaceMechanism, Schema, release_oracle
    >>> from skdp.displays import ClassTablesDisplay
    >>> schema, X = Schema({"smokes": Category([0, 1])}, classes=[0, 1]), np.array([[1], [0]] * 99)
    >>> oracle = release_oracle(X, X[:, 0], schema=schema, mechanism=LaplaceMechanism(1.0))
    >>> display = ClassTablesDisplay.from_estimator(oracle)  # .plot() draws it
    """

    oracle: ReleasedOracle

    @classmethod
    def from_estimator(
        cls, estimator: PrivateEstimator | Release | ReleasedOracle
    ) -> ClassTablesDisplay:
        """Take the tables of a fitted PrivateEstimator, a Release or an oracle of class tables."""
        held = "oracle" if isinstance(estimator, Release) else "oracle_"
        oracle: Any = estimator
        if not isinstance(estimator, ReleasedOracle):
            oracle = getattr(estimator, held, None)
        rule = estimator, oracle is not None, "have released class tables"
        check_rules("ClassTablesDisplay.from_estimator", estimator=rule)
        return cls(oracle=oracle)

    def _draw(self, ax: Axes | None, artist_kw: Look) -> None:
        n, axes = len(self.oracle.tables_), [ax]
        names = [*self.oracle.information_][: MOST_COLUMNS if ax is None else 1]
        if ax is None:
            import matplotlib.pyplot as plt

            high, most = -(-len(names) // ABREAST), max(map(len, self.oracle.tables_.values()))
            figure = plt.figure(figsize=(11, (1.4 + 0.22 * most) * high), layout="constrained")
            axes = [figure.add_subplot(high, ABREAST, i + 1) for i in range(len(names))]
        self.axes_ = np.array(axes)
        for panel, name in zip(axes, names, strict=True):
            self._panel(self._axes(panel), name, artist_kw)
        self.axes_[0].set_xlabel(f"log odds ± 1 standard error, {len(names)} of {n} columns")
        self.axes_[0].legend(fontsize="small")

    def _panel(self, ax: Axes, name: object, artist_kw: Look) -> None:
        """Draw the bars of a column."""
        oracle, (odds, errors) = self.oracle, self.oracle.log_odds_[name]
        first, *others = oracle.class_names_
        at, height = np.arange(len(odds)), 0.8 / len(others)
        for i, label in enumerate(others):
            look: Look = {"height": height, "ecolor": "0.4", "label": f"{label} against {first}"}
            place = at - 0.4 + (i + 0.5) * height
            ax.barh(place, odds[:, i], xerr=errors[:, i], **(look | artist_kw))
        ax.set_xlim(-LARGEST, LARGEST)
        ax.set_yticks(at, cell_names(oracle.schema.columns[name], oracle.n_cells))
        ax.invert_yaxis()
        bits, error = oracle.information_[name]
        ax.set_title(f"{name}: {bits:.3f} ± {error:.3f} bits", fontsize="medium", loc="left")
