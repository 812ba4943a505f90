"""Privacy at risk: what a release really risks, what it costs, and the published numbers.

Start from `privacy_loss_distribution`, the law of the privacy loss of one release, and
`joint_risk`, which adds the randomness of the pair when the sensitivity was sampled. Published
numbers that do not hold are in `skdp.risk.paper`; no guarantee is computed from them.
"""

from skdp.accounting.composition import (
    GridLoss,
    PrivacyLossDistribution,
)
from skdp.accounting.laws import GaussianLoss, LaplaceLoss, PureLoss
from skdp.risk.bounds import (
    advanced_composition,
    basic_composition,
    composition_at_risk,
    dkw_factor,
    dkw_n_pairs,
    sampled_confidence,
)
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
    "basic_composition",
    "composition_at_risk",
    "dkw_factor",
    "dkw_n_pairs",
    "joint_risk",
    "privacy_loss_distribution",
    "sampled_confidence",
]
