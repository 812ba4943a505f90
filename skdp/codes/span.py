"""Learn a public code of very many values, without a matrix of all by all.

In output units z, which here differ by a scale for each value, the prior covariance is

    S = p C + (1 - p) diag(C) + (the same of A, times rho^2 n^2 / 2) + a diagonal,

C the covariance of the pilot values, and the diagonal for changes that they do not show. p is the
share of a new value that lies in the span of the pilots, estimated by leaving one out: where values
have no structure the prior is a diagonal, and where they fill a small space the span of the pilots
is all there is. There are two candidates:

- Axes of the part of S that lies in the span, at most `MAX_RANK`. They, and the changes of pilots
  along them, are combinations of pilots, and follow from the products of pilots.
- The values themselves, weighted as the directions of any code, and decoded one by one.

The former is exact in no limit: outside of its rows, and of what is correlated with them, the
decoder returns the prior mean and its standard errors those of the prior. The latter is exact where
all values are kept and the noise is gone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.codes.learning import MAX_RANK, center_of, folds, in_units, least_share
from skdp.codes.prior import additive_share
from skdp.codes.water import FIRST_RATIO, Noise, fill
from skdp.core.code import PublicCode
from skdp.core.types import Matrix

# Numbers of an encoder: 8 rows for a million values.
MAX_NUMBERS = 2**23

_N_FOLDS = 2
_LEAST_CHANGE = 1e-3  # of the largest change, as in `skdp.codes.encoder`
_RIDGE = 1e-10  # of the mean squared length of pilots: their rounding errors


class _Pilots(NamedTuple):
    """Values around their mean and then changes, in output units, and the products of these rows.

    `unseen` is what the changes that are to be feared at least add to the variance of each value.
    """

    rows: Matrix
    center: Matrix
    scale: Matrix
    unseen: Matrix
    products: Matrix
    reach: float
    shift: float

    @property
    def n_pairs(self) -> int:
        return len(self.rows) // 2

    def code(self, kind: str, spread: Matrix, encoder: Matrix, **parts: Any) -> PublicCode:
        """Make a code of these pilots; `spread` are the prior variances in output units."""
        return PublicCode(
            kind=kind,
            n_pilot_pairs=self.n_pairs,
            shift=self.shift,
            encoder=encoder * self.scale,
            mean=self.center,
            deviations=np.sqrt(spread) / self.scale,
            **parts,
        )


class _Axes(NamedTuple):
    """Axes as combinations of the pilots' rows, and their variances in the span."""

    combinations: Matrix
    variances: Matrix


def learn_in_span(
    values: Matrix,
    differences: Matrix,
    least: Matrix,
    metric: Matrix | None,
    local: bool,
    noises: Sequence[Noise],
    n_samples: int,
    shift: float,
) -> PublicCode | None:
    """Learn a code as `skdp.codes.encoder.learn_code` does, from the diagonal of the metric."""
    has_metric = metric is not None
    if metric is not None and metric.ndim == 2:
        metric = np.diag(metric)
    sizes = np.maximum(np.abs(differences).mean(axis=0), least)
    units, metric = in_units(sizes[None], metric, least_share(local))
    scale, center = np.sqrt(metric) / units, center_of(values)
    rows = np.concatenate([values - center, differences])
    rows *= scale
    products = rows @ rows.T
    reach = shift * n_samples
    unseen = (reach * least * scale) ** 2 / 2
    if has_metric:
        outputs, changes = np.split(rows, 2)
        reach *= math.sqrt(additive_share(n_samples, outputs + center * scale, changes))
    pilots = _Pilots(rows, center, scale, unseen, products, reach, shift)
    best, most = None, -1.0
    for noise in noises:
        for learn in (_by_value, _in_axes):
            code, deviation = learn(pilots, noise) or (None, 0.0)
            if code is not None and (share := code.share_learned(deviation**2)) > most:
                best, most = code, share
    return best


def _share_in_span(products: Matrix) -> float:
    """Return which share of the squared length of a row lies in the span of the others."""
    lengths = np.diag(products)
    if not lengths.any():
        return 0.0
    ridge = _RIDGE * lengths.mean() * np.eye(len(products))
    left = 1 / np.diag(np.linalg.inv(products + ridge))
    return float(np.clip(1 - left.mean() / lengths.mean(), 0, 1))


def _in_axes(pilots: _Pilots, noise: Noise) -> tuple[PublicCode, float] | None:
    """Learn a code of the axes in the span, each with a weight, and the deviation of its noise."""
    products, reach = pilots.products, pilots.reach
    m, d = pilots.n_pairs, len(pilots.scale)
    # Differences of pairs of values: these do not depend on the mean, nor on each other.
    apart = np.kron(np.eye(m // 2), [1.0, -1.0])
    of_values = products[: 2 * (m // 2), : 2 * (m // 2)]
    shares = _share_in_span(apart @ of_values @ apart.T), _share_in_span(products[m:, m:])
    most = min(MAX_RANK, max(1, MAX_NUMBERS // d))
    whole = _axes_in_span(products, np.arange(m), shares, reach, most)
    if not len(whole.variances):
        return None

    # The part of the covariance outside of the span is a diagonal.
    of_value, of_change = _moments(pilots.rows, reach)
    spread = of_value + of_change + pilots.unseen
    outside = (1 - shares[0]) * of_value + (1 - shares[1]) * of_change + pilots.unseen

    def weights_of(axes: _Axes, changes: Matrix, ratio: float) -> Matrix:
        return _weights(noise, axes.variances, _sizes(changes, noise.order), ratio)

    parts = []
    for fold, rest in folds(m, _N_FOLDS):
        axes = _axes_in_span(products, rest, shares, reach, most)
        along = (axes.combinations @ products[:, m:]).T
        parts.append((axes, along[rest], along[fold]))

    def deviation_of(ratio: float) -> float:
        codes = [held_out * weights_of(axes, rest, ratio) for axes, rest, held_out in parts]
        return noise.of(np.concatenate([np.linalg.norm(c, ord=noise.order, axis=1) for c in codes]))

    if not all(rest.any() for _, rest, _ in parts):
        return None  # most pairs do not change anything
    ratio = FIRST_RATIO * deviation_of(FIRST_RATIO)
    if ratio == 0:
        return None
    weights = weights_of(whole, (whole.combinations @ products[:, m:]).T, ratio)
    kept = np.flatnonzero(weights)
    encoder = weights[kept, None] * (whole.combinations[kept] @ pilots.rows)
    with_code = encoder * (whole.variances[kept, None] + outside)
    code = pilots.code(
        "principal",
        spread,
        encoder,
        covariance=(with_code / pilots.scale).T,
        removable=with_code @ with_code.T / spread.sum(),
    )
    return code, deviation_of(ratio)


def _axes_in_span(
    products: Matrix, rows: NDArray[np.intp], shares: tuple[float, float], reach: float, most: int
) -> _Axes:
    """Find the leading axes of the part of S that lies in the span of some pilots."""
    m, n = len(products) // 2, len(rows)
    factor = np.zeros((2 * n, 2 * m))
    factor[:n, rows] = np.sqrt(shares[0] * (1 + 1 / n) / (n - 1)) * (np.eye(n) - 1 / n)
    factor[n:, m + rows] = reach * np.sqrt(shares[1] / (2 * n)) * np.eye(n)
    variances, axes = np.linalg.eigh(factor @ products @ factor.T)
    leading = np.arange(2 * n)[::-1][:most]
    leading = leading[variances[leading] > _RIDGE * max(variances[-1], 0)]
    combinations = axes[:, leading].T @ factor / np.sqrt(variances[leading])[:, None]
    return _Axes(combinations, variances[leading])


def _moments(block: Matrix, reach: float) -> tuple[Matrix, Matrix]:
    """Return the variance of each value, and what records that are unlike add to it."""
    m = len(block) // 2
    of_value = (1 + 1 / m) / (m - 1) * np.sum((block[:m] - block[:m].mean(axis=0)) ** 2, axis=0)
    return of_value, reach**2 / 2 * np.mean(block[m:] ** 2, axis=0)


def _sizes(changes: Matrix, order: int) -> Matrix:
    """Return the size of each column, by the norm."""
    sizes: Matrix = np.mean(np.abs(changes) ** order, axis=0) ** (1 / order)
    return sizes


def _weights(noise: Noise, variances: Matrix, sizes: Matrix, ratio: float) -> Matrix:
    """Weigh directions that matter alike, none of which is believed to hardly change."""
    sizes = np.maximum(sizes, _LEAST_CHANGE * sizes.max())
    budget = noise.budget(ratio)
    return fill(noise.order, np.ones_like(variances), variances, sizes, budget, noise.most)


def _by_value(pilots: _Pilots, noise: Noise) -> tuple[PublicCode, float] | None:
    """Learn a code of the values themselves, and the deviation of its noise."""
    order, m = noise.order, pilots.n_pairs

    def seen(pairs: Any) -> tuple[Matrix, Matrix]:
        rows = np.concatenate([pilots.rows[:m][pairs], pilots.rows[m:][pairs]])
        spread = np.sum(_moments(rows, pilots.reach), axis=0) + pilots.unseen
        return spread, _sizes(rows[len(rows) // 2 :], order)

    spread, sizes = seen(slice(None))
    parts = [(pilots.rows[m:][fold], *seen(rest)) for fold, rest in folds(m, _N_FOLDS)]
    if not all(part_sizes.any() for _, _, part_sizes in parts):
        return None  # most pairs do not change anything

    def deviation_of(ratio: float) -> float:
        codes = [changes * _weights(noise, var, by, ratio) for changes, var, by in parts]
        return noise.of(np.linalg.norm(np.concatenate(codes), ord=order, axis=1))

    ratio = FIRST_RATIO * deviation_of(FIRST_RATIO)
    if ratio == 0:
        return None
    weights = _weights(noise, spread, sizes, ratio)
    kept = np.flatnonzero(weights)
    removable = (spread[kept] * weights[kept]) ** 2 / spread.sum()
    code = pilots.code("diagonal", spread, weights, removable=removable)
    return code, deviation_of(ratio)
