"""One ledger, whoever spends from it: clones, copies, pickles, threads, processes, forks."""

import contextvars
import copy
import math
import multiprocessing
import os
import pickle
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skdp import BudgetExceededError, LaplaceMechanism, LedgerError, PrivacyGuarantee, release
from skdp.accounting import PrivacyAccountant, default_accountant, in_force, parts

ONE = PrivacyGuarantee(epsilon=1.0)
TENTH = PrivacyGuarantee(epsilon=0.1)
KNOWN = {"mechanism": LaplaceMechanism(0.1), "sensitivity": 1 / 9}
# from Python 3.12 on, where there are threads
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


def spend_often(accountant, n, guarantee=TENTH):
    """Return how many of the spends were admitted."""
    n_admitted = 0
    for _ in range(n):
        try:
            accountant.spend(guarantee)
            n_admitted += 1
        except BudgetExceededError:
            pass
    return n_admitted


def open_and_spend(path, epsilon, n):
    return spend_often(PrivacyAccountant(path, epsilon=epsilon), n)


def test_a_limit_is_kept():
    accountant = PrivacyAccountant(":memory:", epsilon=3.0)
    accountant.spend(PrivacyGuarantee(epsilon=2.0), label="a mean")
    asked = PrivacyGuarantee(epsilon=2.0)
    with pytest.raises(BudgetExceededError, match=r"spent is \(epsilon=2\).*an epsilon of 1:") as e:
        accountant.spend(asked)
    assert (e.value.spent.epsilon, e.value.asked, e.value.left) == (2.0, asked, 1.0)
    again = pickle.loads(pickle.dumps(e.value))
    assert (str(again), again.left, again.asked) == (str(e.value), 1.0, asked)
    accountant.spend(ONE)
    assert accountant.remaining() == 0
    assert [row["label"] for row in accountant.rows()] == ["a mean", None]


def test_what_remains_is_read_as_the_decimal_typed():
    accountant = PrivacyAccountant(":memory:", epsilon=1.0)
    assert accountant.remaining(10) == 0.1
    assert spend_often(accountant, 20) == 10
    assert accountant.total().epsilon == 1.0
    thirds = PrivacyAccountant(":memory:", epsilon=1.0)
    assert spend_often(thirds, 9, PrivacyGuarantee(epsilon=thirds.remaining(3))) == 3


@pytest.mark.parametrize("n_releases", [3, 7, 28, 49])
def test_what_remains_may_be_spent_and_leaves_nothing_but_rounding(n_releases):
    accountant = PrivacyAccountant(":memory:", epsilon=1.0)
    left = PrivacyGuarantee(epsilon=accountant.remaining(n_releases))
    assert spend_often(accountant, n_releases, left) == n_releases
    assert 1 - 1e-9 < accountant.total().epsilon <= 1
    assert accountant.remaining() == 0
    assert str(accountant).endswith("left: nothing")


@pytest.mark.loop("n", [1, 3, 7, 100])
@pytest.mark.loop("slack", [0.0, 1e-6, 0.1])
@pytest.mark.loop("epsilon", [0.7, 3.3e-10])
def test_what_remains_may_be_spent(n, slack, epsilon):
    accountant = PrivacyAccountant(":memory:", epsilon=epsilon, delta=0.1, slack=slack)
    accountant.spend(PrivacyGuarantee(epsilon=0.0123 * epsilon))
    left = accountant.remaining(n)
    assert spend_often(accountant, n, PrivacyGuarantee(epsilon=left)) == n
    assert spend_often(accountant, 1, PrivacyGuarantee(epsilon=left * 1e-3)) == 0


@pytest.mark.parametrize(
    "numbers",
    [{"epsilon": 0.0}, {"epsilon": -1.0}, {"epsilon": math.nan}, {"epsilon": 1, "delta": 1.5}],
)
def test_what_is_no_guarantee_is_no_spend(numbers):
    accountant = PrivacyAccountant(":memory:", epsilon=math.inf, delta=1.0)
    with pytest.raises(ValueError, match="PrivacyGuarantee must"):
        accountant.spend(PrivacyGuarantee(**numbers))
    with pytest.raises(TypeError, match="must be a PrivacyGuarantee"):
        accountant.spend((1.0, 0.0))
    assert accountant.total().n_releases == 0


def test_an_infinite_epsilon_needs_an_infinite_limit():
    endless = PrivacyGuarantee(epsilon=math.inf)
    unlimited = PrivacyAccountant(":memory:", epsilon=math.inf)
    unlimited.spend(endless)
    assert unlimited.total().epsilon == unlimited.total(fixed=True).epsilon == math.inf
    assert unlimited.remaining() == math.inf
    for slack in (0.0, 1e-6):
        with pytest.raises(BudgetExceededError):
            PrivacyAccountant(":memory:", epsilon=1e9, delta=1e-6, slack=slack).spend(endless)


@pytest.mark.loop(
    "limits",
    [
        {"epsilon": 0.0},
        {"epsilon": math.nan},
        {"epsilon": 1.0, "delta": 1.1},
        {"epsilon": 1.0, "delta": -0.1},
        {"epsilon": 1.0, "gamma": 2.0},
        {"epsilon": 1.0, "delta": 1e-5, "slack": 1e-4},
    ],
)
def test_limits_out_of_range(limits):
    with pytest.raises(ValueError, match="parameter of PrivacyAccountant must be"):
        PrivacyAccountant(":memory:", **limits)


def test_copies_are_the_same_ledger(path):
    for where in (path, ":memory:"):
        accountant = PrivacyAccountant(where, epsilon=3.0)
        copies = [copy.copy(accountant), copy.deepcopy(accountant), clone(accountant)]
        assert all(each is accountant for each in copies)
        assert clone(Ridge(alpha=accountant)).alpha is accountant
    with pytest.raises(TypeError, match="path of a file"):
        pickle.dumps(accountant)


def test_pickles_share_the_ledger(path, monkeypatch):
    accountant = PrivacyAccountant(path, epsilon=3.0)
    data = pickle.dumps(accountant)
    monkeypatch.chdir("/")
    again = pickle.loads(data)
    again.spend(PrivacyGuarantee(epsilon=2.0))
    assert pickle.loads(data) is again
    assert spend_often(accountant, 5, ONE) == 1
    assert again.remaining() == 0


@pytest.mark.parametrize("backend", [pytest.param("loky", marks=pytest.mark.slow), "threading"])
def test_workers_of_joblib_share_the_ledger(path, backend):
    accountant = PrivacyAccountant(path, epsilon=1.0)
    run = joblib.Parallel(n_jobs=2, backend=backend)
    admitted = run(joblib.delayed(spend_often)(accountant, 8) for _ in range(3))
    assert sum(admitted) == accountant.total().n_releases == 10


def release_mean(accountant=None):
    release(np.mean, np.ones(9), accountant=accountant, **KNOWN)


@pytest.mark.parametrize("method", ["spawn", pytest.param("fork", marks=forks)])
def test_workers_count_where_their_parent_does_at_the_time(tmp_path, method):
    """They were started before, in another block, and serve several."""
    context = multiprocessing.get_context(method)
    one, other = (PrivacyAccountant(tmp_path / name, epsilon=9.0) for name in ("one", "other"))

    def labels():
        return [[row["label"] for row in ledger.rows()] for ledger in (one, other)]

    with ProcessPoolExecutor(1, mp_context=context) as pool:
        with one.as_default("Monday"):
            pool.submit(release_mean).result()
        with other.as_default("Tuesday"):
            pool.submit(release_mean).result()
            with one.as_default():
                pool.submit(release_mean).result()
            pool.submit(release_mean, one).result()
            pool.submit(release_mean).result()
        in_memory = PrivacyAccountant(":memory:", epsilon=9.0)
        with in_memory.as_default(), pytest.raises(LedgerError, match="in memory"):
            pool.submit(release_mean).result()
    mean = "numpy.mean"
    assert labels() == [[f"Monday: {mean}", mean, mean], [f"Tuesday: {mean}"] * 2]


def test_a_worker_is_not_told_which_of_two_accountants_counts(tmp_path):
    ledgers = [PrivacyAccountant(tmp_path / name, epsilon=9.0) for name in ("one", "other")]
    context, other = multiprocessing.get_context("spawn"), ledgers[1].as_default()
    with (
        ThreadPoolExecutor(1) as threads,
        ProcessPoolExecutor(1, mp_context=context) as pool,
        ledgers[0].as_default(),
    ):
        threads.submit(other.__enter__).result()
        with pytest.raises(LedgerError, match="cannot be told"):
            pool.submit(release_mean).result()
        threads.submit(other.__exit__, None, None, None).result()
        pool.submit(release_mean).result()
    assert [ledger.total().n_releases for ledger in ledgers] == [1, 0]


def test_a_block_that_ends_in_another_context_is_over(path):
    """As where an event loop closes a generator: the token is of no use there."""
    block = PrivacyAccountant(path, epsilon=1.0).as_default()
    contextvars.copy_context().run(block.__enter__)
    assert in_force.accountant_in_force() is not None
    with pytest.raises(ValueError, match="Context"):
        block.__exit__(None, None, None)
    assert in_force.accountant_in_force() is None
    assert not Path(in_force._files[0]).exists()


def test_a_worker_reads_the_file_of_its_parent_alone(tmp_path, monkeypatch):
    """The name is free when no block is open, and in a folder of all users anybody may take it."""
    of_parent = tmp_path / "of: a parent"
    monkeypatch.setenv(in_force.VARIABLE, str(of_parent))
    monkeypatch.setattr(in_force, "_files", [])
    monkeypatch.setattr(tempfile, "tempdir", ".")  # and children may work in another folder
    in_force._begin()
    assert in_force._files[0] == os.path.abspath(os.path.basename(in_force._files[0]))
    assert in_force.accountant_in_force() is None
    of_parent.write_bytes(pickle.dumps(PrivacyAccountant(tmp_path / "ledger", epsilon=1.0)))
    assert in_force.accountant_in_force().limits["epsilon"] == 1
    if hasattr(os, "geteuid"):
        monkeypatch.setattr(os, "geteuid", lambda: of_parent.stat().st_uid + 1)
        with pytest.raises(LedgerError, match="is of another user"):
            in_force.accountant_in_force()


def test_a_block_that_no_worker_can_be_told_of_is_refused(path, monkeypatch):
    monkeypatch.setattr(in_force, "_files", [str(path / "nowhere" / "file")])
    with pytest.raises(LedgerError, match="TMPDIR"):
        PrivacyAccountant(path, epsilon=1.0).as_default().__enter__()
    assert default_accountant().limits["epsilon"] == math.inf


def test_who_deletes_what_workers_read_is_told_so(path):
    accountant = PrivacyAccountant(path, epsilon=1.0)
    with accountant.as_default():
        pass
    with pytest.warns(UserWarning, match="may count nowhere"), accountant.as_default():
        Path(in_force._files[0]).unlink()
    with accountant.as_default():
        pass


@forks
def test_a_fork_shares_the_ledger(path):
    accountant = PrivacyAccountant(path, epsilon=1.0)
    accountant.spend(TENTH)
    child = multiprocessing.get_context("fork").Process(target=spend_often, args=(accountant, 4))
    child.start()
    child.join()
    assert child.exitcode == 0
    assert accountant.total().n_releases == 5
    accountant.spend(TENTH)
    assert accountant.total().n_releases == 6


@forks
def test_a_fork_in_the_midst_of_spends(path):
    accountant = PrivacyAccountant(path, epsilon=1e9, timeout=30.0)
    stop = threading.Event()

    def spend():
        while not stop.is_set():
            accountant.spend(TENTH)
            time.sleep(0.001)  # let others in

    thread = threading.Thread(target=spend)
    thread.start()
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=spend_often, args=(accountant, 1)) for _ in range(5)]
    try:
        for child in children:
            child.start()
            child.join(60)
    finally:
        stop.set()
        thread.join()
    assert [child.exitcode for child in children] == [0] * 5


@forks
def test_a_ledger_in_memory_does_not_pass_a_fork():
    accountant = PrivacyAccountant(":memory:", epsilon=1.0)
    default_accountant()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        failure = pool.apply(message_of_spend)
    assert failure is None
    accountant._ledger.is_lost = True  # as in a fork
    with pytest.raises(LedgerError, match="belongs to the process that made it"):
        accountant.spend(TENTH)


def message_of_spend():
    """Spend by default, in a process that was forked off."""
    before = default_accountant().total().n_releases
    default_accountant().spend(TENTH)
    return None if default_accountant().total().n_releases == before + 1 == 1 else before


@forks
@pytest.mark.parametrize(
    ("n_processes", "n_spends", "epsilon"),
    [(3, 50, 10.0), pytest.param(8, 100, 30.0, marks=pytest.mark.slow)],
)
def test_processes_race_for_a_new_ledger(path, n_processes, n_spends, epsilon):
    """No spend is lost and none is above the limit."""
    with multiprocessing.get_context("fork").Pool(n_processes) as pool:
        job = (path, epsilon, n_spends)
        jobs = [pool.apply_async(open_and_spend, job) for _ in range(n_processes)]
        admitted = sum(job.get() for job in jobs)
    total = PrivacyAccountant.open(path).total()
    assert admitted == total.n_releases == 10 * epsilon
    assert total.epsilon == epsilon


def open_new(path):
    return PrivacyAccountant(path, epsilon=1.0).total().n_releases


@pytest.mark.slow
@forks
def test_processes_that_make_a_ledger_at_once_wait_for_each_other(tmp_path):
    """One in a hundred failed when SQLite alone did the waiting."""
    with multiprocessing.get_context("fork").Pool(8) as pool:
        for number in range(50):
            assert pool.map(open_new, [tmp_path / f"{number}.db"] * 8, chunksize=1) == [0] * 8


def test_the_default_counts_without_limits():
    before = default_accountant().total()
    default_accountant().spend(PrivacyGuarantee(epsilon=50.0, delta=0.1))
    after = default_accountant().total()
    assert after.n_releases == before.n_releases + 1
    assert after.epsilon == before.epsilon + 50.0
    assert "no limit" in str(default_accountant())


def test_defaults_nest_and_reach_threads():
    outer, inner = (PrivacyAccountant(":memory:", epsilon=3.0) for _ in range(2))
    found = []
    with outer.as_default():
        with inner.as_default():
            assert default_accountant() is inner
            thread = threading.Thread(target=lambda: found.append(default_accountant()))
            thread.start()
            thread.join()
        assert default_accountant() is outer
        contextvars.Context().run(lambda: found.append(default_accountant()))
    assert found == [inner, outer]
    assert default_accountant() not in (inner, outer)


def test_a_thread_in_whose_place_two_accountants_are():
    """Counting at the wrong one would let the other exceed its limit."""
    one, other = (PrivacyAccountant(":memory:", epsilon=3.0) for _ in range(2))
    context, found = contextvars.Context(), []

    def look():
        try:
            found.append(default_accountant())
        except LedgerError as error:
            found.append("cannot be told" in str(error))

    def enter_other():
        with other.as_default():
            assert default_accountant() is other
            contextvars.Context().run(look)

    with one.as_default():
        contextvars.Context().run(look)
        context.run(enter_other)
        contextvars.Context().run(look)
        with one.as_default():
            contextvars.Context().run(look)
    assert found == [one, True, one, one]


def test_text_and_table():
    accountant = PrivacyAccountant(":memory:", epsilon=3.0, delta=1e-5)
    accountant.spend(PrivacyGuarantee(epsilon=1.0, gamma=0.05), label="<mean>", oracle="Uniform")
    assert str(accountant).splitlines() == [
        "budget: epsilon=3, delta=1e-05",
        "spent: (epsilon=1, gamma=0.05) for 1 release, by basic composition",
        "left: epsilon=2 for one release, 0.2 for each of ten; delta=1e-05",
    ]
    assert "<th>budget</th><td>epsilon=3, delta=1e-05</td>" in accountant._repr_html_()
    spent = PrivacyAccountant(":memory:", epsilon=1.0, gamma=0.15)
    spent.spend(PrivacyGuarantee(epsilon=0.25, gamma=0.1))
    assert str(spent).endswith("each of ten; gamma=0.05")
    spent.spend(PrivacyGuarantee(epsilon=0.25, gamma=0.05 * (1 - 2**-50)))  # as of a search
    assert str(spent).endswith("each of ten; no gamma: only what is known on paper")
    spent.spend(PrivacyGuarantee(epsilon=0.5))
    assert str(spent).splitlines()[2] == "left: nothing"
    with pytest.raises(BudgetExceededError, match="Nothing is left: stop here, or agree on"):
        spent.spend(PrivacyGuarantee(epsilon=0.1))
    frame = accountant.to_frame()
    assert frame.loc[0, ["label", "epsilon", "oracle"]].tolist() == ["<mean>", 1.0, "Uniform"]
    assert repr(accountant) == "PrivacyAccountant(':memory:', epsilon=3, delta=1e-05)"


def test_a_frame_has_labels_that_can_be_read_and_the_rows_all_of_them():
    pytest.importorskip("pandas")
    accountant = PrivacyAccountant(":memory:", epsilon=3.0)
    configured = "Pipeline(steps=[('scaler', StandardScaler()), ('ridge', Ridge())])"
    label = f"{', '.join(f'part_{i}__coef_' for i in range(40))} of {configured}"
    accountant.spend(PrivacyGuarantee(epsilon=1.0), label=label)
    accountant.spend(PrivacyGuarantee(epsilon=0.5))
    short, none = accountant.to_frame()["label"]
    assert short.startswith("Ridge: part_0__coef_, ")
    assert len(short) <= 60
    assert none != none or none is None
    assert [row["label"] for row in accountant.rows()] == [label, None]


class Budget(RuleBasedStateMachine):
    """Any spends in any order: the total never falls, what is left never rises, limits hold."""

    @initialize(slack=st.sampled_from([0.0, 0.01, 0.03]))
    def begin(self, slack):
        self.accountant = PrivacyAccountant(
            ":memory:", epsilon=2.0, delta=0.05, gamma=0.3, slack=slack
        )
        self.before = self.accountant.total(), self.accountant.remaining()

    @rule(
        epsilon=st.sampled_from([1e-3, 0.05, 0.1, 1 / 3, 1.5]),
        delta=st.sampled_from([0.0, 0.0, 1e-3, 0.02]),
        gamma=st.sampled_from([0.0, 0.1]),
        confidence=st.sampled_from([None, 0.99]),
        key=st.sampled_from([None, "a", "b"]),
        part=st.sampled_from(["", "x", "y"]),
    )
    def spend(self, epsilon, delta, gamma, confidence, key, part):
        guarantee = PrivacyGuarantee(
            epsilon=epsilon, delta=delta, gamma=gamma, confidence=confidence if gamma else None
        )
        n_rows = len(self.accountant.rows())
        where = self.accountant.parallel("p", part) if part else nullcontext()
        refused = None
        try:
            with where:
                self.accountant.spend(guarantee, sensitivity_key=key)
        except BudgetExceededError as error:
            refused = error
        assert len(self.accountant.rows()) == n_rows + (refused is None)
        if refused is not None:
            assert refused.spent == self.accountant.total() == self.before[0]

    @rule(n=st.integers(1, 5))
    def spend_what_is_left(self, n):
        left = self.accountant.remaining(n)
        if left > 0:
            assert spend_often(self.accountant, n, PrivacyGuarantee(epsilon=left)) == n

    @rule()
    def fix_all(self):
        fixed = self.accountant.total(fixed=True, delta=0.06)
        assert fixed.epsilon <= self.accountant.total().epsilon

    @invariant()
    def the_total_grows_within_the_limits(self):
        total, left = self.accountant.total(), self.accountant.remaining()
        (before, before_left), self.before = self.before, (total, left)
        assert total.epsilon >= before.epsilon
        assert total.epsilon <= 2.0
        assert total.delta <= 0.05
        assert total.n_releases >= before.n_releases
        assert left <= before_left


TestBudget = Budget.TestCase
TestBudget.settings = settings(max_examples=10, stateful_step_count=12, deadline=None)


def test_a_label_tells_the_releases_of_a_block():
    ledger = PrivacyAccountant(":memory:", epsilon=99.0)
    with ledger.as_default(label="Monday") as monday:
        default_accountant().spend(PrivacyGuarantee(1.0), label="mean")
        with monday.as_default():
            default_accountant().spend(PrivacyGuarantee(1.0), label="coef_ of Ridge(alpha=1)")
    ledger.spend(PrivacyGuarantee(1.0), label="mean")
    assert [row["label"] for row in ledger.rows()] == [
        "Monday: mean",
        "Monday: Ridge: coef_",
        "mean",
    ]
    assert ledger.total().epsilon == monday.total().epsilon == 3.0
    with monday.as_default(), ledger.as_default("noon"):
        release(np.mean, np.ones(9), accountant=ledger, **KNOWN)
        release(np.mean, np.ones(9), accountant=monday, **KNOWN)
        ledger.spend(PrivacyGuarantee(1.0))
        with ledger.as_default():
            default_accountant().spend(PrivacyGuarantee(1.0), label="mean")
    assert [row["label"] for row in ledger.rows()][3:] == [
        "Monday: noon: numpy.mean",
        "Monday: numpy.mean",
        "Monday: noon",
        "Monday: noon: mean",
    ]
    totals = {label: ledger.total(label=label).n_releases for label in ("Monday", "noon", "mean")}
    assert totals == {"Monday": 6, "noon": 3, "mean": 3}
    other = PrivacyAccountant(":memory:", epsilon=9.0)
    with ledger.as_default("Tuesday"), other.as_default("noon"), ledger.as_default("late"):
        default_accountant().spend(PrivacyGuarantee(1.0))
        with other.as_default():
            release(np.mean, np.ones(9), accountant=ledger, **KNOWN)
            release(np.mean, np.ones(9), **KNOWN)
    assert [row["label"] for row in ledger.rows()][-2:] == [
        "Tuesday: late",
        "Tuesday: late: numpy.mean",
    ]
    assert [row["label"] for row in other.rows()] == ["noon: numpy.mean"]
    for label in (1, "a\nb", "\x1b[2J", "\ud800", "a" * 81):
        with pytest.raises(ValueError, match=r"'label' parameter of PrivacyAccountant\.as_default"):
            ledger.as_default(label=label).__enter__()


def test_a_label_goes_with_any_accountant_of_the_ledger(path):
    other, third = PrivacyAccountant(path, epsilon=9.0), PrivacyAccountant(":memory:", epsilon=9.0)
    with PrivacyAccountant(path, epsilon=9.0).as_default("Monday"):
        for each in (other, pickle.loads(pickle.dumps(other)), third):
            release(np.mean, np.ones(9), accountant=each, **KNOWN)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(release, np.mean, np.ones(9), accountant=other, **KNOWN).result()
            content = pool.submit(pickle.dumps, other).result()
        with third.as_default():
            release(np.mean, np.ones(9), accountant=other, **KNOWN)
    came_along = pickle.loads(content)
    release(np.mean, np.ones(9), accountant=came_along, **KNOWN)
    with other.as_default("Thursday"):
        release(np.mean, np.ones(9), accountant=came_along, **KNOWN)
    with came_along.as_default("Friday"):
        release(np.mean, np.ones(9), accountant=other, **KNOWN)
    labels = [row["label"].partition(": ") for row in other.rows()]
    assert [label or name for name, _, label in labels].count("numpy.mean") == 7
    blocks = [name for name, _, label in labels if label]
    assert blocks == ["Monday"] * 5 + ["Thursday", "Friday"]
    assert [row["label"] for row in third.rows()] == ["numpy.mean"]


def test_who_is_named_pays_where_blocks_of_threads_cannot_be_told_apart():
    ledgers = [PrivacyAccountant(":memory:", epsilon=9.0) for _ in range(3)]
    opened, done = threading.Barrier(3), threading.Event()

    def hold(ledger):
        with ledger.as_default("here"):
            opened.wait()
            done.wait()

    with ThreadPoolExecutor(2) as pool:
        held = [pool.submit(hold, ledger) for ledger in ledgers[:2]]
        opened.wait()
        try:
            with pytest.raises(LedgerError, match="cannot be told"):
                release(np.mean, np.ones(9), **KNOWN)
            release(np.mean, np.ones(9), accountant=ledgers[2], **KNOWN)
        finally:
            done.set()
    assert [each.result() for each in held] == [None, None]
    assert [each.total().n_releases for each in ledgers] == [0, 0, 1]


def test_a_refusal_names_each_limit_that_is_too_small():
    ledger = PrivacyAccountant(":memory:", epsilon=2.0, gamma=0.1)
    ledger.spend(PrivacyGuarantee(1.8, gamma=0.07))
    with pytest.raises(BudgetExceededError, match=r"an epsilon of 0\.2\. Gamma would be 0\.14"):
        ledger.spend(PrivacyGuarantee(0.4, gamma=0.07))
    ledger.spend(PrivacyGuarantee(0.1, gamma=0.03))
    with pytest.raises(BudgetExceededError, match=r"an epsilon of 0\.1 and no gamma"):
        ledger.spend(PrivacyGuarantee(1.0))
    ledger = PrivacyAccountant(":memory:", epsilon=2.0)
    with pytest.raises(BudgetExceededError, match="No delta is left: ask for what promises"):
        ledger.spend(PrivacyGuarantee(1.0, delta=1e-6))
    ledger = PrivacyAccountant(":memory:", epsilon=2.0, delta=1e-6, slack=5e-7)
    ledger.spend(PrivacyGuarantee(0.1, delta=4e-7))
    assert str(ledger).endswith("each of ten; delta=1e-07")
    with pytest.raises(BudgetExceededError, match="a delta of 1e-07 beside the slack: ask"):
        ledger.spend(PrivacyGuarantee(0.1, delta=2e-7))
    ledger = PrivacyAccountant(":memory:", epsilon=2.0, delta=1e-6)
    ledger.spend(PrivacyGuarantee(0.1, delta=1e-6))
    assert str(ledger).endswith("each of ten; no delta")
    assert "delta" not in str(PrivacyAccountant(":memory:", epsilon=math.inf, delta=1.0))


def test_a_part_is_not_that_of_whoever_reads_a_generator():
    accountant = PrivacyAccountant(":memory:", epsilon=9.0)

    def by_hospital():
        for hospital in ("north", "south"):
            with accountant.parallel("hospital", hospital):
                accountant.spend(PrivacyGuarantee(epsilon=1.0))
                yield hospital

    class Hospital(ExitStack):
        def __enter__(self):
            self.enter_context(accountant.parallel("hospital", "north"))
            return super().__enter__()

    def by_class():
        with Hospital():
            yield

    for generator in (by_hospital, by_class):
        for _ in generator():
            with pytest.raises(ValueError, match=f"does not run here, {generator.__name__}"):
                accountant.spend(PrivacyGuarantee(epsilon=1.0))
            with pytest.raises(ValueError, match="does not run here"):
                accountant.remaining()
            assert "left: epsilon=" in str(accountant)  # of all records
    assert accountant.total().epsilon == 1.0
    with ExitStack() as stack:
        stack.enter_context(accountant.parallel("hospital", "north"))
        accountant.spend(PrivacyGuarantee(epsilon=1.0))
    accountant.spend(PrivacyGuarantee(epsilon=1.0))
    assert [row["part"] for row in accountant.rows()] == ["north", "south", "north", ""]


def test_a_part_is_not_that_of_a_coroutine_while_another_waits():
    accountant = PrivacyAccountant(":memory:", epsilon=9.0)

    class Pause:
        def __await__(self):
            yield

    async def of_north():
        with accountant.parallel("hospital", "north"):
            await of_all()
            await Pause()

    async def of_all():
        accountant.spend(ONE)

    waits = of_north()
    waits.send(None)
    with pytest.raises(ValueError, match="does not run here, of_north"):
        of_all().send(None)
    waits.close()
    with pytest.raises(StopIteration):
        of_all().send(None)
    assert [row["part"] for row in accountant.rows()] == ["north", ""]


def test_a_part_ends_with_its_block_also_in_a_copied_context():
    """Else a task that is made for one part would count all its releases there."""
    accountant = PrivacyAccountant(":memory:", epsilon=9.0)
    with accountant.parallel("hospital", "north"):
        context = contextvars.copy_context()
        context.run(accountant.spend, ONE)
    context.run(accountant.spend, ONE)

    def of_south():
        with accountant.parallel("hospital", "south"):
            accountant.spend(ONE)

    context.run(of_south)
    assert [row["part"] for row in accountant.rows()] == ["north", "", "south"]


def test_a_part_is_not_that_of_another_thread_with_the_context_of_the_block():
    accountant = PrivacyAccountant(":memory:", epsilon=9.0)
    with accountant.parallel("hospital", "north"), ThreadPoolExecutor(1) as pool:
        pool.submit(contextvars.copy_context().run, accountant.spend, ONE).result()
    assert [row["part"] for row in accountant.rows()] == [""]


def test_a_part_is_that_of_the_generator_that_opened_it_whoever_made_that():
    """As of a task that its maker begins at once, and others go on with."""
    accountant = PrivacyAccountant(":memory:", epsilon=9.0)

    def of_north():
        with accountant.parallel("hospital", "north"):
            yield
            accountant.spend(ONE)
            yield

    def maker():
        made = of_north()
        next(made)
        yield made

    made = next(maker())
    next(made)
    with pytest.raises(ValueError, match="does not run here, of_north"):
        accountant.spend(ONE)
    made.close()
    assert [row["part"] for row in accountant.rows()] == ["north"]


def test_a_block_that_was_interrupted_as_it_began_is_not_open(monkeypatch):
    accountant = PrivacyAccountant(":memory:", epsilon=9.0)
    real = parts._entered

    def interrupted(blocks):
        real.set(blocks)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(parts, "_entered", SimpleNamespace(get=real.get, set=interrupted))
        with pytest.raises(KeyboardInterrupt):
            accountant.parallel("hospital", "north").__enter__()
    accountant.spend(ONE)
    assert [row["part"] for row in accountant.rows()] == [""]


def test_a_block_may_end_in_another_context():
    """As that of a generator which is closed elsewhere."""
    accountant = PrivacyAccountant(":memory:", epsilon=9.0)
    block = accountant.parallel("hospital", "north")
    context = contextvars.copy_context()
    context.run(block.__enter__)
    context.run(accountant.spend, ONE)
    block.__exit__(None, None, None)
    context.run(accountant.spend, ONE)
    assert [row["part"] for row in accountant.rows()] == ["north", ""]


def test_a_block_may_be_of_parts_of_two_ledgers():
    one, other = (PrivacyAccountant(":memory:", epsilon=9.0) for _ in range(2))
    with one.parallel("hospital", "north"), other.parallel("week", "7"):
        one.spend(ONE)
        other.spend(ONE)
        with pytest.raises(ValueError, match="must not be within another"):
            one.parallel("hospital", "south").__enter__()
    other.spend(ONE)
    assert [row["part"] for ledger in (one, other) for row in ledger.rows()] == ["north", "7", ""]


@forks
def test_a_process_that_is_forked_in_a_block_counts_for_all_records(path):
    """It may live for longer than the block, as those of a pool do."""
    accountant = PrivacyAccountant(path, epsilon=9.0)
    with accountant.parallel("hospital", "north"):
        child = multiprocessing.get_context("fork").Process(target=accountant.spend, args=(ONE,))
        child.start()
        child.join(timeout=60)
    assert child.exitcode == 0
    assert [row["part"] for row in accountant.rows()] == [""]
