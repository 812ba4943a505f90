"""Audits of a privacy claim, for any mechanism and for fitted estimators."""

from skdp.audit.attack import find_large_sensitivity
from skdp.audit.estimator import EstimatorAudit, audit_estimator
from skdp.audit.leaks import find_leaks
from skdp.audit.lower_bound import AuditResult, audit_epsilon
from skdp.audit.privacy_loss import PrivacyLoss, estimate_privacy_loss
from skdp.audit.release import audit_release

__all__ = [
    "AuditResult",
    "EstimatorAudit",
    "PrivacyLoss",
    "audit_epsilon",
    "audit_estimator",
    "audit_release",
    "estimate_privacy_loss",
    "find_large_sensitivity",
    "find_leaks",
]
