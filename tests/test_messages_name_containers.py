"""A container in the place of a parameter is named by type and shape: it may hold records."""

from __future__ import annotations

import traceback

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import skdp
from skdp import (
    BernsteinTransformer,
    GaussianMechanism,
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    RandomDensityOracle,
    RandomTaskOracle,
    SensitivitySampler,
    UniformOracle,
)

INCOME = 61234.5
ORACLE = RandomTaskOracle(np.arange(20.0).reshape(10, 2), classes=["no", "yes"])


def _model(**changed):
    given = {"mechanism": LaplaceMechanism(epsilon=1.0), "sensitivity": SensitivitySampler(ORACLE)}
    return PrivateEstimator(LogisticRegression(), **{**given, **changed})


PLACES = {
    "n_samples": lambda it: _model().plan(it),
    "n_samples of a sampler": lambda it: SensitivitySampler(ORACLE).plan(it),
    "mechanism": lambda it: _model(mechanism=it).plan(10),
    "sensitivity": lambda it: _model(sensitivity=it).plan(10),
    "accountant": lambda it: _model(accountant=it).plan(10),
    "random_state": lambda it: _model(random_state=it).plan(10),
    "estimator": lambda it: PrivateEstimator(
        it, mechanism=LaplaceMechanism(epsilon=1.0), sensitivity=1.0
    ).plan(10),
    "classes": lambda it: RandomTaskOracle(np.eye(2), classes=it),
    "class_shares": lambda it: RandomTaskOracle(np.eye(2), classes=[0, 1], class_shares=it),
    "epsilon": lambda it: _model(mechanism=LaplaceMechanism(epsilon=it)).plan(10),
    "delta": lambda it: GaussianMechanism(epsilon=1.0, delta=it).guarantee(0),
    "bounds": UniformOracle,
    "widths": lambda it: RandomDensityOracle((0, 1), widths=it),
    "ranges": lambda it: KnownSensitivity(1.0, "l1", 10, ranges=it),
    "ranges of a mean": lambda it: skdp.bounds.mean_bound(it, 2, 10),
    "gamma": lambda it: SensitivitySampler(ORACLE, gamma=it).plan(10),
    "n_pairs": lambda it: SensitivitySampler(ORACLE, n_pairs=it).plan(10),
    "feature_range": lambda it: BernsteinTransformer(feature_range=it).fit([[0.1]]),
}


def test_no_record_in_a_message():
    table = pd.DataFrame({"age": [31.0, 42.0, 53.0], "income": INCOME, "height": 1.8})
    records = table.to_numpy().tolist()
    words = [list(map(str, record)) for record in records]
    for place, use in PLACES.items():
        for given in (table, table.to_numpy(), records, words, table["income"], tuple(records)):
            with pytest.raises((TypeError, ValueError)) as caught:
                use(given)
            told = "".join(traceback.format_exception(caught.value))
            assert "61234" not in told, place
