"""The warnings and errors of skdp."""

from __future__ import annotations

from typing import Any


class PrivacyLeakWarning(UserWarning):
    """Something outside the guarantee was read from private data.

    Examples
    --------
    Labels that are not declared are read off the records:

    >>> import warnings
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from skdp import LaplaceMechanism, PrivacyLeakWarning, PrivateEstimator
    >>> X, y = np.arange(6.0)[:, None] / 6, [0, 1, 0, 1, 1, 1]
    >>> model = PrivateEstimator(
    ...     LogisticRegression(), mechanism=LaplaceMechanism(1.0), sensitivity=0.5
    ... )
    >>> with warnings.catch_warnings(record=True) as given:
    ...     warnings.simplefilter("always")
    ...     model = model.fit(X, y)
    >>> any(each.category is PrivacyLeakWarning for each in given)
    True
    """


class UtilityWarning(UserWarning):
    """A release may be worth no more than a guess, or than a model of public records alone.

    Examples
    --------
    Filter it where the promise matters, and not the score:

    >>> import warnings
    >>> from skdp import UtilityWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UtilityWarning)
    """


class PrivateEvaluationError(ValueError):
    """The target or the mechanism failed on the private data; the message shows no data.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import LaplaceMechanism, PrivateEvaluationError, release
    >>> def share_of_smokers(X):
    ...     return sum(x == "smokes" for x in X) / sum(x != "unknown" for x in X)
    >>> records, mechanism = np.array(["unknown"] * 9), LaplaceMechanism(1.0)
    >>> try:
    ...     release(share_of_smokers, records, mechanism=mechanism, sensitivity=0.1)
    ... except PrivateEvaluationError as error:
    ...     print("division" in str(error))
    False
    """


class UnlikeRecordsError(ValueError):
    """Many private records are unlike the oracle's; only the check that found it was paid for.

    Examples
    --------
    It is a ValueError, as are other refusals of records, which spend nothing:

    >>> from skdp import UnlikeRecordsError
    >>> issubclass(UnlikeRecordsError, ValueError)
    True
    """


class LedgerError(RuntimeError):
    """The ledger of a budget cannot be read or written; nothing was released for it.

    Examples
    --------
    >>> from skdp import LedgerError
    >>> from skdp.accounting import PrivacyAccountant
    >>> try:
    ...     PrivacyAccountant("/dev/null/ledger", epsilon=1.0)
    ... except LedgerError:
    ...     print("no such folder")
    no such folder
    """


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
