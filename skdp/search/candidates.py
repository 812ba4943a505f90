"""The candidates of a search, and how they are scored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.core.checks import check_count
from skdp.core.dataset import Dataset
from skdp.core.target import Target
from skdp.core.types import Container, Estimator
from skdp.estimators.configuration import describe, make_quiet, seed_names
from skdp.estimators.inputs import reorder, takes
from skdp.estimators.members import last_step


class CandidateScores(Target):
    """The mean cross-validated score of each candidate, with more for better.

    Where the targets of fits are given, whose sensitivity is known, the last steps are scored, on
    the records as these see them, so that none fails in the steps before.
    """

    fits_estimator = True

    def __init__(
        self,
        estimators: Sequence[Estimator],
        scoring: Any,
        cv: Any,
        known: Sequence[Any] = (),
    ):
        self.estimators = [make_quiet(clone(estimator)) for estimator in estimators]
        self.scoring, self.cv = scoring, cv
        self.allow_nan = all(takes(estimator, "allow_nan") for estimator in estimators)
        self.known = known
        self.key_parts = self.estimators, scoring, cv, list(known)
        self.description = f"scores of {len(estimators)} candidates, {describe(estimators[0])}, ..."

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Score all candidates on the same folds, of records in a random order."""
        from sklearn.model_selection import cross_val_score

        shuffled = reorder(Dataset(*dataset), seed)
        how = {"scoring": self.scoring, "cv": self.cv, "n_jobs": 1, "error_score": "raise"}
        seen = [(each, shuffled.parts) for each in self.estimators]
        if self.known:
            seen = [
                (last_step(each), target.as_seen(*shuffled.parts))
                for each, target in zip(self.estimators, self.known, strict=True)
            ]
        return np.array(
            [cross_val_score(_seeded(each, seed), *parts, **how).mean() for each, parts in seen]
        )


def _seeded(estimator: Estimator, seed: int) -> Estimator:
    """Return a clone whose open seeds are this one."""
    return clone(estimator).set_params(**dict.fromkeys(seed_names(estimator), seed))


def list_candidates(param_grid: Any, n_iter: int | None, random_state: Any) -> list[dict[str, Any]]:
    """List all candidates of a grid, or so many at random."""
    from sklearn.model_selection import ParameterGrid, ParameterSampler

    if n_iter is None:
        candidates = list(ParameterGrid(param_grid))
    else:
        check_count("n_iter", n_iter, "PrivateSearchCV")
        candidates = list(ParameterSampler(param_grid, n_iter, random_state=random_state))
    if not candidates:
        raise ValueError("The 'param_grid' parameter must hold at least one candidate. Got none.")
    return [clone(params, safe=False) for params in candidates]


def check_scores(scores: NDArray[np.float64], candidates: list[dict[str, Any]], owner: str) -> None:
    """Refuse scores that are no numbers; those of public records may be shown."""
    strange = np.flatnonzero(~np.isfinite(scores))
    if strange.size:
        raise ValueError(
            f"The 'scoring' of {owner} must give each candidate a number. Got {scores[strange[0]]} "
            f"for candidate {strange[0]}, {candidates[strange[0]]}, on public records."
        )
