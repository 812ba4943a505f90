"""Random rules on public records, from which the code of blocks is learned."""

from __future__ import annotations

from typing import Any

import numpy as np

from skdp.codes.blocks import Pilots
from skdp.core.dataset import Dataset, n_records, take_records
from skdp.core.schema import Schema
from skdp.core.types import Container, Matrix
from skdp.estimators.predictions import (
    ClassScores,
    ResponseScores,
)
from skdp.planning.blocks import BlockFits
from skdp.sensitivity.random_task import RandomTaskOracle

N_RULES, N_PILOTS, N_DATASETS = 1000, 80, 20
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
    def of(
        cls, reader: ClassScores | ResponseScores, public: Dataset, source: Any, schema: Schema
    ) -> Rules:
        """Take the shares of the classes from datasets of the oracle."""
        if isinstance(reader, ResponseScores):
            return cls(public.X, reader, RandomTaskOracle(public.X, y_scale=1.0), np.empty(0))
        labels, size = reader.classes, max(200, 2 * len(reader.classes))
        drawn = (source.public_dataset(size, schema, attempt=a).y for a in range(N_DATASETS))
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
