"""Sample and aggregate: a plain promise for any estimator, from fits to blocks of the records."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from skdp.aggregate.blocks import (
    N_DATASETS,
    N_PILOTS,
    N_RULES,
    N_TRIED,
    BlockFits,
    Blocks,
    Rules,
    on_block,
)
from skdp.aggregate.code import BlockPilots, axes_of, learn_block_code
from skdp.aggregate.sharpness import Sharpness
from skdp.bounds import mean_bound
from skdp.core.checks import check_count
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.persons import Persons
from skdp.core.room import spare
from skdp.core.streams import AGGREGATE, public_seed, streams
from skdp.core.target import Target
from skdp.core.types import Container, Estimator, Matrix, Seed
from skdp.estimators.inputs import takes_weights
from skdp.estimators.predictions import (
    DRAWN,
    PredictionTarget,
    check_predictions,
    different_records,
)
from skdp.estimators.public_fit import Public
from skdp.estimators.scores import ClassScores, ResponseScores, reader_of
from skdp.oracles.graded_task import graded_tasks
from skdp.results.simulation import LEAST_DATASETS

BLOCK_SIZES = (7, 15, 30, 60, 120, 240)
LEAST_RECORDS, LEAST_BLOCKS, MOST_BLOCKS = 100, 4, 2000
N_ROWS, N_ANCHORS = 2000, 500


class SampleAndAggregate(BaseEstimator):
    """Promise plain differential privacy for any estimator, by fits to blocks of the records.

    The records are cut into blocks by a public permutation; with `groups` the persons are, which
    stand in a secret order that each release draws anew. The estimator is fitted to each block,
    and read at public records. These scores are encoded, clipped to a ball of radius R and averaged
    over the k blocks. Replacing a record changes one block, so the average moves by at most
    ``2 R / k``, whatever the estimator does [1]_. The mean response of all records, such as the
    share of a class, is released with them. A *student* learns the released scores on the public
    records. It is a clone of the estimator.

    It needs many records: about 2,000 over epsilon for two classes, and far more for ten. The
    bound is on the L2 norm, so L2LaplaceMechanism adds less noise than LaplaceMechanism to as many
    numbers, of which it takes 16 at most.

    Parameters
    ----------
    n_blocks : int or "auto", default="auto"
        Number of blocks. "auto" takes the number with the least expected error on public records;
        for a function, the square root of the number of records.
    student : estimator object or None, default=None
        The estimator that is taught and released, such as ``LogisticRegression()``, which is often
        better than a tree. None takes a clone of the wrapped one.
    random_state : int, numpy.random.Generator, numpy.random.RandomState or None, default=None
        Seed of the permutation, the public records and the fits. It is public.

    See Also
    --------
    PrivateEstimator : Takes it as `sensitivity`; "aggregate" is short for it.
    release : Takes it too, for a function with values in public `ranges`.

    Notes
    -----
    The bound is proved in the user guide. It takes the scores of a block to depend on the block and
    on public things alone: the estimator is cloned, and its seeds and the global generators of
    Python and numpy are set before each fit.

    A block that cannot be pickled, or on which the fit fails or gives numbers that are not finite,
    counts as a public constant, and a block of one class as this class. No error, message or number
    tells which. The time and the memory of fits may depend on the records.

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
    >>> from skdp import L2LaplaceMechanism, PrivateEstimator, RandomTaskOracle, SampleAndAggregate
    >>> X, y = make_classification(n_samples=3000, n_features=4, random_state=0)
    >>> model = PrivateEstimator(
    ...     DecisionTreeClassifier(max_depth=3),
    ...     mechanism=L2LaplaceMechanism(epsilon=1.0),
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


def check_blocks(aggregate: SampleAndAggregate, n_samples: int) -> None:
    """Refuse a number of blocks that the records do not have."""
    if n_samples < LEAST_RECORDS:
        raise ValueError(
            f"sensitivity='aggregate' needs at least {LEAST_RECORDS} records, to cut them "
            f"into blocks. Got {n_samples}. Sample the sensitivity, with an oracle."
        )
    if aggregate.n_blocks == "auto":
        return
    n_blocks = check_count("n_blocks", aggregate.n_blocks, "SampleAndAggregate", at_least=2)
    if n_blocks > n_samples:
        raise ValueError(
            "The 'n_blocks' parameter of SampleAndAggregate must be at most the number of "
            f"records, {n_samples}. Got {n_blocks}."
        )


def bind_blocks(
    aggregate: SampleAndAggregate,
    estimator: Estimator,
    public: Public,
    deviation: Callable[[int, float], float],
) -> Blocks:
    """Learn the code, and make the target; `deviation` is of the noise in one of n numbers."""
    check_predictions(PredictionTarget(student=aggregate.student), estimator)
    seed = public_seed(aggregate.random_state, "random_state", "SampleAndAggregate")
    rng, _ = streams(seed, AGGREGATE)
    n_samples = public.n_samples
    drawn = public.source.public_dataset(DRAWN * N_ROWS, public.schema, attempt=N_DATASETS)
    rows = public.schema.parts.X.convert(different_records(drawn.X, N_ROWS, least=N_ANCHORS))
    anchors = np.arange(n_records(rows))[:N_ANCHORS]
    reader = reader_of(public.fit, drawn.y, take_records(rows, anchors))
    if not isinstance(reader, ClassScores | ResponseScores):
        raise ValueError(
            f"sensitivity='aggregate' releases classifiers and regressors. "
            f"Got {type(estimator).__name__}."
        )
    student = estimator if aggregate.student is None else aggregate.student
    fits = BlockFits(estimator, reader, take_records(rows, anchors), seed)
    rules = Rules.of(reader, rows, public)
    width = reader.n_columns
    truths = rules.truths(max(200, N_RULES // width), rng)
    learn = partial(
        learn_block_code,
        truths,
        axes_of(truths, width),
        anchors=(anchors[:, None] * width + np.arange(width)).ravel(),
        n_outputs=width,
        move=float(np.linalg.norm(reader.moves)) / n_samples,
        deviation=deviation,
    )

    def pilots_of(numbers: list[int], n_pilots: int) -> dict[int, BlockPilots]:
        return {k: rules.pilots(fits, n_samples // k, n_pilots, rng) for k in numbers}

    n_pilots, n_blocks = N_PILOTS, aggregate.n_blocks
    if n_blocks == "auto":
        sizes = [size for size in BLOCK_SIZES if size >= 3 * max(2, width)]
        numbers = sorted({min(max(n_samples // s, LEAST_BLOCKS), MOST_BLOCKS) for s in sizes})
        n_blocks = learn(pilots_of(numbers, N_TRIED)).n_blocks
        n_pilots += N_TRIED * len(numbers)
    pilots = pilots_of([int(n_blocks)], N_PILOTS)
    code = learn(pilots)
    target = Blocks(fits, student, rows, code, n_samples, rng, n_pilots)
    if isinstance(reader, ClassScores):
        sigma = deviation(code.n_numbers, target.bound(2))
        learns_labels = not takes_weights(student)
        target.sharpness = Sharpness.of(
            code, pilots[code.n_blocks], truths, sigma, width, learns_labels, rng
        )
    if getattr(public.source.draws_from, "responses", ""):  # its expected score is that of tasks
        tasks = graded_tasks(public.source.draws_from, getattr(reader, "classes", None))
        target.n_public_fits += (len(tasks) - LEAST_DATASETS) * (1 + target.light.n_read)
    target.restore(code.mean)  # fails before anything is paid for
    return target


class FunctionBlocks(Target):
    """The mean of a function's values on blocks of the records, each clipped to public ranges."""

    def __init__(
        self, aggregate: SampleAndAggregate, function: Target, ranges: ArrayLike, n_samples: int
    ):
        check_blocks(aggregate, n_samples)
        is_auto = aggregate.n_blocks == "auto"
        n_blocks = math.isqrt(n_samples) if is_auto else int(aggregate.n_blocks)
        bound = mean_bound(n_blocks, ranges=ranges)  # of the mean over blocks
        box = np.array(bound.ranges).T  # of the bound, however the given ones are read
        self.ranges = box[:, 0] if np.ndim(ranges) == 1 else box
        self.within = self.ranges.mean(axis=0)
        self.known = replace(
            bound,
            n_samples=n_samples,
            ranges=None,
            shape=self.ranges.shape[1:],
            preconditions="that evaluations on blocks share no state",
        )
        self.seed = public_seed(aggregate.random_state, "random_state", "SampleAndAggregate")
        self.n_blocks = n_blocks
        self.function, self.n_samples, self.allow_nan = function, n_samples, function.allow_nan
        self.description = f"mean over {n_blocks} blocks of {function.description}"

    @property
    def blocks(self) -> list[NDArray[np.intp]]:
        """The places of the records of each block."""
        order = streams(self.seed, AGGREGATE)[0].permutation(self.n_samples)
        return np.array_split(order, self.n_blocks)

    def __call__(self, *parts: Container, seed: int) -> Matrix:
        """Evaluate the function on each block, where it counts as the middle if it fails."""
        if Dataset(*parts).n_records != self.n_samples:  # on made-up records it is tried
            return self.function(*parts, seed=seed)
        return self.over_persons(*parts, counts=np.ones(self.n_samples, dtype=np.intp), seed=seed)

    def over_persons(self, *parts: Container, counts: NDArray[np.intp], seed: int) -> Matrix:
        """Evaluate on blocks of persons, whose places in a secret order are permuted."""
        persons, middle = Persons(Dataset(*parts), counts), self.ranges.mean(axis=0)

        def value(block: Dataset) -> Matrix:
            return spare(self.function)(*block.parts, seed=seed)

        blocks = (persons.take(block).rows for block in self.blocks)
        values = [on_block(value, block, middle, seed) for block in blocks]
        return np.mean(np.clip(values, *self.ranges), axis=0)
