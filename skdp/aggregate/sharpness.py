"""How much decoded scores are sharpened: by what is best for random rules that look like them.

Decoded scores are timid where a task is easy, since models of small blocks are. Their logits are
multiplied by one public factor, and moved so that the mean scores stay. Where a task is hard the
factor is 1: else a rare class is foretold too often.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skdp.aggregate.code import BlockCode, BlockPilots, gains_of
from skdp.core.types import Matrix
from skdp.estimators.scores import CERTAIN, move_to

FACTORS = np.geomspace(1, 16, 13)
N_LIKE, N_READ = 500, 200  # columns of scores, and records at which they are read
SPARE = 0.01 * np.log((1 + CERTAIN) / (1 - CERTAIN))  # a hundredth of all labels
WIDTHS = 0.15, 0.07  # of the weights of rules about decoded scores


@dataclass(frozen=True, eq=False)
class Sharpness:
    """Looks of the decoded scores of random rules, and the loss of each factor there."""

    looks: Matrix
    losses: Matrix
    spare: float = 0.0  # loss that is given up for a larger factor

    @classmethod
    def of(
        cls,
        code: BlockCode,
        pilots: BlockPilots,
        truths: Matrix,
        sigma: float,
        n_outputs: int,
        learns_labels: bool,
        rng: np.random.Generator,
    ) -> Sharpness:
        """Simulate releases of rules, with noise of deviation `sigma`."""
        truths = _weakened(truths[: N_LIKE // n_outputs], n_outputs, rng)
        decoded = _decoded(code, pilots, truths, sigma, n_outputs, rng)
        shares, scores = (_columns(each, n_outputs) for each in (truths, decoded))
        p, few = (1 + shares[:, :N_READ]) / 2, scores[:, :N_READ].T
        losses = []
        for factor in FACTORS:
            told = np.clip(move_to(few.mean(axis=0), few, factor).T, -CERTAIN, CERTAIN)
            if learns_labels:  # a student without weights: of the likeliest class
                told = CERTAIN * np.sign(told)
            losses.append(-(p * np.log1p(told) + (1 - p) * np.log1p(-told)).mean(axis=1))
        return cls(_looks(scores), np.transpose(losses), SPARE if learns_labels else 0.0)

    def sharpen(self, scores: Matrix) -> Matrix:
        """Return scores of all public records, whose means stay."""
        total = np.zeros(len(FACTORS))
        for look in _looks(scores.T):
            far = (((self.looks - look) / WIDTHS) ** 2).sum(axis=1)
            near = np.exp((far.min() - far) / 2)
            total += near @ self.losses / (near.sum() * scores.shape[1])
        factor = FACTORS[total <= total.min() + self.spare][-1]
        return move_to(scores.mean(axis=0), scores, factor)


def _weakened(truths: Matrix, n_outputs: int, rng: np.random.Generator) -> Matrix:
    """Mix more random labels into each rule, so that weak ones are among them."""
    by_class = truths.reshape(len(truths), -1, n_outputs)
    told, means = np.sqrt(rng.random((len(truths), 1, 1))), by_class.mean(axis=1, keepdims=True)
    return (told * by_class + (1 - told) * means).reshape(truths.shape)


def _columns(scores: Matrix, n_outputs: int) -> Matrix:
    """Return a row for each column of scores of each rule."""
    return np.swapaxes(scores.reshape(len(scores), -1, n_outputs), 1, 2).reshape(
        -1, scores.shape[1] // n_outputs
    )


def _looks(scores: Matrix) -> Matrix:
    """Return how rare a class is, and the deviation of scores beside that of certain ones."""
    means = np.clip(scores.mean(axis=1), -CERTAIN, CERTAIN)
    rare = 2 / np.pi * np.arcsin(np.abs(means))
    return np.column_stack([rare, scores.std(axis=1) / np.sqrt(1 - means**2)])


def _decoded(
    code: BlockCode,
    pilots: BlockPilots,
    truths: Matrix,
    sigma: float,
    n_outputs: int,
    rng: np.random.Generator,
) -> Matrix:
    """Return decoded scores of rules, which follow easy rules less than hard ones, as pilots do."""
    n_told = code.n_numbers - len(code.encoder)
    axes = code.decoder[:, n_told:].T
    axes = axes / np.maximum(np.linalg.norm(axes, axis=1, keepdims=True), 1e-300)

    def terms(of: Matrix) -> Matrix:  # of a line in the ease of a rule, by its number on each axis
        ease = _looks(_columns(of, n_outputs))[:, 1].reshape(len(of), -1).mean(axis=1)
        along = (of - code.truth) @ axes.T
        return np.stack([along, ease[:, None] * along], axis=2)

    known, of_truths = terms(pilots.truths), terms(truths)
    numbers = np.array([code.encode(each) for each in pilots.scores]) - code.mean[n_told:]
    gains, residual = gains_of(known[:, :, 0], numbers)
    units = np.sqrt(np.maximum(residual, 1e-300))
    equations = (known * (gains / units)[:, None]).reshape(-1, 2)
    line = np.linalg.lstsq(equations, (numbers / units).ravel(), rcond=None)[0]
    seen = code.mean[n_told:] + gains * (of_truths @ line)
    seen += np.sqrt(residual / code.n_blocks + sigma**2) * rng.standard_normal(seen.shape)
    means = truths.reshape(len(truths), -1, n_outputs).mean(axis=1)[:, :n_told]
    means = code.weight * means + sigma * rng.standard_normal(means.shape)
    return code.truth + (np.hstack([means, seen]) - code.mean) @ code.decoder.T
