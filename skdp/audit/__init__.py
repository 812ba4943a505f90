"""Does it hold: audits of a privacy claim, for any mechanism and for fitted estimators."""

from skdp.audit.certificates import (
    clopper_pearson,
    label_bound,
    one_run_bound,
    one_run_p_value,
    pair_bound,
)
from skdp.audit.density import TruncatedKernelDensity
from skdp.audit.lower_bound import AuditResult, audit_epsilon
from skdp.audit.privacy_loss import PrivacyLoss, estimate_privacy_loss

__all__ = [
    "AuditResult",
    "PrivacyLoss",
    "TruncatedKernelDensity",
    "audit_epsilon",
    "clopper_pearson",
    "estimate_privacy_loss",
    "label_bound",
    "one_run_bound",
    "one_run_p_value",
    "pair_bound",
]
