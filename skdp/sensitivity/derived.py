"""A sensitivity on paper that was derived for one target, and for no other."""

from __future__ import annotations

from dataclasses import dataclass

from skdp.core.geometry import MechanismType
from skdp.core.schema import Schema
from skdp.core.target import Target, target_key
from skdp.sensitivity.bounds import KnownSensitivity


@dataclass(frozen=True)
class DerivedSensitivity(KnownSensitivity):
    """A bound that knows its target by the key.

    Parameters
    ----------
    target_key : str
        That of the target.
    """

    target_key: str = ""

    def settle(
        self, target: Target, n_samples: int, schema: Schema, mechanism: MechanismType
    ) -> tuple[KnownSensitivity, MechanismType]:
        if target_key(target) != self.target_key:
            raise ValueError(
                "The sensitivity was derived for another target than the one to be released, which "
                f"is {target.description}. Pass sensitivity='known' to PrivateEstimator, which "
                "derives the one that is needed."
            )
        return super().settle(target, n_samples, schema, mechanism)
