"""What is released where a column of the private records is in another unit.

Of nine columns one is a log-normal, in the private records times a factor. Printed: by epsilon the
number of directions that are read, and for each factor the share of records that the released
scaler and logistic regression classify as the exact ones do, the least and the most over three
seeds, and likewise by how many standard deviations a number is farthest from the prior mean.
"""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import LaplaceMechanism, PrivateEstimator, PublicDataOracle, SensitivitySampler
from skdp.accounting import PrivacyAccountant

FACTORS = (1, 2, 5, 18, 88)
N_OTHERS = 8


def records(n, rng):
    X = np.column_stack([rng.lognormal(0, 0.5, n), rng.normal(size=(n, N_OTHERS))])
    return X, (2 * X[:, 0] - 2.3 + X[:, 1] - X[:, 2] + rng.logistic(size=n) > 0).astype(int)


def released(epsilon, factor, seed):
    """Return the number of directions, the share that is alike, and the conflict with the prior."""
    rng = np.random.default_rng(seed)
    X, y = records(2000, rng)
    X_public, y_public = records(1000, rng)
    X[:, 0] *= factor
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    model = PrivateEstimator(
        pipeline,
        mechanism=LaplaceMechanism(epsilon),
        sensitivity=SensitivitySampler(PublicDataOracle(X_public, y_public), random_state=seed),
        accountant=PrivacyAccountant(":memory:", epsilon=1e6),
    )
    plan = model.plan(len(X))
    release = plan.execute(X, y, random_state=seed)
    alike = np.mean(release.value.predict(X) == clone(pipeline).fit(X, y).predict(X))
    return plan.mechanism.geometry.basis.n_released, alike, release.prior_conflict


def main():
    warnings.simplefilter("ignore")  # that a release contradicts the oracle is what is measured
    print("epsilon  directions  factor: alike / conflict")
    for epsilon in (0.1, 0.3, 0.6, 3.0):
        found = np.array([[released(epsilon, f, seed) for seed in range(3)] for f in FACTORS])
        sizes = "/".join(f"{size:g}" for size in np.unique(found[..., 0]))
        cells = [
            f"{factor}: {alike.min():.2f} to {alike.max():.2f} / {far.min():.1f} to {far.max():.1f}"
            for factor, (_, alike, far) in zip(FACTORS, found.swapaxes(1, 2), strict=True)
        ]
        print(f"{epsilon:g}  {sizes}  {'  '.join(cells)}")


if __name__ == "__main__":
    main()
