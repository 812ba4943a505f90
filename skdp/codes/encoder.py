"""Learn a public code from pilot pairs: the few numbers of the value that are worth their noise.

In output units z the prior has covariance S and a change by one record the second moment A. A
candidate has rows Q and a weight u of each: ``T = diag(u) Q``, the rows of weight 0 left out.

- The rows are eigenvectors of S: where models differ.
- They are generalized eigenvectors of S and A: where models differ by much more than one record
  changes them. Value and change are then uncorrelated between rows.
- They are square: the values, the axes of the metric, or the axes of A.

Either of the former two is weighted for this epsilon, so that most of its rows are left out. All
are decoded by the same prior. A candidate is judged on pilot pairs that learned nothing of it. They
say what noise of deviation s it needs, and with B its decoder, z a value around the mean, v a
change and rho n the number of records that may be unlike, the mean of

    |z - B T z|^2 + (rho n)^2 / 6 |v - B T v|^2 + s^2 |B|^2

is the error to be expected. A third of the shift's square stands there: at most a share rho is
unlike, and where any share up to rho is as likely its mean square is rho^2 / 3. The prior has the
whole of it. The error is one of data like the oracle's, shifted in one common way, and private data
are neither quite. So it only says which candidates are about as good, within `_AS_GOOD` of the
least:

- Where most can be learned, all numbers are released, if such a code is among them. A number that
  is not released is the oracle's, right or wrong, and nothing shows that it is wrong.
- Else the code of the fewest numbers is taken, and of those with as many the generalized
  eigenvectors, which a record changes least. The more of the budget a number has, the sooner it
  contradicts a wrong oracle.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.codes.candidates import CANDIDATES, Learned
from skdp.codes.pilots import (
    MAX_DENSE,
    MAX_RANK,
    center_of,
    center_of_alike,
    in_units,
    least_changes,
    least_share,
    matrix_of,
    seldom_change,
    with_least_changes,
    with_rare_changes,
)
from skdp.codes.prior import OutputUnits, Prior, additive_share
from skdp.codes.water import FIRST_RATIO, Noise
from skdp.core.code import PublicCode
from skdp.core.metric import KnownMetric, OutputMetric
from skdp.core.types import Matrix

NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16)  # rows that are tried, where the noise depends on how many
LEAST_PILOTS = 5  # with fewer there is no prior to speak of
_MOST_NOISE = 1e100  # per unit of sensitivity: with more, squares would overflow

_MOST_NUMBERS = 2**23  # of an encoder: 8 rows for a million values

MOST_COMPONENTS = 40  # with more no table had a better score
_BESIDE = {1: 1 / 9, 2: 0.4}  # move of the mean responses, as a share of that of all else, by norm
_AS_LITTLE = 2  # times the squared error of a code: numbers that it leaves out are the oracle's

_N_FOLDS = 3
_AS_GOOD = 1.15  # of the least squared error, which is 7 % of the error itself
_MOST_UNREAD = 0.2  # of the squared error without a release: with less left, all is released
_ROUNDING = 1e-10  # of the largest variance of pilots


def with_learned_code(
    mechanism: Any,
    values: Matrix,
    differences: Matrix,
    metric: OutputMetric | None = None,
    *,
    n_samples: int,
    level: float,  # share of pairs that the calibration covers
    noise: float = 1.0,  # less where pilots of fewer records change by more
) -> Any:
    """Return a mechanism with a code for its noise, or without one where none can be learned."""
    order, deviation, most = mechanism.order, mechanism.unit_deviation, mechanism.most_values
    noises, code = [Noise(order, noise * deviation(1), level)], None
    known = metric if isinstance(metric, KnownMetric) else KnownMetric(np.ones(1))
    n_means = 0 if known.axes is None else known.n_outputs
    n_means *= most is None or n_means < most
    if most is not None:  # the noise depends on how many numbers get it
        numbers = [n for n in NUMBERS if n + n_means <= most]
        noises = [Noise(order, noise * deviation(n + n_means), level, n) for n in numbers]
    # pilots may be beyond what doubles can square, or singular to working precision
    with suppress(ValueError), np.errstate(all="ignore"):
        options: Any = {"n_samples": n_samples, "shift": mechanism.shift}
        learn: Callable[..., PublicCode | None] = learn_code
        if n_means:
            n_classes = max(2, n_means)
            n_axes = n_components(n_samples, mechanism.guarantee().epsilon, n_classes)
            learn = partial(learn_in_axes, n_axes=n_axes * (n_classes - 1))
        code = learn(values, differences, metric, *noises, **options)
    return mechanism.with_code(code)


def n_components(n_samples: int, epsilon: float, n_classes: int) -> int:
    """Return the number of components that epsilon resolves; two order three classes.

    In whitened components a record moves p numbers of a class by 1 / n each. So their noise grows
    with p^3 / (n epsilon)^2, and the signal of the p-th falls with 1 / p^2: a square root balances
    them. The 5 was measured.
    """
    least, found = max(min(n_classes - 1, 2), 1), math.sqrt(n_samples * epsilon / (5 * n_classes))
    return round(float(np.clip(found, least, MOST_COMPONENTS)))


def learn_code(
    values: Matrix,
    differences: Matrix,
    metric: OutputMetric | None,  # a squared change of the output is v' metric v
    *noises: Noise,  # one, or one for each number of rows
    n_samples: int,
    shift: float = 0.2,
    most_dense: int = MAX_DENSE,
) -> PublicCode | None:
    """Learn a code from pilot pairs; None without noise or differences, or with too much noise."""
    n_pilots, d = values.shape
    matrix, local = matrix_of(metric, d)
    fits = all(0 < noise.deviation < _MOST_NOISE for noise in noises)
    if not fits or n_pilots < LEAST_PILOTS or not differences.any():
        return None
    known = metric if isinstance(metric, KnownMetric) else None
    seen = differences if known is None else with_rare_changes(values, differences)
    least = least_changes(seen, metric)
    pilots = values, differences, least, matrix, local, noises, n_samples, float(shift)
    are_alike = known is not None and known.are_alike
    if d > most_dense:
        code = _learn_wide(*pilots)
    else:
        learned = _learn_dense(*pilots, are_alike=are_alike)
        code = None if learned is None else learned[0]
    if code is None or known is None or not are_alike:
        return code
    return replace(code, mean=center_of_alike(values, known.n_outputs))


def learn_in_axes(
    values: Matrix,
    differences: Matrix,
    metric: KnownMetric,
    *noises: Noise,
    n_samples: int,
    shift: float,
    n_axes: int,
) -> PublicCode | None:
    """Learn a code of points along public axes, and set their mean responses beside it.

    The mean of all points is decoded from the mean responses alone. A share `_BESIDE` of the
    largest change is theirs: a tenth of epsilon for Laplace noise, or 8 % more of other noise.
    There is no code where noise on all numbers would leave about as little open.
    """
    axes, move = np.asarray(metric.axes)[:n_axes], np.asarray(metric.moves)
    width, order = metric.n_outputs, noises[0].order
    m, d = len(values), axes.shape[1]
    constant = np.tile(np.eye(width), d // width)
    read = np.linalg.pinv(np.vstack([constant, axes]).T)[width:]
    rows, changes = (each[:, :d] @ read.T for each in (values, differences))
    if m < LEAST_PILOTS or not changes.any() or not noises[0].deviation < _MOST_NOISE:
        return None
    ones = np.ones(len(axes))
    learned = _learn_dense(rows, changes, 0 * ones, ones, False, noises, n_samples, shift)
    if learned is None:
        return None
    inner, prior, back = learned
    means, moved = values[:, d:], differences[:, d:]
    variances = means.var(axis=0, ddof=1) + (shift * n_samples) ** 2 / 2 * np.mean(moved**2, axis=0)
    norms = np.linalg.norm(changes @ inner.encoder.T, ord=order, axis=1)
    largest = norms.max()
    norms = norms[moved.any(axis=1)] if moved.any() else norms  # else one is the mean's alone
    deviation = noises[0].of(norms) or noises[0].deviation * largest
    if not deviation:
        return None
    weight = _BESIDE[order] * deviation / noises[0].deviation / np.linalg.norm(move, ord=order)
    # the mean of m pilots is drawn to 0, which random rules have, by James and Stein
    away = np.sum(inner.mean**2)
    kept = max(0.0, 1 - rows.var(axis=0).sum() / m / away) if away > 0 else 0.0
    back, center = back @ axes, center_of(means)
    outside = (values[:, :d] - rows @ axes - means @ constant).var(axis=0, ddof=1)
    spread = np.sum(back * (prior @ back), axis=0) + outside + variances @ constant
    k, of_means = inner.n_released, np.diag(weight * variances)
    covariance = np.zeros((d + width, k + width))
    covariance[:, k:] = np.vstack([constant.T @ of_means, of_means])
    covariance[:d, :k] = axes.T @ inner.covariance
    encoder = np.zeros((k + width, d + width))
    encoder[:k, :d], encoder[k:, d:] = inner.encoder @ read, weight * np.eye(width)
    code = PublicCode(
        n_pilot_pairs=m,
        shift=shift,
        encoder=encoder,
        mean=np.concatenate([kept * inner.mean @ axes + center @ constant, center]),
        covariance=covariance,
        deviations=np.sqrt(np.concatenate([spread, variances])),
        removable=covariance[:d].T @ covariance[:d] / spread.sum(),
    )
    of_all = d * noises[0].of(np.linalg.norm(differences[:, :d], ord=order, axis=1)) ** 2
    left_open = spread.sum() * (1 - code.share_learned(deviation**2))
    return code if of_all > _AS_LITTLE * left_open or noises[0].most is not None else None


def _learn_dense(
    values: Matrix,
    differences: Matrix,
    least: Matrix,
    metric: Matrix | None,
    local: bool,
    noises: Sequence[Noise],
    n_samples: int,
    shift: float,
    reach: float | None = None,
    are_alike: bool = False,
) -> tuple[PublicCode, Matrix, Matrix] | None:
    """Return a code with the prior covariance, and the map from values to its coordinates."""
    # Nothing says how much a number varies that no pilot varies, so that it is not read.
    varies = (values != values[0]).any(axis=0) | differences.any(axis=0) | (least > 0)
    kept = np.eye(len(varies))[:, varies]
    center, is_known, reach = center_of(values), reach is not None, reach or shift * n_samples
    values, differences, least = values[:, varies], differences[:, varies], least[varies]
    if metric is not None:
        metric = metric[varies] if metric.ndim == 1 else metric[np.ix_(varies, varies)]
        metric = metric if metric.any() else None
    feared = with_least_changes(with_rare_changes(values, differences), least)
    # The size of all values does not matter, so this only keeps squares from over- and underflow.
    size = np.abs(feared).max()
    values, differences = (values - center[varies]) / size, differences / size
    units = OutputUnits.of(feared / size, metric, local)
    missing = _unseen(values, differences, n_samples) + (least / size) ** 2
    unseen = units.to.T @ (missing[:, None] * units.to)
    values, changes = values @ units.to, differences @ units.to
    additive = 1.0
    if metric is not None and not is_known:
        outputs = values + (center[varies] / size) @ units.to
        additive = additive_share(n_samples, outputs, changes)
    if are_alike:  # of points that are alike no change is to be feared that others do not show
        reach, additive = reach * math.sqrt(additive), 1.0

    def view(rows: slice | NDArray[np.intp]) -> Learned:
        prior = Prior.of(values[rows], changes[rows], reach, unseen, additive)
        return Learned(changes[rows], prior, units)

    whole = view(slice(None))
    parts = _hold_out(view, values, changes, reach * math.sqrt(additive))
    covariance = whole.prior.covariance
    differ = covariance.any() and all(part.learned.prior.change.any() for part in parts)
    tried = _try_candidates(parts, whole, noises) if differ else []
    if not tried:  # as where pilots are alike, or most pairs change nothing
        return None
    unread = sum(part.error(np.zeros((0, values.shape[1])), 0.0) for part in parts)
    encoder = _choose(tried, unread, are_alike).encoder
    with_code = covariance @ encoder.T
    code = PublicCode(
        n_pilot_pairs=len(values),
        shift=shift,
        encoder=encoder @ units.to.T / size @ kept.T,
        mean=center,
        covariance=kept @ units.back.T @ with_code * size,
        deviations=size * kept @ np.sqrt(np.sum(units.back * (covariance @ units.back), axis=0)),
        removable=with_code.T @ with_code / np.trace(covariance),
    )
    return code, covariance, units.back @ (size * kept.T)


def _hold_out(
    view: Callable[[NDArray[np.intp]], Learned], values: Matrix, changes: Matrix, reach: float
) -> list[_Part]:
    """Learn from all folds but one, to judge on that one."""
    parts = []
    for place in range(_N_FOLDS):
        fold = slice(place, None, _N_FOLDS)
        learned = view(np.delete(np.arange(len(values)), fold))
        parts.append(_Part(learned, values[fold] - learned.prior.mean, changes[fold], reach))
    return parts


def _try_candidates(
    parts: list[_Part], whole: Learned, noises: Sequence[Noise]
) -> list[_Candidate]:
    """Return encoders learned from all pilots, with their errors on folds that were left out."""
    tried, order = list[_Candidate](), noises[0].order
    for find in CANDIDATES:
        fitted, rows = [find(part.learned, order) for part in parts], find(whole, order)
        for noise in noises:
            first = [each.encoder(noise, FIRST_RATIO) for each in fitted]
            ratio = FIRST_RATIO * _deviation(parts, first, noise)
            encoder = rows.encoder(noise, ratio or FIRST_RATIO)
            if ratio == 0 or not len(encoder):
                continue
            encoders = [each.encoder(noise, ratio) for each in fitted]
            deviation = _deviation(parts, encoders, noise)
            judged = zip(parts, encoders, strict=True)
            error = sum(part.error(own, deviation) for part, own in judged)
            if math.isfinite(error):
                tried.append(_Candidate(error, encoder))
    return tried


def _unseen(values: Matrix, differences: Matrix, n_samples: int) -> Matrix:
    """Return how much is missing of the mean square of a change that hardly any pair shows.

    By Efron and Stein's inequality a function of n independent records has a variance of at most
    n / 2 times the mean square of a change. So that is at least 2 / n times the former.
    """
    least = 2 / n_samples * values.var(axis=0)
    missing = np.maximum(least - np.mean(differences**2, axis=0), 0)
    return np.where(seldom_change(differences), missing, 0)


def _learn_wide(
    values: Matrix,
    differences: Matrix,
    least: Matrix,
    metric: Matrix | None,
    local: bool,
    noises: Sequence[Noise],
    n_samples: int,
    shift: float,
) -> PublicCode | None:
    """Learn a code of very many values in a few axes of half of the pilots, from the others."""
    (m, d), has_metric = values.shape, metric is not None
    if m < 2 * LEAST_PILOTS:
        return None
    weights = np.diag(metric) if metric is not None and metric.ndim == 2 else metric
    sizes = np.maximum(np.abs(differences).mean(axis=0), least)
    units, weights = in_units(sizes[None], weights, least_share(local))
    scale, center, reach = np.sqrt(weights) / units, center_of(values), shift * n_samples
    rows, changes = (values - center) * scale, differences * scale
    unseen = (reach * least * scale) ** 2 / 2
    if has_metric:
        reach *= math.sqrt(additive_share(n_samples, rows + center * scale, changes))
    half = np.concatenate([rows[::2], changes[::2]])
    variances, axes = np.linalg.eigh(half @ half.T)
    leading = variances > _ROUNDING * variances[-1]
    most = min(MAX_RANK, max(1, _MOST_NUMBERS // d))
    axes = (axes[:, leading] / np.sqrt(variances[leading])).T[-most:] @ half
    rows, changes = rows[1::2], changes[1::2]
    along = rows @ axes.T, changes @ axes.T
    ones = np.ones(len(axes))
    learned = _learn_dense(*along, 0 * ones, ones, local, noises, n_samples, shift, reach)
    if learned is None:
        return None
    inner, prior, back = learned
    back = back @ axes
    rows, changes = (each - by @ axes for each, by in zip((rows, changes), along, strict=True))
    outside = rows.var(axis=0, ddof=1) + reach**2 / 2 * np.mean(changes**2, axis=0)
    spread = outside + unseen + np.sum(back * (prior @ back), axis=0)
    code = PublicCode(
        n_pilot_pairs=m,
        shift=shift,
        encoder=inner.encoder @ axes * scale,
        mean=center,
        covariance=axes.T @ inner.covariance / scale[:, None],
        deviations=np.sqrt(spread) / scale,
        removable=inner.removable * np.sum(inner.deviations**2) / spread.sum(),
    )
    noise = noises[0]
    if noise.most is None:  # the noise of each value does not depend on their number
        encoded = differences @ code.encoder.T
        deviations = [
            noise.of(np.linalg.norm(each, ord=noise.order, axis=1))
            for each in (differences, encoded)
        ]
        # What the axes do not reach stays as the prior has it, however little noise there is. Of
        # the shift a third is expected, as in the errors of parts: the prior has the largest one.
        feared = np.sum(outside - rows.var(axis=0, ddof=1) + unseen)
        left = (1 - code.share_learned(deviations[1] ** 2)) * spread.sum() - 2 / 3 * feared
        if deviations[0] ** 2 * np.sum(scale**2) < left:
            return None
    return code


class _Part(NamedTuple):
    """The prior of some pilots, with the values around its mean and the changes of the others."""

    learned: Learned
    values: Matrix
    changes: Matrix
    reach: float

    def error(self, encoder: Matrix, deviation: float) -> float:
        """Return the expected squared error of the output, times the number of the others."""
        with_code = encoder @ self.learned.prior.covariance
        total = with_code @ encoder.T + deviation**2 * np.eye(len(encoder))
        decoder = np.linalg.solve(total, with_code)

        def missed(rows: Matrix) -> float:
            return float(np.sum((rows - (rows @ encoder.T) @ decoder) ** 2))

        shifted = self.reach**2 / 6 * missed(self.changes)
        noise = len(self.values) * deviation**2 * np.sum(decoder**2)
        return missed(self.values) + shifted + float(noise)


def _deviation(parts: list[_Part], encoders: list[Matrix], noise: Noise) -> float:
    """Return the noise that a candidate needs, on changes from which it was not learned."""
    norms = [
        np.linalg.norm(part.changes @ encoder.T, ord=noise.order, axis=1)
        for part, encoder in zip(parts, encoders, strict=True)
    ]
    return noise.of(np.concatenate(norms))


class _Candidate(NamedTuple):
    """An encoder in output units, and the expected squared error of the decoded output."""

    error: float
    encoder: Matrix


def _choose(tried: list[_Candidate], unread: float, are_alike: bool = False) -> _Candidate:
    """Choose among those about as good as the best: all numbers if most can be learned, or few."""
    least = min(each.error for each in tried)
    good = [each for each in tried if each.error <= _AS_GOOD * least]
    square = [each for each in good if len(each.encoder) == each.encoder.shape[1]]
    if square and least < _MOST_UNREAD * unread:
        return min(square, key=lambda each: each.error)
    return min(good, key=lambda each: (len(each.encoder), each.error if are_alike else 0.0))
