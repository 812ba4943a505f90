"""Our own models, which learn one moment."""

from __future__ import annotations

from skdp.core.types import Estimator
from skdp.estimators.catalog.entry import Entry, always
from skdp.estimators.catalog.known import ClassMoment, ResponseMoment


def _derive(released: Estimator, public_fit: Estimator) -> None:
    """Recompute the coefficients, with the second moment of the public fit."""
    released.derive()


ENTRIES: dict[str, Entry] = {
    "skdp.estimators.moments.MomentClassifier": Entry(
        always("moment_"), _derive, numbers="(k - 1)(d + 1)", known=ClassMoment
    ),
    "skdp.estimators.moments.MomentRegressor": Entry(
        always("moment_"), _derive, numbers="d + 1", known=ResponseMoment
    ),
}
