"""Repeat releases on public records: what a release is worth, and how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import is_classifier, is_regressor

from skdp.core.dataset import Dataset
from skdp.core.oracle import Oracle
from skdp.core.persons import Persons, as_units
from skdp.core.room import quiet, spare
from skdp.core.schema import DatasetForm
from skdp.core.streams import score_key, streams, task_key
from skdp.core.target import Target, value_of
from skdp.core.types import Estimator, Matrix, Scoring
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.oracles.drawing import draw
from skdp.oracles.graded_task import GradedTaskOracle
from skdp.results.expected import EXACT, ORACLE, ExpectedScore, standard_error
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.store import STORE, Evaluation, key_in_store

# The most records that score a simulated release, and datasets of a plan's own simulation.
MOST_SCORED = 500
N_DRAWS, SLOW_DRAWS = 4, 2  # of noise for a task; the second of many numbers of an L2 Laplace law
FEW_VALUES = 8
LEAST_DATASETS, MOST_DATASETS = 3, 20
EVALUATIONS_OF_A_DATASET = 30  # a dataset for each so many evaluations, so that it costs little

FIRST_SEED = 2**40  # of noise that is simulated: nobody releases with it


def name_of_score(scoring: Scoring, estimator: Estimator) -> str:
    """Return the name of a score, as it stands on an axis."""
    if isinstance(scoring, str):
        return "R²" if scoring == "r2" else scoring.replace("_", " ")
    if scoring is not None:
        return "score"
    return "accuracy" if is_classifier(estimator) else "R²" if is_regressor(estimator) else "score"


def score(fitted: Estimator, test: Dataset, scoring: Scoring) -> float:
    """Score a fitted estimator on records, as `scoring` says."""
    from sklearn.metrics import check_scoring

    with config_context(skip_parameter_validation=True):  # which takes as long as the score
        return float(check_scoring(fitted, scoring)(fitted, *Dataset(test.X, test.y).parts))


@dataclass(frozen=True, eq=False)
class Simulation:
    """Public datasets, each with the value of a target and with other records to score."""

    target: Target
    sensitivity: SensitivityEstimate | KnownSensitivity
    n_samples: int
    oracle: Oracle
    schema: DatasetForm
    n_datasets: int
    seed: int
    test_oracle: Oracle | None = None
    records: str = ORACLE
    tasks: tuple[GradedTaskOracle, ...] = ()
    """Where the datasets come from, in turn, if not from the oracle."""

    @cached_property
    def datasets(self) -> list[tuple[Matrix, Matrix | None, Dataset, float, Estimator]]:
        """The values, with noise of a target that adds it, records to score, ease, exact model.

        None stands for the model of the value, where that is the exact one.
        """
        target = self.sensitivity.bounded(spare(self.target.light), self.oracle, self.schema)
        key = key_in_store(
            *(target, self.oracle, self.n_samples, self.seed, self.schema),
            *(self.test_oracle, self.tasks, "simulated"),
        )
        found = []
        for i in range(self.n_datasets):
            try:
                train, test = self._draw(i)
            except Exception:
                if not self.tasks:  # else there may be no rules for such records
                    raise
                continue

            def evaluate(train: Any = train, seed: int = i) -> Evaluation:
                noise: Any = {"noise": byte_source(FIRST_SEED + seed)} if target.adds_noise else {}
                calls = [partial(value_of, target, train, seed=0)]
                calls += [partial(calls[0], **noise)] if noise else []
                return Evaluation(tuple(np.array(call(), dtype=np.float64) for call in calls))

            with quiet(), suppress(Exception):  # a dataset on which the target fails is left out
                value, *noisy = STORE.recall(key, i, evaluate).values
                if np.isfinite(value).all():
                    ease = self.tasks[i % len(self.tasks)].difficulty if self.tasks else math.nan
                    exact = None
                    if hasattr(self.target, "exact"):
                        exact = self.target.exact(getattr(train, "rows", train))
                    found.append((value, noisy[0] if noisy else None, test, ease, exact))
        return found

    def _draw(self, i: int) -> tuple[Dataset | Persons, Dataset]:
        """Draw dataset i, and the records to score."""
        n_scored = MOST_SCORED if self.tasks else min(self.n_samples, MOST_SCORED)
        rng, _ = streams(self.seed, task_key(i) if self.tasks else score_key(i))
        oracle = self.tasks[i % len(self.tasks)] if self.tasks else self.oracle
        if self.test_oracle is not None:
            train = as_units(draw(oracle, self.n_samples, rng, schema=self.schema))
            return train, draw(self.test_oracle, n_scored, rng, schema=self.schema)
        drawn = as_units(draw(oracle, self.n_samples + n_scored, rng, schema=self.schema))
        order = rng.permutation(drawn.n_records)  # an oracle may sort its records
        test = drawn.take(order[self.n_samples :])
        test = test.rows if isinstance(test, Persons) else test
        return drawn.take(order[: self.n_samples]), test

    def public_value(self, mechanism: Mechanism, left_out: int | None = None) -> Matrix | None:
        """Return the value that public records alone suggest, from the code or other datasets."""
        code, values = mechanism.geometry.code, [value for value, *_ in self.datasets]
        if code is not None and values:
            return code.mean.reshape(values[0].shape)
        others = [value for i, value in enumerate(values) if i != left_out]
        return np.mean(others, axis=0) if others else None

    def scores(self, mechanism: Mechanism, scoring: Scoring) -> ExpectedScore | None:
        """Release each value as private ones, restore and score; None if nothing has a score."""
        key = task_key if self.tasks else score_key
        rng, _ = streams(self.seed, key(self.n_datasets))
        size, code = self.sensitivity.value, mechanism.geometry.code

        def release(value: Matrix, noisy: Matrix | None) -> Iterator[Estimator]:
            if noisy is not None:
                yield self.target.with_noise(mechanism, size, None).restore(noisy)
                return
            n_released = np.size(value) if code is None else code.n_released
            is_slow = mechanism.most_values is not None and n_released > FEW_VALUES
            n_draws = SLOW_DRAWS if is_slow else N_DRAWS
            is_single = not self.tasks or getattr(self.target, "student", None) is not None
            for _ in range(1 if is_single else n_draws):  # each teaches a student, if there is one
                released, errors = mechanism.release_with_errors(value, size, rng)
                yield self.target.with_noise(mechanism, size, errors).restore(released)

        has_labels = self.records == ORACLE and not self.tasks
        public = partial(self.public_value, mechanism) if has_labels else None
        return self.scores_of(release, scoring, public)

    def scores_of(
        self,
        release: Callable[[Matrix, Matrix | None], Iterable[Estimator]],
        scoring: Scoring,
        public: Callable[[int], Matrix | None] | None = None,
    ) -> ExpectedScore | None:
        """Score what `release` makes of each value, and the value itself."""
        rows = list[tuple[float, ...]]()
        for i, (value, noisy, test, ease, exact) in enumerate(self.datasets):
            scored = partial(score, test=test, scoring=scoring)
            with quiet(), suppress(Exception):  # as where a restored model cannot be scored
                private = np.array([*map(scored, release(value, noisy))])
                exact = self.target.restore(value) if exact is None else exact
                if public is None:
                    alone = guessed(exact, test, scoring)
                else:
                    others = public(i)
                    alone = math.nan if others is None else scored(self.target.restore(others))
                error = standard_error(private)
                deviation = error * math.sqrt(len(private))
                rows.append((private.mean(), error, deviation, scored(exact), alone, ease))
        rows = [row for row in rows if np.isfinite(row[:4]).all()]
        if not rows:
            return None
        name = name_of_score(scoring, self.target.restore(self.datasets[0][0]))
        private, errors, deviations, exact, alone, ease = np.array(rows).T
        majority = alone if public is None else np.full_like(alone, np.nan)
        majorities = {round(max(task.shares, default=0.0), 1) for task in self.tasks}
        return ExpectedScore(
            *(private, exact, majority, name, self.records, errors, deviations),
            public=None if public is None else alone,
            rows=tuple(sorted(majorities)) if name in EXACT else (),
            ease=ease if self.tasks and name == "accuracy" else None,
        )


def guessed(exact: Estimator, test: Dataset, scoring: Scoring) -> float:
    """Return the score of the best that predicts the same for all records, NaN for none."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    if not (is_classifier(exact) or is_regressor(exact)):
        return math.nan
    guess = DummyClassifier() if is_classifier(exact) else DummyRegressor()
    return score(guess.fit(test.X, test.y), test, scoring)
