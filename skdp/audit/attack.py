"""Search for a pair on which a target changes more than the sampled sensitivity."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from skdp.core.checks import check_count
from skdp.core.dataset import Dataset, join_records, neighboring_pair
from skdp.core.geometry import Geometry, as_geometry
from skdp.core.target import Target, as_target
from skdp.sensitivity.adapters import as_oracle
from skdp.sensitivity.drawing import draw

POOL_SIZE = 1000
MOVES_PER_START = 50


@dataclass(frozen=True, eq=False)
class SensitivityAttack:
    """A pair of neighboring datasets that a search has found, and the change of the target on it.

    The records come from the oracle, or mix coordinates of several of its records: they are public.

    Parameters
    ----------
    norm : float
        Norm of the change of the target.
    base : Dataset
        The records that both datasets share: a named tuple of X, y and sample_weight.
    record, other : Dataset of one record
        The record of the first dataset that the other record replaces in the second.
    n_pairs : int
        Number of pairs that were evaluated.
    n_failures : int
        Number of pairs on which the target could not be evaluated, which the search passes over.
    sensitivity : float or None, default=None
        Sensitivity to compare the norm with.
    position : int, default=-1
        Place of the two records: that of this record of `base`, which then comes last.

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
    n_pairs: int
    n_failures: int
    sensitivity: float | None = None
    position: int = -1

    @property
    def ratio(self) -> float | None:
        """Norm over the sensitivity; the epsilon of this pair is about that many times larger."""
        return None if self.sensitivity is None else self.norm / self.sensitivity

    def __str__(self) -> str:
        found = f"largest norm found {self.norm:.4g} in {self.n_pairs} pairs"
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

    A sampled sensitivity covers all but a share gamma of the oracle's pairs; the search looks for
    the others. Each restart draws a pair from the oracle, and keeps single moves where the norm
    grows: one of the two records becomes another record of the oracle, or takes one coordinate from
    another record, or the least or largest value that coordinate has among 1,000 of them. A moved
    record stays in the box of the oracle's records; judge whether it is plausible as a whole.

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
        Sensitivity to compare the norm with, such as ``SensitivityEstimate.value``.
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
    target, seed, oracle = as_target(target), int(rng.integers(2**31)), as_oracle(oracle)
    norms: list[float] = []
    best, highest = None, -np.inf
    while len(norms) < n_iter:
        pool = draw(oracle, n_samples + 1 + POOL_SIZE, rng)
        base, two = np.split(np.arange(n_samples + 1), [n_samples - 1])
        pair = _Pair(pool.take(base), pool.take(two), int(rng.integers(n_samples)))
        height = -np.inf
        for move in range(min(1 + MOVES_PER_START, n_iter - len(norms))):
            moved = pair.move(pool, rng) if move else pair
            norms.append(moved.change(target, geometry, seed))
            if norms[-1] > highest:
                best, highest = moved, norms[-1]
            if norms[-1] >= height:
                pair, height = moved, norms[-1]
    if best is None:
        raise ValueError(
            f"The target of find_large_sensitivity failed on all of {n_iter} pairs. Look at its "
            "value on records of the oracle."
        )
    return SensitivityAttack(
        norm=highest,
        base=best.base,
        record=best.two.take(np.array([0])),
        other=best.two.take(np.array([1])),
        n_pairs=n_iter,
        n_failures=int(np.isneginf(norms).sum()),
        sensitivity=sensitivity,
        position=best.position,
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    """Records that two datasets share, the two in which they differ, and the place of these."""

    base: Dataset
    two: Dataset
    position: int

    def move(self, pool: Dataset, rng: np.random.Generator) -> _Pair:
        """Change one of the two records: as a whole, or in one coordinate."""
        place, donor = int(rng.integers(2)), int(rng.integers(pool.n_records))
        if isinstance(pool.X, np.ndarray) and pool.X.ndim == 2 and rng.random() < 0.75:
            column = int(rng.integers(pool.X.shape[1]))
            values = pool.X[:, column]
            X = self.two.X.copy()
            X[place, column] = (values[donor], values.min(), values.max())[int(rng.integers(3))]
            return replace(self, two=self.two._replace(X=X))
        kept, taken = self.two.take(np.array([1 - place])), pool.take(np.array([donor]))
        return replace(self, two=Dataset(*map(join_records, kept.parts, taken.parts)))

    def change(self, target: Target, geometry: Geometry, seed: int) -> float:
        """Return the norm of the change of a target; -inf where it has no value."""
        joined = map(join_records, self.base.parts, self.two.parts)
        datasets = neighboring_pair(Dataset(*joined), self.position)
        norm = -np.inf
        with warnings.catch_warnings(), np.errstate(all="ignore"), suppress(Exception):
            warnings.simplefilter("ignore")  # a search finds awkward records
            value, other = (target(*each.parts, seed=seed) for each in datasets)
            norm = float(geometry.distance(value, other))
        return norm if np.isfinite(norm) else -np.inf
