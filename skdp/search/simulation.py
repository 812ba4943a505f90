"""Simulate whole releases on public records, to score them at no cost in privacy."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.accounting.accountant import PrivacyAccountant
from skdp.core.checks import check_count, shown
from skdp.core.dataset import Dataset
from skdp.core.room import spare
from skdp.core.schema import Schema
from skdp.core.types import Estimator
from skdp.estimator import PrivateEstimator
from skdp.plan import ReleasePlan
from skdp.sensitivity.random_task import RandomTaskOracle
from skdp.sensitivity.sampler import SensitivitySampler


class Simulation:
    """Datasets of the oracle, each of `n_samples` records to fit and as many to score.

    Both come from one draw, unless a `test_oracle` yields the records to score. No fit has the
    seed, so that a choice by scores does not bias the sensitivity of a later fit.
    """

    def __init__(
        self,
        sampler: SensitivitySampler,
        n_samples: int,
        *,
        n_datasets: int,
        test_oracle: Any,
        rng: np.random.Generator,
        owner: str,
        schema: Schema | None = None,
    ):
        check_count("n_datasets", n_datasets, owner)
        self.n_samples = check_count("n_samples", n_samples, owner)
        self.seed = int(rng.integers(2**62)) + 2**62
        train = clone(sampler).set_params(random_state=self.seed)
        if isinstance(test_oracle, RandomTaskOracle):
            raise ValueError(
                f"The 'test_oracle' parameter of {owner} must draw all records by one rule. Got a "
                "RandomTaskOracle, which makes a new one in each draw. Leave it out: then further "
                "records of the same draw are scored."
            )
        test = clone(train).set_params(oracle=test_oracle) if test_oracle is not None else None
        halves = np.split(np.arange(2 * n_samples), 2)
        self.datasets = []
        draw = partial(SensitivitySampler.public_dataset, schema=schema, allow_nan=True)
        for i in range(n_datasets):
            if test is None:
                both = draw(train, 2 * n_samples, attempt=2 * i + 1)
                self.datasets.append((both.take(halves[0]), both.take(halves[1])))
            else:
                fitted = draw(train, n_samples, attempt=2 * i + 1)
                scored = draw(test, n_samples, attempt=2 * i + 2)
                self.datasets.append((fitted, scored))

    def plan(self, model: PrivateEstimator) -> ReleasePlan:
        """Make the plan of the releases, with the seed of the simulation."""
        sampler = clone(model.sensitivity).set_params(random_state=self.seed)
        return clone(model).set_params(sensitivity=sampler).plan(self.n_samples)

    def private_scores(self, plan: ReleasePlan, scoring: Any) -> NDArray[np.float64]:
        """Score the release of each dataset."""

        def released(i: int, train: Dataset) -> Any:
            free = PrivacyAccountant(":memory:", epsilon=math.inf, delta=1.0)  # of these records
            data = plan.checked(*copy.deepcopy(train))
            return plan.execute_checked(data, accountant=free, random_state=i).value

        models = (released(i, train) for i, (train, _) in enumerate(self.datasets))
        return self.scores(models, scoring)

    def public_scores(self, plan: ReleasePlan, scoring: Any) -> NDArray[np.float64] | None:
        """Score the prior mean of a code; None without a code."""
        code = plan.mechanism.geometry.code
        if code is None or plan.sensitivity.shape is None:
            return None
        public = plan.target.restore(code.mean.reshape(plan.sensitivity.shape))
        return self.scores([public] * len(self.datasets), scoring)

    def exact_models(self, plan: ReleasePlan) -> list[Estimator]:
        """Return the release of each dataset without noise."""
        target = plan.sensitivity.bounded(spare(plan.target))
        exact = (target(*copy.deepcopy(train).parts, seed=0) for train, _ in self.datasets)
        return [plan.target.restore(value) for value in exact]

    def fits(self, estimator: Estimator) -> list[Estimator]:
        """Fit an estimator to each dataset, without noise."""
        return [clone(estimator).fit(*train.parts) for train, _ in self.datasets]

    def scores(self, models: Iterable[Estimator], scoring: Any) -> NDArray[np.float64]:
        """Score a model for each dataset, on its records to score."""
        pairs = zip(models, self.datasets, strict=True)
        return np.array([score(model, test, scoring) for model, (_, test) in pairs])


def score(fitted: Estimator, test: Dataset, scoring: Any) -> float:
    """Score a fitted estimator on records, as `scoring` says."""
    from sklearn.metrics import check_scoring

    return float(check_scoring(fitted, scoring)(fitted, *test.parts[:2]))


def sampler_of(estimator: Any, parameter: str) -> SensitivitySampler:
    """Return the sampler of a PrivateEstimator, or refuse what has none."""
    sampler = getattr(estimator, "sensitivity", None)
    wrapped = isinstance(estimator, PrivateEstimator)
    if wrapped and isinstance(sampler, SensitivitySampler):
        return sampler
    got = f"sensitivity={shown(sampler)}" if wrapped else shown(estimator)
    remedy = " Give it a sampler: the datasets come from its oracle." if wrapped else ""
    raise TypeError(
        f"The {parameter} must be a PrivateEstimator whose sensitivity is a SensitivitySampler. "
        f"Got {got}.{remedy}"
    )
