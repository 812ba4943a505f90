"""BisectingKMeans with a public tree of splits."""

from __future__ import annotations

import itertools
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import BisectingKMeans
from sklearn.metrics import pairwise_distances_argmin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.targets._naming import NamedAsTheirs

# Two fits may round differently when they run on several threads.
TOLERANCE = 1e-8
# Of the distance of the clusters, and this of their centers, both column by column.
ROUNDING = 1e-14


class SplitKMeans(NamedAsTheirs, BisectingKMeans):
    """A BisectingKMeans that tells how it has split.

    Takes the place of BisectingKMeans, which predicts from a tree of centers that it keeps in a
    private attribute. With the same seed the fits with 2, 3, ..., k clusters make the same first
    splits, so their public centers tell the splits one by one. This costs k / 2 times as much.

    Parameters
    ----------
    n_clusters, init, n_init, random_state, max_iter, verbose, tol, copy_x, algorithm, \
            bisecting_strategy
        As in BisectingKMeans.

    Attributes
    ----------
    split_centers_ : ndarray of shape (n_clusters - 1, 2, n_features)
        The two centers of each split.
    split_clusters_ : list of int
        Which of the clusters that are there is split, split by split. Its number goes to the first
        of the two, and the numbers above it move up by one.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centers of the clusters that are left.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.targets._bisecting import SplitKMeans
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0], [30.0]])
    >>> model = SplitKMeans(3, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist())
    [0.5, 10.5, 30.0]
    >>> model.split_centers_.shape
    (2, 2, 1)
    """

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit with 2, 3, ..., k clusters, and find the splits.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Records.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights of the records.

        Returns
        -------
        self : object
            This object.

        Raises
        ------
        ValueError
            If there are fewer than two clusters, or the splits cannot be told apart, as when
            clusters coincide.
        """
        if self.n_clusters < 2:
            raise ValueError(
                "The 'n_clusters' parameter of BisectingKMeans must be at least 2 to be released. "
                f"Got {self.n_clusters}."
            )
        parameters = self.get_params(deep=False) | {"copy_x": True}
        if not isinstance(self.random_state, int | np.integer):
            parameters["random_state"] = check_random_state(self.random_state).randint(2**31 - 1)
        fits = [
            BisectingKMeans(**(parameters | {"n_clusters": count})).fit(
                X, sample_weight=sample_weight
            )
            for count in range(2, self.n_clusters + 1)
        ]
        own = self.get_params(deep=False)
        self.__dict__.update(vars(fits[-1]) | own)
        centers = [fitted.cluster_centers_ for fitted in fits]
        self.split_clusters_ = [0] + [_split(*pair) for pair in itertools.pairwise(centers)]
        pairs = zip(centers, self.split_clusters_, strict=True)
        self.split_centers_ = np.array([rows[split : split + 2] for rows, split in pairs])
        return self

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Send records down the tree of splits.

        Parameters
        ----------
        X : array-like or sparse of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
            Numbers of clusters, which are rows of `cluster_centers_`.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32])
        labels = np.zeros(X.shape[0], dtype=np.int32)
        for split, centers in zip(self.split_clusters_, self.split_centers_, strict=True):
            inside = np.flatnonzero(labels == split)
            labels[labels > split] += 1
            if len(inside):
                labels[inside] += pairwise_distances_argmin(X[inside], centers).astype(np.int32)
        return labels


def leaves(split_clusters: list[int], split_centers: NDArray) -> NDArray:
    """Return the centers of the clusters that are left after all splits.

    Parameters
    ----------
    split_clusters : list of int
        As of a SplitKMeans.
    split_centers : ndarray of shape (n_clusters - 1, 2, n_features)
        As of a SplitKMeans.

    Returns
    -------
    ndarray of shape (n_clusters, n_features)
        The centers.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.targets._bisecting import leaves
    >>> leaves([0, 1], np.array([[[0.0], [5.0]], [[4.0], [6.0]]])).ravel()
    array([0., 4., 6.])
    """
    centers: list[NDArray] = [split_centers[0, 0]]
    for split, pair in zip(split_clusters, split_centers, strict=True):
        centers[split : split + 1] = pair
    return np.array(centers)


def aligned_splits(fitted: SplitKMeans, twin: SplitKMeans) -> NDArray:
    """Return the centers of all splits, in the order of the splits of the twin.

    The two halves of a split have no order, and splits on different branches none in time. Of all
    ways to lay the one tree upon the other the nearest is taken.

    Parameters
    ----------
    fitted : SplitKMeans
        Fitted on any dataset.
    twin : SplitKMeans
        Fitted on public records.

    Returns
    -------
    ndarray of shape (n_clusters - 1, 2, n_features)
        The centers.

    Raises
    ------
    ValueError
        If the trees have different forms. The message is safe to show: it holds no value.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.targets._bisecting import SplitKMeans, aligned_splits
    >>> X = np.array([[0.0], [1.0], [10.0], [11.0], [30.0]])
    >>> twin, other = SplitKMeans(3, random_state=0).fit(X), SplitKMeans(3, random_state=5).fit(X)
    >>> bool(np.all(aligned_splits(other, twin) == twin.split_centers_))
    True
    """
    best = _lay(_root(fitted), _root(twin), fitted.split_centers_, twin.split_centers_)
    if best is None:
        raise ValueError("the clusters are split otherwise than in the public fit")
    aligned = np.empty_like(fitted.split_centers_)
    for split, place, swapped in best[1]:
        aligned[place] = fitted.split_centers_[split][:: -1 if swapped else 1]
    return aligned


# A node is the number of its split and its two halves; a cluster that is left is None.
Node = tuple[int, list[Any]]
Matches = list[tuple[int, int, bool]]


def _root(model: SplitKMeans) -> Node:
    """Return the tree of the splits of a model."""
    nodes: list[Node] = [(number, [None, None]) for number in range(len(model.split_clusters_))]
    places: list[tuple[list[Any], int]] = [([None], 0)]  # where the node of each cluster will go
    for node, split in zip(nodes, model.split_clusters_, strict=True):
        halves, side = places[split]
        halves[side] = node
        places[split : split + 1] = [(node[1], 0), (node[1], 1)]
    return nodes[0]


def _lay(
    node: Node | None, other: Node | None, centers: NDArray, public: NDArray
) -> tuple[float, Matches] | None:
    """Lay one tree upon the other: the squared distance and the matches, None if they differ."""
    if node is None or other is None:
        return (0.0, []) if node is other else None
    found: list[tuple[float, Matches]] = []
    for swapped, order in ((False, [0, 1]), (True, [1, 0])):
        first = _lay(node[1][order[0]], other[1][0], centers, public)
        second = _lay(node[1][order[1]], other[1][1], centers, public)
        if first is not None and second is not None:
            cost = float(np.sum((centers[node[0]][order] - public[other[0]]) ** 2))
            matches = [(node[0], other[0], swapped), *first[1], *second[1]]
            found.append((cost + first[0] + second[0], matches))
    return min(found, key=lambda one: one[0]) if found else None


def _split(before: NDArray, after: NDArray) -> int:
    """Find which cluster the fit with one cluster more has split."""
    slack = TOLERANCE * np.ptp(after, axis=0) + ROUNDING * np.abs(after).max(axis=0)
    same = (np.abs(before - after[:-1]) <= slack).all(axis=1)
    moved = (np.abs(before - after[1:]) <= slack).all(axis=1)
    possible = [i for i in range(len(before)) if same[:i].all() and moved[i + 1 :].all()]
    if len(possible) != 1:
        raise ValueError("the splits of the clusters cannot be told apart")
    return possible[0]
