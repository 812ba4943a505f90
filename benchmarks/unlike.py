"""How often intervals hold where a column of the private records is unlike the oracle's.

The private records have a column with a mean of 3.5 and a variance of 6, the public ones with 2.5
and 3, as of another city. Printed: of level .9, how often the interval of each released number of a
scaler and a logistic regression holds the exact one, on average and for the worst number.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler
from skdp.accounting import PrivacyAccountant

N_RELEASES = 20
N_OTHERS = 9


def trips(n, shape, scale, seed):
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.gamma(shape, scale, n), rng.normal(size=(n, N_OTHERS))])
    late = X[:, 0] / 4 - 1.5 + X[:, 1] / 2 + rng.logistic(size=n) > 0
    return X, late.astype(int)


def main():
    X, y = trips(4000, 2.0, 1.75, 0)
    public = trips(1500, 2.1, 1.2, 1)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    scaler, last = clone(pipeline).fit(X, y)
    exact = np.r_[scaler.mean_, scaler.var_, last.coef_[0], last.intercept_]
    print("epsilon  shift  all   worst")
    for epsilon in (0.1, 0.3, 1.0):
        for shift in (0.2, 1.0):
            model = PrivateEstimator(
                pipeline,
                mechanism=LaplaceMechanism(epsilon, shift=shift),
                sensitivity=SensitivitySampler(PublicDataOracle(*public), random_state=0),
                accountant=PrivacyAccountant(":memory:", epsilon=1e6),
            )
            plan = model.plan(len(X))
            ends = [
                plan.execute(X, y, random_state=i).value_interval(random_state=0)
                for i in range(N_RELEASES)
            ]
            held = np.mean(
                [(low <= exact) & (exact <= high) for low, high in np.swapaxes(ends, 1, 2)], axis=0
            )
            print(f"{epsilon:7g}  {shift:5g}  {held.mean():.2f}  {held.min():.2f}")


if __name__ == "__main__":
    main()
