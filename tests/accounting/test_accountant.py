"""One ledger, whoever spends from it: clones, copies, pickles, threads, processes, forks."""

import copy
import math
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from fractions import Fraction

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sklearn.base import clone
from sklearn.linear_model import Ridge

from skdp import (
    BudgetExceededError,
    LaplaceMechanism,
    LedgerError,
    PrivacyGuarantee,
    Target,
    release,
)
from skdp.accounting import PrivacyAccountant, default_accountant

ONE = PrivacyGuarantee(epsilon=1.0)
TENTH = PrivacyGuarantee(epsilon=0.1)
KNOWN = {"mechanism": LaplaceMechanism(0.1), "sensitivity": 1 / 9}
# from Python 3.12 on, where there are threads
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the tests fork on purpose


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
    with pytest.raises(BudgetExceededError, match=r"epsilon=2\).*Left is epsilon=1 ") as e:
        accountant.spend(asked)
    assert (e.value.spent.epsilon, e.value.asked, e.value.left) == (2.0, asked, 1.0)
    again = pickle.loads(pickle.dumps(e.value))
    assert (str(again), again.left, again.asked) == (str(e.value), 1.0, asked)
    with pytest.raises(TypeError, match="must be a PrivacyGuarantee"):
        accountant.spend((1.0, 0.0))
    accountant.spend(ONE)
    assert accountant.remaining() == 0
    assert [row["label"] for row in accountant.rows()] == ["a mean", None]
    tenths = PrivacyAccountant(":memory:", epsilon=1.0)
    assert tenths.remaining(10) == 0.1
    assert spend_often(tenths, 20) == 10
    assert tenths.total().epsilon == 1.0


@pytest.mark.loop("n", [1, 3, 7, 100])
@pytest.mark.loop("slack", [0.0, 1e-6, 0.1])
@pytest.mark.loop("epsilon", [0.7, 3.3e-10])
def test_what_remains_may_be_spent(n, slack, epsilon):
    accountant = PrivacyAccountant(":memory:", epsilon=epsilon, delta=0.1, slack=slack)
    accountant.spend(PrivacyGuarantee(epsilon=0.0123 * epsilon))
    left = accountant.remaining(n)
    assert spend_often(accountant, n, PrivacyGuarantee(epsilon=left)) == n
    assert spend_often(accountant, 1, PrivacyGuarantee(epsilon=left * 1e-3)) == 0


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
    [{"epsilon": 0.0}, {"epsilon": math.nan}]
    + [
        {"epsilon": 1.0} | other
        for other in (
            *({"delta": 1.1}, {"delta": -0.1}, {"gamma": 2.0}),
            *({"delta": 1e-5, "slack": 1e-4}, {"delta": 1.0, "slack": 1.0}),
        )
    ],
)
def test_limits_out_of_range(limits):
    with pytest.raises(ValueError, match="parameter of PrivacyAccountant must be"):
        PrivacyAccountant(":memory:", **limits)


def test_copies_and_pickles_share_the_ledger(path, monkeypatch):
    for where in (":memory:", path):
        accountant = PrivacyAccountant(where, epsilon=3.0)
        copies = [copy.copy(accountant), copy.deepcopy(accountant), clone(accountant)]
        assert all(each is accountant for each in copies)
        assert clone(Ridge(alpha=accountant)).alpha is accountant
    data = pickle.dumps(accountant)
    monkeypatch.chdir("/")
    again = pickle.loads(data)
    again.spend(PrivacyGuarantee(epsilon=2.0))
    assert pickle.loads(data).remaining() == 1.0
    assert spend_often(accountant, 5, ONE) == 1
    assert again.remaining() == 0


@forks
@pytest.mark.parametrize("backend", ["multiprocessing", "threading"])
def test_workers_of_joblib_share_the_ledger(path, backend):
    accountant = PrivacyAccountant(path, epsilon=1.0)
    run = joblib.Parallel(n_jobs=2, backend=backend)
    admitted = run(joblib.delayed(spend_often)(accountant, 8) for _ in range(3))
    assert sum(admitted) == accountant.total().n_releases == 10


def release_mean(accountant=None):
    release(np.mean, np.ones(9), accountant=accountant, **KNOWN)


def count_default():
    default_accountant().spend(ONE)


def count_in_memory():
    """As where a module that each worker imports makes the ledger."""
    PrivacyAccountant(":memory:", epsilon=9.0).spend(ONE)


@pytest.mark.parametrize("method", ["spawn", pytest.param("fork", marks=forks)])
def test_a_worker_process_counts_in_a_file_or_refuses(path, method):
    """It would count in its own memory: for a block, and for no budget."""
    ledger, in_memory = (PrivacyAccountant(each, epsilon=9.0) for each in (path, ":memory:"))
    default_accountant()
    context = multiprocessing.get_context(method)
    with ledger.as_default("Monday") as monday, ProcessPoolExecutor(1, mp_context=context) as pool:
        for task in (release_mean, count_default):
            with pytest.raises(LedgerError, match=r"worker process.* accountant=Privacy"):
                pool.submit(task).result()
        pool.submit(release_mean, monday).result()
        pool.submit(release_mean, ledger).result()
        with pytest.raises(LedgerError, match="belongs to one process"):
            pool.submit(count_in_memory).result()
        with pytest.raises(LedgerError, match=r"belongs to one process.* 'accountant'"):
            pool.submit(release_mean, in_memory).result()
    assert [row["label"] for row in ledger.rows()] == ["Monday: numpy.mean", "numpy.mean"]
    assert default_accountant().total().n_releases == 0


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


def in_thread(function, *args):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args).result()


def test_blocks_nest_and_reach_threads_and_are_of_one_ledger():
    ledger, other = (PrivacyAccountant(":memory:", epsilon=3.0) for _ in range(2))
    with ledger.as_default():
        assert in_thread(default_accountant) is default_accountant() is ledger
        for attempt in (other.as_default().__enter__, in_thread):
            arguments = (other.as_default().__enter__,) * (attempt is in_thread)
            with pytest.raises(LedgerError, match="Give each release its accountant"):
                attempt(*arguments)
        release_mean(other)
        with ledger.as_default("noon"):
            in_thread(release_mean)
        assert default_accountant() is ledger
    assert default_accountant() is not ledger
    assert [row["label"] for row in ledger.rows()] == ["noon: numpy.mean"]
    assert other.total().n_releases == 1


SLACK = {"delta": 1e-6, "slack": 5e-7}
NUMBERS = st.floats(1e-12, 0.9) | st.sampled_from([0.1, 1 / 3, 0.2, 1e-5])


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=12))
def test_sums_are_of_the_decimals_typed_and_rounded_up_once(spends):
    ledger, share = PrivacyAccountant(":memory:", epsilon=math.inf, delta=1.0), 1 / 12
    for epsilon, delta, gamma in spends:
        ledger.spend(PrivacyGuarantee(epsilon, delta * share, gamma * share))
    total = ledger.total()
    rows = [(epsilon, delta * share, gamma * share) for epsilon, delta, gamma in spends]
    sums = [sum(map(typed, each)) for each in zip(*rows, strict=True)]
    for found, truth in zip((total.epsilon, total.delta, total.gamma), sums, strict=True):
        assert typed(math.nextafter(found, 0)) < truth <= typed(found)


@given(NUMBERS, st.integers(1, 50))
def test_what_remains_is_rounded_down(epsilon, n):
    ledger = PrivacyAccountant(":memory:", epsilon=1.0)
    ledger.spend(PrivacyGuarantee(epsilon))
    left, truth = ledger.remaining(n), (1 - typed(epsilon)) / n
    assert typed(left) <= truth < typed(math.nextafter(left, 1))


def typed(number):
    return Fraction(repr(number))


VOID = {
    "gamma": PrivacyGuarantee(0.1, gamma=0.5),
    "delta": PrivacyGuarantee(0.1, delta=1 - 2**-30),
    "delta=1 and gamma": PrivacyGuarantee(0.1, gamma=0.5, delta=1 - 2**-30),
}


@pytest.mark.parametrize("which", VOID)
def test_a_promise_that_becomes_void_in_sum_is_said_before_it_is_paid_for(path, which):
    ledger = PrivacyAccountant(path, epsilon=9.0, delta=1.0)
    ledger.spend(VOID[which])
    with pytest.raises(UserWarning, match=f"comes to {which}=1: together"):  # here an error
        ledger.spend(VOID[which])
    assert ledger.total().n_releases == 1
    with pytest.warns(UserWarning, match="promise nothing") as record:
        ledger.spend(VOID[which])
    assert record[0].filename == __file__
    ledger.spend(VOID[which])  # said once


@pytest.mark.loop(
    ("limits", "spent", "left", "asked"),
    [
        ({"gamma": 0.15}, (0.25, 0, 0.1), "; gamma=0.05", (0.1, 0, 0.1)),
        ({"gamma": 0.15}, (0.25, 0, 0.15), "; no gamma: only what is known", (9.0, 0, 0.1)),
        ({"gamma": 0.15}, (0.25, 0, 0.15 - 1e-12), "; no gamma", (0.1, 0, 0.1)),
        ({"gamma": 0.15}, (1.0, 0, 0.1), "nothing", (0.1, 0, 0)),
        ({"delta": 1e-6}, (0.1, 1e-6, 0), "; no delta", (9.0, 0, 0)),
        (SLACK, (0.1, 4e-7, 0), "; delta=1e-07", (0.1, 2e-7, 0)),
    ],
)
def test_the_text_and_a_refusal_name_what_is_left(limits, spent, left, asked):
    ledger = PrivacyAccountant(":memory:", epsilon=1.0, **limits)
    ledger.spend(PrivacyGuarantee(*spent))
    assert left in str(ledger).splitlines()[-1]
    with pytest.raises(BudgetExceededError, match=f"Left is .*{left}"):
        ledger.spend(PrivacyGuarantee(*asked))
    assert ledger.total().n_releases == 1


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
    )
    def spend(self, epsilon, delta, gamma, confidence):
        guarantee = PrivacyGuarantee(
            epsilon=epsilon, delta=delta, gamma=gamma, confidence=confidence if gamma else None
        )
        n_rows = len(self.accountant.rows())
        refused = None
        try:
            self.accountant.spend(guarantee)
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
        default_accountant().spend(ONE, label="coef_ of Ridge(alpha=1)")
        with ledger.as_default("noon"):
            release_mean()
            release_mean(monday)
            release_mean(ledger)
        default_accountant().spend(ONE)
    assert [row["label"] for row in ledger.rows()] == [
        *("Monday: Ridge: coef_", "noon: numpy.mean", "Monday: numpy.mean"),
        *("numpy.mean", "Monday"),
    ]
    for label in (1, "a\nb", "\x1b[2J", "\ud800", "a" * 81):
        with pytest.raises(ValueError, match="'label'"):
            ledger.as_default(label=label).__enter__()


def test_one_accountant_pays_for_a_release_that_outlives_its_block(path):
    """It is asked for once: a block that ends while a function is tried pays all the same."""
    ledger = PrivacyAccountant(path, epsilon=1.0)
    block = ledger.as_default()

    class Leaving(Target):
        description, __skdp_key__, n_calls = "leaving", "leaving-v1", 0

        def __call__(self, X, *, seed):
            if not Leaving.n_calls:
                block.__exit__()
            Leaving.n_calls += 1
            return np.mean(X)

    block.__enter__()
    release(Leaving(), np.ones(9), **KNOWN)
    assert Leaving.n_calls > 1
    assert len(ledger.rows()) == 1


def test_a_block_is_no_decorator():
    """The body of a coroutine or a generator would run after it."""
    assert not callable(PrivacyAccountant(":memory:", epsilon=1.0).as_default())
