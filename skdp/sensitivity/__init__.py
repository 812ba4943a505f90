"""The sensitivity of a target: oracles, calibration, the sampler, and bounds on paper."""

from skdp.sensitivity.calibration import OrderStatistic, order_statistic
from skdp.sensitivity.sampler import SamplingPlan

__all__ = ["OrderStatistic", "SamplingPlan", "order_statistic"]
