"""Learn a public code of very many values, without a matrix of all by all.

In output units z, which here differ by a scale for each value, the prior covariance is

    S = p C + (1 - p) diag(C) + (the same of A, times rho^2 n^2 / 2) + a diagonal,

C the covariance of the pilot values, and the diagonal for changes that they do not show. p is the
share of a new value that lies in the span of the pilots, estimated by leaving one out. The rows are
axes of the part of S that lies in the span, at most `MAX_RANK`. They, and the changes of pilots
along them, are combinations of pilots, and follow from the products of pilots.

Outside of its rows, and of what is correlated with them, the decoder returns the prior mean, and
its standard errors are those of the prior, however little noise there is. So no code is learned
where the values themselves with their noise have a smaller error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

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
    best, error = None, math.inf
    if noises[0].most is None:  # the noise of each value by itself does not depend on their number
        alone = noises[0].of(np.linalg.norm(differences, ord=noises[0].order, axis=1))
        error = alone**2 * np.sum(scale**2)
    for noise in noises:
        code, deviation = _learn_axes(pilots, noise) or (None, 0.0)
        if code is not None:
            spread = np.sum((code.deviations * scale) ** 2)
            left = spread * (1 - code.share_learned(deviation**2))
            if left <= error:
                best, error = code, left
    return best


def _share_in_span(products: Matrix) -> float:
    """Return which share of the squared length of a row lies in the span of the others."""
    lengths = np.diag(products)
    if not lengths.any():
        return 0.0
    ridge = _RIDGE * lengths.mean() * np.eye(len(products))
    left = 1 / np.diag(np.linalg.inv(products + ridge))
    return float(np.clip(1 - left.mean() / lengths.mean(), 0, 1))


def _learn_axes(pilots: _Pilots, noise: Noise) -> tuple[PublicCode, float] | None:
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
    values, changes = np.split(pilots.rows, 2)
    of_value = (1 + 1 / m) / (m - 1) * np.sum((values - values.mean(axis=0)) ** 2, axis=0)
    of_change = reach**2 / 2 * np.mean(changes**2, axis=0)
    spread = of_value + of_change + pilots.unseen
    outside = (1 - shares[0]) * of_value + (1 - shares[1]) * of_change + pilots.unseen

    def weights_of(axes: _Axes, changes: Matrix, ratio: float) -> Matrix:
        """Weigh axes that matter alike, none of which is believed to hardly change."""
        sizes: Matrix = np.mean(np.abs(changes) ** noise.order, axis=0) ** (1 / noise.order)
        sizes = np.maximum(sizes, _LEAST_CHANGE * sizes.max())
        variances, budget = axes.variances, noise.budget(ratio)
        return fill(noise.order, np.ones_like(variances), variances, sizes, budget, noise.most)

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
    code = PublicCode(
        encoder=encoder * pilots.scale,
        mean=pilots.center,
        deviations=np.sqrt(spread) / pilots.scale,
        removable=with_code @ with_code.T / spread.sum(),
        covariance=(with_code / pilots.scale).T,
        n_pilot_pairs=m,
        shift=pilots.shift,
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
