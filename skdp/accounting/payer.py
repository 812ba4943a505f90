"""Who pays for a release: the accountant that it is given, that of a block, or nobody."""

from __future__ import annotations

import math

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.in_force import accountant_in_force
from skdp.accounting.ledger import MEMORY, lock
from skdp.accounting.opened import names_of_opened
from skdp.core.checks import shown, warn

_of_all: PrivacyAccountant | None = None


def default_accountant() -> PrivacyAccountant:
    """Return the accountant that counts the releases that are given none.

    Returns
    -------
    PrivacyAccountant
        That of the innermost block of :meth:`PrivacyAccountant.as_default`, else one in memory
        that counts all releases of this process and has no limits.

    Examples
    --------
    >>> from skdp.accounting import PrivacyAccountant, default_accountant
    >>> ledger = PrivacyAccountant(":memory:", epsilon=3.0)
    >>> with ledger.as_default():
    ...     default_accountant() is ledger
    True
    """
    global _of_all
    given = accountant_in_force()
    if given is not None:
        return given
    with lock:
        if _of_all is None or _of_all._ledger.is_lost:  # in a fork
            _of_all = PrivacyAccountant(MEMORY, epsilon=math.inf, delta=1.0)
        return _of_all


def paying(accountant: PrivacyAccountant | None) -> PrivacyAccountant:
    """Return who would pay for a release."""
    return default_accountant() if accountant is None else accountant._labeled_here()


def payer(accountant: PrivacyAccountant | None) -> PrivacyAccountant:
    """Return who pays for a release; warn if it is nobody, though a budget was opened here."""
    nobody = accountant is None and accountant_in_force() is None
    if nobody and (opened := names_of_opened()):
        warn(
            f"This release is charged to no budget, although {opened[-1]} was opened. Pass it as "
            "'accountant', or release within a block `with accountant.as_default():`; what is out "
            "already is entered by `accountant.spend(guarantee)`. If no budget is to pay, pass "
            "accountant=default_accountant()."
        )
    return paying(accountant)


def check_accountant(accountant: object, owner: str) -> None:
    """Refuse what is neither an accountant that can spend nor None."""
    if accountant is None:
        return
    if not isinstance(accountant, PrivacyAccountant):
        raise TypeError(
            f"The 'accountant' parameter of {owner} must be a PrivacyAccountant or None. "
            f"Got {shown(accountant)}."
        )
    accountant._check_writable()
