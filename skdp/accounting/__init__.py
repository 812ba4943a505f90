"""The budget: what all releases may cost together, and what they have cost.

Start from `PrivacyAccountant`. The law of the privacy loss, from which the cost of many releases
is computed, is in `skdp.risk`.
"""

from skdp.accounting.accountant import PrivacyAccountant
from skdp.accounting.payer import default_accountant
from skdp.accounting.tally import BudgetTotal
from skdp.core.guarantee import NeighboringRelation, NoiseLaw

__all__ = [
    "BudgetTotal",
    "NeighboringRelation",
    "NoiseLaw",
    "PrivacyAccountant",
    "default_accountant",
]
