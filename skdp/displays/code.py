"""A public code, as a picture: what it releases, and what the noise leaves of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp.core.checks import shown
from skdp.displays.colors import BLUE, VERMILION
from skdp.displays.given import check_given
from skdp.estimators.labels import labels_of
from skdp.plan import ReleasePlan
from skdp.result import flat_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class CodeDisplay:
    """Which numbers a public code releases, and how much of each is noise.

    Made by `from_plan` or `from_estimator`; drawn by `plot`. All of it is public. The released
    numbers are in the order of signal to noise.

    Parameters
    ----------
    prior : ndarray of float of shape (n_released,)
        By how much each released number differs between models of the oracle: a standard
        deviation, in units of the code.
    noise : float
        The standard deviation of the noise in each of them, in the same units.
    directions : ndarray of float of shape (n_numbers, n_released) or None
        The correlation of each number of the model with each that is released, over models of the
        oracle; None where each number is released by itself.
    names : list of str
        What the numbers of the model are called.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes, after `plot`.
    figure_ : matplotlib Figure
        Their figure.
    line_ : matplotlib Line2D
        The ratios of prior to noise; after ``plot(show="ratios")``.
    image_ : matplotlib AxesImage
        The correlations; after ``plot(show="directions")``.

    See Also
    --------
    PublicCode : What is drawn.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from skdp import CodeDisplay, LaplaceMechanism, PrivateEstimator
    >>> from skdp import SensitivitySampler, UniformOracle
    >>> oracle = UniformOracle([(0, 1)] * 3, y_bounds=(0, 1))
    >>> model = PrivateEstimator(
    ...     Ridge(),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(oracle, random_state=0),
    ... )
    >>> display = CodeDisplay.from_plan(model.plan(100))
    >>> display.names
    ['coef_[0]', 'coef_[1]', 'coef_[2]', 'intercept_']
    >>> len(display.prior) <= 4
    True
    """

    def __init__(
        self,
        *,
        prior: NDArray[np.float64],
        noise: float,
        directions: NDArray[np.float64] | None,
        names: list[str],
    ):
        self.prior = prior
        self.noise = noise
        self.directions = directions
        self.names = names

    @classmethod
    def from_estimator(cls, estimator: Any) -> CodeDisplay:
        """Take the code of a fitted PrivateEstimator.

        Parameters
        ----------
        estimator : PrivateEstimator
            Fitted.

        Returns
        -------
        CodeDisplay
            Not drawn yet.

        Raises
        ------
        NotFittedError
            Before fit.
        TypeError
            If it is no PrivateEstimator.
        ValueError
            If it learned no code.
        """
        check_given(cls, "from_estimator", estimator)
        check_is_fitted(estimator)
        return cls.from_plan(estimator.plan_)

    @classmethod
    def from_plan(cls, plan: ReleasePlan) -> CodeDisplay:
        """Take the code of a plan.

        Parameters
        ----------
        plan : ReleasePlan
            Before its release, or after it.

        Returns
        -------
        CodeDisplay
            Not drawn yet.

        Raises
        ------
        TypeError
            If it is no plan.
        ValueError
            If it learned no code.
        """
        check_given(cls, "from_plan", plan)
        code: Any = plan.mechanism.geometry.basis
        if getattr(code, "deviations", None) is None:
            raise ValueError(
                "The 'plan' parameter of CodeDisplay.from_plan must have a public code. Got a plan "
                f"with {code or 'no coordinates'}: let a mechanism with basis='auto' and "
                "decode=True learn one from an oracle."
            )
        deviations, directions = code.deviations, None
        if code.covariance is None:
            prior = (deviations * np.abs(code.encoder))[code.encoder != 0]
        else:
            covariance = np.concatenate([block for _, block in code.covariances()])
            prior = np.sqrt(np.einsum("ij,ji->i", code.encoder, covariance))
        order = np.argsort(-prior)
        prior = prior[order]
        if code.covariance is not None:
            size = deviations[:, None] * prior
            directions = np.zeros_like(size)
            np.divide(covariance[:, order], size, out=directions, where=size > 0)
        mechanism: Any = plan.mechanism
        noise = mechanism.unit_deviation(len(prior)) * plan.sensitivity.value
        mean = code.mean.reshape(plan.sensitivity.shape or code.mean.shape)
        numbers = plan.target.by_name(mean)
        names = flat_names(numbers, labels_of(plan.target.restore(mean), numbers))
        return cls(prior=prior, noise=float(noise), directions=directions, names=names)

    def plot(
        self, ax: Axes | None = None, *, show: str = "ratios", **artist_kw: Any
    ) -> CodeDisplay:
        """Draw the ratio of prior to noise of each released number, or what each is made of.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        show : {"ratios", "directions"}, default="ratios"
            The ratios, or the correlations.
        **artist_kw : dict
            Passed to the marks, or to the image.

        Returns
        -------
        CodeDisplay
            This object.

        Raises
        ------
        ValueError
            If `show` is neither, or each number is released by itself and has no direction.
        """
        import matplotlib.pyplot as plt
        from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

        if show not in ("ratios", "directions") or (show != "ratios" and self.directions is None):
            raise ValueError(
                "The 'show' parameter of CodeDisplay.plot must be 'ratios', or 'directions' where "
                f"several numbers are released together. Got {shown(show)}."
            )
        n_numbers, n_released = len(self.names), len(self.prior)
        if ax is None:
            tall = 1.4 + 0.2 * n_numbers
            size = (6.4, 4.0) if show == "ratios" else (6.4, min(max(3.0, tall), 20.0))
            _, ax = plt.subplots(figsize=size, layout="constrained")
        number = np.arange(1, n_released + 1)
        if show == "ratios":
            look: dict[str, Any] = {"color": BLUE}
            ratios = self.prior / self.noise
            (self.line_,) = ax.plot(number, ratios, "o", **(look | artist_kw))
            ax.axhline(1, color=VERMILION, ls="--")
            across = ax.get_yaxis_transform()
            ax.text(0.02, 1.02, "noise", color=VERMILION, va="bottom", transform=across)
            ax.set_yscale("log")
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
            ax.yaxis.set_minor_formatter(NullFormatter())
            ax.set_ylabel("prior standard deviation / noise")
        else:
            assert self.directions is not None
            look = {"cmap": "PuOr", "vmin": -1, "vmax": 1, "aspect": "auto"}
            extent = (0.5, n_released + 0.5, n_numbers - 0.5, -0.5)
            self.image_ = ax.imshow(self.directions, extent=extent, **(look | artist_kw))
            ax.set_yticks(range(n_numbers), self.names, fontsize="small")
            ax.figure.colorbar(self.image_, ax=ax, label="correlation over models of the oracle")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set_xlim(0.5, n_released + 0.5)
        ax.set_xlabel(f"released number: {n_released} for the {n_numbers} of the model")
        self.ax_, self.figure_ = ax, ax.figure
        return self
