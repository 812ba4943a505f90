"""What goes wrong with files: a clear error, and nothing that was released is forgotten."""

import multiprocessing
import os
import pickle
import shutil
import signal
import sqlite3
import tempfile
import time
from contextlib import closing

import numpy as np
import pytest

from skdp import BudgetExceededError, LaplaceMechanism, LedgerError, PrivacyGuarantee, plan_release
from skdp.accounting import PrivacyAccountant, ledger

ONE = PrivacyGuarantee(epsilon=1.0)
# from Python 3.12 on, where there are threads
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # the tests fork on purpose


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def spent(path):
    """A path where one of three is spent, closed."""
    accountant = PrivacyAccountant(path, epsilon=3.0)
    accountant.spend(ONE)
    accountant._account.ledger._connection.close()
    return path


@pytest.fixture
def before_statements(monkeypatch):
    """What is put in this list is called with each statement before a connection executes it."""
    calls, connect = [], sqlite3.connect

    class Connection(sqlite3.Connection):
        def execute(self, statement, *args):
            for call in calls:
                call(statement)
            return super().execute(statement, *args)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, factory=Connection, **k))
    return calls


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_ledger_that_is_read_is_not_written(spent):
    reader = pickle.loads(pickle.dumps(PrivacyAccountant.open(spent)))
    assert reader.limits == {"epsilon": 3.0, "delta": 0.0, "gamma": None, "slack": 0.0}
    assert reader.remaining() == 2.0
    with pytest.raises(TypeError, match="opened to be read"):
        reader.spend(ONE)
    PrivacyAccountant(spent, epsilon=3.0).spend(ONE)
    assert reader.remaining() == 1.0


def read_without_rights(path, results):
    if os.getuid() == 0:
        os.setuid(65534)
    reader = PrivacyAccountant.open(path)
    for _ in range(2):
        results.send(reader.total().epsilon)
        results.recv()


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="folders have no such rights")
@forks
def test_a_ledger_is_read_where_nothing_may_be_written():
    """SQLite makes a log beside the file that it reads, unless it is told that there is none."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ledger.db")
        PrivacyAccountant(path, epsilon=3.0).spend(ONE)
        results, other = context.Pipe()
        process = context.Process(target=read_without_rights, args=(path, other), daemon=True)
        os.chmod(folder, 0o555)
        process.start()
        other.close()
        assert results.recv() == 1.0
        assert os.listdir(folder) == ["ledger.db"]
        os.chmod(folder, 0o755)  # what comes later is seen
        PrivacyAccountant(path, epsilon=3.0).spend(ONE)
        results.send(None)
        assert results.recv() == 2.0
        results.send(None)
        process.join()


OPEN = PrivacyAccountant.open


def begin(path, **limits):
    return PrivacyAccountant(path, **{"epsilon": 3.0} | limits)


FILES = [  # how a file is made, how it is opened, and a word of the message
    (lambda path: begin(path), lambda path: begin(path, epsilon=4.0), "other limits"),
    (lambda path: begin(path), lambda path: begin(path, delta=1e-9), "other limits"),
    (lambda path: None, OPEN, "no such file"),
    (lambda path: None, lambda path: begin(path / "x.db"), "folder exist"),
    (lambda path: (begin(path), change(path, "PRAGMA user_version = 7")), OPEN, "version 7"),
    (lambda path: (begin(path), change(path, "PRAGMA user_version = 7")), begin, "version 7"),
    (lambda path: change(path, "CREATE TABLE other (x)"), begin, "no ledger of skdp"),
    (lambda path: path.write_text("Dear ledger, " * 1000), begin, "not a database"),
]


@pytest.mark.parametrize(("make", "reopen", "word"), FILES)
def test_what_is_no_such_ledger_is_refused(path, make, reopen, word):
    make(path)
    with pytest.raises(LedgerError, match=word):
        reopen(path)
    assert path.exists() == (
        make(path.with_suffix(".2")) is not None or word == "no ledger of skdp"
    )


FORMATS = {  # the columns of the releases and of the limits, by the version of the file
    3: (
        "id time label epsilon delta gamma relation law parameter assumed seeded",
        "id epsilon delta gamma slack",
    ),
    4: (
        "id time label epsilon delta gamma relation law parameter assumed seeded",
        "id epsilon delta gamma slack unit",
    ),
}


def test_other_columns_are_another_version(spent):
    """If this fails, a file of the last version would be misread: raise VERSION, add its row."""
    with closing(sqlite3.connect(spent)) as file:
        version = file.execute("PRAGMA user_version").fetchone()[0]
        found = [file.execute(f"PRAGMA table_info({table})") for table in ("spends", "ledger")]
        columns = tuple(" ".join(row[1] for row in rows) for rows in found)
    assert version == ledger.VERSION == max(FORMATS)
    assert columns == FORMATS[version]
    assert columns[0] == f"id {' '.join(ledger.COLUMNS)}"


def test_rows_are_neither_changed_nor_deleted(spent):
    for statement in ("DELETE FROM spends", "UPDATE spends SET epsilon = 0", "DELETE FROM ledger"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            change(spent, statement)


@pytest.mark.parametrize("damage", ["cut", "zeros", "limits", "row"])
def test_a_damaged_file(path, damage):
    accountant = PrivacyAccountant(path, epsilon=1000.0)
    for _ in range(40):
        accountant.spend(ONE, label="x" * 500)
    accountant._account.ledger._connection.close()
    if damage == "cut":
        os.truncate(path, path.stat().st_size // 2)
    elif damage == "zeros":
        content = bytearray(path.read_bytes())
        content[3 * 4096 : 5 * 4096] = bytes(2 * 4096)
        path.write_bytes(content)
    elif damage == "limits":
        change(path, "DROP TRIGGER no_DELETE_of_ledger", "DELETE FROM ledger")
    else:
        change(path, "INSERT INTO spends (epsilon) VALUES (NULL)")
    with pytest.raises(LedgerError):
        PrivacyAccountant(path, epsilon=1000.0).spend(ONE)


@pytest.mark.parametrize("how", ["moved", "linked", "log", "folder"])
def test_a_ledger_that_was_removed_or_replaced(spent, how):
    """Whoever opens it then has a log of its own, and neither sees the other's rows."""
    accountant = PrivacyAccountant(spent, epsilon=3.0)
    accountant.spend(ONE)
    if how == "folder":  # as where a drive is unmounted; its ledger is not begun anew
        shutil.rmtree(spent.parent)
    elif how == "log":
        os.unlink(f"{spent}-wal")
    else:
        spent.rename(spent.with_suffix(".old"))
    if how == "linked":
        spent.symlink_to(spent.with_suffix(".old"))
    for _ in range(2):
        with pytest.raises(LedgerError, match="was removed"):
            accountant.spend(ONE)
        spent.parent.mkdir(exist_ok=True)
    if how == "folder":
        assert os.listdir(spent.parent) == []
    elif how == "moved":
        PrivacyAccountant(spent, epsilon=3.0)
        with pytest.raises(LedgerError, match="replaced"):
            accountant.spend(ONE)


def test_a_ledger_beyond_its_gamma_has_nothing_left(path):
    """As one of a version that counted less."""
    accountant = PrivacyAccountant(path, epsilon=3.0, gamma=0.1)
    accountant.spend(PrivacyGuarantee(epsilon=1.0, gamma=0.05))
    file = accountant._account.ledger
    for _ in range(2):
        with file.transaction():
            file.append(file.rows()[0][1])
    again = PrivacyAccountant.open(path)
    assert again.remaining() == 0
    assert "left: nothing" in str(again)


@pytest.mark.parametrize("statement", ["BEGIN", "SELECT", "INSERT", "COMMIT"])
@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ("locking protocol", "on a disk of this machine"),
        ("disk I/O error", "has room"),
        ("database or disk is full", "Make room on the disk"),
        ("attempt to write a readonly database", "may be written to"),
    ],
)
def test_a_path_that_fails_at_any_step(spent, statement, fault, remedy, before_statements):
    """As a network drive that loses a lock or a connection: nothing is released."""
    calls = []

    def fail(text):
        if text.startswith(statement):
            raise sqlite3.OperationalError(fault)

    accountant = PrivacyAccountant(spent, epsilon=3.0)
    plan = plan_release(
        lambda X: calls.append(1) or X.mean(),
        n_samples=4,
        like=np.ones(1),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=0.25,
    )
    before = list(calls)  # of the trial on made-up records
    before_statements.append(fail)
    with pytest.raises(LedgerError, match=f"{fault}. Nothing was released.*{remedy}"):
        plan.execute(np.ones(4), accountant=accountant)
    before_statements.clear()
    assert calls == before
    assert accountant.total() == PrivacyAccountant.open(spent).total()
    assert accountant.total().epsilon == 1.0


def test_a_lock_that_is_not_had_in_time(spent, monkeypatch):
    monkeypatch.setattr(ledger, "TIMEOUT", 0.05)
    accountant = PrivacyAccountant(spent, epsilon=3.0)
    with closing(sqlite3.connect(spent, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="holds it: wait"):
            accountant.spend(ONE)
        assert accountant.total().epsilon == 1.0  # reading does not wait
        other.execute("ROLLBACK")
    accountant.spend(ONE)
    assert accountant.total().epsilon == 2.0


@pytest.mark.parametrize("bring", [os.link, os.symlink, shutil.copy, os.rename])
def test_another_name_for_a_ledger_that_is_open(path, bring):
    accountant = PrivacyAccountant(path, epsilon=2.5)
    accountant.spend(ONE)
    other = path.parent / "elsewhere" / "other.db"
    other.parent.mkdir()
    bring(path, other)
    with pytest.raises((BudgetExceededError, LedgerError)):
        PrivacyAccountant(other, epsilon=2.5).spend(PrivacyGuarantee(2.0))
    if bring is os.link:
        for attempt in (lambda: accountant.spend(ONE), lambda: PrivacyAccountant.open(path)):
            with pytest.raises(LedgerError, match=r"(second|one) name"):
                attempt()
        other.unlink()
        accountant.spend(ONE)


def test_a_ledger_that_lost_rows(path):
    """Rows that the process had read were still in its memory, and the loss went unnoticed."""
    accountant = PrivacyAccountant(path, epsilon=9.0)
    accountant.spend(ONE)
    earlier = path.read_bytes()
    accountant.spend(ONE)
    path.write_bytes(earlier)  # the same file, with the content of before
    with pytest.raises(LedgerError, match="lost rows"):
        accountant.total()
    # what this process counted outlives the object that counted it
    for later in PrivacyAccountant(path, epsilon=9.0), pickle.loads(pickle.dumps(accountant)):
        with pytest.raises(LedgerError, match="lost rows"):
            later.spend(ONE)


@pytest.mark.parametrize("statement", ["INSERT", "COMMIT"])
def test_an_interrupt_before_the_commit(spent, statement, before_statements):
    def interrupt(text):
        if text.startswith(statement):
            raise KeyboardInterrupt

    accountant = PrivacyAccountant(spent, epsilon=3.0)
    before_statements.append(interrupt)
    with pytest.raises(KeyboardInterrupt):
        accountant.spend(ONE)
    before_statements.clear()
    assert accountant.total().epsilon == 1.0
    PrivacyAccountant(spent, epsilon=3.0).spend(ONE)  # nobody holds it
    accountant.spend(ONE)
    assert accountant.total().epsilon == 3.0


def test_a_file_that_is_replaced_while_a_row_is_written(spent, before_statements):
    accountant = PrivacyAccountant(spent, epsilon=3.0)
    moved = spent.with_suffix(".old")
    before_statements.append(lambda text: text == "COMMIT" and spent.rename(moved))
    with pytest.raises(LedgerError, match="was removed"):
        accountant.spend(ONE)


def fill(path, room, results):
    """Spend until the file may not grow; send how often that went well, and what is said then."""
    import resource  # which is not everywhere

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write beyond the limit fails instead
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    n_released = 0
    try:
        accountant = PrivacyAccountant(path, epsilon=1e9)
        while True:
            accountant.spend(ONE, label="x" * 500)
            n_released += 1
    except LedgerError as error:
        results.send((n_released, str(error)))


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="no limit to the size of a file")
@forks
@pytest.mark.parametrize("room", [33_000, 6_000])
def test_a_disk_without_room(path, room):
    """The operating system takes no more, at any place in the files."""
    context = multiprocessing.get_context("fork")
    results, sender = context.Pipe(duplex=False)
    process = context.Process(target=fill, args=(path, room, sender), daemon=True)
    process.start()
    sender.close()
    n_released, failure = results.recv()
    process.join()
    assert "Nothing was released for it" in failure
    assert "has room" in failure
    assert bool(n_released) == (room > 30_000)
    n_spent = PrivacyAccountant(path, epsilon=1e9).total().n_releases  # room has been made
    assert n_released <= n_spent <= n_released + 1


def spend_for_ever(path, log):
    accountant = PrivacyAccountant(path, epsilon=1e9)
    while True:
        accountant.spend(ONE)
        with log.open("a") as file:
            file.write("x")


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
@forks
@pytest.mark.parametrize("wait", [0.0, 0.013])
def test_what_was_released_is_in_the_file_after_a_kill(path, tmp_path, wait):
    log = tmp_path / "log"
    log.touch()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=spend_for_ever, args=(path, log), daemon=True)
    process.start()
    while process.is_alive() and not log.stat().st_size:
        time.sleep(0.001)
    time.sleep(wait)
    process.kill()
    process.join()
    released = log.stat().st_size
    n_spent = PrivacyAccountant(path, epsilon=1e9).total().n_releases
    assert 1 <= released <= n_spent <= released + 1
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
