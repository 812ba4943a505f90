"""The public fit, to public or synthetic records, and copies that hold no other memory."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from skdp.core.checks import shorten
from skdp.core.dataset import Dataset, column_names, index_dtype, with_index_dtype
from skdp.core.dtypes import holds_numbers
from skdp.core.plain import dtypes_of
from skdp.core.schema import DatasetForm
from skdp.core.types import Container, Estimator
from skdp.estimators.configuration import seed_names
from skdp.estimators.inputs import fit_on


class Public(NamedTuple):
    """The public fit, what it was fitted to, and the source of further public records."""

    fit: Estimator
    dataset: Dataset
    classes: list[NDArray] | None
    source: Any
    schema: DatasetForm
    n_samples: int


# Entries of a synthetic sparse column: full ones, as many as the private records, may not fit.
SPARSE_ENTRIES = 20


def synthetic_dataset(
    dataset: Dataset, classes: list[NDArray] | None, entries: dict[str, list] | None = None
) -> Dataset:
    """Make records of the declared shape and dtypes, from public metadata; no entry is read.

    Columns have `entries` instead; without any, all must be of numbers.
    """
    X = dataset.X
    if entries is None:
        _check_numeric(X)
    rng = np.random.default_rng(0)
    n_samples = X.shape[0]
    most = max(map(len, classes)) if classes else 0
    if n_samples < most:
        raise ValueError(
            f"X must have at least as many records as there are classes, which is {most}. "
            f"Got {n_samples}."
        )
    features = _features(X, rng)
    if entries:
        features = type(X)({name: features[name] for name in X.columns} | entries)
    if dataset.y is None:
        return Dataset(features)
    shape = (n_samples, *np.shape(dataset.y)[1:])
    y = _labels(classes, shape, rng) if classes else rng.uniform(0.5, 1.5, size=shape)
    return Dataset(features, y, None if dataset.sample_weight is None else np.ones(n_samples))


def _features(X: Container, rng: np.random.Generator) -> Container:
    """Draw uniform features of the shape of X, in its container."""
    n_samples, n_features = X.shape
    is_single = {str(dtype).lower() for dtype in dtypes_of(X)} == {"float32"}
    precision = np.float32 if is_single else np.float64
    if not sparse.issparse(X) or n_samples <= SPARSE_ENTRIES:
        return in_container_of(X, rng.random(X.shape, dtype=precision))
    n_entries = max(n_samples, SPARSE_ENTRIES * n_features)
    # no row and no column is empty; an entry drawn twice is a sum, and serves as well
    rows, columns = (rng.permutation(np.resize(np.arange(k), n_entries)) for k in X.shape)
    values = rng.random(n_entries, dtype=precision)
    return in_container_of(X, sparse.coo_array((values, (rows, columns)), shape=X.shape))


def _check_numeric(X: Container) -> None:
    """Refuse columns, by their type, for which no records can be invented."""
    strange = _without_numbers(X)
    if strange:
        raise ValueError(
            f"The columns {shorten(strange)} hold something else than numbers, and there is no "
            "oracle here that draws such records for a public fit. Pass one as 'prior' of "
            "PrivateEstimator, for an estimate the one that was sampled. To release what was "
            "planned, call execute of the plan."
        )


def _without_numbers(X: Container) -> list[str]:
    """List the columns whose type holds something else than numbers."""
    named = zip(column_names(X) or ["X"], dtypes_of(X), strict=True)
    return [name for name, dtype in named if not holds_numbers(dtype)]


def _labels(classes: list[NDArray], shape: tuple[int, ...], rng: np.random.Generator) -> NDArray:
    """Give each output all of its classes equally often, each output in another order."""
    first = np.resize(classes[0], shape[0])
    if len(shape) == 1:
        return first
    others = classes[1:] if len(classes) > 1 else classes * (shape[1] - 1)
    columns = [rng.permutation(np.resize(labels, shape[0])) for labels in others]
    return np.column_stack([first, *columns])


def fit_seeded(estimator: Estimator, dataset: Dataset) -> Estimator:
    """Fit on public records with seeds of 0 where they are open, so that all fits are alike."""
    seeds, configured = seed_names(estimator), estimator.get_params(deep=True)
    try:
        fit_on(estimator.set_params(**dict.fromkeys(seeds, 0)), dataset)
    except Exception as error:
        words = _without_numbers(dataset.X)
        told = f", of which the columns {shorten(words)} hold no numbers" if words else ""
        error.add_note(
            f"Raised when {type(estimator).__name__} was fitted to public records{told}."
        )
        raise
    if not seeds:  # some refuse to be configured again once they are fitted
        return estimator
    return estimator.set_params(**{name: configured[name] for name in seeds})


def fit_to_synthetic(estimator: Estimator, dataset: Dataset) -> Estimator:
    """Fit on synthetic records, of which only the form matters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # only the form matters
        # two functions need not be inverse to each other there
        warnings.filterwarnings("ignore", "The provided functions or transf", UserWarning)
        return fit_seeded(estimator, dataset)


def in_container_of(X: Container, features: Container) -> Container:
    """Put features into the kind of container that X is, under the same column names."""
    if sparse.issparse(X):
        kind = sparse.csr_array if isinstance(X, sparse.sparray) else sparse.csr_matrix
        return with_index_dtype(kind(features).asformat(X.format), index_dtype(X))
    names = column_names(X)
    if names is None:
        return features
    return type(X)(dict(zip(names, features.T, strict=True)))


def clean_copy(estimator: Estimator) -> Estimator:
    """Copy an estimator, and clear padding bytes of trees, where old memory would stay."""
    copied = copy.deepcopy(estimator)
    for tree in _trees(copied):
        state = tree.__getstate__()
        nodes = np.zeros(len(state["nodes"]), state["nodes"].dtype)  # not like: that fills fields
        for name in nodes.dtype.names:
            nodes[name] = state["nodes"][name]
        tree.__setstate__(state | {"nodes": nodes, "values": state["values"].copy()})
    return copied


def _trees(thing: Estimator) -> Iterator[Estimator]:
    """Walk the trees that an estimator holds, in whatever depth."""
    todo, seen = [thing], {id(thing)}
    while todo:
        each = todo.pop()
        held: Iterable = ()
        if hasattr(getattr(each, "tree_", None), "children_left"):
            yield each.tree_
        match each:
            case list() | tuple():
                held = each
            case dict():
                held = each.values()
            case np.ndarray():
                held = each.flat if each.dtype == object else ()
            case _ if not isinstance(each, type):
                held = getattr(each, "__dict__", {}).values()
        new = [part for part in held if id(part) not in seen]
        seen.update(map(id, new))
        todo.extend(new)
