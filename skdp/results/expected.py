"""What a release may score: a table of tasks, read at the difficulty of one's own."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier, is_regressor

from skdp.core.checks import is_real, shown
from skdp.core.types import Estimator, Matrix
from skdp.results.names import short_score

TASKS, MADE_UP = "made-up tasks", "made-up records"  # of public features, and of made-up ones
ORACLE, MADE_UP_TABLES = "the oracle's data", "made-up tables whose columns act one by one"
EXACT = {"accuracy": (0.95, 0.85, 0.75), "R²": (0.9, 0.5, 0.2)}  # columns of the printed table
WIDTH, RIDGE = 0.12, 1e-3  # of the weights of tasks about a point, and of the slopes
CLEAR = 0.01  # what is above a guess by less is not
_CELL = 14


class ScoreAt(NamedTuple):
    """An expected score, its standard error, and the standard deviation of a single release."""

    score: float
    error: float
    deviation: float

    def __str__(self) -> str:
        return f"{short_score(self.score)} +- {np.ceil(round(100 * self.deviation, 6)) / 100:.2g}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False, repr=False)
class ExpectedScore:
    """What a release scores on public tasks, beside exact models and a guess.

    Where the labels of the oracle are made up, so are the tasks: rare and frequent classes, hard
    and easy rules. The score at the base rate and the difficulty of your own task is read between
    them. Where public records have labels, the oracle's datasets are scored as they are. `float`
    gives the score at the point that `expect` says, else the mean over the tasks.

    Parameters
    ----------
    private : ndarray of float of shape (n_tasks,)
        Mean score of releases of each task.
    exact : ndarray of float of shape (n_tasks,)
        Score of the model of each task without noise.
    majority : ndarray of float of shape (n_tasks,)
        Score of a guess, the best constant prediction: the share of the largest class, or an R2 of
        0. NaN where there is none.
    scoring : str
        Name of the score.
    records : str
        What is scored.
    errors : ndarray of float of shape (n_tasks,) or float, default=0.0
        Standard errors of `private`, of the draws of noise.
    deviations : ndarray of float of shape (n_tasks,) or float, default=0.0
        Standard deviations of single releases of each task.
    public : ndarray of float of shape (n_tasks,) or None, default=None
        Score of the model of public records alone, where these have labels.
    rows : tuple of float, default=()
        The majorities of the printed table; empty for none.
    ease : ndarray of float of shape (n_tasks,) or None, default=None
        How well each task can be predicted, in the terms of its maker; None without accuracies.
    expect : dict of str to float or None, default=None
        The ``majority`` and the ``exact`` score that somebody expects.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp import LaplaceMechanism, PrivateEstimator, RandomTaskOracle, SensitivitySampler
    >>> X_public = np.random.default_rng(0).normal(size=(500, 3))
    >>> oracle = RandomTaskOracle(X_public, classes=[0, 1])
    >>> model = PrivateEstimator(
    ...     LogisticRegression(C=0.1),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(oracle, gamma=0.2, random_state=0),
    ... )
    >>> expected = model.plan(n_samples=500).expected_score
    >>> expected.at(majority=0.7, exact=0.85)
    0.8... +- 0.0...
    >>> 0.7 < expected.break_even(majority=0.7) < 0.8
    True
    """

    private: Matrix
    exact: Matrix
    majority: Matrix
    scoring: str
    records: str = ORACLE
    errors: Matrix | float = 0.0
    deviations: Matrix | float = 0.0
    public: Matrix | None = None
    rows: tuple[float, ...] = ()
    ease: Matrix | None = None
    expect: Mapping[str, float] | None = None

    @property
    def table(self) -> NDArray[Any]:
        """The tasks, as for a data frame: columns `majority`, `exact`, `private` and `errors`."""
        errors = np.broadcast_to(self.errors, self.private.shape)
        dtype = [(name, float) for name in ("majority", "exact", "private", "errors")]
        rows = [*zip(self.majority, self.exact, self.private, errors, strict=True)]
        return np.array(rows, dtype=dtype)

    def at(self, *, majority: float | None = None, exact: float | None = None) -> ScoreAt:
        """Return the score at a difficulty, by a local linear fit to what the tasks lose.

        Parameters
        ----------
        majority : float or None, default=None
            The score of a guess. None takes 0, that of a regression in R2.
        exact : float or None, default=None
            The score of the best model. None takes the mean over tasks of modest difficulty: all
            but the easiest, for two classes those with an area under the curve of .65 to .85. For
            a regression it takes half of the way from a guess to 1.

        Returns
        -------
        ScoreAt
            The score, its standard error (without `exact` the deviation between tasks), and the
            standard deviation of a single release, which is printed.

        Raises
        ------
        ValueError
            If no tasks were made up, since public records have labels, or there is no guess.
        """
        if np.isnan(self.majority).any():
            raise ValueError(
                "An expected score can be read at a difficulty where tasks are made up. Got scores "
                f"of {self.records}: state 'expect' for classifiers and regressors."
            )
        m = 0.0 if majority is None else majority
        if exact is None and self.ease is not None:
            return self._at_modest(m)
        e = (1 + m) / 2 if exact is None else exact
        centered = np.column_stack([np.ones_like(self.exact), self.majority - m, self.exact - e])
        exponents = -(centered[:, 1:] ** 2).sum(axis=1) / (2 * WIDTH**2)
        weights = np.exp(exponents - min(0.0, exponents.max() + 500))
        weighted = centered.T * weights
        smoother = np.linalg.solve(weighted @ centered + np.diag([0, RIDGE, RIDGE]), weighted)
        lost, least = self.exact - self.private, self.private.min()  # off the table as at its edge
        off = (lost - centered @ smoother @ lost) ** 2
        variance = np.average(off + np.square(self.errors), weights=weights)
        error = math.sqrt(variance * (smoother[0] ** 2).sum())
        single = np.average(off + np.square(self.deviations), weights=weights)
        score = float(np.clip(e - smoother[0] @ lost, least, max(e, least)))
        return ScoreAt(score, error, math.sqrt(single))

    def _at_modest(self, m: float) -> ScoreAt:
        """Return the score on modest tasks; what they gain falls with m, and is 0 from 1 on."""
        from scipy.interpolate import PchipInterpolator  # its import takes time

        assert self.ease is not None
        modest, gain = self.ease < self.ease.max(), self.private - self.majority
        nearest = np.abs(self.majority[:, None] - self.rows).argmin(axis=1)
        groups = [modest & (nearest == i) for i in range(len(self.rows))]
        noise = np.broadcast_to(np.square(self.deviations), gain.shape)
        points = [
            (self.majority[g].mean(), gain[g].mean(), gain[g].std(), noise[g].mean())
            for g in groups
            if g.any()
        ]
        known, *read = np.array([*points, (1.0, 0.0, 0.0, 0.0), (2.0, 0.0, 0.0, 0.0)]).T
        gained, spread, single = PchipInterpolator(known, np.transpose(read))(max(m, known[0]))
        return ScoreAt(float(m + gained), float(spread), math.sqrt(spread**2 + single))

    def break_even(self, majority: float | None = None) -> float:
        """Return the least score of the best model, in steps of .01, that clearly beats a guess."""
        m = 0.0 if majority is None else majority
        for exact in np.arange(round(m, 2) + CLEAR, 1 + CLEAR / 2, CLEAR).tolist():
            found = self.at(majority=m, exact=exact)
            if found.score > m + max(CLEAR, found.error):
                return round(exact, 2)
        return math.inf

    @property
    def is_worth(self) -> bool:
        """Whether a release clearly beats a guess, or public records alone."""
        if self.expect is not None:
            return self._beats(**self.expect)
        if self.rows:  # half-way from most of the guesses to 1
            beaten = [self._beats(majority, (1 + majority) / 2) for majority in self.rows]
            return 2 * sum(beaten) >= len(beaten)
        gain = self.private - self._reference
        return not gain.mean() <= standard_error(gain)

    def _beats(self, majority: float = 0.0, exact: float | None = None) -> bool:
        return self.at(majority=majority, exact=exact).score > majority + CLEAR

    @property
    def could_be(self) -> bool:
        """Whether an exact model is clearly better than public records alone."""
        gain = self.exact - self._reference
        return self.public is None or bool(gain.mean() > 2 * standard_error(gain))

    @property
    def _reference(self) -> Matrix:
        return self.majority if self.public is None else self.public

    @property
    def alone(self) -> str:
        """What a release should beat, in words."""
        return "a guess" if self.public is None else "public records alone"

    @property
    def line(self) -> str:
        """The score in one line."""
        if self.expect is not None:
            m = self.expect.get("majority", 0.0)
            guess = f"the majority is {m:.2f} and " if "majority" in self.expect else ""
            best = f"{guess}the best model has {self.expect.get('exact', (1 + m) / 2):.2f}"
            if "exact" not in self.expect and self.ease is not None:
                best = f"{guess}the task is of modest difficulty"
            return f"{self.at(**self.expect)} if {best}; beats a guess {_from(self.break_even(m))}"
        if self.records == MADE_UP_TABLES:
            return f"{self.scoring} {'; '.join(self._of_tables())} (on {self.records})"
        error = standard_error(self.private)
        mean = ScoreAt(float(self.private.mean()), error, error * math.sqrt(len(self.private)))
        scores = [str(mean), f"exact {short_score(self.exact.mean())}"]
        if not np.isnan(self._reference).any():
            scores.append(f"{self.alone} {short_score(self._reference.mean())}")
        return "   ".join([*scores, f"(on {self.records})"])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join([self.line] * (self.expect is not None or not self.rows) + self.lines)

    def __float__(self) -> float:
        return float(self.private.mean() if self.expect is None else self.at(**self.expect).score)

    def __lt__(self, other: object) -> bool:
        return float(self) < float(other)  # type: ignore[arg-type]

    def expecting(self, expect: Mapping[str, float] | None) -> ExpectedScore:
        """Return the same tasks, to be read where somebody expects his own, if there are tasks."""
        return replace(self, expect=None if np.isnan(self.majority).any() else expect)

    @property
    def lines(self) -> list[str]:
        """The printed table: the score of a release for each guess and best model."""
        if not self.rows:
            return []
        columns = EXACT[self.scoring]
        head = "".join(f"{exact:.2f}".rjust(_CELL) for exact in columns)[8:]
        lines = [f"{self.scoring} of the release, on {self.records}"]
        lines += [f"if the best model has   {head}  beats it from"]
        for majority in self.rows:
            cells = [
                str(self.at(majority=majority, exact=exact)) if exact > majority + CLEAR else "-"
                for exact in columns
            ]
            name = f"{'majority' if self.scoring == 'accuracy' else 'a guess'} {majority:.1f}"
            least = _from(self.break_even(majority)).removeprefix("from ")
            lines.append(f"{name:16}{''.join(f'{cell:>{_CELL}}' for cell in cells)}{least:>15}")
        return lines

    @property
    def break_evens(self) -> str:
        """Where a release beats each guess, in words."""
        found = [(f"a guess of {m:.1f}", self.break_even(m)) for m in self.rows]
        return ", ".join(
            f"{guess} nowhere"
            if least > 1
            else f"{guess} only where the best model has {least:.2f}"
            for guess, least in found
        )

    def _of_tables(self) -> Iterator[str]:
        """Write the scores one by one, together where a guess scores alike."""
        for guess in np.unique(self.majority):
            both = np.array([self.private, self.exact])[:, self.majority == guess]
            private, exact = ("/".join(map(short_score, each)) for each in both)
            yield f"{private} where the exact model has {exact} and a guess {short_score(guess)}"


def _from(least: float) -> str:
    return "nowhere" if least > 1 else f"from {least:.2f}"


def standard_error(scores: Matrix) -> float:
    """Return the standard error of the mean of independent scores; 0 of a single one."""
    return float(scores.std(ddof=min(1, len(scores) - 1)) / np.sqrt(len(scores)))


def check_expect(expect: Any, estimator: Estimator) -> None:
    """Refuse what is no guess of the score of a guess and of the best model."""
    if expect is None:
        return
    needed = {"majority"} if is_classifier(estimator) else {"exact"}
    is_scored = is_classifier(estimator) or is_regressor(estimator)
    is_dict = isinstance(expect, Mapping) and needed <= set(expect) <= needed | {"exact"}
    numbers = (
        [expect.get("majority", 0.0), expect.get("exact", 1.0)] if is_dict and is_scored else []
    )
    if not (numbers and all(map(is_real, numbers)) and 0 <= numbers[0] < numbers[1] <= 1):
        raise ValueError(
            "The 'expect' parameter of PrivateEstimator must be None, or hold public guesses: the "
            "'majority' (the share of the largest class) and the 'exact' score of the best model "
            "for a classifier, of which the second may be left out, and 'exact' for a regressor, "
            f"with 0 <= majority < exact <= 1. Got {shown(expect)}."
        )
