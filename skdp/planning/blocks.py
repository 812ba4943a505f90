"""Fits to blocks of the records, and the target that averages what they say."""

from __future__ import annotations

import copy
import warnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.codes.blocks import BlockCode
from skdp.core.dataset import Dataset, n_records
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.configuration import describe, seed_names
from skdp.estimators.copies import clean_copy
from skdp.estimators.inputs import fit_on, takes
from skdp.estimators.predictions import (
    ClassScores,
    ResponseScores,
    alone,
    seeded,
)

CERTAIN = 0.996  # the largest score of a student's lesson
SHARPER = 2.0  # averages are timid: logits are multiplied


class BlockFits:
    """Fit an estimator to a block, and read it at the anchors.

    The scores depend on the block and on public things only, so that the bound holds.
    """

    def __init__(
        self,
        estimator: Estimator,
        reader: ClassScores | ResponseScores,
        anchors: Container,
        seed: int,
    ):
        self.estimator = alone(estimator)
        self.reader = reader
        self.anchors = anchors
        self.seed = seed % 2**31
        names = seed_names(self.estimator)
        self.estimator.set_params(**dict.fromkeys(names, self.seed))

    def scores(self, block: Dataset) -> Matrix:
        """Return the scores and the mean response, or a public constant where the fit fails."""
        shape = n_records(self.anchors) + 1, self.reader.n_columns
        with warnings.catch_warnings(), seeded(self.seed):
            warnings.simplefilter("ignore")
            try:
                mean = self.reader.scores_of(block.y).mean(axis=0)
                if isinstance(self.reader, ClassScores) and np.all(np.abs(mean) == 1):
                    return np.tile(mean, shape[0])  # most estimators refuse a single class
                # a clone shares its frozen steps, whose transform may draw from a state
                fitted = fit_on(clone(copy.deepcopy(self.estimator)), block)
                found = np.vstack([self.reader.read(fitted, copy.deepcopy(self.anchors)), mean])
                if np.isfinite(found).all():
                    return found.ravel()
            except KeyboardInterrupt:
                raise
            except BaseException:  # what fails counts as a constant, and is not told
                pass
        return np.zeros(shape).ravel()


class Blocks(Target):
    """The target of :class:`skdp.SampleAndAggregate`: mean encoded scores of models of blocks."""

    fits_estimator = True
    n_simulated = 3  # datasets on which a plan simulates a release, of many fits each
    preconditions = "that fits to blocks share no state"
    missing = ""

    def __init__(
        self,
        fits: BlockFits,
        student: Estimator,
        rows: Container,
        code: BlockCode,
        n_samples: int,
        order: NDArray[np.intp],
        n_pilots: int = 0,
    ):
        self.fits = fits
        self.student = alone(student)
        self.n_samples = n_samples
        self.shape = (code.n_numbers,)
        self.rows = rows
        self.code = code
        self.blocks = np.array_split(order, code.n_blocks)
        self.allow_nan = takes(fits.estimator, "allow_nan")
        self.key_parts = (vars(fits), self.student, rows, vars(code), self.blocks)
        self.estimator = fits.estimator
        self.n_fits = code.n_blocks
        self.n_public_fits = n_pilots + self.n_simulated * code.n_blocks
        size = n_samples // code.n_blocks
        self.released = f"mean scores of {code.n_blocks} blocks of about {size} records"
        self.description = f"{self.released} of {describe(fits.estimator)}"

    def bound(self, order: int) -> float:
        """Return how far a record moves the value in the norm of an order, 1 or 2."""
        k, r, radius = self.code.n_blocks, self.code.n_numbers, self.code.radius
        rounding = 4 * k * radius * 2.0**-53  # of a sum of k numbers, in each of two datasets
        return r ** (1 / order - 0.5) * 2 * radius / k + r ** (1 / order) * rounding

    def __call__(self, *parts: Container, seed: int) -> Matrix:
        """Fit to each block, and average the encoded scores; the seed is that of the fits."""
        dataset = Dataset(*parts)
        coded = [self.code.encode(self.fits.scores(dataset.take(b))) for b in self.blocks]
        return np.mean(coded, axis=0)

    def restore(self, value: Matrix) -> Estimator:
        """Teach the student the released scores of all public records."""
        reader = self.fits.reader
        scores = self.code.decode(np.asarray(value)).reshape(n_records(self.rows), -1)
        if isinstance(reader, ClassScores):
            scores = sharpened(np.clip(scores, -CERTAIN, CERTAIN))
        with warnings.catch_warnings(), seeded(0):
            warnings.simplefilter("ignore")  # of a fit to noisy scores
            return clean_copy(reader.teach(self.student, self.rows, scores))


def sharpened(scores: Matrix) -> Matrix:
    """Multiply the logits, and move them so that the mean of each column stays."""
    logits = SHARPER * 2 * np.arctanh(scores)
    low, high = np.full(scores.shape[1], -20.0), np.full(scores.shape[1], 20.0)
    for _ in range(50):
        middle = (low + high) / 2
        below = np.tanh((logits + middle) / 2).mean(axis=0) < scores.mean(axis=0)
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.tanh((logits + low) / 2)
