"""Trees and forests: the structure is public, the values in the leaves are private."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier

from skdp.core.checks import check_rules, floats
from skdp.core.dataset import Dataset
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Named
from skdp.estimators.catalog import CATALOG, entry_of
from skdp.estimators.catalog.compositions import is_pipeline
from skdp.estimators.configuration import describe
from skdp.estimators.copies import clean_copy
from skdp.estimators.inputs import takes
from skdp.estimators.members import before_last_step, drop_out_of_bag, last_step

# Arrays that decide to which leaf a record goes.
STRUCTURE = ("children_left", "children_right", "feature", "threshold", "missing_go_to_left")

# A leaf with less than this many records, after noise, takes the value of the node above it.
LEAST_COUNT = 0.5


class LeafTarget(BaseEstimator):
    """Release the leaf values of a decision tree or a forest whose structure is public.

    The splits are those of the *public fit*, the same tree or forest grown on the oracle's records;
    the private records never grow a tree. Every private record is sent down every public tree. Each
    leaf releases how many records of each class arrive or, in regression, how many records and the
    sum of their responses. These are sums over records, so a sampled pair costs no refit.

    If the tree is the last step of a pipeline, the steps before it are those of the public fit too.
    Missing values go the way that the public trees have for them, or are imputed by a step of the
    public fit.

    Parameters
    ----------
    y_range : (float, float), or array-like of shape (n_outputs, 2), or None, default=None
        Lowest and highest response, of all outputs or output by output; private responses outside
        are clipped. A public fact that must be declared for regressors; None for classifiers.

    Notes
    -----
    After the noise, negative counts become zero, sums are clipped to what the count and `y_range`
    allow, and a leaf with less than half a record takes the value of the node above it. Members of
    a forest see all records, whatever `bootstrap` says.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp import LaplaceMechanism, LeafTarget, PrivateEstimator
    >>> from skdp import PublicDataOracle, SensitivitySampler
    >>> X, y = load_iris(return_X_y=True)
    >>> model = PrivateEstimator(
    ...     DecisionTreeClassifier(max_leaf_nodes=4),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SensitivitySampler(PublicDataOracle(X[::2], y[::2]), random_state=0),
    ...     release=LeafTarget(),
    ... )
    >>> model.fit(X[1::2], y[1::2]).predict(X[1::2]).shape
    (75,)
    """

    def __init__(self, y_range: object = None):
        self.y_range = y_range

    def bind(self, estimator: Estimator, public_fit: Estimator) -> LeafValues:
        """Make the target of one estimator.

        Parameters
        ----------
        estimator : estimator object
            As configured.
        public_fit : estimator object
            The same, fitted on public records.

        Returns
        -------
        LeafValues
            The target.
        """
        self.check(estimator)
        tree = last_step(public_fit)
        weights = getattr(tree, "class_weight", None)
        fits = weights is None or tree.n_outputs_ == 1
        rule = "be None with LeafTarget and several outputs"
        check_rules(type(tree).__name__, class_weight=(weights, fits, rule))
        return LeafValues(estimator, public_fit, self._ranges(public_fit))

    def check(self, estimator: Estimator) -> None:
        """Refuse an estimator whose leaves do not follow from sums over the records.

        Parameters
        ----------
        estimator : estimator object
            As configured.
        """
        tree = last_step(estimator)
        name = type(tree).__name__
        if not is_tree(tree):
            kinds = ", ".join(kind.__name__ for kind in CATALOG.where(lambda entry: entry.tree))
            raise ValueError(
                f"LeafTarget releases {kinds}, or a pipeline that ends in one. Got {name}."
            )
        check_rules(
            name,
            criterion=(
                tree.criterion,
                tree.criterion != "absolute_error",
                "be 'squared_error' or another with LeafTarget for which leaves do not hold "
                "medians, which are not sums over the records",
            ),
            monotonic_cst=(
                tree.monotonic_cst,
                tree.monotonic_cst is None,
                "be None with LeafTarget, since noise does not keep the order of the leaves",
            ),
        )

    def _ranges(self, public_fit: Estimator) -> NDArray[np.float64] | None:
        tree = last_step(public_fit)
        if is_classifier(tree):
            if self.y_range is not None:
                raise ValueError(
                    "The 'y_range' parameter of LeafTarget is for regressors. "
                    f"Got {type(tree).__name__}: leave it None."
                )
            return None
        rule = "finite (low, high) with low < high, for all outputs or for each"
        if self.y_range is None:
            raise ValueError(
                f"The 'y_range' parameter of LeafTarget must be {rule}, for {type(tree).__name__}, "
                "as it bounds how much a record can change a leaf. Got None. Pass "
                "release=LeafTarget(y_range=(low, high)), with a public range."
            )
        ranges = floats(self.y_range)
        ranges = np.empty((0, 0)) if ranges is None else np.atleast_2d(ranges)
        good = ranges.ndim == 2 and ranges.shape[1] == 2 and len(ranges) in {1, tree.n_outputs_}
        fits = good and np.isfinite(ranges).all() and np.all(ranges[:, 0] < ranges[:, 1])
        check_rules("LeafTarget", y_range=(self.y_range, fits, f"be {rule}"))
        return np.broadcast_to(ranges, (tree.n_outputs_, 2))


class LeafValues(Target):
    """The target of a LeafTarget: sums over the records in each leaf of public trees."""

    fits_estimator = True

    def __init__(
        self, estimator: Estimator, public_fit: Estimator, ranges: NDArray[np.float64] | None
    ):
        self.public_fit = public_fit
        self._ranges = ranges
        self._class_weight = _class_weight(last_step(public_fit))
        self._leaves = [np.flatnonzero(tree.children_left < 0) for tree in _trees(public_fit)]
        # other trees, or other steps before them, make another function
        structures = [[getattr(tree, name) for name in STRUCTURE] for tree in _trees(public_fit)]
        classes = self._classes() if ranges is None else None
        self.key_parts = estimator, list(_steps_before(public_fit)), structures, ranges, classes
        # the public fit fixes the way that gaps take
        self.allow_nan = takes(estimator, "allow_nan")
        self.description = f"leaf values of {describe(estimator)}"

    def __call__(self, *dataset: Container, seed: int) -> NDArray[np.float64]:
        """Send the records down the public trees, and sum over each leaf; no seed has a use."""
        X, y, sample_weight = Dataset(*dataset)
        statistics, sums = self._statistics(y, sample_weight), []
        for column, leaves in zip(self._apply(X).T, self._leaves, strict=True):
            totals = np.zeros((len(leaves), statistics.shape[1]))
            np.add.at(totals, np.searchsorted(leaves, column), statistics)
            sums.append(totals.ravel())
        return np.concatenate(sums)

    def closed_form(self, *records: Container) -> Callable[..., NDArray[np.float64]] | None:
        """Return what each record adds; None in a pipeline, whose steps may look at all records."""
        return None if is_pipeline(self.public_fit) else self._rows

    def restore(self, vector: NDArray[np.float64]) -> Estimator:
        """Make a fitted estimator of released sums, from which the values of all nodes follow."""
        released = clean_copy(self.public_fit)
        width = len(self._output_of_column())
        ends = np.cumsum([width * len(leaves) for leaves in self._leaves])
        parts = np.split(np.asarray(vector, dtype=np.float64), ends[:-1])
        for tree, leaves, part in zip(_trees(released), self._leaves, parts, strict=True):
            sums = _sums_of_nodes(tree, leaves, self._repair(part.reshape(-1, width)))
            self._write_values(tree, sums)
        drop_out_of_bag(released)
        return released

    def by_name(self, value: NDArray[np.float64]) -> Named:
        """Name the sums by tree, leaf and class; of a response in [-1, 1] they are counts too."""
        if self._ranges is None:
            sums = _numbered("output", [list(map(str, each)) for each in self._classes()])
        else:
            sums = ["count", *_numbered("output", [["sum"]] * len(self._ranges))]
        leaves = _numbered("tree", [[f"leaf {leaf}" for leaf in each] for each in self._leaves])
        names = [f"{leaf}, {name}" for leaf in leaves for name in sums]
        return value, {"value": (None, names)}

    def _classes(self) -> list[NDArray]:
        classes = last_step(self.public_fit).classes_
        return classes if isinstance(classes, list) else [classes]

    def _output_of_column(self) -> NDArray[np.intp]:
        """Return the output that each number of a leaf belongs to; a count to none (-1)."""
        if self._ranges is None:
            return np.repeat(np.arange(len(self._classes())), [len(c) for c in self._classes()])
        return np.arange(-1, len(self._ranges))

    def _rows(
        self, X: Container, y: Container, sample_weight: Container = None
    ) -> NDArray[np.float64]:
        """Return a row for each record: what it adds to all leaves."""
        statistics, blocks = self._statistics(y, sample_weight), []
        for column, leaves in zip(self._apply(X).T, self._leaves, strict=True):
            inside = column[:, None] == leaves
            blocks.append((inside[:, :, None] * statistics[:, None, :]).reshape(len(column), -1))
        return np.hstack(blocks)

    def _statistics(self, y: Container, sample_weight: Container) -> NDArray[np.float64]:
        """Return what each record adds to its leaf."""
        y = np.asarray(y).reshape(len(y), -1)
        if self._ranges is None:
            pairs = zip(y.T, self._classes(), strict=True)
            statistics = np.hstack([column[:, None] == classes for column, classes in pairs])
        else:
            low, high = self._ranges.T
            # to [-1, 1], so that a record counts for as much in a sum as in the count
            scaled = 2 * (np.clip(y.astype(np.float64), low, high) - low) / (high - low) - 1
            statistics = np.hstack([np.ones((len(y), 1)), scaled])
        weights = 1.0 if sample_weight is None else np.asarray(sample_weight, np.float64)[:, None]
        return statistics * weights

    def _apply(self, X: Container) -> NDArray[np.intp]:
        seen = before_last_step(self.public_fit, X)
        return last_step(self.public_fit).apply(seen).reshape(seen.shape[0], -1)

    def _repair(self, sums: NDArray[np.float64]) -> NDArray[np.float64]:
        if self._ranges is None:
            return np.maximum(sums, 0)
        counts = np.maximum(sums[:, :1], 0)
        return np.hstack([counts, np.clip(sums[:, 1:], -counts, counts)])

    def _write_values(self, tree: Estimator, sums: NDArray[np.float64]) -> None:
        """Overwrite the values of all nodes, from the root down."""
        parents = _parents(tree)
        columns = self._output_of_column()
        values = np.zeros_like(tree.value)
        for output in range(values.shape[1]):
            own = sums[:, columns == output]
            counts = own.sum(axis=1) if self._ranges is None else sums[:, 0]
            if isinstance(self._class_weight, str):  # "balanced", in all trees or in each
                own = own * (1 / np.maximum(own[0], 1))
            elif self._class_weight is not None:
                own = own * self._class_weight
            size = own.sum(axis=1) if self._ranges is None else counts
            for node, parent in enumerate(parents):
                if counts[node] >= LEAST_COUNT and size[node] > 0:
                    values[node, output, : own.shape[1]] = own[node] / size[node]
                elif parent >= 0:
                    values[node, output] = values[parent, output]
                elif self._ranges is None:
                    values[node, output, : own.shape[1]] = 1 / own.shape[1]
        if self._ranges is not None:
            low, high = self._ranges.T
            values = low[:, None] + (values + 1) * (high - low)[:, None] / 2
        tree.value[...] = values  # a view of the tree's own memory


def _numbered(kind: str, groups: list[list[str]]) -> list[str]:
    """Join groups of names, with the number of the group where there are several."""
    if len(groups) == 1:
        return groups[0]
    return [f"{kind} {i}, {name}" for i, group in enumerate(groups) for name in group]


def is_tree(estimator: Estimator) -> bool:
    """Return whether an estimator is a tree or a forest whose leaves can be released."""
    return entry_of(estimator).tree


def _steps_before(estimator: Estimator) -> Iterator[Estimator]:
    """Walk the fitted steps that a record passes before it comes to the trees."""
    while is_pipeline(estimator):
        yield from (step for _, step in estimator.steps[:-1])
        estimator = estimator.steps[-1][1]


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


def _sums_of_nodes(
    tree: Estimator, leaves: NDArray[np.intp], sums: NDArray[np.float64]
) -> NDArray[np.float64]:
    totals = np.zeros((tree.node_count, sums.shape[1]))
    totals[leaves] = sums
    for node, parent in reversed(list(enumerate(_parents(tree)))[1:]):
        totals[parent] += totals[node]
    return totals


def _class_weight(tree: Estimator) -> Any:
    """Return None, a string, or the weights in the order of the classes."""
    weights = getattr(tree, "class_weight", None)
    if weights is None or isinstance(weights, str):
        return weights
    return np.array([weights.get(label, 1.0) for label in tree.classes_.tolist()])
