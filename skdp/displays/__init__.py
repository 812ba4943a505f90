"""Plots in scikit-learn's Display convention: arrays stored, drawn late."""
