"""Sample and aggregate: a plain promise for any estimator, from fits to blocks of the records."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from skdp.codes.blocks import BlockCode, Pilots, learn_block_code
from skdp.core.checks import check_count, shown
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.schema import Schema
from skdp.core.streams import AGGREGATE, public_seed, streams
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Matrix, Seed
from skdp.estimators.configuration import describe, seed_names
from skdp.estimators.copies import clean_copy
from skdp.estimators.inputs import fit_on, takes
from skdp.estimators.predictions import (
    ClassScores,
    PredictionTarget,
    ResponseScores,
    alone,
    check_predictions,
    reader_of,
    seeded,
)
from skdp.sensitivity.random_task import RandomTaskOracle

BLOCK_SIZES = (15, 30, 60, 120, 240)
LEAST_BLOCKS = 20
N_ROWS, N_ANCHORS = 2000, 500
N_RULES, N_PILOTS, N_DRAWS = 1000, 80, 20
MIXED = 0.1  # share of labels of a rule that are drawn at random
CERTAIN = 0.996  # the largest score of a student's lesson
SHARPER = 2.0  # averages are timid: logits are multiplied


class SampleAndAggregate(BaseEstimator):
    """Promise plain differential privacy for any estimator, by fits to blocks of the records.

    The records are cut into blocks by a public permutation. The estimator is fitted to each block,
    and read at public records. These scores are encoded, clipped to a ball of radius R and averaged
    over the k blocks. Replacing a record changes one block, so the average moves by at most
    ``2 R / k``, whatever the estimator does [1]_. A *student* learns the released scores on the
    public records. It is a clone of the estimator.

    It needs many records: about 2,000 over epsilon for two classes, and far more for ten.

    Parameters
    ----------
    n_blocks : int or "auto", default="auto"
        Number of blocks. "auto" takes the number with the least expected error on public records.
    student : estimator object or None, default=None
        The estimator that is taught and released, such as ``LogisticRegression()``, which is often
        better than a tree. None takes a clone of the wrapped one.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Seed of the permutation, the public records and the fits. It is public.

    See Also
    --------
    PrivateEstimator : Takes it as `sensitivity`; "aggregate" is short for it.

    Notes
    -----
    *Proof of the bound.* The blocks are cut by positions, so two neighboring datasets differ in one
    block. The encoded scores of a block are a function of this block and of public things: the
    estimator is cloned, and its seeds and the global generators of Python and numpy are set before
    each fit. They lie in the ball. So k - 1 terms of the sum are equal, and one moves between two
    points of the ball.

    A block on which the fit fails or gives numbers that are not finite counts as a public constant,
    and a block of one class as this class. No error, message or number tells which. The time and
    the memory of fits may depend on the records.

    An estimator whose fits share a state, such as a counter of its class, breaks the promise.

    The code is learned from random rules on the public records, whose truth is known, and from fits
    to single blocks of their data.

    References
    ----------
    .. [1] Nissim, Raskhodnikova and Smith, "Smooth Sensitivity and Sampling in Private Data
       Analysis", STOC 2007, section 4.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from skdp import LaplaceMechanism, PrivateEstimator, RandomTaskOracle, SampleAndAggregate
    >>> X, y = make_classification(n_samples=3000, n_features=4, random_state=0)
    >>> model = PrivateEstimator(
    ...     DecisionTreeClassifier(max_depth=3),
    ...     mechanism=LaplaceMechanism(epsilon=1.0),
    ...     sensitivity=SampleAndAggregate(n_blocks=100, random_state=0),
    ...     prior=RandomTaskOracle(X[:500], classes=[0, 1]),
    ... )
    >>> model.fit(X[500:], y[500:]).score(X[500:], y[500:]) > 0.7
    True
    >>> model.guarantee_.epsilon, model.guarantee_.gamma
    (1.0, 0.0)
    """

    def __init__(
        self, n_blocks: int | str = "auto", student: Estimator = None, random_state: Seed = None
    ):
        self.n_blocks = n_blocks
        self.student = student
        self.random_state = random_state

    def check(self, n_samples: int) -> None:
        """Refuse a number of blocks that the records do not have.

        Parameters
        ----------
        n_samples : int
            Number of private records.

        Raises
        ------
        ValueError
            If there are fewer than 100 records, or more blocks than records.
        """
        if n_samples < 5 * LEAST_BLOCKS:
            raise ValueError(
                f"sensitivity='aggregate' needs at least {5 * LEAST_BLOCKS} records, to cut them "
                f"into blocks. Got {n_samples}. Sample the sensitivity, with an oracle."
            )
        if self.n_blocks == "auto":
            return
        if not isinstance(self.n_blocks, Integral):
            raise ValueError(
                "The 'n_blocks' parameter of SampleAndAggregate must be 'auto' or an integer. "
                f"Got {shown(self.n_blocks)}."
            )
        check_count("n_blocks", self.n_blocks, "SampleAndAggregate", at_least=2)
        if self.n_blocks > n_samples:
            raise ValueError(
                "The 'n_blocks' parameter of SampleAndAggregate must be at most the number of "
                f"records, {n_samples}. Got {self.n_blocks}."
            )

    def bind(
        self,
        estimator: Estimator,
        public_fit: Estimator,
        source: Any,
        schema: Schema,
        n_samples: int,
        deviation: Callable[[int, float], float],
    ) -> Blocks:
        """Learn the code, and make the target of one estimator.

        Parameters
        ----------
        estimator : estimator object
            The estimator as configured.
        public_fit : estimator object
            The same, fitted on public records.
        source : sensitivity
            Its `public_dataset` draws public records.
        schema : Schema
            The form of the data.
        n_samples : int
            Number of private records.
        deviation : callable
            ``deviation(n, sensitivity)`` is the standard deviation of the noise in one of n numbers
            of a sensitivity in L2.

        Returns
        -------
        Blocks
            The target.
        """
        self.check(n_samples)
        check_predictions(PredictionTarget(student=self.student), estimator)
        seed = public_seed(self.random_state, "random_state", "SampleAndAggregate")
        rng, _ = streams(seed, AGGREGATE)
        public = source.public_dataset(N_ROWS, schema, attempt=N_DRAWS)
        anchors = np.arange(n_records(public.X))[:N_ANCHORS]
        reader = reader_of(public_fit, public.y, take_records(public.X, anchors))
        if not isinstance(reader, ClassScores | ResponseScores):
            raise ValueError(
                f"sensitivity='aggregate' releases classifiers and regressors. "
                f"Got {type(estimator).__name__}."
            )
        student = estimator if self.student is None else self.student
        fits = BlockFits(estimator, reader, take_records(public.X, anchors), seed)
        rules = _Rules.of(reader, public, source, schema)
        sizes = self._numbers(n_samples, max(2, reader.n_columns))
        pilots = {k: rules.pilots(fits, n_samples // k, rng) for k in sizes}
        width = reader.n_columns
        places = (anchors[:, None] * width + np.arange(width)).ravel()
        code = learn_block_code(
            rules.truths(max(200, N_RULES // width), rng), pilots, places, width, deviation
        )
        order = rng.permutation(n_samples)
        target = Blocks(fits, student, public.X, code, n_samples, order, N_PILOTS * len(sizes))
        target.restore(code.mean)  # fails before anything is paid for
        return target

    def _numbers(self, n_samples: int, n_classes: int) -> list[int]:
        """Return the numbers of blocks to try."""
        if isinstance(self.n_blocks, Integral):
            return [int(self.n_blocks)]
        numbers = [
            n_samples // size
            for size in BLOCK_SIZES
            if size >= 5 * n_classes and n_samples >= LEAST_BLOCKS * size
        ]
        return numbers or [2 * LEAST_BLOCKS, LEAST_BLOCKS]


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


class _Rules:
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
    def of(
        cls, reader: ClassScores | ResponseScores, public: Dataset, source: Any, schema: Schema
    ) -> _Rules:
        """Take the shares of the classes from datasets of the oracle."""
        if isinstance(reader, ResponseScores):
            return cls(public.X, reader, RandomTaskOracle(public.X, y_scale=1.0), np.empty(0))
        labels, size = reader.classes, max(200, 2 * len(reader.classes))
        drawn = (source.public_dataset(size, schema, attempt=a).y for a in range(N_DRAWS))
        counts = np.array([(y[:, None] == labels).mean(axis=0) for y in map(np.asarray, drawn)])
        shares = np.maximum(counts, 1 / size)
        shares /= shares.sum(axis=1, keepdims=True)
        return cls(public.X, reader, RandomTaskOracle(public.X, classes=labels), shares)

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
        shares = self.shares[rng.integers(len(self.shares), size=n_rules)][:, None]
        offset = np.log(shares)
        for _ in range(10):  # until each class has its share
            odds = np.exp(scores + offset - (scores + offset).max(axis=2, keepdims=True))
            found = odds / odds.sum(axis=2, keepdims=True)
            offset = offset + np.log(shares / found.mean(axis=1, keepdims=True))
        return (1 - MIXED) * found + MIXED * shares

    def pilots(self, fits: BlockFits, size: int, rng: np.random.Generator) -> Pilots:
        """Fit to a single block of each of some rules."""
        truths = self.truths(N_PILOTS, rng)
        scores = [fits.scores(self._block(truth, size, rng)) for truth in truths]
        return Pilots(truths, np.array(scores))

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
