"""Who pays for a release: the accountant that it is given, that of a block, or the process."""

from __future__ import annotations

import math

from skdp.accounting.account import opened
from skdp.accounting.accountant import PrivacyAccountant, blocks
from skdp.accounting.ledger import MEMORY, is_worker, lock
from skdp.core.checks import check_kind, warn
from skdp.exceptions import LedgerError

_of_process: list[PrivacyAccountant] = []  # one, once it is asked for
_places: set[tuple[str, int]] = set()  # files and lines that were warned


def default_accountant() -> PrivacyAccountant:
    """Return the accountant that counts the releases that are given none.

    Returns
    -------
    PrivacyAccountant
        That of the innermost block of :meth:`PrivacyAccountant.as_default`, else one in memory
        without limits, for all releases of this process.

    Raises
    ------
    LedgerError
        In a worker process of joblib or multiprocessing, outside of such a block.

    Examples
    --------
    >>> from skdp.accounting import PrivacyAccountant, default_accountant
    >>> ledger = PrivacyAccountant(":memory:", epsilon=3.0)
    >>> with ledger.as_default():
    ...     default_accountant() is ledger
    True
    """
    for given in blocks[-1:]:
        return given
    if is_worker():
        raise LedgerError(
            "A worker process, as with n_jobs=2, has no budget: the process that began it would "
            "not count this release. Give the estimator or the call a ledger in a file, such as "
            "accountant=PrivacyAccountant('budget.db', epsilon=3.0), or work with n_jobs=1."
        )
    with lock:
        if not _of_process:
            _of_process.append(PrivacyAccountant(MEMORY, epsilon=math.inf, delta=1.0))
        return _of_process[0]


def as_pickled(given: PrivacyAccountant | None) -> PrivacyAccountant | None:
    """Return the accountant of a pickle, which goes to processes that know no block of this one."""
    return next(iter(blocks[-1:]), None) if given is None else given


def find_payer(given: PrivacyAccountant | None) -> PrivacyAccountant:
    """Return the accountant that pays, which is asked for once, as the first act of a release.

    Warn, once for each line, of a release that no budget pays for though one was opened.
    """
    pays = default_accountant() if given is None else given
    if pays in _of_process and given is None and opened:
        *_, name = opened.values()
        warn(
            f"This release is charged to no budget, although {name} was opened. Pass it "
            "as 'accountant', or release within a block `with accountant.as_default():`; what is "
            "out already is entered by `accountant.spend(guarantee)`. If no budget is to pay, pass "
            "accountant=default_accountant().",
            once=_places,
        )
    return pays


def check_accountant(accountant: PrivacyAccountant | None, owner: str) -> None:
    """Refuse what is neither None nor an accountant that can spend."""
    kind, rule = PrivacyAccountant | None, "a PrivacyAccountant or None"
    check_kind("accountant", accountant, owner, kind, rule)
    if accountant is not None:
        accountant._account.ledger.check_writable()


def forget_releases() -> None:
    """Forget all budgets of this process: for the pages of a gallery, and for tests."""
    _of_process.clear()
    _places.clear()
    opened.clear()
