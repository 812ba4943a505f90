"""Every public count is an integer: no fraction, no NaN, no boolean."""

from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.svm import SVC

from skdp import (
    BernsteinTransformer,
    KnownSensitivity,
    LaplaceMechanism,
    PrivacyGuarantee,
    PrivateEstimator,
    SensitivitySampler,
    UniformOracle,
)
from skdp.audit import audit_epsilon, audit_estimator, find_large_sensitivity
from skdp.bounds import mean_bound, svm_bound
from skdp.risk import LaplaceLoss
from skdp.sensitivity import OrderStatistic, order_statistic

ORACLE = UniformOracle([(0, 1)], y_bounds=(0, 1))
X, Y = np.random.default_rng(0).uniform(size=(2, 20))
MODEL = PrivateEstimator(
    Ridge(), mechanism=LaplaceMechanism(1.0), sensitivity=0.1, random_state=0
).fit(X[:, None], Y)


def noisy(x, n, rng):
    return x + rng.laplace(size=n)


AUDIT = partial(audit_epsilon, noisy, [(0, 1)], claimed_epsilon=1.0)
COUNTS = {
    "sample": ("n_samples", lambda n: SensitivitySampler(ORACLE).sample(np.mean, n, "l1")),
    "pilots": ("n_samples", lambda n: SensitivitySampler(ORACLE).pilots(np.mean, n)),
    "public": ("n_samples", SensitivitySampler(ORACLE).public_dataset),
    "n_pairs": (
        "n_pairs",
        lambda n: SensitivitySampler(ORACLE, gamma=None, n_pairs=n).order_statistic(),
    ),
    "order_statistic": ("n_pairs", lambda n: order_statistic(0.5, n)),
    "OrderStatistic": ("n_pairs", lambda n: OrderStatistic(n, 1, 0.9, "exact")),
    "k": ("k", lambda n: OrderStatistic(9, n, 0.9, "exact")),
    "KnownSensitivity": ("n_samples", lambda n: KnownSensitivity(1, "l1", n)),
    "PrivacyGuarantee": ("n_samples", lambda n: PrivacyGuarantee(epsilon=1.0, n_samples=n)),
    "mean_bound": ("n_samples", lambda n: mean_bound(n, ranges=(0, 1))),
    "svm_bound": ("n_features", lambda n: svm_bound(SVC(kernel="linear"), 5, n)),
    "attack": ("n_iter", lambda n: find_large_sensitivity(np.mean, ORACLE, 5, n)),
    "search": ("n_search", lambda n: AUDIT(n_search=n)),
    "final": ("n_final", lambda n: AUDIT(n_final=n)),
    "pairs": ("pairs", lambda n: audit_estimator(MODEL, X[:, None], Y, oracle=ORACLE, pairs=n)),
    "record": (
        "pairs",
        lambda n: audit_estimator(MODEL, X[:, None], Y, record=([[0.5]], [0.5]), pairs=n),
    ),
    "risk": ("n", lambda n: LaplaceLoss(0.1).self_compose(n)),
    "degree": (
        "degree",
        lambda n: BernsteinTransformer(degree=n, feature_range=(0, 1)).fit(X[:, None]),
    ),
}


@pytest.mark.loop("value", [1.1, 2.0, np.nan, True, np.True_, "3", 0, -1])
@pytest.mark.loop("what", COUNTS)
def test_what_is_no_count_is_refused(what, value):
    name, call = COUNTS[what]
    with pytest.raises((TypeError, ValueError), match=f"'{name}' parameter of .* must be"):
        call(value)


def test_integers_of_numpy_are_counts():
    estimate = SensitivitySampler(ORACLE, n_pairs=np.int32(19)).sample(np.mean, np.int64(10), "l1")
    assert (estimate.n_samples, len(estimate.norms)) == (10, 19)
    bound = mean_bound(np.uint8(10), ranges=(0, 1))
    assert bound.for_geometry("l1", 10) == mean_bound(10, ranges=(0, 1)).value
