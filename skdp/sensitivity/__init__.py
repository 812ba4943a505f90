"""How much one record can change the target: oracles, calibration and the sampler."""
