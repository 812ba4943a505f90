"""What a display is made of: who gives it something else is told what takes that."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skdp.accounting.accountant import PrivacyAccountant
from skdp.estimator import PrivateEstimator
from skdp.functions.released_density import ReleasedDensity
from skdp.plan import ReleasePlan
from skdp.result import ReleaseSummary
from skdp.sensitivity.estimate import SensitivityEstimate

KINDS: dict[str, type] = {
    "from_accountant": PrivacyAccountant,
    "from_density": ReleasedDensity,
    "from_estimate": SensitivityEstimate,
    "from_estimator": PrivateEstimator,
    "from_plan": ReleasePlan,
    "from_summary": ReleaseSummary,
}
PARTS = ("accountant", "estimator_", "plan_", "sensitivity", "sensitivity_", "value")


def check_given(display: type, constructor: str, given: Any, remedy: str = "") -> None:
    """Refuse what a constructor is not for, and name the one that takes it or a part of it."""
    kind = KINDS[constructor]
    if isinstance(given, kind) or (kind is PrivateEstimator and hasattr(given, "estimator_")):
        return
    for name, each in KINDS.items():
        for what, found in _parts(given):
            if not remedy and hasattr(display, name) and issubclass(found, each):
                remedy = f" {display.__name__}.{name} takes {what}."
    raise TypeError(
        f"The {constructor.removeprefix('from_')!r} parameter of {display.__name__}.{constructor} "
        f"must be a {kind.__name__}. Got {type(given).__name__}.{remedy}"
    )


def _parts(given: Any) -> Iterator[tuple[str, type]]:
    yield "it", type(given)
    yield from ((f"its {name!r}", type(getattr(given, name, None))) for name in PARTS)
    if hasattr(given, "summary"):
        yield "its summary()", ReleaseSummary
