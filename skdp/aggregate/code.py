"""A public code for scores that are averaged over blocks of records.

The scores of a model of one block are encoded, clipped to a ball and averaged. Beside them stands
the mean response of all records. Axes, gains and noise are learned from random rules, whose truth
is known, and from pilot fits to single blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.core.types import Matrix

MOST_AXES = 60  # number of axes that are tried at most, besides the constant ones
EXPONENTS = (0.0, 0.25, 0.5)  # an axis is divided by its prior variance to one of these powers
INSIDE = 1 - 1e-12  # the radius is shrunk by this factor, so that no rounding exceeds it
MOVE_OF_MEAN = 0.4  # by a record, as a share of its move of the scores


class BlockPilots(NamedTuple):
    """Truths of random rules, shape (n, n_truths), and scores of a single block of each."""

    truths: Matrix
    scores: Matrix


@dataclass(frozen=True, eq=False)
class BlockCode:
    """An encoder of scores at anchors, and a decoder to scores at all public records.

    The numbers are the mean response times `weight`, if that is not 0, and the mean of `n_blocks`
    encoded scores. A record is in one block, whose encoded scores stay within the ball, so their
    mean moves by ``2 * radius / n_blocks`` at most in L2.
    """

    n_blocks: int
    radius: float
    weight: float
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
        return len(self.mean)

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
    along: tuple[Matrix, Matrix],  # the axes of the truths, and the variances along them
    pilots: dict[int, BlockPilots],  # by number of blocks
    anchors: NDArray[np.intp],  # places of the truths at which models are read
    n_outputs: int,
    move: float,  # how far a record moves the mean response in L2
    deviation: Callable[[int, float], float],  # of n noisy numbers of an L2 sensitivity
) -> BlockCode:
    """Choose the number of blocks, the axes and their weights by the expected error."""
    center = truths.mean(axis=0)
    axes, variances = along
    means = center.reshape(-1, n_outputs).mean(axis=0)
    n_records = len(center) // n_outputs
    constant, leading = np.tile(np.eye(n_outputs), n_records), axes[n_outputs:]
    read = np.linalg.pinv(axes[:, anchors].T)[n_outputs:]
    best: BlockCode | None = None
    for n_blocks, (actual, scores) in pilots.items():
        exact = (actual - center) @ leading.T
        seen = (scores - center[anchors]) @ read.T
        prior = _Prior(variances[:n_outputs], variances[n_outputs:], n_records, move)
        for scale, radius, gains, mean, weight, kept, error in _codes(
            exact, seen, prior, n_blocks, deviation
        ):
            if best is None or error < best.error:
                size, told = len(scale), n_outputs if weight else 0
                columns = constant[:told].T * kept[:told], leading[:size].T * (gains / scale)
                best = BlockCode(
                    n_blocks,
                    radius,
                    weight,
                    scale[:, None] * read[:size],
                    center[anchors],
                    np.hstack(columns),
                    np.concatenate([weight * means[:told], mean]),
                    center,
                    error,
                )
    if best is None:
        raise ValueError(
            "sensitivity='aggregate' needs public records that differ, and a mechanism that adds "
            "noise to two numbers or more. Use GaussianMechanism or LaplaceMechanism."
        )
    return best


def axes_of(truths: Matrix, n_outputs: int) -> tuple[Matrix, Matrix]:
    """Return the constant axes and the leading ones of the truths, with the variances of both."""
    truths = truths - truths.mean(axis=0)
    n_records = truths.shape[1] // n_outputs
    constant = np.tile(np.eye(n_outputs), n_records) / np.sqrt(n_records)
    left = truths - truths @ constant.T @ constant
    sizes, vectors = np.linalg.eigh(left @ left.T)
    n_axes = min(MOST_AXES, int((sizes > 1e-9 * sizes[-1]).sum()))
    leading = np.sqrt(sizes[::-1][:n_axes])
    axes = np.vstack([constant, (vectors[:, ::-1][:, :n_axes].T @ left) / leading[:, None]])
    return axes, np.mean((truths @ axes.T) ** 2, axis=0)


class _Prior(NamedTuple):
    """Variances of the coordinates of random rules, and how far a record moves the mean."""

    constant: Matrix
    leading: Matrix
    n_records: int
    move: float


class _Choice(NamedTuple):
    """Axes and weights of a code, and its expected error."""

    scale: Matrix
    radius: float
    gains: Matrix
    mean: Matrix
    weight: float
    kept: Matrix
    error: float


def _codes(
    exact: Matrix,
    seen: Matrix,
    prior: _Prior,
    n_blocks: int,
    deviation: Callable[[int, float], float],
) -> Iterator[_Choice]:
    """Yield codes of pilots, by number of axes and exponent, with their expected errors."""
    total = prior.constant.sum() + prior.leading.sum()
    for exponent, told in product(EXPONENTS, (prior.move > 0, False)):
        scales = np.maximum(prior.leading, 1e-12 * prior.leading.max(initial=0)) ** -exponent
        for size in range(1, len(scales) + 1):
            scale, variances = scales[:size], prior.leading[:size]
            numbers = scale * seen[:, :size]
            radius = float(np.median(np.linalg.norm(numbers, axis=1)))
            step = 2 * radius / n_blocks
            move = step * float(np.hypot(1, told * MOVE_OF_MEAN))
            sigma = deviation(size + told * len(prior.constant), move)
            if not 0 < radius < np.inf or not np.isfinite(sigma):
                continue
            numbers = clip(numbers, radius)
            mean = numbers.mean(axis=0)
            spread = scale**2 * variances  # of the truth, in the units of the numbers
            gain, residual = gains_of(scale * exact[:, :size], numbers - mean)
            noise = residual / n_blocks + sigma**2
            shrunk = gain**2 * spread / (gain**2 * spread + noise)
            common = (shrunk * gain * variances).sum() / max(
                (shrunk * gain**2 * variances).sum(), 1e-300
            )
            gains = common * shrunk  # one factor for all axes
            error = variances * (1 - gain * gains) ** 2 + gains**2 * noise / scale**2
            weight = MOVE_OF_MEAN * step / prior.move if told else 0.0
            signal = weight**2 * prior.constant / prior.n_records
            kept = signal / np.maximum(signal + sigma**2, 1e-300)
            left = prior.constant @ (1 - kept) + prior.leading[size:].sum()
            share = float((error.sum() + left) / total)
            yield _Choice(scale, radius, gains, mean, weight, kept / (weight or 1), share)


def gains_of(exact: Matrix, numbers: Matrix) -> tuple[Matrix, Matrix]:
    """Return the slope of each number on the truth, smoothed over axes, and its residual."""
    raw = (exact * numbers).mean(axis=0) / np.maximum((exact**2).mean(axis=0), 1e-300)
    halves = [int(1 + j / 4) for j in range(len(raw))]
    smooth = [raw[max(0, j - half) : j + half + 1].mean() for j, half in enumerate(halves)]
    gain = np.maximum(smooth, 0.0)
    return gain, np.mean((numbers - gain * exact) ** 2, axis=0)
