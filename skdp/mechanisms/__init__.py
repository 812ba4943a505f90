"""Mechanisms: noise that is private on every pair whose norm it was calibrated to."""
