"""The base classes of all sensitivities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from skdp.core.dataset import Dataset
from skdp.core.geometry import Geometry, MechanismType
from skdp.core.oracle import Oracle
from skdp.core.schema import Schema
from skdp.core.target import Target
from skdp.core.types import Estimator

if TYPE_CHECKING:
    from skdp.sensitivity.bounds import KnownSensitivity
    from skdp.sensitivity.estimate import SensitivityEstimate


class Sensitivity(ABC):
    """A bound on the change of a target by one record: sampled now, earlier, or known on paper.

    A plan calls `for_estimator`, then `agree` on the form of the records, then `settle`.
    """

    @property
    def draws_from(self) -> Oracle | None:
        """The oracle, ready to be drawn from; None where nothing is drawn."""
        return None

    def for_estimator(
        self,
        estimator: Estimator,
        release: object,
        dataset: Dataset | None = None,
        uses_response: bool = True,
    ) -> Self:
        """Return the sensitivity of an estimator, or refuse the estimator.

        Parameters
        ----------
        estimator : estimator object
            The estimator. Only its class and parameters are read.
        release : object
            The parameter of PrivateEstimator.
        dataset : Dataset or None, default=None
            Records of the form of the data. No entry is looked at.
        uses_response : bool, default=True
            Whether the estimator, or the target, reads a response.

        Returns
        -------
        Sensitivity
            This one, unless overridden.
        """
        return self

    @abstractmethod
    def agree(self, schema: Schema, example: Dataset) -> tuple[Self, Schema]:
        """Settle one form for the data and for all draws.

        Parameters
        ----------
        schema : Schema
            The form of the data.
        example : Dataset
            Records of this form, as many as there will be. No entry is looked at.

        Returns
        -------
        sensitivity : Sensitivity
            This one, or a sampler with its seed drawn.
        schema : Schema
            The form in which the target sees its records.

        Raises
        ------
        ValueError
            If there is no such form, or the oracle does not draw from its generator.
        """

    def options(self, mechanism: Any) -> list[tuple[Self, Any]]:
        """Pair the alternatives of a mechanism with the bounds that are for them.

        Parameters
        ----------
        mechanism : Mechanism
            Which noise.

        Returns
        -------
        list of (Sensitivity, Mechanism)
            Never empty. This one with the mechanism itself, unless overridden.
        """
        return [(self, mechanism)]

    @abstractmethod
    def settle(
        self, target: Target, n_samples: int, schema: Schema, mechanism: MechanismType
    ) -> tuple[SensitivityEstimate | KnownSensitivity, MechanismType]:
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
            Which noise. Where it is to learn a code, it gets that of the sensitivity.

        Returns
        -------
        sensitivity : SensitivityEstimate or KnownSensitivity
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
            That of the mechanism.

        Raises
        ------
        ValueError
            If the sensitivity does not hold for these.
        """

    @abstractmethod
    def check_made_for(self, target: Target) -> None:
        """Refuse a target other than the one of the sensitivity.

        Parameters
        ----------
        target : Target
            What is to be released.

        Raises
        ------
        ValueError
            If it is known by another key.
        """

    def bounded(self, target: Target) -> Target:
        """Return the function that the sensitivity is of.

        Parameters
        ----------
        target : Target
            What is to be released.

        Returns
        -------
        Target
            `target` itself, unless a bound supposes ranges: then it sees records clipped to them.
        """
        return target


def in_code_of(geometry: Geometry, mechanism: MechanismType) -> MechanismType:
    """Return the mechanism with the code of a sensitivity, if it has none of its own."""
    return mechanism.with_code(geometry.code) if mechanism.learns_code else mechanism


def refuse_zero(value: float) -> None:
    """Refuse a sensitivity with which the exact value would be released."""
    if value == 0:
        raise ValueError(
            "The sensitivity is zero, so no noise would be added and the exact value would be "
            "shown. Nothing is released. If it was sampled, the target did not change on enough of "
            "the oracle's pairs. Where rounded values tie, as a median of whole years does, take a "
            "smaller gamma: values without ties would show less than changes in the data. Else use "
            "an oracle with more varied records."
        )
