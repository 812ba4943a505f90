"""The warnings and errors of skdp."""

from __future__ import annotations

from typing import Any


class PrivacyLeakWarning(UserWarning):
    """Something outside the guarantee, such as undeclared labels, was read from private data."""


class UtilityWarning(UserWarning):
    """A release may be worth no more than a guess, or than a model of public records alone."""


class PrivateEvaluationError(ValueError):
    """The target or the mechanism failed on the private data; the message shows no data."""


class UnlikeRecordsError(ValueError):
    """Many private records are unlike the oracle's; only the check that found it was paid for."""


class LedgerError(RuntimeError):
    """The ledger of a budget cannot be read or written; nothing was released for it."""


class BudgetExceededError(RuntimeError):
    """A release was refused because the budget does not allow it; nothing was spent.

    Its attributes are `spent`, the total so far; `asked`, the guarantee of the release; and
    `left`, the largest epsilon that one more release may have.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import BudgetExceededError, LaplaceMechanism, release
    >>> from skdp.accounting import PrivacyAccountant
    >>> ledger = PrivacyAccountant(":memory:", epsilon=1.0)
    >>> mechanism, records = LaplaceMechanism(3.0), np.ones(9)
    >>> try:
    ...     release(np.mean, records, mechanism=mechanism, sensitivity=1, accountant=ledger)
    ... except BudgetExceededError as error:
    ...     print(error.left)
    1.0
    """

    def __init__(self, message: str, spent: Any, asked: Any, left: float):
        super().__init__(message, spent, asked, left)  # all of them, so that a pickle has them
        self.spent, self.asked, self.left = spent, asked, left

    def __str__(self) -> str:
        return str(self.args[0])
