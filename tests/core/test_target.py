"""Targets: what one need not say, and what is no target."""

import numpy as np
import pytest

from skdp import (
    FunctionTarget,
    LaplaceMechanism,
    PrivateEstimator,
    SensitivitySampler,
    Target,
    UniformOracle,
    plan_release,
    release,
)
from skdp.core.dataset import Dataset, neighboring_pair
from skdp.core.identity import key_of
from skdp.core.target import replaces, values_of
from skdp.functions import AdditiveTarget

X = np.random.default_rng(0).uniform(size=(20, 2))
ORACLE = UniformOracle([(0, 1)] * 2)


class Means(Target):
    """No more than must be said."""

    def __init__(self, shift=0.0):
        self.shift = shift

    def __call__(self, X, *, seed):
        return X.mean(axis=0) + self.shift


class Restored(Means):
    """A target that says all that it may."""

    description = "means that are restored"
    key = "means-v1"
    allow_nan = True

    def restore(self, value):
        return value.tolist()

    def by_name(self, value):
        return {"mean": value}, None


def test_what_a_target_does_not_say():
    target = Means()
    assert target.description == "Means"
    assert not target.allow_nan
    assert target.restore(target) is target
    assert target.by_name(X) == (X, None)
    assert target.output_metric(X) is target.closed_form(X) is None
    value, other = values_of(target, neighboring_pair(Dataset(X), 3), seed=0)
    np.testing.assert_allclose(value, X[:-1].mean(axis=0))
    np.testing.assert_allclose(other - value, (X[-1] - X[-2]) / 19)
    assert not any(replaces(target, name) for name in ("restore", "output_metric"))


@pytest.mark.parametrize("where", ["class", "object"])
def test_what_a_target_says_counts(where):
    target = Restored()
    if where == "object":
        target = Means()
        target.description, target.key = Restored.description, Restored.key
        target.restore, target.by_name = np.ndarray.tolist, lambda value: ({"mean": value}, None)
    assert replaces(target, "restore")
    assert key_of(target) == "means-v1"
    mechanism = LaplaceMechanism(1.0, code=None)
    released = release(target, X, mechanism=mechanism, sensitivity=0.1)
    assert isinstance(released.value, list)
    plan = plan_release(target, n_samples=20, like=X, mechanism=mechanism, sensitivity=0.1)
    assert plan.standard_errors is None
    sampler = SensitivitySampler(ORACLE, gamma=0.2, random_state=0)
    plan = plan_release(target, n_samples=20, mechanism=mechanism, sensitivity=sampler)
    assert list(plan.standard_errors) == ["mean"]
    assert plan.sensitivity.key == "means-v1"
    assert plan.sensitivity.target == "means that are restored"


class OldTarget:
    """What a target was before it had a base class."""

    def __call__(self, X, *, seed=0):
        return X.mean(axis=0)

    def restore(self, value):
        return "restored"


class Described:
    description = "the means"

    def __call__(self, X, *, seed=0):
        return X.mean(axis=0)


@pytest.mark.parametrize(
    "thing", [OldTarget(), OldTarget, Described()], ids=["object", "class", "described"]
)
def test_what_has_the_parts_of_a_target_and_is_none_is_refused(thing):
    """Taken for a function, it would lose them."""
    for take in (
        lambda: release(thing, X, mechanism=LaplaceMechanism(1.0), sensitivity=0.1),
        lambda: SensitivitySampler(ORACLE).sample(thing, 20, "sup"),
        lambda: AdditiveTarget(thing),
    ):
        with pytest.raises(TypeError, match=r"must be a plain function, or inherit from skdp\.Tar"):
            take()


def test_a_target_is_no_function():
    for target in (Means(), FunctionTarget(np.mean)):
        with pytest.raises(TypeError, match="with a 'restore'"):
            FunctionTarget(target)


def test_an_estimator_wants_a_target_with_a_way_back():
    from sklearn.preprocessing import StandardScaler

    for target, message in [
        (Means(), r"has a method restore\(value\) of its own"),
        (FunctionTarget(np.mean), r"has a method restore\(value\) of its own"),
        (OldTarget(), "inherits from skdp.Target and has a method 'restore'"),
    ]:
        model = PrivateEstimator(
            StandardScaler(), mechanism=LaplaceMechanism(1.0), sensitivity=0.1, release=target
        )
        with pytest.raises(TypeError, match=message):
            model.fit(X)


def test_a_function_is_called_by_its_last_name():
    def income(X):
        return np.mean(X)

    assert FunctionTarget(income).description == f"{__name__}.income"
    for script in ("__main__", "__mp_main__"):  # as a spawned process calls it
        income.__module__ = script
        assert FunctionTarget(income).description == "income"
