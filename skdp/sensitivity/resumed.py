"""An estimate that is used again, beside the oracle that it was sampled from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from skdp.core.dataset import Dataset
from skdp.core.geometry import MechanismType
from skdp.core.oracle import Oracle
from skdp.core.schema import Schema
from skdp.core.target import Target
from skdp.core.types import Estimator
from skdp.sensitivity.base import Sensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler


@dataclass(frozen=True)
class ResumedEstimate(Sensitivity):
    """An estimate whose sampler draws the public records of its seed once more, and no pair.

    The noise is calibrated to the estimate alone, which serves the target of its key and no other:
    an oracle from which something else follows is refused.
    """

    estimate: SensitivityEstimate
    sampler: SensitivitySampler

    @classmethod
    def of(cls, estimate: SensitivityEstimate, oracle: object) -> Self:
        return cls(estimate, SensitivitySampler(oracle, random_state=estimate.seed))

    @property
    def draws_from(self) -> Oracle:
        return self.sampler.draws_from

    @property
    def gamma(self) -> float:
        return self.estimate.gamma

    @property
    def confidence(self) -> float | None:
        return self.estimate.confidence

    def public_dataset(self, *args: Any, **options: Any) -> Dataset:
        return self.sampler.public_dataset(*args, **options)

    def for_estimator(
        self,
        estimator: Estimator,
        release: object,
        dataset: Dataset | None = None,
        uses_response: bool = True,
    ) -> Self:
        sampler = self.sampler.for_estimator(estimator, release, dataset, uses_response)
        return replace(self, sampler=sampler)

    def agree(self, schema: Schema, example: Dataset) -> tuple[Self, Schema]:
        sampler, schema = self.sampler.agree(schema, example)
        return replace(self, sampler=sampler), self.estimate.agree(schema, example)[1]

    def settle(
        self, target: Target, n_samples: int, schema: Schema, mechanism: MechanismType
    ) -> tuple[SensitivityEstimate, MechanismType]:
        return self.estimate.settle(target, n_samples, schema, mechanism)
