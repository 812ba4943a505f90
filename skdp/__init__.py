"""Private scikit-learn estimators by sensitivity sampling."""

from skdp.accounting.guarantee import NeighboringRelation, PrivacyGuarantee
from skdp.estimator import PrivateEstimator
from skdp.exceptions import PrivacyLeakWarning, PrivateEvaluationError
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.release import Release, release
from skdp.sensitivity.calibration import OrderStatistic, order_statistic
from skdp.sensitivity.estimate import KnownSensitivity, SensitivityEstimate
from skdp.sensitivity.oracles import (
    GaussianOracle,
    MakeOracle,
    PublicDataOracle,
    UniformOracle,
)
from skdp.sensitivity.random_task import RandomTaskOracle
from skdp.sensitivity.sampler import SamplingPlan, SensitivitySampler

__version__ = "0.1.0"

__all__ = [
    "GaussianOracle",
    "KnownSensitivity",
    "LaplaceMechanism",
    "MakeOracle",
    "NeighboringRelation",
    "OrderStatistic",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivateEstimator",
    "PrivateEvaluationError",
    "PublicDataOracle",
    "RandomTaskOracle",
    "Release",
    "SamplingPlan",
    "SensitivityEstimate",
    "SensitivitySampler",
    "UniformOracle",
    "order_statistic",
    "release",
]
