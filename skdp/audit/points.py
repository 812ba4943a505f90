"""The local approach in two stages: a point from one sample, its loss from another."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from skdp.audit.comparison import (
    ATOM_FLOOR,
    atoms_of,
    check_samples,
    common_bandwidth,
    compare,
    compare_densities,
    continuous_part,
    show,
)
from skdp.audit.outputs import Outputs, as_outputs
from skdp.audit.privacy_loss import estimate_privacy_loss

FRESH_EXPONENT = 1.15
"""The second stage uses ``h ~ n**(-1.15/(d+4))``: less bias than the usual 1, a little noisier."""


@dataclass(frozen=True)
class LossPoint:
    """One output, the loss there in the direction of `sign`, and its one-sided lower limit.

    The sign is 1 where x is the likelier dataset, else -1, and an atom is an output of positive
    probability. The resolution is the largest loss that the larger of the two densities, or
    probabilities, allows beside the floor, the least that was used.
    """

    value: Any
    is_atom: bool
    sign: int
    loss: float
    lower: float
    floor: float
    resolution: float

    def __str__(self) -> str:
        kind = "probability" if self.is_atom else "density"
        return f"output {show(self.value)}, blind below {kind} {self.floor:.3g}"


def most_revealing_point(x: Any, y: Any, *, confidence: float = 0.95) -> LossPoint:
    """Find the output whose loss has the largest lower confidence limit.

    The plain maximum of the loss would be drawn to points where the estimate is noisy. The loss of
    the point is inflated by the search: estimate it again with :func:`loss_at`.
    """
    loss = estimate_privacy_loss(x, y, confidence=confidence)
    margin = stats.norm.ppf(confidence) * loss.standard_error
    k = int(np.argmax(np.where(loss.visible, loss.loss - margin, -np.inf)))
    atom = bool(loss.is_atom[k])
    return _point(
        loss.points[k], atom, 1 if loss.log_ratio[k] >= 0 else -1, loss.density_x[k],
        loss.density_y[k], loss.standard_error[k], loss.atom_floor if atom else loss.floor,
        confidence,
    )  # fmt: skip


def loss_at(point: LossPoint, x: Any, y: Any, *, confidence: float = 0.95) -> LossPoint:
    """Estimate the loss at a given output, in a given direction, from fresh samples.

    The bandwidth is ``1.06 s n**(-1.15/(d+4))``, smaller than in the search: bias, which the
    confidence limit does not cover, shrinks faster than noise. `confidence` is that of the
    one-sided limit; approximate, by the delta method.
    """
    fresh_x, fresh_y = check_samples(x, y)
    if point.is_atom:
        hits = [np.array([_share(sample, point.value)]) for sample in (fresh_x, fresh_y)]
        part = compare(
            hits, len(fresh_x), len(fresh_y), 1.0, ATOM_FLOOR / min(len(fresh_x), len(fresh_y))
        )
    else:
        table = atoms_of(fresh_x, fresh_y)
        rest_x, rest_y = (continuous_part(table, sample) for sample in (fresh_x, fresh_y))
        h = common_bandwidth(rest_x, rest_y, FRESH_EXPONENT / (rest_x.shape[1] + 4))
        where = np.reshape(point.value, (1, -1))
        part = compare_densities(where, rest_x, rest_y, len(fresh_x), len(fresh_y), h, None)
    return _point(
        point.value, point.is_atom, point.sign, part.density_x[0], part.density_y[0],
        part.standard_error[0], part.floor, confidence,
    )  # fmt: skip


def _point(
    value: Any,
    is_atom: bool,
    sign: int,
    f_x: float,
    f_y: float,
    error: float,
    floor: float,
    confidence: float,
) -> LossPoint:
    """Make a point with its one-sided limit."""
    loss = sign * math.log(f_x / f_y)
    lower = loss - float(stats.norm.ppf(confidence)) * error
    resolution = math.log(max(f_x, f_y) / floor)
    return LossPoint(value, is_atom, sign, max(loss, 0.0), max(lower, 0.0), floor, resolution)


def _share(sample: Outputs, value: object) -> float:
    """Return how often a value occurs."""
    return float(np.mean(sample.rows == as_outputs([value]).rows))
