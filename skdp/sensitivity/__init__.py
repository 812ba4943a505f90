"""The sensitivity of a target: oracles, calibration, the sampler, and bounds on paper."""
