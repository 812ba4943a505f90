"""What class tables may be worth: made-up tables are released, and score further records."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, softmax

from skdp.core.types import Matrix
from skdp.mechanisms.noise import byte_source
from skdp.tables.columns import Number
from skdp.tables.law import MOST, draw_cells, kernel_of_cells
from skdp.tables.release import Design

STRENGTHS = (1.0, 4.0, 12.0)  # variances of the log odds of a record
LARGE = 0.8  # share of the largest class in a second set of tables; in the first all are alike
N_RELEASES, MANY_COLUMNS = 3, 20  # releases of each table; one where there are more columns
N_SCORED = 2000  # records


R_SQUARED, N_MADE = (0.02, 0.2, 0.5, 0.85), 20_000  # of the columns; records of their law
N_VALUES, WIDE = 100, 3.0  # values of a made-up response; its range is so many times too wide
PLACES = (np.arange(N_VALUES) + 0.5) / N_VALUES
MIDDLE, TAILED = 0.5 + ndtri(PLACES) / (4 * WIDE), -np.log1p(-PLACES) / (4 * WIDE)
"""Quantiles of a made-up response in units of its range."""


@lru_cache(maxsize=64)
def expected_scores(design: Design) -> Matrix:
    """Return the score of a release, the exact model and a guess, a row for each made-up law.

    Columns act one by one. The log odds of a cell are normal, and the share of a column in their
    variance goes with 1 / rank. The model is the law of the tables itself: no estimator is fitted.
    """
    if design.cells is not None:
        return np.array(
            [_regression(design, *each) for each in product((MIDDLE, TAILED), R_SQUARED)]
        )
    k = design.n_classes
    shares = np.full(k, 1 / k), np.append(LARGE, np.full(k - 1, (1 - LARGE) / (k - 1)))
    return np.array([_scores(design, share, each) for share in shares for each in STRENGTHS])


def _scores(design: Design, share: Matrix, strength: float) -> list[float]:
    """Make up the law of records with these shares of classes, and score releases of tables."""
    rng, source, columns = np.random.default_rng(0), byte_source(0), design.schema.columns.values()
    ranks, laws = 1 / (rng.permutation(len(columns)) + 1), []
    for column, size, rank in zip(columns, design.sizes, ranks, strict=True):
        kernel = kernel_of_cells(size if column.ordered else 1)
        normal = rng.normal(size=(size // len(kernel), len(kernel), len(share)))
        odds = (np.linalg.cholesky(kernel) @ normal).reshape(size, -1)
        odds *= np.sqrt(strength * rank / ranks.sum())
        law = rng.dirichlet(np.ones(size))[:, None] * np.exp(odds)
        laws.append(law / law.sum(axis=0))
    counts = rng.multinomial(design.n_records, share)
    labels = rng.choice(len(share), N_SCORED, p=share)
    cells = [draw_cells(law, labels, rng) for law in laws]

    def accuracy(prior: Matrix, odds: list[Matrix]) -> float:
        score = np.log(prior) + sum(each[x] for each, x in zip(odds, cells, strict=True))
        return float(np.mean(labels == score.argmax(axis=1)))

    found = []
    for _ in range(N_RELEASES if len(laws) <= MANY_COLUMNS else 1):
        tables = [np.column_stack([*map(rng.multinomial, counts, law.T)]) for law in laws]
        oracle = design.oracle(design.noise.add(tables, source), None, "array")
        found.append(accuracy(oracle.sizes_, [odds for _, odds in oracle.laws_]))
    return [float(np.mean(found)), accuracy(share, [*map(np.log, laws)]), float(share.max())]


@dataclass(frozen=True)
class MadeUpTable:
    """Counts of columns by the values of a response, of which a release merges some."""

    values: Matrix
    tables: list[NDArray[np.int64]]
    response: Number

    def cut(self, response: Number) -> MadeUpTable:
        """Return the same table with other cells of the response."""
        return replace(self, response=response)

    def responses(self) -> NDArray[np.int64]:
        """Count the records of each cell of the response."""
        return self.counts()[0].sum(axis=0)

    def counts(self, *_: object) -> list[NDArray[np.int64]]:
        """Count the records of each cell of a column and of the response."""
        cells, size = self.response.cells(self.values, 0), self.response.n_cells(0)
        return [table @ np.eye(size, dtype=np.int64)[cells] for table in self.tables]


def _regression(design: Design, quantiles: Matrix, r_squared: float) -> list[float]:
    """Make up records whose columns add up to y, but for an error, and score releases in R2.

    The columns are independent, and y is transformed to these quantiles. The law of a column
    given y is that of the records, and a release counts draws of this law.
    """
    rng, source, columns = np.random.default_rng(0), byte_source(0), design.schema.columns.values()
    assert design.cells is not None
    response, ranks = design.cells.number, 1 / (rng.permutation(len(columns)) + 1)
    values, normal = response.clipped(response.from_unit(quantiles)), ndtri(PLACES)
    cells, signal = [], np.zeros(N_MADE)
    for column, rank in zip(columns, ranks, strict=True):
        size = column.n_cells(MOST)
        kernel = kernel_of_cells(size if column.ordered else 1)
        effects = rng.normal(size=(size // len(kernel), len(kernel))) @ np.linalg.cholesky(kernel).T
        cells.append(rng.choice(size, N_MADE, p=rng.dirichlet(np.full(size, 2.0))))
        effect = effects.ravel()[cells[-1]]
        signal += np.sqrt(rank) * (effect - effect.mean()) / max(effect.std(), 1e-9)
    known = np.sqrt(r_squared) * signal / max(signal.std(), 1e-9)
    hidden = known + np.sqrt(1 - r_squared) * rng.normal(size=N_MADE)
    labels = hidden.argsort().argsort() * N_VALUES // N_MADE
    y = values[labels[:N_SCORED]]

    def score(logs: Matrix, values: Matrix) -> float:
        return float(1 - np.mean((y - softmax(logs, axis=1) @ values) ** 2) / np.var(y))

    away = (normal - known[:N_SCORED, None]) ** 2 / (2 * (1 - r_squared))
    exact, laws = score(-away, values), []
    for place, size in enumerate(design.sizes):  # cells that are released are unions of those
        cells[place] = cells[place] * size // (cells[place].max() + 1)
        law = np.bincount(cells[place] * N_VALUES + labels, minlength=size * N_VALUES)
        laws.append(law.reshape(size, -1) * N_VALUES / N_MADE)
    found = []
    for _ in range(N_RELEASES if len(laws) <= MANY_COLUMNS else 1):
        counts = rng.multinomial(design.n_records, np.full(N_VALUES, 1 / N_VALUES))
        tables = [np.column_stack([*map(rng.multinomial, counts, law.T)]) for law in laws]
        oracle = design.release(MadeUpTable(values, tables, response), source, "array")
        odds = [odds[x[:N_SCORED]] for (_, odds), x in zip(oracle.laws_, cells, strict=True)]
        found.append(score(np.log(oracle.sizes_) + sum(odds), oracle.response_[1]))
    return [float(np.mean(found)), exact, 0.0]
