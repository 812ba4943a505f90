"""The parts of scikit-learn estimators that are released."""
