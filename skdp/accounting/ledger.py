"""The file behind a budget: SQLite, a row per spend, each on the disk before anything is released.

A ledger is append-only. Each process opens its file anew, since a connection must not be carried
across a fork, and knows it by a number in the file: another file in its place is refused. The
write-ahead log is emptied into the file after each row, so that a file that is moved or copied
alone holds all rows. Processes that share no log do not see each other's rows: so a file with a
second name, which has a second log, is refused, and one whose log was removed.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sqlite3
import threading
import time
import uuid
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

from skdp.accounting.spend import Spend
from skdp.accounting.tally import Limits
from skdp.exceptions import LedgerError

MEMORY = ":memory:"
TIMEOUT = 60.0  # seconds to wait while another process writes
APPLICATION = 0x736B6470  # "skdp", by which SQLite knows whose file it is
VERSION = 4  # another one when a field of Spend or of the limits changes
READABLE = 3, VERSION  # the limits of version 3 have no unit, and are for records

COLUMNS = tuple(column.name for column in fields(Spend))
SCHEMA = (
    "CREATE TABLE ledger (id TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, "
    "gamma REAL, slack REAL NOT NULL, unit TEXT NOT NULL)",
    f"CREATE TABLE spends (id INTEGER PRIMARY KEY AUTOINCREMENT, {', '.join(COLUMNS)})",
    *(
        f"CREATE TRIGGER no_{what}_of_{table} BEFORE {what} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
        for what in ("UPDATE", "DELETE")
        for table in ("ledger", "spends")
    ),
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {VERSION}",
)
INSERT = f"INSERT INTO spends ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"
SELECT = f"SELECT id, {', '.join(COLUMNS)} FROM spends WHERE id >= ? ORDER BY id"

lock = threading.RLock()  # one for all ledgers, so that a fork can wait until none is written
Files = tuple[tuple[int, int, int] | None, ...]
_ledgers: weakref.WeakSet[Ledger] = weakref.WeakSet()
_process = os.getpid()  # a fork has another number
_inherited: list[sqlite3.Connection] = []  # closing one in a fork would meddle with its parent's


def is_worker() -> bool:
    """Return whether another process began this one, as a fork or by multiprocessing or joblib."""
    return os.getpid() != _process or multiprocessing.parent_process() is not None


class Ledger:
    """A ledger file, or one in memory.

    A new file gets the limits, and an existing one must have them; without any it is read only.
    """

    def __init__(self, path: str, limits: Limits | None, identity: str | None = None):
        self.path = path if path == MEMORY else os.path.realpath(path)
        self.read_only = limits is None
        self.identity = identity
        self._connection: sqlite3.Connection | None = None
        self._closing: weakref.finalize | None = None
        self._files: Files = ()
        self.is_lost = False
        with lock:
            _ledgers.add(self)
        if limits is not None and identity is not None:  # a pickle, read where the file may not be
            self.limits = limits
            self.is_lost = path == MEMORY
            return
        with lock, self._told("opened"):
            self.limits = self._open(limits)

    @property
    def key(self) -> tuple[str, str | None]:
        """The path and the number of the ledger, by which it is told from others."""
        return self.path, self.identity

    def check_writable(self) -> None:
        """Refuse to spend from a ledger that was opened to be read."""
        if self.read_only:
            raise TypeError(
                f"The ledger {self.path!r} was opened to be read. To spend from it, make a "
                "PrivacyAccountant with its limits."
            )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Run statements that are on the disk together when the block is left, or not at all."""
        with lock, self._told("written"):
            connection = self._connected()
            if connection.in_transaction:  # of this thread: a signal handler came in between
                raise self._error("is being written by this thread.")
            with _commit(connection):
                yield connection
            self._check_files()  # else nobody may see the row

    def rows(self, start: int = 0) -> list[tuple[int, Spend]]:
        """Return the rows from one of them on, each with its number."""
        with lock, self._told("read"):
            connection = self._connected()
            connection.execute("PRAGMA shrink_memory")  # what it kept may not be in the file now
            found = connection.execute(SELECT, (start,)).fetchall()
            return [(number, Spend(*row)) for number, *row in found]

    def append(self, spend: Spend) -> int:
        """Write a row, in a transaction, and return its number."""
        number = self._connected().execute(INSERT, tuple(vars(spend).values())).lastrowid
        assert number is not None
        return number

    @contextmanager
    def _told(self, done: str) -> Iterator[None]:
        """Turn the errors of SQLite into one that says what they mean here."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            words = f"cannot be {done}: {error}. Nothing was released for it. {_remedy(error)}"
            raise self._error(words) from error

    def _error(self, words: str) -> LedgerError:
        return LedgerError(f"The ledger {self.path!r} {words}")

    def _connected(self) -> sqlite3.Connection:
        """Return the connection of this process, to the file that it was made for."""
        # each worker that imports a module makes a ledger of its own
        is_another = self.path == MEMORY and is_worker() and math.isfinite(self.limits.epsilon)
        if self.is_lost or is_another:
            raise LedgerError(
                "A ledger in memory belongs to one process, and other processes do not see its "
                "limits. Set 'accountant' to a ledger in a file, which processes share."
            )
        if self._connection is None or self.read_only:  # without a log, it misses later rows
            self._open(None if self.read_only else self.limits)
        self._check_files()
        assert self._connection is not None
        return self._connection

    def _find_files(self) -> Files:
        """Find the files of the ledger: itself, its log and the index of the log."""
        names = () if self.path == MEMORY else ("",) if self.read_only else ("", "-wal", "-shm")
        return tuple(_identity_of(self.path + name) for name in names)

    def _check_files(self) -> None:
        """Refuse files other than those that were opened."""
        is_link = self.path != MEMORY and os.path.islink(self.path)  # it was none at first
        if is_link or self._find_files() != self._files or None in self._files:
            raise self._error(
                "or the log beside it was removed, replaced or given a second name while it was in "
                "use. Nothing was released for it. Put it back, or end all processes that have it "
                "open."
            )

    def _open(self, limits: Limits | None) -> Limits:
        """Connect, check whose file it is, and return its limits."""
        connection = self._connect()
        try:
            if not self.read_only:
                connection.execute("PRAGMA synchronous = FULL")
                connection.execute("PRAGMA wal_autocheckpoint = 1")
            if limits is not None and self.identity is None:
                self._create(connection, limits)
            self._check(connection)
            found = connection.execute("SELECT * FROM ledger").fetchall()
            files = self._find_files()
            if any(file is None or file[2] > 1 for file in files[:1]):
                raise self._error(
                    "must be a file of one name: through several (hard links) releases are not "
                    "seen. Keep one."
                )
            for other in list(_ledgers) if limits is not None else ():
                if other._connection is not None and other._files[:1] == files[:1]:
                    other._check_files()  # a process has one log for all its connections
            if len(found) != 1:
                raise self._error("is damaged: it has lost its limits.")
            identity, *found = found[0]
            if self.identity not in (None, identity):
                raise self._error("is another one than it was.")
            kept = Limits(*found)
            if limits is not None and kept != limits:
                raise self._error(
                    f"has other limits: {kept}. Got {limits}. Limits are fixed when a ledger is "
                    "made: open it with its own. If others are agreed on, begin a new ledger with "
                    "them at another path, and spend there first what is spent here."
                )
        except BaseException:
            connection.close()
            raise
        self.identity = identity
        self._files = files
        self._connection = connection
        if self._closing is not None:
            self._closing()
        self._closing = weakref.finalize(self, connection.close)
        return kept

    def _connect(self) -> sqlite3.Connection:
        """Connect to the file, as it is to be used."""
        address = MEMORY if self.path == MEMORY else Path(self.path).as_uri()
        if self.read_only:
            if not os.path.exists(self.path):
                raise self._error("cannot be opened: there is no such file.")
            address += "?mode=ro"
            can_log = os.access(os.path.dirname(self.path), os.W_OK)
            if not can_log and not os.path.exists(f"{self.path}-wal"):
                address += "&immutable=1"  # else SQLite refuses to read, as it makes a log to read
        elif self.path != MEMORY:
            address += "?mode=rwc" if self.identity is None else "?mode=rw"
        return sqlite3.connect(
            address, uri=True, timeout=TIMEOUT, isolation_level=None, check_same_thread=False
        )

    def _create(self, connection: sqlite3.Connection, limits: Limits) -> None:
        """Make the tables, if another process has not."""
        with _commit(connection):
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
                for statement in SCHEMA:
                    connection.execute(statement)
                row = uuid.uuid4().hex, *vars(limits).values()
                connection.execute("INSERT INTO ledger VALUES (?, ?, ?, ?, ?, ?)", row)

    def _check(self, connection: sqlite3.Connection) -> None:
        """Refuse a file that is no ledger, of another version, or damaged."""
        if connection.execute("PRAGMA application_id").fetchone() != (APPLICATION,):
            raise self._error("is no ledger of skdp.")
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version not in READABLE:
            raise self._error(
                f"is of version {version}, and this skdp reads and writes version {VERSION}. Use "
                "the skdp that made it."
            )
        found = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if found != "ok":
            raise self._error(
                f"is damaged: {found}. Nothing was released for it. Bring back a copy that holds "
                "all releases, or count what was released as spent."
            )
        is_shared = not self.read_only and self.path != MEMORY
        if is_shared and self._write_ahead(connection) != "wal":
            raise self._error(
                "is where no write-ahead log can be kept, such as on a network drive. Put it on a "
                "disk of this machine."
            )

    def _write_ahead(self, connection: sqlite3.Connection) -> object:
        """Ask for a log; SQLite itself does not wait for another process that asks at the time."""
        end = time.monotonic() + TIMEOUT
        while True:
            try:
                return connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
            time.sleep(0.005)


@contextmanager
def _commit(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit what a block executes, or roll it back."""
    try:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _remedy(error: Exception) -> str:
    text = str(error)
    if "locked" in text:
        return "Another process holds it: wait, and try again."
    if "full" in text:
        return "Make room on the disk."
    if "readonly" in text or "unable to open" in text:
        return "See that the file and its folder exist and may be written to, or set 'accountant'."
    return "See whether it is a whole ledger, on a disk of this machine that has room."


def _identity_of(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_nlink


def _forget_connections() -> None:
    """Leave the connections to the parent, in a forked process."""
    for ledger in list(_ledgers):
        if ledger._connection is not None and ledger._closing is not None:
            ledger._closing.detach()
            _inherited.append(ledger._connection)
            ledger.is_lost = ledger.path == MEMORY
            ledger._connection = ledger._closing = None
    lock.release()


# SQLite must not be forked in the midst of a transaction: the child would take its locks for held.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lock.acquire, after_in_parent=lock.release, after_in_child=_forget_connections
    )
