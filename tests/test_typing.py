"""Types of results, as a user sees them: the calls run here, and `make lint` checks the types."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import BayesianRidge

from skdp import LaplaceMechanism, PrivateEstimator


def test_what_a_fitted_model_returns_has_a_type() -> None:
    X = np.linspace(0, 1, 20)[:, None]
    model = PrivateEstimator(
        BayesianRidge(), mechanism=LaplaceMechanism(1.0), sensitivity=0.1, random_state=0
    )
    fitted = assert_type(model.fit(X, X[:, 0]), PrivateEstimator)
    assert assert_type(fitted.predict(X), NDArray[Any]).shape == (20,)
    assert isinstance(assert_type(fitted.score(X, X[:, 0]), float), float)
    assert assert_type(fitted.predict_interval(X, n_draws=19), NDArray[Any]).shape == (20, 2)
    assert assert_type(fitted.guarantee_.epsilon, float) == 1.0
