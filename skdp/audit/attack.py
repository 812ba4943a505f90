"""Search for a pair on which a target changes more than the sampled sensitivity."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from skdp.core.checks import check_count
from skdp.core.dataset import Dataset, neighboring_pair
from skdp.core.geometry import Geometry, as_geometry
from skdp.core.target import Target, as_target
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.drawing import draw

POOL_SIZE = 1000
MOVES_PER_START = 50


@dataclass(frozen=True, eq=False)
class SensitivityAttack:
    """A pair of neighboring datasets that a search has found, and how much the target changes.

    Its records come from the oracle, or mix coordinates of several of its records: it is public.

    Parameters
    ----------
    norm : float
        Norm of the change of the target.
    base : Dataset
        The records that both datasets share: a named tuple of X, y and sample_weight. What the
        oracle does not yield is None.
    record, other : Dataset of one record
        The record of the first dataset that the other record replaces in the second.
    history : ndarray of shape (n_iter,)
        Largest norm after each evaluation of a pair; -inf before the first that has a value.
    n_failures : int
        Pairs on which the target could not be evaluated; they are passed over here, though for
        the sampler they count as infinite.
    sensitivity : float or None, default=None
        What the norm is compared with.
    position : int, default=-1
        Where these two stand, if the order means something to the target: in the place of this
        record of `base`, which is then the last.

    Examples
    --------
    >>> from skdp import UniformOracle
    >>> from skdp.audit import find_large_sensitivity
    >>> oracle = UniformOracle([(0, 1)])
    >>> attack = find_large_sensitivity(max, oracle, n_samples=5, n_iter=99, random_state=0)
    >>> attack.record.X.shape, attack.ratio is None
    ((1, 1), True)
    """

    norm: float
    base: Dataset = field(repr=False)
    record: Dataset
    other: Dataset
    history: NDArray[np.float64] = field(repr=False)
    n_failures: int
    sensitivity: float | None = None
    position: int = -1

    @property
    def ratio(self) -> float | None:
        """Norm over the sensitivity; the epsilon of this pair is about that many times larger."""
        return None if self.sensitivity is None else self.norm / self.sensitivity

    def __str__(self) -> str:
        found = f"largest norm found {self.norm:.4g} in {len(self.history)} pairs"
        if self.sensitivity is None:
            return found
        return f"{found}, {self.ratio:.3g} times the sensitivity {self.sensitivity:.4g}"


def find_large_sensitivity(
    target: Target | Callable,
    oracle: object,
    n_samples: int,
    n_iter: int = 500,
    *,
    geometry: Geometry | str = "l1",
    sensitivity: float | None = None,
    random_state: int | np.random.Generator | None = None,
) -> SensitivityAttack:
    """Search for a pair of neighboring datasets on which a target changes much.

    A sampled sensitivity covers all but a share gamma of the oracle's pairs. This shows what lies
    beyond. Each restart draws a pair from the oracle, and a position; then single moves are tried
    and kept where the norm grows: the record or its replacement becomes another record of the
    oracle, or takes one coordinate from another record, or the least or largest value that
    coordinate has among 1,000 of them. A moved record stays in the box of the oracle's records;
    whether it is plausible as a whole is for the reader to judge.

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
    sensitivity : float or None, default=None
        What to compare with, such as ``SensitivityEstimate.value``.
    random_state : int, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    SensitivityAttack
        The pair with the largest norm.

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
    search = _Search(as_target(target), geometry, seed=int(rng.integers(2**31)))
    oracle = as_oracle(oracle)
    while len(search.history) < n_iter:
        records = draw(oracle, n_samples + 1 + POOL_SIZE, rng)
        position = int(rng.integers(n_samples))
        search.climb(_Pair(records, np.arange(n_samples + 1), position), n_iter, rng)
    if search.best is None:
        raise ValueError(
            f"The target of find_large_sensitivity failed on all of {n_iter} pairs. Look at its "
            "value on records of the oracle."
        )
    found = search.best.build()
    shared, first, second = np.split(np.arange(n_samples + 1), [n_samples - 1, n_samples])
    return SensitivityAttack(
        norm=search.norm_of_best,
        base=found.take(shared),
        record=found.take(first),
        other=found.take(second),
        history=np.array(search.history),
        n_failures=search.n_failures,
        sensitivity=sensitivity,
        position=search.best.position,
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    """A pair of datasets as choices from a pool of records, with some coordinates exchanged.

    The last two of the chosen records are the ones in which the datasets differ; `position` is
    where they stand.
    """

    pool: Dataset
    chosen: NDArray[np.integer]
    position: int
    exchanged: dict[tuple[int, int], float] = field(default_factory=dict)

    def build(self) -> Dataset:
        """Return all records of the pair, the two that differ last."""
        records = self.pool.take(self.chosen)
        for place, value in self.exchanged.items():
            records.X[place] = value
        return records

    def move(self, rng: np.random.Generator) -> _Pair:
        """Change one of the last two records: as a whole, or in one coordinate."""
        place = len(self.chosen) - 1 - int(rng.integers(2))
        donor = int(rng.integers(self.pool.n_records))
        X = self.pool.X
        if isinstance(X, np.ndarray) and X.ndim == 2 and rng.random() < 0.75:
            column = int(rng.integers(X.shape[1]))
            values = X[:, column]
            value = (values[donor], values.min(), values.max())[int(rng.integers(3))]
            return replace(self, exchanged=self.exchanged | {(place, column): value})
        chosen = self.chosen.copy()
        chosen[place] = donor
        kept = {key: value for key, value in self.exchanged.items() if key[0] != place}
        return replace(self, chosen=chosen, exchanged=kept)


class _Search:
    """The best pair so far, and how it came about."""

    def __init__(self, target: Target, geometry: Geometry, seed: int) -> None:
        self.target, self.geometry, self.seed = target, geometry, seed
        self.best: _Pair | None = None
        self.norm_of_best = -np.inf
        self.history: list[float] = []
        self.n_failures = 0

    def climb(self, pair: _Pair, n_iter: int, rng: np.random.Generator) -> None:
        """Evaluate a pair and move it uphill."""
        height = self.evaluate(pair)
        for _ in range(min(MOVES_PER_START, n_iter - len(self.history))):
            moved = pair.move(rng)
            reached = self.evaluate(moved)
            if reached >= height:
                pair, height = moved, reached

    def evaluate(self, pair: _Pair) -> float:
        """Measure a pair; -inf where the target has no value."""
        dataset, neighbor = neighboring_pair(pair.build(), pair.position)
        height = -np.inf
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a search finds awkward records
            # A dataset without a value is no answer to the search, whatever the reason.
            with suppress(Exception):
                value = self.target(*dataset.parts, seed=self.seed)
                other = self.target(*neighbor.parts, seed=self.seed)
                height = float(self.geometry.distance(value, other))
        if not np.isfinite(height):
            height = -np.inf
            self.n_failures += 1
        if height > self.norm_of_best:
            self.best, self.norm_of_best = pair, height
        self.history.append(self.norm_of_best)
        return height
