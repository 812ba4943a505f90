"""What privacy costs, simulated on public records before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.core.checks import check_count, check_rules, floats
from skdp.displays.drawing import Display, Look
from skdp.plan import ReleasePlan
from skdp.results.expected import ORACLE
from skdp.search.public import as_test_oracle, simulation_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(kw_only=True, eq=False, repr=False)
class PrivacyUtilityDisplay(Display):
    """The mean score of what would be released against epsilon, on the tasks of a plan.

    Whole releases are simulated, and no private record is needed. The tasks are those of the
    expected score: made-up ones, or at the point that the `expect` of the plan says, or the
    oracle's datasets where public records have labels.

    Parameters
    ----------
    epsilons : ndarray of float of shape (n_levels,)
        The levels, ascending.
    scores : ndarray of float of shape (n_levels, n_datasets)
        Scores of what was released at each level of each dataset.
    exact : ndarray of float of shape (n_datasets,)
        Scores of what would be released without noise.
    public : ndarray of float of shape (n_datasets,) or None
        Scores of the model of public records alone, where public records have labels.
    scoring : str
        What is scored.
    majority : ndarray of float of shape (n_datasets,) or None, default=None
        Scores of a guess.
    records : str, default="the oracle's data"
        Which records are scored.

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
    >>> import numpy as np
    >>> from sklearn.datasets import make_regression
    >>> from sklearn.linear_model import Ridge
    >>> from skdp import LaplaceMechanism
    >>> from skdp.displays import PrivacyUtilityDisplay
    >>> from skdp import PrivateEstimator, SensitivitySampler
    >>> def oracle(n_samples, rng):
    ...     seed = np.random.RandomState(rng.bit_generator)
    ...     return make_regression(n_samples, n_features=3, noise=50.0, random_state=seed)
    >>> model = PrivateEstimator(
    ...     Ridge(),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(oracle, gamma=0.2),
    ... )
    >>> display = PrivacyUtilityDisplay.from_plan(
    ...     model.plan(100), epsilons=[1.0, 10.0], n_datasets=2, random_state=0
    ... )
    >>> display.scores.shape
    (2, 2)
    """

    epsilons: NDArray[np.float64]
    scores: NDArray[np.float64]
    exact: NDArray[np.float64]
    public: NDArray[np.float64] | None
    scoring: str
    majority: NDArray[np.float64] | None = None
    records: str = ORACLE

    @classmethod
    def from_plan(
        cls,
        plan: ReleasePlan,
        *,
        epsilons: Sequence[float] = (0.1, 0.3, 1.0, 3.0, 10.0),
        test_oracle: object = None,
        n_datasets: int = 12,
        random_state: int | None = None,
    ) -> PrivacyUtilityDisplay:
        """Simulate releases at several levels, with the sensitivity and the code of a plan.

        Parameters
        ----------
        plan : ReleasePlan
            The plan of an estimator. Its `scoring` is what is scored.
        epsilons : sequence of float in (0, inf), default=(0.1, 0.3, 1, 3, 10)
            The levels.
        test_oracle : oracle or None, default=None
            Source of the records to score on. None takes further records of the same draw. If the
            oracle resamples a table, give another table here; a RandomTaskOracle is refused, as it
            has another task in each draw.
        n_datasets : int, default=12
            On how many datasets each level is simulated. ClassTables have their own.
        random_state : int or None, default=None
            Seed of everything that is drawn, which is public.

        Returns
        -------
        PrivacyUtilityDisplay
            Not drawn yet.

        Raises
        ------
        ValueError
            If a level is not positive and finite, or the plan has no expected score.
        """
        owner = "PrivacyUtilityDisplay.from_plan"
        numbers = floats(epsilons)
        levels = np.array([]) if numbers is None else np.unique(numbers)
        good = levels.size > 0 and np.isfinite(levels).all() and levels[0] > 0
        check_rules(owner, epsilons=(epsilons, good, "be positive and finite numbers"))
        check_count("n_datasets", n_datasets, owner)
        test = as_test_oracle(test_oracle, owner)
        seed = simulation_seed(np.random.default_rng(random_state))
        simulation = None
        if plan.target.expected_score is None:
            simulation = None if test is not None else plan.simulate_tasks(n_datasets, seed)
            simulation = simulation or plan.simulate(n_datasets, seed, test)
        noises = [clone(plan.mechanism).set_params(epsilon=level) for level in levels.tolist()]
        found = [plan.score_with(noise, simulation) for noise in noises]
        scores = [each for each in found if each is not None]
        if len(scores) < len(levels):
            raise ValueError(
                f"The 'plan' parameter of {owner} must be of an estimator that has a score, and "
                "there must be records to draw: give a SensitivitySampler, a bound with a 'prior', "
                "or 'classes'."
            )
        first, n_scored = scores[0], min(len(each.private) for each in scores)
        exact, majority = first.exact, first.majority
        rows = [each.private[:n_scored] for each in scores]
        if first.expect is not None:
            rows = [np.array([float(each)]) for each in scores]
            m = first.expect.get("majority", 0.0)
            exact, majority = np.array([first.expect.get("exact", (1 + m) / 2)]), np.array([m])
        return cls(
            epsilons=levels,
            scores=np.array(rows),
            exact=exact,
            public=first.public,
            scoring=first.scoring,
            majority=None if np.isnan(majority).any() else majority,
            records=first.records,
        )

    def __str__(self) -> str:
        levels = [f"epsilon {epsilon:g}" for epsilon in self.epsilons]
        rows = dict(zip(levels, self.scores, strict=True)) | self._references
        lines = [f"{name}: {_mean(scores)}" for name, scores in rows.items()]
        head = f"mean {self.scoring} on {self.records}"
        if len(self.exact) > 1:
            head += f", and the standard error of {len(self.exact)} datasets"
        return "\n  ".join([head, *lines])

    @property
    def _references(self) -> dict[str, NDArray[np.float64]]:
        given = {"without noise": self.exact, "public records alone": self.public}
        given |= {"a guess": self.majority}
        return {name: scores for name, scores in given.items() if scores is not None}

    def _draw(self, ax: Axes | None, artist_kw: Look) -> None:
        ax = self._axes(ax)
        look: Look = {"marker": "o", "label": "private, mean"}
        (self.line_,) = ax.plot(self.epsilons, self.scores.mean(axis=1), **(look | artist_kw))
        low, high = np.quantile(self.scores, [0.1, 0.9], axis=1)
        color, label = self.line_.get_color(), "middle four fifths"
        self.band_ = ax.fill_between(self.epsilons, low, high, color=color, alpha=0.2, label=label)
        for (label, scores), style in zip(
            self._references.items(), ("--", "-.", ":"), strict=False
        ):
            ax.axhline(scores.mean(), color="k", ls=style, label=label)
        ax.set_xscale("log")
        ax.set_xticks(self.epsilons, [f"{level:g}" for level in self.epsilons])
        ax.minorticks_off()
        ax.set_xlabel("$\\epsilon$")
        ax.set_ylabel(f"{self.scoring} on {self.records}")
        ax.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, frameon=False)


def _mean(scores: NDArray[np.float64]) -> str:
    """Write a mean and, of several scores, its standard error."""
    if len(scores) == 1:
        return f"{scores[0]:.3g}"
    return f"{scores.mean():.3g} ± {scores.std(ddof=1) / np.sqrt(len(scores)):.2g}"
