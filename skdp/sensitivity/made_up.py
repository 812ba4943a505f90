"""Try a function on made-up records, where its sensitivity is known on paper.

Sampled pairs would show what the function does; a bound does not. With the bound of a mean, a sum
would get a tiny part of the noise that it needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.checks import warn
from skdp.core.dataset import Dataset, take_records
from skdp.core.dtypes import MisfitError, categories_of, double, holds_numbers
from skdp.core.room import quiet, spare
from skdp.core.schema import Schema
from skdp.core.target import Target, ValueFormError, as_numbers
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.preconditions import OF_MEAN

N_MADE_UP = 20
"""Number of different records."""
SLACK = 1e-9
"""Relative share by which a change may exceed its bound, since it is computed in floats."""


def try_on_made_up(
    target: Target, schema: Schema, known: KnownSensitivity
) -> tuple[tuple[int, ...] | None, NDArray[np.float64] | None]:
    """Return the shape of a function's values, and a value within the ranges, or None.

    A function is refused that returns no numbers, or that one record moves by more than its bound.
    """
    failures: list[str] = []
    bounded, shape, within = known.bounded(target), None, None
    with quiet(), suppress(MisfitError):  # not each form can be made up
        for datasets in _made_up(schema, known):
            values = [_value(bounded, dataset, failures) for dataset in datasets]
            if len(values) == 2 and not (values[0] is None or values[1] is None):
                _check_moved(target, known, values[0], values[1])
                within = values[0] if np.isfinite(values[0]).all() else within
            shape = next((value.shape for value in values if value is not None), shape)
    are_numbers = all(holds_numbers(dtype) for part in schema.parts for dtype in part.dtypes)
    if shape is None and failures and (are_numbers or known.ranges is not None):
        warn(
            f"The target {target.description} raised {failures[0]} on made-up numbers in the form "
            "of the data, and a failure on private ones costs the budget. Try it on public records."
        )
    if None not in (shape, known.shape) and shape != known.shape:
        supposed = f", assuming {known.preconditions}" if known.preconditions else ""
        raise ValueError(
            f"The known sensitivity is for values of shape {known.shape}{supposed}. On made-up "
            f"records the target {target.description} returned shape {shape}."
        )
    return shape, within


def _value(target: Target, dataset: Dataset, failures: list[str]) -> NDArray[np.float64] | None:
    """Evaluate a target; where it fails, note the kind of error and return None."""
    try:
        return as_numbers(spare(target)(*dataset.parts, seed=0), target.description)
    except ValueFormError:
        raise
    except (Exception, SystemExit) as error:
        failures.append(type(error).__name__)
        return None


def _check_moved(
    target: Target, known: KnownSensitivity, value: NDArray[np.float64], other: NDArray[np.float64]
) -> None:
    """Refuse two values that are farther apart than the bound, or of different shapes."""
    if value.shape != other.shape:
        change = f"changed the shape of the value from {value.shape} to {other.shape}"
    else:
        with np.errstate(invalid="ignore"):
            moved = known.geometry.distance(value, other)
            rounding = known.n_samples * 2.0**-52 * np.abs([value, other]).sum()
        if not moved > (1 + SLACK) * known.value + rounding:
            return
        change = f"moved the value by {moved:.6g} in {known.geometry.key!r}, more than "
        change += f"{known.value:.6g}"
    raise ValueError(
        f"The known sensitivity is no bound for the target {target.description}: on made-up "
        f"records, replacing one of {known.n_samples} {change}. Take a bound of this function, or "
        "sample its sensitivity."
    )


def _made_up(schema: Schema, known: KnownSensitivity) -> Iterator[list[Dataset]]:
    """Make datasets of a form, in pairs that differ in one record where the bound has ranges."""
    form, *rest = schema.parts
    # how far a function moves could tell of categories that only private records have
    declared = any(categories_of(dtype) is not None for part in rest for dtype in part.dtypes)
    supposes_more = known.gamma or known.estimator or known.preconditions not in ("", OF_MEAN)
    if known.ranges is None or declared or supposes_more:  # made-up records may violate the bound
        yield [Dataset(*(part.made_up(N_MADE_UP) for part in schema.parts))]
        return
    n, middle = known.n_samples, known.n_samples // 2
    doubles = replace(form, dtypes=tuple(map(double, form.dtypes)))  # as clipped records are
    low, high = np.array(known.ranges).T
    between = np.random.default_rng(0).uniform(low, high, size=(N_MADE_UP, len(low)))
    table = doubles.convert(np.vstack([low, high, np.clip(0, low, high), between]))
    responses = [part.made_up(n + 2) for part in rest]  # 0, 1, 0, ...
    places = np.arange(n)
    alike = np.where(places == n - 1, 3, 2)  # but for one
    halves, varied = (places <= middle).astype(int), 3 + places % N_MADE_UP
    # full rows, as many as there are private ones, may not fit into a sparse container
    trials = [(alike, middle), (halves, 0), (varied, n - 1)]
    for rows, place in trials[: 1 if sparse.issparse(table) else 3]:
        pair = []
        for corner in (0, 1):  # a record moves from the lower ends to the upper, and its response
            rows[place] = corner
            others = [
                take_records(part, np.where(places == place, corner, places)) for part in responses
            ]
            pair.append(Dataset(doubles.convert(take_records(table, rows)), *others))
        yield pair
