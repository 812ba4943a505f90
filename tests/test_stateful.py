"""Any calls in any order: the ledger is the sum of the releases, and a failure changes nothing."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skdp import (
    BudgetExceededError,
    LaplaceMechanism,
    PrivateEstimator,
    PrivateEvaluationError,
    plan_release,
)
from skdp.accounting import PrivacyAccountant
from tests.helpers import fitted_state

X = np.arange(12.0).reshape(6, 2)
Y = X[:, 0] % 3
LIMIT = 6.0
EPSILONS = st.sampled_from([0.25, 0.5, 2.0])  # whose sums are exact


def mean(X):
    """Fail on some private data, which public records do not tell."""
    if X.max() > 100:
        raise ValueError("too large")
    return X.mean(axis=0)


BAD = {"text": (np.full((6, 2), "a"), Y), "columns": (X[:, 0], Y), "responses": (X, Y[:5])}


class Releases(RuleBasedStateMachine):
    """Two estimators and a plan spend from one ledger."""

    @initialize(epsilon=EPSILONS)
    def begin(self, epsilon):
        self.accountant = PrivacyAccountant(":memory:", epsilon=LIMIT)
        self.spent = []
        self.models = [self.new(epsilon), self.new(epsilon)]
        self.is_fitted = [False, False]
        self.plan = self.planned = None

    def new(self, epsilon):
        mechanism = LaplaceMechanism(epsilon)
        return PrivateEstimator(
            Ridge(), mechanism=mechanism, sensitivity=0.1, accountant=self.accountant
        )

    def paid(self, epsilon, call):
        """Call what pays, and return whether the budget allowed it."""
        left = self.accountant.remaining()
        try:
            call()
        except BudgetExceededError:
            assert left < epsilon
            return False
        finally:
            if left >= epsilon:
                self.spent.append(epsilon)
        return True

    @rule(which=st.integers(0, 1))
    def fit(self, which):
        model, before = self.models[which], fitted_state(self.models[which])
        if self.paid(model.mechanism.epsilon, lambda: model.fit(X, Y)):
            self.is_fitted[which] = True
            assert model.guarantee_.epsilon == model.mechanism.epsilon
            assert model.budget_ == self.accountant.total()
        else:
            assert fitted_state(model) == before

    @rule(which=st.integers(0, 1), name=st.sampled_from(sorted(BAD)))
    def fit_to_what_is_unfit(self, which, name):
        model, before = self.models[which], fitted_state(self.models[which])
        with pytest.raises((ValueError, TypeError, BudgetExceededError)) as refused:
            model.fit(*BAD[name])
        if refused.type is BudgetExceededError:  # which is seen first
            assert self.accountant.remaining() < model.mechanism.epsilon
        assert fitted_state(model) == before

    @rule(which=st.integers(0, 1), epsilon=EPSILONS)
    def change_a_parameter(self, which, epsilon):
        before = fitted_state(self.models[which])
        self.models[which].set_params(mechanism__epsilon=epsilon)
        assert fitted_state(self.models[which]) == before

    @rule(which=st.integers(0, 1), how=st.sampled_from([clone, copy.copy, copy.deepcopy]))
    def copy_a_model(self, which, how):
        self.models[1 - which] = how(self.models[which])
        self.is_fitted[1 - which] = self.is_fitted[which] and how is not clone

    @rule(which=st.integers(0, 1))
    def store_the_estimator(self, which):
        if self.is_fitted[which]:
            released = self.models[which].estimator_
            stored = pickle.loads(pickle.dumps(released))
            np.testing.assert_array_equal(stored.predict(X), released.predict(X))

    @rule(epsilon=EPSILONS)
    def make_a_plan(self, epsilon):
        self.planned = epsilon
        self.plan = plan_release(
            mean, n_samples=6, like=X, mechanism=LaplaceMechanism(epsilon), sensitivity=1.0
        )

    @rule(n_times=st.integers(1, 2))
    def execute_the_plan(self, n_times):
        """Twice spends twice."""
        for _ in range(n_times if self.plan else 0):
            self.paid(self.planned, lambda: self.plan.execute(X, accountant=self.accountant))

    @rule()
    def execute_the_plan_in_vain(self):
        """A refusal costs nothing, a failure on the private data what it would have cost."""
        if self.plan is not None:
            with pytest.raises(ValueError, match="6 records"):
                self.plan.execute(X[:5], accountant=self.accountant)
            self.paid(self.planned, self.fail_on_private_data)

    def fail_on_private_data(self):
        with pytest.raises(PrivateEvaluationError):
            self.plan.execute(1e3 * X, accountant=self.accountant)

    @rule(epsilon=EPSILONS, n_times=st.integers(1, 4))
    def rehearse(self, epsilon, n_times):
        guarantee = LaplaceMechanism(epsilon).guarantee()
        allowed = sum(self.spent) + n_times * epsilon <= LIMIT
        try:
            self.accountant.rehearse(*[{"guarantee": guarantee}] * n_times)
            assert allowed
        except BudgetExceededError:
            assert not allowed

    @invariant()
    def the_ledger_is_the_sum_of_the_releases(self):
        total = self.accountant.total()
        assert total.epsilon == sum(self.spent) <= LIMIT
        assert total.n_releases == len(self.spent)
        assert [row["epsilon"] for row in self.accountant.rows()] == self.spent
        assert self.accountant.remaining() == LIMIT - sum(self.spent)

    @invariant()
    def a_guarantee_comes_with_a_fit(self):
        for model, is_fitted in zip(self.models, self.is_fitted, strict=True):
            assert hasattr(model, "guarantee_") == hasattr(model, "estimator_") == is_fitted
            assert model.__sklearn_is_fitted__() == is_fitted


TestReleases = Releases.TestCase
TestReleases.settings = settings(max_examples=8, stateful_step_count=12, deadline=None)
