"""Plots of releases, densities, utility, budgets and sensitivities. They need matplotlib."""

from skdp.displays.budget import BudgetDisplay
from skdp.displays.density import PrivateDensityDisplay
from skdp.displays.release import ReleaseDisplay
from skdp.displays.sensitivity import SensitivityDisplay
from skdp.displays.tables import ClassTablesDisplay
from skdp.displays.utility import PrivacyUtilityDisplay

__all__ = [
    "BudgetDisplay",
    "ClassTablesDisplay",
    "PrivacyUtilityDisplay",
    "PrivateDensityDisplay",
    "ReleaseDisplay",
    "SensitivityDisplay",
]
