"""A choosing mechanism from outside of the package."""

import numpy as np

from skdp import Mechanism, PrivacyGuarantee, SensitivitySampler, UniformOracle, release
from skdp.codes import Geometry


class NoisyMaximum(Mechanism):
    """Report the position of the largest score after Laplace noise."""

    geometry = Geometry(np.inf)
    chooses = True

    def __init__(self, epsilon):
        self.epsilon = epsilon

    def release(self, value, sensitivity, rng):
        seed = int.from_bytes(rng.bytes(8), "little")
        scale = 2 * sensitivity / self.epsilon
        return int(np.argmax(value + np.random.default_rng(seed).laplace(scale=scale, size=3)))

    def guarantee(self, gamma=0.0):
        return PrivacyGuarantee(epsilon=self.epsilon, gamma=gamma)


def counts(X):
    return [np.sum(X < 0.2), np.sum((X >= 0.2) & (X < 0.9)), np.sum(X >= 0.9)]


def test_a_third_party_may_choose():
    X = np.random.default_rng(0).uniform(size=(200, 1))
    sampler = SensitivitySampler(UniformOracle([(0, 1)]), gamma=0.2, random_state=0)
    options = {"mechanism": NoisyMaximum(5.0), "sensitivity": sampler, "random_state": 0}
    released = release(counts, X, responses=["low", "middle", "high"], **options)
    assert released.value == "middle"
    assert (released.guarantee.epsilon, released.guarantee.gamma) == (5.0, 0.2)
