"""Try a function on made-up records, where its sensitivity is known on paper.

Sampled pairs would show what the function does; a bound does not. With the bound of a mean, a sum
would get a tiny part of the noise that it needs, and with the bound 1 a histogram half of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from skdp.core.dataset import Dataset, neighboring_pair, take_records
from skdp.core.dtypes import MisfitError, categories_of, double, holds_numbers, made_up_entries
from skdp.core.room import quiet, spare
from skdp.core.schema import DatasetForm, Form
from skdp.core.target import Target, ValueFormError, as_numbers
from skdp.core.types import Container, Matrix
from skdp.sensitivity.bounds import KnownSensitivity
from skdp.sensitivity.preconditions import OF_COUNTS, OF_MEAN

NUMBERS = (1e30, 1e4, 1e3, 200, 100, 50, 20, 5, 2, 1, 0)  # what one record holds in all columns
SLACK = 1e-9  # relative share by which a change, computed in floats, may exceed its bound


def try_on_made_up(
    target: Target, schema: DatasetForm, known: KnownSensitivity
) -> tuple[tuple[int, ...] | None, Matrix | None]:
    """Return the shape of a function's values and one in the ranges, or refuse the function."""
    shape = within = None
    singles: list[Matrix] = []
    bounded = known.bounded(target)
    with quiet(), suppress(MisfitError):  # not each form can be made up
        for datasets in _made_up(schema, known):
            try:
                values = [spare(bounded)(*dataset.parts, seed=0) for dataset in datasets]
                values = [as_numbers(value, target.description) for value in values]
            except (Exception, SystemExit) as error:  # it may fail on what is made up
                if isinstance(error, ValueFormError) and (shape is None or len(datasets) > 1):
                    raise
                continue
            if len(values) == 2:
                _check_moved(target, known, *values)
                within = values[0] if np.isfinite(values[0]).all() else within
            elif shape in (None, values[0].shape):
                singles += values
            shape = values[0].shape if shape is None else shape
    if len(singles) > 1:
        _check_bounded(target, known, singles[1:])
        within = singles[-1] if np.isfinite(singles[-1]).all() else within
    if None not in (shape, known.shape) and shape != known.shape:
        supposed = f", assuming {known.preconditions}" if known.preconditions else ""
        raise ValueError(
            f"The known sensitivity is for values of shape {known.shape}{supposed}. On made-up "
            f"records the target {target.description} returned shape {shape}."
        )
    return shape, within


def _check_moved(target: Target, known: KnownSensitivity, value: Matrix, other: Matrix) -> None:
    """Refuse two values that are farther apart than the bound, or of different shapes."""
    moved, rounding = math.inf, 0.0
    if value.shape == other.shape:
        with np.errstate(invalid="ignore"):  # infinite values differ by NaN, which exceeds nothing
            moved = known.geometry.distance(value, other)
            rounding = known.n_samples * 2.0**-52 * np.abs([value, other]).sum()
    if moved > (1 + SLACK) * known.value + rounding:
        raise ValueError(
            f"The known sensitivity is no bound for the target {target.description}: on made-up "
            f"records, replacing one of {known.n_samples} moved the value by {moved:.6g} in "
            f"{known.geometry.key!r}, more than {known.value:.6g}. Take a bound of this function, "
            "such as count_bound of skdp.bounds for counts, or sample its sensitivity."
        )


def _check_bounded(target: Target, known: KnownSensitivity, values: list[Matrix]) -> None:
    """Refuse values of neighbors, the first with the largest number, that are too far apart.

    A function that moves farthest for the largest number may have a bound within a range, which
    the caller knows. There are two values where the records are truth values.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        distance = known.geometry.distance
        moved = np.array([[distance(value, other) for other in values] for value in values])
    if len(values) <= 2 or moved[0].max() <= moved[1:, 1:].max():
        first, second = divmod(int(moved.argmax()), len(values))
        _check_moved(target, known, values[first], values[second])


def _neighbors(schema: DatasetForm, n_samples: int) -> Iterator[Dataset]:
    """Make datasets that differ in the numbers of the last record, from the largest down."""
    dtypes = [dtype for part in schema.parts.parts for dtype in part.dtypes]
    is_single = any(str(dtype).lower() in ("float16", "float32") for dtype in dtypes)
    if is_single or any(categories_of(dtype) is not None for dtype in dtypes):
        return  # rounding may exceed the bound; categories may be private
    rows = np.append(np.arange(n_samples - 1) % 2, 2)
    for number in NUMBERS:
        with suppress(MisfitError):  # a type may hold smaller ones only
            made = schema.parts.map(partial(_zero_one_and, number))
            if not any(map(sparse.issparse, made.parts)):
                yield made.take(rows)


def _zero_one_and(number: float, form: Form) -> Container:
    """Make three records of a form, whose numbers are 0, 1 and a third one."""
    columns = [
        np.resize([0.0, 1.0, number] if holds_numbers(dtype) else made_up_entries(dtype), 3)
        for dtype in form.dtypes
    ]
    if form.is_frame:
        lists = (column.tolist() for column in columns)
        return form.convert(form.kind(dict(zip(form.names, lists, strict=True))))
    column = columns[0].reshape(3, *(1 for _ in form.shape))
    return form.convert(np.broadcast_to(column, (3, *form.shape)))


def _made_up(schema: DatasetForm, known: KnownSensitivity) -> Iterator[Sequence[Dataset]]:
    """Make datasets of a form, in pairs that differ in one record for the bound of a mean."""
    form, rest = schema.parts.X, schema.parts._replace(X=None)
    # how far a function moves could tell of categories that only private records have
    declared = any(categories_of(dtype) is not None for part in rest.parts for dtype in part.dtypes)
    supposes_more = known.gamma or known.estimator or known.preconditions not in ("", OF_MEAN)
    if known.ranges is None or declared or supposes_more:  # made-up records may violate the bound
        yield [schema.parts.map(lambda part: part.made_up(2))]
        if known.ranges is None and not known.gamma and known.preconditions in ("", OF_COUNTS):
            yield from ([each] for each in _neighbors(schema, known.n_samples))
        return
    n, (low, high) = known.n_samples, np.array(known.ranges).T
    doubles = replace(form, dtypes=tuple(map(double, form.dtypes)))  # as clipped records are
    corners = doubles.convert(np.vstack([low, high, np.clip(0, low, high)]))
    places = np.arange(n - 1)
    ends = np.append(places, [0, 1])  # a record moves from low to high, and so does its response
    others = rest.map(lambda part: take_records(part.made_up(n + 1), ends))

    def pair(rows: NDArray[np.intp], position: int) -> tuple[Dataset, Dataset]:
        X = take_records(corners, np.append(rows, [0, 1]))
        return neighboring_pair(others._replace(X=X), position)

    yield pair(np.full_like(places, 2), n - 1)
    # full rows, as many as there are private ones, may not fit into a sparse container
    if not sparse.issparse(corners):
        yield pair((places < n // 2).astype(np.intp), 0)
