"""How often `predict_interval` holds what the exact model predicts, and how wide it is.

Diabetes records, ridge regression on standardized columns. Half of the records are public, or their
features alone. For each split one simulation gives the intervals; releases of datasets of the
oracle, and of the private half, say how often exact predictions are inside.

    python benchmarks/intervals.py
"""

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import Ridge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from skdp import (
    LaplaceMechanism,
    PrivateEstimator,
    PublicDataOracle,
    RandomTaskOracle,
    SensitivitySampler,
)
from skdp.accounting import PrivacyAccountant

LEVEL, N_SPLITS, N_RELEASES = 0.9, 6, 50
FREE = PrivacyAccountant(":memory:", epsilon=np.inf)


def shares_inside(oracle, epsilon, shift, private, at, split):
    """Share inside for data of the oracle and for private ones, and the width by the spread."""
    mechanism = LaplaceMechanism(epsilon, shift=shift)
    sampler = SensitivitySampler(oracle, random_state=split)
    plan = PrivateEstimator(Ridge(), mechanism=mechanism, sensitivity=sampler).plan(len(private[0]))
    released = plan.execute(*private, accountant=FREE)
    ends = released.predict_interval(at, LEVEL, n_draws=199, random_state=split)
    low, high = (ends - released.value.predict(at)[:, None]).T
    rng = np.random.default_rng(split)
    inside = np.zeros((N_RELEASES, 2))
    for repeat in range(N_RELEASES):
        for k, data in enumerate((oracle(len(private[0]), rng), private)):
            exact = plan.target(*data, seed=0)
            off = exact - plan.mechanism.release(exact, plan.sensitivity.value, rng)
            off = np.c_[at, np.ones(len(at))] @ off
            inside[repeat, k] = np.mean((low <= off) & (off <= high))
    spread = Ridge().fit(*private).predict(at).std()
    return *inside.mean(axis=0), np.mean(high - low) / spread


def main():
    X, y = load_diabetes(return_X_y=True)
    print("oracle, shift, epsilon: share inside of oracle's data / of private data, width")
    for public in ("responses", "features"):
        for shift in (0.0, 0.2):
            for epsilon in (0.3, 1.0, 3.0, 10.0):
                rows = []
                for split in range(N_SPLITS):
                    X_public, X_private, y_public, y_private = train_test_split(
                        X, y, test_size=0.5, random_state=split
                    )
                    scaler = StandardScaler().fit(X_public)
                    X_public, X_private = scaler.transform(X_public), scaler.transform(X_private)
                    oracle = (
                        PublicDataOracle(X_public, y_public)
                        if public == "responses"
                        else RandomTaskOracle(X_public, y_mean=150, y_scale=60, noise=1)
                    )
                    private = X_private, y_private
                    rows.append(shares_inside(oracle, epsilon, shift, private, X_public, split))
                means = " / ".join(f"{mean:.3f}" for mean in np.mean(rows, axis=0))
                print(f"public {public}, {shift}, {epsilon:g}: {means}", flush=True)


if __name__ == "__main__":
    main()
