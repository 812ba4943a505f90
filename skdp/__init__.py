"""Private scikit-learn estimators by sensitivity sampling."""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from skdp._version import __version__ as __version__
from skdp.accounting.accountant import PrivacyAccountant
from skdp.aggregate.target import SampleAndAggregate
from skdp.compare import compare
from skdp.core.guarantee import PrivacyGuarantee
from skdp.core.oracle import Oracle
from skdp.core.target import FunctionTarget, Target
from skdp.estimator import PrivateEstimator
from skdp.estimators.catalog import register, supported_estimators
from skdp.estimators.clip import ClipBox, ClipNorm
from skdp.estimators.components import PublicComponents
from skdp.estimators.moments import MomentClassifier, MomentRegressor
from skdp.estimators.predictions import PredictionTarget
from skdp.exceptions import (
    BudgetExceededError,
    LedgerError,
    PrivacyLeakWarning,
    PrivateEvaluationError,
    UnlikeRecordsError,
    UtilityWarning,
)
from skdp.functions.bernstein import BernsteinTransformer
from skdp.mechanisms.base import Mechanism
from skdp.mechanisms.exponential import ExponentialMechanism
from skdp.mechanisms.gaussian import GaussianMechanism
from skdp.mechanisms.l2_laplace import L2LaplaceMechanism
from skdp.mechanisms.laplace import LaplaceMechanism
from skdp.oracles.persons import PersonsOracle
from skdp.oracles.public_data import PublicDataOracle
from skdp.oracles.random_density import RandomDensityOracle
from skdp.oracles.random_task import RandomTaskOracle
from skdp.oracles.uniform import UniformOracle
from skdp.plan import ReleasePlan
from skdp.planning.tables import release_oracle
from skdp.release import plan_release, release
from skdp.result import Release, load
from skdp.search.private import PrivateSearchCV
from skdp.search.public import public_search
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.estimate import SensitivityEstimate
from skdp.sensitivity.sampler import SensitivitySampler
from skdp.tables.columns import Category, Number
from skdp.tables.release import ClassTables
from skdp.tables.schema import Schema
from skdp.tables.statistics import CountTarget, MeanTarget

if TYPE_CHECKING:
    from skdp import accounting as accounting
    from skdp import audit as audit
    from skdp import bounds as bounds
    from skdp import codes as codes
    from skdp import displays as displays
    from skdp import functions as functions
    from skdp import risk as risk

__all__ = [
    "BernsteinTransformer",
    "BudgetExceededError",
    "Category",
    "ClassTables",
    "ClipBox",
    "ClipNorm",
    "CountTarget",
    "ExponentialMechanism",
    "FunctionTarget",
    "GaussianMechanism",
    "KnownSensitivity",
    "L2LaplaceMechanism",
    "LaplaceMechanism",
    "LedgerError",
    "MeanTarget",
    "Mechanism",
    "MomentClassifier",
    "MomentRegressor",
    "Number",
    "Oracle",
    "PersonsOracle",
    "PredictionTarget",
    "PrivacyAccountant",
    "PrivacyGuarantee",
    "PrivacyLeakWarning",
    "PrivateEstimator",
    "PrivateEvaluationError",
    "PrivateSearchCV",
    "PublicComponents",
    "PublicDataOracle",
    "RandomDensityOracle",
    "RandomTaskOracle",
    "Release",
    "ReleasePlan",
    "SampleAndAggregate",
    "Schema",
    "SensitivityEstimate",
    "SensitivitySampler",
    "Target",
    "UniformOracle",
    "UnlikeRecordsError",
    "UtilityWarning",
    "compare",
    "load",
    "plan_release",
    "public_search",
    "register",
    "release",
    "release_oracle",
    "supported_estimators",
]


WINGS = {"accounting", "audit", "bounds", "codes", "displays", "functions", "risk"}
"""Modules whose names stay in them. Importing them takes time, so it waits for their first use."""


def __getattr__(name: str) -> ModuleType:
    """Import one of `WINGS` on first use."""
    if name in WINGS:
        return importlib.import_module(f"skdp.{name}")
    raise AttributeError(f"module 'skdp' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List what is public, and not what this module imports for itself."""
    own = {name for name in globals() if name.startswith("__")}
    return sorted({*own, *__all__, *WINGS})
