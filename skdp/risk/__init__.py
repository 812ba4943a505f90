"""Privacy at risk: what a release really risks, and what it costs.

Start from `privacy_loss_distribution`, the law of the privacy loss of one release, and
`joint_risk`, which adds the randomness of the pair when the sensitivity was sampled.
"""

from skdp.accounting.composition import GridLoss, PrivacyLossDistribution
from skdp.accounting.laws import GaussianLoss, LaplaceLoss, PureLoss
from skdp.risk.bounds import advanced_composition
from skdp.risk.cost import CompensationModel
from skdp.risk.joint import JointRisk, joint_risk, privacy_loss_distribution

__all__ = [
    "CompensationModel",
    "GaussianLoss",
    "GridLoss",
    "JointRisk",
    "LaplaceLoss",
    "PrivacyLossDistribution",
    "PureLoss",
    "advanced_composition",
    "joint_risk",
    "privacy_loss_distribution",
]
