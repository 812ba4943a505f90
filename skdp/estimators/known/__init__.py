"""Statistics of estimators whose sensitivity is known on paper."""
