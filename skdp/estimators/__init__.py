"""What is released of a scikit-learn estimator."""
