"""From an oracle to checked datasets: `draw` asks for records, and unfit ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from skdp._data import Dataset, Schema, as_dataset, find_non_finite, n_records
from skdp.sensitivity.adapters import describe_oracle


def draw(
    oracle: Callable[[int, Generator], Any],
    n_samples: int,
    rng: Generator,
    *,
    reference: Schema | Dataset | None = None,
    classes: ArrayLike | None = None,
    full: bool = False,
) -> Dataset:
    """Ask an oracle for records and check them.

    Parameters
    ----------
    oracle : callable
        As returned by `as_oracle`.
    n_samples : int
        Number of records, n + 1 for a pair.
    rng : numpy.random.Generator
        Where the oracle takes its randomness.
    reference : Schema, tuple of containers or None, default=None
        See `check_sample`.
    classes : array-like or None, default=None
        See `check_sample`.
    full : bool, default=False
        Whether to look at every value too, as is wanted for the first pair.

    Returns
    -------
    tuple of containers
        ``(X,)`` or ``(X, y)``.

    Raises
    ------
    TypeError, ValueError
        If the sample does not fit. What the oracle raises itself passes through with a note.
    """
    name = describe_oracle(oracle)
    try:
        sample = oracle(n_samples, rng)
    except Exception as error:
        error.add_note(f"Raised by the oracle {name} when asked for n_samples={n_samples}.")
        raise
    dataset = as_dataset(sample, f"What the oracle {name} returns")
    check_sample(dataset, n_samples, oracle=name, reference=reference, classes=classes, full=full)
    return dataset


def check_sample(
    dataset: Dataset,
    n_samples: int,
    *,
    oracle: str,
    reference: Schema | Dataset | None = None,
    classes: ArrayLike | None = None,
    full: bool = True,
) -> None:
    """Refuse records that cannot stand in for the private ones.

    Oracles are public, so the messages may show what is wrong with their records. Of `reference`
    they show only what is public: the columns, and whether there is a y.

    Parameters
    ----------
    dataset : tuple of containers
        ``(X,)``, ``(X, y)`` or ``(X, y, sample_weight)`` as drawn. `X` has one or two dimensions;
        with one, each record is a single value, for functions that want it so (estimators want a
        column).
    n_samples : int
        Number of records asked for.
    oracle : str
        Description of the oracle, for the messages.
    reference : Schema, tuple of containers or None, default=None
        What the columns and the response must agree with. Names are compared when both sides
        have them.
    classes : array-like or None, default=None
        The admitted labels; only with `full`.
    full : bool, default=True
        Whether to look at every value too. The counts and columns are always checked.

    Raises
    ------
    TypeError
        If the sample is no container of records.
    ValueError
        If it has the wrong number of records or dimensions, other columns, a missing or an
        unexpected y, a label outside `classes`, or a number that is not finite.
    """
    for position, container in enumerate(dataset):
        if n_records(container) != n_samples:
            part = ("records", "responses", "weights")[position]
            raise ValueError(
                f"The oracle {oracle} returned {n_records(container)} {part}. "
                f"It must return n_samples={n_samples}."
            )
    if len(getattr(dataset[0], "shape", ())) > 2:
        raise ValueError(
            f"The oracle {oracle} returned X with {len(dataset[0].shape)} dimensions. "
            "It must have two: records and columns."
        )
    if reference is not None:
        expected = reference if isinstance(reference, Schema) else Schema.of(reference)
        _check_schema(Schema.of(dataset), expected, oracle)
    if full:
        allow_nan = isinstance(reference, Schema) and reference.allow_nan
        _check_values(dataset, oracle, classes, allow_nan)


def _check_schema(schema: Schema, expected: Schema, oracle: str) -> None:
    got, wanted = _parts(schema), _parts(expected)
    if got != wanted:
        raise ValueError(
            f"The oracle {oracle} returned {got}. It must return {wanted}, "
            "like the private records."
        )
    if schema.n_columns != expected.n_columns:
        raise ValueError(
            f"The oracle {oracle} returned X with {_columns(schema)}. "
            f"It must have {_columns(expected)}, as the data have."
        )
    if schema.names and not expected.names:
        raise ValueError(
            f"The oracle {oracle} returned records with column names, and the data have none. "
            "Give both the same names, or neither any."
        )
    if schema.names and expected.names and schema.names != expected.names:
        raise ValueError(
            f"The oracle {oracle} returned the columns {_shorten(schema.names)}. "
            f"They must be {_shorten(expected.names)}, in this order."
        )


def _parts(schema: Schema) -> str:
    if schema.has_weights:
        return "X, y and sample_weight"
    return "X and y" if schema.has_response else "X"


def _columns(schema: Schema) -> str:
    if schema.n_columns is None:
        return "one dimension"
    return f"{schema.n_columns} column{'s' if schema.n_columns != 1 else ''} (two dimensions)"


def _shorten(values: list) -> str:
    shown = ", ".join(repr(value) for value in values[:5])
    return f"[{shown}, ...]" if len(values) > 5 else f"[{shown}]"


def _check_values(
    dataset: Dataset, oracle: str, classes: ArrayLike | None, allow_nan: bool
) -> None:
    for name, container in zip(("X", "y", "sample_weight"), dataset, strict=False):
        place = find_non_finite(container, allow_nan and name == "X")
        if place is not None:
            raise ValueError(
                f"The oracle {oracle} returned {name} with a number that is missing or infinite, "
                f"in {place}. Impute such records, or leave them out of the oracle."
            )
    if classes is not None and len(dataset) > 1:
        labels = np.asarray(dataset[1])
        unknown = np.unique(labels[~np.isin(labels, np.asarray(classes))]).tolist()
        if unknown:
            raise ValueError(
                f"The oracle {oracle} returned the labels {_shorten(unknown)}. "
                f"They must be among the classes {_shorten(np.asarray(classes).tolist())}."
            )
