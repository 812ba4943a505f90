"""A public code for scores that are averaged over blocks of records.

The scores of a model of one block are encoded, clipped to a ball and averaged. Axes, gains and
noise are learned from random rules, whose truth is known, and from pilot fits to single blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import Matrix

MOST_AXES = 60  # number of axes that are tried at most, besides the constant ones
EXPONENTS = (0.0, 0.25, 0.5)  # an axis is divided by its prior variance to one of these powers
INSIDE = 1 - 1e-12  # the radius is shrunk by this factor, so that no rounding exceeds it


class Pilots(NamedTuple):
    """Truths of random rules, shape (n, n_truths), and scores of a single block of each."""

    truths: Matrix
    scores: Matrix


@dataclass(frozen=True, eq=False)
class BlockCode:
    """An encoder of scores at anchors, and a decoder to scores at all public records.

    The sensitivity of the mean of `n_blocks` encoded scores is ``2 * radius / n_blocks`` in L2: a
    record is in one block, whose encoded scores stay within the ball.
    """

    n_blocks: int
    radius: float
    encoder: Matrix
    center: Matrix
    decoder: Matrix
    mean: Matrix
    truth: Matrix
    error: float
    """Expected squared error of the decoded scores, as a share of the variance of the rules."""

    @property
    def n_numbers(self) -> int:
        """Number of numbers that are released."""
        return len(self.encoder)

    def encode(self, scores: Matrix) -> Matrix:
        """Encode the scores of one block, and clip them to the ball."""
        return clip(self.encoder @ (scores - self.center), self.radius)

    def decode(self, released: Matrix) -> Matrix:
        """Return the scores at all public records."""
        return self.truth + self.decoder @ (released - self.mean)


def clip(numbers: Matrix, radius: float) -> Matrix:
    """Shorten vectors along the last axis that are longer than the radius."""
    length = np.linalg.norm(numbers, axis=-1, keepdims=True)
    return numbers * (INSIDE * np.minimum(1.0, radius / np.maximum(length, 1e-300)))


def learn_block_code(
    truths: Matrix,  # of random rules at all public records, shape (n_rules, n_records * n_outputs)
    pilots: dict[int, Pilots],  # by number of blocks
    anchors: NDArray[np.intp],  # places of the truths at which models are read
    n_outputs: int,
    deviation: Callable[[int, float], float],  # of n noisy numbers of an L2 sensitivity
) -> BlockCode:
    """Choose the number of blocks, the axes and their weights by the expected error."""
    center = truths.mean(axis=0)
    axes, variances = _axes(truths - center, n_outputs)
    means = center.reshape(-1, n_outputs).mean(axis=0)
    offset = np.concatenate([center[anchors], means])
    read = np.hstack([np.linalg.pinv(axes[:, anchors].T), np.zeros((len(axes), n_outputs))])
    read[:n_outputs] = 0  # of constant axes the mean response, with which the scores end
    read[:n_outputs, -n_outputs:] = np.eye(n_outputs) * np.sqrt(len(center) / n_outputs)
    best: BlockCode | None = None
    for n_blocks, (actual, scores) in pilots.items():
        exact = (actual - center) @ axes.T
        seen = (scores - offset) @ read.T
        for code, error in _codes(exact, seen, variances, n_outputs, n_blocks, deviation):
            if best is None or error < best.error:
                size, scale, radius, gains, mean = code
                best = BlockCode(
                    n_blocks,
                    radius,
                    scale[:, None] * read[:size],
                    offset,
                    axes[:size].T * (gains / scale),
                    mean,
                    center,
                    error,
                )
    if best is None:
        raise ValueError(
            f"sensitivity='aggregate' releases at least {n_outputs} numbers, and the mechanism "
            "adds noise to fewer. Use GaussianMechanism or LaplaceMechanism."
        )
    return best


def _axes(truths: Matrix, n_outputs: int) -> tuple[Matrix, Matrix]:
    """Return the constant axes and the leading ones of the truths, with the variances of both."""
    n_records = truths.shape[1] // n_outputs
    constant = np.tile(np.eye(n_outputs), n_records) / np.sqrt(n_records)
    left = truths - truths @ constant.T @ constant
    sizes, vectors = np.linalg.eigh(left @ left.T)
    n_axes = min(MOST_AXES, int((sizes > 1e-9 * sizes[-1]).sum()))
    leading = np.sqrt(sizes[::-1][:n_axes])
    axes = np.vstack([constant, (vectors[:, ::-1][:, :n_axes].T @ left) / leading[:, None]])
    return axes, np.mean((truths @ axes.T) ** 2, axis=0)


def _codes(
    exact: Matrix,
    seen: Matrix,
    variances: Matrix,
    n_constant: int,
    n_blocks: int,
    deviation: Callable[[int, float], float],
) -> Iterator[tuple[tuple[int, Matrix, float, Matrix, Matrix], float]]:
    """Yield codes of pilots, by number of axes and exponent, with their expected errors."""
    total = variances.sum()
    for exponent in EXPONENTS:
        scales = np.maximum(variances, 1e-12 * variances.max()) ** -exponent
        for size in range(n_constant, len(variances) + 1):
            scale, prior = scales[:size], variances[:size]
            numbers = scale * seen[:, :size]
            radius = float(np.median(np.linalg.norm(numbers, axis=1)))
            sigma = deviation(size, 2 * radius / n_blocks)
            if not 0 < radius < np.inf or not np.isfinite(sigma):
                continue
            numbers = clip(numbers, radius)
            mean = numbers.mean(axis=0)
            spread = scale**2 * prior  # of the truth, in the units of the numbers
            gain, residual = _gains(scale * exact[:, :size], numbers - mean, n_constant)
            noise = residual / n_blocks + sigma**2
            shrunk = gain**2 * spread / (gain**2 * spread + noise)
            common = (shrunk * gain * prior).sum() / max((shrunk * gain**2 * prior).sum(), 1e-300)
            weights = common * shrunk  # one factor for all axes, but for the constant ones
            own = gain[:n_constant] > 0
            weights[:n_constant] = np.where(
                own, shrunk[:n_constant] / np.where(own, gain[:n_constant], 1), 0
            )
            error = prior * (1 - gain * weights) ** 2 + weights**2 * noise / scale**2
            left = variances[size:].sum()
            yield (size, scale, radius, weights, mean), float((error.sum() + left) / total)


def _gains(exact: Matrix, numbers: Matrix, n_constant: int) -> tuple[Matrix, Matrix]:
    """Return the slope of each number on the truth, smoothed over axes, and its residual."""
    raw = (exact * numbers).mean(axis=0) / np.maximum((exact**2).mean(axis=0), 1e-300)
    gain = raw.copy()
    for j in range(n_constant, len(raw)):
        half = int(1 + (j - n_constant) / 4)
        gain[j] = raw[max(n_constant, j - half) : j + half + 1].mean()
    gain = np.maximum(gain, 0.0)
    return gain, np.mean((numbers - gain * exact) ** 2, axis=0)
