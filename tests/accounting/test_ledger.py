"""What goes wrong with files: a clear error, and nothing that was released is forgotten."""

import multiprocessing
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import numpy as np
import pytest

from skdp import (
    BudgetExceededError,
    LaplaceMechanism,
    LedgerError,
    PrivacyGuarantee,
    plan_release,
)
from skdp.accounting import PrivacyAccountant, ledger

ONE = PrivacyGuarantee(epsilon=1.0)
# from Python 3.12 on, where there are threads
forks = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


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


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_ledger_remembers(spent):
    assert PrivacyAccountant(spent, epsilon=3.0).total().epsilon == 1.0


@pytest.mark.parametrize("other", [{"epsilon": 4.0}, {"epsilon": 3.0, "delta": 1e-9}])
def test_other_limits_are_refused(spent, other):
    with pytest.raises(LedgerError, match="other limits"):
        PrivacyAccountant(spent, **other)


def test_a_ledger_that_is_read_is_not_written(spent):
    reader = PrivacyAccountant.open(spent)
    assert reader.limits == {"epsilon": 3.0, "delta": 0.0, "gamma": None, "slack": 0.0}
    assert reader.remaining() == 2.0
    with pytest.raises(TypeError, match="opened to be read"):
        reader.spend(ONE)
    file = reader._account.ledger
    with pytest.raises(LedgerError, match="readonly"), file.transaction() as connection:
        connection.execute("DELETE FROM spends")
    PrivacyAccountant(spent, epsilon=3.0).spend(ONE)
    assert reader.remaining() == 1.0


def test_a_ledger_that_is_not_there_is_not_made_by_reading(path):
    with pytest.raises(LedgerError, match="no such file"):
        PrivacyAccountant.open(path)
    assert not path.exists()
    with pytest.raises(LedgerError, match="folder exist"):
        PrivacyAccountant(path / "x.db", epsilon=1.0)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_a_read_only_file_and_folder(spent):
    spent.chmod(0o444)
    spent.parent.chmod(0o555)
    try:
        with pytest.raises(LedgerError, match="may be written to"):
            PrivacyAccountant(spent, epsilon=3.0).spend(ONE)
        assert PrivacyAccountant.open(spent).total().epsilon == 1.0
    finally:
        spent.parent.chmod(0o755)


def test_rows_are_neither_changed_nor_deleted(spent):
    for statement in ("DELETE FROM spends", "UPDATE spends SET epsilon = 0", "DELETE FROM ledger"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            change(spent, statement)


def test_another_version(spent):
    change(spent, "PRAGMA user_version = 7")
    for opened in (PrivacyAccountant.open, lambda path: PrivacyAccountant(path, epsilon=3.0)):
        with pytest.raises(LedgerError, match="version 7"):
            opened(spent)


def test_a_file_of_something_else(path):
    change(path, "CREATE TABLE other (x)")
    with pytest.raises(LedgerError, match="no ledger of skdp"):
        PrivacyAccountant(path, epsilon=3.0)
    path.with_suffix(".txt").write_text("Dear ledger, " * 1000)
    with pytest.raises(LedgerError, match="not a database"):
        PrivacyAccountant(path.with_suffix(".txt"), epsilon=3.0)


@pytest.mark.parametrize("damage", ["cut", "zeros", "limits", "row"])
def test_a_damaged_file(path, damage):
    accountant = PrivacyAccountant(path, epsilon=1000.0)
    for _ in range(100):
        accountant.spend(ONE, label="x" * 100)
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


def test_a_ledger_that_was_removed_or_replaced(spent):
    accountant = PrivacyAccountant(spent, epsilon=3.0)
    spent.rename(spent.with_suffix(".old"))
    with pytest.raises(LedgerError, match="was removed, replaced"):
        accountant.spend(ONE)
    PrivacyAccountant(spent, epsilon=3.0)
    with pytest.raises(LedgerError, match="was removed, replaced"):
        accountant.spend(ONE)
    accountant._account.ledger._connection = None  # as in a new process
    with pytest.raises(LedgerError, match="another ledger"):
        accountant.spend(ONE)


@pytest.mark.slow
def test_a_log_that_was_removed(tmp_path):
    """Whoever opens the ledger then has a log of its own, and neither sees the other's rows."""
    accountants = {}
    for number, removed in enumerate((["-wal", "-shm"], ["-wal"], ["-wal", "-shm"])):
        path = tmp_path / f"ledger{number}.db"
        beside = path
        if number == 2:  # SQLite keeps the log beside the file that a link leads to
            beside = tmp_path / "elsewhere.db"
            path.symlink_to(beside)
        accountants[path] = PrivacyAccountant(path, epsilon=3.0)
        for _ in range(2):
            accountants[path].spend(ONE)
        for name in removed:
            os.unlink(f"{beside}{name}")
        with pytest.raises(LedgerError, match="or the log beside it"):
            PrivacyAccountant(path, epsilon=3.0)  # which has the log of this process
    subprocess.run([sys.executable, "-c", ONCE, *accountants], check=True)
    for path, accountant in accountants.items():
        with pytest.raises(LedgerError, match="or the log beside it"):
            accountant.spend(ONE)
        with pytest.raises((LedgerError, BudgetExceededError)):
            PrivacyAccountant(path, epsilon=3.0).spend(ONE)
        assert PrivacyAccountant.open(path).total().n_releases == 3


def test_a_link_that_is_made_later(tmp_path):
    """Who opens the ledger through it has a log beside the file, and this process another."""
    path = tmp_path / "ledger.db"
    accountant = PrivacyAccountant(path, epsilon=3.0)
    accountant.spend(ONE)
    path.rename(tmp_path / "moved.db")
    path.symlink_to(tmp_path / "moved.db")
    with pytest.raises(LedgerError, match="or the log beside it"):
        accountant.spend(ONE)


def test_a_ledger_beyond_its_gamma_has_nothing_left(tmp_path):
    """As one from when releases with one estimate shared its gamma."""
    accountant = PrivacyAccountant(tmp_path / "ledger.db", epsilon=3.0, gamma=0.1)
    accountant.spend(PrivacyGuarantee(epsilon=1.0, gamma=0.05), sensitivity_key="a")
    file = accountant._account.ledger
    for _ in range(2):
        with file.transaction():
            file.append(file.rows()[0][1])
    again = PrivacyAccountant.open(tmp_path / "ledger.db")
    assert again.remaining() == 0
    assert "left: nothing" in str(again)


ONCE = """
import sys
from skdp import PrivacyGuarantee
from skdp.accounting import PrivacyAccountant
for path in sys.argv[1:]:
    PrivacyAccountant(path, epsilon=3.0).spend(PrivacyGuarantee(epsilon=1.0))
"""


def test_a_folder_that_went_away(spent):
    """As where a drive is unmounted; its ledger is not begun anew."""
    accountant = PrivacyAccountant(spent, epsilon=3.0)
    shutil.rmtree(spent.parent)
    for _ in range(2):
        with pytest.raises(LedgerError, match="was removed"):
            accountant.spend(ONE)
        spent.parent.mkdir(exist_ok=True)
    assert os.listdir(spent.parent) == []


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
def test_a_path_that_fails_at_any_step(spent, statement, fault, remedy, monkeypatch):
    """As a network drive that loses a lock or a connection: nothing is released."""
    faulty, calls, real = [], [], sqlite3.connect

    class Connection(sqlite3.Connection):
        def execute(self, text, *args):
            if faulty and text.startswith(statement):
                raise sqlite3.OperationalError(fault)
            return super().execute(text, *args)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, factory=Connection, **k))
    accountant = PrivacyAccountant(spent, epsilon=3.0)
    plan = plan_release(
        lambda X: calls.append(1) or X.mean(),
        n_samples=4,
        like=np.ones(1),
        mechanism=LaplaceMechanism(1.0),
        sensitivity=0.25,
    )
    before = list(calls)  # of the trial on made-up records
    faulty.append(True)
    with pytest.raises(LedgerError, match=f"{fault}. Nothing was released.*{remedy}"):
        plan.execute(np.ones(4), accountant=accountant)
    faulty.clear()
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


def test_where_no_write_ahead_log_can_be_kept(path, monkeypatch):
    real = sqlite3.connect

    class Cursor:
        def fetchone(self):
            return ("delete",)

    class Connection(sqlite3.Connection):
        def execute(self, statement, *args):
            return Cursor() if "journal_mode" in statement else super().execute(statement, *args)

    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: real(*a, factory=Connection, **k))
    with pytest.raises(LedgerError, match="network drive"):
        PrivacyAccountant(path, epsilon=3.0)


@pytest.mark.parametrize("bring", [os.link, os.symlink, shutil.copy, os.rename])
def test_another_name_for_a_ledger_that_is_open(path, bring):
    accountant = PrivacyAccountant(path, epsilon=1.5)
    accountant.spend(ONE)
    other = path.parent / "elsewhere" / "other.db"
    other.parent.mkdir()
    bring(path, other)
    with pytest.raises((BudgetExceededError, LedgerError)):
        PrivacyAccountant(other, epsilon=1.5).spend(ONE)


def test_a_ledger_of_two_names(spent):
    accountant = PrivacyAccountant(spent, epsilon=3.0)
    os.link(spent, spent.with_suffix(".other"))
    with pytest.raises(LedgerError, match="second name"):
        accountant.spend(ONE)
    with pytest.raises(LedgerError, match="one name"):
        PrivacyAccountant(spent, epsilon=3.0)
    spent.with_suffix(".other").unlink()
    accountant.spend(ONE)


def test_a_ledger_that_lost_rows(path):
    accountant = PrivacyAccountant(path, epsilon=9.0)
    accountant.spend(ONE)
    earlier = path.read_bytes()
    accountant.spend(ONE)
    accountant._account.ledger._connection = None  # closed, as in a fork
    path.write_bytes(earlier)  # the same file, with the content of before
    with pytest.raises(LedgerError, match="lost rows"):
        accountant.total()
    PrivacyAccountant(path, epsilon=9.0).spend(PrivacyGuarantee(epsilon=5.0))
    with pytest.raises(LedgerError, match="lost rows"):
        accountant.spend(ONE)


def test_a_handler_that_looks_and_spends_in_the_midst_of_a_spend(path):
    accountant = PrivacyAccountant(path, epsilon=9.0)

    accountant.spend(ONE)
    append = accountant._account.ledger.append

    def interrupt(spend):
        append(spend)
        assert accountant.total().epsilon == 2.0
        accountant.spend(ONE)

    accountant._account.ledger.append = interrupt
    with pytest.raises(LedgerError, match="being written"):
        accountant.spend(ONE)
    del accountant._account.ledger.append
    PrivacyAccountant(path, epsilon=9.0).spend(PrivacyGuarantee(epsilon=5.0))
    with pytest.raises(LedgerError, match="lost rows"):  # rather than to count what was undone
        accountant.total()


@pytest.mark.parametrize("after", ["BEGIN", "INSERT"])
def test_an_interrupt_before_the_commit(spent, after):
    accountant = PrivacyAccountant(spent, epsilon=3.0)
    connection = accountant._account.ledger._connection

    class Interrupted:
        def __getattr__(self, name):
            return getattr(connection, name)

        def execute(self, statement, *args):
            result = connection.execute(statement, *args)
            if statement.startswith(after):
                raise KeyboardInterrupt
            return result

    accountant._account.ledger._connection = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        accountant.spend(ONE)
    accountant._account.ledger._connection = connection
    assert accountant.total().epsilon == 1.0
    PrivacyAccountant(spent, epsilon=3.0).spend(ONE)  # nobody holds it
    accountant.spend(ONE)
    assert accountant.total().epsilon == 3.0


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
@pytest.mark.parametrize("wait", [0.0, 0.013, 0.05])
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
