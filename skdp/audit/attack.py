"""Search for a pair on which a target changes more than the sampled sensitivity."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from skdp.core.checks import check_count
from skdp.core.dataset import Dataset, neighboring_pair
from skdp.core.geometry import Geometry, as_geometry
from skdp.core.target import Target, as_target
from skdp.oracles.adapters import as_oracle
from skdp.oracles.drawing import draw

POOL_SIZE = 1000
MOVES_PER_START = 50


class SensitivityAttack(NamedTuple):
    """The pair that a search has found, its two records that differ, and the norm of the change."""

    norm: float
    record: Dataset
    other: Dataset
    pair: tuple[Dataset, Dataset]
    n_pairs: int


def find_large_sensitivity(
    target: Target | Callable,
    oracle: object,
    n_samples: int,
    n_iter: int = 500,
    *,
    geometry: Geometry | str = "l1",
    random_state: int | np.random.Generator | None = None,
) -> SensitivityAttack:
    """Search for a pair of neighboring datasets on which a target changes much.

    A sampled sensitivity covers all but a share gamma of the oracle's pairs; the search looks for
    the others. Each restart draws a pair from the oracle, and keeps single moves where the norm
    grows: one of the two records becomes another record of the oracle, or takes one coordinate from
    another record, or the least or largest value that coordinate has among 1,000 of them. A moved
    record stays in the box of the oracle's records; judge whether it is plausible as a whole. Pairs
    on which the target fails are passed over.

    Parameters
    ----------
    target : Target or callable
        ``target(X)`` or ``target(X, y)``, as for :func:`skdp.release`.
    oracle : callable, frozen scipy.stats distribution or fitted estimator with `sample`
        Source of records, as for :class:`skdp.SensitivitySampler`.
    n_samples : int
        Number of records of each dataset.
    n_iter : int, default=500
        Number of pairs to evaluate, two evaluations of the target each.
    geometry : Geometry or {"l1", "l2", "sup"}, default="l1"
        How a change is measured, such as ``mechanism.geometry``.
    random_state : int, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    named tuple
        Of the largest `norm`, to be compared with ``SensitivityEstimate.value``: the epsilon of the
        pair is about that many times larger; the `record` of the first dataset and the `other` that
        replaces it in the second, each a named tuple with X and y; the `pair` of
        datasets; and `n_pairs`, how many were evaluated. All records are public: they come from
        the oracle, or mix coordinates of several of its records.

    Raises
    ------
    ValueError
        If `n_samples` or `n_iter` is below 1, or the target fails on every pair.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import UniformOracle
    >>> from skdp.audit import find_large_sensitivity
    >>> found = find_large_sensitivity(
    ...     np.mean, UniformOracle([(0, 1)]), n_samples=10, n_iter=200, random_state=0
    ... )
    >>> round(found.norm, 2)
    0.1
    """
    for name, value in (("n_samples", n_samples), ("n_iter", n_iter)):
        check_count(name, value, "find_large_sensitivity")
    rng = np.random.default_rng(random_state)
    geometry = as_geometry(geometry, "find_large_sensitivity")
    target, seed, oracle = as_target(target), int(rng.integers(2**31)), as_oracle(oracle)
    highest, n_pairs = -np.inf, 0
    while n_pairs < n_iter:
        pool = draw(oracle, n_samples + 1 + POOL_SIZE, rng)
        if pool.groups is not None:
            raise ValueError(
                "The 'oracle' parameter of find_large_sensitivity must yield records. Got persons."
            )
        base, two = (pool.take(each) for each in np.split(np.arange(n_samples + 1), [-2]))
        place, height = int(rng.integers(n_samples)), -np.inf
        for move in range(min(1 + MOVES_PER_START, n_iter - n_pairs)):
            moved = _move(two, pool, rng) if move else two
            pair = neighboring_pair(base.join(moved), place)
            norm = -np.inf
            with warnings.catch_warnings(), np.errstate(all="ignore"), suppress(Exception):
                warnings.simplefilter("ignore")  # a search finds awkward records
                norm = geometry.distance(*(target(*each.parts, seed=seed) for each in pair))
            norm = float(norm) if np.isfinite(norm) else -np.inf
            if norm > highest:
                best, highest = (base, moved, place), norm
            if norm >= height:
                two, height = moved, norm
            n_pairs += 1
    if highest == -np.inf:
        raise ValueError(
            f"The target of find_large_sensitivity failed on all of {n_iter} pairs. Look at its "
            "value on records of the oracle."
        )
    base, two, place = best
    record, other = (two.take(np.array([i])) for i in (0, 1))
    pair = neighboring_pair(base.join(two), place)  # anew: a target may write into its records
    return SensitivityAttack(highest, record, other, pair, n_pairs)


def _move(two: Dataset, pool: Dataset, rng: np.random.Generator) -> Dataset:
    """Change one of the two records: as a whole, or in one coordinate."""
    place, donor = int(rng.integers(2)), int(rng.integers(pool.n_records))
    if isinstance(pool.X, np.ndarray) and pool.X.ndim == 2 and rng.random() < 0.75:
        column = int(rng.integers(pool.X.shape[1]))
        values = pool.X[:, column]
        X = two.X.copy()
        X[place, column] = (values[donor], values.min(), values.max())[int(rng.integers(3))]
        return two._replace(X=X)
    kept, taken = two.take(np.array([1 - place])), pool.take(np.array([donor]))
    return kept.join(taken)
