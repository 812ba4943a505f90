"""Which estimators have a closed form: found by class, and tried on the first pair."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset
from skdp.core.moments import TOLERANCE, Moments
from skdp.core.types import Container, Estimator
from skdp.core.units import Records, robust_units
from skdp.estimators.catalog import entry_of
from skdp.estimators.closed_forms import ClosedForm

if TYPE_CHECKING:
    from skdp.estimators.parameters import ParameterTarget

FAR_ORIGIN = 2.0**26
"""Of a unit: about an origin further away, refits by products lose half of their digits too."""

FAR = 16.0
"""Records beyond so many units are left out of the trial, which is about formulas, not digits."""


def closed_form_of(target: ParameterTarget, records: Dataset) -> Moments | None:
    """Find moments that give the differences of a parameter target.

    The records of a first pair are the origin of the moments, and the trial: refits must give the
    same difference. None when no closed form is known for the estimator as configured, for the
    attributes released or for the kind of records, or when the trial fails.
    """
    if not all(map(_is_plain, records.parts)) or records.X.ndim != 2:
        return None
    length, width = records.X.shape
    forms = _forms(target.estimator, (length - 1, width))
    if not forms:
        return None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # as in every pair: see run_chunk
        try:
            units = _units(target, records)
            trial = _without_far(records, units)
            values = target.pair_values(trial, seed=0)
            if (np.abs(units.center) > FAR_ORIGIN * units.scale).any():
                forms = [form for form in forms if not form.products]
            candidates = [_bind(target, form, units) for form in forms]
            return next((m for m in candidates if _agrees(m, trial, *values)), None)
        except Exception:  # a first pair that fails is no trial: go on with refits
            return None


def _forms(estimator: Estimator, shape: tuple[int, int]) -> list[ClosedForm]:
    """List the closed forms of the catalog, if the parameters are those for which they hold."""
    known = entry_of(estimator).closed_form
    if known is None:
        return []
    forms, plain = known
    parameters = estimator.get_params(deep=False)
    is_plain = all(parameters[name] in values for name, values in plain.items())
    return forms(estimator, shape) if is_plain else []


def _is_plain(container: Container) -> bool:
    """Return whether a container is an array whose numbers the estimators read as doubles."""
    return (isinstance(container, np.ndarray) and container.dtype.kind in "iubUO") or (
        isinstance(container, np.ndarray) and container.dtype == np.float64
    )


def _units(target: ParameterTarget, records: Dataset) -> Records:
    """Find the classes, or the unit of the response, and origin and unit of each column."""
    has_origin = getattr(target.estimator, "fit_intercept", True)
    center, scale = robust_units(records.X, has_origin)
    classes = getattr(target.public_fit, "classes_", None)
    response = (0.0, 1.0)
    if classes is None and records.y is not None and records.y.ndim == 1:
        origin, unit = robust_units(records.y[:, None], has_origin)
        response = float(origin[0]), float(unit[0])
    return Records(classes, center, scale, response)


def _without_far(records: Dataset, units: Records) -> Dataset:
    """Put others in the place of records that lie far from the origin."""
    near: NDArray = np.abs(units.standardize(records.X)).max(axis=1) <= FAR
    if units.classes is None and records.y is not None and records.y.ndim == 1:
        near &= np.abs(units.standardize_response(records.y)) <= FAR
    places = np.arange(len(near))
    places[~near] = np.resize(places[near], np.count_nonzero(~near))
    return records.take(places)


def _agrees(moments: Moments, records: Dataset, *expected: NDArray[np.float64]) -> bool:
    """Compare both values and their difference: two equal records say little."""
    found = moments.pair(records)
    pairs = [*zip(found, expected, strict=True), (found[0] - found[1], expected[0] - expected[1])]
    return all(np.abs(a - b).max() <= TOLERANCE * np.abs(b).max() for a, b in pairs)


def _bind(target: ParameterTarget, form: ClosedForm, units: Records) -> Moments:
    def features(*dataset: Container) -> NDArray[np.float64]:
        return form.features(units, *dataset)

    def values(sums: NDArray, n_samples: int) -> NDArray[np.float64]:
        return target.flatten_many(form.attributes(units, sums / n_samples, n_samples))

    def sizes(sums: NDArray, n_samples: int) -> NDArray[np.float64]:
        assert form.sizes is not None
        return form.sizes(units, sums, n_samples)

    return Moments(
        features, values, products=form.products, sizes=None if form.sizes is None else sizes
    )
