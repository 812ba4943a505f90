"""Repeat releases on public records: what a release is worth, and how far it may be off."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np
from sklearn.base import is_classifier, is_regressor

from skdp.core.dataset import Dataset
from skdp.core.oracle import Oracle
from skdp.core.room import quiet, spare
from skdp.core.schema import Schema
from skdp.core.streams import score_key, streams
from skdp.core.target import Target
from skdp.core.types import Estimator, Matrix, Released, Scoring
from skdp.mechanisms.additive import AdditiveMechanism
from skdp.mechanisms.base import Mechanism
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.drawing import draw
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler

# Simulated releases of an interval by default.
N_DRAWS = 199

# Releases of each simulated dataset, and the most records that score them.
N_NOISES, MOST_SCORED = 3, 500


@dataclass(frozen=True, eq=False)
class ExpectedScore:
    """What a release scores on public datasets, beside exact models and public records alone.

    Parameters
    ----------
    private : ndarray of float of shape (n_datasets,)
        Mean score of the releases of each dataset.
    exact : ndarray of float of shape (n_datasets,)
        Score of the model of each dataset without noise.
    public : ndarray of float of shape (n_datasets,)
        Score of a model of public records alone. NaN where there is none.
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
    records: str

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
        """What the model of `public` has seen."""
        return "a guess" if "made-up" in self.records else "public records alone"

    def __str__(self) -> str:
        scores = [f"{_short(self.private.mean())} +- {self.standard_error:.1g}"]
        scores.append(f"exact {_short(self.exact.mean())}")
        if not np.isnan(self.public).any():
            scores.append(f"{self.alone} {_short(self.public.mean())}")
        return "   ".join([*scores, f"(on {self.records})"])


def _short(score: float) -> str:
    """Write a score with two decimals, a large one with three digits."""
    return f"{score:.2f}" if abs(score) < 100 else f"{score:.3g}"


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

    return float(check_scoring(fitted, scoring)(fitted, *test.parts[:2]))


@dataclass(frozen=True, eq=False)
class Simulation:
    """Public datasets, the value of a target on each, and other records of the same draw to score.

    A dataset on which the target fails is left out.
    """

    target: Target
    sensitivity: SensitivityEstimate | KnownSensitivity
    n_samples: int
    oracle: Oracle
    schema: Schema
    n_datasets: int
    seed: int
    records: str = "the oracle's data"
    test_oracle: Oracle | None = None

    @cached_property
    def datasets(self) -> list[tuple[Matrix, Dataset]]:
        """The values, and the records to score."""
        evaluate = self.sensitivity.bounded(spare(self.target))
        found = []
        for train, test in self._drawn():
            with quiet(), suppress(Exception):
                value = np.asarray(evaluate(*train.parts, seed=0), dtype=np.float64)
                if np.isfinite(value).all():
                    found.append((value, test))
        return found

    def _drawn(self) -> Iterator[tuple[Dataset, Dataset]]:
        n_scored = min(self.n_samples, MOST_SCORED)
        for i in range(self.n_datasets):
            rng, _ = streams(self.seed, score_key(i))
            if self.test_oracle is not None:
                train, test = (
                    draw(oracle, n, rng, schema=self.schema)
                    for oracle, n in ((self.oracle, self.n_samples), (self.test_oracle, n_scored))
                )
                yield train, test
                continue
            drawn = draw(self.oracle, self.n_samples + n_scored, rng, schema=self.schema)
            order = rng.permutation(drawn.n_records)  # an oracle may sort its records
            yield drawn.take(order[: self.n_samples]), drawn.take(order[self.n_samples :])

    def public_value(self, mechanism: Mechanism, left_out: int | None = None) -> Matrix | None:
        """Return the value that public records alone suggest, from the code or other datasets."""
        code, values = mechanism.geometry.code, [value for value, _ in self.datasets]
        if code is not None and values:
            return code.mean.reshape(values[0].shape)
        others = [value for i, value in enumerate(values) if i != left_out]
        return np.mean(others, axis=0) if others else None

    def scores(self, mechanism: Mechanism, scoring: Scoring) -> ExpectedScore | None:
        """Release each value as a private one, restore and score; None if nothing has a score."""
        rng, _ = streams(self.seed, score_key(self.n_datasets))
        size, rows = self.sensitivity.value, list[tuple[float, float, float]]()
        for i, (value, test) in enumerate(self.datasets):

            def scored(target: Target, value: Released, test: Dataset = test) -> float:
                return score(target.restore(value), test, scoring)

            with quiet(), suppress(Exception):
                private = []
                for _ in range(N_NOISES):
                    released, errors = mechanism.release_with_errors(value, size, rng)
                    target = self.target.with_noise(mechanism, size, errors)
                    private.append(scored(target, released))
                public = self.public_value(mechanism, left_out=i)
                alone = math.nan if public is None else scored(self.target, public)
                rows.append((float(np.mean(private)), scored(self.target, value), alone))
        rows = [row for row in rows if np.isfinite(row[:2]).all()]
        if not rows:
            return None
        name = name_of_score(scoring, self.target.restore(self.datasets[0][0]))
        private, exact, public = np.array(rows).T
        return ExpectedScore(private, exact, public, name, self.records)


@dataclass(frozen=True, eq=False)
class Simulator:
    """Repeat a release in public, to learn the distribution of its error.

    The errors of the simulated releases, exact value minus released one, are added to the numbers
    that were released. Noise without a code does not depend on the value, so zeros are released.
    The error of a code depends on the value, so values of new public datasets are released.

    Let e be the errors of m simulated releases and e_0 that of the actual one, of a private dataset
    drawn from the oracle (of any, without a code). Given the plan they are m + 1 independent draws
    of one law, so the rank of c'e_0 among all c'e is uniform for any public c, and c'e_0 lies
    between the l-th smallest and the l-th largest of the others with a probability of at least
    (m + 1 - 2 l) / (m + 1). That is the case of a prediction that is linear in the released
    numbers, before repairs.

    Private records that are unlike the oracle's have larger errors. So with a code the errors of
    each number are stretched to its standard error where that is larger: it allows for the
    `shift`, and for a release that contradicts the prior.

    `errors` were simulated to be saved. `drawn` holds the last errors of all releases of a plan, by
    mechanism and seed.
    """

    target: Target
    mechanism: Mechanism
    sensitivity: SensitivityEstimate | KnownSensitivity
    n_samples: int
    schema: Schema | None
    oracle: Oracle | None
    errors: Matrix | None = None
    drawn: dict[tuple[str, int], Matrix] = field(default_factory=dict)

    @property
    def _has_prior(self) -> bool:
        return self.mechanism.geometry.code is not None

    @property
    def is_of_noise_alone(self) -> bool:
        """Whether the error of a release does not depend on the value, so no oracle is needed."""
        return not self._has_prior and type(self.mechanism).release is AdditiveMechanism.release

    @property
    def is_ready(self) -> bool:
        """Whether the simulator can repeat the release."""
        return self.errors is not None or self.oracle is not None or self.is_of_noise_alone

    def without_oracle(self, shape: tuple[int, ...], n_draws: int) -> Self:
        """Return a simulator without an oracle, to be saved with errors that are simulated now."""
        errors = self.errors
        if n_draws and errors is None and not self.is_of_noise_alone:
            errors = self._simulate(shape, n_draws, 0)
        target = self.target.without_records()
        return replace(self, target=target, oracle=None, errors=errors, drawn={})

    def plausible_values(
        self, value: Matrix, stated: Matrix | None, n_draws: int | None, random_state: int
    ) -> Matrix:
        """Draw exact values; errors of a code are stretched to the `stated` standard errors."""
        if self.errors is None:
            errors = self._simulate(value.shape, n_draws or N_DRAWS, random_state)
        elif (n_draws or 0) <= len(self.errors):
            errors = self.errors[:n_draws]
        else:
            raise ValueError(
                f"The 'n_draws' parameter must be at most {len(self.errors)}, the number of "
                f"simulated releases that were saved. Got {n_draws}."
            )
        if self._has_prior and stated is not None:
            deviations = np.sqrt(np.mean(errors**2, axis=0))
            larger = np.divide(stated, deviations, out=np.ones_like(stated), where=deviations > 0)
            errors = errors * np.maximum(larger, 1)
        return value + errors.reshape(-1, *value.shape)

    def _simulate(self, shape: tuple[int, ...], n_draws: int, random_state: int) -> Matrix:
        """Simulate releases, and return exact value minus released one in a row for each."""
        key = (repr(self.mechanism), random_state)  # the mechanism may have been edited since
        if len(self.drawn.get(key, ())) >= n_draws:
            return self.drawn[key][:n_draws]
        # the spawn key keeps it apart from the noise of a release with the same seed
        sequence = np.random.SeedSequence(random_state, spawn_key=(2**31,))
        first, second = map(int, sequence.generate_state(2, np.uint64))
        source, size = np.random.default_rng(first), self.sensitivity.value
        if self.is_of_noise_alone:
            values = np.zeros((n_draws, math.prod(shape)))
        else:
            values = self._public_values(n_draws, second)
        released = (self.mechanism.release(value.reshape(shape), size, source) for value in values)
        errors = np.array([v - np.ravel(each) for v, each in zip(values, released, strict=True)])
        if not self.is_of_noise_alone:
            self.drawn.clear()  # saves memory
            self.drawn[key] = errors
        return errors

    def _public_values(self, n_draws: int, seed: int) -> Matrix:
        """Evaluate the target on datasets of the oracle, all of them new."""
        if self.oracle is None:
            raise ValueError(
                "The release of a public code is simulated with an oracle, and there is none here. "
                "Give the oracle of an estimate as 'prior', or save a release with n_draws=99 "
                "before you load it."
            )
        sampler = SensitivitySampler(self.oracle, gamma=None, n_pairs=n_draws, random_state=seed)
        target = self.sensitivity.bounded(self.target)
        return sampler.pilots(target, self.n_samples, self.schema)[0]
