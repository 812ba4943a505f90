"""The base classes of all sensitivities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

from skdp.core.dataset import Dataset
from skdp.core.geometry import Geometry, MechanismType
from skdp.core.oracle import Oracle
from skdp.core.schema import DatasetForm
from skdp.core.target import Target
from skdp.core.types import Estimator


class Sensitivity(ABC):
    """A bound on the change of a target by one record: sampled now, earlier, or known on paper.

    A plan calls `for_estimator`, then `agree` on the form of the records, then `settle`.
    """

    @property
    @abstractmethod
    def draws_from(self) -> Oracle | None:
        """The oracle, ready to be drawn from; None where nothing is drawn."""

    estimator: Any = None
    """The rule for the only estimators that it is for, if there is one."""

    @abstractmethod
    def public_dataset(self, *args: Any, **options: Any) -> Dataset:
        """Draw a public dataset."""

    @abstractmethod
    def for_estimator(
        self, estimator: Estimator, release: object, dataset: Dataset, uses_response: bool
    ) -> Self:
        """Return the sensitivity of an estimator, or refuse the estimator; no entry is read."""

    @abstractmethod
    def agree(self, schema: DatasetForm, example: Dataset) -> tuple[Self, DatasetForm]:
        """Settle one form for the data and for all draws, or raise ValueError."""

    def in_norm(self, order: float) -> Self:
        """Return the sensitivity for the norm of a mechanism."""
        return self

    @abstractmethod
    def settle(
        self, target: Target, n_samples: int, schema: DatasetForm, mechanism: MechanismType
    ) -> tuple[Settled, MechanismType]:
        """Return the sensitivity for the noise, and a copy of the mechanism with its code fixed."""


class Settled(Sensitivity):
    """A sensitivity that is known, by a sample or on paper, and calibrates the noise."""

    prior: Any = None
    """The sampler that draws public records, if there is one."""
    strata: str | None = None
    """What makes a stratum of the sampled pairs, if there are any."""
    least_share: float | None = None
    """Smallest share of a class that the oracle of these draws, where it is known."""
    clipped: bool | None = None
    """Whether records are clipped to the ranges of the oracle's; None where none are drawn."""
    n_reused: int = 0
    """Number of evaluations that were known from before."""

    @property
    def n_measured(self) -> int:
        """Number of pairs that were sampled, in each stratum; 0 of a bound on paper."""
        return 0

    @property
    def sampled_with(self) -> int | None:
        """Seed of the sampling; None of a bound on paper."""
        return None

    @property
    def assumed(self) -> str | None:
        """The assumptions, in the words of the guarantee; None where it names an oracle."""
        return None

    @property
    def draws_from(self) -> Oracle | None:
        """The oracle of the prior."""
        return None if self.prior is None else self.prior.draws_from

    def public_dataset(self, *args: Any, **options: Any) -> Dataset:
        """Draw a public dataset from the prior, as a sampler does."""
        return self.prior.public_dataset(*args, **options)

    def for_estimator(
        self, estimator: Estimator, release: object, dataset: Dataset, uses_response: bool
    ) -> Self:
        if self.prior is None:
            return self
        return self.with_prior(self.prior.for_estimator(estimator, release, dataset, uses_response))

    def with_prior(self, prior: object) -> Self:
        """Return the sensitivity with another sampler of public records, or with none."""
        settled: Any = self
        return self if prior is self.prior else replace(settled, prior=prior)

    @abstractmethod
    def check_fits(self, n_samples: int, schema: DatasetForm, geometry: Geometry) -> None:
        """Refuse records, or a geometry, for which the sensitivity does not hold."""

    @abstractmethod
    def check_made_for(self, target: Target) -> None:
        """Refuse a target that has another key than the target of the sensitivity."""

    def check_draws(self, oracle: Oracle | None) -> None:
        """Refuse an oracle whose records may not stand in for those far outside."""

    def bounded(
        self, target: Target, oracle: Oracle | None = None, schema: DatasetForm | None = None
    ) -> Target:
        """Return the function that is bounded: under ranges, the target on clipped records.

        Records in a schema that are far from those of an oracle may be replaced by draws of it.
        """
        return target


def in_code_of(geometry: Geometry, mechanism: MechanismType) -> MechanismType:
    """Return the mechanism with the code of a sensitivity, if it has none of its own."""
    return mechanism.with_code(geometry.code) if mechanism.learns_code else mechanism


def refuse_zero(value: float) -> None:
    """Refuse a sensitivity with which the exact value would be released."""
    if value == 0:
        raise ValueError(
            "The sensitivity is zero, so no noise would be added, and nothing is released. If it "
            "was sampled, the target did not change on enough of the oracle's pairs: use an oracle "
            "with more varied records, or a smaller gamma where rounded values tie."
        )
