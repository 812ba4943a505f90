"""What class tables may be worth: made-up tables are released, and score further records."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from skdp.core.types import Matrix
from skdp.mechanisms.noise import byte_source
from skdp.tables.law import draw_cells, kernel_of_cells
from skdp.tables.release import Design

STRENGTHS = (1.0, 4.0, 12.0)  # variances of the log odds of a record
LARGE = 0.8  # share of the largest class in a second set of tables; in the first all are alike
N_RELEASES, MANY_COLUMNS = 3, 20  # releases of each table; one where there are more columns
N_SCORED = 2000  # records


@lru_cache(maxsize=64)
def expected_scores(design: Design) -> Matrix:
    """Return the accuracy of a release, the exact model and a guess, a row for each made-up law.

    Columns act one by one. The log odds of a cell are normal, and the share of a column in their
    variance goes with 1 / rank. The model is the law of the tables itself: no estimator is fitted.
    """
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
