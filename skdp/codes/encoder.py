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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from skdp.codes.learning import (
    MAX_DENSE,
    center_of,
    center_of_alike,
    check_pilots,
    folds,
    least_changes,
    seldom_change,
    with_least_changes,
    with_rare_changes,
)
from skdp.codes.prior import OutputUnits, Prior, additive_share
from skdp.codes.span import learn_in_span
from skdp.codes.water import FIRST_RATIO, Noise, fill
from skdp.core.code import PublicCode
from skdp.core.metric import KnownMetric, OutputMetric
from skdp.core.types import Matrix

# How many rows a code is tried with, where its noise depends on that.
NUMBERS = (1, 2, 3, 4, 6, 8, 12, 16)
# With fewer pilots there is no prior to speak of.
LEAST_PILOTS = 5
# Per unit of sensitivity: with more noise squares would overflow, and nothing can be released.
_MOST_NOISE = 1e100

_N_FOLDS = 3
_AS_GOOD = 1.15  # of the least squared error, which is 7 % of the error itself
_MOST_UNREAD = 0.2  # of the squared error without a release: with less left, all is released
_LEAST_CHANGE = 1e-3  # of the largest change: directions said to change less are not believed
_ORDINARY = math.sqrt(2 / math.pi)  # mean absolute value of a normal variable of variance 1


class Rows(NamedTuple):
    """Rows of a candidate in output units, and what their weights follow from.

    `factors` are the squared lengths of the columns of the inverse. Of square rows they are None,
    and all rows have the same weight.
    """

    matrix: Matrix
    changes: Matrix
    variances: Matrix
    factors: Matrix | None

    def encoder(self, noise: Noise, ratio: float) -> Matrix:
        """Return T such that the noise has a variance of about 1; no rows where it must not."""
        order, budget, most = noise.order, noise.budget(ratio), noise.most
        if self.factors is None:
            rows = self.matrix if most in (None, len(self.matrix)) else self.matrix[:0]
            return rows * (budget / np.linalg.norm(self.changes, ord=order))
        weights = fill(order, self.factors, self.variances, self.changes, budget, most)
        return (weights[:, None] * self.matrix)[weights > 0]


class Pilots(NamedTuple):
    """The changes of pilot pairs in output units, and the prior that the pilots make."""

    changes: Matrix
    prior: Prior
    units: OutputUnits

    def sizes(self, rows: Matrix, order: int) -> Matrix:
        """Return the sizes of changes: root mean squares by A, times a factor for the order 1."""
        sizes = np.sqrt(np.sum(rows @ self.prior.change * rows, axis=1))
        if order == 1:
            along = self.changes @ rows.T
            square = np.sqrt(np.mean(along**2, axis=0))
            absolute = np.mean(np.abs(along), axis=0)
            shape = np.full_like(square, _ORDINARY)
            sizes *= np.divide(absolute, square, out=shape, where=square > 0)
        return np.maximum(sizes, _LEAST_CHANGE * sizes.max())


def with_learned_code(
    mechanism: Any,
    values: Matrix,
    differences: Matrix,
    metric: OutputMetric | None = None,
    *,
    n_samples: int,
    level: float,
) -> Any:
    """Return a mechanism with a code for its noise, or without one where none can be learned.

    `level` is the share of pairs that the calibration covers.
    """
    noises, code = noises_of(mechanism, level), None
    options: Any = {"n_samples": n_samples, "shift": mechanism.shift}
    # pilots may be beyond what doubles can square, or singular to working precision
    with suppress(ValueError), np.errstate(all="ignore"):
        code = learn_code(values, differences, metric, *noises, **options)
        if code is not None and isinstance(metric, KnownMetric) and metric.are_alike:
            code = replace(code, mean=center_of_alike(values, metric.n_outputs))
    return mechanism.with_code(code)


def noises_of(mechanism: Any, level: float) -> list[Noise]:
    """Return the noise of a mechanism: several, where it depends on how many numbers get it."""
    most = mechanism.most_values
    if most is None:
        return [Noise(mechanism.order, mechanism.unit_deviation(1), level)]
    numbers = [n for n in NUMBERS if n <= most]
    return [Noise(mechanism.order, mechanism.unit_deviation(n), level, n) for n in numbers]


def learn_code(
    values: Matrix,
    differences: Matrix,
    metric: OutputMetric | None,
    *noises: Noise,
    n_samples: int,
    shift: float = 0.2,
) -> PublicCode | None:
    """Learn a code from pilot pairs, for noise of one size, or of one for each number of rows.

    `values` are those of the first dataset of each pair, `differences` what the second one takes
    away. The squared change of the output is ``v' metric v``; a vector is a diagonal, None the
    identity. `shift` is the share of the records that may be unlike the oracle's. No code is
    learned without noise, with noise beyond reason, without any difference or with fewer than 5
    pilots.
    """
    differences, matrix, local = check_pilots(differences, metric)
    values, _, _ = check_pilots(values, None)
    if values.shape != differences.shape:
        raise ValueError(
            "There must be as many pilot values as pilot differences. Got arrays of shapes "
            f"{values.shape} and {differences.shape}."
        )
    n_pilots, d = values.shape
    fits = all(0 < noise.deviation < _MOST_NOISE for noise in noises)
    if not fits or n_pilots < LEAST_PILOTS or not differences.any():
        return None
    is_known = isinstance(metric, KnownMetric)
    dense = partial(_learn_dense, are_alike=isinstance(metric, KnownMetric) and metric.are_alike)
    learn = dense if d <= MAX_DENSE else learn_in_span
    seen = with_rare_changes(values, differences) if is_known else differences
    least = least_changes(seen, metric)
    pilots = values, differences, least
    return learn(*pilots, matrix, local, noises, n_samples, float(shift))


def _learn_dense(
    values: Matrix,
    differences: Matrix,
    least: Matrix,
    metric: Matrix | None,
    local: bool,
    noises: Sequence[Noise],
    n_samples: int,
    shift: float,
    are_alike: bool = False,
) -> PublicCode | None:
    # Nothing says how much a number varies that no pilot varies, so that it is not read.
    varies = (values != values[0]).any(axis=0) | differences.any(axis=0) | (least > 0)
    kept = np.eye(len(varies))[:, varies]
    center, reach = center_of(values), shift * n_samples
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
    if metric is not None:
        outputs = values + (center[varies] / size) @ units.to
        additive = additive_share(n_samples, outputs, changes)
    if are_alike:  # of points that are alike no change is to be feared that others do not show
        reach, additive = reach * math.sqrt(additive), 1.0

    def view(rows: Any) -> Pilots:
        prior = Prior.of(values[rows], changes[rows], reach, unseen, additive)
        return Pilots(changes[rows], prior, units)

    whole = view(slice(None))
    parts = []
    for fold, rest in folds(len(values), _N_FOLDS):
        learned = view(rest)
        around = values[fold] - learned.prior.mean
        parts.append(_Part(learned, around, changes[fold], reach * math.sqrt(additive)))
    covariance = whole.prior.covariance
    # Nothing differs between pilots, or most pairs do not change it.
    if not covariance.any() or not all(part.learned.prior.change.any() for part in parts):
        return None
    tried: list[_Candidate] = []
    unread = sum(part.error(np.zeros((0, values.shape[1])), 0.0) for part in parts)
    order = noises[0].order
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
    if not tried:
        return None
    encoder = _chosen(tried, unread, are_alike).encoder
    with_code = covariance @ encoder.T
    return PublicCode(
        n_pilot_pairs=len(values),
        shift=shift,
        encoder=encoder @ units.to.T / size @ kept.T,
        mean=center,
        covariance=kept @ units.back.T @ with_code * size,
        deviations=size * kept @ np.sqrt(np.sum(units.back * (covariance @ units.back), axis=0)),
        removable=with_code.T @ with_code / np.trace(covariance),
    )


def _unseen(values: Matrix, differences: Matrix, n_samples: int) -> Matrix:
    """Return how much is missing of the mean square of a change that hardly any pair shows.

    By Efron and Stein's inequality a function of n independent records has a variance of at most
    n / 2 times the mean square of a change. So that is at least 2 / n times the former.
    """
    least = 2 / n_samples * values.var(axis=0)
    missing = np.maximum(least - np.mean(differences**2, axis=0), 0)
    return np.where(seldom_change(differences), missing, 0)


class _Part(NamedTuple):
    """The prior of some pilots, with the values around its mean and the changes of the others."""

    learned: Pilots
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


def _chosen(tried: list[_Candidate], unread: float, are_alike: bool = False) -> _Candidate:
    """Choose among those about as good as the best: all numbers if most can be learned, or few.

    Of those with as few the first is taken, but where points are alike the best.
    """
    least = min(each.error for each in tried)
    good = [each for each in tried if each.error <= _AS_GOOD * least]
    square = [each for each in good if len(each.encoder) == each.encoder.shape[1]]
    if square and least < _MOST_UNREAD * unread:
        return min(square, key=lambda each: each.error)
    return min(good, key=lambda each: (len(each.encoder), each.error if are_alike else 0.0))


def _principal(pilots: Pilots, order: int) -> Rows:
    """Take the axes along which models differ."""
    variances, axes = np.linalg.eigh(pilots.prior.covariance)
    return Rows(axes.T, pilots.sizes(axes.T, order), _above_rounding(variances), np.ones(len(axes)))


def _contrasts(pilots: Pilots, order: int) -> Rows:
    """Take the directions in which models differ most, compared to the change by one record."""
    change = pilots.prior.change.copy()
    change[np.diag_indices(len(change))] += _LEAST_CHANGE**2 * np.diag(change).max()
    root = linalg.cholesky(change, lower=True)
    half = linalg.solve_triangular(root, pilots.prior.covariance, lower=True)
    variances, axes = np.linalg.eigh(linalg.solve_triangular(root, half.T, lower=True))
    rows = linalg.solve_triangular(root, axes, lower=True, trans=1).T
    factors = np.sum((root @ axes) ** 2, axis=0)
    return Rows(rows, pilots.sizes(rows, order), _above_rounding(variances), factors)


def _above_rounding(variances: Matrix) -> Matrix:
    least = np.finfo(float).eps * len(variances) * variances.max()
    return np.where(variances > least, variances, 0)


def _square(rows: Matrix, pilots: Pilots, order: int) -> Rows:
    """Release all rows, with the weights of least expected error.

    Noise of the norm ``sum_j (a_j / w_j)^p`` to the power 1/p in each row makes a squared error
    proportional to ``(sum_j (a_j / w_j)^p)^(2/p) sum_j w_j^2``, least where ``w_j^(p + 2)`` is
    proportional to ``a_j^p``.
    """
    sizes = pilots.sizes(rows, order)
    weights = sizes ** (order / (order + 2))
    return Rows(rows / weights[:, None], sizes / weights, np.empty(0), None)


def _diagonal(pilots: Pilots, order: int) -> Rows:
    """Take the values themselves."""
    return _square(pilots.units.scale[:, None] * pilots.units.back.T, pilots, order)


def _metric_axes(pilots: Pilots, order: int) -> Rows:
    """Take the axes of the metric."""
    return _square(np.eye(len(pilots.prior.change)), pilots, order)


def _predictive(pilots: Pilots, order: int) -> Rows:
    """Take the axes of the change by one record."""
    return _square(np.linalg.eigh(pilots.prior.change)[1].T, pilots, order)


# In the order of preference where all else is alike.
CANDIDATES = (_contrasts, _principal, _diagonal, _metric_axes, _predictive)
