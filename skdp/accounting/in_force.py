"""Which accountant counts in a block and in the threads that run meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from skdp.accounting.ledger import lock
from skdp.exceptions import LedgerError

if TYPE_CHECKING:
    from skdp.accounting.accountant import PrivacyAccountant

_in_force: ContextVar[tuple[PrivacyAccountant, ...]] = ContextVar("in_force", default=())
_blocks: tuple[tuple[PrivacyAccountant, ...], ...] = ()  # for threads, which inherit no context


@contextmanager
def put_in_force(accountant: PrivacyAccountant) -> Iterator[None]:
    """Let an accountant count while a block lasts."""
    global _blocks
    block = (*_in_force.get(), accountant)
    token = _in_force.set(block)
    with lock:
        _blocks = (*_blocks, block)
    try:
        yield
    finally:
        with lock:
            place = _blocks.index(block)
            _blocks = _blocks[:place] + _blocks[place + 1 :]
        _in_force.reset(token)


def accountant_in_force() -> PrivacyAccountant | None:
    """Return the accountant of the innermost block of `as_default`, if there is one."""
    given, blocks = _in_force.get(), _blocks
    if not given and blocks:
        given = max(blocks, key=len)
        if any(block != given[: len(block)] for block in blocks):
            raise LedgerError(
                "Blocks of as_default are open for several accountants, and which of them counts "
                "in this thread cannot be told. Give the release its accountant."
            )
    return given[-1] if given else None
