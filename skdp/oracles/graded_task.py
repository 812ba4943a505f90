"""Tasks of a given difficulty: the features of an oracle, with responses that are made up."""

from __future__ import annotations

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.special import softmax

from skdp.core.dataset import Dataset, as_dataset
from skdp.core.oracle import Oracle
from skdp.core.types import Matrix, Sample
from skdp.oracles.random_task import RandomTaskOracle

AREAS = (0.95, 0.85, 0.75, 0.65)  # under the curve of the probabilities, of two classes
SKILLS = (0.8, 0.5, 0.25, 0.1)  # of more classes: the share of a guess's errors that is avoided
EXPLAINED = (0.9, 0.5, 0.2, 0.05)  # R2 of the rule of a regression
N_GRADED = 500  # records on which a difficulty is settled
_N_STEPS, _N_INNER = 12, 8  # the second start where those before them ended
_SLOPES = -2.0, 4.0  # logarithms


class GradedTaskOracle(Oracle):
    """Features of an oracle, with the responses of random linear rules of one difficulty.

    With s the scores of random rules, of mean 0 and variance 1, classes have the probabilities
    ``softmax(a * s + b)``: b settles their shares, in an order that is drawn, and a the difficulty.
    That is the area under the curve of two classes, and of more the skill
    ``(mean max p - m) / (1 - m)``, where m is the largest share.

    A real response is ``mean + scale * (sqrt(R2) * s + sqrt(1 - R2) * N(0, 1))``, with the mean of
    the oracle's responses, and their `y_scale`, or else their standard deviation.
    """

    def __init__(
        self,
        oracle: Oracle,
        difficulty: float,
        classes: NDArray | None = None,
        shares: tuple[float, ...] = (),
    ) -> None:
        self.oracle, self.difficulty = oracle, difficulty
        self.classes, self.shares = classes, shares
        self.description = oracle.description

    def __call__(self, n_samples: int, rng: Generator) -> Sample:
        drawn = as_dataset(self.oracle(n_samples, rng), "What the oracle returns", most=4)
        answered = drawn._replace(y=self._answers(drawn, rng))
        return answered.parts if drawn.groups is None else answered

    def _answers(self, drawn: Dataset, rng: Generator) -> NDArray:
        """Return the responses of new rules."""
        rules = RandomTaskOracle(drawn.X, y_scale=1.0)
        if self.classes is None:
            y, (scores,) = np.asarray(drawn.y, dtype=np.float64), rules.rule_scores(1, rng)
            noise = np.sqrt(1 - self.difficulty) * rng.standard_normal(scores.size)
            response = np.sqrt(self.difficulty) * scores + noise
            return y.mean() + self._scale(y) * response
        scores = rules.rule_scores(len(self.classes), rng).T.copy()
        if len(self.classes) == 2:
            scores[:, 0] = 0.0
        p = self._probabilities(scores, rng.permutation(self.shares))
        codes = (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1)
        return self.classes[np.minimum(codes, len(self.classes) - 1)]

    def _scale(self, y: Matrix) -> float:
        scale = getattr(self.oracle, "y_scale", None)
        return float(y.std() if scale is None else scale)

    def _probabilities(self, scores: Matrix, shares: Matrix) -> Matrix:
        """Return the probabilities of the classes, by bisection of a, and iteration of b."""
        few, measure = scores[:N_GRADED], _area if len(shares) == 2 else _skill
        (low, high), b = _SLOPES, np.log(shares)
        for _ in range(_N_STEPS):
            a = np.exp((low + high) / 2)
            for _ in range(_N_INNER):
                p = softmax(a * few + b, axis=1)
                b = b + np.log(shares / p.mean(axis=0))
            if measure(p) < self.difficulty:
                low = np.log(a)
            else:
                high = np.log(a)
        return softmax(a * scores + b, axis=1)


def _area(p: Matrix) -> float:
    """Return the area under the curve of probabilities of two classes, if they are true."""
    second = np.sort(p[:, 1])
    first = 1 - second
    before = np.cumsum(first) - first
    return float(second @ (before + first / 2) / (second.sum() * first.sum()))


def _skill(p: Matrix) -> float:
    """Return the share of the errors of a guess that the best prediction avoids."""
    largest = p.mean(axis=0).max()
    return float((p.max(axis=1).mean() - largest) / (1 - largest))


def graded_tasks(oracle: Oracle, classes: NDArray | None) -> tuple[GradedTaskOracle, ...]:
    """Return the tasks on which a release is tried: each difficulty, with shares of each kind."""
    if classes is None:
        return tuple(GradedTaskOracle(oracle, each) for each in EXPLAINED)
    k = len(classes)
    if k == 2:
        kinds: list[tuple[float, ...]] = [(1 - share, share) for share in (0.5, 0.2, 0.1)]
    else:
        halves, least = 0.5 ** np.arange(k), min(0.05, 1 / (2 * k))
        rare = least + (1 - k * least) * halves / halves.sum()
        kinds = [(1 / k,) * k, tuple(rare.tolist())]
    difficulties = AREAS if k == 2 else SKILLS
    return tuple(
        GradedTaskOracle(oracle, each, classes, shares) for each in difficulties for shares in kinds
    )
