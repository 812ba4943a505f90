"""Whole releases on public records: what a fit would be worth, at no cost in privacy."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.accounting.accountant import PrivacyAccountant
from skdp.core.checks import check_count
from skdp.core.dataset import Dataset
from skdp.core.types import Estimator
from skdp.estimator import PrivateEstimator
from skdp.plan import ReleasePlan, settled_again
from skdp.sensitivity.sampler import SensitivitySampler


class Simulation:
    """Datasets of the oracle, each of `n_samples` records to fit and as many to score.

    Both come from one draw: an oracle may give each dataset a rule of its own. With a
    `test_oracle` those to score come from there. The seed is one that no fit has, so that what is
    chosen here does not bias the sensitivity of a later fit.
    """

    def __init__(
        self,
        estimator: Any,
        n_samples: int,
        *,
        n_datasets: int,
        test_oracle: Any,
        rng: np.random.Generator,
        owner: str,
    ):
        sampler = getattr(estimator, "sensitivity", None)
        sampled = isinstance(sampler, SensitivitySampler)
        if not isinstance(estimator, PrivateEstimator) or not sampled:
            raise TypeError(
                f"The 'estimator' parameter of {owner} must be a PrivateEstimator whose "
                f"sensitivity is a SensitivitySampler. Got {estimator!r}."
            )
        check_count("n_datasets", n_datasets, owner)
        self.n_samples = check_count("n_samples", n_samples, owner)
        self.seed = int(rng.integers(2**62)) + 2**62
        train = clone(sampler).set_params(random_state=self.seed)
        test = clone(train).set_params(oracle=test_oracle) if test_oracle is not None else None
        halves = np.split(np.arange(2 * n_samples), 2)
        self.datasets = []
        for i in range(n_datasets):
            if test is None:
                both = train.public_dataset(2 * n_samples, attempt=2 * i + 1)
                self.datasets.append((both.take(halves[0]), both.take(halves[1])))
            else:
                fitted = train.public_dataset(n_samples, attempt=2 * i + 1)
                self.datasets.append((fitted, test.public_dataset(n_samples, attempt=2 * i + 2)))

    def plan(self, model: PrivateEstimator) -> ReleasePlan:
        """Make the plan of the releases, with the seed of the simulation."""
        sampler = clone(model.sensitivity).set_params(random_state=self.seed)
        return clone(model).set_params(sensitivity=sampler).plan(self.n_samples)

    def private_scores(self, plan: ReleasePlan, scoring: Any) -> NDArray[np.float64]:
        """Score what would be released of each dataset."""
        free = PrivacyAccountant(":memory:", epsilon=math.inf, delta=1.0)
        found = []
        for i, (train, test) in enumerate(self.datasets):
            released = settled_again(plan).execute(
                *copy.deepcopy(train), accountant=free, random_state=i
            )
            found.append(score(released.value, test, scoring))
        return np.array(found)

    def public_scores(self, plan: ReleasePlan, scoring: Any) -> NDArray[np.float64] | None:
        """Score what public fits have in common; None without the prior of a code."""
        prior = getattr(plan.mechanism.geometry.basis, "mean", None)
        if prior is None or plan.sensitivity.shape is None:
            return None
        public = plan.target.restore(prior.reshape(plan.sensitivity.shape))
        return np.array([score(public, test, scoring) for _, test in self.datasets])

    def scores(self, estimator: Estimator, scoring: Any) -> NDArray[np.float64]:
        """Score an estimator that is fitted to each dataset, without noise."""
        return np.array(
            [
                score(clone(estimator).fit(*train.parts), test, scoring)
                for train, test in self.datasets
            ]
        )


def score(fitted: Estimator, test: Dataset, scoring: Any) -> float:
    """Score a fitted estimator on records, as `scoring` says."""
    from sklearn.metrics import check_scoring

    return float(check_scoring(fitted, scoring)(fitted, *test.parts[:2]))
