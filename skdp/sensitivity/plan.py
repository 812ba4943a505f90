"""What a sampler would run, and what it would promise, before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from skdp.sensitivity.calibration import OrderStatistic


@dataclass(frozen=True)
class SamplingPlan:
    """What a sampler would run, and what it would promise.

    Parameters
    ----------
    order_statistic : OrderStatistic
        How many pairs, which order statistic, and the promise.
    n_samples : int
        Number of records of each dataset of a pair.
    oracle : str
        Description of the source of records.
    n_pilot_pairs : int, default=0
        Number of further pairs, from which the mechanism would learn its basis. For a target of
        very many values it is less.

    Attributes
    ----------
    n_evaluations : int
        How often the target would be evaluated: twice a pair.

    Examples
    --------
    >>> from skdp import SensitivitySampler, UniformOracle
    >>> plan = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.05).plan(n_samples=100)
    >>> plan.n_evaluations
    398
    """

    order_statistic: OrderStatistic
    n_samples: int
    oracle: str
    n_pilot_pairs: int = 0

    @property
    def n_evaluations(self) -> int:
        """How often the target would be evaluated: twice a pair."""
        return 2 * (self.order_statistic.n_pairs + self.n_pilot_pairs)

    def __str__(self) -> str:
        pilots = f"{self.n_pilot_pairs} pilot pairs and " if self.n_pilot_pairs else ""
        return (
            f"{pilots}{self.order_statistic.n_pairs} pairs of datasets of {self.n_samples} records "
            f"from {self.oracle}, {self.n_evaluations} evaluations of the target. "
            f"{self.order_statistic}"
        )
