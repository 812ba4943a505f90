"""Private scikit-learn estimators by sensitivity sampling."""

from skdp.accounting.guarantee import NeighboringRelation, PrivacyGuarantee

__version__ = "0.1.0"

__all__ = ["NeighboringRelation", "PrivacyGuarantee"]
