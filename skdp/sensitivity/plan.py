"""The plan of a sampler, made before it runs."""

from __future__ import annotations

from dataclasses import dataclass

from skdp.sensitivity.calibration import OrderStatistic


@dataclass(frozen=True)
class SamplingPlan:
    """Describe what a sampler would run, and what it would promise.

    Parameters
    ----------
    order_statistic : OrderStatistic
        How many pairs, which order statistic, and the promise.
    n_samples : int
        Number of records of each dataset of a pair.
    oracle : str
        Description of the source of records.
    n_pilot_pairs : int or None, default=None
        Number of further pairs, from which the mechanism would learn its code. None where
        no mechanism was named: they are then counted nowhere.

    Attributes
    ----------
    n_evaluations : int
        How often sampling would evaluate the target: twice a pair.
    n_fits : int
        How often :meth:`PrivateEstimator.fit` would fit its estimator: the evaluations, the public
        fit and the private fit.

    Notes
    -----
    Both count two calls a pair. Where two records make a pair, a calibrating pair takes no call,
    and a public code is learned and calibrated with as many pairs as are used without one. Very
    many numbers have fewer pilot pairs.

    Examples
    --------
    >>> from skdp import LaplaceMechanism, SensitivitySampler, UniformOracle
    >>> sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.05)
    >>> plan = sampler.plan(n_samples=300, mechanism=LaplaceMechanism(epsilon=1.0))
    >>> plan.n_evaluations, plan.n_fits
    (236, 238)
    >>> plan = sampler.plan(n_samples=300, mechanism=LaplaceMechanism(1.0, code=None))
    >>> plan.n_evaluations  # more pairs calibrate without a code, and none is a pilot
    398
    """

    order_statistic: OrderStatistic
    n_samples: int
    oracle: str
    n_pilot_pairs: int | None = None

    @property
    def n_evaluations(self) -> int:
        """How often sampling would evaluate the target: twice a pair."""
        return 2 * (self.order_statistic.n_pairs + (self.n_pilot_pairs or 0))

    @property
    def n_fits(self) -> int:
        """How often PrivateEstimator would fit: evaluations, public fit and private fit."""
        if self.n_pilot_pairs is None:
            raise ValueError(
                "The number of fits depends on the mechanism, which may need pilot pairs. Name it: "
                "SensitivitySampler.plan(n_samples, mechanism)."
            )
        return self.n_evaluations + 2

    def __str__(self) -> str:
        pilots = f"{self.n_pilot_pairs} pilot pairs and " if self.n_pilot_pairs else ""
        left_out = (
            " A mechanism that learns its code needs pilot pairs too, which are counted where the "
            "plan is made with the mechanism."
            if self.n_pilot_pairs is None
            else ""
        )
        return (
            f"{pilots}{self.order_statistic.n_pairs} pairs of datasets of {self.n_samples} records "
            f"from {self.oracle}, {self.n_evaluations} evaluations of the target.{left_out} "
            f"{self.order_statistic}"
        )
