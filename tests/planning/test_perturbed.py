"""Logistic regression by objective perturbation, through the estimator."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skdp import (
    ClipNorm,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    PrivateEstimator,
    RandomTaskOracle,
)
from skdp.accounting import PrivacyAccountant

N = 4000
rng = np.random.default_rng(0)
X = rng.normal(size=(N, 3))
y = (X @ [2.0, -1.0, 0.0] + rng.normal(size=N) > 0).astype(int)
KINDS = [LaplaceMechanism(2.0), L2LaplaceMechanism(2.0), GaussianMechanism(2.0, 1e-6)]


def private(mechanism, C=0.1, **options):
    model = LogisticRegression(C=C, solver="liblinear")
    pipeline = make_pipeline(ClipNorm(2.0), model)
    given = {"sensitivity": "known", "classes": [0, 1], **options}
    return PrivateEstimator(pipeline, mechanism=mechanism, **given)


@pytest.mark.parametrize("mechanism", KINDS, ids=lambda each: type(each).__name__)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["array", "sparse"])
def test_it_is_near_the_exact_model(mechanism, container):
    exact = make_pipeline(ClipNorm(2.0), LogisticRegression(C=0.1, solver="liblinear", tol=1e-9))
    exact = exact.fit(X, y)[-1]
    model = private(mechanism, random_state=0).fit(container(X), y)
    last = model.estimator_[-1]
    np.testing.assert_allclose(last.coef_, exact.coef_, atol=0.25)
    np.testing.assert_allclose(last.intercept_, exact.intercept_, atol=0.25)
    assert model.guarantee_.epsilon == 2.0
    assert "by objective perturbation with C=0.1" in " ".join(str(model.plan_).split())


def test_a_weak_penalty_is_raised_with_a_warning_before_payment(tmp_path):
    accountant = PrivacyAccountant(tmp_path / "ledger", epsilon=1.0)
    with pytest.warns(UserWarning, match="'C' parameter of LogisticRegression counts as 0.0999"):
        plan = private(LaplaceMechanism(1.0), C=100.0, accountant=accountant).plan(N, like=(X, y))
    assert not accountant.rows()
    plan.execute(X, y, accountant=accountant)
    assert len(accountant.rows()) == 1


def test_neighbors_differ_only_in_what_is_released():
    """With a seed the noise of the objective is the same, and one record moves the minimum."""
    other = X.copy()
    other[0] = 1e300
    plans = [private(LaplaceMechanism(1.0), C=1e-3).plan(N, like=(each, y)) for each in (X, other)]
    assert str(plans[0]) == str(plans[1])
    assert plans[0].sensitivity.value == plans[1].sensitivity.value
    both = zip(plans, (X, other), strict=True)
    pair = [plan.execute(each, y, random_state=0) for plan, each in both]
    moved = np.abs(pair[0].value[-1].coef_ - pair[1].value[-1].coef_)
    assert 0 < moved.max() < 2 * 2.3 * 1e-3  # 2 C R


def test_many_columns_have_a_release():
    wide = np.hstack([X, np.zeros((N, 40))])
    model = private(LaplaceMechanism(5.0), random_state=0).fit(wide, y)
    assert model.score(wide, y) > 0.75


@pytest.mark.parametrize(
    ("mechanism", "options"),
    [
        (LaplaceMechanism(np.inf), {}),
        (LaplaceMechanism(1.0), {"prior": RandomTaskOracle(X[:200], classes=[0, 1])}),
    ],
    ids=["no noise", "a prior"],
)
def test_without_noise_and_with_a_prior_the_minimum_itself_is_released(mechanism, options):
    assert (
        not private(mechanism, **options).plan(N - 200, like=(X[200:], y[200:])).target.adds_noise
    )


@pytest.mark.worth
def test_its_expected_score_is_that_of_noisy_releases_of_made_up_records():
    near, far = (private(LaplaceMechanism(eps), C=4e-4).plan(N, like=(X, y)) for eps in (4, 5e-3))
    assert near.expected_score.records == "made-up records"
    lost = [
        (each.expected_score.exact - each.expected_score.private).mean() for each in (near, far)
    ]
    assert -0.01 < lost[0] < 0.05 < lost[1]
    assert near.public_estimator is None
