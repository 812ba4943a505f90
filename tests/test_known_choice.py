"""Which of two kinds of Laplace noise a plan takes for a bound on paper."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skdp import (
    ClipNorm,
    KnownSensitivity,
    L2LaplaceMechanism,
    LaplaceMechanism,
    MomentClassifier,
    PrivateEstimator,
    SensitivitySampler,
    plan_release,
)
from skdp.bounds import mean_bound

AUTO = LaplaceMechanism(1.0, norm="auto")


def means(X):
    return X.mean(axis=0)


def seeded(prior):
    return SensitivitySampler(prior, n_pairs=199, random_state=0)


def both(n_features, prior=None):
    l1, l2 = (mean_bound(100, n_features, ranges=(0, 1)).in_norm(order) for order in (1, 2))
    return replace(l1, l2_value=l2.value, shape=(n_features,), prior=prior and seeded(prior))


def plan(sensitivity, mechanism=AUTO, like=5):
    return plan_release(
        means, n_samples=100, like=np.zeros((3, like)), mechanism=mechanism, sensitivity=sensitivity
    )


def test_the_smaller_noise_is_taken():
    """Of k means L2 Laplace noise has sqrt(k (k + 1)) times 1 / n, Laplace noise sqrt(2) k."""
    for n_features, kind in (
        (1, LaplaceMechanism),
        (2, L2LaplaceMechanism),
        (16, L2LaplaceMechanism),
    ):
        taken = plan(both(n_features), like=n_features)
        assert type(taken.mechanism) is kind
        assert taken.mechanism.epsilon == 1.0
        norm = "l1" if kind is LaplaceMechanism else "l2"
        assert taken.sensitivity.value == taken.sensitivity.for_geometry(norm, 100)
        assert f"noise           {kind.__name__.removesuffix('Mechanism')}\n" in str(taken)
        others = [plan(both(n_features), each, n_features) for each in AUTO.alternatives]
        errors = [each.standard_errors.max() for each in others]
        assert taken.standard_errors.max() == min(errors)
        released = taken.execute(np.full((100, n_features), 0.5), random_state=0)
        assert released.guarantee.epsilon == 1.0
        assert released.guarantee.gamma == released.guarantee.delta == 0


def test_too_many_numbers_get_laplace_noise_unless_a_code_makes_them_few():
    assert type(plan(both(17), like=17).mechanism) is LaplaceMechanism
    rng = np.random.default_rng(0)
    axis = rng.uniform(-0.5, 0.5, size=17)

    def prior(n, rng):
        return 0.5 + np.outer(rng.normal() + rng.normal(size=n), axis) / 9

    taken = plan(both(17, prior), like=17)
    assert type(taken.mechanism) is L2LaplaceMechanism
    assert taken.mechanism.geometry.code.n_released == 1
    assert taken.sensitivity.value == pytest.approx(
        mean_bound(100, 17, ranges=(0, 1)).in_norm(2).value
    )


def test_a_bound_in_one_norm_leaves_no_choice():
    for norm, kind in (("l1", LaplaceMechanism), ("l2", L2LaplaceMechanism)):
        assert type(plan(KnownSensitivity(0.1, norm, 100, shape=(5,))).mechanism) is kind
    assert type(plan(0.1).mechanism) is LaplaceMechanism
    with pytest.raises(ValueError, match="bounds neither larger"):
        plan(KnownSensitivity(0.1, "sup", 100))


def test_a_derived_bound_is_known_in_both_norms():
    settings = {"sensitivity": "known", "classes": [0, 1]}
    model = make_pipeline(ClipNorm(), MomentClassifier())
    for width, kind in ((3, L2LaplaceMechanism), (40, LaplaceMechanism)):
        X, y = np.zeros((60, width)), np.arange(60) % 2
        fitted = PrivateEstimator(model, mechanism=AUTO, **settings).fit(X, y)
        assert type(fitted.mechanism_) is kind
        alone = PrivateEstimator(model, mechanism=kind(1.0), **settings).fit(X, y)
        assert fitted.sensitivity_ == alone.sensitivity_


def test_what_is_no_norm_is_refused():
    with pytest.raises(ValueError, match="'norm' parameter"):
        LaplaceMechanism(1.0, norm="l2").guarantee()
    for norm, value in (("l2", 0.01), ("l1", 0.2)):
        with pytest.raises(ValueError, match="'l2_value' parameter"):
            KnownSensitivity(0.1, norm, 100, l2_value=value)
