"""Repeat releases on public records: what a release is worth, and how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import is_classifier, is_regressor

from skdp.core.dataset import Dataset
from skdp.core.oracle import Oracle
from skdp.core.room import quiet, spare
from skdp.core.schema import DatasetForm
from skdp.core.streams import score_key, streams
from skdp.core.target import Target
from skdp.core.types import Estimator, Matrix, Released, Scoring
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.noise import byte_source
from skdp.oracles.drawing import draw
from skdp.results.names import short_score
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.store import STORE, Evaluation, key_in_store

# The most records that score a simulated release, and datasets of a plan's own simulation.
MOST_SCORED = 500
LEAST_DATASETS, MOST_DATASETS = 3, 20
EVALUATIONS_OF_A_DATASET = 30  # a dataset for each so many evaluations, so that it costs little

FIRST_SEED = 2**40  # of noise that is simulated: nobody releases with it
ORACLE, MADE_UP = "the oracle's data", "made-up records"  # which records are simulated
MADE_UP_TABLES = "made-up tables whose columns act one by one"


@dataclass(frozen=True, eq=False)
class ExpectedScore:
    """What a release scores on public datasets, beside exact models and public records alone.

    Parameters
    ----------
    private : ndarray of float of shape (n_datasets,)
        Score of a release of each dataset.
    exact : ndarray of float of shape (n_datasets,)
        Score of the model of each dataset without noise.
    public : ndarray of float of shape (n_datasets,)
        Score of a model of public records alone, NaN where there is none; on made-up records that
        of a guess, the best constant prediction.
    scoring : str
        Name of the score.
    records : str
        Which records were simulated.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from skdp import LaplaceMechanism, PrivateEstimator, SensitivitySampler, UniformOracle
    >>> oracle = UniformOracle([(0, 1)], y_bounds=(0, 1))
    >>> model = PrivateEstimator(
    ...     Ridge(),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(oracle, random_state=0),
    ... )
    >>> print(model.plan(n_samples=100).expected_score)  # responses that are noise
    -0.0... +- 0.0...   exact -0.0...   public records alone -0.0...   (on the oracle's data)
    """

    private: Matrix
    exact: Matrix
    public: Matrix
    scoring: str
    records: str = ORACLE

    @property
    def standard_error(self) -> float:
        """Standard error of the mean score of the private releases."""
        return standard_error(self.private)

    @property
    def gains(self) -> bool:
        """Whether the private score is above that of public records by more than its error."""
        gain = self.private - self.public
        return not gain.mean() <= standard_error(gain)

    @property
    def could_gain(self) -> bool:
        """Whether an exact model scores clearly better than public records alone."""
        gain = self.exact - self.public
        return bool(gain.mean() > 2 * standard_error(gain))

    @property
    def alone(self) -> str:
        """The model of `public`, in words."""
        return "public records alone" if self.records == ORACLE else "a guess"

    def __str__(self) -> str:
        if self.records == MADE_UP_TABLES:
            return f"{self.scoring} {'; '.join(self._of_tables())} (on {self.records})"
        scores = [f"{short_score(self.private.mean())} +- {self.standard_error:.1g}"]
        scores.append(f"exact {short_score(self.exact.mean())}")
        if not np.isnan(self.public).any():
            scores.append(f"{self.alone} {short_score(self.public.mean())}")
        return "   ".join([*scores, f"(on {self.records})"])

    def _of_tables(self) -> Iterator[str]:
        """Write the scores one by one, together where a guess scores alike."""
        for guess in np.unique(self.public):
            both = np.array([self.private, self.exact])[:, self.public == guess]
            private, exact = ("/".join(map(short_score, each)) for each in both)
            yield f"{private} where the exact model has {exact} and a guess {short_score(guess)}"


def standard_error(scores: Matrix) -> float:
    """Return the standard error of the mean of independent scores; 0 of a single one."""
    return float(scores.std(ddof=min(1, len(scores) - 1)) / np.sqrt(len(scores)))


def name_of_score(scoring: Scoring, estimator: Estimator) -> str:
    """Return the name of a score, as it stands on an axis."""
    if isinstance(scoring, str):
        return scoring.replace("_", " ")
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

    @cached_property
    def datasets(self) -> list[tuple[Matrix, Matrix | None, Dataset]]:
        """The values, those with noise of a target that adds it, and the records to score."""
        target = self.sensitivity.bounded(spare(self.target.light), self.oracle, self.schema)
        key = key_in_store(
            *(target, self.oracle, self.n_samples, self.seed, self.schema),
            *(self.test_oracle, "simulated"),
        )
        found = []
        for i, (train, test) in enumerate(self._drawn()):

            def evaluate(train: Dataset = train, seed: int = i) -> Evaluation:
                noise: Any = {"noise": byte_source(FIRST_SEED + seed)} if target.adds_noise else {}
                calls = [partial(target, *train.parts, seed=0)]
                calls += [partial(calls[0], **noise)] if noise else []
                return Evaluation(tuple(np.array(call(), dtype=np.float64) for call in calls))

            with quiet(), suppress(Exception):  # a dataset on which the target fails is left out
                value, *noisy = STORE.recall(key, i, evaluate).values
                if np.isfinite(value).all():
                    found.append((value, noisy[0] if noisy else None, test))
        return found

    def _drawn(self) -> Iterator[tuple[Dataset, Dataset]]:
        n_scored = min(self.n_samples, MOST_SCORED)
        for i in range(self.n_datasets):
            rng, _ = streams(self.seed, score_key(i))
            if self.test_oracle is not None:
                train = draw(self.oracle, self.n_samples, rng, schema=self.schema)
                yield train, draw(self.test_oracle, n_scored, rng, schema=self.schema)
                continue
            drawn = draw(self.oracle, self.n_samples + n_scored, rng, schema=self.schema)
            order = rng.permutation(drawn.n_records)  # an oracle may sort its records
            yield drawn.take(order[: self.n_samples]), drawn.take(order[self.n_samples :])

    def public_value(self, mechanism: Mechanism, left_out: int | None = None) -> Matrix | None:
        """Return the value that public records alone suggest, from the code or other datasets."""
        code, values = mechanism.geometry.code, [value for value, *_ in self.datasets]
        if code is not None and values:
            return code.mean.reshape(values[0].shape)
        others = [value for i, value in enumerate(values) if i != left_out]
        return np.mean(others, axis=0) if others else None

    def scores(self, mechanism: Mechanism, scoring: Scoring) -> ExpectedScore | None:
        """Release each value as a private one, restore and score; None if nothing has a score."""
        from sklearn.dummy import DummyClassifier, DummyRegressor

        rng, _ = streams(self.seed, score_key(self.n_datasets))
        size, rows = self.sensitivity.value, list[tuple[float, float, float]]()
        for i, (value, noisy, test) in enumerate(self.datasets):

            def scored(target: Target, value: Released, test: Dataset = test) -> float:
                return score(target.restore(value), test, scoring)

            with quiet(), suppress(Exception):  # as where a restored model cannot be scored
                released: Any = noisy
                errors = None
                if noisy is None:
                    released, errors = mechanism.release_with_errors(value, size, rng)
                private = scored(self.target.with_noise(mechanism, size, errors), released)
                exact, public = self.target.restore(value), self.public_value(mechanism, left_out=i)
                if self.records == MADE_UP:  # the best that predicts the same for all records
                    guess = DummyClassifier() if is_classifier(exact) else DummyRegressor()
                    alone = score(guess.fit(test.X, test.y), test, scoring)
                else:
                    alone = math.nan if public is None else scored(self.target, public)
                rows.append((private, score(exact, test, scoring), alone))
        rows = [row for row in rows if np.isfinite(row[:2]).all()]
        if not rows:
            return None
        name = name_of_score(scoring, self.target.restore(self.datasets[0][0]))
        private, exact, public = np.array(rows).T
        return ExpectedScore(private, exact, public, name, self.records)
