"""Oracles, targets and disks that misbehave while pairs are sampled: no norm is wrong or lost."""

import gc
import itertools
import signal
import threading
import time
import warnings
import weakref
from contextlib import suppress
from time import sleep

import numpy as np
import pandas as pd
import pytest
import sklearn
from joblib import parallel_config
from sklearn import get_config, set_config
from sklearn.preprocessing import StandardScaler

from skdp import (
    AdditiveTarget,
    LaplaceMechanism,
    PrivateEstimator,
    SensitivitySampler,
    Target,
)
from skdp.sensitivity import execution
from skdp.sensitivity.time_limit import OverdueError, within

N_RECORDS = 8

needs_alarm = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer on Windows")


def normal(n_samples, rng):
    return rng.normal(size=(n_samples, 2))


def sample(target, oracle=normal, **options):
    sampler = SensitivitySampler(oracle, gamma=None, **{"n_pairs": 20, "random_state": 0} | options)
    return sampler.sample(target, N_RECORDS, "l1")


def mean(X):
    return np.asarray(X).mean(axis=0)


mean.__skdp_key__ = "mean-v1"
normal.__skdp_key__ = "normal-v1"


def hang(X):
    """Wait for ever: an alarm is the only way out."""
    threading.Event().wait()


def hang_at_times(catch):
    """Make a target that is late for some pairs, without the clock, and catches what it may."""

    def target(X):
        value = mean(X)
        try:
            if X[0, 0] > 1.5:
                signal.raise_signal(signal.SIGALRM)
                raise AssertionError("went on")
        except catch:
            value = 0 * value
        return value

    return target


@needs_alarm
def test_a_late_pair_counts_as_infinite_and_no_other_changes():
    """Also where the target catches the alarm, and goes on with a value of its own."""
    handler = signal.getsignal(signal.SIGALRM)
    whole = sample(mean, n_pairs=60)
    for catch in (ZeroDivisionError, Exception, BaseException):
        late = sample(hang_at_times(catch), n_pairs=60, timeout=3600)
        (cause,) = late.failures
        assert cause == "took longer than timeout=3600 s"
        is_late = np.isinf(late.norms)
        assert 0 < is_late.sum() == late.failures[cause] < 30
        np.testing.assert_array_equal(late.norms[~is_late], whole.norms[~is_late])
    assert signal.getsignal(signal.SIGALRM) is handler
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


@needs_alarm
def test_an_alarm_that_a_target_catches_comes_again():
    def hang_twice(X):
        with suppress(BaseException):  # as a fit that goes on whatever comes
            hang(X)
        hang(X)

    assert sample(hang_twice, n_pairs=1, timeout=0.05).failures == {
        "took longer than timeout=0.05 s": 1
    }


@needs_alarm
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # from 3.12 on, beside threads
def test_targets_that_hang_end_in_time_here_and_in_workers(monkeypatch):
    monkeypatch.setattr(execution, "STARTUP", 0.0)
    for options in ({}, {"n_jobs": 2}):
        with parallel_config(backend="multiprocessing"):
            estimate = sample(hang, n_pairs=2, timeout=0.05, **options)
        assert estimate.failures == {"took longer than timeout=0.05 s": 2}
        assert estimate.value == np.inf


def test_late_pairs_count_in_threads_too():
    """No alarm reaches a thread: its pairs count when they are over."""
    found = []

    def run():
        found.append(sample(mean, n_pairs=2, timeout=1e-9))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found[0].failures == {"took longer than timeout=1e-09 s": 2}


@needs_alarm
def test_an_alarm_of_somebody_else_comes_all_the_same():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert sample(mean, timeout=3600).failures == {}
        end = time.monotonic() + 60
        while not rung and time.monotonic() < end:
            time.sleep(0.001)  # signal.pause() would wait for one more, if it had just come
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_timeout_is_a_time():
    for timeout in (0, -1, np.nan, np.inf, "a", True, [1]):
        with pytest.raises(ValueError, match="'timeout' parameter of SensitivitySampler"):
            sample(mean, timeout=timeout)


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


def test_rows_of_lists_are_not_shared_either():
    rows = np.random.default_rng(0).normal(size=(N_RECORDS + 1, 2)).tolist()

    def labelled(n_samples, rng):
        return rows[:n_samples], rng.normal(size=n_samples)

    def writing(X, y):
        products = np.asarray(X) * y[:, None]
        for row in X:
            row[0] *= 2
        return products

    norms = sample(AdditiveTarget(writing), labelled).norms
    expected = sample(AdditiveTarget(lambda X, y: np.asarray(X) * y[:, None]), labelled).norms
    np.testing.assert_array_equal(norms, expected)


def test_a_release_is_the_same_with_a_buffer():
    X = np.random.default_rng(1).normal(size=(N_RECORDS, 2))
    models = [
        PrivateEstimator(
            StandardScaler(),
            mechanism=LaplaceMechanism(1.0),
            sensitivity=SensitivitySampler(oracle, gamma=0.2, random_state=0),
            random_state=0,
        ).fit(X)
        for oracle in (normal, Reusing(np.asarray))
    ]
    np.testing.assert_array_equal(*(model.estimator_.mean_ for model in models))


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


def test_no_features_are_kept():
    """Of a batch of pairs only the sums are: no view that holds all features of each."""
    kept, n_alive = [], []

    def phi(X):
        rows = X.copy()
        kept.append(weakref.ref(rows))
        n_alive.append(sum(reference() is not None for reference in kept))
        return rows

    sample(AdditiveTarget(phi))
    assert max(n_alive) <= 3


@pytest.mark.filterwarnings("ignore")  # a cache that cannot be written or read says so
def test_a_cache_that_is_full_or_damaged_changes_no_norm(tmp_path, monkeypatch):
    expected = sample(mean).norms

    def no_room(*arguments, **options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("joblib.numpy_pickle.dump", no_room)
        patch.setattr("joblib._store_backends.numpy_pickle.dump", no_room)
        np.testing.assert_array_equal(sample(mean, memory=tmp_path).norms, expected)
    np.testing.assert_array_equal(sample(mean, memory=tmp_path).norms, expected)
    files = list(tmp_path.rglob("output.pkl"))
    assert len(files) == 20
    for place, file in enumerate(files):
        data = file.read_bytes()
        file.write_bytes(data[: len(data) * place // len(files)])
    np.testing.assert_array_equal(sample(mean, memory=tmp_path).norms, expected)


def test_a_call_that_is_late_leaves_the_settings_of_scikit_learn_as_they_were():
    def late():
        set_config(assume_finite=True)
        sleep(10)

    with pytest.raises(OverdueError):
        within(0.02, late)
    assert not get_config()["assume_finite"]
