"""Isotonic functions, and other maps from scores of a classifier to probabilities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import Estimator, Values
from skdp.estimators.catalog.entry import Entry
from skdp.estimators.catalog.repairs import positive

# An isotonic function is released at this many evenly spaced points.
N_KNOTS = 21


def _read_isotonic(fitted: Estimator, public_fit: Estimator) -> Values:
    """Evaluate the fitted function on evenly spaced points of the public fit's range."""
    points = np.linspace(public_fit.X_min_, public_fit.X_max_, N_KNOTS)
    return {"y_thresholds_": np.interp(points, fitted.X_thresholds_, fitted.y_thresholds_)}


def _finish_isotonic(released: Estimator, public_fit: Estimator) -> None:
    """Make the values monotone, by isotonic regression on the public points."""
    points = np.linspace(public_fit.X_min_, public_fit.X_max_, N_KNOTS)
    released.fit(points, released.y_thresholds_)


def _in_unit_interval(values: NDArray, fallback: NDArray) -> NDArray:
    return np.clip(values, 0, 1)


_isotonic = Entry(
    ("y_thresholds_",), _finish_isotonic, read=_read_isotonic, anchored=True, numbers=str(N_KNOTS)
)
ENTRIES: dict[str, Entry] = {"sklearn.isotonic.IsotonicRegression": _isotonic}

# The classes of the other two are private, so their fitted attributes identify them.
_by_attributes = {
    frozenset({"a_", "b_"}): Entry(("a_", "b_")),  # slope and offset of a sigmoid
    # the inverse of a temperature
    frozenset({"beta_"}): Entry(("beta_",), repairs={"beta_": positive}),
}


def calibrator_entry(fitted: Estimator) -> Entry | None:
    """Return the entry of a calibrator, None for one of an unknown kind."""
    if "y_thresholds_" in vars(fitted):
        return replace(_isotonic, repairs={"y_thresholds_": _in_unit_interval})
    return _by_attributes.get(frozenset(vars(fitted)))
