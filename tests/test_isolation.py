"""Noise is drawn anew wherever it is drawn: no state that can be set or copied decides it."""

import math
import multiprocessing
import random
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.preprocessing import StandardScaler

from skdp import (
    ExponentialMechanism,
    GaussianMechanism,
    L2LaplaceMechanism,
    LaplaceMechanism,
    SensitivitySampler,
    UniformOracle,
    plan_release,
)
from skdp.accounting import PrivacyAccountant
from tests import helpers
from tests.helpers import private

X = np.random.default_rng(0).uniform(size=(20, 2))
# from Python 3.12 on, where there are threads
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the tests fork on purpose


def means(X):
    return X.mean(axis=0)


means.__skdp_key__ = "means-v1"


def sampled():
    return helpers.sampler(UniformOracle([(0, 1)] * 2), n_pairs=None)


def plans():
    additive = LaplaceMechanism(1.0), GaussianMechanism(1.0, 1e-5), L2LaplaceMechanism(1.0)
    options = {"n_samples": 20, "sensitivity": sampled()}
    return [plan_release(means, mechanism=each, **options) for each in additive]


def executed(plan):
    """Release after whatever can be seeded was."""
    np.random.seed(0)  # noqa: NPY002 - the global generator is what the test is about
    random.seed(0)
    apart = PrivacyAccountant(":memory:", epsilon=math.inf, delta=1.0)  # workers share none
    return plan.execute(X, accountant=apart).value.tolist()


def test_neither_seeds_nor_samplers_decide_the_noise():
    """A choice is one of twenty equal scores, 30 times: all alike with probability 20^-29."""
    for plan in plans():
        values = [executed(plan) for _ in range(3)]
        assert len({number for value in values for number in value}) == 6
    mechanism = ExponentialMechanism(1.0)
    random.seed(0)
    assert len({mechanism.release(np.zeros(20), 1.0) for _ in range(30)}) > 1


def test_the_global_generators_are_as_before():
    """Nothing is drawn from them, neither for pairs nor for noise."""

    def states():
        numpy_state = np.random.get_state(legacy=False)  # noqa: NPY002 - it is looked at only
        return repr(numpy_state), random.getstate()

    before = states()
    private(StandardScaler(), sensitivity=sampled(), random_state=None).fit(X)
    assert states() == before


def test_one_integer_for_sampler_and_noise_gives_two_streams():
    """The noise of seed s and the draws of seed s are no more alike than those of other seeds."""
    seen = []

    def oracle(n_samples, rng):
        seen.append(rng.bit_generator.state["state"]["state"])
        return rng.uniform(size=(n_samples, 2))

    SensitivitySampler(oracle, gamma=0.2, random_state=7).sample(means, 20, "l1")
    states = np.random.default_rng(7).bit_generator.state["state"]["state"]
    assert len(seen) > 50
    assert states not in seen


@forks
@pytest.mark.parametrize("method", ["fork", pytest.param("loky", marks=pytest.mark.slow)])
def test_processes_with_the_same_state_draw_different_noise(method):
    """Each gets the same plan, and what a fork copies; loky starts new ones, as spawn does."""
    plan = plans()[0]
    executed(plan)
    if method == "loky":
        values = Parallel(n_jobs=2)(delayed(executed)(plan) for _ in range(4))
    else:
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            values = list(pool.map(executed, [plan] * 4))
    assert len({number for value in values for number in value}) == 8
