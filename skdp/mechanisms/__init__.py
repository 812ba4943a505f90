"""Which noise: mechanisms that are private on every pair whose norm they were calibrated to."""
