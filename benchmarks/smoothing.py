"""How far what is read off a released density is from the records: the kernel smooths, noise too.

Printed: the share of ages from 30 to 50, and the correlation of two scores, of the records, of
their exact kernel density, and of released ones, mean and standard deviation of 20.
"""

from __future__ import annotations

import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skdp import BernsteinTransformer, LaplaceMechanism, PrivateEstimator
from skdp.accounting import PrivacyAccountant

N_RELEASES = 20
N_SAMPLES = 200_000


def samples(estimator, epsilon, degree, box, X):
    """Yield samples of released densities."""
    model = PrivateEstimator(
        estimator,
        mechanism=LaplaceMechanism(epsilon),
        sensitivity="known",
        release=BernsteinTransformer(degree=degree, feature_range=box),
        accountant=PrivacyAccountant(":memory:", epsilon=np.inf),
    )
    plan = model.plan(len(X), like=X)
    for i in range(N_RELEASES):
        yield plan.execute(X, random_state=i).value.sample(N_SAMPLES, random_state=i)


def share(ages):
    """Whole years from 30 to 50 are smoothed from 29.5 to 50.5."""
    return np.mean((ages > 29.5) & (ages < 50.5))


def correlation(scores):
    return np.corrcoef(scores.T)[0, 1]


def report(name, of_records, of_kernel, of_released):
    print(
        f"{name:12}  records {of_records:.3f}  kernel density {of_kernel:.3f}  "
        f"released {np.mean(of_released):.3f} ± {np.std(of_released, ddof=1):.3f}"
    )


def main():
    rng = np.random.default_rng(0)
    ages = np.clip(rng.normal(46, 14, 6000).round(), 18, 95)[:, None]
    smoothed = np.repeat(ages, 30, axis=0) + 4 * rng.normal(size=(30 * len(ages), 1))
    released = samples(KernelDensity(bandwidth=4.0), 0.5, 20, [(10.0, 103.0)], ages)
    report("share", share(ages), share(smoothed), [share(each) for each in released])

    scores = rng.multivariate_normal([55, 55], [[200, 128], [128, 200]], 4000).clip(0, 100)
    smoothed = np.repeat(scores, 30, axis=0) + 6 * rng.normal(size=(30 * len(scores), 2))
    scaler = FrozenEstimator(MinMaxScaler().fit([[0, 0], [100, 100]]))
    estimator = make_pipeline(scaler, KernelDensity(bandwidth=0.06))
    released = samples(estimator, 1.0, 16, [(0.0, 100.0)] * 2, scores)
    report(
        "correlation",
        *(correlation(scores), correlation(smoothed), [correlation(each) for each in released]),
    )


if __name__ == "__main__":
    main()
