"""What every test runs under: no display, no network, no deadline, one thread."""

import gc
import inspect
import itertools
import os
import secrets
import socket
import types
from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

os.environ.setdefault("MPLBACKEND", "Agg")

# A deadline would measure the load of the machine. The examples of a property are the same in every
# run, so that a change is to blame for what fails; `--hypothesis-profile random` looks at others.
settings.register_profile("skdp", deadline=None, print_blob=True, max_examples=30, derandomize=True)
settings.register_profile("fast", settings.get_profile("skdp"), max_examples=20)
settings.register_profile("random", settings.get_profile("skdp"), derandomize=False)
settings.load_profile("skdp")


def pytest_addoption(parser):
    option = partial(parser.addoption, type=int, default=1, metavar="N")
    option("--every", help="run the first of N cases of each test")
    option("--runs", help="run N times each test that depends on chance")


DRAWN = []
AGAIN = pytest.StashKey[bool]()


def pytest_configure(config):
    """Note each draw from a source of chance: noise, and samplers without a seed."""

    def noted(function):
        def draw(*args):
            DRAWN.append(function)
            return function(*args)

        return draw

    if config.getoption("runs") > 1:
        from skdp.mechanisms.noise import OperatingSystemBytes  # as below

        OperatingSystemBytes.bytes = noted(OperatingSystemBytes.bytes)
        secrets.randbits = noted(secrets.randbits)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Run a test in which chance has a part again and again, with new fixtures."""
    DRAWN.clear()
    done = yield
    if DRAWN and not item.stash.get(AGAIN, False):
        item.stash[AGAIN] = True
        for left in reversed(range(item.config.getoption("runs") - 1)):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=None if left else nextitem)
    return done


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Leave out cases of parametrized tests, but no test, for the daily loop."""
    every, seen = config.getoption("every"), Counter()
    kept, left = [], []
    for item in items:
        name = item.nodeid.partition("[")[0]
        is_slow = item.get_closest_marker("slow") is not None  # whether it runs is said by -m
        (kept if is_slow or seen[name] % every == 0 else left).append(item)
        seen[name] += not is_slow
    items[:] = kept
    config.hook.pytest_deselected(items=left)


def pytest_generate_tests(metafunc):
    """Make one test of ``@pytest.mark.loop(names, cases)``, for cases of a few milliseconds each.

    It is written like ``parametrize``, which costs three milliseconds a case.
    """
    for marker in metafunc.definition.iter_markers("loop"):
        metafunc.parametrize(marker.args[0], list(marker.args[1])[:1], ids=["loop"])


def pytest_pyfunc_call(pyfuncitem):
    """Call a test with all cases of its loops, and note the one in which it fails."""
    loops = [marker.args for marker in pyfuncitem.iter_markers("loop")]
    if not loops:
        return None
    for cases in itertools.product(*(cases for _, cases in loops)):
        arguments = {}
        for (names, _), case in zip(loops, cases, strict=True):
            if not isinstance(case, type(pytest.param())):
                case = pytest.param(case) if isinstance(names, str) else pytest.param(*case)
            names = [names] if isinstance(names, str) else names
            arguments |= zip(names, case.values, strict=True)
        wanted = inspect.signature(pyfuncitem.obj).parameters
        try:
            pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted} | arguments)
        except BaseException as error:
            error.add_note(f"This was the case {arguments}")
            raise
    return True


@pytest.fixture(autouse=True)
def nothing_is_known():
    """Let no test use pairs that another one has evaluated."""
    from skdp.sensitivity.store import STORE  # not above: what is imported here is not covered

    STORE.clear()


@pytest.fixture(autouse=True)
def nothing_is_foretold(request, monkeypatch):
    """Spare plans the simulation of their expected score, but in tests marked `worth`.

    It takes a third of the time of all tests.
    """
    if request.node.get_closest_marker("worth") is None:
        monkeypatch.setattr("skdp.plan.ReleasePlan._simulated", (None, None))


def pytest_collection_finish(session):
    """Spare later garbage collections what imports have made."""
    gc.collect()
    gc.freeze()
    gc.get_freeze_count = lambda: 1  # each private evaluation asks, and to count takes 15 ms


@pytest.fixture(autouse=True, scope="module")
def little_to_collect():
    """Spare them what earlier modules left: each error on private data collects all garbage."""
    gc.collect()
    gc.freeze()


LOCAL_HOSTS = {"localhost", "127.0.0.1", "::1"}


@pytest.fixture(autouse=True, scope="session")
def no_network():
    """Refuse every connection that leaves the machine; workers on this one may talk."""
    connect = socket.socket.connect

    def connect_locally(self, address):
        if isinstance(address, tuple) and address[0] not in LOCAL_HOSTS:
            raise RuntimeError(f"A test tried to reach {address[0]}.")
        return connect(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect_locally)
        yield


@pytest.fixture(scope="session")
def reaches():
    """Walk all references: ``reaches(start, kind)`` lists the objects of a kind that are found."""
    leads_everywhere = (type, types.ModuleType, types.FunctionType, types.FrameType)

    def walk(start, kind):
        stack, seen, found = [start], set(), []
        while stack:
            thing = stack.pop()
            if id(thing) in seen or isinstance(thing, leads_everywhere):
                continue
            seen.add(id(thing))
            if isinstance(thing, kind):
                found.append(thing)
            is_array = isinstance(thing, np.ndarray) and thing.dtype == object
            stack.extend(thing.ravel().tolist() if is_array else gc.get_referents(thing))
        return found

    return walk


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    """Keep to one thread, in processes that a test starts too: fits are tiny, workers many."""
    with pytest.MonkeyPatch.context() as patch, threadpool_limits(limits=1):
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(autouse=True)
def no_budget_of_other_tests():
    """Forget ledgers and releases, or those of other tests would count, and warn."""
    from skdp.accounting.payer import forget_releases  # not above: the main process needs no skdp

    forget_releases()
    yield
    forget_releases()  # for doctests, which have no fixtures


@pytest.fixture(scope="session")
def leak_search():
    """Search an object or bytes: ``leak_search(thing, numbers)`` tells where some of them are."""
    from skdp.audit import find_leaks  # not above: who only hands out tests needs no skdp

    def search(thing, numbers):
        leaks = find_leaks(thing, np.reshape(numbers, (-1, 1)))
        return [leak for leak in leaks if leak.kind == "records"]

    return search
