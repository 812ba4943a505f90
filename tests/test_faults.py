"""Fits and files are whole or none, and nothing is released without a spend."""

import errno
import inspect
import signal
import sys
import threading
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from skdp import (
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    PrivateSearchCV,
    SensitivityEstimate,
    SensitivitySampler,
    UniformOracle,
)
from skdp.accounting import PrivacyAccountant
from tests.helpers import fitted_state

X = np.random.default_rng(0).uniform(size=(30, 1))
Y = X[:, 0]
N_MOMENTS = 7
FITS = {inspect.unwrap(kind.fit).__code__ for kind in (PrivateEstimator, PrivateSearchCV)}


def sampled():
    return SensitivitySampler(UniformOracle([(0, 1)], y_bounds=(0, 1)), n_pairs=19, random_state=0)


def estimator(accountant, epsilon=1.0, sensitivity=0.1):
    return PrivateEstimator(
        Ridge(), mechanism=LaplaceMechanism(epsilon), sensitivity=sensitivity, accountant=accountant
    )


def search(accountant, epsilon=1.0):
    bound = KnownSensitivity(0.1, "l1", n_samples=15)
    model = estimator(accountant, epsilon, bound)
    return PrivateSearchCV(model, {"estimator__alpha": [1.0, 2.0]}, n_runs=2, y_range=(0, 1))


def interrupted(model, when):
    """Fit, and raise an interrupt when ``when(frame, event)`` says so; return whether it did.

    It is asked at each call of a function, and at each line of `fit`.
    """

    def watch(frame, event, argument):
        if when(frame, event):
            sys.settrace(None)
            raise KeyboardInterrupt
        return watch if frame.f_code in FITS else None

    before = sys.gettrace()
    try:
        sys.settrace(watch)
        model.fit(X, Y)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


class Lines:
    """Counts lines of a method, and says when the last of so many begins."""

    def __init__(self, method, last=None):
        self.method, self.last, self.count = method, last, 0

    def __call__(self, frame, event):
        self.count += event == "line" and frame.f_code is self.method.__code__
        return self.count == self.last


@pytest.mark.slow
@pytest.mark.parametrize("make", [estimator, search])
def test_a_fit_is_whole_or_as_it_was(make):
    """An interrupt at any of its lines leaves no guarantee beside the estimator of another fit."""
    accountant = PrivacyAccountant(":memory:", epsilon=1e6)
    lines = Lines(inspect.unwrap(type(make(None)).fit))
    first, second = make(accountant).fit(X, Y), make(accountant, epsilon=50.0)
    old = fitted_state(first)
    assert not interrupted(second, lines)
    assert lines.count >= N_MOMENTS
    for number in range(
        max(1, lines.count - N_MOMENTS), lines.count + 1, 1 if make is estimator else 3
    ):
        first.set_params(**second.get_params(deep=False))
        assert interrupted(first, Lines(lines.method, number))
        new = fitted_state(first)
        same = {key for key in old if new[key] is old[key]}
        assert same == set(old) or not same & {"estimator_", "guarantee_", "plan_"}
        old = new


def test_an_estimate_is_saved_whole_or_as_it_was(tmp_path, monkeypatch):
    """Nothing is half written where the disk is full: it may have taken hours."""
    saved, other = (sampled().set_params(random_state=i).sample(np.mean, 9, "l1") for i in (0, 1))
    saved.save(tmp_path / "estimate.json")
    write = Path.write_text

    def fill_up(path, content, **options):
        write(path, content[: len(content) // 2], **options)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fill_up)
    with pytest.raises(OSError, match="No space"):
        other.save(tmp_path / "estimate.json")
    assert SensitivityEstimate.load(tmp_path / "estimate.json") == saved
    assert [path.name for path in tmp_path.iterdir()] == ["estimate.json"]


def in_another_thread(call):
    """A lock that this thread still held would not keep itself out."""
    done = []
    thread = threading.Thread(target=lambda: done.append(call()), daemon=True)
    thread.start()
    thread.join(timeout=60)
    assert done
    return done[0]


@pytest.mark.slow
# an interrupt that comes in a destructor cannot be raised
# interrupts end what cleans up, too
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_moment_of_a_fit_loses_nothing(tmp_path):
    """What comes inside the room is tested with it: no tracer sees that."""
    accountant = PrivacyAccountant(tmp_path / "ledger.db", epsilon=1e6)
    n_events, moment = 0, -1

    def count(frame, event):
        nonlocal n_events
        n_events += 1
        return n_events == moment

    make = partial(estimator, accountant, sensitivity=sampled())
    assert not interrupted(make(), count)
    n_all, n_interrupted = n_events, 0
    expected = make().fit(X, Y).sensitivity_
    for each in np.random.default_rng(0).integers(1, n_all // 2, size=N_MOMENTS).tolist():
        n_events, moment, n_before, model = 0, each, len(accountant.rows()), make()
        handlers = signal.getsignal(signal.SIGINT), sys.stdout, sys.stderr
        n_interrupted += interrupted(model, count)
        n_spent = len(accountant.rows()) - n_before
        assert n_spent in (0, 1)
        assert n_spent >= bool(fitted_state(model))
        assert (signal.getsignal(signal.SIGINT), sys.stdout, sys.stderr) == handlers
    assert n_interrupted > N_MOMENTS / 2
    assert in_another_thread(lambda: make().fit(X, Y)).sensitivity_ == expected
