"""Warn, before anything is paid for, of a release that adds little to public records."""

from __future__ import annotations

from typing import Any

from skdp.core.checks import is_real, warn
from skdp.estimators.members import configured_members
from skdp.plan import ReleasePlan

LEAST_SHARE = 0.1
"""Warn when a smaller share of the model is learned from private data."""
SMALL_TOLERANCE = 1e-8
"""A solver with a smaller `tol` changes less by stopping early than a record changes."""


def warn_of_worth(plan: ReleasePlan) -> None:
    """Warn, before anything is paid for, of a release that adds little to public records."""
    expected, share = plan.expected_score, plan.share_learned
    if expected is None and share < LEAST_SHARE:
        said = f"{share:.1%} of what public fits leave open is learned from the private data"
    elif expected is not None and not expected.gains:
        said = f"expected {expected.scoring}: {expected}"
    else:
        return
    if expected is not None and not expected.could_gain:
        advice = "An exact model is not clearly better there either"
    else:
        advice = "A larger epsilon, more records, stronger regularization or fewer released numbers"
        advice += " would help" + _advise_tolerance(getattr(plan.target, "estimator", None))
    alone = "public records alone" if expected is None else expected.alone
    warn(f"The release may be worth no more than {alone}: {said}. {advice}.")


def _advise_tolerance(estimator: Any) -> str:
    """Name solvers that may stop early, as one record may change where they stop."""
    parts = () if estimator is None else (part for _, part, _ in configured_members(estimator))
    loose = [
        f"{type(part).__name__}(tol={part.tol:g})"
        for part in parts
        if is_real(getattr(part, "tol", None)) and part.tol > SMALL_TOLERANCE
        if getattr(part, "max_iter", None) is not None  # a Ridge that solves exactly has none
    ]
    if not loose:
        return ""
    return (
        f"; and so would a smaller tol, such as {SMALL_TOLERANCE:g}, with a larger max_iter, where "
        f"the solver of {', '.join(loose)} stops before it is done"
    )
