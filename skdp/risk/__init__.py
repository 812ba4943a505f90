"""Privacy at risk: how large the privacy loss of a release is, beside its promise.

Start from `privacy_loss_distribution`, the law of the privacy loss of one release, and
`joint_risk`, which adds the randomness of the pair when the sensitivity was sampled.
"""

from skdp.accounting.composition import PrivacyLossDistribution
from skdp.accounting.laws import GaussianLoss, LaplaceLoss, PureLoss
from skdp.risk.joint import joint_risk, privacy_loss_distribution

__all__ = [
    "GaussianLoss",
    "LaplaceLoss",
    "PrivacyLossDistribution",
    "PureLoss",
    "joint_risk",
    "privacy_loss_distribution",
]
