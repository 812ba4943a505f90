"""The sensitivity of a target: oracles, calibration, the sampler, and bounds on paper."""

from skdp.sensitivity.calibration import OrderStatistic, order_statistic

__all__ = ["OrderStatistic", "order_statistic"]
