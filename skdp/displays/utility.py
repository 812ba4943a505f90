"""What privacy costs, simulated on public records before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.core.checks import check_count, floats, shown, warn
from skdp.displays.drawing import Display
from skdp.estimator import PrivateEstimator
from skdp.plan import ReleasePlan
from skdp.results.simulation import ExpectedScore
from skdp.search.public import as_test_oracle, sampler_of, simulated_score, simulation_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class PrivacyUtilityDisplay(Display):
    """The mean score of what would be released against epsilon, on public datasets.

    Whole releases are simulated: each dataset is drawn from the oracle, what is released of it is
    scored on other records of it, and no private record is needed. Where your records differ from
    the oracle's, so will the scores.

    Parameters
    ----------
    epsilons : ndarray of float of shape (n_levels,)
        The levels, ascending.
    scores : ndarray of float of shape (n_levels, n_datasets)
        Scores of what was released at each level of each dataset.
    exact : ndarray of float of shape (n_datasets,)
        Scores of what would be released without noise.
    public : ndarray of float of shape (n_datasets,) or None
        Scores of the model of public records alone.
    scoring : str
        What is scored.

    Attributes
    ----------
    line_ : matplotlib Line2D
        The mean scores.
    band_ : matplotlib PolyCollection
        Where the middle four fifths of the scores are.

    See Also
    --------
    public_search : Chooses other parameters in the same way.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import Ridge
    >>> from skdp import LaplaceMechanism, MakeOracle
    >>> from skdp.displays import PrivacyUtilityDisplay
    >>> from skdp import PrivateEstimator, SensitivitySampler
    >>> oracle = MakeOracle(make_regression, n_features=3, noise=50.0)
    >>> model = PrivateEstimator(
    ...     Ridge(),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(oracle, gamma=0.2),
    ... )
    >>> display = PrivacyUtilityDisplay.from_plan(
    ...     model, 100, epsilons=[1.0, 10.0], n_datasets=2, random_state=0
    ... )
    >>> display.scores.shape
    (2, 2)
    """

    epsilons: NDArray[np.float64]
    scores: NDArray[np.float64]
    exact: NDArray[np.float64]
    public: NDArray[np.float64] | None
    scoring: str

    @classmethod
    def from_plan(
        cls,
        plan: ReleasePlan | PrivateEstimator,
        n_samples: int | None = None,
        *,
        epsilons: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0),
        scoring: Any = None,
        test_oracle: Any = None,
        n_datasets: int = 10,
        random_state: int | None = None,
    ) -> PrivacyUtilityDisplay:
        """Simulate releases at several levels.

        Parameters
        ----------
        plan : ReleasePlan or PrivateEstimator
            A plan with an oracle, whose sensitivity and code serve each level. Or an estimator with
            a SensitivitySampler: then each level has a plan of its own, which takes longer and may
            score better.
        n_samples : int or None, default=None
            Number of private records that there will be; only beside an estimator.
        epsilons : sequence of float in (0, inf), default=(0.1, 0.3, 1, 3, 10)
            The levels.
        scoring : str, callable or None, default=None
            As in scikit-learn; None takes the score of the estimator.
        test_oracle : oracle or None, default=None
            Source of the records to score on. None takes further records of the same draw. If the
            oracle resamples a table, give another table here; a RandomTaskOracle is refused, as it
            has another task in each draw.
        n_datasets : int, default=10
            On how many datasets each level is simulated.
        random_state : int or None, default=None
            Seed of everything that is drawn, which is public.

        Returns
        -------
        PrivacyUtilityDisplay
            Not drawn yet.

        Raises
        ------
        ValueError
            If a level is not positive and finite, a plan has no oracle, or as
            :meth:`PrivateEstimator.plan`.
        """
        from sklearn.metrics import get_scorer

        owner = "PrivacyUtilityDisplay.from_plan"
        numbers = floats(epsilons)
        levels = np.array([]) if numbers is None else np.unique(numbers)
        if levels.size == 0 or not np.isfinite(levels).all() or levels[0] <= 0:
            raise ValueError(
                f"The 'epsilons' parameter of {owner} must be positive and finite numbers. "
                f"Got {shown(epsilons)}."
            )
        planned = isinstance(plan, ReleasePlan)
        if planned and plan.oracle is None:
            raise ValueError(
                f"The 'plan' parameter of {owner} must have an oracle, which yields the datasets. "
                "Got a plan without: give a SensitivitySampler, or a bound with a 'prior'."
            )
        if (n_samples is None) != planned:
            raise TypeError(
                f"The 'n_samples' parameter of {owner} must be given beside an estimator, and "
                f"only there. Got {shown(n_samples)}."
            )
        if isinstance(scoring, str):
            get_scorer(scoring)  # refuses a name that there is not, before anything is sampled
        check_count("n_datasets", n_datasets, owner)
        if not planned:
            sampler_of(plan, f"'plan' parameter of {owner}")
        seed = simulation_seed(np.random.default_rng(random_state))
        test = as_test_oracle(test_oracle, owner)
        if planned:
            simulation = plan.simulation(n_datasets, seed, test)

            def found(epsilon: float) -> ExpectedScore | None:
                mechanism = clone(plan.mechanism).set_params(epsilon=epsilon)
                return None if simulation is None else simulation.scores(mechanism, scoring)
        else:

            def found(epsilon: float) -> ExpectedScore | None:
                model = clone(plan).set_params(mechanism__epsilon=epsilon)
                return simulated_score(model, n_samples, n_datasets, seed, scoring, test)

        scores = [each for level in levels if (each := found(float(level))) is not None]
        if len(scores) < len(levels):
            raise ValueError(f"{owner} needs a released model that has a score. Got {shown(plan)}.")
        public, n_scored = scores[0].public, min(len(each.private) for each in scores)
        return cls(
            epsilons=levels,
            scores=np.array([each.private[:n_scored] for each in scores]),
            exact=scores[0].exact,
            public=None if np.isnan(public).any() else public,
            scoring=scores[0].scoring,
        )

    def suggest_epsilon(self, target_score: float) -> float:
        """Return the smallest of the levels whose mean score is as large as wanted.

        Parameters
        ----------
        target_score : float
            The least mean score.

        Returns
        -------
        float
            One of `epsilons`.

        Raises
        ------
        ValueError
            If none of them has such a score.

        Warns
        -----
        UserWarning
            Always: the score is that of the oracle's records, not of yours. The warning also says
            whether the mean of public fits is as good.
        """
        means = self.scores.mean(axis=1)
        enough = np.flatnonzero(means >= target_score)
        if not len(enough):
            raise ValueError(
                "The 'target_score' parameter of suggest_epsilon must be a score that one of the "
                f"levels has. Got {shown(target_score)}; the largest mean score is "
                f"{_mean(self.scores[means.argmax()])}, without noise {_mean(self.exact)}."
            )
        message = (
            "The suggested epsilon is for records like the oracle's. On private records the score "
            "may be another one, and whether it is must not be looked up on them."
        )
        if self.public is not None and self.public.mean() >= target_score:
            message += (
                f" Public records alone score {self.public.mean():.3g}, so there they "
                "reach the target without private data; where an oracle has one task, such as a "
                "table, it nearly always does."
            )
        warn(message)
        return float(self.epsilons[enough[0]])

    def __str__(self) -> str:
        levels = [f"epsilon {epsilon:g}" for epsilon in self.epsilons]
        rows = dict(zip(levels, self.scores, strict=True)) | self._references
        lines = [f"{name}: {_mean(scores)}" for name, scores in rows.items() if scores is not None]
        head = f"mean {self.scoring} on records of the oracle"
        if len(self.exact) > 1:
            head += f", and the standard error of {len(self.exact)} datasets"
        return "\n  ".join([head, *lines])

    @property
    def _references(self) -> dict[str, NDArray[np.float64] | None]:
        return {
            "without noise": self.exact,
            "public records alone": self.public,
        }

    def _draw(self, ax: Axes | None, artist_kw: dict[str, Any]) -> None:
        ax = self._axes(ax)
        look: dict[str, Any] = {"marker": "o", "label": "private, mean"}
        (self.line_,) = ax.plot(self.epsilons, self.scores.mean(axis=1), **(look | artist_kw))
        low, high = np.quantile(self.scores, [0.1, 0.9], axis=1)
        color, label = self.line_.get_color(), "middle four fifths"
        self.band_ = ax.fill_between(self.epsilons, low, high, color=color, alpha=0.2, label=label)
        for (label, scores), style in zip(self._references.items(), ("--", "-."), strict=True):
            if scores is not None:
                ax.axhline(scores.mean(), color="k", ls=style, label=label)
        ax.set_xscale("log")
        ax.set_xticks(self.epsilons, [f"{level:g}" for level in self.epsilons])
        ax.minorticks_off()
        ax.set_xlabel("$\\epsilon$")
        ax.set_ylabel(f"{self.scoring} on records of the oracle")
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)


def _mean(scores: NDArray[np.float64]) -> str:
    """Write a mean and, of several scores, its standard error."""
    if len(scores) == 1:
        return f"{scores[0]:.3g}"
    return f"{scores.mean():.3g} ± {scores.std(ddof=1) / np.sqrt(len(scores)):.2g}"
