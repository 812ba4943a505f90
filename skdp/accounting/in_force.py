"""Which accountant counts in a block, and in the threads and processes that work meanwhile.

A worker process inherits no block, and may have been started before it. So a process keeps a small
file that says which accountant counts at the time, and its children find the name of the file in
their environment.
"""

from __future__ import annotations

import copy
import os
import pickle
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self

from skdp.accounting.ledger import lock
from skdp.core.checks import warn
from skdp.exceptions import LedgerError

if TYPE_CHECKING:
    from skdp.accounting.accountant import PrivacyAccountant

VARIABLE = "SKDP_IN_FORCE"
SEPARATOR = "\n"  # a path may hold any other character
_in_force: ContextVar[tuple[PrivacyAccountant, ...]] = ContextVar("in_force", default=())
_blocks: tuple[tuple[PrivacyAccountant, ...], ...] = ()  # for threads, which inherit no context
_at_fork: PrivacyAccountant | None = None  # the parent may have ended since
_files: list[str] = []  # that of this process, of its parent, and so on
_is_told = False  # whether the first of them was written and should be there


@contextmanager
def put_in_force(accountant: PrivacyAccountant) -> Iterator[None]:
    """Let an accountant count while a block lasts."""
    global _blocks
    block = (*_in_force.get(), accountant)
    token = _in_force.set(block)
    with lock:
        _blocks = (*_blocks, block)
    try:
        _tell_children()
        yield
    finally:
        with lock:
            _blocks = tuple(each for each in _blocks if each is not block)
        try:
            _tell_children()
        finally:
            _in_force.reset(token)  # fails in another context, as where a generator is closed


def accountant_in_force() -> PrivacyAccountant | None:
    """Return the accountant of the innermost block of `as_default`, if there is one."""
    given = _in_force.get()
    if given:
        return given[-1]
    return _of_threads() if _blocks else _of_parents() or _at_fork


def accountants_in_force() -> Iterator[PrivacyAccountant]:
    """Yield those of all blocks around, the innermost first; of another thread or process one."""
    given = _in_force.get()
    if given:
        yield from reversed(given)
    elif (one := accountant_in_force()) is not None:
        yield one


class Charged:
    """What is charged to its `accountant`, or where it is None to that in force."""

    accountant: PrivacyAccountant | None

    def __getstate__(self) -> dict[str, Any]:
        """Take the accountant in force along, so that a worker counts where its caller does."""
        state: Any = super().__getstate__()
        if self.accountant is None and accountant_in_force() is not None:
            state = {**state, "accountant": accountant_in_force()}
        return state

    def __copy__(self) -> Self:
        return self._with_members(dict(vars(self)))

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        copied = memo[id(self)] = self._with_members({})
        vars(copied).update(copy.deepcopy(vars(self), memo))
        return copied

    def _with_members(self, members: dict[str, Any]) -> Self:
        """Make one that counts where this one does, which a state taken along would not."""
        made = object.__new__(type(self))
        vars(made).update(members)
        return made


def _of_threads() -> PrivacyAccountant:
    """Return the accountant of the innermost block of all threads, if these agree."""
    blocks = _blocks
    given = max(blocks, key=len)
    if any(block != given[: len(block)] for block in blocks):
        raise LedgerError(
            "Blocks of as_default are open for several accountants, and which of them counts "
            "here cannot be told. Give the release its accountant."
        )
    return given[-1]


def _of_parents() -> PrivacyAccountant | None:
    """Return the accountant that counts in the nearest parent that has one."""
    for name in _files[1:]:
        with suppress(FileNotFoundError), open(name, "rb") as file:
            _check_own(file.fileno(), name)
            found = pickle.load(file)
            if isinstance(found, LedgerError):
                raise found
            return found
    return None


def _check_own(handle: int, name: str) -> None:
    """Refuse what another user wrote where many may: to read a pickle is to run it."""
    if hasattr(os, "geteuid") and os.fstat(handle).st_uid != os.geteuid():
        raise LedgerError(
            f"{name!r} should say which accountant counts, and is of another user. Give the "
            "release its accountant."
        )


def _tell_children() -> None:
    """Write who counts into the file of this process, or why that cannot be told."""
    global _is_told
    with lock:
        was_told, _is_told = _is_told, False
        if was_told and not os.path.exists(_files[0]):
            warn(
                f"{_files[0]!r} was deleted, by which worker processes know which accountant "
                "counts: what they have released since may count nowhere. Give releases of such "
                "processes their accountant, or let TMPDIR be a folder that nobody cleans."
            )
        if not _blocks:
            _tell_nothing()
            return
        try:
            told = pickle.dumps(_of_threads())
        except (TypeError, LedgerError) as error:  # it is in memory, or one of several
            told = pickle.dumps(LedgerError(str(error)))
        folder, prefix = os.path.split(_files[0])
        try:
            handle, name = tempfile.mkstemp(prefix=prefix, dir=folder)  # for this user alone
            with open(handle, "wb") as file:
                file.write(told)
            os.replace(name, _files[0])
            _is_told = True
        except OSError as error:
            _tell_nothing()  # rather than who counted before
            raise LedgerError(
                f"Worker processes cannot be told which accountant counts: {error}. Let TMPDIR be "
                "a folder that can be written to, or give each release its accountant."
            ) from error


def _tell_nothing() -> None:
    with suppress(OSError):
        os.unlink(_files[0])


def _begin() -> None:
    """Name the file of this process, for its children, before those of its parents."""
    global _is_told
    _is_told = False
    parents = filter(None, os.environ.get(VARIABLE, "").split(SEPARATOR))
    try:
        folder = os.path.abspath(tempfile.gettempdir())  # children may work in another folder
    except FileNotFoundError:  # nothing can be written anywhere, which blocks will say
        folder = os.getcwd()
    _files[:] = [os.path.join(folder, f"skdp-{uuid.uuid4().hex}"), *parents]
    os.environ[VARIABLE] = SEPARATOR.join(_files)


def _begin_as_fork() -> None:
    """Heed the blocks of the parent as they are at the time, not as they were at the fork."""
    global _blocks, _at_fork
    given = _in_force.get() or max(_blocks, key=len, default=())
    _at_fork = given[-1] if given else _at_fork
    _blocks = ()
    _in_force.set(())
    _begin()


_begin()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_as_fork)
