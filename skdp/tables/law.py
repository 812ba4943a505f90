"""From noisy class tables to a law of records. All of it is post-processing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from skdp.core.simplex import project_to_simplex
from skdp.core.types import Matrix
from skdp.tables.counts import Table

FEWEST, MOST = 2, 16  # cells of a number
SIGNAL = 4  # deviations of the noise that a cell of a number should hold in records
VARIANCES = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])  # of the log odds of a cell
LENGTH, ROUGHNESS = 0.3, 0.15  # share of the range over which log odds change; what is not smooth


def n_cells_of_numbers(n_records: int, deviation: float) -> int:
    """Return n / (4 sd), in [2, 16]: cells of equal sizes then hold four deviations of noise."""
    wanted = n_records / (SIGNAL * deviation) if deviation else MOST
    return int(np.clip(round(min(wanted, MOST)), FEWEST, MOST))


def class_sizes(noisy: Sequence[Table], n_records: int, deviation: float) -> Matrix:
    """Return the mean of the class sizes of all tables, by their precisions, on the simplex.

    A size of a table of k cells has the variance k sd^2, so the mean has sd^2 / sum(1 / k). No
    class is smaller than twice this deviation, or .001 n, and it need not be larger than .02 n.
    """
    precisions = np.array([1 / len(table) for table in noisy])
    mean = precisions @ np.array([table.sum(axis=0) for table in noisy]) / precisions.sum()
    sizes = n_records * project_to_simplex([mean / n_records])[0]
    error = deviation / np.sqrt(precisions.sum())
    sizes = np.maximum(sizes, min(0.02 * n_records, max(1e-3 * n_records, 2 * error)))
    return sizes * n_records / sizes.sum()


def class_given_cell(
    table: Table, sizes: Matrix, deviation: float, ordered: bool
) -> tuple[Matrix, Table]:
    """Return the size of each cell and the probability of each class in it, by empirical Bayes.

    With N the sizes of the cells and share those of the classes, the residual is r_xc = t_xc -
    share_c sum(t_x) = N_x (p_xc - share_c) + noise, whose variance is sd^2 (1 - 1/K) from the
    release and N_x q from the records, q the mean of share (1 - share). Before any record is seen,
    p_xc - share_c has the covariance v q^2 C: C is the identity for categories, and for numbers
    .85 exp(-distance / .3) + .15 identity. The posterior means are averaged over a grid of v, by
    their likelihoods, so a column without signal keeps the shares.
    """
    n, (n_cells, n_classes) = sizes.sum(), table.shape
    share = sizes / n
    counts = n * project_to_simplex([table.sum(axis=1) / n])[0]
    residual = table - share * table.sum(axis=1, keepdims=True)
    spread = np.mean(share * (1 - share))
    noise = np.diag(deviation**2 * (1 - 1 / n_classes) + counts * spread + 1e-9)
    kernel = np.eye(n_cells)
    if ordered:
        places = (np.arange(n_cells) + 0.5) / n_cells
        smooth = np.exp(-np.abs(places[:, None] - places) / LENGTH)
        kernel = (1 - ROUGHNESS) * smooth + ROUGHNESS * kernel
    means, log_likelihoods = [], []
    for variance in VARIANCES:
        prior = variance * spread**2 * kernel * counts
        root = np.linalg.cholesky(counts[:, None] * prior + noise)
        white = np.linalg.solve(root, residual)
        means.append(prior @ np.linalg.solve(root.T, white))
        # the residuals of all classes add up to zero, so K - 1 of them are free
        square = np.sum(white**2) * (n_classes - 1) / n_classes
        log_likelihoods.append(-square / 2 - (n_classes - 1) * np.log(np.diag(root)).sum())
    weights = np.exp(np.array(log_likelihoods) - max(log_likelihoods))
    p = share + np.tensordot(weights / weights.sum(), np.array(means), 1)
    p = np.maximum(p, 0.03 * share)
    return counts, p / p.sum(axis=1, keepdims=True)


def law_of_column(
    table: Table, sizes: Matrix, deviation: float, ordered: bool
) -> tuple[Table, Table]:
    """Return the law of (cell, class), scaled to the class sizes, and log P(c | cell) / P(c)."""
    counts, p = class_given_cell(table, sizes, deviation, ordered)
    law = counts[:, None] * p + 1e-9
    for _ in range(3):
        law *= sizes / law.sum(axis=0)
    return law, np.log(p * sizes.sum() / sizes)


def draw_classes(sizes: Matrix, n_samples: int, rng: Generator) -> NDArray[np.intp]:
    """Draw classes, each at least once where there are ten draws for each: estimators need all."""
    drawn = rng.multinomial(n_samples, sizes / sizes.sum())
    if n_samples >= 10 * len(sizes):
        drawn[np.argmax(drawn)] -= np.sum(drawn == 0)
        drawn[drawn == 0] = 1
    return rng.permutation(np.repeat(np.arange(len(sizes)), drawn))


def draw_cells(law: Table, classes: NDArray[np.intp], rng: Generator) -> NDArray[np.intp]:
    """Draw the cell of a column, given the class."""
    ends = np.cumsum(law, axis=0)
    place = rng.random(len(classes))[:, None]
    return np.sum(place >= (ends[:-1] / ends[-1]).T[classes], axis=1)
