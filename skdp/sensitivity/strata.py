"""Strata of pairs: of which classes, or thirds of the response, the two records are that differ.

A dataset of n + 1 records yields one pair of each of three strata, by four evaluations: each leaves
out another one of four records. Two of the four datasets that make a pair hold the same records in
the same places, but for one place. Each stratum is judged by itself, so strata may share records.

A fifth evaluation gives a pair that differs in a label alone: a record of a class drawn by lot
takes another class of the draw by lot, and keeps its features and its weight. The draw and the lots
are all that such a pair depends on, and each pair has its own. So a private pair that arises in
this way is exchangeable with the m that were sampled, and exceeds the k-th smallest of their norms
with probability 1 - k / (m + 1) at most, as in any other stratum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skdp.core.dataset import Dataset, join_records, take_records
from skdp.core.oracle import Oracle
from skdp.core.persons import Persons, as_units, draw_one

MOST_DRAWS = 100  # of records in which a stratum is empty, before an oracle is refused


class Layout(NamedTuple):
    """Which of four records stand in three places of each dataset, and the pairs of the strata."""

    datasets: tuple[tuple[int, ...], ...]
    pairs: tuple[tuple[int, int], ...]
    flips: bool = False  # whether one more dataset is the last one with another label


# two of the rarest class and two others; each dataset lacks another one, in this order
_BY_CLASS = Layout(((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)), ((2, 3), (1, 2), (0, 1)))

LAYOUTS: dict[str | None, Layout] = {
    None: Layout((), ((0, 1),)),  # one pool, of two datasets
    "classes": _BY_CLASS,
    "labels": Layout(_BY_CLASS.datasets, (*_BY_CLASS.pairs, (3, 4)), flips=True),
    # any record, and one of each third
    "thirds": Layout(((1, 2, 3), (0, 2, 3), (1, 0, 3), (1, 2, 0)), ((0, 1), (0, 2), (0, 3))),
}


def neighbors(
    strata: str, oracle: Oracle, draw: Callable[[], Dataset], rng: Generator
) -> Iterator[Dataset | Persons]:
    """Draw records, and yield the datasets of n of them.

    The class or the third of a person is that of one of the records, drawn at random.
    """
    for _ in range(MOST_DRAWS):
        records = as_units(draw())
        order = rng.permutation(records.n_records)
        one = draw_one(records, rng) if isinstance(records, Persons) else records
        y = _responses(one, strata)[order]
        chosen = _by_third(y, rng) if strata == "thirds" else _by_class(y, oracle.classes_, rng)
        if chosen is not None:
            return _datasets(records, LAYOUTS[strata], order, chosen, rng, one, y)
    n, what = order.size, "a third of the responses" if strata == "thirds" else "a class"
    raise ValueError(
        f"The oracle {oracle.description} draws {what} less than twice in {n} records, "
        f"{MOST_DRAWS} times in a row, so its persons cannot be protected as others are. Give it "
        "more of them, leave the class out, or pass strata=None, which does not protect them."
    )


def _datasets(
    records: Dataset | Persons,
    layout: Layout,
    order: NDArray,
    chosen: list[int],
    rng: Generator,
    one_of_each: Dataset,
    y: NDArray,
) -> Iterator[Dataset | Persons]:
    rest, special = np.delete(order, chosen), order[chosen]
    shuffled = rng.permutation(order.size - 1)
    for three in layout.datasets:
        places = np.concatenate([rest, special[list(three)]])[shuffled]
        yield records.take(places)
    if layout.flips:
        one, lender = _flip(y, chosen, rng)
        taken, lent = records.take(places), take_records(one_of_each.y, order[[lender]])
        rows = taken.rows if isinstance(taken, Persons) else taken
        is_one = places == order[one]
        is_one = np.repeat(is_one, taken.counts) if isinstance(taken, Persons) else is_one
        at = np.where(is_one, is_one.size, np.arange(is_one.size))
        rows = rows._replace(y=take_records(join_records(rows.y, lent), at))
        yield Persons(rows, taken.counts) if isinstance(taken, Persons) else rows


def _flip(y: NDArray, chosen: list[int], rng: Generator) -> tuple[int, int]:
    """Return a record of a class drawn by lot, and one that lends it the label of another."""
    classes = np.unique(y)
    one = chosen[1 if rng.integers(len(classes)) == 0 else 2]  # the rarest, or one of the others
    label = rng.choice(classes[classes != y[one]])
    return one, int(np.flatnonzero(y == label)[0])


def _responses(records: Dataset, strata: str) -> NDArray:
    """Return one response for each record."""
    y = np.asarray(records.y)
    y = y.ravel() if y.shape == (records.n_records, 1) else y
    if y.ndim != 1 or (strata == "thirds" and y.dtype.kind not in "fiub"):
        what = "number as its response" if strata == "thirds" else "label"
        raise ValueError(
            f"The 'strata' parameter of SensitivitySampler must be None unless each record has "
            f"one {what}. Got {strata!r}."
        )
    return y


def _by_class(y: NDArray, declared: Any, rng: Generator) -> list[int] | None:
    """Return two records of the rarest class and two of other classes, which are drawn by lot."""
    found, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    n_classes = declared.size if isinstance(declared, np.ndarray) else 2
    if len(found) < n_classes or counts.min() < 2:
        return None
    rarest = rng.choice(np.flatnonzero(counts == counts.min()))
    left = [np.flatnonzero(codes == code).tolist() for code in range(len(found))]
    chosen, left[rarest] = left[rarest][:2], []
    for _ in range(2):
        others = [rows for rows in left if rows]
        chosen.append(others[rng.integers(len(others))].pop())
    return chosen


def _by_third(y: NDArray, rng: Generator) -> list[int] | None:
    """Return a record of a third drawn by lot, and one of each third."""
    thirds = np.array_split(y.argsort(kind="stable"), 3)  # ties are in random order
    if len(thirds[-1]) < 2:
        return None
    left = [rng.permutation(third).tolist() for third in thirds]
    return [left[each].pop() for each in (rng.integers(3), *range(3))]
