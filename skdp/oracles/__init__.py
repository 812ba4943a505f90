"""Oracles: sources of plausible records, which are public."""
