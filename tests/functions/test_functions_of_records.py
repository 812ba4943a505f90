"""Estimators whose fit is the records themselves are released by their function on a box."""

import pickle

import numpy as np
import pytest
from sklearn.ensemble import VotingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVR

from skdp import (
    BernsteinTransformer,
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    SensitivitySampler,
)

rng = np.random.default_rng(0)
X, X_public = rng.uniform(size=(2, 40, 2))
y, y_public = X.sum(axis=1), X_public.sum(axis=1)


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsRegressor(7),
        SVR(),
        GaussianProcessRegressor(alpha=0.1, optimizer=None),
        make_pipeline(MinMaxScaler(), SVR()),
        VotingRegressor([("knn", KNeighborsRegressor(7)), ("ridge", Ridge())]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_any_function_of_few_features(estimator, leak_search):
    model = PrivateEstimator(
        estimator,
        mechanism=LaplaceMechanism(10.0, code=None),
        sensitivity=SensitivitySampler(
            PublicDataOracle(X_public, y_public), gamma=0.25, n_pairs=3, random_state=0
        ),
        release=BernsteinTransformer(degree=3, feature_range=(0, 1)),
        random_state=0,
    )
    prediction = model.fit(X, y).predict(X)
    assert prediction.shape == (40,)
    assert np.isfinite(prediction).all()
    assert leak_search(pickle.dumps(model), np.concatenate([X.ravel(), y])) == []
    with pytest.raises(ValueError, match="cannot release"):
        model.set_params(release="auto", estimator=KNeighborsRegressor(7)).fit(X, y)
