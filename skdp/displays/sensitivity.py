"""The sampled sensitivities, as a picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdp.displays.drawing import Display, Look
from skdp.sensitivity.estimate import SensitivityEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NORMS = {1: "L1 norm", 2: "L2 norm", np.inf: "largest of the changes"}


@dataclass(kw_only=True, eq=False, repr=False)
class SensitivityDisplay(Display):
    """How often one record changes the target by more than so much.

    The steps are the share of sampled pairs that exceed each norm; the mark is the order statistic
    that the noise is calibrated to.

    Parameters
    ----------
    norms : ndarray of float of shape (n_pairs,)
        The sampled norms of the stratum that decides, ascending; ``inf`` for pairs that failed.
    value : float
        The order statistic.
    gamma : float
        The probability that a further pair exceeds it, as promised.
    norm : str
        In which norm the changes are measured.

    Attributes
    ----------
    line_, value_ : matplotlib Line2D
        The shares, and the order statistic.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import SensitivitySampler, UniformOracle
    >>> from skdp.displays import SensitivityDisplay
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.1, random_state=0)
    >>> estimate = sampler.sample(np.mean, n_samples=100, geometry="l1")
    >>> display = SensitivityDisplay.from_estimate(estimate)
    >>> bool(np.mean(display.norms > display.value) < display.gamma)
    True
    """

    norms: NDArray[np.float64]
    value: float
    gamma: float
    norm: str

    @classmethod
    def from_estimate(cls, estimate: SensitivityEstimate) -> SensitivityDisplay:
        """Sort the norms of an estimate, such as `sensitivity_` of a fitted model."""
        norm, k = _NORMS[estimate.geometry.order], estimate.order_statistic.k
        strata = np.sort(np.atleast_2d(estimate.norms))
        return cls(
            norms=strata[strata[:, k - 1].argmax()],
            value=estimate.value,
            gamma=estimate.gamma,
            norm=f"{norm} in the public code" if estimate.geometry.code else norm,
        )

    def _draw(self, ax: Axes | None, artist_kw: Look) -> None:
        ax = self._axes(ax)
        n_pairs = len(self.norms)
        norms = self.norms[np.isfinite(self.norms)]
        label = f"{n_pairs} sampled pairs"
        if len(norms) < n_pairs:
            label += f", {n_pairs - len(norms)} of them failed"
        shares = np.arange(n_pairs, n_pairs - len(norms), -1) / n_pairs
        look: Look = {"where": "pre", "label": label}
        (self.line_,) = ax.step(norms, shares, **(look | artist_kw))
        calibrated = f"{self.value:.3g}, exceeded with probability {self.gamma:g}"
        self.value_ = ax.axvline(self.value, color="k", ls="--", label=calibrated)
        ax.set_yscale("log")
        ax.set_xlabel(f"change by one record, {self.norm}")
        ax.set_ylabel("share of pairs that exceed it")
        ax.legend(loc="upper right")
