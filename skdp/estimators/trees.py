"""Trees and forests that classify: the structure is public, the counts in the leaves are private.

The splits are those of the public fit, grown on the oracle's records. Each leaf releases how many
private records of each class arrive there. These are sums over records, so a pair costs no fit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from skdp.core.dataset import Dataset
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Matrix, Named
from skdp.estimators.catalog import entry_of
from skdp.estimators.catalog.compositions import is_pipeline
from skdp.estimators.configuration import describe
from skdp.estimators.inputs import takes
from skdp.estimators.members import before_last_step, drop_out_of_bag, flat_steps, last_step
from skdp.estimators.public_fit import clean_copy

# Arrays that decide to which leaf a record goes.
STRUCTURE = ("children_left", "children_right", "feature", "threshold", "missing_go_to_left")

# A leaf with less than this many records, after noise, takes the value of the node above it.
LEAST_COUNT = 0.5


class LeafTarget(Target):
    """The counts of each class in each leaf of public trees, all of which see all records."""

    fits_estimator = True

    def __init__(self, estimator: Estimator, public_fit: Estimator):
        self.public_fit = public_fit
        self._classes = last_step(public_fit).classes_
        if isinstance(self._classes, list):
            raise ValueError(
                f"{type(last_step(public_fit)).__name__} predicts labels of several outputs, whose "
                "leaves cannot be released. Release each output by itself."
            )
        trees = _trees(public_fit)
        self._leaves = [np.flatnonzero(tree.children_left < 0) for tree in trees]
        # other trees, or other steps before them, make another function
        structures = [[getattr(tree, name) for name in STRUCTURE] for tree in trees]
        self.key_parts = estimator, [*flat_steps(public_fit)][:-1], structures, self._classes
        # the public fit fixes the way that gaps take
        self.allow_nan = takes(estimator, "allow_nan")
        self.description = f"leaf values of {describe(estimator)}"

    def __call__(self, *dataset: Container, seed: int) -> Matrix:
        """Send the records down the public trees, and count in each leaf; no seed has a use."""
        records = Dataset(*dataset)
        rows, sums = self._indicators(records), []
        for column, leaves in zip(self._apply(records.X).T, self._leaves, strict=True):
            totals = np.zeros((len(leaves), len(self._classes)))
            np.add.at(totals, np.searchsorted(leaves, column), rows)
            sums.append(totals.ravel())
        return np.concatenate(sums)

    def closed_form(self, *records: Container) -> Callable[..., Matrix] | None:
        """Return what each record adds; None in a pipeline, whose steps may look at all records."""
        return None if is_pipeline(self.public_fit) else self._rows

    def restore(self, vector: Matrix) -> Estimator:
        """Make a fitted estimator of released counts; negative ones become zero."""
        released, width = clean_copy(self.public_fit), len(self._classes)
        ends = np.cumsum([width * len(leaves) for leaves in self._leaves])
        parts = np.split(np.asarray(vector, dtype=np.float64), ends[:-1])
        for tree, leaves, part in zip(_trees(released), self._leaves, parts, strict=True):
            counts, parents = np.zeros((tree.node_count, width)), _parents(tree)
            counts[leaves] = np.maximum(part.reshape(-1, width), 0)
            for node in range(tree.node_count - 1, 0, -1):
                counts[parents[node]] += counts[node]
            values = np.full_like(counts, 1 / width)
            for node, parent in enumerate(parents):
                size = counts[node].sum()
                if size >= LEAST_COUNT:
                    values[node] = counts[node] / size
                elif parent >= 0:
                    values[node] = values[parent]
            tree.value[:, 0] = values  # a view of the tree's own memory
        drop_out_of_bag(released)
        return released

    def by_name(self, value: Matrix) -> Named:
        """Name the counts by tree, leaf and class."""
        names = [
            f"tree {i}, leaf {leaf}" if len(self._leaves) > 1 else f"leaf {leaf}"
            for i, leaves in enumerate(self._leaves)
            for leaf in leaves
        ]
        labels = [f"{name}, {label}" for name in names for label in self._classes]
        return value, {"value": (None, labels)}

    def _rows(self, *dataset: Container) -> Matrix:
        """Return a row for each record: what it adds to all leaves."""
        records = Dataset(*dataset)
        rows, blocks = self._indicators(records), []
        for column, leaves in zip(self._apply(records.X).T, self._leaves, strict=True):
            inside = column[:, None] == leaves
            blocks.append((inside[:, :, None] * rows[:, None, :]).reshape(len(column), -1))
        return np.hstack(blocks)

    def _indicators(self, records: Dataset) -> Matrix:
        """Return what each record adds to its leaf."""
        rows = (np.asarray(records.y)[:, None] == self._classes).astype(np.float64)
        weights = records.sample_weight
        return rows if weights is None else rows * np.asarray(weights)[:, None]

    def _apply(self, X: Container) -> NDArray[np.intp]:
        seen = before_last_step(self.public_fit, X)
        return last_step(self.public_fit).apply(seen).reshape(seen.shape[0], -1)


def is_tree(estimator: Estimator) -> bool:
    """Return whether an estimator is a tree or a forest whose leaves can be released."""
    return entry_of(estimator).tree


def _trees(estimator: Estimator) -> list:
    last = last_step(estimator)
    members = [last] if hasattr(last, "tree_") else last.estimators_
    return [tree.tree_ for tree in members]


def _parents(tree: Estimator) -> NDArray[np.intp]:
    """Return the parent of each node, -1 for the root; parents come before their children."""
    parents = np.full(tree.node_count, -1)
    for children in (tree.children_left, tree.children_right):
        inner = children >= 0
        parents[children[inner]] = np.flatnonzero(inner)
    return parents
