"""Every way out of the private evaluation, planted and found closed."""

import gc
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import BaggingRegressor
from sklearn.linear_model import LogisticRegression, QuantileRegressor
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import (
    FunctionTarget,
    KnownSensitivity,
    LaplaceMechanism,
    PrivateEstimator,
    PrivateEvaluationError,
    PublicDataOracle,
    SampleAndAggregate,
    SensitivitySampler,
    release,
)
from skdp.estimators.configuration import without_side_effects
from skdp.mechanisms.noise import OperatingSystemBytes

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
X_PUBLIC = RNG.normal(size=(40, 3))
Y, Y_PUBLIC = (np.where(records[:, 0] > 0, 1, 0) for records in (X, X_PUBLIC))
SECRET = "the record of somebody"
HAS_CALLBACKS = hasattr(LogisticRegression, "set_callbacks")  # scikit-learn 1.9


def released(target, mechanism=None, key=None, **options):
    """Evaluate a function on private records only: made-up ones are fewer.

    A function needs a key if another thread changes what it reads, a waiter of an event too.
    """

    def on_private(records):
        return target(records) if len(records) == len(X) else 0.0

    mechanism = LaplaceMechanism(1.0) if mechanism is None else mechanism
    on_private = FunctionTarget(on_private, key=key)
    known = KnownSensitivity(0.1, "l1", len(X), preconditions="whatever")  # without a trial
    return release(on_private, X, mechanism=mechanism, sensitivity=known, **options).value


def private(estimator, **options):
    sampler = SensitivitySampler(
        PublicDataOracle(X_PUBLIC, Y_PUBLIC), gamma=0.4, n_pairs=4, random_state=0
    )
    return PrivateEstimator(
        estimator, mechanism=LaplaceMechanism(1.0), sensitivity=sampler, **options
    )


# What is written


SCRIPT = """
import ctypes, logging, os, subprocess, sys, warnings
import numpy as np
from skdp import LaplaceMechanism, PrivacyGuarantee, release
from skdp.accounting import default_accountant

log = sys.argv[1]
logging.addLevelName(1000, "LOUD")
handler = logging.FileHandler(log)
logging.getLogger("mine").addHandler(handler)
kept, hook = sys.stdout, warnings.showwarning
libc = ctypes.CDLL(None)

def target(X):
    print("secret")
    print("secret", file=sys.stderr)
    sys.__stdout__.write("secret")
    sys.__stderr__.write("secret")
    kept.write("secret")
    libc.printf(b"secret")
    for descriptor in (1, 2):
        os.write(descriptor, b"secret")
    subprocess.run([sys.executable, "-c", "print('secret')"], check=True)
    for level in (logging.DEBUG, logging.CRITICAL, 1000):
        logging.getLogger("mine").log(level, "secret")
    logging.getLogger("new").warning("secret")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("secret")
    return X.mean()

def look(function, *arguments):
    try:
        return function(*arguments)
    except OSError:
        return None

# SQLite, with its first ledger, occupies the descriptors below 3 that it finds closed.
default_accountant().spend(PrivacyGuarantee(epsilon=1.0))

def is_silent(closed):
    for descriptor in closed:
        os.close(descriptor)
    before = [look(os.fstat, descriptor) for descriptor in (0, 1, 2)]
    n_open = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    release(target, np.ones((5, 1)), mechanism=LaplaceMechanism(1.0), sensitivity=1.0)
    assert n_open == (len(os.listdir("/proc/self/fd")) if n_open else 0)
    assert sys.stdout is kept and warnings.showwarning is hook
    for state, descriptor in zip(before, (0, 1, 2)):
        now = look(os.fstat, descriptor)
        assert (state is None) == (now is None), descriptor
        assert state is None or (state.st_dev, state.st_ino) == (now.st_dev, now.st_ino), descriptor

sys.stdout.write("one ")  # in the buffer of Python
libc.printf(b"two ")  # in the buffer of C
is_silent([])
print("three", flush=True)
logging.getLogger("mine").error("logged")
try:
    is_silent([0, 1, 2])
except BaseException as error:
    logging.getLogger("mine").error(error)
logging.getLogger("mine").error("logged")
os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="the script calls the C library of POSIX")
def test_nothing_is_written(tmp_path):
    """By Python, C, child processes and logs; afterwards everything is open or closed as before."""
    log = tmp_path / "log"
    command = [sys.executable, "-c", SCRIPT, str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.split()) == ["one", "three", "two"]
    assert done.stderr == ""
    assert log.read_text() == "logged\nlogged\n"


class Talker(LogisticRegression):
    """An estimator that prints, in ways that no parameter turns off."""

    def fit(self, X, y, sample_weight=None):
        if np.isin(X, globals()["X"]).all():
            print(SECRET)
            logging.getLogger("talker").critical(SECRET)
            os.write(2, SECRET.encode())
        return super().fit(X, y, sample_weight)


def test_fit_prints_and_logs_nothing(capfd, caplog):
    model = private(Talker(), release=["coef_", "intercept_"])
    model.fit(X, Y)
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    Talker().fit(X, Y)
    assert SECRET in capfd.readouterr().out
    assert caplog.records


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(solver="liblinear", verbose=np.int64(1)),
        make_pipeline(StandardScaler(), LogisticRegression(), verbose=np.bool_(True)),
        QuantileRegressor(solver_options={"disp": True}, alpha=0.1),
        NeighborhoodComponentsAnalysis(max_iter=2, verbose=np.int32(1)),
        BaggingRegressor(QuantileRegressor(solver_options={"disp": True}), 2, verbose=1),
    ],
    ids=lambda e: type(e).__name__,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # few iterations
def test_fits_print_nothing(estimator, capfd):
    """Neither the private fit nor the public ones: what prints is switched off in the clone."""
    without_side_effects(estimator).fit(X, Y)
    assert capfd.readouterr() == ("", "")
    sklearn.clone(estimator).fit(X, Y)
    captured = capfd.readouterr()
    assert captured.out + captured.err


class Options(BaseEstimator):
    def __init__(self, options=None, class_weight=None, iprint=1, verbosity=2.0, monitor=None):
        self.options = options
        self.class_weight = class_weight
        self.iprint = iprint
        self.verbosity = verbosity
        self.monitor = monitor

    def fit(self, X, y=None):
        return self


def test_options_are_switched_off_and_nothing_else_is():
    options = {"disp": 1, "callback": print, "inner": {"verbose": True, "tol": 0.1}, 0: "x"}
    weights = {"verbose": 2, "disp": 3}
    given = Options(options, weights, monitor=print)
    quiet = without_side_effects(given)
    expected = {"disp": 0, "callback": None, "inner": {"verbose": False, "tol": 0.1}, 0: "x"}
    assert quiet.options == expected
    assert quiet.options["inner"]["verbose"] is False
    assert (quiet.class_weight, quiet.iprint, quiet.verbosity) == (weights, -1, 0.0)
    assert quiet.monitor is None
    assert without_side_effects(Options(monitor="loss")).monitor == "loss"
    assert given.options is options
    assert options["disp"] == 1


def test_members_may_have_any_name():
    """A member called as a parameter that is switched off stays."""
    members = [("callback", StandardScaler(), [0, 1]), ("memory", "drop", [2])]
    columns = ColumnTransformer(members)
    assert without_side_effects(columns).fit_transform(X).shape == (40, 2)


# Callbacks


class Holder(BaseEstimator):
    """An estimator with others in its parameters where get_params does not look."""

    def __init__(self, members=()):
        self.members = members

    def fit(self, X, y=None):
        self.members_ = sklearn.clone(self.members, safe=False)
        return self


@pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn has no callbacks before 1.9")
@pytest.mark.parametrize(
    "make",
    [
        lambda inner: inner,
        lambda inner: make_pipeline(StandardScaler(), inner),
        lambda inner: make_pipeline(StandardScaler(), inner).set_callbacks(*inner._skl_callbacks),
        lambda inner: Holder([inner]),
        lambda inner: Holder(({"a": inner},)),
    ],
    ids=["alone", "member", "composition", "list", "dict"],
)
def test_callbacks_of_scikit_learn_are_removed_from_clones(make, reaches):
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring="neg_log_loss")
    inner = LogisticRegression(max_iter=3).set_callbacks(monitor)
    given = make(inner)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # three iterations do not converge
        quiet = without_side_effects(given).fit(X, Y)
    assert not reaches(quiet, ScoringMonitor)
    assert reaches(given, ScoringMonitor)


@pytest.mark.skipif(not HAS_CALLBACKS, reason="scikit-learn has no callbacks before 1.9")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # as above
def test_no_exact_score_in_a_callback(reaches):
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring="neg_log_loss")
    estimator = LogisticRegression(max_iter=3).set_callbacks(monitor)
    model = private(estimator).fit(X, Y)
    with pytest.raises(ValueError, match="No logs"):
        monitor.get_logs()
    assert not reaches(model.estimator_, ScoringMonitor)
    assert b"ScoringMonitor" not in pickle.dumps(model.estimator_)
    sklearn.clone(estimator).fit(X, Y)
    assert monitor.get_logs()


# What belongs to the process


def test_no_warning_is_recorded_by_the_caller_nor_shown(monkeypatch):
    called = []
    monkeypatch.setattr(warnings, "showwarning", lambda *args: called.append(args))

    def target(X):
        for rule in ("default", "once", "module"):
            with warnings.catch_warnings():
                warnings.simplefilter(rule)
                warnings.warn(f"{SECRET} {rule}", stacklevel=1)
        return X.mean()

    released(target)
    assert not called
    target(X)
    assert called
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        released(target)
        warnings.warn("public", stacklevel=1)
    assert [str(warning.message) for warning in seen] == ["public"]


def test_global_states_are_as_before():
    """What was set may depend on the data."""

    def target(X):
        sklearn.set_config(assume_finite=True)
        logging.disable(logging.DEBUG)
        np.seterr(all="print")
        return X.mean()

    def states():
        return sklearn.get_config(), logging.root.manager.disable, np.geterr()

    before = states()
    released(target)
    assert states() == before


def test_no_other_process_works_on_private_records():
    """It would print where it was started, and find large arrays in a file."""
    seen = []

    def target(X):
        jobs = (joblib.delayed(os.getpid)() for _ in range(4))
        seen.append(set(joblib.Parallel(n_jobs=2)(jobs)))
        jobs = (joblib.delayed(threading.get_ident)() for _ in range(4))
        seen.append(set(joblib.Parallel(n_jobs=2, prefer="threads")(jobs)))
        return X.mean()

    with joblib.parallel_config(backend="loky", n_jobs=2):
        released(target)
    assert seen == [{os.getpid()}, {threading.get_ident()}]


@pytest.mark.slow
def test_threads_enter_one_by_one():
    """Else one would end the silence of another, or make it last."""
    inside = []

    def target(X):
        inside.append(1)
        assert len(inside) == 1
        print(SECRET)
        inside.pop()
        return X.mean()

    before = sys.stdout, sys.stderr, logging.root.manager.disable, os.fstat(1).st_ino
    with ThreadPoolExecutor(3) as pool:
        assert len(list(pool.map(lambda _: released(target, key="one by one"), range(6)))) == 6
    assert (sys.stdout, sys.stderr, logging.root.manager.disable, os.fstat(1).st_ino) == before


def test_a_release_inside_a_release():
    def target(X):
        return released(np.mean) + X.mean()

    assert np.isfinite(released(target))


# Exceptions and interrupts


class SecretError(Exception):
    """One whose class has been there before the data."""


def named_after_the_data():
    raise type("Error of somebody", (Exception,), {})(SECRET)


def raising(kind):
    def fail():
        raise kind(SECRET)

    return fail


class Acting(LaplaceMechanism):
    """A mechanism that does something when the exact value and the noise are both there."""

    def __init__(self, epsilon, code="auto", act=None):
        super().__init__(epsilon, code=code)
        self.act = act

    def release(self, value, sensitivity, rng=None):
        noisy = super().release(value, sensitivity, rng)
        if np.any(value):  # not in the rehearsal
            self.act()
        return noisy


def watched(act, alive):
    """Make a target that does something between its value and its return."""

    def target(X):
        exact = X.mean(axis=0)
        alive.append(weakref.ref(exact))
        try:
            act()
        except BaseException as error:
            error.circle = [error, exact]
            raise
        return exact

    return target


@pytest.mark.parametrize(
    ("act", "kind", "name"),
    [
        (raising(KeyboardInterrupt), KeyboardInterrupt, ""),
        (raising(SystemExit), SystemExit, "SystemExit"),
        (raising(GeneratorExit), PrivateEvaluationError, "GeneratorExit"),
        (raising(SecretError), PrivateEvaluationError, "SecretError"),
        (raising(ValueError), PrivateEvaluationError, "ValueError"),
        (named_after_the_data, PrivateEvaluationError, "an error"),
    ],
    ids=["interrupt", "exit", "generator", "mine", "builtin", "made"],
)
@pytest.mark.parametrize("place", ["target", "mechanism"])
def test_exceptions_are_new_ones(act, kind, name, place):
    """They say nothing, and no frame, cause or context leads to the exact value."""
    alive = []
    if place == "target":
        target, mechanism = watched(act, alive), LaplaceMechanism(1.0)
    else:
        target, mechanism = watched(int, alive), Acting(1.0, act=act)
    with pytest.raises(kind) as caught:
        released(target, mechanism)
    error = caught.value
    assert type(error) is kind
    assert name in str(error)
    assert "somebody" not in "".join(traceback.format_exception(error))
    assert not vars(error)
    assert error.__cause__ is None
    assert error.__context__ is None
    assert [reference() for reference in alive] == [None]


class Circular(ClassifierMixin, BaseEstimator):
    """An estimator that keeps its records, and an error whose frames lead back to it."""

    alive = []  # noqa: RUF012  # of all clones

    def fit(self, X, y):
        self.classes_, self.records_ = np.unique(y), np.array(X)
        if np.isin(X, globals()["X"]).all():
            self.alive.append(weakref.ref(self.records_))
        try:
            raise ValueError
        except ValueError as error:
            self.error_ = error
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


def test_no_block_stays_in_a_circle():
    """A fit to a block may succeed or fail: neither leaves records until a later collection."""
    oracle = PublicDataOracle(np.tile(X_PUBLIC, (3, 1)), np.tile(Y_PUBLIC, 3))
    blocks = SampleAndAggregate(n_blocks=5, random_state=0, student=LogisticRegression())
    options = {"mechanism": LaplaceMechanism(1.0), "sensitivity": blocks, "prior": oracle}
    gc.disable()
    try:
        PrivateEstimator(Circular(), **options).fit(np.tile(X, (3, 1)), np.tile(Y, 3))
        held = [reference() for reference in Circular.alive]
    finally:
        gc.enable()
    assert held == [None] * 5


needs_signals = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="POSIX signals")


class Handler:
    """Handles a signal of this process for the time of a test."""

    def __init__(self, number, handle):
        self.number, self.handle = number, handle

    def __enter__(self):
        self.before = signal.signal(self.number, self.handle)

    def __exit__(self, *_):
        assert signal.getsignal(self.number) is self.handle
        signal.signal(self.number, self.before)


def reachable_arrays():
    """List the arrays that any object knows; the frames of exceptions are such objects."""
    gc.collect()
    objects = gc.get_objects()
    held = (thing for thing in gc.get_referents(*objects) if isinstance(thing, np.ndarray))
    return list({id(array): array for array in held}.values())


N_VALUES = 500


def long_target(alive):
    """Make a target of many values, of which one repeats so that it can be recognized."""

    def target(X):
        value = np.sort(np.tile(X.mean(axis=0), N_VALUES))
        alive.append(weakref.ref(value))
        np.linalg.svd(np.ones((150, 150)))
        return value

    return target


def assert_gone(alive):
    """No object holds the exact value, nor a copy of it."""
    assert not [value for reference in alive if (value := reference()) is not None]
    mark = np.repeat(X.mean(axis=0).min(), 7).tobytes()
    assert not [array for array in reachable_arrays() if mark in np.ndarray.tobytes(array)]


def test_the_search_finds_what_a_frame_holds():
    """An exception leads to it."""
    alive = []

    def fail():
        exact = long_target(alive)(X)
        return exact[len(exact)]

    with pytest.raises(IndexError) as caught:
        fail()
    assert caught.tb is not None
    with pytest.raises(AssertionError):
        assert_gone([])


SEEDS = [1, 4, 7, 9]


@needs_signals
@pytest.mark.parametrize("seed", SEEDS)
def test_interrupts_between_draws_of_noise_find_no_exact_value(seed, monkeypatch):
    """The first draw seeds the target; those that follow make noise."""
    draws, alive, moment = [], [], None

    def draw(self, length):
        draws.append(length)
        if len(draws) == moment:
            signal.raise_signal(signal.SIGINT)
        return source.bytes(length)  # the number of draws is random

    monkeypatch.setattr(OperatingSystemBytes, "bytes", draw)
    source = np.random.default_rng(seed)
    released(long_target(alive))
    moment = 1 + int(np.random.default_rng(seed).integers(len(draws)))
    draws.clear()
    source = np.random.default_rng(seed)
    with Handler(signal.SIGINT, signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        released(long_target(alive))
    assert len(draws) >= moment
    assert_gone(alive)


@needs_signals
@pytest.mark.parametrize("seed", SEEDS)
def test_interrupts_at_any_moment_find_no_exact_value(seed, monkeypatch):
    """In the fit, between it and the noise, in the noise or after it."""
    alive, handled = [], []
    # one that comes in a destructor cannot be raised, and pytest would keep its frames
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: None)

    def run():
        start = time.perf_counter()
        released(long_target(alive))
        return time.perf_counter() - start

    def interrupt(number, frame):
        handled.append(number)
        raise KeyboardInterrupt(SECRET)

    duration = min(run() for _ in range(2))
    moment = duration * (seed + np.random.default_rng(seed).uniform()) / 10
    error, trace = None, sys.gettrace()
    with Handler(signal.SIGALRM, interrupt):
        try:
            sys.settrace(None)  # an interrupt inside a tracer may leave its lock closed for good
            signal.setitimer(signal.ITIMER_REAL, moment)
            released(long_target(alive))
            while not handled:
                time.sleep(0.01)
        except KeyboardInterrupt as caught:  # seldom it is lost, in a destructor
            error = caught
    sys.settrace(trace)
    assert handled
    assert_gone(alive)
    del error  # it was alive until here, with all that it leads to


def test_an_interrupt_that_a_fit_catches_releases_nothing():
    """Half a fit is another function than the one whose sensitivity was measured."""

    def catches(records):
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            return 0.0
        return records.mean()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            release(catches, np.ones(20), mechanism=LaplaceMechanism(1.0), sensitivity=1.0)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
