"""Oracles and targets that misbehave while pairs are sampled: no norm is wrong or lost."""

import gc
import itertools
import warnings
import weakref

import numpy as np
import pandas as pd
import sklearn

from skdp import SensitivitySampler, Target
from skdp.functions import AdditiveTarget

N_RECORDS = 8


def normal(n_samples, rng):
    return rng.normal(size=(n_samples, 2))


def sample(target, oracle=normal, **options):
    sampler = SensitivitySampler(oracle, gamma=None, **{"n_pairs": 20, "random_state": 0} | options)
    return sampler.sample(target, N_RECORDS, "l1")


def mean(X):
    return np.asarray(X).mean(axis=0)


class Reusing:
    """An oracle that hands out one buffer again and again."""

    def __init__(self, kind):
        self.kind, self.buffers = kind, {}

    def __call__(self, n_samples, rng):
        buffer = self.buffers.setdefault(n_samples, self.kind(np.empty((n_samples, 2))))
        buffer[:] = rng.normal(size=buffer.shape)
        return buffer


class Keeping:
    """An oracle whose features are always the same objects, as for labels that are simulated."""

    def __init__(self, kind):
        self.kind, self.kept = kind, {}

    def __call__(self, n_samples, rng):
        first = self.kind(np.random.default_rng(n_samples).normal(size=(n_samples, 2)))
        return self.kept.setdefault(n_samples, first), rng.normal(size=n_samples)


def writing(X, *y):
    rows = np.hstack([np.asarray(X), *(each[:, None] for each in y)])
    X *= 2
    return rows


def reading(X, *y):
    return np.hstack([np.asarray(X), *(each[:, None] for each in y)])


def test_no_two_draws_share_memory():
    """Neither an oracle that uses a buffer again nor a target that writes changes a norm."""
    fresh = {Reusing: normal, Keeping: lambda n, rng: Keeping(np.asarray)(n, rng)}
    for make, phi, kind in itertools.product(fresh, (reading, writing), (np.asarray, pd.DataFrame)):
        for target in (AdditiveTarget(phi), lambda *dataset, phi=phi: phi(*dataset).mean(axis=0)):
            of_fresh = AdditiveTarget(reading) if type(target) is AdditiveTarget else target
            expected = sample(of_fresh, fresh[make], n_pairs=4).norms
            norms = sample(target, make(kind), n_pairs=4).norms
            np.testing.assert_allclose(norms, expected, rtol=1e-12)


def test_pairs_that_fail_leave_the_others_in_their_places():
    """Pairs of one shape are measured together, failed ones and others between them."""

    def moody(X):
        if X[0, 0] > 0.5:
            raise ValueError("large")
        return mean(X) if X[0, 0] < 0.25 else np.append(mean(X), 0.0)

    everything, found = sample(mean, n_pairs=40).norms, sample(moody, n_pairs=40)
    held = np.isfinite(found.norms)
    assert (np.diff(held) != 0).sum() > 5
    np.testing.assert_array_equal(found.norms[held], everything[held])
    assert found.failures.keys() == {"ValueError: large", "the shape of the value changed"}


def test_values_may_be_in_one_buffer():
    """Else both values of a pair would be the second one, and no record would change anything."""
    buffer = np.empty(2)

    def into_buffer(X):
        return X.mean(axis=0, out=buffer)

    class Buffered(Target):
        def __call__(self, X, *, seed):
            return into_buffer(X)

    expected = sample(mean).norms
    for target in (into_buffer, Buffered()):
        np.testing.assert_array_equal(sample(target).norms, expected)


def test_global_state_is_as_before():
    """Whatever a target sets, the next pair and the caller do not see it."""

    def messy(X):
        np.seterr(all="raise")
        warnings.simplefilter("error")
        sklearn.set_config(assume_finite=True, transform_output="pandas")
        return mean(X)

    before = np.geterr(), sklearn.get_config(), warnings.filters.copy()
    np.testing.assert_array_equal(sample(messy).norms, sample(mean).norms)
    assert (np.geterr(), sklearn.get_config(), warnings.filters) == before


def test_no_records_are_kept():
    """Of pairs that are over nothing is left, also where they failed."""

    def remembering(alive, fails):
        def target(X):
            alive.append(weakref.ref(X))
            n_alive.append(sum(reference() is not None for reference in alive))
            if fails:
                raise ValueError
            return mean(X)

        return target

    gc.disable()  # what only it would free is kept for long
    try:
        for fails in (False, True):
            n_alive = []
            sample(remembering([], fails))
            assert max(n_alive) <= 2
    finally:
        gc.enable()
