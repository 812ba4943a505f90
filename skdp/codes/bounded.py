"""Learn a public code for a sensitivity known on paper: one that makes no difference larger.

A bound Delta on the norm of f(D) - f(D') holds for T f as well if T has an operator norm of at most
1: for the L2 norm its largest singular value, for the L1 norm the largest sum of absolute values of
a column. What the prior says is used to choose among these T, and the promise does not depend on
it. In units of Delta let S be the prior covariance of the value, M the metric of the output, and s
the standard deviation of the noise in each of the k rows. The expected error is

    tr(M S) - J(T),    J(T) = tr(M S T' (T S T' + s^2 I)^-1 T S).

*L2.* More signal in the same noise is never worse, so all singular values are 1, and T T' = I. Then
T S T' + s^2 I = T (S + s^2 I) T', and J depends on the span of the rows only, as a ratio of traces:
it is largest for the first k eigenvectors of S M S relative to S + s^2 I, and then the sum of their
eigenvalues. If s does not depend on k, as for Gaussian noise, all of them are taken, and T = I. L2
Laplace noise grows with sqrt(k + 1), and so k is chosen.

*L1.* Noise has one size for any k, and a row that sums many values brings their sum for the price
of one. J has no such maximum here, so it is climbed from several T: the identity, and the rows of
the L2 problem with all columns stretched to their bound.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from skdp.codes.encoder import LEAST_PILOTS, NUMBERS
from skdp.codes.pilots import (
    MAX_DENSE,
    MAX_RANK,
    center_of,
    least_changes,
    matrix_of,
    with_least_changes,
)
from skdp.codes.prior import OutputUnits, Prior
from skdp.core.code import PublicCode
from skdp.core.metric import OutputMetric
from skdp.core.simplex import project_to_simplex
from skdp.core.types import Matrix

_INSIDE = 1 - 2.0**-30  # so far below its bound the rounding of a norm does not matter
# Squares of smaller and larger sensitivities, or of so much noise, leave the range of doubles.
_SMALLEST, _LARGEST = 1e-120, 1e120
_MOST_NOISE = 1e20

_FEW, _MOST_CLIMBED = 200, 64  # beyond so many values fewer codes are tried, of so many rows
_N_STEPS = 100
_LEAST_GAIN = 1e-4  # of J, in a step


def with_bounded_code(
    mechanism: Any,
    sensitivity: float,
    values: Matrix,
    differences: Matrix,
    metric: OutputMetric | None,
    *,
    n_samples: int,
) -> Any:
    """Return a mechanism with a code for its noise, or without one where none can be learned."""
    noise, code = mechanism.unit_deviation(1), None
    in_range = _SMALLEST < sensitivity < _LARGEST and 0 < noise < _MOST_NOISE
    if in_range and len(values) >= LEAST_PILOTS and differences.any():
        with suppress(ValueError), np.errstate(all="ignore"):  # beyond what doubles can square
            code = _learn(mechanism, sensitivity, values, differences, metric, n_samples)
    return mechanism.with_code(code)


def _learn(
    mechanism: Any, size: float, values: Matrix, differences: Matrix, metric: Any, n_samples: int
) -> PublicCode:
    (m, d), center, changes = values.shape, center_of(values), differences / size
    changes = with_least_changes(changes, least_changes(changes, metric))
    reach = mechanism.shift * n_samples
    pilots = _Pilots((values - center) / size, changes, *matrix_of(metric, d), reach)
    learn = _learn_all if d <= MAX_DENSE else _learn_axes
    encoder, with_code, variances, removable = learn(mechanism, pilots)
    return PublicCode(
        n_pilot_pairs=m,
        shift=float(mechanism.shift),
        encoder=encoder,
        mean=center,
        covariance=with_code * size**2,
        deviations=size * np.sqrt(variances),
        removable=removable * size**2,
    )


class _Pilots(NamedTuple):
    """Values around their mean and changes, in units of the sensitivity, and the metric."""

    values: Matrix
    changes: Matrix
    metric: Matrix | None
    local: bool
    reach: float


def _learn_all(mechanism: Any, pilots: _Pilots) -> tuple[Matrix, ...]:
    """Return an encoder, and the parts of the prior of its code, in units of the sensitivity."""
    problem = _Problem.of(pilots)
    encoder = _best_encoder(mechanism, problem)
    with_code = problem.covariance @ encoder.T
    output = problem.to.T @ with_code
    spread = np.sum(problem.to * (problem.covariance @ problem.to))
    variances = np.maximum(np.diag(problem.covariance), 0)
    return encoder, with_code, variances, output.T @ output / spread


def _learn_axes(mechanism: Any, pilots: _Pilots) -> tuple[Matrix, ...]:
    """Learn a code of very many values in the leading axes of the pilots."""
    values, changes, metric, _, reach = pilots
    m, d = values.shape
    weights = np.ones(d) if metric is None else metric if metric.ndim == 1 else np.diag(metric)
    variances = (1 + 1 / m) / (m - 1) * np.sum(values**2, axis=0)
    variances += reach**2 / 2 * np.mean(changes**2, axis=0)
    axes = linalg.svd(np.concatenate([values, changes]), full_matrices=False)[2][:MAX_RANK]
    along = {"values": values @ axes.T, "changes": changes @ axes.T}
    problem = _Problem.of(pilots._replace(metric=(axes * weights) @ axes.T, **along))
    encoder = _best_encoder(mechanism, problem)
    encoder *= _INSIDE / np.linalg.norm(encoder @ axes, ord=mechanism.order)
    with_code = axes.T @ (problem.covariance @ encoder.T)
    removable = with_code.T @ (weights[:, None] * with_code) / (weights @ variances)
    return encoder @ axes, with_code, variances, removable


class _Problem(NamedTuple):
    """The parts of J: S, its axes and variances, and a square root of M."""

    covariance: Matrix
    axes: Matrix
    variances: Matrix
    to: Matrix

    @classmethod
    def of(cls, pilots: _Pilots) -> _Problem:
        values, changes, metric, local, reach = pilots
        units = OutputUnits.of(changes, metric, local)
        prior = Prior.of(values @ units.to, changes @ units.to, reach)
        covariance = units.back.T @ prior.covariance @ units.back
        variances, axes = np.linalg.eigh(covariance)
        return cls(covariance, axes, np.maximum(variances, 0), units.to)

    def leading(self, deviation: float, most: int) -> tuple[Matrix, Matrix]:
        """Return the first eigenvectors of S M S, which make S + s^2 I the identity, and values."""
        total = np.sqrt(self.variances + deviation**2)
        half = (self.variances / total)[:, None] * (self.axes.T @ self.to)
        d = len(half)
        values, vectors = linalg.eigh(half @ half.T, subset_by_index=[d - min(most, d), d - 1])
        return (self.axes @ (vectors / total[:, None])).T[::-1], values[::-1]

    def gain(self, encoder: Matrix, deviation: float) -> tuple[float, Matrix]:
        """J of T, and half of its gradient; no gain at all where rounding makes it singular."""
        signal = encoder @ self.covariance
        total = signal @ encoder.T + deviation**2 * np.eye(len(encoder))
        output = signal @ self.to
        try:
            half = np.linalg.solve(total, output)
        except np.linalg.LinAlgError:
            return -math.inf, np.zeros_like(encoder)
        gradient = half @ (self.to.T @ self.covariance) - (half @ half.T) @ signal
        return float(np.sum(output * half)), gradient


def _best_encoder(mechanism: Any, problem: _Problem) -> Matrix:
    """Return a T of operator norm at most 1 with a large J."""
    if mechanism.order == 1:
        return _climbed(problem, mechanism.unit_deviation(1))
    d = len(problem.axes)
    if mechanism.most_values is None:
        return np.eye(d)
    found = []
    most = min(d, mechanism.most_values)
    for k in range(1, most + 1) if d <= _FEW else NUMBERS:
        rows, gains = problem.leading(mechanism.unit_deviation(k), k)
        found.append((float(gains.sum()), k, rows))
    _, k, rows = max(found, key=lambda each: each[0])
    if k == d:
        return np.eye(d)
    encoder = linalg.qr(rows.T, mode="economic")[0].T
    return encoder * (_INSIDE / np.linalg.norm(encoder, ord=2))


def _climbed(problem: _Problem, deviation: float) -> Matrix:
    """Climb J from several T whose columns have an L1 norm of at most 1."""
    d = len(problem.axes)
    identity = np.eye(d)
    few = d <= _FEW
    rows, _ = problem.leading(deviation, d if few else _MOST_CLIMBED)
    numbers = sorted({min(2**i, len(rows)) for i in range(12)})
    sizes = [np.abs(rows[:k]).sum(axis=0) for k in numbers]
    starts = [rows[:k] / np.where(s > 0, s, 1) for k, s in zip(numbers, sizes, strict=True)]
    starts.sort(key=lambda start: -problem.gain(start, deviation)[0])
    found = [(problem.gain(identity, deviation)[0], identity)]
    for start in [*starts[:2], *([identity] if few else [])]:
        found.append(_climb(problem, deviation, start))
    _, encoder = max(found, key=lambda each: each[0])
    encoder = encoder[np.abs(encoder).max(axis=1) > 0]
    if np.array_equal(encoder, identity):
        return encoder
    return encoder * (_INSIDE / np.linalg.norm(encoder, ord=1))


def _climb(problem: _Problem, deviation: float, encoder: Matrix) -> tuple[float, Matrix]:
    """Take steps along the gradient, each column back into its ball, while they gain."""
    gain, gradient = problem.gain(encoder, deviation)
    step = 1 / max(np.abs(gradient).sum(axis=0).max(), np.finfo(float).tiny)
    for _ in range(_N_STEPS):
        new = _in_balls(encoder + step * gradient)
        new_gain, new_gradient = problem.gain(new, deviation)
        if not new_gain > gain:
            step /= 4
            if step * np.abs(gradient).max() < 1e-4:
                break
            continue
        small = new_gain < (1 + _LEAST_GAIN) * gain
        encoder, gain, gradient, step = new, new_gain, new_gradient, 2 * step
        if small:
            break
    return gain, encoder


def _in_balls(matrix: Matrix) -> Matrix:
    """Move each column to the nearest one whose absolute values add up to at most 1."""
    sizes = np.abs(matrix)
    on_border = np.sign(matrix) * project_to_simplex(sizes.T).T
    return np.where(sizes.sum(axis=0) > 1, on_border, matrix)
