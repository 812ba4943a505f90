"""Which ledgers were opened in this process, so that a release that none pays for can say so."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from weakref import ref

from skdp.accounting.ledger import MEMORY, lock

if TYPE_CHECKING:
    from skdp.accounting.accountant import PrivacyAccountant

_opened: dict[object, tuple[str, str, ref[PrivacyAccountant]]] = {}  # path and name, in this order


def remember(key: object, accountant: PrivacyAccountant) -> None:
    """Let the accountant of a ledger be the last that was opened."""
    with lock:
        _forget_lost()
        _opened.pop(key, None)
        _opened[key] = accountant.path, repr(accountant), ref(accountant)


def names_of_opened() -> list[str]:
    """Return which ledgers were opened and are still there, in memory or in their files."""
    with lock:
        _forget_lost()
        return [name for _, name, _ in _opened.values()]


def _forget_lost() -> None:
    for key, (path, _, made) in list(_opened.items()):
        if made() is None if path == MEMORY else not os.path.exists(path):
            del _opened[key]
