"""The second stage: a logistic regression on encoded columns, corrected on the private records.

Draws of the released law are independent given the class, so a student of draws counts twice what
two columns have in common. Objective perturbation about this student corrects it: its columns are
multiplied by private numbers, which are 1 before any record is seen.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from skdp.core.types import ByteSource, Matrix
from skdp.mechanisms.l2_laplace import MOST_VALUES
from skdp.mechanisms.objective import ObjectivePerturbation, RowSource

FROM_WEIGHTS, FROM_SCORE = 200, 1000  # least n epsilon / d, and n epsilon
SHARES = {"weights": 0.2, "score": 0.1, None: 0.0}  # of the budget
SPREAD = 0.5  # of the private numbers about 1, before any record is seen
QUANTILE = 0.9  # of the lengths of drawn rows: longer ones are shortened
N_STUDENT, N_RISK = 5000, 2000  # draws for the student, and for the penalty


def stage(n_records: int, epsilon: float, n_columns: int, n_classes: int) -> str | None:
    """Return what gets private numbers: the "weights" of all columns, their "score", or nothing."""
    if n_classes > 2 or np.isinf(epsilon):
        return None
    if n_records * epsilon / n_columns >= FROM_WEIGHTS:
        return "weights"
    return "score" if n_records * epsilon >= FROM_SCORE else None


def n_weights(kind: str | None, n_columns: int, is_pure: bool) -> int:
    """Return the number of private numbers, with that of the constant: without a delta up to 16."""
    most = n_columns + 1 if kind == "weights" else 2
    return min(most, MOST_VALUES) if is_pure else most


def student(encoded: Matrix, labels: NDArray[np.intp]) -> Matrix:
    """Fit a logistic regression to draws; the last weight is that of a constant 1."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=300).fit(encoded, labels)
    return np.append(model.coef_[0], model.intercept_)


def correct(
    first: Matrix,
    drawn: Matrix,
    private: Callable[[Callable[[Matrix], Matrix]], RowSource],
    labels: NDArray[np.intp],
    objective_of: Callable[[float], ObjectivePerturbation],
    source: ByteSource,
) -> Matrix:
    """Release corrected weights. All but `private` and `labels` follows from what is released.

    `private` applies a function to the encoded private records, all at once or block by block.
    `objective_of` makes the mechanism, for the length of the longest row. The columns that vary
    least in score share a number where there are more columns than numbers.
    """
    n_groups = objective_of(1.0).n_weights - 1
    spreads = np.std(drawn * first[:-1], axis=0)
    groups = np.eye(n_groups)[np.minimum(np.argsort(np.argsort(-spreads)), n_groups - 1)]
    groups *= first[:-1, None]
    longest = max(float(np.quantile(np.linalg.norm(drawn @ groups, axis=1), QUANTILE)), 1e-3)
    constant = longest / 2

    def rows(encoded: Matrix) -> Matrix:
        made = encoded @ groups
        lengths = np.maximum(np.linalg.norm(made, axis=1, keepdims=True), 1e-300)
        return np.column_stack(
            [made * np.minimum(1.0, longest / lengths), np.full(len(made), constant)]
        )

    objective = objective_of(float(np.hypot(longest, constant)))
    center = np.append(np.ones(n_groups), first[-1] / constant)
    penalty = least_risk(rows(drawn[:N_RISK]), center, len(labels), objective)
    found = objective.release(private(rows), labels == 1, center, penalty, source)
    return np.append(groups @ found[:-1], constant * found[-1])


def least_risk(
    rows: Matrix, center: Matrix, n_records: int, objective: ObjectivePerturbation
) -> float:
    """Return the penalty L with the least expected squared error of the score of a drawn row.

    With M the second moments of drawn rows, H the Hessian of n of them at the center and sd the
    deviation of the noise, it is tr M (H + L)^-1 (sd^2 I + H + L^2 SPREAD^2 I) (H + L)^-1.
    """
    s = expit(rows @ center)
    hessian = n_records / len(rows) * (rows * (s * (1 - s))[:, None]).T @ rows
    values, vectors = np.linalg.eigh(hessian)
    values, spread = np.maximum(values, 0.0), np.mean((rows @ vectors) ** 2, axis=0)
    penalties = objective.least_penalty * np.exp(np.linspace(0, 12, 60))[:, None]
    error = objective.deviation**2 + values + (penalties * SPREAD) ** 2
    return float(
        penalties[np.argmin(np.sum(spread * error / (values + penalties) ** 2, axis=1)), 0]
    )
