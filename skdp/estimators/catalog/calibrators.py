"""What maps the scores of a classifier to probabilities, inside CalibratedClassifierCV."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.estimators.catalog.entry import Entry, always
from skdp.estimators.catalog.preprocessing import finish_isotonic, read_isotonic
from skdp.estimators.catalog.repairs import positive


def _finish_temperature(released: Any, public_fit: Any) -> None:
    """An inverse temperature that is not positive becomes the public fit's."""
    released.beta_ = positive(released.beta_, public_fit.beta_)[()]


def _finish_isotonic_probabilities(released: Any, public_fit: Any) -> None:
    """Clip the values to [0, 1] and make them monotone."""
    released.y_thresholds_ = np.clip(released.y_thresholds_, 0, 1)
    finish_isotonic(released, public_fit)


_isotonic = Entry(
    always("y_thresholds_"), _finish_isotonic_probabilities, read=read_isotonic, anchored=True
)
# The classes of the other two are private, so what they have learned tells which they are.
_by_attributes = {
    frozenset({"a_", "b_"}): Entry(always("a_", "b_")),  # slope and offset of a sigmoid
    frozenset({"beta_"}): Entry(always("beta_"), _finish_temperature),
}


def calibrator_entry(fitted: Any) -> Entry | None:
    """Return the entry of a calibrator, None for one of an unknown kind."""
    if "y_thresholds_" in vars(fitted):
        return _isotonic
    return _by_attributes.get(frozenset(vars(fitted)))
