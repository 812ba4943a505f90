"""From noisy class tables to a law of records. All of it is post-processing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import softmax

from skdp.core.simplex import project_to_simplex
from skdp.core.types import Matrix
from skdp.tables.counts import Table

FEWEST, MOST = 2, 16  # cells of a number
SIGNAL = 4  # deviations of the noise that a cell of a number should hold in records
VARIANCES = np.array([0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])  # of the log odds of a cell
USUAL = 0.3  # the least one that errors suppose
LENGTH, ROUGHNESS = 0.3, 0.15  # share of the range over which log odds change; what is not smooth


def n_cells_of_numbers(n_records: int, deviation: float) -> int:
    """Return n / (4 sd), in [2, 16]: cells of equal sizes then hold four deviations of noise."""
    wanted = n_records / (SIGNAL * deviation) if deviation else MOST
    return int(np.clip(round(min(wanted, MOST)), FEWEST, MOST))


def class_sizes(noisy: Sequence[Table], n_records: int, deviation: float) -> Matrix:
    """Return the mean of the class sizes of all tables, on the simplex.

    No class is smaller than twice its error, or .001 n, and it need not be larger than .02 n.
    """
    mean, error = mean_sizes(noisy, deviation)
    sizes = n_records * project_to_simplex([mean / n_records])[0]
    sizes = np.maximum(sizes, min(0.02 * n_records, max(1e-3 * n_records, 2 * error)))
    return sizes * n_records / sizes.sum()


def mean_sizes(noisy: Sequence[Table], deviation: float) -> tuple[Matrix, float]:
    """Return the mean of the class sizes of all tables, by their precisions, and its error.

    A size of a table of k cells has the variance k sd^2, so the mean has sd^2 / sum(1 / k).
    """
    precisions = np.array([1 / len(table) for table in noisy])
    mean = precisions @ np.array([table.sum(axis=0) for table in noisy]) / precisions.sum()
    return mean, deviation / float(np.sqrt(precisions.sum()))


def is_in_one_cell(counts: Matrix, n_records: int, deviation: float) -> bool:
    """Whether one count is n but for three deviations of its noise, if these are little of n."""
    least = 3 * deviation
    return bool(len(counts) > 1 and n_records - counts.max() <= least <= 0.02 * n_records)


def kernel_of_cells(n_cells: int) -> Matrix:
    """Return the correlations of the log odds of a number: those of near cells are alike."""
    places = (np.arange(n_cells) + 0.5) / n_cells
    smooth = np.exp(-np.abs(places[:, None] - places) / LENGTH)
    return (1 - ROUGHNESS) * smooth + ROUGHNESS * np.eye(n_cells)


def class_given_cell(
    table: Table, sizes: Matrix, deviation: float, ordered: bool
) -> tuple[Matrix, Table, tuple[Matrix, Matrix]]:
    """Return the size of each cell and the probability of each class in it, by empirical Bayes.

    The last is the posterior covariance of the cells, for the probability of any class: the blocks
    B of a sum B + A A', and A. Its v is at least .3: noise that hides a signal leaves room for one.

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
    size = n_cells if ordered else 1  # of a block: categories are independent
    blocks = counts.reshape(-1, size, 1)
    noise = np.eye(size) * (deviation**2 * (1 - 1 / n_classes) + blocks * spread + 1e-9)
    priors = (VARIANCES * spread**2)[:, None, None, None] * kernel_of_cells(size)
    roots = np.linalg.cholesky(blocks * priors * blocks.transpose(0, 2, 1) + noise)
    white = np.linalg.solve(roots, residual.reshape(1, -1, size, n_classes))
    halves = np.linalg.solve(roots, blocks * priors)
    means = (halves.transpose(0, 1, 3, 2) @ white).reshape(-1, n_cells, n_classes)
    # the residuals of all classes add up to zero, so K - 1 of them are free
    squares, determinants = np.sum(white**2, axis=(1, 2, 3)), np.diagonal(roots, axis1=2, axis2=3)
    halved = squares / (2 * n_classes) + np.log(determinants).sum(axis=(1, 2))
    weights = softmax((1 - n_classes) * halved)
    mean = np.tensordot(weights, means, 1)
    weights = softmax(np.where(VARIANCES < USUAL, -np.inf, (1 - n_classes) * halved))
    away = np.concatenate((means - mean) * np.sqrt(weights / n_classes)[:, None, None], axis=1)
    covariance = np.tensordot(weights, priors - halves.transpose(0, 1, 3, 2) @ halves, 1)
    p = np.maximum(share + mean, 0.03 * share)
    return counts, p / p.sum(axis=1, keepdims=True), (covariance, away)


def law_of_column(
    table: Table, sizes: Matrix, deviation: float, ordered: bool
) -> tuple[Table, Table]:
    """Return the law of (cell, class), scaled to the class sizes, and log P(c | cell) / P(c)."""
    counts, p, _ = class_given_cell(table, sizes, deviation, ordered)
    law = counts[:, None] * p + 1e-9
    for _ in range(3):
        law *= sizes / law.sum(axis=0)
    return law, np.log(p * sizes.sum() / sizes)


def log_odds(table: Table, sizes: Matrix, deviation: float, ordered: bool) -> tuple[Table, Table]:
    """Return log P(c | cell) / P(c), less that of the first class, for other classes; and errors.

    The variance is V (1 / p_c^2 + 1 / p_0^2 - 2 M_c0 / (p_c p_0)), with V = S_xx and M as below.
    """
    _, p, (blocks, away) = class_given_cell(table, sizes, deviation, ordered)
    lifts, first, others = np.log(p / sizes), 1 / p[:, :1], 1 / p[:, 1:]
    factor = others**2 + first**2 + 2 * first * others / (len(sizes) - 1)
    variance = np.diagonal(blocks, axis1=1, axis2=2).ravel() + np.sum(away**2, axis=1)
    return lifts[:, 1:] - lifts[:, :1], np.sqrt(np.maximum(variance, 0)[:, None] * factor)


def information(
    table: Table, sizes: Matrix, deviation: float, ordered: bool
) -> tuple[float, float]:
    """Return the released information of a column about y in bits, and its standard error.

    It is I = sum_x P(x) sum_c P(c | x) log2(P(c | x) / P(c)), of the smoothed table. The error is
    that of its expansion to second order. With g_xc = P(x) log2(P(c | x) / P(c)), S the posterior
    covariance of the cells, and M = (K I - 1 1') / (K - 1) for the classes, the variance is
    sum_cc' M_cc' g_c' S g_c' + sum_cc' M_cc'^2 / (P_c P_c') sum_xy P(x) P(y) S_xy^2 / (2 log(2)^2).
    """
    counts, p, (blocks, away) = class_given_cell(table, sizes, deviation, ordered)
    covariance = block_diag(*blocks) + away @ away.T
    share, weight, k = sizes / sizes.sum(), counts / counts.sum(), len(sizes)
    slopes, between = weight[:, None] * np.log2(p / share), (k * np.eye(k) - 1) / (k - 1)
    linear = np.sum(between * (slopes.T @ covariance @ slopes))
    curved = weight @ (covariance / np.log(2)) ** 2 @ weight / 2
    square = np.sum(between**2 / np.outer(share, share)) * curved
    return float(np.sum(slopes * p)), float(np.sqrt(max(linear + square, 0.0)))


def draw_classes(
    sizes: Matrix, n_samples: int, rng: Generator, complete: bool = False
) -> NDArray[np.intp]:
    """Draw classes independently, or each at least once where there are ten draws for each."""
    drawn = rng.multinomial(n_samples, sizes / sizes.sum())
    if complete and n_samples >= 10 * len(sizes):
        drawn[np.argmax(drawn)] -= np.sum(drawn == 0)
        drawn[drawn == 0] = 1
    return rng.permutation(np.repeat(np.arange(len(sizes)), drawn))


def draw_cells(law: Table, classes: NDArray[np.intp], rng: Generator) -> NDArray[np.intp]:
    """Draw the cell of a column, given the class."""
    ends = np.cumsum(law, axis=0)
    place = rng.random(len(classes))[:, None]
    return np.sum(place >= (ends[:-1] / ends[-1]).T[classes], axis=1)
