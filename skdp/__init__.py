"""Private scikit-learn estimators by sensitivity sampling."""

from skdp.accounting.guarantee import NeighboringRelation, PrivacyGuarantee
from skdp.estimator import PrivateEstimator
from skdp.exceptions import PrivacyLeakWarning, PrivateEvaluationError
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.release import Release, release
from skdp.sensitivity.bounds import KnownSensitivity, exponential_mean, mean_l1, mean_l2
from skdp.sensitivity.calibration import OrderStatistic, order_statistic
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.oracles import (
    GaussianOracle,
    MakeOracle,
    PublicDataOracle,
    UniformOracle,
)
from skdp.sensitivity.random_task import RandomTaskOracle
from skdp.sensitivity.sampler import SamplingPlan, SensitivitySampler
from skdp.sensitivity.svm_bounds import linear_svc_l1, linear_svm_l1, svm_l1
from skdp.targets.bernstein import BernsteinTransformer
from skdp.targets.bernstein_density import BernsteinDensity

__version__ = "0.1.0"

__all__ = [
    "BernsteinDensity",
    "BernsteinTransformer",
    "ExponentialMechanism",
    "GaussianMechanism",
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
    "exponential_mean",
    "linear_svc_l1",
    "linear_svm_l1",
    "mean_l1",
    "mean_l2",
    "order_statistic",
    "release",
    "svm_l1",
]
