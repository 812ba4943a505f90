"""Persons with several records each: who they are, and what a release reads of them.

A dataset of n persons has no order. So a release puts the persons in an order that is drawn anew
from the source of the noise, and is never shown. A bijection between the persons of two neighboring
datasets maps the replaced one to the new one, and a uniform order of the first to one of the
second. For each order the persons differ in one place. Hence whatever is private for the
replacement of one of n rows, whatever the row, is private for that of one of n persons, if each
person stands for one row that depends on that person's own rows, and on a draw of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset, Elsewhere, as_series, belongs_to, column_names, n_records
from skdp.core.dtypes import categories_of, is_gap
from skdp.core.types import ByteSource, Container

MOST_ROWS = 10_000  # rows of a person that are read, the first ones: a limit on rounding
N_TOGETHER = 1000  # persons whose rows are summed at a time


class Persons(NamedTuple):
    """Rows, those of a person together, and how many each person has."""

    rows: Dataset
    counts: NDArray[np.intp]

    @classmethod
    def of(cls, dataset: Dataset) -> Persons:
        """Return numbered persons in order, each with its first `MOST_ROWS` rows as they came."""
        codes = np.asarray(dataset.groups)
        counts = np.bincount(codes)
        order = np.argsort(codes, kind="stable")
        return cls(dataset._replace(groups=None).take(order), counts).cut(MOST_ROWS)

    @property
    def n_records(self) -> int:
        """The number of persons, each of whom stands in the place of a record."""
        return len(self.counts)

    @property
    def dataset(self) -> Dataset:
        """The rows, with the numbers of the persons as `groups`."""
        return self.rows._replace(groups=np.repeat(np.arange(len(self.counts)), self.counts))

    @property
    def starts(self) -> NDArray[np.intp]:
        """The place of the first row of each."""
        return np.cumsum(self.counts) - self.counts

    def take(self, places: NDArray[np.intp]) -> Persons:
        """Return the persons at `places`, which may repeat, with all rows."""
        counts = self.counts[places]
        first = np.repeat(self.starts[places] - np.cumsum(counts) + counts, counts)
        return Persons(self.rows.take(first + np.arange(len(first))), counts)

    def cut(self, most: float) -> Persons:
        """Return the persons with so many rows of each at most, the first ones."""
        if self.counts.max() <= most:
            return self
        kept = np.arange(len(self.rows.parts[0])) - np.repeat(self.starts, self.counts) < most
        counts = np.minimum(self.counts, int(most))
        return Persons(self.rows.take(np.flatnonzero(kept)), counts)

    def map(self, function: Callable[..., Any], *others: Any) -> Persons:
        """Apply a function to each part of the rows, as :meth:`Dataset.map` does."""
        return self._replace(rows=self.rows.map(function, *others))

    def join(self, others: Persons) -> Persons:
        """Return these persons and others after them."""
        return Persons(self.rows.join(others.rows), np.append(self.counts, others.counts))

    def mean(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the mean over persons of the mean of a row of numbers for each of their rows."""
        sums = np.add.reduceat(rows, self.starts, axis=0)
        return np.asarray((sums / self.counts[:, None]).mean(axis=0))


def with_persons(dataset: Dataset) -> Dataset:
    """Number the persons, take the column of ids out of X, and leave out rows without an id."""
    if dataset.sample_weight is not None:
        raise ValueError(
            "The 'sample_weight' parameter must be None with groups, which give each record its "
            "weight. Got weights. Leave them out."
        )
    if isinstance(dataset.X, Elsewhere):
        raise TypeError(
            "The 'groups' parameter is for records in memory. Got a table of an engine. Make one "
            "record of each person there, or read the table first."
        )
    if isinstance(dataset.groups, str):
        dataset = _without_column(dataset, dataset.groups)
    dataset = dataset.map(lambda part: list(part) if isinstance(part, tuple) else as_series(part))
    if len(set(dataset.lengths.values())) > 1:
        raise ValueError(
            "The 'groups' must hold an id for each row of X, and y a response for each. Got parts "
            "of different lengths. Take all from one table."
        )
    ids: Any = dataset.groups
    is_whole = type(ids) is np.ndarray and ids.dtype.kind in "iu" and ids.ndim == 1  # has no gaps
    codes = np.unique(ids, return_inverse=True)[1] if is_whole else _numbered(_entries(ids))
    kept = np.flatnonzero(codes >= 0)
    if not len(kept):
        raise ValueError(
            "The 'groups' must hold the id of at least one person. Got none. Pass the column that "
            "names the persons."
        )
    return dataset._replace(groups=codes).take(kept)


def count_persons(dataset: Dataset) -> int:
    """Count persons by their numbers, or records where nobody is numbered."""
    return dataset.n_records if dataset.groups is None else int(np.max(dataset.groups)) + 1


def as_units(dataset: Dataset) -> Dataset | Persons:
    """Return numbered persons, or records where nobody is numbered, to be taken one by one."""
    return dataset if dataset.groups is None else Persons.of(dataset)


def first_of_each(dataset: Dataset) -> Dataset:
    """Return one row of each person, which shows the form of all; any dataset without persons."""
    if dataset.groups is None:
        return dataset
    _, first = np.unique(dataset.groups, return_index=True)
    return dataset._replace(groups=None).take(first)


def arrange(dataset: Dataset, source: ByteSource) -> Persons:
    """Put persons in a secret order, each with its first `MOST_ROWS` rows as they came."""
    codes = np.asarray(dataset.groups)
    n_persons = count_persons(dataset)
    while True:  # with equal keys the order would not be uniform
        keys = np.frombuffer(source.bytes(8 * n_persons), dtype=np.uint64)
        if len(np.unique(keys)) == n_persons:
            break
    return Persons.of(dataset._replace(groups=np.argsort(keys)[codes]))


def draw_one(persons: Persons, source: ByteSource) -> Dataset:
    """Draw one row of each person."""
    counts = persons.counts
    drawn = np.frombuffer(source.bytes(8 * len(counts)), dtype=np.uint64) % counts.astype(np.uint64)
    return persons.rows.take(persons.starts + drawn.astype(np.intp))


def slots(
    persons: Persons, records_per_person: float
) -> Iterator[Iterator[tuple[Dataset, NDArray[np.float64]]]]:
    """Yield for some persons at a time their first rows, their second rows and so on, with weights.

    Row j of each of them comes with the weight of row j, 1 / max(rows, records_per_person), and
    with the weight 0 where there is none. So each row has a place that depends on no other person:
    by its place it may be rounded. The weights of a person sum to at most 1, up to rounding.
    """
    starts, counts = persons.starts, persons.counts

    def rows_of(place: slice) -> Iterator[tuple[Dataset, NDArray[np.float64]]]:
        start, count = starts[place], counts[place]
        for slot in range(count.max()):
            has_one = slot < count
            weights = has_one / np.maximum(count, records_per_person)
            yield persons.rows.take(start + slot * has_one), weights

    for first in range(0, len(counts), N_TOGETHER):
        yield rows_of(slice(first, first + N_TOGETHER))


def _without_column(dataset: Dataset, name: str) -> Dataset:
    """Take the column of ids out of the records."""
    X = dataset.X
    n_records(X)  # refuses other classes, such as a table of an engine
    if (column_names(X) or []).count(name) != 1:
        raise ValueError(
            "The 'groups' parameter must hold the ids of the persons, or be the name of a column "
            f"of X. Got {name!r}, which is no such name."
        )
    others = X.drop(name) if belongs_to(X, "polars") else X.drop(columns=name)
    return dataset._replace(X=others, groups=X[name])


def _entries(ids: Container) -> list:
    """List ids one by one: an array of all would let one decide about the type of others."""
    n_records(ids)  # refuses other classes
    if isinstance(ids, list):
        return ids
    is_series = belongs_to(ids, "pandas", "polars")
    if len(ids.shape) != 1 or not (is_series or type(ids) in (np.ndarray, np.memmap)):
        raise TypeError(
            "The 'groups' must be an array or a series with one id for each row, or a list. Got "
            f"{len(ids.shape)} dimension(s) in {type(ids).__name__}. Pass one column."
        )
    if belongs_to(ids, "pandas") and categories_of(ids.dtype) is not None:
        known = ids.cat.categories.to_list()  # to_list of the ids would make floats beside a gap
        return [known[code] if code >= 0 else None for code in ids.cat.codes.tolist()]
    if isinstance(ids, np.ndarray) and ids.dtype.kind in "mM":
        return [*ids]
    return ids.to_list() if is_series else ids.tolist()


def _numbered(ids: list) -> NDArray[np.intp]:
    """Number the persons by their ids; -1 for a row without an id."""
    numbers: dict[object, int] = {}
    canonical = map(_canonical, ids)
    found = (-1 if id_ is None else numbers.setdefault(id_, len(numbers)) for id_ in canonical)
    return np.fromiter(found, dtype=np.intp, count=len(ids))


def _canonical(entry: object) -> object:
    """Return an id as an object of Python, None for what is none."""
    try:
        if is_gap(entry) or entry != entry:
            return None
        is_date = isinstance(entry, np.datetime64 | np.timedelta64)
        id_ = entry.item() if isinstance(entry, np.generic) and not is_date else entry
        hash(id_)
        is_told_apart = type(id_).__eq__ is not object.__eq__  # else no two rows have the same id
        if not is_told_apart or (isinstance(id_, tuple) and None in map(_canonical, id_)):
            return None  # as no two gaps are equal, each row with one would be a person
    except Exception:  # it has no hash, so it is no id: no row decides about a refusal
        return None
    return id_
