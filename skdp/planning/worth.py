"""What a release is worth where nothing public can be drawn, and a warning if it is little."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from skdp.core.checks import warn
from skdp.core.dataset import Dataset
from skdp.core.oracle import Oracle
from skdp.core.schema import Schema
from skdp.core.types import Estimator
from skdp.estimators.catalog.compositions import is_frozen, is_pipeline
from skdp.estimators.clip import ClipBox, ClipNorm, ranges_of
from skdp.estimators.public_fit import in_container_of
from skdp.exceptions import UtilityWarning
from skdp.plan import ReleasePlan
from skdp.sensitivity.drawing import draw
from skdp.sensitivity.random_task import RandomTaskOracle

N_MADE_UP = 500
"""Number of different records that are made up."""

LEAST_SHARE = 0.1
"""Warn when a smaller share of the model is learned from private data."""


def made_up_oracle(
    estimator: Estimator,
    example: Dataset,
    schema: Schema,
    classes: list[NDArray] | None,
    y_range: tuple[float, float] | None,
) -> Oracle | None:
    """Return an oracle of records in the range of the first step, with random rules.

    None where labels or range of the responses are not known, or records cannot be made up.
    """
    if np.ndim(example.y) != 1 or issparse(example.X) or not (classes or y_range):
        return None
    n_features, rng = example.X.shape[1], np.random.default_rng(0)
    rules: dict[str, Any] = {"classes": classes[0] if classes else None}
    if y_range:
        low, high = y_range
        rules |= {"y_mean": (low + high) / 2, "y_scale": (high - low) / 8}  # seldom outside
    try:
        center, scale = _range_of_first_step(estimator, n_features)
        values = center + scale * math.sqrt(12) * (rng.random((N_MADE_UP, n_features)) - 0.5)
        oracle = RandomTaskOracle(in_container_of(example.X, values), **rules)
        draw(oracle, example.n_records, rng, schema=schema)
    except ValueError:  # too few records for the classes, or no number fits a column
        return None
    return oracle


def _range_of_first_step(estimator: Estimator, n_features: int) -> tuple[Any, Any]:
    """Return mean and standard deviation of the columns that the first step is made for."""
    first = estimator.steps[0][1] if is_pipeline(estimator) else estimator
    first = first.estimator if is_frozen(first) else first
    if isinstance(first, ClipBox):
        low, high = ranges_of(first, n_features)
        return (low + high) / 2, (high - low) / math.sqrt(12)
    if isinstance(first, ClipNorm):
        return 0.0, first.radius / math.sqrt(n_features)
    mean, scale = getattr(first, "mean_", None), getattr(first, "scale_", None)
    return (0.0, 1.0) if mean is None or scale is None else (mean, scale)


def warn_of_worth(plan: ReleasePlan) -> None:
    """Warn, before anything is paid for, of a release that adds little to public records."""
    expected, share = plan.expected_score, plan.share_learned
    alone = "public records alone" if expected is None else expected.alone
    if expected is None and share < LEAST_SHARE:
        said = f"{share:.1%} of what public fits leave open is learned from the private data"
    elif expected is not None and not expected.gains:
        said = f"expected {expected.scoring}: {expected}"
    else:
        return
    hints = [f"Instead, {plan.advice}."] * bool(plan.advice)
    if expected is not None and not expected.could_gain:
        hints += ["An exact model is not clearly better there either."]
    usual = (
        "A larger epsilon, more records, stronger regularization, a solver with a smaller tol, or "
        "fewer released numbers would help."
    )
    remedy = " ".join(hints) or usual
    warn(f"The release may be worth no more than {alone}: {said}. {remedy}", UtilityWarning)
