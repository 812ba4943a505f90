"""The base classes of all sensitivities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

from skdp.core.dataset import Dataset
from skdp.core.geometry import Geometry, MechanismType
from skdp.core.oracle import Oracle
from skdp.core.schema import Schema
from skdp.core.target import Target
from skdp.core.types import Estimator


class Sensitivity(ABC):
    """A bound on the change of a target by one record: sampled now, earlier, or known on paper.

    A plan calls `for_estimator`, then `agree` on the form of the records, then `settle`.
    """

    prior: Sensitivity | None = None
    """A sampler that draws the public records in the place of a settled sensitivity."""

    @property
    def draws_from(self) -> Oracle | None:
        """The oracle, ready to be drawn from; None where nothing is drawn."""
        return None if self.prior is None else self.prior.draws_from

    def for_estimator(
        self,
        estimator: Estimator,
        release: object,
        dataset: Dataset | None = None,
        uses_response: bool = True,
    ) -> Self:
        """Return the sensitivity of an estimator, or refuse the estimator; no entry is read."""
        if self.prior is None:
            return self
        prior = self.prior.for_estimator(estimator, release, dataset, uses_response)
        settled: Any = self
        return replace(settled, prior=prior)

    def public_dataset(
        self,
        n_samples: int,
        schema: Schema | None = None,
        attempt: int = 0,
        *,
        allow_nan: bool = False,
    ) -> Dataset:
        """Draw a dataset from the oracle apart from all pairs, another one at each attempt.

        X may lack numbers if the schema says so, or `allow_nan` where there is no schema.
        """
        assert self.prior is not None
        return self.prior.public_dataset(n_samples, schema, attempt, allow_nan=allow_nan)

    @abstractmethod
    def agree(self, schema: Schema, example: Dataset) -> tuple[Self, Schema]:
        """Settle one form for the data and for all draws, or raise ValueError.

        Parameters
        ----------
        schema : Schema
            The form of the data.
        example : Dataset
            Records of this form, as many as there will be. No entry is read.

        Returns
        -------
        sensitivity : Sensitivity
            The same, with its seed drawn.
        schema : Schema
            The form in which the target sees its records.
        """

    def options(self, mechanism: Any) -> list[tuple[Self, Any]]:
        """Pair the alternatives of a mechanism with the bounds for them, at least one."""
        return [(self, mechanism)]

    @abstractmethod
    def settle(
        self, target: Target, n_samples: int, schema: Schema, mechanism: MechanismType
    ) -> tuple[Settled, MechanismType]:
        """Return the sensitivity for the noise, and the mechanism with its code fixed.

        Parameters
        ----------
        target : Target
            What is to be released.
        n_samples : int
            Number of records of the data.
        schema : Schema
            From `agree`.
        mechanism : Mechanism
            The noise. Where it is to learn a code, it gets that of the sensitivity.

        Returns
        -------
        sensitivity : Settled
            Sampled now, where it is to be sampled.
        mechanism : Mechanism
            A copy.

        Raises
        ------
        ValueError
            If the sensitivity was made for something else, or nothing can be released with it.
        """


class Settled(Sensitivity):
    """A sensitivity that is known, by a sample or on paper, and calibrates the noise."""

    @abstractmethod
    def check_fits(self, n_samples: int, schema: Schema, geometry: Geometry) -> None:
        """Refuse records, or a geometry, for which the sensitivity does not hold.

        Parameters
        ----------
        n_samples : int
            Number of records of the data.
        schema : Schema
            Their form. A bound on paper takes any.
        geometry : Geometry
            The geometry of the mechanism.
        """

    @abstractmethod
    def check_made_for(self, target: Target) -> None:
        """Refuse a target that has another key than the target of the sensitivity.

        Parameters
        ----------
        target : Target
            What is to be released.
        """

    def bounded(self, target: Target) -> Target:
        """Return the function that is bounded: under ranges, the target on clipped records."""
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
