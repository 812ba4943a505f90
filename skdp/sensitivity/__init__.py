"""The sensitivity of a target: oracles, calibration, the sampler, and bounds on paper."""

from skdp.sensitivity.base import SamplingPlan
from skdp.sensitivity.calibration import OrderStatistic, order_statistic

__all__ = ["OrderStatistic", "SamplingPlan", "order_statistic"]
