"""Fits to blocks of the records, and the public rules from which their code is learned."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from skdp.aggregate.code import BlockCode, BlockPilots
from skdp.aggregate.sharpness import Sharpness
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.persons import MOST_ROWS, Persons
from skdp.core.room import noted_interrupts, raise_noted
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Matrix
from skdp.estimators.configuration import alone, describe, seed_names, seeded
from skdp.estimators.inputs import fit_on, takes
from skdp.estimators.public_fit import Public, clean_copy
from skdp.estimators.scores import ClassScores, ResponseScores
from skdp.oracles.random_task import RandomTaskOracle
from skdp.results.simulation import LEAST_DATASETS

OF_BLOCK = " records"  # words for the size of a block
MOST_SIMULATED = 20  # blocks of a simulated release
MOST_EXACT = 5000  # records of the exact model beside it


def on_block(
    function: Callable[[Dataset], Matrix], block: Dataset, constant: Matrix, seed: int
) -> Matrix:
    """Call a function of a block; return a public constant where it fails, and tell nothing."""
    with warnings.catch_warnings(), np.errstate(all="ignore"), seeded(seed), noted_interrupts():
        warnings.simplefilter("ignore")  # a warning would tell of a block
        found = constant
        with suppress(BaseException):  # what fails counts as a constant, and is not told
            own = pickle.loads(pickle.dumps(block))  # entries may be objects of another block too
            found = np.asarray(function(own), dtype=np.float64)
        raise_noted()  # an interrupt of the user, and no exception of the function
    return found if found.shape == constant.shape and np.isfinite(found).all() else constant


class BlockFits:
    """Fits to blocks, read at the anchors: scores depend on the block and on public things only."""

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
        """Return the scores, or a public constant where the fit fails."""
        shape = n_records(self.anchors), self.reader.n_columns
        return on_block(self._read, block, np.zeros(shape), self.seed).ravel()

    def _read(self, block: Dataset) -> Matrix:
        mean = self.reader.scores_of(block.y).mean(axis=0)
        if isinstance(self.reader, ClassScores) and np.all(np.abs(mean) == 1):
            return np.tile(mean, (n_records(self.anchors), 1))  # most estimators refuse one class
        # a clone shares its frozen steps, whose transform may draw from a state
        fitted = fit_on(clone(copy.deepcopy(self.estimator)), block)
        return self.reader.read(fitted, copy.deepcopy(self.anchors))

    def mean(self, persons: Persons) -> Matrix:
        """Return the mean scores of the responses, to which each person adds within the range."""
        scores = self.reader.scores_of(persons.rows.y)
        return persons.mean(np.where(np.isfinite(scores), scores, 0.0))


class Blocks(Target):
    """The target of :class:`skdp.SampleAndAggregate`: mean encoded scores of models of blocks."""

    fits_estimator = True
    preconditions = "that fits to blocks share no state"
    missing = ""
    sharpness: Sharpness | None = None

    def __init__(
        self,
        fits: BlockFits,
        student: Estimator,
        rows: Container,
        code: BlockCode,
        n_samples: int,
        rng: np.random.Generator,
        n_pilots: int = 0,
    ):
        self.fits = fits
        self.student = alone(student)
        self.n_samples = n_samples
        self.shape = (code.n_numbers,)
        self.rows = rows
        self.code = code
        self.n_read = code.n_blocks
        self.rng = copy.deepcopy(rng)  # small, unlike the permutation
        self.allow_nan = takes(fits.estimator, "allow_nan")
        drawn = n_samples, str(rng.bit_generator.state)
        self.key_parts = (vars(fits), self.student, rows, vars(code), *drawn)
        self.estimator = fits.estimator
        self.n_fits = code.n_blocks
        self.n_public_fits = n_pilots + LEAST_DATASETS * (1 + min(code.n_blocks, MOST_SIMULATED))
        size = n_samples // code.n_blocks
        self.released = f"mean scores of {code.n_blocks} blocks of about {size}{OF_BLOCK}"
        self.description = f"{self.released} of {describe(fits.estimator)}"

    @property
    def light(self) -> Blocks:
        """The target of some of the blocks, whose mean is a little less exact, for simulations."""
        some = copy.copy(self)
        some.n_read = min(MOST_SIMULATED, self.n_read)
        some.key_parts = (*self.key_parts, MOST_SIMULATED)
        return some

    def exact(self, records: Dataset) -> Estimator:
        """Fit to records of a simulation that are not cut: blocks lose much without noise, too."""
        some = records.take(np.arange(min(MOST_EXACT, records.n_records)))
        return fit_on(clone(copy.deepcopy(self.estimator)), some)

    @property
    def blocks(self) -> list[NDArray[np.intp]]:
        """The places of the records of each block."""
        order = copy.deepcopy(self.rng).permutation(self.n_samples)
        return np.array_split(order, self.code.n_blocks)[: self.n_read]

    def bound(self, order: int) -> float:
        """Return how far a record moves the value in the norm of an order, 1 or 2."""
        code, n, k = self.code, self.n_samples, self.code.n_blocks
        moves, size = code.weight * self.fits.reader.moves, len(code.encoder)
        of_mean, of_scores = moves / n, size ** (1 / order - 0.5) * 2 * code.radius / k
        # sums of k and of n numbers round, in each of two datasets
        n_terms = n + MOST_ROWS * self.sums_persons
        rounding = 4 * 2.0**-53 * (k * code.radius + n_terms * moves.sum())
        moved = np.linalg.norm([of_scores, *of_mean], order)
        return float(moved + code.n_numbers ** (1 / order) * rounding)

    def __call__(self, *parts: Container, seed: int) -> Matrix:
        """Fit to each block, and average the encoded scores; the seed is that of the fits."""
        each_alone = np.ones(Dataset(*parts).n_records, dtype=np.intp)
        return self.over_persons(*parts, counts=each_alone, seed=seed)

    def over_persons(self, *parts: Container, counts: NDArray[np.intp], seed: int) -> Matrix:
        """Fit to blocks of persons, whose places in a secret order are permuted."""
        persons, code = Persons(Dataset(*parts), counts), self.code
        coded = [code.encode(self.fits.scores(persons.take(b).rows)) for b in self.blocks]
        mean = code.weight * self.fits.mean(persons) if code.weight else np.empty(0)
        return np.concatenate([mean, np.mean(coded, axis=0)])

    def weigh_persons(self, records_per_person: float) -> None:
        """Cut blocks of persons; in the mean response all persons count alike."""
        self.sums_persons = True
        for name in ("released", "description"):
            setattr(self, name, getattr(self, name).replace(OF_BLOCK, " persons", 1))
        self.key_parts = (*self.key_parts, "persons")

    def restore(self, value: Matrix) -> Estimator:
        """Teach the student the released scores of all public records."""
        reader = self.fits.reader
        scores = self.code.decode(np.asarray(value)).reshape(n_records(self.rows), -1)
        if self.sharpness is not None:
            scores = self.sharpness.sharpen(scores)
        with warnings.catch_warnings(), seeded(0):
            warnings.simplefilter("ignore")  # of a fit to noisy scores
            return clean_copy(reader.teach(self.student, self.rows, scores, self.n_samples))


N_RULES, N_DATASETS = 1000, 20
N_TRIED, N_PILOTS = 20, 80  # by number of blocks, and for the best one
MIXED = 0.1  # share of labels of a rule that are drawn at random


class Rules:
    """Random rules on public records: their truth, and blocks of records that follow them."""

    def __init__(
        self,
        X: Container,
        reader: ClassScores | ResponseScores,
        task: RandomTaskOracle,
        shares: Matrix,
    ):
        self.X, self.reader, self.task, self.shares = X, reader, task, shares

    @classmethod
    def of(cls, reader: ClassScores | ResponseScores, X: Container, public: Public) -> Rules:
        """Take the shares of the classes from datasets of the oracle."""
        if isinstance(reader, ResponseScores):
            return cls(X, reader, RandomTaskOracle(X, y_scale=1.0), np.empty(0))
        labels, size = reader.classes, max(200, 2 * len(reader.classes))
        drawn = (public.source.public_dataset(size, public.schema, a).y for a in range(N_DATASETS))
        counts = np.array([(y[:, None] == labels).mean(axis=0) for y in map(np.asarray, drawn)])
        shares = np.maximum(counts, 1 / size)
        shares /= shares.sum(axis=1, keepdims=True)
        return cls(X, reader, RandomTaskOracle(X, classes=labels), shares)

    def truths(self, n_rules: int, rng: np.random.Generator) -> Matrix:
        """Return the scores of rules at all public records, one row each."""
        n_rows = n_records(self.X)
        if isinstance(self.reader, ResponseScores):
            width = self.reader.n_columns
            scores = self.task.rule_scores(n_rules * width, rng).reshape(n_rules, width, n_rows)
            told = rng.uniform(0.5, 1, (n_rules, width, 1))
            offset = 0.3 * rng.standard_normal((n_rules, width, 1))
            return np.swapaxes(told * scores + offset, 1, 2).reshape(n_rules, -1)
        shares = self.probabilities(n_rules, rng)
        return (2 * shares - 1)[:, :, -self.reader.n_columns :].reshape(n_rules, -1)

    def probabilities(self, n_rules: int, rng: np.random.Generator) -> Matrix:
        """Return the probability of each class, shape (n_rules, n_rows, n_classes)."""
        n_rows, n_classes = n_records(self.X), self.shares.shape[1]
        scores = self.task.rule_scores(n_rules * n_classes, rng)
        scores = np.swapaxes(scores.reshape(n_rules, n_classes, n_rows), 1, 2)
        scores = scores / rng.uniform(0.05, 1, (n_rules, 1, 1))  # certain rules, and vague ones
        shares = self.shares[rng.integers(len(self.shares), size=n_rules)][:, :, None]
        odds = np.exp(scores - scores.max(axis=2, keepdims=True))
        by_class, factors = np.swapaxes(odds, 1, 2), shares
        for _ in range(9):  # until each class has its share
            factors = n_rows * shares / (by_class @ (1 / (odds @ factors)))
        found = odds * np.swapaxes(factors, 1, 2) / (odds @ factors)
        return (1 - MIXED) * found + MIXED * np.swapaxes(shares, 1, 2)

    def pilots(
        self, fits: BlockFits, size: int, n_pilots: int, rng: np.random.Generator
    ) -> BlockPilots:
        """Fit to a single block of each of some rules."""
        truths = self.truths(n_pilots, rng)
        scores = [fits.scores(self._block(truth, size, rng)) for truth in truths]
        return BlockPilots(truths, np.array(scores))

    def _block(self, truth: Matrix, size: int, rng: np.random.Generator) -> Dataset:
        """Draw records, and responses that follow a rule."""
        rows = rng.integers(n_records(self.X), size=size)
        scores, reader = truth.reshape(n_records(self.X), -1)[rows], self.reader
        if isinstance(reader, ResponseScores):
            y = reader.center + reader.scale * (scores + 0.5 * rng.standard_normal(scores.shape))
            y = np.clip(y, reader.low, reader.high).reshape(size, *reader.shape)
            return Dataset(take_records(self.X, rows), y)
        shares = (1 + scores) / 2
        shares = np.hstack([1 - shares, shares]) if shares.shape[1] == 1 else shares
        places = (shares.cumsum(axis=1) < rng.random((size, 1))).sum(axis=1)
        labels = reader.classes[np.minimum(places, len(reader.classes) - 1)]
        return Dataset(take_records(self.X, rows), labels)
