"""The warnings and errors of skdp."""

from __future__ import annotations

from typing import Any


class PrivacyLeakWarning(UserWarning):
    """Something outside the guarantee was read from private data."""


class PrivateEvaluationError(ValueError):
    """The target failed on the private data; the message says nothing of the data."""


class ReproductionWarning(UserWarning):
    """A published number is reproduced as printed, although it is not what it claims to be.

    Given by the functions of `skdp.risk.paper`. Their values are for comparison with the
    publication; no guarantee is ever computed from them.
    """


class LedgerError(RuntimeError):
    """The ledger of a budget cannot be read or written; nothing was released for it."""


class BudgetExceededError(RuntimeError):
    """A release was refused because the budget does not allow it; nothing was spent.

    Its attributes are `spent`, the total so far; `asked`, the guarantee of the release; and
    `left`, the largest epsilon that one more release may have.
    """

    def __init__(self, message: str, spent: Any, asked: Any, left: float):
        super().__init__(message, spent, asked, left)  # all of them, so that a pickle has them
        self.spent, self.asked, self.left = spent, asked, left

    def __str__(self) -> str:
        return str(self.args[0])
